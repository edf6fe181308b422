"""The ridge rule of linear discriminant analysis for a whole path of ridges, from one tridiagonal form.

    a_c(x) = m_cᵀΣ_γ⁻¹(x − μ) − ½ m_cᵀΣ_γ⁻¹m_c + log p_c ,    Σ_γ = (1−γ) S_w/n + γ τ I ,    m_c = μ_c − μ

With S_w/n = Q T Qᵀ, T tridiagonal, every γ costs one tridiagonal system: a quarter of what eigenvectors would take.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.linalg as la
from numpy.typing import NDArray

from discrim.moments.class_moments import ClassMoments, rounding_share
from discrim.solve.landmarks import FARTHEST

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class RidgeRules:
    """Weights (γ×C×d) and constants (γ×C) of the linear scores; −inf for classes without rows."""

    moments: ClassMoments
    weights: Array
    offsets: Array

    @classmethod
    def of(cls, moments: ClassMoments, shrinkages: Array) -> RidgeRules:
        present = moments.weights > 0
        means = moments.centred_means()[present]
        rules = _solved(moments, means, shrinkages)
        weights = np.zeros((len(shrinkages), len(present), means.shape[1]))
        weights[:, present] = rules
        offsets = np.full(weights.shape[:2], -np.inf)
        logs = np.log(moments.weights[present] / moments.total_weight)
        offsets[:, present] = logs - 0.5 * np.einsum("cd,gcd->gc", means, rules)
        return cls(moments, weights, offsets)

    def scores(self, X: Any) -> Array:
        """a_c(x), γ×n×C."""
        rows = self.moments.centred(np.asarray(X, dtype=np.float64)).clip(-FARTHEST, FARTHEST)
        n_rules, n_classes, d = self.weights.shape
        along = rows @ self.weights.reshape(-1, d).T
        return np.moveaxis(along.reshape(len(rows), n_rules, n_classes), 1, 0) + self.offsets[:, None]


def _solved(moments: ClassMoments, means: Array, shrinkages: Array) -> Array:
    """Σ_γ⁻¹ m_c, γ×C×d."""
    within = moments.within / moments.total_weight
    d = len(within)
    reduced, diagonal, beside, reflectors, _ = la.lapack.dsytrd(within, lower=1, lwork=64 * d)
    beside = beside if len(beside) else np.zeros(1)  # which LAPACK wants of a single number, too
    target = _target(moments, diagonal, beside)
    if target == 0:  # all rows are equal: they tell nothing
        return np.zeros((len(shrinkages), *means.shape))
    turned = _turned(reduced, reflectors, means.T, "T")
    found = np.empty((d, len(shrinkages), len(means)))
    for number, gamma in enumerate(shrinkages):
        system = (1 - gamma) * diagonal + gamma * target, (1 - gamma) * beside
        found[:, number] = la.lapack.dptsv(*system, turned)[2]
    return _turned(reduced, reflectors, found.reshape(d, -1), "N").reshape(found.shape).transpose(1, 2, 0)


def _target(moments: ClassMoments, diagonal: Array, beside: Array) -> float:
    """τ: the trace of S_w/n over the rank of the centred rows; where no class varies, that of S_t/n."""
    share = rounding_share(len(diagonal), moments.precision)
    trace, rank = float(diagonal.sum()), len(diagonal)
    noise = share * diagonal.max()
    if noise <= 0 or la.lapack.dpttrf(diagonal - noise, beside)[2] != 0:  # an eigenvalue is no larger
        total = moments.total / moments.total_weight
        largest = np.diag(total).max()
        rank = int(la.lapack.dpstrf(total, tol=share * largest)[2]) if largest > 0 else 0
        trace = trace if trace > 0 else float(np.trace(total))
    return trace / max(1, rank)


def _turned(reduced: Array, reflectors: Array, columns: Array, transposed: str) -> Array:
    """Q or Qᵀ times the columns; Q leaves the first coordinate as it is."""
    result = np.array(columns, dtype=np.float64, order="F")
    if len(reflectors):
        block = np.asfortranarray(reduced[1:, :-1])
        lwork = 64 * max(1, result.shape[1])
        result[1:] = la.lapack.dormqr("L", transposed, block, reflectors, np.asfortranarray(result[1:]), lwork)[0]
    return result
