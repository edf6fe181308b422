"""The SVM as an estimator: scikit-learn's contract, LIBLINEAR's numbers, its attributes, its errors."""

import os
import warnings
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn.datasets import load_breast_cancer, load_digits, load_iris, load_wine
from sklearn.exceptions import ConvergenceWarning
from sklearn.preprocessing import scale
from sklearn.svm import LinearSVC
from sklearn.utils.estimator_checks import check_estimator

from discrim.estimators.classifiers import CrammerSingerSVC

OPTIONS = [{}, {"fit_intercept": False, "class_weight": "balanced", "warm_start": True}]
X_IRIS, Y_IRIS = load_iris(return_X_y=True)
X_IRIS = scale(X_IRIS)


def tight(**options):
    return CrammerSingerSVC(**{"tol": 1e-12, "max_iter": 100_000, "random_state": 0} | options)


@pytest.mark.parametrize("options", OPTIONS)
def test_scikit_learns_contract(options):
    check_estimator(CrammerSingerSVC(**options), on_skip=None)


def three_tables():
    rng = np.random.default_rng(0)
    letters = np.arange(260) % 26
    yield "iris", X_IRIS, Y_IRIS
    yield "two classes", scale(load_breast_cancer().data), load_breast_cancer().target
    yield "26 classes", rng.standard_normal((26, 8))[letters] + 0.5 * rng.standard_normal((260, 8)), letters


TABLES = {name: rest for name, *rest in three_tables()}


@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("C", [0.01, 1.0])
@pytest.mark.parametrize("name", TABLES)
@pytest.mark.parametrize("make", [np.asarray, sp.csr_matrix], ids=["dense", "sparse"])
def test_coef_is_liblinears_at_tight_tolerance(name, C, fit_intercept, make):
    X, y = TABLES[name]
    options = {"C": C, "fit_intercept": fit_intercept, "tol": 1e-10, "random_state": 0}
    reference = LinearSVC(multi_class="crammer_singer", **options)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # it counts 1,000 passes as failure and goes on
        reference.fit(X, y)
    ours = tight(C=C, fit_intercept=fit_intercept).fit(make(X), y)
    size = np.abs(reference.coef_).max()
    np.testing.assert_allclose(ours.coef_, reference.coef_, atol=1e-5 * size)
    np.testing.assert_allclose(ours.intercept_, 0 * ours.intercept_ + reference.intercept_, atol=1e-5 * size)
    scores = ours.decision_function(X)
    np.testing.assert_allclose(scores, reference.decision_function(X), atol=1e-4)
    # Two classes that both hold up a row have the same score there: a tie that rounding settles.
    clear = np.ones(len(y), bool) if scores.ndim == 1 else np.diff(np.sort(scores)[:, -2:])[:, 0] > 1e-4
    assert clear.mean() > 0.8
    np.testing.assert_array_equal(ours.predict(X)[clear], reference.predict(X)[clear])
    np.testing.assert_array_equal(ours.decision_function(sp.csr_array(X)), ours.decision_function(sp.csc_matrix(X)))


def test_attributes_of_two_and_of_more_classes():
    two = tight().fit(X_IRIS[:100], Y_IRIS[:100])
    assert two.coef_.shape == (1, 4)
    assert two.class_coef_.shape == (2, 4)
    assert two.dual_coef_.shape == (100, 2)
    assert two.intercept_.shape == (1,)
    np.testing.assert_allclose(two.coef_[0], two.class_coef_[1] - two.class_coef_[0])
    assert ((two.decision_function(X_IRIS[:100]) > 0) == (Y_IRIS[:100] == 1)).all()
    three = tight().fit(X_IRIS, Y_IRIS)
    assert three.coef_ is three.class_coef_
    assert three.decision_function(X_IRIS).shape == (150, 3)
    np.testing.assert_allclose(three.class_coef_, three.dual_coef_.T @ X_IRIS, atol=1e-12)
    np.testing.assert_allclose(three.class_intercept_, three.dual_coef_.sum(axis=0), atol=1e-12)
    np.testing.assert_allclose(three.class_coef_.sum(axis=0), 0, atol=1e-12)
    assert 0 <= three.duality_gap_ <= 1e-12
    assert three.n_iter_ >= 1
    assert three.n_features_in_ == 4


def test_the_default_tolerance_is_kept():
    X, y = load_digits(return_X_y=True)
    model = CrammerSingerSVC(random_state=0).fit(X, y)
    assert model.duality_gap_ <= 1e-4
    assert model.score(X, y) == 1.0


@pytest.mark.parametrize("labels", [["a", "b", "c"], [True, False, True], [-1, 7, 3], ["ä", "ß", "漢"]])
def test_labels_of_any_kind(labels):
    y = np.array(labels)[Y_IRIS]
    model = tight().fit(X_IRIS, y)
    assert set(model.classes_) == set(labels)
    assert model.predict(X_IRIS).dtype == y.dtype
    assert model.score(X_IRIS, y) > 0.9 or len(set(labels)) == 2


def test_categories_that_do_not_occur_are_no_classes():
    y = pd.Categorical.from_codes(Y_IRIS, ["a", "b", "c", "never"])
    assert list(tight().fit(X_IRIS, y).classes_) == ["a", "b", "c"]


def test_weights_count_as_rows_and_zeros_as_none():
    weights = np.random.default_rng(0).integers(0, 3, 150)
    once = tight().fit(X_IRIS, Y_IRIS, sample_weight=weights)
    often = tight().fit(X_IRIS.repeat(weights, 0), Y_IRIS.repeat(weights))
    np.testing.assert_allclose(once.coef_, often.coef_, rtol=1e-12)
    assert once.dual_coef_.shape == (150, 3)
    assert (once.dual_coef_[weights == 0] == 0).all()
    without_a_class = tight().fit(X_IRIS, Y_IRIS, sample_weight=(Y_IRIS > 0) * 1.0)
    np.testing.assert_array_equal(without_a_class.classes_, [1, 2])
    assert without_a_class.dual_coef_.shape == (150, 2)
    # C·weight may be too small for a number other than 0
    vanishing = CrammerSingerSVC(C=1e-300).fit(X_IRIS, Y_IRIS, sample_weight=np.where(weights == 0, 1e-90, 1.0))
    assert (vanishing.dual_coef_[weights == 0] == 0).all()
    assert np.isfinite(vanishing.dual_coef_).all()


def test_class_weights_are_weights():
    factors = {0: 0.5, 2: 3.0}
    by_class = tight(class_weight=factors).fit(X_IRIS, Y_IRIS)
    by_row = tight().fit(X_IRIS, Y_IRIS, sample_weight=np.array([0.5, 1.0, 3.0])[Y_IRIS])
    np.testing.assert_array_equal(by_class.coef_, by_row.coef_)
    keep = np.r_[0:50, 60:80, 100:105]
    X, y = X_IRIS[keep], Y_IRIS[keep]
    balanced = tight(class_weight="balanced").fit(X, y)
    by_hand = tight(class_weight={0: 75 / 150, 1: 75 / 60, 2: 75 / 15}).fit(X, y)
    np.testing.assert_array_equal(balanced.coef_, by_hand.coef_)
    doubled = tight(class_weight="balanced").fit(X, y, sample_weight=np.full(75, 2.0))
    np.testing.assert_allclose(doubled.coef_, tight(class_weight="balanced", C=2.0).fit(X, y).coef_)


def test_a_warm_start_follows_a_path_over_the_cost():
    X, y = load_wine(return_X_y=True)
    X = scale(X)
    model = tight(warm_start=True, tol=1e-8)
    for C in (0.01, 0.1, 1.0):
        model.set_params(C=C).fit(X, y)
        np.testing.assert_allclose(model.coef_, tight(C=C, tol=1e-8).fit(X, y).coef_, atol=1e-3)
    assert model.fit(X, y).n_iter_ == 0
    with pytest.raises(ValueError, match="warm_start"):
        model.fit(X[:100], y[:100])
    assert model.set_params(warm_start=False).fit(X[:130], y[:130]).dual_coef_.shape == (130, 2)


@pytest.mark.parametrize("make", [np.asarray, sp.csr_matrix], ids=["dense", "sparse"])
def test_float32_is_kept_and_gives_the_same(make):
    X, y = (part[:300] for part in load_digits(return_X_y=True))
    wide = CrammerSingerSVC(tol=1e-6, random_state=0).fit(make(X), y)
    narrow = CrammerSingerSVC(tol=1e-6, random_state=0).fit(make(X.astype(np.float32)), y)
    np.testing.assert_allclose(narrow.coef_, wide.coef_, atol=1e-9)  # whole numbers: the same table
    assert narrow.coef_.dtype == np.float64


@pytest.mark.parametrize("dtype", [np.uint8, np.int64, np.float16, bool])
def test_other_numbers_are_converted(dtype):
    X, y = load_digits(return_X_y=True)
    X = (X[:200] > 8).astype(dtype)
    expected = tight(tol=1e-6).fit(X.astype(float), y[:200])
    np.testing.assert_allclose(tight(tol=1e-6).fit(X, y[:200]).coef_, expected.coef_, atol=1e-6)


def test_real_text():
    folder = os.environ.get("DISCRIM_DATA")
    if not folder or not (Path(folder) / "fbis_text.npz").exists():
        pytest.skip("DISCRIM_DATA names no folder with fbis_text.npz")
    stored = np.load(Path(folder) / "fbis_text.npz", allow_pickle=False)
    X = sp.csr_matrix((stored["data"].astype(float), stored["indices"], stored["indptr"]), shape=stored["shape"])
    X = X.multiply(1 / np.sqrt(X.multiply(X).sum(axis=1))).tocsr()
    X, y = X[:800], stored["target"][:800]
    model = CrammerSingerSVC(random_state=0).fit(X, y)
    reference = LinearSVC(multi_class="crammer_singer", random_state=0).fit(X, y)
    assert model.duality_gap_ <= 1e-4
    assert model.score(X, y) == pytest.approx(reference.score(X, y), abs=0.003)
