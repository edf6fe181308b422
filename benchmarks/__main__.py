"""Print today's ratios beside the goals: `python -m benchmarks [row …]`.

Without a row: the table of goals, the engines, instructions and growth. --into writes what was measured to a page, and
the figures beside it; those of rows that were not measured now stay as they were.
Rows of single topics (1 to 13, "bayes error", "refinement") are measured when they are named; `all` is everything.
"""

from __future__ import annotations

import argparse
import importlib
import pkgutil
from collections.abc import Iterator
from pathlib import Path

import benchmarks
from benchmarks import growth
from benchmarks.page import Versions, keep
from benchmarks.timing import Row

GOALS = ("goals", "engines", "instructions")
NO_ROWS = ("__main__", "timing", "walk", "growth", "page")


def modules() -> list[str]:
    found = (m.name for m in pkgutil.iter_modules(benchmarks.__path__))
    return [*GOALS, *(name for name in found if name not in (*NO_ROWS, *GOALS))]


def rows(wanted: set[str]) -> Iterator[Row]:
    """Those that are wanted; of no names, those of the goals."""
    for name in modules() if wanted else GOALS:
        module = importlib.import_module(f"benchmarks.{name}")
        if wanted and "all" not in wanted and not wanted & set(module.ROWS):
            continue
        found = module.measure(wanted - {"all"}) if name in GOALS else module.measure()
        yield from (row for row in found if not wanted or {"all", row["row"]} & wanted)


def line(row: Row, versions: Versions) -> str:
    goal, ratio = row["goal"], row["ratio"]
    met = "" if goal is None else ("met" if ratio <= goal else "MISSED")
    shown = "" if goal is None else f"≤ {goal:.3g}"
    return f"{row['row']:>12}  {row['work']:<78} {ratio:>8.3g}  {shown:>8}  {met:<6}  {versions.of(row)}"


def main() -> None:
    asked = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    asked.add_argument("rows", nargs="*", help="which rows; none: the goals")
    asked.add_argument("--into", type=Path, help="a page to write")
    given = asked.parse_args()
    wanted, versions = set(given.rows), Versions()
    print(f"{'row':>12}  {'work':<78} {'now':>8}  {'goal':>8}  {'':<6}  peer ({versions.ours})")
    for row in rows(wanted):
        print(line(row, versions), flush=True)
        if given.into is not None:
            keep(given.into, {**row, "version": versions.of(row)})
    for axis in growth.measured() if not wanted or wanted & {"all", "growth"} else ():
        print(
            f"{'growth':>12}  seconds over {axis['what']}: slope {axis['slope']:.2f} (theory: {axis['theory']})",
            flush=True,
        )
        if given.into is not None:
            keep(given.into, {"row": "growth", "work": axis["what"], **axis})


if __name__ == "__main__":
    main()
