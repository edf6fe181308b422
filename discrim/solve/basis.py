"""The coordinates a problem is posed in.

    features   the columns themselves                                   (n ≥ d)
    rows       an orthonormal basis of the span of the centred rows     (n < d: never a d×d array)
    operator   the columns, with A only as v ↦ Av                       (large or sparse, few directions)

In each, rows and landmarks have coordinates, statistics and objective are posed in these, and `lift` carries the
directions found back to the features.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import scipy.linalg as la
import scipy.sparse as sp
from numpy.typing import NDArray

from discrim.data.check import require_finite
from discrim.data.rows import LabelledRows, block_slices, dense_block
from discrim.margins.margin_vectors import Margins
from discrim.moments.class_moments import ClassMoments
from discrim.solve.choose import Plan

Array = NDArray[np.float64]
LEADING = 1e-6  # the squaring moves the largest directions by 1e-16 / this, and hides what lies below 1e-8
DENSE_CELLS = 2**22  # a sparse table no larger than this may be made dense to resolve small directions
RESOLVED = 1e-3  # singular values below this share of the largest suffer from the squaring in a Gram matrix


@dataclass(frozen=True, eq=False)
class Basis:
    """The features themselves."""

    points: LabelledRows
    margins: Margins
    how: str
    original: LabelledRows | None = None  # the rows in their features, where the points' coordinates are others
    mean: Array | None = None  # their mean
    as_operator: bool = False
    keeps_leading: bool = True  # whether the largest directions are there to nearly all digits
    is_resolved: bool = True  # whether every direction is
    can_resolve: bool = False  # whether building it anew with resolve=True would show more

    def lift(self, directions: Array) -> Array:
        """Directions (rows) in the features."""
        return directions

    def feature_variances(self, moments: ClassMoments) -> Array:
        """Variance of each feature, in the moments' units squared (like the scatters)."""
        if self.original is None and not self.as_operator:
            total = np.diag(moments.within) + np.einsum("cd,cd->d", moments.between_rows(), moments.between_rows())
            return total / moments.total_weight
        return column_variances(self.original or self.points, moments.exponent)


@dataclass(frozen=True, eq=False, kw_only=True)
class GramBasis(Basis):
    """Span of the centred rows H from their Gram matrix: HHᵀ = RᵀR (pivoted Cholesky), V = H_pivotsᵀ R⁻¹."""

    rows: Any  # H times 2^−exponent, or the sparse rows that `centre` is implicitly taken from
    centre: Array | None
    exponent: int
    pivots: NDArray[np.intp]
    triangle: Array

    def lift(self, directions: Array) -> Array:
        combination = np.zeros((len(directions), self.rows.shape[0]))
        combination[:, self.pivots] = la.solve_triangular(self.triangle, directions.T, check_finite=False).T
        lifted = np.asarray(combination @ self.rows)
        if self.centre is not None:
            lifted -= np.outer(combination.sum(axis=1), self.centre)
        # R⁻¹ costs a few digits of orthogonality: one Newton step gives them back to orthonormal directions
        with np.errstate(over="ignore", invalid="ignore"):  # of discriminants in units of 1e-300
            kept = directions @ directions.T
        if np.abs(kept - np.eye(len(kept))).max(initial=0.0) < 1e-12:
            lifted = lifted - 0.5 * (lifted @ lifted.T - kept) @ lifted
        return lifted

    def feature_variances(self, moments: ClassMoments) -> Array:
        if self.centre is not None:
            return super().feature_variances(moments)
        H, weights = self.rows[: self.points.shape[0]], self.points.weights
        squares = np.einsum("ij,ij->j", H, H if weights is None else H * weights[:, None])
        return np.ldexp(squares / moments.total_weight, 2 * (self.exponent - moments.exponent))


@dataclass(frozen=True, eq=False, kw_only=True)
class SingularBasis(Basis):
    """Span of the centred rows by QR and SVD, H = U S Vᵀ: nothing is squared."""

    vectors: Array  # V

    def lift(self, directions: Array) -> Array:
        return directions @ self.vectors.T


def build(plan: Plan, points: LabelledRows, margins: Margins, *, resolve: bool = False) -> Basis:
    """The basis a plan asks for; `resolve` asks for directions below 1e-3 of the largest too."""
    if plan.basis == "features":
        return Basis(points, margins, plan.reason)
    points, margins, pilot = _near_origin(points, margins)
    if plan.basis == "operator":
        mean = None if pilot is None else ClassMoments.of_rows(points.unlabelled(), keep="means").mean + pilot
        return Basis(points, margins, plan.reason, mean=mean, as_operator=True)
    basis = _basis_of_rows(plan, points, margins, resolve)
    assert basis.mean is not None
    return basis if pilot is None else replace(basis, mean=basis.mean + pilot)


def _near_origin(points: LabelledRows, margins: Margins) -> tuple[LabelledRows, Margins, Array | None]:
    """Sparse rows with the first row taken off the columns that have no zeros (they stay as sparse), and that row.

    A column with zeros varies as much as it is large. One without can be large and hardly vary: squared, it would
    drown all others.
    """
    if not points.is_sparse:
        return points, margins, None
    X = points.X if points.X.has_canonical_format else points.X.copy()
    X.sum_duplicates()
    full = np.bincount(X.indices, minlength=X.shape[1]) == X.shape[0]
    if not full.any():
        return points, margins, None
    pilot = np.where(full, X[[0]].toarray().ravel(), X.dtype.type(0))
    if not np.isfinite(pilot).all():
        require_finite(points.X)
    moved = sp.csr_array((X.data - pilot[X.indices], X.indices, X.indptr), shape=X.shape)
    landmarks = None if margins.landmarks is None else margins.landmarks - pilot
    return points.moved(moved), replace(margins, landmarks=landmarks), pilot.astype(np.float64)


def _basis_of_rows(plan: Plan, points: LabelledRows, margins: Margins, resolve: bool) -> Basis:
    moments = ClassMoments.of_rows(points.unlabelled(), keep="means")
    if points.is_sparse and not resolve:
        rows, centre = _sparse_rows(points, margins.landmarks, moments)
        return _gram_basis(plan, points, margins, moments, rows, centre)
    H = _centred_rows(points, margins.landmarks, moments)
    if resolve:
        return _singular_basis(plan, points, margins, moments, H)
    return _gram_basis(plan, points, margins, moments, H, None)


def _sparse_rows(points: LabelledRows, landmarks: Array | None, moments: ClassMoments) -> tuple[Any, Array]:
    """Sparse rows (and landmarks) as they are, and the mean that is to be taken off, times 2^−exponent."""
    rows = points.X.astype(np.float64)
    if landmarks is not None:
        rows = sp.vstack([rows, sp.csr_array(landmarks)]).tocsr()
    return rows * 0.5**moments.exponent, np.ldexp(moments.mean, -moments.exponent)


def _centred_rows(points: LabelledRows, landmarks: Array | None, moments: ClassMoments) -> Array:
    """Rows (and landmarks) around the mean, times 2^−exponent."""
    X = dense_block(points.X, slice(None))
    stacked = X if landmarks is None else np.concatenate([X, landmarks])
    H = np.subtract(stacked, moments.origin, dtype=np.float64)
    H -= moments.mean_offset
    return np.ldexp(H, -moments.exponent, out=H) if moments.exponent else H


def _in_coordinates(points: LabelledRows, margins: Margins, moments: ClassMoments, Y: Array) -> dict[str, Any]:
    """The points' and landmarks' coordinates, in the units of the features, and the mean."""
    n = points.shape[0]
    Y = np.ldexp(Y, moments.exponent) if moments.exponent else Y
    landmarks = Y[n:] if margins.landmarks is not None else None
    return {
        "points": points.moved(Y[:n]),
        "margins": replace(margins, landmarks=landmarks),
        "original": points,
        "mean": moments.mean,
    }


def _gram_basis(
    plan: Plan, points: LabelledRows, margins: Margins, moments: ClassMoments, rows: Any, centre: Array | None
) -> Basis:
    gram = _gram_matrix(rows, centre)
    if not np.isfinite(gram).all():
        require_finite(points.X)
    size = len(gram)
    largest = float(np.diag(gram).max(initial=0.0))
    tolerance = size * float(np.finfo(np.float64).eps) * largest
    upper, pivots, rank, _ = la.lapack.dpstrf(gram, tol=tolerance, overwrite_a=True)
    rank = int(rank) if largest > 0 else 0
    triangle = np.triu(upper[:rank, :rank])
    order = np.asarray(pivots, dtype=np.intp) - 1
    Y = np.zeros((size, rank))
    Y[order] = np.triu(upper[:rank]).T
    steps = np.diag(triangle)
    # what lies below the tolerance may be nothing, or small: only the centring is known to take one direction
    least = steps.min(initial=np.inf) / max(steps.max(initial=0.0), 1e-300) if rank >= size - 1 else 0.0
    can_resolve = centre is None or rows.shape[0] * rows.shape[1] <= DENSE_CELLS
    unresolved = "" if least >= RESOLVED or can_resolve else ", in which the smallest directions are lost"
    return GramBasis(
        **_in_coordinates(points, margins, moments, Y),
        how=f"{plan.reason} (Gram matrix {size}×{size}{unresolved})",
        keeps_leading=least >= LEADING,
        is_resolved=least >= RESOLVED,
        can_resolve=can_resolve,
        rows=rows,
        centre=centre,
        exponent=moments.exponent,
        pivots=order[:rank],
        triangle=triangle,
    )


def _gram_matrix(rows: Any, centre: Array | None) -> Array:
    if centre is None:
        return rows @ rows.T
    products = (rows @ rows.T).toarray()
    along = np.asarray(rows @ centre)
    return products - along[:, None] - along + centre @ centre


def _singular_basis(plan: Plan, points: LabelledRows, margins: Margins, moments: ClassMoments, rows: Array) -> Basis:
    Q, R = la.qr(rows.T, mode="economic", check_finite=False)
    left, singular, right = la.svd(R, check_finite=False)
    rank = int((singular > max(rows.shape) * np.finfo(np.float64).eps * singular[0]).sum())
    return SingularBasis(
        **_in_coordinates(points, margins, moments, right[:rank].T * singular[:rank]),
        how=f"{plan.reason} (QR and SVD: small directions are wanted)",
        vectors=Q @ left[:, :rank],
    )


def column_variances(points: LabelledRows, exponent: int) -> Array:
    """Weighted variance of each column of the rows times 2^−exponent."""
    moments = ClassMoments.of_rows(points.unlabelled(), keep="means")
    if points.is_sparse:
        scaled = points.X.astype(np.float64) * 0.5**exponent
        squares = _weighted_sums(scaled.multiply(scaled).tocsr(), points.weights) / moments.total_weight
        return np.maximum(squares - np.ldexp(moments.mean, -exponent) ** 2, 0.0)
    total = np.zeros(points.shape[1])
    for part in block_slices(*points.shape):
        centred = np.ldexp((points.X[part] - moments.origin) - moments.mean_offset, -exponent)
        total += _weighted_sums(centred**2, None if points.weights is None else points.weights[part])
    return total / moments.total_weight


def _weighted_sums(rows: Any, weights: Array | None) -> Array:
    return np.asarray(rows.sum(axis=0) if weights is None else rows.T @ weights, dtype=np.float64).ravel()
