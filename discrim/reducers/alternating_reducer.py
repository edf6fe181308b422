"""What methods share that describe rows by few factors from which labels are predicted too."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from discrim.data.check_parameters import COUNT, POSITIVE, Constraints, whole
from discrim.data.fit_messages import warn_of_unsettled_factors
from discrim.data.rows import LabelledRows
from discrim.decompositions import eigh
from discrim.margins.identical_rows import equal_rows
from discrim.moments.class_moments import ClassMoments
from discrim.objectives.spread import Spread
from discrim.reducers.base import Reducer, Solution
from discrim.solve.alternating import CentredRows, Factors, Loss, alternated
from discrim.solve.basis import Basis
from discrim.solve.count import default_count, kept_count
from discrim.solve.discriminants import principal
from discrim.solve.independent import independent

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False, kw_only=True)
class FactorSolution(Solution):
    """Of the factors also the classifier that was fitted with them."""

    class_coef_: Array
    class_intercept_: Array
    objective_: Array
    n_iter_: int

    def lifted(self, basis: Basis, dtype: np.dtype[Any]) -> Self:
        """The same in the features."""
        found = super().lifted(basis, dtype)
        signs = np.sign(np.einsum("kd,kd->k", found.components_, basis.lift(self.components_)))
        return replace(found, class_coef_=self.class_coef_ * signs)


class AlternatingReducer(Reducer):
    """min Σ(w_i/n)[‖x_i − z_iW‖² + α·loss(y_i, z_iV + v_0)] + β‖V‖²,  WWᵀ = I;  `_loss` states the loss."""

    _parameter_constraints: ClassVar[Constraints] = {
        "n_components": COUNT,
        "label_weight": POSITIVE,
        "penalty": POSITIVE,
        "tol": POSITIVE,
        "max_iter": (whole(1),),
    }
    _spans_class_means = True
    label_weight: float
    penalty: float
    tol: float
    max_iter: int

    @property
    @abstractmethod
    def _loss(self) -> Loss:
        """What a wrong label costs."""

    def _why_not_streamed(self) -> str | None:
        return "each row has factors of its own, so that a fit needs all rows at once. Use fit."

    def _solve(self, basis: Basis, moments: ClassMoments, request: int | float | None) -> Solution:
        shape, n_classes = (moments.n_rows, self.n_features_in_), len(moments.weights)
        total = Spread(np.ones(n_classes), moments.between_rows())
        wanted = request if isinstance(request, int) else n_classes - 1
        spectrum = basis.spectrum(total, moments, wanted + 1)
        k = default_count(request, n_classes, spectrum.rank, shape)
        variance = spectrum.total / moments.total_weight
        rows = CentredRows.of(distinct_rows(basis), moments, float(np.sqrt(variance)))
        found = self._found(rows, moments, spectrum.directions[: spectrum.rank], k)
        if isinstance(request, float):
            shares = _turned_to_axes(rows, found)[1]
            k = kept_count(request, shares, float(shares.sum()), k, shape)
            found = self._found(rows, moments, spectrum.directions[: spectrum.rank], k)
        if not found.is_settled:
            warn_of_unsettled_factors(type(self).__name__, self.max_iter)
        turn, shares = _turned_to_axes(rows, found)
        return FactorSolution(
            components_=turn @ found.W,
            eigenvalues_=moments.in_squared_units(shares * variance),
            explained_variance_ratio_=shares,
            rank_=spectrum.rank,
            solver_=f"{k} factors by convex steps in turn, from {spectrum.how}",
            is_resolved=basis.is_resolved,
            class_coef_=(turn @ found.V[:-1]).T * float(0.5**moments.exponent / np.sqrt(variance)),
            class_intercept_=found.V[-1],
            objective_=found.values,
            n_iter_=len(found.values) - 1,
        )

    def _found(self, rows: CentredRows, moments: ClassMoments, principal_axes: Array, k: int) -> Factors:
        """From the principal axes, and from those of the class means before them: the lower of both."""
        means = principal(moments.between_rows())[1][: len(moments.weights) - 1]
        _, rest = independent(means, principal_axes, max(0, k - len(means)))
        starts = [principal_axes[:k], np.concatenate([means, rest])[:k]]
        tried = [self._descended(rows, start) for start in starts if len(start) == k]
        return min(tried, key=lambda one: float(one.values[-1]))

    def _descended(self, rows: CentredRows, start: Array) -> Factors:
        alpha, beta = float(self.label_weight), float(self.penalty)
        return alternated(rows, start, self._loss, alpha, beta, tol=float(self.tol), max_iter=int(self.max_iter))


def distinct_rows(basis: Basis) -> LabelledRows:
    """Different rows with their weights, in the order of their contents, on which alone the steps then depend."""
    given = basis.original
    groups = equal_rows(given.X, given.codes)
    weights = np.bincount(groups.group, given.weights).astype(np.float64)
    return replace(basis.points.some(groups.first), weights=weights)


def _turned_to_axes(rows: CentredRows, found: Factors) -> tuple[Array, Array]:
    """The rotation of the factors to the principal axes of the rows in their span, and the variances along these.

    F is the same for every rotation of W, Z and V together.
    """
    P = rows.along(found.W)
    values, vectors = eigh(P.T @ (rows.weights[:, None] * P))
    return vectors.T[::-1], np.maximum(values[::-1], 0.0)
