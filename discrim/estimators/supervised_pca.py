"""Supervised principal components by dependence on the labels."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from discrim.core.coordinates.basis import Basis
from discrim.core.moments.class_moments import ClassMoments
from discrim.core.ratio import Ratio
from discrim.estimators.means_first_reducer import MeansFirstReducer

Array = NDArray[np.float64]


class SupervisedPCA(MeansFirstReducer):
    """Supervised PCA (HSIC): the directions along which rows depend most on their labels.

        maximise  tr WᵀXᵀHLHXW  subject to  WᵀW = I,    L_ij = 1 where y_i = y_j, else 0,    H = I − 11ᵀ/n

    The Hilbert–Schmidt independence criterion between projected rows and labels. With this kernel on the labels the
    matrix is Σ_c n_c²(μ_c−μ)(μ_c−μ)ᵀ: the class means decide, large classes most, and the spread within classes has no
    say. At most C − 1 directions; more are PCA of the orthogonal complement. Behind `KernelMap` it is kernel supervised
    PCA. Use it where nothing may be inverted and a scale of the columns is given; where columns vary much within
    classes, a discriminant method sees more.

    Parameters
    ----------
    n_components : int, float or None, default=None
        How many components to keep; a fraction in (0, 1) keeps the fewest that reach that share of the dependence,
        None all that depend on the labels, at most C − 1.

    Attributes
    ----------
    components_ : array of shape (n_components_, n_features)
        The directions, one per row, orthonormal.
    eigenvalues_ : array of shape (n_components_,)
        Of XᵀHLHX divided by the total weight, along each direction; 0 beyond n_supervised_.
    explained_variance_ratio_ : array of shape (n_components_,)
        Each direction's share of their sum.
    n_supervised_ : int
        How many of the components depend on the labels; the rest are PCA of the orthogonal complement.
    {fitted_with_vip}

    References
    ----------
    Barshan, Ghodsi, Azimifar and Zolghadri Jahromi, "Supervised principal component analysis: visualization,
    classification and regression on subspaces and submanifolds" (2011).

    Examples
    --------
    >>> from sklearn.datasets import load_wine
    >>> from discrim import SupervisedPCA
    >>> X, y = load_wine(return_X_y=True)
    >>> SupervisedPCA(n_components=4).fit(X, y).n_supervised_
    2
    """

    def _mean_rows(self, ratio: Ratio) -> Array:
        return np.sqrt(ratio.weight * ratio.shares)[:, None] * ratio.means

    def _rest(self, basis: Basis, ratio: Ratio, moments: ClassMoments, first: Array, wanted: int) -> Array:
        return ratio.embedded(basis.complement(ratio, first, wanted))
