"""Which reduction, how many components, and does it really help? `compare` answers with evidence."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from discrim.evaluation.comparison import Comparison, finished_splits
from discrim.evaluation.grid import FIRST_SPLITS, Grid
from discrim.evaluation.permutation import permutation_test, require_exchange
from discrim.evaluation.plan import hopeless, labelled_table, planned, refined, require_identity
from discrim.evaluation.results import Result, Scores
from discrim.evaluation.run import Memory, Progress, opened_store, right_to_run, run
from discrim.evaluation.store import Store
from discrim.evaluation.summary import require_metric
from discrim.evaluation.verdict import metric_for
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
    """Try reductions on labelled rows, judge them by classifiers on held-out rows, and say which help.

    Parameters
    ----------
    X : array, sparse array, data frame or LabelledTable
        The rows. A labelled table has its labels, and `y` stays None.
    y : array of shape (n_rows,), default=None
        A label for each row.
    methods : str, estimator, or list of these, default="default"
        Names of methods, "default" for the short list, "all" for all there are; or estimators and pipelines of your
        own. One that has a parameter `n_components` is tried with every number of components; one that ends in a
        classifier is judged by its own predictions. PCA and all columns ("raw") always take part.
    classifiers : str or list of str, default="default"
        Names of the classifiers that judge reductions, "default" for two, "all" for all there are. All columns are
        always classified by logistic regression, five nearest neighbours, an RBF SVM and a random forest as well.
    n_components : int, list of int or "auto", default="auto"
        Numbers of components to try. "auto" tries 1, 2, 5, 10 and one less than there are classes, and then more
        around the best.
    protocol : str, default="holdout-80-20"
        "holdout-80-20", "holdout-50-50", "kfold", "inverted-kfold" or "few-shot".
    n_splits : int, default=None
        How many splits (folds); None for 20 random ones, or 10 folds.
    per_class : int, default=None
        Training rows per class, for "few-shot".
    groups : array of shape (n_rows,), default=None
        The group of each row (a patient, a batch): rows of a group are on one side of every split. Ten groups or fewer
        are left out one at a time.
    sample_weight : array of shape (n_rows,), default=None
        Weights for fitting and for scoring; methods that take none are skipped.
    most_rows : int, default=None
        Compare on a sample of so many rows, where there are more: each class in its proportion, or whole groups drawn
        at random.
    scale : str, default="standard"
        "standard", "range" or "none"; fitted on the training rows of each split.
    impute : str, default=None
        What missing cells (NaN) are filled with: "median", "mean" or "most-frequent", of the training rows of each
        split.
    metric : str, default="auto"
        "accuracy", "balanced_accuracy", "f1" (the mean over classes), "mcc" (Matthews correlation), or for two classes
        "auc" (area under the ROC curve); "auto" is accuracy, or balanced accuracy where the largest class has more than
        60 % of the rows. With balanced accuracy, classifiers that can weight classes do so.
    equal_rows : {"auto", "together", "apart"}, default="auto"
        Whether equal rows are kept on one side of every split. "auto" keeps them together where most columns are
        continuous, so that equal rows are copies; with few and discrete columns they are ordinary.
    permutations : int, default=0
        Try the recommended pipeline so often with permuted labels too (inside groups, where there are some), on up to
        five splits: is its score more than chance? `permutations.p_value` of the answer says it; 200 is usual.
    seed : int, default=0
        Of the splits and of random methods.
    n_jobs : int, default=None
        Processes; None for one per core.
    store : path, default=None
        File that keeps the results; what it has already is not done again.
    name : str, default="data"
        What the data are called in the store.
    progress : callable, default=None
        Called with the number of trials done and the number of all trials.
    retry_failed : bool, default=False
        Do trials again that failed before.
    wait : float, default=0.0
        Seconds to wait for another run on the same store to end.
    on_stop : callable, default=None
        Called with what is done so far when the run is interrupted.

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
        raise ValueError(
            f"groups has shape {np.shape(groups)}, but there are {table.n_samples} rows. Pass one for each."
        )
    _require_groups_present(groups)
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
    with opened_store(store) as kept:
        done: dict[str, Any] = {"jobs": n_jobs, "progress": progress, "retry_failed": retry_failed, "wait": None}
        found: Comparison | None = None
        try:
            with right_to_run(kept, wait):  # once for all passes: between two of them another run would begin
                found = _first_look(grid, kept, metric, done)
                for _ in range(2 if isinstance(n_components, str) else 0):
                    more = refined(found)
                    if more is None:
                        break
                    found = Comparison(more, run(more, kept, **done), metric)
                if permutations and found.verdict is not None:
                    tried = found.grid, found.verdict.recommended, metric, permutations
                    found = replace(found, permutations=permutation_test(*tried, jobs=n_jobs, progress=progress))
        except BaseException as stop:
            if on_stop is not None and not isinstance(stop, Exception):
                # a comparison that was finished outlasts the stop of its refinement
                on_stop(finished_splits(grid, kept.rows_of(grid), metric) if found is None else found)
            raise
    return found


def _first_look(grid: Grid, kept: Store | Memory, metric: str, done: dict[str, Any]) -> Comparison:
    """Compare all cells on the first splits, and those that are not hopeless on the others."""
    if grid.protocol.n_splits >= 2 * FIRST_SPLITS:
        rows: list[Result] = run(grid, kept, **done, n_splits=FIRST_SPLITS)
        first = Scores.of([row for row in rows if row.split < FIRST_SPLITS], metric)
        grid = replace(grid, dropped=hopeless(first))
    return Comparison(grid, run(grid, kept, **done), metric)


def _require_whole(*, least: int | None = None, **given: Any) -> None:
    for name, value in given.items():
        if value is not None and not (is_number(value, WHOLE) and (least is None or value >= least)):
            span = "" if least is None else f" from {least} on"
            raise ValueError(f"{name}={value!r} came; possible are whole numbers{span}.")


def _require_groups_present(groups: Any) -> None:
    """Rows without a group would silently make up one; looked at as given, as arrays turn NaN beside text to text."""
    if groups is not None and any(is_absent(one) for one in groups):
        raise ValueError("Some groups are missing (NaN, None). Drop these rows, or give each a group.")
