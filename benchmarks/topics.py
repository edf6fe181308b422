"""Topics that are measured only when named: enemies, bayes-error, shift, refinement, sparse, precision."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np
import scipy.linalg as la
from sklearn import decomposition
from sklearn.datasets import load_digits, make_classification
from sklearn.metrics import pairwise_distances_argmin
from sklearn.neighbors import NeighborhoodComponentsAnalysis
from sklearn.svm import SVC, LinearSVC

from benchmarks.tables import classes, table, texts
from benchmarks.timing import Case, Row, cpu_seconds, peak_memory
from discrim import (
    PCA,
    BayesErrorLDA,
    ClassMoments,
    MarginPCA,
    MarginSubspace,
    MaxMarginShift,
    RefinedHyperplane,
    RegularizedLDA,
)
from discrim.core.enemies import search_enemies
from discrim.core.pairwise_error import error_subspace

ROWS = ("enemies", "bayes-error", "shift", "refinement", "sparse", "precision")


def enemies() -> Iterator[Case]:
    """Yield nearest enemies of two classes, exact and with ties, over two searches: A in B and B in A.

    The time is that of the search; it does not select the lowest of equally near rows. Faiss works in float32.
    """
    for n, d in ((4_000, 8), (4_000, 16), (4_000, 50), (4_000, 100), (4_000, 500), (20_000, 8), (20_000, 100)):
        rng = np.random.default_rng(n + d)
        codes = rng.integers(0, 2, n)
        rows = rng.standard_normal((n, d)) + np.outer(codes, np.eye(d)[0])
        for dtype, peer, goal in (
            (np.float64, "scikit-learn", 0.55),
            (np.float32, "scikit-learn", 0.35),
            (np.float32, "faiss-cpu", 0.8),
        ):
            if peer == "faiss-cpu" and d < 100:
                continue
            X, search = rows.astype(dtype), _faiss if peer == "faiss-cpu" else pairwise_distances_argmin
            A, B = X[codes == 0], X[codes == 1]
            work = f"nearest enemies with ties {n:,}×{d} {np.dtype(dtype).name} / two searches of {peer}"
            theirs = lambda A=A, B=B, search=search: (search(A, B), search(B, A))  # noqa: E731
            yield Case(
                "enemies",
                work,
                lambda X=X, codes=codes: list(search_enemies(X, codes, 2, each=True)),
                theirs,
                goal,
                peer,
            )


def _faiss(queries: np.ndarray, base: np.ndarray) -> Any:
    import faiss

    index = faiss.IndexFlatL2(base.shape[1])
    index.add(base)
    return index.search(queries, 1)


def bayes_error() -> Iterator[Case | Row]:
    """Yield the choice of two directions over the moments, whole fits over RegularizedLDA and NCA."""
    for n, d, c in ((1_000, 100, 10), (1_000, 100, 30), (10_000, 100, 10), (10_000, 100, 30), (100_000, 100, 30)):
        X, y = classes(n, d, c)
        Z = RegularizedLDA(shrinkage=0.1).fit(X, y).transform(X)
        means = np.stack([Z[y == label].mean(axis=0) for label in range(c)])
        choose = lambda m=means, c=c: error_subspace(m, np.full(c, 1 / c), 2, 8, 0)  # noqa: E731
        work = f"choice of 2 directions / moments, {n}×{d}, {c} classes"
        yield Case("bayes-error", work, choose, lambda X=X, y=y: ClassMoments.of(X, y), 1.0)
    for shrinkage, cv in ((0.1, None), (0.1, 5), ("cv", 5)):
        for n, d in ((10_000, 100), (300, 5_000)):
            X, y = classes(n, d, 10)
            kinds = (kind(2, shrinkage=shrinkage, cv=cv) for kind in (BayesErrorLDA, RegularizedLDA))
            ours, theirs = (lambda m=model, X=X, y=y: m.fit(X, y) for model in kinds)
            work = f"BayesErrorLDA, shrinkage={shrinkage!r}, cv={cv}, {n}×{d} / RegularizedLDA"
            yield Case("bayes-error", work, ours, theirs)
    X, y = load_digits(return_X_y=True)
    nca = NeighborhoodComponentsAnalysis(2, init="lda", random_state=0)
    seconds = [cpu_seconds(lambda m=model: m.fit(X / 16, y)) for model in (BayesErrorLDA(2), nca)]
    work, times = "BayesErrorLDA on digits / NCA", {"seconds": seconds[0], "theirs": seconds[1], "peer": "scikit-learn"}
    yield {"row": "bayes-error", "work": work, "goal": None, "ratio": seconds[0] / seconds[1], **times}


def shift() -> Iterator[Case]:
    """Yield max-margin shifts over scikit-learn's PCA and its Crammer–Singer SVM on the same rows."""
    tables = {"digits 1797×64": load_digits(return_X_y=True)}
    for n, d, c in ((10_000, 100, 5), (300, 3000, 10)):
        tables[f"{n}×{d}, {c} classes"] = make_classification(
            n, d, n_informative=30, n_redundant=0, n_classes=c, n_clusters_per_class=1, random_state=0
        )

    def peers(X: np.ndarray, y: np.ndarray) -> None:
        decomposition.PCA(5).fit(X)
        centred = X - X.mean(axis=0)
        centred /= np.sqrt((centred**2).sum(axis=1).mean())
        LinearSVC(multi_class="crammer_singer", fit_intercept=False, random_state=0).fit(centred, y)

    exact, coarse = MaxMarginShift(PCA(5)), MaxMarginShift(PCA(5), tol=1e-4)
    for name, (X, y) in tables.items():
        for label, model, goal in (("gap 1e-10", exact, 1.0), ("gap 1e-4", coarse, None), ("", MarginSubspace(), None)):
            work = f"{type(model).__name__} ({label}) {name} / PCA + LinearSVC"
            ours = lambda m=model, X=X, y=y: m.fit(X, y)  # noqa: E731
            yield Case("shift", work, ours, lambda X=X, y=y: peers(X, y), goal, "scikit-learn")


def refinement() -> Iterator[Case]:
    """Yield a refined hyperplane (with its initial fit) over the initial fit, and over an SVM."""
    for d in (100, 2_000, 20_000):
        rng, y = np.random.default_rng(d), np.arange(200) % 2
        X = rng.normal(size=(200, d))
        X[:, ::10] += 4.0 / np.sqrt(d / 10) * y[:, None]
        others = {"RegularizedLDA": RegularizedLDA(shrinkage=0.1), "SVC(linear)": SVC(kernel="linear")}
        for rule in ("sign", "min", "discriminant-max"):
            ours = lambda rule=rule, X=X, y=y: RefinedHyperplane(rule=rule).fit(X, y)  # noqa: E731
            for name, other in others.items():
                work = f"RefinedHyperplane by {rule} 200×{d} / {name}"
                yield Case("refinement", work, ours, lambda m=other, X=X, y=y: m.fit(X, y))


def sparse() -> Iterator[Row]:
    """Yield seconds and memory of sparse text, which stays sparse."""
    X, y = texts(20_000, 50_000, 80, 20, 0.15)
    size = X.data.nbytes + X.indices.nbytes + X.indptr.nbytes
    for model in (PCA(10), MarginPCA(10, pairs="mean"), RegularizedLDA(10, shrinkage=0.1)):
        fit = lambda m=model: m.fit(X, y)  # noqa: E731
        yield {"row": "sparse", "work": f"seconds, {model} text 20,000×50,000", "goal": 60.0, "ratio": cpu_seconds(fit)}
        ratio = peak_memory(fit) / (3 * size + 8 * X.shape[1] * 20 * 4)  # class means and directions of 20 classes
        work = f"memory / (3 × sparse X + result), {type(model).__name__}"
        yield {"row": "sparse", "work": work, "goal": 1.0, "ratio": ratio}


def precision() -> Iterator[Case | Row]:
    """Yield single precision over double, and the angle at an offset of 1e8."""
    for n, d in ((100_000, 100), (100_000, 500)):
        X, single = table(n, d), table(n, d, dtype=np.float32)
        ours = lambda X=single: PCA(10).fit(X)  # noqa: E731
        yield Case("precision", f"PCA {n}×{d}, float32 / float64", ours, lambda X=X: PCA(10).fit(X), 0.6)
    X = table(2000, 20)
    for name, model in (("ours", PCA(3)), ("scikit-learn's", decomposition.PCA(3, svd_solver="covariance_eigh"))):
        angle = la.subspace_angles(model.fit(X).components_.T, model.fit(X + 1e8).components_.T).max()
        yield {"row": "precision", "work": f"angle (rad) at offset 1e8, {name}", "goal": None, "ratio": angle}


def cases(wanted: set[str]) -> Iterator[Case | Row]:
    warnings.simplefilter("ignore")
    parts = dict(zip(ROWS, (enemies, bayes_error, shift, refinement, sparse, precision), strict=True))
    for name, part in parts.items():
        if not wanted or name in wanted:
            yield from part()
