"""Held-out handwritten digits in two dimensions by four methods: figures and picture of the docs.

    python examples/posterior_map_digits.py [--splits 3] [--picture docs/images/posterior_map_digits.png]

The picture needs matplotlib (pip install 'discrim[plots]'), supervised UMAP umap-learn (pip install 'discrim[study]');
without the latter that panel is left out.
"""

import argparse
import warnings
from importlib.util import find_spec
from pathlib import Path

import numpy as np
from sklearn.datasets import load_digits
from sklearn.model_selection import StratifiedShuffleSplit
from sklearn.neighbors import KNeighborsClassifier
from sklearn.preprocessing import StandardScaler

from discrim import BayesErrorLDA, PosteriorMap

Rows = np.ndarray


def supervised_umap(train: Rows, labels: Rows, rows: Rows) -> Rows:
    from umap import UMAP

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return UMAP(n_components=2, random_state=0).fit(train, labels).transform(rows)


METHODS = {
    "BayesErrorLDA": lambda train, labels, rows: BayesErrorLDA(2).fit(train, labels).transform(rows),
    "supervised UMAP": supervised_umap,
    "PosteriorMap, tempered": lambda train, labels, rows: (
        PosteriorMap(2, sharpness="tempered").fit(train, labels).transform(rows)
    ),
    "PosteriorMap": lambda train, labels, rows: PosteriorMap(2).fit(train, labels).transform(rows),
}


def splits_of_digits(n_splits: int):
    """Yield scaled training rows, their labels, test rows and their labels."""
    X, y = load_digits(return_X_y=True)
    for train, test in StratifiedShuffleSplit(n_splits, test_size=1 / 3, random_state=0).split(X, y):
        scaler = StandardScaler().fit(X[train])
        yield scaler.transform(X[train]), y[train], scaler.transform(X[test]), y[test]


def draw(maps: dict[str, Rows], labels: Rows, accuracies: dict[str, float], path: Path) -> None:
    """Draw held-out rows of the first split, a panel for each method."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import patheffects
    from matplotlib import pyplot as plt

    figure, panels = plt.subplots(1, len(maps), figsize=(4.6 * len(maps), 4.9), layout="constrained")
    halo = [patheffects.withStroke(linewidth=3, foreground="white")]
    for axes, (name, Z) in zip(panels, maps.items(), strict=True):
        axes.scatter(*Z.T, c=labels, cmap="tab10", s=11, alpha=0.6, linewidths=0)
        for digit in range(10):
            middle = np.median(Z[labels == digit], axis=0)
            if name.startswith("Posterior"):  # next to the class position, not on the rows
                middle = 1.14 * middle / np.linalg.norm(middle)
                axes.set(xlim=(-1.3, 1.3), ylim=(-1.3, 1.3))
            axes.text(*middle, str(digit), fontsize=16, weight="bold", ha="center", va="center", path_effects=halo)
        axes.set_title(f"{name}\n5-NN accuracy {accuracies[name]:.0%}", fontsize=11)
        axes.set_aspect("equal", adjustable="box" if name.startswith("Posterior") else "datalim")
        axes.set(xticks=[], yticks=[])
    figure.savefig(path, dpi=100)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--splits", type=int, default=3)
    parser.add_argument("--picture", type=Path)
    arguments = parser.parse_args()
    methods = {name: method for name, method in METHODS.items() if name != "supervised UMAP" or find_spec("umap")}
    found: dict[str, list[float]] = {name: [] for name in methods}
    maps: dict[str, Rows] = {}
    labels = np.empty(0)
    for number, (train, known, test, truth) in enumerate(splits_of_digits(arguments.splits)):
        for name, method in methods.items():
            Z = method(train, known, np.concatenate([train, test]))
            judge = KNeighborsClassifier(5).fit(Z[: len(train)], known)
            found[name].append(judge.score(Z[len(train) :], truth))
            if number == 0:
                maps[name], labels = Z[len(train) :], truth
    accuracies = {name: float(np.mean(values)) for name, values in found.items()}
    for name, accuracy in accuracies.items():
        print(f"{name}: five neighbours on two components are right in {accuracy:.1%} of the held-out rows")
    if arguments.picture:
        draw(maps, labels, accuracies, arguments.picture)


if __name__ == "__main__":
    main()
