"""Shared parts of the studies in this folder: trials on sampled rows, tables in Markdown, and writing into a page."""

import argparse
import re
import sys
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import date
from pathlib import Path
from typing import TypeVar

import numpy as np

import discrim
from discrim.evaluation.plan import Grid
from discrim.evaluation.protocol import Holdout
from discrim.evaluation.results import Cell, Scores
from discrim.evaluation.run import opened_store, run
from discrim.evaluation.store import Store
from discrim.evaluation.summary import Difference
from discrim.evaluation.summary import difference as tested
from discrim.tables import catalogue
from discrim.tables.labelled_table import LabelledTable

CLASSIFIERS = ("svm", "5-nn", "naive-bayes")
BySplit = dict[int, float]


@dataclass(frozen=True, eq=False)
class Result:
    """Results on one data set: accuracies of every cell by split, seconds per fit by method."""

    name: str
    whole: int
    table: LabelledTable
    scores: dict[Cell, BySplit]
    seconds: dict[str, float]
    ratio: float

    @property
    def n_classes(self) -> int:
        return len(self.table.class_counts())

    @property
    def sizes(self) -> list[str]:
        """Return the rows used, columns and classes."""
        return [f"{self.table.n_samples:,} of {self.whole:,}", f"{self.table.n_features:,}", str(self.n_classes)]

    def percent(self, cells: Iterable[Cell | None]) -> float:
        """Return the mean accuracy over cells and their splits; NaN if one is missing."""
        found = [None if cell is None else self.scores.get(cell) for cell in cells]
        return float(np.mean([100 * np.mean(list(one.values())) if one else np.nan for one in found]))


Kind = TypeVar("Kind", bound=Result)


def by_split(scores: Scores, cell: Cell) -> BySplit:
    """Return the scores of a cell by the number of the split."""
    values = zip(scores.splits, scores.values[scores.cells.index(cell)].tolist(), strict=True)
    return {split: value for split, value in values if np.isfinite(value)}


def difference(ours: BySplit, others: BySplit, ratio: float) -> Difference | None:
    """Compare two series of scores on the splits that both have; return None for fewer than two."""
    shared = sorted(ours.keys() & others.keys())
    return tested(np.array([ours[split] - others[split] for split in shared]), ratio)


# ---------------------------------------------------------------------- running


def drawn(table: LabelledTable, most: int) -> LabelledTable:
    """Return the table, or a stratified sample of `most` rows if it has more."""
    if table.n_samples <= most:
        return table
    (kept, _), *_ = Holdout("drawn", 1, test_share=1 - most / table.n_samples).splits(table.y, seed=0)
    return table.take(kept)


def tried(
    kind: type[Kind], name: str, grids: Callable[[LabelledTable], Iterable[Grid]], store: Store, most: int, jobs: int
) -> Kind:
    """Run the grids of a data set and return the results; failures are printed."""
    whole = catalogue.load(name, download=False)
    table = drawn(whole, most)
    rows = [row for grid in grids(table) for row in run(grid, store, jobs=jobs)]
    for reason in sorted({f"{row.cell.method}: {row.reason}" for row in rows if row.status == "failed"}):
        print(f"{name}: failed: {reason}", file=sys.stderr)
    fits: dict[str, list[float]] = defaultdict(list)
    for row in rows:
        if row.ok:
            fits[row.cell.method].append(row.scores["fit_seconds"])
    seconds = {method: float(np.mean(of_method)) for method, of_method in fits.items()}
    scored = Scores.from_rows(rows, "accuracy")
    scores = {cell: by_split(scored, cell) for cell in scored.cells}
    return kind(name, whole.n_samples, table, scores, seconds, scored.ratio)


def arguments(description: str | None, *, jobs: bool = True) -> argparse.ArgumentParser:
    """Return a parser with the arguments of every study."""
    parser = argparse.ArgumentParser(description=str(description).splitlines()[0])
    parser.add_argument("--into", type=Path, help="the page whose figures to replace; without it they are printed")
    if jobs:
        parser.add_argument("--jobs", type=int, default=1, help="processes")
    return parser


def main_of_trials(
    description: str | None,
    datasets: Sequence[str],
    result: Callable[[str, Store, int, int, int], Kind],
    lines: Callable[[list[Kind], argparse.Namespace], Iterable[str]],
    *,
    splits: int = 10,
    rows: int = 1_000,
) -> None:
    """Run a study of methods on data sets, from its command line to its page.

    result : function of name, store, maximum of rows, splits and processes that returns the results on a data set
    lines : function of all results that returns the lines of the page
    """
    parser = arguments(description)
    parser.add_argument("--store", type=Path, help="file that stores the results; only missing ones are computed")
    parser.add_argument("--splits", type=int, default=splits)
    parser.add_argument("--rows", type=int, default=rows, help="rows used of larger data sets")
    parser.add_argument("--datasets", default=",".join(datasets))
    options = parser.parse_args()
    results = []
    with opened_store(options.store) as store:
        for name in options.datasets.split(","):
            results.append(result(name, store, options.rows, options.splits, options.jobs))
            print(f"{name} is done", file=sys.stderr, flush=True)
    show(lines(results, options), options.into)


# ---------------------------------------------------------------------- output


def markdown(head: Sequence[str], rows: Iterable[Sequence[str]], *, names: int = 1) -> Iterator[str]:
    """Yield the lines of a table whose first columns are names, the others figures."""
    yield f"| {' | '.join(head)} |"
    yield "|" + " --- |" * names + " ---: |" * (len(head) - names)
    yield from (f"| {' | '.join(row)} |" for row in rows)
    yield ""


def figure(value: float | None, digits: int = 1) -> str:
    return "–" if value is None or np.isnan(value) else f"{value:.{digits}f}"


def better_and_worse(found: Iterable[Difference]) -> list[str]:
    """Count cells that are better / worse by the corrected t test at 5 %, with Holm's correction and without."""
    found = list(found)
    plain = [replace(one, adjusted=one.p_value) for one in found]
    words = ([one.verdict for one in some] for some in (found, plain))
    return [f"{of.count('better')} / {of.count('worse')}" for of in words]


def show(lines: Iterable[str], into: Path | None, name: str = "figures") -> None:
    """Write the lines between the markers of that name in a page, or print them."""
    if into is None:
        for line in lines:
            print(line, flush=True)
    else:
        text = list(lines)  # if the study fails, the page does not change
        into.write_text(written(into.read_text(encoding="utf-8"), name, text), encoding="utf-8")


def stamp() -> str:
    """Return the line with the version that computed the figures, and the date."""
    return f"*Computed by discrim {discrim.__version__} on {date.today().isoformat()}.*"


def written(page: str, name: str, lines: Iterable[str]) -> str:
    """Return the page with the text between the markers of that name replaced."""
    begin, end = f"<!-- {name}: begin -->", f"<!-- {name}: end -->"
    if page.count(begin) != 1 or page.count(end) != 1:
        raise ValueError(f"The page must have {begin} and {end}, each once.")
    block = re.sub("\n{3,}", "\n\n", "\n".join([*lines, "", stamp()])).strip("\n")
    between = f"{re.escape(begin)}.*{re.escape(end)}"
    return re.sub(between, lambda _: f"{begin}\n\n{block}\n\n{end}", page, flags=re.DOTALL)
