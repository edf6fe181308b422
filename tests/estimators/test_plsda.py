"""PLS-DA: scikit-learn's regression of one-hot labels, importances, and the nearest-centroid rule."""

import literal
import numpy as np
import pytest
from samples import labelled
from sklearn.cross_decomposition import PLSRegression
from sklearn.model_selection import StratifiedKFold
from sklearn.neighbors import NearestCentroid

from discrim import PLSDA

SHAPES = {"tall": (40, 6, 3), "wide": (20, 60, 4), "two classes": (30, 5, 2)}
over_shapes = pytest.mark.parametrize("shape", SHAPES.values(), ids=SHAPES)


@over_shapes
def test_it_is_scikit_learns_regression_of_one_hot_labels(shape):
    X, y = labelled(*shape, seed=3)
    fitted = PLSDA(4).fit(X, y)
    # the default tolerance of their power iteration is 1e-3
    theirs = PLSRegression(4, scale=False, tol=1e-28, max_iter=100_000).fit(X, np.eye(shape[2])[y])
    signs = np.sign((fitted.x_weights_ * theirs.x_weights_).sum(axis=0))
    for name in ("x_weights_", "x_loadings_", "y_loadings_"):
        np.testing.assert_allclose(getattr(fitted, name) * signs, getattr(theirs, name), atol=1e-8, err_msg=name)
    np.testing.assert_allclose(fitted.components_.T * signs, theirs.x_rotations_, atol=1e-8)
    np.testing.assert_allclose(fitted.transform(X) * signs, theirs.transform(X), atol=1e-8)


@over_shapes
def test_scores_loadings_and_importances_are_those_of_the_literal_deflation(shape):
    X, y = labelled(*shape, seed=4)
    fitted = PLSDA(3).fit(X, y)
    weights, scores, loadings, of_labels = literal.partial_least_squares(X, y, [X.shape[1]] * 3)
    signs = np.sign((fitted.x_weights_ * weights).sum(axis=0))
    np.testing.assert_allclose(fitted.x_weights_ * signs, weights, atol=1e-9)
    np.testing.assert_allclose(fitted.transform(X) * signs, scores, atol=1e-9)
    np.testing.assert_allclose(fitted.x_loadings_ * signs, loadings, atol=1e-9)
    np.testing.assert_allclose(fitted.y_loadings_ * signs, of_labels, atol=1e-9)
    np.testing.assert_allclose(fitted.vip_, literal.importances(weights, scores, of_labels), atol=1e-9)
    assert (fitted.vip_**2).sum() == pytest.approx(X.shape[1], rel=1e-12)


def test_eigenvalues_are_the_variance_of_the_labels_that_is_explained():
    X, y = labelled(50, 6, 3, seed=1)
    fitted = PLSDA(2).fit(X, y)
    Y = np.eye(3)[y] - np.bincount(y) / len(y)
    residual = Y - fitted.transform(X) @ fitted.y_loadings_.T
    explained = ((Y**2).sum() - (residual**2).sum()) / len(y)
    assert fitted.eigenvalues_.sum() == pytest.approx(explained, rel=1e-10)
    assert fitted.explained_variance_ratio_.sum() == pytest.approx(explained / (Y**2).sum() * len(y), rel=1e-10)


@over_shapes
@pytest.mark.parametrize("unit", [1.0, 1e-200, 1e200])
def test_a_row_belongs_to_the_class_of_the_nearest_centroid_of_scores(shape, unit):
    X, y = labelled(*shape, seed=5)
    fitted = PLSDA(2).fit(unit * X, y)
    plain = PLSDA(2).fit(X, y)
    expected = NearestCentroid().fit(plain.transform(X), y).predict(plain.transform(X))
    np.testing.assert_array_equal(fitted.predict(unit * X), expected)
    np.testing.assert_allclose(fitted.decision_function(unit * X), plain.decision_function(X), rtol=1e-8, atol=1e-8)


def test_none_is_one_less_than_classes_and_no_component_follows_when_the_labels_are_explained():
    X, y = labelled(60, 8, 4, seed=1)
    assert PLSDA(None).fit(X, y).n_components_ == 3
    rows = np.array([[label, side] for label in (0.0, 1.0) for side in (-1.0, 1.0)] * 5)
    with pytest.warns(UserWarning, match="n_components=2"):
        assert PLSDA(2).fit(rows, rows[:, 0] > 0).n_components_ == 1


# ---------------------------------------------------------------------- labels scaled, shares explained, folds


@pytest.mark.parametrize("shape", [(40, 7, 3), (20, 50, 4), (30, 6, 2)], ids=["tall", "wide", "two classes"])
def test_scaled_labels_are_those_of_the_literal_deflation(shape):
    X, y = labelled(*shape, seed=6)
    k = 2
    fitted = PLSDA(k, scale_labels=True).fit(X, y)
    weights, scores, loadings, of_labels = literal.partial_least_squares(X, y, [X.shape[1]] * k, scale_labels=True)
    signs = np.sign((fitted.x_weights_ * weights).sum(axis=0))
    np.testing.assert_allclose(fitted.x_weights_ * signs, weights, atol=1e-9)
    np.testing.assert_allclose(fitted.y_loadings_ * signs, of_labels, atol=1e-9)
    np.testing.assert_allclose(fitted.vip_, literal.importances(weights, scores, of_labels), atol=1e-9)
    squares = (scores**2).sum(axis=0)
    of_rows, n_labels = ((X - X.mean(axis=0)) ** 2).sum(), len(set(y)) * len(y)
    np.testing.assert_allclose(fitted.r2x_, squares * (loadings**2).sum(axis=0) / of_rows, atol=1e-10)
    np.testing.assert_allclose(fitted.r2y_, squares * (of_labels**2).sum(axis=0) / n_labels, atol=1e-10)
    np.testing.assert_array_equal(fitted.r2y_, fitted.explained_variance_ratio_)
    plain = PLSDA(k).fit(X, y)
    assert (np.abs(plain.x_weights_) - np.abs(fitted.x_weights_)).max() > 0.01 or len(set(y)) == 2


@pytest.mark.parametrize("scale_labels", [False, True])
@pytest.mark.parametrize("shape", [(45, 6, 3), (24, 40, 3)], ids=["tall", "wide"])
def test_q2_is_the_literal_one_and_accuracies_are_those_of_held_out_rows(shape, scale_labels):
    X, y = labelled(*shape, seed=4)
    splits = list(StratifiedKFold(4).split(X, y))
    fitted = PLSDA(3, cv=splits, scale_labels=scale_labels).fit(X, y)
    one_hot = np.eye(3)[y]
    units = one_hot.std(axis=0) if scale_labels else np.ones(3)
    press, right = np.zeros(3), np.zeros(3)
    for training, test in splits:
        mean, own = one_hot[training].mean(axis=0), one_hot[training].std(axis=0) if scale_labels else 1.0
        part = PLSDA(3, scale_labels=scale_labels).fit(X[training], y[training])
        for h in range(3):
            predicted = mean + own * (part.transform(X[test])[:, : h + 1] @ part.y_loadings_[:, : h + 1].T)
            press[h] += (((one_hot[test] - predicted) / units) ** 2).sum()
            few = PLSDA(h + 1, scale_labels=scale_labels).fit(X[training], y[training])
            right[h] += (few.predict(X[test]) == y[test]).sum()
    total = (((one_hot - one_hot.mean(axis=0)) / units) ** 2).sum()
    left = total * (1 - np.concatenate([[0], np.cumsum(fitted.r2y_)[:-1]]))
    np.testing.assert_allclose(fitted.q2_, 1 - press / left, atol=1e-9)
    np.testing.assert_allclose(fitted.count_accuracies_, right / len(y), atol=1e-12)


def test_folds_choose_the_number_of_components():
    rng, y = np.random.default_rng(0), np.arange(90) % 3
    X = rng.standard_normal((90, 12)) * np.geomspace(3, 0.3, 12)
    X[:, 8:10] += 2.5 * np.eye(3)[y][:, :2]  # two directions, behind louder columns
    fitted = PLSDA("cv").fit(X, y)
    assert len(fitted.count_accuracies_) == 10
    assert len(fitted.q2_) == fitted.n_components_ == len(fitted.components_)
    best = fitted.count_accuracies_.max()
    assert fitted.count_accuracies_[fitted.n_components_ - 1] > best - 0.1
    np.testing.assert_allclose(fitted.components_, PLSDA(fitted.n_components_).fit(X, y).components_)
    few = PLSDA("cv", cv=3, random_state=0).fit(X[:, :2], y)
    assert len(few.count_accuracies_) == 2  # no more than the rank


def test_without_folds_there_is_no_q2_and_it_streams():
    X, y = labelled(30, 5)
    assert not hasattr(PLSDA(2).fit(X, y), "q2_")
    assert hasattr(PLSDA(2), "partial_fit")
    for folded in (PLSDA("cv"), PLSDA(2, cv=3)):
        with pytest.raises((AttributeError, ValueError), match="all rows"):
            folded.partial_fit(X, y)


def test_weights_are_repetition_in_the_folds():
    X, y = labelled(40, 5, seed=2)
    weights = np.random.default_rng(0).integers(1, 4, len(y))
    weighted = PLSDA(2, cv=4).fit(X, y, sample_weight=weights)
    repeated = PLSDA(2, cv=4).fit(np.repeat(X, weights, axis=0), np.repeat(y, weights))
    np.testing.assert_allclose(weighted.q2_, repeated.q2_, atol=1e-9)


def test_q2_of_the_largest_numbers_of_single_precision_is_finite():
    X = np.where(np.random.default_rng(0).random((40, 6)) < 0.5, -3e38, 3e38).astype(np.float32)
    assert np.isfinite(PLSDA(2, cv=2).fit(X, np.arange(40) % 3).q2_).all()


def test_q2_is_finite_if_a_held_out_row_is_near_the_largest_number():
    X = np.random.default_rng(0).normal(size=(28, 12))
    X[0] = 1e308 * (-1) ** np.arange(12)
    assert np.isfinite(PLSDA(0.9, cv=2).fit(X, np.arange(28) % 4).q2_).all()


@pytest.mark.parametrize("count", [1, "cv"])
def test_a_fold_that_trains_on_one_class_predicts_it_for_all_rows(count):
    X, y = labelled(11, 4, 2, seed=0)
    y = (np.arange(11) == 10).astype(int)
    fitted = PLSDA(count, cv=[(np.arange(8), np.arange(8, 11))]).fit(X, y)
    assert fitted.count_accuracies_.tolist() == [pytest.approx(2 / 3)] * len(fitted.count_accuracies_)
    # the only held-out errors are those of the row of the other class, whose two columns are both wrong by 1
    assert fitted.q2_[0] == pytest.approx(1 - (2 / 3) / (2 * 10 / 121))
