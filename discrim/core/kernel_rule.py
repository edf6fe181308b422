"""The classifier of a posterior map: a linear function of the columns, or of a kernel seen from landmarks.

a_c(x) = Σ_l B_lc k(x, l) + b_c      with landmarks l; the columns themselves for a linear rule
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from discrim.core.landmarks import GRADIENTS, FeatureSpace, LandmarkKernel
from discrim.core.moments.class_moments import ClassMoments
from discrim.core.ridge_rules import RidgeRules
from discrim.tables.rows import block_slices

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class PosteriorRule:
    """Scores of the classes; `kernel` is None for a linear rule, which subtracts `centre` from the rows."""

    kernel: LandmarkKernel | None
    centre: Array
    coefficients: Array  # (m or d)×C
    offsets: Array

    @classmethod
    def from_features(cls, space: FeatureSpace, moments: ClassMoments, shrinkage: float) -> PosteriorRule:
        """Return the ridge rule of class moments in the features of a kernel."""
        rules = RidgeRules.of(moments, np.array([shrinkage]))
        weights = moments.scaled(rules.weights[0])
        return cls(space.kernel, np.empty(0), space.factor @ weights.T, rules.offsets[0] - weights @ moments.mean)

    def scores(self, X: Any) -> Array:
        """Compute a_c(x), n×C."""
        if self.kernel is None and sp.issparse(X):
            return np.asarray(X @ self.coefficients) + (self.offsets - self.centre @ self.coefficients)
        result = np.empty((X.shape[0], len(self.offsets)))
        for part in block_slices(X.shape[0], len(self.coefficients)):
            if self.kernel is None:
                features = np.subtract(X[part], self.centre, dtype=np.float64)
            else:
                features = self.kernel(X[part])
            result[part] = features @ self.coefficients + self.offsets
        return result

    @property
    def name(self) -> str:
        """Kernel and number of landmarks."""
        if self.kernel is None:
            return "linear ridge rule"
        return f"ridge rule of a kernel ({self.kernel.name}) with {self.kernel.landmarks.shape[0]} landmarks"

    @property
    def label(self) -> str:
        """Kernel."""
        return "linear" if self.kernel is None else self.kernel.name

    @property
    def has_gradients(self) -> bool:
        """True if the scores can be differentiated."""
        return self.kernel is None or self.kernel.name in GRADIENTS

    def effects(self, X: Any, weights: Sequence[Array], spread: Array) -> list[Array]:
        """Compute Σ_c w_nc ∂a_c(x_n)/∂x times the spread of each column, n×d, for each of the weights (n×C)."""
        return [self.gradients(X, one) * spread for one in weights]

    def gradients(self, X: Any, weights: Array) -> Array:
        """Compute Σ_c w_nc ∂a_c(x_n)/∂x for every row (n×d), where `weights` is n×C."""
        if self.kernel is None:
            return weights @ self.coefficients.T
        result = np.empty(X.shape)
        for part in block_slices(X.shape[0], len(self.coefficients)):
            result[part] = self.kernel.gradients(X[part], weights[part] @ self.coefficients.T)
        return result
