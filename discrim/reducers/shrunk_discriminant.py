"""What regularised LDA and its kin share: a ridge on the within-class covariance, given, computed, or searched for."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from discrim.data.check_parameters import COUNT, SHARE, Constraints, named
from discrim.moments.class_moments import ClassMoments
from discrim.objectives.ratio import Ratio
from discrim.objectives.shrinkage import chosen_shrinkage
from discrim.reducers.discriminant import DiscriminantReducer
from discrim.reducers.nearest_centroid import GaussianCentroid
from discrim.solve.basis import Basis
from discrim.solve.folds import Folds
from discrim.solve.shrinkage_path import PathScores


@dataclass(frozen=True, eq=False)
class Shrinkage:
    """The γ that was used, and what was tried for it."""

    shrinkage_: float
    path_: PathScores | None


class ShrunkDiscriminant(GaussianCentroid, DiscriminantReducer):
    """Discriminants with Σ_γ = (1−γ) S_w/n + γ τ I in the place of S_w/n."""

    _parameter_constraints: ClassVar[Constraints] = {
        "n_components": COUNT,
        "shrinkage": (SHARE, *named("ledoit_wolf", "oas", "cv")),
    }
    shrinkage: Any
    cv: Any
    random_state: Any

    @property
    def _searches_count(self) -> bool:
        return isinstance(self.n_components, str)

    def _why_not_streamed(self) -> str | None:
        if self.shrinkage in ("ledoit_wolf", "cv") or self._searches_count:
            return (
                f"shrinkage={self.shrinkage!r} with n_components={self.n_components!r} needs all rows at once. "
                "Statistics suffice for a number or 'oas'."
            )
        return super()._why_not_streamed()

    def _why_all_directions(self) -> str | None:
        if isinstance(self.shrinkage, str) or self.shrinkage == 0 or self._searches_count:
            return (
                "only a fixed shrinkage above 0 (pass shrinkage=0.1, say, and an int n_components) goes without the "
                "whole within-class scatter"
            )
        return None

    def _folds(self, basis: Basis) -> Folds:
        return Folds(basis.points, self.cv, self.random_state, basis.original)

    def _given_shrinkage(self, ratio: Ratio, moments: ClassMoments, basis: Basis) -> float:
        """γ where no search is asked for."""
        if not isinstance(self.shrinkage, str):
            return float(self.shrinkage)
        columns = int((basis.feature_variances(moments) > 0).sum())
        return chosen_shrinkage(self.shrinkage, ratio, moments, basis.points, columns)
