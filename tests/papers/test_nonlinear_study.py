"""Studies of the maps and the default's ridge: their tables match their trials."""

import argparse

import linear_default_study
import nonlinear_study
import numpy as np
import pytest

from discrim.evaluation.results import Cell
from discrim.evaluation.store import Store


@pytest.fixture(scope="module")
def study():
    """Without supervised UMAP, which compiles for half a minute, and with a quick method in the kernel's place."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(nonlinear_study, "find_spec", lambda name: None)
        patch.setattr(nonlinear_study, "KERNEL", "regularized-lda")
        yield nonlinear_study


@pytest.fixture(scope="module")
def results(study, tmp_path_factory):
    with Store(tmp_path_factory.mktemp("study") / "kept.sqlite") as store:
        return [study.result(name, store, 120, 3, 1) for name in ("wine", "breast_cancer")]


def lines(part):
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in part if line.startswith("|")]


def test_a_method_has_as_many_components_as_it_can_and_raw_features_one_number(results):
    wine = results[0]
    assert wine.cell("posterior-map", 10, "svm") == Cell("posterior-map", 2, "svm")
    assert wine.cell("raw", 1, "svm") == Cell("raw", 13, "svm")
    assert wine.cell("supervised-umap", 2, "svm") is None
    assert np.isnan(wine.mean("supervised-umap", 2))
    literal = np.mean([list(wine.scores[Cell("pca", 5, one)].values()) for one in ("svm", "5-nn", "naive-bayes")])
    assert wine.mean("pca", 5) == pytest.approx(100 * literal)


def test_a_pair_of_cells_is_tested_once(results):
    two_classes = results[1]
    assert {cell.k for cell in two_classes.over("posterior-map", "raw")} == {1}  # one component, one number of features
    assert {cell.k for cell in two_classes.over("posterior-map", "pca")} == {1, 2, 3, 5, 10}


def test_tables_are_of_two_classes_and_of_more(study, results):
    rows = lines(study.accuracies(results))
    heads = [row[0] for row in rows if "data sets" in row[0]]
    assert heads == ["1 data sets, two classes", "1 data sets, more"]
    shown = {row[0]: row[2] for row in rows[rows.index(next(r for r in rows if r[0] == heads[1])) :]}
    assert shown["pca"] == f"{results[0].mean('pca', 2):.1f}"
    by_data = {row[0]: row for row in lines(study.by_data_set(results))}
    assert by_data["wine"][1:4] == ["120 of 178", "13", "3"]
    counted = {(row[0], row[1]): row[2] for row in lines(study.differences(results))}
    assert counted["posterior-map against raw", "two classes"] == "3"
    assert all(row[4].startswith("-") for row in lines(study.losses(results))[2:])


def test_each_ridge_is_that_of_its_rule_and_pads_begin_with_the_discriminant():
    tried = linear_default_study
    _, X, y, new, _ = next(tried.splits_of("wine", 100, 1))
    ridges = tried.ridges(X, y)
    path = tried.BayesErrorLDA(1).fit(X, y).path_
    assert path.accuracies[path.shrinkages == ridges[tried.ACCURACY]] == path.accuracies.max()
    assert ridges[tried.LOSS] == path.best()[0]
    X, y = X[y != "class_2"], y[y != "class_2"]
    maps = {(what, k): Z for what, k, Z, _ in tried.by_pads(X, y, new)}
    first = maps[tried.PCA, 2][:, 0]
    for what in (tried.GAP, tried.BHATTACHARYYA):
        assert abs(np.corrcoef(maps[what, 2][:, 0], first)[0, 1]) > 0.999
        np.testing.assert_array_equal(maps[what, 5][:, :2], maps[what, 2])


def test_the_table_of_what_was_tried_counts_its_cells():
    tried = linear_default_study
    options = argparse.Namespace(rows=100, splits=2)
    scores = tried.tried(("wine",), lambda X, y, new: [("a", 1, X, new), ("b", 1, X[:, :1], new[:, :1])], options)
    first, *_ = lines(tried.table(scores, "a"))[2:]
    literal = np.mean(list(scores["wine", 1, "svm", "a"].values()))
    assert first == ["a", "svm", f"{100 * literal:.1f}", "", ""]
    assert lines(tried.table(scores, "a"))[5][-1].endswith("of 3")
