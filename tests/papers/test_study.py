"""Study files: every name is defined, every figure is a number, and rows are prepared as described."""

import re
from collections import Counter
from dataclasses import replace

import numpy as np
import pytest
from samples import labelled

from discrim.evaluation.plan import labelled_table
from discrim.papers.conventions import any_classifier, any_method
from discrim.papers.reproduce import MEASURES
from discrim.papers.study import (
    MADE_UP,
    PREPARATIONS,
    Names,
    PrintedTable,
    prepared,
    read_study,
    study,
    study_names,
)
from discrim.tables import catalogue

STUDIES = ("bayes-error-pca", "lda-refinement", "max-margin-data-shifting", "maximum-margin-pca", "pca-lda-lecture")
KINDS = ("curves", "splits", "shifts", "embedding", "scatter", "directions", "boundaries", "merged")
NAMES = Names({"PCA": "pca"}, {"NB": "naive-bayes"})


def printed(**changes):
    return replace(PrintedTable("1", "made", (), NAMES, "holdout-50-50", 2), **changes)


def test_the_studies_are_those_of_the_papers():
    assert tuple(study_names()) == STUDIES
    with pytest.raises(ValueError, match=r"study.*'bayes-eror-pca'.*bayes-error-pca"):
        study("bayes-eror-pca")


@pytest.mark.parametrize("name", STUDIES)
def test_every_name_in_a_study_stands_for_something(name):
    for table in study(name).tables:
        assert table.dataset in MADE_UP or catalogue.entry(table.dataset)
        assert table.prepare in ("", *PREPARATIONS)
        assert table.drawn in ("", *KINDS)
        table.splitting(100_000)
        for cell in table.cells:
            if MEASURES[cell.measure].paired:
                assert table.opponent(cell) != cell
            any_classifier(table.names.classifiers[cell.classifier])
            any_method(table.names.methods[cell.method])


@pytest.mark.parametrize("name", STUDIES)
def test_every_cell_is_printed_once_and_figures_are_of_their_kind(name):
    for table in study(name).tables:
        cells = [(cell.method, cell.k, cell.classifier, cell.measure) for cell in table.cells]
        assert len(set(cells)) == len(cells) > 0
        known = 2 if table.dataset in MADE_UP else catalogue.entry(table.dataset).n_features or np.inf
        assert all(0 <= cell.k <= known for cell in table.cells)
        for cell in table.cells:
            assert np.isnan(cell.printed) == bool(table.drawn)
            most = 100 if MEASURES[cell.measure].unit else 1 if cell.measure in ("sign p", "F smaller") else np.inf
            figures = np.array([cell.printed, cell.reference])[[not table.drawn, np.isfinite(cell.reference)]]
            assert np.all(figures <= most)


@pytest.mark.parametrize("name", [name for name in STUDIES if name not in ("lda-refinement", "pca-lda-lecture")])
def test_claims_are_compared_with_a_baseline_by_methods_anyone_can_use(name):
    found = study(name)
    for method in (*found.claims, found.baseline):
        assert not found.valid.methods[method].startswith("paper/")
        any_method(found.valid.methods[method])
    claimed = {cell.classifier for table in found.tables for cell in table.cells if cell.method in found.claims}
    for classifier in claimed:
        assert not found.valid.classifiers[classifier].startswith("paper/")
        any_classifier(found.valid.classifiers[classifier])


def test_numbers_of_cells_are_those_of_the_readable_tables():
    cells = {name: Counter() for name in STUDIES[:-1]}
    with pytest.raises(ValueError, match=r"--figure.*compression, projection, remedies or all"):
        study(STUDIES[-1]).part()
    for name in cells:
        for table in study(name).part().tables:
            cells[name][table.name] += len(table.cells)
    of_k = {"5": 48, "10": 56, "13": 56, "4": 48, "6": 48, "7": 48, "8": 56, "9": 56, "11": 56, "12": 56}
    assert cells["maximum-margin-pca"] == {**of_k, "2": 4 * 4 * 3, "3": 6 * 4 * 4}
    assert cells["bayes-error-pca"] == {"I": 12, "II": 170}
    assert cells["max-margin-data-shifting"] == {"1": 16, "3": 30, "4": 54}
    assert cells["lda-refinement"] == {"1": 14, "2": 22, "3": 16, "Example 1": 4}


def test_figures_have_a_point_for_every_method_count_and_classifier():
    figures = study("bayes-error-pca").part(figure="all").tables
    assert [table.name for table in figures] == [str(number) for number in range(1, 12)]
    assert [len(table.cells) for table in figures[2:]] == [8 * d for d in (48, 4, 18, 19, 5, 8, 57, 6, 30)]
    (sensitivity,) = study("max-margin-data-shifting").part(figure="3").tables
    assert Counter(cell.measure for cell in sensitivity.cells) == {"accuracy": 64, "reconstruction error": 64}
    assert sensitivity.names.methods["ICA 0.3"] == "paper/ica of 500 shifted by 0.3"
    assert sensitivity.names.methods["PCA"] == "paper/pca of rows"
    points = [cell.method for cell in sensitivity.cells[:9]]
    assert points == ["PCA", *(f"PCA {shift}" for shift in ("0.1", "0.3", "0.5", "1", "2", "4", "10")), "AE"]


@pytest.mark.parametrize(
    ("dataset", "features"), [("mnist_test10k", "1000 wide"), ("ocr_letters", "1000"), ("opencv_digits", "500")]
)
def test_the_number_of_random_features_is_set_by_the_data_set(dataset, features):
    (table,) = study("max-margin-data-shifting").part("3", dataset).tables
    assert table.names.methods["MMDS-NMF"] == f"paper/nmf of {features} shifted"


def test_a_part_of_a_study():
    whole = study("maximum-margin-pca")
    assert [table.dataset for table in whole.part("7").tables] == ["splice"]
    assert [table.name for table in whole.part(dataset="colon").tables] == ["8", "3"]
    assert [table.title for table in whole.part(figure="4").tables] == ["Figure 4, ionosphere"]
    with pytest.raises(ValueError, match=r"--table.*--dataset.*4 \(ionosphere\), 5 \("):
        whole.part("7", "colon")
    with pytest.raises(ValueError, match=r"--figure.*--dataset.*4 \(ionosphere\) "):
        whole.part(figure="5")
    with pytest.raises(ValueError, match=r"max-margin-data-shifting.*table 2.*TRECVID2003"):
        study("max-margin-data-shifting").part("2")


def test_a_data_set_may_have_names_and_rows_of_its_own():
    whole = study("maximum-margin-pca")
    own, common = (whole.part(table).tables[0] for table in ("8", "7"))
    assert own.names.classifiers["SVM"] == "svm"
    assert common.names.classifiers["SVM"] == "paper/svm"
    assert own.names.classifiers["NB"] == common.names.classifiers["NB"]
    assert own.names.methods == common.names.methods
    assert (own.prepare, common.prepare) == ("rows-standardised", "")


def test_the_number_of_training_rows_is_the_papers():
    letters = study("max-margin-data-shifting").part("4", "ocr_letters").tables[0]
    y = np.repeat(np.arange(26), 2005)[:52_129]
    train, test = next(iter(letters.splitting(len(y)).splits(y)))
    assert (len(train), len(test)) == (5_375, 52_129 - 5_375)
    faces = study("max-margin-data-shifting").part("1", "yale").tables[0]
    train, _ = next(iter(faces.splitting(165).splits(np.repeat(np.arange(15), 11))))
    assert len(train) == 15 * 3
    example = study("lda-refinement").part("example 1").tables[0]
    ((train, test),) = example.splitting(100).splits(np.arange(100) % 2)
    assert train.tolist() == test.tolist() == list(range(100))


# --- a user's study ------------------------------------------------------------------------------------------------

OWN = """
title = "Mine"
protocol = "holdout-50-50"
splits = 3
[methods]
"PCA" = "pca"
[classifiers]
"NB" = "naive-bayes"
[[tables]]
name = "A"
dataset = "mine.csv"
cells = [["PCA", 1, "NB", 70.0]]
"""


def test_a_users_study_may_have_its_data_in_the_same_folder(tmp_path):
    (tmp_path / "own.toml").write_text(OWN)
    own = read_study(tmp_path / "own.toml")
    assert own.absent("mine.csv") == f"there is no file {tmp_path / 'mine.csv'}"
    (tmp_path / "mine.csv").write_text("a,b,class\n" + "".join(f"{i},{i * i},{i % 2}\n" for i in range(20)))
    assert own.absent("mine.csv") == ""
    assert own.rows_of(own.tables[0]).X.shape == (20, 2)
    assert (own.name, own.tables[0].cells[0].measure) == ("own", "accuracy")


@pytest.mark.parametrize(
    ("before", "after", "message"),
    [
        ('title = "Mine"', "title =", "own.toml must be a TOML file"),
        ('title = "Mine"', "", "own.toml: title is missing"),
        ('name = "A"', "", "own.toml: name of a table is missing"),
        ('name = "A"', 'name = "A"\nsplit = 3', "own.toml: keys of table A must be among against, cells, "),
        ('"NB", 70.0', '"SVM", 70.0', "classifier of the study must be a known name; got 'SVM'. Known names: NB."),
        ('"NB", 70.0', '"NB", 70.0, 1, 2, 3, 4, 5', "own.toml: a cell must be [method, k, classifier, printed, "),
    ],
)
def test_a_study_that_is_none_is_refused_with_what_is_wrong(before, after, message, tmp_path):
    assert before in OWN
    (tmp_path / "own.toml").write_text(OWN.replace(before, after))
    with pytest.raises(ValueError, match=re.escape(message)):
        read_study(tmp_path / "own.toml")


# --- rows ----------------------------------------------------------------------------------------------------------


def test_simulated_rows_differ_by_draw_and_have_the_papers_moments():
    first, second = (MADE_UP["artificial"](draw) for draw in (0, 1))
    assert not np.array_equal(first.X, second.X)
    np.testing.assert_array_equal(first.X, MADE_UP["artificial"](0).X)
    many = [MADE_UP["artificial"](draw) for draw in range(200)]
    one, two = (np.concatenate([table.X[table.y == label] for table in many]) for label in ("1", "2"))
    np.testing.assert_allclose(two.mean(axis=0) - one.mean(axis=0), [0.9, 0.9], atol=0.05)
    np.testing.assert_allclose(np.cov(one.T), [[1, -0.9], [-0.9, 1]], atol=0.05)


def test_only_the_named_classes_take_part():
    X, y = labelled(30, 3)
    names = np.array(["a", "b", "c"])[y]
    table = prepared(labelled_table(X, names), printed(classes=("a", "c")))
    np.testing.assert_array_equal(table.X, X[names != "b"])
    assert set(table.y) == {"a", "c"}


def test_rows_are_prepared_as_named():
    X, y = labelled(40, 4, n_classes=2)
    X[:, 2] = np.where(y == 1, 5.0, X[:, 2])  # constant in the smaller class
    table = labelled_table(X, y)
    by_row = prepared(table, printed(prepare="rows-standardised"))
    np.testing.assert_allclose(by_row.X, [(row - row.mean()) / row.std() for row in X])
    scaled = prepared(table, printed(prepare="standardised-to-smaller-class"))
    kept, smaller = X[:, [0, 1, 3]], X[y == 1][:, [0, 1, 3]]
    np.testing.assert_allclose(scaled.X, (kept - smaller.mean(axis=0)) / smaller.std(axis=0))
    assert scaled.feature_names == ("f0", "f1", "f3")
    np.testing.assert_allclose(np.linalg.norm(prepared(table, printed(prepare="rows-of-length-1")).X, axis=1), 1.0)
    assert prepared(table, printed()) is table
    with pytest.raises(ValueError, match=r"preparation must be .*'rows'"):
        prepared(table, printed(prepare="rows"))
