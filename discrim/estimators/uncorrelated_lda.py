"""Uncorrelated linear discriminant analysis, defined whatever the rank of the scatters."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from discrim.core.discriminants import Discriminants, uncorrelated
from discrim.core.problem import Problem
from discrim.core.ratio import Ratio
from discrim.estimators.discriminant import DiscriminantReducer

Array = NDArray[np.float64]


class UncorrelatedLDA(DiscriminantReducer):
    """Uncorrelated LDA: Fisher's directions on the total scatter, so that the features are uncorrelated.

        G S_t Gᵀ = I ,  G S_b Gᵀ = Λ² ,  G S_w Gᵀ = I − Λ²      (S_t⁺S_b, directions as rows)

    One of the remedies for n < d; spans classical LDA's space where that exists. With n < d the training classes
    collapse to points, and the order of tied directions is settled by their variance.

    Parameters
    ----------
    n_components : int, float or None, default=None
        How many components to keep; a fraction in (0, 1) keeps the fewest that reach that share of the sum of
        eigenvalues_, None all discriminants. More than there are discriminants continue with PCA of the orthogonal
        complement, scaled to unit total scatter.
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
        Λ², the share of each discriminant's variance that lies between the classes; 0 beyond them.
    explained_variance_ratio_ : array of shape (n_components_,)
        Each one's share of their sum.
    {fitted_discriminants}

    References
    ----------
    Ye, "Characterization of a family of algorithms for generalized discriminant analysis on undersampled problems"
    (2005).

    Examples
    --------
    >>> from sklearn.datasets import load_wine
    >>> from discrim import UncorrelatedLDA
    >>> X, y = load_wine(return_X_y=True)
    >>> UncorrelatedLDA().fit(X, y).eigenvalues_.round(2)
    array([0.9 , 0.81])
    """

    def _find(self, problem: Problem) -> Discriminants:
        ratio = problem.separated
        found = uncorrelated(ratio)
        return replace(found, directions=found.directions / np.sqrt(ratio.weight))  # S_t, not S_t/n

    def _scaled_pads(self, pads: Array, ratio: Ratio) -> Array:
        deviations = np.sqrt(np.einsum("kd,kd->k", ratio.total_along(pads), pads))
        return pads / (np.sqrt(ratio.weight) * deviations)[:, None]
