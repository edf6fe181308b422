"""Coordinates in the span of the rows, for fewer rows than columns: no d×d array is formed."""

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
from discrim.core.moments.class_moments import ClassMoments
from discrim.core.spread import Margins, Spread
from discrim.decompositions import svd
from discrim.tables.rows import LabelledRows, dense_block
from discrim.tables.validation import require_representable
from discrim.threads import WORTH, map_tasks

Array = NDArray[np.float64]
LEADING = 1e-6  # squaring moves the largest directions by 1e-16 / this, and hides directions below 1e-8
SAFE = 1e-150, 1e250  # sums of squares that neither overflow nor lose digits
NEAR = 8.0  # squared mean in variances, up to which the mean is subtracted from the Gram matrix instead of the rows
GRAM_COLUMNS, GRAM_PARTS = 2_000, 8  # a product over fewer columns, or sums of more products, take longer
DENSE_CELLS = 2**22  # a sparse table no larger than this may be made dense to resolve small directions


@dataclass(frozen=True, eq=False, kw_only=True)
class GramRows(Basis):
    """Span of the centred rows H from their Gram matrix: HHᵀ = RᵀR (pivoted Cholesky), V = H_pivotsᵀ R⁻¹."""

    rows: Any  # H times 2^−exponent, or rows whose mean is still to be subtracted
    shares: Array | None  # weights of these rows in that mean; None if it was subtracted
    squares: Array | None  # sum of squares of each column of rows whose mean is still to be subtracted
    exponent: int
    pivots: NDArray[np.intp]
    triangle: Array

    @classmethod
    def of(cls, points: LabelledRows, margins: Margins, how: str, *, leading: bool = False) -> GramRows:
        """Build from dense or sparse rows without converting them; `leading`: only large directions are needed."""
        near, pilot = points.near_origin()
        margins = margins.moved(pilot)
        rows, shares, squares, mean, exponent = _rows_and_shares(near, margins.landmarks, leading)
        gram, squared = _gram_matrix(rows, shares)
        require_representable(gram, points.X)  # differences of numbers near the largest one may overflow
        pivots, triangle, Y = _pivoted(gram, squared)
        steps = np.diag(triangle)
        # directions below the tolerance may be zero or small; only the one lost by centring is certain
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
            squares=squares,
            exponent=exponent,
            pivots=pivots,
            triangle=triangle,
        )

    def lift_each(self, *parts: Array) -> list[Array]:
        stacked = np.concatenate(parts)
        combination = np.zeros((len(stacked), self.rows.shape[0]))
        combination[:, self.pivots] = la.solve_triangular(self.triangle, stacked.T, check_finite=False).T
        if self.shares is not None:
            combination -= np.outer(combination.sum(axis=1), self.shares)
        lifted = np.split(np.asarray(combination @ self.rows), np.cumsum([len(part) for part in parts[:-1]]))
        for at, directions in enumerate(parts):
            # R⁻¹ costs a few digits of orthogonality; one Newton step restores them for orthonormal directions
            with np.errstate(over="ignore", invalid="ignore"):  # discriminants in units of 1e-300
                kept, unit = directions @ directions.T, np.eye(len(directions))
            if np.abs(kept - unit).max(initial=0.0) < 1e-12:
                lifted[at] = (unit - 0.5 * (lifted[at] @ lifted[at].T - kept)) @ lifted[at]
        return lifted

    def feature_variances(self, moments: ClassMoments) -> Array:
        if sp.issparse(self.rows):
            return column_variances(self.original, moments.exponent)
        if self.squares is not None:
            variances = column_variances(self.original, self.exponent, self.centre, self.squares)
        else:
            H, weights = self.rows[: self.points.shape[0]], self.points.weights
            variances = np.einsum("ij,ij->j", H, H if weights is None else H * weights[:, None]) / moments.total_weight
        return np.ldexp(variances, 2 * (self.exponent - moments.exponent))


@dataclass(frozen=True, eq=False, kw_only=True)
class SingularRows(Basis):
    """Span of the centred rows by QR and SVD, H = U S Vᵀ, without squaring."""

    vectors: Array  # V

    @classmethod
    def of(cls, points: LabelledRows, margins: Margins, how: str) -> SingularRows:
        """Build from rows, which are made dense."""
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

    def lift_each(self, *parts: Array) -> list[Array]:
        return [part @ self.vectors.T for part in parts]

    def spectrum(self, spread: Spread, moments: ClassMoments, wanted: int | None) -> Spectrum:
        if not spread.is_definite:
            return super().spectrum(spread, moments, wanted)
        return spectrum_of_factor(spread.factor(moments, self.points), wanted, precision=moments.precision)

    def feature_variances(self, moments: ClassMoments) -> Array:
        # sparse rows were moved towards the origin, the centre was not
        return column_variances(self.original, moments.exponent, None if self.original.is_sparse else self.centre)


def _rows_and_shares(
    points: LabelledRows, landmarks: Array | None, leading: bool
) -> tuple[Any, Array | None, Array | None, Array, int]:
    """Return rows (and landmarks) times 2^−exponent, the mean, and the exponent.

    If the mean is not yet subtracted, also the weights of the rows in it and the sums of squares of the columns.
    """
    n, X = points.shape[0], points.X
    counted = np.ones(n) if points.weights is None else points.weights / points.weights.max()
    if points.is_sparse:
        moments = ClassMoments.from_rows(points.unlabelled(), keep="means")
        rows = X.astype(np.float64)
        if landmarks is not None:
            rows, counted = (
                sp.vstack([rows, sp.csr_array(landmarks)]).tocsr(),
                np.append(counted, np.zeros(len(landmarks))),
            )
        return rows * 0.5**moments.exponent, counted / counted.sum(), None, moments.mean, moments.exponent
    is_plain = points.weights is None and landmarks is None and isinstance(X, np.ndarray) and X.dtype == np.float64
    if leading and is_plain:  # trades a few digits of the smallest directions for saving a copy
        with np.errstate(over="ignore", under="ignore", invalid="ignore"):
            mean, squares = (counted / n) @ X, np.einsum("ij,ij->j", X, X)
            size, of_mean = float(squares.sum()), n * float(mean @ mean)
            if SAFE[0] < size < SAFE[1] and of_mean <= NEAR * (size - of_mean):
                return X, counted / n, squares, mean, 0
    H, mean, exponent = _centred_rows(points, landmarks)
    return H, None, None, mean, exponent


def _centred_rows(points: LabelledRows, landmarks: Array | None) -> tuple[Array, Array, int]:
    """Return dense centred rows (and landmarks) times 2^−exponent, the mean and the exponent."""
    X, n = dense_block(points.X, slice(None)), points.shape[0]
    stacked = X if landmarks is None else np.concatenate([X, landmarks])
    counted = np.ones(n) if points.weights is None else points.weights
    origin = X[0].astype(np.float64)  # subtracted first, so the mean of the differences keeps its digits
    with np.errstate(over="ignore", under="ignore", invalid="ignore"):
        H = np.subtract(stacked, origin, dtype=np.float64, order="C")
        if SAFE[0] < float(np.vdot(H, H)) < SAFE[1]:
            offset = (counted @ H[:n]) / counted.sum()
            H -= offset
            return H, origin + offset, 0
    moments = ClassMoments.from_rows(
        points.unlabelled(), keep="means"
    )  # finds the unit, or raises for NaN and infinity
    H = np.subtract(stacked, moments.origin, dtype=np.float64, order="C")
    H -= moments.mean_offset
    return np.ldexp(H, -moments.exponent, out=H), moments.mean, moments.exponent


def _gram_matrix(rows: Any, shares: Array | None) -> tuple[Array, float]:
    """Return HHᵀ and the largest square in it, which determines its rounding error."""
    gram = (rows @ rows.T).toarray() if sp.issparse(rows) else _products(rows)
    squared = float(np.diag(gram).max(initial=0.0))
    if shares is not None:
        with_mean = gram @ shares
        gram -= with_mean[:, None]
        gram += shares @ with_mean - with_mean
    return gram, squared


def _products(rows: Array) -> Array:
    """Return rows·rowsᵀ as a sum over columns, computed by threads; only the shape decides how columns are divided."""
    n, d = rows.shape
    n_parts = min(GRAM_PARTS, d // GRAM_COLUMNS) if n * n * d >= WORTH else 1
    ends = np.linspace(0, d, max(1, n_parts) + 1, dtype=int).tolist()
    parts = map_tasks(lambda part: rows[:, part] @ rows[:, part].T, [slice(*part) for part in pairwise(ends)])
    gram = next(parts)
    for more in parts:
        gram += more
    return gram


def _pivoted(gram: Array, squared: float) -> tuple[NDArray[np.intp], Array, Array]:
    """Return pivots, R (upper triangle) and coordinates Y with YYᵀ = HHᵀ, by Cholesky decomposition with pivoting."""
    largest = float(np.diag(gram).max(initial=0.0))
    tolerance = len(gram) * float(np.finfo(np.float64).eps) * max(largest, squared)
    # (the transpose is in Fortran order, which avoids a copy)
    upper, pivots, rank, _ = la.lapack.dpstrf(gram.T, tol=tolerance, overwrite_a=True)
    rank = int(rank) if largest > 0 else 0
    order = np.asarray(pivots, dtype=np.intp) - 1
    Y = np.empty((len(gram), rank))
    Y[order] = np.tril(upper[:rank].T)
    return order[:rank], upper[:rank, :rank], Y  # entries below the diagonal are undefined


def _in_units(Y: Array, points: LabelledRows, exponent: int) -> tuple[Array, Array]:
    """Return the coordinates of the rows and of the landmarks in the units of the features."""
    n_rows = points.shape[0]
    if exponent:
        with np.errstate(over="ignore"):
            Y = np.ldexp(Y, exponent)
        require_representable(Y, points.X)  # the length of a row with values near 1e308 may overflow
    return Y[:n_rows], Y[n_rows:]
