"""
The most useful component is not the largest
============================================

The example of the paper on components of least Bayes error: two features with correlation −0.9, whose class means
differ by 0.9 in both. The first principal component follows the noise; the second, with a twentieth of the variance,
separates the classes. ``BayesErrorPCA`` orders the components by how well they separate the classes.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis

from discrim import PCA, BayesErrorPCA

rng = np.random.default_rng(0)
y = np.repeat([0, 1], 500)
X = rng.multivariate_normal([0, 0], [[1, -0.9], [-0.9, 1]], size=1000) + 0.9 * y[:, None]
train = np.arange(1000) % 2 == 0

figure, panels = plt.subplots(1, 3, figsize=(11, 3.6), layout="constrained")
for label, colour in ((0, "#0072B2"), (1, "#D55E00")):
    panels[0].scatter(*X[y == label].T, s=6, color=colour)
panels[0].set(aspect="equal", title="the rows")
right = {}
for axes, model in zip(panels[1:], (PCA(1), BayesErrorPCA(1)), strict=True):
    Z = model.fit(X[train], y[train]).transform(X)
    name = type(model).__name__
    right[name] = LinearDiscriminantAnalysis().fit(Z[train], y[train]).score(Z[~train], y[~train])
    for label, colour in ((0, "#0072B2"), (1, "#D55E00")):
        axes.hist(Z[~train & (y == label), 0], bins=30, alpha=0.6, color=colour)
    axes.set(title=f"{name}, one component: accuracy {right[name]:.0%}", yticks=[])
print(right)
