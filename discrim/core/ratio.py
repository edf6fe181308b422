"""A ratio of between-class to within-class spread, which LDA maximises, and the covariance that it is measured in.

    maximise  tr (Wᵀ N W)⁻¹ Wᵀ B W ,    B = S_b/n = HᵀH ,  N = S_w/n or a relative of it

The coordinates are those in which the total scatter is not singular: constant columns, and combinations of columns that
do not vary, carry no information about the classes and are left out. Rank is judged, and Σ factored, on correlations,
so that units of the columns do not matter. If these are singular to rounding, the factor is made of their eigenvectors
and leaves the null space out. The within-class covariance may get a ridge:

    Σ_γ = (1−γ) S_w/n + γ τ I ,    τ = tr(S_w/n) / rank of the centred rows ,    0 ≤ γ ≤ 1

Ledoit–Wolf's and OAS's own g belongs to the target tr(S_w/n)/p with p the columns that vary, so
γ/(1−γ) = g/(1−g) · rank/p describes the same matrix up to a factor.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import scipy.linalg as la
import scipy.sparse as sp
from numpy.typing import NDArray

from discrim.core.moments.class_moments import ClassMoments, rounding_share
from discrim.decompositions import eigh
from discrim.tables.rows import LabelledRows, block_slices
from discrim.threads import computed_once

Array = NDArray[np.float64]
ROUNDING = 1e-13  # a deviation below this share of the column's total one is none
LEAST_CONDITION = 1e-14  # an inverse condition number below this is rounding
SINGULAR = 1e-11  # a pivot below this share of a column's own variance is rounding


def numerical_rank(scatter: Array, precision: float) -> int:
    """Return the rank of a scatter summed in that precision."""
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
        """Return rows times Wᵀ, and what carries directions found there back (times W)."""
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
        """Compute WSWᵀ, and what carries directions found there back."""
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
        """Compute Σ⁻¹B, of least length in the columns' units where Σ is singular."""
        whitened, back = self.whitened(B.T)
        return back(whitened).T

    def trace_of_quotient(self, scatter: Array) -> float:
        """Compute tr(Σ⁻¹S)."""
        scaled = scatter * self._scales[:, None] * self._scales
        if not self.is_nonsingular:
            return float(np.vdot(self._root, scaled @ self._root))
        inverse = la.lapack.dpotri(self._triangle, lower=1)[0]
        return float(2 * np.vdot(np.tril(inverse, -1), scaled) + np.diag(inverse) @ np.diag(scaled))


LEAST_WITHIN = 1e-12  # share of a direction's variance within classes below which it is rounding


@dataclass(frozen=True, eq=False)
class Ratio:
    """S_w/n and H (rows √(n_c/n) (μ_c−μ)) in r coordinates, and the r×p `embedding` that leads back to the moments'."""

    within: Any  # S_w/n: a matrix, or a LinearOperator where only products with the rows are to be had
    means: Array  # H
    shares: Array  # n_c / n
    weight: float  # n
    variances: Array  # of each coordinate: the diagonal of S_t/n
    trace: float  # of S_w/n
    rank: int  # of the total scatter
    embedding: Array | None = None  # None: the moments' coordinates themselves
    left_out: Array | None = None  # directions (of the moments' coordinates) in which no variance was to be seen
    least_kept: float = 1.0  # share of the largest variance, of standardised columns, in the least direction kept
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
        """Whether the class means differ by more than rounding, beside each coordinate's variance."""
        return bool((np.einsum("cd,cd->d", self.means, self.means) > ROUNDING**2 * self.variances).any())

    @computed_once
    def within_classes(self) -> Covariance:
        """S_w/n, with its factor."""
        return Covariance(self.within, self.precision, self.variances)

    def covariance(self, gamma: float) -> Covariance:
        """Compute Σ_γ = (1−γ) S_w/n + γ τ I ,    τ = tr(S_w/n) / rank."""
        if not gamma:
            return self.within_classes
        sigma = (1 - gamma) * self.within
        sigma[np.diag_indices(len(sigma))] += self.ridge(gamma)
        return Covariance(sigma, self.precision, self.variances)

    def ridge(self, gamma: float) -> float:
        """Compute γ τ."""
        return gamma * self.trace / max(self.rank, 1)

    def total_along(self, directions: Array) -> Array:
        """Return directions (rows) times S_t/n, without forming it: classes far apart would drown the rest."""
        return (self.within @ directions.T).T + (directions @ self.means.T) @ self.means

    def projected(self, directions: Array) -> Ratio:
        """Return the same of the rows projected on directions that are orthonormal."""
        within, means = directions @ self.within @ directions.T, self.means @ directions.T
        return _ratio(within, means, self.shares, self.weight, self.precision)

    def embedded(self, directions: Array) -> Array:
        """Return directions (rows) in the moments' coordinates."""
        return directions if self.embedding is None else directions @ self.embedding


def ratio_of(moments: ClassMoments, *, has_ridge: bool = False) -> Ratio:
    """Return the ratio of given statistics, in the range of their total scatter.

    has_ridge : the cost will have one, so that of the range only its dimension matters
    """
    n = moments.total_weight
    shares = moments.weights / n
    within, means = moments.within / n, np.sqrt(shares)[:, None] * moments.centred_means()
    # of their squares: a column 1e-170 beside others varies, but no sum of squares can hold it
    varying = np.diag(within) + np.einsum("cd,cd->d", means, means) > 0
    if not varying.all():
        within, means = within[np.ix_(varying, varying)], means[:, varying]
    ratio = _ratio(within, means, shares, n, moments.precision)
    embedding, left_out, least_kept = (None, None, 1.0) if has_ridge else _range_of(ratio)
    if has_ridge:
        noise = rounding_share(len(within), ratio.precision) * ratio.variances.max(initial=0.0)
        # where no column is rounding, and the classes vary all over; which classes far apart may hide in the total
        is_whole = ratio.variances.min(initial=np.inf) > noise and ratio.within_classes.is_nonsingular
        ratio = replace(ratio, rank=len(within) if is_whole else numerical_rank(ratio.total, ratio.precision))
    if embedding is not None:
        ratio = ratio.projected(embedding)
    if not varying.all():
        selection = np.eye(len(varying))[varying]
        embedding = selection if embedding is None else embedding @ selection
        left_out = None if left_out is None else left_out @ selection
    if (moments.centred_means()[:, ~varying] != 0).any():
        least_kept = 0.0
    return replace(ratio, embedding=embedding, left_out=left_out, least_kept=least_kept)


def _ratio(within: Array, means: Array, shares: Array, weight: float, precision: float) -> Ratio:
    variances = np.maximum(np.diag(within), 0.0) + np.einsum("cd,cd->d", means, means)  # rounding may be below 0
    trace = float(np.trace(within))
    return Ratio(within, means, shares, weight, variances, trace, len(within), precision=precision)


def _range_of(ratio: Ratio) -> tuple[Array | None, Array | None, float]:
    """Orthonormal rows that span the range of the total scatter, and what is left out; None where it is all there is.

    And the least share of variance that was kept.

    Where the within-class scatter is not singular the total is not either, though classes far apart may hide that.
    """
    if ratio.within_classes.is_nonsingular or Covariance(ratio.total, ratio.precision).is_nonsingular:
        return None, None, 1.0
    # judged on correlations, so that a feature in small units is not taken for rounding
    deviations = np.sqrt(ratio.variances)
    correlations = ratio.total / deviations / deviations[:, None]  # one by one: a product of two may underflow
    values, vectors = eigh(correlations)
    kept = values > rounding_share(len(values), ratio.precision) * values[-1]
    span = la.qr(deviations[:, None] * vectors[:, kept], mode="economic", check_finite=False)[0].T
    return span, (vectors[:, ~kept] / deviations[:, None]).T, float(values[kept].min() / values[-1])


def oas(within: Array, n: float, p: int) -> float:
    """Compute g of oracle approximating shrinkage (Chen et al. 2010, equation 23) for n rows of p columns."""
    squared, of_trace = float(np.vdot(within, within)), float(np.trace(within)) ** 2
    spread = (n + 1 - 2 / p) * (squared - of_trace / p)
    return 1.0 if spread <= 0 else min(1.0, ((1 - 2 / p) * squared + of_trace) / spread)


def ledoit_wolf(within: Array, fourth: float, n: float, p: int) -> float:
    """Return ledoit and Wolf (2004), g from Σ_i w_i ‖x_i − μ_{y_i}‖⁴ = `fourth`."""
    squared, trace = float(np.vdot(within, within)), float(np.trace(within))
    apart = squared - trace**2 / p
    noise = (fourth / n - squared) / n
    return 1.0 if apart <= 0 else min(1.0, max(0.0, noise) / apart)


def in_our_unit(g: float, rank: int, p: int) -> float:
    """Compute γ with γ/(1−γ) = g/(1−g) · rank/p."""
    return g * rank / (g * rank + (1 - g) * p) if g > 0 else 0.0


def chosen_shrinkage(rule: str, ratio: Ratio, moments: ClassMoments, points: LabelledRows, n_columns: int) -> float:
    """Compute γ by a rule; `n_columns` counts the features that vary."""
    unit = float(np.trace(ratio.within)) or 1.0  # g has none, and fourth powers leave the range of the numbers early
    if rule == "oas":
        g = oas(ratio.within / unit, ratio.weight, n_columns)
    else:
        g = ledoit_wolf(ratio.within / unit, fourth_moment(points, moments, unit), ratio.weight, n_columns)
    return in_our_unit(g, ratio.rank, n_columns)


def fourth_moment(points: LabelledRows, moments: ClassMoments, unit: float = 1.0) -> float:
    """Compute Σ_i w_i (‖x_i − μ_{y_i}‖² / unit)², in the moments' own units."""
    total = 0.0
    for part in block_slices(*points.shape):
        codes = points.codes[part]
        block = points.X[part].toarray() if sp.issparse(points.X) else points.X[part]
        scaled = np.ldexp(block.astype(np.float64, copy=False), -moments.exponent)
        centred = (scaled - moments.pilots[codes]) - moments.remainders[codes]
        squares = (np.einsum("ij,ij->i", centred, centred) / unit) ** 2
        total += float(squares.sum() if points.weights is None else points.weights[part] @ squares)
    return total
