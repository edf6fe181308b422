"""Factor models: rows described by few factors that also predict the labels."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
import scipy.linalg as la
from numpy.typing import NDArray
from scipy.linalg import helmert
from sklearn.exceptions import ConvergenceWarning

from discrim.core.discriminants import principal
from discrim.core.eigen import default_count, independent, kept_count
from discrim.core.factors import (
    Alternation,
    CentredRows,
    HingeLoss,
    JointCovariance,
    LogisticLoss,
    Loss,
    SharedFactors,
    fitted_factors,
    minimise_factors,
)
from discrim.core.problem import Needs, Problem
from discrim.core.spread import total_spread
from discrim.decompositions import eigh, svd
from discrim.estimators.base import Reducer
from discrim.estimators.fitting import solved
from discrim.estimators.solution import BEYOND_RANGE, Solution
from discrim.tables.check_parameters import COUNT, POSITIVE, Constraints, whole
from discrim.warn_once import warn

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False, kw_only=True)
class FactorSolution(Solution):
    """Solution with the course of the objective; `explained_variance_ratio_` holds the variances."""

    objective_: Array
    n_iter_: int
    is_settled: bool


class FactorReducer(Reducer):
    """Base class for methods that describe rows by few factors; `_factors` computes them."""

    _parameter_constraints: ClassVar[Constraints] = {
        "n_components": COUNT,
        "label_weight": POSITIVE,
        "penalty": POSITIVE,
        "tol": POSITIVE,
        "max_iter": (whole(1),),
    }

    def __init__(
        self,
        n_components: int | float | None = None,
        *,
        label_weight: float = 1.0,
        penalty: float = 0.01,
        tol: float = 1e-5,
        max_iter: int = 200,
    ) -> None:
        super().__init__(n_components)
        self.label_weight = label_weight
        self.penalty = penalty
        self.tol = tol
        self.max_iter = max_iter

    @abstractmethod
    def _factors(self, rows: CentredRows, means: Array, axes: Array, k: int) -> FactorSolution:
        """Compute k factors of rows of mean square length 1, given their class means and principal axes (unit rows)."""

    def _needs(self) -> Needs:
        rows = "a fit needs all rows at once, because each row has its own factors. Use fit."
        return Needs(contrasts=True, rows=rows)

    def _solve(self, problem: Problem) -> Solution:
        basis, moments, request, shape = problem.basis, problem.moments, problem.request, problem.shape
        n_classes = len(moments.weights)
        wanted = request if isinstance(request, int) else n_classes - 1
        spectrum = problem.spectrum(total_spread(moments), wanted + 1)
        k = default_count(request, n_classes, spectrum.rank, shape)
        variance = spectrum.total / moments.total_weight
        rows = CentredRows.of(basis, moments, float(np.sqrt(variance)))
        means, axes = principal(moments.between_rows())[1][: n_classes - 1], spectrum.directions[: spectrum.rank]
        found = self._factors(rows, means, axes, k)
        shares = found.explained_variance_ratio_
        if isinstance(request, float):
            found = self._factors(rows, means, axes, kept_count(request, shares, float(shares.sum()), k, shape))
        if not found.is_settled:
            warn(
                f"{type(self).__name__} was still improving after max_iter={self.max_iter} rounds, so its directions "
                "are not final. Pass a larger max_iter, or a larger tol.",
                ConvergenceWarning,
            )
        return replace(
            found,
            eigenvalues_=moments.in_squared_units(found.explained_variance_ratio_ * variance),
            rank_=spectrum.rank,
            solver_=f"{found.solver_}, from {spectrum.how}",
            is_resolved=basis.is_resolved,
        )


@dataclass(frozen=True, eq=False, kw_only=True)
class ClassifiedFactors(FactorSolution):
    """Factors with the classifier fitted together with them."""

    class_coef_: Array
    class_intercept_: Array

    def _others_in_features(self, lifted: list[Array], signs: Array, deviations: Array) -> dict[str, Any]:
        if not np.isfinite(self.class_coef_).all():
            raise ValueError(BEYOND_RANGE.format(np.dtype(np.float64)))
        return {"class_coef_": self.class_coef_ * signs}


class AlternatingReducer(FactorReducer):
    """Base class: min Σ(w_i/n)[‖x_i − z_iW‖² + α·loss(y_i, z_iV + v_0)] + β‖V‖², WWᵀ = I; `_loss` is the loss."""

    @property
    @abstractmethod
    def _loss(self) -> Loss:
        """Loss of a wrong label."""

    def _factors(self, rows: CentredRows, means: Array, axes: Array, k: int) -> FactorSolution:
        """Minimise from the principal axes, and from the class means followed by these; return the better result."""
        _, rest = independent(means, axes, max(0, k - len(means)))
        starts = [axes[:k], np.concatenate([means, rest])[:k]]
        task = Alternation(rows, self._loss, float(self.label_weight), float(self.penalty))
        steps: dict[str, Any] = {"tol": float(self.tol), "max_iter": int(self.max_iter)}
        tried = [task.minimise(start, **steps) for start in starts if len(start) == k]
        found = min(tried, key=lambda one: float(one.values[-1]))
        # F is invariant to a joint rotation of W, Z and V: rotate to the principal axes of the rows in their span
        projections = rows.project(found.W)
        values, vectors = eigh(projections.T @ (rows.weights[:, None] * projections))
        turn, shares = vectors.T[::-1], np.maximum(values[::-1], 0.0)
        with np.errstate(over="ignore"):
            coefficients = (turn @ found.V[:-1]).T * rows.factor
        return ClassifiedFactors(
            components_=turn @ found.W,
            eigenvalues_=shares,
            explained_variance_ratio_=shares,
            rank_=len(axes),
            solver_=f"{k} factors by alternating convex minimisation",
            objective_=found.values,
            n_iter_=len(found.values) - 1,
            is_settled=found.is_settled,
            class_coef_=coefficients,
            class_intercept_=found.V[-1],
        )


class LogisticPCA(AlternatingReducer):
    """Logistic PCA (supervised reduction with GLMs, SDR-GLM): factors that reconstruct the rows and predict the labels.

        minimise  Σ_i (1/n) [ ‖x_i − z_iW‖² + α·ℓ(y_i, z_iV + v_0) ] + β‖V‖² ,   WWᵀ = I ,   ℓ = −ln softmax(s)_y

    Rows are described by few factors, from which a multinomial logistic regression predicts the labels. The features
    (x − mean)Wᵀ use only the reconstruction, for training rows and new rows alike. The objective is not convex. Each
    step is, the objective never rises, and the better of two starts is kept (principal axes; class means first). Use it
    if the features should also reconstruct the rows; for accuracy alone, RegularizedLDA has no weight to choose.

    Parameters
    ----------
    {alternating}

    Attributes
    ----------
    components_: W, rotated to the principal axes of the rows in its span; orthonormal rows.
    {alternating_factors}

    References
    ----------
    Rish, Grabarnik, Cecchi, Pereira and Gordon, "Closed-form supervised dimensionality reduction with generalized
    linear models" (2008), for Gaussian rows and multinomial labels; here with orthonormal W, and exact steps.

    Examples
    --------
    >>> from sklearn.datasets import load_wine
    >>> from sklearn.preprocessing import scale
    >>> from discrim import LogisticPCA
    >>> X, y = load_wine(return_X_y=True)
    >>> LogisticPCA(n_components=2).fit(scale(X), y).components_.shape
    (2, 13)
    """

    _loss = LogisticLoss()

    def __init__(
        self,
        n_components: int | float | None = None,
        *,
        label_weight: float = 3.0,
        penalty: float = 0.01,
        tol: float = 1e-5,
        max_iter: int = 200,
    ) -> None:
        super().__init__(n_components, label_weight=label_weight, penalty=penalty, tol=tol, max_iter=max_iter)


class SupportVectorDecomposition(AlternatingReducer):
    """Support vector decomposition machine (SVDM): factors of the rows that separate classes with a margin.

        minimise  Σ_i (1/n) [ ‖x_i − z_iW‖² + α·ℓ(y_i, z_iV + v_0) ] + β‖V‖² ,   WWᵀ = I ,   ℓ = Σ_c h(1 ∓ s_c)

    Rows are described by few factors, from which a linear SVM per class predicts the labels. The features (x − mean)Wᵀ
    use only the reconstruction, for training rows and new rows alike. The objective is not convex. Each step is, the
    objective never rises, and the better of two starts is kept (principal axes; class means first). Use it if the
    features should also reconstruct the rows; for accuracy alone, MarginSubspace has no weight to choose.

    h is the hinge max(0, g), smoothed over 0 < g < ¼, because alternating steps could stop at its kink.

    Parameters
    ----------
    {alternating}

    Attributes
    ----------
    components_: W, rotated to the principal axes of the rows in its span; orthonormal rows.
    {alternating_factors}

    References
    ----------
    Pereira and Gordon, "The support vector decomposition machine" (2006), its objective and alternating steps; here
    with orthonormal W, a ridge instead of bounds on the rows of Z and V, and a smoothed hinge.

    Examples
    --------
    >>> from sklearn.datasets import load_wine
    >>> from sklearn.preprocessing import scale
    >>> from discrim import SupportVectorDecomposition
    >>> X, y = load_wine(return_X_y=True)
    >>> SupportVectorDecomposition(n_components=2).fit(scale(X), y).components_.shape
    (2, 13)
    """

    _loss = HingeLoss()


@dataclass(frozen=True, eq=False)
class Likelihood:
    """Noise variances and likelihood of the model."""

    noise_variance_: float
    label_noise_variance_: float
    log_likelihood_: float


class SupervisedProbabilisticPCA(Reducer):
    """Supervised probabilistic PCA (SPPCA): factors shared by rows and labels, by maximum likelihood.

        x = W_x z + ε_x ,  u = W_y z + ε_y ,   z ~ N(0, I),  ε_x ~ N(0, σ_x²I),  ε_y ~ N(0, σ_y²I) ;   features E[z | x]

    u are the labels in C − 1 orthonormal contrasts (one-hot labels would have an unbounded likelihood); both noise
    variances are at least 1e-6 of the mean variance. Labels act as additional columns, weighted by the noise variances.
    The model is fitted to the class moments, so its cost does not depend on the number of rows. The limit of EM is
    computed directly, as the best of a one-parameter family of eigenproblems. Use it if you need a generative model
    (likelihoods, noise); for accuracy with few components, discriminants are better.

    Parameters
    ----------
    n_components: Number of factors. None uses the number of label contrasts, C − 1 (at most the rank); a fraction in
        (0, 1) keeps the fewest of these that reach this share of their eigenvalues.

    Attributes
    ----------
    components_: (W_xᵀW_x/σ_x² + I)⁻¹W_xᵀ/σ_x², one row per factor.
    eigenvalues_: Joint variance of rows and labels along each factor, relative to their noise, in the unit of the rows.
    explained_variance_ratio_: Share of that variance explained by each factor.
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

    noise_variance_: float = solved()
    label_noise_variance_: float = solved()
    log_likelihood_: float = solved()

    def _needs(self) -> Needs:
        return Needs(directions="all", matrix="SupervisedProbabilisticPCA needs the variance of every direction")

    def _solve(self, problem: Problem) -> Solution:
        moments, request, shape = problem.moments, problem.request, problem.shape
        spectrum = problem.spectrum(total_spread(moments), None)
        rank = spectrum.rank
        k = default_count(request, len(moments.weights), rank, shape)
        span = spectrum.directions[:rank]
        shares = moments.weights / moments.total_weight
        contrasts = helmert(len(shares)).T  # C×(C−1): u_c
        centred = contrasts - shares @ contrasts
        means, labels = moments.centred_means() @ span.T, shares[:, None] * centred
        variances = spectrum.values[:rank] / moments.total_weight
        covariance = JointCovariance(variances, means.T @ labels, centred.T @ labels)
        found = fitted_factors(covariance, k)
        if isinstance(request, float):
            k = kept_count(request, found.values, float(found.values.sum()), k, shape)
            found = fitted_factors(covariance, k)
        noise = float(moments.in_squared_units(np.array([found.noise]))[0])
        # of the density, from the units of the moments to those of the rows
        unit = rank * moments.exponent * float(np.log(2))
        return Solution(
            components_=moments.scaled(found.row_features(rank) @ span),
            eigenvalues_=moments.in_squared_units(found.values),
            explained_variance_ratio_=found.values / covariance.trace(found.s),
            rank_=rank,
            solver_=f"{k} factors of rows and labels, from the spectrum of their covariance",
            is_resolved=problem.basis.is_resolved,
            found=Likelihood(noise, found.noise / found.s**2, -0.5 * found.deviance - unit),
        )


MAX_ROWS = 2_000  # distinct rows: each step is an eigendecomposition of that size


@dataclass(frozen=True, eq=False, kw_only=True)
class ConvexFactors(FactorSolution):
    """Factors with the eigenvalues of M."""

    factor_weights_: Array


class SupervisedExponentialPCA(FactorReducer):
    """Supervised exponential-family PCA (SEPCA): shared factors of rows and labels as a convex problem.

        minimise  −(1/2n) tr XᵀM(M + βI)⁻¹X + min_V [ (α/n) Σ_i ℓ(y_i, √n·z_iV) + (β/2)‖V‖² ] ,   M = ZZᵀ

    subject to 0 ⪯ M ⪯ I and tr M = k. ℓ is the multinomial logistic loss; the first part is the ridge regression of the
    rows on Z. Both are convex in M, so the minimum does not depend on the start. Z are the k leading eigenvectors of M.
    The directions span ZᵀX, and features are projections onto them. M is n×n, so at most 2,000 distinct rows are
    allowed. Use it for comparison; LogisticPCA minimises a similar objective by alternating steps, for any number of
    rows.

    Parameters
    ----------
    {factor_count}
    {label_weight}
    penalty: Penalty β on the weights that map factors to rows and labels.
    tol: Relative decrease of the objective per step below which to stop.
    max_iter: Maximum number of steps.

    Attributes
    ----------
    components_: Directions, rotated to the principal axes of the rows in their span; orthonormal rows.
    {variances}
    objective_: Objective at the start and after every step; it never rises.
    factor_weights_ : array
        Nonzero eigenvalues of M, largest first: k ones if the relaxation is tight.
    n_iter_: Number of steps.
    {fitted_with_vip}

    References
    ----------
    Y. Guo, "Supervised exponential family principal component analysis via convex optimization", Advances in Neural
    Information Processing Systems 21 (2008): the relaxation 0 ⪯ M ⪯ I, tr M = k. Here for Gaussian rows and multinomial
    labels, by projected gradient steps instead of a bundle method; docs/related_methods.md lists the choices made.

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
        if len(rows.codes) > MAX_ROWS:
            raise ValueError(
                f"X must have at most {MAX_ROWS:,} distinct rows, because SupervisedExponentialPCA solves for a matrix "
                f"of that size; got {len(rows.codes):,}. Fit it to a sample of the rows, or use LogisticPCA."
            )
        roots = np.sqrt(rows.weights)
        scaled = roots[:, None] * rows.dense()
        alpha, beta = float(self.label_weight), float(self.penalty)
        problem = SharedFactors(scaled @ scaled.T, roots, rows.codes, rows.n_classes, alpha, beta)
        found = minimise_factors(problem, k, tol=float(self.tol), max_iter=int(self.max_iter))
        span = la.qr((found.vectors[:, :k].T @ scaled).T, mode="economic")[0].T
        _, singular, turn = svd(scaled @ span.T)
        return ConvexFactors(
            components_=turn @ span,
            eigenvalues_=singular**2,
            explained_variance_ratio_=singular**2,
            rank_=len(axes),
            solver_=f"{k} factors of {len(rows.codes)} distinct rows by a convex problem",
            objective_=found.objective,
            n_iter_=len(found.objective) - 1,
            is_settled=found.is_settled,
            factor_weights_=found.values[found.values > 1e-9],
        )
