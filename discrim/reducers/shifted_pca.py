"""Principal components of the shifted rows, without shifting a row."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from copy import copy

import numpy as np
from numpy.typing import NDArray

from discrim.data.rows import LabelledRows
from discrim.margins.margin_vectors import Margins
from discrim.margins.shift import Shift, added_rows, class_pulls, margin_shift
from discrim.moments.class_moments import ClassMoments
from discrim.objectives.spread import Spread
from discrim.reducers.spread_reducer import SpreadReducer
from discrim.solve.basis import Basis

Array = NDArray[np.float64]


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
            found = margin_shift(rows, rows.n_classes, C=self.C, tol=self.tol, max_iter=self.max_iter)
        return Margins(duals=np.sqrt(found.sigma2(1.0)) * found.duals)  # σA at shift 1: any shift is a factor away

    def _spread(self, moments: ClassMoments, basis: Basis) -> Spread:
        assert basis.margins.duals is not None
        return shifted_spread(moments, basis, np.sqrt(self.shift) * basis.margins.duals)

    def fitted_to(self, rows: LabelledRows, found: Shift, shifts: Iterable[float]) -> Iterator[ShiftedPCA]:
        """A fitted copy for each shift of rows whose SVM is solved; they share it, the coordinates and the scatter.

        The last of the rows' classes may hold rows without a label.
        """
        model = copy(self)
        model.n_features_in_, model._found = rows.shape[1], found
        coordinates = model._coordinates(rows)
        model._found, model._statistics = None, None  # another fit is of other rows
        for shift in shifts:
            fitted = copy(model)
            fitted.shift = shift
            fitted._keep(*fitted._solve_rows(rows, coordinates))
            yield fitted


def shifted_spread(moments: ClassMoments, basis: Basis, duals: Array) -> Spread:
    """The scatter of T[X] = X + σ²Aη from σA."""
    eta = class_pulls(basis.points, moments.exponent, duals)
    rows = [moments.between_rows(), added_rows(eta, duals, basis.points.weights)]
    return Spread(np.ones(len(moments.weights)), np.concatenate(rows))
