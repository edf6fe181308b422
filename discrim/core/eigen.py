"""The leading directions of a spread, by the shape it comes in.

A w = λ w,   λ_1 ≥ λ_2 ≥ … ,   WᵀW = I ,   the first loading near the largest in size is positive
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import scipy.linalg as la
from numpy.typing import NDArray
from scipy.sparse.linalg import LinearOperator

from discrim.core.moments.class_moments import rounding_share
from discrim.decompositions import eigh, largest_eigenpairs, largest_eigenpairs_by_products, svd

Array = NDArray[np.float64]
SPARE = 10  # vectors beyond those wanted, in a block
SETTLED = 1e-5  # of the sum of the wanted eigenvalues: a product that adds less is the last
SMALL = 64  # below, the full eigendecomposition is as fast as part of it


@dataclass(frozen=True, eq=False)
class Spectrum:
    """Eigenpairs, largest first: directions as rows, their eigenvalues, the numerical rank, and how they came.

    `total` is the sum of all eigenvalues, of the positive ones only where A is not definite.
    """

    directions: Array
    values: Array
    total: float
    rank: int
    how: str


def spectrum_of_matrix(A: Array, wanted: int | None, *, precision: float, definite: bool = True) -> Spectrum:
    """All eigenpairs (wanted=None), or the first few and the rank."""
    size = len(A)
    total = float(np.trace(A))
    if wanted is not None and definite and size > SMALL and wanted < size // 3:
        values, vectors = largest_eigenpairs(A, wanted)
        rank = _rank_by_cholesky(A, rounding_share(size, precision) * values[-1])
        how = f"the first {wanted} eigenvectors of a {size}×{size} matrix"
        return Spectrum(vectors.T[::-1], values[::-1], total, rank, how)
    values, vectors = eigh(A)
    values, directions = values[::-1], vectors.T[::-1]
    total = total if definite else float(values[values > 0].sum())
    touched = np.abs(values) > rounding_share(size, precision) * np.abs(values).max(initial=0.0)
    rank = int(touched.sum())
    if not definite:  # what A does not touch lies between the signs, and is no direction of the rows
        values, directions = values[touched], directions[touched]
    kept = size if wanted is None else wanted
    return Spectrum(directions[:kept], values[:kept], total, rank, f"eigenvectors of a {size}×{size} matrix")


def _rank_by_cholesky(A: Array, rounding: float) -> int:
    if np.diag(A).max(initial=0.0) <= 0:
        return 0
    return int(la.lapack.dpstrf(A, tol=rounding)[2])


def spectrum_of_factor(Z: Array, wanted: int | None, *, precision: float) -> Spectrum:
    """From A = ZᵀZ without squaring: small directions keep their digits."""
    _, singular, directions = svd(Z)
    largest = singular.max(initial=0.0)
    rank = int((singular > max(Z.shape) * precision * largest).sum())
    kept = len(singular) if wanted is None else wanted
    how = f"singular vectors of a {Z.shape[0]}×{Z.shape[1]} factor"
    return Spectrum(directions[:kept], singular[:kept] ** 2, float(singular @ singular), rank, how)


def spectrum_of_operator(A: LinearOperator, wanted: int, total: float | None) -> Spectrum:
    """The first few eigenpairs by Lanczos iterations; the rank counts those found."""
    # a fixed start, so that a refit gives the same digits; in the range of A, so that what A never touches stays 0
    start = A @ np.random.default_rng(0).standard_normal(A.shape[0])
    if not start.any():
        return Spectrum(np.empty((0, A.shape[0])), np.empty(0), total or 0.0, 0, "a spread of zero")
    values, vectors = largest_eigenpairs_by_products(A, wanted, start / np.abs(start).max())
    values, directions = values[::-1], np.ascontiguousarray(vectors.T[::-1])
    touched = np.abs(values) > rounding_share(len(start), np.finfo(np.float64).eps) * np.abs(values).max(initial=0.0)
    if total is None:  # not definite: the sum of those found, without what A does not touch
        values, directions = values[touched], directions[touched]
        total = float(values[values > 0].sum())
    return Spectrum(directions, values, total, int(touched.sum()), f"{wanted} Lanczos vectors")


def spectrum_of_passes(product: Callable[[Array], Array], size: int, wanted: int, most: int) -> Spectrum:
    """The first few eigenpairs where products are dear: block Krylov, each product with a block of vectors.

    At most so many products, and no more once one of them adds next to nothing; the next would add far less. The total
    is not known here.
    """
    width = min(wanted + SPARE, size)
    blocks = [_beside([], np.random.default_rng(0).standard_normal((size, width)))]
    columns: list[Array] = []  # of QᵀAQ, what is above and on its diagonal
    kept = -np.inf
    for left in reversed(range(min(most, size // width))):
        image = product(blocks[-1])
        columns.append(np.concatenate([block.T @ image for block in blocks]))
        half = np.concatenate([np.pad(one, ((0, width * len(blocks) - len(one)), (0, 0))) for one in columns], axis=1)
        values, vectors = eigh(np.triu(half) + np.triu(half, 1).T)
        before, kept = kept, float(values[-wanted:].sum())
        if not left or kept - before <= SETTLED * abs(kept):
            break
        blocks.append(_beside(blocks, image))
    leading = np.split(vectors[:, : -wanted - 1 : -1], len(blocks))
    directions = sum((block @ part for block, part in zip(blocks, leading, strict=True)), np.zeros((size, 1))).T
    values = values[: -wanted - 1 : -1]
    touched = np.abs(values) > rounding_share(size, np.finfo(np.float64).eps) * np.abs(values).max(initial=0.0)
    how = f"block Krylov of {len(columns)} passes over the parts"
    return Spectrum(np.ascontiguousarray(directions), values, float(values.sum()), int(touched.sum()), how)


def _beside(blocks: list[Array], image: Array) -> Array:
    """An orthonormal basis of what an image adds to the blocks; twice, as once is not enough for rounding."""
    for _ in range(2):
        for block in blocks:
            image = image - block @ (block.T @ image)
        image = la.qr(image, mode="economic", check_finite=False)[0]
    return image


def with_fixed_signs(directions: Array) -> Array:
    """Each row with its first loading within 1e-6 of the largest absolute one positive."""
    return directions * fixed_signs(directions)[:, None]


def fixed_signs(directions: Array) -> Array:
    """1 or −1 for each row: what makes its first loading within 1e-6 of the largest absolute one positive."""
    sizes = np.abs(directions)
    near = sizes >= (1 - 1e-6) * sizes.max(axis=1, keepdims=True, initial=0.0)
    first = np.argmax(near, axis=1)
    signs = np.sign(directions[np.arange(len(directions)), first])
    return np.where(signs == 0, 1.0, signs)
