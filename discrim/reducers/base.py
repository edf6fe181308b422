"""What all reducers share: rows → statistics → objective → directions, then (x − mean)ᵀ directions.

A subclass states its objective and little more. `fit`, `partial_fit`, `transform` and `inverse_transform` are written
once, here; they lead through values: LabelledRows, Basis, ClassMoments, Solution, Projection.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Self

import numpy as np
import scipy.linalg as la
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils import Tags
from sklearn.utils.validation import check_is_fitted

from discrim.data.check import (
    checked_table,
    columns_as_before,
    labelled_rows,
    require_finite_result,
    require_known_labels,
    require_two_classes,
)
from discrim.data.check_parameters import requested_count
from discrim.data.findings import require_streamable_sparse, warn_of_stream_after_fit
from discrim.data.rows import LabelledRows, block_slices
from discrim.margins.margin_vectors import Margins
from discrim.moments.class_moments import ClassMoments
from discrim.solve.basis import Basis, build
from discrim.solve.choose import choose
from discrim.solve.eigen import with_fixed_signs

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Solution:
    """Directions in a basis's coordinates (rows), what the objective gives along them, and what else a method found."""

    directions: Array
    eigenvalues: Array
    ratios: Array
    rank: int
    how: str
    is_resolved: bool = True
    details: dict[str, Any] = field(default_factory=dict)
    more_directions: dict[str, Array] = field(default_factory=dict)  # details that are rows in the coordinates too


@dataclass(frozen=True, eq=False)
class Projection:
    """A solution in the features: all that a fitted reducer knows."""

    mean: Array
    components: NDArray[Any]
    eigenvalues: Array
    ratios: Array
    rank: int
    solver: str
    details: dict[str, Any]


class streamed:  # noqa: N801 - used as a decorator
    """A method that exists only where the estimator's statistics add up; elsewhere the error says why it does not."""

    def __init__(self, method: Callable[..., Any]) -> None:
        self.method = method
        self.__doc__ = method.__doc__

    def __get__(self, instance: Any, owner: type) -> Callable[..., Any]:
        if instance is None:
            return self.method
        if (why := instance._why_not_streamed()) is not None:
            raise AttributeError(f"{owner.__name__} has no {self.method.__name__} here: {why}")
        return self.method.__get__(instance, owner)


class Reducer(ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator, ABC):
    """Base of all reducers."""

    n_components: Any
    _supervised = True
    _uses_every_direction = False  # whether even one direction depends on all others, the smallest too
    _projection: Projection | None
    _moments: ClassMoments | None
    _declared: NDArray[Any] | None
    _dtype: np.dtype[Any]

    # ------------------------------------------------------------------ what a method states

    @abstractmethod
    def _solve(self, basis: Basis, moments: ClassMoments, request: Any) -> Solution:
        """The directions, posed in the basis's coordinates."""

    def _request(self) -> Any:
        """n_components, checked."""
        return requested_count(self.n_components)

    def _check_parameters(self) -> None:
        """Raise where a parameter is out of its range."""

    def _margins(self, rows: LabelledRows) -> Margins:
        """What the objective refers to beside the statistics, from the rows in their features."""
        return Margins()

    def _scatter_weights(self, totals: Array) -> Array | None:
        """Class weights to pool the scatters with, where they differ and are known before the pass."""
        return None

    def _weighted(self, rows: LabelledRows) -> LabelledRows:
        """The rows with what a method's own parameters say about their weights."""
        return rows

    def _wanted(self, request: Any, n_classes: int) -> int | None:
        """How many directions will be looked for, where that is known before the fit."""
        return request if isinstance(request, int) else None

    def _kept_statistics(self, *, streaming: bool) -> str:
        """Which scatters the objective needs: "pooled", "each" or "means"."""
        return "pooled"

    def _why_all_directions(self) -> str | None:
        """Why a few directions cannot be found without all of them, None where they can."""
        return None

    def _why_not_streamed(self) -> str | None:
        """Why the statistics do not add up, None where they do."""
        return None

    # ------------------------------------------------------------------ fitting

    def fit(self, X: ArrayLike, y: ArrayLike | None = None, sample_weight: ArrayLike | None = None) -> Self:
        """Find the directions."""
        self._check_parameters()
        request = self._request()
        with columns_as_before(self):
            rows = labelled_rows(self, X, y, sample_weight, supervised=self._supervised)
            if self._supervised:
                require_two_classes(self, rows.classes)
            projection = self._project(self._weighted(rows), request)
        self._moments, self._labels, self._projection = None, rows.classes, projection
        return self

    @streamed
    def partial_fit(
        self,
        X: ArrayLike,
        y: ArrayLike | None = None,
        classes: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
    ) -> Self:
        """Add rows to the statistics; the directions are found when they are first asked for."""
        self._check_parameters()
        self._request()
        so_far = getattr(self, "_moments", None)
        if so_far is None and getattr(self, "_projection", None) is not None:
            warn_of_stream_after_fit(self)
        rows = labelled_rows(self, X, y, sample_weight, supervised=self._supervised, reset=so_far is None)
        require_streamable_sparse(rows.X)
        if classes is not None:
            self._declared = np.asarray(classes)
        elif so_far is None:
            self._declared = None
        if self._supervised and self._declared is not None:
            require_known_labels(rows.classes, self._declared)
        added = ClassMoments.of_rows(self._weighted(rows), keep=self._kept_statistics(streaming=True))
        self._moments = added if so_far is None else so_far + added
        self._labels = self._moments.classes
        self._dtype = rows.X.dtype if so_far is None else np.result_type(self._dtype, rows.X.dtype)
        self._projection = None
        return self

    def _project(self, rows: LabelledRows, request: Any) -> Projection:
        """The fit of rows: choose coordinates, gather statistics in them, solve, carry back."""
        wanted = self._wanted(request, rows.n_classes)
        plan = choose(*rows.shape, sparse=rows.is_sparse, wanted=wanted, why_all=self._why_all_directions())
        margins = self._margins(rows)
        basis = build(plan, rows, margins)
        if self._uses_every_direction and basis.can_resolve and not basis.is_resolved:
            basis = build(plan, rows, margins, resolve=True)
        solution, moments = self._solve_in(basis, request)
        if not solution.is_resolved and basis.can_resolve:
            basis = build(plan, rows, margins, resolve=True)
            solution, moments = self._solve_in(basis, request)
        mean = moments.mean if basis.mean is None else basis.mean
        return self._projection_of(solution, basis, mean, rows.X.dtype)

    def _solve_in(self, basis: Basis, request: Any) -> tuple[Solution, ClassMoments]:
        keep = "means" if basis.as_operator else self._kept_statistics(streaming=False)
        weights = self._scatter_weights(basis.points.class_totals) if keep == "pooled" else None
        moments = ClassMoments.of_rows(basis.points, keep=keep, emphasis=weights, doubles=False)
        return self._solve(basis, moments, request), moments

    def _projection_of(self, solution: Solution, basis: Basis, mean: Array, dtype: np.dtype[Any]) -> Projection:
        lifted = {name: basis.lift(rows) for name, rows in solution.more_directions.items()}
        return Projection(
            mean,
            np.ascontiguousarray(with_fixed_signs(basis.lift(solution.directions)), dtype=dtype),
            solution.eigenvalues,
            solution.ratios,
            solution.rank,
            f"{solution.how}; {basis.how}",
            solution.details | lifted,
        )

    def _fitted(self) -> Projection:
        """The projection; of a stream, solved when first asked for."""
        check_is_fitted(self)
        if self._projection is None:
            moments = self._moments
            assert moments is not None
            self._check_parameters()  # they may have been set anew since
            if (why := self._why_not_streamed()) is not None:
                raise ValueError(f"{type(self).__name__} was fitted by partial_fit, and {why}")
            if self._supervised:
                require_two_classes(self, moments.classes)
            nobody = LabelledRows(np.empty((0, moments.n_features)), np.empty(0, np.intp), moments.classes)
            basis = Basis(nobody, Margins(), f"a stream of {moments.n_rows} rows: statistics of the features")
            solution = self._solve(basis, moments, self._request())
            self._projection = self._projection_of(solution, basis, moments.mean, self._dtype)
        return self._projection

    def __sklearn_is_fitted__(self) -> bool:
        return getattr(self, "_projection", None) is not None or getattr(self, "_moments", None) is not None

    # ------------------------------------------------------------------ use

    def transform(self, X: ArrayLike) -> NDArray[Any]:
        """(x − mean_)ᵀ components_ for every row."""
        projection = self._fitted()
        table = checked_table(self, X)
        return projected(table, projection.mean, projection.components)

    def inverse_transform(self, X: ArrayLike) -> NDArray[Any]:
        """The points of the feature space, nearest to mean_, that have these components (least squares)."""
        projection = self._fitted()
        components = projection.components
        table: Any = X
        scores = np.asarray(table.toarray() if sp.issparse(table) else table, dtype=components.dtype)
        if scores.ndim != 2 or scores.shape[1] != len(components):
            raise ValueError(
                f"inverse_transform takes what transform gives, n×{len(components)} numbers, but shape {scores.shape} "
                "came."
            )
        lengths = np.abs(components).max(axis=1).astype(np.float64)
        back = la.pinv(components / lengths[:, None]).T  # of unit rows: their own lengths may be far apart
        points = (scores / lengths) @ back + projection.mean
        require_finite_result(points, scores)
        return points.astype(components.dtype, copy=False)

    # ------------------------------------------------------------------ fitted attributes

    @property
    def mean_(self) -> Array:
        """Mean of the rows, which transform subtracts."""
        return self._fitted().mean

    @property
    def components_(self) -> NDArray[Any]:
        """The directions, one per row (k×d)."""
        return self._fitted().components

    @property
    def eigenvalues_(self) -> Array:
        """What the objective gives along each direction, per unit of weight."""
        return self._fitted().eigenvalues

    @property
    def explained_variance_ratio_(self) -> Array:
        """Each direction's share of the sum over all directions."""
        return self._fitted().ratios

    @property
    def rank_(self) -> int:
        """Numerical rank: how many directions there are (on the Lanczos path: how many were found)."""
        return self._fitted().rank

    @property
    def solver_(self) -> str:
        """How the directions were found, and why so."""
        return self._fitted().solver

    @property
    def classes_(self) -> NDArray[Any]:
        """The labels, sorted."""
        if not self._supervised:
            raise AttributeError(f"{type(self).__name__} uses no labels and has no classes_.")
        self._fitted()
        return self._labels

    @property
    def n_components_(self) -> int:
        """How many directions are kept."""
        return len(self._fitted().components)

    @property
    def _n_features_out(self) -> int:
        return self.n_components_

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.target_tags.required = self._supervised
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags


def projected(X: Any, mean: Array, components: NDArray[Any]) -> NDArray[Any]:
    """(X − mean) componentsᵀ block by block; a sparse X stays sparse."""
    dtype = X.dtype
    directions = np.ascontiguousarray(components.T)
    if sp.issparse(X):
        result = np.asarray(X @ directions.astype(np.float64) - mean @ directions)
    else:
        result = np.empty((X.shape[0], directions.shape[1]), dtype)
        with np.errstate(invalid="ignore", over="ignore"):
            for part in block_slices(*X.shape):
                centred = np.subtract(X[part], mean, dtype=np.float64)
                result[part] = centred.astype(dtype, copy=False) @ directions
    require_finite_result(result, X)
    return result.astype(dtype, copy=False)
