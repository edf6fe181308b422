"""How often two classes are mistaken for each other in a subspace: the objective of least pairwise Bayes error.

    F(B) = Σ_{a<b} p_a p_b erfc(D_ab / (2√2)) ,    D_ab = ‖Bᵀ(m_a − m_b)‖ ,    BᵀB = I

m_c are class means in coordinates in which every class has unit covariance. ½ erfc(D/(2√2)) is the error of the best
rule between two such Gaussians at equal priors, so F / (1 − Σp_c²) is the mean of it over pairs of rows of two classes.

    ∇F = −Σ_{a<b} p_a p_b e^{−D²/8}/(√(2π) D) · d dᵀB ,    d = m_a − m_b

The logarithm of F is what is minimised: it has the same minimum, and it still has a slope where means are so far apart
that F itself is zero in doubles.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray
from scipy.spatial.distance import pdist, squareform
from scipy.special import erf, erfc, erfcx

Array = NDArray[np.float64]
UNIT = 2 * np.sqrt(2.0)  # D / UNIT is what erfc takes
NEAREST = 1e-150  # a pair at less than this distance coincides: it has no direction, and pulls nowhere
HELD_DIFFERENCES = 2**16  # up to this many numbers the differences d are held; above, pairs are numbers, never vectors


def pair_error(distances: Array) -> Array:
    """Error between two Gaussians of unit covariance at a distance, equal priors."""
    return 0.5 * erfc(distances / UNIT)


@dataclass(frozen=True, eq=False)
class PairwiseError:
    """Class means m_c (C×q, in units of the deviation within classes) and shares p_c; called with B, log F and ∇."""

    means: Array
    shares: Array
    pair_shares: Array = field(init=False)  # p_a p_b of every pair a<b, in the order of scipy's pdist
    _differences: Array | None = field(init=False)  # m_a − m_b of every pair; None where that would be large

    def __post_init__(self) -> None:
        a, b = np.triu_indices(len(self.shares), 1)
        held = self.means[a] - self.means[b] if len(a) * self.means.shape[1] <= HELD_DIFFERENCES else None
        vars(self).update(pair_shares=self.shares[a] * self.shares[b], _differences=held)

    def __call__(self, B: Array) -> tuple[Array, Array]:
        """log F of each of S subspaces (B is S×q×k), and its gradients (S×q×k)."""
        if self._differences is None:
            parts = [self._of_many_pairs(one) for one in B]
            return np.array([value for value, _ in parts]), np.stack([gradient for _, gradient in parts])
        count, q, k = B.shape
        apart = (B.transpose(2, 0, 1).reshape(k * count, q) @ self._differences.T).reshape(k, count, -1)
        logs, weights = self._logs_and_weights(np.sqrt(np.einsum("ksp,ksp->sp", apart, apart)))
        apart *= weights
        gradients = (apart.reshape(k * count, -1) @ self._differences).reshape(k, count, q)
        return logs, gradients.transpose(1, 2, 0)

    def _of_many_pairs(self, B: Array) -> tuple[float, Array]:
        """The same for one subspace, from numbers per pair only: Σ w d dᵀ = MᵀLM with the Laplacian L of the w."""
        along = self.means @ B
        logs, weights = self._logs_and_weights(pdist(along)[None])
        pulls = squareform(weights[0])
        return float(logs[0]), self.means.T @ (pulls.sum(axis=1)[:, None] * along - pulls @ along)

    def _logs_and_weights(self, distances: Array) -> tuple[Array, Array]:
        """log F from the pairs' distances (S×pairs), and the weights of d dᵀB in its gradient.

        With x = D/(2√2): erfc(x) = erfcx(x) e^{−x²}, where erfcx does not underflow, and e^{−x²} is taken relative to
        the nearest pair's.
        """
        x = distances / UNIT
        squares = x * x
        nearest = squares.min(axis=1)
        weights = self.pair_shares * np.exp(nearest[:, None] - squares)
        totals = np.vecdot(weights, erfcx(x))
        weights /= np.maximum(distances, NEAREST)
        weights /= (-np.sqrt(2 * np.pi) * totals)[:, None]
        return np.log(totals) - nearest, weights

    def value(self, B: Array) -> float:
        """F of one subspace (q×k)."""
        return float(np.exp(self(B[None])[0][0]))

    def loog_spread(self) -> Array:
        """Σ_{a<b} ω_ab d dᵀ, ω = p_a p_b erf(Δ/(2√2))/(2Δ²): far pairs count less than in LDA's spread (q×q).

        Loog, Duin and Haeb-Umbach, "Multiclass linear dimension reduction by weighted pairwise Fisher criteria" (2001).
        """
        distances = np.maximum(pdist(self.means), NEAREST)
        weights = squareform(self.pair_shares * erf(distances / UNIT) / (2 * distances**2))
        return self.means.T @ (weights.sum(axis=1)[:, None] * self.means - weights @ self.means)
