"""One split: scores of a plain pipeline, no information from test rows, and reasons for missing scores."""

import warnings
from dataclasses import replace

import numpy as np
import pytest
from scipy.sparse import csr_array, issparse
from sklearn.datasets import load_iris
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import accuracy_score, balanced_accuracy_score, f1_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import LinearSVC

from discrim import FisherLDA, PosteriorMap
from discrim.evaluation.classifiers import CLASSIFIERS, UnitMeanSquare, preprocessing
from discrim.evaluation.methods import METHODS
from discrim.evaluation.results import Cell
from discrim.evaluation.trial import TrialRows, Work, classification_scores, evaluate, features_by_count, seed_of
from discrim.registry import Method

TRAIN, TEST = np.arange(0, 150, 2), np.arange(1, 150, 2)


@pytest.fixture(scope="module")
def iris():
    X, y = load_iris(return_X_y=True)
    return X, y.astype(str)


def rows_of(method, counts, X, y, classifiers=("svm",), train=TRAIN, test=TEST, scale="standard"):
    cells = tuple(Cell(method, k, classifier) for k in counts for classifier in classifiers)
    trials = tuple({**cell._asdict(), "split": 0} for cell in cells)
    work = Work(METHODS[method], CLASSIFIERS, 0, cells, trials)
    return evaluate(work, TrialRows(X, y, None, preprocessing(scale, sparse=issparse(X)), 0), (train, test))[0]


def test_scores_are_those_of_a_plain_pipeline(iris):
    X, y = iris
    rows = rows_of("fisher-lda", [1, 2, 3], X, y)
    for row in rows:
        svm = LinearSVC(dual=False, max_iter=5_000, random_state=0)
        pipeline = make_pipeline(StandardScaler(), FisherLDA(row.cell.k), UnitMeanSquare(), svm)
        expected = pipeline.fit(X[TRAIN], y[TRAIN]).score(X[TEST], y[TEST])
        assert row.status == "ok"
        assert row.scores["accuracy"] == expected
        assert (row.scores["n_train"], row.scores["n_test"]) == (75, 75)
    assert len({row.scores["accuracy"] for row in rows}) > 1


def test_nested_components_are_fitted_once_and_at_the_largest_count_of_the_grid(iris, monkeypatch):
    X, y = iris
    fitted = []

    class Counting(FisherLDA):
        def fit(self, X, y):
            fitted.append(self.n_components)
            return super().fit(X, y)

    for least, expected in ((1, [3]), (2, [1, 3]), (np.inf, [1, 2, 3])):
        method = Method("counting", "", Counting, nested_from=lambda sizes, least=least: least)
        monkeypatch.setitem(METHODS, "counting", method)
        fitted.clear()
        cells = tuple(Cell("counting", k, "svm") for k in (1, 2, 3))
        only_one = ({**cells[0]._asdict(), "split": 0},)  # the others were done before
        work = Work(METHODS["counting"], CLASSIFIERS, 0, cells, only_one)
        (row,), models = evaluate(work, TrialRows(X, y, None, preprocessing("standard"), 0), (TRAIN, TEST))
        assert row.cell.k == 1
        assert list(models) == [1, 2, 3]  # kept for the report: those of the first split
        assert evaluate(work._replace(split=1), TrialRows(X, y, None, [], 0), (TRAIN, TEST))[1] == {}
        assert fitted == 2 * expected


def test_a_method_that_resizes_is_fitted_once_for_every_count(iris):
    X, y = iris
    data = TrialRows(X, y, None, preprocessing("standard"), 0).split(0, (TRAIN, TEST))
    fits = []

    def counted(n_components):
        fits.append(n_components)
        return PosteriorMap(n_components, kernel="linear")

    method = replace(METHODS["posterior-map"], build=counted)
    assert method.resizes
    found = features_by_count(method, [1, 2, 3], data)
    assert fits == [2]
    for k in (1, 2):
        alone = PosteriorMap(k, kernel="linear").fit(data.train, data.y_train)
        np.testing.assert_array_equal(found[k].test, alone.transform(data.test))
    assert found[3].status == "skipped"
    broken = replace(data, y_train=np.full(len(TRAIN), "0"))
    assert {one.status for one in features_by_count(method, [1, 2], broken).values()} == {"failed"}


def test_test_rows_do_not_change_a_fit(iris):
    X, y = iris
    other = X.copy()
    other[TEST] = np.random.default_rng(0).normal(50, 20, size=(75, 4))
    labels = y.copy()
    labels[TEST] = "0"
    for name in ("fisher-lda", "pca", "lasso", "margin-pca-mean"):
        seen = [
            features_by_count(
                METHODS[name], [1, 2], TrialRows(*table, None, preprocessing("standard"), 0).split(0, (TRAIN, TEST))
            )
            for table in ((X, y), (other, labels))
        ]
        for k in (1, 2):
            np.testing.assert_array_equal(seen[0][k].train, seen[1][k].train)
            assert seen[0][k].test.shape == seen[1][k].test.shape
            assert not np.allclose(seen[0][k].test, seen[1][k].test)


def test_more_components_than_possible_are_skipped_with_a_reason(iris):
    X, y = iris
    flat = np.column_stack([X[:, 0], X[:, 0], X[:, 1], X[:, 1]])  # rank 2, which shows in the fit only
    found = {row.cell.k: row for row in rows_of("margin-pca-mean", [1, 2, 3], flat, y)}
    assert [found[k].status for k in (1, 2, 3)] == ["ok", "ok", "skipped"]
    assert "n_components=3" in found[3].reason
    found = {row.cell.k: row for row in rows_of("lda", [2, 3], X, y)}
    assert [found[k].status for k in (2, 3)] == ["ok", "skipped"]
    assert found[3].reason.startswith("lda has at most 2 components for 75 training rows, 4 features and 3 classes")


def test_a_failure_is_a_row_with_its_reason(iris, monkeypatch):
    X, y = iris

    class Broken(FisherLDA):
        def fit(self, X, y):
            raise RuntimeError("the bottom\nfell out")

    monkeypatch.setitem(METHODS, "broken", Method("broken", "", Broken))
    rows = rows_of("broken", [1, 2], X, y)
    assert [(row.status, row.reason, row.scores) for row in rows] == [
        ("failed", "RuntimeError: the bottom fell out", {})
    ] * 2


def test_that_something_did_not_converge_is_noted_and_other_warnings_are_not(iris, monkeypatch):
    X, y = iris

    class Hasty(FisherLDA):
        def fit(self, X, y):
            warnings.warn("stopped at 500 steps", ConvergenceWarning, stacklevel=1)
            warnings.warn("something else", UserWarning, stacklevel=1)
            return super().fit(X, y)

    monkeypatch.setitem(METHODS, "hasty", Method("hasty", "", Hasty))
    for row in rows_of("hasty", [1, 2], X, y):
        assert (row.status, row.reason) == ("ok", "")
        assert row.notes == ["did not converge: stopped at 500 steps"]


def test_sparse_rows_are_reduced_or_skipped_with_a_reason(iris):
    X, y = iris
    sparse = csr_array(X)
    (row,) = rows_of("pca", [2], sparse, y)
    dense_data = TrialRows(X, y, None, [], 0).split(0, (TRAIN, TEST))
    sparse_data = TrialRows(sparse, y, None, [], 0).split(0, (TRAIN, TEST))
    one, other = (features_by_count(METHODS["pca"], [2], data)[2] for data in (dense_data, sparse_data))
    assert row.status == "ok"
    np.testing.assert_allclose(one.test, other.test, atol=1e-8)
    (row,) = rows_of("pls", [2], sparse, y)
    assert row.status == "skipped"
    assert "pls needs dense rows" in row.reason
    (row,) = rows_of("raw", [4], sparse, y, classifiers=("naive-bayes",))
    assert "naive-bayes needs dense rows" in row.reason


def test_five_neighbours_need_five_rows(iris):
    X, y = iris
    train = np.array([0, 1, 60, 61])
    (row,) = rows_of("raw", [4], X, y, classifiers=("5-nn",), train=train)
    assert (row.status, row.reason) == ("skipped", "5-nn needs 5 training rows or more")


def test_scores_equal_scikit_learns():
    rng = np.random.default_rng(0)
    actual, predicted = rng.choice(["a", "b", "c"], size=(2, 200), p=[0.6, 0.3, 0.1])
    found = classification_scores(actual, predicted, np.array(["a", "b", "c"]))
    assert found["accuracy"] == pytest.approx(accuracy_score(actual, predicted))
    assert found["balanced_accuracy"] == pytest.approx(balanced_accuracy_score(actual, predicted))
    assert found["f1"] == pytest.approx(f1_score(actual, predicted, average="macro"))
    assert found["hits"] == [int(np.sum((actual == c) & (predicted == c))) for c in "abc"]


def test_random_methods_use_another_seed_in_each_split():
    seeds = {seed_of(seed, split) for seed in range(3) for split in range(20)}
    assert len(seeds) == 60
