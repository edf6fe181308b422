"""Handwritten digits in two components of LDA and of BayesErrorLDA: figures and picture of the docs.

    python examples/bayes_error_digits.py [--splits 10] [--picture docs/images/bayes_error_digits.png]

The picture needs matplotlib (pip install 'discrim[plots]'). With DISCRIM_DATA naming a folder of data sets
(NAME.csv.gz with a column "target"), their accuracies are printed too.
"""

import argparse
import os
from pathlib import Path

import numpy as np
from sklearn.datasets import load_digits
from sklearn.model_selection import StratifiedShuffleSplit
from sklearn.neighbors import KNeighborsClassifier

from discrim import BayesErrorLDA, RegularizedLDA
from discrim.tables.read import read_table

SHARED = ("satimage", "isolet1560", "vehicle", "letter", "opencv_digits", "orl", "yale")
COUNTS = (1, 2, 3, 5)
METHODS = {
    "RegularizedLDA": lambda k: RegularizedLDA(k),
    "BayesErrorLDA": lambda k: BayesErrorLDA(k),
    "nested": lambda k: BayesErrorLDA(max(COUNTS), nested=True),  # one fit; its first k components are used
}


def accuracies(X: np.ndarray, y: np.ndarray, n_splits: int) -> dict[tuple[str, int], float]:
    """Return the mean accuracy of 5-NN for every method and number of components, on the same splits."""
    found: dict[tuple[str, int], list[float]] = {}
    for train, test in StratifiedShuffleSplit(n_splits, test_size=1 / 3, random_state=0).split(X, y):
        for name, method in METHODS.items():
            for k in COUNTS:
                if k < len(np.unique(y)) - 1:
                    Z = method(min(k, X.shape[1])).fit(X[train], y[train]).transform(X)[:, :k]
                    right = KNeighborsClassifier(5).fit(Z[train], y[train]).score(Z[test], y[test])
                    found.setdefault((name, k), []).append(right)
    return {cell: float(np.mean(values)) for cell, values in found.items()}


def print_table(name: str, X: np.ndarray, y: np.ndarray, n_splits: int) -> dict[tuple[str, int], float]:
    found = accuracies(X, y, n_splits)
    for k in sorted({k for _, k in found}):
        cells = " | ".join(f"{found[method, k]:6.1%}" for method in METHODS)
        print(f"| {name} ({X.shape[0]}×{X.shape[1]}, {len(np.unique(y))} classes) | {k} | {cells} |", flush=True)
    return found


def draw(X: np.ndarray, y: np.ndarray, found: dict[tuple[str, int], float], path: Path) -> None:
    """Draw held-out rows on the two components of both methods."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import patheffects
    from matplotlib import pyplot as plt

    train, test = next(StratifiedShuffleSplit(1, test_size=1 / 3, random_state=0).split(X, y))
    figure, panels = plt.subplots(1, 2, figsize=(11, 5.2), layout="constrained")
    for axes, (name, method) in zip(panels, list(METHODS.items())[:2], strict=True):
        Z = method(2).fit(X[train], y[train]).transform(X[test])
        axes.scatter(*Z.T, c=y[test], cmap="tab10", s=10, alpha=0.75, linewidths=0)
        for digit in range(10):
            middle = np.median(Z[y[test] == digit], axis=0)
            halo = [patheffects.withStroke(linewidth=3, foreground="white")]
            axes.text(*middle, str(digit), fontsize=17, weight="bold", ha="center", va="center", path_effects=halo)
        axes.set_title(f"{name}: 5-NN accuracy {found[name, 2]:.0%}")
        axes.set_aspect("equal", adjustable="datalim")
        axes.set(xlabel="component 1", ylabel="component 2", xticks=[], yticks=[])
    figure.savefig(path, dpi=110)


def print_confused(X: np.ndarray, y: np.ndarray) -> None:
    """Print the pairs of digits that are closest in two components."""
    fitted = BayesErrorLDA(2).fit(X, y)
    errors = np.triu(fitted.pair_errors_, 1)
    order = np.argsort(-errors, axis=None)[:6]
    pairs = ", ".join(
        f"{a}–{b} {errors[a, b]:.0%}" for a, b in zip(*np.unravel_index(order, errors.shape), strict=True)
    )
    print(f"bayes_error_ {fitted.bayes_error_:.1%}; most confused: {pairs}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--splits", type=int, default=10)
    parser.add_argument("--picture", type=Path)
    arguments = parser.parse_args()
    print(f"| data | k | {' | '.join(METHODS)} |\n|---|---|{'---|' * len(METHODS)}")
    X, y = load_digits(return_X_y=True)
    found = print_table("digits", X, y, arguments.splits)
    if folder := os.environ.get("DISCRIM_DATA"):
        for name in SHARED:
            table = read_table(Path(folder) / f"{name}.csv.gz", "target")
            print_table(name, table.X, table.y, max(2, arguments.splits // 3))
    print_confused(X, y)
    if arguments.picture:
        draw(X, y, found, arguments.picture)


if __name__ == "__main__":
    main()
