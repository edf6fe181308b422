"""Subspace of least pairwise error: limits, compared with every direction."""

from itertools import combinations

import numpy as np
import pytest
from scipy.linalg import subspace_angles
from scipy.special import erf

from discrim.core.pairwise_error import PairwiseError, error_subspace, minimise, orthonormal


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


def test_without_random_starts_the_better_of_ldas_and_loogs_directions_is_the_start():
    """Loog, Duin and Haeb-Umbach (2001): Σ_{a<b} p_a p_b erf(Δ/(2√2))/(2Δ²) ddᵀ, in a loop over the pairs."""
    better = 0
    for seed in range(20):
        means, shares = classes(seed=seed)
        objective, spread = PairwiseError(means, shares), np.zeros((5, 5))
        for a, b in combinations(range(7), 2):
            gap = means[a] - means[b]
            distance = np.linalg.norm(gap)
            spread += shares[a] * shares[b] * erf(distance / np.sqrt(8)) / (2 * distance**2) * np.outer(gap, gap)
        loog = minimise(objective, np.linalg.eigh(spread)[1][None, :, -1:])[0]
        lda = minimise(objective, np.eye(5)[None, :, :1])[0]
        found = objective(error_subspace(means, shares, 1, 0, 0)[None])[0][0]
        assert found == pytest.approx(min(loog, lda), abs=1e-9)
        better += loog < lda - 1e-6
    assert better


# ---------------------------------------------------------------------- the descent


A = np.diag([9.0, 7.0, 4.0, 3.0, 2.0, 1.0]) + 0.3 * np.ones((6, 6))


def minus_trace(B):
    """−tr BᵀAB, least on the leading eigenvectors."""
    return -np.trace(B.mT @ A @ B, axis1=1, axis2=2), -2 * A @ B


@pytest.mark.parametrize("k", [1, 2, 5])
def test_leading_eigenvectors_are_found_to_the_last_digits(k, rng):
    value, B = minimise(minus_trace, orthonormal(rng.standard_normal((4, 6, k))))
    values, vectors = np.linalg.eigh(A)
    assert value == pytest.approx(-values[::-1][:k].sum(), rel=1e-13)
    assert np.max(subspace_angles(B, vectors[:, ::-1][:, :k])) < 1e-10
    np.testing.assert_allclose(B.T @ B, np.eye(k), atol=1e-13)


def two_wells(B):
    """Along one direction of the plane: a shallow well at the first axis, a deep one at the second."""
    x, y = B[:, 0, 0], B[:, 1, 0]
    values = -(x**4) - 1.5 * y**4
    return values, np.stack([-4 * x**3, -6 * y**3], axis=1)[:, :, None]


def test_of_several_starts_the_lowest_minimum_is_kept():
    near_shallow = np.array([[[0.999], [0.045]]])
    near_deep = np.array([[[0.1], [0.995]]])
    near_shallow, near_deep = orthonormal(near_shallow), orthonormal(near_deep)
    assert minimise(two_wells, near_shallow)[0] == pytest.approx(-1.0)
    assert minimise(two_wells, np.concatenate([near_shallow, near_deep]))[0] == pytest.approx(-1.5)
    assert minimise(two_wells, np.concatenate([near_deep, near_shallow]))[0] == pytest.approx(-1.5)


def test_classes_with_one_mean_pull_nowhere():
    means, shares = classes()
    means[3] = means[1]
    assert np.isfinite(error_subspace(means, shares, 2, 12, 0)).all()
