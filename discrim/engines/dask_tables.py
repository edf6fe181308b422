"""Dask arrays, data frames and delayed parts.

Statistics are gathered on the workers that hold the blocks, and added in a tree. Methods of fitted models are applied
block by block, lazily. Dask is imported only when it is used.
"""

from __future__ import annotations

import itertools
import warnings
from collections.abc import Callable, Iterable, Sequence
from functools import partial, wraps
from typing import Any

import numpy as np

from discrim.core.moments.gather import gathered_total
from discrim.engines.table_in_parts import Find, TableInParts
from discrim.tables.validation import PartError, require_table, unmixed
from discrim.warn_once import warn

FAN_IN = 8  # statistics that one task adds
GROUP_CELLS = 2**23  # most cells of neighbouring blocks that one task gathers: 64 MiB of doubles
MIN_TASKS = 32
ROW_METHODS = (
    "transform",
    "predict",
    "predict_proba",
    "predict_log_proba",
    "decision_function",
    "score_samples",
    "score",
)


def is_dask(X: Any) -> bool:
    """Return whether X is a Dask collection, without importing Dask."""
    return type(X).__module__.split(".")[0] == "dask" and hasattr(X, "__dask_graph__")


def in_dask_parts(given: Iterable[Any]) -> TableInParts:
    """Return a table whose parts are gathered and added on the workers.

    given : X or (X, y, sample_weight), each a Dask array or data frame with labels and weights that are Dask's or in
    memory; or delayed values of these, or delayed tuples, of which the first is asked for its number of columns
    """
    import dask

    groups: list[list[Any]] = []
    n_columns = None
    for one in given:
        X, *others = _as_tuple(one)
        if type(X).__module__ == "dask.delayed":  # which seems to have every attribute
            groups.append([one])
            continue
        n_columns = n_columns or (X.shape[1] if hasattr(X, "chunks") else len(X.columns))
        groups += _group_blocks(X, _split_blocks(X, *others))
    n_columns = n_columns or dask.delayed(_width)(groups[0][0]).compute()
    return TableInParts.from_engine(n_columns, partial(_sum_in_tree, groups))


def _split_blocks(X: Any, y: Any = None, sample_weight: Any = None) -> list[tuple[Any, ...]]:
    """Return (X, y, sample_weight) of each block of rows, delayed."""
    rows = _blocks(_whole_rows(X))
    columns = [_blocks_beside(X, rows, values, name) for values, name in ((y, "y"), (sample_weight, "sample_weight"))]
    return list(zip(rows, *columns, strict=True))


def _group_blocks(X: Any, blocks: list[Any]) -> list[list[Any]]:
    """Join small neighbouring blocks, because one task costs as much for few rows as for many.

    A group is never larger than GROUP_CELLS, and there are at least MIN_TASKS groups, so that all workers are busy.
    """
    lengths = getattr(X, "chunks", ((np.nan,),))[0]
    if not _known(lengths):
        return [[block] for block in blocks]
    cells = np.asarray(lengths) * X.shape[1]
    most = min(GROUP_CELLS, cells.sum() / MIN_TASKS)
    groups: list[list[Any]] = []
    held = np.inf
    for size, block in zip(cells, blocks, strict=True):
        if held + size > most:
            groups.append([])
            held = 0
        groups[-1].append(block)
        held += size
    return groups


def _sum_in_tree(groups: Sequence[Sequence[Any]], find: Find) -> Any:
    """Return the sum of a function of each group of parts, added on the workers."""
    import dask

    delayed = dask.delayed(partial(_found, find), pure=False)
    ends = np.cumsum([0, *map(len, groups)]).tolist()
    tasks = []
    for (first, end), group in zip(itertools.pairwise(ends), groups, strict=True):
        name = f"partition {first}" if end == first + 1 else f"partitions {first} to {end - 1}"
        tasks.append(delayed(name, group))
    add = dask.delayed(gathered_total, pure=False)
    while len(tasks) > 1:
        tasks = [add(tasks[start : start + FAN_IN]) for start in range(0, len(tasks), FAN_IN)]
    return tasks[0].compute()


def _found(find: Find, name: str, parts: Sequence[Any]) -> Any:
    return find(name, map(_as_tuple, parts))


def _width(part: Any) -> int:
    shape = np.shape(_as_tuple(part)[0])
    return shape[1] if len(shape) == 2 else 0


def _as_tuple(part: Any) -> Sequence[Any]:
    return part if isinstance(part, tuple | list) else (part,)


def _whole_rows(X: Any) -> Any:
    """Return X with all columns of a row in one block."""
    require_table(X)
    if hasattr(X, "chunks") and len(X.chunks[1]) > 1:
        warn(
            f"The Dask array has {len(X.chunks[1])} blocks of columns; they are joined (rechunk({{1: -1}})), so that "
            "each block holds whole rows."
        )
        return X.rechunk({1: -1})
    return X


def _blocks(X: Any) -> list[Any]:
    """Return the blocks of a collection, delayed.

    A data frame is not optimised: Dask would join partitions of a file that is read, by the number of columns that are
    read, so that X and y of one file had different partitions.
    """
    if hasattr(X, "simplify"):
        return list(X.simplify().to_delayed(optimize_graph=False))
    return list(np.ravel(X.to_delayed()))


def _blocks_beside(X: Any, rows: Sequence[Any], values: Any, name: str) -> list[Any]:
    """Return the labels or weights in X's blocks."""
    if values is None:
        return [None] * len(rows)
    if is_dask(values):
        blocks = _blocks(values)
        both = [getattr(one, "chunks", ((),))[0] for one in (X, values)]
        if len(blocks) != len(rows) or (all(map(_known, both)) and both[0] != both[1]):
            raise PartError(
                f"X has {len(rows)} blocks of rows and {name} has {len(blocks)}, or of other lengths. Bring both to "
                f"the same blocks, e.g. with {name}.rechunk(X.chunks[0]) or X.repartition."
            )
        return blocks
    lengths: Sequence[Any] = getattr(X, "chunks", ((np.nan,),))[0]
    if not _known(lengths):
        raise PartError(
            f"The lengths of X's blocks are not known, so {name} in memory cannot be divided among them. Pass {name} "
            "as a Dask array or series with X's blocks, or call X.compute_chunk_sizes() first."
        )
    if len(values) != sum(lengths):
        raise PartError(f"X has {sum(lengths)} rows, {name} has {len(values)}. Pass one for each row.")
    ends = np.cumsum((0, *lengths))
    values = np.asarray(unmixed(values))
    return [values[start:end] for start, end in itertools.pairwise(ends)]


def _known(lengths: Sequence[float]) -> bool:
    return len(lengths) > 0 and not any(np.isnan(length) for length in lengths)


def accept_dask(cls: type) -> None:
    """Make a class's methods of rows accept Dask collections: they return lazy ones, computed block by block."""
    for name in ROW_METHODS:
        method = getattr(cls, name, None)
        if callable(method) and not getattr(method, "accepts_dask", False):
            setattr(cls, name, lazy_on_dask(method))


def lazy_on_dask(method: Callable[..., Any]) -> Callable[..., Any]:
    """Decorate a method of rows: a Dask collection gives a lazy result."""
    lazily = _score if method.__name__ == "score" else partial(_apply_lazily, method.__name__)

    @wraps(method)
    def decorated(model: Any, X: Any, *given: Any, **named: Any) -> Any:
        return lazily(model, X, *given, **named) if is_dask(X) else method(model, X, *given, **named)

    decorated.accepts_dask = True  # type: ignore[attr-defined]
    return decorated


def _score(model: Any, X: Any, y: Any = None, sample_weight: Any = None) -> Any:
    if hasattr(model, "score_samples"):
        return model.score_samples(X).mean()
    right = model.predict(X) == y
    return right.mean() if sample_weight is None else (right * sample_weight).sum() / sample_weight.sum()


def _apply_lazily(name: str, model: Any, X: Any) -> Any:
    """Return a lazy collection of what a method gives for each block; a call on one row gives its shape and type."""
    compute = getattr(model, name)
    is_array = hasattr(X, "chunks")
    rows = _whole_rows(X) if is_array else X
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        empty = np.asarray(compute(np.zeros((1, X.shape[1]), X.dtype) if is_array else X._meta_nonempty))[:0]
    if is_array:
        chunks = (rows.chunks[0],) if empty.ndim == 1 else (rows.chunks[0], (empty.shape[1],))
        dropped = [1] if empty.ndim == 1 else []
        return rows.map_blocks(
            partial(_apply, compute, empty), dtype=empty.dtype, chunks=chunks, drop_axis=dropped, meta=empty
        )
    names = None
    if empty.ndim == 2:
        names = list(model.get_feature_names_out() if name == "transform" else model.classes_)
    return rows.map_partitions(partial(_apply_to_frame, compute, empty, names), meta=_frame(empty, names, None))


def _apply(compute: Callable[[Any], Any], empty: Any, rows: Any) -> Any:
    return np.asarray(compute(rows)).astype(empty.dtype, copy=False) if rows.shape[0] else empty


def _apply_to_frame(compute: Callable[[Any], Any], empty: Any, names: list[Any] | None, rows: Any) -> Any:
    return _frame(_apply(compute, empty, rows), names, rows.index)


def _frame(values: Any, names: list[Any] | None, index: Any) -> Any:
    import pandas as pd

    return pd.Series(values, index=index) if names is None else pd.DataFrame(values, columns=names, index=index)
