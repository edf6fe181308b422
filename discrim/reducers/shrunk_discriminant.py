"""What regularised LDA and its kin share: a ridge on the within-class covariance, given, computed, or searched for."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from discrim.data.check_parameters import SHARE, Constraints, named, seed_number
from discrim.moments.class_moments import ClassMoments
from discrim.moments.gather import Gathering
from discrim.moments.row_sample import SAMPLE_ROWS
from discrim.objectives.ratio import Ratio, chosen_shrinkage
from discrim.reducers.base import ChosenByFolds
from discrim.reducers.discriminant import DiscriminantReducer
from discrim.reducers.nearest_centroid import GaussianCentroid
from discrim.solve.basis import Basis
from discrim.solve.discriminants import Discriminants, classical
from discrim.solve.folds import Folds, TrainingSet, gathered_folds, hash_splitter
from discrim.solve.shrinkage_path import PATH, PathScores, score_path

Array = NDArray[np.float64]
LEAST_BY_PRODUCTS = 0.01  # conjugate gradients do not get there in a thousand steps with less


@dataclass(frozen=True, eq=False)
class Shrinkage:
    """The γ that was used, and what was tried for it."""

    shrinkage_: float
    path_: PathScores | None


class ShrunkDiscriminant(ChosenByFolds, GaussianCentroid, DiscriminantReducer):
    """Discriminants with Σ_γ = (1−γ) S_w/n + γ τ I in the place of S_w/n."""

    _parameter_constraints: ClassVar[Constraints] = {
        **DiscriminantReducer._parameter_constraints,
        "shrinkage": (SHARE, *named("ledoit_wolf", "oas", "cv")),
    }
    _holds_out = False  # whether folds are wanted beyond the search
    shrinkage: Any

    @property
    def _searches(self) -> bool:
        return "cv" in (self.n_components, self.shrinkage)

    @property
    def _chooses_on_sample(self) -> bool:  # type: ignore[override]
        divides = self._groups is None and hash_splitter(self.cv, self.random_state) is not None
        return self.shrinkage == "cv" and self.n_components != "cv" and divides and not self.store_covariance

    def _why_not_streamed(self) -> str | None:
        if self.shrinkage == "ledoit_wolf":
            return "shrinkage='ledoit_wolf' needs all rows at once. Statistics suffice for a number, 'oas' or 'cv'."
        if self._searches and hash_splitter(self.cv, self.random_state) is None:
            return (
                f"cv={self.cv!r} names rows, which come in parts here. Pass a number of folds or a HashKFold: their "
                "folds follow from the rows' content."
            )
        return super()._why_not_streamed()

    def _gathering(self) -> Gathering:
        asked = super()._gathering()
        splitter = hash_splitter(self.cv, self.random_state) if asked.keep == "pooled" else None
        if splitter is None or not (self._searches or self._holds_out):
            return asked
        seed = seed_number(splitter.random_state)
        sampled = SAMPLE_ROWS if self._searches else 0
        return replace(asked, n_folds=splitter.get_n_splits(), seed=seed, sample_rows=sampled)

    @property
    def _why_all(self) -> str | None:  # type: ignore[override]
        if self.store_covariance:
            return super()._why_all
        if isinstance(self.shrinkage, str) or self.shrinkage == 0 or self.n_components == "cv":
            return (
                "only a fixed shrinkage above 0 (pass shrinkage=0.1, say, and an int n_components), or 'cv' with a "
                "number of folds, goes without the whole within-class scatter"
            )
        return None

    def _divided(self, basis: Basis) -> Basis:
        if not self._searches:  # the same fit, to the last digit, whether or not rows are held out of it
            return basis
        try:
            return replace(basis, folds=self._folds_of_rows(basis))
        except ValueError:  # is raised again where the folds are needed, if the table has no worse fault
            return basis

    def _folds(self, basis: Basis) -> Iterable[TrainingSet]:
        if self._statistics is not None:
            return gathered_folds(self._statistics)
        if basis.folds is not None:
            return basis.folds
        return self._folds_of_rows(basis)

    def _folds_of_rows(self, basis: Basis) -> Folds:
        return Folds(basis.points, self._splits(basis.original))

    def _shrunk(self, ratio: Ratio, moments: ClassMoments, basis: Basis) -> Discriminants:
        """All discriminants at the shrinkage that was given, is computed, or is searched for."""
        tried, path, count = PATH, None, None
        if self.shrinkage in ("oas", "ledoit_wolf"):
            columns = int((basis.feature_variances(moments) > 0).sum())
            tried = np.array([chosen_shrinkage(self.shrinkage, ratio, moments, basis.points, columns)])
        elif self.shrinkage != "cv":
            tried = np.array([float(self.shrinkage)])
        gamma = float(tried[0])
        if self._searches:
            where = basis.to_choose_in()
            if where is basis:
                folds = self._folds(basis)
            else:  # of some rows, and none too small, where products are all there is
                folds = self._folds_of_rows(where)
                tried = tried[tried >= LEAST_BY_PRODUCTS]
            path = score_path(folds, tried, self.priors, every_count=self.n_components == "cv")
            gamma, count = path.best()
        found = classical(ratio, basis.cost(ratio, gamma))
        return replace(found, count=count if self.n_components == "cv" else None, found=Shrinkage(gamma, path))
