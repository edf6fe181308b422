"""What was measured, as a page of the documentation."""

from __future__ import annotations

import datetime
import json
import platform
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

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


NOTES = """
## Why a goal is missed

- *Small tables*: the eigenvectors and XᵀX of 1,000×50 are a third of the fit, the rest is Python: checks, a sample of
  rows that tells where the class means are, and the fitted attributes.
- *Wide*: PCA is the Gram matrix XXᵀ, its first eigenvectors, and a product that leads back to the columns; the rows are
  copied only where their mean is far from 0. Four times as fast as scikit-learn's randomised PCA(auto) would be faster
  than one bare XXᵀ of 500×10,000, and a fifteenth of PCA(full) at 100×5,000 is less than two of them.
- *LDA at 10,000×100*: one bare XᵀX takes most of the time that the goal leaves.
- *Shrinkage by cross-validation*: 24 ridges in five folds are judged on up to 1,000 held-out rows of a fold. At
  10,000×100 that is 1.2 million scores, whose matrix products and exponentials alone take longer than a fit at a fixed
  ridge; five tridiagonal forms take half as long again. Fewer rows, or fewer ridges, would change what is chosen.
- *BayesErrorLDA beside RegularizedLDA*: the descent to the subspace takes a few milliseconds whatever the table, and
  the faster the search of the ridge is, the more that shows.
- *The company*: beyond the one pass, supervised probabilistic PCA iterates EM, and generalised eigenvectors solve a
  problem for each ordered pair of classes, on columns×columns matrices whatever the number of rows.
- *Dask*: the goal beside dask-ml was a fifteenth of an older one, which took 47 s for this table; the one measured here
  takes less than a quarter of that. One pass of it in one process is a fourteenth already.
- *Spark*: a job that hands these rows to Python and only counts them there took 5.7 to 5.9 CPU seconds, a third of
  Spark ML's whole PCA; the rest of ours, statistics and their sum, is 2 s. Columns are sent as one column of arrays,
  which took Spark a fifth less than many columns; larger or smaller Arrow batches took no less.
- *A million classes*: the class means are kept as pilot and remainder, and once more centred, once more scaled.
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


def keep(path: Path, row: Row) -> None:
    """Put a row in the place of the one before it, in the figures beside the page and on the page."""
    figures = path.with_suffix(".json")
    kept = json.loads(figures.read_text(encoding="utf-8")) if figures.exists() else {}
    kept[f"{row['row']}: {_key(row)}"] = {**row, "day": datetime.date.today().isoformat()}
    figures.write_text(json.dumps(kept, ensure_ascii=False, indent=1) + "\n", encoding="utf-8")
    path.write_text(page(list(kept.values()), Versions().ours), encoding="utf-8")


def _key(row: Row) -> str:
    """The work without the figures of a single run in it."""
    return (
        str(row["work"]).split(" (primal")[0].split(": ")[0]
        if row["row"] in ("svm", "instructions")
        else str(row["work"])
    )


def page(rows: list[Row], ours: str) -> str:
    days = sorted({row["day"] for row in rows})
    machine = f"{platform.machine()}, Python {platform.python_version()}"
    parts = [HEAD.format(day=" to ".join(dict.fromkeys((days[0], days[-1]))), machine=machine, ours=ours)]
    parts += [_cells(row) for row in rows if row["row"] != "growth"]
    grown = [row for row in rows if row["row"] == "growth"]
    parts += [GROWTH] * bool(grown)
    for axis in grown:
        points = ", ".join(f"{size:,}: {_seconds(taken)}" for size, taken in axis["points"])
        parts.append(f"- {axis['what']}: slope **{axis['slope']:.2f}** (theory: {axis['theory']}). {points}\n")
    return "".join([*parts, NOTES])


def _cells(row: Row) -> str:
    goal, ratio = row["goal"], row["ratio"]
    shown, met = ("", "") if goal is None else (f"≤ {goal:.3g}", "met" if ratio <= goal else "missed")
    times = [_seconds(row[side]) if side in row else "" for side in ("seconds", "theirs")]
    cells = [row["row"], row["work"], f"{ratio:.3g}", shown, met, *times, row["version"]]
    return f"| {' | '.join(cells)} |\n"


def _seconds(taken: float) -> str:
    return f"{taken:.2f} s" if taken >= 1 else f"{1e3 * taken:.3g} ms"
