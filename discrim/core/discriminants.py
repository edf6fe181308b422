"""Discriminants of a ratio: eigenvectors of N⁻¹B, and their replacements if N is singular.

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
from discrim.core.ratio import MIN_WITHIN, Covariance, Ratio
from discrim.decompositions import eigh, svd

Array = NDArray[np.float64]
RANK = 1e-10  # class means that differ by less than this share of the largest difference count as equal
TIED = 1e-8  # eigenvalues closer than this are tied
NO_GAIN = 1e-12  # gains below this share of the cost, or of the largest gain, are rounding
WELL_CONDITIONED = 1e-9  # inverse condition number above which G cost Gᵀ = I to seven digits
COLLAPSED = 1e-9  # within-class shares of the variance below this are rounding


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
    """Directions as rows with their values, and the cost that defines distances along them (None: S_w/n)."""

    directions: Array
    values: Array
    cost: Cost | None = None
    count: int | None = None  # number to keep, if the method chose it
    found: Any = None  # further results of the method, with fields named like the fitted attributes
    orthonormal: bool = False  # unit directions, whose values are in squared units of the rows
    ties_settled: bool = False  # True if directions of equal value have a defined order
    is_singular: bool = False  # True if another scatter replaced a singular one


def discriminants(means: Array, cost: Cost) -> Discriminants:
    """Return all q eigenvectors of cost⁻¹ meansᵀmeans with a positive eigenvalue, G cost Gᵀ = I.

    With W cost Wᵀ = I they are VW, where V are the principal axes of the whitened means HWᵀ. (From Y = cost⁻¹Hᵀ alone,
    if only products are available, the whitened means are known up to a rotation: they are those of HY = QΛQᵀ.)
    """
    whitened, back = cost.whitened(means)
    values, axes = principal(whitened)
    most = len(means) - 1  # C centred means span at most C − 1 dimensions
    return Discriminants(back(axes[:most]), values[:most], cost)


def gain_discriminants(whitened: Array, back: Callable[[Array], Array], cost: Cost, precision: float) -> Discriminants:
    """Return all eigenvectors of cost⁻¹ gain with a positive eigenvalue, for any symmetric gain.

    whitened : the gain in coordinates in which the cost is I; `back` maps directions (rows) from there
    """
    values, vectors = eigh(whitened)
    values, directions = values[::-1], vectors.T[::-1]
    least = max(NO_GAIN, rounding_share(len(values), precision)) * max(1.0, float(values.max(initial=0.0)))
    kept = values > least
    return Discriminants(back(directions[kept]), values[kept], cost)


def principal(rows: Array) -> tuple[Array, Array]:
    """Return eigenvalues and orthonormal eigenvectors (rows) of rowsᵀrows up to the numerical rank, largest first."""
    if len(rows) <= rows.shape[1]:
        _, singular, directions = svd(rows)
        kept = singular > RANK * singular.max(initial=0.0)
        return singular[kept] ** 2, directions[kept]
    values, vectors = eigh(rows.T @ rows)
    values, directions = values[::-1], vectors.T[::-1]
    kept = values > max(RANK**2, 4 * np.finfo(float).eps * len(values)) * values.max(initial=0.0)
    return values[kept], directions[kept]


def classical(ratio: Ratio, cost: Cost | None = None) -> Discriminants:
    """Return eigenvectors of N⁻¹S_b with N the cost (None: S_w/n), or of S_t⁺S_b scaled by S_w/n if N is singular."""
    cost = ratio.within_classes if cost is None else cost
    if cost.is_nonsingular:
        return discriminants(ratio.means, cost)
    found = uncorrelated(ratio)
    values = found.values / np.maximum(1 - found.values, MIN_WITHIN)
    return Discriminants(standardised(found.directions, ratio), values, ties_settled=True, is_singular=True)


def uncorrelated(ratio: Ratio) -> Discriminants:
    """Compute ULDA: G S_t Gᵀ = I, S_t = S_w + S_b, λ = the between-class share of each direction's variance.

    If S_w is nonsingular they are computed from classical LDA and rescaled to S_t, because distant classes may hide
    S_w.

    Tied eigenvalues have no defined order. Within a group of ties, directions of largest variance are first (the right
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
    """Compute OLDA: an orthonormal basis of ULDA's span, sorted by the between-class spread along it."""
    directions = uncorrelated(ratio).directions
    lengths = np.linalg.norm(directions, axis=1)[:, None]
    return by_between_spread(la.qr((directions / lengths).T, mode="economic")[0].T, ratio.means)


def by_between_spread(orthonormal: Array, means: Array) -> Discriminants:
    """Return the same span, rotated to the principal axes of the class means in it."""
    projections = means @ orthonormal.T
    values, vectors = eigh(projections.T @ projections)
    return Discriminants(vectors.T[::-1] @ orthonormal, np.maximum(values[::-1], 0.0), orthonormal=True)


def null_space(ratio: Ratio) -> Discriminants:
    """Compute NLDA: the largest between-class spread in the null space of the within-class scatter (may be empty)."""
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
    """Return the within-class share of the variance up to which it is rounding in the given precision."""
    return max(COLLAPSED, float(10 * np.sqrt(ratio.rank) * ratio.precision))


def within_shares(within: Array, total: Array) -> tuple[Array, Array]:
    """Return within-class shares ω of the variance, S_w v = ω S_t v, ascending, and the v as rows (v S_t vᵀ = 1).

    They do not depend on the features' scales, so ω = 0 can be distinguished from a small ω.
    """
    whitened, back = Covariance(total).whitened_matrix(within)
    shares, vectors = eigh(whitened)
    return shares, back(vectors.T)


def standardised(directions: Array, ratio: Ratio) -> Array:
    """Return directions (rows) scaled to unit within-class deviation, or to unit total deviation if they have none."""
    within_part = np.einsum("dk,kd->k", ratio.within @ directions.T, directions)
    total_part = np.einsum("kd,kd->k", ratio.total_along(directions), directions)
    return directions / np.sqrt(np.where(within_part > COLLAPSED * total_part, within_part, total_part))[:, None]


@dataclass(frozen=True, eq=False)
class WhitenedClasses:
    """The span of discriminants as q ≤ C − 1 directions with G cost Gᵀ = I, and the class means projected onto them.

    The directions are in the coordinates of a ratio, widest first; the means (C×q) are NaN for classes without rows.
    """

    directions: Array
    means: Array

    @classmethod
    def of(cls, found: Discriminants, ratio: Ratio) -> WhitenedClasses:
        """Build from the discriminants of a ratio; directions in which the cost is 0 use the total instead."""
        axes, most = found.directions, len(ratio.means) - 1
        # well-conditioned directions were computed in coordinates in which the cost is I
        if not (isinstance(found.cost, Covariance) and found.cost.inverse_condition > WELL_CONDITIONED):
            cost = ratio.within_classes if found.cost is None else found.cost
            projected = axes @ cost.times(axes.T)
            is_white = np.abs(projected - np.eye(len(projected))).max(initial=0.0) < 1e-6
            if not is_white and cost.is_nonsingular:
                axes = Covariance(projected).whitening() @ axes
            elif not is_white:
                shares, vectors = within_shares(projected, axes @ ratio.total @ axes.T)
                axes = (vectors @ axes) / np.sqrt(np.where(shares > COLLAPSED, shares, 1.0))[:, None]
        if found.cost is None or len(axes) > most:  # otherwise they are principal axes of the class means
            axes = svd(ratio.means @ axes.T)[2][:most] @ axes
        roots = np.sqrt(np.where(ratio.shares > 0, ratio.shares, np.nan))[:, None]
        return cls(axes, (ratio.means @ axes.T) / roots)
