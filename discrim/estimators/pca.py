"""Principal components: exact in one pass, with the Gaussian model they define, or selected by Bayes error.

    x ~ N(μ, C) ,    C = Σ_i (λ_i − σ²) w_i w_iᵀ + σ² I ,    σ² = mean variance of the discarded directions

Names and units are those of scikit-learn: variances are divided by n − 1, `eigenvalues_` by n.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from types import SimpleNamespace
from typing import Any, ClassVar, Self

import numpy as np
import scipy.linalg as la
from numpy.typing import ArrayLike, NDArray

from discrim.core.eigen import Spectrum, descending, kept_count, likeliest_count, with_fixed_signs
from discrim.core.moments.class_moments import ClassMoments
from discrim.core.pairwise_error import pair_error
from discrim.core.problem import Needs, Problem
from discrim.core.ratio import MIN_WITHIN
from discrim.core.spread import total_spread
from discrim.decompositions import svd
from discrim.estimators.base import Reducer
from discrim.estimators.fitting import fitted_attribute, solved
from discrim.estimators.solution import Solution, leading_directions
from discrim.tables.check_parameters import COUNT, FLAG, GAPS, Constraints, named
from discrim.tables.rows import block_slices, dense_block
from discrim.tables.validation import require_representable

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False, kw_only=True)
class PrincipalSolution(Solution):
    """Solution of PCA, with the number of directions without variance that follow the components."""

    surplus: int = 0

    def in_features(self, problem: Problem) -> Self:
        """Return the solution in the original features."""
        found = super().in_features(problem)
        if self.surplus == 0:
            return found
        nothing, beyond = np.zeros(self.surplus), complement_rows(found.components_, self.surplus)
        return replace(
            found,
            components_=np.concatenate([found.components_, beyond.astype(problem.dtype)]),
            eigenvalues_=np.concatenate([found.eigenvalues_, nothing]),
            explained_variance_ratio_=np.concatenate([found.explained_variance_ratio_, nothing]),
        )


def complement_rows(directions: NDArray[Any], wanted: int) -> Array:
    """Return orthonormal rows orthogonal to given orthonormal ones, built from the axes that these cover least."""
    given = directions.astype(np.float64)
    pivots = la.qr(given, mode="r", pivoting=True)[1]
    axes = np.eye(given.shape[1])[np.sort(pivots[len(given) : len(given) + wanted])]
    Q = la.qr(np.concatenate([given, axes]).T, mode="economic")[0].T
    return with_fixed_signs(Q[len(given) :])


class PrincipalVariances(Reducer):
    """Base class for methods with uncorrelated components: variances under scikit-learn's names."""

    @property
    def _n_counted(self) -> float:
        """Number of rows, counting weights as repetition; at least the number of rows themselves."""
        return max(float(self.n_samples_seen_), self._total_weight)

    @fitted_attribute
    def n_samples_(self) -> int:
        """Number of rows with positive weight."""
        return self.n_samples_seen_

    @fitted_attribute
    def explained_variance_(self) -> NDArray[Any]:
        """Variance along each component, divided by n − 1."""
        n = self._n_counted
        return (self.eigenvalues_ * (n / max(n - 1, 1))).astype(self.components_.dtype)

    @fitted_attribute
    def singular_values_(self) -> NDArray[Any]:
        """Norm of each component's scores over the training rows."""
        return np.sqrt(np.maximum(self.eigenvalues_, 0.0) * self._total_weight).astype(self.components_.dtype)


def _inverse(variances: Array) -> Array:
    return np.divide(1.0, variances, out=np.zeros_like(variances), where=variances > 0)


class PCA(PrincipalVariances):
    """Principal component analysis: the directions along which the rows vary most.

        maximise  tr WᵀS_tW  subject to  WᵀW = I,    S_t = Σ_i w_i (x_i − μ)(x_i − μ)ᵀ

    It needs no labels (y is ignored) and serves as the baseline for the other methods. It fits streams exactly, accepts
    weights and sparse tables, and keeps its accuracy at offsets of 1e8. It is a drop-in replacement for scikit-learn's
    PCA and IncrementalPCA: attributes of the same name have the same values, in the same units.

    Parameters
    ----------
    n_components : int, float, "mle" or None, default=None
        Number of components. A fraction in (0, 1) keeps the fewest components that explain this share of the variance,
        "mle" the most probable number (Minka), None all directions up to the numerical rank. An int may be as large as
        min(n, d); components beyond the rank have no variance and are arbitrary, but orthonormal.
    whiten : bool, default=False
        If True, transform divides each component by its standard deviation; components without variance are unchanged.
    {gaps}

    Attributes
    ----------
    {orthonormal}
    mean_: Mean of the rows, which transform subtracts.
    eigenvalues_: Variance along each direction (divided by n).
    explained_variance_: Variance along each direction, divided by n − 1.
    explained_variance_ratio_: Share of the total variance explained by each direction.
    singular_values_: Norm of each component's scores over the training rows.
    noise_variance_ : float
        Mean variance (divided by n − 1) of the discarded directions, out of min(n, d).
    n_components_: Number of components.
    n_samples_, n_samples_seen_ : int
        Number of rows with positive weight.
    {found_rank}
    solver_: The solver that was used, and the reason for the choice.
    n_features_in_: Number of features seen in fit.

    Notes
    -----
    A row of weight 2 counts as two rows in n. If the weights sum to less than the number of rows, n is that number.

    References
    ----------
    Tipping and Bishop, "Probabilistic principal component analysis" (1999), for `score` and `get_covariance`; Minka,
    "Automatic choice of dimensionality for PCA" (2000), for "mle".

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from discrim import PCA
    >>> X, _ = load_iris(return_X_y=True)
    >>> PCA(n_components=2).fit(X).explained_variance_ratio_.round(3)
    array([0.925, 0.053])
    """

    _parameter_constraints: ClassVar[Constraints] = {
        "n_components": (*COUNT[:-1], *named("mle"), COUNT[-1]),
        "whiten": FLAG,
        "missing": GAPS,
    }

    def __init__(
        self, n_components: int | float | str | None = None, *, whiten: bool = False, missing: str | None = None
    ) -> None:
        self.n_components = n_components
        self.whiten = whiten
        self.missing = missing

    def _needs(self) -> Needs:
        return Needs(supervised=False, passes=True)

    def _solve(self, problem: Problem) -> Solution:
        found = leading_directions(problem, total_spread(problem.moments), self._count)
        surplus = problem.request - len(found.components_) if isinstance(problem.request, int) else 0
        return PrincipalSolution(**vars(found), surplus=surplus)

    def _count(self, request: int | float | None, spectrum: Spectrum, shape: tuple[int, int]) -> int:
        if isinstance(self.n_components, str) and spectrum.rank > 0:
            if shape[0] < shape[1]:
                raise ValueError(
                    "n_components='mle' is only supported if n_samples >= n_features; got "
                    f"{shape[0]} samples in {shape[1]} features. Pass an int, or a share of the variance."
                )
            return likeliest_count(spectrum.values / spectrum.values[0], spectrum.rank, shape[0])
        if isinstance(request, int) and spectrum.rank < request:
            if request > min(shape):  # as scikit-learn's PCA does
                raise ValueError(
                    f"n_components must be at most {min(shape)} for {shape[0]} samples in {shape[1]} features; got "
                    f"{request}. Pass fewer, or None for all."
                )
            request = spectrum.rank  # components without variance follow
        return kept_count(request, spectrum.values, spectrum.total, spectrum.rank, shape)

    def _features(self, scores: NDArray[Any]) -> NDArray[Any]:
        return scores / self._units() if self.whiten else scores

    def _scores_of_features(self, features: NDArray[Any]) -> NDArray[Any]:
        return features * self._units() if self.whiten else features

    def _units(self) -> NDArray[Any]:
        """Return the deviation along each component, 1 for those without variance."""
        deviations = np.sqrt(self.explained_variance_)
        return np.where(deviations > 0, deviations, deviations.dtype.type(1))

    @fitted_attribute
    def noise_variance_(self) -> float:
        """Mean variance of the discarded directions, out of min(n, d)."""
        n, k = self._n_counted, self.n_components_
        n_discarded = min(n, self.n_features_in_) - k
        share = float(self.explained_variance_ratio_.sum())
        if n_discarded <= 0 or k >= self.rank_ or share >= 1:
            return 0.0
        kept = float(self.eigenvalues_.sum()) * n / max(n - 1, 1)
        return kept * (1 / share - 1) / n_discarded

    def _model_variances(self) -> Array:
        """Compute λ_i, at least as large as the noise."""
        n = self._n_counted
        return np.maximum(self.eigenvalues_ * (n / max(n - 1, 1)), self.noise_variance_)

    def get_covariance(self) -> NDArray[Any]:
        """Return the covariance of the Gaussian model.

        Returns
        -------
        covariance : array of shape (n_features, n_features)
            Σ_i (λ_i − σ²) w_i w_iᵀ + σ² I.
        """
        self._require_solution()
        return self._spectral(self._model_variances(), self.noise_variance_)

    def get_precision(self) -> NDArray[Any]:
        """Return the inverse of the model's covariance.

        Returns
        -------
        precision : array of shape (n_features, n_features)
            Inverse of `get_covariance()`; the pseudo-inverse if the model has no variance in some directions.
        """
        self._require_solution()
        return self._spectral(_inverse(self._model_variances()), float(_inverse(np.array(self.noise_variance_))))

    def _spectral(self, along: Array, elsewhere: float) -> NDArray[Any]:
        """Return the matrix with these eigenvalues along the components, and one eigenvalue for all others."""
        W = self.components_.astype(np.float64)
        return ((W.T * (along - elsewhere)) @ W + elsewhere * np.eye(W.shape[1])).astype(self.components_.dtype)

    def score_samples(self, X: ArrayLike) -> NDArray[Any]:
        """Return the log-likelihood of each sample under the Gaussian model.

        {of_rows}

        Returns
        -------
        log_likelihoods : array of shape (n_samples,)
            Log-likelihood of each sample; −∞ if the model has no variance in some directions and hence no density.
        """
        table = self._fitted_table(X)
        W, along, noise = self.components_.astype(np.float64), self._model_variances(), self.noise_variance_
        d, k = self.n_features_in_, len(along)
        if not (along > 0).all() or (noise == 0 and k < d):
            require_representable(np.asarray(table.sum(axis=0)), table)
            return np.full(table.shape[0], -np.inf, table.dtype)
        constant = np.log(along).sum() + (d - k) * (np.log(noise) if k < d else 0.0) + d * np.log(2 * np.pi)
        result = np.empty(table.shape[0])
        for part in block_slices(*table.shape):
            centred = np.subtract(dense_block(table, part), self.mean_, dtype=np.float64)
            scores = centred @ W.T
            distances = (scores**2 / along).sum(axis=1)
            if k < d:
                distances += ((centred - scores @ W) ** 2).sum(axis=1) / noise
            result[part] = -0.5 * (distances + constant)
        require_representable(result, table)
        return result.astype(table.dtype)

    def score(self, X: ArrayLike, y: Any = None) -> float:
        """Return the mean log-likelihood of the samples under the Gaussian model.

        Parameters
        ----------
        X : array or sparse matrix of shape (n_samples, n_features)
            Samples.
        y : None
            Ignored; present for API consistency.

        Returns
        -------
        log_likelihood : float
            Mean of `score_samples`.
        """
        return float(np.mean(self.score_samples(X), dtype=np.float64))


MAX_PAIRED_CLASSES = 5_000
# minimum deviation of a class along a component, relative to the component's: Bhattacharyya's score is ∞ at 0
MIN_DEVIATION = 1e-3


class BayesErrorPCA(PrincipalVariances):
    """Principal components selected by Bayes error: those of PCA's directions that separate the classes best.

        keep the k components with the highest  s_i = Σ_c p_c (w̄_ci − w̄_i)² / λ_i

    w̄_ci is class c's mean along component i, λ_i the component's variance, p_c the class's share. s_i in [0, 1] is the
    share of component i's variance between the classes (its correlation ratio). For two classes, the k highest are the
    best k components for a linear discriminant on the training rows. Use it if the components should be those of PCA.

    Parameters
    ----------
    n_components: Number of components. A fraction in (0, 1) keeps the fewest components that reach this share of the
        sum of scores_, None all components up to the numerical rank.
    score : {"fisher", "bhattacharyya"}, default="fisher"
        "fisher" is the score above. "bhattacharyya" is
        Σ_{a<b} p_a p_b [¼Δ²/(σ_a²+σ_b²) + ½ ln((σ_a²+σ_b²)/(2σ_aσ_b))], which also finds components along which the
        classes differ only in variance (deviations are at least 1e-3 of the component's).

    Attributes
    ----------
    {orthonormal}
    eigenvalues_: Variance along each selected component, divided by n.
    explained_variance_: Variance along each selected component, divided by n − 1.
    singular_values_: Norm of each selected component's scores over the training rows.
    explained_variance_ratio_: Share of the total variance explained by each selected component.
    {found_rank}
    scores_ : array of shape (rank_,)
        Score of every component up to the numerical rank, in PCA's order.
    selected_ : array of shape (n_components_,)
        Indices of the selected components in PCA's order, best score first.
    bayes_error_ : array of shape (n_components_,)
        Apparent Gaussian error, averaged over pairs of classes, after 1, 2, … selected components. It is optimistic and
        never rises, so do not choose k by it. Computed on access, for at most 5,000 classes.
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
    scores_: Array = solved()
    selected_: NDArray[np.intp] = solved()
    _standardised_means: Array
    _shares: Array

    def __init__(self, n_components: int | float | None = None, *, score: str = "fisher") -> None:
        self.n_components = n_components
        self.score = score

    # scikit-learn treats any attribute named `score` as a method, so this parameter is available from get_params only
    @property
    def score(self) -> str:
        raise AttributeError("BayesErrorPCA has no method score: score is a parameter. Its value is in get_params().")

    @score.setter
    def score(self, value: str) -> None:
        self.__dict__["score"] = value

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Return the parameters by name."""
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
        order = descending(scores)  # for equal scores, the component with the larger variance is first
        count = kept_count(problem.request, scores[order], float(scores.sum()), spectrum.rank, problem.shape)
        kept = order[:count]
        return Solution(
            components_=directions[kept],
            eigenvalues_=moments.per_weight(values[kept]),
            explained_variance_ratio_=values[kept] / spectrum.total,
            rank_=spectrum.rank,
            solver_=spectrum.how,
            is_resolved=problem.basis.is_resolved,
            found=SimpleNamespace(
                scores_=scores,
                selected_=kept,
                _standardised_means=means[:, kept] / np.sqrt(variances[kept]),
                _shares=shares,
            ),
        )

    @fitted_attribute
    def bayes_error_(self) -> Array:
        """Apparent Gaussian error, averaged over pairs of classes, after 1, 2, … selected components."""
        if len(self._shares) > MAX_PAIRED_CLASSES:
            raise ValueError(
                f"y must have at most {MAX_PAIRED_CLASSES} classes for bayes_error_, a mean over all pairs of "
                f"classes; got {len(self._shares)}. `scores_` and `selected_` exist for any number of classes."
            )
        return apparent_errors(self._standardised_means, self._shares)


def correlation_ratios(means: Array, variances: Array, shares: Array) -> Array:
    """Compute s_i = Σ_c p_c w̄_ci² / λ_i from centred class means along the components."""
    return np.minimum(shares @ means**2 / variances, 1.0)


def bhattacharyya_scores(means: Array, variances: Array, class_variances: Array, shares: Array) -> Array:
    """Compute Σ_{a<b} p_a p_b [¼Δ²/(σ_a²+σ_b²) + ½ ln((σ_a²+σ_b²)/(2σ_aσ_b))] for every component."""
    floored = np.maximum(class_variances, MIN_DEVIATION**2 * variances)
    scores = np.zeros_like(variances)
    for a in range(len(shares) - 1):
        sums = floored[a] + floored[a + 1 :]
        distance = (means[a] - means[a + 1 :]) ** 2 / (4 * sums)
        distance += 0.5 * np.log(sums / (2 * np.sqrt(floored[a]) * np.sqrt(floored[a + 1 :])))
        scores += shares[a] * shares[a + 1 :] @ distance
    return scores


def _class_variances(moments: ClassMoments, directions: Array) -> Array:
    """Return the variance of each class along each direction."""
    if moments.each is None:
        raise ValueError("ClassMoments must hold a scatter per class for score='bhattacharyya'. Use keep='each'.")
    return np.stack(
        [
            np.einsum("kd,kd->k", directions @ scatter, directions) / weight
            for scatter, weight in zip(moments.each, moments.weights, strict=True)
        ]
    )


def apparent_errors(standardised_means: Array, shares: Array) -> Array:
    """Compute Σ_{a<b} p_a p_b Q(r_ab/2) / Σ_{a<b} p_a p_b after each component.

    r_ab² = (u_a−u_b)ᵀ(I − Σ_c p_c u_c u_cᵀ)⁻¹(u_a−u_b) is the within-class Mahalanobis distance, where u are the class
    means along the components in standard deviations. With √p u = Q diag(ρ) Rᵀ it is the squared distance between rows
    of Q diag(ρ/√(1−ρ²))/√p; if 1−ρ² is rounding, the classes are fully separated.
    """
    root = np.sqrt(shares)[:, None]
    upper = np.triu_indices(len(shares), 1)
    pair_shares = np.outer(shares, shares)[upper]
    errors = []
    for k in range(1, standardised_means.shape[1] + 1):
        Q, rho, _ = svd(root * standardised_means[:, :k])
        rows = Q * (rho / np.sqrt(np.maximum(1 - rho**2, MIN_WITHIN))) / root
        distances = np.linalg.norm(rows[upper[0]] - rows[upper[1]], axis=1)
        errors.append(pair_shares @ pair_error(distances) / pair_shares.sum())
    return np.array(errors)
