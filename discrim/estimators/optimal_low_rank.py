"""Linear optimal low-rank projection: class means first, then the largest directions within classes."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from discrim.core.coordinates.basis import Basis
from discrim.core.independent import independent
from discrim.core.moments.class_moments import ClassMoments
from discrim.core.ratio import Ratio
from discrim.core.spread import Spread
from discrim.estimators.means_first_reducer import MeansFirstReducer

Array = NDArray[np.float64]


class OptimalLowRank(MeansFirstReducer):
    """Linear optimal low-rank projection (LOL): the class means' directions, then those of the class-centred rows.

        W = orthonormal [ right singular vectors of √n_c(μ_c − μ) ;  right singular vectors of x_i − μ_{y_i} ]

    the stack orthonormalised in that order. No inverse, so that it is at home where columns far outnumber rows, and as
    cheap as PCA. The published form takes differences to the first class as mean directions; here their principal
    axes, with which the names of the classes do not matter and fewer than C − 1 components make sense. Use it for very
    wide tables and more components than classes; with up to C − 1 components it is the between-class scatter's PCA,
    and a discriminant with a ridge sees more.

    Parameters
    ----------
    n_components : int, float or None, default=None
        How many components to keep; a fraction in (0, 1) keeps the fewest that reach that share of the between-class
        scatter, None all of the class means, at most C − 1.

    Attributes
    ----------
    components_ : array of shape (n_components_, n_features)
        The directions, one per row, orthonormal.
    eigenvalues_ : array of shape (n_components_,)
        Of the between-class scatter divided by the total weight, along each direction; 0 beyond n_supervised_.
    explained_variance_ratio_ : array of shape (n_components_,)
        Each direction's share of their sum.
    n_supervised_ : int
        How many of the components are of the class means; the rest are of the class-centred rows.
    {fitted_with_vip}

    References
    ----------
    Vogelstein et al., "Supervised dimensionality reduction for big data", Nature Communications 12 (2021), where LOL is
    defined as the concatenation of the differences of the means and the top right singular vectors of the class-centred
    rows.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from discrim import OptimalLowRank
    >>> X, y = load_digits(return_X_y=True)
    >>> OptimalLowRank(n_components=12).fit_transform(X, y).shape
    (1797, 12)
    """

    def _mean_rows(self, ratio: Ratio) -> Array:
        return ratio.means

    def _rest(self, basis: Basis, ratio: Ratio, moments: ClassMoments, first: Array, wanted: int) -> Array:
        means = ratio.embedded(first)
        within = Spread(np.ones(len(ratio.shares)), means[:0])
        # as many as all together: some may lie in the span of the means
        found = basis.spectrum(within, moments, len(first) + wanted)
        return independent(means, found.directions[: found.rank], wanted)[1]
