"""Principal components of the shifted rows, without shifting a row."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from copy import copy
from typing import Any

import numpy as np

from discrim.data.rows import LabelledRows
from discrim.margins.margin_vectors import Margins
from discrim.margins.shift import Shift, added_rows, class_pulls, margin_shift
from discrim.moments.class_moments import ClassMoments
from discrim.objectives.spread import Spread
from discrim.reducers.spread_reducer import SpreadReducer
from discrim.solve.basis import Basis, build
from discrim.solve.choose import Plan, choose


class ShiftedPCA(SpreadReducer):
    """PCA of max-margin shifted rows, for `MaxMarginShift`.

        maximise  tr Wᵀ(S_w + S_b + ηᵀ(2σ²I + σ⁴G)η)W  subject to  WᵀW = I

    The scatter of T[X] in closed form (see discrim.margins.shift), hence on every path: tall, wide, sparse, Lanczos.
    `mean_` is that of the rows as they came, which is where the components are applied.
    """

    _found: Shift | None = None

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

    def _margins(self, rows: LabelledRows) -> Margins:
        found = self._found
        if found is None:
            found = shift_of(rows, rows.n_classes, C=self.C, tol=self.tol, max_iter=self.max_iter)
        return Margins(duals=np.sqrt(found.sigma2(1.0)) * found.duals)  # σA at shift 1: any shift is a factor away

    def _spread(self, moments: ClassMoments, basis: Basis) -> Spread:
        assert basis.margins.duals is not None
        duals = np.sqrt(self.shift) * basis.margins.duals
        eta = class_pulls(basis.points, moments.exponent, duals, by_product=basis.as_operator)
        rows = [moments.between_rows(), added_rows(eta, duals, basis.points.weights)]
        return Spread(np.ones(len(moments.weights)), np.concatenate(rows))

    def fitted_to(self, rows: LabelledRows, found: Shift) -> ShiftedPCA:
        """A fitted copy for rows whose SVM is solved; the last of their classes may hold rows without a label."""
        fitted = self._about(rows, found)
        fitted._projection = fitted._project(rows, fitted._request())
        fitted._found = None  # another fit is of other rows
        return fitted

    def fitted_path(self, rows: LabelledRows, found: Shift, shifts: Iterable[float]) -> Iterator[ShiftedPCA]:
        """The same for each of several shifts, which share the SVM, the coordinates and the scatter."""
        request = self._request()
        plan = choose(*rows.shape, sparse=rows.is_sparse, wanted=self._wanted(request, rows.n_classes))
        basis = build(plan, rows, self._about(rows, found)._margins(rows))
        moments = ClassMoments.of_rows(basis.points, keep="means" if basis.as_operator else "pooled")
        mean = moments.mean if basis.mean is None else basis.mean
        for shift in shifts:
            fitted = self._about(rows, None)
            fitted.shift = shift
            solution = fitted._solve(basis, moments, request)
            fitted._projection = fitted._projection_of(solution, basis, mean, rows.X.dtype)
            yield fitted

    def _about(self, rows: LabelledRows, found: Shift | None) -> ShiftedPCA:
        copied = copy(self)
        copied.n_features_in_, copied._labels, copied._found = rows.shape[1], rows.classes, found
        return copied


def shift_of(rows: LabelledRows, n_classes: int, *, C: float, tol: float, max_iter: int) -> Shift:
    """The shift of rows; those with class numbers from n_classes on have no label."""
    # near the origin, since a constant column of sparse rows would drown the others; the SVM centres anyway
    near = build(Plan("operator", "near the origin"), rows, Margins()).points
    return margin_shift(near, n_classes, C=C, tol=tol, max_iter=max_iter)


def require_whole_passes(max_iter: Any) -> None:
    if not isinstance(max_iter, (int, np.integer)) or isinstance(max_iter, bool) or max_iter < 1:
        raise ValueError(f"max_iter={max_iter!r} came; possible is an int ≥ 1: passes of the SVM over the rows.")
