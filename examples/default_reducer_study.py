"""Does BayesErrorLDA deserve to be the default? Ten others beside it on eleven data sets: the figures of docs/study.md.

    DISCRIM_DATA=folder python examples/default_reducer_study.py --store study.sqlite --into docs/study.md

The folder holds the data sets (`discrim datasets` tells which are there). With --store the results are kept, and a
second run does only what is missing; without --into the tables are printed.
"""

import argparse
import sys
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from discrim.data import catalogue
from discrim.data.labelled_table import LabelledTable
from discrim.evaluation.classifiers import named_classifiers
from discrim.evaluation.grid import Cell, Grid, product
from discrim.evaluation.methods import named_methods
from discrim.evaluation.protocol import Holdout, named_protocol
from discrim.evaluation.run import opened_store, run
from discrim.evaluation.statistics import friedman_test, nemenyi_critical_difference, nemenyi_p_values
from discrim.evaluation.store import Store
from discrim.evaluation.summary import LEVEL, Difference, Scores, adjusted, difference, scores_by_cell, test_to_train

DATASETS = (
    "wine",
    "vehicle",
    "srbct",
    "satimage",
    "digits",
    "opencv_digits",
    "yale",
    "fbis_text",
    "isolet1560",
    "letter",
    "orl",
)
DEFAULT, LDA = "bayes-error-lda", "regularized-lda"
OTHERS = (
    LDA,
    "margin-subspace",
    "max-margin-shift",
    "margin-pca-mean",
    "margin-pca-median",
    "margin-pca-nearest",
    "margin-pca-all",
    "pca",
    "pls",
    "nca",
)
SLOW = ("nca",)  # takes longer than all others together, so it has half of the splits
COUNTS = (1, 2, 3, 5)
CLASSIFIERS = ("svm", "5-nn", "naive-bayes")
BEGIN, END = "<!-- figures: begin -->", "<!-- figures: end -->"


@dataclass(frozen=True, eq=False)
class Result:
    """What came out on one data set."""

    name: str
    whole: int
    table: LabelledTable
    scores: dict[Cell, Scores]
    seconds: dict[str, float]
    ratio: float

    @property
    def n_classes(self) -> int:
        return len(self.table.class_counts())

    def mean(self, method: str, counts: tuple[int, ...] = ()) -> float:
        """Mean accuracy in percent over splits, classifiers and these K (all of them); NaN where a cell is missing."""
        cells = [self.scores.get(Cell(method, k, classifier)) for k in counts or COUNTS for classifier in CLASSIFIERS]
        return float(np.mean([100 * np.mean(list(cell.values())) if cell else np.nan for cell in cells]))

    def over(self, other: str) -> dict[Cell, Difference | None]:
        """The default minus the other, in every cell that both have."""
        pairs = {cell: cell._replace(method=other) for cell in self.scores if cell.method == DEFAULT}
        return {
            cell: difference(self.scores[cell], self.scores[theirs], self.ratio)
            for cell, theirs in pairs.items()
            if theirs in self.scores
        }


# ---------------------------------------------------------------------- running


def drawn(table: LabelledTable, most: int) -> LabelledTable:
    """The table, or where it has more rows than `most` so many of them, by class in proportion."""
    if table.n_samples <= most:
        return table
    (kept, _), *_ = Holdout("drawn", 1, test_share=1 - most / table.n_samples).splits(table.y, seed=0)
    return replace(table, X=table.X[kept], y=table.y[kept])


def grids(name: str, table: LabelledTable, splits: int) -> Iterator[Grid]:
    """What is to be tried on a data set; the slow methods on the first half of the splits."""
    slow = [method for method in OTHERS if method in SLOW]
    quick = [DEFAULT, *(method for method in OTHERS if method not in SLOW)]
    for methods, n_splits in ((quick, splits), (slow, (splits + 1) // 2)):
        cells = product(named_methods(methods), COUNTS, named_classifiers(CLASSIFIERS), table.n_features)
        yield Grid(name, table, cells, named_protocol("holdout-80-20", n_splits=n_splits))


def result(name: str, store: Store, most: int, splits: int, jobs: int) -> Result:
    whole = catalogue.load(name, download=False)
    table = drawn(whole, most)
    rows = [row for grid in grids(name, table, splits) for row in run(grid, store, jobs=jobs)]
    for reason in sorted({row["reason"] for row in rows if row["status"] == "failed"}):
        print(f"{name}: failed: {reason}", file=sys.stderr)
    good = [row for row in rows if row["status"] == "ok"]
    fits: dict[str, list[float]] = {}
    for row in good:
        fits.setdefault(row["trial"]["method"], []).append(row["scores"]["fit_seconds"])
    seconds = {method: float(np.mean(of_method)) for method, of_method in fits.items()}
    return Result(name, whole.n_samples, table, scores_by_cell(good, "accuracy"), seconds, test_to_train(good))


# ---------------------------------------------------------------------- tables


def markdown(head: list[str], rows: list[list[str]]) -> Iterator[str]:
    yield f"| {' | '.join(head)} |"
    yield "| --- |" + " --- |" * (len(head) - 1)
    yield from (f"| {' | '.join(row)} |" for row in rows)
    yield ""


def figure(value: float, digits: int = 1) -> str:
    return "–" if np.isnan(value) else f"{value:.{digits}f}"


def data_sets(results: list[Result]) -> Iterator[str]:
    yield "**The data sets.** Four fifths of the rows used train, one fifth tests.\n"
    rows = [
        [one.name, f"{one.table.n_samples:,} of {one.whole:,}", f"{one.table.n_features:,}", str(one.n_classes)]
        for one in results
    ]
    yield from markdown(["data", "rows used", "columns", "classes"], rows)


def accuracies(results: list[Result]) -> Iterator[str]:
    yield "**Mean accuracy, %,** over data sets and classifiers, and seconds of one fit (mean over data sets).\n"
    rows = []
    for method in (DEFAULT, *OTHERS):
        by_count = [np.mean([one.mean(method, (k,)) for one in results]) for k in COUNTS]
        seconds = np.mean([one.seconds[method] for one in results if method in one.seconds])
        rows.append([method, *map(figure, by_count), figure(float(np.mean(by_count))), figure(float(seconds), 2)])
    yield from markdown(["method", *(f"K = {k}" for k in COUNTS), "all", "seconds"], rows)
    yield "A dash: fewer than K components exist on some of the data sets.\n"


def differences(results: list[Result]) -> Iterator[str]:
    yield f"**{DEFAULT} against each other method**, cell by cell (data set × K × classifier; only cells that both"
    yield "have): mean difference in points, in all cells and where K < C − 1; cells in which it is significantly"
    yield "better / worse by the corrected t test at 5 %, after Holm over the row, and without Holm.\n"
    rows, behind = [], []
    for other in OTHERS:
        listed = [(one, cell, found) for one in results for cell, found in one.over(other).items() if found]
        tested = [found for found in adjusted([found for _, _, found in listed]) if found]
        means = np.array([100 * found.mean for found in tested])
        few = np.array([cell.k < one.n_classes - 1 for one, cell, _ in listed])
        holm = [found.verdict for found in tested]
        plain = [replace(found, adjusted=found.p_value).verdict for found in tested]
        counts = [f"{words.count('better')} / {words.count('worse')}" for words in (holm, plain)]
        rows.append([other, str(len(means)), f"{means.mean():+.1f}", f"{means[few].mean():+.1f}", *counts])
        behind += [
            [one.name, str(cell.k), cell.classifier, other, f"{100 * found.mean:+.1f}", f"{found.p_value:.3f}", mark]
            for (one, cell, _), found, mark in zip(listed, tested, holm, strict=True)
            if found.mean < 0 and found.p_value < LEVEL
        ]
    head = ["other method", "cells", "difference", "where K < C − 1", "better / worse, Holm", "without Holm"]
    yield from markdown(head, rows)
    yield f"**Every cell in which {DEFAULT} is behind at 5 % before Holm:** difference in points, p, and what is left"
    yield "after Holm.\n"
    yield from markdown(["data", "K", "classifier", "other method", "difference", "p", "after Holm"], behind)


def beside_lda(results: list[Result]) -> Iterator[str]:
    yield f"**{LDA} → {DEFAULT}** by data set: mean accuracy over the three classifiers, %; in brackets the number of"
    yield "classifiers for which the difference is significant after Holm over the table (− where it is a loss).\n"
    tested = iter(adjusted([found for one in results for found in one.over(LDA).values()]))
    rows = []
    for one in results:
        signs: dict[int, int] = dict.fromkeys(COUNTS, 0)
        for cell, found in zip(one.over(LDA), tested, strict=False):
            word = found.verdict if found else ""
            signs[cell.k] += (word == "better") - (word == "worse")
        cells = [
            f"{one.mean(LDA, (k,)):.1f} → {one.mean(DEFAULT, (k,)):.1f}" + (f" ({signs[k]})" if signs[k] else "")
            for k in COUNTS
        ]
        rows.append([f"{one.name} ({one.n_classes} classes)", *cells])
    yield from markdown(["data", *(f"K = {k}" for k in COUNTS)], rows)


def mean_ranks(results: list[Result]) -> Iterator[str]:
    complete = [m for m in (DEFAULT, *OTHERS) if not any(np.isnan(one.mean(m)) for one in results)]
    reach = nemenyi_critical_difference(len(complete), len(results))
    yield f"**Mean ranks** over the {len(results)} data sets of the {len(complete)} methods that have every K (1 is"
    yield "best; accuracies averaged over the classifiers). By Nemenyi's test two methods differ at 5 % when their"
    yield f"ranks are {reach:.2f} apart, the critical difference. Last column: the test's p against {DEFAULT}, all K.\n"
    columns, notes = [], []
    for counts in (*((k,) for k in COUNTS), COUNTS):
        table = np.array([[one.mean(method, counts) for method in complete] for one in results])
        friedman = friedman_test(table)
        columns.append([f"{rank:.2f}" for rank in friedman.mean_ranks])
        notes.append(f"{'all' if counts == COUNTS else counts[0]}: {friedman.f_p_value:.1e}")
    p_values = [f"{p:.3f}" if p >= 0.001 else "<.001" for p in nemenyi_p_values(table)[0]]
    rows = [list(row) for row in zip(complete, *columns, ["", *p_values[1:]], strict=True)]
    rows.sort(key=lambda row: float(row[-2]))
    yield from markdown(["method", *(f"K = {k}" for k in COUNTS), "all K", "p"], rows)
    yield f"That all are alike: p (Friedman, Iman and Davenport's F) for K = {', '.join(notes)}.\n"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--store", type=Path, help="file that keeps the results")
    parser.add_argument("--splits", type=int, default=10)
    parser.add_argument("--rows", type=int, default=1_000, help="rows used of larger data sets")
    parser.add_argument("--datasets", default=",".join(DATASETS))
    parser.add_argument("--jobs", type=int, default=1, help="processes")
    parser.add_argument("--into", type=Path, help="the page whose figures to replace")
    options = parser.parse_args()
    results = []
    with opened_store(options.store) as store:
        for name in options.datasets.split(","):
            results.append(result(name, store, options.rows, options.splits, options.jobs))
            print(f"{name} is done", file=sys.stderr, flush=True)
    parts = (data_sets, accuracies, differences, beside_lda, mean_ranks)
    lines = [line for part in parts for line in part(results)]
    if options.into is None:
        print("\n".join(lines))
        return
    before, rest = options.into.read_text(encoding="utf-8").split(BEGIN)
    page = f"{before}{BEGIN}\n\n" + "\n".join(lines) + f"\n{END}{rest.split(END)[1]}"
    options.into.write_text(page, encoding="utf-8")


if __name__ == "__main__":
    main()
