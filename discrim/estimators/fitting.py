"""Parts of a fit shared by all methods: fitted attributes, callbacks, failures, columns and samples of statistics."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from discrim.core.coordinates.basis import Features
from discrim.core.moments.class_moments import ClassMoments
from discrim.core.moments.gather import NO_PARTS, Gathering, Statistics
from discrim.core.moments.pairwise import pairwise_moments
from discrim.core.problem import Needs, Problem
from discrim.estimators.solution import Solution
from discrim.tables.check_parameters import plain_count
from discrim.tables.rows import LabelledRows
from discrim.tables.validation import require_two_classes
from discrim.threads import one_blas_thread
from discrim.warn_once import collected_warnings, issue_once, warn

try:
    from sklearn.callback import CallbackSupportMixin, with_callbacks
except ImportError:  # before scikit-learn 1.9

    class CallbackSupportMixin:  # type: ignore[no-redef]
        """Replacement without callbacks."""

    def with_callbacks(method: Any) -> Any:
        """Return the method itself."""
        return method


Array = NDArray[np.float64]


def fit_with_callbacks(fit: Callable[..., Any], estimator: Any, *given: Any) -> Any:
    """Run a fit as one task of scikit-learn's callbacks, which are torn down in any case."""

    def task(estimator: Any) -> Any:
        context = estimator._init_callback_context()
        context.call_on_fit_task_begin(estimator=estimator, X=given[0], y=given[1])
        result = fit(*given)
        context.call_on_fit_task_end(estimator=estimator, X=given[0], y=given[1])
        return result

    return with_callbacks(task)(estimator)


_callers_errors: ContextVar[Any] = ContextVar("callers_errors", default=None)


@contextmanager
def numpy_as_the_caller_has_it() -> Iterator[None]:
    """Run a caller's own code within a fit: numpy warns there, or raises, as before the fit."""
    with np.errstate(**(_callers_errors.get() or {})):
        yield


@contextmanager
def unchanged_on_failure(estimator: Any) -> Iterator[None]:
    """Restore the model if a fit fails: an earlier fit, its columns, a stream so far.

    Warnings are issued at the end, each kind once; a warning that the caller made an error is a failure, too.
    """
    before = dict(vars(estimator))
    token = _callers_errors.set(np.geterr())
    try:
        # what overflows is found where results leave, and named there; numpy's words would say neither row nor remedy
        with collected_warnings() as collected, np.errstate(over="ignore", invalid="ignore", divide="ignore"):
            yield
        if collected:
            issue_once(collected)
    except BaseException:
        vars(estimator).clear()
        vars(estimator).update(before)
        raise
    finally:
        _callers_errors.reset(token)


def unchanged_if_it_fails(fit: Callable[..., Any]) -> Callable[..., Any]:
    """Decorate a method: the model is restored if it fails."""

    @functools.wraps(fit)
    def guarded(estimator: Any, *given: Any, **named: Any) -> Any:
        with unchanged_on_failure(estimator):
            return fit(estimator, *given, **named)

    return guarded


class fitted_attribute:  # noqa: N801 - used as a decorator
    """Fitted attribute that is computed on access, or set by solving a stream on first use.

    Python looks into the estimator's own dictionary first. This descriptor is reached only for attributes that an
    unsolved stream will set, and for those that a function computes from the fitted state.
    """

    def __init__(self, compute: Callable[[Any], Any] | None = None) -> None:
        self.compute, self.name = compute, ""
        self.__doc__ = None if compute is None else compute.__doc__

    def __set_name__(self, owner: type, name: str) -> None:
        self.name = name

    def __get__(self, instance: Any, owner: type | None = None) -> Any:
        if instance is None:
            return self
        try:
            with one_blas_thread:
                instance._require_solution()
                if self.compute is not None:
                    return self.compute(instance)
        except ValueError as error:
            raise error if isinstance(error, AttributeError) else AttributeError(str(error)) from error
        if self.name not in vars(instance):
            raise AttributeError(f"{type(instance).__name__} has no {self.name} with these parameters.")
        return vars(instance)[self.name]


def solved() -> Any:
    """Return the descriptor of an attribute that the solution sets, for declarations in classes."""
    return fitted_attribute()


class streamed:  # noqa: N801 - used as a decorator
    """Method that exists only if the estimator's statistics are additive; otherwise access raises with the reason."""

    def __init__(self, method: Callable[..., Any]) -> None:
        self.method = method
        self.__doc__ = method.__doc__

    def __get__(self, instance: Any, owner: type) -> Callable[..., Any]:
        if instance is None:
            return self.method
        if (why := instance._needs().rows) is not None:
            raise AttributeError(f"{owner.__name__} has no {self.method.__name__} with these parameters: {why}")
        return self.method.__get__(instance, owner)


def record_columns(estimator: Any, total: Statistics) -> None:
    """Set the number and names of the columns that statistics were gathered from."""
    vars(estimator).pop("feature_names_in_", None)
    estimator.n_features_in_ = total.n_features
    if total.names is not None:
        estimator.feature_names_in_ = np.array(total.names, dtype=object)
    if total.gathering.supervised:
        require_two_classes(estimator, total.moments.classes)


def declare_classes(estimator: Any, rows: LabelledRows, classes: ArrayLike | None, *, is_first: bool) -> None:
    """Store the labels that a stream may contain, as given now or before; raise if rows have others."""
    if classes is not None or is_first:
        estimator._declared = None if classes is None else np.asarray(classes)
    declared = vars(estimator).get("_declared")  # not in streams of earlier versions
    if rows.classes[0] is None or declared is None:
        return
    unknown = rows.classes[~np.isin(rows.classes, declared)]
    if len(unknown):
        raise ValueError(
            f"partial_fit got labels that are not among classes: {unknown[:5].tolist()}. Name every class that the "
            "stream may bring in classes, or leave classes=None."
        )


def rows_of_sample(estimator: Any, total: Statistics) -> LabelledRows:
    """Return the rows that statistics hold, for a method that needs rows; warn if they are a sample."""
    assert total.sample is not None
    if not total.sample.is_whole:
        warn(
            f"{type(estimator).__name__} needs rows and was fitted to a uniform sample of {len(total.sample):,} "
            f"distinct rows of the {total.n_rows:,} gathered (those with the smallest content hashes). Use fit on all "
            "rows if they fit into memory.",
        )
    return total.sample.with_classes(total.moments.classes)


def fitted_deviations(estimator: Any) -> Array:
    """Return the standard deviation of every column over the training rows of a fitted estimator."""
    known: Array | None = vars(estimator).get("_column_deviations")  # not in models saved by earlier versions
    if known is None or np.isnan(known).any():
        raise ValueError(
            f"{type(estimator).__name__} must be fitted to rows or statistics by this version to explain; got a model "
            "without column deviations. Fit it again."
        )
    return known


def solve_gaps(estimator: Any, rows: LabelledRows, needs: Needs) -> Solution:
    """Return the solution from pairwise statistics of rows with missing cells."""
    if needs.rows is not None or estimator._gathering().sample_rows:
        why = needs.rows or "its choice by cross-validation needs whole rows. Pass a number or 'oas' as shrinkage."
        raise ValueError(
            f"missing='pairwise' of {type(estimator).__name__} provides only statistics if cells are missing, but "
            f"{why} Or impute the cells: make_pipeline(SimpleImputer(), …)."
        )
    moments = pairwise_moments(rows if needs.class_weight is None else needs.weighted(rows))
    basis = Features.from_moments(moments, f"{moments.n_rows} rows with missing cells: pairwise statistics")
    problem = Problem.from_moments(basis, moments, needs, plain_count(estimator.n_components), rows.X.dtype)
    solution: Solution = estimator._solve_in_features(problem)
    return solution


def statistics_of_moments(method: str, moments: ClassMoments, needs: Needs, gathering: Gathering) -> Statistics:
    """Return moments as statistics, for a method that needs neither rows nor folds."""
    if needs.rows is not None:
        raise ValueError(f"{method} cannot be fitted on ClassMoments: {needs.rows}")
    if needs.class_weight is not None:
        raise ValueError(
            "class_weight must be None for a fit from ClassMoments, which already include weights; got "
            f"{needs.class_weight!r}. Pass the class weights to ClassMoments.of as sample_weight."
        )
    if gathering.sample_rows:
        raise ValueError(
            f"{method} needs folds for cross-validation, but ClassMoments have none. Gather the parts with the "
            "estimator's statistics(X, y), or pass a number for shrinkage."
        )
    asked = replace(gathering, n_folds=0, sample_rows=0)
    return Statistics(asked, None, np.dtype(np.float64), (moments,), None, None, NO_PARTS)


def warn_of_few_rows(estimator: Any, codes: NDArray[np.intp]) -> None:
    """Warn if no class has more than two rows, for a method that chooses by held-out rows."""
    if np.bincount(codes).max() <= 2:
        name = type(estimator).__name__
        warn(
            f"No class has more than two rows, so {name} trains each of its folds on at most one row of a held-out "
            "row's class: its choices by held-out rows are hardly better than chance, and the training classes look "
            "better separated than new rows will be. Pass more rows.",
        )


def warn_of_new_stream(estimator: Any) -> None:
    """Warn that partial_fit discards the rows of an earlier fit."""
    warn(
        "partial_fit was called after fit, which keeps no running statistics, so a new stream starts without the rows "
        f"of the fit. To include them, pass them to partial_fit of a new {type(estimator).__name__}().",
    )
