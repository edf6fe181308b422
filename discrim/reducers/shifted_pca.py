"""Principal components of the shifted rows, without shifting a row."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from copy import copy
from dataclasses import replace
from typing import Any

import numpy as np

from discrim.data.rows import LabelledRows
from discrim.margins.margin_vectors import Margins
from discrim.margins.shift import Shift, added_rows, class_pulls, margin_shift
from discrim.moments.class_moments import ClassMoments
from discrim.objectives.spread import Spread
from discrim.reducers.base import Projection
from discrim.reducers.spread_reducer import SpreadReducer
from discrim.solve.basis import Basis, build
from discrim.solve.choose import Plan, choose


class ShiftedPCA(SpreadReducer):
    """PCA of max-margin shifted rows, for `MaxMarginShift`.

        maximise  tr Wᵀ(S_w + S_b + ηᵀ(2σ²I + σ⁴G)η)W  subject to  WᵀW = I

    The scatter of T[X] in closed form (see discrim.margins.shift), hence on every path: tall, wide, sparse, Lanczos.
    `mean_` is that of the rows as they came, which is where the components are applied.
    """

    def __init__(
        self,
        n_components: int | float | None = None,
        *,
        shift: float = 1.0,
        C: float = 1.0,
        tol: float = 1e-10,
        max_iter: int = 10_000,
    ) -> None:
        self.n_components = n_components
        self.shift = shift
        self.C = C
        self.tol = tol
        self.max_iter = max_iter

    def _why_not_streamed(self) -> str | None:
        return "the SVM needs all rows at once. Use fit."

    def _spread(self, moments: ClassMoments, basis: Basis) -> Spread:
        duals = basis.margins.duals  # σA: then the added part is η̂ᵀ(2I + Ĝ)η̂, all of it made of σA alone
        assert duals is not None
        eta = class_pulls(basis.points, moments, duals, by_product=basis.as_operator)
        rows = [moments.between_rows(), added_rows(eta, duals, basis.points.weights)]
        return Spread(np.ones(len(moments.weights)), np.concatenate(rows))

    def _project(self, rows: LabelledRows, request: Any) -> Projection:
        found = shift_of(rows, rows.n_classes, C=self.C, tol=self.tol, max_iter=self.max_iter)
        return next(self._projections(rows, request, found, [self.shift]))

    def fitted_path(self, rows: LabelledRows, found: Shift, shifts: Iterable[float]) -> Iterator[ShiftedPCA]:
        """A fitted one for each shift; they share the SVM and the scatter."""
        self.n_features_in_ = rows.shape[1]
        self._labels = rows.classes
        for projection in self._projections(rows, self._request(), found, shifts):
            fitted = copy(self)
            fitted._projection = projection
            yield fitted

    def _projections(
        self, rows: LabelledRows, request: Any, found: Shift, shifts: Iterable[float]
    ) -> Iterator[Projection]:
        plan = choose(*rows.shape, sparse=rows.is_sparse, wanted=self._wanted(request, rows.n_classes))
        known: dict[bool, tuple[Basis, ClassMoments]] = {}

        def solved(shift: float, resolve: bool) -> tuple[Any, Basis, ClassMoments]:
            if resolve not in known:
                basis = build(plan, rows, Margins(), resolve=resolve)
                known[resolve] = basis, self._moments_in(basis)
            basis, moments = known[resolve]
            basis = replace(basis, margins=Margins(duals=np.sqrt(found.sigma2(shift)) * found.duals))
            return self._solve(basis, moments, request), basis, moments

        for shift in shifts:
            solution, basis, moments = solved(shift, False)
            if not solution.is_resolved and basis.can_resolve:
                solution, basis, moments = solved(shift, True)
            mean = moments.mean if basis.mean is None else basis.mean
            yield self._projection_of(solution, basis, mean, rows.X.dtype)

    def _moments_in(self, basis: Basis) -> ClassMoments:
        return ClassMoments.of_rows(basis.points, keep="means" if basis.as_operator else "pooled")


def shift_of(rows: LabelledRows, n_classes: int, *, C: float, tol: float, max_iter: int) -> Shift:
    """The shift of rows; those with class numbers from n_classes on have no label."""
    # near the origin, since a constant column of sparse rows would drown the others; the SVM centres anyway
    near = build(Plan("operator", "near the origin"), rows, Margins()).points
    return margin_shift(near, n_classes, C=C, tol=tol, max_iter=max_iter)
