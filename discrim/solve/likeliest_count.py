"""How many principal components are likeliest: the evidence of a Gaussian with equal noise beyond k directions.

log p(X | k) ≈ log p(U) − n/2 (Σ_{i≤k} ln λ_i + (d−k) ln v) + (m+k)/2 ln 2π − ½ ln|A| − k/2 ln n ,    m = dk − k(k+1)/2

|A| = Π_{i≤k} Π_{j>i} n (λ_i − λ_j)(1/λ̂_j − 1/λ_i) ,  λ̂_j = λ_j up to k and v, the mean of the rest, beyond
(Minka 2000, equations 29 to 31).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.special import gammaln

Array = NDArray[np.float64]
EPS = float(np.finfo(np.float64).eps)


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
