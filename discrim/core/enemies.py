"""Nearest enemies: for each row the nearest rows of another class, and the pairs they form.

    D(i, j) = Σ_k (x_ik − x_jk)²,    N(i, c) = the rows of class c with the smallest D(i, ·)

D is summed in feature order in float64 from the differences. The search sorts rows by class, and computes bounds in
tiles first and exact distances only where bounds overlap. A tile holds, for every row i of one block and row j of
another (low, width and floor are in `Bounds`),

    low(i, j)  ≤  D(i, j)/unit  ≤  low(i, j) + width·(norm(i) + norm(j)) + floor

as one matrix product. Tiles within one class are never computed, and every other tile serves both of its sides. For
each row, the pairs whose lower bound is below the smallest upper bound so far are kept. At the end these are the
nearest enemy and its rivals, and D is computed only for rows that have rivals. The result therefore equals the
definition for every row.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from discrim.core.row_hash import equal_rows
from discrim.core.spread import Pairs
from discrim.tables.rows import entries_once

Ints = NDArray[np.intp]
Floats = NDArray[np.float64]

# positions in a block: a float32 tile is 4 MB; smaller tiles add Python overhead, larger ones exceed the cache
TILE = 1024
CHUNK = 128  # columns that share one minimum, which limits where candidates are searched
TIE = 1e-9  # squared distances that differ by less than this, relatively, count as equal
DOUBTFUL_SHARE = 0.04  # of the pairs: above this, computing their distances costs as much as float64 products
HELD = 2**20  # candidates held before the superseded ones are dropped
PILOT_SIZE = 2**17  # values of the rows whose mean is the centre, which need not be the mean of all rows
FLOAT32_FEATURES = 50_000  # above this, float32's error bound is too wide to be useful
SAFE_EXPONENT = 400  # squares of differences between 2^±400 neither overflow nor underflow
TIES = ("share", "all", "lowest")


def enemy_pairs(
    X: Any,
    codes: Ints,
    n_classes: int,
    *,
    weights: Floats | None = None,
    enemies: str = "each",
    ties: str = "share",
    max_pairs: int | None = None,
) -> Pairs:
    """Return the pairs {i, j} in which one row is a nearest enemy of the other, each once; equal rows count as one.

    weights : w, the number of times each row occurs, above 0; integers for ties="lowest".
    ties : how a row divides its weight between t equally near enemies (counted with their weights). "share": 1/t each,
    and
        a pair found from both sides gets the larger share; "all": 1 each; "lowest": 1 to the lowest row only. A pair
        thus weighs w_i w_j max(1/t_i, 1/t_j), w_i w_j, or w_i (w_i + w_j − 1 if found from both sides), as if rows were
        repeated.
    max_pairs : number of pairs above which a MemoryError is raised.
    """
    groups = equal_rows(X, codes)
    first = np.sort(groups.first)  # keeps ties in favour of the lowest row
    w = np.bincount(groups.first[groups.group], weights, minlength=len(codes)).astype(np.float64)[first]
    if len(first) < len(codes):
        X, codes = X[first], codes[first]
    parts, total = [], 0
    for matches in search_enemies(X, codes, n_classes, each=enemies == "each"):
        parts.append(_pairs(matches, w, codes, n_classes, ties, each=enemies == "each"))
        total += len(parts[-1].left)
        if max_pairs is not None and total > max_pairs:
            raise MemoryError(f"more than {max_pairs:,} pairs of nearest enemies")
    left, right, weight = (
        np.concatenate([getattr(part, name) for part in parts] or [np.empty(0, dtype)])
        for name, dtype in (("left", np.intp), ("right", np.intp), ("weight", np.float64))
    )
    return Pairs(first[left], first[right], weight)


def _pairs(matches: EnemyMatches, w: Floats, codes: Ints, n_classes: int, ties: str, *, each: bool) -> Pairs:
    """Return the pairs with the weights of `enemy_pairs`, each once even if found from both sides."""
    if ties == "lowest":
        slot = codes[matches.enemy] if each else np.zeros(len(matches.enemy), dtype=np.intp)
        order = np.lexsort((matches.enemy, matches.D, slot, matches.finder))
        finder, slot = matches.finder[order], slot[order]
        lowest = order[np.flatnonzero((np.diff(finder, prepend=-1) != 0) | (np.diff(slot, prepend=-1) != 0))]
        finder, enemy = matches.finder[lowest], matches.enemy[lowest]
        weight = w[finder]
    else:
        finder, enemy = matches.finder, matches.enemy
        weight = w[finder] * w[enemy]
        if ties == "share":
            cell = finder * n_classes + codes[enemy] if each else finder
            _, cell_number = np.unique(cell, return_inverse=True)
            weight /= np.bincount(cell_number, w[enemy])[cell_number]
    key = np.minimum(finder, enemy) * len(w) + np.maximum(finder, enemy)
    order = np.argsort(key, kind="stable")
    key, weight = key[order], weight[order]
    # A pair found from both sides has two adjacent entries; merge the second into the first.
    start = np.flatnonzero(np.diff(key, prepend=-1))
    sides = np.diff(start, append=len(key))
    if ties == "lowest":
        weight = np.add.reduceat(weight, start) - (sides - 1) if len(start) else weight
    else:
        weight = np.maximum.reduceat(weight, start) if len(start) else weight
    left, right = np.divmod(key[start], len(w))
    return Pairs(left, right, weight)


# ---------------------------------------------------------------------- the search


class EnemyMatches(NamedTuple):
    """Row `finder[t]` has `enemy[t]` among its nearest in a class, at squared distance D (NaN: it has no rival)."""

    finder: Ints
    enemy: Ints
    D: Floats


def search_enemies(X: Any, codes: Ints, n_classes: int, *, each: bool) -> Iterator[EnemyMatches]:
    """Yield nearest enemies, including ties, in each other class or in all of them.

    Every unordered pair of rows occurs in only one part of the result, with all sides from which it was found. With
    `each` there is one part for every two groups of classes, so memory is bounded by the largest of them.
    """
    sizes = np.bincount(codes, minlength=n_classes)
    fill_blocks_first = np.argsort(sizes <= TILE, kind="stable")  # then those that share a block
    order, sizes = np.argsort(np.argsort(fill_blocks_first)[codes], kind="stable"), sizes[fill_blocks_first]
    sizes = sizes[sizes > 0]
    if len(sizes) < 2:
        return
    rows: Rows = SparseRows(X, order) if sparse.issparse(X) else DenseRows(X, order)
    groups = _groups(sizes, each=each)
    together = [_Side(rows, 0, len(order), 1)] * 2 if not each else None
    for h, right in enumerate(groups):
        for left in groups[: h + 1]:
            if left is right and len(left.edges) == 2:
                continue  # a single class
            facing = ((left, right), (right, left))
            sides = together or [_Side(rows, one.edges[0], one.edges[-1], other.n_slots) for one, other in facing]
            _search_pair(rows, left, right, sides)
            if each:
                parts = zip(*(side.nearest() for side in (sides[:1] if left is right else sides)), strict=True)
                yield EnemyMatches(*(np.concatenate(column) for column in parts))
    if together is not None:
        yield together[0].nearest()


class _Block(NamedTuple):
    """Positions start:stop, divided into chunks (edges relative to start), each of which belongs to one slot."""

    start: int
    stop: int
    chunks: Ints
    slot_of: Ints


class _Group(NamedTuple):
    """Positions of one class (in several blocks if it is large), or of several small classes in one block.

    `edges` separates its classes. Its `slots`, in which other rows search for enemies, are its classes or the whole
    group.
    """

    edges: list[int]
    n_slots: int
    blocks: list[_Block]

    @classmethod
    def of(cls, edges: list[int], *, each: bool) -> _Group:
        slots = edges if each else [edges[0], edges[-1]]
        n_parts = -(-(edges[-1] - edges[0]) // TILE)
        cuts = [edges[0] + (edges[-1] - edges[0]) * part // n_parts for part in range(n_parts + 1)]
        blocks = []
        for start, stop in pairwise(cuts):
            starts = [np.arange(max(low, start), min(high, stop), CHUNK) - start for low, high in pairwise(slots)]
            slot_of = np.repeat(np.arange(len(starts)), [len(part) for part in starts])
            blocks.append(_Block(start, stop, np.concatenate([*starts, [stop - start]]), slot_of))
        return cls(edges, len(slots) - 1, blocks)


def _groups(sizes: Ints, *, each: bool) -> list[_Group]:
    groups: list[_Group] = []
    edges = [0]
    for size in sizes.tolist():
        if edges[-1] > edges[0] and edges[-1] + size - edges[0] > TILE:
            groups.append(_Group.of(edges, each=each))
            edges = edges[-1:]
        edges.append(edges[-1] + size)
    return [*groups, _Group.of(edges, each=each)]


def _search_pair(rows: Rows, left: _Group, right: _Group, sides: list[_Side]) -> None:
    """Process all tiles of two groups from both sides; for a group with itself, from one side, without own classes."""
    seen = doubtful = 0
    for columns in right.blocks:
        for lines in left.blocks:
            tile = rows.tile(lines.start, lines.stop, columns.start, columns.stop)
            if left is right:
                for low, high in pairwise([edge - left.edges[0] for edge in left.edges]):
                    tile[low:high, low:high] = np.inf
            doubtful += sides[0].process(tile, lines.start, columns)
            if left is not right:
                doubtful += sides[1].process(tile.T, columns.start, lines)
            seen += tile.size
            if doubtful > DOUBTFUL_SHARE * seen:
                rows.sharpen()


class _Candidates(NamedTuple):
    """Cell (row and slot), position of the other row, and bounds of D."""

    cell: Ints
    other: Ints
    low: Floats
    high: Floats

    def select(self, kept: NDArray[np.bool_]) -> _Candidates:
        return _Candidates(self.cell[kept], self.other[kept], self.low[kept], self.high[kept])


class _Side:
    """Rows (positions start:stop) that search for enemies, with the candidates found so far in each slot.

    A slot is a class, or all classes except the row's own; a cell is a slot of a row. The nearest distance D of a cell
    is at most reach[cell].
    """

    def __init__(self, rows: Rows, start: int, stop: int, n_slots: int) -> None:
        self.rows, self.start, self.n_slots = rows, start, n_slots
        self.reach = np.full((stop - start) * n_slots, np.inf)
        self.parts: list[_Candidates] = []
        self.n_held, self.max_held = 0, HELD

    def process(self, values: NDArray, first: int, others: _Block) -> int:
        """Process a tile of lower bounds for rows from position `first` on, and return the number of pairs left in
        doubt."""
        bounds, slots = self.rows.bounds, np.arange(others.slot_of[0], others.slot_of[-1] + 1)
        minima = _minima(values, others.chunks)
        least = np.minimum.reduceat(minima, np.searchsorted(others.slot_of, slots), axis=1).astype(np.float64)
        cells = np.arange(first - self.start, first - self.start + len(values))[:, None] * self.n_slots + slots
        norms = bounds.norms[first : first + len(values), None] + bounds.norms[others.start : others.stop].max()
        upper = np.minimum(self.reach[cells] / bounds.unit, least + bounds.width * norms + bounds.floor)
        limit = np.where(np.isinf(least), -np.inf, upper * (1 + TIE))
        if values.dtype != np.float64:
            limit = np.nextafter(limit.astype(values.dtype), values.dtype.type(np.inf))
        at = others.slot_of - slots[0]
        new = self._within(values, minima, limit[:, at], cells[:, at], others)
        np.minimum.at(self.reach, new.cell, new.high)
        self.parts.append(new)
        self.n_held += len(new.cell)
        if self.n_held > self.max_held:
            self._compress()
        return len(new.cell) - int(np.count_nonzero(least <= limit)) if bounds.width else 0

    def _within(self, values: NDArray, minima: NDArray, limit: NDArray, cells: Ints, others: _Block) -> _Candidates:
        """Return the pairs within the limits, searching only chunks whose minimum is."""
        item, chunk = np.nonzero(minima <= limit)
        width = min(CHUNK, values.shape[1])
        start = np.minimum(others.chunks[chunk], values.shape[1] - width)
        windows = np.lib.stride_tricks.sliding_window_view(values, width, axis=1)[item, start]
        pair, column = np.nonzero(windows <= limit[item, chunk][:, None])
        low, item, chunk, column = (
            windows[pair, column].astype(np.float64),
            item[pair],
            chunk[pair],
            column + start[pair],
        )
        bounds, cell, other = self.rows.bounds, cells[item, chunk], column + others.start
        doubt = bounds.width * (bounds.norms[cell // self.n_slots + self.start] + bounds.norms[other]) + bounds.floor
        nearest = _Candidates(cell, other, low * bounds.unit, (low + doubt) * bounds.unit)
        # all windows have the same width, which may exceed the chunk
        inside = (column >= others.chunks[chunk]) & (column < others.chunks[chunk + 1])
        return nearest if inside.all() else nearest.select(inside)

    def _compress(self) -> _Candidates:
        """Drop superseded candidates; replace bounds by distances where there are rivals."""
        held = _Candidates(*(np.concatenate(column) for column in zip(*self.parts, strict=True)))
        held = self._drop_superseded(held)
        doubtful = np.flatnonzero(_have_rivals(held.cell) & (held.low < held.high))
        if doubtful.size:
            order = self.rows.order
            finder, enemy = held.cell[doubtful] // self.n_slots + self.start, held.other[doubtful]
            held.low[doubtful] = held.high[doubtful] = self.rows.distances(order[finder], order[enemy])
            self.reach[held.cell] = np.inf
            np.minimum.at(self.reach, held.cell, held.high)
            held = self._drop_superseded(held)
        self.parts, self.n_held = [held], len(held.cell)
        self.max_held = max(HELD, 2 * self.n_held)
        return held

    def _drop_superseded(self, held: _Candidates) -> _Candidates:
        return held.select(held.low <= self.reach[held.cell] * (1 + TIE))

    def nearest(self) -> EnemyMatches:
        held, order = self._compress(), self.rows.order
        D = np.where(held.low == held.high, held.low, np.nan)
        return EnemyMatches(order[held.cell // self.n_slots + self.start], order[held.other], D)


def _have_rivals(cell: Ints) -> NDArray[np.bool_]:
    order = np.argsort(cell, kind="stable")
    equal = np.diff(cell[order]) == 0
    shared = np.zeros(len(cell), dtype=bool)
    shared[order[1:]] |= equal
    shared[order[:-1]] |= equal
    return shared


def _minima(values: NDArray, chunks: Ints) -> NDArray:
    """Return each row's minimum in each chunk of columns."""
    if values.flags.c_contiguous:
        return np.minimum.reduceat(values, chunks[:-1], axis=1)
    return np.stack([values[:, low:high].min(axis=1) for low, high in pairwise(chunks.tolist())], axis=1)


class Bounds(NamedTuple):
    """Constants by which tile values bound distances (see the module's description); norms are in class order."""

    norms: Floats
    width: float
    floor: float
    unit: float  # a power of two


def _bounds(norms: Floats, n_terms: int, dtype: np.dtype, floor: float, unit: float) -> tuple[NDArray, Bounds]:
    """Return offsets low(i) to be added to the products −2 a_i·a_j, where a_i is the row in the tile's precision.

    With u the unit round-off and N = norm(i) + norm(j) ≥ 2‖a_i‖‖a_j‖: the product and the two offsets are n + 2 terms
    whose sizes sum to at most 2N. Summed in any order, they err by at most 1.01·2(n + 2)u·N. Storing a_i adds 4u·N, the
    offsets u·N; in float64, norms add n·u₆₄·N and D itself 2(n + 2)u₆₄·N. `floor` bounds the loss by underflow.
    """
    u, u64 = np.finfo(dtype).eps / 2, np.finfo(float).eps / 2
    error = 1.01 * (2 * (n_terms + 8) * u + 3 * (n_terms + 4) * u64)
    return (norms * (1 - error) - floor).astype(dtype), Bounds(norms, 2 * error, 4 * floor, unit)


def _exact_bounds(norms: Floats, dtype: np.dtype, unit: float) -> tuple[NDArray, Bounds]:
    """Return offsets for tile values that are never rounded and therefore equal D."""
    return norms.astype(dtype), Bounds(norms, 0.0, 0.0, unit)


def _never_rounded(norms: Floats, dtype: np.dtype) -> bool:
    """Return True if sums of products of these integers are exact in this precision, in any order."""
    return bool(4 * norms.max() <= 2 / np.finfo(dtype).eps)


def _power_of_two(exponent: int) -> float:
    return float(np.ldexp(1.0, int(np.clip(exponent, -1000, 1000))))


class DenseRows:
    """Tiles of low(i) + low(j) − 2 a_i·a_j, where a_i = (x_i − centre)·scale makes them independent of offset and unit.

    They are in float32 while that leaves few pairs in doubt, then in float64. The offsets are two additional columns.
    """

    def __init__(self, X: Any, order: Ints) -> None:
        X = np.asarray(X)
        X = np.require(X, X.dtype if X.dtype in (np.float32, np.float64) else np.float64, ["ALIGNED"])
        self.X, least, exponent = _in_safe_range(X)
        self.order, self.scale = order, _power_of_two(-exponent)
        pilot = self.X[:: -(-X.size // PILOT_SIZE)].astype(float)
        self.centre = least + (pilot - least).mean(axis=0)
        self.step = _grid_step(pilot)
        if self.step:
            self.centre = np.rint(self.centre / self.step) * self.step
        self._store(np.dtype(np.float32 if X.shape[1] <= FLOAT32_FEATURES else np.float64))

    def _store(self, dtype: np.dtype) -> None:
        n, d = self.X.shape
        self.stored, norms, on_grid = np.empty((n, d + 2), dtype), np.empty(n), self.step > 0
        chunk = max(1, 2**16 // d)
        for start in range(0, n, chunk):
            block = self.X[self.order[start : start + chunk]] - self.centre
            on_grid = on_grid and np.array_equal(block, np.rint(block / self.step) * self.step)
            stored = self.stored[start : start + chunk, :d]
            np.multiply(block, self.scale, out=stored, casting="same_kind")
            norms[start : start + chunk] = np.einsum("ij,ij->i", stored, stored, dtype=np.float64)
        unit = self.scale**-2
        if on_grid and _never_rounded(norms * (unit / self.step**2), dtype):
            low, self.bounds = _exact_bounds(norms, dtype, unit)
        else:
            floor = d * 2.0 ** (-120 if dtype == np.float32 else -250)
            low, self.bounds = _bounds(norms, d, dtype, floor, unit)
        self.stored[:, d], self.stored[:, d + 1] = low, 1
        self.held_range, self.buffer = (0, 0), np.empty(min(TILE, n) ** 2, dtype)

    def tile(self, r_start: int, r_stop: int, c_start: int, c_stop: int) -> NDArray:
        """Return lower bounds for positions r_start:r_stop × c_start:c_stop; the next call overwrites them."""
        if self.held_range != (c_start, c_stop):
            self.held_range = (c_start, c_stop)
            self.held = self.stored[c_start:c_stop] * self.stored.dtype.type(-2)
            self.held[:, -2:] = self.stored[c_start:c_stop, :-3:-1]  # (1, low) against (low, 1)
        shape = r_stop - r_start, c_stop - c_start
        buffer = self.buffer[: shape[0] * shape[1]].reshape(shape)
        return np.matmul(self.stored[r_start:r_stop], self.held.T, out=buffer)

    def distances(self, left: Ints, right: Ints) -> Floats:
        """Compute D of pairs of rows of X: Σ_k (x_ik − x_jk)², summed in feature order in float64."""
        chunk = max(1, 2**16 // self.X.shape[1])
        D = np.empty(len(left))
        for start in range(0, len(left), chunk):
            part = slice(start, start + chunk)
            gaps = np.subtract(self.X[left[part]], self.X[right[part]], dtype=np.float64)
            # a sum in feature order, unlike np.sum
            D[part] = np.cumsum(np.square(gaps, out=gaps), axis=1, out=gaps)[:, -1]
        return D

    def sharpen(self) -> None:
        """Switch to float64 for narrower bounds, because too many pairs are in doubt."""
        if self.stored.dtype == np.float32:
            del self.stored, self.held
            self._store(np.dtype(np.float64))


def _in_safe_range(X: NDArray) -> tuple[NDArray, Floats, int]:
    """Return X, the minimum of each column, and the exponent of the largest half range.

    If squared differences would overflow or underflow, return X times a power of two; D is then in that unit.
    """
    least, largest = X.min(axis=0).astype(float), X.max(axis=0).astype(float)
    exponent = int(np.frexp(np.max(largest / 2 - least / 2))[1])
    if X.dtype == np.float32 or abs(exponent) <= SAFE_EXPONENT:
        return X, least, exponent
    # A constant column adds nothing to D, so its value need not be representable in the unit.
    return _in_safe_range(np.where(least < largest, X, 0.0) * _power_of_two(-exponent))


def _grid_step(values: Floats) -> float:
    """Return the coarsest of 1, 1/2 … 1/64 of which all values are multiples, or 0 if there is none."""
    step = 0.0
    for finer in 2.0 ** -np.arange(6, -1, -1):  # the finest first, because most data lie on no grid
        with np.errstate(over="ignore"):  # infinities are not on the grid
            if not np.array_equal(values, np.rint(values / finer) * finer):
                break
        step = float(finer)
    return step


class SparseRows:
    """Tiles of low(i) + low(j) − 2 x_i·x_j from the stored entries, uncentred, in float64."""

    def __init__(self, X: Any, order: Ints) -> None:
        X = entries_once(X)
        X = X if X.dtype in (np.float32, np.float64) else X.astype(np.float64)
        exponent = int(np.frexp(np.abs(X.data).max(initial=0.0))[1])
        in_range = X.dtype == np.float32 or abs(exponent) <= SAFE_EXPONENT  # squares neither overflow nor underflow
        self.X, self.order, self.held_range = X if in_range else X * _power_of_two(-exponent), order, (0, 0)
        self.rows = self.X[order].astype(np.float64)
        counts, data = np.diff(self.rows.indptr), self.rows.data
        norms: Floats = np.bincount(np.repeat(np.arange(len(order)), counts), data**2, len(order)).astype(np.float64)
        dtype, n_terms = np.dtype(np.float64), int(counts.max())
        if np.array_equal(data, np.rint(data)) and _never_rounded(norms, dtype):
            self.low, self.bounds = _exact_bounds(norms, dtype, 1.0)
        else:
            self.low, self.bounds = _bounds(norms, n_terms, dtype, (n_terms + 1) * 2.0**-1000, 1.0)

    def tile(self, r_start: int, r_stop: int, c_start: int, c_stop: int) -> NDArray:
        from discrim.core.svm.compiled import add_products  # loads numba, which dense rows do not need

        if self.held_range != (c_start, c_stop):
            self.held_range, self.held = (c_start, c_stop), self.rows[c_start:c_stop].tocsc()
        rows, held = self.rows, self.held
        tile = np.add.outer(self.low[r_start:r_stop], self.low[c_start:c_stop])
        add_products(rows.indptr, rows.indices, rows.data, r_start, held.indptr, held.indices, held.data, tile)
        return tile

    def distances(self, left: Ints, right: Ints) -> Floats:
        D = np.empty(len(left))
        for start in range(0, len(left), 2**12):
            part = slice(start, start + 2**12)
            gaps = (self.X[left[part]].astype(np.float64) - self.X[right[part]].astype(np.float64)).tocsr()
            gaps.sort_indices()
            n_rows = gaps.shape[0]
            D[part] = np.bincount(np.repeat(np.arange(n_rows), np.diff(gaps.indptr)), gaps.data**2, n_rows)
        return D

    def sharpen(self) -> None:
        pass  # already float64


Rows = DenseRows | SparseRows
