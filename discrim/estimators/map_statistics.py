"""The posterior map of statistics: of the parts of a table, of a stream, and of tables with many rows.

sample → `Look`: kernel and landmarks      moments of the landmarks' features of all rows → rule, temperature, places
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import replace
from typing import Any, NoReturn, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from discrim.core.coordinates.basis import Features
from discrim.core.cross_validation import hash_splitter
from discrim.core.explanation import two_classes
from discrim.core.kernel_choice import Candidate, Choice
from discrim.core.landmark_rule import Look, landmark_count
from discrim.core.landmarks import content_priorities, drawn_landmarks
from discrim.core.moments.gather import Gatherer, Gathering, Statistics, require_statistics, statistics_of_rows
from discrim.core.moments.row_sample import SAMPLE_ROWS
from discrim.core.posterior_rule import HeldOutRows, column_deviations
from discrim.core.problem import Needs
from discrim.estimators.fitting import record_columns, rows_of_sample, warn_of_new_stream
from discrim.tables.check_parameters import require_unnumbered, seed_number
from discrim.tables.row_hash import HashKFold
from discrim.tables.rows import LabelledRows, block_slices
from discrim.tables.validation import (
    labelled_rows,
    names_of,
    require_finite,
    require_known_labels,
    unchanged_on_failure,
)
from discrim.threads import on_one_blas_thread, on_one_blas_thread_throughout

Array = NDArray[np.float64]
IMPORTANCE_ROWS = 1_000  # of the training rows, over which effects of columns are averaged
MAX_MEMORY = 8 * 2**30  # bytes that moments of landmarks' features may take


@on_one_blas_thread_throughout
class AbsentAttribute:
    """An attribute that reducers have and this one has not; the error says why."""

    def __init__(self, why: str) -> None:
        self.why = why

    def __set_name__(self, owner: type, name: str) -> None:
        self.name = name

    def __get__(self, instance: Any, owner: type) -> NoReturn:
        raise AttributeError(f"{owner.__name__} has no {self.name}: {self.why}")


class MapOfStatistics(BaseEstimator, ABC):
    """Fits of a posterior map that see a sample of the rows, and moments of all."""

    kernel: str
    kernel_params: dict[str, Any] | None
    n_landmarks: int | None
    classifier: Any
    cv: Any
    random_state: Any
    solver_: str
    classes_: NDArray[Any]
    temperature_: float
    _rule: Any
    _statistics: Statistics | None = None  # of a stream
    _look: Look | None = None  # at a sample, while moments of all rows are gathered
    _held_out: HeldOutRows | None = None  # not kept in model files
    _column_deviations: Array
    _importances: Array | None = None  # also None in models saved by earlier versions

    @abstractmethod
    def _check_parameters(self) -> None:
        """Raise unless the parameters are possible."""

    @abstractmethod
    def _candidates(self, rows: LabelledRows) -> list[Candidate]:
        """Return the feature spaces to choose from."""

    @abstractmethod
    def _fit_rows(self, rows: LabelledRows) -> None:
        """Fit on checked rows."""

    @abstractmethod
    def _publish(
        self, classes: NDArray[Any], total_weight: float, first: Choice, choice: Choice, rule: Any, seed: int
    ) -> None:
        """Set the fitted attributes."""

    def _mean_effects(self, rows: LabelledRows, priorities: NDArray[np.intp]) -> Array | None:
        """Compute the mean absolute effect of each column over distinct rows; None for a rule without gradients."""
        if not self._rule.has_gradients:
            own = getattr(getattr(self._rule, "classifier", None), "feature_importances_", None)
            return None if own is None else np.asarray(own)
        picked = drawn_landmarks(priorities, np.arange(rows.shape[0]), IMPORTANCE_ROWS)
        weights = np.bincount(priorities, rows.weights)[priorities[picked]]
        total = np.zeros(rows.shape[1])
        for part in block_slices(len(picked), rows.shape[1]):
            table = rows.X[picked[part]]
            pair = two_classes(self._rule.scores(table), self.classes_, None)
            (effects,) = self._rule.effects(table, [self._pair_weights(*pair)], self._column_deviations)
            total += weights[part] @ np.abs(effects)
        return total / weights.sum()

    def _pair_weights(self, first: NDArray[np.intp], second: NDArray[np.intp]) -> Array:
        """Return weights of the scores that make log p(first) − log p(second)."""
        chosen = np.eye(len(self.classes_)) / self.temperature_
        return chosen[first] - chosen[second]

    @property
    def _seed(self) -> int:
        return int(check_random_state(0 if self.random_state is None else self.random_state).randint(2**31 - 1))

    # ------------------------------------------------------------------ statistics of parts

    def _needs(self) -> Needs:
        return Needs()

    def statistics(
        self, X: ArrayLike, y: ArrayLike | None = None, sample_weight: ArrayLike | None = None, *, part: str = ""
    ) -> Statistics:
        """Return the statistics of a part of a table; those of all parts add up, in any order, for `fit_statistics`.

        Parameters
        ----------
        X : array or sparse matrix of shape (n_samples, n_features)
            A part of the rows.
        y : array of shape (n_samples,)
            Their labels.
        sample_weight : array of shape (n_samples,), default=None
            How much each row counts.
        part : str, default=""
            The name of the part, in errors and to distinguish it from another part with the same rows.

        Returns
        -------
        statistics : Statistics
            The statistics of the part.
        """
        gatherer = Gatherer(self._gathering(), part)
        gatherer.add(X, y, sample_weight)
        return gatherer.statistics()

    def fit_statistics(self, total: Statistics) -> Self:
        """Fit from gathered statistics alone.

        With kernel="linear", and after `choose_landmarks`, these are moments of the folds, scored on a sample of their
        rows. Otherwise they are a sample, and the map is fitted on it.
        """
        with unchanged_on_failure(self):
            require_statistics(total)
            total.gathering.sufficing_for(self._gathering())
            self._statistics = None
            self._fit_total(total)
            self._look = None
        return self

    def choose_landmarks(self, total: Statistics, max_memory: int = MAX_MEMORY) -> Self:
        """Choose kernel, width and landmarks on the sample in statistics of all parts.

        Afterwards `statistics` gathers moments of the landmarks' features, and `fit_statistics` fits on their sum: a
        fit on all rows, of which no more than the sample is ever held. `fit`, `fit_parts`, Dask and Spark do this by
        themselves if they can read the table twice.

        Parameters
        ----------
        total : Statistics
            The sum of `statistics(X, y)` of all parts.
        max_memory : int, default=8 * 2**30
            Bytes that the moments may take: 8 for each pair of landmarks, for each fold and four times more.

        Returns
        -------
        self : object
            The estimator with its landmarks chosen, not fitted yet.
        """
        require_statistics(total)
        self._look = None
        total.gathering.sufficing_for(self._gathering())
        self._look_at(total, max_memory)
        return self

    def _second_gathering(
        self, total: Statistics, max_memory: int, units: tuple[Array, Array] | None = None
    ) -> Gathering | None:
        assert total.sample is not None
        if not self._has_landmarks or total.sample.is_whole:
            return None
        self._look_at(total, max_memory, units)
        return self._gathering()

    def _look_at(self, total: Statistics, max_memory: int, units: tuple[Array, Array] | None = None) -> None:
        assert total.sample is not None
        rows, splitter = total.sample.among(total.moments.classes), self._splitter()
        require_rows_to_hold_out(rows)
        count = landmark_count(total.n_rows, self.n_landmarks, splitter.get_n_splits(), max_memory)
        self._look = Look.at_sample(rows, self._candidates(rows), splitter, self._seed, count, units)

    def _fit_total(self, total: Statistics) -> None:
        """Fit on checked statistics."""
        record_columns(self, total)
        assert total.sample is not None
        if self._look is None and not self._is_linear:
            self._fit_rows(rows_of_sample(self, total))
            return
        look = self._look or Look(None, None)
        choice, rule, held_out = look.rule(total)
        moments, rows = total.moments, total.sample.among(total.moments.classes)
        self._publish(moments.classes, moments.total_weight, look.choice or choice, choice, rule, self._seed)
        self._held_out = held_out
        if look.features is not None:
            rows = replace(rows, X=look.features.scaled(rows.X))
            self._column_deviations = column_deviations(rows)
        else:
            variances = Features.of_moments(moments).feature_variances(moments)
            self._column_deviations = np.ldexp(np.sqrt(variances), moments.exponent)
        self._importances = self._mean_effects(rows, content_priorities(rows.X, self._seed))
        self.solver_ = look.how(total, choice, rule)

    @property
    def _has_landmarks(self) -> bool:
        """True if moments of landmarks' features are what many rows are fitted on."""
        return not self._is_linear and (self.classifier is None or isinstance(self.classifier, str))

    @property
    def _is_linear(self) -> bool:
        is_own = self.classifier is None or isinstance(self.classifier, str)
        return self.kernel == "linear" and not self.kernel_params and is_own

    def _gathering(self) -> Gathering:
        """Return what a fit needs of every part of a table: moments of folds and a sample, or the sample alone."""
        self._check_parameters()
        require_unnumbered(self.cv)
        asked = Gathering(type(self).__name__, keep="means", sample_rows=SAMPLE_ROWS)
        if not self._is_linear and self._look is None:
            return asked
        splitter = self._splitter()
        features = None if self._look is None else self._look.features
        n_folds, seed = splitter.get_n_splits(), seed_number(splitter.random_state)
        return replace(asked, keep="pooled", n_folds=n_folds, seed=seed, features=features)

    def _splitter(self) -> HashKFold:
        """Return the folds that all parts of a table agree on."""
        splitter = hash_splitter(self.cv, self.random_state)
        if splitter is None:
            raise ValueError(
                f"cv={self.cv!r} names rows, which come in parts here. Pass a number of folds or a HashKFold: their "
                "folds follow from the rows' content."
            )
        return splitter

    def _fit_many_rows(self, rows: LabelledRows) -> None:
        """Fit on moments of all rows in the features of landmarks, which are drawn from a sample."""
        streamed, self._look = self._statistics, None
        self._look_at(statistics_of_rows(self._gathering(), rows), MAX_MEMORY)
        self._fit_total(statistics_of_rows(self._gathering(), rows))
        self._statistics, self._look = streamed, None

    # ------------------------------------------------------------------ streams

    @on_one_blas_thread
    def partial_fit(
        self,
        X: ArrayLike,
        y: ArrayLike,
        classes: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
    ) -> Self:
        """Add rows; the map is found when it is first asked for.

        The first 20,000 different rows are kept (fewer if they would take more than 64 MiB). When more come, kernel and
        landmarks are chosen on them, and from then on moments of the landmarks' features are summed and rows are
        forgotten. With kernel="linear", moments are summed from the start.

        Parameters
        ----------
        X : array or sparse matrix of shape (n_samples, n_features)
            Some rows.
        y : array of shape (n_samples,)
            Their labels.
        classes : array, default=None
            All labels the stream may bring, if others are to be refused.
        sample_weight : array of shape (n_samples,), default=None
            How much each row counts.

        Returns
        -------
        self : object
            The estimator with the rows so far.
        """
        self._check_parameters()
        if not (self._is_linear or self._has_landmarks):
            raise ValueError(
                f"classifier must be None or 'rule' for partial_fit; got {type(self.classifier).__name__}, which needs "
                "all rows at once."
            )
        so_far = self._statistics
        if so_far is None and self.__sklearn_is_fitted__():
            warn_of_new_stream(self)
        with unchanged_on_failure(self):
            rows = labelled_rows(self, X, y, sample_weight, supervised=True, reset=so_far is None, whole=False)
            require_finite(rows.X, rows.numbers, names_of(X), whole=False)
            if so_far is None:
                self._look = None
            if classes is not None:
                require_known_labels(rows.classes, np.asarray(classes))
            gathering = self._gathering() if so_far is None else self._gathering().sufficing_for(so_far.gathering)
            total = statistics_of_rows(gathering, rows, names_of(X), so_far)
            assert total.sample is not None
            if self._look is None and not self._is_linear and not total.sample.is_whole:
                self._look_at(total, MAX_MEMORY)
                kept = None if so_far is None else self._kept_rows(so_far)
                total = statistics_of_rows(self._gathering(), rows, names_of(X), kept)
            self._hold(total)
        return self

    def _kept_rows(self, so_far: Statistics) -> Statistics:
        """Return statistics in the landmarks' features of rows that were all kept."""
        assert so_far.sample is not None
        return statistics_of_rows(self._gathering(), so_far.sample.among(so_far.moments.classes), so_far.names)

    def _hold(self, total: Statistics) -> None:
        """Keep statistics whose map is not found yet."""
        for name in [name for name in vars(self) if name.endswith("_") and not name.endswith("_in_")]:
            delattr(self, name)
        self._statistics = total

    @on_one_blas_thread
    def _require_solution(self) -> None:
        """Raise unless there was a fit; find the map of a stream when it is first asked for."""
        check_is_fitted(self)
        if "places_" in vars(self) or self._statistics is None:
            return
        self._fit_total(self._statistics)

    def __getattr__(self, name: str) -> Any:
        # reached only if an attribute is missing: the map of a stream may not have been found yet
        is_found = name.endswith("_") and not name.startswith("_") and not name.endswith("_in_")
        if is_found and self._statistics is not None and "places_" not in vars(self):
            try:
                self._require_solution()
            except ValueError as error:
                raise AttributeError(str(error)) from error
            return getattr(self, name)
        return object.__getattribute__(self, name)  # with its own words

    def __sklearn_is_fitted__(self) -> bool:
        return "places_" in vars(self) or self._statistics is not None


def require_rows_to_hold_out(rows: LabelledRows) -> None:
    """Raise if no class has a second row."""
    if np.bincount(rows.codes).max() < 2:
        raise ValueError(
            f"Every class has one row only ({len(rows.codes)} rows), so none can be held out, by which PosteriorMap "
            "chooses. Pass more rows, or use RegularizedLDA with a number as shrinkage."
        )
