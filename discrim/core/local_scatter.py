"""Scatters that weight near pairs of a class more than far ones.

    L_c = 1/(2 n_c) Σ_{i,j∈c} w_i w_j A_ij (x_i − x_j)(x_i − x_j)ᵀ ,    A_ij = exp(−‖x_i − x_j‖² / (s_i s_j))

With A = 1 it equals S_c. s_i is the distance to the k-th neighbour in the same class (the farthest if there are fewer).
A row of weight w counts as w rows, of which w − 1 are its neighbours. Affinities are computed in blocks of rows.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from discrim.core.moments.class_moments import ClassMoments
from discrim.tables.rows import LabelledRows, dense_block

Array = NDArray[np.float64]
AFFINITIES = 2**21  # computed at once
NEAREST = 1e-3  # minimum distance to a neighbour, relative to the class's deviation
EQUAL = 1e-13  # squared distances below this share of the largest squared length are set to 0


@dataclass(frozen=True, eq=False)
class LocalScatter:
    """Σ_c f_c L_c for f = 1 and f = 1 − n_c/n, and Σ_c (1 − n_c/n) S_c, in the units of the moments."""

    within: Array
    within_of_others: Array
    scatter_of_others: Array

    @classmethod
    def of(cls, points: LabelledRows, moments: ClassMoments, neighbors: int, embedding: Array | None) -> LocalScatter:
        """Compute in the coordinates of the moments, or in those of an embedding (orthonormal rows)."""
        size = points.shape[1] if embedding is None else len(embedding)
        within, within_of_others, scatter_of_others = np.zeros((3, size, size))
        others = 1 - moments.weights / moments.total_weight
        for code, share in enumerate(others):
            index = np.flatnonzero(points.codes == code)
            Z = moments.residuals(dense_block(points.X, index), code)
            weights = np.ones(len(index)) if points.weights is None else points.weights[index]
            Z = Z if embedding is None else Z @ embedding.T
            local = _local(Z, weights, neighbors)
            within += local
            within_of_others += share * local
            scatter_of_others += share * (Z.T @ (weights[:, None] * Z))
        return cls(within, within_of_others, scatter_of_others)


def _local(Z: Array, weights: Array, neighbors: int) -> Array:
    """Compute L_c from the centred rows of a class."""
    scales = np.concatenate([_scales(squares, weights, neighbors) for _, squares in _squares(Z)])
    lengths = np.einsum("ij,ij->i", Z, Z)
    floor = NEAREST * np.sqrt(float(weights @ lengths / weights.sum()))
    if floor == 0:  # all rows of the class are equal
        return np.zeros((Z.shape[1],) * 2)
    scales = np.maximum(scales, floor)
    total = np.zeros((Z.shape[1],) * 2)
    for part, squares in _squares(Z):
        affinities = np.exp(-squares / (scales[part, None] * scales)) * weights[part, None] * weights
        total += Z[part].T @ (affinities.sum(axis=1)[:, None] * Z[part] - affinities @ Z)
    return (total + total.T) / (2 * weights.sum())


def _squares(Z: Array) -> Iterator[tuple[slice, Array]]:
    """Yield squared distances of a block of rows to all rows, exactly 0 for equal rows."""
    lengths = np.einsum("ij,ij->i", Z, Z)
    least = EQUAL * lengths.max(initial=0.0)
    step = max(1, AFFINITIES // max(1, len(Z)))
    for start in range(0, len(Z), step):
        part = slice(start, start + step)
        squares = lengths[part, None] + lengths - 2 * (Z[part] @ Z.T)
        squares[squares <= least] = 0.0
        yield part, squares


def _scales(squares: Array, weights: Array, neighbors: int) -> Array:
    """Return the distance to the k-th neighbour, counting weights as repeated rows without the row itself."""
    order = np.argsort(squares, axis=1)
    reached = np.cumsum(weights[order], axis=1) - 1 >= neighbors - 1e-9
    place = np.where(reached.any(axis=1), reached.argmax(axis=1), squares.shape[1] - 1)
    rows = np.arange(len(squares))
    return np.sqrt(squares[rows, order[rows, place]])
