"""Dask arrays, data frames and delayed parts: statistics are gathered where the blocks are, and added in a tree.

Nothing is made numpy here but a block at a time, on the workers. Dask is imported only when a collection of its comes.
"""

from __future__ import annotations

import itertools
import warnings
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import Any

import numpy as np

from discrim.core.moments.gather import Gathering, Statistics, gathered_total, part_statistics
from discrim.engines.table_in_parts import Look, TableInParts, sum_of_some
from discrim.tables.validation import PartError, require_table

FAN_IN = 8  # statistics that one task adds


def is_dask(X: Any) -> bool:
    """Whether it is one of Dask's, told without importing Dask."""
    return type(X).__module__.split(".")[0] == "dask" and hasattr(X, "__dask_graph__")


def in_dask_parts(given: Iterable[Any]) -> TableInParts:
    """Parts that are computed, looked at and added on the workers.

    given : of X or (X, y, sample_weight), each a Dask array or data frame with labels and weights that are Dask's or in
    memory; or delayed values of these, or delayed tuples, of which the first is asked how many columns it has
    """
    import dask

    parts: list[Any] = []
    n_columns = None
    for one in given:
        X, *beside = _as_tuple(one)
        if type(X).__module__ == "dask.delayed":  # which seems to have every attribute
            parts.append(one)
            continue
        n_columns = n_columns or (X.shape[1] if hasattr(X, "chunks") else len(X.columns))
        parts += _divided(X, *beside)
    return TableInParts(
        n_columns or dask.delayed(_width)(parts[0]).compute(),
        lambda gathering: _sum_in_tree(partial(_gathered, gathering), parts),
        lambda look: _sum_in_tree(partial(_looked_at, look), parts),
    )


def _divided(X: Any, y: Any = None, sample_weight: Any = None) -> list[tuple[Any, ...]]:
    """(X, y, sample_weight) of each block of rows, delayed."""
    rows = _blocks(_whole_rows(X))
    columns = [_blocks_beside(X, rows, values, name) for values, name in ((y, "y"), (sample_weight, "sample_weight"))]
    return list(zip(rows, *columns, strict=True))


def _sum_in_tree(of_part: Callable[[int, Any], Any], parts: Sequence[Any]) -> Any:
    """The sum of what a function makes of each numbered part, added on the workers."""
    import dask

    found = dask.delayed(of_part, pure=False)
    tasks = [found(number, part) for number, part in enumerate(parts)]
    add = dask.delayed(_added, pure=False)
    while len(tasks) > 1:
        tasks = [add(tasks[start : start + FAN_IN]) for start in range(0, len(tasks), FAN_IN)]
    return sum_of_some([tasks[0].compute()])


def _gathered(gathering: Gathering, number: int, part: Any) -> Statistics | None:
    return part_statistics(gathering, f"partition {number}", *_as_tuple(part))


def _looked_at(look: Look, number: int, part: Any) -> Any:
    return look(*_as_tuple(part))


def _width(part: Any) -> int:
    shape = np.shape(_as_tuple(part)[0])
    return shape[1] if len(shape) == 2 else 0


def _as_tuple(part: Any) -> Sequence[Any]:
    return part if isinstance(part, tuple | list) else (part,)


def _added(found: list[Any]) -> Any:
    some = [one for one in found if one is not None]
    return gathered_total(some) if some else None


def _whole_rows(X: Any) -> Any:
    """With all columns of a row in one block."""
    require_table(X)
    if hasattr(X, "chunks") and len(X.chunks[1]) > 1:
        warnings.warn(
            f"The Dask array has {len(X.chunks[1])} blocks of columns; they are joined (rechunk({{1: -1}})), so that "
            "each block holds whole rows.",
            UserWarning,
            stacklevel=6,
        )
        return X.rechunk({1: -1})
    return X


def _blocks(X: Any) -> list[Any]:
    return list(np.ravel(X.to_delayed()))


def _blocks_beside(X: Any, rows: Sequence[Any], values: Any, name: str) -> list[Any]:
    """A column that goes with X, in X's blocks."""
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
    return [np.asarray(values)[start:end] for start, end in itertools.pairwise(ends)]


def _known(lengths: Sequence[float]) -> bool:
    return len(lengths) > 0 and not any(np.isnan(length) for length in lengths)


def transform_dask(transform: Callable[[Any], Any], X: Any, names: Sequence[str], dtype: np.dtype[Any]) -> Any:
    """What a fitted model makes of a Dask array or data frame: the same kind, lazily."""
    if hasattr(X, "chunks"):
        rows = _whole_rows(X)
        empty = np.empty((0, len(names)), dtype)
        return rows.map_blocks(transform, dtype=dtype, chunks=(rows.chunks[0], (len(names),)), meta=empty)
    import pandas as pd

    meta = pd.DataFrame({name: np.empty(0, dtype) for name in names})
    return X.map_partitions(partial(_frame, transform, tuple(names), dtype), meta=meta)


def _frame(transform: Callable[[Any], Any], names: Sequence[str], dtype: np.dtype[Any], rows: Any) -> Any:
    import pandas as pd

    scores = np.asarray(transform(rows)) if len(rows) else np.empty((0, len(names)), dtype)
    return pd.DataFrame(scores.astype(dtype, copy=False), columns=list(names), index=rows.index)
