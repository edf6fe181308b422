"""Fits of tables in parts: statistics of each part are added, and the model is fitted to the sum.

A scaler before a reducer needs no additional pass: its column statistics are gathered with the moments, and the moments
of scaled rows are computed from those of the rows. The required memory is known before any part is read: exact
statistics, or block Krylov with a pass for each product, or an error.
"""

from __future__ import annotations

import builtins
import itertools
from collections.abc import Callable, Iterable, Mapping
from copy import copy
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import MaxAbsScaler, MinMaxScaler, StandardScaler

from discrim.core.coordinates.basis import Features
from discrim.core.coordinates.choose import choose_in_parts
from discrim.core.coordinates.products import PassedRows
from discrim.core.moments.column_totals import ColumnTotals
from discrim.core.moments.gather import Gathering, Statistics
from discrim.engines.dask_tables import in_dask_parts, is_dask
from discrim.engines.table_files import files_for, in_files, is_path
from discrim.engines.table_in_parts import Find, TableInParts, sum_of_some
from discrim.tables.check_parameters import BYTES, plain_count, require
from discrim.tables.rows import LabelledRows
from discrim.tables.validation import checked_table, labelled_rows
from discrim.threads import on_one_blas_thread
from discrim.warn_once import warn

MAX_MEMORY = 8 * 2**30


def fit_in_parts(model: Any, parts: TableInParts, max_memory: int = MAX_MEMORY) -> Any:
    """Fit the model to a table in parts, and return it; the required memory is checked before any part is read."""
    (scaler, reducer), gathering = _steps(model), gathering_of(model)
    in_passes = reducer._needs().passes
    why_not = None if in_passes else f"{gathering.method} needs them"
    if in_passes and parts.summed is None:
        why_not = "the parts can be read only once (an iterator, not a list)"
    request = plain_count(getattr(reducer, "n_components", None))
    plan = choose_in_parts(
        parts.n_columns,
        scatters=max(1, gathering.n_folds) * {"means": 0, "pooled": 1, "each": 2}[gathering.keep],  # for two classes
        wanted=request if isinstance(request, int) else None,
        max_memory=max_memory,
        why_not=why_not,
    )
    exact = plan.basis == "features"
    if not exact:
        warn(f"{gathering.method}: {plan.reason}.")
        gathering = replace(gathering, keep="means")
    total = parts.gather(gathering)
    if scaler is not None:
        total = _behind(scaler, total)
    if exact:
        reducer.fit_statistics(_after_second_pass(reducer, total, parts, max_memory, scaler))
        return model
    assert parts.summed is not None
    summed, seen = parts.summed, partial(_seen, total.gathering, total.moments.classes, scaler)
    known = Features.from_moments(total.moments, plan.reason)
    passed = PassedRows(**vars(known), summed=lambda of_rows: summed(partial(seen, of_rows)), most=plan.passes)
    reducer._fit_basis(passed, total)
    return model


def _after_second_pass(
    reducer: Any, total: Statistics, parts: TableInParts, max_memory: int, scaler: Any
) -> Statistics:
    """Return the statistics of a second pass, if the reducer needs one and the parts can be read again."""
    ask = getattr(reducer, "_second_gathering", None)
    if ask is None or parts.summed is None:
        return total
    again = ask(total, max_memory, None if scaler is None else scaler_units(scaler))
    if again is None:
        return total
    if scaler is None:
        return parts.gather(again)
    if again.features is None:
        return _behind(scaler, parts.gather(replace(again, columns=True)))
    return replace(parts.gather(again), names=None)  # the features are computed after the scaler


def _seen(
    asked: Gathering,
    classes: NDArray[Any],
    scaler: Any,
    of_rows: Callable[[LabelledRows], Any],
    X: Any,
    y: Any = None,
    weights: Any = None,
) -> Any:
    """Return the value of a function for the rows of a part, with class numbers of the whole table."""
    if not np.shape(X)[0] or (weights is not None and not np.any(weights)):
        return None
    table = checked_table(asked.method, X)
    table = table if scaler is None else _applied(scaler, table)
    rows = labelled_rows(asked.method, table, y, weights, supervised=asked.supervised)
    codes = np.searchsorted(classes, rows.classes)[rows.codes] if asked.supervised else rows.codes
    return of_rows(replace(rows, codes=codes.astype(np.intp), classes=classes))


Array = NDArray[np.float64]
SCALERS = StandardScaler | MinMaxScaler | MaxAbsScaler
MIN_UNIT = 1e-140  # of a column relative to the largest: products of smaller ones would underflow
PARTS = (
    "a list, or another iterable, of X, (X, y) or (X, y, sample_weight), or of functions that return one of these, or "
    "the path of a file or a folder"
)


@on_one_blas_thread
def fit_parts(
    model: Any,
    parts: Iterable[Any],
    *,
    map: Callable[..., Iterable[Any]] = builtins.map,
    max_memory: int = MAX_MEMORY,
    target: str | None = None,
) -> Any:
    """Fit a model to a table in parts, reading each part once, in memory independent of their number.

    The model equals that of a fit to all rows, for any parts in any order: up to rounding for methods that use moments;
    with folds by content (`HashKFold`), scored on a uniform sample of 20,000 rows, for shrinkage="cv"; and on that
    sample for methods that need rows, as `solver_` reports. If there are too many columns for their statistics, PCA,
    MarginPCA and MaximumMarginCriterion read the parts several times instead, as a warning and `solver_` report.

    Parameters
    ----------
    model : reducer, or Pipeline of a scaler and a reducer
        Model to fit in place.
    parts : iterable, or path
        ``(X, y)`` or ``(X, y, sample_weight)`` for each part, ``X`` alone for PCA, or functions that return these; or
        Dask collections or delayed values of these, which are then gathered on its workers (the first delayed value is
        computed beforehand to get the number of columns). Or a file or a folder of files: Parquet, Feather, CSV, .npy.
    map : callable, default=map
        Function used for gathering: the built-in, or the ``map`` of an executor or a pool. The order of its results
        does not matter.
    max_memory : int, default=8 * 2**30
        Maximum number of bytes for the statistics: about 16 for each pair of columns, times the number of folds if
        folds are needed. Above it, few directions of PCA, MarginPCA and MaximumMarginCriterion are computed by block
        Krylov, to about 1e-5 of the spread, if `parts` is a list (or another iterable that can be read again); other
        methods raise an error.
    target : str, default=None
        Column of labels, if `parts` is a path.

    Returns
    -------
    estimator
        Fitted model.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.datasets import load_digits
    >>> from discrim import BayesErrorLDA, fit_parts
    >>> X, y = load_digits(return_X_y=True)
    >>> fit_parts(BayesErrorLDA(), zip(np.array_split(X, 7), np.array_split(y, 7))).transform(X).shape
    (1797, 2)
    """
    require("max_memory", max_memory, BYTES)
    gathering_of(model)  # raises before a part is read if the model cannot be fitted in parts
    if is_path(parts):
        return fit_collection(model, parts, target, max_memory=max_memory)
    if target is not None:
        raise ValueError(f"target must be None unless parts is a path; got {target!r}. Pass labels as (X, y).")
    if is_dask(parts):
        return fit_collection(model, parts, max_memory=max_memory)
    if isinstance(parts, Mapping) or hasattr(parts, "columns") or not isinstance(parts, Iterable):
        raise TypeError(f"parts must be {PARTS}; got {type(parts).__name__}.")
    remaining = iter(parts)
    first = list(itertools.islice(remaining, 1))
    if any(is_dask(value) for part in first for value in _as_tuple(part)):
        return fit_in_parts(model, in_dask_parts(itertools.chain(first, remaining)), max_memory)
    first = [_part(part) for part in first]
    passes = iter([itertools.chain(first, remaining)])

    def total(find: Find) -> Any:
        return sum_of_some(map(partial(_found, find), enumerate(next(passes, parts))))

    n_columns = next(iter(np.shape(first[0][0])[1:]), 0) if first else 0
    return fit_in_parts(model, TableInParts.from_engine(n_columns, total, once=remaining is parts), max_memory)


def fit_collection(
    model: Any, X: Any, y: Any = None, sample_weight: Any = None, *, max_memory: int = MAX_MEMORY
) -> Any:
    """Fit the model to a path or a Dask collection, and return it."""
    gathering, given = gathering_of(model), (X, y, sample_weight)  # checks the parameters before the collection
    parts = in_files(files_for(gathering, *given)) if is_path(X) else in_dask_parts([given])
    return fit_in_parts(model, parts, max_memory)


def _as_tuple(part: Any) -> tuple[Any, ...]:
    return part if isinstance(part, tuple) else (part,)


def _part(given: Any) -> tuple[Any, ...]:
    """Return (X, y, …) of a part."""
    part = _as_tuple(given() if callable(given) else given)
    if not 1 <= len(part) <= 3 or not np.shape(part[0]):
        kinds = ", ".join(type(one).__name__ for one in part)
        raise TypeError(f"parts must be {PARTS}; got a part ({kinds}).")
    return part


def _found(find: Find, numbered: tuple[int, Any]) -> Any:
    number, given = numbered
    return find(f"part {number}", [_part(given)])


def gathering_of(model: Any) -> Gathering:
    """Return the statistics that a fit of a reducer, or of a scaler and a reducer, needs from every part."""
    scaler, reducer = _steps(model)
    return replace(reducer._gathering(), columns=scaler is not None)


def _behind(scaler: Any, total: Statistics) -> Statistics:
    """Fit the scaler and return the statistics after it; they have no names, as in a fit of the pipeline."""
    _fit_scaler(scaler, total)
    found = total.standardised(*scaler_units(scaler))
    return replace(found, gathering=replace(total.gathering, columns=False), names=None)


def _applied(scaler: Any, X: Any) -> Any:
    """Return the output of the scaler for a table without names."""
    nameless = copy(scaler)
    vars(nameless).pop("feature_names_in_", None)
    return nameless.transform(X)


def scaler_units(scaler: Any) -> tuple[Array, Array]:
    """Return shift and scale of a fitted scaler, whose output is (x − shift) / scale."""
    if isinstance(scaler, MinMaxScaler):
        return -scaler.min_ / scaler.scale_, 1 / scaler.scale_
    scale = np.ones(scaler.n_features_in_) if scaler.scale_ is None else scaler.scale_
    has_shift = isinstance(scaler, StandardScaler) and scaler.with_mean
    return (scaler.mean_ if has_shift else np.zeros(scaler.n_features_in_)), scale


def _steps(model: Any) -> tuple[Any, Any]:
    steps = (
        [step for _, step in model.steps if step not in (None, "passthrough")]
        if isinstance(model, Pipeline)
        else [model]
    )
    *scalers, last = steps
    possible = len(scalers) <= 1 and all(isinstance(s, SCALERS) for s in scalers)
    if not hasattr(last, "fit_statistics") or not possible:
        names = ", ".join(type(step).__name__ for step in steps)
        raise TypeError(
            "model must be a reducer of discrim, alone or in a pipeline after StandardScaler, MinMaxScaler or "
            f"MaxAbsScaler, to be fitted in parts; got {names}. Apply other steps to each part beforehand."
        )
    return (scalers[0] if scalers else None), last


def _fit_scaler(scaler: Any, total: Statistics) -> None:
    """Fit the scaler on the totals of the columns, weighted if the rows are."""
    scaler.n_features_in_ = total.n_features
    if total.names is not None:
        scaler.feature_names_in_ = np.array(total.names, dtype=object)
    scaler.n_samples_seen_ = np.int64(total.n_rows)
    columns = total.columns
    assert columns is not None
    _require_comparable_units(columns, total.names)
    least, largest = columns.least, columns.largest
    if isinstance(scaler, StandardScaler):
        scaler.mean_ = columns.mean if scaler.with_mean or scaler.with_std else None
        scaler.var_ = scaler.scale_ = None
        if scaler.with_std:
            scaler.var_ = columns.squares / columns.weight
            rounding = total.n_rows * np.finfo(np.float64).eps
            constant = scaler.var_ <= rounding * scaler.var_ + (rounding * columns.mean) ** 2  # as scikit-learn's
            scaler.scale_ = np.where(constant, 1.0, np.sqrt(scaler.var_))  # for units of any size
    elif isinstance(scaler, MaxAbsScaler):
        scaler.max_abs_ = np.maximum(np.abs(least), np.abs(largest))
        scaler.scale_ = _nonzero(scaler.max_abs_)
    else:
        low, high = scaler.feature_range
        scaler.data_min_, scaler.data_max_, scaler.data_range_ = least, largest, largest - least
        scaler.scale_ = (high - low) / _nonzero(scaler.data_range_)
        scaler.min_ = low - least * scaler.scale_


def _require_comparable_units(columns: ColumnTotals, names: tuple[str, ...] | None) -> None:
    """Raise if units differ so much that products of the smaller columns would underflow before they are scaled."""
    with np.errstate(over="ignore"):
        widths = columns.largest / 2 - columns.least / 2
    smallest = int(np.argmin(np.where(widths > 0, widths, np.inf)))
    largest = int(np.argmax(widths))
    if widths[largest] > 0 and widths[smallest] / widths[largest] < MIN_UNIT:
        labels = [names[at] if names is not None else f"number {at}" for at in (largest, smallest)]
        raise ValueError(
            f"X must have columns whose units differ by less than {1 / MIN_UNIT:.0e} if it is read in parts; got the "
            f"columns {labels[0]} and {labels[1]} with ranges {2 * widths[largest]:.3g} and "
            f"{2 * widths[smallest]:.3g}. Change the unit of one of them in each part, or fit the table in memory."
        )


def _nonzero(scale: Array) -> Array:
    """Return the scales with 1 for columns that do not vary, by the criterion of scikit-learn's range scalers."""
    return np.where(scale < 10 * np.finfo(np.float64).eps, 1.0, scale)
