"""How many directions to keep, from what was asked for and what there is."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.special import gammaln

from discrim.tables.fit_messages import refuse_count, refuse_equal_rows, warn_of_tie

Array = NDArray[np.float64]
EPS = float(np.finfo(np.float64).eps)
TIE = 1e-10  # neighbouring values closer than this share have no order of their own


def kept_count(
    request: int | float | None,
    values: Array,
    total: float,
    rank: int,
    shape: tuple[int, int],
    ties_settled: bool = False,
) -> int:
    """An int as it is, a fraction as the fewest values (descending) that reach it, None as the rank."""
    if rank == 0:
        refuse_equal_rows(*shape)
    if request is None:
        return min(rank, len(values))
    if isinstance(request, int):
        if request > min(rank, len(values)):
            refuse_count(request, min(rank, len(values)), *shape)
        if not ties_settled:
            _look_for_tie(request, values)
        return request
    shares = np.cumsum(values[:rank]) / total  # what lies beyond may be negative, and sums must rise to be searched
    return min(int(np.searchsorted(shares, request * (1 - 1e-12))) + 1, rank)


def require_rank(request: int | float | None, rank: int, shape: tuple[int, int]) -> None:
    """Raise where rows show no direction at all, or an int asks for more than there are."""
    if rank == 0:
        refuse_equal_rows(*shape)
    if isinstance(request, int) and request > rank:
        refuse_count(request, rank, *shape)


def discriminant_count(
    request: int | float | None,
    values: Array,
    rank: int,
    shape: tuple[int, int],
    ties_settled: bool = False,
) -> int:
    """Like `kept_count`, but None means all discriminants, and an int may go on past them, up to the rank."""
    if isinstance(request, int) and request >= len(values):
        if request > rank:
            refuse_count(request, rank, *shape)
        return request
    return kept_count(request, values, float(values.sum()), len(values), shape, ties_settled)


def default_count(request: int | float | None, n_classes: int, rank: int, shape: tuple[int, int]) -> int:
    """Of methods without discriminants of their own: an int as it is, else as many as labels have contrasts, C − 1.

    (Of a fraction, that is how many there are to choose from.)
    """
    require_rank(request, rank, shape)
    return request if isinstance(request, int) else min(n_classes - 1, rank)


def _look_for_tie(k: int, values: Array) -> None:
    if k < len(values) and abs(values[k - 1] - values[k]) <= TIE * abs(values[k - 1]):
        warn_of_tie(k, float(values[k - 1]), float(values[k]))


def descending(values: Array) -> NDArray[np.intp]:
    """An order from large to small in which values that are equal but for rounding of the largest stay as they came."""
    order = np.argsort(-values, kind="stable")
    drops = -np.diff(values[order], prepend=values[order[:1]])
    level = np.cumsum(drops > TIE * np.abs(values).max(initial=0.0))
    return order[np.lexsort((order, level))]


# ---------------------------------------------------------------------- the likeliest number of principal components
#
# log p(X | k) ≈ log p(U) − n/2 (Σ_{i≤k} ln λ_i + (d−k) ln v) + (m+k)/2 ln 2π − ½ ln|A| − k/2 ln n ,  m = dk − k(k+1)/2
#
# |A| = Π_{i≤k} Π_{j>i} n (λ_i − λ_j)(1/λ̂_j − 1/λ_i) ,  λ̂_j = λ_j up to k and v, the mean of the rest, beyond: the
# evidence of a Gaussian with equal noise beyond k directions (Minka 2000, equations 29 to 31)


def likeliest_count(values: Array, rank: int, n_rows: float) -> int:
    """The k of the largest evidence, fewer than there are eigenvalues (descending, `rank` of them not rounding)."""
    most = min(rank, len(values) - 1)
    if most < 1:
        return 1
    evidence = log_evidence(np.maximum(values, EPS * values[0]), n_rows)
    return int(np.argmax(evidence[:most])) + 1


def log_evidence(values: Array, n_rows: float) -> Array:
    """Of k = 1, …, d−1 components; every k in d² steps together."""
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
    """Equal eigenvalues differ by rounding at least: a tie is no certainty."""
    return np.log(np.maximum(differences, EPS))
