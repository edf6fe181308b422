"""
Why rows are shifted
====================

The example computes the mean of many noisy copies of a row, weighted by their distance from other classes (equations 4
to 8 of Wangni and Chen). Each row is corrupted many times by normal noise of variance σ², each copy has the weight
exp(−C · its hinge loss), and the row moves to the weighted mean. The paper replaces this mean by the shift
x + σ² Σ_y α_y (η_y_n − η_y). If the noise is small, the two agree in direction; with more noise, the shift overshoots.
"""

import os

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import make_blobs

from discrim import CrammerSingerSVC

COPIES = 4_000 if os.environ.get("DISCRIM_QUICK") else 20_000
VARIANCES = (0.05, 0.25, 1.0, 4.0)
C = 1.0


def hinge(X: np.ndarray, y: int, weights: np.ndarray) -> np.ndarray:
    """Compute max over y' of 1[y' ≠ y] + η_y'ᵀx − η_yᵀx for each row: the exponent of equation 4."""
    scores = X @ weights.T
    return (scores + (np.arange(len(weights)) != y)).max(axis=1) - scores[:, y]


def weighted_mean(x: np.ndarray, y: int, weights: np.ndarray, variance: float, noise: np.ndarray) -> np.ndarray:
    """Estimate the mean of p(x̃) ∝ N(x̃ | x, σ²I) exp(−C · hinge), equation 5, from normal copies."""
    copies = x + np.sqrt(variance) * noise
    shares = np.exp(-C * hinge(copies, y, weights))
    return shares @ copies / shares.sum()


def moves(n_copies: int) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Return rows, labels, and how far the weighted mean and the shift (equation 8) move each row for every σ²."""
    X, y = make_blobs(60, centers=[[-1.5, 0.0], [1.5, 0.3], [0.2, 2.2]], cluster_std=0.8, random_state=0)
    X = X - X.mean(axis=0)
    model = CrammerSingerSVC(C=C, fit_intercept=False, tol=1e-10).fit(X, y)
    half = np.random.default_rng(0).standard_normal((n_copies // 2, 2))
    noise = np.concatenate([half, -half])  # the unweighted mean is then the row itself
    by_mean = [
        [weighted_mean(x, label, model.class_coef_, variance, noise) - x for x, label in zip(X, y, strict=True)]
        for variance in VARIANCES
    ]
    by_shift = [variance * model.dual_coef_ @ model.class_coef_ for variance in VARIANCES]
    return X, y, np.array(by_mean), np.array(by_shift)


X, y, by_mean, by_shift = moves(COPIES)
found: dict[str, float] = {}
for variance, mean, shift in zip(VARIANCES, by_mean, by_shift, strict=True):
    held = np.linalg.norm(shift, axis=1) > 1e-9  # support vectors; the other rows do not move
    cosine = np.sum(mean[held] * shift[held]) / np.linalg.norm(mean[held]) / np.linalg.norm(shift[held])
    ratio = np.linalg.norm(mean[held]) / np.linalg.norm(shift[held])
    strays = np.linalg.norm(mean[~held], axis=1).mean() / np.linalg.norm(mean[held], axis=1).mean()
    found |= {f"cosine {variance:g}": cosine, f"length {variance:g}": ratio, f"others {variance:g}": strays}
    print(f"noise {variance:g}: cosine {cosine:.2f}, length ratio {ratio:.2f}, other rows move {strays:.0%} as far")

figure, panels = plt.subplots(1, len(VARIANCES), figsize=(14, 4.2), layout="constrained", sharex=True, sharey=True)
colours = np.array(["#0072b2", "#d55e00", "#008f68"])[y]
for axes, variance, *both in zip(panels, VARIANCES, by_shift, by_mean, strict=True):
    axes.scatter(*X.T, s=16, c=colours, alpha=0.5, linewidths=0)
    for far, colour in zip(both, ("#b8589a", "black"), strict=True):
        axes.quiver(*X.T, *far.T, angles="xy", scale_units="xy", scale=1, color=colour, width=0.005)
    axes.set(title=f"noise of variance {variance:g}", aspect="equal", xlim=(-5, 5), ylim=(-4.5, 5))
figure.suptitle("Moves of the rows: to the weighted mean of noisy copies (black), and by the shift (violet)")
