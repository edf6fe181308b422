"""
A rare class: accuracy and balanced accuracy
============================================

One row in twenty belongs to the rare class. A classifier that never predicts it is right on 95 % of the rows.
``class_weight="balanced"`` and equal priors find more of the rare rows at the cost of accuracy; balanced accuracy shows
this.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.metrics import accuracy_score, balanced_accuracy_score, recall_score

from discrim import RegularizedLDA

rng = np.random.default_rng(0)


def rows(n: int) -> tuple[np.ndarray, np.ndarray]:
    y = (rng.random(n) < 0.05).astype(int)
    return rng.normal(size=(n, 10)) + y[:, None] * np.array([1.5, *np.zeros(9)]), y


(X, y), (X_new, y_new) = rows(2000), rows(5000)
models = {
    "majority": None,
    "default": RegularizedLDA(shrinkage=0.1),
    "equal priors": RegularizedLDA(shrinkage=0.1, priors="equal"),
    "balanced weights": RegularizedLDA(shrinkage=0.1, class_weight="balanced"),
}
scores = {}
for name, model in models.items():
    predicted = np.zeros_like(y_new) if model is None else model.fit(X, y).predict(X_new)
    scores[name] = (
        accuracy_score(y_new, predicted),
        balanced_accuracy_score(y_new, predicted),
        recall_score(y_new, predicted, zero_division=0),
    )
figure, axes = plt.subplots(figsize=(8, 4), layout="constrained")
for at, measure in enumerate(("accuracy", "balanced accuracy", "recall of the rare class")):
    axes.bar(np.arange(4) + 0.27 * (at - 1), [100 * values[at] for values in scores.values()], 0.25, label=measure)
axes.set(xticks=range(4), xticklabels=scores, ylabel="%", title="New rows, 5 % of them rare")
axes.legend(loc="lower left")
print({name: [round(value, 3) for value in values] for name, values in scores.items()})
