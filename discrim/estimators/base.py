"""Base class of reducers: rows or statistics → Problem → the method's `_solve` → Solution → fitted attributes.

A method defines `_needs` and `_solve`. `fit`, `partial_fit`, `fit_statistics`, `transform` and `inverse_transform` are
implemented here for all methods.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import replace
from typing import Any, ClassVar, Self

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils import Tags
from sklearn.utils.metadata_routing import UNUSED
from sklearn.utils.validation import _check_n_features, check_is_fitted

from discrim.core.coordinates.basis import Basis
from discrim.core.cross_validation import names_rows
from discrim.core.explanation import Explanation, explain_linear, explain_positions, linear_importances
from discrim.core.moments.class_moments import ClassMoments
from discrim.core.moments.gather import Gatherer, Gathering, Statistics, require_statistics, statistics_of_rows
from discrim.core.moments.pairwise import has_gaps
from discrim.core.problem import Needs, Problem
from discrim.decompositions import pinv
from discrim.docstrings import public_estimator
from discrim.engines.dask_tables import accept_dask, is_dask
from discrim.engines.device_arrays import gather_array, projected_array
from discrim.engines.table_files import is_path
from discrim.estimators.fitting import (
    CallbackSupportMixin,
    declare_classes,
    fit_with_callbacks,
    fitted_attribute,
    fitted_deviations,
    record_columns,
    rows_of_sample,
    solve_gaps,
    solved,
    statistics_of_moments,
    streamed,
    unchanged_on_failure,
    warn_of_new_stream,
)
from discrim.estimators.parts import fit_collection
from discrim.estimators.solution import Solution, importances, labels_explained
from discrim.tables.check_parameters import COUNT, Constraints, check_parameters, plain_count
from discrim.tables.rows import LabelledRows, projected
from discrim.tables.validation import (
    as_given,
    checked_table,
    is_foreign,
    labelled_rows,
    names_of,
    on_host,
    require_finite,
    require_representable,
    require_table,
    require_two_classes,
)
from discrim.threads import on_one_blas_thread
from discrim.warn_once import collected_warnings, issue_once

Array = NDArray[np.float64]
STREAMED_SPARSE_COLUMNS = 5_000  # because a stream keeps a d×d scatter


@public_estimator
class Reducer(CallbackSupportMixin, ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator, ABC):
    """Base class of all reducers."""

    _parameter_constraints: ClassVar[Constraints] = {"n_components": COUNT}
    # only methods that may choose something by folds request groups from scikit-learn's metadata routing
    __metadata_request__fit: ClassVar[dict[str, Any]] = {"groups": UNUSED}
    n_features_in_: int
    feature_names_in_: NDArray[Any]
    mean_: Array = solved()
    components_: NDArray[Any] = solved()
    classes_: NDArray[Any] = solved()
    n_components_: int = solved()
    n_samples_seen_: int = solved()
    eigenvalues_: Array = solved()
    explained_variance_ratio_: Array = solved()
    rank_: int = solved()
    solver_: str = solved()
    _total_weight: float
    _statistics: Statistics | None
    _declared: NDArray[Any] | None

    def __init__(self, n_components: Any = None) -> None:
        self.n_components = n_components

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        public_estimator(cls)
        accept_dask(cls)

    # ------------------------------------------------------------------ defined by each method

    def _needs(self) -> Needs:
        """Return the requirements of a fit."""
        return Needs()

    @abstractmethod
    def _solve(self, problem: Problem) -> Solution:
        """Compute the directions in the problem's coordinates, from the parameters and the problem only."""

    def _features(self, scores: NDArray[Any]) -> NDArray[Any]:
        """Return the result of `transform` from the components of rows."""
        return scores

    def _scores_of_features(self, features: NDArray[Any]) -> NDArray[Any]:
        """Return the components of rows from the result of `transform`."""
        return features

    # ------------------------------------------------------------------ fitting

    def fit(
        self,
        X: ArrayLike,
        y: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
        groups: ArrayLike | None = None,
    ) -> Self:
        """Fit the reducer.

        Parameters
        ----------
        X : array or sparse matrix of shape (n_samples, n_features)
            Samples. From a Dask array or data frame, only statistics of its blocks are gathered, on its workers. A path
            of a file or a folder (Parquet, Feather, CSV, .npy) is read in parts.
        y : array of shape (n_samples,), default=None
            Class labels; not used by PCA. For files, the name of the column that holds them.
        sample_weight : array of shape (n_samples,), default=None
            Sample weights. A weight of 2 counts as two copies of the row, so weights that sum to 1 count as a single
            row wherever the number of rows determines an uncertainty.
        groups : array of shape (n_samples,), default=None
            Groups of rows (a patient, a site) that cross-validation must not divide between training and test rows. An
            int `cv` is then scikit-learn's StratifiedGroupKFold.

        Returns
        -------
        self : object
            The fitted estimator.
        """
        check_parameters(self)
        if groups is not None:
            if self._needs().folds is None:
                raise ValueError(f"groups is not supported: {type(self).__name__} does not cross-validate anything.")
            if is_dask(X) or is_path(X):
                raise ValueError(
                    "groups is not supported for a table in parts, whose folds follow from the rows' content alone."
                )
            groups = np.asarray(on_host(groups))
        if "_skl_callbacks" in vars(self):
            return fit_with_callbacks(self._fit, self, X, y, sample_weight, groups)
        return self._fit(X, y, sample_weight, groups)

    def _fit(
        self, X: ArrayLike, y: ArrayLike | None, sample_weight: ArrayLike | None, groups: NDArray[Any] | None
    ) -> Self:
        if is_path(X) or is_dask(X):
            return fit_collection(self, X, y, sample_weight)
        needs = self._needs()
        if is_foreign(X) and not self._allows_gaps and not names_rows(None if needs.folds is None else needs.folds.cv):
            gathered = gather_array(self._gathering(), X, y, sample_weight)
            if gathered is not None:
                return self.fit_statistics(gathered)
        with unchanged_on_failure(self):
            rows = labelled_rows(self, X, y, sample_weight, supervised=needs.supervised)
            if needs.supervised:
                require_two_classes(self, rows.classes)
            gaps = self._allows_gaps and has_gaps(rows)
            solution = solve_gaps(self, rows, needs) if gaps else self._solve_rows(rows, groups)
            self._publish(solution, rows.classes if needs.supervised else None)
        return self

    def _solve_rows(self, rows: LabelledRows, groups: NDArray[Any] | None = None) -> Solution:
        """Return the solution of rows in the features."""
        return self._solve_in_features(Problem.from_rows(rows, self._needs(), plain_count(self.n_components), groups))

    def _solve_in_features(self, problem: Problem) -> Solution:
        """Return the solution in the features, with its warnings; by finer coordinates if the first lose accuracy."""
        with collected_warnings() as warnings:
            solution = self._solve(problem)
        if problem.basis.can_resolve and not solution.is_resolved:
            return self._solve_in_features(problem.resolved)
        return replace(solution.in_features(problem), warnings=(*solution.warnings, *warnings))

    def _publish(self, solution: Solution, classes: NDArray[Any] | None, statistics: Statistics | None = None) -> None:
        """Set the fitted attributes (no classes if the method uses no labels), and issue the warnings."""
        self.__dict__.update(solution.attributes(), _statistics=statistics)
        if classes is not None:
            self.classes_ = classes
        if statistics is None:
            self._declared = None
        issue_once(list(solution.warnings))

    # ------------------------------------------------------------------ fitting from statistics

    def _gathering(self) -> Gathering:
        """Return the statistics that a fit needs from every part: moments if they suffice, else a sample of rows."""
        check_parameters(self)
        return self._needs().gathering(type(self).__name__)

    def statistics(
        self,
        X: ArrayLike,
        y: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
        *,
        part: str = "",
    ) -> Statistics:
        """Return the statistics of a part of a table; the sum over all parts, in any order, is for `fit_statistics`.

        Parameters
        ----------
        X : array or sparse matrix of shape (n_samples, n_features)
            Samples of the part.
        y : array of shape (n_samples,), default=None
            Class labels; not used by PCA.
        sample_weight : array of shape (n_samples,), default=None
            Sample weights.
        part : str, default=""
            Name of the part in errors, which also distinguishes it from another part with the same rows.

        Returns
        -------
        statistics : Statistics
            Statistics of the part; add those of all parts and pass the sum to `fit_statistics`.
        """
        gatherer = Gatherer(self._gathering(), part)
        gatherer.add(X, y, sample_weight)
        return gatherer.statistics()

    def fit_statistics(self, total: Statistics | ClassMoments) -> Self:
        """Fit the reducer from gathered statistics.

        Parameters
        ----------
        total : Statistics or ClassMoments
            Sum of `statistics(X, y)` over all parts of a table, gathered with the same parameters; or, if the method
            needs neither folds nor rows, `ClassMoments.of(X, y, sample_weight)` or a sum of such.

        Returns
        -------
        self : object
            The fitted estimator. `partial_fit` continues from these statistics. Methods that need rows are fitted to
            the sample in the statistics, as `solver_` reports.
        """
        gathering, needs = self._gathering(), self._needs()
        with unchanged_on_failure(self):
            if isinstance(total, ClassMoments):
                total = statistics_of_moments(type(self).__name__, total, needs, gathering)
            require_statistics(total)
            total.gathering.sufficing_for(gathering)
            record_columns(self, total)
            self._declared = None
            if needs.rows is None:
                self._hold(total)
                self._require_solution()
            else:
                self._fit_sample(total)
        return self

    def _fit_sample(self, total: Statistics) -> None:
        """Fit a method that needs rows to the sampled ones."""
        rows = rows_of_sample(self, total)
        solution = self._solve_rows(rows)
        solver = f"{solution.solver_}; on {rows.shape[0]} distinct rows of {total.n_rows}, by content hash"
        n_rows, weight = total.n_rows, total.moments.total_weight
        solution = replace(solution, solver_=solver, n_samples_seen_=n_rows, _total_weight=weight)
        self._publish(solution, total.moments.classes if total.gathering.supervised else None)

    def _fit_basis(self, basis: Basis, total: Statistics) -> None:
        """Fit from statistics that hold means only, in a basis that provides the rest."""
        with unchanged_on_failure(self):
            record_columns(self, total)
            needs, request = self._needs(), plain_count(self.n_components)
            solution = self._solve_in_features(Problem.from_moments(basis, total.moments, needs, request, total.dtype))
            self._publish(solution, total.moments.classes if total.gathering.supervised else None)

    @streamed
    @on_one_blas_thread
    def partial_fit(
        self,
        X: ArrayLike,
        y: ArrayLike | None = None,
        classes: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
    ) -> Self:
        """Add rows to the statistics; the directions are computed on first use.

        {streamed}
        """
        gathering = self._gathering()
        so_far: Statistics | None = vars(self).get("_statistics")
        if so_far is None and self.__sklearn_is_fitted__():
            warn_of_new_stream(self)
        with unchanged_on_failure(self):
            is_first = so_far is None
            rows = labelled_rows(
                self, X, y, sample_weight, supervised=gathering.supervised, reset=is_first, whole=False
            )
            if rows.is_sparse and rows.shape[1] > STREAMED_SPARSE_COLUMNS:
                raise ValueError(
                    f"X must have at most {STREAMED_SPARSE_COLUMNS} columns if it is sparse, because partial_fit keeps "
                    f"a d×d scatter; got {rows.shape[1]}. Use fit on all rows (which keeps X sparse), or reduce the "
                    "columns first, e.g. with sklearn.feature_selection or a HashingVectorizer."
                )
            declare_classes(self, rows, classes, is_first=is_first)
            if so_far is not None:
                gathering = so_far.gathering.sufficing_for(gathering)
            names = names_of(X)
            try:
                self._hold(statistics_of_rows(gathering, rows, names, so_far))
            except ValueError:
                require_finite(rows.X, rows.numbers, names, whole=False)
                raise
        return self

    def _hold(self, statistics: Statistics) -> None:
        """Store statistics whose solution is computed on first use."""
        for name in [name for name in vars(self) if name.endswith("_") and not name.endswith("_in_")]:
            delattr(self, name)
        self._statistics = statistics

    @on_one_blas_thread
    def _require_solution(self) -> None:
        """Raise if the estimator is not fitted; solve the statistics of a stream on first use."""
        check_is_fitted(self)
        if "components_" in vars(self) or vars(self).get("_statistics") is None:
            return
        total, asked, needs = self._statistics, self._gathering(), self._needs()  # parameters may have changed since
        assert total is not None
        if needs.rows is not None:
            raise ValueError(f"{type(self).__name__} cannot be solved from the statistics of partial_fit: {needs.rows}")
        total.gathering.sufficing_for(asked)
        if asked.supervised:
            require_two_classes(self, total.moments.classes)
        problem = Problem.from_statistics(total, needs, plain_count(self.n_components), vars(self).get("_declared"))
        solution = self._solve_in_features(problem)
        self._publish(solution, problem.moments.classes if needs.supervised else None, total)

    def __sklearn_is_fitted__(self) -> bool:
        return "components_" in vars(self) or vars(self).get("_statistics") is not None

    # ------------------------------------------------------------------ use

    @fitted_attribute
    def vip_(self) -> Array:
        """VIP of each feature, √(d Σ_h SS_h w_jh² / Σ_h SS_h); SS_h = label variance explained by component h."""
        spread = vars(self).get("_label_spread")
        # models saved by earlier versions hold the result
        explained = vars(self).get("_labels_explained") if spread is None else labels_explained(spread)
        if explained is None:
            raise AttributeError(
                f"{type(self).__name__} has no vip_, because its fit does not compute the label variance explained by "
                "each component. VIPDisplay.from_estimator(model, X, y).values.vip computes it from the rows."
            )
        return importances(self.components_, explained)

    @fitted_attribute
    def feature_importances_(self) -> Array:
        """Effect of one standard deviation of each feature.

        For methods that predict, it is the change of the log odds between two classes: the mean absolute value over all
        pairs, weighted by the priors. For other methods, it is the distance that a row moves along the components.
        """
        rule = vars(self).get("_rule")
        scores = (None, None) if rule is None else (rule.centroids @ rule.directions, np.exp(rule.log_priors))
        return linear_importances(self.components_, fitted_deviations(self), *scores)

    def explain(self, X: ArrayLike, between: Any = None) -> Explanation:
        """Compute how much each column moves each row, as `PosteriorMap.explain` does.

        Effects are those of one standard deviation of the column over the training rows. In a linear method the effect
        on the components is the same for all rows. For methods that do not predict, `log_odds`, `first` and `second`
        are None.

        {explained}
        """
        table = self._fitted_table(X)
        effects = np.asarray(self.components_, dtype=np.float64) * fitted_deviations(self)
        rule = vars(self).get("_rule")
        if rule is None:
            return explain_positions(effects, table.shape[0], between)
        scores, coefficients = np.concatenate(list(rule.scores(table, self.mean_))), rule.centroids @ rule.directions
        return explain_linear(effects, coefficients * fitted_deviations(self), scores, self.classes_, between)

    def transform(self, X: ArrayLike) -> NDArray[Any]:
        """Compute (x − mean_)ᵀ components_ for every row.

        Parameters
        ----------
        X : array or sparse matrix of shape (n_samples, n_features)
            Samples. For a Dask collection the result is a lazy collection.

        Returns
        -------
        scores : array of shape (n_samples, n_components_)
            Components of the samples.
        """
        self._require_solution()
        if is_foreign(X) and not self._allows_gaps:
            require_table(X)
            _check_n_features(self, X, reset=False)
            scores, table = projected_array(X, self.mean_, self.components_), X
        else:
            table = self._fitted_table(X)
            scores = projected(table, self.mean_, self.components_)
        require_representable(scores, table)
        return as_given(self._features(scores), X)

    def inverse_transform(self, X: ArrayLike) -> NDArray[Any]:
        """Return the points of the feature space nearest to mean_ that have these components (least squares).

        Parameters
        ----------
        X : array of shape (n_samples, n_components_)
            Components, as returned by transform.

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
                f"X must be a result of transform, of shape (n_samples, {self._n_features_out}); got shape "
                f"{scores.shape}."
            )
        scores = self._scores_of_features(scores)
        lengths = np.abs(components).max(axis=1).astype(np.float64)
        # for unit rows, because the lengths may differ by orders of magnitude
        back = pinv(components / lengths[:, None]).T
        with np.errstate(over="ignore", invalid="ignore"):
            points = (scores / lengths) @ back + self.mean_
        require_representable(points, scores)
        return as_given(points.astype(components.dtype, copy=False), X)

    def _fitted_table(self, X: ArrayLike) -> Any:
        """Return validated rows for a fitted model; missing cells, if allowed, are replaced by the mean."""
        self._require_solution()
        table = checked_table(self, X)
        if not self._allows_gaps or sp.issparse(table) or not np.isnan(table).any():
            return table
        return np.where(np.isnan(table), self.mean_.astype(table.dtype), table)

    @property
    def _allows_gaps(self) -> bool:
        """True if cells may be missing."""
        return getattr(self, "missing", None) is not None

    @property
    def _n_features_out(self) -> int:
        return self.n_components_

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.allow_nan = self._allows_gaps
        tags.target_tags.required = self._needs().supervised
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags


accept_dask(Reducer)
