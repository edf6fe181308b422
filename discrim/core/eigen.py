"""Leading directions of a spread, the number of them to keep, and linear independence."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import scipy.linalg as la
from numpy.typing import NDArray
from scipy.sparse.linalg import LinearOperator
from scipy.special import gammaln

from discrim.core.moments.class_moments import rounding_share
from discrim.decompositions import eigh, largest_eigenpairs, largest_eigenpairs_by_products, svd
from discrim.warn_once import warn

Array = NDArray[np.float64]
SPARE = 10  # additional vectors in a block
SETTLED = 1e-5  # of the sum of the wanted eigenvalues: a product that adds less is the last
SMALL = 64  # up to this size the full eigendecomposition is as fast as a partial one


@dataclass(frozen=True, eq=False)
class Spectrum:
    """Eigenpairs, largest first: directions as rows, eigenvalues, numerical rank, and a description of the computation.

    `total` is the sum of all eigenvalues, or of the positive ones if A is indefinite.
    """

    directions: Array
    values: Array
    total: float
    rank: int
    how: str


def spectrum_of_matrix(A: Array, wanted: int | None, *, precision: float, definite: bool = True) -> Spectrum:
    """Return all eigenpairs (wanted=None), or the leading ones, and the rank."""
    size = len(A)
    total = float(np.trace(A))
    if wanted is not None and definite and size > SMALL and wanted < size // 3:
        values, vectors = largest_eigenpairs(A, wanted)
        rounding = rounding_share(size, precision) * values[-1]
        rank = int(la.lapack.dpstrf(A, tol=rounding)[2]) if np.diag(A).max(initial=0.0) > 0 else 0
        how = f"the first {wanted} eigenvectors of a {size}×{size} matrix"
        return Spectrum(vectors.T[::-1], values[::-1], total, rank, how)
    values, vectors = eigh(A)
    values, directions = values[::-1], vectors.T[::-1]
    total = total if definite else float(values[values > 0].sum())
    touched = np.abs(values) > rounding_share(size, precision) * np.abs(values).max(initial=0.0)
    rank = int(touched.sum())
    if not definite:  # the null space of A lies between the signs and is no direction of the rows
        values, directions = values[touched], directions[touched]
    kept = size if wanted is None else wanted
    return Spectrum(directions[:kept], values[:kept], total, rank, f"eigenvectors of a {size}×{size} matrix")


def spectrum_of_factor(Z: Array, wanted: int | None, *, precision: float) -> Spectrum:
    """Return the spectrum of A = ZᵀZ without squaring, so small directions keep their digits."""
    _, singular, directions = svd(Z)
    largest = singular.max(initial=0.0)
    rank = int((singular > max(Z.shape) * precision * largest).sum())
    kept = len(singular) if wanted is None else wanted
    how = f"singular vectors of a {Z.shape[0]}×{Z.shape[1]} factor"
    return Spectrum(directions[:kept], singular[:kept] ** 2, float(singular @ singular), rank, how)


def spectrum_of_operator(A: LinearOperator, wanted: int, total: float | None) -> Spectrum:
    """Return the leading eigenpairs by Lanczos iterations; the rank counts those found."""
    # a fixed start makes refits identical; in the range of A it has no component in the null space
    start = A @ np.random.default_rng(0).standard_normal(A.shape[0])
    if not start.any():
        return Spectrum(np.empty((0, A.shape[0])), np.empty(0), total or 0.0, 0, "a spread of zero")
    values, vectors = largest_eigenpairs_by_products(A, wanted, start / np.abs(start).max())
    values, directions = values[::-1], np.ascontiguousarray(vectors.T[::-1])
    touched = np.abs(values) > rounding_share(len(start), np.finfo(np.float64).eps) * np.abs(values).max(initial=0.0)
    if total is None:  # indefinite: the sum of the eigenvalues found, without the null space
        values, directions = values[touched], directions[touched]
        total = float(values[values > 0].sum())
    return Spectrum(directions, values, total, int(touched.sum()), f"{wanted} Lanczos vectors")


def spectrum_of_passes(product: Callable[[Array], Array], size: int, wanted: int, most: int) -> Spectrum:
    """Return the leading eigenpairs if products are expensive: block Krylov, each product with a block of vectors.

    There are at most `most` products; they stop once one adds almost nothing. `total` is the sum of those found.
    """
    width = min(wanted + SPARE, size)
    blocks = [_new_block([], np.random.default_rng(0).standard_normal((size, width)))]
    columns: list[Array] = []  # upper triangle of QᵀAQ
    kept = -np.inf
    for left in reversed(range(min(most, size // width))):
        image = product(blocks[-1])
        columns.append(np.concatenate([block.T @ image for block in blocks]))
        half = np.concatenate([np.pad(one, ((0, width * len(blocks) - len(one)), (0, 0))) for one in columns], axis=1)
        values, vectors = eigh(np.triu(half) + np.triu(half, 1).T)
        before, kept = kept, float(values[-wanted:].sum())
        if not left or kept - before <= SETTLED * abs(kept):
            break
        blocks.append(_new_block(blocks, image))
    leading = np.split(vectors[:, : -wanted - 1 : -1], len(blocks))
    directions = sum((block @ part for block, part in zip(blocks, leading, strict=True)), np.zeros((size, 1))).T
    values = values[: -wanted - 1 : -1]
    touched = np.abs(values) > rounding_share(size, np.finfo(np.float64).eps) * np.abs(values).max(initial=0.0)
    how = f"block Krylov of {len(columns)} passes over the parts"
    return Spectrum(np.ascontiguousarray(directions), values, float(values.sum()), int(touched.sum()), how)


def _new_block(blocks: list[Array], image: Array) -> Array:
    """Return an orthonormal basis of the part of an image outside the blocks; twice, because of rounding."""
    for _ in range(2):
        for block in blocks:
            image = image - block @ (block.T @ image)
        image = la.qr(image, mode="economic", check_finite=False)[0]
    return image


def with_fixed_signs(directions: Array) -> Array:
    """Return each row with the sign that makes its first largest loading (within 1e-6) positive."""
    return directions * fixed_signs(directions)[:, None]


def fixed_signs(directions: Array) -> Array:
    """Return 1 or −1 for each row: the sign that makes its first largest loading (within 1e-6) positive."""
    sizes = np.abs(directions)
    near = sizes >= (1 - 1e-6) * sizes.max(axis=1, keepdims=True, initial=0.0)
    first = np.argmax(near, axis=1)
    signs = np.sign(directions[np.arange(len(directions)), first])
    return np.where(signs == 0, 1.0, signs)


EPS = float(np.finfo(np.float64).eps)
TIE = 1e-10  # adjacent values closer than this, relatively, are tied


def kept_count(
    request: int | float | None,
    values: Array,
    total: float,
    rank: int,
    shape: tuple[int, int],
    ties_settled: bool = False,
) -> int:
    """Return the number of components: an int itself, the fewest values that reach a fraction, or the rank for None.

    The values are in descending order. An int above the number available returns that number, with a warning.
    """
    require_directions(rank, shape)
    available = min(rank, len(values))
    if request is None:
        return available
    if not isinstance(request, int):
        shares = np.cumsum(values[:rank]) / total  # later values may be negative, but a search needs increasing sums
        return min(int(np.searchsorted(shares, request * (1 - 1e-12))) + 1, rank)
    k = limit_count(request, available, shape)
    if not ties_settled and k < len(values) and abs(values[k - 1] - values[k]) <= TIE * abs(values[k - 1]):
        others = f"{k - 1} or {k + 1}" if k > 1 else "2"
        warn(
            f"Directions {k} and {k + 1} tie (values {values[k - 1]:.6g} and {values[k]:.6g}), so which one is kept is "
            f"arbitrary. Keep {others} components to avoid the choice.",
        )
    return k


def require_directions(rank: int, shape: tuple[int, int]) -> None:
    """Raise if the rows have no direction of variation."""
    if rank == 0:
        raise ValueError(
            f"X must hold at least two rows that differ; got n_samples={shape[0]} rows in {shape[1]} feature(s) that "
            "are all equal for this method, so there is no direction to find."
        )


def limit_count(request: int, available: int, shape: tuple[int, int]) -> int:
    """Return the requested number of components, or all available ones with a warning."""
    if request > available:
        warn(
            f"n_components={request} exceeds the {available} component(s) that this method finds in {shape[0]} samples "
            f"of {shape[1]} features; {available} are kept. Pass n_components ≤ {available}, or None for all.",
        )
    return min(request, available)


def discriminant_count(
    request: int | float | None,
    values: Array,
    rank: int,
    shape: tuple[int, int],
    ties_settled: bool = False,
) -> int:
    """Return the count as `kept_count` does, but all discriminants for None, and up to the rank for an int."""
    if isinstance(request, int) and request >= len(values):
        return limit_count(request, rank, shape)
    return kept_count(request, values, float(values.sum()), len(values), shape, ties_settled)


def default_count(request: int | float | None, n_classes: int, rank: int, shape: tuple[int, int]) -> int:
    """Return an int itself, else n_classes − 1, for methods without discriminants.

    (For a fraction, this is the number to choose from.)
    """
    require_directions(rank, shape)
    return limit_count(request, rank, shape) if isinstance(request, int) else min(n_classes - 1, rank)


def descending(values: Array) -> NDArray[np.intp]:
    """Return a descending order in which values that are equal up to rounding keep their order."""
    order = np.argsort(-values, kind="stable")
    drops = -np.diff(values[order], prepend=values[order[:1]])
    level = np.cumsum(drops > TIE * np.abs(values).max(initial=0.0))
    return order[np.lexsort((order, level))]


# ---------------------------------------------------------------------- most probable number of principal components
#
# log p(X | k) ≈ log p(U) − n/2 (Σ_{i≤k} ln λ_i + (d−k) ln v) + (m+k)/2 ln 2π − ½ ln|A| − k/2 ln n ,  m = dk − k(k+1)/2
#
# |A| = Π_{i≤k} Π_{j>i} n (λ_i − λ_j)(1/λ̂_j − 1/λ_i) ,  λ̂_j = λ_j up to k and v, the mean of the rest, beyond: the
# evidence of a Gaussian with equal noise beyond k directions (Minka 2000, equations 29 to 31)


def likeliest_count(values: Array, rank: int, n_rows: float) -> int:
    """Return the k with the largest evidence, given descending eigenvalues of which `rank` exceed rounding."""
    most = min(rank, len(values) - 1)
    if most < 1:
        return 1
    evidence = log_evidence(np.maximum(values, EPS * values[0]), n_rows)
    return int(np.argmax(evidence[:most])) + 1


def log_evidence(values: Array, n_rows: float) -> Array:
    """Compute the log evidence of k = 1, …, d−1 components in d² steps."""
    d, logs = len(values), np.log(values)
    k = np.arange(1, d)
    noise = (np.cumsum(values[::-1])[::-1][1:]) / (d - k)  # v
    frames = np.cumsum(gammaln((d - k + 1) / 2) - (d - k + 1) / 2 * np.log(np.pi)) - k * np.log(2)  # p(U)
    likelihood = -n_rows / 2 * (np.cumsum(logs)[:-1] + (d - k) * np.log(noise))
    free = d * k - k * (k + 1) / 2  # m
    with np.errstate(divide="ignore"):
        gaps = np.triu(_log(np.subtract.outer(values, values)), 1)
        among = np.cumsum((gaps - np.triu(np.add.outer(logs, logs), 1)).sum(axis=0))[:-1]  # i < j ≤ k
        to_noise = np.tril(_log(1 / noise[:, None] - 1 / values[:-1])).sum(axis=1)  # i ≤ k < j, for each of the d−k
    curvature = np.cumsum(gaps.sum(axis=1))[:-1] + among + (d - k) * to_noise + free * np.log(n_rows)
    return frames + likelihood + (free + k) / 2 * np.log(2 * np.pi) - curvature / 2 - k / 2 * np.log(n_rows)


def _log(differences: Array) -> Array:
    """Return the logarithm with differences of at least a rounding error, because a tie is not a certainty."""
    return np.log(np.maximum(differences, EPS))


DEPENDENT = 1e-8  # a unit vector's component outside a span is rounding below this length


def independent(first: Array, others: Array, most: int) -> tuple[NDArray[np.intp], Array]:
    """Return the positions of at most `most` others outside the preceding span, and the unit vectors that they add.

    first : orthonormal rows that precede all others
    """
    span, kept = first, list[int]()
    for place, direction in enumerate(others):
        if len(kept) == most:
            break
        unit = direction / np.linalg.norm(direction)
        left = unit - span.T @ (span @ unit)
        left -= span.T @ (span @ left)  # repeated to restore cancelled digits
        length = float(np.linalg.norm(left))
        if length > DEPENDENT:
            span = np.concatenate([span, left[None] / length])
            kept.append(place)
    return np.array(kept, dtype=np.intp), span[len(first) :]
