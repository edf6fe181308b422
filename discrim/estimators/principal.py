"""What principal components say of the rows: variances in the units of statistics, and the Gaussian they stand for.

    x ~ N(μ, C) ,    C = Σ_i (λ_i − σ²) w_i w_iᵀ + σ² I ,    σ² the mean variance of the directions that are left out

Names and units are scikit-learn's: variances are divided by n − 1, `eigenvalues_` by n.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
import scipy.linalg as la
from numpy.typing import ArrayLike, NDArray

from discrim.core.eigen import with_fixed_signs
from discrim.core.problem import Problem
from discrim.estimators.base import Reducer, Solution, fitted_property
from discrim.tables.rows import block_slices, dense_block
from discrim.tables.validation import require_representable

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False, kw_only=True)
class PrincipalSolution(Solution):
    """Of principal components also: how many directions without any variance follow them."""

    surplus: int = 0

    def lifted(self, problem: Problem) -> Self:
        """Return the same in the features."""
        found = super().lifted(problem)
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
    """Orthonormal rows, orthogonal to given orthonormal ones: of the axes, those that these leave most of."""
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

    @fitted_property
    def n_samples_(self) -> int:
        """How many rows of positive weight came."""
        return self.n_samples_seen_

    @fitted_property
    def explained_variance_(self) -> NDArray[Any]:
        """Variance along each component, divided by n − 1."""
        n = self._counted
        return (self.eigenvalues_ * (n / max(n - 1, 1))).astype(self.components_.dtype)

    @fitted_property
    def singular_values_(self) -> NDArray[Any]:
        """Length of each component's scores over the rows of the fit."""
        return np.sqrt(np.maximum(self.eigenvalues_, 0.0) * self._total_weight).astype(self.components_.dtype)


class GaussianComponents(PrincipalVariances):
    """The leading components, which with equal noise along all other directions are a Gaussian model of the rows."""

    @fitted_property
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
        """λ_i, nowhere below the noise."""
        n = self._counted
        return np.maximum(self.eigenvalues_ * (n / max(n - 1, 1)), self.noise_variance_)

    def get_covariance(self) -> NDArray[Any]:
        """The covariance of the Gaussian model.

        Returns
        -------
        covariance : array of shape (n_features, n_features)
            Σ_i (λ_i − σ²) w_i w_iᵀ + σ² I.
        """
        self._require_solution()
        return self._spectral(self._model_variances(), self.noise_variance_)

    def get_precision(self) -> NDArray[Any]:
        """The inverse of that covariance.

        Returns
        -------
        precision : array of shape (n_features, n_features)
            Its inverse; the pseudo-inverse where the model leaves no variance to some directions.
        """
        self._require_solution()
        return self._spectral(_inverse(self._model_variances()), float(_inverse(np.array(self.noise_variance_))))

    def _spectral(self, along: Array, elsewhere: float) -> NDArray[Any]:
        """The matrix with these eigenvalues along the components, and one along all other directions."""
        W = self.components_.astype(np.float64)
        return ((W.T * (along - elsewhere)) @ W + elsewhere * np.eye(W.shape[1])).astype(self.components_.dtype)

    def score_samples(self, X: ArrayLike) -> NDArray[Any]:
        """Log likelihood of each row under the Gaussian model.

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
        """Mean log likelihood of the rows under the Gaussian model.

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


def _inverse(variances: Array) -> Array:
    return np.divide(1.0, variances, out=np.zeros_like(variances), where=variances > 0)
