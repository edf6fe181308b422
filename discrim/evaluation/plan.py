"""Plan of a comparison: which rows, which splits, which methods, judges and numbers of components."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from scipy.sparse import coo_array, csr_array, issparse
from scipy.sparse.csgraph import connected_components

from discrim.estimators.pca import PCA
from discrim.evaluation.classifiers import CLASSIFIERS, RAW_PARTNERS, Classifier, named_classifiers
from discrim.evaluation.comparison import Comparison
from discrim.evaluation.given_methods import GivenMethod, as_methods
from discrim.evaluation.grid import Grid, automatic_counts, checked_counts, product, refined_counts, training_sizes
from discrim.evaluation.methods import METHODS, RAW, Method
from discrim.evaluation.protocol import Protocol, equal_together, grouped, named_protocol, numbered_rows
from discrim.evaluation.results import ITSELF, Cell, Scores
from discrim.evaluation.statistics import corrected_t_test
from discrim.registry import fewer_than_classes
from discrim.tables.labelled_table import LabelledTable
from discrim.tables.validation import checked_labels, checked_table, require_finite

DEFAULT_SPLITS = 20
EQUAL_ROWS = ("auto", "together", "apart")
MANY_VALUES = 50  # different values of a column from which on it counts as continuous
HOPELESS = 0.01  # p value of a reduction's being worse than the best, from which on it is dropped
LEAST_GAP = 0.02  # and how far behind the best it has to be


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
    """The grid that `compare` is asked for, by its parameters' names.

    PCA and all columns ("raw") always take part, since all others are compared with them; all columns are classified
    by RAW_PARTNERS, whatever judges are named. Reductions that classify are also judged by their own prediction.
    """
    drawn = stratified_sample(table, most_rows, seed, groups)
    _require_all_classes(table, drawn, most_rows)
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
        raise ValueError("No classifier is named. Name one or more, 'default' or 'all'.")
    cells = _cells(chosen, _counts(n_components, grid), judges, grid)
    return replace(grid, methods=METHODS | {one.name: one for one in chosen}, cells=cells)


def _cells(chosen: tuple[Method, ...], counts: tuple[int, ...], judges: tuple[Classifier, ...], grid: Grid) -> Any:
    """Every method with every K and judge, with its own prediction where it classifies, and the partners."""
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
    """Number the different rows, where equal rows are to be kept together; else None.

    With "auto" they are where equal rows are unexpected: more than half of the columns are continuous, which have more
    than MANY_VALUES different values, or more than half as many as there are different rows.
    """
    if equal_rows not in EQUAL_ROWS:
        raise ValueError(f"equal_rows must be one of {', '.join(EQUAL_ROWS)}; got {equal_rows!r}.")
    if equal_rows == "apart" or issparse(table.X):
        return None
    numbers = numbered_rows(table.X)
    if numbers is None:
        return None
    least = min(MANY_VALUES, (numbers.max() + 1) / 2)
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
    if isinstance(asked, str) and asked == "auto":
        return automatic_counts(training_sizes(grid.table, grid.protocol, grid.seed))
    counts = [asked] if isinstance(asked, (int, np.integer)) else asked
    if isinstance(counts, str) or not isinstance(counts, Iterable):
        raise ValueError(f"n_components={asked!r}. Pass whole numbers, or 'auto'.")
    return checked_counts(counts, grid.table)


def refined(found: Comparison) -> Grid | None:
    """Add numbers of components around the best, the chosen and PCA's best; None where there are none to add."""
    if found.verdict is None:
        return None
    grid, verdict = found.grid, found.verdict
    cells = set(grid.cells)
    sizes = training_sizes(grid.table, grid.protocol, grid.seed)
    pca = None if verdict.against_pca is None else verdict.against_pca.other
    for pick in dict.fromkeys(one for one in (verdict.best, verdict.reduction, pca) if one is not None):
        method = grid.methods[pick.method]
        own = [cell for cell in grid.cells if cell.method == pick.method and cell.classifier != ITSELF]
        judges = {cell.classifier for cell in own if cell not in grid.dropped}
        most = min(method.most_components(sizes), sizes.n_features - 1)
        for k in refined_counts(sorted({cell.k for cell in own}), pick.k, most) if own else ():
            cells |= {Cell(pick.method, k, classifier) for classifier in judges}
    if cells == set(grid.cells):
        return None
    order = {name: at for at, name in enumerate(dict.fromkeys(cell.method for cell in grid.cells))}
    return replace(grid, cells=tuple(sorted(cells, key=lambda cell: (order[cell.method], cell.k, cell.classifier))))


def hopeless(scores: Scores) -> frozenset[Cell]:
    """Find the reductions that the first splits show to be far behind the best; PCA is measured by the best of PCA.

    All columns are never dropped: they are what reductions are compared with.
    """
    scores = scores.complete()
    gone: list[Cell] = []
    pca = [at for at, cell in enumerate(scores.cells) if cell.method == "pca"]
    others = [at for at, cell in enumerate(scores.cells) if cell.method not in ("pca", "raw")]
    for members, rivals in ((pca, pca), (others, others or pca)):
        if not members or scores.n_splits < 2:
            continue
        best = scores.values[max(rivals, key=lambda at: scores.values[at].mean())]
        test = corrected_t_test((best - scores.values[members]).T, scores.ratio, alternative="greater")
        behind = (np.asarray(test.p_value) < HOPELESS) & (np.asarray(test.mean) > LEAST_GAP)
        gone += [scores.cells[at] for at, is_behind in zip(members, np.atleast_1d(behind), strict=True) if is_behind]
    return frozenset(gone)


def _with_fixed_count(method: Method, grid: Grid) -> Method:
    """A transformer that cannot be told how many components to give is asked how many it gives, in the first split."""
    if not isinstance(method, GivenMethod) or method.parameter:
        return method
    first = next(iter(grid.protocol.splits(grid.table.y, grid.seed)))
    data = grid.trial_rows.split(0, first)
    return method.with_fixed_count(data.train, data.y_train)


def stratified_sample(table: LabelledTable, most: int | None, seed: int, groups: Any = None) -> np.ndarray:
    """Row numbers, ascending: all, or `most` of them with each class (and whole groups) in its proportion."""
    n_rows = table.n_samples
    if most is None or n_rows <= most:
        return np.arange(n_rows)
    if most < 2 * len(table.class_counts()):
        raise ValueError(f"most_rows={most} is fewer than two rows for each of {len(table.class_counts())} classes.")
    random = np.random.default_rng(seed)
    if groups is not None:
        names, codes = np.unique(np.asarray(groups), return_inverse=True)
        order, sizes = random.permutation(len(names)), np.bincount(codes)
        order = order[sizes[order] <= most]  # a larger group cannot be taken whole
        return np.flatnonzero(np.isin(codes, order[np.cumsum(sizes[order]) <= most]))
    shuffled = random.permutation(n_rows)
    by_class = shuffled[np.argsort(table.y[shuffled], kind="stable")]
    drawn = by_class[np.linspace(0, n_rows - 1, most).astype(np.intp)]
    rare = [label for label, count in table.class_counts().items() if (table.y[drawn] == label).sum() < min(count, 10)]
    return np.unique(np.concatenate([drawn, *(np.flatnonzero(table.y == label)[:10] for label in rare)]))


def _require_all_classes(table: LabelledTable, drawn: np.ndarray, most: int | None) -> None:
    """Whole groups, drawn at random, may leave out every row of a class; the comparison would be of other classes."""
    lost = np.setdiff1d(table.y, table.y[drawn])
    if len(lost):
        raise ValueError(
            f"No row of {', '.join(map(repr, lost.tolist()[:5]))}{', …' if len(lost) > 5 else ''} is among whole "
            f"groups of {most} rows together. Pass a larger most_rows, another seed, or no most_rows."
        )


def labelled_table(X: Any, y: Any, *, filled: bool = False) -> LabelledTable:
    """Return arrays or a data frame as a labelled table with text labels; what the estimators refuse is refused.

    filled : missing cells are filled in later, so NaN may come
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
    """An estimator that does not say all of what it is cannot be found again in a store."""
    for method in grid.methods.values():
        if store is not None and isinstance(method, GivenMethod) and " at 0x" in method.written:
            raise ValueError(
                f"{method.name} has a parameter without a name of its own ({method.written[:80]}…), so a store could "
                "not tell its results from others. Compare it without a store."
            )
