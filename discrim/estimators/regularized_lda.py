"""Regularised linear discriminant analysis."""

from __future__ import annotations

from typing import Any, ClassVar

from numpy.typing import ArrayLike

from discrim.core.discriminants import Discriminants
from discrim.core.problem import Problem
from discrim.estimators.shrunk_discriminant import ShrunkDiscriminant
from discrim.tables.check_parameters import COUNT_OR_CV, Constraints


class RegularizedLDA(ShrunkDiscriminant):
    """Regularised LDA: linear discriminants with a ridge on the within-class covariance.

        maximise  tr (G Σ_γ Gᵀ)⁻¹ G S_b Gᵀ ,   G Σ_γ Gᵀ = I ,   Σ_γ = (1−γ) S_w/n + γ τ I ,   τ = tr(S_w/n)/rank

    The best of the LDA family on real data, for n < d too. γ = 0 is classical LDA, γ = 1 the
    directions of the class means.

    Parameters
    ----------
    n_components : int, float, "cv" or None, default=None
        How many components to keep; a fraction in (0, 1) keeps the fewest that reach that share of the separation,
        "cv" chooses by cross-validation, None keeps all discriminants. More than there are discriminants continue with
        PCA of the orthogonal complement.
    shrinkage : float, "ledoit_wolf", "oas" or "cv", default="cv"
        γ in [0, 1], or the rule it is computed by: Ledoit and Wolf's, Chen's (oracle approximating), or held-out rows
        of the nearest-centroid rule: of all within one standard error of the highest accuracy the least log loss.
    cv : int, splitter or list of (training, test) row numbers, default=5
        The folds for "cv". A number of folds divides the distinct rows of each class evenly, as
        scikit-learn's StratifiedKFold does; a repeated row stays in one fold, so that weights are repetition.
        Ridges are judged on up to 1,000 rows of a fold, at even steps.
    priors : array of shape (n_classes,), "equal" or None, default=None
        Class probabilities for prediction, in the order of classes_; None for the classes' shares of the rows.
    class_weight : dict, "balanced" or None, default=None
        A factor on the weights of each class's rows, by label; "balanced" makes the classes' totals equal.
    store_covariance : bool, default=False
        Whether to keep the within-class covariance, d×d numbers, as covariance_.
    missing : {"pairwise"} or None, default=None
        What becomes of NaN: None refuses it; "pairwise" takes each mean and covariance from the rows that have the
        cells (made positive definite), and transform counts a missing cell as its column's mean.
    random_state : int, RandomState or None, default=None
        Seed that shuffles the folds; None for unshuffled ones.

    Attributes
    ----------
    components_ : array of shape (n_components_, n_features)
        The directions, one per row.
    eigenvalues_ : array of shape (n_components_,)
        Between-class variance over Σ_γ along each discriminant; 0 beyond them.
    explained_variance_ratio_ : array of shape (n_components_,)
        Share of the between-class separation along each discriminant; 0 beyond them.
    covariance_ : array of shape (n_features, n_features)
        Σ_γ, where store_covariance asks for it.
    shrinkage_ : float
        The γ that was used.
    path_ : PathScores or None
        With "cv", the shrinkages tried with their held-out accuracies and log losses.
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
        **ShrunkDiscriminant._parameter_constraints,
        "n_components": COUNT_OR_CV,
    }

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

    def _find(self, problem: Problem) -> Discriminants:
        return self._shrunk(problem)
