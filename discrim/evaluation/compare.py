"""Comparison of reductions on labelled rows: `compare`."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from discrim.evaluation.comparison import Comparison, finished_splits
from discrim.evaluation.plan import FIRST_SPLITS, Grid, hopeless, labelled_table, planned, refined, require_identity
from discrim.evaluation.resampling import permutation_test, require_exchange
from discrim.evaluation.results import Scores
from discrim.evaluation.run import Memory, Progress, opened_store, right_to_run, run
from discrim.evaluation.store import Store
from discrim.evaluation.summary import require_metric
from discrim.evaluation.verdict import metric_for, pipeline_choice, promising
from discrim.tables.check_parameters import WHOLE, is_number
from discrim.tables.labelled_table import LabelledTable
from discrim.tables.validation import checked_weights, is_absent


def compare(
    X: Any,
    y: ArrayLike | None = None,
    *,
    methods: str | Any | Iterable[str | Any] = "default",
    classifiers: str | Iterable[str] = "default",
    n_components: str | int | Iterable[int] = "auto",
    protocol: str = "holdout-80-20",
    n_splits: int | None = None,
    per_class: int | None = None,
    groups: ArrayLike | None = None,
    sample_weight: ArrayLike | None = None,
    most_rows: int | None = None,
    scale: str = "standard",
    impute: str | None = None,
    metric: str = "auto",
    equal_rows: str = "auto",
    permutations: int = 0,
    seed: int = 0,
    n_jobs: int | None = None,
    store: str | os.PathLike[str] | None = None,
    name: str = "data",
    progress: Progress | None = None,
    retry_failed: bool = False,
    wait: float = 0.0,
    on_stop: Callable[[Comparison], None] | None = None,
) -> Comparison:
    """Compare reductions of labelled rows by classifiers on held-out rows, and test whether reducing helps.

    Parameters
    ----------
    X : array, sparse array, data frame or LabelledTable
        The rows. A labelled table has its own labels; then `y` must be None.
    y : array of shape (n_rows,), default=None
        A label for each row.
    methods : str, estimator, or list of these, default="default"
        Names of methods, "default" for the short list, "all" for all methods; or your own estimators and pipelines. An
        estimator with a parameter `n_components` is tried with every number of components. One that ends in a
        classifier is judged by its own predictions. PCA and all columns ("raw") are always compared.
    classifiers : str or list of str, default="default"
        Names of the classifiers that judge reductions, "default" for two, "all" for all classifiers. All columns are
        always classified by logistic regression, five nearest neighbours, an RBF SVM and a random forest as well.
    n_components : int, list of int or "auto", default="auto"
        Numbers of components to try. "auto" tries 1, 2, 5, 10 and n_classes − 1, and then more around the best.
    protocol : str, default="holdout-80-20"
        "holdout-80-20", "holdout-50-50", "kfold", "inverted-kfold" or "few-shot".
    n_splits : int, default=None
        Number of splits (folds); None for 20 random splits or 10 folds.
    per_class : int, default=None
        Training rows per class, for "few-shot".
    groups : array of shape (n_rows,), default=None
        Group of each row (a patient, a batch); rows of a group are on one side of every split. Up to ten groups are
        left out one at a time.
    sample_weight : array of shape (n_rows,), default=None
        Weights for fitting and scoring; methods that do not accept weights are skipped.
    most_rows : int, default=None
        Compare on a sample of at most this number of rows, with each class in proportion, or on random whole groups.
    scale : str, default="standard"
        "standard", "range" or "none"; fitted on the training rows of each split.
    impute : str, default=None
        How missing cells (NaN) are filled: with the "median", "mean" or "most-frequent" value of the training rows of
        each split.
    metric : str, default="auto"
        "accuracy", "balanced_accuracy", "f1" (the mean over classes), "mcc" (Matthews correlation), or for two classes
        "auc" (area under the ROC curve). "auto" is accuracy, or balanced accuracy if the largest class has more than
        60 % of the rows. With balanced accuracy, classifiers weight classes if they can.
    equal_rows : {"auto", "together", "apart"}, default="auto"
        Whether equal rows are kept on one side of every split. "auto" keeps them together if most columns are
        continuous, because equal rows are then copies.
    permutations : int, default=0
        Number of label permutations (inside groups, if there are any) for a permutation test of the recommended
        pipeline on up to five splits, e.g. 200. The result has `permutations.p_value`.
    seed : int, default=0
        Seed of the splits and of random methods.
    n_jobs : int, default=None
        Number of processes; None for one per core.
    store : path, default=None
        File for the results; trials that it has are not run again.
    name : str, default="data"
        Name of the data in the store.
    progress : callable, default=None
        Function that is called with the number of finished trials and of all trials.
    retry_failed : bool, default=False
        Run failed trials again.
    wait : float, default=0.0
        Seconds to wait for another run on the same store.
    on_stop : callable, default=None
        Function that is called with the finished splits if the run is interrupted.

    Returns
    -------
    Comparison
        With `verdict`, `answer` in words, and `table()`.

    Examples
    --------
    >>> from sklearn.datasets import load_wine
    >>> from discrim import compare
    >>> X, y = load_wine(return_X_y=True)
    >>> found = compare(X, y, methods=["regularized-lda", "pca", "raw"], n_components=[1, 2], n_splits=3, n_jobs=1)
    >>> found.verdict.recommended.method, found.verdict.recommended.k
    ('regularized-lda', 2)
    """
    table = X.for_evaluation() if isinstance(X, LabelledTable) else labelled_table(X, y, filled=impute is not None)
    require_metric(metric, also=("auto",))
    _require_whole(n_splits=n_splits, per_class=per_class, most_rows=most_rows, seed=seed, n_jobs=n_jobs)
    _require_whole(seed=seed, permutations=permutations, least=0)
    weights = None if sample_weight is None else checked_weights(sample_weight, table.X)
    if groups is not None and np.shape(groups) != (table.n_samples,):
        raise ValueError(f"groups must have one entry for each of {table.n_samples} rows; got {np.shape(groups)}.")
    # checked before conversion, because arrays of text turn NaN into text
    if groups is not None and any(map(is_absent, np.asarray(groups, dtype=object))):
        raise ValueError("groups must not be missing; got NaN or None. Drop these rows, or give each a group.")
    metric = metric_for(table.class_counts(), metric)
    grid = planned(
        table,
        name,
        methods,
        classifiers,
        n_components,
        protocol,
        n_splits=n_splits,
        per_class=per_class,
        groups=groups,
        sample_weight=weights,
        most_rows=most_rows,
        scale=scale,
        impute=impute,
        class_weight="balanced" if metric == "balanced_accuracy" else None,
        equal_rows=equal_rows,
        seed=seed,
    )
    require_identity(grid, store)
    if permutations:
        require_exchange(grid)
    models: dict[str, dict[int, Any]] = {}
    done: dict[str, Any] = {"jobs": n_jobs, "progress": progress, "retry_failed": retry_failed, "wait": None}
    with opened_store(store) as kept:
        found: Comparison | None = None
        try:
            with right_to_run(kept, wait):  # held over all passes, so that no other run begins between two of them
                grid = _without_hopeless(grid, kept, metric, done | {"models": models})
                found = Comparison.of(grid, run(grid, kept, **done, models=models), metric, models)
                for _ in range(2 if isinstance(n_components, str) else 0):
                    choice = pipeline_choice(found, metric, found.nonlinear)
                    more = None if choice is None else refined(grid, promising(choice))
                    if more is None:
                        break
                    grid = more
                    found = Comparison.of(grid, run(grid, kept, **done, models=models), metric, models)
                if permutations and found.verdict is not None:
                    tried = grid, found.verdict.recommended, metric, permutations
                    found = replace(found, permutations=permutation_test(*tried, jobs=n_jobs, progress=progress))
        except BaseException as stop:
            if on_stop is not None and not isinstance(stop, Exception):
                # a finished comparison is kept if the refinement of its components is interrupted
                on_stop(finished_splits(grid, kept.rows_of(grid), metric) if found is None else found)
            raise
    return found


def _without_hopeless(grid: Grid, kept: Store | Memory, metric: str, done: dict[str, Any]) -> Grid:
    """Run all cells on the first splits and return the grid without those that are far behind on these."""
    if grid.protocol.n_splits < 2 * FIRST_SPLITS:
        return grid
    rows = run(grid, kept, **done, n_splits=FIRST_SPLITS)
    return grid.with_cells(
        grid.cells, hopeless(Scores.from_rows([row for row in rows if row.split < FIRST_SPLITS], metric))
    )


def _require_whole(*, least: int | None = None, **given: Any) -> None:
    for name, value in given.items():
        if value is not None and not (is_number(value, WHOLE) and (least is None or value >= least)):
            bound = "" if least is None else f" ≥ {least}"
            raise ValueError(f"{name} must be a whole number{bound}; got {value!r}.")
