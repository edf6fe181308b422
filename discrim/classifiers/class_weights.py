"""What the rows of each class cost, as the user gives it."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from discrim.data.check_parameters import checked_class_weight

Floats = NDArray[np.float64]


def class_factors(class_weight: Any, classes: NDArray[Any], totals: Floats) -> Floats:
    """A factor for each class: 1 for None, equal totals for "balanced", or as a dict names them by label."""
    if class_weight is None:
        return np.ones(len(classes))
    if isinstance(class_weight, dict):
        _require_factors(class_weight, classes.tolist())
    return checked_class_weight(class_weight, classes, totals)


def _require_factors(class_weight: dict[Any, Any], labels: list[Any]) -> None:
    unknown = [label for label in class_weight if label not in labels]
    if unknown:
        raise ValueError(f"class_weight names {unknown[:5]}, but the classes are {labels[:10]}. Use the labels of y.")
    if not all(isinstance(factor, (int, float, np.number)) and 0 < factor < np.inf for factor in class_weight.values()):
        raise ValueError(f"class_weight={class_weight!r} came; each factor must be a finite number above 0.")
