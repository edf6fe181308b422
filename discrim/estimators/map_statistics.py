"""Posterior map from statistics: for tables in parts, streams, and tables with many rows.

sample → `Look`: kernel and landmarks
moments of the landmarks' features of all rows → rule, temperature, places
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
from discrim.core.cross_validation import hash_splitter, require_unnumbered
from discrim.core.explanation import two_classes
from discrim.core.kernel_choice import Candidate, Choice
from discrim.core.landmark_rule import Look, landmark_count, needs_landmarks
from discrim.core.landmarks import content_priorities, drawn_landmarks
from discrim.core.moments.gather import Gathering, Statistics, require_statistics, statistics_of_rows
from discrim.core.moments.row_sample import SAMPLE_ROWS
from discrim.core.posterior_rule import HeldOutRows, column_deviations
from discrim.core.problem import Needs
from discrim.core.row_hash import HashKFold, seed_number
from discrim.docstrings import public_estimator
from discrim.estimators.base import Reducer
from discrim.estimators.fitting import (
    declare_classes,
    record_columns,
    rows_of_sample,
    solved,
    unchanged_on_failure,
    warn_of_new_stream,
)
from discrim.tables.rows import LabelledRows, block_slices
from discrim.tables.validation import (
    labelled_rows,
    names_of,
    require_finite,
)
from discrim.threads import on_one_blas_thread

Array = NDArray[np.float64]
IMPORTANCE_ROWS = 1_000  # training rows over which effects of columns are averaged
MAX_MEMORY = 8 * 2**30  # bytes for the moments of the landmarks' features


class AbsentAttribute:
    """Attribute that other reducers have and this one lacks; access raises an error with the reason."""

    def __init__(self, why: str) -> None:
        self.why = why

    def __set_name__(self, owner: type, name: str) -> None:
        self.name = name

    def __get__(self, instance: Any, owner: type) -> NoReturn:
        raise AttributeError(f"{owner.__name__} has no {self.name}: {self.why}")


@public_estimator
class MapOfStatistics(BaseEstimator, ABC):
    """Base class for fitting a posterior map from a sample of the rows and moments of all rows."""

    kernel: str
    kernel_params: dict[str, Any] | None
    n_landmarks: int | None
    classifier: Any
    cv: Any
    random_state: Any
    solver_: str = solved()
    classes_: NDArray[Any] = solved()
    temperature_: float = solved()
    _rule: Any
    _statistics: Statistics | None  # of a stream
    _look: Look | None  # choice on a sample, while moments of all rows are gathered
    _held_out: HeldOutRows | None  # not stored in model files
    _column_deviations: Array
    _importances: Array | None

    @abstractmethod
    def _check_parameters(self) -> None:
        """Raise if a parameter is invalid."""

    @abstractmethod
    def _candidates(self, rows: LabelledRows) -> list[Candidate]:
        """Return the feature spaces to choose from."""

    @abstractmethod
    def _fit_rows(self, rows: LabelledRows) -> None:
        """Fit to validated rows."""

    @abstractmethod
    def _publish(
        self, classes: NDArray[Any], total_weight: float, first: Choice, choice: Choice, rule: Any, seed: int
    ) -> None:
        """Set the fitted attributes."""

    def _mean_effects(self, rows: LabelledRows, priorities: NDArray[np.intp]) -> Array | None:
        """Compute the mean absolute effect of each column over distinct rows; None for a rule without gradients.

        A forest has importances of its own. For a mean of rules it is the mean of their shares.
        """
        rules = getattr(self._rule, "rules", (self._rule,))
        found = [one for one in (self._effects_of(rule, rows, priorities) for rule in rules) if one is not None]
        if len(found) < len(rules):
            return None
        return found[0] if len(found) == 1 else np.mean([one / (one.sum() or 1.0) for one in found], axis=0)

    def _effects_of(self, rule: Any, rows: LabelledRows, priorities: NDArray[np.intp]) -> Array | None:
        if not rule.has_gradients:
            own = getattr(getattr(rule, "classifier", None), "feature_importances_", None)
            return None if own is None else np.asarray(own)
        picked = drawn_landmarks(priorities, np.arange(rows.shape[0]), IMPORTANCE_ROWS)
        weights = np.bincount(priorities, rows.weights)[priorities[picked]]
        total = np.zeros(rows.shape[1])
        for part in block_slices(len(picked), rows.shape[1]):
            table = rows.X[picked[part]]
            pair = two_classes(rule.scores(table), self.classes_, None)
            (effects,) = rule.effects(table, [self._pair_weights(*pair)], self._column_deviations)
            total += weights[part] @ np.abs(effects)
        return total / weights.sum()

    def _pair_weights(self, first: NDArray[np.intp], second: NDArray[np.intp]) -> Array:
        """Return weights of the scores that give log p(first) − log p(second)."""
        chosen = np.eye(len(self.classes_)) / self.temperature_
        return chosen[first] - chosen[second]

    @property
    def _seed(self) -> int:
        return drawn_seed(self.random_state)

    # ------------------------------------------------------------------ statistics of parts

    def _needs(self) -> Needs:
        return Needs()

    statistics = Reducer.statistics

    def fit_statistics(self, total: Statistics) -> Self:
        """Fit from gathered statistics.

        With kernel="linear", and after `choose_landmarks`, the statistics are moments of the folds, scored on a sample
        of their rows. Otherwise they are a sample, to which the map is fitted.
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

        Afterwards `statistics` gathers moments of the landmarks' features, and `fit_statistics` fits the map to their
        sum: a fit to all rows that holds only the sample in memory. `fit`, `fit_parts`, Dask and Spark do this
        automatically if they can read the table twice. At most 5,000 distinct rows need no landmarks: nothing is
        chosen, and `fit_statistics` fits the map to the rows.

        Parameters
        ----------
        total : Statistics
            Sum of `statistics(X, y)` over all parts.
        max_memory : int, default=8 * 2**30
            Maximum number of bytes for the moments: 8 for each pair of landmarks, times the number of folds plus four.

        Returns
        -------
        self : object
            The estimator with its landmarks chosen, not yet fitted.
        """
        require_statistics(total)
        self._look = None
        total.gathering.sufficing_for(self._gathering())
        assert total.sample is not None
        if needs_landmarks(total.sample):
            self._look_at(total, max_memory)
        return self

    @property
    def _chosen(self) -> Look | None:
        """Kernel and landmarks, if they are chosen already."""
        return vars(self).get("_look")

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
        rows, splitter = total.sample.with_classes(total.moments.classes), self._splitter()
        require_rows_to_hold_out(rows)
        count = landmark_count(total.n_rows, self.n_landmarks, splitter.get_n_splits(), max_memory)
        self._look = Look.at_sample(rows, self._candidates(rows), splitter, self._seed, count, units)

    def _fit_total(self, total: Statistics) -> None:
        """Fit to validated statistics."""
        record_columns(self, total)
        assert total.sample is not None
        if self._chosen is None and not self._is_linear:
            self._fit_rows(rows_of_sample(self, total))
            return
        look = self._chosen or Look(None, None)
        choice, rule, held_out = look.rule(total)
        moments, rows = total.moments, total.sample.with_classes(total.moments.classes)
        self._publish(moments.classes, moments.total_weight, look.choice or choice, choice, rule, self._seed)
        self._held_out = held_out
        if look.features is not None:
            rows = replace(rows, X=look.features.scaled(rows.X))
            self._column_deviations = column_deviations(rows)
        else:
            variances = Features.from_moments(moments).feature_variances(moments)
            self._column_deviations = moments.in_row_units(np.sqrt(variances))
        self._importances = self._mean_effects(rows, content_priorities(rows.X, self._seed))
        self.solver_ = look.how(total, choice, rule)

    @property
    def _is_given(self) -> bool:
        """True if the classifier is given by the user."""
        return self.classifier is not None and not isinstance(self.classifier, str)

    @property
    def _has_landmarks(self) -> bool:
        """True if many rows are fitted by moments of the landmarks' features."""
        return not (self._is_linear or self._is_given)

    @property
    def _is_linear(self) -> bool:
        return self.kernel == "linear" and not (self.kernel_params or self._is_given)

    def _gathering(self) -> Gathering:
        """Return the statistics that a fit needs from every part: moments of folds and a sample, or only the sample."""
        self._check_parameters()
        require_unnumbered(self.cv)
        asked = Gathering(type(self).__name__, keep="means", sample_rows=SAMPLE_ROWS)
        look = self._chosen
        if not self._is_linear and look is None:
            return asked
        splitter, features = self._splitter(), None if look is None else look.features
        n_folds, seed = splitter.get_n_splits(), seed_number(splitter.random_state)
        return replace(asked, keep="pooled", n_folds=n_folds, seed=seed, features=features)

    def _splitter(self) -> HashKFold:
        """Return the folds, which are the same for all parts of a table."""
        splitter = hash_splitter(self.cv, self.random_state)
        if splitter is None:
            raise ValueError(
                "cv must be a number of folds or a HashKFold, whose folds are derived from the contents of the rows; "
                f"got {self.cv!r}, which refers to row numbers and cannot be used with a table in parts."
            )
        return splitter

    def _fit_many_rows(self, rows: LabelledRows, total: Statistics) -> None:
        """Fit to moments of all rows in the features of landmarks drawn from the sample in their statistics."""
        self._look_at(total, MAX_MEMORY)
        self._fit_total(statistics_of_rows(self._gathering(), rows))
        self._look = None

    # ------------------------------------------------------------------ streams

    @on_one_blas_thread
    def partial_fit(
        self,
        X: ArrayLike,
        y: ArrayLike,
        classes: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
    ) -> Self:
        """Add rows; the map is computed on first use.

        The first 20,000 distinct rows are kept (fewer if they would take more than 64 MiB). When there are more, kernel
        and landmarks are chosen on them; from then on moments of the landmarks' features are summed and rows are not
        kept. With kernel="linear", moments are summed from the start.

        {streamed}
        """
        self._check_parameters()
        if not (self._is_linear or self._has_landmarks):
            raise ValueError(
                f"classifier must be None or 'rule' for partial_fit; got {type(self.classifier).__name__}, which needs "
                "all rows at once."
            )
        so_far = vars(self).get("_statistics")
        if so_far is None and self.__sklearn_is_fitted__():
            warn_of_new_stream(self)
        with unchanged_on_failure(self):
            rows = labelled_rows(self, X, y, sample_weight, supervised=True, reset=so_far is None, whole=False)
            require_finite(rows.X, rows.numbers, names_of(X), whole=False)
            if so_far is None:
                self._look = None
            declare_classes(self, rows, classes, is_first=so_far is None)
            gathering = self._gathering() if so_far is None else self._gathering().sufficing_for(so_far.gathering)
            total = statistics_of_rows(gathering, rows, names_of(X), so_far)
            assert total.sample is not None
            if self._chosen is None and not self._is_linear and not total.sample.is_whole:
                self._look_at(total, MAX_MEMORY)
                kept = None if so_far is None else self._kept_rows(so_far)
                total = statistics_of_rows(self._gathering(), rows, names_of(X), kept)
            self._hold(total)
        return self

    def _kept_rows(self, so_far: Statistics) -> Statistics:
        """Return statistics, in the landmarks' features, of rows that were all kept."""
        assert so_far.sample is not None
        return statistics_of_rows(self._gathering(), so_far.sample.with_classes(so_far.moments.classes), so_far.names)

    _hold = Reducer._hold

    @on_one_blas_thread
    def _require_solution(self) -> None:
        """Raise if there was no fit; compute the map of a stream on first use."""
        check_is_fitted(self)
        if "places_" not in vars(self):
            total = self._statistics
            assert total is not None
            self._fit_total(total)

    def __sklearn_is_fitted__(self) -> bool:
        return "places_" in vars(self) or vars(self).get("_statistics") is not None


def drawn_seed(random_state: Any) -> int:
    """Return a seed drawn from a random state; None is 0."""
    return int(check_random_state(0 if random_state is None else random_state).randint(2**31 - 1))


def require_rows_to_hold_out(rows: LabelledRows) -> None:
    """Raise if no class has a second row."""
    if np.bincount(rows.codes).max() < 2:
        raise ValueError(
            f"y must have at least two rows of some class, because PosteriorMap chooses by held-out rows; got "
            f"{len(rows.codes)} rows, one row of each class. Pass more rows, or use RegularizedLDA with a number as "
            "shrinkage."
        )
