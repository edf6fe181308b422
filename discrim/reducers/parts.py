"""Fits of tables that come in parts: what a part has to tell, and what becomes of the sum.

    part → statistics   wherever the part is, by any engine      sum → fitted model   where the model is wanted

A scaler in front of a reducer is folded into the same pass: what it asks of the columns is gathered beside the moments,
and the moments of scaled rows follow from those of the rows.
"""

from __future__ import annotations

import builtins
import itertools
from collections.abc import Callable, Iterable
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import MaxAbsScaler, MinMaxScaler, StandardScaler

from discrim.engines.dask_tables import gather_delayed, is_dask
from discrim.moments.column_totals import ColumnTotals
from discrim.moments.gather import Gatherer, Gathering, Statistics
from discrim.reducers.base import Reducer
from discrim.reducers.posterior_map import PosteriorMap

Array = NDArray[np.float64]


def fit_parts(model: Any, parts: Iterable[Any], *, map: Callable[..., Iterable[Any]] = builtins.map) -> Any:
    """Fit a model on a table that comes in parts, each looked at once, in memory that does not grow with their number.

    The model is the one that all rows at once would give, whatever the parts and their order: for methods on moments
    to rounding; with shrinkage="cv" for folds by content (`HashKFold`), scored on a uniform sample of 20,000 rows; for
    methods that look at rows themselves on that sample, as `solver_` then says.

    Parameters
    ----------
    model : reducer, or Pipeline of a scaler and a reducer
        Fitted in place.
    parts : iterable
        Of ``(X, y)`` or ``(X, y, sample_weight)``, ``X`` alone for PCA, or functions that return such; or of Dask's
        delayed values of these, which are then gathered on its workers.
    map : callable, default=map
        What the gathering is done with: the built-in, or the ``map`` of an executor or a pool. The order in which it
        returns does not matter.

    Returns
    -------
    estimator
        The fitted model.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.datasets import load_digits
    >>> from discrim import BayesErrorLDA, fit_parts
    >>> X, y = load_digits(return_X_y=True)
    >>> fit_parts(BayesErrorLDA(), zip(np.array_split(X, 7), np.array_split(y, 7))).transform(X).shape
    (1797, 2)
    """
    parts = iter(parts)
    first = list(itertools.islice(parts, 1))
    parts = itertools.chain(first, parts)
    if any(is_dask(value) for part in first for value in (part if isinstance(part, tuple) else (part,))):
        return fitted_on(model, gather_delayed(gathering_of(model), parts))
    total: Statistics | None = None
    for found in map(partial(_of_part, gathering_of(model)), enumerate(parts)):
        if found is not None:
            total = found if total is None else total + found
    if total is None:
        raise ValueError("No rows came: `parts` is empty, or all parts are. Pass at least one part with rows.")
    return fitted_on(model, total)


def _of_part(gathering: Gathering, numbered: tuple[int, Any]) -> Statistics | None:
    number, given = numbered
    part = given() if callable(given) else given
    gatherer = Gatherer(gathering, f"part {number}")
    gatherer.add(*(part if isinstance(part, tuple) else (part,)))
    return None if gatherer.is_empty else gatherer.statistics()


def gathering_of(model: Any) -> Gathering:
    """What a fit of a reducer, or of a scaler and a reducer, needs of every part."""
    scaler, reducer = _steps(model)
    return replace(reducer._gathering(), columns=scaler is not None)


def fitted_on(model: Any, total: Statistics) -> Any:
    """The model, fitted on what was gathered for it."""
    scaler, reducer = _steps(model)
    if scaler is not None:
        # what a scaler gives has no names, as in a fit of the pipeline
        total = replace(_scaled(scaler, total), gathering=replace(total.gathering, columns=False), names=None)
    reducer.fit_statistics(total)
    return model


def _steps(model: Any) -> tuple[Any, Reducer | PosteriorMap]:
    steps = (
        [step for _, step in model.steps if step not in (None, "passthrough")]
        if isinstance(model, Pipeline)
        else [model]
    )
    *scalers, last = steps
    possible = len(scalers) <= 1 and all(isinstance(s, StandardScaler | MinMaxScaler | MaxAbsScaler) for s in scalers)
    if not isinstance(last, Reducer | PosteriorMap) or not possible:
        names = ", ".join(type(step).__name__ for step in steps)
        raise TypeError(
            f"{names} came; parts of a table can be gathered for a reducer of discrim, alone or in a pipeline behind "
            "StandardScaler, MinMaxScaler or MaxAbsScaler. Do other steps on each part beforehand."
        )
    return (scalers[0] if scalers else None), last


def _scaled(scaler: Any, total: Statistics) -> Statistics:
    """A fitted scaler, and the statistics of the rows it would give."""
    scaler.n_features_in_ = total.n_features
    if total.names is not None:
        scaler.feature_names_in_ = np.array(total.names, dtype=object)
    scaler.n_samples_seen_ = np.int64(total.n_rows)
    columns = total.columns
    assert columns is not None
    if isinstance(scaler, StandardScaler):
        return total.standardised(*_standard(scaler, columns, total.n_rows))
    least, largest = columns.least, columns.largest
    if isinstance(scaler, MaxAbsScaler):
        scaler.max_abs_ = np.maximum(np.abs(least), np.abs(largest))
        scaler.scale_ = _nonzero(scaler.max_abs_)
        return total.standardised(np.zeros(total.n_features), scaler.scale_)
    low, high = scaler.feature_range
    scaler.data_min_, scaler.data_max_, scaler.data_range_ = least, largest, largest - least
    scaler.scale_ = (high - low) / _nonzero(scaler.data_range_)
    scaler.min_ = low - least * scaler.scale_
    return total.standardised(-scaler.min_ / scaler.scale_, 1 / scaler.scale_)


def _standard(scaler: Any, columns: ColumnTotals, n_rows: int) -> tuple[Array, Array]:
    """Means and deviations; weighted, where the rows are."""
    scaler.mean_ = columns.mean if scaler.with_mean or scaler.with_std else None
    scaler.var_ = scaler.scale_ = None
    if scaler.with_std:
        scaler.var_ = columns.squares / columns.weight
        rounding = n_rows * np.finfo(np.float64).eps
        constant = scaler.var_ <= rounding * scaler.var_ + (rounding * columns.mean) ** 2  # as scikit-learn's
        scaler.scale_ = _nonzero(np.where(constant, 0.0, np.sqrt(scaler.var_)))
    shift = columns.mean if scaler.with_mean else np.zeros_like(columns.mean)
    return shift, np.ones_like(columns.mean) if scaler.scale_ is None else scaler.scale_


def _nonzero(scale: Array) -> Array:
    """1 for columns that do not vary."""
    return np.where(scale < 10 * np.finfo(np.float64).eps, 1.0, scale)
