"""
Genes: thousands of columns, dozens of rows
===========================================

With far more genes than training rows there are directions in which the training classes do not vary at all.
``NullSpaceLDA`` uses those that separate the class means, so every training class becomes a point (the hollow markers).
New rows do not fall on these points; only they show how good the map is.

Uses srbct (83 tumours of four kinds, 2,308 genes) from the folder that DISCRIM_DATA names, or a simulated table.
"""

import os

import matplotlib.pyplot as plt
import numpy as np
from sklearn.model_selection import StratifiedShuffleSplit
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from discrim import PCA, NullSpaceLDA, RegularizedLDA
from discrim.tables.catalogue import CatalogueError, load

SPLITS = 3 if os.environ.get("DISCRIM_QUICK") else 20
METHODS = {"PCA": PCA(2), "NullSpaceLDA": NullSpaceLDA(2), "RegularizedLDA": RegularizedLDA(2)}
LOOKS = [("#0072B2", "o"), ("#D55E00", "s"), ("#009E73", "^"), ("#CC79A7", "D")]  # colour and marker of each class


def expression_levels() -> tuple[str, np.ndarray, np.ndarray]:
    """Return real data if available; otherwise simulate 12 strong latent factors and 40 informative genes."""
    try:
        table = load("srbct", download=False)
        return "srbct", table.X, table.y
    except CatalogueError:
        rng = np.random.default_rng(0)
        y = np.arange(72) % 4
        X = rng.normal(size=(72, 1000)) + rng.normal(size=(72, 12)) @ rng.normal(size=(12, 1000))
        X[:, :40] += 2 * rng.normal(size=(4, 40))[y]
        return "simulated genes", X, np.array(["A", "B", "C", "D"])[y]


name, X, y = expression_levels()
right: dict[str, list[float]] = {method: [] for method in METHODS}
points = {}
for train, new in StratifiedShuffleSplit(SPLITS, test_size=1 / 3, random_state=0).split(X, y):
    for title, method in METHODS.items():
        Z = points[title] = make_pipeline(StandardScaler(), method).fit(X[train], y[train]).transform(X)
        right[title].append(KNeighborsClassifier(5).fit(Z[train], y[train]).score(Z[new], y[new]))
accuracy, is_new = {title: np.mean(values) for title, values in right.items()}, np.isin(np.arange(len(y)), new)
Z = points["NullSpaceLDA"]
width = max(np.ptp(Z[~is_new & (y == label)], axis=0).max() for label in np.unique(y)) / np.ptp(Z)
print(f"{name}, {X.shape[0]}×{X.shape[1]}: two components, five neighbours, new rows of {SPLITS} splits")
print(*(f"{method} {value:.1%}" for method, value in accuracy.items()), sep="\n")
print(f"the width of NullSpaceLDA's training classes is {width:.0e} of the map")

figure, panels = plt.subplots(1, 3, figsize=(11, 3.9), layout="constrained")
for axes, (title, Z) in zip(panels, points.items(), strict=True):
    for (colour, marker), label in zip(LOOKS, np.unique(y), strict=True):
        seen, unseen = Z[(y == label) & ~is_new], Z[(y == label) & is_new]
        axes.scatter(*seen.T, s=80, facecolors="none", edgecolors=colour, marker=marker, linewidths=0.8)
        axes.scatter(*unseen.T, s=26, color=colour, marker=marker, label=label)
    axes.set(xticks=[], yticks=[], xlabel="component 1", ylabel="component 2")
    axes.set_title(f"{title}: accuracy {accuracy[title]:.0%}")
figure.legend(*axes.get_legend_handles_labels(), title="filled: new rows\nhollow: training", loc="outside right")
