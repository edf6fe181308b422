"""Papers' conventions, compared with explicit computations."""

import numpy as np
import pytest
from samples import labelled
from sklearn.model_selection import StratifiedKFold, cross_val_score
from sklearn.pipeline import make_pipeline

from discrim import LogisticPCA, MarginPCA, MaxMarginShift, SupervisedExponentialPCA
from discrim.estimators.pca import PCA
from discrim.papers.conventions import (
    EXTRACTORS,
    PAPER_METHODS,
    InitialHyperplane,
    any_classifier,
    any_method,
)

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
    assert np.abs(features - reducer.transform(X)).max() > 1  # the mean is not subtracted


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


def test_the_initial_hyperplane_in_matlabs_scale(rows):
    X, y = rows
    model = InitialHyperplane(normalize=(len(y) - 2) / len(y)).fit(X, y)
    within = sum(np.cov(X[y == c].T, ddof=0) * np.sum(y == c) for c in (0, 1)) / (len(y) - 2)
    zero, one = (X[y == c].mean(axis=0) for c in (0, 1))
    np.testing.assert_allclose(model.coef_[0], np.linalg.solve(within, one - zero))
    middle = (zero + one) / 2
    assert model.predict(np.array([middle + 1e-3 * (one - zero), middle - 1e-3 * (one - zero)])).tolist() == [1, 0]
    assert model.margin_ == pytest.approx(2 / np.linalg.norm(model.coef_))


def test_the_cost_is_chosen_by_folds_that_every_class_can_fill(rows):
    X, y = rows
    few = np.concatenate([np.flatnonzero(y == c)[:2] for c in (0, 1)])
    model = any_classifier("paper/centred-svm by folds").build().fit(X[few], y[few])
    assert set(model.predict(X)) <= {0, 1}
    assert any_classifier("paper/centred-svm").build().fit(X, y).score(X, y) > 0.7


@pytest.mark.parametrize("extractor", sorted(EXTRACTORS))
def test_an_extractor_sees_the_rows_or_random_features_of_them_shifted_or_not(extractor):
    X, y = labelled(90, 6)
    features = "rows" if EXTRACTORS[extractor][0] else "500"
    plain, shifted = (
        any_method(f"paper/{extractor} of {features}{words}").estimator(3, 0).fit(X, y)
        for words in ("", " shifted by 4")
    )
    assert plain.transform(X).shape == (90, 3)
    assert plain.embedding_ is None or plain.embedding_.transform(X).shape == (90, 500)
    assert np.abs(plain.transform(X) - shifted.transform(X)).max() > 1e-3
    assert 0 < plain.trial_scores_["reconstruction_error"] < np.mean(plain.seen(X) ** 2)
    if extractor in ("pca", "kernel-pca"):  # no reconstruction is better than that of PCA of the plain rows
        assert plain.trial_scores_["reconstruction_error"] < shifted.trial_scores_["reconstruction_error"]


def test_a_shift_by_folds_is_the_best_of_all_costs():
    X, y = labelled(60, 5)
    model = any_method("paper/pca of rows shifted by folds").estimator(2, 0).fit(X, y)
    best = max(
        max(MaxMarginShift(PCA(2), shift="cv", C=C, tol=1e-6, random_state=0).fit(X, y).shift_scores_.values())
        for C in (0.1, 1.0, 10.0)
    )
    assert max(model.fitted_.shift_scores_.values()) == best


@pytest.mark.parametrize(
    ("name", "reducer"), [("logistic-pca", LogisticPCA), ("supervised-exponential-pca", SupervisedExponentialPCA)]
)
def test_the_weight_of_the_labels_is_the_one_whose_features_serve_an_svm_best(name, reducer):
    X, y = labelled(45, 6)
    X += 2 * np.random.default_rng(1).standard_normal(X.shape)  # the weights then differ in accuracy
    model = any_method(f"paper/{name} by folds").estimator(2, 0).fit(X, y)
    folds = StratifiedKFold(5, shuffle=True, random_state=0)
    svm = any_classifier("paper/centred-svm").build()
    worth = {
        weight: cross_val_score(make_pipeline(reducer(2, label_weight=weight), svm), X, y, cv=folds).mean()
        for weight in (1.0, 10.0, 100.0)
    }
    assert len(set(worth.values())) > 1
    assert worth[model.fitted_.label_weight] == max(worth.values())
    np.testing.assert_array_equal(model.transform(X), model.fitted_.transform(X))


def test_what_is_not_shifted_is_the_extractor_alone_and_the_shift_is_kept():
    X, y = labelled(60, 5)
    plain, shifted = (
        any_method(f"paper/pca of rows{words}").estimator(2, 0).fit(X, y) for words in ("", " shifted by 4")
    )
    np.testing.assert_array_equal(plain.transform(X), PCA(2).fit(X).transform(X))
    assert (plain.trial_scores_["shift"], shifted.trial_scores_["shift"]) == (0.0, 4.0)


def test_trees_split_nodes_of_ten_rows():
    model = any_classifier("paper/tree").build()
    assert (model.min_samples_split, model.min_samples_leaf) == (10, 1)
