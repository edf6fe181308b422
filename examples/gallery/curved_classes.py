"""
Curved classes
==============

Rings and a checkerboard, with two additional columns of noise: the class means coincide, so every linear discriminant
fails. ``KernelMap`` in front of a reducer gives its kernel version. ``PosteriorMap`` goes further and maps new rows by
the class probabilities of a classifier.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline

from discrim import KernelMap, PosteriorMap, RegularizedLDA

rng = np.random.default_rng(0)


def rings(n: int) -> tuple[np.ndarray, np.ndarray]:
    y = np.arange(n) % 3
    angle, radius = rng.uniform(0, 2 * np.pi, n), y + 1 + 0.2 * rng.normal(size=n)
    return np.c_[radius * np.cos(angle), radius * np.sin(angle), rng.normal(size=(n, 2))], y


def board(n: int) -> tuple[np.ndarray, np.ndarray]:
    X = rng.uniform(0, 3, size=(n, 2))
    return np.c_[X, rng.normal(size=(n, 2))], np.floor(X).sum(axis=1).astype(int) % 2


models = {
    "RegularizedLDA": lambda: RegularizedLDA(shrinkage=0.1),
    "KernelMap, RegularizedLDA": lambda: make_pipeline(KernelMap(), RegularizedLDA(shrinkage=0.1)),
    "PosteriorMap": lambda: PosteriorMap(2),
}
figure, panels = plt.subplots(2, 4, figsize=(12, 6), layout="constrained")
right = {}
for row, (made, title) in zip(panels, ((rings, "rings"), (board, "board")), strict=True):
    (X, y), (X_new, y_new) = made(600), made(600)
    for label in np.unique(y):
        row[0].scatter(*X_new[y_new == label, :2].T, s=6)
    row[0].set(aspect="equal", title=f"{title}: new rows")
    for axes, (name, build) in zip(row[1:], models.items(), strict=True):
        model = build().fit(X, y)
        Z, Z_new = model.transform(X), model.transform(X_new)
        right[title, name] = KNeighborsClassifier(5).fit(Z, y).score(Z_new, y_new)
        across = (
            Z_new[:, 1] if Z_new.shape[1] > 1 else rng.normal(size=len(Z_new))
        )  # one component: random second coordinate for plotting
        for label in np.unique(y):
            axes.scatter(Z_new[y_new == label, 0], across[y_new == label], s=6)
        axes.set(xticks=[], yticks=[], title=f"{name}: {right[title, name]:.0%}")
print(right)
