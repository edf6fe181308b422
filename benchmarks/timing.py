"""How the two sides of a ratio are timed."""

from __future__ import annotations

import gc
import statistics
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

Row = dict[str, Any]


def cpu_seconds(work: Callable[[], Any]) -> float:
    """CPU time of one call."""
    gc.collect()
    start = time.process_time()
    work()
    return time.process_time() - start


def medians(*sides: Callable[[], Any], repeats: int = 5) -> list[float]:
    """Median CPU time of each side, called in turns after one call each to warm up."""
    for side in sides:
        side()
    times = [[cpu_seconds(side) for side in sides] for _ in range(repeats)]
    return [statistics.median(of_side) for of_side in zip(*times, strict=True)]


def ratio_row(
    row: str,
    work: str,
    ours: Callable[[], Any],
    theirs: Callable[[], Any],
    goal: float | None,
    repeats: int = 5,
    peer: str = "",
) -> Row:
    """Our time over theirs, which should be at most the goal; `peer` is the package they are of."""
    a, b = medians(ours, theirs, repeats=repeats)
    return {"row": row, "work": work, "goal": goal, "ratio": a / b, "seconds": a, "theirs": b, "peer": peer}


def peak_memory(work: Callable[[], Any]) -> int:
    """Bytes allocated at the peak of one call, over what was there before."""
    import tracemalloc

    tracemalloc.start()
    work()
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return peak


def write_between(page: Path, start: str, end: str, text: str) -> None:
    """Put what was measured into a page, between its two marks."""
    before, _, rest = page.read_text(encoding="utf-8").partition(start)
    page.write_text(before + start + text + end + rest.partition(end)[2], encoding="utf-8")
