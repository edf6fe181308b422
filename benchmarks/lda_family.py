"""Rows 3, 4, 10, 11 and 12b: the LDA family against scikit-learn's LDA."""

from __future__ import annotations

import warnings
from collections.abc import Iterator

import numpy as np
import scipy.sparse as sp
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.model_selection import GridSearchCV, StratifiedKFold

from benchmarks.timing import Row, cpu_seconds, medians, peak_memory, ratio_row
from discrim import (
    PCA,
    FisherLDA,
    MarginPCA,
    MaximumMarginCriterion,
    NullSpaceLDA,
    OrthogonalLDA,
    RegularizedLDA,
    UncorrelatedLDA,
)
from discrim.core.cross_validation import PATH

ROWS = ("3", "4", "10", "11", "12b")


def classes(n: int, d: int, n_classes: int = 5, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    y = np.arange(n) % n_classes
    return rng.standard_normal((n, d)) + 0.3 * rng.standard_normal((n_classes, d))[y], y


def tall() -> Iterator[Row]:
    for n, d in ((10_000, 100), (100_000, 100), (100_000, 500)):
        X, y = classes(n, d)
        for model in (FisherLDA(), RegularizedLDA(shrinkage=0.1), UncorrelatedLDA()):
            for solver, goal in (("svd", 1 / 12), ("eigen", 1 / 3.5)):
                theirs = LinearDiscriminantAnalysis(solver=solver)
                work = f"{type(model).__name__} {n}×{d} / scikit-learn's LDA({solver})"
                fit = lambda m=model, X=X, y=y: m.fit(X, y)  # noqa: E731
                yield ratio_row("3", work, fit, lambda t=theirs, X=X, y=y: t.fit(X, y), goal, repeats=3)
    extra = peak_memory(lambda: FisherLDA().fit(X, y)) / X.nbytes
    yield {"row": "3", "work": "extra memory / X, FisherLDA 100000×500", "goal": 0.05, "ratio": extra}
    theirs_extra = peak_memory(lambda: LinearDiscriminantAnalysis().fit(X, y)) / X.nbytes
    yield {"row": "3", "work": "extra memory / X, scikit-learn's", "goal": None, "ratio": theirs_extra}


def wide() -> Iterator[Row]:
    for n, d in ((100, 5000), (500, 10_000)):
        X, y = classes(n, d)
        theirs = LinearDiscriminantAnalysis()
        for model in (NullSpaceLDA(), OrthogonalLDA(), RegularizedLDA(shrinkage=0.1)):
            work = f"{type(model).__name__} {n}×{d} / scikit-learn's LDA(svd)"
            yield ratio_row(
                "4", work, lambda m=model, X=X, y=y: m.fit(X, y), lambda t=theirs, X=X, y=y: t.fit(X, y), 1 / 8, 3
            )


def many_classes() -> Iterator[Row]:
    for n_classes, goal in ((100_000, 0.5), (1_000_000, 5.0)):
        X, y = classes(2 * n_classes, 10, n_classes)
        model = FisherLDA(5)
        model.fit(X[:100], y[:100] % 5)
        seconds = cpu_seconds(lambda m=model, X=X, y=y: m.fit(X, y))
        yield {"row": "10", "work": f"seconds for {n_classes:,} classes", "goal": goal, "ratio": seconds}
    memory = peak_memory(lambda: FisherLDA(5).fit(X, y)) / X.nbytes
    yield {"row": "10", "work": "memory / X, 1,000,000 classes", "goal": 3.0, "ratio": memory}


def text(n: int = 20_000, d: int = 50_000, per_row: int = 80) -> tuple[sp.csr_array, np.ndarray]:
    """Rows of a Zipf vocabulary, a little different in each of 20 classes."""
    rng = np.random.default_rng(0)
    y = rng.integers(0, 20, n)
    common = (d * rng.random((n, per_row)) ** 3).astype(np.int64)
    topical = (y[:, None] * 97 + (500 * rng.random((n, per_row)) ** 2).astype(np.int64)) % d
    columns = np.where(rng.random((n, per_row)) < 0.15, topical, common)
    X = sp.csr_array((rng.random(n * per_row) + 0.5, (np.repeat(np.arange(n), per_row), columns.ravel())), shape=(n, d))
    return X, y


def sparse() -> Iterator[Row]:
    X, y = text()
    size = X.data.nbytes + X.indices.nbytes + X.indptr.nbytes
    for model in (
        PCA(10),
        MarginPCA(10, pairs="mean"),
        MaximumMarginCriterion(10),
        RegularizedLDA(10, shrinkage=0.1),
    ):
        seconds = cpu_seconds(lambda m=model: m.fit(X, y))
        yield {"row": "11", "work": f"seconds, {model} sparse 20000×50000", "goal": 60.0, "ratio": seconds}
        peak = peak_memory(lambda m=model: m.fit(X, y))
        result = 8 * X.shape[1] * 20 * 4  # class means and directions of 20 classes
        work = f"memory / (3 × sparse X + result), {type(model).__name__}"
        yield {"row": "11", "work": work, "goal": 1.0, "ratio": peak / (3 * size + result)}


def searched() -> Iterator[Row]:
    for (n, d), goal in {(10_000, 100): 4.0, (50_000, 200): 4.0, (300, 5000): 3.0}.items():
        X, y = classes(n, d)
        search = RegularizedLDA(shrinkage="cv")
        one = RegularizedLDA(shrinkage=0.1)
        work = f"shrinkage='cv' ({len(PATH)} values, 5 folds) {n}×{d} / one fit"
        fit = lambda m=search, X=X, y=y: m.fit(X, y)  # noqa: E731
        yield ratio_row("12b", work, fit, lambda m=one, X=X, y=y: m.fit(X, y), goal, 3)
    X, y = classes(2_000, 100)
    grid = GridSearchCV(LinearDiscriminantAnalysis(solver="lsqr"), {"shrinkage": PATH.tolist()}, cv=StratifiedKFold(5))
    ours, theirs = medians(lambda: RegularizedLDA().fit(X, y), lambda: grid.fit(X, y), repeats=1)
    work = "shrinkage='cv' 2000×100 / GridSearchCV over scikit-learn's LDA(lsqr)"
    yield {"row": "12b", "work": work, "goal": None, "ratio": ours / theirs}


def measure() -> Iterator[Row]:
    warnings.simplefilter("ignore")
    for part in (tall, wide, many_classes, sparse, searched):
        yield from part()
