"""Rule of the posterior map: kernel, ridge and temperature chosen by held-out rows, then fitted to all rows.

For tables with many rows the kernel is chosen on a sample with few landmarks. Ridge and temperature are always chosen
on all rows, with the landmarks of the final rule.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import softmax

from discrim.core.class_places import simplex
from discrim.core.coordinates.basis import Basis, column_variances
from discrim.core.coordinates.choose import EXACT_SIDE, Plan
from discrim.core.cross_validation import Folds, TrainingSet, calibrated, standard_error
from discrim.core.kernel_choice import (
    Candidate,
    Choice,
    FeatureSpaces,
    HeldOutScores,
    best_choice,
    held_out_scores,
    linear_scores,
    refined_candidate,
)
from discrim.core.kernel_rule import PosteriorRule
from discrim.core.landmarks import drawn_landmarks
from discrim.core.moments.class_moments import ClassMoments
from discrim.core.moments.gather import Statistics
from discrim.core.ridge_rules import RidgeRules
from discrim.core.row_hash import Hashes, hash_folds, row_hashes
from discrim.core.spread import Margins
from discrim.tables.rows import LabelledRows

Array = NDArray[np.float64]
Indices = NDArray[np.intp]
CHOICE_ROWS = 2_500  # sample on which the kernel is chosen
CHOICE_LANDMARKS = 300
FINAL_LANDMARKS = 1_000
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
    def from_folds(cls, folds: Folds, choice: Choice) -> HeldOutRows:
        """Collect the held-out scores of a choice made on all rows; equal rows share their mean."""
        rows = np.concatenate([test for _, test in folds.splits.pairs])
        return cls._of(row_hashes(folds.points.X)[rows], choice)

    @classmethod
    def from_sample(cls, total: Statistics, choice: Choice) -> HeldOutRows:
        """Collect the held-out scores for the sample of gathered statistics, of which the first folds were scored."""
        assert total.sample is not None
        drawn = hash_folds(total.sample.hashes, total.gathering.n_folds, total.gathering.seed)
        rows = np.argsort(drawn, kind="stable")[: len(choice.held_out.codes)]
        return cls._of(total.sample.hashes[rows], choice)

    @classmethod
    def _of(cls, of_rows: Hashes, choice: Choice) -> HeldOutRows:
        hashes, which = np.unique(of_rows, return_inverse=True)
        sums = np.zeros((len(hashes), choice.held_out.scores.shape[2]))
        np.add.at(sums, which, choice.held_out.scores[0])
        return cls(hashes, sums / np.bincount(which)[:, None])

    def replace(self, X: Any, scores: Array) -> Array:
        """Return the scores, with those of training rows replaced by their held-out scores."""
        hashes = row_hashes(X)
        at = np.minimum(np.searchsorted(self.hashes, hashes), len(self.hashes) - 1)
        return np.where((self.hashes[at] == hashes)[:, None], self.scores[at], scores)


def is_too_large(n: int, d: int) -> bool:
    """Return True if neither statistics of the columns nor those of the rows fit into memory."""
    return min(n, d) > EXACT_SIDE


def choose_kernel(folds: Folds, priorities: Indices, candidates: Sequence[Candidate], most: int) -> Choice:
    """Choose the kernel on a sample of rows, with few landmarks; refined columns must lead by one standard error."""
    sample = _sample(folds, priorities)
    rows = folds if sample is None else folds.sample(sample)
    known = priorities if sample is None else priorities[sample]
    few = min(most, CHOICE_LANDMARKS)
    linear = any(candidate.is_linear for candidate in candidates)
    coordinates = _coordinates(rows.points) if linear else rows.points
    found = held_out_scores(rows, coordinates, known, candidates, few)
    plain = best_choice(found, rows.splits.repeats)
    candidate = refined_candidate(rows.points, plain)
    if candidate is None:
        return plain
    added = held_out_scores(rows, coordinates, known, [candidate], few, found)
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
    coordinates = _coordinates(folds.points) if linear else folds.points
    found = held_out_scores(folds, coordinates, priorities, [first.candidate], most)
    final = best_choice(found, folds.splits.repeats)
    why = f"{first.why}; with all rows and landmarks, the shrinkage is {final.shrinkage:.2g}"
    return replace(first, why=why), final


def choose_linear_rule(folds: Iterable[TrainingSet]) -> Choice:
    """Choose ridge and temperature of the linear rule from statistics of the folds."""
    return best_choice({Candidate("linear"): list(linear_scores(folds))})


def linear_rule(basis: Basis, moments: ClassMoments, shrinkage: float) -> PosteriorRule:
    """Return the linear rule from statistics in a basis's coordinates."""
    rules = RidgeRules.of(moments, np.array([shrinkage]))
    weights = basis.lift(moments.scaled(rules.weights[0]))
    return PosteriorRule(None, basis.mean(moments), np.ascontiguousarray(weights.T), rules.offsets[0])


def fitted_rule(points: LabelledRows, priorities: Indices, choice: Choice, n_landmarks: int | None) -> PosteriorRule:
    """Return the chosen rule, fitted to all rows."""
    if choice.candidate.is_linear:
        basis = _basis(points)
        return linear_rule(basis, ClassMoments.from_rows(basis.points), choice.shrinkage)
    most = FINAL_LANDMARKS if n_landmarks is None else n_landmarks
    landmarks = points.X[drawn_landmarks(priorities, np.arange(points.shape[0]), most)]
    spaces = FeatureSpaces.of([choice.candidate], points, landmarks)
    (space,), (moments,) = spaces.spaces, spaces.moments(points)
    return PosteriorRule.from_features(space, moments, choice.shrinkage)


def _basis(points: LabelledRows) -> Basis:
    """Return coordinates with at most as many columns as rows."""
    n, d = points.shape
    kind = "rows" if n < d else "features"
    return Plan(kind, f"n={n}, d={d}").build(points, Margins())


def _coordinates(points: LabelledRows) -> LabelledRows:
    return points if is_too_large(*points.shape) else _basis(points).points


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
