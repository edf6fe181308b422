"""Reducers that maximise one spread: their directions are its leading eigenvectors."""

from __future__ import annotations

from abc import abstractmethod

import numpy as np

from discrim.core.coordinates.basis import Basis
from discrim.core.count import kept_count
from discrim.core.eigen import Spectrum
from discrim.core.moments.class_moments import ClassMoments
from discrim.core.problem import Needs, Problem
from discrim.core.spread import Spread
from discrim.estimators.base import Reducer, Solution


class SpreadReducer(Reducer):
    """maximise  tr WᵀAW  subject to  WᵀW = I,  A the spread that `_spread` states."""

    def _needs(self) -> Needs:
        return Needs(passes=True)

    @abstractmethod
    def _spread(self, moments: ClassMoments, basis: Basis) -> Spread:
        """The objective, from the statistics (and landmarks) in the basis's coordinates."""

    def _solve(self, problem: Problem) -> Solution:
        basis, moments, request = problem.basis, problem.moments, problem.request
        wanted = request + 1 if isinstance(request, int) else None  # one more shows a tie at the cut
        spectrum = problem.spectrum(self._spread(moments, basis), wanted)
        k = self._count(request, spectrum, problem.shape)
        values = spectrum.values[:k]
        return Solution(
            components_=spectrum.directions[:k],
            eigenvalues_=moments.per_weight(values),
            explained_variance_ratio_=values / spectrum.total if spectrum.total > 0 else np.zeros(k),
            rank_=spectrum.rank,
            solver_=spectrum.how,
            is_resolved=basis.is_resolved if request is None else basis.shows(values),
        )

    def _count(self, request: int | float | None, spectrum: Spectrum, shape: tuple[int, int]) -> int:
        """How many directions to keep."""
        return kept_count(request, spectrum.values, spectrum.total, spectrum.rank, shape)
