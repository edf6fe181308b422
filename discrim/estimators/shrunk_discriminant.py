"""What regularised LDA and its kin share: a ridge on the within-class covariance, given, computed, or searched for."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from discrim.core.discriminants import Discriminants, classical
from discrim.core.folds import by_content
from discrim.core.problem import Folding, Needs, Problem
from discrim.core.ratio import chosen_shrinkage
from discrim.core.shrinkage_path import PATH, PathScores, score_path
from discrim.estimators.discriminant import DiscriminantReducer
from discrim.estimators.nearest_centroid import GaussianCentroid
from discrim.tables.check_parameters import SHARE, Constraints, named

Array = NDArray[np.float64]
LEAST_BY_PRODUCTS = 0.01  # conjugate gradients do not get there in a thousand steps with less


@dataclass(frozen=True, eq=False)
class Shrinkage:
    """The γ that was used, and what was tried for it."""

    shrinkage_: float
    path_: PathScores | None


class ShrunkDiscriminant(GaussianCentroid, DiscriminantReducer):
    """Discriminants with Σ_γ = (1−γ) S_w/n + γ τ I in the place of S_w/n."""

    _parameter_constraints: ClassVar[Constraints] = {
        **DiscriminantReducer._parameter_constraints,
        "shrinkage": (SHARE, *named("ledoit_wolf", "oas", "cv")),
    }
    __metadata_request__fit: ClassVar[dict[str, Any]] = {"groups": None}
    shrinkage: Any
    cv: Any
    random_state: Any

    @property
    def _searches(self) -> bool:
        return "cv" in (self.n_components, self.shrinkage)

    @property
    def _folding(self) -> Folding:
        on_sample = self.shrinkage == "cv" and self.n_components != "cv" and not self.store_covariance
        return Folding(self.cv, self.random_state, "choose" if self._searches else "none", on_sample)

    def _needs(self) -> Needs:
        needs, folds = super()._needs(), self._folding
        matrix, rows = needs.matrix, needs.rows
        if isinstance(self.shrinkage, str) or self.shrinkage == 0 or self.n_components == "cv":
            why = (
                "only a fixed shrinkage above 0 (pass shrinkage=0.1, say, and an int n_components), or 'cv' with a "
                "number of folds, goes without the whole within-class scatter"
            )
            matrix = matrix if self.store_covariance else why
        elif not self.store_covariance:
            matrix = None
        if self.shrinkage == "ledoit_wolf":
            rows = "shrinkage='ledoit_wolf' needs all rows at once. Statistics suffice for a number, 'oas' or 'cv'."
        elif self._searches and not by_content(self.cv):
            rows = (
                f"cv={self.cv!r} names rows, which come in parts here. Pass a number of folds or a HashKFold: their "
                "folds follow from the rows' content."
            )
        return replace(needs, matrix=matrix, rows=rows, folds=folds)

    def _shrunk(self, problem: Problem) -> Discriminants:
        """All discriminants at the shrinkage that was given, is computed, or is searched for."""
        ratio = problem.separated
        chosen, count = self._chosen(problem)
        found = classical(ratio, problem.basis.cost(ratio, chosen.shrinkage_))
        return replace(found, count=count, found=chosen)

    def _chosen(self, problem: Problem) -> tuple[Shrinkage, int | None]:
        """Return the shrinkage that was given, is computed, or is searched for, and a number of discriminants."""
        basis, moments, ratio = problem.basis, problem.moments, problem.ratio
        tried, path, count = PATH, None, None
        if self.shrinkage in ("oas", "ledoit_wolf"):
            columns = int((basis.feature_variances(moments) > 0).sum())
            tried = np.array([chosen_shrinkage(self.shrinkage, ratio, moments, basis.points, columns)])
        elif self.shrinkage != "cv":
            tried = np.array([float(self.shrinkage)])
        gamma = float(tried[0])
        if self._searches:
            folds, is_sample = problem.to_choose_in(self._folding)
            if is_sample:  # none too small, where products are all there is
                tried = tried[tried >= LEAST_BY_PRODUCTS]
            path = score_path(folds, tried, self.priors, every_count=self.n_components == "cv")
            gamma, count = path.best()
        return Shrinkage(gamma, path), count if self.n_components == "cv" else None
