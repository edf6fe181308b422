"""Discriminants of minimal pairwise Bayes error."""

from __future__ import annotations

from dataclasses import dataclass, replace
from types import SimpleNamespace
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils import check_random_state

from discrim.core.discriminants import Discriminants, WhitenedClasses, classical
from discrim.core.eigen import discriminant_count
from discrim.core.generalisation import (
    HeldOut,
    analytic_estimate,
    held_out_in_folds,
    held_out_pair_errors,
    inflation,
)
from discrim.core.pairwise_error import completed_basis, error_subspace, nested_axes
from discrim.core.problem import Needs, Problem
from discrim.core.ratio import ROUNDING
from discrim.estimators.discriminant import (
    SHRINKAGE,
    DiscriminantReducer,
    choose_shrinkage,
    shrinkage_needs,
)
from discrim.estimators.fitting import fitted_attribute, solved
from discrim.tables.check_parameters import FLAG, Constraints, whole
from discrim.warn_once import warn

Array = NDArray[np.float64]
PAIRED_CLASSES = 1_000  # with more classes, the pairs of this many classes represent all


@dataclass(frozen=True, eq=False)
class Pairing:
    """Data for the errors between classes: the paired classes, and projections of held-out rows."""

    classes: NDArray[np.intp]
    priors: Array
    held_out: tuple[HeldOut, ...]
    inflation: float  # κ
    size: int  # k
    seed: int

    def errors(self) -> Array:
        """Return the error between each two of the classes; each fold has its own subspace."""

        def subspace(part: HeldOut) -> Array:
            known = np.isfinite(part.trained[:, 0])  # classes that occur in the training rows
            return error_subspace(part.trained[known] / self.inflation, self.priors[known], self.size, 0, self.seed)

        return held_out_pair_errors(self.held_out, subspace, len(self.priors))


class BayesErrorLDA(DiscriminantReducer):
    """Discriminants of minimal pairwise Bayes error: the k directions in which pairs of classes are confused least.

        minimise  Σ_{a<b} p_a p_b erfc(‖G(μ_a − μ_b)‖ / (2√2 κ)) ,    G Σ_γ Gᵀ = I ,    Σ_γ = (1−γ) S_w/n + γ τ I

    This is the recommended default. LDA maximises the sum of squared distances between class means, and spends its few
    directions on classes that are already far apart. Their error is small anyway, so this method optimises the pairs
    that are close. With two classes, or with n_components ≥ C−1, it is RegularizedLDA. κ is how much wider new rows
    spread than training rows (measured on the folds with "cv", otherwise an analytic estimate).

    Parameters
    ----------
    n_components: Number of components. A fraction in (0, 1) keeps as many as LDA would need for this share of the
        separation, None all discriminants. Components beyond the discriminants are PCA of the orthogonal complement.
    shrinkage: γ in [0, 1], or a rule: the formula of Ledoit and Wolf, that of Chen et al. (oracle approximating
        shrinkage), or "cv" by held-out rows of the nearest-centroid classifier. "cv" chooses the smallest log loss
        among all values within one standard error of the highest accuracy (a sparse table with more than 5,000 rows and
        columns uses a sample of 1,000 rows; a warning is issued).
    cv: Folds for "cv" and for the reported error. An int divides the distinct rows of each class evenly, as
        scikit-learn's StratifiedKFold does. Copies of a row stay in one fold, so weights are equivalent to repetition.
        Ridges are compared on at most 1,000 evenly spaced rows of a fold. None (for another shrinkage) uses no folds:
        the fit takes half the time, and errors come from an analytic estimate.
    nested : bool, default=False
        If True, the first 1, 2, … components are useful by themselves (slightly worse together than k chosen jointly);
        if False, the widest are first.
    priors: Class probabilities p, for the objective and for prediction, in the order of classes_; None uses the class
        frequencies.
    class_weight: Factors on the sample weights by class label; "balanced" makes the total weights of the classes equal.
    store_covariance: If True, store the d×d within-class covariance as covariance_.
    {gaps}
    n_init : int, default=8
        Number of random starts, in addition to LDA's directions and Loog's.
    random_state: Seed of the random starts, and for shuffling the folds; None uses 0 and unshuffled folds.

    Attributes
    ----------
    eigenvalues_: Ratio of between-class variance to Σ_γ along each component; 0 for components beyond the
        discriminants.
    covariance_: Σ_γ, if store_covariance=True.
    {chosen_shrinkage}
    pair_errors_ : array of shape (n_classes, n_classes)
        Rate at which new rows of two classes are confused in these components (equal priors, Gaussian), from held-out
        class means along training directions, over the folds of cv. It exceeds ½ if training rows pointed the wrong
        way, and is NaN if a class has too few rows. Without folds it is an analytic estimate: accurate with many rows,
        optimistic with fewer rows than columns. A large sparse table, which is solved by products, uses the first fold
        only. Computed on access, for at most 1,000 classes.
    bayes_error_ : float
        Mean of pair_errors_, weighted by p_a p_b; NaN if no pair of classes has enough rows.
    spread_inflation_ : float
        κ.
    {fitted_discriminants}

    Notes
    -----
    With more than 1,000 classes, a sample of 1,000, drawn by random_state, represents all of them in the objective and
    in bayes_error_.

    References
    ----------
    Loog, Duin and Haeb-Umbach (2001) for the weights of a start; the objective is new here.

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
        ratio, chosen = problem.separated, choose_shrinkage(self, problem)
        found = replace(classical(ratio, ratio.covariance(chosen.shrinkage_)), found=chosen)
        classes = WhitenedClasses.of(found, ratio)
        # ties of LDA's values do not matter here
        k = discriminant_count(problem.request, found.values, ratio.rank, problem.shape, ties_settled=True)
        q = len(classes.directions)
        pairing = self._pair(problem, found, classes, min(k, q))
        results = SimpleNamespace(
            shrinkage_=chosen.shrinkage_, path_=chosen.path_, spread_inflation_=pairing.inflation, _pairing=pairing
        )
        found = replace(found, count=k, found=results)
        if k >= q and not self.nested:
            return found
        # the chosen directions first, then the others, as combinations of LDA's
        paired = classes.means[pairing.classes] / pairing.inflation
        B = error_subspace(paired, pairing.priors, pairing.size, self.n_init, pairing.seed)
        rotation = completed_basis(B, (classes.means.T * ratio.shares) @ classes.means)
        if self.nested:
            kept = rotation[:, : pairing.size]
            kept @= nested_axes(paired @ kept, pairing.priors, self.n_init, pairing.seed)
        along = ratio.means @ classes.directions.T @ rotation
        return replace(found, directions=rotation.T @ classes.directions, values=np.vecdot(along.T, along.T))

    def _pair(self, problem: Problem, found: Discriminants, classes: WhitenedClasses, k: int) -> Pairing:
        """Return what the errors between classes are computed from."""
        moments, ratio, chosen = problem.moments, problem.ratio, found.found
        varies = ratio.trace > ROUNDING**2 * ratio.variances.sum() and bool(moments.counts.max() > 1)
        held_out = None
        if varies and (chosen.path_ is not None or self.cv is not None) and (folds := problem.training_sets):
            held_out = tuple(held_out_in_folds(folds, chosen.shrinkage_))
        known = held_out  # κ at a given ridge is computed as if there were no folds
        if known is None or chosen.path_ is None:
            known = analytic_estimate(found, classes, ratio, chosen.shrinkage_)
        held_out, priors = known if held_out is None else held_out, problem.priors
        seed = int(check_random_state(0 if self.random_state is None else self.random_state).randint(2**31 - 1))
        paired = np.arange(len(priors))
        if len(paired) > PAIRED_CLASSES:
            warn(
                f"y has {len(paired)} classes, i.e. {len(paired) * (len(paired) - 1) // 2} pairs, so the pairs of "
                f"{PAIRED_CLASSES} classes, drawn by random_state, represent all of them in the choice of directions. "
                "RegularizedLDA uses all classes.",
            )
            paired = np.sort(np.random.default_rng(seed).choice(len(paired), PAIRED_CLASSES, replace=False))
            held_out = tuple(part.select_classes(paired) for part in held_out)
        return Pairing(paired, priors[paired], held_out, float(np.sqrt(inflation(known))), k, seed)

    @fitted_attribute
    def pair_errors_(self) -> Array:
        """Error between each two classes in the components (C×C)."""
        if len(self.classes_) > PAIRED_CLASSES:
            raise AttributeError(
                f"pair_errors_ exists for at most {PAIRED_CLASSES} classes; got {len(self.classes_)}. Use their mean, "
                "bayes_error_."
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
            "bayes_error_ is NaN, because no two classes have enough rows to hold some out (or, without folds, there "
            "are no more rows than classes). Pass more rows of each class, or use a test set.",
        )
        return float("nan")
