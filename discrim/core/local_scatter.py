"""Scatters that count near pairs of a class more than far ones.

    L_c = 1/(2 n_c) Σ_{i,j∈c} w_i w_j A_ij (x_i − x_j)(x_i − x_j)ᵀ ,    A_ij = exp(−‖x_i − x_j‖² / (s_i s_j))

With A = 1 it is S_c. s_i is the distance to the k-th neighbour of the same class (the farthest where there are fewer);
a row of weight w is w rows, of which w − 1 are its neighbours. The affinities are made a block of rows at a time.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from discrim.core.moments.class_moments import ClassMoments
from discrim.tables.rows import LabelledRows

Array = NDArray[np.float64]
AFFINITIES = 2**21  # made at once
NEAREST = 1e-3  # a distance to a neighbour below this share of the class's deviation counts as that
EQUAL = 1e-13  # squared distances below this share of the largest squared length are those of equal rows


@dataclass(frozen=True, eq=False)
class LocalScatter:
    """Σ_c f_c L_c for f = 1 and for f = 1 − n_c/n, and Σ_c (1 − n_c/n) S_c, in the moments' units."""

    within: Array
    within_of_others: Array
    scatter_of_others: Array

    @classmethod
    def of(cls, points: LabelledRows, moments: ClassMoments, neighbors: int, embedding: Array | None) -> LocalScatter:
        """Compute in the moments' coordinates, or in those of an embedding (orthonormal rows)."""
        size = points.shape[1] if embedding is None else len(embedding)
        within, within_of_others, scatter_of_others = np.zeros((3, size, size))
        others = 1 - moments.weights / moments.total_weight
        for code, share in enumerate(others):
            index = np.flatnonzero(points.codes == code)
            Z = _class_centred(points, index, moments, code)
            weights = np.ones(len(index)) if points.weights is None else points.weights[index]
            Z = Z if embedding is None else Z @ embedding.T
            local = _local(Z, weights, neighbors)
            within += local
            within_of_others += share * local
            scatter_of_others += share * (Z.T @ (weights[:, None] * Z))
        return cls(within, within_of_others, scatter_of_others)


def _class_centred(points: LabelledRows, index: NDArray[np.intp], moments: ClassMoments, code: int) -> Array:
    """Return rows of a class around its mean, in the moments' units."""
    block = points.X[index].toarray() if points.is_sparse else points.X[index]
    scaled = np.ldexp(block.astype(np.float64, copy=False), -moments.exponent)
    return (scaled - moments.pilots[code]) - moments.remainders[code]


def _local(Z: Array, weights: Array, neighbors: int) -> Array:
    """Compute L_c of the rows of a class, which lie around their mean."""
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
    """Return squared distances of a block of rows to all rows, those of equal rows exactly 0."""
    lengths = np.einsum("ij,ij->i", Z, Z)
    least = EQUAL * lengths.max(initial=0.0)
    step = max(1, AFFINITIES // max(1, len(Z)))
    for start in range(0, len(Z), step):
        part = slice(start, start + step)
        squares = lengths[part, None] + lengths - 2 * (Z[part] @ Z.T)
        squares[squares <= least] = 0.0
        yield part, squares


def _scales(squares: Array, weights: Array, neighbors: int) -> Array:
    """Return distance to the k-th neighbour, each row counted as often as it weighs and once less by itself."""
    order = np.argsort(squares, axis=1)
    reached = np.cumsum(weights[order], axis=1) - 1 >= neighbors - 1e-9
    place = np.where(reached.any(axis=1), reached.argmax(axis=1), squares.shape[1] - 1)
    rows = np.arange(len(squares))
    return np.sqrt(squares[rows, order[rows, place]])
