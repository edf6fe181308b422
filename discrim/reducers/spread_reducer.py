"""Reducers that maximise one spread: their directions are its leading eigenvectors."""

from __future__ import annotations

from abc import abstractmethod

import numpy as np

from discrim.moments.class_moments import ClassMoments
from discrim.objectives.spread import Spread
from discrim.reducers.base import Reducer, Solution
from discrim.solve.basis import RESOLVED, Basis, SingularBasis
from discrim.solve.count import kept_count
from discrim.solve.eigen import (
    Spectrum,
    spectrum_of_factor,
    spectrum_of_matrix,
    spectrum_of_operator,
)


class SpreadReducer(Reducer):
    """maximise  tr WᵀAW  subject to  WᵀW = I,  A the spread that `_spread` states."""

    @abstractmethod
    def _spread(self, moments: ClassMoments, basis: Basis) -> Spread:
        """The objective, from the statistics (and landmarks) in the basis's coordinates."""

    def _solve(self, basis: Basis, moments: ClassMoments, request: int | float | None) -> Solution:
        spread = self._spread(moments, basis)
        wanted = request + 1 if isinstance(request, int) else None  # one more shows a tie at the cut
        spectrum = spectrum_of(spread, moments, basis, wanted)
        shape = (moments.n_rows, self.n_features_in_)
        k = self._count(request, spectrum, shape)
        values = spectrum.values[:k]
        leading = basis.keeps_leading and values[-1] >= RESOLVED**2 * values[0]
        resolved = basis.is_resolved if request is None else leading
        return Solution(
            spectrum.directions[:k],
            moments.per_weight(values),
            values / spectrum.total if spectrum.total > 0 else np.zeros(k),
            spectrum.rank,
            spectrum.how,
            bool(resolved),
        )

    def _count(self, request: int | float | None, spectrum: Spectrum, shape: tuple[int, int]) -> int:
        """How many directions to keep."""
        return kept_count(request, spectrum.values, spectrum.total, spectrum.rank, shape)


def spectrum_of(spread: Spread, moments: ClassMoments, basis: Basis, wanted: int | None) -> Spectrum:
    """The spread's leading eigenpairs in the basis's coordinates, by the way that suits them."""
    if basis.as_operator:
        assert wanted is not None
        total = spread.trace(moments, basis.points) if spread.is_definite else None
        return spectrum_of_operator(spread.operator(moments, basis.points), wanted, total)
    if isinstance(basis, SingularBasis) and spread.is_definite:
        return spectrum_of_factor(spread.factor(moments, basis.points), wanted, precision=moments.precision)
    A = spread.matrix(moments, basis.points)
    return spectrum_of_matrix(A, wanted, precision=moments.precision, definite=spread.is_definite)
