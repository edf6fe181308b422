"""Refinement of one hyperplane between two classes: from weights a and rows of two classes to merged terms.

    rows of two classes → standardised to one of them → a of a linear classifier → groups of terms → SVM → b

b_k a_i is then the refined hyperplane in the standardised space. A hyperplane Σ_i a_i x_i = c is refined by adding some
of its terms into groups, u_k = Σ_{i∈I_k} a_i x_i, and separating the classes again in the space of u. A rule proposes
the groups. Most rules merge one set I and keep all other terms separate; the exhaustive ones propose many groupings, of
which the one with the largest margin is used. A grouping is an array with the group number of each feature.
"""

from __future__ import annotations

import itertools
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import StratifiedKFold
from sklearn.svm import SVC
from sklearn.utils.validation import has_fit_parameter

from discrim.estimators.lda import FisherLDA
from discrim.warn_once import warn

Floats = NDArray[np.float64]
Indices = NDArray[np.intp]
Mask = NDArray[np.bool_]
Grouping = NDArray[np.intp]

MAX_FEATURES_TO_SPLIT = 16  # 2¹⁵ − 1 splits, each with an SVM: about a minute for a hundred rows
SLACK = 1e-9  # relative tolerance when comparing sums, or a discriminant with itself: rounding must not decide
ROUNDING = 1e-12  # relative error of a mean of equal values
COLUMNS_AT_ONCE = 64
CONSTANT = 1e-10  # deviations below this share of the largest value are rounding
MIN_SCALE = 1e-305  # a weight divided by a smaller deviation overflows
QUARTER = 0.25  # exact factor that keeps differences of large numbers finite


@dataclass(frozen=True)
class Pair:
    """Distinct rows of two classes with their weights and counts."""

    rows: Floats
    positive: Mask
    weights: Floats
    counts: Indices
    labels: NDArray[Any]  # labels of the negative and of the positive rows
    weighted: bool  # True if weights were given; False if they are the counts

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
    """Standardisation z = (x − centre)/scale of the features that are kept."""

    n_features: int
    features: Indices
    centre: Floats
    scale: Floats
    lost: Indices  # dropped features that vary in the class that is not the reference

    @classmethod
    def of(cls, pair: Pair, reference_class: str | None, constant_features: str) -> Standard:
        """Build with mean 0 and variance 1 in the smaller ("minority") or larger ("majority") class; None: as is."""
        if reference_class is None:
            d = pair.rows.shape[1]
            return cls(d, np.arange(d), np.zeros(d), np.ones(d), np.arange(0))
        of_class = _reference(pair, reference_class)
        centre, scale = _centre_and_scale(pair.rows[of_class], pair.weights[of_class])
        least = np.maximum(CONSTANT * np.abs(pair.rows).max(axis=0), MIN_SCALE)
        constant = np.flatnonzero(scale <= least)
        overall = _centre_and_scale(pair.rows[:, constant], pair.weights)[1]
        lost = constant[overall > least[constant]]
        all_constant = len(constant) == len(centre)
        if all_constant and not len(lost):
            low, high = pair.labels.tolist()
            raise ValueError(
                f"X must hold rows that differ between classes {low!r} and {high!r}; got {pair.counts.sum()} rows that "
                f"are equal (to {CONSTANT:g} of their size). Check the columns, subtract a common offset, or leave a "
                "class out."
            )
        if all_constant and constant_features != "scale":
            warn(
                f"All features are constant in class {pair.labels.tolist()[int(pair.positive[of_class][0])]!r}, the "
                "reference class, so they are scaled by their deviation over both classes. Pass more distinct rows of "
                "that class, or reference_class=None."
            )
        if all_constant or constant_features == "scale":
            scale[constant] = overall
            lost = lost[:0]
        kept = np.flatnonzero(scale > least)
        return cls(len(centre), kept, centre[kept], scale[kept], lost)

    def __call__(self, rows: Floats) -> Floats:
        standardised = QUARTER * rows[:, self.features]
        standardised -= QUARTER * self.centre
        standardised /= QUARTER * self.scale
        return standardised

    def apply(self, pair: Pair) -> Pair:
        return replace(pair, rows=self(pair.rows))

    def undone(self, hyperplane: Hyperplane) -> tuple[Floats, float]:
        """Return a hyperplane in z as weights and intercept of the same hyperplane in all features of x."""
        coef = np.zeros(self.n_features)
        coef[self.features] = hyperplane.weights / self.scale
        return coef, float(hyperplane.intercept - coef[self.features] @ self.centre)


def _reference(pair: Pair, which: str) -> Mask:
    """Return the rows of the smaller (or larger) class; if equal, of the class with the wider spread."""
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
    """Return the mean and population deviation of each column, computed in a unit that prevents overflow."""
    shares = weights / weights.sum()
    centre = shares @ rows
    away = QUARTER * rows - QUARTER * centre
    unit = np.maximum(away.max(axis=0), -away.min(axis=0))
    unit[unit == 0] = 1.0
    away /= unit
    return centre, unit * np.sqrt(shares @ np.square(away, out=away)) / QUARTER


Rule = str | Sequence[Sequence[int]]


@dataclass(frozen=True)
class Hyperplane:
    """Hyperplane weightsᵀz + intercept = 0 with margin 2/‖weights‖; the margin is 0 if all weights are 0."""

    weights: Floats
    intercept: float

    @property
    def margin(self) -> float:
        length = float(np.linalg.norm(self.weights))
        return 2 / length if length > 0 else 0.0


@dataclass(frozen=True)
class Refinement:
    """Refinement of one pair of classes; all weights refer to the standardised features."""

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


def refinement(pair: Pair, rule: Rule, model: Any) -> Refinement:
    """Return the refinement by a rule, or by the best one; the other parameters are those of `model`."""
    rule = best_rule(pair, model) if rule == "best" else rule
    standard = Standard.of(pair, model.reference_class, model.constant_features)
    standardised = standard.apply(pair)
    return _refinement_by_rule(standardised, rule, model, standard, initial_hyperplane(standardised, model))


def initial_hyperplane(pair: Pair, model: Any) -> Hyperplane:
    """Compute a and −c of the linear classifier fitted to the standardised rows."""
    # Fisher's discriminant by default; classes with equal costs get equal priors
    default = FisherLDA(priors="equal" if model.class_weight == "balanced" else None)
    estimator = default if model.estimator is None else clone(model.estimator)
    labels = pair.labels[pair.positive.astype(np.intp)]
    if not pair.weighted:  # repeat rows by their counts, so the estimator gets the original rows
        repeated = np.repeat(np.arange(len(labels)), pair.counts)
        estimator.fit(pair.rows[repeated], labels[repeated])
    elif has_fit_parameter(estimator, "sample_weight"):
        estimator.fit(pair.rows, labels, sample_weight=pair.weights)
    else:
        raise TypeError(
            f"sample_weight must be None for estimator={type(estimator).__name__}, whose fit takes no weights. Leave "
            "the weights out, or pass an estimator that takes them, e.g. LogisticRegression or LinearSVC."
        )
    return _hyperplane_of(estimator, pair.rows.shape[1], model.normalize)


def linear_svm(rows: Floats, positive: Mask, costs: Floats, model: Any) -> tuple[Hyperplane, int]:
    """Minimise ½‖b‖² + C Σ_i cost_i max(0, 1 − y_i(bᵀu_i − c̃)), without a penalty on the intercept −c̃."""
    wide = rows.shape[1] > rows.shape[0]  # then the n×n Gram matrix suffices: one matrix product
    svm = SVC(C=model.C, kernel="precomputed" if wide else "linear", tol=model.tol, max_iter=model.max_iter)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # n_iter shows it, and the fit warns once
        svm.fit(rows @ rows.T if wide else rows, positive, sample_weight=costs)
    weights = svm.dual_coef_[0] @ rows[svm.support_]
    return Hyperplane(weights, best_intercept(rows @ weights, positive, costs)), int(svm.n_iter_[0])


def best_intercept(values: Floats, positive: Mask, costs: Floats) -> float:
    """Return the midpoint of all t that minimise Σ_i cost_i max(0, 1 − y_i(values_i + t)).

    If no row lies on its margin, the SVM's intercept is only determined up to an interval, and a solver's result
    depends on the order of the rows.
    """
    # The slope in t rises from −(cost of the positive rows) by cost_i at each breakpoint, where row i enters or leaves.
    bends = np.where(positive, 1.0, -1.0) - values
    order = np.argsort(bends, kind="stable")
    slopes = np.cumsum(costs[order]) - costs[positive].sum()
    flat = 1e-9 * costs.sum()
    first, last = np.searchsorted(slopes, (-flat, flat))
    return float((bends[order[first]] + bends[order[last]]) / 2)


def best_rule(pair: Pair, model: Any) -> str:
    """Return the rule with the highest cross-validated accuracy, weighted by costs; the first of ties."""
    right = dict.fromkeys(MERGED_SET, 0.0)
    for train, test in _inner_folds(pair, model.n_folds):
        standard = Standard.of(pair.part(train), model.reference_class, model.constant_features)
        training, held_out = standard.apply(pair.part(train)), standard.apply(pair.part(test))
        costs = pair.costs(model.class_weight)[test]
        initial = initial_hyperplane(training, model)
        for rule in right:
            refined = _refinement_by_rule(training, rule, model, standard, initial).refined
            values = held_out.rows @ refined.weights + refined.intercept
            right[rule] += costs[(values > 0) == held_out.positive].sum()
    return max(right, key=lambda rule: round(right[rule] / pair.weights.sum(), 9))


def _refinement_by_rule(pair: Pair, rule: Rule, model: Any, standard: Standard, initial: Hyperplane) -> Refinement:
    """Return the grouping with the largest margin among those that the rule proposes for a standardised pair."""
    costs = pair.costs(model.class_weight)
    if isinstance(rule, str):
        proposed = groupings(rule, Terms(initial.weights, pair.rows, pair.positive, pair.weights))
    else:
        grouping = grouping_of(rule, standard.n_features)
        proposed = iter([np.unique(grouping[standard.features], return_inverse=True)[1]])
    terms = pair.rows * initial.weights
    best: Refinement | None = None
    for grouping in proposed:
        in_merged, n_iter = linear_svm(merged(terms, grouping), pair.positive, costs, model)
        refined = Hyperplane(in_merged.weights[grouping] * initial.weights, in_merged.intercept)
        if best is None or refined.margin > best.refined.margin:
            best = Refinement(rule, standard, initial, grouping, in_merged, refined, n_iter)
    assert best is not None  # every rule proposes at least one grouping
    return best


def _inner_folds(pair: Pair, n_folds: int) -> Iterator[tuple[Indices, Indices]]:
    """Return folds of distinct rows, so no row is on both sides; none if a class has too few rows."""
    different = np.bincount(pair.positive, minlength=2)
    if different.min() < 3:
        label, first = pair.labels.tolist()[different.argmin()], next(iter(MERGED_SET))
        warn(
            f"rule='best' needs 3 distinct rows of each class for cross-validation; class {label!r} has "
            f"{different.min()}. The rule {first!r} is used instead. Pass more rows to choose a rule."
        )
        return iter(())
    folds = StratifiedKFold(min(n_folds, int(different.min())), shuffle=True, random_state=0)
    return iter(folds.split(pair.rows, pair.positive))


def _hyperplane_of(estimator: Any, d: int, normalize: bool | float) -> Hyperplane:
    name = type(estimator).__name__
    if not hasattr(estimator, "coef_") or not hasattr(estimator, "intercept_"):
        raise TypeError(
            f"estimator must have coef_ and intercept_ after fitting; got {name}. Pass a linear classifier, e.g. "
            "LinearDiscriminantAnalysis, LinearSVC or LogisticRegression."
        )
    weights = np.asarray(estimator.coef_, dtype=np.float64).ravel()
    intercept = np.asarray(estimator.intercept_, dtype=np.float64).ravel()
    if len(weights) != d or len(intercept) != 1:
        raise ValueError(
            f"estimator must have one hyperplane for {d} features of two classes; got {len(weights)} weights and "
            f"{len(intercept)} intercept(s) from {name}. Pass a linear classifier."
        )
    length = float(np.linalg.norm(weights))
    if not 0 < length < np.inf:
        raise ValueError(
            f"estimator must have nonzero finite weights; got length {length} from {name}. Check that some feature "
            "differs between the classes, or pass a less regularised estimator."
        )
    if isinstance(normalize, (bool, np.bool_)):
        divisor = length if normalize else 1.0
        return Hyperplane(weights / divisor, float(intercept[0]) / divisor)
    return Hyperplane(normalize * weights, normalize * float(intercept[0]))


# ---------------------------------------------------------------------- rules for merging terms


@dataclass(frozen=True)
class Terms:
    """Terms a_i x_i of a hyperplane for the rows of two classes."""

    weights: Floats  # a
    rows: Floats  # x, n×d
    positive: NDArray[np.bool_]  # rows of the class T+
    row_weights: Floats


def groupings(rule: str, terms: Terms) -> Iterator[Grouping]:
    """Yield the groupings that a rule proposes, at least one.

    The exhaustive ones are all 2^(d−1) − 1 splits into two groups, and all d(d−1)/2 that merge two of d features.
    """
    d = len(terms.weights)
    if rule in MERGED_SET:
        yield one_merged(MERGED_SET[rule](terms), d)
    elif d == 1:
        yield np.zeros(1, dtype=np.intp)
    elif rule == "exhaustive-splits":
        yield from (code >> np.arange(d)[::-1] & 1 for code in range(1, 2 ** (d - 1)))
    else:
        yield from (one_merged(np.array(pair), d) for pair in itertools.combinations(range(d), 2))


def heavier_sign(terms: Terms) -> Indices:
    """Return the features whose terms a_i(μ_−i − μ_+i) have the sign with the larger sum (Algorithm 2).

    With rows standardised to T+ this is a_i μ_−i; the difference of the means does not depend on the standardisation. A
    feature whose class means are equal up to rounding has no sign and stays separate.
    """
    weights = (np.where(side, terms.row_weights, 0.0) for side in (~terms.positive, terms.positive))
    negative, positive = (of_class @ terms.rows / of_class.sum() for of_class in weights)
    apart = negative - positive
    apart[np.abs(apart) <= ROUNDING * np.abs(terms.rows).max(axis=0)] = 0.0
    gaps = terms.weights * apart
    above, below = gaps[gaps > 0].sum(), -gaps[gaps < 0].sum()
    return np.flatnonzero(gaps > 0 if above > (1 + SLACK) * below else gaps < 0)


# Features that each rule merges. The runs are those of Algorithm 1: as long as the sum discriminates best.
MERGED_SET: dict[str, Callable[[Terms], Indices]] = {
    "sign": heavier_sign,
    "discriminant-min": lambda terms: _discriminating_run(terms, np.argsort(_sizes(terms.weights), kind="stable")),
    "discriminant-max": lambda terms: _discriminating_run(terms, np.argsort(-_sizes(terms.weights), kind="stable")),
    "min": lambda terms: np.argsort(_sizes(terms.weights), kind="stable")[:2],
    "max": lambda terms: np.argsort(-_sizes(terms.weights), kind="stable")[:2],
    "none": lambda terms: np.empty(0, dtype=np.intp),  # the features are only rescaled, x_i → a_i x_i
}
RULES = (*MERGED_SET, "exhaustive-splits", "exhaustive-pairs")


def discriminant(values: Floats, positive: NDArray[np.bool_], row_weights: Floats) -> Floats:
    """Compute D = (μ₊ − μ₋)² / (σ₊² + σ₋²) for each column; infinite if both classes are constant and different.

    It does not depend on the column's scale and origin (equation 6 of the paper says that it grows with |s|).
    """
    of_class = positive.astype(np.intp)
    shares = np.zeros((2, len(values)))  # two matrix products process all columns at once
    shares[of_class, np.arange(len(values))] = row_weights
    shares /= shares.sum(axis=1, keepdims=True)
    means = shares @ values
    away = values - means[of_class]
    gap, spread = means[1] - means[0], (shares @ np.square(away, out=away)).sum(axis=0)
    squared, rounding = np.square(gap), np.square(ROUNDING * np.abs(values).max(axis=0))
    squared[squared <= rounding] = 0.0
    spread[spread <= rounding] = 0.0
    return np.divide(squared, spread, out=np.where(squared > 0, np.inf, 0.0), where=spread > 0)


def one_merged(merged: Indices, d: int) -> Grouping:
    """Return the grouping with the merged features as group 0 and each other feature as its own group, in order."""
    grouping = np.zeros(d, dtype=np.intp)
    alone = np.ones(d, dtype=bool)
    alone[merged] = len(merged) < 2
    first = 0 if alone.all() else 1
    grouping[alone] = np.arange(first, first + alone.sum())
    return grouping


def grouping_of(groups: Sequence[Sequence[int]], d: int) -> Grouping:
    """Return the grouping for given lists of features; features in none of them stay separate."""
    grouping = np.full(d, -1, dtype=np.intp)
    for number, group in enumerate(groups):
        for feature in group:
            if not -1 < feature < d:
                raise ValueError(f"rule must contain feature indices from 0 to {d - 1}; got {feature}.")
            if grouping[feature] >= 0:
                raise ValueError(f"rule must contain every feature at most once; got feature {feature} twice.")
            grouping[feature] = number
    alone = grouping < 0
    grouping[alone] = np.arange(len(groups), len(groups) + alone.sum())
    return grouping


def groups_of(grouping: Grouping, features: Indices) -> list[list[int]]:
    """Return the groups as lists of features; `features` maps positions of the grouping to features."""
    order = np.argsort(grouping, kind="stable")
    parts = np.split(features[order], np.flatnonzero(np.diff(grouping[order])) + 1)
    return [part.tolist() for part in parts]


def merged(values: Floats, grouping: Grouping) -> Floats:
    """Return the columns summed by group: u_k = Σ_{i∈I_k} values_i."""
    n_groups = int(grouping.max()) + 1
    order = np.argsort(grouping, kind="stable")
    if n_groups == len(grouping):
        return values[:, order]
    starts = np.searchsorted(grouping[order], np.arange(n_groups))
    return np.add.reduceat(values[:, order], starts, axis=1)


def _sizes(weights: Floats) -> Floats:
    """Return |a_i| to ten digits, because duplicate columns have equal weights up to rounding and must tie."""
    sizes = np.abs(weights)
    return np.round(sizes / sizes.max(), 10)


def _discriminating_run(terms: Terms, order: Indices) -> Indices:
    """Return the longest prefix of `order` in which D(Σ_{i∈I} a_i x_i) ≥ D(x_i) for all i in I, at every step.

    Running sums require one pass over the rows. Zero weights are skipped, because they add nothing.
    """
    order = order[_sizes(terms.weights)[order] > 0]
    total = np.zeros(len(terms.rows))
    best_alone = 0.0
    for start in range(0, len(order), COLUMNS_AT_ONCE):
        columns = order[start : start + COLUMNS_AT_ONCE]
        features = terms.rows[:, columns]
        sums = total[:, None] + np.cumsum(features * terms.weights[columns], axis=1)
        alone = discriminant(features, terms.positive, terms.row_weights)
        alone = np.maximum(np.maximum.accumulate(alone), best_alone)
        holds = discriminant(sums, terms.positive, terms.row_weights) >= alone * (1 - SLACK)
        if not holds.all():
            return order[: start + int(np.argmin(holds))]
        total, best_alone = sums[:, -1], alone[-1]
    return order
