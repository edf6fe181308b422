"""Labelled rows: the value every fit starts from.

A table X (dense or CSR, never copied, never written to), a class number per row, and a weight per row. Walked in
blocks small enough to stay in the processor's cache.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
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
    numbers: NDArray[np.intp] | None = None  # of the rows in the table that came, where some were left out
    n_given: int | None = None  # how many rows that table had

    @property
    def shape(self) -> tuple[int, int]:
        return self.X.shape

    @property
    def is_sparse(self) -> bool:
        return sp.issparse(self.X)

    @property
    def n_classes(self) -> int:
        return len(self.classes)

    @property
    def class_totals(self) -> NDArray[np.float64]:
        """Total weight of each class."""
        return np.bincount(self.codes, self.weights, minlength=self.n_classes).astype(np.float64)

    def unlabelled(self) -> LabelledRows:
        """The same rows as one class."""
        return LabelledRows(self.X, np.zeros(self.shape[0], np.intp), np.array([None]), self.weights)

    def moved(self, X: Any) -> LabelledRows:
        """The same labels and weights on other coordinates."""
        return replace(self, X=X)


def block_slices(n_rows: int, n_columns: int) -> Iterator[slice]:
    """Consecutive row ranges, each about the size of the cache."""
    most = BLOCK_ROWS // 2 if n_columns < SHORT_ROW else BLOCK_ROWS
    step = max(64, min(most, BLOCK_BYTES // (8 * max(1, n_columns))))
    for start in range(0, n_rows, step):
        yield slice(start, min(start + step, n_rows))


def dense_block(X: Any, rows: slice) -> NDArray[Any]:
    """Rows of X as an ndarray: a view where X is dense, a small copy where it is sparse."""
    return X[rows].toarray() if sp.issparse(X) else np.asarray(X[rows])
