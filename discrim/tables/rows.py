"""Labelled rows: the value every fit starts from.

A table X (dense or CSR, never copied, never written to), a class number per row, and a weight per row. Read in
blocks small enough for the processor's cache.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

BLOCK_ROWS = 4096  # fewer rows waste the matrix product, many more fall out of the cache
SHORT_ROW = 200  # columns below which half as many rows do, and stay nearer to the processor
BLOCK_BYTES = 16 * 2**20  # what a block made dense may take when rows are long


@dataclass(frozen=True, eq=False)
class LabelledRows:
    """X with `codes[i]` the class number of row i, `classes[codes[i]]` its label, `weights[i]` its weight (None: 1)."""

    X: Any  # ndarray or CSR matrix
    codes: NDArray[np.intp]
    classes: NDArray[Any]
    weights: NDArray[np.float64] | None = None
    numbers: NDArray[np.intp] | None = None  # row numbers in the original table, if some rows were left out
    n_given: int | None = None  # number of rows of the original table
    shape: tuple[int, int] = field(init=False)
    is_sparse: bool = field(init=False)
    n_classes: int = field(init=False)

    def __post_init__(self) -> None:
        vars(self).update(shape=self.X.shape, is_sparse=sp.issparse(self.X), n_classes=len(self.classes))

    @property
    def class_totals(self) -> NDArray[np.float64]:
        """Total weight of each class."""
        return np.bincount(self.codes, self.weights, minlength=self.n_classes).astype(np.float64)

    def unlabelled(self) -> LabelledRows:
        """Return the rows as one class."""
        return LabelledRows(self.X, np.zeros(self.shape[0], np.intp), np.array([None]), self.weights)

    def select(self, index: NDArray[np.intp]) -> LabelledRows:
        """Return these rows, with the numbers of all classes."""
        weights = None if self.weights is None else self.weights[index]
        return LabelledRows(self.X[index], self.codes[index], self.classes, weights)

    def take(self, index: NDArray[np.intp]) -> LabelledRows:
        """Return these rows; dense rows are copied block by block when they are used."""
        if self.is_sparse:
            return self.select(index)
        weights = None if self.weights is None else self.weights[index]
        X = (
            PickedRows(self.X.table, self.X.index[index])
            if isinstance(self.X, PickedRows)
            else PickedRows(self.X, index)
        )
        return LabelledRows(X, self.codes[index], self.classes, weights)

    def for_all(self, values: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return a row of values for each row of the given table: 0 for rows that were left out."""
        if self.numbers is None:
            return values
        assert self.n_given is not None
        whole = np.zeros((self.n_given, values.shape[1]))
        whole[self.numbers] = values
        return whole

    def moved(self, X: Any) -> LabelledRows:
        """Return the labels and weights with other coordinates."""
        return replace(self, X=X)

    def near_origin(self) -> tuple[LabelledRows, NDArray[np.float64] | None]:
        """Return the rows minus the first one in columns without zeros (they stay as sparse), and that row.

        A column with zeros varies as much as it is large. One without can be large and hardly vary: squared, it would
        dominate all others.
        """
        if not self.is_sparse:
            return self, None
        X = entries_once(self.X)
        first = X[[0]].toarray().ravel()
        full = (np.bincount(X.indices, minlength=X.shape[1]) == X.shape[0]) & np.isfinite(first)
        if not full.any():
            return self, None
        pilot = np.where(full, first, X.dtype.type(0))
        with np.errstate(over="ignore", invalid="ignore"):
            data = X.data - pilot[X.indices]
        if np.isinf(data).any() and not np.isinf(X.data).any():  # between the largest numbers of either sign
            return self, None
        return self.moved(sp.csr_array((data, X.indices, X.indptr), shape=X.shape)), pilot.astype(np.float64)

    def fingerprints(self) -> NDArray[np.float64]:
        """Return a number for each row, exactly the same for equal rows: its sum with random weights.

        Constant columns of a dense table have weight 0: a large one would hide how rows differ.
        """
        weights = np.random.default_rng(0).uniform(1, 2, self.shape[1])
        if self.is_sparse:
            return np.asarray(self.X @ weights)
        varies = np.zeros(self.shape[1], dtype=bool)
        for part in block_slices(*self.shape):
            varies |= (self.X[part] != self.X[0]).any(axis=0)
        weights[~varies] = 0.0
        # a matrix product may round a row by its place in the table, a product of two vectors does not
        with np.errstate(over="ignore", invalid="ignore"):
            sums = [np.vecdot(self.X[part], weights) for part in block_slices(*self.shape)]
        return np.concatenate(sums) if sums else np.empty(0)


def entries_once(X: Any) -> Any:
    """Return CSR with sorted columns, each once; X itself if it is so."""
    X = X.tocsr()
    if not X.has_canonical_format:
        X = X.copy()
        X.sum_duplicates()
    return X


class PickedRows:
    """Some rows of a dense table: an array where it is asked for one, else a block at a time."""

    def __init__(self, table: NDArray[Any], index: NDArray[np.intp]) -> None:
        self.table, self.index = table, index
        self.shape, self.dtype = (len(index), table.shape[1]), table.dtype

    def __getitem__(self, rows: Any) -> NDArray[Any]:
        return self.table.take(self.index[rows], axis=0)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NDArray[Any]:
        return np.asarray(self[:], dtype=dtype)


def block_slices(n_rows: int, n_columns: int) -> Iterator[slice]:
    """Yield consecutive row ranges, each about the size of the cache."""
    most = BLOCK_ROWS // 2 if n_columns < SHORT_ROW else BLOCK_ROWS
    step = max(64, min(most, BLOCK_BYTES // (8 * max(1, n_columns))))
    for start in range(0, n_rows, step):
        yield slice(start, min(start + step, n_rows))


def dense_block(X: Any, rows: slice | NDArray[np.intp]) -> NDArray[Any]:
    """Return rows of X as an ndarray: a view if X is dense, a small copy if it is sparse."""
    return X[rows].toarray() if sp.issparse(X) else np.asarray(X[rows])


def projected(X: Any, mean: NDArray[np.float64], directions: NDArray[Any]) -> NDArray[Any]:
    """Compute (X − mean) directionsᵀ block by block, in X's precision; a sparse X stays sparse."""
    columns = np.ascontiguousarray(directions.T)
    result = np.empty((X.shape[0], columns.shape[1]), X.dtype)
    with np.errstate(invalid="ignore", over="ignore"):
        if sp.issparse(X):
            return np.asarray(X @ columns.astype(np.float64) - mean @ columns).astype(X.dtype, copy=False)
        for part in block_slices(*X.shape):
            centred = np.subtract(X[part], mean, dtype=np.float64)
            result[part] = centred.astype(X.dtype, copy=False) @ columns
    return result
