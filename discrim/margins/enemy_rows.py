"""Three kinds of rows that fill tiles for the nearest-enemy search, and the bounds that their tiles give.

Few features: the distances themselves. Dense rows: a matrix product of centred rows, in float32 as long as that
leaves little in doubt, in float64 from there on. Sparse rows: products from the entries alone.
"""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from discrim.margins import enemy_distances as filling
from discrim.margins.enemy_kernels import Bounds, Gauge

FEW_FEATURES = 4  # up to here the distances themselves cost no more than a matrix product and its doubts
PILOT_SIZE = 2**17  # values of the rows whose mean is the centre: it need not be the mean of all
FLOAT32_FEATURES = 50_000  # beyond, float32's error bound is too wide to be of use
SAFE_EXPONENT = 400  # squares of differences between 2^±400 neither overflow nor vanish


class Rows(Protocol):
    """Rows that can fill tiles and tell distances."""

    bounds: Bounds

    def hold(self, start: int, stop: int) -> None:
        """Prepare the tile columns: positions start:stop."""

    def tile(self, start: int, stop: int, room: NDArray) -> NDArray:
        """The tile of positions start:stop × the columns held, in `room`."""

    def distances(self, left: NDArray[np.int32], right: NDArray[np.int32]) -> NDArray[np.float64]:
        """D of pairs of rows of X."""

    def sharpen(self) -> bool:
        """Narrow the bounds, since too many pairs are in doubt. False if that is not possible."""


def rows_of(X: Any, order: NDArray[np.intp]) -> Rows:
    """The rows of X, to be taken in the given order, as the kind that suits them."""
    if sparse.issparse(X):
        return SparseRows(X, order)
    X = np.asarray(X)
    X = np.require(X, X.dtype if X.dtype in (np.float32, np.float64) else np.float64, ["ALIGNED"])
    X, least, exponent = _in_safe_range(X)
    return DirectRows(X, order) if X.shape[1] <= FEW_FEATURES else ProductRows(X, order, least, exponent)


def _power_of_two(exponent: int) -> float:
    return float(np.ldexp(1.0, int(np.clip(exponent, -1000, 1000))))


def _in_safe_range(X: NDArray) -> tuple[NDArray, NDArray[np.float64], int]:
    """X, the least value of each column, and the exponent of the largest half spread.

    If squared differences would overflow or vanish, X times a power of two instead: D is then in that unit.
    """
    least, largest = X.min(axis=0).astype(float), X.max(axis=0).astype(float)
    exponent = int(np.frexp(np.max(largest / 2 - least / 2))[1])
    if X.dtype == np.float32 or abs(exponent) <= SAFE_EXPONENT:
        return X, least, exponent
    # A constant column adds nothing to D, and its value need not fit the unit.
    return _in_safe_range(np.where(least < largest, X, 0.0) * _power_of_two(-exponent))


def _bounds(
    norms: NDArray[np.float64], order: NDArray[np.intp], n_terms: int, dtype: np.dtype, floor: float, unit: float
) -> Bounds:
    """Bounds for tiles of −2 a_i·a_j, a_i the row as stored in the tile's precision, norms a_i·a_i.

    With u the unit round-off and N = norm(i) + norm(j) ≥ 2‖a_i‖‖a_j‖: the product of n terms, summed in any order,
    errs by at most 1.01·n·u·N; storing a_i by 4u·N; offsets and their two additions by 8u·N; in float64, norms by
    n·u₆₄·N and D itself by 2(n + 2)u₆₄·N. `floor` bounds what terms too small for the precision can lose.
    """
    u, u64 = np.finfo(dtype).eps / 2, np.finfo(float).eps / 2
    error = 1.01 * ((n_terms + 16) * u + 3 * (n_terms + 4) * u64)
    low = (norms[order] * (1 - error) - floor).astype(dtype)
    return Bounds(low, norms, Gauge(2 * error, 4 * floor, unit))


def _exact_bounds(norms: NDArray[np.float64], order: NDArray[np.intp], dtype: np.dtype, unit: float) -> Bounds:
    """Tile values that are never rounded, or are D itself."""
    return Bounds(norms[order].astype(dtype), norms, Gauge(0.0, 0.0, unit))


def _grid_step(values: NDArray[np.float64]) -> float:
    """The coarsest of 1, 1/2 … 1/64 of which all values are multiples, or 0 if there is none."""
    step = 0.0
    for finer in 2.0 ** -np.arange(6, -1, -1):  # the finest first: most data are on no grid at all
        with np.errstate(over="ignore"):  # an infinity is off the grid
            if not np.array_equal(values, np.rint(values / finer) * finer):
                break
        step = float(finer)
    return step


def _never_rounded(norms: NDArray[np.float64], dtype: np.dtype) -> bool:
    """Whether sums of products of integers stay integers that the precision holds, whatever their order."""
    return bool(4 * norms.max() <= 2 / np.finfo(dtype).eps)


def _shaped(room: NDArray, n_rows: int, n_cols: int) -> NDArray:
    return room[: n_rows * n_cols].reshape(n_rows, n_cols)


class DirectRows:
    """Few features: tiles of D itself."""

    def __init__(self, X: NDArray, order: NDArray[np.intp]) -> None:
        self.columns = np.ascontiguousarray(X[order].T, dtype=np.float64)
        self.bounds = _exact_bounds(np.zeros(len(X)), order, np.dtype(np.float64), 1.0)

    def hold(self, start: int, stop: int) -> None:
        self.held = (start, stop)

    def tile(self, start: int, stop: int, room: NDArray) -> NDArray:
        tile = _shaped(room, stop - start, self.held[1] - self.held[0])
        filling.direct_tile(self.columns, start, stop, *self.held, tile)
        return tile

    def distances(self, left: NDArray[np.int32], right: NDArray[np.int32]) -> NDArray[np.float64]:
        raise AssertionError("tiles of distances leave nothing in doubt")

    def sharpen(self) -> bool:
        return False


class ProductRows:
    """Dense rows: tiles of −2 a_i·a_j with a_i = (x_i − centre)·scale, so that offsets and units do no harm."""

    def __init__(self, X: NDArray, order: NDArray[np.intp], least: NDArray[np.float64], exponent: int) -> None:
        self.X = X.view()
        self.X.flags.writeable = False
        self.order = order
        self.scale = _power_of_two(-exponent)
        pilot = X[:: -(-X.size // PILOT_SIZE)].astype(float)
        self.centre = least + (pilot - least).mean(axis=0)
        self.step = _grid_step(pilot)
        if self.step:
            self.centre = np.rint(self.centre / self.step) * self.step
        self._store(np.dtype(np.float32 if X.shape[1] <= FLOAT32_FEATURES else np.float64))

    def _store(self, dtype: np.dtype) -> None:
        n, d = self.X.shape
        self.stored, norms, on_grid = np.empty((n, d), dtype), np.empty(n), self.step > 0
        chunk = max(1, 2**16 // d)
        for start in range(0, n, chunk):
            rows = self.order[start : start + chunk]
            block = self.X[rows] - self.centre
            on_grid = on_grid and np.array_equal(block, np.rint(block / self.step) * self.step)
            stored = self.stored[start : start + chunk]
            np.multiply(block, self.scale, out=stored, casting="same_kind")
            norms[rows] = np.einsum("ij,ij->i", stored, stored, dtype=np.float64)
        unit = self.scale**-2
        if on_grid and _never_rounded(norms * (unit / self.step**2), dtype):
            self.bounds = _exact_bounds(norms, self.order, dtype, unit)
        else:
            floor = d * 2.0 ** (-120 if dtype == np.float32 else -250)
            self.bounds = _bounds(norms, self.order, d, dtype, floor, unit)

    def hold(self, start: int, stop: int) -> None:
        self.held_range = (start, stop)
        self.held = self.stored[start:stop] * self.stored.dtype.type(-2)

    def tile(self, start: int, stop: int, room: NDArray) -> NDArray:
        tile = _shaped(room.view(self.stored.dtype), stop - start, len(self.held))
        return np.matmul(self.stored[start:stop], self.held.T, out=tile)

    def distances(self, left: NDArray[np.int32], right: NDArray[np.int32]) -> NDArray[np.float64]:
        return filling.squared_distances(self.X, left, right)

    def sharpen(self) -> bool:
        if self.stored.dtype == np.float64:
            return False
        del self.stored, self.held
        self._store(np.dtype(np.float64))
        self.hold(*self.held_range)
        return True


class SparseRows:
    """Sparse rows: tiles of −2 x_i·x_j from the entries alone, uncentred, in float64."""

    def __init__(self, X: Any, order: NDArray[np.intp]) -> None:
        self.X = _canonical(X)
        rows = self.X[order].astype(np.float64)
        self.rows, counts = rows, np.diff(rows.indptr)
        norms = np.empty(len(order))
        norms[order] = np.bincount(np.repeat(np.arange(len(order)), counts), rows.data**2, len(order))
        dtype, n_terms = np.dtype(np.float64), int(counts.max())
        if np.array_equal(rows.data, np.rint(rows.data)) and _never_rounded(norms, dtype):
            self.bounds = _exact_bounds(norms, order, dtype, 1.0)
        else:
            self.bounds = _bounds(norms, order, n_terms, dtype, (n_terms + 1) * 2.0**-1000, 1.0)

    def hold(self, start: int, stop: int) -> None:
        self.held = self.rows[start:stop].tocsc()

    def tile(self, start: int, stop: int, room: NDArray) -> NDArray:
        rows, held = self.rows, self.held
        tile = _shaped(room, stop - start, held.shape[0])
        filling.sparse_tile(
            rows.indptr, rows.indices, rows.data, start, stop, held.indptr, held.indices, held.data, tile
        )
        return tile

    def distances(self, left: NDArray[np.int32], right: NDArray[np.int32]) -> NDArray[np.float64]:
        return filling.sparse_squared_distances(self.X.indptr, self.X.indices, self.X.data, left, right)

    def sharpen(self) -> bool:
        return False


def _canonical(X: Any) -> Any:
    """CSR with sorted features, each once, and squares that neither overflow nor vanish; X itself if it is so."""
    X = X.tocsr()
    if X.dtype not in (np.float32, np.float64):
        X = X.astype(np.float64)
    if not X.has_canonical_format:
        X = X.copy()
        X.sum_duplicates()
    exponent = int(np.frexp(np.abs(X.data).max(initial=0.0))[1])
    return X if X.dtype == np.float32 or abs(exponent) <= SAFE_EXPONENT else X * _power_of_two(-exponent)
