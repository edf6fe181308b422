"""
Digits: a map of ten classes
============================

Two directions cannot separate ten digits; ``BayesErrorLDA`` finds the two that confuse them least. The table on the
right was computed without the rows on the left. The errors it predicts are close to those of the nearest class mean on
new rows, on average and, less precisely, for each pair.
"""

import os

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits
from sklearn.model_selection import StratifiedShuffleSplit
from sklearn.neighbors import KNeighborsClassifier

from discrim import PCA, BayesErrorLDA, RegularizedLDA

SPLITS = 2 if os.environ.get("DISCRIM_QUICK") else 5
METHODS = {"PCA": PCA(2), "RegularizedLDA": RegularizedLDA(2), "BayesErrorLDA": BayesErrorLDA(2, random_state=0)}
COLOURS = ["#0072B2", "#E69F00", "#009E73", "#CC79A7", "#56B4E9", "#D55E00", "#332288", "#882255", "#117733", "#666666"]


def nearest_mean_errors(Z: np.ndarray, y: np.ndarray, train: np.ndarray, new: np.ndarray) -> np.ndarray:
    """Return for each pair of digits how often the nearer of their training means is wrong on new rows."""
    means = np.array([Z[train][y[train] == digit].mean(axis=0) for digit in range(10)])
    distances = np.linalg.norm(Z[new][:, None] - means, axis=2)
    errors = np.zeros((10, 10))
    for a in range(10):
        of_a = distances[y[new] == a]
        errors[a] = (of_a < of_a[:, [a]]).mean(axis=0)
    return (errors + errors.T) / 2


X, y = load_digits(return_X_y=True)
right: dict[str, list[float]] = {name: [] for name in METHODS}
for train, new in StratifiedShuffleSplit(SPLITS, test_size=1 / 3, random_state=0).split(X, y):
    for name, method in METHODS.items():
        Z = method.fit(X[train], y[train]).transform(X)
        right[name].append(KNeighborsClassifier(5).fit(Z[train], y[train]).score(Z[new], y[new]))
errors, pairs = METHODS["BayesErrorLDA"].pair_errors_, np.triu_indices(10, 1)
predicted, seen = errors[pairs], nearest_mean_errors(Z, y, train, new)[pairs]
figures = {name: np.mean(values) for name, values in right.items()}
figures |= {"predicted_error": predicted.mean(), "seen_error": seen.mean()}
figures["correlation"] = np.corrcoef(predicted, seen)[0, 1]
print(f"digits, {X.shape[0]}×{X.shape[1]}: two components, five neighbours, new rows of {SPLITS} splits")
print(*(f"{name} {value:.3f}" for name, value in figures.items()), sep="\n")

figure, (chart, table) = plt.subplots(1, 2, figsize=(11, 5), layout="constrained", width_ratios=(1.25, 1))
for digit, colour in enumerate(COLOURS):
    chart.scatter(*Z[new][y[new] == digit].T, marker=f"${digit}$", s=32, color=colour, linewidths=0.3)
chart.set(xticks=[], yticks=[], xlabel="component 1", ylabel="component 2", title="New digits on BayesErrorLDA's map")
lower = np.where(np.tri(10, k=-1, dtype=bool), 100 * errors, np.nan)
table.imshow(lower[1:, :9], cmap="Blues", vmin=0, extent=(-0.5, 8.5, 9.5, 0.5))
for a, b in zip(*np.nonzero(lower >= 5), strict=True):
    table.text(b, a, f"{lower[a, b]:.0f}", ha="center", va="center", color="white" if lower[a, b] > 9 else "black")
table.set(xticks=range(9), yticks=range(1, 10), title="Predicted error between two digits (%)")
table.spines[:].set_visible(False)
