"""Ratio of between-class to within-class spread, which LDA maximises, and the covariance in its denominator.

    maximise  tr (Wᵀ N W)⁻¹ Wᵀ B W ,    B = S_b/n = HᵀH ,  N = S_w/n or a regularised form of it

The coordinates are those in which the total scatter is nonsingular: constant columns, and combinations of columns that
do not vary, say nothing about the classes and are left out. Rank and factorisation use correlations, so the units of
the columns do not matter. If the correlations are singular up to rounding, the factor is built from their eigenvectors
without the null space. The within-class covariance may have a ridge:

    Σ_γ = (1−γ) S_w/n + γ τ I ,    τ = tr(S_w/n) / rank of the centred rows ,    0 ≤ γ ≤ 1

The g of Ledoit–Wolf and OAS refers to the target tr(S_w/n)/p with p the number of varying columns, so
γ/(1−γ) = g/(1−g) · rank/p describes the same matrix up to a factor.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import scipy.linalg as la
from numpy.typing import NDArray

from discrim.core.moments.class_moments import ClassMoments, rounding_share
from discrim.decompositions import eigh
from discrim.tables.rows import LabelledRows, block_slices, dense_block
from discrim.threads import computed_once

Array = NDArray[np.float64]
ROUNDING = 1e-13  # deviations below this share of the column's total one count as 0
MIN_CONDITION = 1e-14  # an inverse condition number below this is rounding
SINGULAR = 1e-11  # pivots below this share of a column's own variance are rounding


def numerical_rank(scatter: Array, precision: float) -> int:
    """Return the number of eigenvalues of a scatter above the rounding of its sums, by one factorisation (inertia).

    The pivots of a Cholesky factor do not show it. In a direction spread over all d coordinates, such as the one that
    centring removes, a pivot is d times the eigenvalue, and rounding would decide whether it counts.
    """
    size, largest = len(scatter), float(np.diag(scatter).max(initial=0.0))
    if largest <= 0:
        return 0
    shifted = scatter.copy(order="F")
    shifted[np.diag_indices(size)] -= rounding_share(size, precision) * largest
    factor, pivots, _ = la.lapack.dsytrf(shifted, lower=1, lwork=64 * size, overwrite_a=1)
    single = pivots > 0  # blocks of two rows have one positive and one negative eigenvalue
    return int(np.count_nonzero(np.diag(factor)[single] > 0) + np.count_nonzero(~single) // 2)


class Covariance:
    """Symmetric positive semidefinite matrix (up to rounding) and its factor.

    precision : machine precision of the numbers in which it was summed
    variances : total variances of the same columns; deviations that are rounding relative to these count as 0
    """

    def __init__(self, matrix: Array, precision: float = 0.0, variances: Array | None = None) -> None:
        self.matrix, self.precision, size = matrix, precision, len(matrix)
        deviations = np.sqrt(np.maximum(np.diag(matrix), 0.0))
        varies = deviations > (0.0 if variances is None else ROUNDING * np.sqrt(variances))
        self._scales = np.divide(1.0, deviations, out=np.zeros_like(deviations), where=deviations > 0)
        self._correlations = matrix * self._scales[:, None] * self._scales
        self.inverse_condition = 1.0  # of the correlations, if they have a factor
        self.is_nonsingular = size == 0  # True if no column is a combination of others, for any scales
        self._triangle = np.empty((0, 0))  # L of the correlations LLᵀ, unless they are singular
        if size == 0 or not varies.all():
            return
        self._triangle, broken = la.lapack.dpotrf(self._correlations, lower=1)
        # a pivot is the share of a column's variance not explained by the columns before it
        threshold = max(SINGULAR, 100 * np.sqrt(size) * precision)
        if not broken and float(np.diag(self._triangle).min()) ** 2 > threshold:
            # even if each column leaves some variance unexplained, a combination of all may vanish
            norm = np.abs(self._correlations).sum(axis=0).max()
            self.inverse_condition, _ = la.lapack.dpocon(self._triangle, norm, uplo="L")
            self.is_nonsingular = self.inverse_condition > max(MIN_CONDITION, rounding_share(size, precision))

    @computed_once
    def _root(self) -> Array:
        """Compute R (d×r) with RᵀCR = I on the range of the correlations C, from their eigenvectors."""
        values, vectors = eigh(self._correlations)
        precision = max(self.precision, float(np.finfo(np.float64).eps))
        kept = values > rounding_share(len(values), precision) * values.max(initial=0.0)
        return vectors[:, kept] / np.sqrt(values[kept])

    def whitened(self, rows: Array) -> tuple[Array, Callable[[Array], Array]]:
        """Return rows times Wᵀ, and a function that maps directions back (times W)."""
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
        """Return WSWᵀ, and a function that maps directions back."""
        half, back = self.whitened(symmetric)
        whole = self.whitened(half.T)[0]
        return (whole + whole.T) / 2, back

    def whitening(self) -> Array:
        """Compute W (r×d)."""
        rows, back = self.whitened(np.empty((0, len(self.matrix))))
        return back(np.eye(rows.shape[1]))

    def times(self, V: Array) -> Array:
        """Compute ΣV."""
        return self.matrix @ V

    def solve(self, B: Array) -> Array:
        """Compute Σ⁻¹B; the solution of minimal length in the columns' units if Σ is singular."""
        whitened, back = self.whitened(B.T)
        return back(whitened).T

    def trace_of_quotient(self, scatter: Array) -> float:
        """Compute tr(Σ⁻¹S)."""
        scaled = scatter * self._scales[:, None] * self._scales
        if not self.is_nonsingular:
            return float(np.vdot(self._root, scaled @ self._root))
        inverse = la.lapack.dpotri(self._triangle, lower=1)[0]
        return float(2 * np.vdot(np.tril(inverse, -1), scaled) + np.diag(inverse) @ np.diag(scaled))


MIN_WITHIN = 1e-12  # share of a direction's variance within classes below which it is rounding


@dataclass(frozen=True, eq=False)
class Ratio:
    """S_w/n and H (rows √(n_c/n) (μ_c−μ)) in r coordinates, and the r×p `embedding` that maps back to the moments'."""

    within: Any  # S_w/n: a matrix, or a LinearOperator if only products with the rows are available
    means: Array  # H
    shares: Array  # n_c / n
    weight: float  # n
    variances: Array  # of each coordinate: the diagonal of S_t/n
    trace: float  # of S_w/n
    rank: int  # of the total scatter
    embedding: Array | None = None  # None: the moments' coordinates themselves
    left_out: Array | None = None  # directions (in the moments' coordinates) without visible variance
    min_variance: float = 1.0  # of the directions kept, as a share of the largest, for standardised columns
    precision: float = 0.0

    @property
    def total(self) -> Array:
        """S_t/n."""
        return self.within + self.means.T @ self.means

    @property
    def class_means(self) -> Array:
        """μ_c − μ; 0 for classes without rows."""
        roots = np.sqrt(self.shares)[:, None]
        return np.divide(self.means, roots, out=np.zeros_like(self.means), where=roots > 0)

    @property
    def means_differ(self) -> bool:
        """True if the class means differ by more than rounding, relative to the variance of some coordinate."""
        return bool((np.einsum("cd,cd->d", self.means, self.means) > ROUNDING**2 * self.variances).any())

    @computed_once
    def within_classes(self) -> Covariance:
        """Return S_w/n with its factor."""
        return Covariance(self.within, self.precision, self.variances)

    def covariance(self, gamma: float) -> Any:
        """Return Σ_γ = (1−γ) S_w/n + γ τ I ,    τ = tr(S_w/n) / rank."""
        if not gamma:
            return self.within_classes
        sigma = (1 - gamma) * self.within
        sigma[np.diag_indices(len(sigma))] += self.ridge(gamma)
        return Covariance(sigma, self.precision, self.variances)

    def ridge(self, gamma: float) -> float:
        """Compute γ τ."""
        return gamma * self.trace / max(self.rank, 1)

    def total_along(self, directions: Array) -> Array:
        """Return directions (rows) times S_t/n without forming it, because distant classes would swamp the rest."""
        return (self.within @ directions.T).T + (directions @ self.means.T) @ self.means

    def projected(self, directions: Array) -> Ratio:
        """Return the ratio of the rows projected onto orthonormal directions."""
        within, means = directions @ self.within @ directions.T, self.means @ directions.T
        return _ratio(within, means, self.shares, self.weight, self.precision)

    def embedded(self, directions: Array) -> Array:
        """Return directions (rows) in the moments' coordinates."""
        return directions if self.embedding is None else directions @ self.embedding


def ratio_of(moments: ClassMoments, *, has_ridge: bool = False) -> Ratio:
    """Return the ratio of given statistics, in the range of their total scatter.

    has_ridge : True if the cost will have a ridge; then only the dimension of the range is needed
    """
    n = moments.total_weight
    shares = moments.weights / n
    within, means = moments.within / n, np.sqrt(shares)[:, None] * moments.centred_means()
    # columns whose squares underflow vary, but no sum of squares can show it
    varying = np.diag(within) + np.einsum("cd,cd->d", means, means) > 0
    if not varying.all():
        within, means = within[np.ix_(varying, varying)], means[:, varying]
    ratio = _ratio(within, means, shares, n, moments.precision)
    embedding, left_out, min_variance = (None, None, 1.0) if has_ridge else _range_of(ratio)
    if has_ridge:
        noise = rounding_share(len(within), ratio.precision) * ratio.variances.max(initial=0.0)
        # no column is rounding, and the classes vary in every direction; distant classes may hide that in the total
        is_whole = moments.freedom >= len(within) and ratio.variances.min(initial=np.inf) > noise
        if not (is_whole and ratio.within_classes.is_nonsingular):
            ratio = replace(ratio, rank=numerical_rank(ratio.total, ratio.precision))
    if embedding is None and varying.all():
        return ratio  # with the factor that was computed
    if embedding is not None:
        ratio = ratio.projected(embedding)
    if not varying.all():
        selection = np.eye(len(varying))[varying]
        embedding = selection if embedding is None else embedding @ selection
        left_out = None if left_out is None else left_out @ selection
    if (moments.centred_means()[:, ~varying] != 0).any():
        min_variance = 0.0
    return replace(ratio, embedding=embedding, left_out=left_out, min_variance=min_variance)


def _ratio(within: Array, means: Array, shares: Array, weight: float, precision: float) -> Ratio:
    # rounding may give negative values
    variances = np.maximum(np.diag(within), 0.0) + np.einsum("cd,cd->d", means, means)
    trace = float(np.trace(within))
    return Ratio(within, means, shares, weight, variances, trace, len(within), precision=precision)


def _range_of(ratio: Ratio) -> tuple[Array | None, Array | None, float]:
    """Return orthonormal rows that span the range of the total scatter, those left out, and the least variance kept.

    The first two are None if the range is the whole space. If the within-class scatter is nonsingular, so is the total,
    although distant classes may hide that.
    """
    if ratio.within_classes.is_nonsingular or Covariance(ratio.total, ratio.precision).is_nonsingular:
        return None, None, 1.0
    # use correlations, so that a feature in small units is not taken for rounding
    deviations = np.sqrt(ratio.variances)
    correlations = ratio.total / deviations / deviations[:, None]  # separately, because a product of two may underflow
    values, vectors = eigh(correlations)
    kept = values > rounding_share(len(values), ratio.precision) * values[-1]
    span = la.qr(deviations[:, None] * vectors[:, kept], mode="economic", check_finite=False)[0].T
    return span, (vectors[:, ~kept] / deviations[:, None]).T, float(values[kept].min() / values[-1])


def oas(within: Array, n: float, p: int) -> float:
    """Compute g of oracle approximating shrinkage (Chen et al. 2010, equation 23) for n rows of p columns."""
    squared, trace_squared = float(np.vdot(within, within)), float(np.trace(within)) ** 2
    spread = (n + 1 - 2 / p) * (squared - trace_squared / p)
    return 1.0 if spread <= 0 else min(1.0, ((1 - 2 / p) * squared + trace_squared) / spread)


def ledoit_wolf(within: Array, fourth: float, n: float, p: int) -> float:
    """Compute g of Ledoit and Wolf (2004), with `fourth` = Σ_i w_i ‖x_i − μ_{y_i}‖⁴."""
    squared, trace = float(np.vdot(within, within)), float(np.trace(within))
    apart = squared - trace**2 / p
    noise = (fourth / n - squared) / n
    return 1.0 if apart <= 0 else min(1.0, max(0.0, noise) / apart)


def chosen_shrinkage(rule: str, ratio: Ratio, moments: ClassMoments, points: LabelledRows, n_columns: int) -> float:
    """Compute γ by a rule, from its g by γ/(1−γ) = g/(1−g) · rank/p with p = `n_columns`, the features that vary."""
    unit = float(np.trace(ratio.within)) or 1.0  # g has no unit, and fourth powers overflow early
    if rule == "oas":
        g = oas(ratio.within / unit, ratio.weight, n_columns)
    else:
        g = ledoit_wolf(ratio.within / unit, fourth_moment(points, moments, unit), ratio.weight, n_columns)
    return g * ratio.rank / (g * ratio.rank + (1 - g) * n_columns) if g > 0 else 0.0


def fourth_moment(points: LabelledRows, moments: ClassMoments, unit: float = 1.0) -> float:
    """Compute Σ_i w_i (‖x_i − μ_{y_i}‖² / unit)², in the units of the moments."""
    total = 0.0
    for part in block_slices(*points.shape):
        centred = moments.residuals(dense_block(points.X, part), points.codes[part])
        squares = (np.einsum("ij,ij->i", centred, centred) / unit) ** 2
        total += float(squares.sum() if points.weights is None else points.weights[part] @ squares)
    return total
