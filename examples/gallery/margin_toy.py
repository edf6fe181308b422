"""
When PCA picks noise: the weight given to the class means
=========================================================

Two classes differ along the first axis, but the second axis has more variance. PCA uses the variance of all rows,
M-PCA0 all differences between the classes, M-PCA1a the difference of each row from the mean of the other class. They
are one family, S_w + t·δδᵀ, and differ only in t: at some distances between the classes only M-PCA1a finds the class
axis.
"""

import matplotlib.pyplot as plt
import numpy as np

from discrim import PCA, MarginPCA

MODELS = {"PCA": PCA(1), "M-PCA0 (all pairs)": MarginPCA(1, pairs="all"), "M-PCA1a (means)": MarginPCA(1, pairs="mean")}
GAPS = np.linspace(0, 3, 31)  # half the distance between the class means
rng = np.random.default_rng(0)
y = np.repeat([0, 1], 500)
noise = rng.normal(size=(1000, 2)) * np.sqrt([1.0, 4.0])

angles = {name: [] for name in MODELS}
for gap in GAPS:
    X = noise + np.outer(2 * y - 1, [gap, 0])
    for name, model in MODELS.items():
        angles[name].append(np.degrees(np.arccos(abs(model.fit(X, y).components_[0, 0]))))

figure, (chart, rows) = plt.subplots(1, 2, figsize=(10, 4), layout="constrained")
for (name, found), style in zip(angles.items(), ("o-", "s-", "^-"), strict=True):
    chart.plot(2 * GAPS, found, style, markersize=4, label=name)
chart.set(xlabel="distance of the class means", ylabel="degrees to the class axis", title="Direction of each method")
chart.legend()
X = noise + np.outer(2 * y - 1, [1.1, 0])
for label, colour in ((0, "#0072B2"), (1, "#D55E00")):
    rows.scatter(*X[y == label].T, s=6, color=colour)
for (name, model), style in zip(MODELS.items(), (":", "--", "-"), strict=True):
    direction = 5 * model.fit(X, y).components_[0]
    rows.plot(*np.array([-direction, direction]).T, "k" + style, label=name)
rows.set(aspect="equal", title="Means 2.2 apart, deviations 1 and 2")
rows.legend(loc="lower right", fontsize=8)
first_right = {name: 2 * GAPS[np.argmax(np.array(found) < 20)] for name, found in angles.items()}
print(
    "the class axis is found within 20° from this distance on:",
    {name: round(gap, 1) for name, gap in first_right.items()},
)
