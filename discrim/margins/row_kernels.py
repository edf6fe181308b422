"""Products of single rows with a few of many weight vectors, for dense and sparse tables alike.

A table is handed to compiled loops as three flat arrays: a dense one as its numbers row by row with empty `indices`
and `indptr`, a sparse one as CSR. Weight vectors are kept as the rows of a (classes × features) array for a dense
table, so that each product runs along memory, and as its columns, (features × classes), for a sparse one, where all
classes of a feature are then one fetch.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from numba import njit
from numpy.typing import NDArray

# Sums may be taken in any order, which is what lets them run in vector registers. NaN and infinity keep their meaning.
ANY_ORDER = {"reassoc", "contract", "nsz"}
LANES = 4  # sparse weights are padded to whole vectors
FEW = 3  # fewer than one class in so many: one by one; otherwise all classes at once, along memory


class Table(NamedTuple):
    """A table as flat arrays, none of them writable."""

    values: NDArray[Any]
    indices: NDArray[np.uint32]
    indptr: NDArray[np.int64]
    n_features: int

    @property
    def is_sparse(self) -> bool:
        return len(self.indptr) > 0

    def zero_weights(self, n_classes: int) -> NDArray[np.float64]:
        if self.is_sparse:
            return np.zeros((self.n_features, -(-n_classes // LANES) * LANES))
        return np.zeros((n_classes, self.n_features))

    def class_major(self, weights: NDArray[np.float64], n_classes: int) -> NDArray[np.float64]:
        """Weights as (classes × features), a copy."""
        return weights[:, :n_classes].T.copy() if self.is_sparse else weights.copy()


def flat_table(X: Any) -> Table:
    """X without a copy if it is float64 or float32 and C-contiguous or canonical CSR; converted once otherwise."""
    if not sp.issparse(X):
        X = np.ascontiguousarray(X, dtype=X.dtype if X.dtype in (np.float64, np.float32) else np.float64)
        # One type for writable and read-only input: half the compiling.
        return Table(
            read_only(X.reshape(-1)), read_only(np.empty(0, np.uint32)), read_only(np.empty(0, np.int64)), X.shape[1]
        )
    X = X.tocsr()
    if X.dtype not in (np.float64, np.float32):
        X = X.astype(np.float64)
    if not X.has_canonical_format:
        X = X.copy()
        X.sum_duplicates()
    # Unsigned, since for signed indices every access asks first whether it counts from the end.
    indices = X.indices.astype(np.int32, copy=False).view(np.uint32)
    return Table(read_only(X.data), read_only(indices), read_only(X.indptr.astype(np.int64)), X.shape[1])


def read_only(array: NDArray[Any]) -> NDArray[Any]:
    """A read-only view: one type, and so one compilation, for writable and read-only input."""
    view = array.view()
    view.flags.writeable = False
    return view


# Arrays are indexed by unsigned numbers and never sliced: a slice costs as much as a short product, and a signed index
# is asked at every access whether it counts from the end, which keeps loops out of vector registers. And these
# functions call no others: one that does counts references to its arrays, at the price of another short product.


@njit(cache=True, fastmath=ANY_ORDER)
def row_square(values, indptr, i, width):  # type: ignore[no-untyped-def]
    """‖x_i‖²"""
    low, high = (i * width, (i + 1) * width) if indptr.shape[0] == 0 else (indptr[i], indptr[i + 1])
    total = 0.0
    for t in range(np.uint64(low), np.uint64(high)):
        total += np.float64(values[t]) * np.float64(values[t])
    return total


@njit(cache=True, fastmath=ANY_ORDER)
def dense_products(values, i, weights, classes, start, count, out, at):  # type: ignore[no-untyped-def]
    """out[at + k] = x_i · weights of classes[start + k] for k < count, two classes for each reading of the row."""
    width = np.uint64(weights.shape[1])
    base = np.uint64(i) * width
    k = 0
    while k + 1 < count:
        y, z = classes[start + k], classes[start + k + 1]
        first = 0.0
        second = 0.0
        for j in range(width):
            first += weights[y, j] * values[base + j]
            second += weights[z, j] * values[base + j]
        out[at + k] = first
        out[at + k + 1] = second
        k += 2
    if k < count:
        y = classes[start + k]
        first = 0.0
        for j in range(width):
            first += weights[y, j] * values[base + j]
        out[at + k] = first


@njit(cache=True, fastmath=ANY_ORDER)
def sparse_products(values, indices, indptr, i, weights, classes, start, count, out, at, spare):  # type: ignore[no-untyped-def]
    """The same for a sparse row. `spare` has room for a number of each class."""
    t, high = np.uint64(indptr[i]), np.uint64(indptr[i + 1])
    one, two, three, four = np.uint64(1), np.uint64(2), np.uint64(3), np.uint64(4)
    width = np.uint64(weights.shape[1])
    if FEW * count < weights.shape[1]:
        for k in range(count):
            y = classes[start + k]
            total = 0.0
            for s in range(t, high):
                total += weights[indices[s], y] * values[s]
            out[at + k] = total
        return
    for y in range(width):
        spare[y] = 0.0
    while t + three < high:  # four numbers of the row for each reading and writing of the sums
        j0, j1, j2, j3 = indices[t], indices[t + one], indices[t + two], indices[t + three]
        x0, x1, x2, x3 = values[t], values[t + one], values[t + two], values[t + three]
        for y in range(width):
            spare[y] += weights[j0, y] * x0 + weights[j1, y] * x1 + weights[j2, y] * x2 + weights[j3, y] * x3
        t += four
    while t < high:
        for y in range(width):
            spare[y] += weights[indices[t], y] * values[t]
        t += one
    for k in range(count):
        out[at + k] = spare[classes[start + k]]


@njit(cache=True, fastmath=ANY_ORDER)
def dense_add(values, i, weights, classes, start, count, steps, at):  # type: ignore[no-untyped-def]
    """Weights of classes[start + k] += steps[at + k] · x_i for k < count."""
    width = np.uint64(weights.shape[1])
    base = np.uint64(i) * width
    for k in range(count):
        step = steps[at + k]
        if step != 0.0:
            y = classes[start + k]
            for j in range(width):
                weights[y, j] += step * values[base + j]


@njit(cache=True, fastmath=ANY_ORDER)
def sparse_add(values, indices, indptr, i, weights, classes, start, count, steps, at, spare):  # type: ignore[no-untyped-def]
    """Weights of classes[start + k] += steps[at + k] · x_i for k < count; of many classes by way of all."""
    low, high = np.uint64(indptr[i]), np.uint64(indptr[i + 1])
    width = np.uint64(weights.shape[1])
    if FEW * count < weights.shape[1]:
        for k in range(count):
            step = steps[at + k]
            if step != 0.0:
                y = classes[start + k]
                for t in range(low, high):
                    weights[indices[t], y] += step * values[t]
        return
    for y in range(width):
        spare[y] = 0.0
    for k in range(count):
        spare[classes[start + k]] = steps[at + k]
    for t in range(low, high):
        for y in range(width):
            weights[indices[t], y] += spare[y] * values[t]
