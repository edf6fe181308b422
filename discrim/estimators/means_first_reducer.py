"""Reducers whose first directions are those of the class means, and whose further ones come from elsewhere."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from discrim.core.coordinates.basis import Basis
from discrim.core.count import discriminant_count
from discrim.core.discriminants import principal
from discrim.core.moments.class_moments import ClassMoments
from discrim.core.problem import Needs, Problem
from discrim.core.ratio import Ratio
from discrim.estimators.base import Reducer, Solution
from discrim.tables.fit_messages import refuse_equal_rows

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Supervised:
    """How many of the components the labels have a say in."""

    n_supervised_: int


class MeansFirstReducer(Reducer):
    """maximise  tr WᵀUᵀUW  subject to  WᵀW = I,  U what `_mean_rows` states; beyond its rank what `_rest` states."""

    def _needs(self) -> Needs:
        return Needs(contrasts=True)

    @abstractmethod
    def _mean_rows(self, ratio: Ratio) -> Array:
        """U/√n, made of the class means √(n_c/n) (μ_c − μ) that the ratio holds."""

    @abstractmethod
    def _rest(self, basis: Basis, ratio: Ratio, moments: ClassMoments, first: Array, wanted: int) -> Array:
        """`wanted` unit rows in the moments' coordinates, orthogonal to one another and to the first (the ratio's)."""

    def _solve(self, problem: Problem) -> Solution:
        basis, moments, request, shape = problem.basis, problem.moments, problem.request, problem.shape
        ratio = problem.ratio
        if ratio.rank == 0:
            refuse_equal_rows(*shape)
        most = len(ratio.shares) - 1  # C means span no more
        values, first = (part[:most] for part in principal(self._mean_rows(problem.separated)))
        k, q = discriminant_count(request, values, ratio.rank, shape), len(values)
        directions = ratio.embedded(first[:k])
        if k > q:
            directions = np.concatenate([directions, self._rest(basis, ratio, moments, first, k - q)])
        given = np.zeros(k)
        given[:q] = values[:k]
        return Solution(
            components_=directions,
            eigenvalues_=moments.in_squared_units(given),
            explained_variance_ratio_=given / values.sum(),
            rank_=ratio.rank,
            solver_=f"{min(k, q)} directions of the class means" + (f", {k - q} beyond" if k > q else ""),
            is_resolved=basis.is_resolved or (k <= q and basis.shows(values[:k])),
            found=Supervised(min(k, q)),
        )
