"""Arrays on a device: the pass over the rows is done there, in doubles where it has them; the small solve is not.

    sums of each class → pilots ,    then of x − pilot: remainders and Σ w (x − μ_c)(x − μ_c)ᵀ

What has to look at rows (nearest enemies, folds, fewer rows than columns) gets them as numpy's.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from discrim.core.moments.class_moments import ClassMoments
from discrim.core.moments.gather import NO_PARTS, Gathering, Statistics
from discrim.tables.rows import LabelledRows, block_slices
from discrim.tables.validation import labelled_rows, namespace, on_host, require_finite

Array = NDArray[np.float64]
MOST_CLASSES = 1_000  # a row's class is a row of zeros and a one there
LEAST_SQUARE, LARGEST_SQUARE = 1e-250, 1e250  # sums of squares that lost no digits to the range of numbers


def gather_array(gathering: Gathering, X: Any, y: Any = None, sample_weight: Any = None) -> Statistics | None:
    """Return the statistics of the rows of an array, summed on its device; None if a fit needs more than these."""
    if X.ndim != 2 or X.shape[0] < X.shape[1] or gathering.needs_hashes or gathering.keep != "pooled":
        return None
    stand_in = np.broadcast_to(np.float64(0), (X.shape[0], 1))  # labels and weights are checked without the rows
    rows = labelled_rows(gathering.method, stand_in, y, sample_weight, supervised=gathering.supervised)
    rows = gathering.weighted(rows)
    if rows.n_classes > MOST_CLASSES or rows.numbers is not None:
        return None
    dtype = _doubles(X)[1]
    with np.errstate(over="ignore", under="ignore", invalid="ignore"):
        moments = _moments(X, rows)
    squares = np.diag(moments.within)
    if not np.isfinite(moments.within).all():
        require_finite(on_host(X))
        return None
    if not LEAST_SQUARE <= squares.max(initial=0.0) <= LARGEST_SQUARE:
        return None
    return Statistics(gathering, None, dtype, (moments,), None, None, NO_PARTS)


def _doubles(X: Any) -> tuple[Any, np.dtype[Any]]:
    """Return the widest float type of the device, and the array's own type in numpy."""
    xp = namespace(X)
    own = np.dtype(np.float32 if X.dtype == xp.float32 else np.float64)
    try:
        return xp.asarray(0.0, dtype=xp.float64, device=X.device).dtype, own
    except (TypeError, RuntimeError):  # Apple's devices have none
        return xp.float32, own


def _moments(X: Any, rows: LabelledRows) -> ClassMoments:
    xp, kind, C, d = namespace(X), _doubles(X)[0], rows.n_classes, X.shape[1]
    totals = rows.class_totals
    first = xp.astype(X[0, :], kind)
    sums = xp.zeros((C, d), dtype=kind, device=X.device)
    for _, block, members in _blocks(X, rows):
        sums = sums + members.T @ (block - first[None, :])
    per_class = xp.asarray(1 / totals, dtype=kind, device=X.device)[:, None]
    pilots = first[None, :] + sums * per_class
    sums, scatter = xp.zeros_like(sums), xp.zeros((d, d), dtype=kind, device=X.device)
    for part, block, members in _blocks(X, rows):
        codes = xp.asarray(rows.codes[part], device=X.device)
        centred = block - xp.take(pilots, codes, axis=0)
        sums = sums + members.T @ centred
        scatter = scatter + (centred * xp.sum(members, axis=1)[:, None]).T @ centred
    remainders = on_host(sums * per_class).astype(np.float64)
    within = on_host(scatter).astype(np.float64) - (remainders.T * totals) @ remainders
    counts = np.bincount(rows.codes, minlength=C)
    precision = float(xp.finfo(kind).eps)
    ones = np.ones(C)
    return ClassMoments(
        rows.classes, totals, counts, on_host(pilots).astype(np.float64), remainders, ones, within, None, 0, precision
    )


def _blocks(X: Any, rows: LabelledRows) -> Iterator[tuple[slice, Any, Any]]:
    """Yield rows in the device's widest numbers, and their weights in the column of their class (n×C)."""
    xp, kind = namespace(X), _doubles(X)[0]
    classes = xp.arange(rows.n_classes, device=X.device)
    for part in block_slices(*X.shape):
        codes = xp.asarray(rows.codes[part], device=X.device)
        members = xp.astype(codes[:, None] == classes[None, :], kind)
        if rows.weights is not None:
            members = members * xp.asarray(rows.weights[part], dtype=kind, device=X.device)[:, None]
        yield part, xp.astype(X[part, :], kind), members


def projected_array(X: Any, mean: Array, directions: NDArray[Any]) -> Any:
    """Compute (X − mean) directionsᵀ on the array's device, in its own precision."""
    xp, kind = namespace(X), _doubles(X)[0]
    centre = xp.asarray(mean, dtype=kind, device=X.device)[None, :]
    columns = xp.asarray(np.ascontiguousarray(directions.T), dtype=kind, device=X.device)
    parts = [(xp.astype(X[part, :], kind) - centre) @ columns for part in block_slices(*X.shape)]
    return on_host(xp.concat(parts, axis=0)).astype(_doubles(X)[1], copy=False)
