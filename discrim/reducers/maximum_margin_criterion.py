"""The maximum margin criterion: a difference of scatters instead of a ratio."""

from __future__ import annotations

import numpy as np

from discrim.data.check_parameters import checked_weight_parameter
from discrim.data.findings import warn_of_no_positive_direction
from discrim.moments.class_moments import ClassMoments
from discrim.objectives.spread import Spread
from discrim.reducers.spread_reducer import SpreadReducer
from discrim.solve.basis import Basis
from discrim.solve.count import kept_count
from discrim.solve.eigen import Spectrum


class MaximumMarginCriterion(SpreadReducer):
    """Maximum margin criterion: class means far apart, classes tight, no inverse needed.

        maximise  tr W(S_b − weight·S_w)Wᵀ   subject to  WWᵀ = I

    Never singular and not limited to C−1 directions, but it depends on the features' scales, as PCA does.

    Parameters
    ----------
    n_components : int, fraction of the sum of positive eigenvalues in (0, 1), or None for the directions along which
        S_b outweighs weight·S_w (at least one).
    weight : how much the spread within classes counts (≥ 0).

    Attributes
    ----------
    components_ (k×d), mean_, eigenvalues_ (of the difference, per unit of weight), explained_variance_ratio_ (of the
    sum of the positive eigenvalues), rank_, solver_, classes_.

    References
    ----------
    Li, Jiang and Zhang, "Efficient and robust feature extraction by maximum margin criterion" (2006), equation 9.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from discrim import MaximumMarginCriterion
    >>> X, y = load_iris(return_X_y=True)
    >>> MaximumMarginCriterion(n_components=2).fit_transform(X, y).shape
    (150, 2)
    """

    def __init__(self, n_components: int | float | None = None, *, weight: float = 1.0) -> None:
        self.n_components = n_components
        self.weight = weight

    def _check_parameters(self) -> None:
        checked_weight_parameter(self.weight)

    def _spread(self, moments: ClassMoments, basis: Basis) -> Spread:
        return Spread(np.full(len(moments.weights), -float(self.weight)), moments.between_rows())

    def _count(self, request: int | float | None, spectrum: Spectrum, shape: tuple[int, int]) -> int:
        if isinstance(request, int):
            return super()._count(request, spectrum, shape)
        positive = int((spectrum.values > 1e-12 * np.abs(spectrum.values).max(initial=0.0)).sum())
        if positive == 0 and spectrum.rank > 0:
            warn_of_no_positive_direction(self.weight)
            return 1
        return kept_count(request, spectrum.values, spectrum.total, positive, shape)
