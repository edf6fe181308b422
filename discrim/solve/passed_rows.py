"""Tables in parts with too many columns for their statistics: every product goes through all parts once more."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from discrim.data.rows import LabelledRows
from discrim.moments.class_moments import ClassMoments
from discrim.objectives.spread import Spread
from discrim.solve.basis import Features
from discrim.solve.eigen import Spectrum, spectrum_of_passes
from discrim.solve.products import within_spread

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False, kw_only=True)
class PassedRows(Features):
    """The features of rows in parts; what statistics would say is had by going through the parts."""

    parts: Callable[[], Iterable[LabelledRows]]
    most: int  # products for a spectrum

    def spectrum(self, spread: Spread, moments: ClassMoments, wanted: int | None) -> Spectrum:
        assert wanted is not None
        found = spectrum_of_passes(lambda V: self._product(spread, moments, V), moments.n_features, wanted, self.most)
        if not spread.is_definite:
            return found
        of_rows, total = replace(spread, rows=spread.rows[:0]), float(np.vdot(spread.rows, spread.rows))
        for rows in self.parts():
            weights = np.bincount(rows.codes, rows.weights, minlength=len(moments.weights)).astype(np.float64)
            total += of_rows.trace(replace(moments, weights=weights), rows)
        return replace(found, total=total)

    def within_along(self, directions: Array, moments: ClassMoments) -> Array:
        return self._product(within_spread(moments), moments, directions.T).T

    def _product(self, spread: Spread, moments: ClassMoments, V: Array) -> Array:
        of_rows, image = replace(spread, rows=spread.rows[:0]), spread.rows.T @ (spread.rows @ V)
        for rows in self.parts():
            image += of_rows.operator(moments, rows).matmat(V)
        return image
