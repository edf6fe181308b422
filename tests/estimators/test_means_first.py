"""Class means first, then other directions: supervised PCA and the optimal low-rank projection."""

import literal
import numpy as np
import pytest
import scipy.linalg as la
from geometry import most_turned
from samples import labelled
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.pipeline import make_pipeline

from discrim import KernelMap, OptimalLowRank, SupervisedPCA

METHODS = {SupervisedPCA: literal.supervised_pca, OptimalLowRank: literal.optimal_low_rank}
SHAPES = {
    "two classes": (13, 4, 2),
    "four classes": (20, 6, 4),
    "wide": (9, 14, 3),
    "more classes than columns": (24, 3, 6),
}


@pytest.mark.parametrize("shape", SHAPES.values(), ids=SHAPES)
@pytest.mark.parametrize("kind", METHODS, ids=lambda kind: kind.__name__)
def test_directions_are_those_of_the_definition(kind, shape):
    X, y = labelled(*shape, seed=1)
    rank = min(len(X) - 1, X.shape[1])
    fitted = kind(rank).fit(X, y)
    wanted = METHODS[kind](X, y, rank)
    assert fitted.rank_ == len(wanted) == rank
    assert fitted.n_supervised_ == min(shape[2] - 1, rank)
    assert most_turned(fitted.components_, wanted) < 1e-7
    np.testing.assert_allclose(fitted.components_ @ fitted.components_.T, np.eye(rank), atol=1e-12)


def test_eigenvalues_of_the_dependence():
    X, y = labelled(30, 5, 4)
    values = literal.leading(literal.label_dependence(X, y))[0]
    fitted = SupervisedPCA().fit(X, y)
    assert fitted.n_components_ == fitted.n_supervised_ == 3
    np.testing.assert_allclose(fitted.eigenvalues_ * len(X), values, rtol=1e-10)
    np.testing.assert_allclose(fitted.explained_variance_ratio_, values / values.sum(), rtol=1e-10)
    np.testing.assert_array_equal(SupervisedPCA(5).fit(X, y).eigenvalues_[3:], 0.0)


def test_means_alone_are_the_between_scatter_in_the_optimal_low_rank():
    X, y = labelled(60, 5, 4)
    means = np.array([np.sqrt((y == c).mean()) * (X[y == c].mean(axis=0) - X.mean(axis=0)) for c in range(4)])
    np.testing.assert_allclose(OptimalLowRank().fit(X, y).eigenvalues_, la.svdvals(means)[:3] ** 2, rtol=1e-10)


def test_a_direction_within_classes_that_is_a_means_one_is_left_out():
    """Rows vary most along the means' own axis: the next component is the second largest direction within classes."""
    arms = np.diag([3.0, 1.0, 0.5])
    X = np.concatenate([np.r_[arms, -arms] + shift for shift in ([1, 0, 0], [-1, 0, 0])])
    found = OptimalLowRank(2).fit(X, np.repeat([0, 1], 6)).components_
    np.testing.assert_allclose(found, np.eye(3)[:2], atol=1e-12)


def test_behind_a_kernel_map_it_is_kernel_supervised_pca():
    """Generalised eigenvectors of (KHLHK, K): features Kβ, βᵀKβ = 1."""
    X, y = labelled(40, 3, 3)
    K = rbf_kernel(X, gamma=0.2)
    H = np.eye(40) - 1 / 40
    L = (y[:, None] == y).astype(float)
    values, betas = la.eigh(K @ H @ L @ H @ K, K + 1e-13 * np.eye(40))
    features = H @ K @ betas[:, ::-1][:, :2]
    found = make_pipeline(KernelMap(gamma=0.2), SupervisedPCA(2)).fit(X, y)
    mine = found.transform(X)
    np.testing.assert_allclose(mine * np.sign((mine * features).sum(axis=0)), features, atol=1e-6)
    np.testing.assert_allclose(found[-1].eigenvalues_ * 40, values[::-1][:2], rtol=1e-6)
