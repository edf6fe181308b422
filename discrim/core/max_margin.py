"""Max-margin PCA: alternating minimisation over latent rows, a large-margin classifier of them, and directions.

    min  ρ/2 Σ_y ‖ν_y‖² + Σ_n v_n [ ½‖x_n − Wᵀz_n‖² + ½‖z_n‖² + C max_y (1[y ≠ y_n] + (ν_y − ν_{y_n})·z_n) ]

over Z (n×K), ν (classes × K) and W (K×d, WWᵀ = I). ρ = 1; for two classes ρ = 2, because ν_1 = −ν_2 and the SVM's
single vector ν is their difference: Σ_y ‖ν_y‖² = ½‖ν‖². Each part is convex by itself:

    Z | W, ν   every row separately: z_n = ½(Wx_n + Σ_y A_ny ν_y), A_n = C(1[y = y_n] − share_y), shares on a simplex
    W | Z      max tr W Σ_n v_n x_n z_nᵀ, which is linear: the polar factor of Σ_n v_n z_n x_nᵀ
    ν | Z      the SVM on Z. Alternating Z and ν would stop early, because rows on the margin tie them together. With Z
               as a function of ν the objective is smooth in ν, with slope ρν − Σ_n v_n A_nᵀz_n, and is minimised so.

No step raises the objective.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize

from discrim.core.svm.shift import UnitRows
from discrim.decompositions import svd

Array = NDArray[np.float64]
STEPS = 10  # L-BFGS steps per round
SETTLED = 1e-11  # duality gap of a row, in units of C
MAX_STEPS = 3000  # per row
LONGER = 1.5  # factor by which the extrapolation of W grows after a success


@dataclass(frozen=True, eq=False)
class MaxMarginState:
    """W, ν and Z with the projections on W, each row's class shares, and the objective."""

    directions: Array  # W
    projections: Array  # x̃ᵀW
    class_coef: Array  # ν
    latent: Array  # Z
    shares: Array
    objective: float

    def rotated(self, turn: Array) -> MaxMarginState:
        """Return the state in rotated coordinates of the subspace: W → RW, and everything that depends on it."""
        projections, coef, latent = (part @ turn.T for part in (self.projections, self.class_coef, self.latent))
        return replace(self, directions=turn @ self.directions, projections=projections, class_coef=coef, latent=latent)


@dataclass(frozen=True, eq=False)
class MaxMarginProblem:
    """The rows, their classes, and the cost of a loss."""

    rows: UnitRows
    codes: NDArray[np.intp]
    n_classes: int
    C: float

    @property
    def rho(self) -> float:
        return 2.0 if self.n_classes == 2 else 1.0

    def state_at(self, directions: Array, class_coef: Array) -> MaxMarginState:
        """Return the state at given W and ν."""
        return self._with_latent(directions, class_coef, self._own(1.0))

    def update_classifier(self, state: MaxMarginState) -> MaxMarginState:
        """Minimise over ν, with Z as a function of it."""
        reached = [state]

        def objective(flat: Array) -> tuple[float, Array]:
            last = reached[-1]
            now = self._with_latent(
                last.directions, flat.reshape(state.class_coef.shape), last.shares, last.projections
            )
            reached.append(now)
            return now.objective, self._slope(now).ravel()

        options = {"maxiter": STEPS, "ftol": 1e-15, "gtol": 1e-12}
        minimize(objective, state.class_coef.ravel(), jac=True, method="L-BFGS-B", options=options)
        return min(reached, key=lambda one: one.objective)

    def update_directions(self, state: MaxMarginState, reach: float) -> tuple[MaxMarginState, float]:
        """Update W to the polar factor, or extrapolate by `reach` if that is lower; return the state and next reach."""
        near = _polar(self.rows.weighted_sum(self.rows.weighted(state.latent)))
        far = _polar(near + reach * (near - state.directions))
        tried = [self._with_latent(W, state.class_coef, state.shares) for W in (near, far)]
        lowest = min([state, *tried], key=lambda one: one.objective)
        return lowest, reach * LONGER if lowest is tried[1] else max(reach / 2, 0.5)

    def _with_latent(
        self, directions: Array, class_coef: Array, shares: Array, projections: Array | None = None
    ) -> MaxMarginState:
        """Minimise over Z."""
        from discrim.core.svm.compiled import settle_rows  # loads numba, which `import discrim` must not

        projections = self.rows.project(directions) if projections is None else projections
        shares = shares.copy()
        latent = 0.5 * (projections + self._duals(shares) @ class_coef)
        settle_rows(self._scores(latent, class_coef), shares, self.C * class_coef @ class_coef.T, SETTLED, MAX_STEPS)
        latent = 0.5 * (projections + self._duals(shares) @ class_coef)
        value = self.objective(projections, latent, class_coef)
        return MaxMarginState(directions, projections, class_coef, latent, shares, value)

    def objective(self, projections: Array, latent: Array, class_coef: Array) -> float:
        """Compute the objective, with Σ v‖x̃‖² = Σv and ½‖x − Wᵀz‖² + ½‖z‖² = ½‖x‖² + z·(z − Wx)."""
        scores = self._scores(latent, class_coef)
        hinges = scores.max(axis=1) - scores[self._rows_own]
        of_rows = np.einsum("nk,nk->n", latent, latent - projections) + self.C * hinges
        total = of_rows.sum() if self.rows.weights is None else self.rows.weights @ of_rows
        return float(0.5 * self.rho * np.vdot(class_coef, class_coef) + 0.5 * self.rows.total_weight + total)

    def _slope(self, state: MaxMarginState) -> Array:
        return self.rho * state.class_coef - self._duals(state.shares).T @ self.rows.weighted(state.latent)

    def _scores(self, latent: Array, class_coef: Array) -> Array:
        """Compute 1[y ≠ y_n] + ν_y·z_n."""
        return latent @ class_coef.T + 1.0 - self._own(1.0)

    def _duals(self, shares: Array) -> Array:
        """Return A for rows of weight 1."""
        return self.C * (self._own(1.0) - shares)

    @property
    def _rows_own(self) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
        return np.arange(len(self.codes)), self.codes

    def _own(self, value: float) -> Array:
        marks = np.zeros((len(self.codes), self.n_classes))
        marks[self._rows_own] = value
        return marks


def state_sequence(
    problem: MaxMarginProblem, start: MaxMarginState, *, tol: float, max_iter: int
) -> Iterator[MaxMarginState]:
    """Yield the state after each step until a round lowers the objective by at most tol, relatively."""
    state, reach = start, 1.0
    yield state
    for _ in range(max_iter):
        before = state.objective
        state = problem.update_classifier(state)
        yield state
        state, reach = problem.update_directions(state, reach)
        yield state
        if before - state.objective <= tol * abs(before):
            return


def _polar(matrix: Array) -> Any:
    """Return the nearest matrix with orthonormal rows."""
    left, _, right = svd(matrix)
    return left @ right
