"""Base class of linear discriminant analysis, nearest-centroid classification, and the choice of a shrinkage.

    score_c(x) = −½ ‖A(x−μ) − A(μ_c−μ)‖² + log p_c ,    A = discriminants scaled to unit within-class covariance

Predictions use all discriminants for any n_components, but no further components. Up to a term that is the same for all
classes the score is linear in x, so `coef_` and `intercept_` exist.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import log_softmax
from sklearn.base import ClassifierMixin

from discrim.core.cross_validation import PATH, PathScores, by_content, score_path
from discrim.core.discriminants import Discriminants, WhitenedClasses, standardised
from discrim.core.eigen import discriminant_count, require_directions
from discrim.core.problem import Folding, Needs, Problem
from discrim.core.ratio import Covariance, Ratio, chosen_shrinkage
from discrim.docstrings import public_estimator
from discrim.estimators.base import Reducer
from discrim.estimators.fitting import fitted_attribute, solved
from discrim.estimators.solution import Solution
from discrim.tables.check_parameters import COUNT, FLAG, GAPS, SHARE, Constraints, class_factors, named
from discrim.tables.rows import projected
from discrim.tables.validation import as_given, require_representable
from discrim.warn_once import warn

Array = NDArray[np.float64]
SCORES_AT_ONCE = 2**22  # rows × classes held while predicting
REACH = 1e100  # deviations up to which scores are finite
FAR = 1e3  # distance of centroids, in deviations, from which scores are recomputed relative to the nearest one
FEW_CENTROIDS = 1000  # … if there are at most this many
MISSED_LOADINGS = 5e-7  # share of a discriminant; the estimate omits covariances, so up to 2e-6 may be missed
HALF_THE_DIGITS = 1e-9  # inverse condition number: discriminants are accurate to about 1e-16 divided by this
MIN_BY_PRODUCTS = 0.01  # conjugate gradients do not converge in a thousand steps below this


@dataclass(frozen=True, eq=False)
class CentroidRule:
    """Nearest-centroid classification: q directions (q×d), projected centroids (C×q) and log priors."""

    directions: Array
    centroids: Array
    log_priors: Array

    def scores(self, table: Any, mean: Array) -> Iterator[Array]:
        """Yield the scores of consecutive rows, in blocks that stay small with many classes."""
        centroids, log_priors = self.centroids, self.log_priors
        offsets = log_priors - 0.5 * np.einsum("cq,cq->c", centroids, centroids)
        features = projected(table, mean, self.directions).astype(np.float64, copy=False)
        require_representable(features, table)
        step = max(1, SCORES_AT_ONCE // len(centroids))
        far = len(centroids) <= FEW_CENTROIDS and np.abs(centroids).max(initial=0.0) > FAR
        for first in range(0, len(features), step):
            part = _within_reach(features[first : first + step])
            scores = part @ centroids.T + offsets
            yield _around_nearest(part, scores, centroids, log_priors) if far else scores

    def linear_scores(self, mean: Array) -> tuple[Array, Array]:
        """Return weights (C×d) and constants (C) of the scores; for two classes the second's minus the first's."""
        coef = self.centroids @ self.directions
        constants = self.log_priors - 0.5 * np.einsum("cq,cq->c", self.centroids, self.centroids)
        constants = constants - self.centroids @ (self.directions @ mean)
        return (coef[1:] - coef[:1], constants[1:] - constants[:1]) if len(coef) == 2 else (coef, constants)


def _within_reach(features: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the rows, with those whose products would overflow scaled down."""
    lengths = np.abs(features).max(axis=1, initial=0.0)
    return features if lengths.max(initial=0.0) <= REACH else features / np.maximum(lengths / REACH, 1.0)[:, None]


def _around_nearest(
    features: NDArray[np.float64],
    scores: NDArray[np.float64],
    centroids: NDArray[np.float64],
    log_priors: NDArray[np.float64],
) -> NDArray[np.float64]:
    """Return the same scores, up to a constant per row, computed relative to the nearest centroid.

    f·c − ½‖c‖² is a difference of numbers as large as the squared distances between centroids; (f−n)·(c−n) − ½‖c−n‖²
    for classes near n is not.
    """
    nearest = scores.argmax(axis=1)
    result = np.empty_like(scores)
    for c in np.unique(nearest):
        rows, others = nearest == c, centroids - centroids[c]
        offsets = log_priors - 0.5 * np.einsum("cq,cq->c", others, others)
        result[rows] = (features[rows] - centroids[c]) @ others.T + offsets
    return result


@public_estimator
class CentroidClassifier(ClassifierMixin):
    """Mixin for reducers that predict by a fitted `CentroidRule`."""

    _rule: CentroidRule

    def decision_function(self: Any, X: ArrayLike) -> NDArray[np.float64]:
        """Compute the scores of the classes.

        {of_rows}

        Returns
        -------
        scores : array of shape (n_samples, n_classes), or (n_samples,) with two classes
            Scores of all classes; for two classes the second's minus the first's.
        """
        table = self._fitted_table(X)
        scores = np.concatenate(list(self._rule.scores(table, self.mean_)))
        scores = scores[:, 1] - scores[:, 0] if scores.shape[1] == 2 else scores
        return as_given(scores.astype(table.dtype, copy=False), X)

    def predict(self: Any, X: ArrayLike) -> NDArray[Any]:
        """Predict the label of the nearest centroid.

        {predicted}
        """
        table = self._fitted_table(X)  # raises if not fitted
        nearest = np.concatenate([part.argmax(axis=1) for part in self._rule.scores(table, self.mean_)])
        return as_given(self.classes_[nearest], X)

    @fitted_attribute
    def coef_(self: Any) -> NDArray[Any]:
        """Weights of the linear scores (C×d; for two classes the second's minus the first's, 1×d)."""
        return self._rule.linear_scores(self.mean_)[0].astype(self.components_.dtype, copy=False)

    @fitted_attribute
    def intercept_(self: Any) -> NDArray[Any]:
        """Constants of the linear scores (C; for two classes 1)."""
        return self._rule.linear_scores(self.mean_)[1].astype(self.components_.dtype)


@dataclass(frozen=True, eq=False, kw_only=True)
class DiscriminantSolution(Solution):
    """Solution of discriminants, with the nearest-centroid rule and the structure coefficients."""

    n_discriminants_: int
    structure_coefficients_: Array  # in a problem's coordinates: components times S_t/n, divided by their deviations
    _rule: CentroidRule
    _centred_means: Array
    _covariance: Array | None  # in the features

    def _lifted(self) -> tuple[Array, ...]:
        return self.structure_coefficients_, self._rule.directions, self._centred_means

    def _others_in_features(self, lifted: list[Array], signs: Array, deviations: Array) -> dict[str, Any]:
        covariances, directions, means = lifted
        scale = np.broadcast_to(deviations, covariances.shape)
        correlations = np.divide(covariances, scale, out=np.zeros_like(covariances), where=scale > 0)
        return {
            "structure_coefficients_": np.clip(correlations * signs[:, None], -1.0, 1.0),
            "_rule": replace(self._rule, directions=directions),
            "_centred_means": means,
        }


class DiscriminantReducer(CentroidClassifier, Reducer):
    """Base class of methods that maximise a gain over a cost; `_find` defines both."""

    _parameter_constraints: ClassVar[Constraints] = {"n_components": COUNT, "store_covariance": FLAG, "missing": GAPS}
    n_discriminants_: int = solved()
    structure_coefficients_: Array = solved()
    _centred_means: Array
    _covariance: Array | None

    def __init__(
        self,
        n_components: int | float | None = None,
        *,
        priors: ArrayLike | str | None = None,
        class_weight: Any = None,
        store_covariance: bool = False,
        missing: str | None = None,
    ) -> None:
        super().__init__(n_components)
        self.priors = priors
        self.class_weight = class_weight
        self.store_covariance = store_covariance
        self.missing = missing

    @abstractmethod
    def _find(self, problem: Problem) -> Discriminants:
        """Return all discriminants, in their defining scale and order."""

    def _scaled_pads(self, pads: Array, ratio: Ratio) -> Array:
        """Return unit directions beyond the discriminants, in a matching scale."""
        return standardised(pads, ratio)

    def _needs(self) -> Needs:
        why = f"{type(self).__name__} needs the whole within-class scatter (RegularizedLDA(shrinkage=0.1) does not)"
        if self.store_covariance:
            why = "store_covariance=True needs the whole within-class covariance"
        rows = None
        if isinstance(self.class_weight, str):
            rows = (
                f"class_weight={self.class_weight!r} needs all rows at once. Statistics suffice for a dict of class "
                "weights."
            )
        return Needs(
            directions="all",
            matrix=why,
            contrasts=True,
            rows=rows,
            class_weight=self.class_weight,
            priors=self.priors,
        )

    def _solve(self, problem: Problem) -> Solution:
        moments, shape, ratio = problem.moments, problem.shape, problem.ratio
        require_directions(ratio.rank, shape)
        priors = problem.priors
        if self.class_weight is not None:
            known = moments.classes if problem.declared is None else np.union1d(moments.classes, problem.declared)
            class_factors(self.class_weight, moments.classes, moments.weights, known)
        found = self._find(problem)
        if not len(found.values):
            raise ValueError(
                "X must differ between the classes in some direction; got classes with equal means and, as far as this "
                "method uses them, equal covariances. Check the label column."
            )
        if found.is_singular:
            warn(
                "The within-class scatter is singular (fewer rows than columns, or columns that do not vary within "
                f"classes), so {type(self).__name__} uses the total scatter instead. Directions without within-class "
                "deviation are first, and the training classes look better separated than new rows will be. "
                "RegularizedLDA is usually better here.",
            )
        elif _loses_digits(found, problem):
            warn(
                "Some columns are so nearly combinations of others that the separating directions are ill-conditioned "
                "or left out, so the discriminants may have fewer than half of their digits. Look for duplicate "
                "columns, a row in other units and placeholders such as -9999, or use RegularizedLDA with a shrinkage.",
            )
        k = found.count or discriminant_count(problem.request, found.values, ratio.rank, shape, found.ties_settled)
        directions = found.directions[:k]
        if k > len(directions):
            pads = problem.basis.complement(ratio, found.directions, k - len(directions))
            pads = pads if found.orthonormal else self._scaled_pads(pads, ratio)
            directions = np.concatenate([directions, pads])
        return self._solution(directions, found, problem, np.log(priors))

    def _solution(
        self, directions: Array, found: Discriminants, problem: Problem, log_priors: Array
    ) -> DiscriminantSolution:
        basis, moments, ratio = problem.basis, problem.moments, problem.ratio
        k, q = len(directions), len(found.values)
        values = np.zeros(k)
        values[:q] = found.values[:k]
        whitened, means = ratio.embedded(WhitenedClasses.of(found, ratio).directions), moments.centred_means()
        covariances = ratio.total_along(directions)
        deviations = np.sqrt(np.maximum(np.einsum("kd,kd->k", covariances, directions), 0.0))
        covariance, gamma = None, getattr(found.found, "shrinkage_", 0.0)
        if self.store_covariance:
            within = moments.in_squared_units((1 - gamma) / moments.total_weight * moments.within)
            covariance = np.array(basis.lift(basis.lift(within).T))
            covariance[np.diag_indices(len(covariance))] += moments.in_squared_units(np.array(ratio.ridge(gamma)))
        per_deviation = covariances / np.where(deviations > 0, deviations, np.inf)[:, None]
        return DiscriminantSolution(
            components_=ratio.embedded(directions),
            is_unit_free=found.orthonormal,
            eigenvalues_=moments.in_squared_units(values) if found.orthonormal else values,
            explained_variance_ratio_=values / found.values.sum(),
            rank_=ratio.rank,
            solver_=f"{q} discriminants of a {ratio.rank}×{ratio.rank} ratio",
            is_resolved=basis.is_resolved,
            found=found.found,
            n_discriminants_=min(q, k),
            structure_coefficients_=ratio.embedded(per_deviation),
            _rule=CentroidRule(moments.scaled(whitened), means @ whitened.T, log_priors),
            _centred_means=moments.in_row_units(means),
            _covariance=covariance,
        )

    def predict_log_proba(self, X: ArrayLike) -> NDArray[np.float64]:
        """Compute the log probability of every class, for Gaussian classes with equal covariances.

        {of_rows}

        Returns
        -------
        log_probabilities : array of shape (n_samples, n_classes)
            Log probabilities in the order of classes_.
        """
        return as_given(self._log_probabilities(X), X)

    def _log_probabilities(self, X: ArrayLike) -> Array:
        table = self._fitted_table(X)
        return np.concatenate([log_softmax(part, axis=1) for part in self._rule.scores(table, self.mean_)])

    def predict_proba(self, X: ArrayLike) -> NDArray[np.float64]:
        """Compute the probability of every class, for Gaussian classes with equal covariances.

        {probabilities}
        """
        return as_given(np.exp(self._log_probabilities(X)), X)

    @fitted_attribute
    def means_(self) -> NDArray[np.float64]:
        """Class means (C×d)."""
        return self.mean_ + self._centred_means

    @fitted_attribute
    def priors_(self) -> NDArray[np.float64]:
        """Prior class probabilities used for prediction."""
        return np.exp(self._rule.log_priors)

    @fitted_attribute
    def xbar_(self) -> NDArray[np.float64]:
        """Mean of the class means, weighted by their priors: `mean_` if the priors are the class frequencies."""
        return self.mean_ + self.priors_ @ self._centred_means

    @fitted_attribute
    def scalings_(self) -> NDArray[Any]:
        """Directions as columns (d×k); transform returns (x − mean_) scalings_."""
        return self.components_.T

    @fitted_attribute
    def covariance_(self) -> NDArray[np.float64]:
        """Within-class covariance (d×d) used for distances between classes, if store_covariance=True."""
        if self._covariance is None:
            raise AttributeError(
                f"{type(self).__name__} has no covariance_ unless store_covariance=True, because it takes d×d numbers. "
                "Set the parameter and fit again."
            )
        return self._covariance


def _loses_digits(found: Discriminants, problem: Problem) -> bool:
    """Return True if fewer than half the digits of the discriminants are correct, or some directions are lost."""
    basis, moments, ratio = problem.basis, problem.moments, problem.ratio
    cost = ratio.within_classes if found.cost is None else found.cost
    if found.cost is None and not cost.is_nonsingular:
        cost = Covariance(ratio.total, ratio.precision)
    if not cost.is_nonsingular or cost.inverse_condition <= HALF_THE_DIGITS:
        return True
    ridge = ratio.ridge(getattr(found.found, "shrinkage_", 0.0))  # distinguishes small from zero
    if ridge:
        if ratio.left_out is None:
            return False
        # discriminants have loadings along v without visible variance: g·v = (Hg)·(Hv) / (λ ridge)
        directions = ratio.left_out / np.linalg.norm(ratio.left_out, axis=1)[:, None]
        gaps = np.sqrt(ratio.shares)[:, None] * moments.centred_means() @ directions.T
        discriminants = found.directions[: len(found.values)]
        missed = gaps.T @ (ratio.means @ discriminants.T) / (found.values * ridge)
        is_missed = (np.abs(missed) > MISSED_LOADINGS * np.linalg.norm(discriminants, axis=1)).any()
        return bool(is_missed) and basis.hides_spread(ratio, moments)
    return ratio.min_variance <= HALF_THE_DIGITS or basis.hides_spread(ratio, moments)


# ---------------------------------------------------------------------- shrinkage: Σ_γ = (1−γ) S_w/n + γ τ I


@dataclass(frozen=True, eq=False)
class Shrinkage:
    """Shrinkage γ that was used, scores of those that were tried, and the number of discriminants if it was chosen."""

    shrinkage_: float
    path_: PathScores | None = None
    count: int | None = None


SHRINKAGE: Constraints = {
    **DiscriminantReducer._parameter_constraints,
    "shrinkage": (SHARE, *named("ledoit_wolf", "oas", "cv")),
}


def shrinkage_needs(model: Any, needs: Needs, judged: bool = False) -> Needs:
    """Return the needs of a method with the parameters `shrinkage`, `cv` and `random_state`.

    judged : True if folds evaluate the result even if they choose nothing
    """
    searches = "cv" in (model.n_components, model.shrinkage)
    matrix, rows = needs.matrix, needs.rows
    if not model.store_covariance:
        is_fixed = not (searches or isinstance(model.shrinkage, str) or model.shrinkage == 0)
        matrix = (
            None
            if is_fixed
            else (
                "only a fixed shrinkage above 0 (e.g. shrinkage=0.1 with an int n_components), or 'cv' with a number "
                "of folds, works without the whole within-class scatter"
            )
        )
    if model.shrinkage == "ledoit_wolf":
        rows = "shrinkage='ledoit_wolf' needs all rows at once. Statistics suffice for a number, 'oas' or 'cv'."
    elif searches and not by_content(model.cv):
        rows = (
            "cv must be a number of folds or a HashKFold, whose folds are derived from the contents of the rows, for a "
            f"table in parts; got {model.cv!r}, which refers to row numbers."
        )
    on_sample = model.shrinkage == "cv" and model.n_components != "cv" and not model.store_covariance
    folds = Folding(
        model.cv, model.random_state, "choose" if searches else "judge" if judged else "none", on_sample=on_sample
    )
    return replace(needs, matrix=matrix, rows=rows, folds=folds)


def choose_shrinkage(model: Any, problem: Problem) -> Shrinkage:
    """Return the given, computed or cross-validated shrinkage, and a number of discriminants if it is searched."""
    basis, moments, ratio = problem.basis, problem.moments, problem.ratio
    tried, counts = PATH, model.n_components == "cv"
    if model.shrinkage in ("oas", "ledoit_wolf"):
        columns = int((basis.feature_variances(moments) > 0).sum())
        tried = np.array([chosen_shrinkage(model.shrinkage, ratio, moments, basis.points, columns)])
    elif model.shrinkage != "cv":
        tried = np.array([float(model.shrinkage)])
    if not counts and model.shrinkage != "cv":
        return Shrinkage(float(tried[0]))
    folds, is_sample = problem.training_sets_for_choice()
    if is_sample:  # with products only, small ridges do not converge
        tried = tried[tried >= MIN_BY_PRODUCTS]
    path = score_path(folds, tried, model.priors, every_count=counts)
    gamma, count = path.best()
    return Shrinkage(gamma, path, count if counts else None)
