"""Of directions in a given order, those that are not in the span of the ones before them."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
DEPENDENT = 1e-8  # what is left of a unit vector that lies in the span of others is rounding below this


def independent(first: Array, others: Array, most: int) -> tuple[NDArray[np.intp], Array]:
    """At most so many of the others that leave the span before them: their places, and what each adds at length 1.

    first : orthonormal rows that come before all others
    """
    span, kept = first, list[int]()
    for place, direction in enumerate(others):
        if len(kept) == most:
            break
        unit = direction / np.linalg.norm(direction)
        left = unit - span.T @ (span @ unit)
        left -= span.T @ (span @ left)  # once more gives back the digits that cancelled
        length = float(np.linalg.norm(left))
        if length > DEPENDENT:
            span = np.concatenate([span, left[None] / length])
            kept.append(place)
    return np.array(kept, dtype=np.intp), span[len(first) :]
