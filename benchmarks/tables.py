"""Tables for the benchmarks."""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp
from sklearn.feature_extraction.text import TfidfTransformer


def table(n: int, d: int, seed: int = 0, dtype: type = np.float64) -> np.ndarray:
    """Return rows without classes, with means two to five standard deviations from 0."""
    rng = np.random.default_rng(seed)
    return (rng.standard_normal((n, d)) * np.linspace(1, 3, d) + 5).astype(dtype)


def classes(n: int, d: int, n_classes: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Return Gaussian classes whose means lie a few deviations apart, more along some columns than along others."""
    rng = np.random.default_rng(seed)
    y = np.arange(n) % n_classes
    means = 4 / np.sqrt(d) * rng.standard_normal((n_classes, d)) * np.geomspace(2, 0.3, d)
    return rng.standard_normal((n, d)) + means[y], y


def image_segments(n: int = 2_310, d: int = 19) -> tuple[np.ndarray, np.ndarray]:
    """Return a table of the shape of the image segmentation data: seven equal classes."""
    rng = np.random.default_rng(0)
    y = np.arange(n) % 7
    return rng.normal(size=(n, d)) + rng.normal(size=(7, d))[y], y


def digit_counts(n: int = 3_000) -> tuple[np.ndarray, np.ndarray]:
    """Return counts from 0 to 16 in 64 columns and ten overlapping classes, like the optical digits."""
    rng = np.random.default_rng(0)
    y = rng.integers(10, size=n)
    means = np.clip(8 + 3 * rng.standard_normal((10, 64)), 0, 16) * (rng.random((1, 64)) < 0.8)
    return np.clip(np.round(means[y] + 4.5 * rng.standard_normal((n, 64))), 0, 16), y


def gaussians(n: int, d: int, n_classes: int, distance: float) -> tuple[np.ndarray, np.ndarray]:
    """Return classes of unit variance with means at a distance from the origin, rows of mean square length 1."""
    rng = np.random.default_rng(0)
    means = rng.standard_normal((n_classes, d))
    means *= distance / np.linalg.norm(means, axis=1, keepdims=True)
    y = rng.integers(n_classes, size=n)
    X = means[y] + rng.standard_normal((n, d))
    return X / np.sqrt((X**2).sum(axis=1).mean()), y


def texts(n: int, n_words: int, length: int, n_classes: int, topical: float) -> tuple[sp.csr_matrix, np.ndarray]:
    """Return words by Zipf's law, a share of them from a ranking of the class's own, weighted by tf-idf."""
    rng = np.random.default_rng(0)
    shares = np.cumsum(1 / np.arange(1, n_words + 1))
    y = rng.integers(n_classes, size=n)
    ranks = np.searchsorted(shares / shares[-1], rng.random((n, length)))
    vocabulary = rng.permuted(np.tile(np.arange(n_words), (n_classes + 1, 1)), axis=1)
    words = np.where(rng.random((n, length)) < topical, vocabulary[y[:, None], ranks], vocabulary[-1][ranks])
    counts = sp.csr_matrix((np.ones(n * length), words.ravel(), np.arange(0, n * length + 1, length)), (n, n_words))
    counts.sum_duplicates()
    return TfidfTransformer(sublinear_tf=True).fit_transform(counts), y
