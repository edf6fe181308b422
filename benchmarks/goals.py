"""The main table: the time of our fits, compared with the time of other libraries."""

from __future__ import annotations

import contextlib
import os
import statistics
import tempfile
import warnings
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from sklearn import decomposition
from sklearn.base import clone
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis

from benchmarks import crammer_singer
from benchmarks.beyond_memory import cost
from benchmarks.tables import classes, image_segments, table
from benchmarks.timing import Case, Row, busy_core, in_turns, peak_memory
from discrim import (
    PCA,
    PLSDA,
    BayesErrorLDA,
    FisherLDA,
    KernelMap,
    LogisticPCA,
    MarginPCA,
    OptimalLowRank,
    PosteriorMap,
    RegularizedLDA,
    SupervisedPCA,
)
from discrim.tables import catalogue
from discrim.tables.read import read_table

SKLEARN = "scikit-learn"


def pca() -> Iterator[Case]:
    goals = {(1_000, 50): (0.9, 1.0), (10_000, 100): (0.9, 0.8), (100_000, 100): (0.85, 0.6), (100_000, 500): (1, None)}
    for (n, d), (goal, wall_goal) in goals.items():
        X, theirs = table(n, d), decomposition.PCA(10, svd_solver="covariance_eigh")
        ours, work = lambda X=X: PCA(10).fit(X), f"PCA(10) {n:,}×{d} / "
        yield Case("pca", f"{work}PCA(covariance_eigh)", ours, lambda X=X, t=theirs: t.fit(X), goal, SKLEARN, wall_goal)
        if (intel := _intel()) is not None and d < 500:
            yield Case("pca", f"{work}oneDAL's", ours, lambda X=X, t=intel: t.fit(X), None, "scikit-learn-intelex")
    X = table(1_000_000, 100)
    yield Case("pca", "PCA(10) 1,000,000×100 / one bare XᵀX", lambda: PCA(10).fit(X), lambda: X.T @ X, None, "numpy")


def _intel() -> decomposition.PCA | None:
    """Return oneDAL's PCA, the fastest on a CPU, if scikit-learn-intelex is installed."""
    try:
        from sklearnex import decomposition as intel
    except ImportError:
        return None
    return intel.PCA(10, svd_solver="covariance_eigh")


def margin() -> Iterator[Case]:
    for n, d in ((10_000, 100), (100_000, 100)):
        X, y = table(n, d), np.arange(n) % 2
        work = f"MarginPCA(10) {n:,}×{d} / our PCA"
        yield Case("margin", work, lambda X=X, y=y: MarginPCA(10).fit(X, y), lambda X=X: PCA(10).fit(X), 1.1)


def bare() -> Iterator[Case]:
    for (n, d), goal in {(10_000, 100): 1.6, (100_000, 100): 1.1, (100, 5_000): 2.5, (400, 8_000): 1.6}.items():
        X = table(n, d)
        product = (lambda X=X: X.T @ X) if n > d else (lambda X=X: X @ X.T)
        work = f"PCA(10) {n:,}×{d:,} / one bare {'XᵀX' if n > d else 'XXᵀ'}"
        yield Case("bare", work, lambda X=X: PCA(10).fit(X), product, goal, "numpy")


def wide() -> Iterator[Case]:
    for n, d in ((100, 5_000), (400, 8_000)):
        X, y = classes(n, d, 10)
        for solver, goal in (("full", 1 / 15), ("auto", 1 / 4)):
            theirs = decomposition.PCA(10, svd_solver=solver, random_state=0)
            work = f"PCA(10) {n}×{d:,} / PCA({solver})"
            yield Case("wide", work, lambda X=X: PCA(10).fit(X), lambda X=X, t=theirs: t.fit(X), goal, SKLEARN)
        lda, ours = LinearDiscriminantAnalysis(), RegularizedLDA(shrinkage=0.1)
        work = f"RegularizedLDA {n}×{d:,} / LDA(svd)"
        yield Case(
            "wide", work, lambda m=ours, X=X, y=y: m.fit(X, y), lambda t=lda, X=X, y=y: t.fit(X, y), 1 / 12, SKLEARN
        )


def lda() -> Iterator[Case]:
    X, y = classes(10_000, 100, 10)
    for model in (FisherLDA(), RegularizedLDA(shrinkage=0.1)):
        for solver, goal, wall_goal in (("svd", 1 / 15, 0.05), ("eigen", 1 / 5, None)):
            theirs = LinearDiscriminantAnalysis(solver=solver)
            work, fit = f"{type(model).__name__} 10,000×100 / LDA({solver})", lambda m=model: m.fit(X, y)
            yield Case("lda", work, fit, lambda t=theirs: t.fit(X, y), goal, SKLEARN, wall_goal)


def cv() -> Iterator[Case]:
    fixed, searched, bayes = RegularizedLDA(shrinkage=0.1), RegularizedLDA(), BayesErrorLDA()
    for (n, d), goal in {(10_000, 100): 3.0, (100_000, 100): 2.0}.items():
        X, y = classes(n, d, 10)
        one, path, pairs = (lambda m=m, X=X, y=y: m.fit(X, y) for m in (fixed, searched, bayes))
        yield Case("cv", f"RegularizedLDA() {n:,}×{d} / at a fixed shrinkage", path, one, goal)
        yield Case("cv", f"BayesErrorLDA() {n:,}×{d} / RegularizedLDA()", pairs, path, 1.25)
    X, y = classes(400, 8_000, 10)
    work = "BayesErrorLDA() 400×8,000 / one bare XXᵀ"
    yield Case("cv", work, lambda: bayes.fit(X, y), lambda: X @ X.T, 4.0, "numpy")


def map_() -> Iterator[Case | Row]:
    X, y = image_segments()
    one = lambda: LinearDiscriminantAnalysis().fit(X, y)  # noqa: E731
    for model in (BayesErrorLDA(2), PosteriorMap(2), KernelMap(gamma="cv", n_landmarks=500), LogisticPCA(2)):
        work = f"{type(model).__name__} 2,310×19, 7 classes / LDA(svd)"
        yield Case("map", work, lambda m=model: m.fit(X, y), one, None, SKLEARN)
    if "DISCRIM_DATA" in os.environ:
        digits = catalogue.load("mnist_test10k")
        fit = lambda: PosteriorMap(2).fit(digits.X, digits.y)  # noqa: E731
        times = dict(zip(("seconds", "ratio"), reversed(in_turns((fit, None))[0]), strict=True))
        work = "PosteriorMap(2) of 10,000 digits×784: wall seconds with default threads"
        yield {"row": "map", "work": work, "goal": None, **times}


def use() -> Iterator[Case]:
    """Yield calls of a fitted model, and of statistics, compared with the fit."""
    X, y = classes(100_000, 100, 10)
    model = RegularizedLDA(shrinkage=0.1).fit(X, y)
    fit = lambda: clone(model).fit(X, y)  # noqa: E731
    for name, call in {
        "transform": lambda: model.transform(X),
        "predict": lambda: model.predict(X),
        "statistics": lambda: model.statistics(X, y),
        "partial_fit": lambda: clone(model).partial_fit(X, y),
    }.items():
        yield Case("use", f"RegularizedLDA(shrinkage=0.1).{name} 100,000×100 / fit", call, fit, 1.2)


def stream(n: int = 2_000_000, d: int = 100, step: int = 20_000) -> Iterator[Case]:
    with tempfile.TemporaryDirectory() as folder:
        X = np.lib.format.open_memmap(Path(folder) / "X.npy", mode="w+", dtype=np.float64, shape=(n, d))
        for first in range(0, n, step):
            X[first : first + step] = table(step, d, seed=first)
        codes = np.arange(n) % 2

        def one_pass() -> None:
            total = np.zeros((d, d))
            for first in range(0, n, step):
                part = X[first : first + step]
                total += part.T @ part

        def streamed(model: PCA | MarginPCA, y: np.ndarray) -> None:
            for first in range(0, n, step):
                model.partial_fit(X[first : first + step], y[first : first + step])
            _ = model.components_

        for name, make, y in (
            ("PCA", lambda: PCA(10), codes),
            ("MarginPCA(mean), text labels", lambda: MarginPCA(10, pairs="mean"), np.array(["no", "yes"])[codes]),
        ):
            work = f"{name}, stream of {n:,}×{d} from a file / one pass of XᵀX"
            yield Case("stream", work, lambda m=make, y=y: streamed(m(), y), one_pass, 1.15, "numpy")


def svm() -> Iterator[Case]:
    wanted = {"digit counts 3,000×64": 0.35, "text 20,000×50,000, 15 classes": 0.4}
    for name, X, y in crammer_singer.tables(wanted):
        yield crammer_singer.against_liblinear("svm", name, X, y, wanted[name])


def labels() -> Iterator[Case | Row]:
    """Yield the cost of labels: other methods of one pass compared with PCA, and the memory of very many classes."""
    X, y = classes(10_000, 100, 10)
    for method in (SupervisedPCA, OptimalLowRank, PLSDA):
        work = f"{method.__name__}(10) 10,000×100, 10 classes / our PCA"
        yield Case("labels", work, lambda m=method: m(10).fit(X, y), lambda: PCA(10).fit(X), 1.2)
    n_classes = 1_000_000
    X, y = classes(2 * n_classes, 10, n_classes)
    used = peak_memory(lambda: FisherLDA(5).fit(X, y)) / X.nbytes
    yield {"row": "labels", "work": "memory of 1,000,000 classes / X (2,000,000×10)", "goal": 2.5, "ratio": used}


def csv() -> Iterator[Case]:
    from pyarrow import csv as arrow

    rng = np.random.default_rng(0)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "table.csv"
        header = ",".join([*(f"x{i}" for i in range(30)), "y"])
        cells = np.column_stack([rng.standard_normal((40_000, 30)), np.arange(40_000) % 3])
        np.savetxt(path, cells, delimiter=",", header=header, comments="", fmt=["%.6f"] * 30 + ["%d"])
        one = arrow.ReadOptions(use_threads=False)
        read, theirs = lambda: read_table(path, "y"), lambda: arrow.read_csv(path, one)
        yield Case("csv", "CSV of 40,000×31 / pyarrow", read, theirs, 1.2, "pyarrow", threads=False)


def compare() -> Iterator[Row]:
    """Yield the wall time of a comparison with its default number of processes over the best number, idle and busy."""
    from discrim import compare as compare_methods

    X, y = image_segments(1_200)
    sides = {
        jobs: (lambda jobs=jobs: compare_methods(X, y, methods=["pca", "bayes-error-lda"], n_splits=4, n_jobs=jobs))
        for jobs in (None, *range(1, (os.cpu_count() or 1) + 1))
    }
    for machine, state in ((contextlib.nullcontext(), "idle"), (busy_core(), "one core busy")):
        with machine:
            taken = [wall for wall, _ in in_turns(*((side, None) for side in sides.values()))]
        times = {"seconds": taken[0], "theirs": min(taken[1:]), "ratio": taken[0] / min(taken[1:])}
        work = f"compare 1,200×19 as it comes / best number of processes, {state}: wall time"
        yield {"row": "compare", "work": work, "goal": 1.15, **times}


FIRST = """
import numpy as np, warnings
warnings.simplefilter("ignore")
from discrim import MarginPCA, CrammerSingerSVC
X, y = np.random.default_rng(0).normal(size=(4_000, 12)), np.arange(4_000) % 4
{}.fit(X, y)
"""
COMMAND = "import sys\nsys.argv[1:] = {}\nfrom discrim.cli import main\nmain()"


def start() -> Iterator[Row]:
    """Yield CPU seconds of whole processes: an import, the command line, and first fits that compile."""
    with tempfile.TemporaryDirectory() as folder:
        rows, model, out = (str(Path(folder) / name) for name in ("rows.csv", "model.discrim", "features.csv"))
        X = np.random.default_rng(0).normal(size=(12, 4))
        np.savetxt(rows, np.c_[X, np.arange(12) % 3], delimiter=",", header="a,b,c,d,y", comments="")
        files = ["--model", model, "--out", out]
        cost(COMMAND.format(["project", rows, "--target", "y", *files]), NUMBA_CACHE_DIR=folder)
        for name, goal, code in (
            ("import discrim", 0.3, "import discrim"),
            ("discrim --help", 0.3, COMMAND.format(["--help"])),
            ("discrim apply to 12 rows", 2.0, COMMAND.format(["apply", model, rows, "--out", out + ".csv"])),
            ("first fit that compiles the SVM", 4.0, FIRST.format("CrammerSingerSVC()")),
            ("first fit that compiles the search of enemies", 4.0, FIRST.format('MarginPCA(pairs="nearest")')),
        ):
            with tempfile.TemporaryDirectory() as empty:
                seconds = [cost(code, NUMBA_CACHE_DIR=empty)[0] for _ in range(3 if goal < 1 else 1)]
            work = f"{name}, in a fresh install: CPU seconds"
            yield {"row": "start", "work": work, "goal": goal, "ratio": statistics.median(seconds)}


FUNCTIONS = pca, margin, bare, wide, lda, cv, map_, use, stream, svm, labels, csv, compare, start
PARTS = {one.__name__.rstrip("_"): one for one in FUNCTIONS}
ROWS = tuple(PARTS)


def cases(wanted: set[str]) -> Iterator[Case | Row]:
    warnings.simplefilter("ignore")
    for name, part in PARTS.items():
        if not wanted or name in wanted:
            yield from part()
