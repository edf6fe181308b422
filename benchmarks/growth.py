"""Growth of the cost: CPU seconds over size, and their log-log slope.

n : a stream that repeats 100,000 rows, so 10⁷ rows need no more memory
d : 200 rows; beyond 200 columns the Gram matrix dominates
C : 1,000,000 rows
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from benchmarks.timing import Row, cpu_seconds
from discrim import PCA, FisherLDA, RegularizedLDA

ROWS = ("growth",)


def over_rows() -> Iterator[tuple[int, Callable[[], Any]]]:
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((100_000, 20)), np.arange(100_000) % 5

    def fit(n: int) -> None:
        model = RegularizedLDA(shrinkage=0.1)
        for first in range(0, n, len(X)):
            model.partial_fit(X[: n - first], y[: n - first])
        _ = model.components_

    for n in (10**3, 10**4, 10**5, 10**6, 10**7):
        yield n, lambda n=n: fit(n)


def over_columns() -> Iterator[tuple[int, Callable[[], Any]]]:
    rng = np.random.default_rng(0)
    for d in (10, 100, 1_000, 10_000, 100_000):
        X = rng.standard_normal((200, d))
        yield d, lambda X=X: PCA(5).fit(X)


def over_classes() -> Iterator[tuple[int, Callable[[], Any]]]:
    rng = np.random.default_rng(0)
    X = rng.standard_normal((1_000_000, 5))
    for n_classes in (2, 10, 100, 10_000, 500_000, 1_000_000):
        y = np.arange(len(X)) % n_classes
        if n_classes == len(X):
            X, y = np.concatenate([X, X + 0.1]), np.tile(y, 2)
        yield n_classes, lambda X=X, y=y: FisherLDA(2).fit(X, y)


AXES = (
    (over_rows, "rows, RegularizedLDA(shrinkage=0.1) of a stream in 20 columns", "1, beyond the cost of a call"),
    (over_columns, "columns, PCA(5) of 200 rows", "1 beyond 200 columns (n²d)"),
    (
        over_classes,
        "classes, FisherLDA(2) of 10⁶ rows (2·10⁶ for 10⁶ classes) in 5 columns",
        "0, then 1 for the class means (C d)",
    ),
)


def cases(_: set[str]) -> Iterator[Row]:
    """Yield the sizes, the seconds, and the slope over the last two decades for each axis."""
    warnings.simplefilter("ignore")
    for sizes, what, theory in AXES:
        points = [(size, min(cpu_seconds(work) for _ in range(3 if size < 10**6 else 1))) for size, work in sizes()]
        some = [(size, taken) for size, taken in points if size >= points[-1][0] / 100]
        slope = float(np.polyfit(*np.log10(np.array(some)).T, 1)[0])
        yield {"row": "growth", "work": what, "theory": theory, "points": points, "ratio": slope, "goal": None}
