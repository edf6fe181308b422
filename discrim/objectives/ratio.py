"""A ratio: the between-class spread over the within-class spread, what LDA and its kin maximise.

    maximise  tr (Wᵀ N W)⁻¹ Wᵀ B W ,    B = S_b/n = HᵀH ,  N = S_w/n or a relative of it

Posed in coordinates in which the total scatter is not singular: constant columns, and combinations of columns that do
not vary at all, say nothing about the classes and are left out.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy.linalg as la
from numpy.typing import NDArray

from discrim.moments.class_moments import ClassMoments, rounding_share

Array = NDArray[np.float64]
ROUNDING = 1e-13  # a within-class deviation below this share of the total one
LEAST_WITHIN = 1e-12  # share of a direction's variance within classes below which it is rounding
LEAST_CONDITION = 1e-14  # an inverse condition number below this is rounding
SINGULAR = 1e-11  # a pivot below this share of a column's own variance is rounding


@dataclass(frozen=True, eq=False)
class Ratio:
    """S_w/n and H (rows √(n_c/n) (μ_c−μ)) in r coordinates, and the r×p `embedding` that leads back to the moments'."""

    within: Array
    means: Array  # H
    shares: Array  # n_c / n
    weight: float  # n
    embedding: Array | None  # None: the moments' coordinates themselves

    @property
    def rank(self) -> int:
        """Rank of the total scatter."""
        return len(self.within)

    @property
    def total(self) -> Array:
        """S_t/n."""
        return self.within + self.means.T @ self.means

    def total_along(self, directions: Array) -> Array:
        """Directions (rows) times S_t/n, without forming it: classes far apart would drown the rest."""
        return directions @ self.within + (directions @ self.means.T) @ self.means

    @property
    def means_differ(self) -> bool:
        """Whether the class means differ by more than rounding."""
        return means_differ(self.means, np.diag(self.total))

    def embedded(self, directions: Array) -> Array:
        """Directions (rows) in the moments' coordinates."""
        return directions if self.embedding is None else directions @ self.embedding


def means_differ(means: Array, variances: Array) -> bool:
    """Whether class means (rows √(n_c/n) (μ_c−μ)) differ by more than rounding, beside each column's variance."""
    return bool((np.einsum("cd,cd->d", means, means) > ROUNDING**2 * variances).any())


def ratio_of(moments: ClassMoments) -> Ratio:
    """The ratio of given statistics, in the range of their total scatter."""
    n = moments.total_weight
    shares = moments.weights / n
    within, means = moments.within / n, np.sqrt(shares)[:, None] * moments.centred_means()
    variances = np.diag(within) + np.einsum("cd,cd->d", means, means)
    varying = variances > 0
    if not varying.all():
        within, means = within[np.ix_(varying, varying)], means[:, varying]
    embedding = _range_of(within, within + means.T @ means, moments.precision)
    if embedding is not None:
        within, means = embedding @ within @ embedding.T, means @ embedding.T
    if not varying.all():
        selection = np.eye(len(varying))[varying]
        embedding = selection if embedding is None else embedding @ selection
    return Ratio(within, means, shares, n, embedding)


def _range_of(within: Array, total: Array, precision: float) -> Array | None:
    """Orthonormal rows that span the range of the total scatter; None where it is all of the space.

    Where the within-class scatter is not singular the total is not either, though classes far apart may hide that.
    """
    if is_nonsingular(within, precision, total) or is_nonsingular(total, precision):
        return None
    # judged on correlations, so that a feature in small units is not taken for rounding
    deviations = np.sqrt(np.diag(total))
    values, vectors = la.eigh(total / np.outer(deviations, deviations), driver="evd", check_finite=False)
    kept = values > rounding_share(len(total), precision) * values[-1]
    return la.qr(deviations[:, None] * vectors[:, kept], mode="economic", check_finite=False)[0].T


def is_nonsingular(scatter: Array, precision: float = 0.0, total: Array | None = None) -> bool:
    """Whether no column is a combination of the others, whatever the columns' scales.

    A deviation that is rounding beside the column's deviation in `total` counts as none.
    """
    deviations = np.sqrt(np.maximum(np.diag(scatter), 0.0))
    least = 0.0 if total is None else ROUNDING * np.sqrt(np.diag(total))
    if (deviations <= least).any():
        return False
    if not len(deviations):
        return True
    correlations = scatter / np.outer(deviations, deviations)
    factor, broken = la.lapack.dpotrf(correlations, lower=1)
    threshold = max(SINGULAR, 100 * np.sqrt(len(scatter)) * precision)
    # a pivot is the share of a column's variance that the columns before it leave unexplained
    if broken or not float(np.diag(factor).min()) ** 2 > threshold:
        return False
    # many columns may each leave some of the others unexplained, and still a combination of all be next to nothing
    inverse_condition, _ = la.lapack.dpocon(factor, np.abs(correlations).sum(axis=0).max(), uplo="L")
    return bool(inverse_condition > max(LEAST_CONDITION, rounding_share(len(scatter), precision)))
