"""Uncorrelated linear discriminant analysis, defined whatever the rank of the scatters."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from discrim.moments.class_moments import ClassMoments
from discrim.objectives.ratio import Ratio
from discrim.reducers.discriminant import DiscriminantReducer
from discrim.solve.basis import Basis
from discrim.solve.discriminants import Discriminants, standardised, uncorrelated

Array = NDArray[np.float64]


class UncorrelatedLDA(DiscriminantReducer):
    """Uncorrelated LDA: Fisher's directions on the total scatter, so that the features are uncorrelated.

        G S_t Gᵀ = I ,  G S_b Gᵀ = Λ² ,  G S_w Gᵀ = I − Λ²      (S_t⁺S_b, directions as rows)

    One of the remedies for n < d; spans classical LDA's space where that exists. With n < d the training classes
    collapse to points, and the order of tied directions is settled by their variance.

    Parameters
    ----------
    n_components : int, fraction of the sum of eigenvalues_ in (0, 1), or None for all discriminants. More than there
        are discriminants continue with PCA of the orthogonal complement, scaled to unit total scatter.
    priors : class probabilities for prediction: None (as in the data), "equal", or one number per class.
    class_weight : None, "balanced", or a dict from label to a factor on its rows' weights.

    Attributes
    ----------
    As FisherLDA's; eigenvalues_ are Λ², the share of each component's variance that lies between the classes.

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
        found = uncorrelated(ratio.means, ratio.within, moments.precision)
        return replace(found, directions=found.directions / np.sqrt(ratio.weight))  # S_t, not S_t/n

    def _scaled_pads(self, pads: Array, ratio: Ratio) -> Array:
        return standardised(pads, ratio.total, ratio.total) / np.sqrt(ratio.weight)
