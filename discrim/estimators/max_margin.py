"""Directions of a large-margin classifier: MaxMarginPCA and MarginSubspace.

Max-margin PCA alternates over latent rows, a large-margin classifier of them, and directions:

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

from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import helmert
from scipy.optimize import minimize
from sklearn.exceptions import ConvergenceWarning

from discrim.core.eigen import kept_count, spectrum_of_factor
from discrim.core.factors import polar_factor
from discrim.core.problem import Needs, Problem
from discrim.core.row_hash import content_order
from discrim.core.spread import Margins, total_spread
from discrim.core.svm.shift import UnitRows, class_pulls, margin_shift
from discrim.decompositions import eigh
from discrim.estimators.base import Reducer
from discrim.estimators.classifiers import SVM
from discrim.estimators.margin_pca import shifted_spread
from discrim.estimators.solution import Solution
from discrim.tables.check_parameters import COUNT, Constraints
from discrim.tables.rows import LabelledRows
from discrim.warn_once import warn

Array = NDArray[np.float64]
CLASSIFIER_STEPS = 10  # L-BFGS steps per round
SETTLED_ROW = 1e-11  # duality gap of a row, in units of C
MAX_STEPS = 3000  # per row
LONGER = 1.5  # factor by which the extrapolation of W grows after a success
SAME = 1e-6  # objectives that differ by less belong to one minimum, so that rounding does not choose between them
SVM_GAP = 1e-6  # of the SVM on the rows, from which the minimisation starts


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

    def descent(self, directions: Array, class_coef: Array, *, tol: float, max_iter: int) -> list[MaxMarginState]:
        """Return the states from given W and ν on, until a round lowers the objective by at most tol, relatively."""
        path, reach = [self.state_at(directions, class_coef)], 1.0
        for _ in range(max_iter):
            path.append(self.update_classifier(path[-1]))
            state, reach = self.update_directions(path[-1], reach)
            path.append(state)
            before = path[-3].objective
            if before - state.objective <= tol * abs(before):
                return path
        warn(
            f"The objective still fell by a fraction of {(before - state.objective) / before:.1e} in the last of "
            f"{max_iter} rounds, above tol={tol:g}, so the directions are not final. Raise max_iter, lower C, or raise "
            "tol.",
            ConvergenceWarning,
        )
        return path

    def state_at(self, directions: Array, class_coef: Array) -> MaxMarginState:
        """Return the state at given W and ν."""
        return self._with_latent(directions, class_coef, self._own)

    def update_classifier(self, state: MaxMarginState) -> MaxMarginState:
        """Minimise over ν, with Z as a function of it."""
        reached = [state]

        def objective(flat: Array) -> tuple[float, Array]:
            last = reached[-1]
            coef = flat.reshape(state.class_coef.shape)
            now = self._with_latent(last.directions, coef, last.shares, last.projections)
            reached.append(now)
            pulls = self._duals(now.shares).T @ self.rows.weighted(now.latent)
            return now.objective, (self.rho * now.class_coef - pulls).ravel()

        options = {"maxiter": CLASSIFIER_STEPS, "ftol": 1e-15, "gtol": 1e-12}
        minimize(objective, state.class_coef.ravel(), jac=True, method="L-BFGS-B", options=options)
        return min(reached, key=lambda one: one.objective)

    def update_directions(self, state: MaxMarginState, reach: float) -> tuple[MaxMarginState, float]:
        """Update W to the polar factor, or extrapolate by `reach` if that is lower; return the state and next reach."""
        near = polar_factor(self.rows.weighted_sum(self.rows.weighted(state.latent)))
        far = polar_factor(near + reach * (near - state.directions))
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
        products = self.C * class_coef @ class_coef.T
        settle_rows(self._scores(latent, class_coef), shares, products, SETTLED_ROW, MAX_STEPS)
        latent = 0.5 * (projections + self._duals(shares) @ class_coef)
        value = self.objective(projections, latent, class_coef)
        return MaxMarginState(directions, projections, class_coef, latent, shares, value)

    def objective(self, projections: Array, latent: Array, class_coef: Array) -> float:
        """Compute the objective, with Σ v‖x̃‖² = Σv and ½‖x − Wᵀz‖² + ½‖z‖² = ½‖x‖² + z·(z − Wx)."""
        scores = self._scores(latent, class_coef)
        hinges = scores.max(axis=1) - scores[np.arange(len(scores)), self.codes]
        of_rows = np.einsum("nk,nk->n", latent, latent - projections) + self.C * hinges
        total = of_rows.sum() if self.rows.weights is None else self.rows.weights @ of_rows
        return float(0.5 * self.rho * np.vdot(class_coef, class_coef) + 0.5 * self.rows.total_weight + total)

    def _scores(self, latent: Array, class_coef: Array) -> Array:
        """Compute 1[y ≠ y_n] + ν_y·z_n."""
        return latent @ class_coef.T + 1.0 - self._own

    def _duals(self, shares: Array) -> Array:
        """Return A for rows of weight 1."""
        return self.C * (self._own - shares)

    @property
    def _own(self) -> Array:
        """1[y = y_n]."""
        return np.eye(self.n_classes)[self.codes]


@dataclass(frozen=True, eq=False, kw_only=True)
class MaxMarginSolution(Solution):
    """Solution with the classifier and the course of the objective."""

    class_coef_: Array
    objective_: float
    objective_curve_: Array
    n_iter_: int

    def _others_in_features(self, lifted: list[Array], signs: Array, deviations: Array) -> dict[str, Any]:
        return {"class_coef_": self.class_coef_ * signs}


class MaxMarginPCA(Reducer):
    """Max-margin PCA (MMPCA): principal components whose latent rows are separated by a large-margin classifier.

        minimise  ½Σ_y‖ν_y‖² + Σ_n [½‖x_n − Wᵀz_n‖² + ½‖z_n‖² + C max_y (1[y ≠ y_n] + (ν_y − ν_{y_n})·z_n)],  WWᵀ = I

    over W, the latent rows Z and the classifier ν; for two classes it is ½‖ν‖² with the single vector ν = ν_1 − ν_2.
    Rows are centred and divided by one scalar (mean square length 1); there is no intercept. `MaxMarginShift(PCA())`
    approximates this model in one step. Use it to see how well; its directions stay closer to those of PCA, because a
    row may move in Z instead of rotating W.

    Parameters
    ----------
    n_components: Number of components K. A fraction in (0, 1) uses as many as PCA needs to explain this share of the
        variance, None all directions.
    C: Weight of the hinge losses.
    tol: Relative decrease of the objective per round below which to stop.
    max_iter: Maximum number of rounds, of two steps each.

    Attributes
    ----------
    components_: W, orthonormal rows, sorted by decreasing variance along them.
    {variances}
    rank_: Number of directions.
    class_coef_ : array of shape (n_classes, n_components_)
        ν, which applies to latent rows z ≈ ½Wx, with x in units of the rows' root mean square length.
    objective_ : float
        Final objective, from the better of two starts: PCA, and PCA of the shifted rows.
    objective_curve_ : array
        Objective at that start and after every step; it never rises.
    n_iter_: Number of rounds.
    {fitted_with_vip}

    References
    ----------
    J. Wangni and N. Chen, "Nonlinear Feature Extraction with Max-Margin Data Shifting", AAAI 2016, equations 12 to 14,
    with the classifier of equation 3 for more than two classes.

    Examples
    --------
    >>> from sklearn.datasets import load_wine
    >>> from discrim import MaxMarginPCA
    >>> X, y = load_wine(return_X_y=True)
    >>> MaxMarginPCA(n_components=2).fit(X, y).transform(X).shape
    (178, 2)
    """

    _parameter_constraints: ClassVar[Constraints] = {"n_components": COUNT, **SVM}

    def __init__(
        self, n_components: int | float | None = None, *, C: float = 1.0, tol: float = 1e-9, max_iter: int = 500
    ) -> None:
        self.n_components = n_components
        self.C = C
        self.tol = tol
        self.max_iter = max_iter

    def _needs(self) -> Needs:
        return Needs(rows="the classifier inside needs all rows at once. Use fit.", margins=self._margins)

    def _margins(self, rows: LabelledRows) -> Margins:
        # for two classes the paper's SVM is Crammer and Singer's at half the cost, and its shift σ² = 1 corresponds to
        # 2
        rho = 2.0 if rows.n_classes == 2 else 1.0
        found = margin_shift(rows, rows.n_classes, C=self.C / rho, tol=SVM_GAP, max_iter=10_000)
        return Margins(duals=np.sqrt(rho) * found.duals)

    def _solve(self, problem: Problem) -> Solution:
        basis, moments, request = problem.basis, problem.moments, problem.request
        duals = basis.margins.duals
        assert duals is not None
        wanted = request + 1 if isinstance(request, int) else None  # one more shows a tie at the cut
        plain = problem.spectrum(total_spread(moments), wanted)
        k = kept_count(request, plain.values, plain.total, plain.rank, problem.shape)
        shifted = basis.spectrum(shifted_spread(moments, basis, duals), moments, k)
        # sort by content, so that rounding does not depend on the order of the rows
        order = content_order(basis.original.X, basis.original.codes, basis.original.weights)
        rows = UnitRows.from_rows(basis.points.select(order))
        task = MaxMarginProblem(rows, basis.points.codes[order], basis.points.n_classes, self.C)

        def descent_from(W: Array) -> list[MaxMarginState]:
            # from the SVM of the rows in the subspace: Wη, times two because z is about half of Wx
            class_coef = 2.0 * duals[order].T @ rows.project(W) / np.sqrt(task.rho)
            return task.descent(W, class_coef, tol=self.tol, max_iter=self.max_iter)

        curve, other = descent_from(plain.directions[:k]), descent_from(shifted.directions[:k])
        if other[-1].objective < (1 - SAME) * curve[-1].objective:
            curve = other
        last = curve[-1]
        values, vectors = eigh(last.projections.T @ rows.weighted(last.projections))  # Σ v (x̃ᵀw)² along each direction
        state, values = last.rotated(vectors[:, ::-1].T), values[::-1]
        return MaxMarginSolution(
            components_=state.directions,
            eigenvalues_=np.ldexp(values / rows.total_weight * rows.scale**2, 2 * rows.exponent),
            explained_variance_ratio_=values / rows.total_weight,
            rank_=plain.rank,
            solver_=f"alternating minimisation over W, Z and ν from {plain.how}",
            is_resolved=basis.shows(values),
            class_coef_=state.class_coef,
            objective_=state.objective,
            objective_curve_=np.array([one.objective for one in curve]),
            n_iter_=(len(curve) - 1) // 2,
        )


@dataclass(frozen=True, eq=False, kw_only=True)
class MarginSolution(Solution):
    """Solution with the SVM's weights, in the basis's coordinates until lifted."""

    class_coef_: Array
    duality_gap_: float
    n_iter_: int

    def _lifted(self) -> tuple[Array, ...]:
        return (self.class_coef_,)

    def _others_in_features(self, lifted: list[Array], signs: Array, deviations: Array) -> dict[str, Any]:
        return {"class_coef_": lifted[0]}


class MarginSubspace(Reducer):
    """Margin subspace: the directions in which a large-margin classifier separates the classes.

        maximise  tr WᵀηᵀηW  subject to  WᵀW = I,    η_y = weights of the Crammer–Singer SVM for class y

    The directions are the leading right singular vectors of the weights, at most C − 1. `MaxMarginShift(PCA())` with a
    large shift is similar (the same span at C − 1 components); this method has no shift to choose. Use it for few
    components before a linear classifier; for more than C − 1 components use `MaxMarginShift`.

    Parameters
    ----------
    n_components: Number of components. A fraction in (0, 1) keeps the fewest components that reach this share of
        Σ‖η_y‖², None all of them, at most C − 1.
    C: Weight of the hinge losses. The SVM is fitted to centred rows divided by one scalar (mean square length 1), so C
        has the same meaning for every data set.
    tol: Relative duality gap at which the SVM stops.
    max_iter: Maximum number of passes over the rows.

    Attributes
    ----------
    components_: Directions, orthonormal rows.
    eigenvalues_: Squared singular values of η divided by the total weight.
    explained_variance_ratio_: Share of each direction in Σ‖η_y‖².
    rank_: Number of directions.
    class_coef_ : array of shape (n_classes, n_features)
        η, which applies to x − mean_.
    {fitted_svm}
    {fitted}

    References
    ----------
    K. Crammer and Y. Singer, "On the Algorithmic Implementation of Multiclass Kernel-based Vector Machines", 2001.

    Examples
    --------
    >>> from sklearn.datasets import load_wine
    >>> from discrim import MarginSubspace
    >>> X, y = load_wine(return_X_y=True)
    >>> MarginSubspace().fit(X, y).transform(X).shape
    (178, 2)
    """

    _parameter_constraints: ClassVar[Constraints] = {"n_components": COUNT, **SVM}

    def __init__(
        self, n_components: int | float | None = None, *, C: float = 1.0, tol: float = 1e-10, max_iter: int = 10_000
    ) -> None:
        self.n_components = n_components
        self.C = C
        self.tol = tol
        self.max_iter = max_iter

    def _needs(self) -> Needs:
        rows = "the SVM needs all rows at once. Use fit."
        return Needs(scatter="means", contrasts=True, rows=rows, margins=self._margins, tells_labels=False)

    def _margins(self, rows: LabelledRows) -> Margins:
        found = margin_shift(rows, rows.n_classes, C=self.C, tol=self.tol, max_iter=self.max_iter)
        return Margins(duals=found.duals, gap=found.gap, n_iter=found.n_iter)

    def _solve(self, problem: Problem) -> Solution:
        basis, moments, request = problem.basis, problem.moments, problem.request
        duals = basis.margins.duals
        assert duals is not None
        eta = class_pulls(basis.points, moments.exponent, duals)
        # Σ_y η_y = 0, so C − 1 contrasts hold all of the weights, without the rounding of that zero
        spectrum = spectrum_of_factor(helmert(len(eta)) @ eta, None, precision=moments.precision)
        if spectrum.rank == 0:
            raise ValueError(
                "X must separate the classes in some direction; got an SVM whose weights are all 0, as when every row "
                "occurs in each class. Check the label column, or use discrim.PCA, which needs no labels."
            )
        k = kept_count(request, spectrum.values, spectrum.total, spectrum.rank, problem.shape)
        values = spectrum.values[:k]
        return MarginSolution(
            components_=spectrum.directions[:k],
            eigenvalues_=moments.per_weight(values),
            explained_variance_ratio_=values / spectrum.total,
            rank_=spectrum.rank,
            solver_=f"{spectrum.how} of the SVM's weights",
            is_resolved=basis.shows(values),
            class_coef_=moments.in_row_units(eta),
            duality_gap_=basis.margins.gap,
            n_iter_=basis.margins.n_iter,
        )
