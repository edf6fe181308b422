"""Fisher's linear discriminant analysis, right on singular scatters too."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from discrim.data.findings import warn_of_singular_within
from discrim.moments.class_moments import ClassMoments
from discrim.objectives.ratio import LEAST_WITHIN, Ratio, is_nonsingular
from discrim.reducers.discriminant import DiscriminantReducer
from discrim.reducers.nearest_centroid import GaussianCentroid
from discrim.solve.basis import Basis
from discrim.solve.discriminants import Discriminants, discriminants, standardised, uncorrelated

Array = NDArray[np.float64]


class FisherLDA(GaussianCentroid, DiscriminantReducer):
    """Linear discriminant analysis: class means far apart in units of the within-class deviation.

        maximise  tr (G S_w Gᵀ)⁻¹ G S_b Gᵀ ,    G (S_w/n) Gᵀ = I

    The textbook method, for n well above d; at most C−1 discriminants. Where S_w is singular on the span of the data
    (n < d, say) it takes the directions of S_t⁺S_b, scales those without within-class deviation by their total
    deviation, and warns. Constant and collinear columns do no harm. RegularizedLDA is the better choice when d is not
    far below n.

    Parameters
    ----------
    n_components : int, fraction of the separation in (0, 1), or None for all discriminants. More than there
        are discriminants continue with PCA of the orthogonal complement.
    priors : class probabilities for prediction: None (as in the data), "equal", or one number per class.
    class_weight : None, "balanced", or a dict from label to a factor on its rows' weights.

    Attributes
    ----------
    components_ (k×d), mean_, eigenvalues_ (between- over within-class variance), explained_variance_ratio_ (share of
    the between-class separation), n_discriminants_, structure_coefficients_ (k×d correlations of features with
    components), coef_, intercept_, rank_, solver_, classes_.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from discrim import FisherLDA
    >>> X, y = load_iris(return_X_y=True)
    >>> FisherLDA().fit(X, y).score(X, y)
    0.98
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
        return classical(ratio, moments.precision, type(self).__name__)

    def _scaled_pads(self, pads: Array, ratio: Ratio) -> Array:
        return standardised(pads, ratio.within, ratio.total)


def classical(ratio: Ratio, precision: float, method: str) -> Discriminants:
    """Eigenvectors of S_w⁻¹S_b, or of S_t⁺S_b in the same scale where S_w is singular."""
    if is_nonsingular(ratio.within, precision, ratio.total):
        return discriminants(ratio.means, ratio.within)
    warn_of_singular_within(method)
    found = uncorrelated(ratio.means, ratio.within, precision)
    directions = standardised(found.directions, ratio.within, ratio.total)
    values = found.values / np.maximum(1 - found.values, LEAST_WITHIN)
    return Discriminants(directions, values, ties_settled=True)
