"""What regularised LDA and its kin share: a ridge on the within-class covariance, given, computed, or searched for."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from discrim.data.check_parameters import checked_shrinkage
from discrim.moments.class_moments import ClassMoments
from discrim.objectives.ratio import Ratio, is_nonsingular
from discrim.objectives.shrinkage import chosen_shrinkage, shrunk
from discrim.reducers.discriminant import DiscriminantReducer
from discrim.reducers.fisher_lda import classical
from discrim.reducers.nearest_centroid import GaussianCentroid
from discrim.solve.basis import Basis
from discrim.solve.discriminants import Discriminants, discriminants, standardised
from discrim.solve.folds import Folds
from discrim.solve.shrinkage_path import PathScores

Array = NDArray[np.float64]
RULES = ("ledoit_wolf", "oas", "cv")


class ShrunkDiscriminant(GaussianCentroid, DiscriminantReducer):
    """Discriminants with Σ_γ = (1−γ) S_w/n + γ τ I in the place of S_w/n."""

    shrinkage: Any
    cv: Any
    random_state: Any

    def _check_parameters(self) -> None:
        checked_shrinkage(self.shrinkage, RULES)

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

    @property
    def _searches_count(self) -> bool:
        return isinstance(self.n_components, str) and self.n_components == "cv"

    def _folds(self, basis: Basis) -> Folds:
        return Folds(basis.points, self.cv, self.random_state)

    def _fixed_shrinkage(self, ratio: Ratio, moments: ClassMoments, basis: Basis) -> float:
        """γ where no search is asked for."""
        columns = int((basis.feature_variances(moments) > 0).sum())
        return chosen_shrinkage(self.shrinkage, ratio, moments, basis.points, columns)

    def _scaled_pads(self, pads: Array, ratio: Ratio) -> Array:
        return standardised(pads, ratio.within, ratio.total)

    @property
    def shrinkage_(self) -> float:
        """The γ that was used."""
        return self._fitted().details["shrinkage"]

    @property
    def path_(self) -> PathScores | None:
        """What cross-validation tried, and how it did; None where nothing was searched."""
        return self._fitted().details["path"]


def shrunk_discriminants(ratio: Ratio, gamma: float, precision: float, method: str) -> Discriminants:
    """All discriminants at a shrinkage: G Σ_γ Gᵀ = I, or classical ones where Σ_γ is singular."""
    sigma = shrunk(ratio.within, gamma, ratio.rank)
    if is_nonsingular(sigma, precision, ratio.total):
        return discriminants(ratio.means, sigma)
    return classical(ratio, precision, method)
