"""The coordinates a problem is posed in, and the work that is done in them.

    features        the columns themselves                                              (n ≥ d)
    Gram rows       an orthonormal basis of the span of the centred rows, from HHᵀ      (n < d: never a d×d array)
    singular rows   the same from QR and SVD of H                                       (small directions are wanted)
    products        the columns, with matrices only as what they do to vectors          (large, few directions)

A caller never asks which of them it has. Each answers: the statistics in its coordinates, the spectrum of a spread, the
ratio of the discriminant methods with its cost Σ_γ, the complement of found directions, and what directions are in the
features (`lift`).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

import numpy as np
import scipy.linalg as la
from numpy.typing import NDArray

from discrim.core.cross_validation import Folds, TrainingSet
from discrim.core.discriminants import Cost
from discrim.core.eigen import Spectrum, spectrum_of_matrix
from discrim.core.margin_vectors import Margins
from discrim.core.moments.class_moments import ClassMoments
from discrim.core.ratio import Ratio, ratio_of
from discrim.core.spread import Spread
from discrim.tables.rows import LabelledRows, block_slices, dense_block, projected

Array = NDArray[np.float64]
FAR_FROM_MEAN = 100.0  # of a row, squared, in variances: two digits of the variance are lost
RESOLVED = 1e-3  # singular values below this share of the largest suffer from the squaring in a Gram matrix


@dataclass(frozen=True, eq=False, kw_only=True)
class Basis(ABC):
    """Coordinates in which a spread is a matrix; where it is not, a basis says how else it answers."""

    points: LabelledRows  # the rows in these coordinates
    margins: Margins  # what the objective refers to beside the statistics, in these coordinates
    original: LabelledRows  # the rows in their features
    how: str
    keeps_leading: bool = True  # whether the largest directions are there to nearly all digits
    is_resolved: bool = True  # whether every direction is
    can_resolve: bool = False  # whether building it anew with resolve=True would show more
    folds: Folds | None = None  # of the points, where a choice is made by them

    def to_choose_in(self) -> Basis:
        """Return the basis in which a choice by folds is made: this one, if folds are cheap."""
        return self

    @abstractmethod
    def mean(self, moments: ClassMoments) -> Array:
        """Return mean of the rows in their features."""

    @abstractmethod
    def lift(self, directions: Array) -> Array:
        """Return directions (rows) in the features."""

    @abstractmethod
    def feature_variances(self, moments: ClassMoments) -> Array:
        """Return variance of each feature, in the moments' units squared (like the scatters)."""

    def moments(self, keep: str, emphasis: Callable[[Array], Array | None] | None = None) -> ClassMoments:
        """Return statistics of the points; `emphasis` gives weights of the pooled scatters by the classes' totals."""
        if self.folds is not None and keep == "pooled" and self.folds.moments is not None:
            return self.folds.moments
        weights = emphasis(self.points.class_totals) if emphasis is not None and keep == "pooled" else None
        return ClassMoments.of_rows(self.points, keep=keep, emphasis=weights, doubles=False)

    def spectrum(self, spread: Spread, moments: ClassMoments, wanted: int | None) -> Spectrum:
        """Return the leading eigenpairs of a spread (None: all)."""
        A = spread.matrix(moments, self.points)
        return spectrum_of_matrix(A, wanted, precision=moments.precision, definite=spread.is_definite)

    def ratio(self, moments: ClassMoments) -> Ratio:
        """Return what the discriminant methods maximise."""
        return ratio_of(moments)

    def within_along(self, directions: Array, moments: ClassMoments) -> Array:
        """Return directions (rows) times S_w/n."""
        return directions @ moments.within / moments.total_weight

    def cost(self, ratio: Ratio, gamma: float) -> Cost:
        """Compute Σ_γ of a ratio, as something that solves, multiplies, and has a trace of its quotient."""
        return ratio.covariance(gamma)

    def complement(self, ratio: Ratio, directions: Array, wanted: int) -> Array:
        """Compute PCA of what is orthogonal to the directions: `wanted` unit rows."""
        Q, total = la.qr(directions.T, mode="economic")[0], ratio.total
        along = total @ Q
        rest = total - Q @ along.T - along @ Q.T + Q @ (Q.T @ along) @ Q.T
        found = spectrum_of_matrix(rest, wanted, precision=float(np.finfo(np.float64).eps)).directions
        found = found - (found @ Q) @ Q.T
        return found / np.linalg.norm(found, axis=1)[:, None]

    def shows(self, values: Array) -> bool:
        """Return whether directions of these eigenvalues of a spread (descending) are there to nearly all digits."""
        return self.keeps_leading and bool(values[-1] >= RESOLVED**2 * values[0])

    def hides_spread(self, ratio: Ratio, moments: ClassMoments) -> bool:
        """Return whether rows do vary, beyond their own digits, where the squares of their statistics show nothing."""
        if ratio.left_out is None or not self.points.shape[0]:
            return False
        directions, X = ratio.left_out * 0.5**moments.exponent, self.points.X
        along = projected(X, moments.mean, directions).astype(np.float64, copy=False)
        digits = np.finfo(X.dtype).eps * np.asarray(abs(X) @ np.abs(directions).T).max(axis=0)
        return bool((np.sqrt(np.mean(along**2, axis=0)) > 2 * digits).any())

    def trained(self, folds: Iterable[TrainingSet], gamma: float) -> Iterator[tuple[TrainingSet, Ratio]]:
        """Return folds with the ratio of their training rows, for a cost with that ridge."""
        return ((fold, fold.ratio if gamma else ratio_of(fold.training)) for fold in folds)


@dataclass(frozen=True, eq=False, kw_only=True)
class Features(Basis):
    """The features themselves; of sparse rows near the origin."""

    pilot: Array | None = None  # what was taken off the rows

    @classmethod
    def of(cls, points: LabelledRows, margins: Margins, how: str) -> Features:
        """Return rows in their features."""
        if not points.is_sparse:
            return cls(points=points, margins=margins, original=points, how=how)
        near, pilot = points.near_origin()
        return cls(points=near, margins=margins.moved(pilot), original=points, how=how, pilot=pilot)

    @classmethod
    def of_moments(cls, moments: ClassMoments, how: str | None = None) -> Features:
        """Return features of which there are statistics only."""
        rows = LabelledRows(np.empty((0, moments.n_features)), np.empty(0, np.intp), moments.classes)
        how = how or f"a stream of {moments.n_rows} rows: statistics of the features"
        return cls(points=rows, margins=Margins(), original=rows, how=how)

    def mean(self, moments: ClassMoments) -> Array:
        return moments.mean if self.pilot is None else moments.mean + self.pilot

    def lift(self, directions: Array) -> Array:
        return directions

    def feature_variances(self, moments: ClassMoments) -> Array:
        if not moments.has_within:  # without rows either, the variances are not known
            known = self.original.shape[0] > 0
            return column_variances(self.original, moments.exponent) if known else np.full(moments.n_features, np.nan)
        squares = moments.within.diagonal().copy()
        for part in block_slices(*moments.pilots.shape):  # of a million classes, no more than a block at a time
            means = moments.centred_means(part)
            squares += np.einsum("c,cd,cd->d", moments.weights[part], means, means)
        return squares / moments.total_weight


def column_variances(points: LabelledRows, exponent: int) -> Array:
    """Compute the weighted variance of each column of the rows times 2^−exponent; exactly 0 for constant columns."""
    weights = np.ones(points.shape[0]) if points.weights is None else points.weights
    total = float(weights.sum())
    if points.is_sparse:
        moments = ClassMoments.of_rows(points.unlabelled(), keep="means")
        scaled = points.X.astype(np.float64) * 0.5**exponent
        squares = np.asarray(scaled.multiply(scaled).tocsr().T @ weights)
        return np.maximum(squares / total - np.ldexp(moments.mean, -exponent) ** 2, 0.0)
    first = dense_block(points.X, slice(1))[0].astype(np.float64)  # of constant columns, differences to it are 0
    offset, squares = _column_sums(points, weights, first, None, exponent)
    offset /= total
    variances = squares / total - offset**2
    if (offset**2 > FAR_FROM_MEAN * variances).any():  # the first row is an outlier: around the mean, no digits cancel
        variances = _column_sums(points, weights, first, offset, exponent)[1] / total
    return variances


def _column_sums(
    points: LabelledRows, weights: Array, first: Array, offset: Array | None, exponent: int
) -> tuple[Array, Array]:
    """Sum the differences of dense rows to a point, first + offset, and their squares, in units of 2^exponent."""
    sums, squares = np.zeros((2, points.shape[1]))
    for part in block_slices(*points.shape):
        apart = np.subtract(points.X[part], first, dtype=np.float64)
        if exponent:
            np.ldexp(apart, -exponent, out=apart)
        if offset is not None:
            apart -= offset
        sums += weights[part] @ apart
        np.multiply(apart, apart, out=apart)
        squares += weights[part] @ apart
    return sums, squares
