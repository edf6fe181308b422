"""Orthogonal linear discriminant analysis."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from discrim.core.discriminants import Discriminants, orthogonal
from discrim.core.problem import Problem
from discrim.estimators.discriminant import DiscriminantReducer

Array = NDArray[np.float64]


class OrthogonalLDA(DiscriminantReducer):
    """Orthogonal LDA: an orthonormal basis of uncorrelated LDA's span.

        G Gᵀ = I ,  span G = span of ULDA ,  G S_b Gᵀ diagonal, descending

    A remedy for n < d that keeps distances in the features' own units: less prone to overfitting there than
    UncorrelatedLDA.

    Parameters
    ----------
    n_components : int, float or None, default=None
        How many components to keep; a fraction in (0, 1) keeps the fewest that reach that share of the sum of
        eigenvalues_, None all discriminants. More than there are discriminants continue with PCA of the orthogonal
        complement (unit directions).
    priors : array of shape (n_classes,), "equal" or None, default=None
        Class probabilities for prediction, in the order of classes_; None for the classes' shares of the rows.
    class_weight : dict, "balanced" or None, default=None
        A factor on the weights of each class's rows, by label; "balanced" makes the classes' totals equal.
    store_covariance : bool, default=False
        Whether to keep the within-class covariance, d×d numbers, as covariance_.
    missing : {"pairwise"} or None, default=None
        What becomes of NaN: None refuses it; "pairwise" takes each mean and covariance from the rows that have the
        cells (made positive definite), and transform counts a missing cell as its column's mean.

    Attributes
    ----------
    components_ : array of shape (n_components_, n_features)
        The directions, one per row.
    eigenvalues_ : array of shape (n_components_,)
        Between-class variance along each discriminant; 0 beyond them.
    explained_variance_ratio_ : array of shape (n_components_,)
        Each one's share of their sum.
    {fitted_discriminants}

    References
    ----------
    Ye, "Characterization of a family of algorithms for generalized discriminant analysis on undersampled problems"
    (2005).

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from discrim import OrthogonalLDA
    >>> X, y = load_iris(return_X_y=True)
    >>> G = OrthogonalLDA().fit(X, y).components_
    >>> bool(abs(G @ G.T - [[1, 0], [0, 1]]).max() < 1e-12)
    True
    """

    def _find(self, problem: Problem) -> Discriminants:
        return orthogonal(problem.separated)
