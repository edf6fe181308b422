"""The table of goals: what a user waits for, beside what others take for it. `make bench` prints it."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import warnings
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from sklearn import decomposition
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis

from benchmarks import crammer_singer
from benchmarks.bayes_error_lda import classes
from benchmarks.pca_family import table
from benchmarks.timing import Row, peak_memory, ratio_row
from discrim import PCA, BayesErrorLDA, FisherLDA, MarginPCA, RegularizedLDA
from discrim.tables.read import read_table

ROWS = ("pca", "margin", "bare", "wide", "lda", "cv", "stream", "svm", "memory", "compile", "csv")
SKLEARN = "scikit-learn"


def pca() -> Iterator[Row]:
    for (n, d), goal in {(1_000, 50): 0.9, (10_000, 100): 0.9, (100_000, 100): 0.85}.items():
        X = table(n, d)
        theirs = decomposition.PCA(10, svd_solver="covariance_eigh")
        work = f"PCA(10) {n:,}×{d} / PCA(covariance_eigh)"
        yield ratio_row("pca", work, lambda X=X: PCA(10).fit(X), lambda X=X, t=theirs: t.fit(X), goal, 15, SKLEARN)
        yield from _intel(X, work)


def _intel(X: np.ndarray, work: str) -> Iterator[Row]:
    """oneDAL's PCA, where scikit-learn-intelex is installed: the fastest there is on a CPU."""
    try:
        from daal4py import daalinit
        from sklearnex import decomposition as intel
    except ImportError:
        return
    daalinit(1)  # one thread, as everything here
    theirs = intel.PCA(10, svd_solver="covariance_eigh")
    name = work.replace("PCA(covariance_eigh)", "oneDAL's")
    peer = "scikit-learn-intelex"
    yield ratio_row("pca", name, lambda: PCA(10).fit(X), lambda: theirs.fit(X), None, 15, peer)


def margin() -> Iterator[Row]:
    for n, d in ((10_000, 100), (100_000, 100)):
        X, y = table(n, d), np.arange(n) % 2
        work = f"MarginPCA(10) {n:,}×{d} / our PCA"
        yield ratio_row("margin", work, lambda X=X, y=y: MarginPCA(10).fit(X, y), lambda X=X: PCA(10).fit(X), 1.1, 9)


def bare() -> Iterator[Row]:
    for (n, d), goal in {(10_000, 100): 1.6, (100_000, 100): 1.1, (100, 5_000): 2.5, (400, 8_000): 1.6}.items():
        X = table(n, d)
        product = (lambda X=X: X.T @ X) if n > d else (lambda X=X: X @ X.T)
        work = f"PCA(10) {n:,}×{d:,} / one bare {'XᵀX' if n > d else 'XXᵀ'}"
        yield ratio_row("bare", work, lambda X=X: PCA(10).fit(X), product, goal, 9, "numpy")


def wide() -> Iterator[Row]:
    for n, d in ((100, 5_000), (500, 10_000)):
        X = table(n, d)
        for solver, goal in (("full", 1 / 15), ("auto", 1 / 4)):
            theirs = decomposition.PCA(10, svd_solver=solver, random_state=0)
            work = f"PCA(10) {n}×{d:,} / PCA({solver})"
            yield ratio_row("wide", work, lambda X=X: PCA(10).fit(X), lambda X=X, t=theirs: t.fit(X), goal, 3, SKLEARN)


def lda() -> Iterator[Row]:
    X, y = classes(10_000, 100, 10)
    for model in (FisherLDA(), RegularizedLDA(shrinkage=0.1)):
        for solver, goal in (("svd", 1 / 15), ("eigen", 1 / 5)):
            theirs = LinearDiscriminantAnalysis(solver=solver)
            work = f"{type(model).__name__} 10,000×100 / LDA({solver})"
            yield ratio_row("lda", work, lambda m=model: m.fit(X, y), lambda t=theirs: t.fit(X, y), goal, 5, SKLEARN)


def cv() -> Iterator[Row]:
    fixed, searched, bayes = RegularizedLDA(shrinkage=0.1), RegularizedLDA(), BayesErrorLDA()
    for (n, d), goal in {(10_000, 100): 2.5, (100_000, 100): 2.0}.items():
        X, y = classes(n, d, 10)
        one, path, pairs = (lambda m=m, X=X, y=y: m.fit(X, y) for m in (fixed, searched, bayes))
        yield ratio_row("cv", f"RegularizedLDA() {n:,}×{d} / at a fixed shrinkage", path, one, goal)
        yield ratio_row("cv", f"BayesErrorLDA() {n:,}×{d} / RegularizedLDA()", pairs, path, 1.25)
    X, y = classes(400, 8_000, 10)
    yield ratio_row(
        "cv", "BayesErrorLDA() 400×8,000 / one bare XXᵀ", lambda: bayes.fit(X, y), lambda: X @ X.T, 5.0, 5, "numpy"
    )


def stream(n: int = 2_000_000, d: int = 100, step: int = 20_000) -> Iterator[Row]:
    with tempfile.TemporaryDirectory() as folder:
        X = np.lib.format.open_memmap(Path(folder) / "X.npy", mode="w+", dtype=np.float64, shape=(n, d))
        for first in range(0, n, step):
            X[first : first + step] = table(step, d, seed=first)
        codes = np.arange(n) % 2
        labels = np.array(["no", "yes"])[codes]

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
            ("MarginPCA(mean)", lambda: MarginPCA(10, pairs="mean"), codes),
            ("MarginPCA(mean), text labels", lambda: MarginPCA(10, pairs="mean"), labels),
        ):
            work = f"{name}, stream of {n:,}×{d} from a file / one pass of XᵀX"
            yield ratio_row("stream", work, lambda m=make, y=y: streamed(m(), y), one_pass, 1.15, 1, "numpy")


def svm() -> Iterator[Row]:
    wanted = {"digits": 0.3, "text 20,000×50,000, 15 classes": 0.4}
    for name, X, y, _ in crammer_singer.tables():
        if name in wanted:
            row = crammer_singer.against_liblinear(name, X, y, wanted[name], repeats=1 if "text" in name else 5)
            yield {**row, "row": "svm", "peer": SKLEARN}


def memory() -> Iterator[Row]:
    n_classes = 1_000_000
    X, y = classes(2 * n_classes, 10, n_classes)
    used = peak_memory(lambda: FisherLDA(5).fit(X, y)) / X.nbytes
    yield {"row": "memory", "work": "memory of 1,000,000 classes / X (2,000,000×10)", "goal": 2.5, "ratio": used}


FIRST = """
import time, numpy as np, warnings
warnings.simplefilter("ignore")
from discrim import MarginPCA, CrammerSingerSVC
X, y = np.random.default_rng(0).normal(size=(4_000, 12)), np.arange(4_000) % 4
model = {}
start = time.process_time()
model.fit(X, y)
print(time.process_time() - start)
"""


def compiled() -> Iterator[Row]:
    """CPU seconds of the first fit where nothing was compiled before (a fresh install)."""
    for name, make in (("SVM", "CrammerSingerSVC()"), ("nearest enemies", 'MarginPCA(pairs="nearest")')):
        with tempfile.TemporaryDirectory() as folder:
            run = subprocess.run(
                [sys.executable, "-c", FIRST.format(make)],
                capture_output=True,
                text=True,
                check=True,
                env={**os.environ, "NUMBA_CACHE_DIR": folder},
            )
        work = f"first fit in a fresh install, seconds: {name}"
        yield {"row": "compile", "work": work, "goal": 4.0, "ratio": float(run.stdout.split()[-1])}


def csv() -> Iterator[Row]:
    from pyarrow import csv as arrow

    rng = np.random.default_rng(0)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "table.csv"
        header = ",".join([*(f"x{i}" for i in range(30)), "y"])
        cells = np.column_stack([rng.standard_normal((40_000, 30)), np.arange(40_000) % 3])
        np.savetxt(path, cells, delimiter=",", header=header, comments="", fmt=["%.6f"] * 30 + ["%d"])
        one = arrow.ReadOptions(use_threads=False)
        read = lambda: read_table(path, "y")  # noqa: E731
        yield ratio_row("csv", "CSV of 40,000×31 / pyarrow", read, lambda: arrow.read_csv(path, one), 1.2, 3, "pyarrow")


PARTS = dict(zip(ROWS, (pca, margin, bare, wide, lda, cv, stream, svm, memory, compiled, csv), strict=True))


def measure(wanted: set[str] | None = None) -> Iterator[Row]:
    warnings.simplefilter("ignore")
    for name, part in PARTS.items():
        if not wanted or name in wanted:
            yield from part()
