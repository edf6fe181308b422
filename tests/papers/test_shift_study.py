"""Study of the shift: a line matches its trials, and the subspace is the SVM's."""

from dataclasses import replace

import numpy as np
import pytest
import shift_study
from samples import labelled

from discrim import MarginSubspace
from discrim.papers.conventions import any_classifier
from discrim.papers.reproduce import Outcome
from discrim.papers.study import Study
from discrim.tables.labelled_table import LabelledTable

DIGITS = shift_study.STUDY.part("4", "opencv_digits").tables[0]


def outcome(method, figures, measure="accuracy"):
    cell = next(one for one in DIGITS.cells if (one.method, one.k) == (method, 5))
    return Outcome(DIGITS, cell._replace(measure=measure), figures, n_splits=len(figures))


def test_a_line_has_print_reference_ours_gain_and_shifts(monkeypatch):
    by_measure = {
        "": [outcome("PCA", (60.0, 70.0, 80.0)), outcome("MMDS-PCA", (64.0, 69.0, 83.0)), outcome("AE", (50.0,))],
        "shift": [outcome("PCA", (0.0,) * 3, "shift"), outcome("MMDS-PCA", (1.0, 0.5, 10.0), "shift")],
    }
    monkeypatch.setattr(shift_study, "outcomes", lambda table, store, options, measure="": by_measure[measure])
    (pair,) = shift_study.pairs(DIGITS, None, None)  # the autoencoder has no result with the shift
    assert shift_study.line(*pair) == [
        "Digits, 5, PCA",
        "58.3 → 79.4",
        "72.0 → 83.3",
        "70.0 → 72.0",
        "+2.0 (2/3)",
        "0.5, 1, 10",
    ]


def test_the_subspace_is_that_of_the_svm_on_the_same_splits(monkeypatch):
    X, y = labelled(90, 6, n_classes=4)
    rows = LabelledTable(X, y.astype(str), tuple("abcdef"), "class", "made up")
    monkeypatch.setattr(Study, "rows_of", lambda self, table: rows)
    found = []
    for train, test in list(DIGITS.splitting(90).splits(rows.y))[:2]:
        model = MarginSubspace(3).fit(X[train], rows.y[train])
        svm = any_classifier("paper/centred-svm").build().fit(model.transform(X[train]), rows.y[train])
        found.append(100 * svm.score(model.transform(X[test]), rows.y[test]))
    cell = next(one for one in DIGITS.cells if (one.method, one.k) == ("PCA", 5))  # four classes have three directions
    assert shift_study.subspace(DIGITS, cell, 2) == f"{np.mean(found):.1f}"


def test_the_figure_has_a_line_of_accuracies_and_of_errors_for_each_extractor(monkeypatch):
    (table,) = shift_study.STUDY.part(figure="3").tables
    some = [one for one in table.cells if one.method.split()[0] in ("PCA", "AE")]
    made = [Outcome(table, cell, (2.0 + at % 8,), n_splits=1) for at, cell in enumerate(some)]
    made[0] = replace(made[0], figures=(2.0, 90.0))  # a split that the other shifts have not
    monkeypatch.setattr(shift_study, "outcomes", lambda *given: made)
    rows = [line for line in shift_study.figure_3(None, None) if line.startswith("|")]
    assert rows[0] == "|  | 0 | 0.1 | 0.3 | 0.5 | 1 | 2 | 4 | 10 |"
    assert [row.split("|")[1].strip() for row in rows[2:]] == [
        "PCA, accuracy",
        "AE, accuracy",
        "PCA, error",
        "AE, error",
    ]
    assert rows[2].endswith("| 2.0 | 3.0 | 4.0 | 5.0 | 6.0 | 7.0 | 8.0 | 9.0 |")
    assert rows[4].endswith("| 1.000 | 1.500 | 2.000 | 2.500 | 3.000 | 3.500 | 4.000 | 4.500 |")


def test_what_is_missing_leaves_no_line(monkeypatch):
    missing = replace(outcome("MMDS-PCA", ()), reason="not tried")
    found = [outcome("PCA", (60.0,)), missing]
    monkeypatch.setattr(shift_study, "outcomes", lambda *given: found)
    assert list(shift_study.pairs(DIGITS, None, None)) == []


@pytest.mark.parametrize("k", [2, 3])
def test_few_labels_give_four_accuracies(monkeypatch, k):
    X, y = labelled(200, 6, n_classes=3)
    rows = LabelledTable(X, y.astype(str), tuple("abcdef"), "class", "made up")
    monkeypatch.setattr(Study, "rows_of", lambda self, table: rows)
    found = shift_study.few_labels(DIGITS, 30, k, 0)
    assert len(found) == 4
    assert all(40 < right <= 100 for right in found)
