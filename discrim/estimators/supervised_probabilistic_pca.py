"""Supervised probabilistic PCA: factors that rows and labels share."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import helmert

from discrim.core.count import default_count, kept_count
from discrim.core.joint_factors import JointCovariance, fitted_factors
from discrim.core.moments.class_moments import ClassMoments
from discrim.core.problem import Needs, Problem
from discrim.core.spread import total_spread
from discrim.estimators.base import Reducer, Solution

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Likelihood:
    """What else the model says."""

    noise_variance_: float
    label_noise_variance_: float
    log_likelihood_: float


class SupervisedProbabilisticPCA(Reducer):
    """Supervised probabilistic PCA (SPPCA): the factors that rows and labels share, by maximum likelihood.

        x = W_x z + ε_x ,  u = W_y z + ε_y ,   z ~ N(0, I),  ε_x ~ N(0, σ_x²I),  ε_y ~ N(0, σ_y²I) ;   features E[z | x]

    u are the labels in C − 1 orthonormal contrasts (one-hot labels would have an unbounded likelihood); both noises are
    at least 1e-6 of the mean variance. Labels are a few columns more, whose weight the noises decide. The model is
    fitted on the class moments, whatever the number of rows; the place where EM ends is found directly, as the best of
    one family of eigenproblems. Use it where a generative model is wanted (likelihoods, noise); for accuracy with few
    components, discriminants are ahead.

    Parameters
    ----------
    n_components : int, float or None, default=None
        How many factors; a fraction in (0, 1) keeps the fewest that reach that share of the eigenvalues of None, None
        as many as the labels have contrasts, C − 1 (at most the rank).

    Attributes
    ----------
    components_ : array of shape (n_components_, n_features)
        (W_xᵀW_x/σ_x² + I)⁻¹W_xᵀ/σ_x², one row per factor.
    eigenvalues_ : array of shape (n_components_,)
        Variance of rows and labels, in units of their noises, along each factor, in the unit of the rows.
    explained_variance_ratio_ : array of shape (n_components_,)
        Each factor's share of that variance.
    noise_variance_ : float
        σ_x², in the span of the rows.
    label_noise_variance_ : float
        σ_y².
    log_likelihood_ : float
        Mean log-likelihood of a row and its label, in the span of the rows.
    {fitted_with_vip}

    References
    ----------
    Yu, Yu, Tresp, Kriegel and Wu, "Supervised probabilistic principal component analysis" (2006).
    Tipping and Bishop, "Probabilistic principal component analysis" (1999), for one noise.

    Examples
    --------
    >>> from sklearn.datasets import load_wine
    >>> from discrim import SupervisedProbabilisticPCA
    >>> X, y = load_wine(return_X_y=True)
    >>> SupervisedProbabilisticPCA(n_components=3).fit_transform(X, y).shape
    (178, 3)
    """

    def _needs(self) -> Needs:
        return Needs(directions="all", matrix="SupervisedProbabilisticPCA needs the variance of every direction")

    def _solve(self, problem: Problem) -> Solution:
        moments, request, shape = problem.moments, problem.request, problem.shape
        spectrum = problem.spectrum(total_spread(moments), None)
        rank = spectrum.rank
        k = default_count(request, len(moments.weights), rank, shape)
        span = spectrum.directions[:rank]
        covariance = _joint_covariance(moments, span, spectrum.values[:rank])
        found = fitted_factors(covariance, k)
        if isinstance(request, float):
            k = kept_count(request, found.values, float(found.values.sum()), k, shape)
            found = fitted_factors(covariance, k)
        variances = moments.in_squared_units(np.array([found.noise]))
        unit = rank * moments.exponent * float(np.log(2))  # of the density: the moments' units to the rows'
        return Solution(
            components_=np.ldexp(found.features_of_rows(rank) @ span, -moments.exponent),
            eigenvalues_=moments.in_squared_units(found.values),
            explained_variance_ratio_=found.values / covariance.trace(found.s),
            rank_=rank,
            solver_=f"{k} factors of rows and labels, from the spectrum of their covariance",
            is_resolved=problem.basis.is_resolved,
            found=Likelihood(float(variances[0]), found.noise / found.s**2, -0.5 * found.deviance - unit),
        )


def _joint_covariance(moments: ClassMoments, span: Array, values: Array) -> JointCovariance:
    """Of rows along the principal directions and of labels in contrasts."""
    shares = moments.weights / moments.total_weight
    contrasts = helmert(len(shares)).T  # C×(C−1): u_c
    centred = contrasts - shares @ contrasts
    means = moments.centred_means() @ span.T
    return JointCovariance(
        values / moments.total_weight,
        means.T @ (shares[:, None] * centred),
        centred.T @ (shares[:, None] * centred),
    )
