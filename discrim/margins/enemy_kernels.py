"""Compiled loops of the nearest-enemy search: tiles of bounds in, certain winners and doubtful pairs out.

A tile holds a value g(i, j) for each row i of one block and row j of another, and a row p brings an offset low(p):

    low(i) + low(j) + g(i, j)  ≤  D(i, j)/unit  ≤  low(i) + low(j) + g(i, j) + width·(norm(i) + norm(j)) + floor

where D(i, j) = Σ_k (x_ik − x_jk)², summed in feature order in float64, is what "nearest" means everywhere. Whoever is
nearest by these bounds alone is settled at once; everyone else who may be nearest is listed as a pair whose D is
to be computed. width = 0 says that tile values *are* distances (in the unit), so that nothing is in doubt.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numba import njit
from numba.extending import intrinsic
from numpy.typing import NDArray

NONE = -1  # in `nearest`: no enemy seen so far
UNDECIDED = -2  # in `nearest`: the contenders are listed, `settle` will choose
COL_BLOCK = 128  # columns of a tile that share one minimum for each row, so that a row is searched in few places
FEW = 16  # up to so many others are looked at one by one, without minima
ROW_BLOCK = 32  # rows of a tile that share one minimum for each column


class Gauge(NamedTuple):
    """How tile values bound distances (see above)."""

    width: float
    floor: float
    unit: float  # a power of two


class Bounds(NamedTuple):
    """The offsets, norms and widths by which tile values bound distances (see above)."""

    low: NDArray  # by position in class order, in the tile's precision
    norms: NDArray[np.float64]  # by row of X
    gauge: Gauge


class Search(NamedTuple):
    """The state: for row i and slot s, D(i, nearest[i, s]) ≤ reach[i, s], and the list of doubtful pairs."""

    nearest: NDArray[np.intp]
    reach: NDArray[np.float64]
    order: NDArray[np.intp]  # row of X at each position in class order
    class_stop: NDArray[np.intp]  # where the class at this position ends
    slot: NDArray[np.intp]  # the slot that candidates at this position compete in
    pair_row: NDArray[np.int32]
    pair_slot: NDArray[np.int32]
    pair_enemy: NDArray[np.int32]
    n_pairs: NDArray[np.intp]


class Area(NamedTuple):
    """A rectangle of a tile: first positions in class order, first row and column in the tile, and size."""

    row: int
    col: int
    top: int
    left: int
    n_rows: int
    n_cols: int


class Scratch(NamedTuple):
    """Room for the minima of one tile, in its precision."""

    row_min: NDArray
    col_min: NDArray
    least: NDArray
    found: NDArray[np.intp]
    lower: NDArray[np.float64]


def _lesser(typing_context, a, b):  # type: ignore[no-untyped-def]
    """The lesser of two floats of one type, neither of them NaN.

    LLVM makes vector instructions of minima only where comparison *and* choice are marked as free of NaN and of the
    sign of zero; numba's fastmath marks the comparison alone, and such a loop runs at a fifth of the speed.
    """

    def generate(context, builder, signature, arguments):  # type: ignore[no-untyped-def]
        flags = ("nnan", "nsz")
        return builder.select(builder.fcmp_ordered("<", *arguments, flags=flags), *arguments, flags=flags)

    return a(a, b), generate


lesser: Any = intrinsic(_lesser)


@njit(cache=True)
def _minima(tile, area, low_rows, low_cols, row_min, col_min):  # type: ignore[no-untyped-def]
    """One walk for both sides: row_min[b, i] = min low(j) + g(i, j) over block b of columns, col_min[b, j] likewise."""
    for first in range(0, area.n_rows, ROW_BLOCK):
        last = min(first + ROW_BLOCK, area.n_rows) - 1
        for start in range(0, area.n_cols, COL_BLOCK):
            stop = min(start + COL_BLOCK, area.n_cols)
            of_row, of_col = row_min[start // COL_BLOCK], col_min[first // ROW_BLOCK, start:stop]
            lows = low_cols[start:stop]
            left, right = area.left + start, area.left + stop
            of_col[:] = np.inf
            for i0 in range(first, last + 1, 4):
                i1, i2, i3 = min(i0 + 1, last), min(i0 + 2, last), min(i0 + 3, last)
                g0, g1 = tile[area.top + i0, left:right], tile[area.top + i1, left:right]
                g2, g3 = tile[area.top + i2, left:right], tile[area.top + i3, left:right]
                a0, a1, a2, a3 = low_rows[i0], low_rows[i1], low_rows[i2], low_rows[i3]
                m0, m1, m2, m3 = g0[0] + lows[0], g1[0] + lows[0], g2[0] + lows[0], g3[0] + lows[0]
                for j in range(stop - start):
                    v0, v1, v2, v3, low = g0[j], g1[j], g2[j], g3[j], lows[j]
                    m0, m1 = lesser(v0 + low, m0), lesser(v1 + low, m1)
                    m2, m3 = lesser(v2 + low, m2), lesser(v3 + low, m3)
                    of_four = lesser(lesser(v0 + a0, v1 + a1), lesser(v2 + a2, v3 + a3))
                    of_col[j] = lesser(of_four, of_col[j])
                of_row[i0], of_row[i1], of_row[i2], of_row[i3] = m0, m1, m2, m3


@njit(cache=True)
def _least_of_blocks(minima, n_blocks, least):  # type: ignore[no-untyped-def]
    for k in range(least.size):
        least[k] = minima[0, k]
    for b in range(1, n_blocks):
        block = minima[b, : least.size]
        for k in range(least.size):
            least[k] = lesser(block[k], least[k])


@njit(cache=True)
def _largest_norm(norms, order, first, count):  # type: ignore[no-untyped-def]
    largest = 0.0
    for position in range(first, first + count):
        largest = max(largest, norms[order[position]])
    return largest


@njit(cache=True)
def _limit(lows, gauge, low, least, norms, reach):  # type: ignore[no-untyped-def]
    """The largest low(j) + g a contender can have, in the tile's precision: rounded up, so that none is missed."""
    limit = min(least + gauge.width * norms + gauge.floor, reach / gauge.unit - low)
    if gauge.width > 0.0:  # otherwise nothing was rounded
        limit += (abs(limit) + abs(low)) * np.finfo(lows.dtype).eps + gauge.floor
    return lows.dtype.type(limit)


@njit(cache=True)
def _collect(values, item, lows, limit, minima, block_size, found):  # type: ignore[no-untyped-def]
    """Where low(j) + g(item, j) ≤ limit, looking only into blocks whose minimum is."""
    count, n_others = 0, lows.size
    for b in range((n_others + block_size - 1) // block_size):
        if minima[b, item] <= limit:
            for k in range(b * block_size, min(b * block_size + block_size, n_others)):
                if values[item, k] + lows[k] <= limit:
                    found[count] = k
                    count += 1
    return count


@njit(cache=True)
def _choose_exact(nearest, reach, i, slot, found, lower, count):  # type: ignore[no-untyped-def]
    """Lower bounds are distances: the least wins, ties go to the lowest row of X."""
    best, choice = reach[i, slot], nearest[i, slot]
    for at in range(count):
        if lower[at] < best or (lower[at] == best and found[at] < choice):
            best, choice = lower[at], found[at]
    reach[i, slot], nearest[i, slot] = best, choice


@njit(cache=True)
def _choose(nearest, reach, norms, gauge, i, slot, found, lower, count):  # type: ignore[no-untyped-def]
    """Settle row i where the bounds leave one contender; otherwise return how many they leave, in `found`."""
    least_upper, norm, old = reach[i, slot], norms[i], nearest[i, slot]
    for at in range(count):
        doubt = gauge.width * (norm + norms[found[at]]) + gauge.floor
        least_upper = min(least_upper, lower[at] + doubt * gauge.unit)
    kept = 0
    for at in range(count):
        if lower[at] <= least_upper:
            found[kept] = found[at]
            kept += 1
    if old >= 0:
        doubt = gauge.width * (norm + norms[old]) + gauge.floor
        if reach[i, slot] - doubt * gauge.unit <= least_upper:
            found[kept] = old
            kept += 1
    reach[i, slot] = least_upper
    if kept == 1 and old != UNDECIDED:
        nearest[i, slot] = found[0]
        return 0
    return kept


@njit(cache=True)
def _list_contenders(search, i, slot, found, count):  # type: ignore[no-untyped-def]
    start = search.n_pairs[0]
    for k in range(count):
        search.pair_row[start + k] = i
        search.pair_slot[start + k] = slot
        search.pair_enemy[start + k] = found[k]
    search.nearest[i, slot] = UNDECIDED
    search.n_pairs[0] = start + count


@njit(cache=True)
def _scan_side(values, own, others, minima, block_size, search, bounds, scratch):  # type: ignore[no-untyped-def]
    """Each item (row of `values`, first position `own`) looks at the class of the others (first position `others`)."""
    # Fields are bound to names once: in the loop each access would cost as much as a look into a block.
    nearest, reach, order, norms, gauge = search.nearest, search.reach, search.order, bounds.norms, bounds.gauge
    least, found, lower, slot = scratch.least, scratch.found, scratch.lower, search.slot[others]
    n_items, n_others = values.shape
    own_low, lows = bounds.low[own : own + n_items], bounds.low[others : others + n_others]
    largest = _largest_norm(norms, order, others, n_others)
    _least_of_blocks(minima, (n_others + block_size - 1) // block_size, least[:n_items])
    for item in range(n_items):
        i, low = order[own + item], np.float64(own_low[item])
        if (low + np.float64(least[item])) * gauge.unit > reach[i, slot]:
            continue
        limit = _limit(lows, gauge, low, np.float64(least[item]), norms[i] + largest, reach[i, slot])
        count = _collect(values, item, lows, limit, minima, block_size, found)
        for at in range(count):
            k = found[at]
            found[at], lower[at] = order[others + k], (low + np.float64(values[item, k] + lows[k])) * gauge.unit
        if gauge.width == 0.0:
            _choose_exact(nearest, reach, i, slot, found, lower, count)
        else:
            count = _choose(nearest, reach, norms, gauge, i, slot, found, lower, count)
            if count:
                _list_contenders(search, i, slot, found, count)


@njit(cache=True)
def _scan_few(values, own, others, nearest, reach, order, slots, low, norms, gauge):  # type: ignore[no-untyped-def]
    """As `_scan_side`, for so few others that minima do not pay. True if no item has two contenders."""
    n_items, n_others = values.shape
    slot = slots[others]
    settled = True
    for item in range(n_items):
        i, own_low = order[own + item], np.float64(low[own + item])
        least = second = np.inf
        first = others
        for k in range(n_others):
            value = own_low + np.float64(values[item, k] + low[others + k])
            if value < least:
                least, second, first = value, least, others + k
            elif value < second:
                second = value
        upper = least + gauge.width * (norms[i] + norms[order[first]]) + gauge.floor
        if nearest[i, slot] == NONE and second > upper:
            nearest[i, slot], reach[i, slot] = order[first], upper * gauge.unit
        elif least * gauge.unit <= reach[i, slot]:
            settled = False
    return settled


@njit(cache=True)
def _scan_area(tile, area, rows_done, cols_done, search, bounds, scratch):  # type: ignore[no-untyped-def]
    low_rows = bounds.low[area.row : area.row + area.n_rows]
    low_cols = bounds.low[area.col : area.col + area.n_cols]
    _minima(tile, area, low_rows, low_cols, scratch.row_min, scratch.col_min)
    values = tile[area.top : area.top + area.n_rows, area.left : area.left + area.n_cols]
    # np.intp, since numba would compile the whole walk once for each literal size
    if not rows_done:
        _scan_side(values, area.row, area.col, scratch.row_min, np.intp(COL_BLOCK), search, bounds, scratch)
    if not cols_done:
        _scan_side(values.T, area.col, area.row, scratch.col_min, np.intp(ROW_BLOCK), search, bounds, scratch)


@njit(cache=True)
def scan_tile(tile, r_start, r_stop, c_start, c_stop, each, search, bounds, scratch):  # type: ignore[no-untyped-def]
    """Take the tile of positions r_start:r_stop × c_start:c_stop into account, pairs of different classes only.

    Rows of the tile come before its columns in class order, or are the same positions: then what lies right
    of each class's own square is looked at, so that each pair is seen once.
    """
    nearest, reach, order, slot, class_stop = search.nearest, search.reach, search.order, search.slot, search.class_stop
    low, norms, gauge = bounds.low, bounds.norms, bounds.gauge
    row = r_start
    while row < r_stop:
        row_stop = min(class_stop[row], r_stop)
        col = max(c_start, class_stop[row])
        if not each and col == c_start:  # blocks hold whole classes or parts of one: all these rows end before, too
            row_stop = r_stop
        while col < c_stop:
            col_stop = min(class_stop[col], c_stop) if each else c_stop
            values = tile[row - r_start : row_stop - r_start, col - c_start : col_stop - c_start]
            of_rows = col_stop - col <= FEW and _scan_few(
                values, row, col, nearest, reach, order, slot, low, norms, gauge
            )
            of_cols = row_stop - row <= FEW and _scan_few(
                values.T, col, row, nearest, reach, order, slot, low, norms, gauge
            )
            if not (of_rows and of_cols):
                area = Area(row, col, row - r_start, col - c_start, row_stop - row, col_stop - col)
                _scan_area(tile, area, of_rows, of_cols, search, bounds, scratch)
            col = col_stop
        row = row_stop


@njit(cache=True)
def settle(search, distances):  # type: ignore[no-untyped-def]
    """Choose among the listed contenders by their D; ties go to the lowest row of X."""
    for pair in range(distances.size):
        i, slot = search.pair_row[pair], search.pair_slot[pair]
        search.nearest[i, slot] = UNDECIDED
        search.reach[i, slot] = np.inf
    for pair in range(distances.size):
        i, slot, j = search.pair_row[pair], search.pair_slot[pair], search.pair_enemy[pair]
        best, distance = search.reach[i, slot], distances[pair]
        if distance < best or (distance == best and j < search.nearest[i, slot]):
            search.reach[i, slot] = distance
            search.nearest[i, slot] = j
    search.n_pairs[0] = 0
