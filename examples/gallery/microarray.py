"""
Genes: thousands of columns, dozens of rows
===========================================

With far more genes than training rows there are directions in which the training classes do not vary at all.
``NullSpaceLDA`` uses those that separate the class means, so every training class becomes a point (the hollow markers).
New rows do not fall on these points; only they show how good the map is.

Uses srbct (83 tumours of four kinds, 2,308 genes) from the folder that DISCRIM_DATA names, or a simulated table.
"""

import argparse
from collections.abc import Sequence

import numpy as np
from matplotlib.figure import Figure
from sklearn.model_selection import StratifiedShuffleSplit
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from discrim import PCA, NullSpaceLDA, RegularizedLDA
from discrim.tables.catalogue import CatalogueError, load

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


def compared(X: np.ndarray, y: np.ndarray, n_splits: int) -> tuple[dict[str, float], dict[str, np.ndarray], np.ndarray]:
    """Return the accuracy on new rows, the components of all rows in the last split, and which of them were new."""
    right: dict[str, list[float]] = {name: [] for name in METHODS}
    points = {}
    for train, new in StratifiedShuffleSplit(n_splits, test_size=1 / 3, random_state=0).split(X, y):
        for name, method in METHODS.items():
            Z = points[name] = make_pipeline(StandardScaler(), method).fit(X[train], y[train]).transform(X)
            right[name].append(KNeighborsClassifier(5).fit(Z[train], y[train]).score(Z[new], y[new]))
    return {name: float(np.mean(values)) for name, values in right.items()}, points, np.isin(np.arange(len(y)), new)


def draw(points: dict[str, np.ndarray], y: np.ndarray, is_new: np.ndarray, titles: dict[str, str], path: str) -> None:
    figure = Figure(figsize=(11, 3.9), layout="constrained")
    for axes, (name, Z) in zip(figure.subplots(1, 3), points.items(), strict=True):
        for (colour, marker), label in zip(LOOKS, np.unique(y), strict=True):
            seen, new = Z[(y == label) & ~is_new], Z[(y == label) & is_new]
            axes.scatter(*seen.T, s=80, facecolors="none", edgecolors=colour, marker=marker, linewidths=0.8)
            axes.scatter(*new.T, s=26, color=colour, marker=marker, label=label)
        axes.set(xticks=[], yticks=[], xlabel="component 1", ylabel="component 2", title=titles[name])
    figure.legend(*axes.get_legend_handles_labels(), title="filled: new rows\nhollow: training", loc="outside right")
    figure.savefig(path, dpi=100)


def main(arguments: Sequence[str] | None = None) -> dict[str, float]:
    parser = argparse.ArgumentParser()
    parser.add_argument("--splits", type=int, default=20)
    parser.add_argument("--picture", default="microarray.png")
    options = parser.parse_args(arguments)
    name, X, y = expression_levels()
    accuracy, points, is_new = compared(X, y, options.splits)
    Z = points["NullSpaceLDA"]
    width = max(np.ptp(Z[~is_new & (y == label)], axis=0).max() for label in np.unique(y)) / np.ptp(Z)
    print(f"{name}, {X.shape[0]}×{X.shape[1]}: two components, five neighbours, new rows of {options.splits} splits")
    print(*(f"{method} {value:.1%}" for method, value in accuracy.items()), sep="\n")
    print(f"the width of NullSpaceLDA's training classes is {width:.0e} of the map")
    draw(points, y, is_new, {m: f"{m}: accuracy {value:.0%}" for m, value in accuracy.items()}, options.picture)
    return accuracy | {"training_width": float(width)}


if __name__ == "__main__":
    main()
