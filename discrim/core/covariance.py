"""A covariance that distances are measured in: Σ, and W with W Σ Wᵀ = I.

Rank is judged, and Σ is factored, on one matrix: its correlations, so that units of the columns do not matter. Where
these are singular to rounding the factor is of their eigenvectors, which exist always, and what lies in the null space
is left out.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import scipy.linalg as la
from numpy.typing import NDArray

from discrim.core.moments.class_moments import rounding_share
from discrim.decompositions import eigh
from discrim.threads import computed_once

Array = NDArray[np.float64]
ROUNDING = 1e-13  # a deviation below this share of the column's total one is none
LEAST_CONDITION = 1e-14  # an inverse condition number below this is rounding
SINGULAR = 1e-11  # a pivot below this share of a column's own variance is rounding


def numerical_rank(scatter: Array, precision: float) -> int:
    """Of a scatter summed in that precision."""
    largest = float(np.diag(scatter).max(initial=0.0))
    share = rounding_share(len(scatter), precision)
    return int(la.lapack.dpstrf(scatter, tol=share * largest)[2]) if largest > 0 else 0


class Covariance:
    """A symmetric matrix without negative eigenvalues (but for rounding), and its factor.

    precision : of the numbers it was summed in.
    variances : of the same columns in the whole; a deviation that is rounding beside these counts as none.
    """

    def __init__(self, matrix: Array, precision: float = 0.0, variances: Array | None = None) -> None:
        self.matrix, self.precision, size = matrix, precision, len(matrix)
        deviations = np.sqrt(np.maximum(np.diag(matrix), 0.0))
        varies = deviations > (0.0 if variances is None else ROUNDING * np.sqrt(variances))
        self._scales = np.divide(1.0, deviations, out=np.zeros_like(deviations), where=deviations > 0)
        self._correlations = matrix * self._scales[:, None] * self._scales
        self.inverse_condition = 1.0  # of the correlations, where they have a factor
        self.is_nonsingular = size == 0  # no column is a combination of others, whatever their scales
        self._triangle = np.empty((0, 0))  # L of the correlations LLᵀ, unless they are singular
        if size == 0 or not varies.all():
            return
        self._triangle, broken = la.lapack.dpotrf(self._correlations, lower=1)
        # a pivot is the share of a column's variance that the columns before it leave unexplained
        threshold = max(SINGULAR, 100 * np.sqrt(size) * precision)
        if not broken and float(np.diag(self._triangle).min()) ** 2 > threshold:
            # many columns may each leave some of the others unexplained, and still a combination of all be nothing
            norm = np.abs(self._correlations).sum(axis=0).max()
            self.inverse_condition, _ = la.lapack.dpocon(self._triangle, norm, uplo="L")
            self.is_nonsingular = self.inverse_condition > max(LEAST_CONDITION, rounding_share(size, precision))

    @computed_once
    def _root(self) -> Array:
        """R (d×r) with RᵀCR = I on the range of the correlations C, of their eigenvectors."""
        values, vectors = eigh(self._correlations)
        precision = max(self.precision, float(np.finfo(np.float64).eps))
        kept = values > rounding_share(len(values), precision) * values.max(initial=0.0)
        return vectors[:, kept] / np.sqrt(values[kept])

    def whitened(self, rows: Array) -> tuple[Array, Callable[[Array], Array]]:
        """Rows times Wᵀ, and what carries directions found there back (times W)."""
        if not self.is_nonsingular:
            root = self._scales[:, None] * self._root
            return rows @ root, lambda directions: directions @ root.T
        L, scales = self._triangle, self._scales
        solved = la.solve_triangular(L, (rows * scales).T, lower=True, check_finite=False).T
        return (
            solved,
            lambda directions: la.solve_triangular(L, directions.T, trans=1, lower=True, check_finite=False).T * scales,
        )

    def whitened_matrix(self, symmetric: Array) -> tuple[Array, Callable[[Array], Array]]:
        """WSWᵀ, and what carries directions found there back."""
        half, back = self.whitened(symmetric)
        whole = self.whitened(half.T)[0]
        return (whole + whole.T) / 2, back

    def whitening(self) -> Array:
        """W (r×d)."""
        rows, back = self.whitened(np.empty((0, len(self.matrix))))
        return back(np.eye(rows.shape[1]))

    def times(self, V: Array) -> Array:
        """ΣV."""
        return self.matrix @ V

    def solve(self, B: Array) -> Array:
        """Σ⁻¹B, of least length in the columns' units where Σ is singular."""
        whitened, back = self.whitened(B.T)
        return back(whitened).T

    def trace_of_quotient(self, scatter: Array) -> float:
        """tr(Σ⁻¹S)."""
        scaled = scatter * self._scales[:, None] * self._scales
        if not self.is_nonsingular:
            return float(np.vdot(self._root, scaled @ self._root))
        inverse = la.lapack.dpotri(self._triangle, lower=1)[0]
        return float(2 * np.vdot(np.tril(inverse, -1), scaled) + np.diag(inverse) @ np.diag(scaled))
