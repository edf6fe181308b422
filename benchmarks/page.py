"""Measured figures, written between two markers of a documentation page."""

from __future__ import annotations

import datetime
import json
import os
import platform
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from benchmarks.timing import Row, write_between

START, END = "<!-- measured: make bench -->\n", "<!-- end -->\n"
HEAD = """Measured on {day} ({machine}; {ours}).

| row | work | CPU | goal | | idle | busy | threads, idle | threads, busy | ours | theirs | peer |
| --- | --- | ---: | --- | --- | ---: | ---: | ---: | ---: | ---: | ---: | --- |
"""
GROWTH = """
Growth of the cost: CPU seconds over size, and the log-log slope over the last two decades.

"""


class Versions:
    """Versions of the packages compared."""

    def __init__(self) -> None:
        self.ours = ", ".join(f"{name} {self.named(name)}" for name in ("discrim", "numpy", "scipy"))

    @staticmethod
    def named(package: str) -> str:
        try:
            return version(package)
        except PackageNotFoundError:
            return "here"

    def of(self, row: Row) -> str:
        """Return the package that a row is compared with."""
        return f"{row['peer']} {self.named(row['peer'])}" if row.get("peer") else ""


def keep(path: Path, row: Row) -> None:
    """Replace the earlier result of a row in the JSON file and on the page."""
    figures = path.with_suffix(".json")
    kept = json.loads(figures.read_text(encoding="utf-8")) if figures.exists() else {}
    work = str(row["work"]).split(" (primal")[0].split(": ")[0]  # without the figures of a single run
    kept[f"{row['row']}: {work}"] = {**row, "day": datetime.date.today().isoformat()}
    figures.write_text(json.dumps(kept, ensure_ascii=False, indent=1) + "\n", encoding="utf-8")
    write_between(path, START, END, tables(list(kept.values()), Versions().ours))


def tables(rows: list[Row], ours: str) -> str:
    days = sorted({row["day"] for row in rows})
    machine = f"{platform.machine()}, {os.cpu_count()} cores, Python {platform.python_version()}"
    parts = [HEAD.format(day=" to ".join(dict.fromkeys((days[0], days[-1]))), machine=machine, ours=ours)]
    parts += [_cells(row) for row in rows if row["row"] != "growth"]
    grown = [row for row in rows if row["row"] == "growth"]
    parts += [GROWTH] * bool(grown)
    for axis in grown:
        points = ", ".join(f"{size:,}: {_seconds(taken)}" for size, taken in axis["points"])
        parts.append(f"- {axis['work']}: slope **{axis['ratio']:.2f}** (theory: {axis['theory']}). {points}\n")
    return "".join(parts)


def _cells(row: Row) -> str:
    goal, ratio, wall_goal = row["goal"], row["ratio"], row.get("wall_goal")
    shown, met = ("", "") if goal is None else (f"≤ {goal:.3g}", "met" if ratio <= goal else "missed")
    idle, busy = (row.get(setting, {}) for setting in ("idle", "busy"))
    walls = [_ratio(idle.get("ratio")) + (f" (goal {wall_goal:.3g})" if wall_goal else ""), _ratio(busy.get("ratio"))]
    walls += [_ratio(idle.get("wall of one thread")), _ratio(busy.get("CPU of one thread"))]
    times = [_seconds(row[side]) if side in row else "" for side in ("seconds", "theirs")]
    return f"| {' | '.join([row['row'], row['work'], _ratio(ratio), shown, met, *walls, *times, row['version']])} |\n"


def _ratio(value: float | None) -> str:
    return "" if value is None else f"{value:.3g}"


def _seconds(taken: float) -> str:
    return f"{taken:.2f} s" if taken >= 1 else f"{1e3 * taken:.3g} ms"
