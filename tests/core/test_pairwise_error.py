"""The pairwise error of a subspace against its definition, its slope against finite differences."""

import math

import numpy as np
import pytest
from scipy.special import log_ndtr

from discrim.core import pairwise_error
from discrim.core.pairwise_error import PairwiseError


def problem(n_classes=6, q=5, k=2, scale=2.0, seed=0):
    rng = np.random.default_rng(seed)
    shares = rng.dirichlet(np.full(n_classes, 5.0))
    B = np.linalg.qr(rng.standard_normal((q, k)))[0]
    return PairwiseError(scale * rng.standard_normal((n_classes, q)), shares), B


def literal_value(means, shares, B):
    total = 0.0
    for a in range(len(means)):
        for b in range(a + 1, len(means)):
            distance = math.sqrt(sum(x * x for x in B.T @ (means[a] - means[b])))
            total += shares[a] * shares[b] * math.erfc(distance / (2 * math.sqrt(2)))
    return total


def literal_gradient(means, shares, B):
    total = np.zeros_like(B)
    for a in range(len(means)):
        for b in range(a + 1, len(means)):
            d = means[a] - means[b]
            distance = np.linalg.norm(B.T @ d)
            pull = shares[a] * shares[b] * math.exp(-(distance**2) / 8) / (math.sqrt(2 * math.pi) * distance)
            total -= pull * np.outer(d, d) @ B
    return total


@pytest.fixture(params=["differences held", "pairs as numbers"])
def way(request, monkeypatch):
    """Both ways through the pairs: few classes and many."""
    if request.param == "pairs as numbers":
        monkeypatch.setattr(pairwise_error, "HELD_DIFFERENCES", 0)


@pytest.mark.parametrize("k", [1, 2, 4])
def test_value_and_gradient_are_the_literal_sums(way, k):
    objective, B = problem(k=k)
    values, gradients = objective(B[None])
    value = literal_value(objective.means, objective.shares, B)
    assert values[0] == pytest.approx(math.log(value), rel=1e-12)
    assert objective.value(B) == pytest.approx(value, rel=1e-12)
    np.testing.assert_allclose(value * gradients[0], literal_gradient(objective.means, objective.shares, B), atol=1e-14)


def test_means_so_far_apart_that_the_error_is_zero_still_have_a_slope(way):
    objective, B = problem(scale=500.0)
    value, gradient = objective(B[None])
    distances = np.linalg.norm((objective.means[:, None] - objective.means[None]) @ B, axis=2)
    a, b = np.triu_indices(6, 1)
    logs = np.log(objective.shares[a] * objective.shares[b]) + math.log(2) + log_ndtr(-distances[a, b] / 2)
    assert objective.value(B) == 0.0
    assert value[0] == pytest.approx(np.logaddexp.reduce(logs), rel=1e-12)
    assert np.isfinite(gradient).all()
    assert np.abs(gradient).max() > 1


def test_classes_with_one_mean_pull_nowhere(way):
    objective, B = problem()
    means = objective.means.copy()
    means[3] = means[1]
    value, gradient = PairwiseError(means, objective.shares)(B[None])
    assert np.isfinite(value).all()
    assert np.isfinite(gradient).all()
