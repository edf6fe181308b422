"""What `compare` is asked for, made into a grid: which rows, which splits, which methods and how many components."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from scipy.sparse import csr_array, issparse

from discrim.estimators.pca import PCA
from discrim.evaluation.classifiers import named_classifiers
from discrim.evaluation.comparison import Comparison
from discrim.evaluation.given_methods import GivenMethod, as_methods
from discrim.evaluation.grid import Grid, automatic_counts, checked_counts, product, refined_counts, training_sizes
from discrim.evaluation.methods import METHODS, Method
from discrim.evaluation.protocol import grouped, named_protocol
from discrim.evaluation.result import Cell
from discrim.tables.labelled_table import LabelledTable
from discrim.tables.validation import checked_labels, checked_table, require_finite

DEFAULT_SPLITS = 20


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
    seed: int = 0,
) -> Grid:
    """The grid that `compare` is asked for, by its parameters' names.

    PCA and raw features always take part, since all others are compared with them.
    """
    drawn = stratified_sample(table, most_rows, seed, groups)
    _require_all_classes(table, drawn, most_rows)
    groups = None if groups is None else np.asarray(groups)[drawn]
    weights = None if sample_weight is None else np.asarray(sample_weight, dtype=np.float64)[drawn]
    part = table if len(drawn) == table.n_samples else table.take(drawn)
    n_splits = DEFAULT_SPLITS if n_splits is None and "kfold" not in protocol else n_splits
    splits = named_protocol(protocol, n_splits=n_splits, per_class=per_class)
    splits = splits if groups is None else grouped(splits, groups)
    sample = None if part is table else (table.n_samples, drawn)
    grid = Grid(name, part, (), splits, scale, seed, impute=impute, sample_weight=weights, sample=sample)
    chosen = tuple(_with_fixed_count(one, grid) for one in as_methods(methods, part.n_samples))
    chosen += tuple(METHODS[name] for name in ("pca", "raw") if name not in {one.name for one in chosen})
    judges = named_classifiers([classifiers] if isinstance(classifiers, str) else list(classifiers))
    if not judges:
        raise ValueError("No classifier is named. Name one or more, 'default' or 'all'.")
    cells = product(chosen, _counts(n_components, grid), judges, part.n_features)
    return replace(grid, methods=METHODS | {one.name: one for one in chosen}, cells=cells)


def _counts(asked: str | int | Iterable[int], grid: Grid) -> tuple[int, ...]:
    if isinstance(asked, str) and asked == "auto":
        return automatic_counts(training_sizes(grid.table, grid.protocol, grid.seed))
    counts = [asked] if isinstance(asked, (int, np.integer)) else asked
    if isinstance(counts, str) or not isinstance(counts, Iterable):
        raise ValueError(f"n_components={asked!r}. Pass whole numbers, or 'auto'.")
    return checked_counts(counts, grid.table)


def refined(found: Comparison) -> Grid | None:
    """The grid with more numbers of components around the best and the recommended, None where there are none.

    PCA is tried with the same numbers: a line is compared with PCA's at its own.
    """
    if found.verdict is None:
        return None
    grid, verdict = found.grid, found.verdict
    cells = set(grid.cells)
    sizes = training_sizes(grid.table, grid.protocol, grid.seed)
    for pick in dict.fromkeys([verdict.best, verdict.recommended]):
        method = grid.methods[pick.method]
        tried = sorted({cell.k for cell in grid.cells if cell.method == pick.method})
        judges = {(cell.method, cell.classifier) for cell in grid.cells if cell.method in (pick.method, "pca")}
        for k in refined_counts(tried, pick.k, method.most_components(sizes)):
            cells |= {Cell(name, k, classifier) for name, classifier in judges}
    if cells == set(grid.cells):
        return None
    order = {name: at for at, name in enumerate(dict.fromkeys(cell.method for cell in grid.cells))}
    return replace(grid, cells=tuple(sorted(cells, key=lambda cell: (order[cell.method], cell.k, cell.classifier))))


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
