"""Linear discriminant analysis: classical, regularised, after PCA, and with a covariance per class."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from itertools import combinations
from types import SimpleNamespace
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import clone

from discrim.core.coordinates.choose import Plan
from discrim.core.discriminants import Discriminants, classical, collapsed_share, gain_discriminants, within_shares
from discrim.core.eigen import kept_count, spectrum_of_matrix
from discrim.core.problem import Needs, Problem
from discrim.core.ratio import Covariance
from discrim.decompositions import eigh
from discrim.estimators.discriminant import (
    SHRINKAGE,
    DiscriminantReducer,
    choose_shrinkage,
    shrinkage_needs,
)
from discrim.estimators.fitting import solved
from discrim.tables.check_parameters import (
    COUNT,
    COUNT_OR_CV,
    NOTHING,
    Constraints,
    Possible,
    plain_count,
)
from discrim.tables.rows import LabelledRows, dense_block
from discrim.tables.validation import require_finite
from discrim.warn_once import warn

Array = NDArray[np.float64]


class FisherLDA(DiscriminantReducer):
    """Linear discriminant analysis: maximise the distances of class means relative to the within-class deviation.

        maximise  tr (G S_w Gᵀ)⁻¹ G S_b Gᵀ ,    G (S_w/n) Gᵀ = I

    This is the textbook method, for n well above d, with at most C−1 discriminants. If S_w is singular on the span of
    the data (e.g. n < d), it uses the directions of S_t⁺S_b, scales those without within-class deviation by their total
    deviation, and warns. Constant and collinear columns do no harm. RegularizedLDA is better if d is not far below n.

    Parameters
    ----------
    {discriminant_count}
    {weighting_and_gaps}
    covariance_estimator : estimator or None, default=None
        Estimator of each class's covariance, an object with fit(X) and covariance_ such as sklearn.covariance.OAS().
        The average over the classes, weighted by their shares, replaces S_w/n. None uses the empirical covariances.
        Such a fit needs all rows at once, without weights, and stores a d×d matrix.

    Attributes
    ----------
    eigenvalues_: Ratio of between- to within-class variance along each discriminant; 0 for further components.
    covariance_: S_w/n if store_covariance=True, or the estimate of covariance_estimator.
    {fitted_discriminants}

    References
    ----------
    Fisher, "The use of multiple measurements in taxonomic problems" (1936).

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from discrim import FisherLDA
    >>> X, y = load_iris(return_X_y=True)
    >>> FisherLDA().fit(X, y).score(X, y)
    0.98
    """

    _parameter_constraints: ClassVar[Constraints] = {
        **DiscriminantReducer._parameter_constraints,
        "covariance_estimator": (
            Possible(
                "an object with fit(X) and covariance_, such as sklearn.covariance.OAS()",
                lambda given: hasattr(given, "fit") and not isinstance(given, type),
            ),
            NOTHING,
        ),
    }

    def __init__(
        self,
        n_components: int | float | None = None,
        *,
        priors: ArrayLike | str | None = None,
        class_weight: Any = None,
        store_covariance: bool = False,
        missing: str | None = None,
        covariance_estimator: Any = None,
    ) -> None:
        super().__init__(
            n_components, priors=priors, class_weight=class_weight, store_covariance=store_covariance, missing=missing
        )
        self.covariance_estimator = covariance_estimator

    def _needs(self) -> Needs:
        needs = super()._needs()
        if self.covariance_estimator is None:
            return needs
        return replace(
            needs,
            coordinates=Plan("features", "covariance_estimator needs rows in their features"),
            rows="covariance_estimator needs all rows of a class at once. Statistics suffice without it, and for "
            "RegularizedLDA(shrinkage=0.1).",
        )

    def _find(self, problem: Problem) -> Discriminants:
        ratio = problem.separated
        if self.covariance_estimator is None:
            return classical(ratio)
        covariance = estimated_covariance(self.covariance_estimator, problem.basis.points)
        inner = problem.moments.scaled(problem.moments.scaled(covariance))  # rows and columns
        if ratio.embedding is not None:
            inner = ratio.embedding @ inner @ ratio.embedding.T
        found = classical(ratio, Covariance(inner, ratio.precision))
        return replace(found, found=SimpleNamespace(_covariance=covariance))


def estimated_covariance(estimator: Any, rows: LabelledRows) -> Array:
    """Compute Σ_c n_c/n · the estimator's covariance of class c, in the units of the rows."""
    if rows.weights is not None:
        raise ValueError(
            f"sample_weight and class_weight cannot be used with covariance_estimator={estimator!r}, which takes no "
            "weights. Leave the weights out, repeat the rows, or use RegularizedLDA, which takes weights."
        )
    require_finite(rows.X, rows.numbers)
    total = np.zeros((rows.shape[1], rows.shape[1]))
    for c, share in enumerate(rows.class_totals / rows.shape[0]):
        members = rows.select(np.flatnonzero(rows.codes == c))
        fitted = clone(estimator, safe=False)
        fitted.fit(dense_block(members.X, slice(None)))
        found = np.asarray(getattr(fitted, "covariance_", np.empty(0)), dtype=np.float64)
        if found.shape != total.shape:
            raise ValueError(
                f"covariance_estimator must set covariance_ of shape {total.shape} when fitted; got {estimator!r}. "
                "Pass an object with fit(X) and covariance_, such as sklearn.covariance.OAS()."
            )
        total += share * found
    return total


class RegularizedLDA(DiscriminantReducer):
    """Regularised LDA: linear discriminants with a ridge on the within-class covariance.

        maximise  tr (G Σ_γ Gᵀ)⁻¹ G S_b Gᵀ ,   G Σ_γ Gᵀ = I ,   Σ_γ = (1−γ) S_w/n + γ τ I ,   τ = tr(S_w/n)/rank

    It is the most accurate of the LDA family on real data, also for n < d. γ = 0 is classical LDA, γ = 1 gives the
    directions of the class means.

    Parameters
    ----------
    n_components : int, float, "cv" or None, default=None
        Number of components. A fraction in (0, 1) keeps the fewest components that reach this share of the separation,
        "cv" chooses by cross-validation, None keeps all discriminants. Components beyond the discriminants are PCA of
        the orthogonal complement.
    shrinkage: γ in [0, 1], or a rule: the formula of Ledoit and Wolf, that of Chen et al. (oracle approximating
        shrinkage), or "cv" by held-out rows of the nearest-centroid classifier. "cv" chooses the smallest log loss
        among all values within one standard error of the highest accuracy.
    cv: Folds for "cv". An int divides the distinct rows of each class evenly, as scikit-learn's StratifiedKFold does.
        Copies of a row stay in one fold, so weights are equivalent to repetition. Ridges are compared on at most 1,000
        evenly spaced rows of a fold.
    {weighting_and_gaps}
    {shuffling}

    Attributes
    ----------
    eigenvalues_: Ratio of between-class variance to Σ_γ along each discriminant; 0 for further components.
    covariance_: Σ_γ, if store_covariance=True.
    {chosen_shrinkage}
    {fitted_discriminants}

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

    _parameter_constraints: ClassVar[Constraints] = {
        **SHRINKAGE,
        "n_components": COUNT_OR_CV,
    }
    __metadata_request__fit: ClassVar[dict[str, Any]] = {"groups": None}
    shrinkage_: float = solved()
    path_: Any = solved()

    def __init__(
        self,
        n_components: int | float | str | None = None,
        *,
        shrinkage: float | str = "cv",
        cv: Any = 5,
        priors: ArrayLike | str | None = None,
        class_weight: Any = None,
        store_covariance: bool = False,
        missing: str | None = None,
        random_state: Any = None,
    ) -> None:
        self.n_components = n_components
        self.shrinkage = shrinkage
        self.cv = cv
        self.priors = priors
        self.class_weight = class_weight
        self.store_covariance = store_covariance
        self.missing = missing
        self.random_state = random_state

    def _needs(self) -> Needs:
        return shrinkage_needs(self, super()._needs())

    def _find(self, problem: Problem) -> Discriminants:
        ratio, chosen = problem.separated, choose_shrinkage(self, problem)
        return replace(classical(ratio, ratio.covariance(chosen.shrinkage_)), count=chosen.count, found=chosen)


class PCALDA(DiscriminantReducer):
    """PCA followed by LDA on its components (Fisherfaces): the classical remedy for n < d.

        G = G' P ,   P = first m principal directions,  G' = classical LDA of the rows projected onto them

    m is at most the rank of S_w (n − C if n < d), so the within-class scatter is nonsingular. Directions that PCA drops
    are lost, even if they separate the classes. Prefer RegularizedLDA, and use this method as a baseline.

    Parameters
    ----------
    {discriminant_count}
    pca_components : int, float or None, default=None
        m as an int, as a fraction of the variance in (0, 1), or None for the rank of S_w.
    {weighting_and_gaps}

    Attributes
    ----------
    eigenvalues_: Ratio of between- to within-class variance along each discriminant; 0 for further components.
    pca_components_ : int
        m that was used.
    {fitted_discriminants}

    References
    ----------
    Belhumeur, Hespanha and Kriegman, "Eigenfaces vs. Fisherfaces" (1997).

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from discrim import PCALDA
    >>> X, y = load_digits(return_X_y=True)
    >>> PCALDA(n_components=2, pca_components=20).fit_transform(X, y).shape
    (1797, 2)
    """

    _parameter_constraints: ClassVar[Constraints] = {
        **DiscriminantReducer._parameter_constraints,
        "pca_components": COUNT,
    }
    pca_components_: int = solved()

    def __init__(
        self,
        n_components: int | float | None = None,
        *,
        pca_components: int | float | None = None,
        priors: ArrayLike | str | None = None,
        class_weight: Any = None,
        store_covariance: bool = False,
        missing: str | None = None,
    ) -> None:
        super().__init__(
            n_components, priors=priors, class_weight=class_weight, store_covariance=store_covariance, missing=missing
        )
        self.pca_components = pca_components

    def _find(self, problem: Problem) -> Discriminants:
        ratio = problem.separated
        principal = self._principal_directions(problem)
        found = classical(ratio.projected(principal))
        return Discriminants(
            found.directions @ principal,
            found.values,
            found=SimpleNamespace(pca_components_=len(principal)),
            is_singular=found.is_singular,
        )

    def _principal_directions(self, problem: Problem) -> Array:
        ratio, shape = problem.ratio, problem.shape
        spectrum = spectrum_of_matrix(ratio.total, None, precision=ratio.precision)
        # rank S_w, which is n − C for n < d; unlike n it does not depend on whether rows are repeated or weighted
        possible = ratio.rank
        if not ratio.within_classes.is_nonsingular:
            shares = within_shares(ratio.within, ratio.total)[0]
            possible = max(1, int((shares > collapsed_share(ratio)).sum()))
        request = plain_count(self.pca_components)
        if isinstance(request, int) and request > possible:
            raise ValueError(
                f"pca_components must be at most {possible} for {shape[0]} samples of {len(ratio.shares)} classes, as "
                f"the within-class scatter must be nonsingular; got {request}. Pass None for the maximum."
            )
        return spectrum.directions[: kept_count(request, spectrum.values, spectrum.total, possible, shape)]


MIN_VARIANCE = 1e-6  # of a class, as a share of the pooled variance, because the logarithm of 0 is −∞


class HeteroscedasticLDA(DiscriminantReducer):
    """Discriminants for classes with different covariances (Chernoff criterion).

        maximise  tr (G Σ_γ Gᵀ)⁻¹ G C Gᵀ ,    G Σ_γ Gᵀ = I ,    in coordinates with Σ_γ = I:

        C = Σ_{a<b} p_a p_b [ M^−½ δδᵀ M^−½ + (log M − π_a log S_a − π_b log S_b) / (π_a π_b) ]

    with δ = μ_a − μ_b, π_a = p_a/(p_a+p_b), M = π_a S_a + π_b S_b and S_c the class covariances, all with the same
    ridge. If the covariances are equal it is RegularizedLDA. If the means are equal it still finds directions, up to
    one per column. Use it if classes differ in shape as well as in their means, before a classifier that can use shapes
    (nearest neighbours, a quadratic rule). It needs a scatter matrix per class (C·d² memory) and an eigendecomposition
    per pair of classes. Deviations of a class are at least 1e-3 of the pooled ones. Its own predictions are those of
    the nearest centroid, as in all of the LDA family, and depend on the means only.

    Parameters
    ----------
    n_components: Number of components. A fraction in (0, 1) keeps the fewest components that reach this share of the
        criterion, None all along which the classes differ. Further components are PCA of the orthogonal complement.
    shrinkage: γ in [0, 1] for Σ_γ = (1−γ) S_w/n + γ τ I, or a rule, as in RegularizedLDA.
    cv: Folds for "cv", as in RegularizedLDA.
    {weighting}
    {shuffling}

    Attributes
    ----------
    eigenvalues_: Criterion along each discriminant; 0 for further components.
    explained_variance_ratio_: Share of the criterion along each discriminant; 0 for further components.
    {chosen_shrinkage}
    {fitted_discriminants}

    References
    ----------
    Loog and Duin, "Linear dimensionality reduction via a heteroscedastic extension of LDA: the Chernoff criterion"
    (2004).

    Examples
    --------
    >>> import numpy as np
    >>> from discrim import HeteroscedasticLDA
    >>> rng = np.random.default_rng(0)
    >>> y = np.arange(400) % 2
    >>> X = rng.standard_normal((400, 3)) * np.where(y[:, None], [1, 3, 1], 1)
    >>> int(abs(HeteroscedasticLDA(1, shrinkage=0.1).fit(X, y).components_[0]).argmax())
    1
    """

    _parameter_constraints: ClassVar[Constraints] = {
        name: possible for name, possible in SHRINKAGE.items() if name != "missing"
    }
    __metadata_request__fit: ClassVar[dict[str, Any]] = {"groups": None}
    shrinkage_: float = solved()
    path_: Any = solved()

    def __init__(
        self,
        n_components: int | float | None = None,
        *,
        shrinkage: float | str = "cv",
        cv: Any = 5,
        priors: ArrayLike | str | None = None,
        class_weight: Any = None,
        store_covariance: bool = False,
        random_state: Any = None,
    ) -> None:
        self.n_components = n_components
        self.shrinkage = shrinkage
        self.cv = cv
        self.priors = priors
        self.class_weight = class_weight
        self.store_covariance = store_covariance
        self.random_state = random_state

    def _needs(self) -> Needs:
        why = "HeteroscedasticLDA needs the whole scatter of every class"
        return replace(shrinkage_needs(self, super()._needs()), scatter="each", contrasts=False, matrix=why)

    def _find(self, problem: Problem) -> Discriminants:
        chosen, ratio = choose_shrinkage(self, problem), problem.ratio
        cost = ratio.covariance(chosen.shrinkage_)
        if not cost.is_nonsingular:  # e.g. if no class varies: all covariances are equal
            return replace(classical(problem.separated, cost), found=chosen)
        embedding = np.eye(ratio.rank) if ratio.embedding is None else ratio.embedding
        ridge = ratio.ridge(chosen.shrinkage_) * np.eye(len(embedding))
        covariances = (1 - chosen.shrinkage_) * embedding @ problem.moments.class_covariances @ embedding.T + ridge
        means, back = cost.whitened(ratio.class_means)
        shapes = np.array([cost.whitened_matrix(one)[0] for one in covariances])
        found = gain_discriminants(chernoff_gain(means, shapes, ratio.shares), back, cost, ratio.precision)
        if len(found.values) and not ratio.means_differ:
            warn(
                "All class means are equal, so predictions of HeteroscedasticLDA, which depend on the means only, are "
                "guesses. Put a classifier that uses shapes after it in a pipeline, such as scikit-learn's "
                "QuadraticDiscriminantAnalysis or KNeighborsClassifier.",
            )
        return replace(found, found=chosen)


def chernoff_gain(means: Array, covariances: Array, shares: Array) -> Array:
    """Compute C from class means and covariances in coordinates in which the pooled covariance is I."""
    shapes = [_mapped(one, np.asarray) for one in covariances]
    logs = [_mapped(one, np.log) for one in shapes]
    gain = np.zeros_like(covariances[0])
    for a, b in combinations(range(len(shares)), 2):
        pair = shares[a] * shares[b]
        one, other = shares[[a, b]] / (shares[a] + shares[b])
        both = one * shapes[a] + other * shapes[b]
        apart = _mapped(both, lambda values: 1 / np.sqrt(values)) @ (means[a] - means[b])
        unlike = _mapped(both, np.log) - one * logs[a] - other * logs[b]
        gain += pair * (np.outer(apart, apart) + unlike / (one * other))
    return gain


def _mapped(matrix: Array, function: Callable[[Array], Array]) -> Array:
    """Return a function of a symmetric matrix with eigenvalues of at least `MIN_VARIANCE`."""
    values, vectors = eigh(matrix)
    return np.asarray((vectors * function(np.maximum(values, MIN_VARIANCE))) @ vectors.T)
