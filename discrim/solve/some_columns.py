"""A problem posed in some of the columns, its directions 0 in the others."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from discrim.data.rows import LabelledRows
from discrim.margins.margin_vectors import Margins
from discrim.moments.class_moments import ClassMoments
from discrim.objectives.spread import Spread
from discrim.solve.basis import Basis
from discrim.solve.choose import Plan
from discrim.solve.eigen import Spectrum

Array = NDArray[np.float64]


@dataclass(frozen=True)
class PlanOfColumns(Plan):
    """A plan for the rows in some columns, and the mean of all columns."""

    columns: NDArray[np.intp]
    whole_mean: Array
    found: Any  # how the columns were chosen

    def build(self, points: LabelledRows, margins: Margins, *, resolve: bool = False) -> Basis:
        some = replace(points, X=points.X[:, self.columns])
        return SomeColumns.around(
            super().build(some, margins, resolve=resolve), self.columns, self.whole_mean, self.found
        )


@dataclass(frozen=True, eq=False, kw_only=True)
class SomeColumns(Basis):
    """A basis of the rows in some columns; what it finds is carried back to all of them."""

    inner: Basis
    columns: NDArray[np.intp]
    whole_mean: Array
    found: Any = None

    @classmethod
    def around(cls, inner: Basis, columns: NDArray[np.intp], whole_mean: Array, found: Any = None) -> SomeColumns:
        """The inner basis, of rows in these columns."""
        return cls(
            points=inner.points,
            margins=inner.margins,
            original=inner.original,
            how=f"{inner.how}; {len(columns)} of {len(whole_mean)} columns",
            keeps_leading=inner.keeps_leading,
            is_resolved=inner.is_resolved,
            can_resolve=inner.can_resolve,
            inner=inner,
            columns=columns,
            whole_mean=whole_mean,
            found=found,
        )

    def mean(self, moments: ClassMoments) -> Array:
        return self.whole_mean

    def lift(self, directions: Array) -> Array:
        lifted = np.zeros((len(directions), len(self.whole_mean)))
        lifted[:, self.columns] = self.inner.lift(directions)
        return lifted

    def feature_variances(self, moments: ClassMoments) -> Array:
        variances = np.zeros(len(self.whole_mean))
        variances[self.columns] = self.inner.feature_variances(moments)
        return variances

    def moments(self, keep: str, emphasis: Callable[[Array], Array | None] | None = None) -> ClassMoments:
        return self.inner.moments(keep, emphasis)

    def spectrum(self, spread: Spread, moments: ClassMoments, wanted: int | None) -> Spectrum:
        return self.inner.spectrum(spread, moments, wanted)
