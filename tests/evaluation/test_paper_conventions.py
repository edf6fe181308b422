"""The papers' conventions: what they compute, written out."""

import numpy as np
import pytest
from samples import labelled

from discrim import MarginPCA
from discrim.evaluation.paper_conventions import PAPER_METHODS, InitialHyperplane, any_classifier, any_method
from discrim.reducers.pca import PCA

PAIRS = ("all", "mean", "median", "nearest")


@pytest.fixture(scope="module")
def rows():
    X, y = labelled(60, 5, n_classes=2)
    return X + 3.0, y


@pytest.mark.parametrize("name", ["paper/pca", *(f"paper/margin-pca-{pairs}" for pairs in PAIRS)])
def test_rows_are_projected_without_centring(name, rows):
    X, y = rows
    pairs = name.rpartition("-")[2]
    reducer = (PCA(2) if name == "paper/pca" else MarginPCA(2, pairs=pairs)).fit(X, y)
    features = any_method(name).estimator(2, 0).fit(X, y).transform(X)
    np.testing.assert_allclose(features, X @ reducer.components_.T, atol=1e-10)
    assert np.abs(features - reducer.transform(X)).max() > 1  # the mean stays where it is


def test_pls_features_are_rows_times_loadings(rows):
    X, y = rows
    left, target = X - X.mean(axis=0), y - y.mean()
    loadings = []
    for _ in range(3):  # NIPALS for one response, written out
        weight = left.T @ target
        score = left @ weight
        loading = left.T @ score / (score @ score)
        loadings.append(loading * np.linalg.norm(score))  # of a score of length 1
        left = left - np.outer(score, loading)
        target = target - score * (score @ target) / (score @ score)
    features = any_method("paper/pls-loadings").estimator(3, 0).fit(X, y).transform(X)
    np.testing.assert_allclose(np.abs(features), np.abs(X @ np.array(loadings).T), rtol=1e-6)
    assert not PAPER_METHODS["paper/pls-loadings"].takes_sparse


def test_liblinear_without_an_intercept_stays_at_the_origin():
    X = np.linspace(1.0, 2.0, 40)[:, None]
    y = (X[:, 0] > 1.5).astype(int)
    for name in ("svm", "logistic"):
        through_origin = any_classifier(f"paper/{name}").build().fit(X, y)
        assert np.all(through_origin.intercept_ == 0)
        assert len(set(through_origin.predict(X))) == 1  # all rows lie on one side of it
        assert any_classifier(name).build().fit(X, y).score(X, y) > 0.9


def test_the_initial_hyperplane_is_fishers_discriminant(rows):
    X, y = rows
    within = sum(np.cov(X[y == c].T, ddof=0) * np.sum(y == c) for c in (0, 1))
    normal = np.linalg.solve(within, X[y == 1].mean(axis=0) - X[y == 0].mean(axis=0))
    model = InitialHyperplane().fit(X, y)
    cosine = model.coef_[0] @ normal / np.linalg.norm(normal) / np.linalg.norm(model.coef_[0])
    assert cosine == pytest.approx(1.0, abs=1e-9)
    np.testing.assert_array_equal(model.predict(X), (X @ model.coef_[0] + model.intercept_[0] > 0).astype(int))


def test_trees_split_nodes_of_ten_rows():
    model = any_classifier("paper/tree").build()
    assert (model.min_samples_split, model.min_samples_leaf) == (10, 1)
