"""Base class of linear discriminant analysis, classification by the nearest centroid, and the choice of a shrinkage.

    score_c(x) = −½ ‖A(x−μ) − A(μ_c−μ)‖² + log p_c ,    A the discriminants, scaled to unit within-class covariance

All discriminants take part in predictions, never the pads, for any n_components. Up to a term that is the same for all
classes the score is linear in x, so `coef_` and `intercept_` exist too.
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

from discrim.core.coordinates.basis import Basis
from discrim.core.cross_validation import PATH, PathScores, by_content, score_path
from discrim.core.discriminants import Discriminants, classical, principal, standardised, whitened_span
from discrim.core.eigen import discriminant_count, require_directions
from discrim.core.moments.class_moments import ClassMoments
from discrim.core.problem import Folding, Needs, Problem
from discrim.core.ratio import Covariance, Ratio, chosen_shrinkage
from discrim.estimators.base import Reducer
from discrim.estimators.fitting import fitted_attribute, solved
from discrim.estimators.solution import Solution
from discrim.tables.check_parameters import COUNT, FLAG, GAPS, SHARE, Constraints, checked_priors, class_factors, named
from discrim.tables.foreign_arrays import as_given
from discrim.tables.rows import projected
from discrim.tables.validation import require_representable
from discrim.tables.warn_once import warn
from discrim.threads import on_one_blas_thread_throughout

Array = NDArray[np.float64]
SCORES_AT_ONCE = 2**22  # rows × classes that are held while predicting
REACH = 1e100  # deviations up to which scores are finite
FAR = 1e3  # deviations between centroids from which scores are computed again around the nearest one
FEW_CENTROIDS = 1000  # … if there are no more than these
MISSED_LOADINGS = 5e-7  # share of a discriminant; the estimate leaves covariances out, so up to 2e-6 is missed
HALF_THE_DIGITS = 1e-9  # an inverse condition number: discriminants are known to about 1e-16 over this
LEAST_BY_PRODUCTS = 0.01  # conjugate gradients do not converge in a thousand steps with less


@dataclass(frozen=True, eq=False)
class CentroidRule:
    """Classification by the nearest class centroid: q directions (q×d), centroids along them (C×q), log priors."""

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
        """Return weights (C×d) and constants (C) of the scores; with two classes the second's minus the first's."""
        coef = self.centroids @ self.directions
        constants = self.log_priors - 0.5 * np.einsum("cq,cq->c", self.centroids, self.centroids)
        constants = constants - self.centroids @ (self.directions @ mean)
        return (coef[1:] - coef[:1], constants[1:] - constants[:1]) if len(coef) == 2 else (coef, constants)


def _within_reach(features: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return rows with those whose products would overflow moved nearer, in the same direction."""
    lengths = np.abs(features).max(axis=1, initial=0.0)
    return features if lengths.max(initial=0.0) <= REACH else features / np.maximum(lengths / REACH, 1.0)[:, None]


def _around_nearest(
    features: NDArray[np.float64],
    scores: NDArray[np.float64],
    centroids: NDArray[np.float64],
    log_priors: NDArray[np.float64],
) -> NDArray[np.float64]:
    """Return the same scores, up to a number for each row, computed around the nearest centroid.

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


@on_one_blas_thread_throughout
class CentroidClassifier(ClassifierMixin):
    """Mixin of reducers that predict by a fitted `CentroidRule`."""

    _rule: CentroidRule

    def decision_function(self: Any, X: ArrayLike) -> NDArray[np.float64]:
        """Compute the scores of the classes.

        Parameters
        ----------
        X : array or sparse matrix of shape (n_samples, n_features)
            Rows.

        Returns
        -------
        scores : array of shape (n_samples, n_classes), or (n_samples,) with two classes
            Scores of all classes; with two classes the second's minus the first's.
        """
        table = self._fitted_table(X)
        scores = np.concatenate(list(self._rule.scores(table, self.mean_)))
        scores = scores[:, 1] - scores[:, 0] if scores.shape[1] == 2 else scores
        return as_given(scores.astype(table.dtype, copy=False), X)

    def predict(self: Any, X: ArrayLike) -> NDArray[Any]:
        """Predict the label of the nearest centroid.

        Parameters
        ----------
        X : array or sparse matrix of shape (n_samples, n_features)
            Rows.

        Returns
        -------
        labels : array of shape (n_samples,)
            A label for each row.
        """
        table = self._fitted_table(X)  # which requires a fit first
        nearest = np.concatenate([part.argmax(axis=1) for part in self._rule.scores(table, self.mean_)])
        return as_given(self.classes_[nearest], X)

    @fitted_attribute
    def coef_(self: Any) -> NDArray[Any]:
        """Weights of the linear scores (C×d; with two classes the second's minus the first's, 1×d)."""
        return self._rule.linear_scores(self.mean_)[0].astype(self.components_.dtype, copy=False)

    @fitted_attribute
    def intercept_(self: Any) -> NDArray[Any]:
        """Constants of the linear scores (C; with two classes 1)."""
        return self._rule.linear_scores(self.mean_)[1].astype(self.components_.dtype)


@dataclass(frozen=True, eq=False, kw_only=True)
class DiscriminantSolution(Solution):
    """Solution of discriminants, with the rule of the nearest centroid and what the components stand for."""

    n_discriminants_: int
    structure_coefficients_: Array  # in a problem's coordinates: components times S_t/n, each over its own deviation
    _rule: CentroidRule
    _centred_means: Array
    _covariance: Array | None  # in a problem's coordinates: without the ridge, which is on every feature
    ridge: float

    def _others_in_features(self, basis: Basis, signs: Array, deviations: Array) -> dict[str, Any]:
        covariances = basis.lift(self.structure_coefficients_) * signs[:, None]
        scale = np.broadcast_to(deviations, covariances.shape)
        correlations = np.divide(covariances, scale, out=np.zeros_like(covariances), where=scale > 0)
        covariance = None
        if self._covariance is not None:
            covariance = np.array(basis.lift(basis.lift(self._covariance).T))
            covariance[np.diag_indices(len(covariance))] += self.ridge
        return {
            "structure_coefficients_": np.clip(correlations, -1.0, 1.0),
            "_rule": replace(self._rule, directions=basis.lift(self._rule.directions)),
            "_centred_means": basis.lift(self._centred_means),
            "_covariance": covariance,
        }


class DiscriminantReducer(CentroidClassifier, Reducer):
    """Base class of methods that maximise a gain over a cost; `_find` states both."""

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
        """Return unit directions beyond the discriminants, in the scale that goes with them."""
        return standardised(pads, ratio)

    def _needs(self) -> Needs:
        why = f"{type(self).__name__} needs the whole within-class scatter (RegularizedLDA(shrinkage=0.1) does not)"
        if self.store_covariance:
            why = "store_covariance=True asks for the whole within-class covariance"
        rows = None
        if isinstance(self.class_weight, str):
            rows = (
                f"class_weight={self.class_weight!r} needs all rows at once. Statistics suffice for a dict of class "
                "weights."
            )
        return Needs(directions="all", matrix=why, contrasts=True, rows=rows, class_weight=self.class_weight)

    def _solve(self, problem: Problem) -> Solution:
        moments, shape, ratio = problem.moments, problem.shape, problem.ratio
        require_directions(ratio.rank, shape)
        priors = checked_priors(self.priors, ratio.shares)
        if self.class_weight is not None:
            known = moments.classes if problem.declared is None else np.union1d(moments.classes, problem.declared)
            class_factors(self.class_weight, moments.classes, moments.weights, known)
        found = self._find(problem)
        if not len(found.values):
            raise ValueError(
                "The classes differ along no direction, neither in their means nor in anything else that this method "
                "uses. Check the label column."
            )
        if found.is_singular:
            warn(
                "The within-class scatter is singular (fewer rows than columns, or columns that do not vary within "
                f"classes), so {type(self).__name__} uses the total scatter instead: directions without any "
                "within-class deviation are first, and the training classes look better separated than new rows will. "
                "RegularizedLDA is usually the better choice here.",
            )
        elif _loses_digits(found, problem):
            warn(
                "Some columns are so nearly combinations of others that the separating directions are ill-conditioned, "
                "or left out: the discriminants may be correct to less than half the digits. Look for columns given "
                "twice, a row in other units and placeholders such as -9999, or use RegularizedLDA with a shrinkage.",
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
        unit = 0.5**moments.exponent  # from the moments' units to the rows'
        whitened, most = whitened_span(found, ratio), len(ratio.shares) - 1
        if len(whitened) > most:  # only the directions in which the class means lie: no score needs the others
            whitened = principal(ratio.means @ whitened.T)[1][:most] @ whitened
        whitened, means = ratio.embedded(whitened), moments.centred_means()
        covariances = ratio.total_along(directions)
        deviations = np.sqrt(np.maximum(np.einsum("kd,kd->k", covariances, directions), 0.0))
        gamma = getattr(found.found, "shrinkage_", 0.0)
        within = (1 - gamma) / moments.total_weight * moments.within if self.store_covariance else None
        per_deviation = covariances / np.where(deviations > 0, deviations, np.inf)[:, None]
        return DiscriminantSolution(
            components_=ratio.embedded(directions) * (1.0 if found.orthonormal else unit),
            eigenvalues_=moments.in_squared_units(values) if found.orthonormal else values,
            explained_variance_ratio_=values / found.values.sum(),
            rank_=ratio.rank,
            solver_=f"{q} discriminants of a {ratio.rank}×{ratio.rank} ratio",
            is_resolved=basis.is_resolved,
            found=found.found,
            n_discriminants_=min(q, k),
            structure_coefficients_=ratio.embedded(per_deviation),
            _rule=CentroidRule(whitened * unit, means @ whitened.T, log_priors),
            _centred_means=means if not moments.exponent else np.ldexp(means, moments.exponent),
            _covariance=None if within is None else moments.in_squared_units(within),
            ridge=float(moments.in_squared_units(np.array(ratio.ridge(gamma)))),
        )

    def predict_log_proba(self, X: ArrayLike) -> NDArray[np.float64]:
        """Compute the log probability of every class, for Gaussian classes of one covariance.

        Parameters
        ----------
        X : array or sparse matrix of shape (n_samples, n_features)
            Rows.

        Returns
        -------
        log_probabilities : array of shape (n_samples, n_classes)
            In the order of classes_.
        """
        return as_given(self._log_probabilities(X), X)

    def _log_probabilities(self, X: ArrayLike) -> Array:
        table = self._fitted_table(X)
        return np.concatenate([log_softmax(part, axis=1) for part in self._rule.scores(table, self.mean_)])

    def predict_proba(self, X: ArrayLike) -> NDArray[np.float64]:
        """Compute the probability of every class, for Gaussian classes of one covariance.

        Parameters
        ----------
        X : array or sparse matrix of shape (n_samples, n_features)
            Rows.

        Returns
        -------
        probabilities : array of shape (n_samples, n_classes)
            In the order of classes_.
        """
        return as_given(np.exp(self._log_probabilities(X)), X)

    @fitted_attribute
    def means_(self) -> NDArray[np.float64]:
        """Class means (C×d)."""
        return self.mean_ + self._centred_means

    @fitted_attribute
    def priors_(self) -> NDArray[np.float64]:
        """Class probabilities that predictions start from."""
        return np.exp(self._rule.log_priors)

    @fitted_attribute
    def xbar_(self) -> NDArray[np.float64]:
        """Mean of the class means, weighted by their priors: `mean_` if the priors are the classes' shares."""
        return self.mean_ + self.priors_ @ self._centred_means

    @fitted_attribute
    def scalings_(self) -> NDArray[Any]:
        """The directions as columns (d×k): transform gives (x − mean_) scalings_."""
        return self.components_.T

    @fitted_attribute
    def covariance_(self) -> NDArray[np.float64]:
        """Within-class covariance (d×d) that distances between classes are measured in, if it was asked for."""
        if self._covariance is None:
            raise AttributeError(
                f"{type(self).__name__} keeps no covariance_, d×d numbers, unless asked to: pass store_covariance=True "
                "and fit again."
            )
        return self._covariance


def _loses_digits(found: Discriminants, problem: Problem) -> bool:
    """Return whether less than half the digits of the discriminants, or none of some directions, are known."""
    basis, moments, ratio = problem.basis, problem.moments, problem.ratio
    cost = ratio.within_classes if found.cost is None else found.cost
    if found.cost is None and not cost.is_nonsingular:
        cost = Covariance(ratio.total, ratio.precision)
    if not cost.is_nonsingular or cost.inverse_condition <= HALF_THE_DIGITS:
        return True
    ridge = ratio.ridge(getattr(found.found, "shrinkage_", 0.0))  # which tells small from nothing
    if ridge:
        return _misses_loadings(found, ratio, moments, ridge) and basis.hides_spread(ratio, moments)
    return ratio.least_kept <= HALF_THE_DIGITS or basis.hides_spread(ratio, moments)


def _misses_loadings(found: Discriminants, ratio: Ratio, moments: ClassMoments, ridge: float) -> bool:
    """Return whether discriminants have loadings along v without visible variance: g·v = (Hg)·(Hv) / (λ ridge)."""
    if ratio.left_out is None:
        return False
    directions = ratio.left_out / np.linalg.norm(ratio.left_out, axis=1)[:, None]
    gaps = np.sqrt(ratio.shares)[:, None] * moments.centred_means() @ directions.T
    q = len(found.values)
    missed = gaps.T @ (ratio.means @ found.directions[:q].T) / (found.values * ridge)
    return bool((np.abs(missed) > MISSED_LOADINGS * np.linalg.norm(found.directions[:q], axis=1)).any())


# ---------------------------------------------------------------------- shrinkage: Σ_γ = (1−γ) S_w/n + γ τ I


@dataclass(frozen=True, eq=False)
class Shrinkage:
    """The γ that was used, and the scores of those that were tried."""

    shrinkage_: float
    path_: PathScores | None


SHRINKAGE: Constraints = {
    **DiscriminantReducer._parameter_constraints,
    "shrinkage": (SHARE, *named("ledoit_wolf", "oas", "cv")),
}


def shrinkage_needs(model: Any, needs: Needs, judged: bool = False) -> Needs:
    """Return the needs of a method with the parameters `shrinkage`, `cv` and `random_state`.

    judged : whether folds that choose nothing judge the result
    """
    searches = "cv" in (model.n_components, model.shrinkage)
    matrix, rows = needs.matrix, needs.rows
    if not model.store_covariance:
        is_fixed = not (searches or isinstance(model.shrinkage, str) or model.shrinkage == 0)
        matrix = (
            None
            if is_fixed
            else (
                "only a fixed shrinkage above 0 (pass shrinkage=0.1, say, and an int n_components), or 'cv' with a "
                "number of folds, does without the whole within-class scatter"
            )
        )
    if model.shrinkage == "ledoit_wolf":
        rows = "shrinkage='ledoit_wolf' needs all rows at once. Statistics suffice for a number, 'oas' or 'cv'."
    elif searches and not by_content(model.cv):
        rows = (
            f"cv={model.cv!r} names rows, which come in parts here. Pass a number of folds or a HashKFold: their folds "
            "follow from the rows' content."
        )
    on_sample = model.shrinkage == "cv" and model.n_components != "cv" and not model.store_covariance
    folds = Folding(
        model.cv, model.random_state, "choose" if searches else "judge" if judged else "none", on_sample=on_sample
    )
    return replace(needs, matrix=matrix, rows=rows, folds=folds)


def shrunk_discriminants(model: Any, problem: Problem) -> Discriminants:
    """Return all discriminants at the shrinkage that is given, computed, or searched for."""
    ratio = problem.separated
    chosen, count = choose_shrinkage(model, problem)
    found = classical(ratio, problem.basis.cost(ratio, chosen.shrinkage_))
    return replace(found, count=count, found=chosen)


def choose_shrinkage(model: Any, problem: Problem) -> tuple[Shrinkage, int | None]:
    """Return the shrinkage that is given, computed, or searched for, and a number of discriminants if searched for."""
    basis, moments, ratio = problem.basis, problem.moments, problem.ratio
    tried, counts = PATH, model.n_components == "cv"
    if model.shrinkage in ("oas", "ledoit_wolf"):
        columns = int((basis.feature_variances(moments) > 0).sum())
        tried = np.array([chosen_shrinkage(model.shrinkage, ratio, moments, basis.points, columns)])
    elif model.shrinkage != "cv":
        tried = np.array([float(model.shrinkage)])
    if not counts and model.shrinkage != "cv":
        return Shrinkage(float(tried[0]), None), None
    folds, is_sample = problem.training_sets_for_choice()
    if is_sample:  # none too small if there are products only
        tried = tried[tried >= LEAST_BY_PRODUCTS]
    path = score_path(folds, tried, model.priors, every_count=counts)
    gamma, count = path.best()
    return Shrinkage(gamma, path), count if counts else None
