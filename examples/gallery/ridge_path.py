"""
How to choose the ridge
=======================

``RegularizedLDA`` tries a path of ridges by cross-validation, at the cost of a few fits: one eigendecomposition per
fold serves all ridges. A ridge that is too small overfits the training rows; one that is too large leaves only the
class means.
"""

import matplotlib.pyplot as plt
import numpy as np

from discrim import RegularizedLDA

rng = np.random.default_rng(4)
y = np.arange(90) % 3
means = np.zeros((3, 200))
means[np.arange(3), np.arange(3)] = 2.5
mixing = rng.normal(size=(200, 200)) / np.sqrt(200) + np.eye(200)
X = (means[y] + rng.normal(size=(90, 200))) @ mixing
y_new = np.arange(3000) % 3
X_new = (means[y_new] + rng.normal(size=(3000, 200))) @ mixing

model = RegularizedLDA().fit(X, y)
path = model.path_
truth = [RegularizedLDA(shrinkage=gamma).fit(X, y).score(X_new, y_new) for gamma in path.shrinkages[1:]]
odds = path.shrinkages[1:-1] / (1 - path.shrinkages[1:-1])

figure, axes = plt.subplots(figsize=(7, 4), layout="constrained")
axes.semilogx(odds, 100 * np.ravel(path.accuracies)[1:-1], "o-", color="#0072B2", label="held-out folds of 90 rows")
axes.semilogx(odds, 100 * np.array(truth[:-1]), "s--", color="#D55E00", label="3,000 new rows")
axes.axvline(model.shrinkage_ / (1 - model.shrinkage_), color="k", linestyle=":", label="chosen")
axes.set(xlabel="γ / (1 − γ)", ylabel="accuracy (%)", title="90 rows, 200 columns, three classes")
axes.legend()
chosen = model.score(X_new, y_new)
print(f"chosen γ = {model.shrinkage_:.2g}: accuracy {chosen:.1%} on new rows; best on the path {max(truth):.1%}")
