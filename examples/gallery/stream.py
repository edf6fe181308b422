"""
A stream gives the same model as a batch
========================================

A file that should not be loaded at once is read block by block: ``partial_fit`` gives the same model as ``fit``, here
at an offset of a million.
"""

import os
import tempfile
import tracemalloc
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
from scipy.linalg import subspace_angles

from discrim import RegularizedLDA

ROWS = 25_000 if os.environ.get("DISCRIM_QUICK") else 100_000
D, CLASSES, BLOCK, NEW = 40, 5, 250, 5_000


def written(path: Path, n: int) -> tuple[np.memmap, np.ndarray]:
    """Write rows of five classes to a file, at an offset of a million, as in time stamps."""
    rng = np.random.default_rng(0)
    means, mixing = 0.5 * rng.normal(size=(CLASSES, D)), rng.normal(size=(D, D))
    X, y = np.memmap(path, dtype=np.float64, mode="w+", shape=(n, D)), rng.integers(CLASSES, size=n)
    for start in range(0, n, BLOCK):
        rows = slice(start, start + BLOCK)
        X[rows] = 1e6 + means[y[rows]] @ mixing + rng.normal(size=(len(y[rows]), D)) @ mixing
    X.flush()
    return np.memmap(path, dtype=np.float64, mode="r", shape=(n, D)), y


def streamed(
    X: np.memmap, y: np.ndarray, n_train: int
) -> tuple[RegularizedLDA, list[tuple[int, np.ndarray, float]], int]:
    """Return the final model, its course (rows used, components, accuracy), and the peak memory in bytes."""
    model, at_times = RegularizedLDA(shrinkage=0.1), []
    tracemalloc.start()
    for start in range(0, n_train, BLOCK):
        rows = slice(start, min(start + BLOCK, n_train))
        model.partial_fit(X[rows], y[rows])
        if (seen := rows.stop // BLOCK).bit_count() == 1 or rows.stop == n_train:  # 1, 2, 4, 8 … blocks
            right = model.score(X[n_train:], y[n_train:])
            at_times.append((seen * BLOCK, model.components_, right))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return model, at_times, peak


with tempfile.TemporaryDirectory() as folder:
    X, y = written(Path(folder) / "rows.dat", ROWS)
    n_train = ROWS - NEW
    model, at_times, peak = streamed(X, y, n_train)
    batch = RegularizedLDA(shrinkage=0.1).fit(X[:n_train], y[:n_train])
    gap = np.abs(model.components_ - batch.components_).max() / np.abs(batch.components_).max()
    figures = {"stream − batch": gap, "accuracy": at_times[-1][2], "memory": peak / X.nbytes}
    del X
seen, components, right = zip(*at_times, strict=True)
angles = [np.degrees(subspace_angles(early.T, batch.components_.T).max()) for early in components[:-1]]
print(f"{n_train} rows × {D} columns in blocks of {BLOCK}; {NEW} test rows")
print(*(f"{name} {value:.2g}" for name, value in figures.items()), sep="\n")

figure, (turned, scored) = plt.subplots(1, 2, figsize=(9, 3.6), layout="constrained")
turned.loglog(seen[:-1], angles, "o-", color="#0072B2")
turned.set(xlabel="rows seen", ylabel="degrees", title="Angle to the directions from all rows")
scored.semilogx(seen, 100 * np.array(right), "s-", color="#D55E00")
scored.set(xlabel="rows seen", ylabel="%", title="Accuracy on new rows")
