"""The discriminants of a ratio: eigenvectors of N⁻¹B, and what stands in for them where N is singular.

G N Gᵀ = I ,  G B Gᵀ = Λ   (directions as rows, λ descending)
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import scipy.linalg as la
from numpy.typing import NDArray
from scipy.sparse.linalg import LinearOperator

from discrim.objectives.ratio import is_nonsingular
from discrim.solve.eigen import spectrum_of_matrix, spectrum_of_operator

Array = NDArray[np.float64]
RANK = 1e-10  # class means that differ by less than this share of the largest difference do not differ
TIED = 1e-8  # eigenvalues this close have no order of their own
COLLAPSED = 1e-9  # a share of the variance within classes below this is rounding


@dataclass(frozen=True, eq=False)
class Discriminants:
    """Directions as rows, and what each gives; the covariance that distances along them are measured in (None: S_w/n).

    `count` is how many of them to keep, where the method itself chose that; `details` what else it found.
    """

    directions: Array
    values: Array
    metric: Array | None = None
    count: int | None = None
    details: dict[str, Any] = field(default_factory=dict)
    has_unit: bool = False  # whether the values carry the rows' unit squared
    ties_settled: bool = False  # whether directions of equal value have an order of their own


def discriminants(means: Array, cost: Array) -> Discriminants:
    """All q eigenvectors of cost⁻¹ meansᵀmeans with a positive eigenvalue, G cost Gᵀ = I."""
    L = la.cholesky(cost, lower=True, check_finite=False)
    whitened = la.solve_triangular(L, means.T, lower=True, check_finite=False).T
    values, directions = principal(whitened)
    values, directions = values[: len(means) - 1], directions[: len(means) - 1]  # C means span no more
    back = la.solve_triangular(L, directions.T, trans=1, lower=True, check_finite=False)
    return Discriminants(back.T, values, cost)


def principal(rows: Array) -> tuple[Array, Array]:
    """Eigenvalues and orthonormal eigenvectors (rows) of rowsᵀrows, of numerical rank, largest first."""
    if len(rows) <= rows.shape[1]:
        _, singular, directions = la.svd(rows, full_matrices=False, check_finite=False)
        kept = singular > RANK * singular.max(initial=0.0)
        return singular[kept] ** 2, directions[kept]
    values, vectors = la.eigh(rows.T @ rows, driver="evd", check_finite=False)
    values, directions = values[::-1], vectors.T[::-1]
    kept = values > max(RANK**2, 4 * np.finfo(float).eps * len(values)) * values.max(initial=0.0)
    return values[kept], directions[kept]


def uncorrelated(means: Array, within: Array, precision: float = 0.0) -> Discriminants:
    """ULDA: G S_t Gᵀ = I, S_t = S_w + S_b, λ = the share of each direction's variance that lies between the classes.

    Where S_w is not singular they are classical LDA's, in the unit of S_t: so classes far apart do not hide it.

    Tied eigenvalues have no order of their own: inside a group, directions of largest variance come first (the right
    singular vectors of G, smallest singular value first).
    """
    total = within + means.T @ means
    if is_nonsingular(within, precision, total):
        found = discriminants(means, within)
        of_total = 1 + found.values
        found = Discriminants(found.directions / np.sqrt(of_total)[:, None], found.values / of_total)
    else:
        found = discriminants(means, total)
    directions = found.directions.copy()
    starts = np.flatnonzero(np.diff(found.values, prepend=np.inf) < -TIED)
    for first, last in zip(starts, [*starts, len(directions)][1:], strict=True):
        if last - first > 1:
            rotation, _, _ = la.svd(directions[first:last], full_matrices=False)
            directions[first:last] = rotation.T[::-1] @ directions[first:last]
    return Discriminants(directions, np.minimum(found.values, 1.0), ties_settled=True)


def orthogonal(means: Array, within: Array, precision: float = 0.0) -> Discriminants:
    """OLDA: an orthonormal basis of ULDA's span, ordered by the between-class spread along it."""
    Q = la.qr(uncorrelated(means, within, precision).directions.T, mode="economic")[0]
    return by_between_spread(Q.T, means)


def by_between_spread(orthonormal: Array, means: Array) -> Discriminants:
    """The same span, rotated to the principal axes of the class means in it."""
    along = means @ orthonormal.T
    values, vectors = la.eigh(along.T @ along)
    return Discriminants(vectors.T[::-1] @ orthonormal, np.maximum(values[::-1], 0.0), has_unit=True)


def null_space(means: Array, within: Array, precision: float = 0.0) -> Discriminants:
    """NLDA: the largest between-class spread where the classes have no within-class spread at all (may be empty)."""
    total = within + means.T @ means
    if is_nonsingular(within, precision, total):
        return Discriminants(means[:0], np.empty(0), has_unit=True)
    shares, directions = within_shares(within, total)
    null = directions[shares <= collapsed_share(len(within), precision)]
    if not len(null):
        return Discriminants(null, np.empty(0), has_unit=True)
    orthonormal = la.qr(null.T, mode="economic")[0].T
    spread, directions = principal(means @ orthonormal.T)
    return Discriminants(directions @ orthonormal, spread, has_unit=True)


def collapsed_share(size: int, precision: float) -> float:
    """A share of the variance within classes up to this is rounding, of numbers of the given precision."""
    return max(COLLAPSED, float(10 * np.sqrt(size) * precision))


def within_shares(within: Array, total: Array) -> tuple[Array, Array]:
    """Shares ω of the variance that lie within classes, S_w v = ω S_t v, ascending, and the v as rows (v S_t vᵀ = 1).

    Free of the features' scales, so that nothing (ω = 0) can be told from little.
    """
    L = la.cholesky(total, lower=True, check_finite=False)
    half = la.solve_triangular(L, within, lower=True, check_finite=False)
    whitened = la.solve_triangular(L, half.T, lower=True, check_finite=False)
    shares, vectors = la.eigh((whitened + whitened.T) / 2, driver="evd", check_finite=False)
    return shares, la.solve_triangular(L, vectors, trans=1, lower=True, check_finite=False).T


def complement(directions: Array, total: Array, wanted: int) -> Array:
    """PCA of what is orthogonal to the directions: `wanted` unit rows."""
    Q = la.qr(directions.T, mode="economic")[0]
    along = total @ Q
    rest = total - Q @ along.T - along @ Q.T + Q @ (Q.T @ along) @ Q.T
    found = spectrum_of_matrix(rest, wanted, precision=float(np.finfo(np.float64).eps)).directions
    found = found - (found @ Q) @ Q.T
    return found / np.linalg.norm(found, axis=1)[:, None]


def complement_by_products(directions: Array, total: LinearOperator, wanted: int) -> Array:
    """The same from products with the total scatter only."""
    Q = la.qr(directions.T, mode="economic")[0]

    def projected(v: Array) -> Array:
        inside = v - Q @ (Q.T @ v)
        product = total.matvec(inside)
        return product - Q @ (Q.T @ product)

    rest = LinearOperator(total.shape, matvec=projected, dtype=np.float64)
    return spectrum_of_operator(rest, wanted, None).directions


def standardised(directions: Array, cost: Array, total: Array) -> Array:
    """Directions (rows) with unit deviation under `cost`, or under `total` where they have none under `cost`."""
    of_cost = np.einsum("kd,kd->k", directions @ cost, directions)
    of_total = np.einsum("kd,kd->k", directions @ total, directions)
    return directions / np.sqrt(np.where(of_cost > COLLAPSED * of_total, of_cost, of_total))[:, None]


def whitened_span(directions: Array, cost: Array, total: Array) -> Array:
    """Rows of the same span with A cost Aᵀ = I; where the cost vanishes in it, the total takes its place."""
    of_cost = directions @ cost @ directions.T
    if np.abs(of_cost - np.eye(len(of_cost))).max(initial=0.0) < 1e-6:
        return directions  # as they came
    if is_nonsingular(cost, total=total):
        L = la.cholesky(of_cost, lower=True, check_finite=False)
        return la.solve_triangular(L, directions, lower=True, check_finite=False)
    shares, vectors = within_shares(of_cost, directions @ total @ directions.T)
    return (vectors @ directions) / np.sqrt(np.where(shares > COLLAPSED, shares, 1.0))[:, None]
