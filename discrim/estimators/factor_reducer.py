"""What methods share that describe rows by few factors from which labels are predicted too."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from discrim.core.alternating import CentredRows, Factors, Loss, alternated
from discrim.core.coordinates.basis import Basis
from discrim.core.count import default_count, kept_count
from discrim.core.discriminants import principal
from discrim.core.independent import independent
from discrim.core.problem import Needs, Problem
from discrim.core.spread import total_spread
from discrim.decompositions import eigh
from discrim.estimators.base import Reducer, Solution
from discrim.tables.check_parameters import COUNT, POSITIVE, Constraints, whole
from discrim.tables.fit_messages import refuse_directions, warn_of_unsettled_factors

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False, kw_only=True)
class FactorSolution(Solution):
    """Of factors also how what is minimised fell; `explained_variance_ratio_` tells the variances."""

    objective_: Array
    n_iter_: int
    is_settled: bool


class FactorReducer(Reducer):
    """Directions of rows that are few factors; `_factors` states how they are found."""

    _parameter_constraints: ClassVar[Constraints] = {
        "n_components": COUNT,
        "label_weight": POSITIVE,
        "penalty": POSITIVE,
        "tol": POSITIVE,
        "max_iter": (whole(1),),
    }

    def __init__(
        self,
        n_components: int | float | None = None,
        *,
        label_weight: float = 1.0,
        penalty: float = 0.01,
        tol: float = 1e-5,
        max_iter: int = 200,
    ) -> None:
        super().__init__(n_components)
        self.label_weight = label_weight
        self.penalty = penalty
        self.tol = tol
        self.max_iter = max_iter

    @abstractmethod
    def _factors(self, rows: CentredRows, means: Array, axes: Array, k: int) -> FactorSolution:
        """k of them, of rows of mean square length 1 with these class means and principal axes (unit rows)."""

    def _needs(self) -> Needs:
        rows = "each row has factors of its own, so that a fit needs all rows at once. Use fit."
        return Needs(contrasts=True, rows=rows)

    def _solve(self, problem: Problem) -> Solution:
        basis, moments, request, shape = problem.basis, problem.moments, problem.request, problem.shape
        n_classes = len(moments.weights)
        wanted = request if isinstance(request, int) else n_classes - 1
        spectrum = problem.spectrum(total_spread(moments), wanted + 1)
        k = default_count(request, n_classes, spectrum.rank, shape)
        variance = spectrum.total / moments.total_weight
        rows = CentredRows.of(basis, moments, float(np.sqrt(variance)))
        means, axes = principal(moments.between_rows())[1][: n_classes - 1], spectrum.directions[: spectrum.rank]
        found = self._factors(rows, means, axes, k)
        shares = found.explained_variance_ratio_
        if isinstance(request, float):
            found = self._factors(rows, means, axes, kept_count(request, shares, float(shares.sum()), k, shape))
        if not found.is_settled:
            warn_of_unsettled_factors(type(self).__name__, self.max_iter)
        return replace(
            found,
            eigenvalues_=moments.in_squared_units(found.explained_variance_ratio_ * variance),
            rank_=spectrum.rank,
            solver_=f"{found.solver_}, from {spectrum.how}",
            is_resolved=basis.is_resolved,
        )


@dataclass(frozen=True, eq=False, kw_only=True)
class ClassifiedFactors(FactorSolution):
    """With the classifier that was fitted with them."""

    class_coef_: Array
    class_intercept_: Array

    def _also_lifted(self, basis: Basis, signs: Array) -> dict[str, Any]:
        if not np.isfinite(self.class_coef_).all():
            refuse_directions(np.dtype(np.float64))
        return {"class_coef_": self.class_coef_ * signs}


class AlternatingReducer(FactorReducer):
    """min Σ(w_i/n)[‖x_i − z_iW‖² + α·loss(y_i, z_iV + v_0)] + β‖V‖²,  WWᵀ = I;  `_loss` states the loss."""

    @property
    @abstractmethod
    def _loss(self) -> Loss:
        """What a wrong label costs."""

    def _factors(self, rows: CentredRows, means: Array, axes: Array, k: int) -> FactorSolution:
        """From the principal axes, and from those of the class means before them: the lower of both."""
        _, rest = independent(means, axes, max(0, k - len(means)))
        starts = [axes[:k], np.concatenate([means, rest])[:k]]
        tried = [self._descended(rows, start) for start in starts if len(start) == k]
        found = min(tried, key=lambda one: float(one.values[-1]))
        # F is the same for every rotation of W, Z and V together: to the principal axes of the rows in their span
        along = rows.along(found.W)
        values, vectors = eigh(along.T @ (rows.weights[:, None] * along))
        turn, shares = vectors.T[::-1], np.maximum(values[::-1], 0.0)
        with np.errstate(over="ignore"):
            coefficients = (turn @ found.V[:-1]).T * rows.factor
        return ClassifiedFactors(
            components_=turn @ found.W,
            eigenvalues_=shares,
            explained_variance_ratio_=shares,
            rank_=len(axes),
            solver_=f"{k} factors by convex steps in turn",
            objective_=found.values,
            n_iter_=len(found.values) - 1,
            is_settled=found.is_settled,
            class_coef_=coefficients,
            class_intercept_=found.V[-1],
        )

    def _descended(self, rows: CentredRows, start: Array) -> Factors:
        alpha, beta = float(self.label_weight), float(self.penalty)
        return alternated(rows, start, self._loss, alpha, beta, tol=float(self.tol), max_iter=int(self.max_iter))
