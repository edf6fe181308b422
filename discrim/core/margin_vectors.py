"""Quantities that an objective may need in addition to the statistics: class landmarks (medians) and pairs of rows."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from discrim.tables.rows import BLOCK_BYTES, LabelledRows
from discrim.tables.validation import require_representable

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Pairs:
    """Unordered pairs of row numbers, left < right, each once, with their weights."""

    left: NDArray[np.intp]
    right: NDArray[np.intp]
    weight: Array


@dataclass(frozen=True, eq=False)
class Margins:
    """Landmarks, pairs and duals for objectives that need more than statistics.

    Landmarks are points of the feature space (one row each). Pairs are rows of different classes that are nearest
    enemies. Duals are the coefficients of each row (row of the matrix) for each class (column) in a large-margin
    classifier, with its relative duality gap and its number of passes over the rows.
    """

    landmarks: Array | None = None
    pairs: Pairs | None = None
    duals: Array | None = None
    gap: float = 0.0
    n_iter: int = 0

    def moved(self, pilot: Array | None) -> Margins:
        """Return the margins for rows from which `pilot` is subtracted."""
        if pilot is None or self.landmarks is None:
            return self
        return replace(self, landmarks=self.landmarks - pilot)


def class_medians(rows: LabelledRows) -> Array:
    """Compute the median of each class, C×d; a weight of 2 counts as a repeated row."""
    n, d = rows.shape
    order = np.argsort(rows.codes, kind="stable")
    starts = np.searchsorted(rows.codes[order], np.arange(rows.n_classes + 1))
    medians = np.empty((rows.n_classes, d))
    table = rows.X.tocsc() if rows.is_sparse else rows.X
    step = max(1, BLOCK_BYTES // (8 * n))
    for first in range(0, d, step):
        columns = slice(first, min(first + step, d))
        block = table[:, columns].toarray() if rows.is_sparse else table[:, columns]
        for c in range(rows.n_classes):
            members = order[starts[c] : starts[c + 1]]
            weights = None if rows.weights is None else rows.weights[members]
            medians[c, columns] = _medians(block[members].astype(np.float64, copy=False), weights)
    require_representable(medians, rows.X)
    return medians


def _medians(values: Array, weights: Array | None) -> Array:
    """Return the median of each column: the midpoint of the values where half of the weight is reached and exceeded."""
    if weights is None:
        return np.median(values, axis=0)
    order = np.argsort(values, axis=0, kind="stable")
    ranked = np.take_along_axis(values, order, axis=0)
    reached = np.cumsum(weights[order], axis=0)
    half = reached[-1] / 2
    slack = 1e-12 * half  # tolerance for rounding in sums of weights
    lower = np.argmax(reached >= half - slack, axis=0)
    upper = np.argmax(reached > half + slack, axis=0)
    columns = np.arange(values.shape[1])
    return (ranked[lower, columns] + ranked[upper, columns]) / 2
