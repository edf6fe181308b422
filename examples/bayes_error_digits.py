"""Accuracy of few components of LDA and of BayesErrorLDA: a table of docs/bayes_error_lda.md, and its picture.

    DISCRIM_DATA=folder python examples/bayes_error_digits.py --into docs/bayes_error_lda.md
    python examples/bayes_error_digits.py --picture docs/images/bayes_error_digits.png

The picture needs matplotlib (pip install 'discrim[plots]')."""

from collections.abc import Iterator
from pathlib import Path

import numpy as np
from sklearn.datasets import load_digits
from sklearn.model_selection import StratifiedShuffleSplit
from sklearn.neighbors import KNeighborsClassifier
from study_parts import arguments, markdown, show

from discrim import BayesErrorLDA, RegularizedLDA
from discrim.tables import catalogue

DATASETS = ("digits", "satimage", "isolet1560", "vehicle", "letter", "opencv_digits", "orl", "yale")
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


def lines(n_splits: int) -> Iterator[str]:
    """Yield the table: a row for each data set and number of components; digits have all splits, others a third."""
    rows = []
    for name in DATASETS:
        table = catalogue.load(name, download=False)
        found = accuracies(table.X, table.y, n_splits if name == "digits" else max(2, n_splits // 3))
        title = f"{name} ({table.n_samples:,}×{table.n_features:,}, {len(table.class_counts())} classes)"
        for k in sorted({k for _, k in found}):
            rows.append([title, str(k), *(f"{100 * found[method, k]:.1f}" for method in METHODS)])
            title = ""
    yield from markdown(["data", "k", *METHODS], rows)


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


def main() -> None:
    parser = arguments(__doc__, jobs=False)
    parser.add_argument("--splits", type=int, default=10)
    parser.add_argument("--picture", type=Path, help="draw digits in two components instead")
    options = parser.parse_args()
    if options.picture:
        X, y = load_digits(return_X_y=True)
        draw(X, y, accuracies(X, y, options.splits), options.picture)
    else:
        show(lines(options.splits), options.into, "accuracy")


if __name__ == "__main__":
    main()
