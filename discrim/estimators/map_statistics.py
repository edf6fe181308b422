"""Fit of a posterior map to rows; and from statistics, for tables in parts, streams, and tables with many rows.

sample → `Look`: kernel and landmarks
moments of the landmarks' features of all rows → rule, temperature, places
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, NoReturn, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from discrim.core.class_places import class_places, on_principal_axes
from discrim.core.classifier_rule import AnyRule, choose_classifier, choose_forest, mean_effects, suits_forest
from discrim.core.coordinates.basis import Features
from discrim.core.coordinates.choose import EXACT_SIDE
from discrim.core.cross_validation import Folds, hash_splitter, require_unnumbered, splits_of
from discrim.core.kernel_choice import (
    WIDTHS,
    Candidate,
    Choice,
    ChosenKernel,
    PosteriorRule,
    require_known_kernel_params,
)
from discrim.core.landmarks import content_priorities
from discrim.core.moments.gather import Gathering, Statistics, require_statistics, statistics_of_rows
from discrim.core.moments.row_sample import SAMPLE_ROWS
from discrim.core.posterior_rule import (
    LARGE_ROWS,
    HeldOutRows,
    Look,
    accurate_sharpness,
    choose_rule,
    class_confusions,
    column_deviations,
    fitted_rule,
    landmark_count,
    needs_landmarks,
    tempered_sharpness,
    weight_covariance,
)
from discrim.core.problem import Needs
from discrim.core.row_hash import HashKFold, row_hashes, seed_number
from discrim.docstrings import public_estimator
from discrim.estimators.base import Reducer
from discrim.estimators.fitting import (
    declare_classes,
    record_columns,
    rows_of_sample,
    solved,
    unchanged_on_failure,
    warn_of_few_rows,
    warn_of_new_stream,
)
from discrim.tables.check_parameters import check_parameters
from discrim.tables.rows import LabelledRows
from discrim.tables.validation import labelled_rows, names_of, require_finite
from discrim.threads import on_one_blas_thread
from discrim.warn_once import warn

Array = NDArray[np.float64]
SHARPNESS_RULES = {"auto": accurate_sharpness, "tempered": tempered_sharpness}
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
class MapOfStatistics(BaseEstimator):
    """Base class for fitting a posterior map to rows, or from a sample of the rows and moments of all rows."""

    n_components: int | None
    sharpness: float | str
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

    def _check_parameters(self) -> None:
        check_parameters(self)
        require_known_kernel_params(self.kernel, self.kernel_params)

    def _fit_rows(self, rows: LabelledRows) -> None:
        require_rows_to_hold_out(rows)
        warn_of_few_rows(self, rows.codes)
        # folds by content need a number as seed, which a RandomState is not
        by_content = not isinstance(self.random_state, np.random.RandomState) and hash_splitter(self.cv, None)
        if rows.shape[0] > LARGE_ROWS and by_content and not (self._is_linear or self._is_given):
            total = statistics_of_rows(self._gathering(), rows)
            assert total.sample is not None
            if needs_landmarks(total.sample):
                self._look_at(total, MAX_MEMORY)
                self._fit_total(statistics_of_rows(self._gathering(), rows))
                self._look = None
                return
            rows = total.sample.with_classes(rows.classes)
        folds = Folds(rows, splits_of(rows, self.cv, self.random_state))
        seed = drawn_seed(self.random_state)
        priorities = content_priorities(rows.X, seed)
        first, choice, rule = self._chosen_rule(folds, priorities, seed)
        self._publish(rows.classes, float(rows.class_totals.sum()), first, choice, rule, seed)
        held_out = np.concatenate([test for _, test in folds.splits.pairs])
        self._held_out = HeldOutRows.of(row_hashes(rows.X)[held_out], choice)
        self._column_deviations = column_deviations(rows)
        self._importances = mean_effects(rule, rows, priorities, self.temperature_, self._column_deviations)
        self.solver_ = f"{rule.name} on {rows.shape[0]} rows, chosen by {len(folds.splits.pairs)} folds"

    def _chosen_rule(self, folds: Folds, priorities: NDArray[np.intp], seed: int) -> tuple[Choice, Choice, AnyRule]:
        """Return the first choice, the final choice, and the rule fitted to all rows."""
        if self._is_given:
            choice, given = choose_classifier(self.classifier, folds)
            return choice, choice, given
        rows = folds.points
        first, choice = choose_rule(folds, priorities, self._candidates(rows), self.n_landmarks)

        def fit_rule() -> PosteriorRule:
            return fitted_rule(rows, priorities, choice, self.n_landmarks)

        tries_forest = self.classifier is None and self.kernel == "auto" and isinstance(self.cv, int | np.integer)
        if not (tries_forest and suits_forest(rows)):
            return first, choice, fit_rule()
        best, rule = choose_forest(folds, priorities, seed, replace(choice, tried=first.tried), fit_rule)
        if isinstance(rule, PosteriorRule):
            return replace(first, tried=best.tried), choice, rule
        return best, best, rule

    def _candidates(self, rows: LabelledRows) -> list[Candidate]:
        """Return the feature spaces to choose from."""
        linear = Candidate("linear", landmarks_only=min(rows.shape) > EXACT_SIDE)
        widths = [Candidate("rbf", width, scaled) for scaled in (False, True) for width in WIDTHS]
        if self.kernel_params:
            return [Candidate(self.kernel, params=tuple(sorted(self.kernel_params.items())))]
        named = {"auto": [linear, *widths], "linear": [linear], "rbf": widths}
        return named.get(self.kernel, [Candidate(self.kernel)])

    def _publish(
        self, classes: NDArray[Any], total_weight: float, first: Choice, choice: Choice, rule: AnyRule, seed: int
    ) -> None:
        self.classes_, self._rule, self._total_weight, self._seed_of_places = classes, rule, total_weight, seed
        self.shrinkage_, self.temperature_ = choice.shrinkage, choice.temperature
        self.held_out_score_, self.held_out_log_loss_ = choice.accuracy, choice.log_loss
        self.kernel_ = ChosenKernel.of(rule.kernel, first, rule.label)
        self.confusions_ = class_confusions(choice.held_out, choice.temperature, self._total_weight)
        self._weight_covariance = weight_covariance(choice)
        self._choice = choice
        self._set_places(choice)

    def _set_places(self, choice: Choice) -> None:
        """Set places and sharpness for the requested number of components."""
        places, given = self._unrotated_places(), self.sharpness
        self.sharpness_ = SHARPNESS_RULES[given](choice, places) if isinstance(given, str) else float(given)
        self._picture_sharpness = tempered_sharpness(choice, places)
        self.places_ = on_principal_axes(places, self._weight_covariance)

    def _unrotated_places(self) -> Array:
        """Compute the places of the classes for the requested number of components."""
        most = len(self.classes_) - 1
        k = most if self.n_components is None else int(self.n_components)
        if k > most:
            warn(
                f"n_components={k} exceeds the {most} dimension(s) of a map of {most + 1} classes; {most} are kept. "
                f"Pass n_components ≤ {most}, or None for all."
            )
        return class_places(self.confusions_, k, self._seed_of_places)

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

    def _second_gathering(
        self, total: Statistics, max_memory: int, units: tuple[Array, Array] | None = None
    ) -> Gathering | None:
        assert total.sample is not None
        if self._is_linear or self._is_given or total.sample.is_whole:
            return None
        self._look_at(total, max_memory, units)
        return self._gathering()

    def _look_at(self, total: Statistics, max_memory: int, units: tuple[Array, Array] | None = None) -> None:
        assert total.sample is not None
        rows, splitter = total.sample.with_classes(total.moments.classes), self._splitter()
        require_rows_to_hold_out(rows)
        count = landmark_count(total.n_rows, self.n_landmarks, splitter.get_n_splits(), max_memory)
        self._look = Look.at_sample(rows, self._candidates(rows), splitter, drawn_seed(self.random_state), count, units)

    def _fit_total(self, total: Statistics) -> None:
        """Fit to validated statistics."""
        record_columns(self, total)
        assert total.sample is not None
        if vars(self).get("_look") is None and not self._is_linear:
            self._fit_rows(rows_of_sample(self, total))
            return
        look = vars(self).get("_look") or Look(None, None)
        choice, rule, held_out = look.rule(total)
        seed = drawn_seed(self.random_state)
        moments, rows = total.moments, total.sample.with_classes(total.moments.classes)
        self._publish(moments.classes, moments.total_weight, look.choice or choice, choice, rule, seed)
        self._held_out = held_out
        if look.features is not None:
            rows = replace(rows, X=look.features.scaled(rows.X))
            self._column_deviations = column_deviations(rows)
        else:
            variances = Features.from_moments(moments).feature_variances(moments)
            self._column_deviations = moments.in_row_units(np.sqrt(variances))
        priorities = content_priorities(rows.X, seed)
        self._importances = mean_effects(rule, rows, priorities, self.temperature_, self._column_deviations)
        drawn = "" if look.features is None else f", drawn from {len(total.sample)} rows"
        self.solver_ = (
            f"{rule.name}{drawn}; moments of all {total.n_rows} rows; ridge and temperature by "
            f"{len(choice.held_out.codes)} rows, held out in {total.gathering.n_folds} folds by content"
        )

    @property
    def _is_given(self) -> bool:
        """True if the classifier is given by the user."""
        return self.classifier is not None and not isinstance(self.classifier, str)

    @property
    def _is_linear(self) -> bool:
        return self.kernel == "linear" and not (self.kernel_params or self._is_given)

    def _gathering(self) -> Gathering:
        """Return the statistics that a fit needs from every part: moments of folds and a sample, or only the sample."""
        self._check_parameters()
        require_unnumbered(self.cv)
        asked = Gathering(type(self).__name__, keep="means", sample_rows=SAMPLE_ROWS)
        look = vars(self).get("_look")
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

    # ------------------------------------------------------------------ streams

    @on_one_blas_thread
    def partial_fit(
        self, X: ArrayLike, y: ArrayLike, classes: ArrayLike | None = None, sample_weight: ArrayLike | None = None
    ) -> Self:
        """Add rows; the map is computed on first use.

        The first 20,000 distinct rows are kept (fewer if they would take more than 64 MiB). When there are more, kernel
        and landmarks are chosen on them; from then on moments of the landmarks' features are summed and rows are not
        kept. With kernel="linear", moments are summed from the start.

        {streamed}
        """
        self._check_parameters()
        if self._is_given:
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
            if vars(self).get("_look") is None and not self._is_linear and not total.sample.is_whole:
                self._look_at(total, MAX_MEMORY)
                gathering, kept = self._gathering(), None
                if so_far is not None:  # the rows so far were all kept
                    before = so_far.sample.with_classes(so_far.moments.classes)
                    kept = statistics_of_rows(gathering, before, so_far.names)
                total = statistics_of_rows(gathering, rows, names_of(X), kept)
            self._hold(total)
        return self

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
