"""Scores as probabilities: one temperature for all of them, chosen by the log loss of rows that took no part.

    p(x) = (1 − 1/n) softmax(a(x)/T) + 1/(nC)

The small share 1/n of "any class" bounds what a single row can cost: without it one far row drives T to its end.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.special import softmax

Array = NDArray[np.float64]
TEMPERATURES = 2.0 ** np.arange(-1, 8.25, 0.5)
ANY_TEMPERATURES = 2.0 ** np.arange(-12, 8.25, 0.5)  # for scores in any unit


def calibrated(scores: Array, temperature: float, total_weight: float) -> Array:
    """p of every row and class; n is the total weight of the rows the temperature was chosen on."""
    share = any_class(total_weight)
    return (1 - share) * softmax(scores / temperature, axis=1) + share / scores.shape[1]


def best_temperature(
    scores: Array, codes: NDArray[np.intp], weights: Array, temperatures: Array = TEMPERATURES
) -> tuple[float, float]:
    """Return the temperature of least log loss and that loss; n×C scores, the rows' classes and weights."""
    below = scores - scores.max(axis=1, keepdims=True)
    of_own = below[np.arange(len(codes)), codes]
    total = float(weights.sum())
    share = any_class(total)
    losses = []
    for temperature in temperatures:
        own = np.exp(of_own / temperature) / np.exp(below / temperature).sum(axis=1)
        losses.append(-(weights @ np.log((1 - share) * own + share / scores.shape[1])) / total)
    best = int(np.argmin(losses))
    return float(temperatures[best]), float(losses[best])


def standard_error(share: float, weight: float) -> float:
    """Of a share of so many rows."""
    return float(np.sqrt(share * max(1 - share, 0.0) / weight))  # a share of all may be a rounding above 1


def any_class(total_weight: float) -> float:
    """Return the share that every class has of any row's probability, 1/n."""
    return 1 / max(total_weight, 2.0)
