"""Sparse PLS-DA: mixOmics' rule, the number of features by cross-validation, and stability of the selection."""

import literal
import numpy as np
import pytest
import scipy.sparse as sp
from samples import labelled
from sklearn.model_selection import StratifiedKFold

from discrim import PLSDA, SparsePLSDA
from discrim.core.partial_least_squares import (
    counts_to_try,
    fewest_within_one_error,
    leading_weight,
    soft_thresholded,
)

SHAPES = {"tall": (40, 7, 3), "wide": (20, 50, 4), "two classes": (30, 6, 2)}


@pytest.mark.parametrize("shape", SHAPES.values(), ids=SHAPES)
@pytest.mark.parametrize("kind", [np.asarray, sp.csr_array], ids=["dense", "sparse"])
def test_it_is_the_literal_deflation_with_thresholded_weights(shape, kind):
    X, y = labelled(*shape, seed=6)
    keep = [3, 2, 4]
    fitted = SparsePLSDA(3, keep=keep).fit(kind(X), y)
    weights, scores, loadings, of_labels = literal.partial_least_squares(X, y, keep)
    signs = np.sign((fitted.x_weights_ * weights).sum(axis=0))
    np.testing.assert_allclose(fitted.x_weights_ * signs, weights, atol=1e-9)
    np.testing.assert_allclose(fitted.transform(kind(X)) * signs, scores, atol=1e-9)
    np.testing.assert_allclose(fitted.x_loadings_ * signs, loadings, atol=1e-9)
    np.testing.assert_allclose(fitted.y_loadings_ * signs, of_labels, atol=1e-9)
    np.testing.assert_allclose(fitted.vip_, literal.importances(weights, scores, of_labels), atol=1e-9)
    assert (fitted.x_weights_ != 0).sum(axis=0).tolist() == keep == fitted.keep_.tolist()
    assert fitted.selected_.tolist() == [j for j in range(X.shape[1]) if weights[j].any()]


def test_scaled_labels_are_those_of_the_literal_deflation():
    X, y = labelled(40, 30, 4, seed=6)
    fitted = SparsePLSDA(2, keep=[5, 3], scale_labels=True).fit(X, y)
    weights, *_ = literal.partial_least_squares(X, y, [5, 3], scale_labels=True)
    np.testing.assert_allclose(np.abs(fitted.x_weights_), np.abs(weights), atol=1e-9)


@pytest.mark.parametrize("offset", [0.0, 1.0, 1e3, 1e6, 0.1])
def test_an_offset_does_not_select_a_feature_by_rounding(offset):
    """Features without covariance with the labels are not selected, even if all others are already selected."""
    y = np.arange(24) % 2
    rng = np.random.default_rng(0)
    idle = rng.integers(-8, 8, (12, 4)).repeat(2, axis=0) / 8  # each row in both classes: equal means
    X = np.c_[rng.integers(-8, 8, (24, 2)) / 8 + y[:, None], idle] + offset
    for keep in (3, 6):
        fitted = SparsePLSDA(2, keep=keep).fit(X, y)
        assert set(np.flatnonzero(fitted.x_weights_[:, 0])) == {0, 1}
        np.testing.assert_array_equal(fitted.selected_, SparsePLSDA(2, keep=keep).fit(X - offset, y).selected_)


def test_all_features_kept_is_the_dense_method():
    X, y = labelled(30, 8, 3, seed=1)
    dense, sparse = PLSDA(3).fit(X, y), SparsePLSDA(3, keep=100).fit(X, y)
    np.testing.assert_allclose(sparse.components_, dense.components_, atol=1e-10)
    np.testing.assert_allclose(sparse.decision_function(X), dense.decision_function(X), atol=1e-9)
    assert sparse.keep_.tolist() == [8, 8, 8]


def test_sizes_that_tie_for_the_last_place_go_together():
    np.testing.assert_allclose(soft_thresholded(np.array([3.0, -2.0, 1.0, 0.5]), 2), [2.0, -1.0, 0.0, 0.0])
    np.testing.assert_allclose(soft_thresholded(np.array([3.0, -1.0, 1.0, 0.5]), 2), [2.0, 0.0, 0.0, 0.0])
    np.testing.assert_allclose(soft_thresholded(np.array([3.0, -3.0, 1.0]), 1), [3.0, -3.0, 0.0])


def test_the_fewest_within_one_standard_error():
    accuracies = np.array([[0.5, 0.7, 0.8, 0.9], [0.5, 0.9, 0.8, 0.9], [0.5, 0.7, 0.9, 0.9], [0.5, 0.9, 1.0, 0.9]])
    assert fewest_within_one_error(accuracies) == 3  # the best never varies, so nothing else is within its error
    accuracies[:, 3] = [0.8, 1.0, 0.8, 1.0]  # 0.9, its error 0.058; the third has 0.875, the second 0.8
    assert fewest_within_one_error(accuracies) == 2
    assert counts_to_try(1).tolist() == [1]
    assert counts_to_try(5).tolist() == [1, 2, 3, 4, 5]


def planted(n=60, d=100, strength=2.5):
    rng, y = np.random.default_rng(0), np.arange(n) % 3
    X = rng.standard_normal((n, d))
    X[:, :3] += strength * (y == 1)[:, None]
    X[:, 3:6] += 0.8 * strength * (y == 2)[:, None]
    return X, y


def test_folds_choose_few_features_and_those_are_the_stable_ones():
    X, y = planted()
    fitted = SparsePLSDA(2).fit(X, y)
    assert set(range(6)) <= set(fitted.selected_)
    assert len(fitted.selected_) <= 10
    assert fitted.keep_accuracies_.shape == (2, len(fitted.keep_tried_))
    assert fitted.keep_tried_[[0, -1]].tolist() == [1, 100]
    assert fitted.stability_.shape == (2, 100)
    assert np.flatnonzero(fitted.stability_.max(axis=0) >= 0.8).tolist() == list(range(6))


def test_stability_counts_the_training_sets_that_select_a_feature():
    X, y = planted(strength=0.8)
    splits = list(StratifiedKFold(4).split(X, y))
    fitted = SparsePLSDA(2, keep=[5, 3], cv=splits).fit(X, y)
    kept = [SparsePLSDA(2, keep=[5, 3]).fit(X[training], y[training]).x_weights_.T != 0 for training, _ in splits]
    np.testing.assert_allclose(fitted.stability_, np.mean(kept, axis=0))
    assert 0 < fitted.stability_[fitted.stability_ > 0].min() < 1


def test_held_out_accuracies_are_those_of_fits_on_the_training_rows():
    X, y = planted(30, 8, 1.0)
    splits = list(StratifiedKFold(3).split(X, y))
    fitted = SparsePLSDA(1, cv=splits).fit(X, y)
    for count, accuracy in zip(fitted.keep_tried_, fitted.keep_accuracies_[0], strict=True):
        fits = [SparsePLSDA(1, keep=int(count)).fit(X[a], y[a]).score(X[b], y[b]) for a, b in splits]
        assert accuracy == pytest.approx(np.mean(fits))


def test_a_class_missing_in_a_training_set_is_the_only_one_missed():
    X, y = planted(12, 6)
    y = y.copy()
    y[:1] = 9
    fitted = SparsePLSDA(1, keep="cv").fit(X, y)
    assert (fitted.keep_accuracies_ <= 11 / 12 + 0.1).all()


def test_classes_of_one_row_need_a_number():
    X, y = np.eye(4)[:, :3] + np.arange(3), np.arange(4)
    with pytest.raises(ValueError, match="keep"):
        SparsePLSDA(1).fit(X, y)
    assert np.isnan(SparsePLSDA(1, keep=2).fit(X, y).stability_).all()


def test_a_large_constant_column_does_not_matter():
    X, y = planted(30, 6)
    plain = SparsePLSDA(2, keep=[2, 3]).fit(X, y)
    wider = SparsePLSDA(2, keep=[2, 3]).fit(np.c_[X, np.full(30, 1e150)], y)
    np.testing.assert_allclose(wider.x_weights_[:-1], plain.x_weights_, atol=1e-12)
    assert not wider.x_weights_[-1].any()


def test_a_feature_whose_weight_is_rounding_is_not_selected_at_any_offset():
    y = np.arange(60) % 3
    for seed in range(20):
        rng = np.random.default_rng(seed)
        X = rng.normal(size=(60, 5)) + np.outer(y, [1, -2, 0, 0, 0])
        X[:, 3] = np.repeat(rng.normal(size=20), 3)  # the same values in every class: no covariance with the labels
        for origin in (0.0, 0.1, 7.3):
            assert SparsePLSDA(1, keep=5).fit(X + origin, y).selected_.tolist() == [0, 1, 2, 4]


def test_covariances_that_are_rounding_have_no_weight():
    cross = np.array([[1.0, -1.0], [1e-13, 1e-14], [0.5, 0.1], [1e-4, 1e-4]])
    assert np.flatnonzero(leading_weight(cross, 4)).tolist() == [0, 2, 3]
    assert np.flatnonzero(leading_weight(cross, 4, rounding=1e-3)).tolist() == [0, 2]
    assert np.flatnonzero(leading_weight(cross)).tolist() == [0, 1, 2, 3]  # the dense method keeps all


@pytest.mark.parametrize("kind", [np.asarray, sp.csr_array], ids=["dense", "sparse"])
def test_largest_numbers_of_both_signs_equal_the_same_table_in_another_unit(kind):
    X, y = np.sign(np.random.default_rng(0).normal(size=(40, 6))), np.arange(40) % 3
    large, small = (SparsePLSDA(2, keep=2).fit(kind(unit * X), y) for unit in (1e308, 1.0))
    np.testing.assert_allclose(large.r2x_, small.r2x_, rtol=1e-9)
    np.testing.assert_array_equal(large.selected_, small.selected_)


def test_a_feature_that_would_be_selected_twice_ends_the_components():
    X, y = labelled(40, 6, seed=0)
    X[3] *= 1e12  # after one component the remaining covariance is rounding error in the same feature
    with pytest.warns(UserWarning, match="n_components"):
        fitted = SparsePLSDA(4, keep=1).fit(X, y)
    assert fitted.n_components_ == len(fitted.keep_) < 4
    assert np.isfinite(fitted.r2x_).all()
