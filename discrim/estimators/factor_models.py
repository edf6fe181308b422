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

from discrim.core.alternating import CentredRows, Factors, HingeLoss, LogisticLoss, Loss, alternated
from discrim.core.coordinates.basis import Basis
from discrim.core.discriminants import principal
from discrim.core.eigen import default_count, independent, kept_count
from discrim.core.joint_factors import JointCovariance, SharedFactors, fitted_factors, least_factors
from discrim.core.moments.class_moments import ClassMoments
from discrim.core.problem import Needs, Problem
from discrim.core.spread import total_spread
from discrim.decompositions import eigh, svd
from discrim.estimators.base import Reducer
from discrim.estimators.fitting import solved
from discrim.estimators.solution import BEYOND_RANGE, Solution
from discrim.tables.check_parameters import COUNT, POSITIVE, Constraints, whole
from discrim.tables.warn_once import warn

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False, kw_only=True)
class FactorSolution(Solution):
    """Of factors also how what is minimised fell; `explained_variance_ratio_` tells the variances."""

    objective_: Array
    n_iter_: int
    is_settled: bool


class FactorReducer(Reducer):
    """Directions of rows that are few factors; `_factors` states how they are found."""

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
        """Compute k of them, of rows of mean square length 1 with these class means and principal axes (unit rows)."""

    def _needs(self) -> Needs:
        rows = "each row has factors of its own, so that a fit needs all rows at once. Use fit."
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
                f"{type(self).__name__} still improved after max_iter={self.max_iter} rounds, so that its directions "
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
    """With the classifier that was fitted with them."""

    class_coef_: Array
    class_intercept_: Array

    def _others_in_features(self, basis: Basis, signs: Array, deviations: Array) -> dict[str, Any]:
        if not np.isfinite(self.class_coef_).all():
            raise ValueError(BEYOND_RANGE.format(np.dtype(np.float64)))
        return {"class_coef_": self.class_coef_ * signs}


class AlternatingReducer(FactorReducer):
    """min Σ(w_i/n)[‖x_i − z_iW‖² + α·loss(y_i, z_iV + v_0)] + β‖V‖²,  WWᵀ = I;  `_loss` states the loss."""

    @property
    @abstractmethod
    def _loss(self) -> Loss:
        """What a wrong label costs."""

    def _factors(self, rows: CentredRows, means: Array, axes: Array, k: int) -> FactorSolution:
        """Descend from the principal axes, and from those of the class means before them; keep the lower."""
        _, rest = independent(means, axes, max(0, k - len(means)))
        starts = [axes[:k], np.concatenate([means, rest])[:k]]
        tried = [self._descended(rows, start) for start in starts if len(start) == k]
        found = min(tried, key=lambda one: float(one.values[-1]))
        # F is the same for every rotation of W, Z and V together: to the principal axes of the rows in their span
        along = rows.along(found.W)
        values, vectors = eigh(along.T @ (rows.weights[:, None] * along))
        turn, shares = vectors.T[::-1], np.maximum(values[::-1], 0.0)
        with np.errstate(over="ignore"):
            coefficients = (turn @ found.V[:-1]).T * rows.factor
        return ClassifiedFactors(
            components_=turn @ found.W,
            eigenvalues_=shares,
            explained_variance_ratio_=shares,
            rank_=len(axes),
            solver_=f"{k} factors by convex steps in turn",
            objective_=found.values,
            n_iter_=len(found.values) - 1,
            is_settled=found.is_settled,
            class_coef_=coefficients,
            class_intercept_=found.V[-1],
        )

    def _descended(self, rows: CentredRows, start: Array) -> Factors:
        alpha, beta = float(self.label_weight), float(self.penalty)
        return alternated(rows, start, self._loss, alpha, beta, tol=float(self.tol), max_iter=int(self.max_iter))


class LogisticPCA(AlternatingReducer):
    """Logistic PCA (supervised reduction with GLMs, SDR-GLM): factors that give rows and labels back.

        minimise  Σ_i (1/n) [ ‖x_i − z_iW‖² + α·ℓ(y_i, z_iV + v_0) ] + β‖V‖² ,   WWᵀ = I ,   ℓ = −ln softmax(s)_y

    Rows are described by few factors from which a multinomial logistic regression also predicts the labels.
    Features are those of the reconstruction alone, (x − mean)Wᵀ, for training rows and new ones alike. The
    objective is not convex: each step is, it never rises, and the lower of two starts is kept (principal axes;
    class means first). Use it where the features are to give the rows back as well; for accuracy alone
    RegularizedLDA needs no weight to be chosen.

    Parameters
    ----------
    n_components : int, float or None, default=None
        How many factors; a fraction in (0, 1) keeps the fewest that reach that share of the eigenvalues of None, None
        for C − 1 (at most the rank).
    label_weight : float, default=3.0
        α: what the labels' loss counts beside the rows' reconstruction. Rows are centred and divided by one number
        (mean square length 1), so that it means the same on every table.
    penalty : float, default=0.01
        β: on the classifier's weights; without it there is no minimum where classes can be separated.
    tol : float, default=1e-5
        Share of the objective below which a round's gain ends the search.
    max_iter : int, default=200
        Most rounds.

    Attributes
    ----------
    components_ : array of shape (n_components_, n_features)
        W turned to the principal axes of the rows in its span, orthonormal rows.
    eigenvalues_ : array of shape (n_components_,)
        Variance of the rows along each direction.
    explained_variance_ratio_ : array of shape (n_components_,)
        Each direction's share of the total variance.
    class_coef_ : array of shape (n_classes, n_components_)
        The classifier's weights on the features.
    class_intercept_ : array of shape (n_classes,)
        Its constants.
    objective_ : array of shape (n_iter_ + 1,)
        What is minimised, at the start and after every round; it never rises.
    n_iter_ : int
        How many rounds there were.
    {fitted_with_vip}

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

    Rows are described by few factors from which a linear SVM for each class also predicts the labels. Features are
    those of the reconstruction alone, (x − mean)Wᵀ, for training rows and new ones alike. The objective is not
    convex: each step is, it never rises, and the lower of two starts is kept (principal axes; class means first).
    Use it where the features are to give the rows back as well; for accuracy alone MarginSubspace needs no weight
    to be chosen.

    h is the hinge max(0, g) with its kink rounded off over 0 < g < ¼, at which steps in turn could lock.

    Parameters
    ----------
    n_components : int, float or None, default=None
        How many factors; a fraction in (0, 1) keeps the fewest that reach that share of the eigenvalues of None, None
        for C − 1 (at most the rank).
    label_weight : float, default=1.0
        α: what the labels' loss counts beside the rows' reconstruction. Rows are centred and divided by one number
        (mean square length 1), so that it means the same on every table.
    penalty : float, default=0.01
        β: on the classifier's weights; without it there is no minimum where classes can be separated.
    tol : float, default=1e-5
        Share of the objective below which a round's gain ends the search.
    max_iter : int, default=200
        Most rounds.

    Attributes
    ----------
    components_ : array of shape (n_components_, n_features)
        W turned to the principal axes of the rows in its span, orthonormal rows.
    eigenvalues_ : array of shape (n_components_,)
        Variance of the rows along each direction.
    explained_variance_ratio_ : array of shape (n_components_,)
        Each direction's share of the total variance.
    class_coef_ : array of shape (n_classes, n_components_)
        The classifier's weights on the features.
    class_intercept_ : array of shape (n_classes,)
        Its constants.
    objective_ : array of shape (n_iter_ + 1,)
        What is minimised, at the start and after every round; it never rises.
    n_iter_ : int
        How many rounds there were.
    {fitted_with_vip}

    References
    ----------
    Pereira and Gordon, "The support vector decomposition machine" (2006), its objective and alternating steps; here
    with orthonormal W, a ridge instead of bounds on the rows of Z and V, and the kink rounded off.

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
    """Return the covariance of rows along the principal directions and of labels in contrasts."""
    shares = moments.weights / moments.total_weight
    contrasts = helmert(len(shares)).T  # C×(C−1): u_c
    centred = contrasts - shares @ contrasts
    means = moments.centred_means() @ span.T
    return JointCovariance(
        values / moments.total_weight,
        means.T @ (shares[:, None] * centred),
        centred.T @ (shares[:, None] * centred),
    )


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
        if len(rows.codes) > MOST_ROWS:
            raise ValueError(
                f"X must have at most {MOST_ROWS:,} different rows, as SupervisedExponentialPCA finds a "
                f"matrix of so many rows; got {len(rows.codes):,}. Fit it on a sample of the rows, or use LogisticPCA."
            )
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
