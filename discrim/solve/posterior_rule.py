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

from discrim.data.rows import LabelledRows, block_slices
from discrim.margins.margin_vectors import Margins
from discrim.moments.class_moments import ClassMoments
from discrim.solve.basis import Basis
from discrim.solve.choose import EXACT_SIDE, Plan
from discrim.solve.folds import Folds, TrainingSet
from discrim.solve.kernel_choice import (
    Candidate,
    Choice,
    FeatureSpaces,
    chosen,
    held_out_scores,
    linear_scores,
)
from discrim.solve.landmarks import LandmarkKernel, drawn_landmarks
from discrim.solve.ridge_rules import RidgeRules

Array = NDArray[np.float64]
Indices = NDArray[np.intp]
CHOICE_ROWS = 2_500  # on which the kernel is chosen
CHOICE_LANDMARKS = 300
FINAL_LANDMARKS = 1_000


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


def is_too_large(n: int, d: int) -> bool:
    """Whether statistics of the columns, and those of the rows, are out of reach."""
    return min(n, d) > EXACT_SIDE


def choose_kernel(folds: Folds, priorities: Indices, candidates: Sequence[Candidate], most: int) -> Choice:
    """What some rows choose, with few landmarks."""
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
    """What is chosen on few rows and landmarks, and then the ridge and temperature on all."""
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
    """The chosen rule of all rows."""
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
