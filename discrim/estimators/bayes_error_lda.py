"""The subspace of least pairwise Bayes error."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils import check_random_state

from discrim.core.discriminants import Discriminants
from discrim.core.eigen import discriminant_count
from discrim.core.generalisation import (
    HeldOut,
    WhitenedClasses,
    expected_of_statistics,
    held_out_pair_errors,
    inflation,
    seen_in_folds,
)
from discrim.core.moments.class_moments import ClassMoments
from discrim.core.pairwise_error import completed, error_subspace, nested_axes
from discrim.core.problem import Needs, Problem
from discrim.core.ratio import ROUNDING
from discrim.estimators.discriminant import (
    SHRINKAGE,
    DiscriminantReducer,
    Shrinkage,
    shrinkage_needs,
    shrunk_discriminants,
)
from discrim.estimators.fitting import fitted_attribute, solved
from discrim.tables.check_parameters import FLAG, Constraints, checked_priors, whole
from discrim.tables.warn_once import warn

Array = NDArray[np.float64]
PAIRED_CLASSES = 1_000  # above, the pairs of this many classes stand for all


@dataclass(frozen=True, eq=False)
class Pairing:
    """What the errors between classes are reckoned from: the classes paired, and what is known of other rows."""

    classes: NDArray[np.intp]
    priors: Array
    held_out: tuple[HeldOut, ...]
    inflation: float  # κ
    size: int  # k
    seed: int

    def subspace(self, means: Array, priors: Array, n_random: int) -> Array:
        """Return the k best of q dimensions (q×k), all where there are no more."""
        q = means.shape[1]
        return error_subspace(means, priors, self.size, n_random, self.seed) if self.size < q else np.eye(q)

    def errors(self) -> Array:
        """Return error between each two of the classes, each fold in a subspace of its own."""

        def subspace(part: HeldOut) -> Array:
            known = np.isfinite(part.trained[:, 0])  # the classes among the training rows
            return self.subspace(part.trained[known] / self.inflation, self.priors[known], 0)

        return held_out_pair_errors(self.held_out, subspace, len(self.priors))


@dataclass(frozen=True, eq=False)
class PairedShrinkage(Shrinkage):
    """What the method found beside its directions."""

    spread_inflation_: float
    _pairing: Pairing


class BayesErrorLDA(DiscriminantReducer):
    """Discriminants of least pairwise Bayes error: the k directions in which two classes are least often confused.

        minimise  Σ_{a<b} p_a p_b erfc(‖G(μ_a − μ_b)‖ / (2√2 κ)) ,    G Σ_γ Gᵀ = I ,    Σ_γ = (1−γ) S_w/n + γ τ I

    The default choice. LDA maximises the sum of squared distances between the class means, and spends its few
    directions on classes that are far apart already; the error is small for these anyway, so this method looks to the
    pairs that are close. With two classes, or with n_components ≥ C−1, it is RegularizedLDA. κ says how much wider new
    rows spread than training rows (in "cv" as the folds show, else as statistics let expect).

    Parameters
    ----------
    n_components : int, float or None, default=2
        How many components to keep; a fraction in (0, 1) keeps as many as LDA would need for that share of the
        separation, None keeps all discriminants. More than there are discriminants continue with PCA of the orthogonal
        complement.
    shrinkage : float, "ledoit_wolf", "oas" or "cv", default="cv"
        γ in [0, 1], or the rule it is computed by: Ledoit and Wolf's, Chen's (oracle approximating), or held-out rows
        of the nearest-centroid rule: of all within one standard error of the highest accuracy the least log loss (for
        a sparse table of more than 5,000 rows and columns on 1,000 of its rows, which is said).
    cv : int, splitter or list of (training, test) row numbers, default=5
        The folds for "cv", and for the error that is reported. A number of folds divides the distinct rows of each
        class evenly, as scikit-learn's StratifiedKFold does; a repeated row stays in one fold, so that weights are
        repetition. Ridges are judged on up to 1,000 rows of a fold, at even steps. None, at another shrinkage: no
        folds, a fit in half the time, and errors as statistics let expect.
    nested : bool, default=False
        Components of which the first 1, 2, … serve on their own (a little less good together than k chosen at once);
        False for the widest first.
    priors : array of shape (n_classes,), "equal" or None, default=None
        Class probabilities p, in the objective and for prediction, in the order of classes_; None for the classes'
        shares of the rows.
    class_weight : dict, "balanced" or None, default=None
        A factor on the weights of each class's rows, by label; "balanced" makes the classes' totals equal.
    store_covariance : bool, default=False
        Whether to keep the within-class covariance, d×d numbers, as covariance_.
    missing : {"pairwise"} or None, default=None
        What becomes of NaN: None refuses it; "pairwise" takes each mean and covariance from the rows that have the
        cells (made positive definite), and transform counts a missing cell as its column's mean.
    n_init : int, default=8
        Number of random starts, beside LDA's directions and Loog's.
    random_state : int, RandomState or None, default=None
        Seed of the random starts, which also shuffles the folds; None for 0 and unshuffled ones.

    Attributes
    ----------
    components_ : array of shape (n_components_, n_features)
        The directions, one per row.
    eigenvalues_ : array of shape (n_components_,)
        Between-class variance over Σ_γ along each component; 0 beyond the discriminants.
    explained_variance_ratio_ : array of shape (n_components_,)
        Share of the between-class separation along each discriminant; 0 beyond them.
    covariance_ : array of shape (n_features, n_features)
        Σ_γ, where store_covariance asks for it.
    shrinkage_ : float
        The γ that was used.
    path_ : PathScores or None
        With "cv", the shrinkages tried with their held-out accuracies and log losses.
    pair_errors_ : array of shape (n_classes, n_classes)
        How often new rows of two classes are mistaken for each other in these components (equal priors, Gaussian): from
        held-out class means along training directions, over the folds of cv; above ½ where training rows pointed the
        wrong way, NaN where a class has too few rows. Without folds, as statistics let expect: fair with many rows,
        flattering with fewer rows than columns. For a large sparse table, which is taken by products only, from the
        first fold alone. Reckoned when asked for. With more than 1,000 classes there is none.
    bayes_error_ : float
        Mean of pair_errors_, weighted by p_a p_b; NaN where no pair of classes has rows enough to tell.
    spread_inflation_ : float
        κ.
    {fitted_discriminants}

    Notes
    -----
    With more than 1,000 classes, 1,000 of them, drawn by random_state, stand for all in the objective and in
    bayes_error_.

    References
    ----------
    Loog, Duin and Haeb-Umbach (2001) for the weights of a start; the objective is our own.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from discrim import BayesErrorLDA
    >>> X, y = load_digits(return_X_y=True)
    >>> BayesErrorLDA(n_components=2, shrinkage=0.1).fit_transform(X, y).shape
    (1797, 2)
    """

    _parameter_constraints: ClassVar[Constraints] = {
        **SHRINKAGE,
        "nested": FLAG,
        "n_init": (whole(0, "a whole number ≥ 0 of random starts"),),
    }
    __metadata_request__fit: ClassVar[dict[str, Any]] = {"groups": None}
    shrinkage_: float = solved()
    path_: Any = solved()
    spread_inflation_: float = solved()
    _pairing: Pairing

    def __init__(
        self,
        n_components: int | float | None = 2,
        *,
        shrinkage: float | str = "cv",
        cv: Any = 5,
        nested: bool = False,
        priors: ArrayLike | str | None = None,
        class_weight: Any = None,
        store_covariance: bool = False,
        missing: str | None = None,
        n_init: int = 8,
        random_state: Any = None,
    ) -> None:
        self.n_components = n_components
        self.shrinkage = shrinkage
        self.cv = cv
        self.nested = nested
        self.priors = priors
        self.class_weight = class_weight
        self.store_covariance = store_covariance
        self.missing = missing
        self.n_init = n_init
        self.random_state = random_state

    def _needs(self) -> Needs:
        return shrinkage_needs(self, super()._needs(), judged=self.cv is not None)

    def _find(self, problem: Problem) -> Discriminants:
        moments, ratio, shape = problem.moments, problem.ratio, problem.shape
        found = shrunk_discriminants(self, problem)
        gamma, path = found.found.shrinkage_, found.found.path_
        classes = WhitenedClasses.of(found, ratio)
        varies = ratio.trace > ROUNDING**2 * ratio.variances.sum() and bool(moments.counts.max() > 1)
        has_folds = (path is not None or self.cv is not None) and problem.has_folds
        seen = None
        if varies and has_folds:
            seen = tuple(seen_in_folds(problem.basis, problem.training_sets(), gamma))
        known = seen  # what κ is reckoned from: at a ridge that was given, as if there were no folds
        if known is None or path is None:
            known = expected_of_statistics(found, classes, ratio, gamma)
        # whether LDA's values tie there is no matter here
        k = discriminant_count(problem.request, found.values, ratio.rank, shape, ties_settled=True)
        q = len(classes.directions)
        pairing = self._pair(moments, known if seen is None else seen, inflation(known), min(k, q))
        found = replace(found, count=k, found=PairedShrinkage(gamma, path, pairing.inflation, pairing))
        if k >= q and not self.nested:
            return found
        rotation = self._rotation(classes.means, ratio.shares, pairing)
        along = ratio.means @ classes.directions.T @ rotation
        return replace(found, directions=rotation.T @ classes.directions, values=np.vecdot(along.T, along.T))

    def _pair(self, moments: ClassMoments, held_out: Sequence[HeldOut], squared_inflation: float, k: int) -> Pairing:
        priors = checked_priors(self.priors, moments.weights / moments.total_weight)
        seed = int(check_random_state(0 if self.random_state is None else self.random_state).randint(2**31 - 1))
        classes = np.arange(len(priors))
        if len(classes) > PAIRED_CLASSES:
            warn(
                f"y has {len(classes)} classes, which is {len(classes) * (len(classes) - 1) // 2} pairs: the pairs of "
                f"{PAIRED_CLASSES} classes, drawn by random_state, represent all of them when directions are chosen. "
                "RegularizedLDA takes all classes at once.",
            )
            classes = np.sort(np.random.default_rng(seed).choice(len(classes), PAIRED_CLASSES, replace=False))
            held_out = [part.among(classes) for part in held_out]
        return Pairing(classes, priors[classes], tuple(held_out), float(np.sqrt(squared_inflation)), k, seed)

    def _rotation(self, means: Array, shares: Array, pairing: Pairing) -> Array:
        """Compute q×q: first the chosen directions, then the others, as combinations of LDA's."""
        k, paired = pairing.size, means[pairing.classes] / pairing.inflation
        B = pairing.subspace(paired, pairing.priors, self.n_init)
        axes = completed(B, (means.T * shares) @ means)
        if self.nested:
            axes[:, :k] @= nested_axes(paired @ axes[:, :k], pairing.priors, self.n_init, pairing.seed)
        return axes

    @fitted_attribute
    def pair_errors_(self) -> Array:
        """Error between each two classes in the components (C×C)."""
        if len(self.classes_) > PAIRED_CLASSES:
            raise AttributeError(
                f"pair_errors_ is a table of classes by classes, and {len(self.classes_)} classes came: with more than "
                f"{PAIRED_CLASSES} only their mean is there, bayes_error_."
            )
        return self._pairing.errors()

    @fitted_attribute
    def bayes_error_(self) -> float:
        """Mean error between two classes in the components, weighted by p_a p_b."""
        errors, priors = self._pairing.errors(), self._pairing.priors
        weights = np.outer(priors, priors) * np.isfinite(errors)
        np.fill_diagonal(weights, 0.0)
        total = float(weights.sum())
        if total > 0:
            return float(np.nansum(weights * errors) / total)
        warn(
            "bayes_error_ is NaN: no two classes have enough rows to hold some out (or, without folds, there are no "
            "more rows than classes). Pass more rows of each class, or use a test set.",
        )
        return float("nan")
