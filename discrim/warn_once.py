"""Warnings of a fit: each kind once, however many fits of folds, classes and trials it is made of, and at the caller's
line.

Held back in a context variable, so that fits in several threads do not collect each other's warnings, as they would
with `warnings.catch_warnings`.
"""

from __future__ import annotations

import re
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

Collected = list[tuple[str, type[Warning]]]
_collector: ContextVar[Collected | None] = ContextVar("collector", default=None)


def warn(text: str, category: type[Warning] = UserWarning) -> None:
    """Issue a warning now, or when the fit that this is a part of is done."""
    collector = _collector.get()
    if collector is None:
        warnings.warn(text, category, stacklevel=_to_caller())
    else:
        collector.append((text, category))


@contextmanager
def collected_warnings() -> Iterator[Collected]:
    """Collect the warnings of a block, for `issue_once` or to be dropped."""
    collected: Collected = []
    token = _collector.set(collected)
    try:
        yield collected
    finally:
        _collector.reset(token)


def issue_once(collected: Collected) -> None:
    """Issue the first warning of each kind (equal but for numbers and names), and how many there were."""
    kinds: dict[str, Collected] = {}
    for text, category in collected:
        kinds.setdefault(re.sub(r"'[^']*'|[\d.]", "", text), []).append((text, category))
    for (text, category), *others in kinds.values():
        warn(f"{text} (So in {len(others) + 1} parts of this fit.)" if others else text, category)


def _to_caller() -> int:
    """Return the number of frames between `warn` and the first that is not discrim's."""
    frame, level = sys._getframe(1), 1
    while frame.f_back is not None and frame.f_globals.get("__name__", "").split(".")[0] in ("discrim", "contextlib"):
        frame, level = frame.f_back, level + 1
    return level


@contextmanager
def columns_in_order() -> Iterator[None]:
    """Suppress scikit-learn's warning that an array has no names: its columns are in order."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "X does not have valid feature names")
        yield
