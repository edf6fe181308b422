"""Pipelines that are fitted to Dask collections and files in parts, and linear maps that take one product."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.pipeline import Pipeline
from sklearn.pipeline import make_pipeline as make_plain_pipeline
from sklearn.utils.extmath import safe_sparse_dot
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import _check_feature_names, check_array, check_is_fitted

from discrim.engines.dask_tables import ROW_METHODS, is_dask, lazy_on_dask
from discrim.engines.table_files import is_path
from discrim.estimators.base import Reducer
from discrim.estimators.parts import SCALERS, fit_parts, scaler_units
from discrim.tables.rows import projected
from discrim.tables.validation import require_representable
from discrim.threads import on_one_blas_thread_throughout


def make_pipeline(*steps: Any, **options: Any) -> PartsPipeline:
    """Construct a pipeline as scikit-learn's `make_pipeline` does, for tables in memory, Dask collections and files.

    scikit-learn's own pipeline copies a Dask collection into memory, because its scalers do.

    Parameters
    ----------
    *steps : estimators
        A StandardScaler, MinMaxScaler or MaxAbsScaler and a reducer of discrim; in memory, any steps.
    **options : dict
        `memory`, `transform_input` and `verbose`, as in scikit-learn.

    Returns
    -------
    Pipeline
        A scikit-learn Pipeline with the same steps.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.preprocessing import StandardScaler
    >>> from discrim import RegularizedLDA, make_pipeline
    >>> X, y = load_iris(return_X_y=True)
    >>> make_pipeline(StandardScaler(), RegularizedLDA(1, shrinkage=0.1)).fit(X, y).transform(X).shape
    (150, 1)
    """
    return PartsPipeline(make_plain_pipeline(*steps).steps, **options)


def linear_map(model: Any) -> tuple[NDArray[Any], NDArray[Any]] | None:
    """Return centre and directions of a fitted linear reducer, alone or after a scaler; None for any other model.

    ((x − shift)/scale − mean) Wᵀ = (x − (shift + scale · mean)) (W/scale)ᵀ
    """
    *scalers, reducer = [step for _, step in model.steps] if isinstance(model, Pipeline) else [model]
    known = all(isinstance(scaler, SCALERS) and not getattr(scaler, "clip", False) for scaler in scalers)
    if len(scalers) > 1 or not known or type(reducer).transform is not Reducer.transform:
        return None
    centre, directions = reducer.mean_, reducer.components_
    for scaler in scalers:
        shift, scale = scaler_units(scaler)
        with np.errstate(all="ignore"):
            centre, directions = shift + scale * centre, directions / scale
    return (centre, directions) if np.isfinite(centre).all() and np.isfinite(directions).all() else None


def folded_transform(model: Any) -> Callable[[Any], NDArray[Any]]:
    """Return the transform of a fitted model; a scaler and a linear reducer of discrim take one product."""
    found = linear_map(model)
    if found is None or len(getattr(model, "steps", [model])) == 1:
        return model.transform
    (centre, directions), reducer = found, model.steps[-1][1]

    def transform(X: Any) -> NDArray[Any]:
        scores = projected(X, centre, directions)
        require_representable(scores, X)
        return reducer._features(scores)

    return transform


class PartsPipeline(Pipeline):
    """A scikit-learn Pipeline that is fitted from statistics if X is a Dask collection or a path.

    Its methods for rows return lazy collections for Dask collections.
    """

    def fit(self, X: Any, y: Any = None, **params: Any) -> Self:
        """Fit the steps.

        Parameters
        ----------
        X : array, sparse matrix, data frame, Dask collection or path
            Samples.
        y : array, Dask collection or str, default=None
            Class labels; for a path, the name of their column.
        **params : dict
            Fit parameters of the steps, for tables in memory only.

        Returns
        -------
        self : object
            The fitted pipeline.
        """
        if not (is_dask(X) or is_path(X)):
            return super().fit(X, y, **params)
        if params:
            raise ValueError(f"Fit parameters must not be given for a table in parts; got {', '.join(params)}.")
        fit_parts(self, X, target=y) if is_path(X) else fit_parts(self, [(X, y)])
        return self


def _inherited(name: str) -> Callable[..., Any]:
    def method(self: Any, X: Any, *given: Any, **named: Any) -> Any:
        return getattr(super(PartsPipeline, self), name)(X, *given, **named)

    method.__name__, method.__doc__ = name, getattr(Pipeline, name).__doc__
    return method


for _name in ROW_METHODS:
    _available = available_if(lambda pipeline, name=_name: hasattr(pipeline.steps[-1][1], name))
    setattr(PartsPipeline, _name, _available(lazy_on_dask(_inherited(_name))))


_BLOCK = 512


@on_one_blas_thread_throughout
class LinearMap(TransformerMixin, BaseEstimator):
    """Fitted linear transformer, stored as directions and offset.

    x ↦ components_ x + offset_

    Parameters
    ----------
    name : str, default="component"
        Prefix of the feature names: name0, name1, …

    Attributes
    ----------
    components_: Change of each feature per unit of each column.
    offset_ : array of shape (n_components,)
        Features of a row of zeros.
    n_features_in_: Number of features seen in fit.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
    >>> from discrim.estimators.pipeline import LinearMap
    >>> X, y = load_iris(return_X_y=True)
    >>> lda = LinearDiscriminantAnalysis().fit(X, y)
    >>> bool(abs(LinearMap.of(lda, 4).transform(X) - lda.transform(X)).max() < 1e-9)
    True
    """

    components_: NDArray[np.float64]
    offset_: NDArray[np.float64]
    n_features_in_: int

    def __init__(self, name: str = "component") -> None:
        self.name = name

    @classmethod
    def of(cls, fitted: Any, n_features: int, name: str = "component") -> LinearMap:
        """Build from a fitted transformer, such as scikit-learn's LDA, by transforming unit vectors."""
        found = cls(name)
        found.n_features_in_ = n_features
        found.offset_ = np.asarray(fitted.transform(np.zeros((1, n_features))), dtype=np.float64)[0]
        blocks = []
        for start in range(0, n_features, _BLOCK):
            units = np.eye(min(_BLOCK, n_features - start), n_features, start)
            blocks.append(np.asarray(fitted.transform(units), dtype=np.float64) - found.offset_)
        found.components_ = np.ascontiguousarray(np.concatenate(blocks).T)
        return found

    def fit(self, X: ArrayLike, y: Any = None) -> LinearMap:
        """Do nothing; the map is already fitted."""
        return self

    def transform(self, X: ArrayLike) -> NDArray[np.float64]:
        """Return the features of rows."""
        check_is_fitted(self)
        _check_feature_names(self, X, reset=False)
        rows = check_array(X, accept_sparse="csr", dtype=np.float64)
        if rows.shape[1] != self.n_features_in_:
            raise ValueError(f"X has {rows.shape[1]} features, but LinearMap expects {self.n_features_in_}.")
        return np.asarray(safe_sparse_dot(rows, self.components_.T) + self.offset_)

    def get_feature_names_out(self, input_features: Any = None) -> NDArray[Any]:
        """Return the feature names name0, name1, …"""
        return np.array([f"{self.name}{at}" for at in range(len(self.components_))], dtype=object)
