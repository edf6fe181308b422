"""Fits of tables that come in parts: what a part has to tell, and what becomes of the sum.

    part → statistics   wherever the part is, by any engine      sum → fitted model   where the model is wanted

A scaler in front of a reducer is folded into the same pass: what it asks of the columns is gathered beside the moments,
and the moments of scaled rows follow from those of the rows.
"""

from __future__ import annotations

import builtins
import itertools
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import MaxAbsScaler, MinMaxScaler, StandardScaler

from discrim.data.check import labelled_rows
from discrim.data.check_parameters import plain_count
from discrim.data.rows import LabelledRows
from discrim.data.warn_once import warn
from discrim.engines.dask_tables import gather_delayed, is_dask
from discrim.moments.column_totals import ColumnTotals
from discrim.moments.gather import Gatherer, Gathering, Statistics
from discrim.reducers.base import Reducer
from discrim.reducers.posterior_map import PosteriorMap
from discrim.reducers.spread_reducer import SpreadReducer
from discrim.solve.basis import Features
from discrim.solve.choose import Plan, choose_in_parts
from discrim.solve.passed_rows import PassedRows

Array = NDArray[np.float64]


MAX_MEMORY = 8 * 2**30


def fit_parts(
    model: Any,
    parts: Iterable[Any],
    *,
    map: Callable[..., Iterable[Any]] = builtins.map,
    max_memory: int = MAX_MEMORY,
) -> Any:
    """Fit a model on a table that comes in parts, each looked at once, in memory that does not grow with their number.

    The model is the one that all rows at once would give, whatever the parts and their order: for methods on moments
    to rounding; with shrinkage="cv" for folds by content (`HashKFold`), scored on a uniform sample of 20,000 rows; for
    methods that look at rows themselves on that sample, as `solver_` then says. Where there are too many columns for
    statistics of them, PCA and MarginPCA go through the parts several times instead, as a warning and `solver_` say.

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
    max_memory : int, default=8 * 2**30
        Bytes that the statistics may take: about 16 for each pair of columns, and that for each fold where folds choose
        something. Beyond, few directions of PCA and MarginPCA are found by block Krylov, to about 1e-5 of the spread,
        where `parts` is a list (or another iterable that begins anew); other methods are refused.

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
    remaining = iter(parts)
    begins_anew = remaining is not parts
    first = list(itertools.islice(remaining, 1))
    if any(is_dask(value) for part in first for value in (part if isinstance(part, tuple) else (part,))):
        return fitted_on(model, gather_delayed(gathering_of(model), itertools.chain(first, remaining)))
    first = [_part(part) for part in first]
    if not first:
        raise ValueError(NO_ROWS)

    def gather(gathering: Gathering) -> Statistics:
        total: Statistics | None = None
        for found in map(partial(_of_part, gathering), enumerate(itertools.chain(first, remaining))):
            if found is not None:
                total = found if total is None else total + found
        if total is None:
            raise ValueError(NO_ROWS)
        return total

    again = (lambda: builtins.map(_part, parts)) if begins_anew else None
    return fitted_within(model, np.shape(first[0][0])[1:], max_memory, gather, again)


NO_ROWS = "No rows came: `parts` is empty, or all parts are. Pass at least one part with rows."


def _part(given: Any) -> tuple[Any, ...]:
    """(X, y, …) of what was given for a part."""
    part = given() if callable(given) else given
    return part if isinstance(part, tuple) else (part,)


def _of_part(gathering: Gathering, numbered: tuple[int, Any]) -> Statistics | None:
    number, given = numbered
    gatherer = Gatherer(gathering, f"part {number}")
    gatherer.add(*_part(given))
    return None if gatherer.is_empty else gatherer.statistics()


def fitted_within(
    model: Any,
    columns: tuple[int, ...],
    max_memory: int,
    gather: Callable[[Gathering], Statistics],
    batches: Callable[[], Iterable[tuple[Any, ...]]] | None,
) -> Any:
    """The model, fitted on statistics, or, where these would not fit into memory, in passes over batches of rows.

    columns : (d,), or nothing where a part shows no columns; gather : gives the statistics of all parts
    batches : begins to give (X, y, sample_weight) anew, None where they are there but once
    """
    gathering, (_, reducer) = gathering_of(model), _steps(model)
    spread = isinstance(reducer, SpreadReducer) and gathering.keep != "means" and not gathering.needs_hashes
    why_not = None if spread else f"{gathering.method} needs them"
    if spread and batches is None:
        why_not = "the parts come but once (an iterator, not a list)"
    request = plain_count(getattr(reducer, "n_components", None))
    plan = choose_in_parts(
        *columns or (0,),
        scatters=max(1, gathering.n_folds) * {"means": 0, "pooled": 1, "each": 2}[gathering.keep],  # of two classes
        wanted=request if isinstance(request, int) else None,
        max_memory=max_memory,
        why_not=why_not,
    )
    if plan.basis == "features" or batches is None:
        return fitted_on(model, gather(gathering))
    warn(f"{gathering.method}: {plan.reason}.")
    return _fitted_in_passes(model, plan, gather(replace(gathering, keep="means")), batches)


def _fitted_in_passes(
    model: Any, plan: Plan, total: Statistics, batches: Callable[[], Iterable[tuple[Any, ...]]]
) -> Any:
    scaler, reducer = _steps(model)
    if scaler is not None:
        total = _behind(scaler, total)
    asked, classes = total.gathering, total.moments.classes

    def passed() -> Iterator[LabelledRows]:
        for X, *labels_and_weights in batches():
            y, weights, *_ = *labels_and_weights, None, None
            if np.shape(X)[0] and (weights is None or np.any(weights)):
                table = X if scaler is None else scaler.transform(X)
                rows = asked.weighted(labelled_rows(asked.method, table, y, weights, supervised=asked.supervised))
                codes = np.searchsorted(classes, rows.classes)[rows.codes] if asked.supervised else rows.codes
                yield replace(rows, codes=codes.astype(np.intp), classes=classes)

    known = Features.of_moments(total.moments, plan.reason)
    reducer._fit_basis(PassedRows(**vars(known), parts=passed, most=plan.passes), total)
    return model


def gathering_of(model: Any) -> Gathering:
    """What a fit of a reducer, or of a scaler and a reducer, needs of every part."""
    scaler, reducer = _steps(model)
    return replace(reducer._gathering(), columns=scaler is not None)


def fitted_on(model: Any, total: Statistics) -> Any:
    """The model, fitted on what was gathered for it."""
    scaler, reducer = _steps(model)
    if scaler is not None:
        total = _behind(scaler, total)
    reducer.fit_statistics(total)
    return model


def _behind(scaler: Any, total: Statistics) -> Statistics:
    """Of what a scaler gives, which has no names, as in a fit of the pipeline; the scaler is fitted."""
    return replace(_scaled(scaler, total), gathering=replace(total.gathering, columns=False), names=None)


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
