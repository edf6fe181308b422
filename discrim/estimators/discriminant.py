"""What the LDA family shares: a ratio to maximise, pads beyond its discriminants, and classification by centroids."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from discrim.core.coordinates.basis import Basis
from discrim.core.count import discriminant_count
from discrim.core.covariance import Covariance
from discrim.core.discriminants import Discriminants, principal, standardised, whitened_span
from discrim.core.moments.class_moments import ClassMoments
from discrim.core.problem import Needs, Problem
from discrim.core.ratio import Ratio
from discrim.estimators.base import Solution
from discrim.estimators.nearest_centroid import NearestCentroid
from discrim.tables.check_parameters import COUNT, FLAG, GAPS, Constraints, checked_priors, class_factors
from discrim.tables.fit_messages import (
    refuse_equal_rows,
    refuse_no_gain,
    warn_of_lost_digits,
    warn_of_singular_within,
)

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
