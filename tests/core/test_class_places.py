"""Positions of classes: known answers, gradients, and minima that no other search improves."""

import itertools

import numpy as np
import pytest
from scipy.optimize import minimize

from discrim.core.class_places import (
    class_places,
    energy,
    on_principal_axes,
    similarity,
    simplex,
)


def cost_of_order(order, S):
    """Σ_{a<b} S_ab |rank_a − rank_b|."""
    ranks = np.argsort(order)
    return (S * np.abs(ranks[:, None] - ranks)).sum() / 2


def confusions_of(n_classes, seed=0):
    rng = np.random.default_rng(seed)
    return 0.8 * np.eye(n_classes) + 0.2 * rng.dirichlet(np.full(n_classes, 0.2), n_classes)


def test_similarity_is_the_definition():
    M = np.array([[0.9, 0.1, 0.0], [0.3, 0.7, 0.0], [0.0, 0.0, 1.0]])
    S = similarity(M)
    wanted = np.array([[0, 0.2, 0], [0.2, 0, 0], [0, 0, 0]]) / 0.2 + 1e-6 * (1 - np.eye(3))
    np.testing.assert_allclose(S, wanted, atol=1e-15)
    np.testing.assert_allclose(similarity(np.eye(4)), 1e-6 * (1 - np.eye(4)))


@pytest.mark.parametrize("n_classes", [2, 3, 5, 12])
def test_a_simplex_has_unit_corners_equally_far_apart_in_one_orientation(n_classes):
    V = simplex(n_classes)
    assert V.shape == (n_classes, n_classes - 1)
    np.testing.assert_allclose(V @ V.T, (n_classes * np.eye(n_classes) - 1) / (n_classes - 1), atol=1e-14)
    for k in (n_classes - 1, n_classes + 5):
        np.testing.assert_array_equal(class_places(confusions_of(n_classes), k, seed=3), V)


def test_the_energy_is_the_literal_sum(rng):
    S = similarity(confusions_of(5))
    V = rng.standard_normal((5, 2))
    wanted = 0.0
    for a, b in itertools.combinations(range(5), 2):
        distance = np.sqrt(sum((V[a] - V[b]) ** 2))
        wanted += 1 / distance**2 + 2 * 5 * S[a, b] * distance
    assert energy(V, S)[0] == pytest.approx(wanted, rel=1e-12)


@pytest.mark.parametrize("n_classes", [4, 6, 10])
def test_on_a_circle_no_other_search_finds_less(n_classes):
    S = similarity(M := confusions_of(n_classes, seed=n_classes))
    V = class_places(M, 2, seed=0)
    np.testing.assert_allclose(np.linalg.norm(V, axis=1), 1.0, atol=1e-12)

    def of_angles(angles):
        return energy(np.c_[np.cos(angles), np.sin(angles)], S)[0]

    rng = np.random.default_rng(1)
    others = [minimize(of_angles, rng.uniform(0, 2 * np.pi, n_classes), method="BFGS") for _ in range(30)]
    found = energy(V, S)[0]
    # a local minimum to all digits; and of the random starts of another search hardly one finds less
    at_angles = minimize(of_angles, np.arctan2(V[:, 1], V[:, 0]), method="BFGS", options={"gtol": 1e-8})
    assert at_angles.fun == pytest.approx(found, rel=1e-9)
    assert np.mean([other.fun < found * (1 - 1e-6) for other in others]) < 0.1


def test_random_starts_find_less_where_the_spectral_one_ends_in_a_worse_minimum(monkeypatch):
    M = confusions_of(7, seed=3)  # on a circle the spectral start is hard to beat; on a sphere it sometimes is beaten
    found = energy(class_places(M, 3, seed=0), similarity(M))[0]
    monkeypatch.setattr("discrim.core.class_places.RANDOM_STARTS", 0)
    assert found < energy(class_places(M, 3, seed=0), similarity(M))[0] - 0.1


def test_on_a_circle_confused_classes_are_neighbours_and_the_first_class_lies_on_the_first_axis():
    M = np.eye(6)
    for a, b in [(0, 3), (3, 1), (1, 4), (4, 2), (2, 5), (5, 0)]:  # a ring
        M[a, b] = M[b, a] = 0.2
    V = class_places(M / M.sum(axis=1, keepdims=True), 2, seed=0)
    angles = np.arctan2(V[:, 1], V[:, 0])
    np.testing.assert_allclose(V[0], [1, 0], atol=1e-9)
    assert V[1, 1] > 0
    order = np.argsort(np.mod(angles, 2 * np.pi)).tolist()
    assert order in ([0, 3, 1, 4, 2, 5], [0, 5, 2, 4, 1, 3])
    np.testing.assert_allclose(np.sort(np.mod(angles + 1e-9, 2 * np.pi)), np.arange(6) * np.pi / 3, atol=1e-5)


def test_on_a_line_a_chain_of_confusions_is_found_and_evenly_spaced():
    chain = [2, 0, 4, 1, 3]
    M = np.eye(5)
    for a, b in itertools.pairwise(chain):
        M[a, b] = M[b, a] = 0.3
    places = class_places(M, 1, seed=0)
    wanted = np.empty(5)
    wanted[chain] = np.linspace(-1, 1, 5)
    np.testing.assert_allclose(places[:, 0], wanted)
    assert places.shape == (5, 1)


@pytest.mark.parametrize("seed", range(5))
def test_on_a_line_the_order_is_the_best_of_all(seed):
    S = similarity(M := confusions_of(6, seed))
    order = np.argsort(class_places(M, 1, seed=0)[:, 0])
    least = min(cost_of_order(np.array(one), S) for one in itertools.permutations(range(6)))
    # single moves end at a local minimum; here it is the global one, except for one seed, which is within 5 %
    assert cost_of_order(order, S) <= least * 1.05
    ranks = np.argsort(order)
    assert ranks.tolist() <= (5 - ranks).tolist()


def test_many_classes_have_places_too():
    places = class_places(confusions_of(130), 2, seed=0)
    gaps = np.linalg.norm(places[:, None] - places, axis=2)[np.triu_indices(130, 1)]
    assert gaps.min() > 1e-3


def test_principal_axes_keep_distances_and_sort_the_variances(rng):
    places = class_places(confusions_of(6), 4, 0)
    q = rng.dirichlet(np.linspace(0.2, 2, 6), 200)
    rotated = on_principal_axes(places, np.cov(q, rowvar=False, ddof=0))
    np.testing.assert_allclose(rotated @ rotated.T, places @ places.T, atol=1e-12)
    spread = np.cov(q @ rotated, rowvar=False, ddof=0)
    np.testing.assert_allclose(spread, np.diag(np.diag(spread)), atol=1e-14)
    assert (np.diff(np.diag(spread)) < 0).all()


def test_axes_of_equal_variance_do_not_depend_on_rounding(rng):
    places, even = simplex(5), np.eye(5) - 1 / 5  # every direction has the same variance
    turned = places @ np.linalg.qr(rng.standard_normal((4, 4)))[0]
    noise = 1e-15 * np.cov(rng.standard_normal((20, 5)), rowvar=False)
    np.testing.assert_allclose(on_principal_axes(turned, even + noise), on_principal_axes(places, even), atol=1e-9)
