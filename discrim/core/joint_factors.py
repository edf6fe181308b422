"""Factors that rows and labels share: maximum likelihood, and a convex problem for their products.

    x = W_x z + ε_x ,  u = W_y z + ε_y ,    z ~ N(0, I),  ε_x ~ N(0, σ_x² I),  ε_y ~ N(0, σ_y² I)

With s = σ_x/σ_y the joint row t = [x; s·u] has noise of one size, and for a given s the best factors are those of
probabilistic PCA: W = U(Λ − σ²I)^½ of the leading eigenpairs of t's covariance, σ² = σ_x² the mean of the others. One
number remains, and the slope of the likelihood in it is known: dλ_i/d ln s = 2λ_i‖b_i‖², b_i the labels' part of
eigenvector i.

    F(M) = −½ tr XᵀM(M + βI)⁻¹X + min_V [ α Σ_i w_i loss(y_i, z_iV) + (β/2)‖V‖² ] ,    0 ⪯ M ⪯ I ,  tr M = k

The first part is min_W ½‖X − ZW‖² + (β/2)‖W‖², less ½‖X‖², for every Z with ZZᵀ = M; the loss is the multinomial
logistic one. Both are convex in M (each is a maximum of functions linear in it), so that projected steps end at the
global minimum. Rows are multiplied by √w_i, Σw_i = 1.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import brentq
from scipy.sparse.linalg import LinearOperator

from discrim.core.alternating import LogisticLoss, least_loss
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
        """Compute k×r: x ↦ E[z | x] = (W_xᵀW_x/σ_x² + I)⁻¹ W_xᵀ x/σ_x²."""
        strengths = np.sqrt(np.maximum(self.values - self.noise, FAINTEST * self.noise) / self.noise)
        W = strengths[:, None] * self.vectors[:, :r]  # W_xᵀ/σ_x
        left, singular, right = svd(W)
        return (left * (singular / (singular**2 + 1))) @ right / np.sqrt(self.noise)


def _changes(values: Array, of_labels: Array) -> Array:
    """Compute dλ/d ln s, from the labels' parts of the eigenvectors."""
    return 2 * values * (of_labels**2).sum(axis=1)


def fitted_factors(covariance: JointCovariance, k: int) -> JointFactors:
    """Return those of highest likelihood: of a grid of s the best, and where the slope vanishes beside it."""
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


Codes = NDArray[np.intp]
NOTHING = 1e-10  # an eigenvalue of M below this is none
ENOUGH = 1e-4  # of the decrease a slope promises
SHORTEST = 1e-12  # step


@dataclass(frozen=True, eq=False)
class SharedFactors:
    """F and its slope, for rows given by their Gram matrix."""

    gram: Array  # XXᵀ of rows times √w_i
    roots: Array  # √w_i
    codes: Codes
    n_classes: int
    alpha: float
    beta: float

    def value_and_slope(self, values: Array, vectors: Array, start: Array | None) -> tuple[float, Array, Array]:
        """Compute F, dF/dM and the classifier's dual rows, at M = vectors diag(values) vectorsᵀ."""
        inverse = 1 / (values + self.beta)
        turned = vectors.T @ self.gram @ vectors
        of_rows = -0.5 * float(np.diag(turned) @ (values * inverse))
        slope = -0.5 * self.beta * vectors @ (inverse[:, None] * turned * inverse) @ vectors.T
        of_labels, duals = self._classifier(values, vectors, start)
        pulled = self.roots[:, None] * duals
        slope -= self.alpha**2 / (2 * self.beta) * (pulled @ pulled.T)
        return of_rows + of_labels, slope, duals

    def _classifier(self, values: Array, vectors: Array, start: Array | None) -> tuple[float, Array]:
        """Return least loss with a ridge, and Y − P, the rows from which V = (α/β) Zᵀ diag(√w)(Y − P)."""
        kept = values > NOTHING
        Z = vectors[:, kept] * np.sqrt(values[kept])
        design, loss = Z / self.roots[:, None], LogisticLoss()
        first = np.zeros((Z.shape[1], self.n_classes))
        if start is not None:
            first = self.alpha / self.beta * Z.T @ (self.roots[:, None] * start)
        ridge = np.full(len(first), self.beta / 2)
        V, value = least_loss(
            design, first, self.roots**2, self.codes, self.alpha, ridge, loss, maxiter=500, gtol=1e-11
        )
        return value, -loss.slopes(design @ V, self.codes)


@dataclass(frozen=True, eq=False)
class LeastFactors:
    """M by its eigenpairs, F after every step, and whether the steps ended by themselves."""

    values: Array
    vectors: Array
    objective: Array
    is_settled: bool


def least_factors(problem: SharedFactors, k: int, *, tol: float, max_iter: int) -> LeastFactors:
    """Descend from the rows' own principal factors by projected steps, none of which lets F rise."""
    values, vectors = _eigenpairs(problem.gram)
    values = np.where(np.arange(len(values)) < k, 1.0, 0.0)
    at, slope, duals = problem.value_and_slope(values, vectors, None)
    history, length = [at], 1.0 / max(float(np.abs(slope).max()), 1e-300)
    for _ in range(max_iter):
        M = (vectors * values) @ vectors.T
        while True:
            tried_values, tried_vectors = nearest_feasible(M - length * slope, k)
            found, new_slope, new_duals = problem.value_and_slope(tried_values, tried_vectors, duals)
            moved = (tried_vectors * tried_values) @ tried_vectors.T - M
            promised = float(np.vdot(slope, moved))
            if found <= at + ENOUGH * promised or length < SHORTEST:
                break
            length /= 2
        if found > at:
            return LeastFactors(values, vectors, np.array(history), True)
        change = float(np.vdot(moved, new_slope - slope))
        length = float(np.vdot(moved, moved)) / change if change > 0 else 2 * length  # Barzilai and Borwein's
        gained, at = at - found, found
        values, vectors, slope, duals = tried_values, tried_vectors, new_slope, new_duals
        history.append(at)
        if gained <= tol * max(abs(at), 1e-300):
            return LeastFactors(values, vectors, np.array(history), True)
    return LeastFactors(values, vectors, np.array(history), False)


def nearest_feasible(matrix: Array, k: int) -> tuple[Array, Array]:
    """Eigenpairs of the nearest M with 0 ⪯ M ⪯ I and tr M = k: eigenvalues less one number, cut off at 0 and 1."""
    values, vectors = _eigenpairs((matrix + matrix.T) / 2)
    ends = np.sort(np.concatenate([values, values - 1]))  # where the sum of the cut values bends
    sums = np.clip(values - ends[:, None], 0.0, 1.0).sum(axis=1)  # falling
    at = int(np.searchsorted(-sums, -k))
    at = min(max(at, 1), len(ends) - 1)
    low, high = ends[at - 1], ends[at]
    fraction = 0.0 if sums[at - 1] == sums[at] else (sums[at - 1] - k) / (sums[at - 1] - sums[at])
    return np.clip(values - (low + fraction * (high - low)), 0.0, 1.0), vectors


def _eigenpairs(matrix: Array) -> tuple[Array, Array]:
    """Return largest first, eigenvectors as columns."""
    values, vectors = eigh(matrix)
    return values[::-1], vectors[:, ::-1]
