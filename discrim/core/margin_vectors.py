"""What an objective may refer to beside the statistics: points that stand for classes (medians), and pairs of rows."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from discrim.tables.rows import BLOCK_BYTES, LabelledRows
from discrim.tables.validation import require_representable

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Pairs:
    """Unordered pairs of rows, by their numbers, left < right, each once, with their weights."""

    left: NDArray[np.intp]
    right: NDArray[np.intp]
    weight: Array


@dataclass(frozen=True, eq=False)
class Margins:
    """Landmarks: points of the feature space (one row each). Pairs: rows that face each other across classes.

    Duals: what each row (row of the matrix) pulls at each class (column) in a large-margin classifier, with its
    relative duality gap and its passes over the rows.
    """

    landmarks: Array | None = None
    pairs: Pairs | None = None
    duals: Array | None = None
    gap: float = 0.0
    n_iter: int = 0

    def moved(self, pilot: Array | None) -> Margins:
        """Return the same where `pilot` is taken off the rows."""
        if pilot is None or self.landmarks is None:
            return self
        return replace(self, landmarks=self.landmarks - pilot)


def class_medians(rows: LabelledRows) -> Array:
    """Compute C×d; weighted so that a weight of 2 is a row that stands twice."""
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
    """Return median of each column: the middle of the values at which half of the weight is reached and passed."""
    if weights is None:
        return np.median(values, axis=0)
    order = np.argsort(values, axis=0, kind="stable")
    ranked = np.take_along_axis(values, order, axis=0)
    reached = np.cumsum(weights[order], axis=0)
    half = reached[-1] / 2
    slack = 1e-12 * half  # sums of weights that meet the half but for rounding
    lower = np.argmax(reached >= half - slack, axis=0)
    upper = np.argmax(reached > half + slack, axis=0)
    columns = np.arange(values.shape[1])
    return (ranked[lower, columns] + ranked[upper, columns]) / 2
