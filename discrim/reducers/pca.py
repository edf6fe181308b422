"""Principal components, exact in one pass."""

from __future__ import annotations

import numpy as np

from discrim.moments.class_moments import ClassMoments
from discrim.objectives.spread import Spread
from discrim.reducers.spread_reducer import SpreadReducer
from discrim.solve.basis import Basis


class PCA(SpreadReducer):
    """Principal component analysis: the directions along which the rows vary most.

        maximise  tr WᵀS_tW  subject to  WᵀW = I,    S_t = Σ_i w_i (x_i − μ)(x_i − μ)ᵀ

    The member of the family that needs no labels (y is ignored): the yardstick for the others, and a PCA that streams
    exactly, takes weights and sparse tables, and keeps its digits at offsets of 1e8.

    Parameters
    ----------
    n_components : int, fraction of the variance in (0, 1), or None for all directions of numerical rank.

    Attributes
    ----------
    components_ (k×d), mean_, eigenvalues_ (variances, divided by n), explained_variance_ratio_, rank_, solver_.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from discrim import PCA
    >>> X, _ = load_iris(return_X_y=True)
    >>> PCA(n_components=2).fit(X).explained_variance_ratio_.round(3)
    array([0.925, 0.053])
    """

    _supervised = False

    def __init__(self, n_components: int | float | None = None) -> None:
        self.n_components = n_components

    def _spread(self, moments: ClassMoments, basis: Basis) -> Spread:
        return Spread(np.ones(1), np.empty((0, moments.n_features)))
