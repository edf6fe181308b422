"""Solution of a fit, in the problem's coordinates until it is lifted to the features, and feature importances.

    VIP_j = √(d Σ_h SS_h w_jh² / Σ_h SS_h) ,    w_h the unit direction of component h ,    Σ_j VIP_j² = d

SS_h is the variance of the one-hot labels explained by component h in addition to earlier ones. The scores of PLS are
uncorrelated, so there it is the usual SS_h = ‖t_h‖²‖q_h‖², and w_h are its weights; otherwise w_h are loadings.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
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
    "X must be in larger units; got columns so small that the directions exceed the largest {}. Scale the columns "
    "first, e.g. with StandardScaler, or pass float64."
)
ROUNDED_MEANS = 1e-10  # distances of class means along a component, in deviations, below which they are rounding
MIN_NEW = 1e-6  # of a component's deviation: a smaller part beyond earlier components is rounding


def label_spread(directions: Array, basis: Basis, moments: ClassMoments) -> Array:
    """Compute U S_t/n Uᵀ, and below it R with RᵀR = Σ_c p_c² m_c m_cᵀ, from directions and statistics in one basis.

    U are the k unit directions, and m_c the projections of the class means onto them; R has at most k rows.
    """
    unit, shares = _unit(directions), (moments.weights / moments.total_weight)[:, None]
    covariance, factor = basis.within_along(unit, moments) @ unit.T, np.empty((0, len(unit)))
    for part in block_slices(*moments.pilots.shape):  # with many classes, only a block at a time
        means = moments.centred_means(part) @ unit.T
        covariance += (means * shares[part]).T @ means
        factor = np.concatenate([factor, means * shares[part]])
        if len(factor) > len(unit):
            factor = np.linalg.qr(factor)[1]
    return np.concatenate([covariance, factor])


def labels_explained(spread: Array) -> Array:
    """Compute SS_h/n = Σ_c p_c² ū_ch² from the spread of the labels along the components.

    u_h is the part of component h that is uncorrelated with earlier ones, scaled to variance 1; ū_ch is its mean in
    class c.
    """
    covariance, means = np.split(spread, [spread.shape[1]])
    deviations = np.sqrt(np.maximum(np.diag(covariance), 0.0))
    varies = deviations > 0
    scale = np.where(varies, deviations, 1.0)
    correlation = covariance / np.outer(scale, scale)
    correlation[~varies] = correlation[:, ~varies] = 0.0
    correlation[np.diag_indices(len(scale))] = 1.0
    factor, failed = la.lapack.dpotrf(correlation, lower=1)
    if failed or np.diag(factor).min(initial=1.0) <= MIN_NEW:
        factor, varies = _factor_of_new_parts(correlation, varies)
    return np.asarray((la.solve_triangular(factor, (means / scale).T, lower=True) ** 2).sum(axis=1) * varies)


def importances(directions: Array, explained: Array) -> Array:
    """Compute the VIP of each feature from directions (k×d) and the label variance explained by the first of them."""
    unit, total = _unit(directions[: len(explained)]), explained.sum()
    if not total > ROUNDED_MEANS**2:
        raise ValueError(
            "X must have class means that differ along the components for vip_; got means that are equal up to "
            "rounding, so the components explain nothing of the labels. Use the loadings, weighted by eigenvalues_."
        )
    return np.sqrt(unit.shape[1] * (explained / total) @ unit**2)


def _unit(directions: NDArray[Any]) -> Array:
    """Return rows scaled to length 1, in any unit; rows of zeros are unchanged."""
    largest = np.abs(directions).max(axis=1, keepdims=True).astype(np.float64)
    rows = directions / np.where(largest > 0, largest, 1.0)  # prevents overflow and underflow of squares
    lengths = np.linalg.norm(rows, axis=1, keepdims=True)
    return np.asarray(rows / np.where(lengths > 0, lengths, 1.0))


def _factor_of_new_parts(correlation: Array, varies: NDArray[np.bool_]) -> tuple[Array, NDArray[np.bool_]]:
    """Return the Cholesky factor, with a 1 for coordinates determined by earlier ones, and a mask of the others."""
    factor, is_new = np.eye(len(correlation)), varies.copy()
    for at in np.flatnonzero(varies):
        before = np.flatnonzero(is_new[:at])
        row = la.solve_triangular(factor[np.ix_(before, before)], correlation[at, before], lower=True)
        rest = 1.0 - row @ row
        is_new[at] = rest > MIN_NEW**2
        if is_new[at]:
            factor[at, before], factor[at, at] = row, np.sqrt(rest)
    return factor, is_new


@dataclass(frozen=True, eq=False, kw_only=True)
class Solution:
    """Result of a method: each field that ends with (or begins with) "_" becomes a fitted attribute of that name.

    Directions are rows, in the coordinates of a basis until they are lifted. A family of methods adds fields by a
    subclass; a method adds `found`, an object with its additional results as attributes.
    """

    components_: NDArray[Any]
    eigenvalues_: Array
    explained_variance_ratio_: Array
    rank_: int
    solver_: str
    mean_: Array | None = None  # of the rows, set when lifted
    n_samples_seen_: int = 0
    _total_weight: float = 0.0
    _label_spread: Array | None = None  # along the components, for their importances
    _column_deviations: Array | None = None  # of the features; None after passes over parts
    is_unit_free: bool = True  # False if the components are in units of one over those of the moments
    is_resolved: bool = True  # True if these coordinates are accurate enough for the directions
    found: Any = None
    warnings: tuple[tuple[str, type[Warning]], ...] = ()  # for the caller to issue

    def in_features(self, problem: Problem) -> Self:
        """Return the solution in the original features."""
        basis, moments, dtype, needs = problem.basis, problem.moments, problem.dtype, problem.needs
        rows, *others = basis.lift_each(self.components_, *self._lifted())
        signs = fixed_signs(rows)
        with np.errstate(over="ignore"):
            rows = rows if self.is_unit_free else moments.scaled(rows)
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
            _label_spread=label_spread(self.components_, basis, moments) if is_explained else None,
            _column_deviations=moments.in_row_units(deviations),
            **self._others_in_features(others, signs, deviations),
        )

    def _lifted(self) -> tuple[Array, ...]:
        """Return further rows to be lifted to the features."""
        return ()

    def _others_in_features(self, lifted: list[Array], signs: Array, deviations: Array) -> dict[str, Any]:
        """Return further fields by name, lifted or with the signs of the components.

        lifted : `_lifted()` in the features
        deviations : deviations of the features, in the units of the moments
        """
        return {}

    def attributes(self) -> dict[str, Any]:
        """Return the fitted attributes by name."""
        named = {**vars(self), **({} if self.found is None else vars(self.found))}
        kept = {name: value for name, value in named.items() if name.startswith("_") or name.endswith("_")}
        return {**kept, "n_components_": len(self.components_)}


def leading_directions(problem: Problem, spread: Spread, count: Count | None = None) -> Solution:
    """Maximise tr WᵀAW subject to WᵀW = I, A = spread; `count` returns the number to keep (None: `kept_count`)."""
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
