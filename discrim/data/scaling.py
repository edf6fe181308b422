"""How columns are brought to one scale before a reduction, by name.

standard   mean 0 and deviation 1
range      from −1 to 1
none       as they are

Sparse rows stay sparse: they are divided by their deviation or largest absolute value, and not moved.
"""

from __future__ import annotations

from typing import Any

from sklearn.preprocessing import MaxAbsScaler, MinMaxScaler, StandardScaler

SCALES = ("standard", "range", "none")


def scaler(scale: str, *, sparse: bool = False) -> Any | None:
    """An unfitted scikit-learn transformer, None for no scaling."""
    if scale not in SCALES:
        raise ValueError(f"No scale is named {scale!r}. There are: {', '.join(SCALES)}.")
    if scale == "none":
        return None
    if scale == "standard":
        return StandardScaler(with_mean=not sparse)
    return MaxAbsScaler() if sparse else MinMaxScaler((-1, 1))
