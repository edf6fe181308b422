"""Linear systems by products only."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from discrim.data.findings import warn_of_slow_solution

Array = NDArray[np.float64]


def conjugate_gradients(
    product: Callable[[Array], Array], B: Array, diagonal: Array, *, tol: float = 1e-10, max_iter: int = 1000
) -> Array:
    """X with A X = B for a positive definite A given by its products and its diagonal (the preconditioner).

    All columns advance together, so that each step is one product with a block: the rows are read once for all of them.
    """
    X, residual = np.zeros_like(B), B.copy()
    scaled = residual / diagonal[:, None]
    direction = scaled.copy()
    strength = np.einsum("dk,dk->k", residual, scaled)
    goal = tol**2 * strength
    for _ in range(max_iter):
        if (strength <= goal).all():
            return X
        image = product(direction)
        curvature = np.einsum("dk,dk->k", direction, image)
        step = np.divide(strength, curvature, out=np.zeros_like(strength), where=curvature > 0)
        X += step * direction
        residual -= step * image
        scaled = residual / diagonal[:, None]
        before, strength = strength, np.einsum("dk,dk->k", residual, scaled)
        direction = scaled + np.divide(strength, before, out=np.zeros_like(strength), where=before > 0) * direction
    warn_of_slow_solution(float(np.sqrt((strength / np.maximum(goal, 1e-300)).max()) * tol), max_iter)
    return X
