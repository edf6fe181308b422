"""Matrix decompositions with fallbacks, which succeed for all finite numbers.

    A = VΛVᵀ (symmetric) ,    A = UΣVᵀ ,    A = LLᵀ (positive definite) ,    A⁺

LAPACK's fastest routines do not converge for some matrices, mostly for those whose entries range over hundreds of
powers of ten. Each function tries divide and conquer, then QR iterations, then Jacobi rotations, which cannot fail.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import scipy.linalg as la
from numpy.typing import NDArray
from scipy.sparse.linalg import ArpackError, LinearOperator, eigsh

Array = NDArray[np.float64]
EPS = float(np.finfo(np.float64).eps)
SWEEPS = 60  # maximum number of Jacobi sweeps; a dozen is usual
RESTARTS = 300
EXTRA = 10  # vectors iterated in addition to those requested
POWERS = 4


def eigh(A: Array) -> tuple[Array, Array]:
    """Return the eigenvalues of a symmetric matrix, ascending, and orthonormal eigenvectors as columns."""
    found = _try_lapack(la.eigh, A, driver="evd")
    return _eigh_fallback(A) if found is None else found


def largest_eigenpairs(A: Array, wanted: int) -> tuple[Array, Array]:
    """Return the last pairs of `eigh`. If LAPACK's routine for a subset returns too few, compute all."""
    size = len(A)
    found = _try_lapack(la.eigh, A, subset_by_index=[size - wanted, size - 1], driver="evr")
    if found is None or len(found[0]) < wanted:
        values, vectors = eigh(A)
        return values[-wanted:], vectors[:, -wanted:]
    return found


def svd(A: Array) -> tuple[Array, Array, Array]:
    """Return U, the singular values (descending) and Vᵀ, of economic size."""
    found = _try_lapack(la.svd, A, full_matrices=False, lapack_driver="gesdd")
    return _svd_fallback(A) if found is None else found


def pinv(A: Array) -> Array:
    """Return A⁺. Singular values of the size of rounding errors count as 0."""
    left, singular, right = svd(A)
    kept = singular > max(A.shape) * EPS * singular.max(initial=0.0)
    return (right[kept].T / singular[kept]) @ left[:, kept].T


def cholesky(A: Array) -> Array:
    """Return L of a positive definite matrix or stack. Eigenvalues below rounding error are raised to it."""
    try:
        return np.asarray(np.linalg.cholesky(A), dtype=np.float64)
    except la.LinAlgError:
        pass
    if A.ndim > 2:
        return np.stack([cholesky(one) for one in A])
    values, vectors = eigh(A)
    raised = np.maximum(values, len(A) * EPS * np.abs(values).max(initial=0.0))
    triangle = la.qr((vectors * np.sqrt(raised)).T, mode="r")[0].T
    return triangle * np.where(np.diag(triangle) < 0, -1.0, 1.0)


def solve(A: Array, B: Array) -> Array:
    """Return A⁻¹B for a pair of matrices or stacks. If A is singular, return the minimum-norm solution."""
    try:
        return np.asarray(np.linalg.solve(A, B), dtype=np.float64)
    except la.LinAlgError:
        if A.ndim > 2:
            return np.stack([solve(one, of_it) for one, of_it in zip(A, B, strict=True)])
        return pinv(A) @ B


def largest_eigenpairs_by_products(A: LinearOperator, wanted: int, start: Array) -> tuple[Array, Array]:
    """Return the result of `largest_eigenpairs` by Lanczos iterations, which use only products with A."""
    try:
        values, vectors = eigsh(A, k=wanted, which="LA", v0=start, tol=0)
    except ArpackError:
        return _krylov_eigenpairs(A, wanted, start)
    order = np.argsort(values)
    return values[order], vectors[:, order]


def _try_lapack(routine: Callable[..., Any], A: Array, **options: Any) -> Any:
    """Return the result of a LAPACK routine, or None if it fails or the result is not finite."""
    try:
        found = routine(A, check_finite=False, **options)
    except ValueError:  # includes LinAlgError
        return None
    for part in found:
        if not np.isfinite(part).all():
            return None
    return found


def _eigh_fallback(A: Array) -> tuple[Array, Array]:
    """Compute `eigh` by QR iterations without negligible entries; if that fails, by rotations of a definite matrix.

    A + cI has the same eigenvectors and, with c twice the norm of A, no small eigenvalue.
    """
    A, exponent = _scaled(A)
    A = np.tril(A) + np.tril(A, -1).T
    found = _try_lapack(la.eigh, np.where(np.abs(A) < EPS**2, 0.0, A), driver="ev")
    if found is None:
        vectors = _jacobi_svd(A + 2 * la.norm(A) * np.eye(len(A)))[2].T
        values = np.einsum("ij,ij->j", vectors, A @ vectors)
        order = np.argsort(values)
        found = values[order], vectors[:, order]
    return np.ldexp(found[0], exponent), found[1]


def _svd_fallback(A: Array) -> tuple[Array, Array, Array]:
    """Compute `svd` by QR iterations; if that fails, by rotations of the shorter side."""
    A, exponent = _scaled(A)
    found = _try_lapack(la.svd, A, full_matrices=False, lapack_driver="gesvd")
    if found is None and A.shape[0] < A.shape[1]:
        right, singular, left = _jacobi_svd(A.T)
        found = left.T, singular, right.T
    left, singular, right = _jacobi_svd(A) if found is None else found
    return left, np.ldexp(singular, exponent), right


def _scaled(A: Array) -> tuple[Array, int]:
    """Return A·2⁻ᵉ, whose largest entry is between 1/2 and 1, and e."""
    largest = float(np.abs(A).max(initial=0.0))
    if not np.isfinite(largest):
        raise ValueError(
            "Values must be small enough that their squares and products do not overflow. Scale the columns to similar "
            "units, for example with StandardScaler."
        )
    exponent = int(np.frexp(largest)[1])
    return np.ldexp(np.asarray(A, dtype=np.float64), -exponent), exponent


def _jacobi_svd(A: Array) -> tuple[Array, Array, Array]:
    """Compute `svd` of at least as many rows as columns: rotate pairs until all are orthogonal (Hestenes 1958)."""
    Q, R = la.qr(A, mode="economic")
    both = np.column_stack([R.T, np.eye(len(R))])  # the columns of R, then those of V: both get the same rotations
    for _ in range(SWEEPS):
        if not sum([_rotate_pairs(both, *pairs) for pairs in _disjoint_pairs(len(R))]):
            break
    columns, V = np.hsplit(both, 2)
    order = np.argsort(-la.norm(columns, axis=1), kind="stable")
    U, R = la.qr(columns[order].T)  # gives the lengths of the orthogonal columns, and a vector for each of length 0
    signs = np.where(np.diag(R) < 0, -1.0, 1.0)
    return Q @ (U * signs), np.abs(np.diag(R)), V[order]


def _rotate_pairs(both: Array, left: NDArray[np.intp], right: NDArray[np.intp]) -> bool:
    """Rotate pairs of rows in place until their first halves are orthogonal; return True if any was not."""
    size = len(both)
    a, b = both[left], both[right]
    of_a, of_b, product = (np.vecdot(x[:, :size], y[:, :size]) for x, y in ((a, a), (b, b), (a, b)))
    oblique = np.abs(product) > size * EPS * np.sqrt(of_a) * np.sqrt(of_b)
    apart, twice = of_b - of_a, 2 * product
    length = np.where(oblique, np.abs(apart) + np.hypot(apart, twice), 1.0)
    tangent = np.where(oblique, twice * np.copysign(1.0, apart) / length, 0.0)
    cosine = (1 / np.hypot(1.0, tangent))[:, None]
    sine = cosine * tangent[:, None]
    both[left], both[right] = cosine * a - sine * b, sine * a + cosine * b
    return bool(oblique.any())


def _disjoint_pairs(n: int) -> Iterator[tuple[NDArray[np.intp], NDArray[np.intp]]]:
    """Yield every pair of n columns once, in rounds in which each column occurs once (round-robin)."""
    around = np.arange(n + n % 2)
    half = len(around) // 2
    for _ in range(len(around) - 1):
        left, right = around[:half], around[half:][::-1]
        both = (left < n) & (right < n)
        yield left[both], right[both]
        around = np.concatenate([around[:1], np.roll(around[1:], 1)])


def _krylov_eigenpairs(A: LinearOperator, wanted: int, start: Array) -> tuple[Array, Array]:
    """Return eigenpairs from the span of X, AX, A²X, …, restarted from the best vectors until convergence."""
    size, kept = len(start), wanted + EXTRA
    if size <= kept * (POWERS + 1):
        return largest_eigenpairs(A.matmat(np.eye(size)), wanted)
    X = np.column_stack([start, np.random.default_rng(0).standard_normal((size, kept - 1))])
    before = np.inf
    for _ in range(RESTARTS):
        powers = [la.qr(X, mode="economic")[0]]
        for _ in range(POWERS):
            powers.append(la.qr(A.matmat(powers[-1]), mode="economic")[0])
        basis = la.qr(np.column_stack(powers), mode="economic")[0]
        values, vectors = eigh(basis.T @ A.matmat(basis))
        X = basis @ vectors[:, -kept:]
        wrong = la.norm(A.matmat(X[:, -wanted:]) - X[:, -wanted:] * values[-wanted:])
        rounding = EPS * np.sqrt(size) * np.abs(values).max()
        if wrong <= 10 * rounding or before / 2 < wrong <= 1000 * rounding:  # the error no longer decreases
            break
        before = wrong
    return values[-wanted:], X[:, -wanted:]
