"""Statistics of every column for scalers, additive over parts: minimum, maximum, mean and scatter."""

from __future__ import annotations

import functools
import operator
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.utils.sparsefuncs import mean_variance_axis

from discrim.tables.rows import LabelledRows, block_slices

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class ColumnTotals:
    """Minimum, maximum, mean and Σ w (x − mean)² of each column, with sample weights but without class weights."""

    least: Array
    largest: Array
    mean: Array
    squares: Array
    weight: float

    @classmethod
    def from_rows(cls, rows: LabelledRows) -> ColumnTotals:
        """Compute the totals, a block of rows at a time."""
        parts = [slice(None)] if rows.is_sparse else block_slices(*rows.shape)
        found = (cls._of(rows.X[at], None if rows.weights is None else rows.weights[at]) for at in parts)
        return functools.reduce(operator.add, found)

    @classmethod
    def _of(cls, X: Any, weights: Array | None) -> ColumnTotals:
        total = float(X.shape[0] if weights is None else weights.sum())
        if sp.issparse(X):
            mean, variances = mean_variance_axis(X.astype(np.float64, copy=False), axis=0, weights=weights)
            return cls(_dense_row(X.min(axis=0)), _dense_row(X.max(axis=0)), mean, variances * total, total)
        w = np.ones(X.shape[0]) if weights is None else weights
        with np.errstate(over="ignore", under="ignore", invalid="ignore"):
            mean = (w / total) @ X.astype(np.float64, copy=False)
            squares = w @ np.subtract(X, mean, dtype=np.float64) ** 2
        return cls(X.min(axis=0).astype(np.float64), X.max(axis=0).astype(np.float64), mean, squares, total)

    def __add__(self, other: ColumnTotals) -> ColumnTotals:
        weight = self.weight + other.weight
        gap, share = other.mean - self.mean, other.weight / weight
        with np.errstate(over="ignore", under="ignore"):
            between = self.weight * share * gap**2
        return ColumnTotals(
            np.minimum(self.least, other.least),
            np.maximum(self.largest, other.largest),
            self.mean + share * gap,
            self.squares + other.squares + between,
            weight,
        )


def _dense_row(cells: Any) -> Array:
    return np.asarray(cells.toarray() if sp.issparse(cells) else cells, dtype=np.float64).ravel()
