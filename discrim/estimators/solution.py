"""Solution of a fit, in the problem's coordinates until it is lifted to the features, and feature importances.

    VIP_j = √(d Σ_h SS_h w_jh² / Σ_h SS_h) ,    w_h the unit direction of component h ,    Σ_j VIP_j² = d

SS_h is the variance of the one-hot labels that component h explains beyond those before it. The scores of PLS are
uncorrelated, so that this is the usual SS_h = ‖t_h‖²‖q_h‖² there, and w_h are its weights; elsewhere w_h are loadings.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields, replace
from typing import Any, Self

import numpy as np
import scipy.linalg as la
from numpy.typing import NDArray

from discrim.core.coordinates.basis import Basis
from discrim.core.eigen import Spectrum, fixed_signs, kept_count
from discrim.core.moments.class_moments import ClassMoments
from discrim.core.problem import Problem, Request
from discrim.core.spread import Spread
from discrim.tables.rows import block_slices

Array = NDArray[np.float64]
Count = Callable[[Request, Spectrum, tuple[int, int]], int]
BEYOND_RANGE = (
    "X must be in larger units: the directions lie beyond the largest {}. Scale the columns first, e.g. with "
    "StandardScaler, or pass float64."
)
ROUNDED_MEANS = 1e-10  # deviations between class means along a component, below which they are rounding
NOTHING_NEW = 1e-6  # of a component's deviation: less than this, beyond earlier components, is rounding


def labels_explained(directions: Array, basis: Basis, moments: ClassMoments) -> Array:
    """Compute SS_h/n = Σ_c p_c² ū_ch² from directions (k×d) and statistics in one basis.

    u_h is what is new in component h, with variance 1, and ū_ch its mean in class c.
    """
    unit, shares = _unit(directions), moments.weights / moments.total_weight
    parts = list(block_slices(*moments.pilots.shape))  # of a million classes, no more than a block at a time
    means, covariance = np.empty((len(shares), len(unit))), basis.within_along(unit, moments) @ unit.T
    for part in parts:
        means[part] = moments.centred_means(part) @ unit.T
        covariance += (means[part].T * shares[part]) @ means[part]
    explained = ((shares[part, None] * _decorrelated(means[part], covariance)) ** 2 for part in parts)
    return np.asarray(sum(part.sum(axis=0) for part in explained))


def importances(directions: Array, explained: Array) -> Array:
    """Compute the VIP of each feature from directions (k×d) and what each of the first of them explains."""
    unit, total = _unit(directions[: len(explained)]), explained.sum()
    if not total > ROUNDED_MEANS**2:
        raise ValueError(
            "vip_ must have class means that differ along the components; here they are equal up to rounding, so that "
            "the components explain nothing of the labels. Use the loadings, weighted by eigenvalues_."
        )
    return np.sqrt(unit.shape[1] * (explained / total) @ unit**2)


def _unit(directions: NDArray[Any]) -> Array:
    """Return rows scaled to length 1, in any unit; rows of zeros as they are."""
    largest = np.abs(directions).max(axis=1, keepdims=True).astype(np.float64)
    rows = directions / np.where(largest > 0, largest, 1.0)  # whose own squares may be too large or small for numbers
    lengths = np.linalg.norm(rows, axis=1, keepdims=True)
    return np.asarray(rows / np.where(lengths > 0, lengths, 1.0))


def _decorrelated(points: Array, covariance: Array) -> Array:
    """Return points (C×k) with each coordinate decorrelated from earlier ones, in its deviation; 0 if none is left."""
    deviations = np.sqrt(np.maximum(np.diag(covariance), 0.0))
    varies = deviations > 0
    scale = np.where(varies, deviations, 1.0)
    correlation = covariance / np.outer(scale, scale)
    correlation[~varies] = correlation[:, ~varies] = 0.0
    correlation[np.diag_indices(len(scale))] = 1.0
    factor, failed = la.lapack.dpotrf(correlation, lower=1)
    if failed or np.diag(factor).min(initial=1.0) <= NOTHING_NEW:
        factor, varies = _factor_of_what_is_new(correlation, varies)
    return np.asarray(la.solve_triangular(factor, (points / scale).T, lower=True).T * varies)


def _factor_of_what_is_new(correlation: Array, varies: NDArray[np.bool_]) -> tuple[Array, NDArray[np.bool_]]:
    """Return Cholesky's factor, with a 1 for each coordinate that earlier ones determine, and which are not."""
    factor, is_new = np.eye(len(correlation)), varies.copy()
    for at in np.flatnonzero(varies):
        before = np.flatnonzero(is_new[:at])
        row = la.solve_triangular(factor[np.ix_(before, before)], correlation[at, before], lower=True)
        rest = 1.0 - row @ row
        is_new[at] = rest > NOTHING_NEW**2
        if is_new[at]:
            factor[at, before], factor[at, at] = row, np.sqrt(rest)
    return factor, is_new


@dataclass(frozen=True, eq=False, kw_only=True)
class Solution:
    """Result of a method: each field that ends with (or begins with) "_" becomes a fitted attribute of that name.

    Directions are rows, in the coordinates of a basis until they are lifted. A family adds fields of its own, by a
    subclass; a method adds `found`, a dataclass of what else it found.
    """

    components_: NDArray[Any]
    eigenvalues_: Array
    explained_variance_ratio_: Array
    rank_: int
    solver_: str
    mean_: Array | None = None  # of the rows, where it is lifted
    n_samples_seen_: int = 0
    _total_weight: float = 0.0
    _labels_explained: Array | None = None  # by each component beyond those before it
    _column_deviations: Array | None = None  # of the features; None after passes over parts
    is_resolved: bool = True  # whether these coordinates show all that matters of the directions
    found: Any = None
    warnings: tuple[tuple[str, type[Warning]], ...] = ()  # what the fit warns about, for the driver to issue

    def in_features(self, problem: Problem) -> Self:
        """Return the same in the features."""
        basis, moments, dtype, needs = problem.basis, problem.moments, problem.dtype, problem.needs
        rows = basis.lift(self.components_)
        signs = fixed_signs(rows)
        with np.errstate(over="ignore"):
            components = np.ascontiguousarray(rows * signs[:, None], dtype=dtype)
        if not np.isfinite(components).all():
            raise ValueError(BEYOND_RANGE.format(dtype))
        is_explained = needs.supervised and needs.tells_labels
        deviations = np.sqrt(basis.feature_variances(moments))
        return replace(
            self,
            components_=components,
            solver_=f"{self.solver_}; {basis.how}",
            mean_=basis.mean(moments),
            n_samples_seen_=moments.n_rows,
            _total_weight=moments.total_weight,
            _labels_explained=labels_explained(self.components_, basis, moments) if is_explained else None,
            _column_deviations=np.ldexp(deviations, moments.exponent),
            **self._others_in_features(basis, signs, deviations),
        )

    def _others_in_features(self, basis: Basis, signs: Array, deviations: Array) -> dict[str, Any]:
        """Return what else is lifted, or turns with the components (each by its sign), by name.

        deviations : of the features, in the moments' units
        """
        return {}

    def attributes(self) -> dict[str, Any]:
        """Return the fitted attributes by name."""
        parts = [self] if self.found is None else [self, self.found]
        named = {field.name: getattr(part, field.name) for part in parts for field in fields(part)}
        kept = {name: value for name, value in named.items() if name.startswith("_") or name.endswith("_")}
        return {**kept, "n_components_": len(self.components_)}


def leading_directions(problem: Problem, spread: Spread, count: Count | None = None) -> Solution:
    """Maximise tr WᵀAW subject to WᵀW = I, A the spread; `count` says how many are kept (None: `kept_count`)."""
    request = problem.request
    wanted = request + 1 if isinstance(request, int) else None  # one more shows a tie at the cut
    spectrum = problem.spectrum(spread, wanted)
    if count is None:
        k = kept_count(request, spectrum.values, spectrum.total, spectrum.rank, problem.shape)
    else:
        k = count(request, spectrum, problem.shape)
    values = spectrum.values[:k]
    return Solution(
        components_=spectrum.directions[:k],
        eigenvalues_=problem.moments.per_weight(values),
        explained_variance_ratio_=values / spectrum.total if spectrum.total > 0 else np.zeros(k),
        rank_=spectrum.rank,
        solver_=spectrum.how,
        is_resolved=problem.basis.is_resolved if request is None else problem.basis.shows(values),
    )
