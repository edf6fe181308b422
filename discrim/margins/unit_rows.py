"""Rows as the margins see them: centred, and divided by one number, so that a cost C means the same on every table."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from discrim.data.fit_messages import refuse_equal_rows
from discrim.data.rows import LabelledRows
from discrim.moments.class_moments import ClassMoments

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class UnitRows:
    """x̃ = (x·2^−exponent − offset)/scale with mean 0 and mean square length 1; sparse rows are never made dense."""

    X: Any  # times 2^−exponent; dense rows are centred already
    offset: Array | None  # of sparse ones, what is still to be taken off
    scale: float
    exponent: int
    weights: Array | None

    @classmethod
    def of(cls, rows: LabelledRows) -> UnitRows:
        """Of rows near the origin, where they are sparse."""
        X, offset, exponent = _near_unit(rows)
        mean_square = _mean_square(X, offset, rows.weights)
        if not mean_square > 0:
            refuse_equal_rows(*rows.shape)
        return cls(X, offset, float(np.sqrt(mean_square)), exponent, rows.weights)

    @property
    def total_weight(self) -> float:
        """Σv, which is Σ v‖x̃‖², too."""
        return float(self.X.shape[0] if self.weights is None else self.weights.sum())

    def weighted(self, values: Array) -> Array:
        """One row of values for each row, times its weight."""
        return values if self.weights is None else values * self.weights[:, None]

    def along(self, directions: Array) -> Array:
        """x̃ᵀw for every row and direction."""
        products = np.asarray(self.X @ directions.T)
        return (products if self.offset is None else products - directions @ self.offset) / self.scale

    def gathered(self, values: Array) -> Array:
        """Σ_n values_n x̃_nᵀ."""
        sums = np.asarray(self.X.T @ values).T
        return (sums if self.offset is None else sums - np.outer(values.sum(axis=0), self.offset)) / self.scale


def _near_unit(rows: LabelledRows) -> tuple[Any, Array | None, int]:
    """Rows times 2^−exponent: dense ones centred, sparse ones as they are with the mean that is to be taken off."""
    moments = ClassMoments.of_rows(rows, keep="means")
    if rows.is_sparse:
        X = rows.X * 0.5**moments.exponent if moments.exponent else rows.X
        return X, np.ldexp(moments.mean, -moments.exponent), moments.exponent
    X = np.subtract(rows.X, moments.origin, dtype=np.float64)
    X -= moments.mean_offset
    return np.ldexp(X, -moments.exponent, out=X), None, moments.exponent


def _mean_square(X: Any, offset: Array | None, weights: Array | None) -> float:
    """Weighted mean of ‖x − offset‖²."""
    if offset is None:
        return float(np.average(np.einsum("nd,nd->n", X, X), weights=weights))
    of_mean = float(offset @ offset)
    squares = np.asarray(X.multiply(X).sum(axis=1, dtype=np.float64)).ravel()
    total = float(np.average(squares, weights=weights))
    return total - of_mean if total - of_mean > 1e-12 * total else 0.0  # a difference that may be rounding
