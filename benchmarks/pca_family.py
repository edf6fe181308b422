"""Rows 1, 2, 4 and 9: the PCA family against scikit-learn's PCA, bare products and itself."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import scipy.linalg as la
from sklearn import decomposition

from benchmarks.timing import Row, ratio_row
from discrim import PCA, BayesErrorPCA, MarginPCA

ROWS = ("1", "2", "4", "9")


def table(n: int, d: int, seed: int = 0, dtype: type = np.float64) -> np.ndarray:
    rng = np.random.default_rng(seed)
    return (rng.standard_normal((n, d)) * np.linspace(1, 3, d) + 5).astype(dtype)


def tall() -> Iterator[Row]:
    for (n, d), goal in {(100_000, 100): 0.9, (10_000, 100): 1.0, (100_000, 500): 1.0, (20_000, 2000): 0.75}.items():
        X = table(n, d)
        theirs = decomposition.PCA(10, svd_solver="covariance_eigh")
        work = f"PCA {n}×{d} / scikit-learn's covariance_eigh"
        yield ratio_row("1", work, lambda X=X: PCA(10).fit(X), lambda X=X, t=theirs: t.fit(X), goal)
    X = table(2000, 20)
    angle = la.subspace_angles(PCA(3).fit(X).components_.T, PCA(3).fit(X + 1e8).components_.T).max()
    theirs_off = la.subspace_angles(
        decomposition.PCA(3, svd_solver="covariance_eigh").fit(X).components_.T,
        decomposition.PCA(3, svd_solver="covariance_eigh").fit(X + 1e8).components_.T,
    ).max()
    yield {"row": "1", "work": "angle (rad) at offset 1e8, ours", "goal": 1e-6, "ratio": angle}
    yield {"row": "1", "work": "angle (rad) at offset 1e8, scikit-learn's", "goal": None, "ratio": theirs_off}


def supervised() -> Iterator[Row]:
    for n, d in ((10_000, 100), (100_000, 100), (100_000, 500)):
        X, y = table(n, d), np.arange(n) % 2
        for model in (MarginPCA(10), MarginPCA(10, pairs="mean"), BayesErrorPCA(10)):
            work = f"{model} {n}×{d} / our PCA"
            yield ratio_row("2", work, lambda m=model, X=X, y=y: m.fit(X, y), lambda X=X: PCA(10).fit(X), 1.15)


def wide() -> Iterator[Row]:
    for n, d in ((100, 5000), (300, 10_000), (500, 10_000)):
        X, y = table(n, d), np.arange(n) % 2
        for model in (PCA(10), MarginPCA(10, pairs="mean")):
            fit = lambda m=model, X=X, y=y: m.fit(X, y)  # noqa: E731
            for solver, goal in (("full", 0.1), ("auto", 0.5)):
                theirs = decomposition.PCA(10, svd_solver=solver, random_state=0)
                work = f"{model} {n}×{d} / scikit-learn's PCA({solver})"
                yield ratio_row("4", work, fit, lambda X=X, t=theirs: t.fit(X), goal, repeats=3)


def single() -> Iterator[Row]:
    for n, d in ((100_000, 100), (100_000, 500)):
        X = table(n, d)
        X32 = X.astype(np.float32)
        work = f"float32 PCA {n}×{d} / float64"
        yield ratio_row("9", work, lambda X=X32: PCA(10).fit(X), lambda X=X: PCA(10).fit(X), 0.6)
    X = table(20_000, 50, dtype=np.float32) + np.float32(1e6)
    exact = PCA(5).fit(X.astype(np.float64))
    ours = PCA(5).fit(X)
    error = np.abs(ours.eigenvalues_ / exact.eigenvalues_ - 1).max()
    yield {"row": "9", "work": "float32 relative error of variances at offset 1e6", "goal": 1e-6, "ratio": error}


def measure() -> Iterator[Row]:
    for part in (tall, supervised, wide, single):
        yield from part()
