"""The multiclass SVM of Crammer and Singer, both sides of it.

    primal   min_η  ½ Σ_y ‖η_y‖² + Σ_n C_n max_y (1[y ≠ y_n] + η_y·x_n − η_{y_n}·x_n)
    dual     max_A  Σ_n A[n, y_n] − ½ ‖AᵀX‖²   subject to  Σ_y A[n, y] = 0,  A[n, y] ≤ C_n 1[y = y_n]

and η = AᵀX. An intercept is one more feature of value 1, penalised like the others (LIBLINEAR's way). The dual is
solved row by row (Keerthi and others 2008): each row's subproblem is a projection, found exactly by sorting. Those
sweeps are compiled (`compiled.sweep`); what looks at all rows together is numpy's, and is in `crammer_singer_descent`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state

from discrim.core.svm.crammer_singer_descent import Descent, DualProblem, Table, on_grid
from discrim.core.svm.identical_rows import Groups, equal_rows
from discrim.tables.warn_once import warn

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class CrammerSinger:
    """A solution: weights, duals, and what shows how good they are."""

    class_coef: Floats  # C×d, acting on (x − offset)/scale
    intercept: Floats  # C
    dual_coef: Floats  # n×C: A, whose rows sum to 0 exactly
    primal: float
    dual: float
    gap: float  # (primal − dual)/primal
    n_iter: int  # passes over the rows that still mattered
    converged: bool


def solve_crammer_singer(
    X: Any,
    codes: NDArray[np.intp],
    n_classes: int,
    *,
    C: float,
    sample_weight: Floats | None = None,
    fit_intercept: bool,
    tol: float,
    max_iter: int,
    random_state: Any,
    warm_start: Floats | None = None,
    offset: Floats | None = None,
    scale: float = 1.0,
) -> CrammerSinger:
    """Return weights and duals with (primal − dual)/primal ≤ tol, or a ConvergenceWarning that names what was reached.

    X : dense or sparse, never written to; float64 or float32, C-contiguous or CSR, is taken without a copy.
    codes : class number 0..n_classes − 1 of each row, n_classes ≥ 2.
    C, sample_weight : C_n = C·weight_n, both above 0.
    max_iter : passes over the rows that still matter; conjugate-gradient steps count as such.
    warm_start : the dual_coef of a solution for the same rows and classes to start from.
    offset, scale : the SVM sees (x − offset)/scale; a sparse X is not made dense for it.

    Equal rows of one class are solved as one row of their total weight and share its duals in proportion to their
    weights. Rows are visited in an order drawn from `random_state`; the order in which X lists them plays no part.
    """
    bound = np.full(len(codes), float(C)) if sample_weight is None else float(C) * sample_weight
    if offset is not None and not sp.issparse(X):
        X, offset = np.asarray(X, dtype=np.float64) - offset, None  # differences first: exact where offsets are large
    table = Table.of(X)
    groups = equal_rows(table.X, codes)
    rows, group_bound = groups.first, np.bincount(groups.group, bound).astype(np.float64)
    problem = DualProblem.of(table, rows, codes[rows], group_bound, offset, scale, fit_intercept)
    _require_finite_squares(problem.square, rows)
    _require_finite_objective(problem.square, bound, C)
    descent = Descent(problem, n_classes, check_random_state(random_state).randint(1, 2**31 - 1))
    if warm_start is not None:
        descent.start_from(_feasible_start(warm_start, groups, problem))
    state = descent.run(tol, max_iter)
    of_group = group_bound[groups.group]
    share = np.divide(bound, of_group, out=np.zeros_like(bound), where=of_group > 0)  # C times a weight may be 0
    solution = CrammerSinger(
        *descent.weights_and_intercepts(offset),
        on_grid(descent.A[groups.group] * share[:, None], codes, bound),
        state.primal,
        state.dual,
        max(0.0, state.primal - state.dual) / state.primal,
        descent.passes,
        state.is_within(tol),
    )
    if not solution.converged:
        _warn_of_gap(solution, tol)
    return solution


def _feasible_start(given: Floats, groups: Groups, problem: DualProblem) -> Floats:
    """Return the nearest thing to the given duals that fits these rows: one row for each group, within its bound."""
    alpha = np.zeros((len(problem.rows), given.shape[1]))
    np.add.at(alpha, groups.group, -given)
    own = np.arange(len(alpha)), problem.codes
    alpha[own] = 0.0
    np.maximum(alpha, 0.0, out=alpha)
    total = alpha.sum(axis=1)
    alpha *= np.divide(problem.bound, total, out=np.ones_like(total), where=total > problem.bound)[:, None]
    alpha *= -1.0
    alpha[own] = np.minimum(total, problem.bound)
    return alpha


def _require_finite_squares(square: Floats, rows: NDArray[np.intp]) -> None:
    if not np.isfinite(square).all():
        at = int(np.argmax(~np.isfinite(square)))
        raise ValueError(
            f"The squared length of row {rows[at]} is {square[at]}: X holds NaN, infinity, or numbers above 1e150, "
            "whose squares are no longer finite. Drop or fill in such values, or scale X first."
        )


def _require_finite_objective(square: Floats, bound: Floats, C: float) -> None:
    """Return no weight is longer than Σ_n C_n‖x_n‖, and the objective holds its square."""
    with np.errstate(over="ignore"):
        largest = np.square(np.sqrt(square.max(initial=0.0)) * bound.sum())
    if not np.isfinite(largest):
        raise ValueError(
            f"With C={C:g} and rows of length {np.sqrt(square.max()):.1e} the objective may exceed the largest number. "
            "Lower C, or divide X by its largest value."
        )


def _warn_of_gap(solution: CrammerSinger, tol: float) -> None:
    warn(
        f"The SVM stopped after {solution.n_iter} passes with a relative duality gap of {solution.gap:.1e}, above "
        f"tol={tol:g}: its objective may be that much above the least. Bring the features to one scale (e.g. "
        "StandardScaler), lower C, raise max_iter, or accept the gap by raising tol.",
        ConvergenceWarning,
    )
