"""The discriminants of a ratio: eigenvectors of N⁻¹B, and what stands in for them where N is singular.

G N Gᵀ = I ,  G B Gᵀ = Λ   (directions as rows, λ descending)
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import scipy.linalg as la
from numpy.typing import NDArray

from discrim.core.moments.class_moments import rounding_share
from discrim.core.ratio import LEAST_WITHIN, Covariance, Ratio
from discrim.decompositions import eigh, svd

Array = NDArray[np.float64]
RANK = 1e-10  # class means that differ by less than this share of the largest difference do not differ
TIED = 1e-8  # eigenvalues this close have no order of their own
NO_GAIN = 1e-12  # a gain below this share of the cost, or of the largest gain, is rounding
COLLAPSED = 1e-9  # a share of the variance within classes below this is rounding


class Cost(Protocol):
    """Σ_γ, as a matrix with its factor or as products with the rows."""

    @property
    def is_nonsingular(self) -> bool: ...
    @property
    def inverse_condition(self) -> float: ...
    def whitened(self, rows: Array) -> tuple[Array, Callable[[Array], Array]]: ...
    def times(self, V: Array) -> Array: ...
    def trace_of_quotient(self, scatter: Any) -> float: ...


@dataclass(frozen=True, eq=False)
class Discriminants:
    """Directions as rows, and what each gives; the cost that distances along them are measured in (None: S_w/n)."""

    directions: Array
    values: Array
    cost: Cost | None = None
    count: int | None = None  # how many of them to keep, where the method itself chose that
    found: Any = None  # what else the method found, its fields named as the fitted attributes they become
    orthonormal: bool = False  # unit directions, whose values carry the rows' unit squared
    ties_settled: bool = False  # whether directions of equal value have an order of their own
    is_singular: bool = False  # whether another scatter had to take the place of a singular one


def discriminants(means: Array, cost: Cost) -> Discriminants:
    """Return all q eigenvectors of cost⁻¹ meansᵀmeans with a positive eigenvalue, G cost Gᵀ = I.

    With W cost Wᵀ = I they are VW, V the principal axes of the whitened means HWᵀ. (From Y = cost⁻¹Hᵀ alone, as where
    there are products only, the whitened means are known up to a rotation: they are those of HY = QΛQᵀ.)
    """
    whitened, back = cost.whitened(means)
    values, axes = principal(whitened)
    most = len(means) - 1  # C means span no more
    return Discriminants(back(axes[:most]), values[:most], cost)


def of_gain(whitened: Array, back: Callable[[Array], Array], cost: Cost, precision: float) -> Discriminants:
    """Return all eigenvectors of cost⁻¹ gain with a positive eigenvalue, of any symmetric gain.

    whitened : the gain in coordinates in which the cost is I, from which `back` carries directions (rows)
    """
    values, vectors = eigh(whitened)
    values, directions = values[::-1], vectors.T[::-1]
    least = max(NO_GAIN, rounding_share(len(values), precision)) * max(1.0, float(values.max(initial=0.0)))
    kept = values > least
    return Discriminants(back(directions[kept]), values[kept], cost)


def principal(rows: Array) -> tuple[Array, Array]:
    """Return eigenvalues and orthonormal eigenvectors (rows) of rowsᵀrows, of numerical rank, largest first."""
    if len(rows) <= rows.shape[1]:
        _, singular, directions = svd(rows)
        kept = singular > RANK * singular.max(initial=0.0)
        return singular[kept] ** 2, directions[kept]
    values, vectors = eigh(rows.T @ rows)
    values, directions = values[::-1], vectors.T[::-1]
    kept = values > max(RANK**2, 4 * np.finfo(float).eps * len(values)) * values.max(initial=0.0)
    return values[kept], directions[kept]


def classical(ratio: Ratio, cost: Cost | None = None) -> Discriminants:
    """Return eigenvectors of N⁻¹S_b, N the cost (None: S_w/n), or of S_t⁺S_b scaled by S_w/n if that is singular."""
    cost = ratio.within_classes if cost is None else cost
    if cost.is_nonsingular:
        return discriminants(ratio.means, cost)
    found = uncorrelated(ratio)
    values = found.values / np.maximum(1 - found.values, LEAST_WITHIN)
    return Discriminants(standardised(found.directions, ratio), values, ties_settled=True, is_singular=True)


def uncorrelated(ratio: Ratio) -> Discriminants:
    """ULDA: G S_t Gᵀ = I, S_t = S_w + S_b, λ = the share of each direction's variance that lies between the classes.

    Where S_w is not singular they are classical LDA's, in the unit of S_t: so classes far apart do not hide it.

    Tied eigenvalues have no order of their own: inside a group, directions of largest variance come first (the right
    singular vectors of G, smallest singular value first).
    """
    within = ratio.within_classes
    if within.is_nonsingular:
        found = discriminants(ratio.means, within)
        directions, values = found.directions / np.sqrt(1 + found.values)[:, None], found.values / (1 + found.values)
    else:
        found = discriminants(ratio.means, Covariance(ratio.total, ratio.precision))
        directions, values = found.directions.copy(), found.values
    starts = np.flatnonzero(np.diff(values, prepend=np.inf) < -TIED)
    for first, last in zip(starts, [*starts, len(directions)][1:], strict=True):
        if last - first > 1:
            rotation, _, _ = svd(directions[first:last])
            directions[first:last] = rotation.T[::-1] @ directions[first:last]
    return Discriminants(directions, np.minimum(values, 1.0), ties_settled=True)


def orthogonal(ratio: Ratio) -> Discriminants:
    """Compute OLDA: an orthonormal basis of ULDA's span, ordered by the between-class spread along it."""
    directions = uncorrelated(ratio).directions
    lengths = np.linalg.norm(directions, axis=1)[:, None]
    return by_between_spread(la.qr((directions / lengths).T, mode="economic")[0].T, ratio.means)


def by_between_spread(orthonormal: Array, means: Array) -> Discriminants:
    """Return the same span, rotated to the principal axes of the class means in it."""
    along = means @ orthonormal.T
    values, vectors = eigh(along.T @ along)
    return Discriminants(vectors.T[::-1] @ orthonormal, np.maximum(values[::-1], 0.0), orthonormal=True)


def null_space(ratio: Ratio) -> Discriminants:
    """NLDA: the largest between-class spread where the classes have no within-class spread at all (may be empty)."""
    null = ratio.means[:0]
    if not ratio.within_classes.is_nonsingular:
        shares, directions = within_shares(ratio.within, ratio.total)
        null = directions[shares <= collapsed_share(ratio)]
    if not len(null):
        return Discriminants(null, np.empty(0), orthonormal=True)
    orthonormal = la.qr(null.T, mode="economic")[0].T
    spread, directions = principal(ratio.means @ orthonormal.T)
    return Discriminants(directions @ orthonormal, spread, orthonormal=True)


def collapsed_share(ratio: Ratio) -> float:
    """Return the share of the variance within classes up to which it is rounding, in the given precision."""
    return max(COLLAPSED, float(10 * np.sqrt(ratio.rank) * ratio.precision))


def within_shares(within: Array, total: Array) -> tuple[Array, Array]:
    """Shares ω of the variance that lie within classes, S_w v = ω S_t v, ascending, and the v as rows (v S_t vᵀ = 1).

    Free of the features' scales, so that nothing (ω = 0) can be told from little.
    """
    whitened, back = Covariance(total).whitened_matrix(within)
    shares, vectors = eigh(whitened)
    return shares, back(vectors.T)


def standardised(directions: Array, ratio: Ratio) -> Array:
    """Return directions (rows) of unit deviation within classes, or in total where they have none within."""
    of_within = np.einsum("dk,kd->k", ratio.within @ directions.T, directions)
    of_total = np.einsum("kd,kd->k", ratio.total_along(directions), directions)
    return directions / np.sqrt(np.where(of_within > COLLAPSED * of_total, of_within, of_total))[:, None]


def whitened_span(found: Discriminants, ratio: Ratio) -> Array:
    """Return rows of the same span with A cost Aᵀ = I; where the cost vanishes in it, the total takes its place."""
    directions = found.directions
    cost = ratio.within_classes if found.cost is None else found.cost
    of_cost = directions @ cost.times(directions.T)
    if np.abs(of_cost - np.eye(len(of_cost))).max(initial=0.0) < 1e-6:
        return directions  # as they came
    if cost.is_nonsingular:
        return Covariance(of_cost).whitening() @ directions
    shares, vectors = within_shares(of_cost, directions @ ratio.total @ directions.T)
    return (vectors @ directions) / np.sqrt(np.where(shares > COLLAPSED, shares, 1.0))[:, None]
