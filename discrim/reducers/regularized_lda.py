"""Regularised linear discriminant analysis."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.linalg as la
from numpy.typing import ArrayLike, NDArray

from discrim.data.check import checked_shrinkage, requested_count
from discrim.moments.class_moments import ClassMoments
from discrim.objectives.ratio import Ratio, is_nonsingular
from discrim.objectives.shrinkage import chosen_shrinkage, shrunk
from discrim.objectives.spread import Spread
from discrim.reducers.base import Solution
from discrim.reducers.discriminant import DiscriminantReducer, Posed
from discrim.reducers.fisher_lda import classical
from discrim.reducers.nearest_centroid import GaussianCentroid
from discrim.solve.basis import Basis
from discrim.solve.count import discriminant_count
from discrim.solve.discriminants import (
    RANK,
    Discriminants,
    complement_by_products,
    discriminants,
    standardised,
)
from discrim.solve.products import conjugate_gradients
from discrim.solve.shrinkage_path import PATH, PathScores, score_path

Array = NDArray[np.float64]
RULES = ("ledoit_wolf", "oas", "cv")


class RegularizedLDA(GaussianCentroid, DiscriminantReducer):
    """Regularised LDA: linear discriminants with a ridge on the within-class covariance.

        maximise  tr (G Σ_γ Gᵀ)⁻¹ G S_b Gᵀ ,   G Σ_γ Gᵀ = I ,   Σ_γ = (1−γ) S_w/n + γ τ I ,   τ = tr(S_w/n)/rank

    The best of the LDA family on real data, for n < d too. γ = 0 is classical LDA, γ = 1 the
    directions of the class means.

    Parameters
    ----------
    n_components : int, fraction of the separation in (0, 1), None for all discriminants, or "cv" to choose by
        cross-validation. More than there are discriminants continue with PCA of the orthogonal complement.
    shrinkage : γ in [0, 1], "ledoit_wolf", "oas", or "cv" to choose it by the accuracy of the nearest-centroid rule.
    cv : for "cv": number of stratified folds, a scikit-learn splitter, or a list of (training, test) row numbers.
    priors : class probabilities for prediction: None (as in the data), "equal", or one number per class.
    class_weight : None, "balanced", or a dict from label to a factor on its rows' weights.
    random_state : seed that shuffles the folds; None for scikit-learn's unshuffled ones.

    Attributes
    ----------
    As FisherLDA's; eigenvalues_ are between-class variance over Σ_γ. shrinkage_ : the γ that was used. path_ : with
    "cv", the shrinkages tried with their held-out accuracies and log losses; else None.

    References
    ----------
    Friedman, "Regularized discriminant analysis" (1989); Ledoit and Wolf (2004); Chen et al. (2010) for "oas".

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from discrim import RegularizedLDA
    >>> X, y = load_digits(return_X_y=True)
    >>> RegularizedLDA(n_components=2, shrinkage=0.1).fit_transform(X, y).shape
    (1797, 2)
    """

    def __init__(
        self,
        n_components: int | float | str | None = None,
        *,
        shrinkage: float | str = "cv",
        cv: Any = 5,
        priors: ArrayLike | str | None = None,
        class_weight: Any = None,
        random_state: Any = None,
    ) -> None:
        self.n_components = n_components
        self.shrinkage = shrinkage
        self.cv = cv
        self.priors = priors
        self.class_weight = class_weight
        self.random_state = random_state

    def _request(self) -> Any:
        return "cv" if self.n_components == "cv" else requested_count(self.n_components)

    def _check_parameters(self) -> None:
        checked_shrinkage(self.shrinkage, RULES)

    def _why_not_streamed(self) -> str | None:
        if self.shrinkage in ("ledoit_wolf", "cv") or self.n_components == "cv":
            return (
                f"shrinkage={self.shrinkage!r} with n_components={self.n_components!r} needs all rows at once. "
                "Statistics suffice for a number or 'oas'."
            )
        return super()._why_not_streamed()

    def _why_all_directions(self) -> str | None:
        if isinstance(self.shrinkage, str) or self.shrinkage == 0 or self.n_components == "cv":
            return "only a fixed shrinkage above 0 goes without the whole within-class scatter"
        return None

    def _discriminants(self, ratio: Ratio, moments: ClassMoments, basis: Basis) -> Discriminants:
        gamma, count, path = self._chosen(ratio, moments, basis)
        sigma = shrunk(ratio.within, gamma, ratio.rank)
        if is_nonsingular(sigma, moments.precision):
            found = discriminants(ratio.means, sigma)
        else:
            found, sigma = classical(ratio, moments.precision, type(self).__name__), ratio.within
        return Discriminants(found.directions, found.values, sigma, count, {"shrinkage": gamma, "path": path})

    def _chosen(self, ratio: Ratio, moments: ClassMoments, basis: Basis) -> tuple[float, int | None, PathScores | None]:
        """The shrinkage, the number of components where that is chosen too, and the path that was searched."""
        search_count = self.n_components == "cv"
        if self.shrinkage != "cv":
            columns = int((basis.feature_variances(moments) > 0).sum())
            gamma = chosen_shrinkage(self.shrinkage, ratio, moments, basis.points, columns)
            if not search_count:
                return gamma, None, None
        tried = PATH if self.shrinkage == "cv" else np.array([gamma])
        path = score_path(basis.points, tried, self.cv, self.random_state, self.priors, every_count=search_count)
        gamma, k = path.best()
        return gamma, k if search_count else None, path

    def _scaled_pads(self, pads: Array, ratio: Ratio) -> Array:
        return standardised(pads, ratio.within, ratio.total)

    def _solve(self, basis: Basis, moments: ClassMoments, request: Any) -> Solution:
        if not basis.as_operator:
            return super()._solve(basis, moments, request)
        posed, found = ridge_discriminants(moments, basis, float(self.shrinkage), request, self.n_features_in_)
        return self._solution(posed, found, moments, basis)

    @property
    def shrinkage_(self) -> float:
        """The γ that was used."""
        return self._fitted().details["shrinkage"]

    @property
    def path_(self) -> PathScores | None:
        """What cross-validation tried, and how it did; None where nothing was searched."""
        return self._fitted().details["path"]


def ridge_discriminants(
    moments: ClassMoments, basis: Basis, gamma: float, request: Any, n_features: int
) -> tuple[Posed, Discriminants]:
    """Discriminants with a fixed ridge by products with the rows only: Σ_γ⁻¹Hᵀ by conjugate gradients.

    With Y = Σ_γ⁻¹Hᵀ and HY = Q Λ Qᵀ, the rows of Λ^−½ Qᵀ Yᵀ are the discriminants.
    """
    points, n = basis.points, moments.total_weight
    shares = moments.weights / n
    means = np.sqrt(shares)[:, None] * moments.centred_means()
    within = Spread(np.full(len(shares), 1 / n), means[:0])
    total = Spread(np.full(len(shares), 1 / n), means)
    variances = basis.feature_variances(moments)
    rank = min(points.shape[0] - 1, int((variances > 0).sum()))  # but for collinear columns, which no product shows
    ridge = gamma * within.trace(moments, points) / rank
    product, of_total = within.operator(moments, points), total.operator(moments, points)
    diagonal = (1 - gamma) * variances + ridge
    Y = conjugate_gradients(lambda V: (1 - gamma) * product.matmat(V) + ridge * V, means.T, diagonal)
    values, vectors = la.eigh(means @ Y)
    kept = values > RANK * values[-1]
    values, directions = values[kept][::-1], (vectors[:, kept] / np.sqrt(values[kept])).T[::-1] @ Y.T
    k = discriminant_count(request, values, rank, (moments.n_rows, n_features))
    how = f"{len(values)} discriminants by conjugate gradients"
    chosen = directions[:k]
    if k > len(values):
        pads = complement_by_products(directions, of_total, k - len(values))
        deviations = np.sqrt(np.einsum("kd,dk->k", pads, product.matmat(pads.T)))
        chosen = np.concatenate([directions, pads / deviations[:, None]])
    posed = Posed(chosen, directions, of_total.matmat(chosen.T).T, rank, how)
    return posed, Discriminants(directions, values, details={"shrinkage": gamma, "path": None})
