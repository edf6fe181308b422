"""Heteroscedastic discriminants: classes that differ in their means, in their covariances, or in both."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from itertools import combinations
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from discrim.core.discriminants import Discriminants, classical, of_gain
from discrim.core.problem import Needs, Problem
from discrim.decompositions import eigh
from discrim.estimators.shrunk_discriminant import ShrunkDiscriminant
from discrim.tables.check_parameters import Constraints

Array = NDArray[np.float64]
LEAST = 1e-6  # variance of a class, as a share of the pooled one: its logarithm is −∞ at 0


class HeteroscedasticLDA(ShrunkDiscriminant):
    """Discriminants for classes of different covariances (Chernoff criterion): far apart, or of other shapes.

        maximise  tr (G Σ_γ Gᵀ)⁻¹ G C Gᵀ ,    G Σ_γ Gᵀ = I ,    where Σ_γ = I:

        C = Σ_{a<b} p_a p_b [ M^−½ δδᵀ M^−½ + (log M − π_a log S_a − π_b log S_b) / (π_a π_b) ]

    with δ = μ_a − μ_b, π_a = p_a/(p_a+p_b), M = π_a S_a + π_b S_b and S_c the class covariances, all with the same
    ridge. Where these are equal it is RegularizedLDA; where the means are equal there are directions still, up to one
    for each column. Use it where classes have different shapes as well as different means, in front of a classifier
    that sees shapes (nearest neighbours, a quadratic rule). It needs every class's own scatter (C·d² memory) and an
    eigendecomposition for each pair of classes. A class's deviation counts as at least 1e-3 of the pooled one. Its own
    predictions are those of the nearest centroid, as in all of the LDA family: they look at the means only.

    Parameters
    ----------
    n_components : int, float or None, default=None
        How many components to keep; a fraction in (0, 1) keeps the fewest that reach that share of the criterion, None
        all along which the classes differ. More than there are continue with PCA of the orthogonal complement.
    shrinkage : float, "ledoit_wolf", "oas" or "cv", default="cv"
        γ in [0, 1] for Σ_γ = (1−γ) S_w/n + γ τ I, or the rule it is computed by, as in RegularizedLDA.
    cv : int, splitter or list of (training, test) row numbers, default=5
        The folds for "cv", as in RegularizedLDA.
    priors : array of shape (n_classes,), "equal" or None, default=None
        Class probabilities for prediction, in the order of classes_; None for the classes' shares of the rows.
    class_weight : dict, "balanced" or None, default=None
        A factor on the weights of each class's rows, by label; "balanced" makes the classes' totals equal.
    store_covariance : bool, default=False
        Whether to keep the within-class covariance, d×d numbers, as covariance_.
    random_state : int, RandomState or None, default=None
        Seed that shuffles the folds; None for unshuffled ones.

    Attributes
    ----------
    components_ : array of shape (n_components_, n_features)
        The directions, one per row.
    eigenvalues_ : array of shape (n_components_,)
        The criterion along each discriminant; 0 beyond them.
    explained_variance_ratio_ : array of shape (n_components_,)
        Each discriminant's share of the criterion; 0 beyond them.
    shrinkage_ : float
        The γ that was used.
    path_ : PathScores or None
        With "cv", the shrinkages tried with their held-out accuracies and log losses.
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
        name: possible for name, possible in ShrunkDiscriminant._parameter_constraints.items() if name != "missing"
    }

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
        why, folds = "HeteroscedasticLDA needs every class's whole scatter", replace(self._folding, on_sample=False)
        return replace(super()._needs(), scatter="each", contrasts=False, matrix=why, folds=folds)

    def _find(self, problem: Problem) -> Discriminants:
        chosen, ratio = self._chosen(problem)[0], problem.ratio
        cost = ratio.covariance(chosen.shrinkage_)
        if not cost.is_nonsingular:  # where no class varies, say: all covariances are equal
            return replace(classical(problem.separated, cost), found=chosen)
        covariances = problem.class_covariances(chosen.shrinkage_)
        means, back = cost.whitened(ratio.class_means)
        shapes = np.array([cost.whitened_matrix(one)[0] for one in covariances])
        found = of_gain(chernoff_gain(means, shapes, ratio.shares), back, cost, ratio.precision)
        return replace(found, found=chosen)


def chernoff_gain(means: Array, covariances: Array, shares: Array) -> Array:
    """C from class means and covariances in coordinates in which the pooled covariance is I."""
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
    """A function of a symmetric matrix, whose eigenvalues count as at least `LEAST`."""
    values, vectors = eigh(matrix)
    return np.asarray((vectors * function(np.maximum(values, LEAST))) @ vectors.T)
