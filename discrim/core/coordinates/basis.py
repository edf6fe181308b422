"""Coordinates in which a problem is solved, and the operations that depend on them.

    features        the columns themselves                                              (n ≥ d)
    Gram rows       an orthonormal basis of the span of the centred rows, from HHᵀ      (n < d: never a d×d array)
    singular rows   the same from QR and SVD of H                                       (if small directions are needed)
    products        the columns, with matrices only as products with vectors            (large, few directions)

Callers do not need to know which of them they have. Each provides the rows in its coordinates, the spectrum of a
spread, the ratio of the discriminant methods, the complement of given directions, and `lift`, which maps directions to
the features.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.linalg as la
from numpy.typing import NDArray

from discrim.core.eigen import Spectrum, spectrum_of_matrix
from discrim.core.moments.class_moments import ClassMoments
from discrim.core.ratio import Ratio, ratio_of
from discrim.core.spread import Margins, Spread
from discrim.tables.rows import LabelledRows, block_slices, projected

Array = NDArray[np.float64]
DIGITS = 1e-4  # a variance below this share of the squared mean is computed from differences of rows
RESOLVED = 1e-3  # relative singular values below this lose accuracy by the squaring in a Gram matrix


@dataclass(frozen=True, eq=False, kw_only=True)
class Basis(ABC):
    """Coordinates in which a spread is a matrix; subclasses override the operations for which it is not."""

    points: LabelledRows  # the rows in these coordinates
    margins: Margins  # vectors that the objective needs in addition to the statistics, in these coordinates
    original: LabelledRows  # the rows in the original features
    how: str
    pilot: Array | None = None  # the point subtracted from the original features
    centre: Array | None = None  # mean of the rows in the original features, if it is known
    keeps_leading: bool = True  # True if the largest directions are accurate to nearly all digits
    is_resolved: bool = True  # True if every direction is
    can_resolve: bool = False  # True if rebuilding with resolve=True would be more accurate
    has_scatters: bool = True  # False if statistics are means, and scatters products with the rows

    def mean(self, moments: ClassMoments) -> Array:
        """Return the mean of the rows in the original features."""
        if self.centre is not None:
            return self.centre
        return moments.mean if self.pilot is None else moments.mean + self.pilot

    def lift(self, directions: Array) -> Array:
        """Map directions (rows) to the original features."""
        return self.lift_each(directions)[0]

    def lift_each(self, *parts: Array) -> list[Array]:
        """Map several sets of directions to the original features, by one product where products are needed."""
        return list(parts)

    @abstractmethod
    def feature_variances(self, moments: ClassMoments) -> Array:
        """Return the variance of each feature, in squared units of the moments."""

    def spectrum(self, spread: Spread, moments: ClassMoments, wanted: int | None) -> Spectrum:
        """Return the leading eigenpairs of a spread (wanted=None: all)."""
        A = spread.matrix(moments, self.points)
        return spectrum_of_matrix(A, wanted, precision=moments.precision, definite=spread.is_definite)

    def ratio(self, moments: ClassMoments) -> Ratio:
        """Return the ratio that the discriminant methods maximise."""
        return ratio_of(moments)

    def within_along(self, directions: Array, moments: ClassMoments) -> Array:
        """Return directions (rows) times S_w/n."""
        return directions @ moments.within / moments.total_weight

    def complement(self, ratio: Ratio, directions: Array, wanted: int) -> Array:
        """Return the leading principal components orthogonal to the directions: `wanted` unit rows."""
        Q, total = la.qr(directions.T, mode="economic")[0], ratio.total
        along = total @ Q
        rest = total - Q @ along.T - along @ Q.T + Q @ (Q.T @ along) @ Q.T
        found = spectrum_of_matrix(rest, wanted, precision=float(np.finfo(np.float64).eps)).directions
        found = found - (found @ Q) @ Q.T
        return found / np.linalg.norm(found, axis=1)[:, None]

    def shows(self, values: Array) -> bool:
        """Return True if directions with these eigenvalues (descending) are accurate to nearly all digits."""
        return self.keeps_leading and bool(values[-1] >= RESOLVED**2 * values[0])

    def hides_spread(self, ratio: Ratio, moments: ClassMoments) -> bool:
        """Return True if rows vary, by more than rounding, in directions that their squared statistics do not show."""
        if ratio.left_out is None or not self.points.shape[0]:
            return False
        directions, X = moments.scaled(ratio.left_out), self.points.X
        along = projected(X, moments.mean, directions).astype(np.float64, copy=False)
        digits = np.finfo(X.dtype).eps * np.asarray(abs(X) @ np.abs(directions).T).max(axis=0)
        return bool((np.sqrt(np.mean(along**2, axis=0)) > 2 * digits).any())


@dataclass(frozen=True, eq=False, kw_only=True)
class Features(Basis):
    """The features themselves; sparse rows are moved near the origin."""

    @classmethod
    def of(cls, points: LabelledRows, margins: Margins, how: str) -> Features:
        """Build from rows."""
        if not points.is_sparse:
            return cls(points=points, margins=margins, original=points, how=how)
        near, pilot = points.near_origin()
        return cls(points=near, margins=margins.moved(pilot), original=points, how=how, pilot=pilot)

    @classmethod
    def from_moments(cls, moments: ClassMoments, how: str | None = None) -> Features:
        """Build from statistics, without rows."""
        rows = LabelledRows(np.empty((0, moments.n_features)), np.empty(0, np.intp), moments.classes)
        how = how or f"a stream of {moments.n_rows} rows: statistics of the features"
        return cls(points=rows, margins=Margins(), original=rows, how=how)

    def feature_variances(self, moments: ClassMoments) -> Array:
        # scatters pooled with other weights are not S_w; without rows, the variances are unknown
        if moments.each is None and (moments.pooled is None or not (moments.emphasis == 1).all()):
            if not self.points.shape[0]:
                return np.full(moments.n_features, np.nan)
            return column_variances(self.points, moments.exponent, moments.mean)
        squares = moments.within.diagonal().copy()
        for part in block_slices(*moments.pilots.shape):  # with many classes, only a block of means at a time
            means = moments.centred_means(part)
            squares += np.einsum("c,cd,cd->d", moments.weights[part], means, means)
        return squares / moments.total_weight


def column_variances(
    points: LabelledRows, exponent: int, mean: Array | None = None, squares: Array | None = None
) -> Array:
    """Compute the weighted variance of each column of the rows times 2^−exponent; exactly 0 for constant columns.

    mean, squares : of the rows, and the weighted sums of their scaled squares, if they are known
    """
    weights = points.weights
    total = float(points.shape[0] if weights is None else weights.sum())
    if mean is None:
        mean = ClassMoments.from_rows(points.unlabelled(), keep="means").mean
    mean = np.ldexp(mean, -exponent)
    if points.is_sparse:
        scaled = points.X.astype(np.float64) * 0.5**exponent
        squares = np.asarray(
            scaled.multiply(scaled).tocsr().T @ (np.ones(points.shape[0]) if weights is None else weights)
        )
        return np.maximum(squares / total - mean**2, 0.0)
    with np.errstate(over="ignore", invalid="ignore"):
        squares = _column_squares(points, exponent) if squares is None else squares
        variances = squares / total - mean**2
        near = np.flatnonzero(~(variances > DIGITS * mean**2))
    if len(near):
        variances[near] = _column_squares(points, exponent, near, mean[near]) / total
    return variances


def _column_squares(points: LabelledRows, exponent: int, columns: Any = slice(None), mean: Any = None) -> Array:
    """Sum the weighted squares of some columns of dense rows times 2^−exponent, minus their mean."""
    total: Any = 0.0
    for part in block_slices(*points.shape):
        block = points.X[part][:, columns].astype(np.float64, copy=False)
        block = np.ldexp(block, -exponent) if exponent else block
        block = block if mean is None else block - mean
        weighted = block if points.weights is None else block * points.weights[part, None]
        total = total + np.einsum("ij,ij->j", block, weighted)
    return np.asarray(total)
