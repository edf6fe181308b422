"""
A table far from the origin
===========================

Time stamps, coordinates and raw counts are columns whose values are large compared with their spread. Statistics from
sums of squares lose precision there. discrim first subtracts a reference row from the rows of each class, and loses no
precision.
"""

import warnings

import matplotlib.pyplot as plt
import numpy as np
from scipy.linalg import subspace_angles
from sklearn import decomposition

from discrim import PCA

rng = np.random.default_rng(0)
X = rng.normal(size=(2000, 20)) @ np.diag(np.linspace(1, 3, 20))
OFFSETS = 10.0 ** np.arange(0, 9)
exact = decomposition.PCA(2, svd_solver="full").fit(X).components_
angles = {"discrim.PCA": [], "scikit-learn's PCA (covariance_eigh)": []}
for offset in OFFSETS:
    moved = X + offset
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        reference = decomposition.PCA(2, svd_solver="covariance_eigh").fit(moved)
    for name, model in zip(angles, (PCA(2).fit(moved), reference), strict=True):
        angles[name].append(max(np.degrees(subspace_angles(exact.T, model.components_.T).max()), 1e-14))

figure, axes = plt.subplots(figsize=(7, 4), layout="constrained")
for (name, found), style in zip(angles.items(), ("o-", "s--"), strict=True):
    axes.loglog(OFFSETS, found, style, label=name)
axes.set(
    xlabel="added to every column", ylabel="error in degrees", title="Error of the directions after adding an offset"
)
axes.legend()
print({name: f"{found[-1]:.1e}° at 1e8" for name, found in angles.items()})
