"""Regularised linear discriminant analysis."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import scipy.linalg as la
from numpy.typing import ArrayLike, NDArray
from scipy.sparse.linalg import LinearOperator

from discrim.data.check_parameters import requested_count
from discrim.data.findings import require_different_means, require_some_spread, require_within_spread
from discrim.data.rows import LabelledRows, block_slices
from discrim.moments.class_moments import ClassMoments
from discrim.objectives.ratio import Ratio, means_differ
from discrim.objectives.spread import Spread
from discrim.reducers.base import Solution
from discrim.reducers.discriminant import Posed
from discrim.reducers.shrunk_discriminant import ShrunkDiscriminant, shrunk_discriminants
from discrim.solve.basis import Basis
from discrim.solve.count import discriminant_count
from discrim.solve.discriminants import RANK, Discriminants, complement_by_products
from discrim.solve.products import conjugate_gradients
from discrim.solve.shrinkage_path import PATH, PathScores, score_path

Array = NDArray[np.float64]
FEW_COLUMNS = 64  # up to here a trace by products is summed column by column
PROBES = 16  # otherwise from so many vectors of random signs


class RegularizedLDA(ShrunkDiscriminant):
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
        return "cv" if self._searches_count else requested_count(self.n_components, also='"cv"')

    def _discriminants(self, ratio: Ratio, moments: ClassMoments, basis: Basis) -> Discriminants:
        gamma, count, path = self._chosen(ratio, moments, basis)
        found = shrunk_discriminants(ratio, gamma, moments.precision, type(self).__name__)
        return replace(found, count=count, details={"shrinkage": gamma, "path": path})

    def _chosen(self, ratio: Ratio, moments: ClassMoments, basis: Basis) -> tuple[float, int | None, PathScores | None]:
        """The shrinkage, the number of components where that is chosen too, and the path that was searched."""
        search_count = self._searches_count
        if self.shrinkage != "cv":
            gamma = self._fixed_shrinkage(ratio, moments, basis)
            if not search_count:
                return gamma, None, None
        tried = PATH if self.shrinkage == "cv" else np.array([gamma])
        path = score_path(self._folds(basis), tried, self.priors, every_count=search_count)
        gamma, k = path.best()
        return gamma, k if search_count else None, path

    def _solve(self, basis: Basis, moments: ClassMoments, request: Any) -> Solution:
        if not basis.as_operator:
            return super()._solve(basis, moments, request)
        system = RidgeSystem.of(moments, basis, float(self.shrinkage))
        posed, found = ridge_discriminants(system, moments, request, self.n_features_in_)
        return self._solution(posed, found, moments, basis)


@dataclass(frozen=True, eq=False)
class RidgeSystem:
    """Σ_γ = (1−γ) S_w/n + ridge·I as products with the rows only, and H, whose rows are √(n_c/n) (μ_c − μ)."""

    within: LinearOperator
    total: LinearOperator
    means: Array
    gamma: float
    ridge: float
    diagonal: Array
    rank: int

    @classmethod
    def of(cls, moments: ClassMoments, basis: Basis, gamma: float) -> RidgeSystem:
        points, n = basis.points, moments.total_weight
        shares = moments.weights / n
        means = np.sqrt(shares)[:, None] * moments.centred_means()
        within, total = (Spread(np.full(len(shares), 1 / n), extra) for extra in (means[:0], means))
        variances = basis.feature_variances(moments)
        # but for collinear rows and columns, which no product shows
        rank = min(_n_different_rows(points) - 1, int((variances > 0).sum()))
        require_some_spread(rank, *points.shape)
        require_different_means(means_differ(means, variances))
        trace = within.trace(moments, points)
        require_within_spread(trace)
        ridge = gamma * trace / rank
        product, of_total = within.operator(moments, points), total.operator(moments, points)
        return cls(product, of_total, means, gamma, ridge, (1 - gamma) * variances + ridge, rank)

    def solved(self, B: Array) -> Array:
        """Σ_γ⁻¹B by conjugate gradients."""
        return conjugate_gradients(
            lambda V: (1 - self.gamma) * self.within.matmat(V) + self.ridge * V, B, self.diagonal
        )

    def trace_of_quotient(self) -> float:
        """tr(Σ_γ⁻¹ S_w/n): to all digits for few columns, else from random signs, the same at every call."""
        size = len(self.diagonal)
        if size <= FEW_COLUMNS:
            probes = np.eye(size)
        else:
            probes = np.random.default_rng(0).choice([-1.0, 1.0], (size, PROBES)) / np.sqrt(PROBES)
        return float(np.vdot(self.solved(probes), self.within.matmat(probes)))


def _n_different_rows(points: LabelledRows) -> int:
    """Counted by the rows' sums with random weights: equal rows have the same, to the last digit."""
    weights = np.random.default_rng(0).uniform(1, 2, points.shape[1])
    if points.is_sparse:
        return len(np.unique(points.X @ weights))
    sums = [(points.X[part] * weights).sum(axis=1) for part in block_slices(*points.shape)]
    return len(np.unique(np.concatenate(sums)))


def ridge_discriminants(
    system: RidgeSystem, moments: ClassMoments, request: Any, n_features: int
) -> tuple[Posed, Discriminants]:
    """Discriminants with a fixed ridge by products with the rows only.

    With Y = Σ_γ⁻¹Hᵀ and HY = Q Λ Qᵀ, the rows of Λ^−½ Qᵀ Yᵀ are the discriminants.
    """
    Y = system.solved(system.means.T)
    values, vectors = la.eigh(system.means @ Y)
    kept = values > RANK * values[-1]
    values, directions = values[kept][::-1], (vectors[:, kept] / np.sqrt(values[kept])).T[::-1] @ Y.T
    k = discriminant_count(request, values, system.rank, (moments.n_rows, n_features))
    how = f"{len(values)} discriminants by conjugate gradients"
    chosen = directions[:k]
    if k > len(values):
        pads = complement_by_products(directions, system.total, k - len(values))
        deviations = np.sqrt(np.einsum("kd,dk->k", pads, system.within.matmat(pads.T)))
        chosen = np.concatenate([directions, pads / deviations[:, None]])
    posed = Posed(chosen, directions, system.total.matmat(chosen.T).T, system.rank, how)
    return posed, Discriminants(directions, values, details={"shrinkage": system.gamma, "path": None})
