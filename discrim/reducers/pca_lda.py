"""PCA first, then linear discriminant analysis."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from discrim.data.check_parameters import requested_count
from discrim.data.findings import refuse_pca_components
from discrim.moments.class_moments import ClassMoments
from discrim.objectives.ratio import Ratio, is_nonsingular
from discrim.reducers.discriminant import DiscriminantReducer
from discrim.reducers.fisher_lda import classical
from discrim.reducers.nearest_centroid import GaussianCentroid
from discrim.solve.basis import Basis
from discrim.solve.count import kept_count
from discrim.solve.discriminants import Discriminants, collapsed_share, standardised, within_shares
from discrim.solve.eigen import spectrum_of_matrix

Array = NDArray[np.float64]


class PCALDA(GaussianCentroid, DiscriminantReducer):
    """PCA, then LDA on its components (Fisherfaces): the oldest remedy for n < d.

        G = G' P ,   P the first m principal directions,  G' classical LDA of the rows projected on them

    m is at most the rank of S_w (n − C where n < d), so that the within-class scatter is nonsingular. What PCA drops is
    lost, also where it separates the classes: prefer RegularizedLDA, and use this to compare with.

    Parameters
    ----------
    n_components : int, fraction of the separation in (0, 1), or None for all discriminants. More than there
        are discriminants continue with PCA of the orthogonal complement.
    pca_components : m as an int, as a fraction of the variance in (0, 1), or None for the rank of S_w.
    priors : class probabilities for prediction: None (as in the data), "equal", or one number per class.
    class_weight : None, "balanced", or a dict from label to a factor on its rows' weights.

    Attributes
    ----------
    As FisherLDA's, and pca_components_, the m that was used.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from discrim import PCALDA
    >>> X, y = load_digits(return_X_y=True)
    >>> PCALDA(n_components=2, pca_components=20).fit_transform(X, y).shape
    (1797, 2)
    """

    def __init__(
        self,
        n_components: int | float | None = None,
        *,
        pca_components: int | float | None = None,
        priors: ArrayLike | str | None = None,
        class_weight: Any = None,
    ) -> None:
        self.n_components = n_components
        self.pca_components = pca_components
        self.priors = priors
        self.class_weight = class_weight

    def _check_parameters(self) -> None:
        requested_count(self.pca_components, "pca_components")

    def _discriminants(self, ratio: Ratio, moments: ClassMoments, basis: Basis) -> Discriminants:
        principal = self._principal_directions(ratio, moments)
        inner = Ratio(
            principal @ ratio.within @ principal.T,
            ratio.means @ principal.T,
            ratio.shares,
            ratio.weight,
            None,
        )
        found = classical(inner, moments.precision, type(self).__name__)
        return Discriminants(found.directions @ principal, found.values, details={"pca_components": len(principal)})

    @property
    def pca_components_(self) -> int:
        """How many principal components came before the discriminants."""
        return self._fitted().details["pca_components"]

    def _principal_directions(self, ratio: Ratio, moments: ClassMoments) -> Array:
        spectrum = spectrum_of_matrix(ratio.total, None, precision=moments.precision)
        # rank S_w, which is n − C for n < d; unlike n it is the same for repeated rows and for weights
        possible = ratio.rank
        if not is_nonsingular(ratio.within, moments.precision, ratio.total):
            least = collapsed_share(ratio.rank, moments.precision)
            possible = max(1, int((within_shares(ratio.within, ratio.total)[0] > least).sum()))
        request = requested_count(self.pca_components, "pca_components")
        if isinstance(request, int) and request > possible:
            refuse_pca_components(request, possible, moments.n_rows, len(ratio.shares))
        shape = (moments.n_rows, self.n_features_in_)
        return spectrum.directions[: kept_count(request, spectrum.values, spectrum.total, possible, shape)]

    def _scaled_pads(self, pads: Array, ratio: Ratio) -> Array:
        return standardised(pads, ratio.within, ratio.total)
