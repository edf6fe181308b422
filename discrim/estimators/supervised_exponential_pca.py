"""Supervised exponential-family PCA: shared factors of rows and labels without local minima."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy.linalg as la
from numpy.typing import NDArray

from discrim.core.alternating import CentredRows
from discrim.core.convex_factors import SharedFactors, least_factors
from discrim.decompositions import svd
from discrim.estimators.factor_reducer import FactorReducer, FactorSolution
from discrim.tables.fit_messages import require_few_rows

Array = NDArray[np.float64]
MOST_ROWS = 2_000  # different ones: each step is an eigendecomposition of that size


@dataclass(frozen=True, eq=False, kw_only=True)
class ConvexFactors(FactorSolution):
    """With the eigenvalues of M."""

    factor_weights_: Array


class SupervisedExponentialPCA(FactorReducer):
    """Supervised exponential-family PCA (SEPCA): shared factors of rows and labels as a convex problem.

        minimise  −(1/2n) tr XᵀM(M + βI)⁻¹X + min_V [ (α/n) Σ_i ℓ(y_i, √n·z_iV) + (β/2)‖V‖² ] ,   M = ZZᵀ

    subject to 0 ⪯ M ⪯ I and tr M = k. ℓ is the multinomial logistic loss; the first part is the ridge regression of the
    rows on Z. Both are convex in M, so the minimum does not depend on the start. Z are the k leading eigenvectors of M;
    the directions span ZᵀX, and features are projections on them. M is n×n: up to 2,000 different rows. Use it for
    comparison; LogisticPCA minimises a similar objective by alternating steps, for any number of rows.

    Parameters
    ----------
    n_components : int, float or None, default=None
        How many factors; a fraction in (0, 1) keeps the fewest that reach that share of the eigenvalues of None, None
        for C − 1 (at most the rank).
    label_weight : float, default=1.0
        α: what the labels' loss counts beside the rows' reconstruction. Rows are centred and divided by one number
        (mean square length 1), so that it means the same on every table.
    penalty : float, default=1.0
        β: on the weights that lead from factors to rows and labels.
    tol : float, default=1e-7
        Share of the objective below which a step's gain ends the search.
    max_iter : int, default=200
        Most steps.

    Attributes
    ----------
    components_ : array of shape (n_components_, n_features)
        The directions, turned to the principal axes of the rows in their span, orthonormal rows.
    eigenvalues_ : array of shape (n_components_,)
        Variance of the rows along each direction.
    explained_variance_ratio_ : array of shape (n_components_,)
        Each direction's share of the total variance.
    objective_ : array of shape (n_iter_ + 1,)
        What is minimised, at the start and after every step; it never rises.
    factor_weights_ : array
        Eigenvalues of M that are not 0, largest first: k ones where the relaxation is tight.
    n_iter_ : int
        How many steps there were.
    {fitted_with_vip}

    References
    ----------
    Y. Guo, "Supervised exponential family principal component analysis via convex optimization", Advances in Neural
    Information Processing Systems 21 (2008): the relaxation 0 ⪯ M ⪯ I, tr M = k. Here for Gaussian rows and multinomial
    labels, by projected steps instead of a bundle method; docs/company.md says what was settled.

    Examples
    --------
    >>> from sklearn.datasets import load_wine
    >>> from sklearn.preprocessing import scale
    >>> from discrim import SupervisedExponentialPCA
    >>> X, y = load_wine(return_X_y=True)
    >>> SupervisedExponentialPCA(n_components=2).fit(scale(X)[::3], y[::3]).components_.shape
    (2, 13)
    """

    def __init__(
        self,
        n_components: int | float | None = None,
        *,
        label_weight: float = 1.0,
        penalty: float = 1.0,
        tol: float = 1e-7,
        max_iter: int = 200,
    ) -> None:
        super().__init__(n_components, label_weight=label_weight, penalty=penalty, tol=tol, max_iter=max_iter)

    def _factors(self, rows: CentredRows, means: Array, axes: Array, k: int) -> FactorSolution:
        require_few_rows(type(self).__name__, len(rows.codes), MOST_ROWS)
        roots = np.sqrt(rows.weights)
        scaled = roots[:, None] * rows.dense()
        alpha, beta = float(self.label_weight), float(self.penalty)
        problem = SharedFactors(scaled @ scaled.T, roots, rows.codes, rows.n_classes, alpha, beta)
        found = least_factors(problem, k, tol=float(self.tol), max_iter=int(self.max_iter))
        span = la.qr((found.vectors[:, :k].T @ scaled).T, mode="economic")[0].T
        _, singular, turn = svd(scaled @ span.T)
        return ConvexFactors(
            components_=turn @ span,
            eigenvalues_=singular**2,
            explained_variance_ratio_=singular**2,
            rank_=len(axes),
            solver_=f"{k} factors of {len(rows.codes)} different rows by a convex problem",
            objective_=found.objective,
            n_iter_=len(found.objective) - 1,
            is_settled=found.is_settled,
            factor_weights_=found.values[found.values > 1e-9],
        )
