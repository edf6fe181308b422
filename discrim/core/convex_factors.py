"""Rows and labels from shared factors, without local minima: the factors' products M = ZZᵀ are looked for.

    F(M) = −½ tr XᵀM(M + βI)⁻¹X + min_V [ α Σ_i w_i loss(y_i, z_iV) + (β/2)‖V‖² ] ,    0 ⪯ M ⪯ I ,  tr M = k

The first part is min_W ½‖X − ZW‖² + (β/2)‖W‖², less ½‖X‖², for every Z with ZZᵀ = M; loss is the multinomial logistic
one. Both are convex in M (each is a maximum of functions linear in it: the dual), so that projected steps end at the
least F there is. Rows come times √w_i, Σw_i = 1.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from discrim.core.alternating import LogisticLoss, least_loss
from discrim.decompositions import eigh

Array = NDArray[np.float64]
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
        """F, dF/dM and the classifier's dual rows, at M = vectors diag(values) vectorsᵀ."""
        inverse = 1 / (values + self.beta)
        turned = vectors.T @ self.gram @ vectors
        of_rows = -0.5 * float(np.diag(turned) @ (values * inverse))
        slope = -0.5 * self.beta * vectors @ (inverse[:, None] * turned * inverse) @ vectors.T
        of_labels, duals = self._classifier(values, vectors, start)
        pulled = self.roots[:, None] * duals
        slope -= self.alpha**2 / (2 * self.beta) * (pulled @ pulled.T)
        return of_rows + of_labels, slope, duals

    def _classifier(self, values: Array, vectors: Array, start: Array | None) -> tuple[float, Array]:
        """Least loss with a ridge, and Y − P, the rows from which V = (α/β) Zᵀ diag(√w)(Y − P)."""
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
    """From the rows' own principal factors downhill by projected steps, none of which lets F rise."""
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
    """Largest first, eigenvectors as columns."""
    values, vectors = eigh(matrix)
    return values[::-1], vectors[:, ::-1]
