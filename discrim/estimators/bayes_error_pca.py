"""Principal components chosen by least Bayes error."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from discrim.core.count import descending, kept_count
from discrim.core.moments.class_moments import ClassMoments
from discrim.core.pairwise_error import pair_error
from discrim.core.problem import Needs, Problem
from discrim.core.ratio import LEAST_WITHIN
from discrim.core.spread import total_spread
from discrim.decompositions import svd
from discrim.estimators.base import Solution, fitted_property
from discrim.estimators.principal import PrincipalVariances
from discrim.tables.check_parameters import COUNT, Constraints, named
from discrim.tables.fit_messages import require_room_for_pairs

Array = NDArray[np.float64]
LEAST_DEVIATION = 1e-3  # of a class along a component, as a share of the component's: Bhattacharyya's score is ∞ at 0


@dataclass(frozen=True, eq=False)
class ComponentScores:
    """How the components were chosen."""

    scores_: Array
    selected_: NDArray[np.intp]
    _standardised_means: Array  # class means along the kept ones, in units of their deviation
    _shares: Array  # p_c


class BayesErrorPCA(PrincipalVariances):
    """Principal components chosen by least Bayes error: of PCA's own directions, those that tell the classes apart.

        keep the k components of highest  s_i = Σ_c p_c (w̄_ci − w̄_i)² / λ_i

    w̄_ci is class c's mean along component i, λ_i its variance, p_c the class's share: s_i in [0, 1] is the share of
    component i's variance that lies between the classes (its correlation ratio). For two classes the k highest are the
    best k components for a linear discriminant on the training rows. Use it where the components should stay PCA's own.

    Parameters
    ----------
    n_components : int, float or None, default=None
        How many components to keep; a fraction in (0, 1) keeps the fewest that reach that share of the sum of scores_,
        None all components of numerical rank.
    score : {"fisher", "bhattacharyya"}, default="fisher"
        The score above, or Σ_{a<b} p_a p_b [¼Δ²/(σ_a²+σ_b²) + ½ ln((σ_a²+σ_b²)/(2σ_aσ_b))], which also sees
        components along which the classes differ in variance only (deviations below 1e-3 of the component's count as
        that).

    Attributes
    ----------
    components_ : array of shape (n_components_, n_features)
        The directions, one per row, orthonormal.
    eigenvalues_ : array of shape (n_components_,)
        Variance along each kept component (divided by n).
    explained_variance_ : array of shape (n_components_,)
        The same divided by n − 1.
    singular_values_ : array of shape (n_components_,)
        Length of each kept component's scores over the rows of the fit.
    explained_variance_ratio_ : array of shape (n_components_,)
        Each kept component's share of the total variance.
    rank_ : int
        Numerical rank: how many directions there are (on the Lanczos path: how many were found).
    scores_ : array of shape (rank_,)
        Score of every component of numerical rank, in PCA's order.
    selected_ : array of shape (n_components_,)
        PCA's numbers of the kept components, best score first.
    bayes_error_ : array of shape (n_components_,)
        Apparent Gaussian error, averaged over pairs of classes, after 1, 2, … kept components. It flatters and never
        rises: do not choose k by it. Reckoned when asked for; there is none beyond 5,000 classes.
    {fitted_with_vip}

    References
    ----------
    De Carvalho, Sibaldo, Tsang and Cavalcanti, "Principal Component Analysis for Supervised Learning: a minimum
    classification error approach" (2017), equation 14; the score is its s_i times p₁p₂.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from discrim import BayesErrorPCA
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> BayesErrorPCA(n_components=3).fit(X, y).selected_
    array([ 0,  3, 10])
    """

    _parameter_constraints: ClassVar[Constraints] = {"n_components": COUNT, "score": named("fisher", "bhattacharyya")}
    _standardised_means: Array
    _shares: Array

    def __init__(self, n_components: int | float | None = None, *, score: str = "fisher") -> None:
        self.n_components = n_components
        self.score = score

    # scikit-learn takes whatever stands in an attribute `score` for a method, so the parameter of that name is to be
    # had from get_params only
    @property
    def score(self) -> str:
        raise AttributeError("score is a parameter of BayesErrorPCA, not a method. Its value is in get_params().")

    @score.setter
    def score(self, value: str) -> None:
        self.__dict__["score"] = value

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """The parameters by name."""
        return {"n_components": self.n_components, "score": self.__dict__["score"]}

    def _needs(self) -> Needs:
        is_per_class = self.get_params()["score"] == "bhattacharyya"
        why = "BayesErrorPCA scores every component, not only the first few"
        return Needs(scatter="each" if is_per_class else "pooled", directions="all", matrix=why)

    def _solve(self, problem: Problem) -> Solution:
        moments = problem.moments
        spectrum = problem.spectrum(total_spread(moments), None)
        directions, values = spectrum.directions[: spectrum.rank], spectrum.values[: spectrum.rank]
        variances = values / moments.total_weight
        means = moments.centred_means() @ directions.T
        shares = moments.weights / moments.total_weight
        scores = (
            correlation_ratios(means, variances, shares)
            if self.get_params()["score"] == "fisher"
            else bhattacharyya_scores(means, variances, _class_variances(moments, directions), shares)
        )
        order = descending(scores)  # of components that tell the classes apart alike the larger comes first
        count = kept_count(problem.request, scores[order], float(scores.sum()), spectrum.rank, problem.shape)
        kept = order[:count]
        return Solution(
            components_=directions[kept],
            eigenvalues_=moments.per_weight(values[kept]),
            explained_variance_ratio_=values[kept] / spectrum.total,
            rank_=spectrum.rank,
            solver_=spectrum.how,
            is_resolved=problem.basis.is_resolved,
            found=ComponentScores(scores, kept, means[:, kept] / np.sqrt(variances[kept]), shares),
        )

    @fitted_property
    def bayes_error_(self) -> Array:
        """Apparent Gaussian error, averaged over pairs of classes, after 1, 2, … kept components."""
        require_room_for_pairs(len(self._shares))
        return apparent_errors(self._standardised_means, self._shares)


def correlation_ratios(means: Array, variances: Array, shares: Array) -> Array:
    """s_i = Σ_c p_c w̄_ci² / λ_i, from centred class means along the components."""
    return np.minimum(shares @ means**2 / variances, 1.0)


def bhattacharyya_scores(means: Array, variances: Array, class_variances: Array, shares: Array) -> Array:
    """Σ_{a<b} p_a p_b [¼Δ²/(σ_a²+σ_b²) + ½ ln((σ_a²+σ_b²)/(2σ_aσ_b))] for every component."""
    floored = np.maximum(class_variances, LEAST_DEVIATION**2 * variances)
    scores = np.zeros_like(variances)
    for a in range(len(shares) - 1):
        sums = floored[a] + floored[a + 1 :]
        distance = (means[a] - means[a + 1 :]) ** 2 / (4 * sums)
        distance += 0.5 * np.log(sums / (2 * np.sqrt(floored[a]) * np.sqrt(floored[a + 1 :])))
        scores += shares[a] * shares[a + 1 :] @ distance
    return scores


def _class_variances(moments: ClassMoments, directions: Array) -> Array:
    """Variance of each class along each direction."""
    if moments.each is None:
        raise ValueError("Bhattacharyya's score needs every class's own scatter. Make the moments with keep='each'.")
    return np.stack(
        [
            np.einsum("kd,kd->k", directions @ scatter, directions) / weight
            for scatter, weight in zip(moments.each, moments.weights, strict=True)
        ]
    )


def apparent_errors(standardised_means: Array, shares: Array) -> Array:
    """Σ_{a<b} p_a p_b Q(r_ab/2) / Σ_{a<b} p_a p_b after each component.

    r_ab² = (u_a−u_b)ᵀ(I − Σ_c p_c u_c u_cᵀ)⁻¹(u_a−u_b), the within-class Mahalanobis distance, u the class means along
    the components in units of their deviation. With √p u = Q diag(ρ) Rᵀ it is the squared distance of rows of
    Q diag(ρ/√(1−ρ²))/√p; where 1−ρ² falls to rounding the classes are apart for good.
    """
    root = np.sqrt(shares)[:, None]
    upper = np.triu_indices(len(shares), 1)
    pair_shares = np.outer(shares, shares)[upper]
    errors = []
    for k in range(1, standardised_means.shape[1] + 1):
        Q, rho, _ = svd(root * standardised_means[:, :k])
        rows = Q * (rho / np.sqrt(np.maximum(1 - rho**2, LEAST_WITHIN))) / root
        distances = np.linalg.norm(rows[upper[0]] - rows[upper[1]], axis=1)
        errors.append(pair_shares @ pair_error(distances) / pair_shares.sum())
    return np.array(errors)
