"""Base classes of linear discriminant analysis: classification by centroids, counting, padding, shrinkage.

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
from discrim.core.eigen import discriminant_count
from discrim.core.moments.class_moments import ClassMoments
from discrim.core.problem import Folding, Needs, Problem
from discrim.core.ratio import Covariance, Ratio, chosen_shrinkage
from discrim.estimators.base import Reducer, Solution, fitted_property
from discrim.tables.check_parameters import COUNT, FLAG, GAPS, SHARE, Constraints, checked_priors, class_factors, named
from discrim.tables.fit_messages import (
    refuse_equal_rows,
    refuse_no_gain,
    warn_of_lost_digits,
    warn_of_singular_within,
)
from discrim.tables.foreign_arrays import as_given
from discrim.tables.rows import projected
from discrim.tables.validation import require_representable

SCORES_AT_ONCE = 2**22  # how many rows × classes are held while predicting
REACH = 1e100  # deviations up to which scores are finite
FAR = 1e3  # deviations between centroids from which scores are reckoned anew around the nearest one
FEW_CENTROIDS = 1000  # … where there are no more than these


class NearestCentroid(ClassifierMixin, Reducer):
    """A reducer that predicts, by its discriminants (q×d), the classes' centroids along them (C×q), and priors."""

    _discriminants: NDArray[np.float64]
    _centroids: NDArray[np.float64]
    _log_priors: NDArray[np.float64]
    _centred_means: NDArray[np.float64]
    _covariance: NDArray[np.float64] | None

    def _scores(self, table: Any) -> Iterator[NDArray[np.float64]]:
        """Scores of consecutive rows, in pieces that stay small with many classes."""
        centroids, log_priors = self._centroids, self._log_priors
        offsets = log_priors - 0.5 * np.einsum("cq,cq->c", centroids, centroids)
        features = projected(table, self.mean_, self._discriminants).astype(np.float64, copy=False)
        require_representable(features, table)
        step = max(1, SCORES_AT_ONCE // len(centroids))
        far = len(centroids) <= FEW_CENTROIDS and np.abs(centroids).max(initial=0.0) > FAR
        for first in range(0, len(features), step):
            part = _within_reach(features[first : first + step])
            scores = part @ centroids.T + offsets
            yield _around_nearest(part, scores, centroids, log_priors) if far else scores

    def decision_function(self, X: ArrayLike) -> NDArray[np.float64]:
        """Scores of the classes.

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
        scores = np.concatenate(list(self._scores(table)))
        scores = scores[:, 1] - scores[:, 0] if scores.shape[1] == 2 else scores
        return as_given(scores.astype(table.dtype, copy=False), X)

    def predict(self, X: ArrayLike) -> NDArray[Any]:
        """The label of the nearest centroid.

        Parameters
        ----------
        X : array or sparse matrix of shape (n_samples, n_features)
            Rows.

        Returns
        -------
        labels : array of shape (n_samples,)
            A label for each row.
        """
        nearest = np.concatenate([part.argmax(axis=1) for part in self._scores(self._fitted_table(X))])
        return as_given(self.classes_[nearest], X)

    def _linear_scores(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        return self._centroids @ self._discriminants, self.priors_

    @fitted_property
    def coef_(self) -> NDArray[Any]:
        """Weights of the linear scores (C×d; with two classes the second's minus the first's, 1×d)."""
        coef = self._centroids @ self._discriminants
        return (coef[1:] - coef[:1] if len(coef) == 2 else coef).astype(self.components_.dtype, copy=False)

    @fitted_property
    def intercept_(self) -> NDArray[Any]:
        """Constants of the linear scores (C; with two classes 1)."""
        constants = self._log_priors - 0.5 * np.einsum("cq,cq->c", self._centroids, self._centroids)
        constants = constants - self._centroids @ (self._discriminants @ self.mean_)
        return (constants[1:] - constants[:1] if len(constants) == 2 else constants).astype(self.components_.dtype)

    @fitted_property
    def means_(self) -> NDArray[np.float64]:
        """Class means (C×d)."""
        return self.mean_ + self._centred_means

    @fitted_property
    def priors_(self) -> NDArray[np.float64]:
        """Class probabilities that predictions start from."""
        return np.exp(self._log_priors)

    @fitted_property
    def xbar_(self) -> NDArray[np.float64]:
        """Mean of the class means, weighted by their priors: `mean_` where the priors are the classes' shares."""
        return self.mean_ + self.priors_ @ self._centred_means

    @fitted_property
    def scalings_(self) -> NDArray[Any]:
        """The directions as columns (d×k): transform gives (x − mean_) scalings_."""
        return self.components_.T

    @fitted_property
    def covariance_(self) -> NDArray[np.float64]:
        """Within-class covariance (d×d) that distances between classes are measured in, where it was asked for."""
        if self._covariance is None:
            raise AttributeError(
                f"{type(self).__name__} keeps no covariance_, d×d numbers, unless asked to: pass store_covariance=True "
                "and fit again."
            )
        return self._covariance


def _within_reach(features: NDArray[np.float64]) -> NDArray[np.float64]:
    """Rows so far out that products with them would overflow, nearer in the same direction: as certain as before."""
    lengths = np.abs(features).max(axis=1, initial=0.0)
    return features if lengths.max(initial=0.0) <= REACH else features / np.maximum(lengths / REACH, 1.0)[:, None]


def _around_nearest(
    features: NDArray[np.float64],
    scores: NDArray[np.float64],
    centroids: NDArray[np.float64],
    log_priors: NDArray[np.float64],
) -> NDArray[np.float64]:
    """The same scores, up to a number for each row, seen from the centroid that is nearest by what they say.

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


class GaussianCentroid(NearestCentroid):
    """Where the classes are modelled as Gaussians of one covariance, the scores give probabilities."""

    def predict_log_proba(self, X: ArrayLike) -> NDArray[np.float64]:
        """Log probability of every class.

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

    def _log_probabilities(self, X: ArrayLike) -> NDArray[np.float64]:
        return np.concatenate([log_softmax(part, axis=1) for part in self._scores(self._fitted_table(X))])

    def predict_proba(self, X: ArrayLike) -> NDArray[np.float64]:
        """Probability of every class.

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


Array = NDArray[np.float64]
MISSED_LOADINGS = 1e-6  # beside the whole of a discriminant
HALF_THE_DIGITS = 1e-9  # an inverse condition number: discriminants are known to about 1e-16 over this


@dataclass(frozen=True, eq=False, kw_only=True)
class DiscriminantSolution(Solution):
    """Of discriminants also: the rule of the nearest centroid, and what the components stand for."""

    n_discriminants_: int
    structure_coefficients_: Array  # until lifted: the components times S_t/n, and each over its own deviation
    feature_deviations: Array
    _discriminants: Array
    _centroids: Array
    _log_priors: Array
    _centred_means: Array
    _covariance: Array | None  # until lifted: without the ridge, which is on every feature
    ridge: float

    def _also_lifted(self, basis: Basis, signs: Array) -> dict[str, Any]:
        covariances = basis.lift(self.structure_coefficients_) * signs[:, None]
        scale = np.broadcast_to(self.feature_deviations, covariances.shape)
        correlations = np.divide(covariances, scale, out=np.zeros_like(covariances), where=scale > 0)
        return {
            "structure_coefficients_": np.clip(correlations, -1.0, 1.0),
            "_discriminants": basis.lift(self._discriminants),
            "_centred_means": basis.lift(self._centred_means),
            "_covariance": None if self._covariance is None else self._on_features(self._covariance, basis),
        }

    def _on_features(self, covariance: Array, basis: Basis) -> Array:
        lifted = np.array(basis.lift(basis.lift(covariance).T))
        lifted[np.diag_indices(len(lifted))] += self.ridge
        return lifted


class DiscriminantReducer(NearestCentroid):
    """Directions of a ratio; `_find` states which."""

    _parameter_constraints: ClassVar[Constraints] = {"n_components": COUNT, "store_covariance": FLAG, "missing": GAPS}

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
        """All discriminants, in their defining scale and order."""

    def _scaled_pads(self, pads: Array, ratio: Ratio) -> Array:
        """Unit directions beyond the discriminants, in the scale that goes with them."""
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
        basis, moments, shape, ratio = problem.basis, problem.moments, problem.shape, problem.ratio
        if ratio.rank == 0:
            refuse_equal_rows(*shape)
        priors = checked_priors(self.priors, ratio.shares)
        if self.class_weight is not None:
            known = moments.classes if problem.declared is None else np.union1d(moments.classes, problem.declared)
            class_factors(self.class_weight, moments.classes, moments.weights, known)
        found = self._find(problem)
        if not len(found.values):
            refuse_no_gain()
        if found.is_singular:
            warn_of_singular_within(type(self).__name__)
        elif _loses_digits(found, problem):
            warn_of_lost_digits()
        k = found.count or discriminant_count(problem.request, found.values, ratio.rank, shape, found.ties_settled)
        directions = found.directions[:k]
        if k > len(directions):
            pads = basis.complement(ratio, found.directions, k - len(directions))
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
        whitened = ratio.embedded(whitened)
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
            feature_deviations=np.sqrt(basis.feature_variances(moments)),
            _discriminants=whitened * unit,
            _centroids=moments.centred_means() @ whitened.T,
            _log_priors=log_priors,
            _centred_means=np.ldexp(moments.centred_means(), moments.exponent),
            _covariance=None if within is None else moments.in_squared_units(within),
            ridge=float(moments.in_squared_units(np.array(gamma * ratio.trace / max(ratio.rank, 1)))),
        )


def _loses_digits(found: Discriminants, problem: Problem) -> bool:
    """Whether less than half the digits of the discriminants, or none of some directions, are known."""
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
    """Whether discriminants have loadings where no variance was to be seen: g·v = (Hg)·(Hv) / (λ ridge) along v."""
    if ratio.left_out is None:
        return False
    directions = ratio.left_out / np.linalg.norm(ratio.left_out, axis=1)[:, None]
    gaps = np.sqrt(ratio.shares)[:, None] * moments.centred_means() @ directions.T
    q = len(found.values)
    missed = gaps.T @ (ratio.means @ found.directions[:q].T) / (found.values * ridge)
    return bool((np.abs(missed) > MISSED_LOADINGS * np.linalg.norm(found.directions[:q], axis=1)).any())


LEAST_BY_PRODUCTS = 0.01  # conjugate gradients do not get there in a thousand steps with less


@dataclass(frozen=True, eq=False)
class Shrinkage:
    """The γ that was used, and what was tried for it."""

    shrinkage_: float
    path_: PathScores | None


class ShrunkDiscriminant(GaussianCentroid, DiscriminantReducer):
    """Discriminants with Σ_γ = (1−γ) S_w/n + γ τ I in the place of S_w/n."""

    _parameter_constraints: ClassVar[Constraints] = {
        **DiscriminantReducer._parameter_constraints,
        "shrinkage": (SHARE, *named("ledoit_wolf", "oas", "cv")),
    }
    __metadata_request__fit: ClassVar[dict[str, Any]] = {"groups": None}
    shrinkage: Any
    cv: Any
    random_state: Any

    @property
    def _searches(self) -> bool:
        return "cv" in (self.n_components, self.shrinkage)

    @property
    def _folding(self) -> Folding:
        on_sample = self.shrinkage == "cv" and self.n_components != "cv" and not self.store_covariance
        return Folding(self.cv, self.random_state, "choose" if self._searches else "none", on_sample)

    def _needs(self) -> Needs:
        needs, folds = super()._needs(), self._folding
        matrix, rows = needs.matrix, needs.rows
        if isinstance(self.shrinkage, str) or self.shrinkage == 0 or self.n_components == "cv":
            why = (
                "only a fixed shrinkage above 0 (pass shrinkage=0.1, say, and an int n_components), or 'cv' with a "
                "number of folds, goes without the whole within-class scatter"
            )
            matrix = matrix if self.store_covariance else why
        elif not self.store_covariance:
            matrix = None
        if self.shrinkage == "ledoit_wolf":
            rows = "shrinkage='ledoit_wolf' needs all rows at once. Statistics suffice for a number, 'oas' or 'cv'."
        elif self._searches and not by_content(self.cv):
            rows = (
                f"cv={self.cv!r} names rows, which come in parts here. Pass a number of folds or a HashKFold: their "
                "folds follow from the rows' content."
            )
        return replace(needs, matrix=matrix, rows=rows, folds=folds)

    def _shrunk(self, problem: Problem) -> Discriminants:
        """All discriminants at the shrinkage that was given, is computed, or is searched for."""
        ratio = problem.separated
        chosen, count = self._chosen(problem)
        found = classical(ratio, problem.basis.cost(ratio, chosen.shrinkage_))
        return replace(found, count=count, found=chosen)

    def _chosen(self, problem: Problem) -> tuple[Shrinkage, int | None]:
        """Return the shrinkage that was given, is computed, or is searched for, and a number of discriminants."""
        basis, moments, ratio = problem.basis, problem.moments, problem.ratio
        tried, path, count = PATH, None, None
        if self.shrinkage in ("oas", "ledoit_wolf"):
            columns = int((basis.feature_variances(moments) > 0).sum())
            tried = np.array([chosen_shrinkage(self.shrinkage, ratio, moments, basis.points, columns)])
        elif self.shrinkage != "cv":
            tried = np.array([float(self.shrinkage)])
        gamma = float(tried[0])
        if self._searches:
            folds, is_sample = problem.to_choose_in(self._folding)
            if is_sample:  # none too small, where products are all there is
                tried = tried[tried >= LEAST_BY_PRODUCTS]
            path = score_path(folds, tried, self.priors, every_count=self.n_components == "cv")
            gamma, count = path.best()
        return Shrinkage(gamma, path), count if self.n_components == "cv" else None
