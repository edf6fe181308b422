"""Principal components: exact in one pass, with the Gaussian that they describe, or chosen by Bayes error.

    x ~ N(μ, C) ,    C = Σ_i (λ_i − σ²) w_i w_iᵀ + σ² I ,    σ² the mean variance of the directions that are left out

Names and units are scikit-learn's: variances are divided by n − 1, `eigenvalues_` by n.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, ClassVar, Self

import numpy as np
import scipy.linalg as la
from numpy.typing import ArrayLike, NDArray

from discrim.core.eigen import Spectrum, descending, kept_count, likeliest_count, with_fixed_signs
from discrim.core.moments.class_moments import ClassMoments
from discrim.core.pairwise_error import pair_error
from discrim.core.problem import Needs, Problem
from discrim.core.ratio import LEAST_WITHIN
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
    """Of principal components also: how many directions without any variance follow them."""

    surplus: int = 0

    def in_features(self, problem: Problem) -> Self:
        """Return the same in the features."""
        found = super().in_features(problem)
        if self.surplus == 0:
            return found
        nothing, beyond = np.zeros(self.surplus), others(found.components_, self.surplus)
        return replace(
            found,
            components_=np.concatenate([found.components_, beyond.astype(problem.dtype)]),
            eigenvalues_=np.concatenate([found.eigenvalues_, nothing]),
            explained_variance_ratio_=np.concatenate([found.explained_variance_ratio_, nothing]),
        )


def others(directions: NDArray[Any], wanted: int) -> Array:
    """Return orthonormal rows, orthogonal to given orthonormal ones: of the axes, those that these leave most of."""
    given = directions.astype(np.float64)
    pivots = la.qr(given, mode="r", pivoting=True)[1]
    axes = np.eye(given.shape[1])[np.sort(pivots[len(given) : len(given) + wanted])]
    Q = la.qr(np.concatenate([given, axes]).T, mode="economic")[0].T
    return with_fixed_signs(Q[len(given) :])


class PrincipalVariances(Reducer):
    """Of components along which the rows are uncorrelated: scikit-learn's names for what they vary."""

    @property
    def _counted(self) -> float:
        """How many rows there are, with their repetition; of weights that are less than 1 each, the rows themselves."""
        return max(float(self.n_samples_seen_), self._total_weight)

    @fitted_attribute
    def n_samples_(self) -> int:
        """How many rows of positive weight came."""
        return self.n_samples_seen_

    @fitted_attribute
    def explained_variance_(self) -> NDArray[Any]:
        """Variance along each component, divided by n − 1."""
        n = self._counted
        return (self.eigenvalues_ * (n / max(n - 1, 1))).astype(self.components_.dtype)

    @fitted_attribute
    def singular_values_(self) -> NDArray[Any]:
        """Length of each component's scores over the rows of the fit."""
        return np.sqrt(np.maximum(self.eigenvalues_, 0.0) * self._total_weight).astype(self.components_.dtype)


def _inverse(variances: Array) -> Array:
    return np.divide(1.0, variances, out=np.zeros_like(variances), where=variances > 0)


class PCA(PrincipalVariances):
    """Principal component analysis: the directions along which the rows vary most.

        maximise  tr WᵀS_tW  subject to  WᵀW = I,    S_t = Σ_i w_i (x_i − μ)(x_i − μ)ᵀ

    The member of the family that needs no labels (y is ignored): the yardstick for the others, and a PCA that streams
    exactly, takes weights and sparse tables, and keeps its digits at offsets of 1e8. It stands in for scikit-learn's
    PCA and IncrementalPCA: attributes of the same name are the same, in the same units.

    Parameters
    ----------
    n_components : int, float, "mle" or None, default=None
        How many components to keep; a fraction in (0, 1) keeps the fewest that reach that share of the variance, "mle"
        as many as are likeliest (Minka), None all directions of numerical rank. An int may go up to min(n, d):
        directions beyond the rank have no variance and are arbitrary, but orthonormal.
    whiten : bool, default=False
        Whether transform divides each component by its deviation; directions without variance stay as they are.
    missing : {"pairwise"} or None, default=None
        What becomes of NaN: None refuses it; "pairwise" takes each mean and covariance from the rows that have the
        cells (made positive definite), and transform counts a missing cell as its column's mean.

    Attributes
    ----------
    components_ : array of shape (n_components_, n_features)
        The directions, one per row, orthonormal.
    mean_ : array of shape (n_features,)
        Mean of the rows, which transform subtracts.
    eigenvalues_ : array of shape (n_components_,)
        Variance along each direction (divided by n).
    explained_variance_ : array of shape (n_components_,)
        The same divided by n − 1.
    explained_variance_ratio_ : array of shape (n_components_,)
        Each direction's share of the total variance.
    singular_values_ : array of shape (n_components_,)
        Length of each component's scores over the rows of the fit.
    noise_variance_ : float
        Mean variance (divided by n − 1) of the directions that are left out, of the min(n, d) there are.
    n_components_ : int
        How many components are kept.
    n_samples_, n_samples_seen_ : int
        How many rows of positive weight came.
    rank_ : int
        Numerical rank: how many directions there are (on the Lanczos path: how many were found).
    solver_ : str
        How the directions were found, and why so.
    n_features_in_ : int
        Number of features seen in fit.

    Notes
    -----
    n counts a row of weight 2 twice; of weights whose sum is less than the number of rows, it is that number.

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
        """Return deviation along each component, 1 where there is none."""
        deviations = np.sqrt(self.explained_variance_)
        return np.where(deviations > 0, deviations, deviations.dtype.type(1))

    @fitted_attribute
    def noise_variance_(self) -> float:
        """Mean variance of the directions that are left out, of the min(n, d) there are."""
        n, k = self._counted, self.n_components_
        others = min(n, self.n_features_in_) - k
        share = float(self.explained_variance_ratio_.sum())
        if others <= 0 or k >= self.rank_ or share >= 1:
            return 0.0
        kept = float(self.eigenvalues_.sum()) * n / max(n - 1, 1)
        return kept * (1 / share - 1) / others

    def _model_variances(self) -> Array:
        """Compute λ_i, nowhere below the noise."""
        n = self._counted
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
        """Return the inverse of that covariance.

        Returns
        -------
        precision : array of shape (n_features, n_features)
            Its inverse; the pseudo-inverse where the model leaves no variance to some directions.
        """
        self._require_solution()
        return self._spectral(_inverse(self._model_variances()), float(_inverse(np.array(self.noise_variance_))))

    def _spectral(self, along: Array, elsewhere: float) -> NDArray[Any]:
        """Return the matrix with these eigenvalues along the components, and one along all other directions."""
        W = self.components_.astype(np.float64)
        return ((W.T * (along - elsewhere)) @ W + elsewhere * np.eye(W.shape[1])).astype(self.components_.dtype)

    def score_samples(self, X: ArrayLike) -> NDArray[Any]:
        """Return log likelihood of each row under the Gaussian model.

        Parameters
        ----------
        X : array or sparse matrix of shape (n_samples, n_features)
            Rows.

        Returns
        -------
        log_likelihoods : array of shape (n_samples,)
            One for each row; −∞ where the model leaves no variance to some directions, and so has no density.
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
        """Return mean log likelihood of the rows under the Gaussian model.

        Parameters
        ----------
        X : array or sparse matrix of shape (n_samples, n_features)
            Rows.
        y : None
            Not used; here for pipelines.

        Returns
        -------
        log_likelihood : float
            The mean of `score_samples`.
        """
        return float(np.mean(self.score_samples(X), dtype=np.float64))


MOST_PAIRED_CLASSES = 5_000
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
    scores_: Array = solved()
    selected_: NDArray[np.intp] = solved()
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

    @fitted_attribute
    def bayes_error_(self) -> Array:
        """Apparent Gaussian error, averaged over pairs of classes, after 1, 2, … kept components."""
        if len(self._shares) > MOST_PAIRED_CLASSES:
            raise ValueError(
                f"y must have at most {MOST_PAIRED_CLASSES} classes for bayes_error_, a mean over all pairs of "
                f"classes; got {len(self._shares)}. `scores_` and `selected_` exist for any number of classes."
            )
        return apparent_errors(self._standardised_means, self._shares)


def correlation_ratios(means: Array, variances: Array, shares: Array) -> Array:
    """Compute s_i = Σ_c p_c w̄_ci² / λ_i, from centred class means along the components."""
    return np.minimum(shares @ means**2 / variances, 1.0)


def bhattacharyya_scores(means: Array, variances: Array, class_variances: Array, shares: Array) -> Array:
    """Compute Σ_{a<b} p_a p_b [¼Δ²/(σ_a²+σ_b²) + ½ ln((σ_a²+σ_b²)/(2σ_aσ_b))] for every component."""
    floored = np.maximum(class_variances, LEAST_DEVIATION**2 * variances)
    scores = np.zeros_like(variances)
    for a in range(len(shares) - 1):
        sums = floored[a] + floored[a + 1 :]
        distance = (means[a] - means[a + 1 :]) ** 2 / (4 * sums)
        distance += 0.5 * np.log(sums / (2 * np.sqrt(floored[a]) * np.sqrt(floored[a + 1 :])))
        scores += shares[a] * shares[a + 1 :] @ distance
    return scores


def _class_variances(moments: ClassMoments, directions: Array) -> Array:
    """Return variance of each class along each direction."""
    if moments.each is None:
        raise ValueError("Bhattacharyya's score needs every class's own scatter. Make the moments with keep='each'.")
    return np.stack(
        [
            np.einsum("kd,kd->k", directions @ scatter, directions) / weight
            for scatter, weight in zip(moments.each, moments.weights, strict=True)
        ]
    )


def apparent_errors(standardised_means: Array, shares: Array) -> Array:
    """Compute Σ_{a<b} p_a p_b Q(r_ab/2) / Σ_{a<b} p_a p_b after each component.

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
