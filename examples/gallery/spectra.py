"""
Spectra: small peaks on a varying baseline
==========================================

Hundreds of correlated channels and few samples. PCA uses its components for the baseline; the ridge of
``RegularizedLDA`` handles the collinearity, and the discriminants find the peaks.
"""

import os

import matplotlib.pyplot as plt
import numpy as np
from sklearn.model_selection import StratifiedKFold, cross_val_score
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline

from discrim import PCA, RegularizedLDA

SAMPLES = 120 if os.environ.get("DISCRIM_QUICK") else 150
CHANNELS = np.linspace(900, 1700, 600)  # nanometres
PEAKS = {"water": 1450, "sugar": 1200, "fat": 1040}
LOOKS = {"water": ("#0072B2", "o"), "sugar": ("#D55E00", "s"), "fat": ("#009E73", "^")}


def bump(centre: float, width: float) -> np.ndarray:
    return np.exp(-0.5 * ((CHANNELS - centre) / width) ** 2)


def absorption(n: int) -> tuple[np.ndarray, np.ndarray]:
    """Simulate samples: a baseline that rises, tilts and bends, broad bands, a little noise, the peak of the class."""
    rng = np.random.default_rng(0)
    y = np.array(list(PEAKS))[np.arange(n) % 3]
    t = np.linspace(-1, 1, CHANNELS.size)
    baseline = np.vander(t, 4) * (0.3, 0.5, 0.8, 1.0)
    broad = np.array([bump(centre, 90) for centre in (950, 1150, 1350, 1600)])
    X = 3 + rng.normal(size=(n, 4)) @ baseline.T + 0.5 * rng.normal(size=(n, 4)) @ broad
    X += np.array([0.08 * rng.uniform(0.5, 1.5) * bump(PEAKS[kind], 18) for kind in y])
    return X + rng.normal(scale=0.05, size=X.shape), y


X, y = absorption(SAMPLES)
folds, five = StratifiedKFold(5, shuffle=True, random_state=0), KNeighborsClassifier(5)
models = {"PCA(2)": PCA(2), "PCA(10)": PCA(10), "PCA(20)": PCA(20), "RegularizedLDA(2)": RegularizedLDA(2)}
figures = {name: cross_val_score(make_pipeline(m, five), X, y, cv=folds).mean() for name, m in models.items()}
figures["variance in PCA(2)"] = PCA(2).fit(X).explained_variance_ratio_.sum()
print(f"{X.shape[0]} spectra of {X.shape[1]} channels; accuracy: five neighbours, five folds")
print(*(f"{name} {value:.3f}" for name, value in figures.items()), sep="\n")

is_new = np.arange(len(y)) % 2 == 1
figure, panels = plt.subplots(2, 2, figsize=(11, 6), layout="constrained", width_ratios=(1.5, 1))
(spectra, of_pca), (weights, of_lda) = panels
fitted = {of_pca: PCA(2).fit(X[~is_new]), of_lda: RegularizedLDA(2).fit(X[~is_new], y[~is_new])}
for kind, (colour, marker) in LOOKS.items():
    spectra.plot(CHANNELS, X[is_new & (y == kind)][:5].T, color=colour, linewidth=0.6)
    for axes, model in fitted.items():
        axes.scatter(*model.transform(X[is_new & (y == kind)]).T, s=20, color=colour, marker=marker, label=kind)
        axes.set(xticks=[], yticks=[], title=f"{type(model).__name__}: new samples")
    weights.axvline(PEAKS[kind], color=colour, linewidth=6, alpha=0.35)
for component, style in zip(fitted[of_lda].components_, ("-", "--"), strict=True):
    weights.plot(CHANNELS, np.convolve(component, np.ones(25) / 25, mode="same"), "k" + style, linewidth=1)
spectra.set(title="Five spectra of each kind", ylabel="absorption")
weights.set(title="RegularizedLDA: both components (smoothed), true peaks shaded", yticks=[])
weights.set_xlabel("wavelength (nm)")
figure.legend(*of_pca.get_legend_handles_labels(), loc="outside right upper")
