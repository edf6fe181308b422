"""Pipelines of a scaler and a reducer that stay on the workers of a Dask collection, and in parts of a file."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, Self

from sklearn.pipeline import Pipeline
from sklearn.pipeline import make_pipeline as make_plain_pipeline
from sklearn.utils.metaestimators import available_if

from discrim.engines.dask_tables import ROW_METHODS, is_dask, lazy_on_dask
from discrim.engines.table_files import is_path
from discrim.estimators.parts import fit_parts


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


class PartsPipeline(Pipeline):
    """A scikit-learn Pipeline that is fitted on statistics where X is a Dask collection or a path.

    Its methods of rows give lazy collections for Dask collections.
    """

    def fit(self, X: Any, y: Any = None, **params: Any) -> Self:
        """Fit the steps.

        Parameters
        ----------
        X : array, sparse matrix, data frame, Dask collection or path
            The rows.
        y : array, Dask collection or str, default=None
            The labels; for a path the name of their column.
        **params : dict
            Parameters of the steps' fits, for tables in memory.

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


def _ends_in(name: str, pipeline: Pipeline) -> bool:
    """Return whether the last step has a method."""
    return hasattr(pipeline.steps[-1][1], name)


def _inherited(name: str) -> Callable[..., Any]:
    def method(self: Any, X: Any, *given: Any, **named: Any) -> Any:
        return getattr(super(PartsPipeline, self), name)(X, *given, **named)

    method.__name__, method.__doc__ = name, getattr(Pipeline, name).__doc__
    return method


for _name in ROW_METHODS:
    setattr(PartsPipeline, _name, available_if(partial(_ends_in, _name))(lazy_on_dask(_inherited(_name))))
