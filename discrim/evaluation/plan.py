"""Plan of a comparison: the cells (method, K, classifier) that are tried on the splits of one table.

A trial names everything that its result depends on: the content of the table, the split, the scale, the method, K, the
classifier and the version of discrim. Equal trials are therefore computed once, in whichever run they occur. Facts
that no single trial has (classes, labels, planned splits) are kept once per run (`Grid.facts`).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from importlib.metadata import version
from itertools import islice
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import coo_array, csr_array, issparse
from scipy.sparse.csgraph import connected_components

from discrim.estimators.pca import PCA
from discrim.evaluation.classifiers import (
    CLASSIFIERS,
    RAW_PARTNERS,
    Classifier,
    named,
    named_classifiers,
    preprocessing,
)
from discrim.evaluation.methods import METHODS, RAW, GivenMethod, as_methods
from discrim.evaluation.protocol import (
    EqualTogether,
    Grouped,
    Protocol,
    Split,
    codes_in_order,
    digest_of,
    equal_together,
    grouped,
    named_protocol,
    numbered_rows,
)
from discrim.evaluation.results import ITSELF, Cell, RunFacts, Scores, trial_key
from discrim.evaluation.statistics import corrected_t_test
from discrim.evaluation.trial import OWN_PREDICTION, TrialRows, Work
from discrim.registry import Method, Sizes, directions_of_rows, fewer_than_classes
from discrim.tables.labelled_table import LabelledTable
from discrim.tables.validation import checked_labels, checked_table, require_finite

DEFAULT_SPLITS = 20
EQUAL_ROWS = ("auto", "together", "apart")
MANY_VALUES = 50  # a column with more different values counts as continuous
DENSE_CELLS = 20_000_000  # sparse tables up to this size (160 MB) become dense, so that every method can take part
AUTOMATIC = (1, 2, 5, 10)
FIRST_SPLITS = 5  # every cell is tried on these before hopeless ones are dropped
HOPELESS = 0.01  # p value below which a reduction counts as worse than the best, and is dropped
LEAST_GAP = 0.02  # and the smallest difference to the best for that


@dataclass(frozen=True, eq=False)
class Grid:
    """Trials of a run: cells × splits of a table.

    methods, classifiers : the entries that the names in the cells mean
    n_splits : number of splits of the protocol that are done; None for all
    impute : how missing cells are filled; None if there are none
    sample_weight : a weight for each row; None for equal weights
    sample : number of rows of the data set and the row numbers of the table in it; None if the table has all rows
    class_weight : weighting of the classifiers that can weight classes
    dropped : cells that are tried on the first splits only
    """

    name: str
    table: LabelledTable
    cells: tuple[Cell, ...]
    protocol: Protocol
    scale: str = "standard"
    seed: int = 0
    methods: Mapping[str, Method] = field(default_factory=lambda: METHODS)
    classifiers: Mapping[str, Classifier] = field(default_factory=lambda: CLASSIFIERS)
    n_splits: int | None = None
    impute: str | None = None
    sample_weight: NDArray[np.float64] | None = None
    sample: tuple[int, NDArray[np.intp]] | None = None
    class_weight: str | None = None
    dropped: frozenset[Cell] = frozenset()

    def __post_init__(self) -> None:
        preprocessing(self.scale, self.impute)
        self.protocol.splits(self.table.y, self.seed)  # rejects a class that is too small, before any fit

    @cached_property
    def trial_rows(self) -> TrialRows:
        """Return the rows as trials use them: dense unless they are sparse and many."""
        X, facts = self.table.X, self.facts
        X = X.toarray() if issparse(X) and X.shape[0] * X.shape[1] <= DENSE_CELLS else X
        steps = preprocessing(self.scale, self.impute, sparse=issparse(X))
        groups = facts.groups if facts.groups is not None else facts.equal
        names = np.array(facts.classes)
        return TrialRows(X, facts.codes, self.sample_weight, steps, self.seed, groups, self.class_weight, names)

    def with_cells(self, cells: Iterable[Cell], dropped: Iterable[Cell] = ()) -> Grid:
        """Return the grid with other cells; rows, splits and the hash of the table are not computed again."""
        changed = replace(self, cells=tuple(cells), dropped=frozenset(dropped))
        vars(changed).update((name, vars(self)[name]) for name in _SHARED if name in vars(self))
        return changed

    @cached_property
    def splits(self) -> list[Split]:
        return list(islice(self.protocol.splits(self.table.y, self.seed), self.n_splits or self.protocol.n_splits))

    @cached_property
    def trials(self) -> list[dict[str, Any]]:
        """Return all trials, split by split, so that finished splits can be compared."""
        count, common = self.n_splits or self.protocol.n_splits, self.setting
        own = {name: {"estimator": method.written} for name, method in self.methods.items() if method.written}
        return [
            {**common, **cell._asdict(), "split": split, **own.get(cell.method, {})}
            for split in range(count)
            for cell in self.cells
            if split < FIRST_SPLITS or cell not in self.dropped
        ]

    @cached_property
    def by_key(self) -> dict[str, dict[str, Any]]:
        """Return the trials by their key in a store."""
        return {trial_key(trial): trial for trial in self.trials}

    def work(self, wanted: Iterable[dict[str, Any]]) -> Iterator[Work]:
        """Return the wanted trials in tasks of one split and method."""
        tasks: dict[tuple[int, str], list[dict[str, Any]]] = {}
        for trial in wanted:
            tasks.setdefault((trial["split"], trial["method"]), []).append(trial)
        for (split, method), trials in tasks.items():
            gone = self.dropped if split >= FIRST_SPLITS else ()
            cells = tuple(cell for cell in self.cells if cell.method == method and cell not in gone)
            known = named(method, self.methods, "method")
            own = {ITSELF: OWN_PREDICTION}
            judges = {
                name: known.own_classifier or own.get(name) or named(name, self.classifiers, "classifier")
                for name in {cell.classifier for cell in cells}
            }
            yield Work(known, judges, split, cells, tuple(trials))

    @cached_property
    def facts(self) -> RunFacts:
        """Return the facts that no single trial has."""
        classes, codes = np.unique(self.table.y, return_inverse=True)
        n_rows, sample = (self.table.drawn_from or self.table.n_samples, None) if self.sample is None else self.sample
        return RunFacts(
            tuple(classes.tolist()),
            codes,
            len(self.splits),
            self.table.n_features,
            len(self.cells),
            n_rows,
            np.array(self.protocol.groups) if isinstance(self.protocol, Grouped) else None,
            sample,
            self.sample_weight,
            np.array(self.protocol.equal) if isinstance(self.protocol, EqualTogether) else None,
            tuple(sorted(self.dropped)),
        )

    @cached_property
    def setting(self) -> dict[str, Any]:
        """Return the fields that all trials share; a later version's fields only if set, so that old keys hold."""
        setting: dict[str, Any] = {
            "data": self.name,
            "digest": self.table.digest(),
            "protocol": self.protocol.name,
            "protocol_size": self.protocol.size,
            "scale": self.scale,
            "impute": self.impute or "",
            "seed": self.seed,
            "discrim": version("discrim"),
            "groups": self.protocol.digest if isinstance(self.protocol, Grouped) else "",
            "weights": "" if self.sample_weight is None else digest_of(self.sample_weight.tolist()),
        }
        setting |= {"class_weight": self.class_weight} if self.class_weight else {}
        return setting | ({"equal_rows": "together"} if isinstance(self.protocol, EqualTogether) else {})


_SHARED = ("trial_rows", "splits", "setting")  # computed values of a grid that do not depend on its cells


def product(
    methods: Iterable[Method], counts: Iterable[int], classifiers: Iterable[Classifier], n_features: int
) -> tuple[Cell, ...]:
    """Return every method with every K and classifier; raw features have one K only."""
    counts, classifiers = tuple(counts), tuple(classifiers)
    return tuple(
        Cell(method.name, k, classifier)
        for method in methods
        for k in method.counts(counts, n_features)
        for classifier in method.judges([one.name for one in classifiers])
    )


def training_sizes(table: LabelledTable, protocol: Protocol, seed: int = 0) -> Sizes:
    """Return the sizes of the training part of the first split."""
    train, _ = next(iter(protocol.splits(table.y, seed)))
    return Sizes(len(train), table.n_features, len(codes_in_order(table.y)[1]))


def automatic_counts(sizes: Sizes) -> tuple[int, ...]:
    """Return 1, 2, 5, 10 and n_classes − 1, the number of linear discriminants, as far as rows and columns allow."""
    most = min(directions_of_rows(sizes), sizes.n_features - 1)  # as many as there are columns reduce nothing
    return tuple(sorted({k for k in (*AUTOMATIC, sizes.n_classes - 1) if 1 <= k <= most})) or (1,)


def refined_counts(tried: Sequence[int], k: int, most: int) -> tuple[int, ...]:
    """Return up to five more K between k and its neighbours among those tried; above the largest up to 2 k."""
    below = max((one for one in tried if one < k), default=0)
    above = min((one for one in tried if one > k), default=min(2 * k, most) + 1)
    between = [*np.linspace(below, k, 5)[1:-1], *np.linspace(k, above, 4)[1:-1]]
    return tuple(sorted({k for k in map(round, between) if 1 <= k <= most} - set(tried)))


# ---------------------------------------------------------------------- from the parameters of compare


def planned(
    table: LabelledTable,
    name: str,
    methods: str | Any | Iterable[str | Any] = "default",
    classifiers: str | Iterable[str] = "default",
    n_components: str | int | Iterable[int] = "auto",
    protocol: str = "holdout-80-20",
    *,
    n_splits: int | None = None,
    per_class: int | None = None,
    groups: Any = None,
    sample_weight: Any = None,
    most_rows: int | None = None,
    scale: str = "standard",
    impute: str | None = None,
    class_weight: str | None = None,
    equal_rows: str = "auto",
    seed: int = 0,
) -> Grid:
    """Return the grid for the parameters of `compare`.

    PCA and all columns ("raw") always take part, because all others are compared with them. All columns are classified
    by RAW_PARTNERS in addition to the named judges. Reductions that classify are also judged by their own prediction.
    """
    drawn = stratified_sample(table, most_rows, seed, groups)
    groups = None if groups is None else np.asarray(groups)[drawn]
    weights = None if sample_weight is None else np.asarray(sample_weight, dtype=np.float64)[drawn]
    part = table if len(drawn) == table.n_samples else table.take(drawn)
    n_splits = DEFAULT_SPLITS if n_splits is None and "kfold" not in protocol else n_splits
    splits = named_protocol(protocol, n_splits=n_splits, per_class=per_class)
    splits = _kept_together(splits, groups, equal_numbers(part, equal_rows))
    sample = None if part is table else (table.n_samples, drawn)
    grid = Grid(
        name,
        part,
        (),
        splits,
        scale,
        seed,
        impute=impute,
        sample_weight=weights,
        sample=sample,
        class_weight=class_weight,
    )
    chosen = tuple(_with_fixed_count(one, grid) for one in as_methods(methods, part.n_samples))
    chosen += tuple(METHODS[name] for name in ("pca", "raw") if name not in {one.name for one in chosen})
    judges = named_classifiers([classifiers] if isinstance(classifiers, str) else list(classifiers))
    if not judges:
        raise ValueError("classifiers must name one or more classifiers, 'default' or 'all'; got an empty list.")
    cells = _cells(chosen, _counts(n_components, grid), judges, grid)
    return replace(grid, methods=METHODS | {one.name: one for one in chosen}, cells=cells)


def _cells(chosen: tuple[Method, ...], counts: tuple[int, ...], judges: tuple[Classifier, ...], grid: Grid) -> Any:
    """Return every method with every K and judge, own predictions of methods that classify, and the partners."""
    sizes = training_sizes(grid.table, grid.protocol, grid.seed)
    partners = tuple(CLASSIFIERS[name] for name in RAW_PARTNERS)
    partners += tuple(one for one in judges if one not in partners)
    cells: list[Cell] = []
    for method in chosen:
        cells += product([method], counts, partners if method is RAW else judges, grid.table.n_features)
        if method.predicts:
            own = counts if method.predicts_by_components else {fewer_than_classes(sizes)} & set(counts)
            cells += [Cell(method.name, k, ITSELF) for k in own]
    return tuple(cells)


def equal_numbers(table: LabelledTable, equal_rows: str) -> np.ndarray | None:
    """Return numbers of the different rows if equal rows are to be kept together; else None.

    With "auto" they are if more than half of the columns are continuous: these have more than MANY_VALUES different
    values, or more than half as many as there are different rows and a quarter as many as there are rows.
    """
    if equal_rows not in EQUAL_ROWS:
        raise ValueError(f"equal_rows must be one of {', '.join(EQUAL_ROWS)}; got {equal_rows!r}.")
    if equal_rows == "apart" or issparse(table.X):
        return None
    numbers = numbered_rows(table.X)
    if numbers is None:
        return None
    least = min(MANY_VALUES, max((numbers.max() + 1) / 2, len(numbers) / 4))
    continuous = np.mean([len(np.unique(column)) > least for column in table.X.T])
    return numbers if equal_rows == "together" or continuous > 0.5 else None


def _kept_together(splits: Protocol, groups: Any, equal: np.ndarray | None) -> Protocol:
    """Keep groups, and equal rows, on one side of every split; groups that share equal rows become one."""
    if groups is None:
        return splits if equal is None else equal_together(splits, equal)
    if equal is not None:
        codes = np.unique(np.asarray(groups), return_inverse=True)[1]
        links = coo_array(
            (np.ones(len(codes)), (codes, codes.max() + 1 + equal)), shape=(codes.max() + equal.max() + 2,) * 2
        )
        groups = connected_components(links, directed=False)[1][codes]
    return grouped(splits, groups)


def _counts(asked: str | int | Iterable[int], grid: Grid) -> tuple[int, ...]:
    """Return K ascending, each once; raise if one is below 1 or all are above the number of features."""
    if isinstance(asked, str) and asked == "auto":
        return automatic_counts(training_sizes(grid.table, grid.protocol, grid.seed))
    counts = [asked] if isinstance(asked, (int, np.integer)) else asked
    if isinstance(counts, str) or not isinstance(counts, Iterable):
        raise ValueError(f"n_components must be whole numbers or 'auto'; got {asked!r}.")
    counts, most = list(counts), grid.table.n_features
    numbers = sorted({int(k) for k in counts if float(k).is_integer()})
    if not numbers or numbers[0] < 1 or not all(float(k).is_integer() for k in counts):
        raise ValueError(f"n_components must be whole numbers ≥ 1, or 'auto'; got {counts}.")
    if numbers[0] > most:
        listed = ", ".join(map(str, numbers))
        raise ValueError(f"n_components must be at most {most}, the number of features; got {listed}.")
    return tuple(numbers)


def refined(grid: Grid, picks: Iterable[Cell]) -> Grid | None:
    """Add numbers of components around those of the picked cells; return None if there are none to add."""
    cells = set(grid.cells)
    sizes = training_sizes(grid.table, grid.protocol, grid.seed)
    for pick in dict.fromkeys(picks):
        own = [cell for cell in grid.cells if cell.method == pick.method and cell.classifier != ITSELF]
        judges = {cell.classifier for cell in own if cell not in grid.dropped}
        most = min(grid.methods[pick.method].most_components(sizes), sizes.n_features - 1)
        for k in refined_counts(sorted({cell.k for cell in own}), pick.k, most) if own else ():
            cells |= {Cell(pick.method, k, classifier) for classifier in judges}
    if cells == set(grid.cells):
        return None
    order = {name: at for at, name in enumerate(dict.fromkeys(cell.method for cell in grid.cells))}
    ordered = sorted(cells, key=lambda cell: (order[cell.method], cell.k, cell.classifier))
    return grid.with_cells(ordered, grid.dropped)


def hopeless(scores: Scores) -> frozenset[Cell]:
    """Return the reductions that are far behind the best on the first splits; PCA is compared with the best PCA.

    All columns ("raw") are never dropped, because reductions are compared with them.
    """
    scores = scores.complete()
    gone: list[Cell] = []
    pca = [at for at, cell in enumerate(scores.cells) if cell.method == "pca"]
    others = [at for at, cell in enumerate(scores.cells) if cell.method not in ("pca", "raw")]
    for members, rivals in ((pca, pca), (others, others or pca)):
        if not members or scores.n_splits < 2:
            continue
        best = scores.values[max(rivals, key=lambda at: scores.values[at].mean())]
        test = corrected_t_test((best - scores.values[members]).T, scores.ratio, one_sided=True)
        behind = (np.asarray(test.p_value) < HOPELESS) & (np.asarray(test.mean) > LEAST_GAP)
        gone += [scores.cells[at] for at, is_behind in zip(members, np.atleast_1d(behind), strict=True) if is_behind]
    return frozenset(gone)


def _with_fixed_count(method: Method, grid: Grid) -> Method:
    """Return the method with its number of components, found by a fit on the first split if it cannot be set."""
    if not isinstance(method, GivenMethod) or method.parameter:
        return method
    first = grid.trial_rows.split(0, grid.splits[0])
    return method.with_fixed_count(first.train, first.y_train)


def stratified_sample(table: LabelledTable, most: int | None, seed: int, groups: Any = None) -> np.ndarray:
    """Return ascending row numbers: all, or about `most`, with each class in proportion, or of whole groups."""
    n_rows = table.n_samples
    if most is None or n_rows <= most:
        return np.arange(n_rows)
    if most < 2 * len(table.class_counts()):
        raise ValueError(f"most_rows must be at least 2 for each of {len(table.class_counts())} classes; got {most}.")
    random = np.random.default_rng(seed)
    if groups is not None:
        names, codes = np.unique(np.asarray(groups), return_inverse=True)
        order, sizes = random.permutation(len(names)), np.bincount(codes)
        order = order[sizes[order] <= most]  # a larger group does not fit
        drawn = np.flatnonzero(np.isin(codes, order[np.cumsum(sizes[order]) <= most]))
        lost = np.setdiff1d(table.y, table.y[drawn]).tolist()
        if lost:
            raise ValueError(
                f"most_rows must allow groups with every class; {most} rows of whole groups have none of "
                f"{', '.join(map(repr, lost[:5]))}{', …' if len(lost) > 5 else ''}. Increase it."
            )
        return drawn
    shuffled = random.permutation(n_rows)
    by_class = shuffled[np.argsort(table.y[shuffled], kind="stable")]
    drawn = by_class[np.linspace(0, n_rows - 1, most).astype(np.intp)]
    rare = [label for label, count in table.class_counts().items() if (table.y[drawn] == label).sum() < min(count, 10)]
    return np.unique(np.concatenate([drawn, *(np.flatnonzero(table.y == label)[:10] for label in rare)]))


def labelled_table(X: Any, y: Any, *, filled: bool = False) -> LabelledTable:
    """Return arrays or a data frame as a labelled table with text labels; raise for input that estimators reject.

    filled : missing cells are filled later, so NaN is allowed
    """
    names: Sequence[Any] = list(X.columns) if hasattr(X, "columns") else []
    rows = checked_table(PCA(), X, reset=True)
    rows = csr_array(rows).astype(np.float64) if issparse(rows) else np.asarray(rows, dtype=np.float64)
    require_finite(np.where(np.isnan(rows), 0.0, rows) if filled and not issparse(rows) else rows)
    labels = checked_labels("compare", y, rows.shape[0])
    words = [str(label) for label in labels.tolist()]
    text = np.array(words)
    if len(np.unique(text)) < len(set(words)):  # numpy cuts zero characters off the end of texts
        raise ValueError("Labels must not differ only in zero characters at their end. Rename them.")
    known = tuple(str(name) for name in names) or tuple(f"f{at}" for at in range(rows.shape[1]))
    return LabelledTable(rows, text, known, "target", "arrays")


def require_identity(grid: Grid, store: Any) -> None:
    """Raise if a store cannot identify an estimator, because its parameters have no stable text."""
    for method in grid.methods.values():
        if store is not None and isinstance(method, GivenMethod) and " at 0x" in method.written:
            raise ValueError(
                f"{method.name} must have parameters with a stable text to be stored; got {method.written[:80]}…. "
                "Compare it without a store."
            )
