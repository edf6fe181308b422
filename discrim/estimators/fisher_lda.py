"""Fisher's linear discriminant analysis, right on singular scatters too."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import clone

from discrim.core.coordinates.choose import Plan
from discrim.core.covariance import Covariance
from discrim.core.discriminants import Discriminants, classical
from discrim.core.problem import Needs, Problem
from discrim.estimators.discriminant import DiscriminantReducer
from discrim.estimators.nearest_centroid import GaussianCentroid
from discrim.tables.check_parameters import NOTHING, Constraints, Possible, require_covariance, require_unweighted
from discrim.tables.rows import LabelledRows, dense_block
from discrim.tables.validation import require_finite

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class EstimatedCovariance:
    """What a covariance estimator gave."""

    _covariance: Array


class FisherLDA(GaussianCentroid, DiscriminantReducer):
    """Linear discriminant analysis: class means far apart in units of the within-class deviation.

        maximise  tr (G S_w Gᵀ)⁻¹ G S_b Gᵀ ,    G (S_w/n) Gᵀ = I

    The textbook method, for n well above d; at most C−1 discriminants. Where S_w is singular on the span of the data
    (n < d, say) it takes the directions of S_t⁺S_b, scales those without within-class deviation by their total
    deviation, and warns. Constant and collinear columns do no harm. RegularizedLDA is the better choice when d is not
    far below n.

    Parameters
    ----------
    n_components : int, float or None, default=None
        How many components to keep; a fraction in (0, 1) keeps the fewest that reach that share of the separation,
        None all discriminants. More than there are discriminants continue with PCA of the orthogonal complement.
    priors : array of shape (n_classes,), "equal" or None, default=None
        Class probabilities for prediction, in the order of classes_; None for the classes' shares of the rows.
    class_weight : dict, "balanced" or None, default=None
        A factor on the weights of each class's rows, by label; "balanced" makes the classes' totals equal.
    store_covariance : bool, default=False
        Whether to keep the within-class covariance, d×d numbers, as covariance_.
    missing : {"pairwise"} or None, default=None
        What becomes of NaN: None refuses it; "pairwise" takes each mean and covariance from the rows that have the
        cells (made positive definite), and transform counts a missing cell as its column's mean.
    covariance_estimator : estimator or None, default=None
        What estimates each class's covariance, an object with fit(X) and covariance_ such as
        sklearn.covariance.OAS(); their mean by the classes' shares stands in for S_w/n. None for the covariances of the
        rows themselves. Such a fit takes all rows at once, without weights, and keeps a d×d matrix.

    Attributes
    ----------
    components_ : array of shape (n_components_, n_features)
        The directions, one per row.
    eigenvalues_ : array of shape (n_components_,)
        Between- over within-class variance along each discriminant; 0 beyond them.
    explained_variance_ratio_ : array of shape (n_components_,)
        Share of the between-class separation along each discriminant; 0 beyond them.
    covariance_ : array of shape (n_features, n_features)
        S_w/n where store_covariance asks for it, or what covariance_estimator gave.
    {fitted_discriminants}

    References
    ----------
    Fisher, "The use of multiple measurements in taxonomic problems" (1936).

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from discrim import FisherLDA
    >>> X, y = load_iris(return_X_y=True)
    >>> FisherLDA().fit(X, y).score(X, y)
    0.98
    """

    _parameter_constraints: ClassVar[Constraints] = {
        **DiscriminantReducer._parameter_constraints,
        "covariance_estimator": (
            Possible(
                "an object with fit(X) and covariance_, such as sklearn.covariance.OAS()",
                lambda given: hasattr(given, "fit") and not isinstance(given, type),
            ),
            NOTHING,
        ),
    }

    def __init__(
        self,
        n_components: int | float | None = None,
        *,
        priors: ArrayLike | str | None = None,
        class_weight: Any = None,
        store_covariance: bool = False,
        missing: str | None = None,
        covariance_estimator: Any = None,
    ) -> None:
        super().__init__(
            n_components, priors=priors, class_weight=class_weight, store_covariance=store_covariance, missing=missing
        )
        self.covariance_estimator = covariance_estimator

    def _needs(self) -> Needs:
        needs = super()._needs()
        if self.covariance_estimator is None:
            return needs
        return replace(
            needs,
            coordinates=Plan("features", "covariance_estimator takes rows in their features"),
            rows="covariance_estimator takes the rows of a class all at once. Statistics suffice without it, and for "
            "RegularizedLDA(shrinkage=0.1).",
        )

    def _find(self, problem: Problem) -> Discriminants:
        ratio = problem.separated
        if self.covariance_estimator is None:
            return classical(ratio)
        covariance = estimated_covariance(self.covariance_estimator, problem.basis.points)
        inner = np.ldexp(covariance, -2 * problem.moments.exponent)
        if ratio.embedding is not None:
            inner = ratio.embedding @ inner @ ratio.embedding.T
        found = classical(ratio, Covariance(inner, ratio.precision))
        return replace(found, found=EstimatedCovariance(covariance))


def estimated_covariance(estimator: Any, rows: LabelledRows) -> Array:
    """Σ_c n_c/n · estimator's covariance of class c, in the rows' units."""
    require_unweighted(estimator, rows.weights)
    require_finite(rows.X, rows.numbers)
    total = np.zeros((rows.shape[1], rows.shape[1]))
    for c, share in enumerate(rows.class_totals / rows.shape[0]):
        members = rows.some(np.flatnonzero(rows.codes == c))
        fitted = clone(estimator, safe=False)
        fitted.fit(dense_block(members.X, slice(None)))
        total += share * require_covariance(estimator, fitted, len(total))
    return total
