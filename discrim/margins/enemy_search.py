"""The nearest-enemy search: rows in class order, tiles of pairs of blocks, bounds first and distances where in doubt.

Rows are put in class order, so that a tile (block of rows × later block of rows) belongs to two classes, or to many
small ones that share a block; a tile within one class is never computed, and every other serves both of its sides.
"""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from discrim.margins import enemy_kernels as kernels
from discrim.margins.enemy_kernels import COL_BLOCK, ROW_BLOCK, Scratch, Search
from discrim.margins.enemy_rows import Rows, rows_of

TILE = 512  # positions in a block: a float32 tile is 1 MB, near the second-level cache
DOUBTFUL_SHARE = 0.04  # of the pairs: then computing their distances costs what float64 products would


def search_nearest(X: Any, codes: NDArray[np.intp], n_classes: int, *, each: bool) -> NDArray[np.intp]:
    """See `enemies.nearest_enemies`."""
    order, sizes = _class_order(codes, n_classes)
    search = _new_search(order, sizes, codes, n_classes if each else 1, each)
    if len(sizes) > 1:
        _search_tiles(rows_of(X, order), search, _blocks(sizes), each)
    return search.nearest


def _search_tiles(rows: Rows, search: Search, blocks: list[tuple[int, int]], each: bool) -> None:
    room = np.empty(TILE * TILE)
    scratch: dict[np.dtype, Scratch] = {}
    seen = doubtful = 0
    for column, (c_start, c_stop) in enumerate(blocks):
        rows.hold(c_start, c_stop)
        for r_start, r_stop in blocks[: column + 1]:
            if search.class_stop[r_start] >= c_stop:
                continue  # one class alone
            tile = rows.tile(r_start, r_stop, room)
            space = scratch.setdefault(tile.dtype, _scratch(tile.dtype))
            kernels.scan_tile(tile, r_start, r_stop, c_start, c_stop, each, search, rows.bounds, space)
            seen += tile.size
            if n_pairs := int(search.n_pairs[0]):
                doubtful += n_pairs
                distances = rows.distances(search.pair_row[:n_pairs], search.pair_enemy[:n_pairs])
                kernels.settle(search, distances)
                if doubtful > DOUBTFUL_SHARE * seen and rows.sharpen():
                    _sharpen_reach(rows, search)


def _sharpen_reach(rows: Rows, search: Search) -> None:
    """Replace the bounds on distances found so far, as wide as tiles were, by the distances."""
    for slot in range(search.nearest.shape[1]):
        found = np.flatnonzero(search.nearest[:, slot] >= 0).astype(np.int32)
        search.reach[found, slot] = rows.distances(found, search.nearest[found, slot].astype(np.int32))


def _class_order(codes: NDArray[np.intp], n_classes: int) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Rows by class, and the classes' sizes: first those that fill blocks, then those that share blocks.

    Classes that share a block keep the order of their numbers, since neighbours in `nearest` are then used together.
    """
    sizes = np.bincount(codes, minlength=n_classes)
    large_first = np.argsort(sizes <= TILE, kind="stable")
    rank = np.empty(n_classes, dtype=np.intp)
    rank[large_first] = np.arange(n_classes)
    order = np.argsort(rank[codes], kind="stable")
    in_order = sizes[large_first]
    return order, in_order[in_order > 0]


def _blocks(sizes: NDArray[np.intp]) -> list[tuple[int, int]]:
    """At most TILE positions each: equal parts of a large class, or small classes together."""
    edges = [0]
    stop = 0
    for size in sizes.tolist():
        if stop + size - edges[-1] > TILE and stop > edges[-1]:
            edges.append(stop)
        parts = -(-size // TILE)
        edges.extend(stop + size * part // parts for part in range(1, parts))
        stop += size
        if size > TILE:
            edges.append(stop)
    if stop > edges[-1]:
        edges.append(stop)
    return list(pairwise(edges))


def _new_search(
    order: NDArray[np.intp], sizes: NDArray[np.intp], codes: NDArray[np.intp], n_slots: int, each: bool
) -> Search:
    # Each cell of a tile is listed at most once from each side, and each such look can list the nearest so far too.
    most_pairs = 4 * min(TILE, order.size) ** 2
    return Search(
        nearest=np.full((order.size, n_slots), -1, dtype=np.intp),
        reach=np.full((order.size, n_slots), np.inf),
        order=order,
        class_stop=np.repeat(np.cumsum(sizes), sizes),
        slot=codes[order] if each else np.zeros(order.size, dtype=np.intp),
        pair_row=np.empty(most_pairs, dtype=np.int32),
        pair_slot=np.empty(most_pairs, dtype=np.int32),
        pair_enemy=np.empty(most_pairs, dtype=np.int32),
        n_pairs=np.zeros(1, dtype=np.intp),
    )


def _scratch(dtype: np.dtype) -> Scratch:
    return Scratch(
        row_min=np.empty((-(-TILE // COL_BLOCK), TILE), dtype),
        col_min=np.empty((-(-TILE // ROW_BLOCK), TILE), dtype),
        least=np.empty(TILE, dtype),
        found=np.empty(TILE + 1, dtype=np.intp),
        lower=np.empty(TILE),
    )
