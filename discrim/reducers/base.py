"""What all reducers share: rows → statistics → objective → directions, then (x − mean)ᵀ directions.

A subclass states its objective and little more. `fit`, `fit_statistics`, `partial_fit`, `transform` and
`inverse_transform` are written once, here; they lead through values: LabelledRows, Basis, ClassMoments, Solution.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, field, fields, replace
from typing import Any, ClassVar, Self

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils import Tags
from sklearn.utils.metadata_routing import UNUSED
from sklearn.utils.validation import check_is_fitted

from discrim.data.check import (
    checked_table,
    labelled_rows,
    require_columns,
    require_known_labels,
    require_no_groups,
    require_representable,
    require_two_classes,
    unchanged_on_failure,
)
from discrim.data.check_parameters import COUNT, Constraints, check_parameters, plain_count
from discrim.data.fit_messages import (
    refuse_directions,
    refuse_gaps,
    require_streamable_sparse,
    warn_of_sample,
    warn_of_stream_after_fit,
)
from discrim.data.foreign_arrays import as_given, is_foreign, on_host
from discrim.data.rows import LabelledRows, projected
from discrim.data.warn_once import held_back, say_once
from discrim.decompositions import pinv
from discrim.doc_links import DocLinkMixin
from discrim.engines.dask_tables import gather_dask, is_dask, transform_dask
from discrim.engines.device_arrays import gather_array, projected_array
from discrim.margins.margin_vectors import Margins
from discrim.moments.class_moments import ClassMoments
from discrim.moments.gather import (
    NO_PARTS,
    Gatherer,
    Gathering,
    Statistics,
    statistics_of_rows,
)
from discrim.moments.pairwise import has_gaps, pairwise_moments
from discrim.moments.row_sample import SAMPLE_ROWS
from discrim.reducers.callbacks import CallbackSupportMixin, heard
from discrim.reducers.vip import importances, labels_explained
from discrim.solve.basis import Basis, Features
from discrim.solve.choose import Plan, choose
from discrim.solve.eigen import with_fixed_signs

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False, kw_only=True)
class Solution:
    """What a method found: each field that ends with (or begins with) "_" becomes a fitted attribute of that name.

    Directions are rows, in the coordinates of a basis until they are lifted. A family adds fields of its own, by a
    subclass; a method adds `found`, a dataclass of what else it found.
    """

    components_: NDArray[Any]
    eigenvalues_: Array
    explained_variance_ratio_: Array
    rank_: int
    solver_: str
    _labels_explained: Array | None = None  # by each component beyond those before it
    is_resolved: bool = True  # whether these coordinates show all that matters of the directions
    found: Any = None

    def lifted(self, basis: Basis, dtype: np.dtype[Any]) -> Self:
        """The same in the features."""
        with np.errstate(over="ignore"):
            components = np.ascontiguousarray(with_fixed_signs(basis.lift(self.components_)), dtype=dtype)
        if not np.isfinite(components).all():
            refuse_directions(dtype)
        return replace(self, components_=components, solver_=f"{self.solver_}; {basis.how}")


@dataclass(frozen=True, eq=False)
class Coordinates:
    """Rows in the coordinates of a plan with their statistics, and again where small directions matter; each once."""

    plan: Plan
    rows: LabelledRows
    margins: Margins
    keep: str
    emphasis: Callable[[Array], Array | None] | None
    divided: Callable[[Basis], Basis]
    _posed: dict[bool, tuple[Basis, ClassMoments]] = field(default_factory=dict)

    def posed(self, *, resolve: bool) -> tuple[Basis, ClassMoments]:
        """As cheap as can be, or with all directions, the smallest too."""
        if resolve not in self._posed:
            basis = self.divided(self.plan.build(self.rows, self.margins, resolve=resolve))
            self._posed[resolve] = basis, basis.moments(self.keep, self.emphasis)
        return self._posed[resolve]


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


class fitted_property(property):  # noqa: N801 - used as a decorator
    """What is reckoned from a fit whenever it is asked for; as any attribute, it is there or raises AttributeError."""

    def __get__(self, instance: Any, owner: type | None = None) -> Any:
        if instance is None:
            return self
        try:
            instance._require_solution()
            return super().__get__(instance, owner)
        except ValueError as error:
            raise error if isinstance(error, AttributeError) else AttributeError(str(error)) from error


class Reducer(
    DocLinkMixin, CallbackSupportMixin, ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator, ABC
):
    """Base of all reducers."""

    n_components: Any
    missing: Any = None  # "pairwise" where a method has such a parameter, and it is given
    mean_: Array
    components_: NDArray[Any]
    classes_: NDArray[Any]
    n_components_: int
    n_samples_seen_: int
    eigenvalues_: Array
    explained_variance_ratio_: Array
    rank_: int
    n_features_in_: int
    _total_weight: float
    _labels_explained: Array | None = None
    _parameter_constraints: ClassVar[Constraints] = {"n_components": COUNT}
    _supervised = True
    _knows_spread = True  # whether its statistics tell how all rows spread along the components
    _spans_class_means = False  # whether all directions it looks for are no more than classes, less one
    # of the classes' totals: weights to pool their scatters with, where they differ and are known before the pass
    _scatter_weights: Callable[[Array], Array | None] | None = None
    _uses_every_direction = False  # whether even one direction depends on all others, the smallest too
    _basis: str | None = None  # coordinates by name, where the caller knows better than the decision table
    _statistics: Statistics | None = None
    _chooses_on_sample = False  # whether what is chosen by folds may be chosen on some rows of a large sparse table
    _holds_groups = False  # whether folds may choose something
    _groups: NDArray[Any] | None = None  # while a fit lasts
    # only where folds may choose something are groups asked for by scikit-learn's metadata routing
    __metadata_request__fit: ClassVar[dict[str, Any]] = {"groups": UNUSED}
    _declared: NDArray[Any] | None = None  # the labels a stream may bring
    _dtype: np.dtype[Any]

    # ------------------------------------------------------------------ what a method states

    @abstractmethod
    def _solve(self, basis: Basis, moments: ClassMoments, request: int | float | None) -> Solution:
        """The directions, posed in the basis's coordinates."""

    def _margins(self, rows: LabelledRows) -> Margins:
        """What the objective refers to beside the statistics, from the rows in their features."""
        return Margins()

    def _weighted(self, rows: LabelledRows) -> LabelledRows:
        """The rows with what a method's own parameters say about their weights."""
        return rows

    def _divided(self, basis: Basis) -> Basis:
        """The basis with its points in folds, where a choice is made by them."""
        return basis

    def _require_weighted(self, moments: ClassMoments) -> None:
        """Raise where the statistics are not those that a method's own parameters ask for."""

    def _kept_statistics(self, *, streaming: bool) -> str:
        """Which scatters the objective needs: "pooled", "each" or "means"."""
        return "pooled"

    def _features(self, scores: NDArray[Any]) -> NDArray[Any]:
        """What `transform` gives, from the components of rows."""
        return scores

    def _components_of(self, features: NDArray[Any]) -> NDArray[Any]:
        """The components of rows, from what `transform` gives."""
        return features

    def _named_basis(self) -> str | None:
        """Coordinates that the caller, or a parameter, asks for by name; None for those of the decision table."""
        return self._basis

    def _why_all_directions(self) -> str | None:
        """Why a few directions cannot be found without all of them, None where they can."""
        return None

    def _why_not_streamed(self) -> str | None:
        """Why the statistics do not add up, None where they do."""
        return None

    # ------------------------------------------------------------------ fitting

    def fit(
        self,
        X: ArrayLike,
        y: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
        groups: ArrayLike | None = None,
    ) -> Self:
        """Find the directions.

        Parameters
        ----------
        X : array or sparse matrix of shape (n_samples, n_features)
            The rows; of a Dask array or data frame, only statistics of its blocks are gathered, on its workers.
        y : array of shape (n_samples,), default=None
            Their labels; PCA needs none.
        sample_weight : array of shape (n_samples,), default=None
            How much each row counts: a weight of 2 is the row twice.
        groups : array of shape (n_samples,), default=None
            Where folds choose a parameter: rows of one group (a patient, a site) are never divided between training
            and test rows; a number of folds is scikit-learn's StratifiedGroupKFold then.

        Returns
        -------
        self : object
            The fitted estimator.
        """
        check_parameters(self)
        if groups is not None:
            require_no_groups(type(self).__name__, folds=self._holds_groups, in_memory=not is_dask(X))
            self._groups = np.asarray(on_host(groups))
        try:
            if hasattr(self, "_skl_callbacks"):
                return heard(self._fit, self, X, y, sample_weight)
            return self._fit(X, y, sample_weight)
        finally:
            self.__dict__.pop("_groups", None)

    def _fit(self, X: ArrayLike, y: ArrayLike | None, sample_weight: ArrayLike | None) -> Self:
        if is_dask(X):
            return self.fit_statistics(gather_dask(self._gathering(), X, y, sample_weight))
        if is_foreign(X) and self.missing is None:
            gathered = gather_array(self._gathering(), X, y, sample_weight)
            if gathered is not None:
                return self.fit_statistics(gathered)
        with unchanged_on_failure(self):
            rows = labelled_rows(self, X, y, sample_weight, supervised=self._supervised)
            if self._supervised:
                require_two_classes(self, rows.classes)
            self._statistics = self._declared = None
            if self.missing is not None and has_gaps(rows):
                self._keep(*self._solve_gaps(rows))
            else:
                self._keep(*self._solve_rows(self._coordinates(self._weighted(rows))))
        return self

    def statistics(
        self,
        X: ArrayLike,
        y: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
        *,
        part: str = "",
    ) -> Statistics:
        """What a part of a table has to say to a fit; the statistics of parts add up, in any order.

        Parameters
        ----------
        X : array or sparse matrix of shape (n_samples, n_features)
            A part of the rows.
        y : array of shape (n_samples,), default=None
            Their labels; PCA needs none.
        sample_weight : array of shape (n_samples,), default=None
            How much each row counts.
        part : str, default=""
            What the part is called, in errors and to tell it from another part with the very same rows.

        Returns
        -------
        statistics : Statistics
            To be added to those of the other parts, and given to `fit_statistics`.
        """
        gatherer = Gatherer(self._gathering(), part)
        gatherer.add(X, y, sample_weight)
        return gatherer.statistics()

    def fit_statistics(self, total: Statistics | ClassMoments) -> Self:
        """Find the directions from gathered statistics alone.

        Parameters
        ----------
        total : Statistics or ClassMoments
            The sum of `statistics(X, y)` of all parts of a table, gathered with the same parameters; or, where no folds
            and no rows are needed, `ClassMoments.of(X, y, sample_weight)` or a sum of such.

        Returns
        -------
        self : object
            The fitted estimator. A `partial_fit` goes on from these statistics. Methods that look at the rows
            themselves are fitted on the sample in the statistics, and `solver_` says so.
        """
        gathering = self._gathering()
        with unchanged_on_failure(self):
            if isinstance(total, ClassMoments):
                total = self._of_moments(total, gathering)
            total.gathering.sufficing_for(gathering)
            self.__dict__.pop("feature_names_in_", None)
            self.n_features_in_ = total.n_features
            if total.names is not None:
                self.feature_names_in_ = np.array(total.names, dtype=object)
            self._declared = None
            if self._supervised:
                require_two_classes(self, total.moments.classes)
            if self._why_not_streamed() is None:
                self._hold(total)
                self._require_solution()
            else:
                self._fit_sample(total)
        return self

    def _gathering(self) -> Gathering:
        """What a fit needs of every part of a table: moments where they suffice, else a sample of rows."""
        check_parameters(self)
        factors = getattr(self, "class_weight", None)
        asked = Gathering(
            type(self).__name__, self._supervised, class_weight=factors if isinstance(factors, dict) else None
        )
        if self._why_not_streamed() is not None:
            return replace(asked, keep="means", sample_rows=SAMPLE_ROWS, class_weight=None)
        return replace(asked, keep=self._kept_statistics(streaming=True))

    def _of_moments(self, moments: ClassMoments, gathering: Gathering) -> Statistics:
        if (why := self._why_not_streamed()) is not None:
            raise ValueError(f"{type(self).__name__} cannot be fitted on ClassMoments: {why}")
        self._require_weighted(moments)
        asked = replace(gathering, n_folds=0, sample_rows=0)
        if gathering.sample_rows:
            raise ValueError(
                f"{type(self).__name__} chooses by cross-validation, and ClassMoments hold no folds. Gather the parts "
                "with the estimator's own statistics(X, y), or pass a number for shrinkage."
            )
        return Statistics(asked, None, np.dtype(np.float64), (moments,), None, None, NO_PARTS)

    def _fit_sample(self, total: Statistics) -> None:
        """The fit of a method that looks at rows: of the sampled ones, and said so."""
        assert total.sample is not None
        rows = total.sample.among(total.moments.classes)
        if not total.sample.is_whole:
            warn_of_sample(type(self).__name__, len(total.sample), total.n_rows)
        self._statistics = None
        solution, mean, _ = self._solve_rows(self._coordinates(self._weighted(rows)))
        said = (
            f"{solution.solver_}; on {len(total.sample)} different rows of {total.n_rows}, those of least content hash"
        )
        self._keep(replace(solution, solver_=said), mean, total.moments)

    @streamed
    def partial_fit(
        self,
        X: ArrayLike,
        y: ArrayLike | None = None,
        classes: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
    ) -> Self:
        """Add rows to the statistics; the directions are found when they are first asked for.

        Parameters
        ----------
        X : array or sparse matrix of shape (n_samples, n_features)
            A part of the rows.
        y : array of shape (n_samples,), default=None
            Their labels; PCA needs none.
        classes : array, default=None
            All labels the stream may bring, if others are to be refused.
        sample_weight : array of shape (n_samples,), default=None
            How much each row counts.

        Returns
        -------
        self : object
            The estimator with the rows so far.
        """
        gathering = self._gathering()
        so_far = self._statistics
        if so_far is None and self.__sklearn_is_fitted__():
            warn_of_stream_after_fit(self)
        with unchanged_on_failure(self):
            rows = labelled_rows(self, X, y, sample_weight, supervised=self._supervised, reset=so_far is None)
            require_streamable_sparse(rows.X)
            if classes is not None or so_far is None:
                self._declared = None if classes is None else np.asarray(classes)
            if self._supervised and self._declared is not None:
                require_known_labels(rows.classes, self._declared)
            if so_far is not None:
                gathering = so_far.gathering.sufficing_for(gathering)
            names = getattr(self, "feature_names_in_", None)
            self._hold(statistics_of_rows(gathering, rows, None if names is None else tuple(names), so_far))
        return self

    def _coordinates(self, rows: LabelledRows) -> Coordinates:
        """The rows in the coordinates that suit what is wanted of them, or that the caller named."""
        if (named := self._named_basis()) is not None:
            plan = Plan(named, f"{named}, as the caller wished")
        else:
            request, every = plain_count(self.n_components), rows.n_classes - 1 if self._spans_class_means else None
            wanted = request if isinstance(request, int) else every
            stored = rows.X.nnz if rows.is_sparse else None
            plan = choose(
                *rows.shape,
                stored=stored,
                wanted=wanted,
                why_all=self._why_all_directions(),
                can_sample=self._chooses_on_sample,
            )
        keep = self._kept_statistics(streaming=False)
        return Coordinates(plan, rows, self._margins(rows), keep, self._scatter_weights, self._divided)

    def _solve_rows(self, coordinates: Coordinates) -> tuple[Solution, Array, ClassMoments]:
        """The solution in the features, their mean, and the statistics.

        By finer coordinates where the first do not show all that matters.
        """
        request = plain_count(self.n_components)
        basis, moments = coordinates.posed(resolve=False)
        is_coarse = basis.can_resolve and not basis.is_resolved
        with held_back() as said:
            solution = None if is_coarse and self._uses_every_direction else self._solve(basis, moments, request)
        if solution is None or (basis.can_resolve and not solution.is_resolved):
            basis, moments = coordinates.posed(resolve=True)
            solution = self._solve(basis, moments, request)
        else:
            say_once(said)
        return self._in_features(solution, basis, moments, coordinates.rows.X.dtype)

    def _solve_gaps(self, rows: LabelledRows) -> tuple[Solution, Array, ClassMoments]:
        """The solution from pairwise statistics of rows with missing cells, which is all that is to be had of them."""
        if (why := self._why_not_streamed()) is not None or self._gathering().sample_rows:
            refuse_gaps(type(self).__name__, why)
        moments = pairwise_moments(self._weighted(rows))
        basis = Features.of_moments(moments, f"{moments.n_rows} rows with missing cells: pairwise statistics")
        solution = self._solve(basis, moments, plain_count(self.n_components))
        return self._in_features(solution, basis, moments, rows.X.dtype)

    def _in_features(
        self, solution: Solution, basis: Basis, moments: ClassMoments, dtype: np.dtype[Any]
    ) -> tuple[Solution, Array, ClassMoments]:
        """The solution in the features, their mean, and the statistics."""
        if self._supervised and self._knows_spread:
            explained = labels_explained(solution.components_, basis, moments)
            solution = replace(solution, _labels_explained=explained)
        return solution.lifted(basis, dtype), basis.mean(moments), moments

    def _keep(self, solution: Solution, mean: Array, moments: ClassMoments) -> None:
        parts = [solution] if solution.found is None else [solution, solution.found]
        named = {field.name: getattr(part, field.name) for part in parts for field in fields(part)}
        kept = {name: value for name, value in named.items() if name.startswith("_") or name.endswith("_")}
        self.__dict__.update(kept, mean_=mean, n_components_=len(solution.components_))
        self.n_samples_seen_, self._total_weight = moments.n_rows, moments.total_weight
        if self._supervised:
            self.classes_ = moments.classes

    def _hold(self, statistics: Statistics) -> None:
        """Statistics whose solution is not found yet."""
        for name in [name for name in vars(self) if name.endswith("_") and not name.endswith("_in_")]:
            delattr(self, name)
        self._statistics = statistics

    def _require_solution(self) -> None:
        """Raise where there was no fit; of statistics, the solution is found when it is first asked for."""
        check_is_fitted(self)
        if "components_" in vars(self) or self._statistics is None:
            return
        moments = self._statistics.moments
        wanted = self._gathering()  # parameters may have been set anew since
        if (why := self._why_not_streamed()) is not None:
            raise ValueError(f"{type(self).__name__} was fitted by partial_fit, and {why}")
        self._statistics.gathering.sufficing_for(wanted)
        if self._supervised:
            require_two_classes(self, moments.classes)
        basis = Features.of_moments(moments)
        solution = self._solve(basis, moments, plain_count(self.n_components))
        self._keep(*self._in_features(solution, basis, moments, self._statistics.dtype))

    def __getattr__(self, name: str) -> Any:
        # reached only where an attribute is not there: the solution of a stream may not have been found yet
        if name == "classes_" and not self._supervised:
            raise AttributeError(f"{type(self).__name__} uses no labels and has no classes_.")
        is_found = name.endswith("_") and not name.startswith("_") and not name.endswith("_in_")
        if is_found and self._statistics is not None:
            try:
                self._require_solution()
            except ValueError as error:
                raise AttributeError(str(error)) from error
            if name in vars(self):
                return vars(self)[name]
        return object.__getattribute__(self, name)  # with its own words

    def __dir__(self) -> list[str]:
        hasattr(self, "components_")  # of a stream, found now
        return list(super().__dir__())

    def __sklearn_is_fitted__(self) -> bool:
        return "components_" in vars(self) or self._statistics is not None

    # ------------------------------------------------------------------ use

    @fitted_property
    def vip_(self) -> Array:
        """Importance of every feature, √(d Σ_h SS_h w_jh² / Σ_h SS_h): SS_h is what component h tells of the labels."""
        if self._labels_explained is None:
            raise AttributeError(
                f"{type(self).__name__} has no vip_: its fit does not gather what each component tells of the labels. "
                "VIPDisplay.from_estimator(model, X, y).values.vip reckons it from the rows."
            )
        return importances(self.components_, self._labels_explained)

    def transform(self, X: ArrayLike) -> NDArray[Any]:
        """(x − mean_)ᵀ components_ for every row.

        Parameters
        ----------
        X : array or sparse matrix of shape (n_samples, n_features)
            Rows; what becomes of a Dask collection is one, too, and computed when it is asked for.

        Returns
        -------
        scores : array of shape (n_samples, n_components_)
            Their components.
        """
        self._require_solution()
        if is_dask(X):
            return transform_dask(self.transform, X, self.get_feature_names_out(), self.components_.dtype)
        if is_foreign(X) and self.missing is None:
            require_columns(self, X)
            scores, table = projected_array(X, self.mean_, self.components_), X
        else:
            table = self._fitted_table(X)
            scores = projected(table, self.mean_, self.components_)
        require_representable(scores, table)
        return as_given(self._features(scores), X)

    def inverse_transform(self, X: ArrayLike) -> NDArray[Any]:
        """The points of the feature space, nearest to mean_, that have these components (least squares).

        Parameters
        ----------
        X : array of shape (n_samples, n_components_)
            Components, as transform gives them.

        Returns
        -------
        points : array of shape (n_samples, n_features)
            Points of the feature space.
        """
        self._require_solution()
        components = self.components_
        table: Any = on_host(X)
        scores = np.asarray(table.toarray() if sp.issparse(table) else table, dtype=components.dtype)
        if scores.ndim != 2 or scores.shape[1] != self._n_features_out:
            raise ValueError(
                f"inverse_transform takes what transform gives, n×{self._n_features_out} numbers, but shape "
                f"{scores.shape} came."
            )
        scores = self._components_of(scores)
        lengths = np.abs(components).max(axis=1).astype(np.float64)
        back = pinv(components / lengths[:, None]).T  # of unit rows: their own lengths may be far apart
        with np.errstate(over="ignore", invalid="ignore"):
            points = (scores / lengths) @ back + self.mean_
        require_representable(points, scores)
        return as_given(points.astype(components.dtype, copy=False), X)

    def _fitted_table(self, X: ArrayLike) -> Any:
        """Checked rows for a fitted model; cells that may be missing are the mean's."""
        self._require_solution()
        table = checked_table(self, X)
        if self.missing is None or sp.issparse(table) or not np.isnan(table).any():
            return table
        return np.where(np.isnan(table), self.mean_.astype(table.dtype), table)

    @property
    def _n_features_out(self) -> int:
        return self.n_components_

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.allow_nan = self.missing is not None
        tags.target_tags.required = self._supervised
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags
