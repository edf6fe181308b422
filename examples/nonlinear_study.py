"""Accuracy of the nonlinear maps: the tables of docs/posterior_map.md.

    DISCRIM_DATA=folder python examples/nonlinear_study.py --store study.sqlite --into docs/posterior_map.md

The folder holds the data sets (`discrim datasets` lists those that are available). With --store the results are kept,
and a second run computes only what is missing. Without --into the tables are printed. Supervised UMAP is included if
umap-learn is installed (pip install 'discrim[study]').
"""

from argparse import Namespace
from collections.abc import Iterator
from importlib.util import find_spec

import numpy as np
from default_reducer_study import DATASETS as MORE_CLASSES
from default_reducer_study import difference_cells
from study_parts import CLASSIFIERS, Result, better_and_worse, difference, figure, main_of_trials, markdown, tried

from discrim.evaluation.classifiers import named_classifiers
from discrim.evaluation.methods import METHODS, named_methods
from discrim.evaluation.plan import Grid, product
from discrim.evaluation.protocol import named_protocol
from discrim.evaluation.results import Cell
from discrim.evaluation.store import Store
from discrim.evaluation.summary import LEVEL, Difference, adjusted
from discrim.registry import Method, never
from discrim.tables.labelled_table import LabelledTable

TWO_CLASSES = ("wdbc", "pima", "ionosphere", "sonar", "splice", "spambase", "ilpd", "leukemia", "colon", "prostate")
LINEAR, KERNEL, POSTERIOR, RAW = "bayes-error-lda", "kernel-bayes-error-lda", "posterior-map", "raw"
UMAP = Method(
    "supervised-umap",
    "UMAP that sees the labels",
    "umap:UMAP",
    nested_from=never,
    seeded=True,
    takes_sparse=False,
    ours=False,
    written="umap.UMAP()",
)
COUNTS = (1, 2, 3, 5, 10)
UMAP_COUNTS = (2, 5)  # every K needs its own fit


def compared() -> tuple[Method, ...]:
    """Return the methods of this study."""
    umap = (UMAP,) if find_spec("umap") else ()
    return (*named_methods([LINEAR, KERNEL, POSTERIOR]), *umap, *named_methods(["pca", RAW]))


class ComparedWithLinear(Result):
    """Results on a data set; a method with fewer than K components is compared with all of them."""

    def cell(self, method: str, k: int, classifier: str) -> Cell | None:
        """Return the cell of K components; of all components if a method has fewer (raw features have one K)."""
        tried = sorted(cell.k for cell in self.scores if cell.method == method and cell.classifier == classifier)
        there = tried if method == RAW else [one for one in tried if one <= k]
        if not there or (method == UMAP.name and k not in tried):
            return None
        return Cell(method, there[-1], classifier)

    def mean(self, method: str, k: int) -> float:
        """Return the mean accuracy over splits and classifiers, in percent; NaN if there is none."""
        return self.percent(self.cell(method, k, classifier) for classifier in CLASSIFIERS)

    def over(self, method: str, other: str) -> dict[Cell, Difference]:
        """Return the method minus the other with as many components, every pair of cells once."""
        found: dict[tuple[Cell, Cell], tuple[Cell, Difference]] = {}
        for k in COUNTS:
            for classifier in CLASSIFIERS:
                ours, theirs = self.cell(method, k, classifier), self.cell(other, k, classifier)
                if ours and theirs and (ours, theirs) not in found:
                    gap = difference(self.scores[ours], self.scores[theirs], self.ratio)
                    if gap:
                        found[ours, theirs] = Cell(method, k, classifier), gap
        return dict(found.values())


# ---------------------------------------------------------------------- running


def result(name: str, store: Store, most: int, splits: int, jobs: int) -> ComparedWithLinear:
    def grids(table: LabelledTable) -> Iterator[Grid]:
        cells: tuple[Cell, ...] = ()
        for method in compared():
            counts = [k for k in (UMAP_COUNTS if method is UMAP else COUNTS) if k <= table.n_features]
            cells += product([method], counts, named_classifiers(CLASSIFIERS), table.n_features)
        protocol = named_protocol("holdout-80-20")  # a longer run uses more of its splits
        yield Grid(name, table, cells, protocol, methods=METHODS | {UMAP.name: UMAP}, n_splits=splits)

    return tried(ComparedWithLinear, name, grids, store, most, jobs)


# ---------------------------------------------------------------------- tables


def groups(results: list[ComparedWithLinear]) -> Iterator[tuple[str, list[ComparedWithLinear]]]:
    """Yield the data sets with two classes, then those with more."""
    for title, is_in in (("two classes", lambda one: one.n_classes == 2), ("more", lambda one: one.n_classes > 2)):
        if part := [one for one in results if is_in(one)]:
            yield title, part


def names_of(results: list[ComparedWithLinear]) -> list[str]:
    """Return the methods, in the order of the comparison."""
    return [method.name for method in compared() if any(method.name in one.seconds for one in results)]


def accuracies(results: list[ComparedWithLinear]) -> Iterator[str]:
    yield "**Mean accuracy, %,** over data sets, splits and three classifiers (linear SVM, five neighbours, naive"
    yield "Bayes). If a method has fewer than K components, all of them are used.\n"
    for title, part in groups(results):
        rows = [
            [name, *(figure(np.mean([one.mean(name, k) for one in part])) for k in COUNTS)] for name in names_of(part)
        ]
        yield from markdown([f"{len(part)} data sets, {title}", *(f"K = {k}" for k in COUNTS)], rows)


def by_data_set(results: list[ComparedWithLinear]) -> Iterator[str]:
    yield "**Two components, by data set:** mean accuracy over the classifiers, %.\n"
    listed = names_of(results)
    rows = [[one.name, *one.sizes, *(figure(one.mean(name, 2)) for name in listed)] for one in results]
    yield from markdown(["data", "rows used", "columns", "classes", *listed], rows)


def differences(results: list[ComparedWithLinear]) -> Iterator[str]:
    yield "**Differences**, cell by cell (data set × K × classifier): their mean in points, and the number of cells in"
    yield "which the first is significantly better / worse by the corrected t test at 5 %, with Holm's correction over"
    yield "the line and without it.\n"
    listed = names_of(results)
    pairs = [(POSTERIOR, other) for other in listed if other != POSTERIOR]
    pairs += [(KERNEL, other) for other in (LINEAR, RAW) if other in listed]
    rows = []
    for method, other in pairs:
        for title, part in groups(results):
            found = adjusted([gap for one in part for gap in one.over(method, other).values()])
            mean = f"{100 * np.mean([one.mean for one in found]):+.1f}"
            rows.append([f"{method} against {other}", title, str(len(found)), mean, *better_and_worse(found)])
    head = ["", "classes", "cells", "mean difference", "better / worse, Holm", "without Holm"]
    yield from markdown(head, rows)


def losses(results: list[ComparedWithLinear]) -> Iterator[str]:
    yield f"**Cells in which {POSTERIOR} is worse:** all cells in which it is significantly behind at 5 % before Holm's"
    yield "correction; the last column gives the verdict after it.\n"
    rows = []
    for other in names_of(results):
        if other == POSTERIOR:
            continue
        for _, part in groups(results):
            listed = [(one.name, cell, gap) for one in part for cell, gap in one.over(POSTERIOR, other).items()]
            for (name, cell, _), gap in zip(listed, adjusted([gap for *_, gap in listed]), strict=True):
                if gap.mean < 0 and gap.p_value < LEVEL:
                    rows.append([name, str(cell.k), cell.classifier, other, *difference_cells(gap)])
    if rows:
        yield from markdown(["data", "K", "classifier", "other method", "difference", "p", "after Holm"], rows)
    else:
        yield "None.\n"


def cost(results: list[ComparedWithLinear]) -> Iterator[str]:
    yield "**Seconds per fit**, mean over the data sets (one core of a busy machine).\n"
    listed = [name for name in names_of(results) if name != RAW]
    rows = [
        [name, figure(float(np.mean([one.seconds[name] for one in results if name in one.seconds])), 2)]
        for name in listed
    ]
    yield from markdown(["method", "seconds"], rows)


def tables(results: list[ComparedWithLinear], options: Namespace) -> Iterator[str]:
    yield f"{options.splits} random 80/20 splits, at most {options.rows:,} rows per data set.\n"
    for part in (accuracies, by_data_set, differences, losses, cost):
        yield from part(results)


if __name__ == "__main__":
    main_of_trials(__doc__, (*TWO_CLASSES, *MORE_CLASSES), result, tables)
