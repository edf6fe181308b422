"""The maximum margin criterion: a difference of scatters instead of a ratio."""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from discrim.core.coordinates.basis import Basis
from discrim.core.count import kept_count
from discrim.core.eigen import Spectrum
from discrim.core.moments.class_moments import ClassMoments
from discrim.core.spread import Spread
from discrim.estimators.spread_reducer import SpreadReducer
from discrim.tables.check_parameters import COUNT, Constraints, number
from discrim.tables.fit_messages import warn_of_no_positive_direction


class MaximumMarginCriterion(SpreadReducer):
    """Maximum margin criterion: class means far apart, classes tight, no inverse needed.

        maximise  tr W(S_b − weight·S_w)Wᵀ   subject to  WWᵀ = I

    Never singular and not limited to C−1 directions, but it depends on the features' scales, as PCA does.

    Parameters
    ----------
    n_components : int, float or None, default=None
        How many components to keep; a fraction in (0, 1) keeps the fewest that reach that share of the positive
        eigenvalues, None the directions along which S_b outweighs weight·S_w (at least one).
    weight : float, default=1.0
        How much the spread within classes counts (≥ 0).

    Attributes
    ----------
    components_ : array of shape (n_components_, n_features)
        The directions, one per row, orthonormal.
    eigenvalues_ : array of shape (n_components_,)
        Of the difference of scatters, per unit of weight, along each direction.
    explained_variance_ratio_ : array of shape (n_components_,)
        Each direction's share of the sum of the positive eigenvalues.
    rank_ : int
        Numerical rank: how many directions there are (on the Lanczos path: how many were found).
    {fitted_with_vip}

    References
    ----------
    Li, Jiang and Zhang, "Efficient and robust feature extraction by maximum margin criterion" (2006).

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from discrim import MaximumMarginCriterion
    >>> X, y = load_iris(return_X_y=True)
    >>> MaximumMarginCriterion(n_components=2).fit_transform(X, y).shape
    (150, 2)
    """

    _parameter_constraints: ClassVar[Constraints] = {
        "n_components": COUNT,
        "weight": (number("a number ≥ 0 (how much the spread within classes counts)", lambda w: 0 <= w < np.inf),),
    }

    def __init__(self, n_components: int | float | None = None, *, weight: float = 1.0) -> None:
        self.n_components = n_components
        self.weight = weight

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
