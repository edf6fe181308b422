"""Comparison of BayesErrorLDA, the default, with ten other methods on eleven data sets: the tables of docs/study.md.

    DISCRIM_DATA=folder python examples/default_reducer_study.py --store study.sqlite --into docs/study.md

The folder holds the data sets (`discrim datasets` lists those that are available). With --store the results are kept,
and a second run computes only what is missing. Without --into the tables are printed.
"""

from argparse import Namespace
from collections.abc import Iterator

import numpy as np
from study_parts import CLASSIFIERS, Result, better_and_worse, difference, figure, main_of_trials, markdown, tried

from discrim.evaluation.classifiers import named_classifiers
from discrim.evaluation.methods import named_methods
from discrim.evaluation.plan import Grid, product
from discrim.evaluation.protocol import named_protocol
from discrim.evaluation.results import Cell
from discrim.evaluation.statistics import friedman_test, nemenyi_critical_difference, nemenyi_p_values
from discrim.evaluation.store import Store
from discrim.evaluation.summary import LEVEL, Difference, adjusted
from discrim.tables.labelled_table import LabelledTable

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
SLOW = ("nca",)  # takes longer than all others together, so it gets half of the splits
COUNTS = (1, 2, 3, 5)


class ComparedWithDefault(Result):
    """Results on a data set, with differences between the default and the others."""

    def mean(self, method: str, counts: tuple[int, ...] = ()) -> float:
        """Return the mean accuracy, %, over splits, classifiers and these K (or all); NaN if a cell is missing."""
        return self.percent(Cell(method, k, classifier) for k in counts or COUNTS for classifier in CLASSIFIERS)

    def over(self, other: str) -> dict[Cell, Difference | None]:
        """Return the default minus the other, in every cell that both have."""
        pairs = {cell: cell._replace(method=other) for cell in self.scores if cell.method == DEFAULT}
        return {
            cell: difference(self.scores[cell], self.scores[theirs], self.ratio)
            for cell, theirs in pairs.items()
            if theirs in self.scores
        }


# ---------------------------------------------------------------------- running


def grids(name: str, table: LabelledTable, splits: int) -> Iterator[Grid]:
    """Yield the grids of a data set; the slow methods get the first half of the splits."""
    slow = [method for method in OTHERS if method in SLOW]
    quick = [DEFAULT, *(method for method in OTHERS if method not in SLOW)]
    for methods, n_splits in ((quick, splits), (slow, (splits + 1) // 2)):
        cells = product(named_methods(methods), COUNTS, named_classifiers(CLASSIFIERS), table.n_features)
        yield Grid(name, table, cells, named_protocol("holdout-80-20", n_splits=n_splits))


def result(name: str, store: Store, most: int, splits: int, jobs: int) -> ComparedWithDefault:
    return tried(ComparedWithDefault, name, lambda table: grids(name, table, splits), store, most, jobs)


# ---------------------------------------------------------------------- tables


def data_sets(results: list[ComparedWithDefault]) -> Iterator[str]:
    yield "**Data sets.** Four fifths of the rows used are the training set, one fifth the test set.\n"
    yield from markdown(["data", "rows used", "columns", "classes"], [[one.name, *one.sizes] for one in results])


def accuracies(results: list[ComparedWithDefault]) -> Iterator[str]:
    yield "**Mean accuracy, %,** over data sets and classifiers, and seconds per fit (mean over data sets).\n"
    rows = []
    for method in (DEFAULT, *OTHERS):
        by_count = [np.mean([one.mean(method, (k,)) for one in results]) for k in COUNTS]
        seconds = np.mean([one.seconds[method] for one in results if method in one.seconds])
        rows.append([method, *map(figure, by_count), figure(float(np.mean(by_count))), figure(float(seconds), 2)])
    yield from markdown(["method", *(f"K = {k}" for k in COUNTS), "all", "seconds"], rows)
    yield "A dash means that fewer than K components exist on some of the data sets.\n"


def differences(results: list[ComparedWithDefault]) -> Iterator[str]:
    yield f"**{DEFAULT} against each other method**, cell by cell (data set × K × classifier; only cells that both"
    yield "have): mean difference in points, in all cells and in those with K < C − 1; cells in which it is"
    yield "significantly better / worse by the corrected t test at 5 %, with Holm's correction over the row, and"
    yield "without it.\n"
    rows, behind = [], []
    for other in OTHERS:
        listed = [(one, cell, found) for one in results for cell, found in one.over(other).items() if found]
        tested = [found for found in adjusted([found for _, _, found in listed]) if found]
        if not tested:  # one split alone cannot be tested
            continue
        means = np.array([100 * found.mean for found in tested])
        few = np.array([cell.k < one.n_classes - 1 for one, cell, _ in listed])
        gains = [f"{means.mean():+.1f}", f"{means[few].mean():+.1f}"]
        rows.append([other, str(len(means)), *gains, *better_and_worse(tested)])
        behind += [
            [one.name, str(cell.k), cell.classifier, other, *difference_cells(found)]
            for (one, cell, _), found in zip(listed, tested, strict=True)
            if found.mean < 0 and found.p_value < LEVEL
        ]
    head = ["other method", "cells", "difference", "cells with K < C − 1", "better / worse, Holm", "without Holm"]
    yield from markdown(head, rows)
    yield f"**All cells in which {DEFAULT} is behind at 5 % before Holm's correction:** difference in points, p, and"
    yield "the verdict after the correction.\n"
    yield from markdown(["data", "K", "classifier", "other method", "difference", "p", "after Holm"], behind)


def difference_cells(found: Difference) -> list[str]:
    """Return the points, p, and the verdict after Holm's correction."""
    return [f"{100 * found.mean:+.1f}", f"{found.p_value:.3f}", found.verdict]


def compared_with_lda(results: list[ComparedWithDefault]) -> Iterator[str]:
    yield f"**{LDA} → {DEFAULT}** by data set: mean accuracy over the three classifiers, %; in brackets the number of"
    yield "classifiers for which the difference is significant after Holm's correction over the table (− for a loss).\n"
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


def mean_ranks(results: list[ComparedWithDefault]) -> Iterator[str]:
    complete = [m for m in (DEFAULT, *OTHERS) if not any(np.isnan(one.mean(m)) for one in results)]
    reach = nemenyi_critical_difference(len(complete), len(results))
    yield f"**Mean ranks** over the {len(results)} data sets of the {len(complete)} methods that have every K (1 is"
    yield "best; accuracies averaged over the classifiers). By Nemenyi's test two methods differ at 5 % if their"
    yield f"ranks differ by {reach:.2f}, the critical difference. Last column: its p against {DEFAULT}, all K.\n"
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
    yield f"p value for equality of all methods (Friedman test, Iman and Davenport's F), for K = {', '.join(notes)}.\n"


def tables(results: list[ComparedWithDefault], options: Namespace) -> Iterator[str]:
    for part in (data_sets, accuracies, differences, compared_with_lda, mean_ranks):
        yield from part(results)


def main() -> None:
    main_of_trials(__doc__, DATASETS, result, tables)


if __name__ == "__main__":
    main()
