"""Maximum likelihood of rows x and labels u that share k factors, with noise of one size each.

    x = W_x z + ε_x ,  u = W_y z + ε_y ,    z ~ N(0, I),  ε_x ~ N(0, σ_x² I),  ε_y ~ N(0, σ_y² I)

With s = σ_x/σ_y the joint row t = [x; s·u] has noise of one size, and for a given s the best factors are those of
probabilistic PCA: W = U(Λ − σ²I)^½ of the leading eigenpairs of t's covariance, σ² = σ_x² the mean of what is left. So
one number remains to be found. The likelihood's slope in it is known, too: dλ_i/d ln s = 2λ_i‖b_i‖², b_i the labels'
part of eigenvector i. EM ends at the same place, in many small steps.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import brentq
from scipy.sparse.linalg import LinearOperator

from discrim.decompositions import eigh, largest_eigenpairs_by_products, svd

Array = NDArray[np.float64]
LEAST_NOISE = 1e-6  # of the mean variance, of rows and of labels: below, the likelihood has no bound
WIDEST, STEPS = 2e3, 25  # s is looked for up to this factor around the ratio of deviations, on a grid of so many first
MANY = 300  # above, a few eigenpairs come from products: the matrix is diagonal but for a few rows
FAINTEST = 1e-12  # of the noise: what a factor has at least, so that it is a direction


@dataclass(frozen=True, eq=False)
class JointCovariance:
    """Of rows in coordinates in which theirs is diagonal, and of labels in orthonormal contrasts."""

    of_rows: Array  # r variances
    across: Array  # r×q
    of_labels: Array  # q×q

    @property
    def size(self) -> int:
        return len(self.of_rows) + len(self.of_labels)

    def trace(self, s: float) -> float:
        return float(self.of_rows.sum() + s**2 * np.trace(self.of_labels))

    def leading(self, s: float, k: int) -> tuple[Array, Array, float, float]:
        """Of the covariance of [x; s·u] the k largest eigenvalues, unit eigenvectors as rows, and what is left:

        the sum of all other eigenvalues, and its change with ln s.
        """
        r = len(self.of_rows)
        if self.size > MANY and 10 * k < self.size:
            values, vectors = self._leading_by_products(s, k)
            change = 2 * s**2 * float(np.trace(self.of_labels)) - float(_changes(values, vectors[:, r:]).sum())
            return values, vectors, self.trace(s) - float(values.sum()), change
        matrix = np.zeros((self.size, self.size))
        matrix[np.arange(r), np.arange(r)] = self.of_rows
        matrix[:r, r:] = s * self.across
        matrix[r:, :r] = matrix[:r, r:].T
        matrix[r:, r:] = s**2 * self.of_labels
        values, vectors = eigh(matrix)
        values, vectors = np.maximum(values[::-1], 0.0), vectors.T[::-1]
        change = float(_changes(values[k:], vectors[k:, r:]).sum())  # summed, not subtracted: it may be small
        return values[:k], vectors[:k], float(values[k:].sum()), change

    def _leading_by_products(self, s: float, k: int) -> tuple[Array, Array]:
        r = len(self.of_rows)

        def product(v: Array) -> Array:
            x, u = v[:r].reshape(r), v[r:].reshape(-1)
            return np.concatenate(
                [self.of_rows * x + s * (self.across @ u), s * (x @ self.across) + s**2 * (self.of_labels @ u)]
            )

        start = np.random.default_rng(0).standard_normal(self.size)
        operator = LinearOperator((self.size, self.size), matvec=product, dtype=np.float64)
        values, vectors = largest_eigenpairs_by_products(operator, k, start)
        return np.maximum(values[::-1], 0.0), vectors.T[::-1]


@dataclass(frozen=True, eq=False)
class JointFactors:
    """The factors at some s: eigenpairs of the joint covariance, noise, and minus twice the mean log-likelihood."""

    s: float
    values: Array
    vectors: Array
    noise: float  # σ_x²
    deviance: float
    slope: float  # of the deviance in ln s

    @classmethod
    def at(cls, covariance: JointCovariance, log_s: float, k: int) -> JointFactors:
        s, r, q = float(np.exp(log_s)), len(covariance.of_rows), len(covariance.of_labels)
        values, vectors, rest, of_rest = covariance.leading(s, k)
        left = covariance.size - k
        of_labels = s**2 * LEAST_NOISE * float(np.trace(covariance.of_labels)) / q
        of_rows = LEAST_NOISE * float(covariance.of_rows.sum()) / r
        noise = max(rest / left, of_rows, of_labels)
        kept = np.maximum(values, noise)
        deviance = float(np.log(kept).sum() + (values / kept).sum() + left * np.log(noise) + rest / noise)
        deviance += covariance.size * np.log(2 * np.pi) - 2 * q * log_s
        slope = float((_changes(values, vectors[:, r:]) / kept).sum() + of_rest / noise - 2 * q)
        if noise == of_labels:  # which grows with s itself
            faint = values < noise
            slope += 2 * (left + faint.sum() - (rest + values[faint].sum()) / noise)
        return cls(s, values, vectors, noise, deviance, slope)

    def features_of_rows(self, r: int) -> Array:
        """k×r: x ↦ E[z | x] = (W_xᵀW_x/σ_x² + I)⁻¹ W_xᵀ x/σ_x²."""
        strengths = np.sqrt(np.maximum(self.values - self.noise, FAINTEST * self.noise) / self.noise)
        W = strengths[:, None] * self.vectors[:, :r]  # W_xᵀ/σ_x
        left, singular, right = svd(W)
        return (left * (singular / (singular**2 + 1))) @ right / np.sqrt(self.noise)


def _changes(values: Array, of_labels: Array) -> Array:
    """dλ/d ln s, from the labels' parts of the eigenvectors."""
    return 2 * values * (of_labels**2).sum(axis=1)


def fitted_factors(covariance: JointCovariance, k: int) -> JointFactors:
    """Those of highest likelihood: of a grid of s the best, and where the slope vanishes beside it."""
    q, r = len(covariance.of_labels), len(covariance.of_rows)
    centre = 0.5 * np.log(covariance.of_rows.sum() / r / (np.trace(covariance.of_labels) / q))
    grid = centre + np.linspace(-np.log(WIDEST), np.log(WIDEST), STEPS)
    tried = [JointFactors.at(covariance, log_s, k) for log_s in grid]
    best = int(np.argmin([one.deviance for one in tried]))
    low, high = (best - 1, best) if tried[best].slope > 0 else (best, best + 1)
    low, high = max(low, 0), min(high, STEPS - 1)
    if not tried[low].slope < 0 < tried[high].slope:
        return tried[best]
    root = brentq(lambda log_s: JointFactors.at(covariance, log_s, k).slope, grid[low], grid[high], xtol=1e-15)
    return JointFactors.at(covariance, float(root), k)
