"""Which reduction, how many components, and does it really help? `compare` answers with evidence."""

from __future__ import annotations

import tempfile
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.sparse import csr_array, issparse

from discrim.data.check import require_labels_present
from discrim.data.labelled_table import LabelledTable
from discrim.evaluation.classifiers import named_classifiers
from discrim.evaluation.grid import Grid, automatic_counts, checked_counts, product, training_sizes
from discrim.evaluation.methods import named_methods
from discrim.evaluation.protocol import named_protocol
from discrim.evaluation.run import rows_of, run
from discrim.evaluation.store import Store
from discrim.evaluation.summary import METRICS, Line, lines_of, require_metric
from discrim.evaluation.trial import Row

DEFAULT_SPLITS = 20


@dataclass(frozen=True, eq=False)
class Comparison:
    """What came out: `table()` for all of it, `best` for the answer, `verdict` for words, `report(path)` for a page."""

    grid: Grid
    rows: list[Row]
    metric: str = "accuracy"

    @cached_property
    def lines(self) -> list[Line]:
        """One line per method and classifier, best first."""
        return lines_of(self.rows, self.metric)

    @property
    def best(self) -> Line | None:
        """The best line of a reduction (raw features are none); None where every trial failed."""
        return next((line for line in self.lines if line.method != "raw"), None)

    @property
    def failures(self) -> list[Row]:
        return [row for row in self.rows if row["status"] == "failed"]

    @property
    def skips(self) -> list[Row]:
        return [row for row in self.rows if row["status"] == "skipped"]

    @property
    def verdict(self) -> str:
        """The answer in a sentence or two."""
        best = self.best
        if best is None:
            return "No reduction could be judged: every trial failed or was skipped."
        components = f"{best.k} component{'' if best.k == 1 else 's'}"
        others = ((f"PCA with {components}", best.against_pca), ("raw features", best.against_raw))
        return " ".join(
            [
                f"Best: {best.method} with {components}, judged by {best.classifier}: {METRICS[self.metric]} "
                f"{100 * best.mean:.1f} %.",
                *(
                    f"Over {name}: {100 * found.mean:+.1f} points, {found.verdict} (p = {found.adjusted:.2g})."
                    for name, found in others
                    if found is not None
                ),
            ]
        )

    def table(self) -> Any:
        """The lines as a pandas data frame."""
        import pandas as pd

        return pd.DataFrame([record(line) for line in self.lines])

    def report(self, path: str | Path) -> None:
        """Write the report: one HTML file with the answer, the table and the pictures."""
        # the room of reports is built on this one, so it is opened by name and only when asked for
        import_module("discrim.report.page").write_report(self, path)

    def __repr__(self) -> str:
        return f"Comparison({self.grid.name!r}, {len(self.rows)} of {len(self.grid.trials)} trials: {self.verdict})"


def record(line: Line) -> dict[str, Any]:
    """A line as one flat record."""
    facts: dict[str, Any] = {
        name: getattr(line, name)
        for name in ("method", "classifier", "k", "mean", "low", "high", "best_k", "best_mean", "n_splits", "seconds")
    }
    for name, found in (("pca", line.against_pca), ("raw", line.against_raw)):
        facts[f"over_{name}"] = None if found is None else found.mean
        facts[f"p_{name}"] = None if found is None else found.adjusted
        facts[f"sign_p_{name}"] = None if found is None else found.sign_p_value
        facts[f"verdict_{name}"] = None if found is None else found.verdict
    return facts


def compare(
    X: ArrayLike,
    y: ArrayLike,
    *,
    methods: str | Iterable[str] = "default",
    classifiers: str | Iterable[str] = "default",
    n_components: str | int | Iterable[int] = "auto",
    protocol: str = "holdout-80-20",
    n_splits: int | None = None,
    per_class: int | None = None,
    scale: str = "standard",
    metric: str = "accuracy",
    seed: int = 0,
    n_jobs: int | None = None,
    store: str | Path | None = None,
    name: str = "data",
) -> Comparison:
    """Try reductions on the labelled rows, judge them by classifiers on held-out rows, and say which help.

    Parameters
    ----------
    X, y : rows (dense, sparse, or a data frame) and a label for each.
    methods, classifiers : names, "default" for the short list, "all" for all there are.
    n_components : number or numbers of components to try, or "auto" for up to four.
    protocol : "holdout-80-20", "holdout-50-50", "kfold", "inverted-kfold" or "few-shot".
    n_splits : how many splits (folds); None for 20 random ones, or 10 folds.
    per_class : training rows per class, for "few-shot".
    scale : "standard", "range" or "none"; fitted on the training rows of each split.
    metric : "accuracy", "balanced_accuracy" or "f1" (the mean over classes).
    seed : of the splits and of random methods.
    n_jobs : processes; None for one per core.
    store : file that keeps the results; what it has already is not done again. None: kept in memory only.
    name : what the data are called in the store.

    Examples
    --------
    >>> from sklearn.datasets import load_wine
    >>> from discrim.evaluation.compare import compare
    >>> X, y = load_wine(return_X_y=True)
    >>> found = compare(X, y, methods=["regularized-lda", "pca", "raw"], n_components=[1, 2], n_splits=3, n_jobs=1)
    >>> found.best.method, found.best.k
    ('regularized-lda', 2)
    """
    grid = grid_of(
        labelled_table(X, y),
        name,
        methods=_listed(methods),
        classifiers=_listed(classifiers),
        counts=[n_components] if isinstance(n_components, int) else n_components,
        protocol=protocol,
        n_splits=n_splits,
        per_class=per_class,
        scale=scale,
        seed=seed,
    )
    require_metric(metric)
    with opened_store(store) as kept:
        return Comparison(grid, run(grid, kept, jobs=n_jobs), metric)


def grid_of(
    table: LabelledTable,
    name: str,
    *,
    methods: Iterable[str],
    classifiers: Iterable[str],
    counts: str | Iterable[int],
    protocol: str,
    n_splits: int | None,
    per_class: int | None,
    scale: str,
    seed: int,
) -> Grid:
    """The grid of a comparison: PCA and raw features always take part, since all others are compared with them."""
    if n_splits is None and "kfold" not in protocol:
        n_splits = DEFAULT_SPLITS
    splitting = named_protocol(protocol, n_splits=n_splits, per_class=per_class)
    if isinstance(counts, str):
        if counts != "auto":
            raise ValueError(f"n_components={counts!r}. Pass whole numbers, or 'auto'.")
        chosen = automatic_counts(training_sizes(table, splitting, seed))
    else:
        chosen = checked_counts(counts, table)
    listed = named_methods([*methods, "pca", "raw"])
    cells = product(listed, chosen, named_classifiers(classifiers), table.n_features)
    return Grid(name, table, cells, splitting, scale, seed)


@contextmanager
def opened_store(path: str | Path | None) -> Iterator[Store]:
    """The store at `path`; for None one that is gone when the block ends."""
    if path is not None:
        with Store(path) as kept:
            yield kept
        return
    with tempfile.TemporaryDirectory(prefix="discrim-") as folder, Store(Path(folder) / "results.sqlite") as kept:
        yield kept


def so_far(grid: Grid, store: Store, metric: str = "accuracy") -> Comparison:
    """What the store has of the grid, for the splits that every cell was tried on."""
    rows = rows_of(grid, store)
    tried: dict[int, int] = {}
    for row in rows:
        tried[row["trial"]["split"]] = tried.get(row["trial"]["split"], 0) + 1
    whole = {split for split, count in tried.items() if count == len(grid.cells)}
    return Comparison(grid, [row for row in rows if row["trial"]["split"] in whole], metric)


def labelled_table(X: Any, y: ArrayLike) -> LabelledTable:
    """Arrays or a data frame as a labelled table; labels become text."""
    names: Sequence[Any] = list(X.columns) if hasattr(X, "columns") else []
    rows = csr_array(X).astype(np.float64) if issparse(X) else np.asarray(X, dtype=np.float64)
    labels = np.asarray(y)
    if rows.ndim != 2 or labels.shape != (rows.shape[0],):
        raise ValueError(f"X has shape {rows.shape} and y {labels.shape}. Pass rows × columns, and one label per row.")
    if not np.isfinite(rows.data if issparse(rows) else rows).all():
        raise ValueError("X has missing or infinite values. Fill or remove them first.")
    require_labels_present(labels)
    text = np.array([str(label) for label in labels.tolist()])
    known = tuple(str(name) for name in names) or tuple(f"f{at}" for at in range(rows.shape[1]))
    return LabelledTable(rows, text, known, "target", "arrays")


def _listed(names: str | Iterable[str]) -> list[str]:
    return [names] if isinstance(names, str) else list(names)
