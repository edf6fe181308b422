"""Row 6: the Crammer–Singer SVM against LIBLINEAR's at tol 1e-3, for a primal objective at most 1e-4 above LIBLINEAR's.

Ours runs with the widest duality gap at which its objective is as low as LIBLINEAR's (the default, 1e-4, promises that
much against any solver). A row says by how much it exceeds theirs (negative: it is lower), and raises above 1e-4.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.datasets import load_digits
from sklearn.exceptions import ConvergenceWarning
from sklearn.feature_extraction.text import TfidfTransformer
from sklearn.svm import LinearSVC

from benchmarks.timing import Row, ratio_row
from discrim.estimators.svc import CrammerSingerSVC

ROWS = ("6",)
ALLOWED = 1e-4  # relative, of our primal objective over LIBLINEAR's
LIBLINEAR_TOL = 1e-3
# duality gaps: the widest at which our objective is as low as theirs
OUR_TOLS = (0.1, 0.05, 0.03, 0.02, 0.01, 5e-3, 3e-3, 2e-3, 1e-3, 5e-4, 1e-4)


def gaussians(n: int, d: int, n_classes: int, distance: float) -> tuple[np.ndarray, np.ndarray]:
    """Classes of unit variance with means at a distance from the origin, rows of mean square length 1."""
    rng = np.random.default_rng(0)
    means = rng.standard_normal((n_classes, d))
    means *= distance / np.linalg.norm(means, axis=1, keepdims=True)
    y = rng.integers(n_classes, size=n)
    X = means[y] + rng.standard_normal((n, d))
    return X / np.sqrt((X**2).sum(axis=1).mean()), y


def texts(n: int, n_words: int, length: int, n_classes: int, topical: float) -> tuple[sp.csr_matrix, np.ndarray]:
    """Words by Zipf's law, a share of them from a ranking of the class's own, weighted by tf-idf."""
    rng = np.random.default_rng(0)
    shares = np.cumsum(1 / np.arange(1, n_words + 1))
    y = rng.integers(n_classes, size=n)
    ranks = np.searchsorted(shares / shares[-1], rng.random((n, length)))
    vocabulary = rng.permuted(np.tile(np.arange(n_words), (n_classes + 1, 1)), axis=1)
    words = np.where(rng.random((n, length)) < topical, vocabulary[y[:, None], ranks], vocabulary[-1][ranks])
    counts = sp.csr_matrix((np.ones(n * length), words.ravel(), np.arange(0, n * length + 1, length)), (n, n_words))
    counts.sum_duplicates()
    return TfidfTransformer(sublinear_tf=True).fit_transform(counts), y


def tables() -> Iterator[tuple[str, Any, np.ndarray, float]]:
    yield "digits", *load_digits(return_X_y=True), 0.35
    yield "dense 20,000×500, 10 classes apart", *gaussians(20_000, 500, 10, 6.0), 0.2
    yield "dense 20,000×500, 10 classes overlapping", *gaussians(20_000, 500, 10, 3.0), 0.2
    yield "text 20,000×50,000, 15 classes", *texts(20_000, 50_000, 80, 15, 0.3), 0.8
    yield "text 20,000×50,000, 15 classes, fewer topical words", *texts(20_000, 50_000, 80, 15, 0.15), 0.8


def primal(model: Any, X: Any, y: np.ndarray) -> float:
    scores = np.asarray(X @ model.coef_.T) + model.intercept_
    own = scores[np.arange(len(y)), y]
    losses = np.maximum((scores + (np.arange(scores.shape[1]) != y[:, None])).max(axis=1) - own, 0)
    return 0.5 * ((model.coef_**2).sum() + (model.intercept_**2).sum()) + model.C * losses.sum()


def against_liblinear(name: str, X: Any, y: np.ndarray, goal: float, repeats: int = 3) -> Row:
    theirs = LinearSVC(multi_class="crammer_singer", tol=LIBLINEAR_TOL, random_state=0)
    theirs_reached = primal(theirs.fit(X, y), X, y)
    for tol in OUR_TOLS:
        ours = CrammerSingerSVC(tol=tol, random_state=0)
        excess = primal(ours.fit(X, y), X, y) / theirs_reached - 1
        if excess <= ALLOWED:
            break
    else:
        raise AssertionError(f"{name}: our primal objective is {excess:.1e} above LIBLINEAR's, {ALLOWED:g} is allowed")
    work = f"SVM {name} (primal {excess:+.0e} at a gap of {tol:g}) / LinearSVC"
    return ratio_row("6", work, lambda: ours.fit(X, y), lambda: theirs.fit(X, y), goal, repeats, "scikit-learn")


def measure() -> Iterator[Row]:
    warnings.simplefilter("ignore", ConvergenceWarning)  # LIBLINEAR counts 1,000 passes as failure, and goes on
    for name, X, y, goal in tables():
        yield against_liblinear(name, X, y, goal)


if __name__ == "__main__":
    for row in measure():
        print(f"{row['work']:<82} {row['ratio']:.3f}  goal ≤ {row['goal']:g}", flush=True)
