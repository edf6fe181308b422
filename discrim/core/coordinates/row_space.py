"""Coordinates in the span of fewer rows than columns: nothing of the columns' square is ever formed."""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

import numpy as np
import scipy.linalg as la
import scipy.sparse as sp
from numpy.typing import NDArray

from discrim.core.coordinates.basis import RESOLVED, Basis, column_variances
from discrim.core.eigen import Spectrum, spectrum_of_factor
from discrim.core.margin_vectors import Margins
from discrim.core.moments.class_moments import ClassMoments
from discrim.core.spread import Spread
from discrim.decompositions import svd
from discrim.tables.rows import LabelledRows, dense_block
from discrim.tables.validation import require_representable
from discrim.threads import WORTH, map_tasks

Array = NDArray[np.float64]
LEADING = 1e-6  # the squaring moves the largest directions by 1e-16 / this, and hides what lies below 1e-8
SAFE = 1e-150, 1e250  # sums of squares that lose nothing
NEAR = 8.0  # up to here a mean, squared, in variances around it, is taken off the Gram matrix instead of the rows
DIGITS = 1e-4  # a variance below this share of the squared mean is computed from differences of rows
GRAM_COLUMNS, GRAM_PARTS = 2_000, 8  # a product over fewer columns, or sums of more products, take longer
DENSE_CELLS = 2**22  # a sparse table no larger than this may be made dense to resolve small directions


@dataclass(frozen=True, eq=False, kw_only=True)
class GramRows(Basis):
    """Span of the centred rows H from their Gram matrix: HHᵀ = RᵀR (pivoted Cholesky), V = H_pivotsᵀ R⁻¹."""

    centre: Array  # mean of the rows in their features
    rows: Any  # H times 2^−exponent, or rows whose mean is still to be taken off
    shares: Array | None  # of these rows in that mean
    exponent: int
    pivots: NDArray[np.intp]
    triangle: Array

    @classmethod
    def of(cls, points: LabelledRows, margins: Margins, how: str, *, leading: bool = False) -> GramRows:
        """Build from dense or sparse rows, which stay so; `leading`: only the largest directions are wanted."""
        near, pilot = points.near_origin()
        margins = margins.moved(pilot)
        rows, shares, mean, exponent = _rows_and_shares(near, margins.landmarks, leading)
        gram, squared = _gram_matrix(rows, shares)
        require_representable(gram, points.X)  # of numbers near the largest even differences lie beyond it
        pivots, triangle, Y = _pivoted(gram, squared)
        steps = np.diag(triangle)
        # what lies below the tolerance may be nothing, or small: only the centring is known to take one direction
        known = len(steps) >= len(Y) - 1
        least = steps.min(initial=np.inf) / max(steps.max(initial=0.0), 1e-300) if known else 0.0
        can_resolve = not near.is_sparse or rows.shape[0] * rows.shape[1] <= DENSE_CELLS
        unresolved = "" if least >= RESOLVED or can_resolve else ", in which the smallest directions are lost"
        coordinates, landmarks = _in_units(Y, near, exponent)
        return cls(
            points=near.moved(coordinates),
            margins=replace(margins, landmarks=landmarks if margins.landmarks is not None else None),
            original=near,
            how=f"{how} (Gram matrix {len(Y)}×{len(Y)}{unresolved})",
            keeps_leading=least >= LEADING,
            is_resolved=least >= RESOLVED,
            can_resolve=can_resolve,
            centre=mean if pilot is None else mean + pilot,
            rows=rows,
            shares=shares,
            exponent=exponent,
            pivots=pivots,
            triangle=triangle,
        )

    def mean(self, moments: ClassMoments) -> Array:
        return self.centre

    def lift(self, directions: Array) -> Array:
        combination = np.zeros((len(directions), self.rows.shape[0]))
        combination[:, self.pivots] = la.solve_triangular(self.triangle, directions.T, check_finite=False).T
        if self.shares is not None:
            combination -= np.outer(combination.sum(axis=1), self.shares)
        lifted = np.asarray(combination @ self.rows)
        # R⁻¹ costs a few digits of orthogonality: one Newton step gives them back to orthonormal directions
        with np.errstate(over="ignore", invalid="ignore"):  # of discriminants in units of 1e-300
            kept, unit = directions @ directions.T, np.eye(len(directions))
        if np.abs(kept - unit).max(initial=0.0) < 1e-12:
            lifted = (unit - 0.5 * (lifted @ lifted.T - kept)) @ lifted
        return lifted

    def feature_variances(self, moments: ClassMoments) -> Array:
        if sp.issparse(self.rows):
            return column_variances(self.original, moments.exponent)
        H, weights = self.rows[: self.points.shape[0]], self.points.weights
        variances = np.einsum("ij,ij->j", H, H if weights is None else H * weights[:, None]) / moments.total_weight
        if self.shares is not None:  # rows of equal weight, whose mean is still to be taken off
            variances -= self.centre**2
            near = np.flatnonzero(variances <= DIGITS * self.centre**2)
            around = H[:, near] - H[0, near]  # columns that would lose digits; exact for a constant one
            variances[near] = np.var(around, axis=0)
        return np.ldexp(variances, 2 * (self.exponent - moments.exponent))


@dataclass(frozen=True, eq=False, kw_only=True)
class SingularRows(Basis):
    """Span of the centred rows by QR and SVD, H = U S Vᵀ: nothing is squared."""

    centre: Array  # mean of the rows in their features
    vectors: Array  # V

    @classmethod
    def of(cls, points: LabelledRows, margins: Margins, how: str) -> SingularRows:
        """Build from rows that are made dense."""
        near, pilot = points.near_origin()
        margins = margins.moved(pilot)
        H, mean, exponent = _centred_rows(near, margins.landmarks)
        Q, R = la.qr(H.T, mode="economic", check_finite=False)
        left, singular, right = svd(R)
        rank = int((singular > max(H.shape) * np.finfo(np.float64).eps * singular[0]).sum())
        coordinates, landmarks = _in_units(right[:rank].T * singular[:rank], near, exponent)
        return cls(
            points=near.moved(coordinates),
            margins=replace(margins, landmarks=landmarks if margins.landmarks is not None else None),
            original=near,
            how=f"{how} (QR and SVD: small directions are wanted)",
            centre=mean if pilot is None else mean + pilot,
            vectors=Q @ left[:, :rank],
        )

    def mean(self, moments: ClassMoments) -> Array:
        return self.centre

    def lift(self, directions: Array) -> Array:
        return directions @ self.vectors.T

    def spectrum(self, spread: Spread, moments: ClassMoments, wanted: int | None) -> Spectrum:
        if not spread.is_definite:
            return super().spectrum(spread, moments, wanted)
        return spectrum_of_factor(spread.factor(moments, self.points), wanted, precision=moments.precision)

    def feature_variances(self, moments: ClassMoments) -> Array:
        return column_variances(self.original, moments.exponent)


def _rows_and_shares(
    points: LabelledRows, landmarks: Array | None, leading: bool
) -> tuple[Any, Array | None, Array, int]:
    """Rows (and landmarks) times 2^−exponent; their shares in the mean that is still to be taken off; it; exponent."""
    n, X = points.shape[0], points.X
    counted = np.ones(n) if points.weights is None else points.weights / points.weights.max()
    if points.is_sparse:
        moments = ClassMoments.of_rows(points.unlabelled(), keep="means")
        rows = X.astype(np.float64)
        if landmarks is not None:
            rows, counted = (
                sp.vstack([rows, sp.csr_array(landmarks)]).tocsr(),
                np.append(counted, np.zeros(len(landmarks))),
            )
        return rows * 0.5**moments.exponent, counted / counted.sum(), moments.mean, moments.exponent
    is_plain = points.weights is None and landmarks is None and isinstance(X, np.ndarray) and X.dtype == np.float64
    if leading and is_plain:  # a few digits of the smallest directions may go, and the copy with them
        with np.errstate(over="ignore", under="ignore", invalid="ignore"):
            mean, size = (counted / n) @ X, float(np.vdot(X, X))
            of_mean = n * float(mean @ mean)
            if SAFE[0] < size < SAFE[1] and of_mean <= NEAR * (size - of_mean):
                return X, counted / n, mean, 0
    H, mean, exponent = _centred_rows(points, landmarks)
    return H, None, mean, exponent


def _centred_rows(points: LabelledRows, landmarks: Array | None) -> tuple[Array, Array, int]:
    """Return rows (and landmarks), made dense, around the mean, times 2^−exponent; that mean, and the exponent."""
    X, n = dense_block(points.X, slice(None)), points.shape[0]
    stacked = X if landmarks is None else np.concatenate([X, landmarks])
    counted = np.ones(n) if points.weights is None else points.weights
    origin = X[0].astype(np.float64)  # taken off first, so that the mean of what is left keeps its digits
    with np.errstate(over="ignore", under="ignore", invalid="ignore"):
        H = np.subtract(stacked, origin, dtype=np.float64, order="C")
        if SAFE[0] < float(np.vdot(H, H)) < SAFE[1]:
            offset = (counted @ H[:n]) / counted.sum()
            H -= offset
            return H, origin + offset, 0
    moments = ClassMoments.of_rows(points.unlabelled(), keep="means")  # finds the unit, or a cell that is no number
    H = np.subtract(stacked, moments.origin, dtype=np.float64, order="C")
    H -= moments.mean_offset
    return np.ldexp(H, -moments.exponent, out=H), moments.mean, moments.exponent


def _gram_matrix(rows: Any, shares: Array | None) -> tuple[Array, float]:
    """Return HHᵀ, and the largest square that took part in it, which tells how much of it is rounding."""
    gram = (rows @ rows.T).toarray() if sp.issparse(rows) else _products(rows)
    squared = float(np.diag(gram).max(initial=0.0))
    if shares is not None:
        with_mean = gram @ shares
        gram -= with_mean[:, None]
        gram += shares @ with_mean - with_mean
    return gram, squared


def _products(rows: Array) -> Array:
    """Return rows·rowsᵀ of long rows as a sum over columns, by several threads: the shape alone divides them."""
    n, d = rows.shape
    n_parts = min(GRAM_PARTS, d // GRAM_COLUMNS) if n * n * d >= WORTH else 1
    ends = np.linspace(0, d, max(1, n_parts) + 1, dtype=int).tolist()
    parts = map_tasks(lambda part: rows[:, part] @ rows[:, part].T, [slice(*part) for part in pairwise(ends)])
    gram = next(parts)
    for more in parts:
        gram += more
    return gram


def _pivoted(gram: Array, squared: float) -> tuple[NDArray[np.intp], Array, Array]:
    """Pivots, R (its upper triangle) and the coordinates Y, YYᵀ = HHᵀ, by Cholesky's decomposition with pivoting."""
    largest = float(np.diag(gram).max(initial=0.0))
    tolerance = len(gram) * float(np.finfo(np.float64).eps) * max(largest, squared)
    # (transposed, in Fortran's order, it need not be copied)
    upper, pivots, rank, _ = la.lapack.dpstrf(gram.T, tol=tolerance, overwrite_a=True)
    rank = int(rank) if largest > 0 else 0
    order = np.asarray(pivots, dtype=np.intp) - 1
    Y = np.empty((len(gram), rank))
    Y[order] = np.tril(upper[:rank].T)
    return order[:rank], upper[:rank, :rank], Y  # what lies below the diagonal is nobody's


def _in_units(Y: Array, points: LabelledRows, exponent: int) -> tuple[Array, Array]:
    """Return coordinates of the rows and of the landmarks, in the units of the features."""
    n_rows = points.shape[0]
    if exponent:
        with np.errstate(over="ignore"):
            Y = np.ldexp(Y, exponent)
        require_representable(Y, points.X)  # a row of numbers near 1e308 may be longer than any
    return Y[:n_rows], Y[n_rows:]
