"""PCA on the common core: scikit-learn's answer where that is right, and the right one where it is not."""

import exact
import numpy as np
import pytest
from geometry import most_turned
from samples import labelled
from sklearn.datasets import load_breast_cancer, load_digits, load_iris
from sklearn.decomposition import PCA as YARDSTICK

from discrim import PCA


@pytest.mark.parametrize("load", [load_iris, load_breast_cancer, load_digits])
def test_agrees_with_scikit_learn(load):
    X, _ = load(return_X_y=True)
    ours, theirs = PCA(4).fit(X), YARDSTICK(4, svd_solver="full").fit(X)
    assert most_turned(ours.components_, theirs.components_) < 1e-9
    n = len(X)
    np.testing.assert_allclose(ours.eigenvalues_ * n / (n - 1), theirs.explained_variance_, rtol=1e-10)
    np.testing.assert_allclose(ours.explained_variance_ratio_, theirs.explained_variance_ratio_, rtol=1e-10)
    np.testing.assert_allclose(np.abs(ours.transform(X)), np.abs(theirs.transform(X)), atol=1e-8)


def test_wide_rows_too():
    X, _ = labelled(20, 200)
    ours, theirs = PCA().fit(X), YARDSTICK(19, svd_solver="full").fit(X)
    assert ours.rank_ == 19
    assert most_turned(ours.components_, theirs.components_) < 1e-9


def test_eigenvalues_are_variances_of_the_features_it_makes():
    X, _ = labelled(50, 5)
    features = PCA().fit_transform(X)
    covariance = features.T @ features / len(X)
    np.testing.assert_allclose(covariance, np.diag(PCA().fit(X).eigenvalues_), atol=1e-12)


def test_everything_can_be_had_back_from_all_components():
    X, _ = labelled(50, 5)
    fitted = PCA().fit(X)
    np.testing.assert_allclose(fitted.inverse_transform(fitted.transform(X)), X, atol=1e-12)


def test_at_an_offset_of_1e8_it_is_right_to_the_last_digits():
    X, _ = labelled(150, 3)
    X = X + 1e8
    fitted = PCA().fit(X)
    S = exact.total(X) / len(X)
    values, vectors = np.linalg.eigh(S)
    np.testing.assert_allclose(fitted.eigenvalues_, values[::-1], rtol=1e-12)
    assert most_turned(fitted.components_, vectors.T[::-1]) < 1e-11
