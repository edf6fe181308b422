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
    n_components : int, float or None, default=None
        How many components to keep; a fraction in (0, 1) keeps the fewest that reach that share of the variance, None
        all directions of numerical rank.

    Attributes
    ----------
    components_ : array of shape (n_components_, n_features)
        The directions, one per row, orthonormal.
    mean_ : array of shape (n_features,)
        Mean of the rows, which transform subtracts.
    eigenvalues_ : array of shape (n_components_,)
        Variance along each direction (divided by n).
    explained_variance_ratio_ : array of shape (n_components_,)
        Each direction's share of the total variance.
    n_components_ : int
        How many components are kept.
    rank_ : int
        Numerical rank: how many directions there are (on the Lanczos path: how many were found).
    solver_ : str
        How the directions were found, and why so.
    n_features_in_ : int
        Number of features seen in fit.

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
        rows = moments.between_rows() if moments.is_labelled else np.empty((0, moments.n_features))
        return Spread(np.ones(len(moments.weights)), rows)  # S_t, also where statistics of classes came
