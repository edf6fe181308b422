"""Reproduction: the papers' figures from the rows of a run; claims by the corrected test."""

from dataclasses import replace

import numpy as np
import pytest
from samples import labelled
from scipy import stats
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.metrics import f1_score
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.preprocessing import StandardScaler

from discrim.estimators.lda import FisherLDA
from discrim.estimators.pca import PCA, BayesErrorPCA
from discrim.evaluation.plan import labelled_table
from discrim.evaluation.protocol import named_protocol
from discrim.evaluation.results import Result
from discrim.evaluation.statistics import corrected_t_test, holm, sign_test
from discrim.evaluation.store import Store
from discrim.papers.conventions import any_classifier
from discrim.papers.reproduce import MEASURES, Outcome, grids_of, judged, reproduced, summary
from discrim.papers.study import MADE_UP, Names, PrintedCell, PrintedTable, Study, study

NAN = np.nan
SPLITS = 4
CELLS = (
    PrintedCell("ours", 1, "NB", 60.0, 5.0, 61.0, 2.0, "error"),
    PrintedCell("ours", 2, "NB", 60.0, 5.0, 61.0, 2.0, "error"),
    PrintedCell("PCA", 1, "NB", 50.0, measure="error"),
    PrintedCell("raw", 0, "FLD", 50.0, measure="error"),
)
NAMES = Names(
    {"ours": "bayes-error-pca", "PCA": "pca", "raw": "raw"}, {"NB": "naive-bayes", "FLD": "fisher", "NN": "1-nn"}
)
X, LABELS = labelled(80, 4, n_classes=2)


def made(of_table=None, **changes):
    table = replace(PrintedTable("1", "made", CELLS, NAMES, "holdout-80-20", SPLITS), **of_table or {})
    return replace(Study("made", "", "", 2.0, NAMES, "PCA", ("ours",), (table,)), **changes)


@pytest.fixture(autouse=True)
def rows_at_hand(monkeypatch):
    monkeypatch.setitem(MADE_UP, "made", lambda draw: labelled_table(X, LABELS))


@pytest.fixture
def store(tmp_path):
    with Store(tmp_path / "results.sqlite") as opened:
        yield opened


def accuracies(reducer, classifier, *, scale=False):
    """Accuracy of every split, by a plain loop."""
    found = []
    for train, test in named_protocol("holdout-80-20", n_splits=SPLITS).splits(LABELS, 0):
        parts = X[train], X[test]
        if scale:
            scaler = StandardScaler().fit(parts[0])
            parts = scaler.transform(parts[0]), scaler.transform(parts[1])
        if reducer is not None:
            parts = [reducer.fit(parts[0], LABELS[train]).transform(part) for part in parts]
        found.append(classifier.fit(parts[0], LABELS[train]).score(parts[1], LABELS[test]))
    return np.array(found)


def test_fewer_splits_are_reported_for_every_measure(store):
    tested = PrintedCell("ours", 1, "NB", 0.5, measure="sign p")
    whole = made(of_table={"cells": (*CELLS, tested), "against": "PCA"})
    outcomes = reproduced(whole, store, splits=2, jobs=1)
    assert [one.n_splits for one in outcomes] == [2] * 5
    assert len(outcomes[-1].figures) == 1
    assert summary(outcomes, 2.0).endswith("; 2 of 4 splits")
    again = reproduced(whole, store, splits=3, jobs=1, as_stored=True)  # two of them are there
    assert [one.n_splits for one in again] == [2] * 5
    assert "splits" not in summary(reproduced(whole, store, jobs=1), 2.0)


@pytest.mark.parametrize("measure", ["accuracy", "F smaller", "sign p"])
def test_a_cell_without_a_result_is_near_no_print(measure):
    cell = PrintedCell("ours", 1, "NB", 0.5, measure=measure)
    table = made().tables[0]
    assert Outcome(table, cell, (0.5,)).near_print(2.0) is True
    assert Outcome(table, cell, (), reason="lost").near_print(2.0) is False


def test_figures_are_those_of_a_plain_loop(store):
    outcomes = reproduced(made(), store, jobs=1)
    reducers = (BayesErrorPCA(1), BayesErrorPCA(2), PCA(1), None)
    for outcome, reducer in zip(outcomes, reducers, strict=True):
        classifier = FisherLDA() if outcome.cell.classifier == "FLD" else GaussianNB()
        errors = 100 - 100 * accuracies(reducer, classifier)
        assert outcome.ours == pytest.approx(errors.mean())
        assert outcome.deviation == pytest.approx(errors.std(ddof=1))
        assert outcome.off == pytest.approx(errors.mean() - outcome.cell.printed)
        assert outcome.n_failed == 0


def test_draws_are_further_splits_and_splits_may_be_fewer(store):
    twice = made({"draws": 2})
    first, second = grids_of(twice, twice.tables[0])
    assert first.by_key.keys().isdisjoint(second.by_key)
    figures = [reproduced(made(), store, jobs=1)[0].ours, reproduced(twice, store, jobs=1)[0].ours]
    assert figures[0] != figures[1]
    few = reproduced(made(), store, splits=1, jobs=1)
    assert np.isnan(few[0].deviation)


def test_two_of_ten_inverted_folds_are_the_first_two_of_ten(store):
    study = made({"protocol": "inverted-kfold", "splits": 10})
    whole, few = reproduced(study, store, jobs=1), reproduced(study, store, splits=2, jobs=1)
    assert [one.figures for one in few] == [one.figures[:2] for one in whole]
    assert [len(one.figures) for one in whole] == [10] * len(CELLS)
    sizes = {(row.scores["n_train"], row.scores["n_test"]) for row in store.rows()}
    assert sizes == {(8, 72)}  # a tenth of 80 rows is the training set; two folds would be halves


def test_failures_are_counted_and_left_out(store, monkeypatch):
    def broken(self, *_):
        raise RuntimeError("no luck")

    monkeypatch.setattr(BayesErrorPCA, "fit", broken)
    outcomes = reproduced(made(), store, jobs=1)
    assert [one.n_failed for one in outcomes] == [SPLITS, SPLITS, 0, 0]
    assert np.isnan(outcomes[0].ours)
    assert outcomes[0].missing
    assert outcomes[0].reason == "RuntimeError: no luck"
    assert summary(outcomes, 2.0).endswith("; 2 cells without a result")
    assert not any(one.near_print(2.0) for one in outcomes[:2])


@pytest.mark.parametrize("as_printed", [False, True])
def test_claims_are_tested_against_the_baseline_at_the_same_count(as_printed, store):
    claims = judged(made(), store, jobs=1, as_printed=as_printed)
    assert [claim.cell.k for claim in claims] == [1, 2]
    ratio, scale = named_protocol("holdout-80-20").ratio(LABELS), not as_printed
    differences = [
        accuracies(BayesErrorPCA(k), GaussianNB(), scale=scale) - accuracies(PCA(k), GaussianNB(), scale=scale)
        for k in (1, 2)
    ]
    p_values = [corrected_t_test(values, ratio).p_value for values in differences]
    for claim, values, p, after in zip(claims, differences, p_values, holm(p_values), strict=True):
        assert claim.against.mean == pytest.approx(values.mean())
        assert claim.against.p_value == pytest.approx(p)
        assert claim.against.adjusted == pytest.approx(after)
        assert claim.against.sign_p_value == pytest.approx(sign_test(values).p_value)
    with pytest.raises(ValueError, match="made has none"):
        judged(made(valid=None), store)


def test_claims_are_judged_on_rows_as_they_are_or_as_the_paper_has_them(store):
    by_row = made({"prepare": "rows-standardised"})
    assert judged(by_row, store, jobs=1) == [
        replace(claim, table=by_row.tables[0]) for claim in judged(made(), store, jobs=1)
    ]
    printed = judged(by_row, store, jobs=1, as_printed=True)
    assert 100 - 100 * printed[0].score == pytest.approx(reproduced(by_row, store, jobs=1)[0].ours)
    assert reproduced(by_row, store, jobs=1)[0].ours != reproduced(made(), store, jobs=1)[0].ours


def test_t_and_f_measures_are_their_definitions():
    rng = np.random.default_rng(0)
    rows, initial, actual, predicted = [], [], [], []
    for split in range(5):
        y, guess = rng.integers(0, 2, 40) * rng.integers(0, 2, 40), rng.integers(0, 2, 40)  # 1 is the smaller class
        counts = {name: np.bincount(of, minlength=2).tolist() for name, of in (("actual", y), ("predicted", guess))}
        hits = [int(np.sum((y == c) & (guess == c))) for c in (0, 1)]
        rows.append(Result({"split": split}, {"accuracy": np.mean(y == guess), "hits": hits, **counts}))
        initial.append(Result({"split": split}, {"accuracy": rng.uniform()}))
        actual.append(y)
        predicted.append(guess)
    first, second = ([100 * row.scores["accuracy"] for row in of] for of in (rows, initial))
    assert MEASURES["t"].of(rows, initial[::-1]) == pytest.approx(stats.ttest_rel(first, second).statistic)
    wins = sum(ours > theirs for ours, theirs in zip(first, second, strict=True))
    p_value = stats.binomtest(wins, len(first), alternative="greater").pvalue
    assert MEASURES["sign p"].of(rows, initial[::-1]) == pytest.approx(p_value)
    assert len(MEASURES["sign p"].of(rows[:1], initial[1:])) == 0  # no split that both have
    actual, predicted = np.concatenate(actual), np.concatenate(predicted)
    assert MEASURES["F smaller"].of(rows) == pytest.approx(f1_score(actual, predicted, pos_label=1))
    assert MEASURES["F larger"].of(rows) == pytest.approx(f1_score(actual, predicted, pos_label=0))


def test_summary_counts_what_is_near():
    (table,) = made().tables

    def outcome(ours, printed, deviation=NAN, reference=NAN, spread=NAN, measure="error"):
        figures = () if np.isnan(ours) else (ours,)
        return Outcome(table, PrintedCell("ours", 1, "NB", printed, deviation, reference, spread, measure), figures)

    with_deviation = [outcome(20.0, 21.0, 1.0, 20.5, 0.4), outcome(20.0, 22.5, 2.0, 20.1, 0.2)]
    assert summary(with_deviation, np.inf) == (
        "1 of 2 cells (50%) within one printed deviation, mean difference 1.75 points; "
        "1 of 2 (50%) within one deviation of the reference"
    )
    without = [outcome(20.0, 22.0), outcome(20.0, 17.9), outcome(NAN, 17.9)]
    assert summary(without, 2.0) == (
        "1 of 3 cells (33%) within 2 points of print, mean difference 2.05 points; 1 cell without a result"
    )
    others = [outcome(0.6, 0.62, measure="F larger"), outcome(0.6, 0.63, measure="F smaller")]
    assert summary(others, 2.0) == "1 of 2 cells (50%) within 0.02 of print"
    p_values = [outcome(0.3, 0.9, measure="sign p"), outcome(0.04, 1e-9, measure="sign p"), outcome(0.06, 0.04)]
    assert summary(p_values[:2], 2.0) == "2 of 2 cells (100%) on the printed side of p = 0.05"
    assert summary([outcome(0.06, 0.04, measure="sign p")], 2.0).startswith("0 of 1 cells")
    assert summary([outcome(3.0, 3.1, measure="t")], 2.0) == "no printed figures to compare with"


def test_a_cell_is_compared_with_the_method_or_classifier_the_table_names(store):
    cells = (PrintedCell("ours", 1, "NB", 0.5, measure="sign p"), PrintedCell("ours", 2, "NB", 0.5, measure="sign p"))
    outcomes = reproduced(made({"cells": cells, "against": "PCA"}), store, jobs=1)
    for outcome, k in zip(outcomes, (1, 2), strict=True):
        ours, theirs = (accuracies(reducer, GaussianNB()) for reducer in (BayesErrorPCA(k), PCA(k)))
        assert outcome.figures == (pytest.approx(sign_test(ours - theirs).p_value),)
    cells = (PrintedCell("raw", 0, "NB", 1.0, measure="t"),)
    (outcome,) = reproduced(made({"cells": cells, "against": "NN"}), store, jobs=1)
    ours, theirs = accuracies(None, GaussianNB()), accuracies(None, KNeighborsClassifier(1))
    assert outcome.ours == pytest.approx(stats.ttest_rel(ours, theirs).statistic)


def test_a_count_beyond_the_rank_is_a_cell_without_a_result(store):
    outcomes = reproduced(made({"cells": (PrintedCell("PCA", 9, "NB", 50.0),)}), store, jobs=1)
    assert outcomes[0].missing
    assert outcomes[0].n_failed == 0
    assert outcomes[0].reason.startswith("pca has at most 4 components")


# --- the papers' own tables, few splits -----------------------------------------------------------------------------


def near(study_name, dataset, n_splits, store):
    part = study(study_name).part(dataset=dataset)
    outcomes = reproduced(part, store, splits=n_splits, jobs=1)
    assert not any(one.n_failed for one in outcomes)
    return part, outcomes


@pytest.mark.parametrize("dataset", ["pima", "banknote"])
def test_table_ii_of_bayes_error_components_is_within_two_points(dataset, data_folder, store):
    part, outcomes = near("bayes-error-pca", dataset, 5, store)
    assert np.mean([one.near_print(part.tolerance) for one in outcomes]) >= 0.94  # 18 and 20 cells: one may be off


def test_table_4_of_maximum_margin_components_matches_the_reference(data_folder, store):
    _, outcomes = near("maximum-margin-pca", "ionosphere", 8, store)
    outcomes = [one for one in outcomes if one.cell.measure == "error"]
    assert np.mean([one.near_reference for one in outcomes]) >= 0.95
    decisive = next(one for one in outcomes if (one.cell.method, one.cell.k, one.cell.classifier) == ("PCA", 5, "SVM"))
    assert decisive.ours > 20  # with an intercept it is 11


def test_the_discriminant_of_table_ii_is_scikit_learns_with_empirical_priors():
    train, test = next(iter(named_protocol("holdout-50-50").splits(LABELS, 0)))
    models = (
        any_classifier(study("bayes-error-pca").tables[0].names.classifiers["LD"]).build(),
        LinearDiscriminantAnalysis(),
    )
    ours, theirs = (model.fit(X[train], LABELS[train]).predict(X[test]) for model in models)
    np.testing.assert_array_equal(ours, theirs)
