"""Kernels seen from landmarks: coordinates in which a linear method is a kernel method (Nyström).

    φ(x) = Λ^−½ Uᵀ k(L, x) ,    k(L, L) = U Λ Uᵀ ,    eigenvalues below 1e-7 of the largest left out

Up to a rotation, which no method behind it sees. Landmarks are distinct rows, drawn by their content: neither the order
of the rows nor how often one is listed plays a part.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import scipy.linalg as la
import scipy.sparse as sp
from numpy.typing import NDArray
from scipy.spatial.distance import squareform
from sklearn.metrics.pairwise import euclidean_distances, pairwise_kernels
from sklearn.utils import check_random_state
from sklearn.utils.extmath import safe_sparse_dot

from discrim.core.moments.class_moments import ClassMoments
from discrim.core.svm.identical_rows import equal_rows
from discrim.decompositions import eigh
from discrim.tables.rows import LabelledRows, block_slices
from discrim.threads import computed_once

Array = NDArray[np.float64]
Indices = NDArray[np.intp]
SMALLEST = 1e-7  # eigenvalues of k(L, L) below this share of the largest are left out
LEAST_RELEVANCE = 0.02  # of the largest: so much of a feature's square always counts
GRADIENTS = ("rbf", "linear")  # kernels that can be differentiated
FARTHEST = 1e150  # coordinates beyond are as far as these: their squares are finite


def content_priorities(X: Any, random_state: Any) -> Indices:
    """Return a number for each row, drawn at random by its content: equal rows have the same, in any order."""
    groups = equal_rows(X, np.zeros(X.shape[0], dtype=np.intp))
    seed = 0 if random_state is None else random_state
    return check_random_state(seed).permutation(len(groups.first))[groups.group]


def drawn_landmarks(priorities: Indices, rows: Indices, most: int) -> Indices:
    """Numbers of at most so many distinct ones of these rows, of the lowest priorities."""
    _, first = np.unique(priorities[rows], return_index=True)
    return rows[first[:most]]


@dataclass(frozen=True, eq=False)
class LandmarkKernel:
    """k(x, l) for every landmark l; a kernel's name and parameters, and factors on the columns (None: 1).

    For "rbf" the parameter gamma is in units of 1/unit², and "linear" is in units of unit², unit = 2^exponent: these
    neither overflow nor underflow. Both see the rows from a point amid the landmarks.
    """

    landmarks: Any  # m×d, dense or CSR
    name: str
    params: dict[str, Any]
    scales: Array | None = None

    def __call__(self, X: Any) -> Array:
        """k(x, l), n×m."""
        if self.name == "rbf":
            return self.of_squares(self.squares(X))
        if self.name == "linear":
            return safe_sparse_dot(self._placed(X), self.placed_landmarks.T, dense_output=True)
        with np.errstate(all="ignore"):
            seen = pairwise_kernels(
                *(table.astype(np.float64, copy=False) for table in (X, self.landmarks)), self.name, **self.params
            )
        if not np.isfinite(seen).all():
            largest = float(np.abs(X.data if sp.issparse(X) else X).max(initial=0.0))
            raise ValueError(
                f"X must be smaller for kernel={self.name!r}, which lies beyond the largest float64; got numbers up to "
                f"{largest:.1e}. Scale the columns first, e.g. with StandardScaler, or pass kernel='rbf', for which no "
                "number is too large."
            )
        return seen

    def gradients(self, X: Any, weights: Array) -> Array:
        """Compute Σ_l w_nl ∂k(x_n, l)/∂x for every row (n×d), where `weights` is n×m."""
        if self.name not in GRADIENTS:
            raise ValueError(
                f"kernel must be 'linear' or 'rbf' for gradients; got {self.name!r}. Fit with kernel='auto', or use "
                "sklearn.inspection.permutation_importance."
            )
        if self.name == "linear":
            return np.asarray(safe_sparse_dot(weights, self.placed_landmarks, dense_output=True)) * self.factors
        weights = weights * self(X)
        rows = self._placed(X)
        own = (
            rows.multiply(weights.sum(axis=1)[:, None]).toarray()
            if sp.issparse(rows)
            else rows * weights.sum(axis=1)[:, None]
        )
        towards = safe_sparse_dot(weights, self.placed_landmarks, dense_output=True) - own
        return np.asarray(2 * self.params["gamma"] * towards * self.factors)

    def of_squares(self, squares: Array) -> Array:
        """Of "rbf", of squared distances in units of unit²."""
        with np.errstate(over="ignore"):
            return np.exp(-self.params["gamma"] * squares)

    def squares(self, X: Any) -> Array:
        """‖x − l‖² in units of unit², n×m."""
        return euclidean_distances(self._placed(X), self.placed_landmarks, squared=True)

    @property
    def gamma(self) -> float:
        """Of "rbf", in units of the columns (which may lie beyond the largest number: inf)."""
        with np.errstate(over="ignore", under="ignore"):
            return float(np.ldexp(self.params["gamma"], -2 * self.exponent))

    def with_gamma_in_columns(self, gamma: float) -> LandmarkKernel:
        with np.errstate(over="ignore"):
            return self.with_gamma(min(float(np.ldexp(gamma, 2 * self.exponent)), np.finfo(np.float64).max))

    @computed_once
    def landmark_squares(self) -> Array:
        return euclidean_distances(self.placed_landmarks, squared=True)

    @computed_once
    def median_square(self) -> float:
        """Return the median squared distance between two landmarks, in units of unit²; 1 if there is only one."""
        pairs = squareform(self.landmark_squares, checks=False)
        median = float(np.median(pairs)) if len(pairs) else 1.0
        return median if median > 0 else float(pairs.mean()) or 1.0

    def with_gamma(self, gamma: float) -> LandmarkKernel:
        return replace(self, name="rbf", params={"gamma": gamma})

    @computed_once
    def placed_landmarks(self) -> Any:
        return self._placed(self.landmarks)

    @computed_once
    def origin(self) -> Array | float:
        """Return a point amid the landmarks, so that distances far from 0 keep their digits; robust to one far row."""
        if sp.issparse(self.landmarks):
            return 0.0
        return np.median(self.landmarks.astype(np.float64) / 2, axis=0) * 2  # of two of the largest numbers, too

    @computed_once
    def exponent(self) -> int:
        """Of the unit: about the farthest that a landmark's column is from the origin."""
        sparse = sp.issparse(self.landmarks)
        spread = self.landmarks.data if sparse else np.subtract(self.landmarks, self.origin, dtype=np.float64)
        return int(np.frexp(np.abs(spread).max(initial=0.0))[1])

    @property
    def factors(self) -> Array:
        """What a unit of each column is in the kernel's own units."""
        return np.ldexp(np.ones(self.landmarks.shape[1]) if self.scales is None else self.scales, -self.exponent)

    def _placed(self, X: Any) -> Any:
        """Rows around the origin in units of 2^exponent, their columns scaled."""
        X = X.tocsr() if sp.issparse(X) else X
        if sp.issparse(X) and not sp.issparse(self.landmarks):
            X = X.toarray()
        elif not sp.issparse(X) and sp.issparse(self.landmarks):
            X = sp.csr_array(X)
        scales = np.ones(X.shape[1]) if self.scales is None else self.scales
        if sp.issparse(X):
            values = np.ldexp(X.data.astype(np.float64), -self.exponent) * scales[X.indices]
            return sp.csr_array((values.clip(-FARTHEST, FARTHEST), X.indices, X.indptr), shape=X.shape)
        with np.errstate(over="ignore"):
            placed = np.ldexp(np.subtract(X, self.origin, dtype=np.float64), -self.exponent)
        return placed.clip(-FARTHEST, FARTHEST) * scales


@dataclass(frozen=True, eq=False)
class FeatureSpace:
    """Rows in the features of a kernel, φ(x) = Fᵀk(L, x): F = U Λ^−½, or where no eigenvalue is left out the inverse of
    the Cholesky triangle, which is the same up to a rotation."""

    kernel: LandmarkKernel
    factor: Array
    is_triangular: bool

    @classmethod
    def of(cls, kernel: LandmarkKernel, gram: Array) -> FeatureSpace:
        """From k(L, L)."""
        lowered = gram.copy()
        lowered[np.diag_indices(len(gram))] -= SMALLEST * np.abs(gram).sum(axis=1).max()  # above the largest eigenvalue
        if la.lapack.dpotrf(lowered.T, overwrite_a=1)[1] == 0:  # so that none is left out
            return cls(kernel, la.lapack.dtrtri(la.lapack.dpotrf(gram.T)[0], overwrite_c=1)[0], True)
        values, vectors = eigh(gram)
        kept = values > SMALLEST * values[-1]
        return cls(kernel, vectors[:, kept] / np.sqrt(values[kept]), False)

    def features(self, X: Any, squares: Array | None = None) -> Array:
        """φ(x), n×r; squared distances to the landmarks where they are known."""
        seen = self.kernel(X) if squares is None else self.kernel.of_squares(squares)
        if not self.is_triangular:
            return seen @ self.factor
        return la.blas.dtrmm(1.0, self.factor, seen.T, trans_a=1, overwrite_b=1).T


@dataclass(frozen=True)
class FixedFeatures:
    """Features of rows that every part of a table can compute alike, so that their class moments add up.

    key : identifies landmarks, kernel and scaler; n_columns : of the rows
    space : left out of statistics, which only need to know which features they are of
    shift, scale : of a scaler in front, None without one
    """

    key: str
    n_columns: int
    space: FeatureSpace | None = field(default=None, compare=False, repr=False)
    shift: Array | None = field(default=None, compare=False, repr=False)
    scale: Array | None = field(default=None, compare=False, repr=False)

    @classmethod
    def of(cls, space: FeatureSpace, shift: Array | None = None, scale: Array | None = None) -> FixedFeatures:
        """Name the features of a space."""
        kernel, digest = space.kernel, hashlib.blake2b(digest_size=16)
        landmarks = sp.coo_array(kernel.landmarks)
        for values in (*landmarks.coords, landmarks.data, kernel.scales, shift, scale):
            digest.update(b"-" if values is None else np.ascontiguousarray(values).tobytes())
        digest.update(repr((kernel.name, sorted(kernel.params.items()), landmarks.shape)).encode())
        return cls(digest.hexdigest(), kernel.landmarks.shape[1], space, shift, scale)

    @property
    def bare(self) -> FixedFeatures:
        """The name without the arrays."""
        return FixedFeatures(self.key, self.n_columns)

    def scaled(self, X: Any) -> Any:
        """Return rows as the scaler in front gives them."""
        if self.shift is None or self.scale is None:
            return X
        X = X.toarray() if sp.issparse(X) and self.shift.any() else X
        return sp.csr_array(X / self.scale) if sp.issparse(X) else (X - self.shift) / self.scale

    def __call__(self, X: Any) -> Array:
        """Compute φ(x), n×r."""
        assert self.space is not None
        return self.space.features(self.scaled(X))

    def blocks(self, rows: LabelledRows) -> Iterator[LabelledRows]:
        """Yield the rows in these features, in blocks that fit into memory; at least one, which may be empty."""
        assert self.space is not None
        if rows.shape[0] == 0:
            yield replace(rows, X=np.empty((0, self.space.factor.shape[1])))
        for part in block_slices(rows.shape[0], len(self.space.factor)):
            weights = None if rows.weights is None else rows.weights[part]
            yield LabelledRows(self(rows.X[part]), rows.codes[part], rows.classes, weights)


def relevance(rows: LabelledRows) -> Array:
    """How much each feature tells of the classes, 1 for the most telling one.

    r_j = max(η²_j − (C−1)/n, 0.02 max η²) / its maximum, η² = between / total scatter of the feature
    """
    moments = ClassMoments.of_rows(rows, keep="means")
    present = moments.weights > 0
    between = (moments.between_rows()[present] ** 2).sum(axis=0)
    total = between + _within_squares(rows, moments)
    share = np.divide(between, total, out=np.zeros_like(total), where=total > 0)
    if not share.any():
        return np.ones(len(share))
    by_chance = (present.sum() - 1) / moments.total_weight
    kept = np.maximum(share - by_chance, LEAST_RELEVANCE * share.max())
    return kept / kept.max()


def _within_squares(rows: LabelledRows, moments: ClassMoments) -> Array:
    """Σ_i w_i (x_ij − μ_{y_i j})² of every feature, in the moments' units squared."""
    means = moments.pilots + moments.remainders
    total = np.zeros(rows.shape[1])
    for part in block_slices(*rows.shape):
        block = rows.X[part].toarray() if rows.is_sparse else rows.X[part]
        gap = np.ldexp(block.astype(np.float64), -moments.exponent) - means[rows.codes[part]]
        total += (gap**2).sum(axis=0) if rows.weights is None else rows.weights[part] @ gap**2
    return total
