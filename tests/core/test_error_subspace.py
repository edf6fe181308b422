"""Subspace of least pairwise error: limits, compared with every direction."""

import numpy as np
import pytest

from discrim.core.pairwise_error import error_subspace


def classes(n_classes=7, q=5, scale=1.5, seed=0):
    """Means along LDA's own axes (the widest first), and shares."""
    rng = np.random.default_rng(seed)
    shares = rng.dirichlet(np.full(n_classes, 5.0))
    means = scale * rng.standard_normal((n_classes, q)) * np.linspace(1.5, 0.7, q)
    means -= shares @ means
    axes = np.linalg.svd(np.sqrt(shares)[:, None] * means)[2]
    return means @ axes.T, shares


def pair_distances(means, B):
    a, b = np.triu_indices(len(means), 1)
    return np.linalg.norm((means[a] - means[b]) @ B, axis=1)


def every_direction(q):
    """Unit vectors all over the half circle or half sphere, as q×1 subspaces."""
    if q == 2:
        angles = np.linspace(0, np.pi, 20_001)
        return np.stack([np.cos(angles), np.sin(angles)], axis=1)[:, :, None]
    points = np.random.default_rng(0).standard_normal((200_000, q))
    return (points / np.linalg.norm(points, axis=1)[:, None])[:, :, None]


@pytest.mark.parametrize("q", [2, 3])
@pytest.mark.parametrize("seed", range(4))
def test_means_far_apart_the_least_distance_is_the_largest_possible(q, seed):
    means, shares = classes(5, q, seed=seed)
    B = error_subspace(1e4 * means, shares, 1, 12, 0)
    a, b = np.triu_indices(5, 1)
    possible = np.abs((means[a] - means[b]) @ every_direction(q)[:, :, 0].T).min(axis=0).max()
    assert pair_distances(means, B).min() >= possible * (1 - 1e-3)


@pytest.mark.parametrize("q", [2, 3])
@pytest.mark.parametrize("seed", range(4))
def test_means_close_together_the_mean_distance_is_the_largest_possible(q, seed):
    means, shares = classes(5, q, seed=seed)
    weights = np.outer(shares, shares)[np.triu_indices(5, 1)]
    B = error_subspace(1e-4 * means, shares, 1, 12, 0)
    a, b = np.triu_indices(5, 1)
    possible = (np.abs((means[a] - means[b]) @ every_direction(q)[:, :, 0].T).T @ weights).max()
    assert weights @ pair_distances(means, B) >= possible * (1 - 1e-3)
