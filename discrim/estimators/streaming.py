"""Fits whose rows come in parts: their statistics add up, and the solution is found when it is asked for.

`statistics` of parts, a stream by `partial_fit`, a Dask collection and Spark all come down to `fit_statistics`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import replace
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from discrim.core.coordinates.basis import Basis
from discrim.core.moments.class_moments import ClassMoments
from discrim.core.moments.gather import (
    NO_PARTS,
    Gatherer,
    Gathering,
    Statistics,
    require_statistics,
    statistics_of_rows,
)
from discrim.core.problem import Needs, Posing, Problem
from discrim.engines.dask_tables import accept_dask
from discrim.estimators.solution import Solution, labels_explained
from discrim.tables.check_parameters import COUNT, Constraints, check_parameters, plain_count
from discrim.tables.fit_messages import require_streamable_sparse, warn_of_sample, warn_of_stream_after_fit
from discrim.tables.rows import LabelledRows
from discrim.tables.validation import (
    labelled_rows,
    names_of,
    require_finite,
    require_known_labels,
    require_two_classes,
    unchanged_on_failure,
)
from discrim.tables.warn_once import held_back, say_once
from discrim.threads import OnOneBlasThread, on_one_blas_thread

Array = NDArray[np.float64]


class streamed:  # noqa: N801 - used as a decorator
    """A method that exists only where the estimator's statistics add up; elsewhere the error says why it does not."""

    def __init__(self, method: Callable[..., Any]) -> None:
        self.method = method
        self.__doc__ = method.__doc__

    def __get__(self, instance: Any, owner: type) -> Callable[..., Any]:
        if instance is None:
            return self.method
        if (why := instance._needs().rows) is not None:
            raise AttributeError(f"{owner.__name__} has no {self.method.__name__} here: {why}")
        return self.method.__get__(instance, owner)


class GatheringEstimator(OnOneBlasThread, BaseEstimator, ABC):
    """An estimator that can be fitted on what was gathered of the parts of a table."""

    n_features_in_: int
    feature_names_in_: NDArray[Any]

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        accept_dask(cls)

    def _needs(self) -> Needs:
        """Return what a fit needs of a table."""
        return Needs()

    @abstractmethod
    def _gathering(self) -> Gathering:
        """What a fit needs of every part of a table."""

    @abstractmethod
    def fit_statistics(self, total: Any) -> Self:
        """Fit on the sum of all parts' statistics."""

    def statistics(
        self,
        X: ArrayLike,
        y: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
        *,
        part: str = "",
    ) -> Statistics:
        """What a part of a table has to say to a fit; the statistics of parts add up, in any order.

        Parameters
        ----------
        X : array or sparse matrix of shape (n_samples, n_features)
            A part of the rows.
        y : array of shape (n_samples,), default=None
            Their labels; PCA needs none.
        sample_weight : array of shape (n_samples,), default=None
            How much each row counts.
        part : str, default=""
            What the part is called, in errors and to tell it from another part with the very same rows.

        Returns
        -------
        statistics : Statistics
            To be added to those of the other parts, and given to `fit_statistics`.
        """
        gatherer = Gatherer(self._gathering(), part)
        gatherer.add(X, y, sample_weight)
        return gatherer.statistics()

    def _know_columns(self, total: Statistics) -> None:
        self.__dict__.pop("feature_names_in_", None)
        self.n_features_in_ = total.n_features
        if total.names is not None:
            self.feature_names_in_ = np.array(total.names, dtype=object)
        if total.gathering.supervised:
            require_two_classes(self, total.moments.classes)

    def _second_gathering(
        self, total: Statistics, max_memory: int, units: tuple[Array, Array] | None = None
    ) -> Gathering | None:
        """Return what is gathered in a second pass over the parts, None where one suffices.

        units : shift and scale of a scaler in front, which `total` has passed and the parts have not
        """
        return None

    def _sampled(self, total: Statistics) -> LabelledRows:
        """The rows in the statistics, for a method that looks at rows, and said so."""
        assert total.sample is not None
        if not total.sample.is_whole:
            warn_of_sample(type(self).__name__, len(total.sample), total.n_rows)
        return total.sample.among(total.moments.classes)


class StatisticsEstimator(GatheringEstimator):
    """What a reducer does with statistics instead of rows."""

    _parameter_constraints: ClassVar[Constraints] = {"n_components": COUNT}
    _statistics: Statistics | None = None  # of a stream, and of a fit by statistics
    _declared: NDArray[Any] | None = None  # the labels a stream may bring

    def __init__(self, n_components: Any = None) -> None:
        self.n_components = n_components

    @abstractmethod
    def _solve(self, problem: Problem) -> Solution:
        """Find the directions, in the problem's coordinates; of the parameters and the problem, and nothing else."""

    def _solved(self, problem: Problem) -> Solution:
        """Return the solution in the problem's coordinates, with what it warns about."""
        with held_back() as said:
            solution = self._solve(problem)
        return replace(solution, warnings=(*solution.warnings, *said)) if said else solution

    def _in_features(self, solution: Solution, problem: Problem, needs: Needs) -> Solution:
        """Return the solution in the features."""
        lifted = solution.lifted(problem)
        if needs.supervised and needs.tells_labels:
            explained = labels_explained(solution.components_, problem.basis, problem.moments)
            lifted = replace(lifted, _labels_explained=explained)
        return lifted

    def _solve_rows(
        self, rows: LabelledRows, groups: NDArray[Any] | None = None, posing: Posing | None = None
    ) -> Solution:
        """Return the solution in the features; by finer coordinates where the first do not show all that matters."""
        posing = posing or Posing.of(rows, self._needs(), plain_count(self.n_components), groups)
        problem, solution = posing.problem(resolve=False), None
        basis = problem.basis
        if posing.needs.directions == "leading" or basis.is_resolved or not basis.can_resolve:
            solution = self._solved(problem)
        if solution is None or (basis.can_resolve and not solution.is_resolved):
            problem = posing.problem(resolve=True)
            solution = self._solved(problem)
        return self._in_features(solution, problem, posing.needs)

    def _keep(self, solution: Solution, classes: NDArray[Any] | None) -> None:
        """Set the fitted attributes (no classes where no labels are used), and issue the warnings."""
        self.__dict__.update(solution.attributes())
        if classes is not None:
            self.classes_ = classes
        if solution.warnings:
            say_once(list(solution.warnings))

    def fit_statistics(self, total: Statistics | ClassMoments) -> Self:
        """Find the directions from gathered statistics alone.

        Parameters
        ----------
        total : Statistics or ClassMoments
            The sum of `statistics(X, y)` of all parts of a table, gathered with the same parameters; or, where no folds
            and no rows are needed, `ClassMoments.of(X, y, sample_weight)` or a sum of such.

        Returns
        -------
        self : object
            The fitted estimator. A `partial_fit` goes on from these statistics. Methods that look at the rows
            themselves are fitted on the sample in the statistics, and `solver_` says so.
        """
        gathering = self._gathering()
        with unchanged_on_failure(self):
            if isinstance(total, ClassMoments):
                total = self._of_moments(total, gathering)
            require_statistics(total)
            total.gathering.sufficing_for(gathering)
            self._know_columns(total)
            self._declared = None
            if self._needs().rows is None:
                self._hold(total)
                self._require_solution()
            else:
                self._fit_sample(total)
        return self

    def _fit_basis(self, basis: Basis, total: Statistics) -> None:
        """Of statistics that hold means only, in a basis that knows the rest."""
        with unchanged_on_failure(self):
            self._know_columns(total)
            self._declared = None
            self._statistics = None
            problem = Problem.of_moments(basis, total.moments, plain_count(self.n_components), total.dtype)
            found = self._in_features(self._solved(problem), problem, self._needs())
            self._keep(found, total.moments.classes if total.gathering.supervised else None)

    def _gathering(self) -> Gathering:
        """Return what a fit needs of every part of a table: moments where they suffice, else a sample of rows."""
        check_parameters(self)
        return self._needs().gathering(type(self).__name__)

    def _of_moments(self, moments: ClassMoments, gathering: Gathering) -> Statistics:
        needs = self._needs()
        if needs.rows is not None:
            raise ValueError(f"{type(self).__name__} cannot be fitted on ClassMoments: {needs.rows}")
        if needs.class_weight is not None:
            raise ValueError(
                f"class_weight={needs.class_weight!r} came with statistics, in which weights are counted already. Pass "
                "class_weight=None, and the classes' weights to ClassMoments.of as sample_weight."
            )
        asked = replace(gathering, n_folds=0, sample_rows=0)
        if gathering.sample_rows:
            raise ValueError(
                f"{type(self).__name__} chooses by cross-validation, and ClassMoments hold no folds. Gather the parts "
                "with the estimator's own statistics(X, y), or pass a number for shrinkage."
            )
        return Statistics(asked, None, np.dtype(np.float64), (moments,), None, None, NO_PARTS)

    def _fit_sample(self, total: Statistics) -> None:
        """The fit of a method that looks at rows: of the sampled ones."""
        rows = self._sampled(total)
        self._statistics = None
        solution = self._solve_rows(rows)
        said = f"{solution.solver_}; on {rows.shape[0]} different rows of {total.n_rows}, those of least content hash"
        n_rows, weight = total.n_rows, total.moments.total_weight
        found = replace(solution, solver_=said, n_samples_seen_=n_rows, _total_weight=weight)
        self._keep(found, total.moments.classes if total.gathering.supervised else None)

    @streamed
    @on_one_blas_thread
    def partial_fit(
        self,
        X: ArrayLike,
        y: ArrayLike | None = None,
        classes: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
    ) -> Self:
        """Add rows to the statistics; the directions are found when they are first asked for.

        Parameters
        ----------
        X : array or sparse matrix of shape (n_samples, n_features)
            A part of the rows.
        y : array of shape (n_samples,), default=None
            Their labels; PCA needs none.
        classes : array, default=None
            All labels the stream may bring, if others are to be refused.
        sample_weight : array of shape (n_samples,), default=None
            How much each row counts.

        Returns
        -------
        self : object
            The estimator with the rows so far.
        """
        gathering = self._gathering()
        so_far = self._statistics
        if so_far is None and self.__sklearn_is_fitted__():
            warn_of_stream_after_fit(self)
        with unchanged_on_failure(self):
            is_first = so_far is None
            rows = labelled_rows(
                self, X, y, sample_weight, supervised=gathering.supervised, reset=is_first, whole=False
            )
            require_streamable_sparse(rows.X)
            if classes is not None or so_far is None:
                self._declared = None if classes is None else np.asarray(classes)
            if gathering.supervised and self._declared is not None:
                require_known_labels(rows.classes, self._declared)
            if so_far is not None:
                gathering = so_far.gathering.sufficing_for(gathering)
            names = names_of(X)
            try:
                self._hold(statistics_of_rows(gathering, rows, names, so_far))
            except ValueError:
                require_finite(rows.X, rows.numbers, names, whole=False)
                raise
        return self

    def _hold(self, statistics: Statistics) -> None:
        """Statistics whose solution is not found yet."""
        for name in [name for name in vars(self) if name.endswith("_") and not name.endswith("_in_")]:
            delattr(self, name)
        self._statistics = statistics

    @on_one_blas_thread
    def _require_solution(self) -> None:
        """Raise where there was no fit; of statistics, the solution is found when it is first asked for."""
        check_is_fitted(self)
        if "components_" in vars(self) or self._statistics is None:
            return
        total, wanted = self._statistics, self._gathering()  # parameters may have been set anew since
        needs = self._needs()
        if needs.rows is not None:
            raise ValueError(f"{type(self).__name__} was fitted by partial_fit, and {needs.rows}")
        total.gathering.sufficing_for(wanted)
        if wanted.supervised:
            require_two_classes(self, total.moments.classes)
        problem = Problem.of_statistics(total, plain_count(self.n_components), self._declared)
        found = self._in_features(self._solved(problem), problem, needs)
        self._keep(found, problem.moments.classes if needs.supervised else None)

    def __getattr__(self, name: str) -> Any:
        # reached only where an attribute is not there: the solution of a stream may not have been found yet
        if name == "classes_" and not self._needs().supervised:
            raise AttributeError(f"{type(self).__name__} uses no labels and has no classes_.")
        is_found = name.endswith("_") and not name.startswith("_") and not name.endswith("_in_")
        if is_found and self._statistics is not None:
            try:
                self._require_solution()
            except ValueError as error:
                raise AttributeError(str(error)) from error
            if name in vars(self):
                return vars(self)[name]
        return object.__getattribute__(self, name)  # with its own words

    def __dir__(self) -> list[str]:
        hasattr(self, "components_")  # of a stream, found now
        return list(super().__dir__())

    def __sklearn_is_fitted__(self) -> bool:
        return "components_" in vars(self) or self._statistics is not None
