"""Row 5: nearest enemies of two classes, exact, against two searches of scikit-learn or faiss (A in B and B in A).

Only times are compared: neither peer is exact at large offsets, and faiss works in float32 alone.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from sklearn.metrics import pairwise_distances_argmin

from benchmarks.timing import Row, ratio_row
from discrim.core.enemies import nearest_enemies

ROWS = ("5",)
SHAPES = ((4_000, 8), (4_000, 16), (4_000, 50), (4_000, 100), (4_000, 500), (20_000, 8), (20_000, 100))
GOAL, GOAL_FLOAT32, GOAL_FAISS = 0.55, 0.35, 0.8
FAISS_FEATURES = 100  # below, faiss has no goal


def two_classes(n: int, d: int, dtype: type) -> tuple[np.ndarray, np.ndarray]:
    """Overlapping Gaussian classes, rows in random order."""
    rng = np.random.default_rng(n + d)
    codes = rng.integers(0, 2, n)
    X = rng.standard_normal((n, d))
    X[:, 0] += codes
    return X.astype(dtype), codes


def scikit_learn(A: np.ndarray, B: np.ndarray) -> Any:
    return pairwise_distances_argmin(A, B), pairwise_distances_argmin(B, A)


def faiss_search(A: np.ndarray, B: np.ndarray) -> Any:
    import faiss

    found = []
    for base, queries in ((A, B), (B, A)):
        index = faiss.IndexFlatL2(A.shape[1])
        index.add(base)
        found.append(index.search(queries, 1))
    return found


def against(peer: Callable[..., Any], name: str, n: int, d: int, dtype: type, goal: float) -> Row:
    X, codes = two_classes(n, d, dtype)
    A, B = X[codes == 0], X[codes == 1]
    work = f"nearest enemies {n:,}×{d} {np.dtype(dtype).name} / two searches of {name}"
    return ratio_row("5", work, lambda: nearest_enemies(X, codes, 2), lambda: peer(A, B), goal, peer=name)


def measure() -> list[Row]:
    rows = []
    for n, d in SHAPES:
        rows.append(against(scikit_learn, "scikit-learn", n, d, np.float64, GOAL))
        rows.append(against(scikit_learn, "scikit-learn", n, d, np.float32, GOAL_FLOAT32))
        if d >= FAISS_FEATURES:
            rows.append(against(faiss_search, "faiss-cpu", n, d, np.float32, GOAL_FAISS))
    return rows


if __name__ == "__main__":
    for row in measure():
        print(f"{row['work']:<72} {row['ratio']:.3f}  goal ≤ {row['goal']:g}")
