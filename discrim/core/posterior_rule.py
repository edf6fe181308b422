"""Rule of the posterior map: kernel, ridge and temperature chosen by held-out rows, then fitted to all rows.

For tables with many rows the kernel is chosen on a sample with few landmarks. Ridge and temperature are always chosen
on all rows, with the landmarks of the final rule.
"""

from __future__ import annotations

import functools
import operator
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import softmax

from discrim.core.class_places import simplex
from discrim.core.coordinates.basis import Basis, Features, column_variances
from discrim.core.cross_validation import Folds, calibrated, gathered_folds, splits_of, standard_error
from discrim.core.kernel_choice import (
    RIDGES,
    Candidate,
    Choice,
    FeatureSpaces,
    HeldOutScores,
    PosteriorRule,
    best_choice,
    column_scales,
    held_out_scores,
    in_few_columns,
    linear_scores,
    rule_scores,
)
from discrim.core.landmarks import FixedFeatures, content_priorities, drawn_landmarks
from discrim.core.moments.class_moments import ClassMoments
from discrim.core.moments.gather import Statistics
from discrim.core.moments.row_sample import RowSample
from discrim.core.ridge_rules import RidgeRules
from discrim.core.row_hash import Hashes, hash_folds, row_hashes
from discrim.tables.rows import LabelledRows, block_slices

Array = NDArray[np.float64]
Indices = NDArray[np.intp]
CHOICE_ROWS = 2_500  # sample on which the kernel is chosen
CHOICE_LANDMARKS = 300
FINAL_LANDMARKS = 1_000
REFINED_COLUMNS, REFINED_WEIGHT = 20, 200  # least number of columns, and least total weight of the rows
SHARPNESS = 2.0
SHARPNESSES = (SHARPNESS, 3.0, 4.0, 6.0, 8.0, 12.0)  # for sharpness="auto"
LOST_ACCURACY = 0.005  # share of held-out rows that the smallest sharpness may classify worse than the best
TEMPERED_RADIUS = 0.8  # radius of the median held-out row for sharpness="tempered"


@dataclass(frozen=True, eq=False)
class HeldOutRows:
    """Scores of training rows by rules fitted without them, looked up by the contents of the rows."""

    hashes: NDArray[np.uint64]  # sorted and unique
    scores: Array

    @classmethod
    def of(cls, of_rows: Hashes, choice: Choice) -> HeldOutRows:
        """Build from the hashes of the rows that a choice held out; equal rows share their mean."""
        hashes, which = np.unique(of_rows, return_inverse=True)
        sums = np.zeros((len(hashes), choice.held_out.scores.shape[2]))
        np.add.at(sums, which, choice.held_out.scores[0])
        return cls(hashes, sums / np.bincount(which)[:, None])

    def replace(self, X: Any, scores: Array) -> Array:
        """Return the scores, with those of training rows replaced by their held-out scores."""
        hashes = row_hashes(X)
        at = np.minimum(np.searchsorted(self.hashes, hashes), len(self.hashes) - 1)
        return np.where((self.hashes[at] == hashes)[:, None], self.scores[at], scores)


def choose_kernel(folds: Folds, priorities: Indices, candidates: Sequence[Candidate], most: int) -> Choice:
    """Choose the kernel on a sample of rows, with few landmarks; refined columns must lead by one standard error."""
    sample = _sample(folds, priorities)
    rows = folds if sample is None else folds.sample(sample)
    known = priorities if sample is None else priorities[sample]
    few = min(most, CHOICE_LANDMARKS)
    found = held_out_scores(rows, known, candidates, few)
    plain = best_choice(found, rows.splits.repeats)
    is_small = rows.points.shape[1] < REFINED_COLUMNS or rows.points.class_totals.sum() < REFINED_WEIGHT
    if is_small or not plain.candidate.scaled:
        return plain
    candidate = replace(plain.candidate, refined=plain.shrinkage)
    added = held_out_scores(rows, known, [candidate], few, found)
    refined = best_choice(added, rows.splits.repeats)
    error = standard_error(plain.accuracy, plain.held_out.total_weight / rows.splits.repeats)
    is_whole = len(added[candidate]) == len(rows.splits.pairs)
    is_ahead = is_whole and refined.accuracy > plain.accuracy + error
    return replace(refined if is_ahead else plain, tried=(*plain.tried, *refined.tried))


def choose_rule(
    folds: Folds, priorities: Indices, candidates: Sequence[Candidate], n_landmarks: int | None
) -> tuple[Choice, Choice]:
    """Return the choice on few rows and landmarks, and the choice of ridge and temperature on all."""
    most = FINAL_LANDMARKS if n_landmarks is None else n_landmarks
    first = choose_kernel(folds, priorities, candidates, most)
    linear = first.candidate.is_linear
    distinct = max(len(np.unique(priorities[training])) for training, _ in folds.splits.pairs)
    if _sample(folds, priorities) is None and (linear or min(distinct, most) <= CHOICE_LANDMARKS):
        return first, first
    found = held_out_scores(folds, priorities, [first.candidate], most)
    final = best_choice(found, folds.splits.repeats)
    why = f"{first.why}; with all rows and landmarks, the shrinkage is {final.shrinkage:.2g}"
    return replace(first, why=why), final


def linear_rule(basis: Basis, moments: ClassMoments, shrinkage: float) -> PosteriorRule:
    """Return the linear rule from statistics in a basis's coordinates."""
    rules = RidgeRules.of(moments, np.array([shrinkage]))
    weights = basis.lift(moments.scaled(rules.weights[0]))
    return PosteriorRule(None, basis.mean(moments), np.ascontiguousarray(weights.T), rules.offsets[0])


def fitted_rule(points: LabelledRows, priorities: Indices, choice: Choice, n_landmarks: int | None) -> PosteriorRule:
    """Return the chosen rule, fitted to all rows."""
    if choice.candidate.is_linear:
        basis = in_few_columns(points)
        return linear_rule(basis, ClassMoments.from_rows(basis.points), choice.shrinkage)
    most = FINAL_LANDMARKS if n_landmarks is None else n_landmarks
    landmarks = points.X[drawn_landmarks(priorities, np.arange(points.shape[0]), most)]
    spaces = FeatureSpaces.of([choice.candidate], landmarks, column_scales(choice.candidate, points, landmarks))
    (space,), (moments,) = spaces.spaces, spaces.moments(points)
    return PosteriorRule.from_features(space, moments, choice.shrinkage)


def _sample(folds: Folds, priorities: Indices) -> Indices | None:
    """Return the rows on which to choose, stratified by class and selected by content; None for all rows.

    Equal rows of one class are taken together, because a repeated row is equivalent to a weight.
    """
    codes = folds.points.codes
    if len(codes) <= CHOICE_ROWS:
        return None
    pairs, which = np.unique(np.stack([codes, priorities], axis=1), axis=0, return_inverse=True)
    if len(pairs) <= CHOICE_ROWS:
        return None
    sizes = np.bincount(pairs[:, 0])
    within_class = np.arange(len(pairs)) - (np.cumsum(sizes) - sizes)[pairs[:, 0]]
    share = (within_class + 0.5) / sizes[pairs[:, 0]]
    taken = np.zeros(len(pairs), dtype=bool)
    taken[np.lexsort((pairs[:, 1], share))[:CHOICE_ROWS]] = True
    return np.flatnonzero(taken[which.ravel()])


# ---------------------------------------------------------------------- tables with many rows
#
#     sample → Look: kernel, landmarks
#     all rows → class moments of φ(x) of each fold → ridge, temperature, rule
#
# With fixed landmarks φ is a fixed map, so the moments of any parts of a table add up. Folds are derived from the
# contents of the rows and are scored on rows of the sample.

LARGE_ROWS = 5_000  # above this number of distinct rows, landmarks are fixed and moments of all rows are summed
ROWS_PER_LANDMARK = 10
MAX_LANDMARKS = 4_000
SCORED_ROWS = 5_000  # held-out rows that suffice to choose ridge and temperature


def landmark_count(n_rows: int, n_landmarks: int | None, n_folds: int, max_memory: int) -> int:
    """Return the number of landmarks: a tenth of the rows, between 1,000 and 4,000, limited by memory for the folds."""
    if n_landmarks is not None:
        return n_landmarks
    fitting = int(np.sqrt(max_memory / (8 * (n_folds + 4))))  # matrices held at once
    return max(2, min(max(n_rows // ROWS_PER_LANDMARK, FINAL_LANDMARKS), MAX_LANDMARKS, fitting))


def needs_landmarks(sample: RowSample) -> bool:
    """Return True if a table has more distinct rows than a map is fitted to directly."""
    return len(sample) > LARGE_ROWS or not sample.is_whole


@dataclass(frozen=True, eq=False)
class Look:
    """Choice of a kernel on a sample, and the features whose moments are summed.

    features : None for the columns themselves
    """

    choice: Choice | None  # None if only the ridge of a linear rule is to be chosen
    features: FixedFeatures | None

    @classmethod
    def at_sample(
        cls,
        sample: LabelledRows,
        candidates: Sequence[Candidate],
        cv: Any,
        seed: int,
        n_landmarks: int,
        units: tuple[Array, Array] | None = None,
    ) -> Look:
        """Choose on a sample of rows.

        units : shift and scale of a scaler that was applied to the sample
        """
        priorities = content_priorities(sample.X, seed)
        folds = Folds(sample, splits_of(sample, cv, None))
        choice = choose_kernel(folds, priorities, candidates, min(n_landmarks, CHOICE_LANDMARKS))
        if choice.candidate.is_linear:
            return cls(choice, None)
        landmarks = sample.X[drawn_landmarks(priorities, np.arange(sample.shape[0]), n_landmarks)]
        candidate = choice.candidate
        (space,) = FeatureSpaces.of([candidate], landmarks, column_scales(candidate, sample, landmarks)).spaces
        return cls(choice, FixedFeatures.of(space, *(units or ())))

    def rule(self, total: Statistics) -> tuple[Choice, PosteriorRule, HeldOutRows]:
        """Choose ridge and temperature by the folds, and fit the rule to all rows."""
        moments = total.moments
        if self.features is None:
            choice = best_choice({Candidate("linear"): list(linear_scores(gathered_folds(total)))})
            rule = linear_rule(Features.from_moments(moments), moments, choice.shrinkage)
        else:
            assert self.choice is not None
            assert self.features.space is not None
            choice = best_choice({self.choice.candidate: list(_scores_of_sample(total, self.features))})
            rule = PosteriorRule.from_features(self.features.space, moments, choice.shrinkage)
        assert total.sample is not None
        drawn = hash_folds(total.sample.hashes, total.gathering.n_folds, total.gathering.seed)
        scored = np.argsort(drawn, kind="stable")[: len(choice.held_out.codes)]  # rows of the first folds
        return choice, rule, HeldOutRows.of(total.sample.hashes[scored], choice)


def _scores_of_sample(total: Statistics, features: FixedFeatures) -> Iterator[HeldOutScores]:
    """Yield scores of the sample's rows by rules of all other folds, fold by fold until they suffice."""
    assert total.sample is not None
    assert features.space is not None
    asked, classes = total.gathering, total.moments.classes
    rows = total.sample.with_classes(classes)
    drawn, scored = hash_folds(total.sample.hashes, asked.n_folds, asked.seed), 0
    for fold in range(asked.n_folds):
        test = rows.select(np.flatnonzero(drawn == fold))
        if test.shape[0] == 0 or scored >= SCORED_ROWS:
            continue
        # one sum at a time, because those of all folds would not fit into memory
        others = [part.with_classes(classes) for at, part in enumerate(total.fold_moments) if at != fold]
        rules = RidgeRules.of(functools.reduce(operator.add, others), RIDGES)
        parts = block_slices(test.shape[0], len(features.space.factor))
        yield from rule_scores([rules], test, lambda X: [features(X)], parts)
        scored += test.shape[0]


# ---------------------------------------------------------------------- derived from the choice, for the map


def class_confusions(held_out: HeldOutScores, temperature: float, total_weight: float) -> Array:
    """Compute the weighted mean posterior of each class's rows; a class never held out gets a unit vector."""
    posteriors = calibrated(held_out.scores[0], temperature, total_weight)
    n_classes = posteriors.shape[1]
    found = np.eye(n_classes)
    for c in range(n_classes):
        own = held_out.codes == c
        if own.any():
            found[c] = np.average(posteriors[own], axis=0, weights=held_out.weights[own])
    return found


def weight_covariance(choice: Choice) -> Array:
    """Compute the covariance (C×C) of the weights q of held-out rows, at a fixed sharpness so all maps share axes."""
    q = softmax(choice.held_out.scores[0] * (SHARPNESS / choice.temperature), axis=1)
    return np.cov(q, rowvar=False, aweights=choice.held_out.weights, ddof=0)


def accurate_sharpness(choice: Choice, places: Array) -> float:
    """Return the smallest sharpness at which the nearest place predicts held-out rows nearly as well as at any other.

    In few dimensions the average of two places may lie next to a third. A larger sharpness moves such rows to one of
    the two. Places at the vertices of a simplex do not need it: there the nearest place is the most probable class.
    """
    if places.shape[1] == len(places) - 1:
        return SHARPNESS
    held_out, accuracies = choice.held_out, []
    for sharpness in SHARPNESSES:
        z = softmax(held_out.scores[0] * (sharpness / choice.temperature), axis=1) @ places
        nearest = (z @ places.T - np.einsum("ck,ck->c", places, places) / 2).argmax(axis=1)
        accuracies.append(np.average(nearest == held_out.codes, weights=held_out.weights))
    enough = np.array(accuracies) >= max(accuracies) - LOST_ACCURACY - 1e-12
    return SHARPNESSES[int(enough.argmax())]


def tempered_sharpness(choice: Choice, places: Array) -> float:
    """Return the sharpness at which the median held-out row has the tempered radius, by bisection of its logarithm."""
    if places.shape[1] == 1:  # inner places of a line have small radii: use those of a simplex
        places = simplex(len(places))
    scores = choice.held_out.scores[0] / choice.temperature
    # exponents s of 2^s: at the lower end all rows are in the centre, at the upper end each is at a place
    low, high = -10.0, 6.0
    for _ in range(30):
        middle = (low + high) / 2
        radii = np.linalg.norm(softmax(2.0**middle * scores, axis=1) @ places, axis=1)
        radius = np.quantile(radii, 0.5, method="inverted_cdf", weights=choice.held_out.weights)
        low, high = (middle, high) if radius < TEMPERED_RADIUS else (low, middle)
    return float(2.0**middle)


def column_deviations(rows: LabelledRows) -> Array:
    """Compute the standard deviation of every column."""
    cells = rows.X.data if rows.is_sparse else rows.X
    exponent = int(np.frexp(float(np.abs(cells).max(initial=0.0)))[1])
    return np.ldexp(np.sqrt(column_variances(rows, exponent)), exponent)
