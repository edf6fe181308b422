"""Orthogonal linear discriminant analysis."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from discrim.moments.class_moments import ClassMoments
from discrim.objectives.ratio import Ratio
from discrim.reducers.discriminant import DiscriminantReducer
from discrim.solve.basis import Basis
from discrim.solve.discriminants import Discriminants, orthogonal

Array = NDArray[np.float64]


class OrthogonalLDA(DiscriminantReducer):
    """Orthogonal LDA: an orthonormal basis of uncorrelated LDA's span.

        G Gᵀ = I ,  span G = span of ULDA ,  G S_b Gᵀ diagonal, descending

    A remedy for n < d that keeps distances in the features' own units: less prone to overfitting there than
    UncorrelatedLDA.

    Parameters
    ----------
    n_components : int, fraction of the sum of eigenvalues_ in (0, 1), or None for all discriminants. More than there
        are discriminants continue with PCA of the orthogonal complement (unit directions).
    priors : class probabilities for prediction: None (as in the data), "equal", or one number per class.
    class_weight : None, "balanced", or a dict from label to a factor on its rows' weights.

    Attributes
    ----------
    As FisherLDA's; eigenvalues_ are the between-class variances along the components.

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

    def __init__(
        self,
        n_components: int | float | None = None,
        *,
        priors: ArrayLike | str | None = None,
        class_weight: Any = None,
    ) -> None:
        self.n_components = n_components
        self.priors = priors
        self.class_weight = class_weight

    def _discriminants(self, ratio: Ratio, moments: ClassMoments, basis: Basis) -> Discriminants:
        return orthogonal(ratio.means, ratio.within, moments.precision)

    def _scaled_pads(self, pads: Array, ratio: Ratio) -> Array:
        return pads
