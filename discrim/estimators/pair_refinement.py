"""The refinement of one hyperplane between two classes, step by step.

    rows of two classes → standardised to one of them → a of a linear classifier → groups of terms → SVM → b

and b_k a_i is the hyperplane in the standardised space again.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, NoReturn

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import StratifiedKFold
from sklearn.svm import SVC
from sklearn.utils.validation import has_fit_parameter

from discrim.estimators.lda import FisherLDA
from discrim.estimators.merging_rules import (
    MERGED_SET,
    Grouping,
    Terms,
    grouping_of,
    groupings,
    groups_of,
    merged,
    renumbered,
)
from discrim.tables.warn_once import warn

Floats = NDArray[np.float64]
Indices = NDArray[np.intp]
Mask = NDArray[np.bool_]

CONSTANT = 1e-10  # a deviation below this share of the largest value is rounding, not spread
LEAST_SCALE = 1e-305  # a weight over a smaller deviation leaves the range of numbers
QUARTER = 0.25  # of numbers whose difference may leave that range; exact


@dataclass(frozen=True)
class Pair:
    """The different rows of two classes, each with its weight and how often it came."""

    rows: Floats
    positive: Mask
    weights: Floats
    counts: Indices
    labels: NDArray[Any]  # of the rows that are not positive, and of those that are
    weighted: bool  # whether the weights were given, or are only the counts

    def part(self, chosen: Indices) -> Pair:
        arrays = {name: getattr(self, name)[chosen] for name in ("rows", "positive", "weights", "counts")}
        return replace(self, **arrays)

    def class_totals(self) -> Floats:
        return np.bincount(self.positive, self.weights, minlength=2).astype(np.float64)

    def costs(self, class_weight: Any) -> Floats:
        """Return the weight of each row times that of its class."""
        if class_weight is None:
            return self.weights
        if class_weight == "balanced":
            factors = self.weights.sum() / (2 * self.class_totals())
        else:
            factors = np.array([float(class_weight.get(label, 1.0)) for label in self.labels.tolist()])
        return self.weights * factors[self.positive.astype(np.intp)]


@dataclass(frozen=True)
class Standard:
    """z = (x − centre)/scale, on the features that are kept."""

    n_features: int
    features: Indices
    centre: Floats
    scale: Floats
    lost: Indices  # features left out although they vary in the class that is not the reference

    @classmethod
    def none(cls, d: int) -> Standard:
        """Return features as they are."""
        return cls(d, np.arange(d), np.zeros(d), np.ones(d), np.arange(0))

    @classmethod
    def of(cls, pair: Pair, reference_class: str, constant_features: str) -> Standard:
        """Return mean 0 and variance 1 in the smaller ("minority") or the larger ("majority") class."""
        of_class = _reference(pair, reference_class)
        centre, scale = _centre_and_scale(pair.rows[of_class], pair.weights[of_class])
        least = np.maximum(CONSTANT * np.abs(pair.rows).max(axis=0), LEAST_SCALE)
        constant = np.flatnonzero(scale <= least)
        overall = _centre_and_scale(pair.rows[:, constant], pair.weights)[1]
        lost = constant[overall > least[constant]]
        if len(constant) == len(centre) and not len(lost):
            _refuse_equal_rows(pair)
        if constant_features == "scale" or _all_constant(constant, pair, of_class):
            scale[constant] = overall
            lost = lost[:0]
        kept = np.flatnonzero(scale > least)
        return cls(len(centre), kept, centre[kept], scale[kept], lost)

    def __call__(self, rows: Floats) -> Floats:
        standardised = QUARTER * rows[:, self.features]
        standardised -= QUARTER * self.centre
        standardised /= QUARTER * self.scale
        return standardised

    def of_pair(self, pair: Pair) -> Pair:
        return replace(pair, rows=self(pair.rows))

    def undone(self, weights: Floats, intercept: float) -> tuple[Floats, float]:
        """Return a hyperplane in z as the same hyperplane in all features of x."""
        coef = np.zeros(self.n_features)
        coef[self.features] = weights / self.scale
        return coef, float(intercept - coef[self.features] @ self.centre)


def _refuse_equal_rows(pair: Pair) -> NoReturn:
    low, high = pair.labels.tolist()
    raise ValueError(
        f"The {pair.counts.sum()} rows of classes {low!r} and {high!r} are all equal (to {CONSTANT:g} of their size), "
        "so no hyperplane lies between them. Check the columns, take off a common offset, or leave a class out."
    )


def _all_constant(constant: Indices, pair: Pair, of_class: Mask) -> bool:
    """Return whether nothing is left to standardise to the class; then both classes give the scale, which is said."""
    if all_of_them := len(constant) == pair.rows.shape[1]:
        warn(
            f"All features are constant in class {pair.labels.tolist()[int(pair.positive[of_class][0])]!r}, to "
            "which they would be standardised, so they are scaled by their deviation over both classes. Pass "
            "more different rows of that class, or reference_class=None.",
        )
    return all_of_them


def _reference(pair: Pair, which: str) -> Mask:
    """Return rows of the smaller (or larger) class; of equal ones that of wider spread, whatever the names."""
    negative, positive = pair.class_totals() * (1 if which == "minority" else -1)
    if negative != positive:
        return pair.positive == (positive < negative)
    with np.errstate(divide="ignore"):
        negative, positive = (
            np.log(_centre_and_scale(pair.rows[side], pair.weights[side])[1]).sum()
            for side in (~pair.positive, pair.positive)
        )
    return pair.positive == (positive >= negative)


def _centre_and_scale(rows: Floats, weights: Floats) -> tuple[Floats, Floats]:
    """Return mean and population deviation of each column; squares of units, so that no unit overflows."""
    shares = weights / weights.sum()
    centre = shares @ rows
    away = QUARTER * rows - QUARTER * centre
    unit = np.maximum(away.max(axis=0), -away.min(axis=0))
    unit[unit == 0] = 1.0
    away /= unit
    return centre, unit * np.sqrt(shares @ np.square(away, out=away)) / QUARTER


Rule = str | Sequence[Sequence[int]]


@dataclass(frozen=True)
class Settings:
    """The parameters of `RefinedHyperplane` that bear on one pair of classes."""

    estimator: Any
    rule: Rule
    C: float
    class_weight: Any
    reference_class: str | None
    constant_features: str
    normalize: bool | float
    n_folds: int
    tol: float
    max_iter: int


@dataclass(frozen=True)
class Hyperplane:
    """weightsᵀz + intercept = 0; its margin is 2/‖weights‖, and 0 if all weights are 0: no hyperplane."""

    weights: Floats
    intercept: float

    @property
    def margin(self) -> float:
        length = float(np.linalg.norm(self.weights))
        return 2 / length if length > 0 else 0.0


@dataclass(frozen=True)
class Refinement:
    """What was done for one pair of classes; all weights are of the standardised features."""

    rule: Rule
    standard: Standard
    initial: Hyperplane  # a and −c
    grouping: Grouping
    in_merged: Hyperplane  # b and −c̃
    refined: Hyperplane  # b_k a_i for i in I_k, and −c̃
    n_iter: int

    @property
    def accepted(self) -> bool:
        return self.refined.margin >= self.initial.margin

    @property
    def groups(self) -> list[list[int]]:
        return groups_of(self.grouping, self.standard.features)

    def merged_features(self, rows: Floats) -> Floats:
        return merged(self.standard(rows) * self.initial.weights, self.grouping)


def refinement(pair: Pair, settings: Settings) -> Refinement:
    """Return the refinement by the rule of the settings, or by the best rule if so asked."""
    if settings.rule == "best":
        settings = replace(settings, rule=best_rule(pair, settings))
    standard = _standard(pair, settings)
    standardised = standard.of_pair(pair)
    return _refinement_by_rule(standardised, settings, standard, initial_hyperplane(standardised, settings))


def initial_hyperplane(pair: Pair, settings: Settings) -> Hyperplane:
    """Compute a and −c of the linear classifier, fitted to the standardised rows."""
    # Fisher's discriminant by default; classes that cost the same have the same prior
    default = FisherLDA(priors="equal" if settings.class_weight == "balanced" else None)
    estimator = default if settings.estimator is None else clone(settings.estimator)
    labels = pair.labels[pair.positive.astype(np.intp)]
    if not pair.weighted:  # each row as often as it came, so the estimator sees what it would see by itself
        as_they_came = np.repeat(np.arange(len(labels)), pair.counts)
        estimator.fit(pair.rows[as_they_came], labels[as_they_came])
    elif has_fit_parameter(estimator, "sample_weight"):
        estimator.fit(pair.rows, labels, sample_weight=pair.weights)
    else:
        raise TypeError(
            f"sample_weight came, but {type(estimator).__name__}.fit takes none. Leave the weights out, or "
            "pass an estimator that takes them, e.g. LogisticRegression or LinearSVC."
        )
    return _hyperplane_of(estimator, pair.rows.shape[1], settings.normalize)


def linear_svm(rows: Floats, positive: Mask, costs: Floats, settings: Settings) -> tuple[Hyperplane, int]:
    """Compute min ½‖b‖² + C Σ_i cost_i max(0, 1 − y_i(bᵀu_i − c̃)), the intercept −c̃ not penalised."""
    wide = rows.shape[1] > rows.shape[0]  # then the n×n products are all it needs: one matrix product
    svm = SVC(
        C=settings.C,
        kernel="precomputed" if wide else "linear",
        tol=settings.tol,
        max_iter=settings.max_iter,
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # n_iter tells it, and the fit warns once
        svm.fit(rows @ rows.T if wide else rows, positive, sample_weight=costs)
    weights = svm.dual_coef_[0] @ rows[svm.support_]
    return Hyperplane(weights, best_intercept(rows @ weights, positive, costs)), int(svm.n_iter_[0])


def best_intercept(values: Floats, positive: Mask, costs: Floats) -> float:
    """Return the middle of all t that minimise Σ_i cost_i max(0, 1 − y_i(values_i + t)).

    Where no row lies on its margin the SVM's intercept is free within an interval, and what a solver returns
    then depends on the order of the rows.
    """
    # The slope in t rises from −(cost of the positive rows) by cost_i where row i enters or leaves the sum.
    bends = np.where(positive, 1.0, -1.0) - values
    order = np.argsort(bends, kind="stable")
    slopes = np.cumsum(costs[order]) - costs[positive].sum()
    flat = 1e-9 * costs.sum()
    first, last = np.searchsorted(slopes, (-flat, flat))
    return float((bends[order[first]] + bends[order[last]]) / 2)


def best_rule(pair: Pair, settings: Settings) -> str:
    """Return the rule most often right in cross-validation, rows counted as they cost; the first among equals."""
    right = dict.fromkeys(MERGED_SET, 0.0)
    for train, test in _inner_folds(pair, settings.n_folds):
        standard = _standard(pair.part(train), settings)
        training, held_out = standard.of_pair(pair.part(train)), standard.of_pair(pair.part(test))
        costs = pair.costs(settings.class_weight)[test]
        initial = initial_hyperplane(training, settings)
        for rule in right:
            refined = _refinement_by_rule(training, replace(settings, rule=rule), standard, initial).refined
            values = held_out.rows @ refined.weights + refined.intercept
            right[rule] += costs[(values > 0) == held_out.positive].sum()
    return max(right, key=lambda rule: round(right[rule] / pair.weights.sum(), 9))


def _standard(pair: Pair, settings: Settings) -> Standard:
    if settings.reference_class is None:
        return Standard.none(pair.rows.shape[1])
    return Standard.of(pair, settings.reference_class, settings.constant_features)


def _refinement_by_rule(pair: Pair, settings: Settings, standard: Standard, initial: Hyperplane) -> Refinement:
    """Return the grouping of largest margin that the rule proposes for a standardised pair."""
    costs = pair.costs(settings.class_weight)
    if isinstance(settings.rule, str):
        proposed = groupings(settings.rule, Terms(initial.weights, pair.rows, pair.positive, pair.weights))
    else:
        of_all = grouping_of(settings.rule, standard.n_features)
        proposed = iter([renumbered(of_all[standard.features])])
    terms = pair.rows * initial.weights
    best: Refinement | None = None
    for grouping in proposed:
        in_merged, n_iter = linear_svm(merged(terms, grouping), pair.positive, costs, settings)
        refined = Hyperplane(in_merged.weights[grouping] * initial.weights, in_merged.intercept)
        if best is None or refined.margin > best.refined.margin:
            best = Refinement(settings.rule, standard, initial, grouping, in_merged, refined, n_iter)
    assert best is not None  # every rule proposes at least one grouping
    return best


def _inner_folds(pair: Pair, n_folds: int) -> Iterator[tuple[Indices, Indices]]:
    """Return folds of different rows, so that no row is on both sides; none where a class has too few for it."""
    different = np.bincount(pair.positive, minlength=2)
    if different.min() < 3:
        label, first = pair.labels.tolist()[different.argmin()], next(iter(MERGED_SET))
        warn(
            f"rule='best' chooses by cross-validation, but class {label!r} has {different.min()} different "
            f"row(s), and 3 are needed. The rule {first!r} is applied; pass more rows to choose.",
        )
        return iter(())
    folds = StratifiedKFold(min(n_folds, int(different.min())), shuffle=True, random_state=0)
    return iter(folds.split(pair.rows, pair.positive))


def _hyperplane_of(estimator: Any, d: int, normalize: bool | float) -> Hyperplane:
    name = type(estimator).__name__
    if not hasattr(estimator, "coef_") or not hasattr(estimator, "intercept_"):
        raise TypeError(
            f"{name} has no coef_ and intercept_ after fitting, so there is no hyperplane to refine. Pass a "
            "linear classifier, e.g. LinearDiscriminantAnalysis, LinearSVC or LogisticRegression."
        )
    weights = np.asarray(estimator.coef_, dtype=np.float64).ravel()
    intercept = np.asarray(estimator.intercept_, dtype=np.float64).ravel()
    if len(weights) != d or len(intercept) != 1:
        raise ValueError(
            f"{name} has {len(weights)} weights and {len(intercept)} intercept(s) for {d} features of two "
            "classes. Pass a linear classifier, which has one hyperplane."
        )
    length = float(np.linalg.norm(weights))
    if not 0 < length < np.inf:
        raise ValueError(
            f"{name} gave weights of length {length}: no hyperplane to refine. Check that some feature "
            "differs between the classes, or pass a less regularised estimator."
        )
    if isinstance(normalize, (bool, np.bool_)):
        divisor = length if normalize else 1.0
        return Hyperplane(weights / divisor, float(intercept[0]) / divisor)
    return Hyperplane(normalize * weights, normalize * float(intercept[0]))
