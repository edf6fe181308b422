"""Print today's ratios beside the goals: `python -m benchmarks [row …]`."""

from __future__ import annotations

import importlib
import pkgutil
import sys

import benchmarks
from benchmarks.timing import Row


def modules() -> list[str]:
    found = (m.name for m in pkgutil.iter_modules(benchmarks.__path__))
    return [name for name in found if name not in ("__main__", "timing", "walk")]


def line(row: Row) -> str:
    goal, ratio = row["goal"], row["ratio"]
    met = "" if goal is None else ("met" if ratio <= goal else "MISSED")
    shown = "" if goal is None else f"≤ {goal:g}"
    return f"{row['row']:>12}  {row['work']:<72} {ratio:>9.3g}  {shown:>8}  {met}"


def main() -> None:
    wanted = set(sys.argv[1:])
    print(f"{'row':>12}  {'work':<72} {'ratio':>9}  {'goal':>8}")
    for name in modules():
        module = importlib.import_module(f"benchmarks.{name}")
        if wanted and not wanted & set(getattr(module, "ROWS", ())):
            continue
        for row in module.measure():
            if not wanted or row["row"] in wanted:
                print(line(row), flush=True)


if __name__ == "__main__":
    main()
