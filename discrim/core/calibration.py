"""Scores as probabilities: one temperature, chosen by the log loss of held-out rows.

    p(x) = (1 − 1/n) softmax(a(x)/T) + 1/(nC)

The small share 1/n for "any class" bounds the loss of a single row; without it, one outlier would determine T.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.special import softmax

Array = NDArray[np.float64]
TEMPERATURES = 2.0 ** np.arange(-1, 8.25, 0.5)
ANY_TEMPERATURES = 2.0 ** np.arange(-12, 8.25, 0.5)  # for scores in any unit


def calibrated(scores: Array, temperature: float, total_weight: float) -> Array:
    """Compute p for every row and class; n is the total weight of the rows on which the temperature was chosen."""
    share = any_class(total_weight)
    return (1 - share) * softmax(scores / temperature, axis=1) + share / scores.shape[1]


def best_temperature(
    scores: Array, codes: NDArray[np.intp], weights: Array, temperatures: Array = TEMPERATURES
) -> tuple[float, float]:
    """Return the temperature with the smallest log loss, and that loss, for n×C scores, class numbers and weights."""
    below = scores - scores.max(axis=1, keepdims=True)
    own_below = below[np.arange(len(codes)), codes]
    total = float(weights.sum())
    share = any_class(total)
    losses = []
    for temperature in temperatures:
        own = np.exp(own_below / temperature) / np.exp(below / temperature).sum(axis=1)
        losses.append(-(weights @ np.log((1 - share) * own + share / scores.shape[1])) / total)
    best = int(np.argmin(losses))
    return float(temperatures[best]), float(losses[best])


def standard_error(share: float, weight: float) -> float:
    """Return the standard error of a share observed on rows of this total weight."""
    return float(np.sqrt(share * max(1 - share, 0.0) / weight))  # rounding may put the share above 1


def any_class(total_weight: float) -> float:
    """Return the probability 1/n that is shared evenly by all classes."""
    return 1 / max(total_weight, 2.0)
