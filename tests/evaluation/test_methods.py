"""Entries of the registry: nested components, limits, and the estimators' own features."""

import warnings

import numpy as np
import pytest
from scipy.sparse import csr_array
from sklearn.linear_model import Lasso
from sklearn.preprocessing import StandardScaler
from sklearn.svm import LinearSVC

from discrim.evaluation.baselines import MOST_NCA_ROWS, LassoSelection, NeighborhoodComponents
from discrim.evaluation.classifiers import CLASSIFIERS, Forest, LinearSVM, UnitMeanSquare, named_classifiers
from discrim.evaluation.methods import DEFAULT_METHODS, METHODS, named_methods
from discrim.papers.conventions import PAPER_METHODS
from discrim.registry import Sizes

REDUCTIONS = {
    name: method
    for name, method in (METHODS | PAPER_METHODS).items()
    if method.build is not None and " of " not in name  # extractors of shifted rows are many and slow: some, below
}
SHIFTED = ["paper/pca of rows shifted by folds", "paper/pca of rows shifted", "paper/k-means of 500 shifted"]


@pytest.fixture(scope="module", params=["tall", "wide"])
def rows(request):
    rng = np.random.default_rng(1)
    n, d = {"tall": (60, 7), "wide": (24, 40)}[request.param]
    y = np.array(["a", "b", "c"])[np.arange(n) % 3]
    X = rng.normal(size=(n, d)) @ np.diag(np.linspace(1, 3, d))
    X[:, :3] += 1.5 * np.eye(3)[np.arange(n) % 3]
    return StandardScaler().fit_transform(X), y


def fitted_features(method, k, X, y):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return method.estimator(k, 0).fit(X, y).transform(X)


@pytest.mark.parametrize("name", REDUCTIONS)
def test_nested_methods_are_nested_from_the_stated_count(name, rows):
    method, (X, y) = REDUCTIONS[name], rows
    sizes = Sizes(*X.shape, 3)
    most, least = min(4, method.most_components(sizes)), method.nested_from(sizes)
    if least == np.inf:
        return
    many = fitted_features(method, most, X, y)
    for k in range(int(least), most):
        few = fitted_features(method, k, X, y)
        # random directions have one factor for all, which no classifier here can see
        unit = np.linalg.norm(many[:, :k]) / np.linalg.norm(few)
        np.testing.assert_allclose(unit * few, many[:, :k], atol=1e-7 * np.abs(many).max())


@pytest.mark.parametrize("name", [*REDUCTIONS, *SHIFTED])
def test_the_stated_maximum_of_components_can_be_fitted(name, rows):
    method, (X, y) = (METHODS | PAPER_METHODS)[name], rows
    if name == "nca":
        pytest.skip("slow, and bounded by the number of columns like the others")
    most = method.most_components(Sizes(*X.shape, 3))
    features = fitted_features(method, most, X, y)
    assert features.shape[1] == most or name == "lasso"
    assert np.isfinite(features).all()


def test_names_are_found_once_in_order_or_refused():
    assert [method.name for method in named_methods(["pca", "default"])] == [
        "pca",
        *(name for name in DEFAULT_METHODS if name != "pca"),
    ]
    assert len(named_methods(["all"])) == len(METHODS)
    slow = {"posterior-map", "kernel-bayes-error-lda"}
    assert slow <= {method.name for method in named_methods(["default"], n_rows=20_000)}
    assert slow.isdisjoint(method.name for method in named_methods(["default"], n_rows=20_001))
    assert "posterior-map" in {method.name for method in named_methods(["posterior-map"], n_rows=50_000)}
    with pytest.raises(ValueError, match=r"methods.*'pcaa'.*\bpca\b"):
        named_methods(["pcaa"])
    with pytest.raises(ValueError, match=r"classifiers.*'svn'.*\bsvm\b"):
        named_classifiers(["svn"])


def test_lasso_takes_the_last_model_with_few_enough_columns():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(80, 12))
    y = np.where(X[:, 3] + 0.5 * X[:, 7] + 0.2 * X[:, 1] + 0.3 * rng.normal(size=80) > 0, "yes", "no")
    columns = (X - X.mean(axis=0)) / X.std(axis=0)
    target = (y == "yes") - np.mean(y == "yes")
    strongest = np.abs(columns.T @ target).max() / 80
    for k in (1, 2, 3, 5):
        models = [
            np.flatnonzero(Lasso(alpha=a, fit_intercept=False, tol=1e-8, max_iter=10_000).fit(columns, target).coef_)
            for a in strongest * np.logspace(0, -3, 100)[1:]
        ]
        expected = [held for held in models if len(held) <= k][-1]
        assert LassoSelection(k).fit(X, y).selected_.tolist() == expected.tolist()


def test_nca_sees_a_stratified_part_of_many_rows(monkeypatch):
    seen = []

    class Spy:
        def __init__(self, *_, **__):
            pass

        def fit(self, X, y):
            seen.append(np.unique(y, return_counts=True)[1].tolist())
            return self

    monkeypatch.setattr("discrim.evaluation.baselines.NeighborhoodComponentsAnalysis", Spy)
    y = np.repeat(["a", "b"], [3000, 1000])
    NeighborhoodComponents(1).fit(np.zeros((4000, 2)), y)
    assert seen == [[MOST_NCA_ROWS * 3 // 4, MOST_NCA_ROWS // 4]]


@pytest.mark.parametrize("name", CLASSIFIERS)
def test_no_classifier_sees_the_unit_of_the_features(name, rows):
    X, y = rows
    X = X[:, :4]
    first, second = (CLASSIFIERS[name].build().fit(unit * X, y).predict(unit * X) for unit in (1.0, 2.0**-10))
    assert (first == second).all()


def test_unit_mean_square_is_the_same_for_sparse_rows():
    X = np.random.default_rng(0).normal(3, 2, size=(30, 4))
    dense, sparse = UnitMeanSquare().fit(X), UnitMeanSquare().fit(csr_array(X))
    assert dense.unit_ == pytest.approx(sparse.unit_)
    assert np.var(dense.transform(X), axis=0).mean() == pytest.approx(1)


def test_the_svm_solves_its_dual_where_rows_are_few_and_the_solution_is_the_same():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(40, 30))
    y = np.arange(40) % 2
    X[:, 0] += y
    dual = LinearSVM(max_iter=100_000, tol=1e-8, random_state=0).fit(X, y)
    primal = LinearSVC(dual=False, max_iter=100_000, tol=1e-8).fit(X, y)
    assert dual.dual is True
    assert LinearSVM().fit(X[:, :5], y).dual is False
    np.testing.assert_allclose(dual.coef_, primal.coef_, atol=1e-4)


@pytest.mark.parametrize("labels", [np.array(["0", "1"]), np.array([3, 7]), np.array(["a", "b"])])
@pytest.mark.parametrize("weights", [(1.0, 5.0), (2.0, None)])
def test_the_forest_weights_classes_as_repeated_weights_of_rows_do(labels, weights):
    rng = np.random.default_rng(0)
    X, codes = rng.normal(size=(60, 3)), rng.integers(0, 2, 60)
    given = {label: weight for label, weight in zip(labels.tolist(), weights, strict=True) if weight is not None}
    by_class = Forest(class_weight=given, random_state=0).fit(X, labels[codes])
    by_row = Forest(random_state=0).fit(X, labels[codes], np.array([weights[0], weights[1] or 1.0])[codes])
    assert by_class.class_weight == given
    assert by_class.classes_.tolist() == labels.tolist()
    np.testing.assert_array_equal(by_class.predict_proba(X), by_row.predict_proba(X))
    with pytest.raises(ValueError, match="class_weight"):
        Forest(class_weight={"unknown": 1.0}).fit(X, labels[codes])
