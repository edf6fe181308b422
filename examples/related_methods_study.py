"""Comparison of all methods of the registry on data sets of docs/study.md: the tables of docs/related_methods.md.

    DISCRIM_DATA=folder python examples/related_methods_study.py --store related.sqlite --into docs/related_methods.md

The folder holds the data sets (`discrim datasets` lists those that are available). With --store the results are kept,
and a second run computes only what is missing. Without --into the tables are printed.
"""

import time
from argparse import Namespace
from collections.abc import Iterator
from typing import Any

import numpy as np
from default_reducer_study import DATASETS, ComparedWithDefault, data_sets
from sklearn.base import clone
from study_parts import CLASSIFIERS, better_and_worse, difference, figure, main_of_trials, markdown, tried

import discrim
from discrim.evaluation.classifiers import named_classifiers
from discrim.evaluation.methods import named_methods
from discrim.evaluation.plan import Grid, product
from discrim.evaluation.protocol import named_protocol
from discrim.evaluation.statistics import friedman_test, nemenyi_critical_difference
from discrim.evaluation.store import Store
from discrim.evaluation.summary import adjusted
from discrim.registry import OUR_METHODS
from discrim.tables.labelled_table import LabelledTable

RELATED = (
    "supervised-pca",
    "screened-pca",
    "optimal-low-rank",
    "local-fisher-discriminant",
    "pairwise-eigenvectors",
    "supervised-probabilistic-pca",
    "support-vector-decomposition",
    "logistic-pca",
    "supervised-exponential-pca",
)
PEERS = ("pls", "lda")  # scikit-learn's
YARDSTICK, BEST = "pca", "bayes-error-lda"
COUNTS = (1, 2, 3, 5, 10)
# Methods based on moments, with the options that are set to half of the columns.
TIMED: dict[str, tuple[str, ...]] = {
    "SupervisedPCA": (),
    "OptimalLowRank": (),
    "ScreenedPCA": ("n_selected",),
    "SupervisedProbabilisticPCA": (),
    "PairwiseEigenvectors": (),
}


def all_methods() -> tuple[str, ...]:
    return (*(one.name for one in OUR_METHODS), *PEERS)


def result(name: str, store: Store, most: int, splits: int, jobs: int) -> ComparedWithDefault:
    def grids(table: LabelledTable) -> Iterator[Grid]:
        cells = product(named_methods(all_methods()), COUNTS, named_classifiers(CLASSIFIERS), table.n_features)
        yield Grid(name, table, cells, named_protocol("holdout-80-20", n_splits=splits))

    return tried(ComparedWithDefault, name, grids, store, most, jobs)


def complete(results: list[ComparedWithDefault], counts: tuple[int, ...]) -> list[str]:
    """Return the methods that have all these K on every data set."""
    return [m for m in all_methods() if not any(np.isnan(one.mean(m, (k,))) for one in results for k in counts)]


def accuracies(results: list[ComparedWithDefault]) -> Iterator[str]:
    yield "**Mean accuracy, %,** over data sets and classifiers, and seconds per fit (mean over data sets, on a busy"
    yield "machine). The related methods are listed first, in bold.\n"
    related = [method for method in all_methods() if method in RELATED]
    rows = []
    for method in (*related, *(one for one in all_methods() if one not in RELATED)):
        by_count = [float(np.mean([one.mean(method, (k,)) for one in results])) for k in COUNTS]
        seconds = [one.seconds[method] for one in results if method in one.seconds]
        name = f"**{method}**" if method in RELATED else method
        rows.append([name, *map(figure, by_count), figure(float(np.mean(seconds)), 2) if seconds else "–"])
    yield from markdown(["method", *(f"K = {k}" for k in COUNTS), "seconds"], rows)
    yield "A dash means that fewer than K components exist on some of the data sets.\n"


def by_data_set(results: list[ComparedWithDefault]) -> Iterator[str]:
    yield f"**By data set:** mean accuracy over the classifiers and K = {', '.join(map(str, COUNTS))}, %.\n"
    shown = [*(m for m in all_methods() if m in RELATED), YARDSTICK, "regularized-lda", BEST]
    rows = [[method, *(figure(one.mean(method, COUNTS)) for one in results)] for method in shown]
    yield from markdown(["method", *(one.name for one in results)], rows)


def against(results: list[ComparedWithDefault], other: str) -> Iterator[str]:
    yield f"**Each related method against {other}**, cell by cell (data set × K × classifier; only cells that both"
    yield "have): mean difference in points, and cells in which it is significantly better / worse by the corrected t"
    yield "test at 5 %, with Holm's correction over the row, and without it.\n"
    rows = []
    for method in (one for one in all_methods() if one in RELATED):
        pairs = [
            (one, cell, cell._replace(method=other))
            for one in results
            for cell in one.scores
            if cell.method == method and cell._replace(method=other) in one.scores
        ]
        found = [difference(one.scores[mine], one.scores[theirs], one.ratio) for one, mine, theirs in pairs]
        tested = [one for one in adjusted([one for one in found if one]) if one]
        if not tested:
            continue
        mean = f"{100 * np.mean([one.mean for one in tested]):+.1f}"
        rows.append([method, str(len(tested)), mean, *better_and_worse(tested)])
    yield from markdown(["method", "cells", "difference", "better / worse, Holm", "without Holm"], rows)


def mean_ranks(results: list[ComparedWithDefault]) -> Iterator[str]:
    yield f"**Mean ranks** over the {len(results)} data sets (1 is best; accuracies averaged over the classifiers), at"
    yield "each K among the methods that have it on every data set; over all K among those that have every K. By"
    yield "Nemenyi's test two methods differ at 5 % if their ranks differ by the critical difference.\n"
    columns: list[dict[str, float]] = []
    notes, reaches = [], []
    for counts in (*((k,) for k in COUNTS), COUNTS):
        methods = complete(results, counts)
        friedman = friedman_test(np.array([[one.mean(method, counts) for method in methods] for one in results]))
        columns.append(dict(zip(methods, friedman.mean_ranks, strict=True)))
        reaches.append(f"{nemenyi_critical_difference(len(methods), len(results)):.1f} of {len(methods)}")
        notes.append(f"{'all' if counts == COUNTS else counts[0]}: {friedman.f_p_value:.1e}")
    order = sorted(all_methods(), key=lambda m: (columns[-1].get(m, np.inf), columns[1].get(m, np.inf)))
    rows = []
    for method in order:
        name = f"**{method}**" if method in RELATED else method
        rows.append([name, *(figure(column.get(method, float("nan"))) for column in columns)])
    rows.append(["*critical difference*", *reaches])
    yield from markdown(["method", *(f"K = {k}" for k in COUNTS), "all K"], rows)
    yield f"p value for equality of all methods (Friedman test, Iman and Davenport's F), for K = {', '.join(notes)}.\n"


def fit_seconds(model: Any, X: np.ndarray, y: np.ndarray) -> float:
    """Return the processor seconds of a fit, the minimum of three."""
    found = []
    for _ in range(3):
        start = time.process_time()
        clone(model).fit(X, y)
        found.append(time.process_time() - start)
    return min(found)


def speeds() -> Iterator[str]:
    yield "**Time of a fit divided by that of discrim's PCA** with as many components (processor time, minimum of"
    yield "three, simulated rows of ten classes), for methods based on moments. K is in brackets; up to nine components"
    yield "are derived from the class means.\n"
    rows, rng = [], np.random.default_rng(0)
    sizes = ((20_000, 100), (5_000, 400), (400, 3_000))
    tables = []
    for n, d in sizes:
        y = rng.integers(0, 10, n)
        tables.append((rng.standard_normal((n, d)) + rng.standard_normal((10, d))[y], y))
    for name, options in TIMED.items():
        for k in (5, 20):
            ratios = []
            for X, y in tables:
                model = getattr(discrim, name)(k, **dict.fromkeys(options, X.shape[1] // 2))
                mine, pca = fit_seconds(model, X, y), fit_seconds(discrim.PCA(k), X, y)
                ratios.append(figure(mine / pca, 2))
            rows.append([f"{name} ({k})", *ratios])
    yield from markdown(["method", *(f"{n:,}×{d:,}" for n, d in sizes)], rows)


def tables(results: list[ComparedWithDefault], options: Namespace) -> Iterator[str]:
    yield f"{options.splits} splits, at most {options.rows} rows per data set.\n"
    for part in (data_sets, accuracies, by_data_set):
        yield from part(results)
    for other in (YARDSTICK, BEST):
        yield from against(results, other)
    yield from mean_ranks(results)
    yield from speeds()


if __name__ == "__main__":
    main_of_trials(__doc__, DATASETS, result, tables, splits=5, rows=300)
