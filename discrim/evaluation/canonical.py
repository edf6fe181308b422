"""What identifies a trial: its description as canonical JSON, and the hash of that."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Mapping
from typing import Any

import numpy as np


def trial_key(trial: Mapping[str, Any]) -> str:
    """SHA-256 of the trial as canonical JSON: keys sorted, no blanks, UTF-8."""
    return hashlib.sha256(canonical_json(trial).encode()).hexdigest()


def canonical_json(value: Mapping[str, Any]) -> str:
    return json.dumps(plain_value(value, "trial"), sort_keys=True, separators=(",", ":"), ensure_ascii=False)


def plain_value(value: Any, place: str, *, finite: bool = True) -> Any:
    """The value as JSON knows it (NumPy's numbers as Python's, tuples as lists), or an error that names the place."""
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, Mapping):
        if not all(isinstance(name, str) for name in value):
            raise TypeError(f"{place}: names must be text, but {list(value)!r} came.")
        return {name: plain_value(inner, f"{place}.{name}", finite=finite) for name, inner in value.items()}
    if isinstance(value, list | tuple):
        return [plain_value(inner, f"{place}[{at}]", finite=finite) for at, inner in enumerate(value)]
    if isinstance(value, float) and finite and not math.isfinite(value):
        raise ValueError(f"{place} is {value}: what identifies a trial must be finite.")
    if value is None or isinstance(value, str | bool | int | float):
        return value
    raise TypeError(f"{place} is a {type(value).__name__}; text, numbers, lists and dictionaries can be stored.")


def sort_key(value: Any) -> tuple[int, Any]:
    """A key that sorts plain values of any kind: 2 before 10, numbers before text, dictionaries by name and value."""
    if value is None:
        return 0, 0
    if isinstance(value, int | float):
        return 1, value
    if isinstance(value, str):
        return 2, value
    if isinstance(value, Mapping):
        return 4, [(name, sort_key(inner)) for name, inner in sorted(value.items())]
    return 3, [sort_key(inner) for inner in value]
