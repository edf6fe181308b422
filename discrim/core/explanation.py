"""Effect of every column on a row: on its components, and on the log odds between two classes.

Effects are derivatives times the column's standard deviation over the training rows: how far one standard deviation of
a column moves the row, to first order. For linear methods this is the same for all rows.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
Indices = NDArray[np.intp]


@dataclass(frozen=True, eq=False)
class Explanation:
    """Effect of one standard deviation of each column on rows, to first order.

    first, second : two classes for each row, by default the two most probable ones; None if the method has no class
        scores
    log_odds : n×d, the change of log p(first) − log p(second); None if the method has no class scores
    positions : n×k×d, the change of the components
    """

    first: NDArray[Any] | None
    second: NDArray[Any] | None
    log_odds: Array | None
    positions: Array

    @property
    def importances(self) -> Array:
        """Mean absolute effect of each column on the log odds; without class scores, on the components."""
        if self.log_odds is None:
            return np.linalg.norm(self.positions, axis=1).mean(axis=0)
        return np.abs(self.log_odds).mean(axis=0)


def two_classes(scores: Array, classes: NDArray[Any], between: Any) -> tuple[Indices, Indices]:
    """Return two class numbers for each row: those with the highest scores, or the two labels in `between`."""
    if between is None:
        order = np.argpartition(scores, -2, axis=1)[:, -2:]
        swapped = np.take_along_axis(scores, order, axis=1)
        order = np.where((swapped[:, 0] > swapped[:, 1])[:, None], order[:, ::-1], order)
        return order[:, 1], order[:, 0]
    known = classes.tolist()
    named = list(between)
    if len(named) != 2 or named[0] == named[1] or any(label not in known for label in named):
        raise ValueError(f"between must be two different class labels from {known}; got {between!r}.")
    first, second = (np.full(len(scores), known.index(label), dtype=np.intp) for label in named)
    return first, second


def explain_positions(effects: Array, n_rows: int, between: Any = None) -> Explanation:
    """Explain rows of a linear method without class scores, from the effects (k×d) of the columns on the components."""
    if between is not None:
        raise ValueError(f"between must be None for a method without class scores; got {between!r}.")
    return Explanation(None, None, None, np.broadcast_to(effects, (n_rows, *effects.shape)))


def explain_linear(
    effects: Array, score_effects: Array, scores: Array, classes: NDArray[Any], between: Any = None
) -> Explanation:
    """Explain rows of a linear method by their class scores (n×C) and the effects of the columns on these (C×d)."""
    first, second = two_classes(scores, classes, between)
    positions = np.broadcast_to(effects, (len(scores), *effects.shape))
    return Explanation(classes[first], classes[second], score_effects[first] - score_effects[second], positions)


def linear_importances(components: Array, deviations: Array, coefficients: Array | None, priors: Array | None) -> Array:
    """Compute Σ_{a<b} p_a p_b |c_a − c_b| / Σ_{a<b} p_a p_b for every column; without a rule, its effect's length.

    Sorting the coefficients reduces the sum over pairs to C log C steps.
    """
    if coefficients is None or priors is None:
        return np.linalg.norm(np.asarray(components, dtype=np.float64), axis=0) * deviations
    priors = priors / priors.sum()
    order = np.argsort(coefficients, axis=0)
    sorted_coefficients, shares = np.take_along_axis(coefficients, order, axis=0), priors[order]
    below = np.cumsum(shares, axis=0) - shares
    sums_below = np.cumsum(shares * sorted_coefficients, axis=0) - shares * sorted_coefficients
    total = (shares * (sorted_coefficients * below - sums_below)).sum(axis=0)
    pairs = (1 - float(priors @ priors)) / 2
    return np.asarray(deviations * total / pairs)
