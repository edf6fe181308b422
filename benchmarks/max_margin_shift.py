"""Row 6b: max-margin shifted PCA against scikit-learn's PCA plus its Crammer–Singer SVM on the same rows."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np
from sklearn import decomposition
from sklearn.datasets import load_digits, make_classification
from sklearn.exceptions import ConvergenceWarning
from sklearn.svm import LinearSVC

from benchmarks.timing import Row, ratio_row
from discrim import PCA, MarginSubspace, MaxMarginShift
from discrim.core.svm.shift import margin_shift
from discrim.estimators.margin_pca import ShiftedPCA
from discrim.estimators.shift_search import SHIFTS
from discrim.tables.rows import LabelledRows

ROWS = ("6b",)
COMPONENTS = 5


def tables() -> Iterator[tuple[str, np.ndarray, np.ndarray]]:
    """Digits, and rows of overlapping classes, tall and wide."""
    X, y = load_digits(return_X_y=True)
    yield "digits 1797×64", X, y
    for n, d, n_classes in ((10_000, 100, 5), (300, 3000, 10)):
        X, y = make_classification(
            n, d, n_informative=30, n_redundant=0, n_classes=n_classes, n_clusters_per_class=1, random_state=0
        )
        yield f"{n}×{d}, {n_classes} classes", X, y


def peers(X: np.ndarray, y: np.ndarray) -> None:
    """What someone would run without a dual solver: PCA and LIBLINEAR's SVM on the same centred, scaled rows."""
    decomposition.PCA(COMPONENTS).fit(X)
    centred = X - X.mean(axis=0)
    centred /= np.sqrt((centred**2).sum(axis=1).mean())
    LinearSVC(multi_class="crammer_singer", fit_intercept=False, random_state=0).fit(centred, y)


def sweep(X: np.ndarray, y: np.ndarray) -> list[Any]:
    """Every shift that the search tries, from one SVM and one scatter."""
    rows = LabelledRows(X, y.astype(np.intp), np.unique(y))
    found = margin_shift(rows, rows.n_classes, C=1.0, tol=1e-10, max_iter=10_000)
    return list(ShiftedPCA(COMPONENTS).fitted_to(rows, found, SHIFTS[1:]))


def measure() -> Iterator[Row]:
    warnings.simplefilter("ignore", ConvergenceWarning)
    for name, X, y in tables():
        shift, coarse = MaxMarginShift(PCA(COMPONENTS)), MaxMarginShift(PCA(COMPONENTS), tol=1e-4)
        theirs = lambda X=X, y=y: peers(X, y)  # noqa: E731
        for label, model in (("gap 1e-10", shift), ("gap 1e-4", coarse), ("subspace", MarginSubspace())):
            work = f"{type(model).__name__} ({label}) {name} / PCA + LinearSVC"
            goal = 1.0 if model is shift else None
            yield ratio_row("6b", work, lambda m=model, X=X, y=y: m.fit(X, y), theirs, goal, repeats=3)
        work = f"{len(SHIFTS) - 1} shifts {name} / one"
        yield ratio_row("6b", work, lambda X=X, y=y: sweep(X, y), lambda m=shift, X=X, y=y: m.fit(X, y), 1.5, repeats=3)
