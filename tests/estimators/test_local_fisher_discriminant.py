"""Local Fisher discriminant analysis."""

import literal
import numpy as np
import pytest
import scipy.linalg as la
from geometry import most_turned
from samples import labelled

from discrim import LocalFisherDiscriminant, RegularizedLDA
from discrim.estimators import local_fisher


@pytest.mark.parametrize("gamma", [0.0, 0.3])
@pytest.mark.parametrize("neighbors", [2, 7])
def test_directions_are_those_of_the_definition(gamma, neighbors):
    X, y = labelled(40, 5, seed=3)  # the smallest class has fewer than eight rows
    within, between = literal.local_scatters(X, y, neighbors)
    cost = (1 - gamma) * within / 40 + gamma * np.trace(within / 40) / 5 * np.eye(5)
    values, vectors = la.eigh(between / 40, cost)
    fitted = LocalFisherDiscriminant(5, neighbors=neighbors, shrinkage=gamma).fit(X, y)
    np.testing.assert_allclose(fitted.eigenvalues_, values[::-1], rtol=1e-9)
    np.testing.assert_allclose(np.abs(fitted.components_), np.abs(vectors.T[::-1]), rtol=1e-6, atol=1e-9)
    np.testing.assert_allclose(fitted.explained_variance_ratio_.sum(), 1.0, rtol=1e-12)


def test_scales_of_the_directions():
    X, y = labelled(40, 5)
    plain, weighted, unit = (
        LocalFisherDiscriminant(3, metric=m).fit(X, y) for m in ("plain", "weighted", "orthonormalized")
    )
    roots = np.sqrt(plain.eigenvalues_)[:, None]
    np.testing.assert_allclose(weighted.components_, plain.components_ * roots, rtol=1e-9)
    Q = la.qr(plain.components_.T, mode="economic")[0]
    np.testing.assert_allclose(np.abs(unit.components_), np.abs(Q.T), atol=1e-9)


def test_blocks_do_not_matter(monkeypatch):
    X, y = labelled(60, 4)
    whole = LocalFisherDiscriminant(3).fit(X, y).components_
    monkeypatch.setattr(local_fisher, "AFFINITIES", 50)
    np.testing.assert_allclose(LocalFisherDiscriminant(3).fit(X, y).components_, whole, rtol=1e-9)


def groups(n=240):
    """Return one class on both sides of the other, so class means are equal, and a large column of noise."""
    rng = np.random.default_rng(0)
    group = np.arange(n) % 4
    y = np.isin(group, [0, 3]).astype(int)
    return np.c_[rng.standard_normal(n) + 5 * np.array([-1.5, -0.5, 0.5, 1.5])[group], 4 * rng.standard_normal(n)], y


def test_a_class_in_two_groups_is_separated():
    X, y = groups()
    local = LocalFisherDiscriminant(1).fit(X, y).components_[0]
    assert abs(local[0]) > 3 * abs(local[1])
    assert LocalFisherDiscriminant(1).fit(X, y).eigenvalues_[0] > 10 * RegularizedLDA(1).fit(X, y).eigenvalues_[0]


def test_more_directions_than_classes_less_one():
    X, y = labelled(60, 5, 2)
    assert LocalFisherDiscriminant().fit(X, y).n_components_ == 1
    assert LocalFisherDiscriminant(4).fit(X, y).transform(X).shape == (60, 4)


def test_many_equal_rows_have_a_scale():
    X, y = labelled(30, 3, 2)
    X = np.concatenate([X, np.repeat(X[:2], 12, axis=0)])
    y = np.concatenate([y, np.repeat(y[:2], 12)])
    order = np.random.default_rng(0).permutation(len(y))
    one, other = LocalFisherDiscriminant(2).fit(X, y), LocalFisherDiscriminant(2).fit(X[order], y[order])
    assert np.isfinite(one.components_).all()
    assert most_turned(one.components_, other.components_) < 1e-8
