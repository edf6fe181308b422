"""Row 12: what a comparison costs beyond its fits and classifiers, and what fitting once per split saves."""

from __future__ import annotations

import tempfile
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.datasets import load_breast_cancer, load_digits
from sklearn.preprocessing import StandardScaler

from benchmarks.timing import Row, ratio_row
from discrim.evaluation.classifiers import CLASSIFIERS, named_classifiers
from discrim.evaluation.grid import Grid, automatic_counts, product, training_sizes
from discrim.evaluation.methods import METHODS, named_methods
from discrim.evaluation.plan import labelled_table
from discrim.evaluation.protocol import named_protocol
from discrim.evaluation.run import run
from discrim.evaluation.store import Store

ROWS = ("12",)
SPLITS = 4


def grid_of(X: Any, y: Any, methods: list[str]) -> Grid:
    table = labelled_table(X, y)
    protocol = named_protocol("holdout-80-20", n_splits=SPLITS)
    counts = automatic_counts(training_sizes(table, protocol))
    cells = product(named_methods(methods), counts, named_classifiers(["default"]), table.n_features)
    return Grid("bench", table, cells, protocol)


def harness(grid: Grid) -> None:
    """The whole run in this process: splits, trials, scores, store."""
    with tempfile.TemporaryDirectory() as folder, Store(Path(folder) / "results.sqlite") as store:
        run(grid, store, jobs=1)


def bare(grid: Grid, *, every_count: bool = False) -> None:
    """The same fits and classifiers and nothing else; with `every_count` each K has a fit of its own."""
    X, y = grid.table.X, np.unique(grid.table.y, return_inverse=True)[1]
    warnings.simplefilter("ignore")
    for train, test in grid.splits:
        for name in dict.fromkeys(cell.method for cell in grid.cells):
            method = METHODS[name]
            scaling = StandardScaler()
            parts = scaling.fit_transform(X[train]), scaling.transform(X[test])
            counts = sorted({cell.k for cell in grid.cells if cell.method == name})
            features = dict.fromkeys(counts, parts)
            if method.build is not None:
                sizes = training_sizes(grid.table, grid.protocol)
                counts = [k for k in counts if k <= method.most_components(sizes)]
                alone = [k for k in counts if every_count or k < method.nested_from(sizes)]
                for k in {*alone, counts[-1]}:
                    model = method.estimator(k, 0).fit(parts[0], y[train])
                    features[k] = model.transform(parts[0]), model.transform(parts[1])
                for k in set(counts) - set(alone) - {counts[-1]}:
                    features[k] = features[counts[-1]][0][:, :k], features[counts[-1]][1][:, :k]
            for k in counts:
                for classifier in dict.fromkeys(cell.classifier for cell in grid.cells):
                    predicted = CLASSIFIERS[classifier].build().fit(features[k][0], y[train]).predict(features[k][1])
                    np.mean(predicted == y[test])


def measure() -> Iterator[Row]:
    sizes = {
        "breast cancer 569×30": load_breast_cancer(return_X_y=True),
        "digits 1797×64": load_digits(return_X_y=True),
    }
    methods = ["bayes-error-lda", "regularized-lda", "margin-pca-mean", "bayes-error-pca", "pca", "raw"]
    for name, (X, y) in sizes.items():
        grid = grid_of(X, y, methods)
        yield ratio_row(
            "12",
            f"whole comparison, {name} / its fits and classifiers",
            lambda g=grid: harness(g),
            lambda g=grid: bare(g),
            1.1,
        )
        yield ratio_row(
            "12",
            f"fits shared by every K, {name} / a fit for every K",
            lambda g=grid: bare(g),
            lambda g=grid: bare(g, every_count=True),
            1.0,
        )
