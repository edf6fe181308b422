"""Base class of reducers: rows → statistics → objective → directions, then (x − mean)ᵀ directions.

A subclass states its objective. `fit`, `transform` and `inverse_transform` are written once, here; fits by statistics
of parts are in `streaming`.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from typing import Any, ClassVar, Self

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray
from sklearn.base import ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils import Tags
from sklearn.utils.metadata_routing import UNUSED

from discrim.core.coordinates.basis import Basis, Features
from discrim.core.eigen import Spectrum, kept_count
from discrim.core.explanation import Explanation, explain_linear, explain_positions, linear_importances
from discrim.core.moments.class_moments import ClassMoments
from discrim.core.moments.pairwise import has_gaps, pairwise_moments
from discrim.core.problem import Needs, Problem
from discrim.core.spread import Spread
from discrim.decompositions import pinv
from discrim.doc_links import DocLinkMixin
from discrim.engines.dask_tables import in_dask_parts, is_dask
from discrim.engines.device_arrays import gather_array, projected_array
from discrim.engines.table_files import files_for, in_files, is_path
from discrim.estimators.parts import fit_within
from discrim.estimators.solution import Solution, importances
from discrim.estimators.streaming import StatisticsEstimator
from discrim.tables.check_parameters import check_parameters, names_rows, plain_count
from discrim.tables.fit_messages import refuse_gaps
from discrim.tables.foreign_arrays import as_given, is_foreign, on_host
from discrim.tables.rows import LabelledRows, projected
from discrim.tables.validation import (
    checked_table,
    labelled_rows,
    require_columns,
    require_no_groups,
    require_representable,
    require_two_classes,
    unchanged_on_failure,
)
from discrim.threads import one_blas_thread

try:
    from sklearn.callback import CallbackSupportMixin, with_callbacks
except ImportError:  # before scikit-learn 1.9

    class CallbackSupportMixin:  # type: ignore[no-redef]
        """Nothing to support."""

    def with_callbacks(method: Any) -> Any:
        """The method itself."""
        return method


__all__ = ["CallbackSupportMixin", "heard"]


def heard(fit: Callable[..., Any], estimator: Any, *given: Any) -> Any:
    """A fit whose beginning and end the callbacks are told that were set, and who are torn down whatever happens."""

    def told(estimator: Any) -> Any:
        context = estimator._init_callback_context()
        context.call_on_fit_task_begin(estimator=estimator, X=given[0], y=given[1])
        fitted = fit(*given)
        context.call_on_fit_task_end(estimator=estimator, X=given[0], y=given[1])
        return fitted

    return with_callbacks(told)(estimator)


Array = NDArray[np.float64]


class fitted_property(property):  # noqa: N801 - used as a decorator
    """What is reckoned from a fit whenever it is asked for; as any attribute, it is there or raises AttributeError."""

    def __get__(self, instance: Any, owner: type | None = None) -> Any:
        if instance is None:
            return self
        try:
            with one_blas_thread:
                instance._require_solution()
                return super().__get__(instance, owner)
        except ValueError as error:
            raise error if isinstance(error, AttributeError) else AttributeError(str(error)) from error


class Reducer(
    DocLinkMixin, CallbackSupportMixin, ClassNamePrefixFeaturesOutMixin, TransformerMixin, StatisticsEstimator
):
    """Base of all reducers."""

    missing: Any = None  # "pairwise" where a method has such a parameter, and it is given
    mean_: Array
    components_: NDArray[Any]
    classes_: NDArray[Any]
    n_components_: int
    n_samples_seen_: int
    eigenvalues_: Array
    explained_variance_ratio_: Array
    rank_: int
    _total_weight: float
    _labels_explained: Array | None = None
    _column_deviations: Array | None = None  # None in models saved by earlier versions, and after passes over parts
    # only where folds may choose something are groups asked for by scikit-learn's metadata routing
    __metadata_request__fit: ClassVar[dict[str, Any]] = {"groups": UNUSED}

    # ------------------------------------------------------------------ what a method states

    def _features(self, scores: NDArray[Any]) -> NDArray[Any]:
        """What `transform` gives, from the components of rows."""
        return scores

    def _components_of(self, features: NDArray[Any]) -> NDArray[Any]:
        """The components of rows, from what `transform` gives."""
        return features

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
            The rows; of a Dask array or data frame, only statistics of its blocks are gathered, on its workers. Or the
            path of a file or a folder (Parquet, Feather, CSV, .npy), which is read in parts.
        y : array of shape (n_samples,), default=None
            Their labels; PCA needs none. Of files, the name of the column that holds them.
        sample_weight : array of shape (n_samples,), default=None
            How much each row counts: a weight of 2 is the row twice. So weights that sum to 1 say as much as a single
            row, wherever the number of rows tells how certain something is.
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
            folds, in_memory = self._needs().folds is not None, not (is_dask(X) or is_path(X))
            require_no_groups(type(self).__name__, folds=folds, in_memory=in_memory)
            groups = np.asarray(on_host(groups))
        if "_skl_callbacks" in vars(self):
            return heard(self._fit, self, X, y, sample_weight, groups)
        return self._fit(X, y, sample_weight, groups)

    def _fit(
        self, X: ArrayLike, y: ArrayLike | None, sample_weight: ArrayLike | None, groups: NDArray[Any] | None
    ) -> Self:
        if is_path(X):
            fit_within(self, self._gathering(), in_files(files_for(self._gathering(), X, y, sample_weight)))
            return self
        if is_dask(X):
            fit_within(self, self._gathering(), in_dask_parts([(X, y, sample_weight)]))
            return self
        needs = self._needs()
        if is_foreign(X) and self.missing is None and not names_rows(None if needs.folds is None else needs.folds.cv):
            gathered = gather_array(self._gathering(), X, y, sample_weight)
            if gathered is not None:
                return self.fit_statistics(gathered)
        with unchanged_on_failure(self):
            rows = labelled_rows(self, X, y, sample_weight, supervised=needs.supervised)
            if needs.supervised:
                require_two_classes(self, rows.classes)
            self._statistics = self._declared = None
            has_cells_missing = self.missing is not None and has_gaps(rows)
            solution = self._solve_gaps(rows) if has_cells_missing else self._solve_rows(rows, groups)
            self._keep(solution, rows.classes if needs.supervised else None)
        return self

    def _solve_gaps(self, rows: LabelledRows) -> Solution:
        """Return the solution from pairwise statistics of rows with missing cells, which is all there is of them."""
        needs = self._needs()
        if needs.rows is not None or self._gathering().sample_rows:
            refuse_gaps(type(self).__name__, needs.rows)
        moments = pairwise_moments(rows if needs.class_weight is None else needs.weighted(rows))
        basis = Features.of_moments(moments, f"{moments.n_rows} rows with missing cells: pairwise statistics")
        problem = Problem.of_moments(basis, moments, plain_count(self.n_components), rows.X.dtype)
        return self._in_features(self._solved(problem), problem, needs)

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

    @fitted_property
    def feature_importances_(self) -> Array:
        """Importance of every feature: what one standard deviation of it changes.

        For methods that predict, the change of the log odds between two classes: the mean of its absolute value over
        all pairs, weighted by the priors. For other methods, the distance that a row moves along the components.
        """
        coefficients, priors = self._linear_scores() or (None, None)
        return linear_importances(self.components_, self._known_deviations(), coefficients, priors)

    def explain(self, X: ArrayLike, between: Any = None) -> Explanation:
        """Compute how much each column moves each row, as `PosteriorMap.explain` does.

        Effects are those of one standard deviation of the column over the training rows. In a linear method the effect
        on the components is the same for all rows.

        Parameters
        ----------
        X : array or sparse matrix of shape (n_samples, n_features)
            Rows.
        between : pair of class labels, default=None
            Explain the log odds of the first against the second; None for each row's two most probable classes.

        Returns
        -------
        explanation : Explanation
            `log_odds` (n_samples, n_features), `positions` (n_samples, n_components_, n_features), the classes `first`
            and `second` of each row, and `importances`, the mean over the rows. Without class scores (methods that do
            not predict) `log_odds`, `first` and `second` are None.
        """
        table = self._fitted_table(X)
        effects = np.asarray(self.components_, dtype=np.float64) * self._known_deviations()
        rule = self._linear_scores()
        if rule is None:
            return explain_positions(effects, table.shape[0], between)
        scores = np.concatenate(list(self._scores(table)))
        return explain_linear(effects, rule[0] * self._known_deviations(), scores, self.classes_, between)

    def _linear_scores(self) -> tuple[Array, Array] | None:
        """Return the coefficients (C×d) of linear class scores and the priors, None for a method without them."""
        return None

    def _known_deviations(self) -> Array:
        """Return the standard deviation of every column over the training rows."""
        if self._column_deviations is None or np.isnan(self._column_deviations).any():
            raise ValueError(
                f"{type(self).__name__} must be fitted on rows or statistics by this version to explain; got a model "
                "without column deviations. Fit it again."
            )
        return self._column_deviations

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
        tags.target_tags.required = self._needs().supervised
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags


class SpreadReducer(Reducer):
    """maximise  tr WᵀAW  subject to  WᵀW = I,  A the spread that `_spread` states."""

    def _needs(self) -> Needs:
        return Needs(passes=True)

    @abstractmethod
    def _spread(self, moments: ClassMoments, basis: Basis) -> Spread:
        """The objective, from the statistics (and landmarks) in the basis's coordinates."""

    def _solve(self, problem: Problem) -> Solution:
        basis, moments, request = problem.basis, problem.moments, problem.request
        wanted = request + 1 if isinstance(request, int) else None  # one more shows a tie at the cut
        spectrum = problem.spectrum(self._spread(moments, basis), wanted)
        k = self._count(request, spectrum, problem.shape)
        values = spectrum.values[:k]
        return Solution(
            components_=spectrum.directions[:k],
            eigenvalues_=moments.per_weight(values),
            explained_variance_ratio_=values / spectrum.total if spectrum.total > 0 else np.zeros(k),
            rank_=spectrum.rank,
            solver_=spectrum.how,
            is_resolved=basis.is_resolved if request is None else basis.shows(values),
        )

    def _count(self, request: int | float | None, spectrum: Spectrum, shape: tuple[int, int]) -> int:
        """How many directions to keep."""
        return kept_count(request, spectrum.values, spectrum.total, spectrum.rank, shape)
