"""Study files: every name in them stands for something, every figure is one, and rows are prepared as they say."""

from dataclasses import replace

import numpy as np
import pytest
from samples import labelled

from discrim.data import catalogue
from discrim.evaluation.compare import labelled_table
from discrim.evaluation.paper_conventions import any_classifier, any_method
from discrim.evaluation.protocol import named_protocol
from discrim.evaluation.reproduce import MEASURES, POINTS
from discrim.evaluation.study import PREPARATIONS, PrintedTable, prepared, study, study_names

STUDIES = ("bayes-error-pca", "lda-refinement", "maximum-margin-pca")


def printed(**changes):
    return replace(PrintedTable("1", "made", "accuracy", 2, "", ()), **changes)


def test_the_studies_are_those_of_the_papers():
    assert tuple(study_names()) == STUDIES
    with pytest.raises(ValueError, match=r"No study is named 'bayes-eror-pca'\. Did you mean bayes-error-pca"):
        study("bayes-eror-pca")


@pytest.mark.parametrize("name", STUDIES)
def test_every_name_in_a_study_stands_for_something(name):
    found = study(name)
    named_protocol(found.protocol, n_splits=found.tables[0].splits)
    for table in found.tables:
        names = found.names_in(table)
        catalogue.entry(table.dataset)
        assert table.measure in MEASURES
        assert table.prepare in ("", *PREPARATIONS)
        assert bool(table.initial) == (table.measure == "t")
        for classifier in filter(None, [table.initial, *(cell.classifier for cell in table.cells)]):
            any_classifier(names.classifiers[classifier])
        for cell in table.cells:
            any_method(names.methods[cell.method])


@pytest.mark.parametrize("name", STUDIES)
def test_every_cell_is_printed_once_and_percentages_are_percentages(name):
    for table in study(name).tables:
        cells = [(cell.method, cell.k, cell.classifier) for cell in table.cells]
        assert len(set(cells)) == len(cells) > 0
        figures = np.array([[cell.printed, cell.reference] for cell in table.cells])
        assert np.isfinite(figures[:, 0]).all()
        if table.measure in POINTS:
            assert np.nanmin(figures) >= 0
            assert np.nanmax(figures) <= 100
        known = catalogue.entry(table.dataset).n_features
        assert all(0 <= cell.k <= known for cell in table.cells)


@pytest.mark.parametrize("name", [name for name in STUDIES if name != "lda-refinement"])
def test_claims_are_compared_with_a_baseline_by_methods_anyone_can_use(name):
    found = study(name)
    for method in (*found.claims, found.baseline):
        assert not found.honest.methods[method].startswith("paper/")
        any_method(found.honest.methods[method])
    claimed = {cell.classifier for table in found.tables for cell in table.cells if cell.method in found.claims}
    for classifier in claimed:
        assert not found.honest.classifiers[classifier].startswith("paper/")
        any_classifier(found.honest.classifiers[classifier])


def test_numbers_of_cells_are_those_of_the_readable_tables():
    cells = {
        name: {table.name: 0 for table in study(name).tables} for name in ("bayes-error-pca", "maximum-margin-pca")
    }
    for name, of_table in cells.items():
        for table in study(name).tables:
            of_table[table.name] += len(table.cells)
    assert cells["bayes-error-pca"] == {"II": 131}
    assert cells["maximum-margin-pca"] == {"4": 48, "6": 48, "7": 48, "8": 56, "9": 56, "11": 56, "12": 56}


def test_a_part_of_a_study():
    whole = study("maximum-margin-pca")
    assert [table.dataset for table in whole.part("7", None).tables] == ["splice"]
    assert [table.name for table in whole.part(None, "colon").tables] == ["8"]
    with pytest.raises(ValueError, match=r"no such table or data set. There are the tables 4 \(ionosphere\), 6 \("):
        whole.part("7", "colon")


def test_a_table_may_have_classifiers_of_its_own():
    whole = study("maximum-margin-pca")
    own, common = (whole.names_in(whole.part(table, None).tables[0]) for table in ("8", "7"))
    assert own.classifiers["SVM"] == "svm"
    assert common.classifiers["SVM"] == "paper/svm"
    assert own.classifiers["NB"] == common.classifiers["NB"]
    assert own.methods == common.methods


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
    assert prepared(table, printed()) is table
    with pytest.raises(ValueError, match="No preparation is named 'rows'"):
        prepared(table, printed(prepare="rows"))
