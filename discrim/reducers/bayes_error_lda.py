"""The subspace of least pairwise Bayes error."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils import check_random_state

from discrim.data.check_parameters import checked_priors, require_starts
from discrim.data.findings import warn_of_drawn_classes
from discrim.moments.class_moments import ClassMoments
from discrim.objectives.held_out import HeldOut, held_out_pair_errors, inflation
from discrim.objectives.ratio import Ratio
from discrim.reducers.base import Solution
from discrim.reducers.discriminant_folds import (
    WhitenedClasses,
    foretold_by_products,
    foretold_by_statistics,
    held_out_by_products,
    held_out_rows,
)
from discrim.reducers.regularized_lda import RidgeSystem, ridge_discriminants
from discrim.reducers.shrunk_discriminant import ShrunkDiscriminant, shrunk_discriminants
from discrim.solve.basis import Basis
from discrim.solve.count import discriminant_count
from discrim.solve.discriminants import Discriminants
from discrim.solve.error_subspace import completed, error_subspace, nested_axes
from discrim.solve.folds import Folds
from discrim.solve.shrinkage_path import PATH, PathScores, score_path

Array = NDArray[np.float64]
PAIRED_CLASSES = 1_000  # above, the pairs of this many classes stand for all


class BayesErrorLDA(ShrunkDiscriminant):
    """Discriminants of least pairwise Bayes error: the k directions in which two classes are least often confused.

        minimise  Σ_{a<b} p_a p_b erfc(‖G(μ_a − μ_b)‖ / (2√2 κ)) ,    G Σ_γ Gᵀ = I ,    Σ_γ = (1−γ) S_w/n + γ τ I

    The default choice. LDA maximises the sum of squared distances between the class means, and spends its few
    directions on classes that are far apart already; the error is small for these anyway, so this method looks to the
    pairs that are close. With two classes, or with n_components ≥ C−1, it is RegularizedLDA. κ says how much wider new
    rows spread than training rows (in "cv" as the folds show, else as statistics foretell).

    Parameters
    ----------
    n_components : int, fraction of the separation in (0, 1) (as many as LDA would need), or None for all discriminants.
        More than there are discriminants continue with PCA of the orthogonal complement.
    shrinkage : γ in [0, 1], "ledoit_wolf", "oas", or "cv" to choose it by the accuracy of the nearest-centroid rule.
    cv : number of stratified folds, a scikit-learn splitter, or a list of (training, test) row numbers; for "cv", and
        for the error that is reported. None, at another shrinkage: no folds, a fit in half the time, and errors
        as statistics foretell.
    nested : True for components of which the first 1, 2, … serve on their own (a little less good together than k
        chosen at once); False for the widest first.
    priors : class probabilities p, in the objective and for prediction: None (as in the data), "equal", or one number
        per class.
    class_weight : None, "balanced", or a dict from label to a factor on its rows' weights.
    n_init : number of random starts, beside LDA's directions and Loog's.
    random_state : seed of the random starts, which also shuffles the folds; None for 0 and scikit-learn's unshuffled
        ones.

    Attributes
    ----------
    As RegularizedLDA's; n_discriminants_ of the components are discriminants, and prediction uses all there are.
    eigenvalues_ : between-class variance along the components, over Σ_γ.
    pair_errors_ : C×C, how often new rows of two classes are mistaken for each other in these components (equal priors,
        Gaussian): from held-out class means along training directions, over the folds of cv; above ½ where training
        rows pointed the wrong way, NaN where a class has too few rows. After partial_fit, which has no rows to hold
        out, as statistics foretell: fair with many rows, flattering with fewer rows than columns. For a large sparse
        table, which is taken by products only, from the first fold alone.
    bayes_error_ : their mean, weighted by p_a p_b.
    spread_inflation_ : κ.

    With more than 1,000 classes, 1,000 of them, drawn by random_state, stand for all in the objective and in
    bayes_error_; there is no pair_errors_ then.

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

    def __init__(
        self,
        n_components: int | float | None = 2,
        *,
        shrinkage: float | str = "cv",
        cv: Any = 5,
        nested: bool = False,
        priors: ArrayLike | str | None = None,
        class_weight: Any = None,
        n_init: int = 8,
        random_state: Any = None,
    ) -> None:
        self.n_components = n_components
        self.shrinkage = shrinkage
        self.cv = cv
        self.nested = nested
        self.priors = priors
        self.class_weight = class_weight
        self.n_init = n_init
        self.random_state = random_state

    def _check_parameters(self) -> None:
        super()._check_parameters()
        require_starts(self.n_init)

    # ------------------------------------------------------------------ fitting

    def _discriminants(self, ratio: Ratio, moments: ClassMoments, basis: Basis) -> Discriminants:
        folds = self._folds(basis) if self._can_hold_out(basis, moments) else None
        gamma, path = self._chosen(ratio, moments, basis, folds)
        found = shrunk_discriminants(ratio, gamma, moments.precision, type(self).__name__)
        classes = WhitenedClasses.of(found, ratio)
        foretold = foretold_by_statistics(found, classes, ratio, gamma)
        seen = foretold if folds is None else tuple(held_out_rows(folds, gamma))
        k = self._count(found.values, ratio.rank, moments)
        details = self._pairing(moments, seen, inflation(foretold if path is None else seen), min(k, classes.size))
        details |= {"shrinkage": gamma, "path": path}
        if k >= classes.size and not self.nested:
            return replace(found, count=k, details=details)
        rotation = self._rotation(classes.means, ratio.shares, details)
        along = ratio.means @ classes.directions.T @ rotation
        return Discriminants(rotation.T @ classes.directions, np.vecdot(along.T, along.T), found.metric, k, details)

    def _can_hold_out(self, basis: Basis, moments: ClassMoments) -> bool:
        """Whether there are rows (not only statistics, as of a stream) and folds wanted."""
        wanted = self.cv is not None or self.shrinkage == "cv"
        return wanted and basis.points.shape[0] > 0 and bool(moments.counts.max() > 1)

    def _chosen(
        self, ratio: Ratio, moments: ClassMoments, basis: Basis, folds: Folds | None
    ) -> tuple[float, PathScores | None]:
        """The shrinkage, and the path that was searched for it."""
        if self.shrinkage != "cv":
            return self._fixed_shrinkage(ratio, moments, basis), None
        path = score_path(folds or self._folds(basis), PATH, self.priors, every_count=False)
        return path.best()[0], path

    def _count(self, values: Array, rank: int, moments: ClassMoments) -> int:
        request = self._request()
        if isinstance(request, int) and request < len(values):  # that LDA's values tie there is no matter here
            return request
        return discriminant_count(request, values, rank, (moments.n_rows, self.n_features_in_))

    def _pairing(
        self, moments: ClassMoments, held_out: Sequence[HeldOut], squared_inflation: float, k: int
    ) -> dict[str, Any]:
        """What the errors between classes are reckoned from."""
        priors = checked_priors(self.priors, moments.weights / moments.total_weight)
        seed = int(check_random_state(0 if self.random_state is None else self.random_state).randint(2**31 - 1))
        classes = np.arange(len(priors))
        if len(classes) > PAIRED_CLASSES:
            warn_of_drawn_classes(len(classes), PAIRED_CLASSES)
            classes = np.sort(np.random.default_rng(seed).choice(len(classes), PAIRED_CLASSES, replace=False))
        return {
            "held_out": tuple(part.among(classes) for part in held_out),
            "paired_classes": classes,
            "pair_priors": priors[classes],
            "inflation": float(np.sqrt(squared_inflation)),
            "subspace_size": k,
            "seed": seed,
        }

    def _rotation(self, means: Array, shares: Array, details: dict[str, Any]) -> Array:
        """q×q: first the chosen directions, then the others, as combinations of LDA's."""
        k, priors = details["subspace_size"], details["pair_priors"]
        paired = means[details["paired_classes"]] / details["inflation"]
        B = self._subspace(paired, priors, details, self.n_init)
        whole = completed(B, (means.T * shares) @ means)
        if self.nested:
            whole[:, :k] = whole[:, :k] @ nested_axes(paired @ whole[:, :k], priors, self.n_init, details["seed"])
        return whole

    def _subspace(self, means: Array, priors: Array, details: dict[str, Any], n_random: int) -> Array:
        """The k best of q dimensions, all where there are no more."""
        k, q = details["subspace_size"], means.shape[1]
        return error_subspace(means, priors, k, n_random, details["seed"]) if k < q else np.eye(q)

    def _solve(self, basis: Basis, moments: ClassMoments, request: Any) -> Solution:
        if not basis.as_operator:
            return super()._solve(basis, moments, request)
        system = RidgeSystem.of(moments, basis, float(self.shrinkage))
        asked = request if isinstance(request, int) and request >= len(moments.weights) - 1 else None
        posed, found = ridge_discriminants(system, moments, asked, self.n_features_in_)
        q, k = len(found.values), self._count(found.values, posed.rank, moments)
        if k > len(posed.directions):
            posed, found = ridge_discriminants(system, moments, k, self.n_features_in_)
        means = moments.centred_means() @ found.directions.T
        seen = foretold = foretold_by_products(system, found.directions, means, moments)
        if self._can_hold_out(basis, moments):
            seen = tuple(held_out_by_products(self._folds(basis), system.gamma))
        details = found.details | self._pairing(moments, seen, inflation(foretold), min(k, q))
        if k < q or self.nested:
            shares = moments.weights / moments.total_weight
            rotation = self._rotation(means, shares, details)
            posed = replace(posed, directions=_turned(posed.directions, rotation)[:k])
            posed = replace(posed, covariances=_turned(posed.covariances, rotation)[:k])
            found = replace(found, values=shares @ (means @ rotation) ** 2)
        return self._solution(posed, replace(found, details=details), moments, basis)

    # ------------------------------------------------------------------ errors between classes

    def _pair_errors(self) -> Array:
        """Between the paired classes; found when first asked for, as each fold has a subspace of its own."""
        details = self._fitted().details
        if "pair_errors" not in details:
            priors, kappa = details["pair_priors"], details["inflation"]

            def subspace(part: HeldOut) -> Array:
                known = part.is_trained
                return self._subspace(part.trained[known] / kappa, priors[known], details, 0)

            details["pair_errors"] = held_out_pair_errors(details["held_out"], subspace, len(priors))
        return details["pair_errors"]

    @property
    def spread_inflation_(self) -> float:
        """κ: how much wider new rows are taken to spread around their class means than training rows."""
        return self._fitted().details["inflation"]

    @property
    def pair_errors_(self) -> Array:
        """Error between each two classes in the components (C×C)."""
        errors = self._pair_errors()
        if len(errors) < len(self.classes_):
            raise AttributeError(
                f"pair_errors_ is a table of classes by classes, and {len(self.classes_)} classes came: with more than "
                f"{PAIRED_CLASSES} only their mean is there, bayes_error_."
            )
        return errors

    @property
    def bayes_error_(self) -> float:
        """Mean error between two classes in the components, weighted by p_a p_b."""
        errors, priors = self._pair_errors(), self._fitted().details["pair_priors"]
        weights = np.outer(priors, priors) * np.isfinite(errors)
        np.fill_diagonal(weights, 0.0)
        total = float(weights.sum())
        return float(np.nansum(weights * errors) / total) if total > 0 else float("nan")


def _turned(rows: Array, rotation: Array) -> Array:
    """The first q rows turned, those beyond (pads) as they are."""
    q = len(rotation)
    return np.concatenate([rotation.T @ rows[:q], rows[q:]])
