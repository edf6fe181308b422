"""PLS-DA: scikit-learn's regression of one-hot labels, importances, and the rule of the nearest centroid."""

import literal
import numpy as np
import pytest
from samples import labelled
from sklearn.cross_decomposition import PLSRegression
from sklearn.neighbors import NearestCentroid

from discrim import PLSDA

SHAPES = {"tall": (40, 6, 3), "wide": (20, 60, 4), "two classes": (30, 5, 2)}
over_shapes = pytest.mark.parametrize("shape", SHAPES.values(), ids=SHAPES)


@over_shapes
def test_it_is_scikit_learns_regression_of_one_hot_labels(shape):
    X, y = labelled(*shape, seed=3)
    fitted = PLSDA(4).fit(X, y)
    # their power iteration stops at a thousandth unless told otherwise
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
    with pytest.raises(ValueError, match="after 1 component"):
        PLSDA(2).fit(rows, rows[:, 0] > 0)
