"""Measure the main table, or only the named rows: `python -m benchmarks [row …] [--into docs/performance.md]`.

--into writes the results to a page and to the JSON file next to it; rows that were not measured are kept.
Without rows: the main table and the growth, in about ten minutes on two idle cores. `all` adds every other topic:
crammer-singer, engines, files, cells and those of `benchmarks.topics`.
"""

from __future__ import annotations

import argparse
import importlib
import pkgutil
import time
from collections.abc import Iterator
from pathlib import Path

import benchmarks
from benchmarks.page import Versions, keep
from benchmarks.timing import Case, Row, measure

MAIN = ("goals", "growth")
NO_ROWS = ("__main__", "timing", "tables", "call_counts", "page")


def rows(wanted: set[str]) -> Iterator[Row]:
    """Yield the named rows; if none is named, those of the main table."""
    found = [
        module.name for module in pkgutil.iter_modules(benchmarks.__path__) if module.name not in (*NO_ROWS, *MAIN)
    ]
    for name in (*MAIN, *found) if wanted else MAIN:
        module = importlib.import_module(f"benchmarks.{name}")
        if not wanted or "all" in wanted or wanted & set(module.ROWS):
            for case in module.cases(wanted - {"all"}):
                yield measure(case) if isinstance(case, Case) else case


def line(row: Row, versions: Versions) -> str:
    goal, ratio = row["goal"], row["ratio"]
    met, shown = ("", "") if goal is None else ("met" if ratio <= goal else "MISSED", f"≤ {goal:.3g}")
    walls = [row[setting][value] for setting in ("idle", "busy") if setting in row for value in VALUES[setting]]
    shown_walls = "".join(f"{value:>9.3g}" for value in walls) or " " * 36
    return f"{row['row']:>9}  {row['work']:<72.72} {ratio:>8.3g} {shown:>8} {met:<6} {shown_walls}  {versions.of(row)}"


VALUES = {"idle": ("ratio", "wall of one thread"), "busy": ("ratio", "CPU of one thread")}


def main() -> None:
    asked = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    asked.add_argument("rows", nargs="*", help="which rows; none: the main table")
    asked.add_argument("--into", type=Path, help="a page to write")
    given = asked.parse_args()
    versions, start = Versions(), time.perf_counter()
    heads = "".join(f"{head:>9}" for head in ("idle", "÷ one", "busy", "÷ one"))
    print(f"{'row':>9}  {'work':<72} {'CPU':>8} {'goal':>8} {'':<6} {heads}  peer ({versions.ours})")
    for row in rows(set(given.rows)):
        print(line(row, versions), flush=True)
        if given.into is not None:
            keep(given.into, {**row, "version": versions.of(row)})
    print(f"measured in {(time.perf_counter() - start) / 60:.1f} minutes")


if __name__ == "__main__":
    main()
