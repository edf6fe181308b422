"""Fits of tables in parts: statistics of each part add up, and the sum gives the fitted model.

A scaler in front of a reducer is part of the same pass: its column statistics are gathered with the moments, and the
moments of scaled rows follow from those of the rows. The memory needed is known before any part is read: exact
statistics, or block Krylov with a pass for each product, or an error.
"""

from __future__ import annotations

import builtins
import itertools
from collections.abc import Callable, Iterable, Mapping
from copy import copy
from dataclasses import dataclass, replace
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
from discrim.core.moments.gather import Gathering, Statistics, part_statistics
from discrim.engines.dask_tables import in_dask_parts, is_dask
from discrim.engines.table_files import files_for, in_files, is_path
from discrim.engines.table_in_parts import Look, TableInParts, sum_of_some
from discrim.tables.check_parameters import BYTES, plain_count, require
from discrim.tables.rows import LabelledRows
from discrim.tables.validation import checked_table, labelled_rows
from discrim.tables.warn_once import warn
from discrim.threads import on_one_blas_thread

MAX_MEMORY = 8 * 2**30


@dataclass(frozen=True)
class Scaled:
    """A scaler in front: the statistics of what it gives, and what it makes of a table."""

    statistics: Callable[[Statistics], Statistics]
    table: Callable[[NDArray[Any]], NDArray[Any]]
    units: Callable[[], tuple[Array, Array]]  # shift and scale, after `statistics`


def fit_within(
    reducer: Any, gathering: Gathering, parts: TableInParts, max_memory: int = MAX_MEMORY, scaled: Scaled | None = None
) -> None:
    """Fit a reducer, behind a scaler or not; what it would take is known before any part is looked at."""
    in_passes = reducer._needs().passes
    why_not = None if in_passes else f"{gathering.method} needs them"
    if in_passes and parts.summed is None:
        why_not = "the parts come but once (an iterator, not a list)"
    request = plain_count(getattr(reducer, "n_components", None))
    plan = choose_in_parts(
        parts.n_columns,
        scatters=max(1, gathering.n_folds) * {"means": 0, "pooled": 1, "each": 2}[gathering.keep],  # of two classes
        wanted=request if isinstance(request, int) else None,
        max_memory=max_memory,
        why_not=why_not,
    )
    exact = plan.basis == "features"
    if not exact:
        warn(f"{gathering.method}: {plan.reason}.")
        gathering = replace(gathering, keep="means")
    total = parts.gather(gathering)
    if scaled is not None:
        total = scaled.statistics(total)
    if exact:
        reducer.fit_statistics(_after_second_pass(reducer, total, parts, max_memory, scaled))
        return
    assert parts.summed is not None
    summed, seen = parts.summed, partial(_seen, total.gathering, total.moments.classes, scaled)
    known = Features.of_moments(total.moments, plan.reason)
    passed = PassedRows(**vars(known), summed=lambda of_rows: summed(partial(seen, of_rows)), most=plan.passes)
    reducer._fit_basis(passed, total)


def _after_second_pass(
    reducer: Any, total: Statistics, parts: TableInParts, max_memory: int, scaled: Scaled | None
) -> Statistics:
    """Return the statistics of a second pass, where a reducer asks for one and the parts can be read again."""
    ask = getattr(reducer, "_second_gathering", None)
    again = None if ask is None or parts.summed is None else ask(total, max_memory, scaled and scaled.units())
    if again is None:
        return total
    if scaled is None:
        return parts.gather(again)
    if again.features is None:
        return scaled.statistics(parts.gather(replace(again, columns=True)))
    return replace(parts.gather(again), names=None)  # the features are computed behind the scaler


def _seen(
    asked: Gathering,
    classes: NDArray[Any],
    scaled: Scaled | None,
    of_rows: Callable[[LabelledRows], Any],
    X: Any,
    y: Any = None,
    weights: Any = None,
) -> Any:
    """Return what a function gives for the rows of a part, their classes numbered among all."""
    if not np.shape(X)[0] or (weights is not None and not np.any(weights)):
        return None
    table = checked_table(asked.method, X)
    table = table if scaled is None else scaled.table(table)
    rows = labelled_rows(asked.method, table, y, weights, supervised=asked.supervised)
    codes = np.searchsorted(classes, rows.classes)[rows.codes] if asked.supervised else rows.codes
    return of_rows(replace(rows, codes=codes.astype(np.intp), classes=classes))


Array = NDArray[np.float64]
LEAST_UNIT = 1e-140  # of a column next to the largest: products of two smaller ones would underflow
PARTS = (
    "a list, or another iterable, of X, (X, y) or (X, y, sample_weight) or of functions that return one, or else the "
    "path of a file or a folder"
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
    """Fit a model on a table that comes in parts, each looked at once, in memory that does not grow with their number.

    The model is the one that all rows at once would give, whatever the parts and their order: for methods on moments
    to rounding; with shrinkage="cv" for folds by content (`HashKFold`), scored on a uniform sample of 20,000 rows; for
    methods that look at rows themselves on that sample, as `solver_` then says. Where there are too many columns for
    statistics of them, PCA, MarginPCA and MaximumMarginCriterion go through the parts several times instead, as a
    warning and `solver_` say.

    Parameters
    ----------
    model : reducer, or Pipeline of a scaler and a reducer
        Fitted in place.
    parts : iterable, or path
        Of ``(X, y)`` or ``(X, y, sample_weight)``, ``X`` alone for PCA, or functions that return such; or of Dask's
        collections or delayed values of these, which are then gathered on its workers (the first of delayed values is
        asked beforehand how many columns it has). Or a file or a folder of files: Parquet, Feather, CSV, .npy.
    map : callable, default=map
        What the gathering is done with: the built-in, or the ``map`` of an executor or a pool. The order in which it
        returns does not matter.
    max_memory : int, default=8 * 2**30
        Bytes that the statistics may take: about 16 for each pair of columns, and that for each fold where folds choose
        something. Beyond, few directions of PCA, MarginPCA and MaximumMarginCriterion are found by block Krylov, to
        about 1e-5 of the spread, where `parts` is a list (or another iterable that begins anew); other methods are
        refused.
    target : str, default=None
        The column of labels, where `parts` is a path.

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
    require("max_memory", max_memory, BYTES)
    wanted = gathering_of(model)  # refused, where it cannot be gathered, before a part is looked at
    if is_path(parts):
        return fit_in_parts(model, in_files(files_for(wanted, parts, target)), max_memory)
    if target is not None:
        raise ValueError(f"target={target!r} names a column of a file, but no path came: labels come as (X, y).")
    if is_dask(parts):
        parts = [parts]
    if isinstance(parts, Mapping) or hasattr(parts, "columns") or not isinstance(parts, Iterable):
        raise TypeError(f"{type(parts).__name__} came as the parts of a table; possible is {PARTS}.")
    remaining = iter(parts)
    begins_anew = remaining is not parts
    first = list(itertools.islice(remaining, 1))
    if any(is_dask(value) for part in first for value in _as_tuple(part)):
        return fit_in_parts(model, in_dask_parts(itertools.chain(first, remaining)), max_memory)
    first = [_part(part) for part in first]

    passes = iter([itertools.chain(first, remaining)])

    def gather(gathering: Gathering) -> Statistics:
        given = enumerate(next(passes, parts))
        return sum_of_some(map(partial(_of_part, gathering), given))

    def summed(look: Look) -> Any:
        return sum_of_some(map(partial(_looked_at, look), parts))

    n_columns = np.shape(first[0][0])[1] if first and np.ndim(first[0][0]) > 1 else 0
    return fit_in_parts(model, TableInParts(n_columns, gather, summed if begins_anew else None), max_memory)


def _as_tuple(part: Any) -> tuple[Any, ...]:
    return part if isinstance(part, tuple) else (part,)


def _part(given: Any) -> tuple[Any, ...]:
    """Compute (X, y, …) of what was given for a part."""
    part = _as_tuple(given() if callable(given) else given)
    if not 1 <= len(part) <= 3 or np.ndim(part[0]) == 0:
        kinds = ", ".join(type(one).__name__ for one in part)
        raise TypeError(f"({kinds}) came as a part of a table; possible is {PARTS}.")
    return part


def _of_part(gathering: Gathering, numbered: tuple[int, Any]) -> Statistics | None:
    number, given = numbered
    return part_statistics(gathering, f"part {number}", *_part(given))


def _looked_at(look: Look, given: Any) -> Any:
    return look(*_part(given))


def fit_in_parts(model: Any, parts: TableInParts, max_memory: int) -> Any:
    """Return the model, fitted on a table in parts wherever they are, in the given memory."""
    scaler, reducer = _steps(model)
    scaled = (
        None if scaler is None else Scaled(partial(_behind, scaler), partial(_applied, scaler), partial(_units, scaler))
    )
    fit_within(reducer, gathering_of(model), parts, max_memory, scaled)
    return model


def gathering_of(model: Any) -> Gathering:
    """Return what a fit of a reducer, or of a scaler and a reducer, needs of every part."""
    scaler, reducer = _steps(model)
    return replace(reducer._gathering(), columns=scaler is not None)


def _behind(scaler: Any, total: Statistics) -> Statistics:
    """Return the statistics behind a scaler, which is fitted; they have no names, as in a fit of the pipeline."""
    return replace(_scaled(scaler, total), gathering=replace(total.gathering, columns=False), names=None)


def _applied(scaler: Any, X: Any) -> Any:
    """Return what the scaler makes of a table without names."""
    nameless = copy(scaler)
    vars(nameless).pop("feature_names_in_", None)
    return nameless.transform(X)


def _units(scaler: Any) -> tuple[Array, Array]:
    """Return shift and scale of a fitted scaler: it gives (x − shift) / scale."""
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
    possible = len(scalers) <= 1 and all(isinstance(s, StandardScaler | MinMaxScaler | MaxAbsScaler) for s in scalers)
    if not hasattr(last, "fit_statistics") or not possible:
        names = ", ".join(type(step).__name__ for step in steps)
        raise TypeError(
            f"{names} came; parts of a table can be gathered for a reducer of discrim, alone or in a pipeline behind "
            "StandardScaler, MinMaxScaler or MaxAbsScaler. Do other steps on each part beforehand."
        )
    return (scalers[0] if scalers else None), last


def _scaled(scaler: Any, total: Statistics) -> Statistics:
    """Return a fitted scaler, and the statistics of the rows it would give."""
    scaler.n_features_in_ = total.n_features
    if total.names is not None:
        scaler.feature_names_in_ = np.array(total.names, dtype=object)
    scaler.n_samples_seen_ = np.int64(total.n_rows)
    columns = total.columns
    assert columns is not None
    _require_comparable_units(columns, total.names)
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


def _require_comparable_units(columns: ColumnTotals, names: tuple[str, ...] | None) -> None:
    """Raise where units differ by so much that products of the smaller columns underflow before they are scaled."""
    with np.errstate(over="ignore"):
        widths = columns.largest / 2 - columns.least / 2
    smallest = int(np.argmin(np.where(widths > 0, widths, np.inf)))
    largest = int(np.argmax(widths))
    if widths[largest] > 0 and widths[smallest] / widths[largest] < LEAST_UNIT:
        said = [names[at] if names is not None else f"number {at}" for at in (largest, smallest)]
        raise ValueError(
            f"The units of columns of a table in parts must differ by less than {1 / LEAST_UNIT:.0e}; got the columns "
            f"{said[0]} and {said[1]}, whose ranges are {2 * widths[largest]:.3g} and {2 * widths[smallest]:.3g}. "
            "Change the unit of one of them in each part, or fit the table in memory."
        )


def _standard(scaler: Any, columns: ColumnTotals, n_rows: int) -> tuple[Array, Array]:
    """Return means and deviations; weighted, where the rows are."""
    scaler.mean_ = columns.mean if scaler.with_mean or scaler.with_std else None
    scaler.var_ = scaler.scale_ = None
    if scaler.with_std:
        scaler.var_ = columns.squares / columns.weight
        rounding = n_rows * np.finfo(np.float64).eps
        constant = scaler.var_ <= rounding * scaler.var_ + (rounding * columns.mean) ** 2  # as scikit-learn's
        scaler.scale_ = np.where(constant, 1.0, np.sqrt(scaler.var_))  # however small the unit
    shift = columns.mean if scaler.with_mean else np.zeros_like(columns.mean)
    return shift, np.ones_like(columns.mean) if scaler.scale_ is None else scaler.scale_


def _nonzero(scale: Array) -> Array:
    """Return the scales with 1 for columns that do not vary, by the bound of scikit-learn's two scalers of ranges."""
    return np.where(scale < 10 * np.finfo(np.float64).eps, 1.0, scale)
