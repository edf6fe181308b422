"""Tables in parts with too many columns for their statistics: every product goes through all parts once more."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from discrim.core.coordinates.basis import Features
from discrim.core.coordinates.products import within_spread
from discrim.core.eigen import Spectrum, spectrum_of_passes
from discrim.core.moments.class_moments import ClassMoments
from discrim.core.spread import Spread
from discrim.tables.rows import LabelledRows

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False, kw_only=True)
class PassedRows(Features):
    """The features of rows in parts; what statistics would say is had by going through the parts."""

    summed: Callable[[Callable[[LabelledRows], Any]], Any]  # what a function gives for the rows of each part, summed
    most: int  # products for a spectrum

    def spectrum(self, spread: Spread, moments: ClassMoments, wanted: int | None) -> Spectrum:
        assert wanted is not None
        found = spectrum_of_passes(lambda V: self._product(spread, moments, V), moments.n_features, wanted, self.most)
        if not spread.is_definite:
            return found
        of_rows = self.summed(partial(_trace, _without_extra_rows(spread), moments))
        return replace(found, total=float(np.vdot(spread.rows, spread.rows) + of_rows))

    def within_along(self, directions: Array, moments: ClassMoments) -> Array:
        return self._product(within_spread(moments), moments, directions.T).T

    def _product(self, spread: Spread, moments: ClassMoments, V: Array) -> Array:
        of_rows = self.summed(partial(_image, _without_extra_rows(spread), moments, V))
        return spread.rows.T @ (spread.rows @ V) + of_rows


def _without_extra_rows(spread: Spread) -> Spread:
    return replace(spread, rows=spread.rows[:0])


def _image(spread: Spread, moments: ClassMoments, V: Array, rows: LabelledRows) -> Array:
    return np.asarray(spread.operator(moments, rows).matmat(V))


def _trace(spread: Spread, moments: ClassMoments, rows: LabelledRows) -> np.float64:
    weights = np.bincount(rows.codes, rows.weights, minlength=len(moments.weights)).astype(np.float64)
    return np.float64(spread.trace(replace(moments, weights=weights), rows))
