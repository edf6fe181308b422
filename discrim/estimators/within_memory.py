"""Fits of parts within a given memory: on their statistics, or in passes over them, or refused with what to do.

n columns, memory → statistics, exact     or     block Krylov, each product a pass     or     an error, beforehand
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from discrim.core.coordinates.basis import Features
from discrim.core.coordinates.choose import choose_in_parts
from discrim.core.coordinates.passed_rows import PassedRows
from discrim.core.moments.gather import Gathering, Statistics
from discrim.engines.table_in_parts import TableInParts
from discrim.tables.check_parameters import plain_count
from discrim.tables.rows import LabelledRows
from discrim.tables.validation import checked_table, labelled_rows
from discrim.tables.warn_once import warn

MAX_MEMORY = 8 * 2**30


@dataclass(frozen=True)
class Scaled:
    """A scaler in front: the statistics of what it gives, and what it makes of a table."""

    statistics: Callable[[Statistics], Statistics]
    table: Callable[[NDArray[Any]], NDArray[Any]]


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
        reducer.fit_statistics(total)
        return
    assert parts.summed is not None
    summed, seen = parts.summed, partial(_seen, total.gathering, total.moments.classes, scaled)
    known = Features.of_moments(total.moments, plan.reason)
    passed = PassedRows(**vars(known), summed=lambda of_rows: summed(partial(seen, of_rows)), most=plan.passes)
    reducer._fit_basis(passed, total)


def _seen(
    asked: Gathering,
    classes: NDArray[Any],
    scaled: Scaled | None,
    of_rows: Callable[[LabelledRows], Any],
    X: Any,
    y: Any = None,
    weights: Any = None,
) -> Any:
    """What a function gives for the rows of a part, their classes numbered among all."""
    if not np.shape(X)[0] or (weights is not None and not np.any(weights)):
        return None
    table = checked_table(asked.method, X)
    table = table if scaled is None else scaled.table(table)
    rows = labelled_rows(asked.method, table, y, weights, supervised=asked.supervised)
    codes = np.searchsorted(classes, rows.classes)[rows.codes] if asked.supervised else rows.codes
    return of_rows(replace(rows, codes=codes.astype(np.intp), classes=classes))
