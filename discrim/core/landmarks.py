"""Kernel features from landmarks: coordinates in which a linear method becomes a kernel method (Nyström).

    φ(x) = Λ^−½ Uᵀ k(L, x) ,    k(L, L) = U Λ Uᵀ ,    without eigenvalues below 1e-7 of the largest

up to a rotation, which does not affect the methods. Landmarks are distinct rows, drawn by their contents, so neither
the order nor the repetition of rows matters.
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
from discrim.core.row_hash import equal_rows
from discrim.decompositions import eigh
from discrim.tables.rows import LabelledRows, block_slices, dense_block
from discrim.threads import computed_once

Array = NDArray[np.float64]
Indices = NDArray[np.intp]
SMALLEST = 1e-7  # eigenvalues of k(L, L) below this share of the largest are left out
MIN_RELEVANCE = 0.02  # relative to the largest
GRADIENTS = ("rbf", "linear")  # kernels that can be differentiated
FARTHEST = 1e150  # coordinates are clipped to this, so their squares are finite


def content_priorities(X: Any, random_state: Any) -> Indices:
    """Return a random number per row that depends on its contents only: equal rows get the same number."""
    groups = equal_rows(X, np.zeros(X.shape[0], dtype=np.intp))
    seed = 0 if random_state is None else random_state
    return check_random_state(seed).permutation(len(groups.first))[groups.group]


def drawn_landmarks(priorities: Indices, rows: Indices, max_landmarks: int) -> Indices:
    """Return the numbers of at most `max_landmarks` distinct rows, those with the lowest priorities."""
    _, first = np.unique(priorities[rows], return_index=True)
    return rows[first[:max_landmarks]]


@dataclass(frozen=True, eq=False)
class LandmarkKernel:
    """Kernel k(x, l) for every landmark l: name, parameters, and factors on the columns (None: 1).

    For "rbf", gamma is in units of 1/unit², and "linear" is in units of unit², where unit = 2^exponent prevents
    overflow and underflow. Both subtract a point amid the landmarks.
    """

    landmarks: Any  # m×d, dense or CSR
    name: str
    params: dict[str, Any]
    scales: Array | None = None

    def __call__(self, X: Any) -> Array:
        """Compute k(x, l), n×m."""
        if self.name == "rbf":
            return self.from_squares(self.squares(X))
        if self.name == "linear":
            return safe_sparse_dot(self._rescaled(X), self.rescaled_landmarks.T, dense_output=True)
        with np.errstate(all="ignore"):
            seen = pairwise_kernels(
                *(table.astype(np.float64, copy=False) for table in (X, self.landmarks)), self.name, **self.params
            )
        if not np.isfinite(seen).all():
            largest = float(np.abs(X.data if sp.issparse(X) else X).max(initial=0.0))
            raise ValueError(
                f"X must be smaller for kernel={self.name!r}, whose values exceed the largest float64; got numbers up "
                f"to {largest:.1e}. Scale the columns first, e.g. with StandardScaler, or pass kernel='rbf', which "
                "accepts any numbers."
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
            return np.asarray(safe_sparse_dot(weights, self.rescaled_landmarks, dense_output=True)) * self.factors
        weights = weights * self(X)
        rows = self._rescaled(X)
        own = (
            rows.multiply(weights.sum(axis=1)[:, None]).toarray()
            if sp.issparse(rows)
            else rows * weights.sum(axis=1)[:, None]
        )
        towards = safe_sparse_dot(weights, self.rescaled_landmarks, dense_output=True) - own
        return np.asarray(2 * self.params["gamma"] * towards * self.factors)

    def from_squares(self, squares: Array) -> Array:
        """Compute the "rbf" kernel from squared distances in units of unit²."""
        with np.errstate(over="ignore"):
            return np.exp(-self.params["gamma"] * squares)

    def squares(self, X: Any) -> Array:
        """Compute ‖x − l‖² in units of unit², n×m."""
        return euclidean_distances(self._rescaled(X), self.rescaled_landmarks, squared=True)

    @property
    def gamma(self) -> float:
        """Parameter of "rbf" in units of the columns (inf if that overflows)."""
        with np.errstate(over="ignore", under="ignore"):
            return float(np.ldexp(self.params["gamma"], -2 * self.exponent))

    def with_gamma_in_columns(self, gamma: float) -> LandmarkKernel:
        with np.errstate(over="ignore"):
            return self.with_gamma(min(float(np.ldexp(gamma, 2 * self.exponent)), np.finfo(np.float64).max))

    @computed_once
    def landmark_squares(self) -> Array:
        return euclidean_distances(self.rescaled_landmarks, squared=True)

    @computed_once
    def median_square(self) -> float:
        """Return the median squared distance between two landmarks, in units of unit²; 1 if there is only one."""
        pairs = squareform(self.landmark_squares, checks=False)
        median = float(np.median(pairs)) if len(pairs) else 1.0
        return median if median > 0 else float(pairs.mean()) or 1.0

    def with_gamma(self, gamma: float) -> LandmarkKernel:
        return replace(self, name="rbf", params={"gamma": gamma})

    @computed_once
    def rescaled_landmarks(self) -> Any:
        return self._rescaled(self.landmarks)

    @computed_once
    def origin(self) -> Array | float:
        """Return a point amid the landmarks, robust to outliers, so distances far from 0 keep their digits."""
        if sp.issparse(self.landmarks):
            return 0.0
        return np.median(self.landmarks.astype(np.float64) / 2, axis=0) * 2  # halved to avoid overflow

    @computed_once
    def exponent(self) -> int:
        """Return the exponent of the unit: about the largest distance of a landmark's column from the origin."""
        sparse = sp.issparse(self.landmarks)
        spread = self.landmarks.data if sparse else np.subtract(self.landmarks, self.origin, dtype=np.float64)
        return int(np.frexp(np.abs(spread).max(initial=0.0))[1])

    @property
    def factors(self) -> Array:
        """Factor from each column's units to the kernel's units."""
        return np.ldexp(np.ones(self.landmarks.shape[1]) if self.scales is None else self.scales, -self.exponent)

    def _rescaled(self, X: Any) -> Any:
        """Return rows minus the origin in units of 2^exponent, with scaled columns."""
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
            rescaled = np.ldexp(np.subtract(X, self.origin, dtype=np.float64), -self.exponent)
        return rescaled.clip(-FARTHEST, FARTHEST) * scales


@dataclass(frozen=True, eq=False)
class FeatureSpace:
    """Kernel features φ(x) = Fᵀk(L, x) with F = U Λ^−½; if all eigenvalues are kept, F is the inverse Cholesky factor.

    The two differ only by a rotation.
    """

    kernel: LandmarkKernel
    factor: Array
    is_triangular: bool

    @classmethod
    def of(cls, kernel: LandmarkKernel, gram: Array) -> FeatureSpace:
        """Build from k(L, L)."""
        lowered = gram.copy()
        # a bound on the largest eigenvalue
        lowered[np.diag_indices(len(gram))] -= SMALLEST * np.abs(gram).sum(axis=1).max()
        if la.lapack.dpotrf(lowered.T, overwrite_a=1)[1] == 0:  # then all eigenvalues are kept
            return cls(kernel, la.lapack.dtrtri(la.lapack.dpotrf(gram.T)[0], overwrite_c=1)[0], True)
        values, vectors = eigh(gram)
        kept = values > SMALLEST * values[-1]
        return cls(kernel, vectors[:, kept] / np.sqrt(values[kept]), False)

    def features(self, X: Any, squares: Array | None = None) -> Array:
        """Compute φ(x), n×r, from known squared distances to the landmarks if given."""
        seen = self.kernel(X) if squares is None else self.kernel.from_squares(squares)
        if not self.is_triangular:
            return seen @ self.factor
        return la.blas.dtrmm(1.0, self.factor, seen.T, trans_a=1, overwrite_b=1).T


@dataclass(frozen=True)
class FixedFeatures:
    """Features that every part of a table can compute identically, so their class moments add up.

    key : identifier of landmarks, kernel and scaler
    n_columns : number of columns of the rows
    space : omitted from statistics, which need only the identifier
    shift, scale : those of a preceding scaler; None without one
    """

    key: str
    n_columns: int
    space: FeatureSpace | None = field(default=None, compare=False, repr=False)
    shift: Array | None = field(default=None, compare=False, repr=False)
    scale: Array | None = field(default=None, compare=False, repr=False)

    @classmethod
    def of(cls, space: FeatureSpace, shift: Array | None = None, scale: Array | None = None) -> FixedFeatures:
        """Build the features of a space, with an identifier derived from their contents."""
        kernel, digest = space.kernel, hashlib.blake2b(digest_size=16)
        landmarks = sp.coo_array(kernel.landmarks)
        for values in (*landmarks.coords, landmarks.data, kernel.scales, shift, scale):
            digest.update(b"-" if values is None else np.ascontiguousarray(values).tobytes())
        digest.update(repr((kernel.name, sorted(kernel.params.items()), landmarks.shape)).encode())
        return cls(digest.hexdigest(), kernel.landmarks.shape[1], space, shift, scale)

    @property
    def bare(self) -> FixedFeatures:
        """Identifier without the arrays."""
        return FixedFeatures(self.key, self.n_columns)

    def scaled(self, X: Any) -> Any:
        """Return the rows after the preceding scaler."""
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
    """Compute how much each feature says about the classes, 1 for the most informative one.

    r_j = max(η²_j − (C−1)/n, 0.02 max η²) / its maximum, where η² = between / total scatter of the feature
    """
    moments = ClassMoments.from_rows(rows, keep="means")
    present = moments.weights > 0
    between = (moments.between_rows()[present] ** 2).sum(axis=0)
    total = np.zeros(rows.shape[1])
    for part in block_slices(*rows.shape):
        gap = moments.residuals(dense_block(rows.X, part), rows.codes[part])
        total += (gap**2).sum(axis=0) if rows.weights is None else rows.weights[part] @ gap**2
    total = between + total
    share = np.divide(between, total, out=np.zeros_like(total), where=total > 0)
    if not share.any():
        return np.ones(len(share))
    by_chance = (present.sum() - 1) / moments.total_weight
    kept = np.maximum(share - by_chance, MIN_RELEVANCE * share.max())
    return kept / kept.max()
