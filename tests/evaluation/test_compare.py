"""`compare` from Python: what comes out, what is kept, what is refused."""

import numpy as np
import pandas as pd
import pytest
from scipy.sparse import csr_array
from sklearn.datasets import load_wine

from discrim.evaluation.compare import compare
from discrim.evaluation.comparison import Comparison, so_far
from discrim.evaluation.plan import Plan, labelled_table
from discrim.evaluation.run import run
from discrim.evaluation.store import Store

SMALL = {"methods": ["regularized-lda"], "n_components": [1, 2], "n_splits": 4, "n_jobs": 1}


@pytest.fixture(scope="module")
def wine():
    return load_wine(return_X_y=True)


@pytest.fixture(scope="module")
def found(wine):
    return compare(*wine, **SMALL)


def test_missing_labels_are_no_class():
    X = np.random.default_rng(0).normal(size=(30, 3))
    for labels in (np.where(np.arange(30) < 5, None, "a"), np.where(np.arange(30) < 5, np.nan, 1.0)):
        with pytest.raises(ValueError, match="5 labels are missing"):
            compare(X, labels)


def test_numbers_of_components_are_whole():
    X, y = np.random.default_rng(0).normal(size=(40, 3)), np.arange(40) % 2
    settings = {"methods": ["pca"], "classifiers": ["5-nn"], "n_splits": 2, "n_jobs": 1}
    assert {line.k for line in compare(X, y, n_components=2, **settings).lines} <= {2, 3}
    with pytest.raises(ValueError, match=r"Numbers of components \[1.7\] came"):
        compare(X, y, n_components=[1.7], **settings)


def test_table_best_and_verdict(found):
    table = found.table()
    assert isinstance(table, pd.DataFrame)
    assert set(table["method"]) == {"regularized-lda", "pca", "raw"}  # what all are compared with takes part always
    assert set(table["classifier"]) == {"svm", "5-nn"}
    assert table["mean"].is_monotonic_decreasing
    assert (table["low"] <= table["mean"]).all()
    assert (table["mean"] <= table["high"]).all()
    assert found.best.method == "regularized-lda"
    assert found.best.k == 2
    assert found.best.mean > 0.95
    assert found.verdict.recommended.method == "regularized-lda"
    assert "Recommended: regularized-lda with 2 components, judged by " in found.answer


def test_a_data_frame_a_sparse_table_and_other_label_names_give_the_same(wine, found):
    X, y = wine
    frame = pd.DataFrame(X, columns=[f"c{i}" for i in range(X.shape[1])])
    for rows, labels in ((frame, pd.Series(y)), (csr_array(X), y), (X, np.array(["rot", "weiß", "rosé"])[y])):
        again = compare(rows, labels, **SMALL)
        assert again.table().drop(columns="seconds").equals(found.table().drop(columns="seconds"))


def test_a_store_keeps_what_was_done(wine, tmp_path, monkeypatch):
    first = compare(*wine, **SMALL, store=tmp_path / "kept.sqlite")
    monkeypatch.setattr("discrim.evaluation.run.evaluate", None)
    again = compare(*wine, **SMALL, store=tmp_path / "kept.sqlite")
    assert again.table().equals(first.table())


def test_the_part_of_a_run_that_was_done_can_be_looked_at(wine, tmp_path):
    grid = Plan(["pca"], ["5-nn"], [1, 2], n_splits=4).grid(labelled_table(*wine), "wine")

    def stop(done, total):
        if done >= 8:  # two splits and the first method of a third: 3 trials in each
            raise KeyboardInterrupt

    with Store(tmp_path / "part") as store:
        with pytest.raises(KeyboardInterrupt):
            run(grid, store, jobs=1, progress=stop)
        assert len(store) == 8
        part = so_far(grid, store)
    assert {row["trial"]["split"] for row in part.rows} == {0, 1}
    assert {line.n_splits for line in part.lines} == {2}


def test_where_nothing_worked_there_is_no_best():
    grid = Plan(["pca"], ["svm"], [1], n_splits=2, scale="none").grid(labelled_table(np.eye(4), list("aabb")), "tiny")
    nothing = Comparison(grid, [])
    assert nothing.best is None
    assert nothing.verdict is None
    assert "every trial failed" in nothing.answer
    assert len(nothing.table()) == 0


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"methods": ["pqa"]}, "No method is named 'pqa'"),
        ({"classifiers": "svn"}, "No classifier is named 'svn'"),
        ({"protocol": "loo"}, "No protocol is named 'loo'"),
        ({"scale": "log"}, "No scale is named 'log'"),
        ({"metric": "auc"}, "No score is named 'auc'"),
        ({"n_components": "many"}, "n_components='many'"),
        ({"n_components": [0, 2]}, "at least 1"),
        ({"n_components": [14]}, "only 13 features"),
    ],
)
def test_wrong_words_are_refused_before_anything_is_done(wine, options, message, monkeypatch):
    monkeypatch.setattr("discrim.evaluation.compare.run", None)
    with pytest.raises(ValueError, match=message):
        compare(*wine, **options)


def test_rows_that_cannot_be_compared_are_refused(wine):
    X, y = wine
    with pytest.raises(ValueError, match="NaN"):
        compare(np.where(X > 1000, np.nan, X), y)
    with pytest.raises(ValueError, match="177"):
        compare(X, y[:-1])
    with pytest.raises(ValueError, match="at least two classes"):
        compare(X, np.zeros(len(X)))
