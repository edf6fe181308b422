"""The classifier behind the posterior map: kernel, ridge and temperature as held-out rows choose them, then all rows.

    a_c(x) = Σ_l B_lc k(x, l) + b_c      with landmarks l; the columns themselves for a linear rule

Tables of many rows choose the kernel on some of them, with few landmarks; ridge and temperature always on all rows and
with the landmarks of the final rule.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from scipy.special import softmax

from discrim.core.calibration import calibrated
from discrim.core.class_places import simplex
from discrim.core.coordinates.basis import Basis, column_variances
from discrim.core.coordinates.choose import EXACT_SIDE, Plan
from discrim.core.cross_validation import Folds, TrainingSet
from discrim.core.kernel_choice import (
    Candidate,
    Choice,
    FeatureSpaces,
    HeldOutScores,
    chosen,
    held_out_scores,
    linear_scores,
)
from discrim.core.landmarks import GRADIENTS, LandmarkKernel, drawn_landmarks
from discrim.core.margin_vectors import Margins
from discrim.core.moments.class_moments import ClassMoments
from discrim.core.moments.gather import Statistics
from discrim.core.ridge_rules import RidgeRules
from discrim.tables.row_hash import Hashes, hash_folds, row_hashes
from discrim.tables.rows import LabelledRows, block_slices

Array = NDArray[np.float64]
Indices = NDArray[np.intp]
CHOICE_ROWS = 2_500  # on which the kernel is chosen
CHOICE_LANDMARKS = 300
FINAL_LANDMARKS = 1_000
SHARPNESS = 2.0
TEMPERED_RADIUS = 0.8  # of the median held-out row, for sharpness="tempered"


@dataclass(frozen=True, eq=False)
class PosteriorRule:
    """Scores of the classes: `kernel` None for a linear rule, which takes `centre` off the rows."""

    kernel: LandmarkKernel | None
    centre: Array
    coefficients: Array  # (m or d)×C
    offsets: Array

    def scores(self, X: Any) -> Array:
        """a_c(x), n×C."""
        if self.kernel is None and sp.issparse(X):
            return np.asarray(X @ self.coefficients) + (self.offsets - self.centre @ self.coefficients)
        result = np.empty((X.shape[0], len(self.offsets)))
        for part in block_slices(X.shape[0], len(self.coefficients)):
            if self.kernel is None:
                features = np.subtract(X[part], self.centre, dtype=np.float64)
            else:
                features = self.kernel(X[part])
            result[part] = features @ self.coefficients + self.offsets
        return result

    @property
    def name(self) -> str:
        """The kernel, and the number of landmarks."""
        if self.kernel is None:
            return "linear ridge rule"
        return f"ridge rule of a kernel ({self.kernel.name}) with {self.kernel.landmarks.shape[0]} landmarks"

    @property
    def has_gradients(self) -> bool:
        """True if the scores can be differentiated."""
        return self.kernel is None or self.kernel.name in GRADIENTS

    def effects(self, X: Any, weights: Sequence[Array], spread: Array) -> list[Array]:
        """Compute Σ_c w_nc ∂a_c(x_n)/∂x times the spread of each column, n×d, for each of the weights (n×C)."""
        return [self.gradients(X, one) * spread for one in weights]

    def gradients(self, X: Any, weights: Array) -> Array:
        """Compute Σ_c w_nc ∂a_c(x_n)/∂x for every row (n×d), where `weights` is n×C."""
        if self.kernel is None:
            return weights @ self.coefficients.T
        result = np.empty(X.shape)
        for part in block_slices(X.shape[0], len(self.coefficients)):
            result[part] = self.kernel.gradients(X[part], weights[part] @ self.coefficients.T)
        return result


@dataclass(frozen=True, eq=False)
class HeldOutRows:
    """Scores of training rows by rules that were fitted without them, found by the content of the rows."""

    hashes: NDArray[np.uint64]  # sorted, each once
    scores: Array

    @classmethod
    def from_folds(cls, folds: Folds, choice: Choice) -> HeldOutRows:
        """Collect the held-out scores of a choice that all rows took part in; equal rows share their mean."""
        rows = np.concatenate([test for _, test in folds.splits.pairs])
        return cls._of(row_hashes(folds.points.X)[rows], choice)

    @classmethod
    def from_sample(cls, total: Statistics, choice: Choice) -> HeldOutRows:
        """Collect the same for the sample of gathered statistics, the first folds of which were scored."""
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
        """Return the scores with those of training rows replaced by their held-out ones."""
        hashes = row_hashes(X)
        at = np.minimum(np.searchsorted(self.hashes, hashes), len(self.hashes) - 1)
        return np.where((self.hashes[at] == hashes)[:, None], self.scores[at], scores)


def is_too_large(n: int, d: int) -> bool:
    """Whether statistics of the columns, and those of the rows, are out of reach."""
    return min(n, d) > EXACT_SIDE


def choose_kernel(folds: Folds, priorities: Indices, candidates: Sequence[Candidate], most: int) -> Choice:
    """Return what some rows choose, with few landmarks."""
    sample = _sample(folds, priorities)
    rows = folds if sample is None else folds.some(sample)
    known = priorities if sample is None else priorities[sample]
    few = min(most, CHOICE_LANDMARKS)
    linear = any(candidate.is_linear for candidate in candidates)
    coordinates = _coordinates(rows.points) if linear else rows.points
    return chosen(held_out_scores(rows, coordinates, known, candidates, few), rows.splits.repeats)


def choose_rule(
    folds: Folds, priorities: Indices, candidates: Sequence[Candidate], n_landmarks: int | None
) -> tuple[Choice, Choice]:
    """Return what is chosen on few rows and landmarks, and then the ridge and temperature on all."""
    most = FINAL_LANDMARKS if n_landmarks is None else n_landmarks
    first = choose_kernel(folds, priorities, candidates, most)
    linear = first.candidate.is_linear
    distinct = max(len(np.unique(priorities[training])) for training, _ in folds.splits.pairs)
    if _sample(folds, priorities) is None and (linear or min(distinct, most) <= CHOICE_LANDMARKS):
        return first, first
    coordinates = _coordinates(folds.points) if linear else folds.points
    return first, chosen(held_out_scores(folds, coordinates, priorities, [first.candidate], most), folds.splits.repeats)


def choose_linear_rule(folds: Iterable[TrainingSet]) -> Choice:
    """Ridge and temperature of the linear rule, where statistics of the folds suffice."""
    return chosen({Candidate("linear"): list(linear_scores(folds))})


def linear_rule(basis: Basis, moments: ClassMoments, shrinkage: float) -> PosteriorRule:
    """From statistics in a basis's coordinates."""
    rules = RidgeRules.of(moments, np.array([shrinkage]))
    weights = basis.lift(np.ldexp(rules.weights[0], -moments.exponent))
    return PosteriorRule(None, basis.mean(moments), np.ascontiguousarray(weights.T), rules.offsets[0])


def fitted_rule(points: LabelledRows, priorities: Indices, choice: Choice, n_landmarks: int | None) -> PosteriorRule:
    """Return the chosen rule of all rows."""
    if choice.candidate.is_linear:
        basis = _basis(points)
        return linear_rule(basis, ClassMoments.of_rows(basis.points), choice.shrinkage)
    most = FINAL_LANDMARKS if n_landmarks is None else n_landmarks
    landmarks = points.X[drawn_landmarks(priorities, np.arange(points.shape[0]), most)]
    spaces = FeatureSpaces.of([choice.candidate], points, landmarks)
    (space,), (moments,) = spaces.spaces, spaces.moments(points)
    rules = RidgeRules.of(moments, np.array([choice.shrinkage]))
    weights = np.ldexp(rules.weights[0], -moments.exponent)
    offsets = rules.offsets[0] - weights @ moments.mean
    return PosteriorRule(space.kernel, np.empty(0), space.factor @ weights.T, offsets)


def _basis(points: LabelledRows) -> Basis:
    """Coordinates of no more columns than rows."""
    n, d = points.shape
    kind = "rows" if n < d else "features"
    return Plan(kind, f"n={n}, d={d}").build(points, Margins())


def _coordinates(points: LabelledRows) -> LabelledRows:
    return points if is_too_large(*points.shape) else _basis(points).points


def _sample(folds: Folds, priorities: Indices) -> Indices | None:
    """Numbers of the rows that choose, from each class in proportion and by content; None for all.

    Equal rows of one class are taken together: a row listed twice is one that counts twice.
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


# ---------------------------------------------------------------------- what a map takes from the choice


def class_confusions(held_out: HeldOutScores, temperature: float, total_weight: float) -> Array:
    """Weighted mean posterior of the rows of each class; of a class that was never held out its own place."""
    posteriors = calibrated(held_out.scores[0], temperature, total_weight)
    n_classes = posteriors.shape[1]
    found = np.eye(n_classes)
    for c in range(n_classes):
        own = held_out.codes == c
        if own.any():
            found[c] = np.average(posteriors[own], axis=0, weights=held_out.weights[own])
    return found


def weight_covariance(choice: Choice) -> Array:
    """Compute the covariance (C×C) of the weights q of held-out rows, at one sharpness so that all maps share axes."""
    q = softmax(choice.held_out.scores[0] * (SHARPNESS / choice.temperature), axis=1)
    return np.cov(q, rowvar=False, aweights=choice.held_out.weights, ddof=0)


def tempered_sharpness(choice: Choice, places: Array) -> float:
    """Return the sharpness at which the median held-out row is so far out, by bisection of its logarithm."""
    if places.shape[1] == 1:  # inner places of a line lie far in: as sharp as if there were room for all
        places = simplex(len(places))
    scores = choice.held_out.scores[0] / choice.temperature
    low, high = -10.0, 6.0  # of 2^s: no row leaves the middle, every row sits on a place
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
