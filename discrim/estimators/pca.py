"""Principal components, exact in one pass."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from discrim.core.coordinates.basis import Basis
from discrim.core.count import kept_count, likeliest_count
from discrim.core.eigen import Spectrum
from discrim.core.moments.class_moments import ClassMoments
from discrim.core.problem import Needs, Problem
from discrim.core.spread import Spread, total_spread
from discrim.estimators.base import Solution
from discrim.estimators.principal import GaussianComponents, PrincipalSolution
from discrim.estimators.spread_reducer import SpreadReducer
from discrim.tables.check_parameters import COUNT, FLAG, GAPS, Constraints, named
from discrim.tables.fit_messages import refuse_mle


class PCA(GaussianComponents, SpreadReducer):
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

    def _spread(self, moments: ClassMoments, basis: Basis) -> Spread:
        return total_spread(moments)

    def _solve(self, problem: Problem) -> Solution:
        found = super()._solve(problem)
        surplus = problem.request - len(found.components_) if isinstance(problem.request, int) else 0
        return PrincipalSolution(**vars(found), surplus=surplus)

    def _count(self, request: int | float | None, spectrum: Spectrum, shape: tuple[int, int]) -> int:
        if isinstance(self.n_components, str) and spectrum.rank > 0:
            if shape[0] < shape[1]:
                refuse_mle(*shape)
            return likeliest_count(spectrum.values / spectrum.values[0], spectrum.rank, shape[0])
        if isinstance(request, int) and spectrum.rank < request <= min(shape):
            request = spectrum.rank
        return kept_count(request, spectrum.values, spectrum.total, spectrum.rank, shape)

    def _features(self, scores: NDArray[Any]) -> NDArray[Any]:
        return scores / self._units() if self.whiten else scores

    def _components_of(self, features: NDArray[Any]) -> NDArray[Any]:
        return features * self._units() if self.whiten else features

    def _units(self) -> NDArray[Any]:
        """Deviation along each component, 1 where there is none."""
        deviations = np.sqrt(self.explained_variance_)
        return np.where(deviations > 0, deviations, deviations.dtype.type(1))
