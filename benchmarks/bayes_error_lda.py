"""BayesErrorLDA: what choosing the subspace costs, and time and accuracy beside RegularizedLDA and scikit-learn's NCA.

The goal of choosing in less time than gathering the statistics takes is for n ≥ 10 d and up to 30 classes. Accuracies
are those of five neighbours in the components, the same random thirds held out; their ratio is ours over the other's,
so above 1 is better.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from sklearn.datasets import load_digits
from sklearn.model_selection import StratifiedShuffleSplit
from sklearn.neighbors import KNeighborsClassifier, NeighborhoodComponentsAnalysis
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from benchmarks.timing import Row, cpu_seconds, medians, ratio_row
from discrim import BayesErrorLDA, ClassMoments, RegularizedLDA
from discrim.core.pairwise_error import error_subspace

ROWS = ("bayes error",)
K = 2


def classes(n: int, d: int, n_classes: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Gaussian classes whose means lie a few deviations apart, more along some columns than along others."""
    rng = np.random.default_rng(seed)
    y = np.arange(n) % n_classes
    means = 4 / np.sqrt(d) * rng.standard_normal((n_classes, d)) * np.geomspace(2, 0.3, d)
    return rng.standard_normal((n, d)) + means[y], y


def whitened_means(X: np.ndarray, y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """What the subspace is chosen from."""
    Z = RegularizedLDA(shrinkage=0.1).fit(X, y).transform(X)
    labels = np.unique(y)
    return np.stack([Z[y == c].mean(axis=0) for c in labels]), np.array([np.mean(y == c) for c in labels])


def choice() -> Iterator[Row]:
    """Choosing the subspace, beside the one pass over the rows that gathers the statistics."""
    tables = {f"{n}×{d}, {c} classes": classes(n, d, c) for n, d, c in SIZES}
    tables["digits (1797×64, 10 classes)"] = load_digits(return_X_y=True)
    for name, (X, y) in tables.items():
        means, shares = whitened_means(X, y)
        yield ratio_row(
            "bayes error",
            f"choice of {K} directions / moments, {name}",
            lambda m=means, p=shares: error_subspace(m, p, K, 8, 0),
            lambda X=X, y=y: ClassMoments.of(X, y),
            1.0,
        )


SIZES = ((1_000, 100, 10), (1_000, 100, 30), (10_000, 100, 10), (10_000, 100, 30), (5_000, 500, 30), (100_000, 100, 30))


def whole_fits() -> Iterator[Row]:
    for shrinkage, cv in ((0.1, None), (0.1, 5), ("cv", 5)):
        for n, d, n_classes in ((10_000, 100, 10), (300, 5_000, 10)):
            X, y = classes(n, d, n_classes)
            ours, theirs = (kind(K, shrinkage=shrinkage, cv=cv) for kind in (BayesErrorLDA, RegularizedLDA))
            work = f"fit, shrinkage={shrinkage!r}, cv={cv}, {n}×{d} / RegularizedLDA"
            yield ratio_row(
                "bayes error",
                work,
                lambda m=ours, X=X, y=y: m.fit(X, y),
                lambda m=theirs, X=X, y=y: m.fit(X, y),
                None,
                3,
            )


def many_classes() -> Iterator[Row]:
    X, y = classes(20_000, 100, 1_000)
    model = BayesErrorLDA(K, shrinkage=0.1)
    yield _seconds("fit, 1,000 classes, 20000×100: seconds", cpu_seconds(lambda: model.fit(X, y)))
    yield _seconds("… its bayes_error_: seconds", cpu_seconds(lambda: model.bayes_error_))


def _seconds(work: str, seconds: float) -> Row:
    return {"row": "bayes error", "work": work, "goal": None, "ratio": seconds}


def accuracy(model: Any, X: np.ndarray, y: np.ndarray, n_splits: int) -> float:
    scores = []
    for train, test in StratifiedShuffleSplit(n_splits, test_size=1 / 3, random_state=0).split(X, y):
        Z = model.fit(X[train], y[train]).transform(X)
        scores.append(KNeighborsClassifier(5).fit(Z[train], y[train]).score(Z[test], y[test]))
    return float(np.mean(scores))


def rivals() -> Iterator[Row]:
    """On digits, in two components."""
    X, y = load_digits(return_X_y=True)
    ours, lda = BayesErrorLDA(K), RegularizedLDA(K)
    nca = make_pipeline(StandardScaler(), NeighborhoodComponentsAnalysis(K, init="lda", random_state=0))
    a, b, c = (accuracy(model, X, y, 3) for model in (ours, lda, nca))
    for name, other in (("RegularizedLDA", b), ("NeighborhoodComponentsAnalysis", c)):
        work = f"5-NN on digits, 2 components: {a:.1%} / {other:.1%} ({name})"
        yield {"row": "bayes error", "work": work, "goal": None, "ratio": a / other}
    mine, theirs = medians(lambda: ours.fit(X, y), lambda: nca.fit(X, y), repeats=1)
    work = f"fit on digits / NeighborhoodComponentsAnalysis ({theirs:.1f} s)"
    yield {"row": "bayes error", "work": work, "goal": None, "ratio": mine / theirs}


def measure() -> list[Row]:
    return [row for part in (choice, whole_fits, many_classes, rivals) for row in part()]
