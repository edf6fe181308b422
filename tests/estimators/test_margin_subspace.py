"""The SVM's weights and their singular vectors."""

import numpy as np
import pytest
import scipy.sparse as sp
from geometry import largest_angle, most_turned
from samples import labelled, note
from sklearn.svm import LinearSVC

from discrim.estimators.max_margin import MarginSubspace


def liblinear_weights(X, y, C=1.0, weights=None):
    H = X - np.average(X, axis=0, weights=weights)
    scale = np.sqrt(np.average((H**2).sum(axis=1), weights=weights))
    reference = LinearSVC(
        multi_class="crammer_singer", fit_intercept=False, C=C, tol=1e-9, max_iter=10**6, random_state=0
    )
    coef = reference.fit(H / scale, y, sample_weight=weights).coef_
    return coef - coef.mean(axis=0), scale


@pytest.mark.parametrize("C", [0.1, 1.0, 10.0])
def test_singular_vectors_of_liblinears_weights(C, table):
    X, y = table
    eta, scale = liblinear_weights(X, y, C)
    _, singular, directions = np.linalg.svd(eta, full_matrices=False)
    for container in (np.asarray, sp.csr_array):
        found = MarginSubspace(C=C).fit(container(X), y)
        with note(container):
            assert found.components_.shape == (2, X.shape[1])
            assert most_turned(found.components_, directions[:2]) < 1e-4
            np.testing.assert_allclose(found.class_coef_, eta * scale, atol=1e-4 * np.abs(eta * scale).max())
            np.testing.assert_allclose(found.eigenvalues_, (singular[:2] * scale) ** 2 / len(y), rtol=1e-4)
            shares = singular[:2] ** 2 / (singular**2).sum()
            np.testing.assert_allclose(found.explained_variance_ratio_, shares, rtol=1e-4)
            np.testing.assert_allclose(found.components_ @ found.components_.T, np.eye(2), atol=1e-12)
            assert found.duality_gap_ <= 1e-10
            assert found.n_iter_ >= 1


def test_weights(table):
    X, y = table
    weights = np.random.default_rng(0).uniform(0.2, 3, len(y))
    eta = liblinear_weights(X, y, weights=weights)[0]
    found = MarginSubspace(1).fit(X, y, sample_weight=weights)
    assert most_turned(found.components_, np.linalg.svd(eta)[2][:1]) < 1e-4


@pytest.mark.parametrize(("n_classes", "d", "rank"), [(2, 5, 1), (4, 9, 3), (6, 3, 3)])
def test_there_are_n_classes_minus_1_or_n_features_directions(n_classes, d, rank):
    X, y = labelled(80, d, n_classes=n_classes)
    found = MarginSubspace().fit(X, y)
    assert found.rank_ == found.n_components_ == rank
    assert largest_angle(found.components_, found.class_coef_[:rank]) < 1e-7
    with pytest.warns(UserWarning, match=f"n_components={rank + 1}"):
        assert MarginSubspace(rank + 1).fit(X, y).n_components_ == rank


def test_fewer_components_are_the_first_of_more():
    X, y = labelled(80, 9, n_classes=5)
    np.testing.assert_allclose(MarginSubspace(2).fit(X, y).components_, MarginSubspace().fit(X, y).components_[:2])
    assert MarginSubspace(0.6).fit(X, y).explained_variance_ratio_.sum() >= 0.6


def test_features_separate_the_classes_better_than_those_of_pca():
    rng = np.random.default_rng(0)
    y = np.arange(200) % 2
    X = rng.standard_normal((200, 6)) * [10, 8, 6, 1, 1, 1]
    X[:, 5] += 3 * y  # the classes differ along a column of small variance
    direction = MarginSubspace(1).fit(X, y).components_[0]
    assert abs(direction[5]) > 0.95


def test_a_large_sparse_table_needs_no_number():
    rng = np.random.default_rng(0)
    X = sp.random(400, 300, density=0.05, random_state=rng, format="csr")
    y = np.arange(400) % 3
    fitted = MarginSubspace().fit(X, y)
    assert fitted.components_.shape == (2, 300)
    assert most_turned(fitted.components_, MarginSubspace().fit(X.toarray(), y).components_) < 1e-6
