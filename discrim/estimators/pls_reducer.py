"""What PLS-DA and its sparse version share: components of one-hot labels, importances, the nearest centroid."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from discrim.core.coordinates.basis import Basis
from discrim.core.count import kept_count, require_rank
from discrim.core.partial_least_squares import LeastSquaresComponents
from discrim.core.problem import Needs, Problem
from discrim.estimators.base import Solution, fitted_property
from discrim.estimators.nearest_centroid import NearestCentroid
from discrim.estimators.vip import importances
from discrim.tables.fit_messages import refuse_explained

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False, kw_only=True)
class PLSSolution(Solution):
    """Of partial least squares also: weights and loadings (columns, as in scikit-learn), and the rule of centroids."""

    x_weights_: Array
    x_loadings_: Array
    y_loadings_: Array
    _discriminants: Array
    _centroids: Array
    _log_priors: Array

    def _also_lifted(self, basis: Basis, signs: Array) -> dict[str, Any]:
        return {
            "x_weights_": basis.lift(self.x_weights_.T).T * signs,
            "x_loadings_": basis.lift(self.x_loadings_.T).T * signs,
            "y_loadings_": self.y_loadings_ * signs,
            "_discriminants": basis.lift(self._discriminants),
        }


class PLSReducer(NearestCentroid):
    """Components by partial least squares of one-hot labels; `_components` states how each is found."""

    x_weights_: Array
    eigenvalues_: Array

    def _needs(self) -> Needs:
        return Needs(tells_labels=False)  # what they explain are the eigenvalues

    @abstractmethod
    def _components(self, problem: Problem, wanted: int) -> tuple[LeastSquaresComponents, Any]:
        """At most `wanted` components, and what else was found (None: nothing), which has a `first(k)`."""

    def _solve(self, problem: Problem) -> Solution:
        moments, request, shape, ratio = problem.moments, problem.request, problem.shape, problem.ratio
        require_rank(request, ratio.rank, shape)
        ratio = problem.separated
        wanted = request if isinstance(request, int) else min(len(ratio.shares) - 1, ratio.rank)
        found, extra = self._components(problem, wanted)
        k, values = len(found.weights), found.explained
        if isinstance(request, int) and k < request:
            refuse_explained(request, k)
        if isinstance(request, float):
            k = kept_count(request, values, float(values.sum()), k, shape)
        unit = float(np.sqrt(found.variances[:k].mean()))
        rotations = ratio.embedded(found.rotations[:k])
        return PLSSolution(
            components_=rotations,
            eigenvalues_=values[:k],
            explained_variance_ratio_=values[:k] / float(1 - ratio.shares @ ratio.shares),
            rank_=ratio.rank,
            solver_=f"{k} components by partial least squares",
            is_resolved=problem.basis.is_resolved,
            found=None if extra is None else extra.first(k),
            x_weights_=ratio.embedded(found.weights[:k]).T,
            x_loadings_=ratio.embedded(found.loadings[:k]).T,
            y_loadings_=np.ldexp(found.label_loadings[:k].T, -moments.exponent),
            _discriminants=np.ldexp(rotations / unit, -moments.exponent),
            _centroids=found.centroids()[:, :k] / unit,
            _log_priors=np.zeros(len(ratio.shares)),
        )

    @fitted_property
    def vip_(self) -> Array:
        """√(d Σ_h SS_h w_jh² / Σ_h SS_h) for every feature, w_h the weights; the squares sum to d."""
        return importances(self.x_weights_.T, self.eigenvalues_)
