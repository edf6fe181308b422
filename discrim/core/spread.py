"""Spreads, the matrices whose leading eigenvectors most methods compute; points and pairs of rows they may need.

    A = Σ_i w_{y_i} (x_i − μ_{y_i})(x_i − μ_{y_i})ᵀ + Σ_r u_r u_rᵀ + Σ_{(i,j)} v_ij (x_i − x_j)(x_i − x_j)ᵀ

The terms are class-centred rows with a weight per class, a few extra rows, and (for nearest enemies) weighted pairs of
rows. The same description serves all solvers: as a d×d matrix, as a factor Z with A = ZᵀZ, or as an operator.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from scipy.sparse.linalg import LinearOperator

from discrim.core.moments.class_moments import ClassMoments
from discrim.tables.rows import BLOCK_BYTES, LabelledRows, block_slices
from discrim.tables.validation import require_representable

Array = NDArray[np.float64]
Product = Callable[[Array], Array]


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


@dataclass(frozen=True, eq=False)
class Spread:
    """Class weights w_c, extra rows u_r (√weight · vector) and pairs of rows, in the units of the moments."""

    class_weights: Array
    rows: Array
    pairs: Pairs | None = None

    @property
    def is_definite(self) -> bool:
        """True if A = ZᵀZ, i.e. no weight is negative."""
        return bool((self.class_weights >= 0).all())

    def matrix(self, moments: ClassMoments, points: LabelledRows | None = None) -> Array:
        """Return A as a d×d matrix, from the statistics (and from the rows if there are pairs)."""
        A = self.rows.T @ self.rows
        if self.class_weights.any():
            A += moments.scatter(self.class_weights)
        if self.pairs is not None and points is not None:
            for gaps, weights in self._pair_blocks(moments, points):
                gaps *= np.sqrt(weights)[:, None]
                A += gaps.T @ gaps
        return A

    def factor(self, moments: ClassMoments, points: LabelledRows) -> Array:
        """Return Z with A = ZᵀZ: one row per extra row, sample and pair."""
        return np.concatenate([rows * np.sqrt(weights)[:, None] for rows, weights in self._blocks(moments, points)])

    def operator(self, moments: ClassMoments, points: LabelledRows) -> LinearOperator:
        """Return A as the operator v ↦ Av."""
        d = points.shape[1]

        def dense_product(V: Array) -> Array:
            """Sum block by block around the class means, with the accuracy of the statistics."""
            V = V.reshape(d, -1)
            result = np.zeros_like(V, dtype=np.float64)
            for rows, weights in self._blocks(moments, points):
                result += rows.T @ (weights[:, None] * (rows @ V))
            return result

        product = self._sparse_product(moments, points) if points.is_sparse else dense_product
        return LinearOperator((d, d), matvec=lambda v: product(v).ravel(), matmat=product, dtype=np.float64)

    def _blocks(self, moments: ClassMoments, points: LabelledRows) -> Iterator[tuple[Array, Array]]:
        """Yield rows z and weights s with A = Σ s z zᵀ: the extra rows, then class-centred dense rows, then pairs."""
        yield self.rows, np.ones(len(self.rows))
        if self.class_weights.any():
            weights = self._row_weights(points)
            for part in block_slices(*points.shape):
                yield moments.residuals(points.X[part], points.codes[part]), weights[part]
        yield from self._pair_blocks(moments, points)

    def _pair_blocks(self, moments: ClassMoments, points: LabelledRows) -> Iterator[tuple[Array, Array]]:
        """Yield the differences of pairs and their weights; nothing if there are no pairs."""
        if (pairs := self.pairs) is not None:
            for part in block_slices(len(pairs.weight), points.shape[1]):
                gaps = points.X[pairs.left[part]] - points.X[pairs.right[part]]
                yield moments.scaled(gaps.toarray() if sp.issparse(gaps) else gaps), pairs.weight[part]

    def _sparse_product(self, moments: ClassMoments, points: LabelledRows) -> Product:
        """Return the product with centring as a correction by the class means, so a sparse X stays sparse."""
        # scaled first: a product with the cells may overflow
        X, means = moments.scaled(points.X), moments.scaled(moments.means)
        weights = self._row_weights(points)
        members = _membership(points)
        incidence = None if self.pairs is None else _incidence(self.pairs, points.shape[0])

        def product(V: Array) -> Array:
            V = V.reshape(points.shape[1], -1)
            projected = np.asarray(X @ V)
            result = self.rows.T @ (self.rows @ V)
            if self.class_weights.any():
                centred = weights[:, None] * (projected - (means @ V)[points.codes])
                result += np.asarray(X.T @ centred) - means.T @ (members @ centred)
            if incidence is not None:
                result += np.asarray(X.T @ (incidence.T @ (incidence @ projected)))
            return result

        return product

    def trace(self, moments: ClassMoments, points: LabelledRows) -> float:
        """Compute tr A without forming it; for sparse rows, near the origin, the means' part is subtracted."""
        if not points.is_sparse:
            return float(sum(weights @ _squared_norms(rows) for rows, weights in self._blocks(moments, points)))
        total = float(np.vdot(self.rows, self.rows))
        if self.class_weights.any():
            mean_part = self.class_weights * moments.weights @ _squared_norms(moments.scaled(moments.means))
            total += float(self._row_weights(points) @ _squared_norms(moments.scaled(points.X)) - mean_part)
        if self.pairs is not None:
            differences = _incidence(self.pairs, points.shape[0]) @ moments.scaled(points.X)
            total += float(_squared_norms(differences).sum())
        return total

    def _row_weights(self, points: LabelledRows) -> Array:
        weights = self.class_weights[points.codes]
        return weights if points.weights is None else weights * points.weights


def total_spread(moments: ClassMoments) -> Spread:
    """Return S_t, which PCA maximises, also from class statistics."""
    rows = moments.between_rows() if moments.is_labelled else np.empty((0, moments.n_features))
    return Spread(np.ones(len(moments.weights)), rows)


def _membership(points: LabelledRows) -> sp.csr_array:
    """Return the C×n indicator matrix: entry (c, i) is 1 if row i belongs to class c."""
    n = points.shape[0]
    return sp.csr_array((np.ones(n), (points.codes, np.arange(n))), shape=(points.n_classes, n))


def _incidence(pairs: Pairs, n_rows: int) -> sp.csr_array:
    """Return the matrix with one row √v (e_i − e_j) per pair."""
    m = len(pairs.weight)
    values = np.sqrt(pairs.weight)
    where = np.tile(np.arange(m), 2), np.concatenate([pairs.left, pairs.right])
    return sp.csr_array((np.concatenate([values, -values]), where), shape=(m, n_rows))


def _squared_norms(X: Any) -> Array:
    if sp.issparse(X):
        return np.asarray(X.multiply(X).sum(axis=1), dtype=np.float64).ravel()
    return np.einsum("ij,ij->i", X, X, dtype=np.float64)


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
