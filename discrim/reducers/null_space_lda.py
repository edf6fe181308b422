"""Null-space linear discriminant analysis."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.linalg as la
from numpy.typing import ArrayLike, NDArray

from discrim.data.findings import warn_of_filled_null_space
from discrim.moments.class_moments import ClassMoments
from discrim.objectives.ratio import Ratio
from discrim.reducers.discriminant import DiscriminantReducer
from discrim.solve.basis import Basis
from discrim.solve.discriminants import Discriminants, by_between_spread, null_space, orthogonal

Array = NDArray[np.float64]


class NullSpaceLDA(DiscriminantReducer):
    """Null-space LDA: the class means as far apart as can be, where the classes do not vary at all.

        maximise  tr G S_b Gᵀ   subject to   G S_w Gᵀ = 0 ,  G Gᵀ = I

    For n < d (microarrays, faces), where such directions exist: every training class becomes a point. Directions that
    the null space of S_w cannot give are filled from OrthogonalLDA, after the others and with a warning.

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
    Chen et al., "A new LDA-based face recognition system which can solve the small sample size problem" (2000).

    Examples
    --------
    >>> import numpy as np
    >>> from discrim import NullSpaceLDA
    >>> X = np.random.default_rng(0).normal(size=(12, 50))
    >>> y = np.repeat(["a", "b", "c"], 4)
    >>> points = NullSpaceLDA().fit_transform(X, y)
    >>> np.allclose(points[:4], points[0])
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
        found = null_space(ratio.means, ratio.within, moments.precision)
        others = orthogonal(ratio.means, ratio.within, moments.precision)
        missing = len(others.values) - len(found.values)
        if missing <= 0:
            return found
        warn_of_filled_null_space(len(found.values), len(others.values))
        # what of OLDA's span is left beside the directions found
        beside = others.directions - (others.directions @ found.directions.T) @ found.directions
        fill = la.svd(beside, full_matrices=False)[2][:missing]
        filled = by_between_spread(fill, ratio.means)
        return Discriminants(
            np.concatenate([found.directions, filled.directions]),
            np.concatenate([found.values, filled.values]),
            has_unit=True,
        )

    def _scaled_pads(self, pads: Array, ratio: Ratio) -> Array:
        return pads
