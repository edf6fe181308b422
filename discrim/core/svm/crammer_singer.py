"""The multiclass SVM of Crammer and Singer, primal and dual.

    primal   min_η  ½ Σ_y ‖η_y‖² + Σ_n C_n max_y (1[y ≠ y_n] + η_y·x_n − η_{y_n}·x_n)
    dual     max_A  Σ_n A[n, y_n] − ½ ‖AᵀX‖²   subject to  Σ_y A[n, y] = 0,  A[n, y] ≤ C_n 1[y = y_n]

with η = AᵀX. An intercept is one more feature of value 1, penalised like the others (as in LIBLINEAR). The dual is
solved row by row (Keerthi et al. 2008): each row's subproblem is a projection, solved exactly by sorting. These sweeps
are compiled (`compiled.sweep`); operations on all rows use numpy and are in `crammer_singer_descent`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state

from discrim.core.row_hash import Groups, equal_rows
from discrim.core.svm.crammer_singer_descent import Descent, DualProblem, Table, round_duals
from discrim.warn_once import warn

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class CrammerSinger:
    """Solution: weights, duals and their accuracy."""

    class_coef: Floats  # C×d, acting on (x − offset)/scale
    intercept: Floats  # C
    dual_coef: Floats  # n×C: A, whose rows sum to 0 exactly
    primal: float
    dual: float
    gap: float  # (primal − dual)/primal
    n_iter: int  # passes over the rows that were still active
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
    """Solve for weights and duals with (primal − dual)/primal ≤ tol; warn if that is not reached.

    X : dense or sparse, never modified; float64 or float32, C-contiguous or CSR, is used without a copy.
    codes : class number 0..n_classes − 1 of each row, n_classes ≥ 2.
    C, sample_weight : C_n = C·weight_n, both above 0.
    max_iter : maximum number of passes over the active rows; conjugate-gradient steps count as passes.
    warm_start : dual_coef of a solution for the same rows and classes.
    offset, scale : the SVM is fitted to (x − offset)/scale; a sparse X stays sparse.

    Equal rows of one class are solved as one row with their total weight; each gets its share of the duals in
    proportion to its weight. The order of the visits is drawn from `random_state` and does not depend on the order of
    the rows in X.
    """
    bound = np.full(len(codes), float(C)) if sample_weight is None else float(C) * sample_weight
    if offset is not None and not sp.issparse(X):
        X, offset = np.asarray(X, dtype=np.float64) - offset, None  # subtract first: exact for large offsets
    table = Table.of(X)
    groups = equal_rows(table.X, codes)
    rows, group_bound = groups.first, np.bincount(groups.group, bound).astype(np.float64)
    problem = DualProblem.of(table, rows, codes[rows], group_bound, offset, scale, fit_intercept)
    _require_finite_objective(problem.square, rows, bound, C)
    descent = Descent(problem, n_classes, check_random_state(random_state).randint(1, 2**31 - 1))
    if warm_start is not None:
        descent.start_from(_feasible_start(warm_start, groups, problem))
    state = descent.run(tol, max_iter)
    of_group = group_bound[groups.group]
    # C times a weight may underflow to 0
    share = np.divide(bound, of_group, out=np.zeros_like(bound), where=of_group > 0)
    solution = CrammerSinger(
        *descent.weights_and_intercepts(offset),
        round_duals(descent.A[groups.group] * share[:, None], codes, bound),
        state.primal,
        state.dual,
        max(0.0, state.primal - state.dual) / state.primal,
        descent.passes,
        state.is_within(tol),
    )
    if not solution.converged:
        warn(
            f"The SVM stopped after {solution.n_iter} passes with a relative duality gap of {solution.gap:.1e}, above "
            f"tol={tol:g}; its objective may exceed the minimum by that fraction. Bring the features to one scale "
            "(e.g. StandardScaler), lower C, raise max_iter, or raise tol.",
            ConvergenceWarning,
        )
    return solution


def _feasible_start(given: Floats, groups: Groups, problem: DualProblem) -> Floats:
    """Return feasible duals close to the given ones: one row per group, within its bound."""
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


def _require_finite_objective(square: Floats, rows: NDArray[np.intp], bound: Floats, C: float) -> None:
    """Raise if a squared length, or the bound (Σ_n C_n‖x_n‖)² on the objective, is not a finite number."""
    if not np.isfinite(square).all():
        at = int(np.argmax(~np.isfinite(square)))
        raise ValueError(
            f"X must be finite with squares below 1e308; the squared length of row {rows[at]} is {square[at]}. Drop or "
            "fill in NaN, infinity and values above 1e150, or scale X first."
        )
    with np.errstate(over="ignore"):
        largest = np.square(np.sqrt(square.max(initial=0.0)) * bound.sum())
    if not np.isfinite(largest):
        raise ValueError(
            f"C must be smaller for rows of length {np.sqrt(square.max()):.1e}; got {C:g}: the objective may overflow. "
            "Lower C, or divide X by its largest value."
        )
