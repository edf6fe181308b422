"""Principal components of the shifted rows, without shifting a row."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from copy import copy
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from discrim.core.coordinates.basis import Basis
from discrim.core.margin_vectors import Margins
from discrim.core.moments.class_moments import ClassMoments
from discrim.core.problem import Needs, Posing
from discrim.core.spread import Spread
from discrim.core.svm.shift import Shift, added_rows, class_pulls, margin_shift
from discrim.estimators.spread_reducer import SpreadReducer
from discrim.tables.check_parameters import plain_count
from discrim.tables.rows import LabelledRows

Array = NDArray[np.float64]


class ShiftedPCA(SpreadReducer):
    """PCA of max-margin shifted rows, for `MaxMarginShift`.

        maximise  tr Wᵀ(S_w + S_b + ηᵀ(2σ²I + σ⁴G)η)W  subject to  WᵀW = I

    The scatter of T[X] in closed form (see discrim.core.svm.shift), hence on every path: tall, wide, sparse, Lanczos.
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

    def _needs(self) -> Needs:
        return Needs(rows="the SVM needs all rows at once. Use fit.", margins=self._margins, passes=True)

    def _margins(self, rows: LabelledRows) -> Margins:
        return unit_shift(margin_shift(rows, rows.n_classes, C=self.C, tol=self.tol, max_iter=self.max_iter))

    def _spread(self, moments: ClassMoments, basis: Basis) -> Spread:
        assert basis.margins.duals is not None
        return shifted_spread(moments, basis, np.sqrt(self.shift) * basis.margins.duals)

    def fitted_to(self, rows: LabelledRows, found: Shift, shifts: Iterable[float]) -> Iterator[ShiftedPCA]:
        """A fitted copy for each shift of rows whose SVM is solved; they share it, the coordinates and the scatter.

        The last of the rows' classes may hold rows without a label.
        """
        model = copy(self)
        model.n_features_in_, model._statistics = rows.shape[1], None
        needs = replace(model._needs(), margins=lambda _: unit_shift(found))
        posing = Posing.of(rows, needs, plain_count(self.n_components))
        for shift in shifts:
            fitted = copy(model)
            fitted.shift = shift
            fitted._keep(fitted._solve_rows(rows, posing=posing), rows.classes)
            yield fitted


def unit_shift(found: Shift) -> Margins:
    """Return σA at shift 1: any other shift is a factor away."""
    return Margins(duals=np.sqrt(found.sigma2(1.0)) * found.duals)


def shifted_spread(moments: ClassMoments, basis: Basis, duals: Array) -> Spread:
    """The scatter of T[X] = X + σ²Aη from σA."""
    eta = class_pulls(basis.points, moments.exponent, duals)
    rows = [moments.between_rows(), added_rows(eta, duals, basis.points.weights)]
    return Spread(np.ones(len(moments.weights)), np.concatenate(rows))
