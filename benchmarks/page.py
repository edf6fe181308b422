"""What was measured, as a page of the documentation."""

from __future__ import annotations

import datetime
import platform
from importlib.metadata import PackageNotFoundError, version
from typing import Any

from benchmarks.timing import Row

HEAD = """# Performance

CPU time of one thread (of the engines: of all processes), our side and the other in turns in one process, medians; a
ratio below 1 is faster. Written by `make bench` on {day} ({machine}; {ours}). `make bench ROW=cv` measures one row,
`make bench ROW=all` every single topic.

| row | work | now | goal | | ours | theirs | peer |
| --- | --- | --- | --- | --- | --- | --- | --- |
"""
GROWTH = """
## How the cost grows

CPU seconds over size, and the slope over the last two decades on doubly logarithmic axes.

"""


class Versions:
    """Of the packages that take part."""

    def __init__(self) -> None:
        self.ours = ", ".join(f"{name} {self.named(name)}" for name in ("discrim", "numpy", "scipy"))

    @staticmethod
    def named(package: str) -> str:
        try:
            return version(package)
        except PackageNotFoundError:
            return "here"

    def of(self, row: Row) -> str:
        """The other side of a row."""
        return f"{row['peer']} {self.named(row['peer'])}" if row.get("peer") else ""


def page(rows: list[Row], grown: list[dict[str, Any]], versions: Versions) -> str:
    machine = f"{platform.machine()}, Python {platform.python_version()}"
    parts = [HEAD.format(day=datetime.date.today().isoformat(), machine=machine, ours=versions.ours)]
    parts += [_cells(row, versions) for row in rows]
    if grown:
        parts.append(GROWTH)
    for axis in grown:
        parts.append(f"- {axis['what']}: slope **{axis['slope']:.2f}** (theory: {axis['theory']}). ")
        parts.append(", ".join(f"{size:,}: {_seconds(taken)}" for size, taken in axis["points"]) + "\n")
    return "".join(parts)


def _cells(row: Row, versions: Versions) -> str:
    goal, ratio = row["goal"], row["ratio"]
    shown, met = ("", "") if goal is None else (f"≤ {goal:.2g}", "met" if ratio <= goal else "missed")
    times = [_seconds(row[side]) if side in row else "" for side in ("seconds", "theirs")]
    return (
        f"| {row['row']} | {row['work']} | {ratio:.3g} | {shown} | {met} | {' | '.join(times)} | {versions.of(row)} |\n"
    )


def _seconds(taken: float) -> str:
    return f"{taken:.2f} s" if taken >= 1 else f"{1e3 * taken:.3g} ms"
