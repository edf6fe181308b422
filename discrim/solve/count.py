"""How many directions to keep, from what was asked for and what there is."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from discrim.data.fit_messages import refuse_count, refuse_equal_rows, warn_of_tie

TIE = 1e-10  # neighbouring values closer than this share have no order of their own


def kept_count(
    request: int | float | None,
    values: NDArray[np.float64],
    total: float,
    rank: int,
    shape: tuple[int, int],
    ties_settled: bool = False,
) -> int:
    """An int as it is, a fraction as the fewest values (descending) that reach it, None as the rank."""
    if rank == 0:
        refuse_equal_rows(*shape)
    if request is None:
        return min(rank, len(values))
    if isinstance(request, int):
        if request > min(rank, len(values)):
            refuse_count(request, min(rank, len(values)), *shape)
        if not ties_settled:
            _look_for_tie(request, values)
        return request
    shares = np.cumsum(values[:rank]) / total  # what lies beyond may be negative, and sums must rise to be searched
    return min(int(np.searchsorted(shares, request * (1 - 1e-12))) + 1, rank)


def require_rank(request: int | float | None, rank: int, shape: tuple[int, int]) -> None:
    """Raise where rows show no direction at all, or an int asks for more than there are."""
    if rank == 0:
        refuse_equal_rows(*shape)
    if isinstance(request, int) and request > rank:
        refuse_count(request, rank, *shape)


def discriminant_count(
    request: int | float | None,
    values: NDArray[np.float64],
    rank: int,
    shape: tuple[int, int],
    ties_settled: bool = False,
) -> int:
    """Like `kept_count`, but None means all discriminants, and an int may go on past them, up to the rank."""
    if isinstance(request, int) and request >= len(values):
        if request > rank:
            refuse_count(request, rank, *shape)
        return request
    return kept_count(request, values, float(values.sum()), len(values), shape, ties_settled)


def default_count(request: int | float | None, n_classes: int, rank: int, shape: tuple[int, int]) -> int:
    """Of methods without discriminants of their own: an int as it is, else as many as labels have contrasts, C − 1.

    (Of a fraction, that is how many there are to choose from.)
    """
    require_rank(request, rank, shape)
    return request if isinstance(request, int) else min(n_classes - 1, rank)


def _look_for_tie(k: int, values: NDArray[np.float64]) -> None:
    if k < len(values) and abs(values[k - 1] - values[k]) <= TIE * abs(values[k - 1]):
        warn_of_tie(k, float(values[k - 1]), float(values[k]))


def descending(values: NDArray[np.float64]) -> NDArray[np.intp]:
    """An order from large to small in which values that are equal but for rounding of the largest stay as they came."""
    order = np.argsort(-values, kind="stable")
    drops = -np.diff(values[order], prepend=values[order[:1]])
    level = np.cumsum(drops > TIE * np.abs(values).max(initial=0.0))
    return order[np.lexsort((order, level))]
