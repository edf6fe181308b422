"""`compare` from Python: results, stored trials, and errors."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from scipy.sparse import csr_array
from sklearn import decomposition
from sklearn.cross_decomposition import PLSRegression
from sklearn.datasets import load_digits, load_wine
from sklearn.feature_selection import SelectKBest
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from discrim import FisherLDA
from discrim.cli import screen
from discrim.evaluation.compare import compare
from discrim.evaluation.comparison import Comparison, finished_splits
from discrim.evaluation.plan import labelled_table, planned, stratified_sample
from discrim.evaluation.results import Cell
from discrim.evaluation.run import run
from discrim.evaluation.store import Store
from discrim.evaluation.wording import pipeline_name, table_lines

SMALL = {"methods": ["regularized-lda"], "n_components": [1, 2], "n_splits": 4, "n_jobs": 1}


@pytest.fixture(scope="module")
def wine():
    return load_wine(return_X_y=True)


@pytest.fixture(scope="module")
def found(wine):
    return compare(*wine, **SMALL)


def test_missing_labels_are_not_a_class():
    X = np.random.default_rng(0).normal(size=(30, 3))
    for labels in (np.where(np.arange(30) < 5, None, "a"), np.where(np.arange(30) < 5, np.nan, 1.0)):
        with pytest.raises(ValueError, match="5 labels"):
            compare(X, labels)


def test_numbers_of_components_are_integers():
    X, y = np.random.default_rng(0).normal(size=(40, 3)), np.arange(40) % 2
    settings = {"methods": ["pca"], "classifiers": ["5-nn"], "n_splits": 2, "n_jobs": 1}
    assert {line.k for line in compare(X, y, n_components=2, **settings).lines} <= {2, 3}
    with pytest.raises(ValueError, match=r"n_components must be .*1\.7"):
        compare(X, y, n_components=[1.7], **settings)


def test_table_best_and_verdict(found):
    table = found.table()
    assert isinstance(table, pd.DataFrame)
    assert set(table["method"]) == {"regularized-lda", "pca", "raw"}  # what all are compared with takes part always
    assert set(table["classifier"][table["method"] == "pca"]) == {"logistic", "rbf-svm"}
    assert set(table["classifier"][table["method"] == "raw"]) == {"logistic", "5-nn", "rbf-svm", "forest"}
    assert "itself" in set(table["classifier"][table["method"] == "regularized-lda"])  # it classifies, too
    assert table["mean"].is_monotonic_decreasing
    assert (table["low"] <= table["mean"]).all()
    assert (table["mean"] <= table["high"]).all()
    assert found.best.method == "regularized-lda"
    assert found.best.k == 2
    assert found.best.mean > 0.95
    assert found.verdict.recommended.method == "regularized-lda"
    assert found.answer.startswith("Use 2 components of regularized-lda: ")


def test_a_data_frame_a_sparse_table_and_other_label_names_give_the_same(wine, found):
    X, y = wine
    frame = pd.DataFrame(X, columns=[f"c{i}" for i in range(X.shape[1])])
    for rows, labels in ((frame, pd.Series(y)), (csr_array(X), y), (X, np.array(["rot", "weiß", "rosé"])[y])):
        again = compare(rows, labels, **SMALL)
        assert again.table().drop(columns="seconds").equals(found.table().drop(columns="seconds"))


def test_a_store_keeps_finished_trials(wine, tmp_path, monkeypatch):
    first = compare(*wine, **SMALL, store=tmp_path / "kept.sqlite")
    monkeypatch.setattr("discrim.evaluation.run.evaluate", None)
    again = compare(*wine, **SMALL, store=tmp_path / "kept.sqlite")
    assert again.table().equals(first.table())


def test_finished_trials_of_a_run_can_be_inspected(wine, tmp_path):
    grid = planned(labelled_table(*wine), "wine", ["pca"], ["5-nn"], [1, 2], n_splits=4)

    def stop(done, total):
        if done >= 14:  # two splits and the first method of a third: 6 trials in each
            raise KeyboardInterrupt

    with Store(tmp_path / "part") as store:
        with pytest.raises(KeyboardInterrupt):
            run(grid, store, jobs=1, progress=stop)
        assert len(store) == 14
        part = finished_splits(grid, store.rows_of(grid))
    assert {row.split for row in part.rows} == {0, 1}
    assert {line.n_splits for line in part.lines} == {2}


def test_without_results_there_is_no_best():
    grid = planned(labelled_table(np.eye(4), list("aabb")), "tiny", ["pca"], ["svm"], [1], n_splits=2, scale="none")
    nothing = Comparison.of(grid, [])
    assert nothing.best is None
    assert nothing.verdict is None
    assert "every trial failed" in nothing.answer
    assert len(nothing.table()) == 0


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"methods": ["pqa"]}, "methods must be .*got 'pqa'"),
        ({"classifiers": "svn"}, "classifiers must be .*got 'svn'"),
        ({"protocol": "loo"}, "protocol must be .*'loo'"),
        ({"scale": "log"}, "No scale is named 'log'"),
        ({"metric": "aux"}, "metric must be one of"),
        ({"metric": "auc"}, "must be used with two classes"),
        ({"equal_rows": "both"}, "equal_rows must be one of"),
        ({"n_components": "many"}, "n_components must be"),
        ({"n_components": [0, 2]}, "n_components must be"),
        ({"n_components": [14]}, "n_components must be at most 13"),
        ({"n_components": None}, "n_components must be"),
        ({"n_components": 2.5}, "n_components must be"),
        ({"classifiers": []}, "classifiers must name"),
        ({"n_splits": 2.5}, "n_splits must be a whole number"),
        ({"n_splits": "5"}, "n_splits must be a whole number"),
        ({"n_jobs": 1.5}, "n_jobs must be a whole number"),
        ({"most_rows": 60.5}, "most_rows must be a whole number"),
        ({"seed": -1}, "seed must be a whole number"),
        ({"protocol": "few-shot", "per_class": 2.5}, "per_class must be a whole number"),
    ],
)
def test_invalid_arguments_are_rejected_before_any_fit(wine, options, message, monkeypatch):
    monkeypatch.setattr("discrim.evaluation.compare.run", None)
    with pytest.raises(ValueError, match=message):
        compare(*wine, **options)


def test_rows_that_cannot_be_compared_are_refused(wine):
    X, y = wine
    with pytest.raises(ValueError, match="NaN"):
        compare(np.where(X > 1000, np.nan, X), y)
    with pytest.raises(ValueError, match="177"):
        compare(X, y[:-1])
    with pytest.raises(ValueError, match="two classes"):
        compare(X, np.zeros(len(X)))


# --- estimators, groups and weights ---------------------------------------------------------------------------------


def test_estimators_and_pipelines_are_compared_with_named_methods(wine):
    given = [
        decomposition.PCA(),
        make_pipeline(StandardScaler(), PLSTransformer()),
        make_pipeline(FisherLDA(2), GaussianNB()),
    ]
    options = {"n_components": [1, 2], "n_splits": 3, "n_jobs": 2, "classifiers": "5-nn"}
    found = compare(*wine, methods=["pca", *given], **options)
    by_name = {(line.method, line.classifier): line for line in found.lines}
    ours, theirs = by_name["pca", "5-nn"], by_name["PCA", "5-nn"]
    assert theirs.curve == ours.curve  # the same directions, by another's hand
    assert set(by_name["StandardScaler+PLSTransformer", "5-nn"].curve) == {1, 2}
    assert by_name["StandardScaler+PLSTransformer", "5-nn"].n_splits == 3
    assert by_name["FisherLDA+GaussianNB", "itself"].n_splits == 3
    assert by_name["FisherLDA+GaussianNB", "itself"].k == 2  # what the classifier sees, not the thirteen columns
    X, y = wine
    scores = []
    for train, test in found.grid.splits:
        scale = StandardScaler().fit(X[train])
        model = make_pipeline(FisherLDA(2), GaussianNB()).fit(scale.transform(X[train]), y[train])
        scores.append(model.score(scale.transform(X[test]), y[test]))
    assert by_name["FisherLDA+GaussianNB", "itself"].mean == pytest.approx(np.mean(scores))


def test_a_classifier_alone_sees_all_features(wine):
    options = {"n_components": [1], "n_splits": 2, "n_jobs": 1, "classifiers": "5-nn"}
    given = [GaussianNB(), make_pipeline(GaussianNB())]
    found = compare(*wine, methods=given[:1], **options), compare(*wine, methods=given[1:], **options)
    for one in found:
        assert {line.k for line in one.lines if line.classifier == "itself"} == {13}


class PLSTransformer(PLSRegression):
    def fit(self, X, y):
        return super().fit(X, np.eye(3)[y])  # labels must be numbers, in every split


def test_a_transformer_without_n_components_is_tried_unchanged(wine):
    found = compare(*wine, methods=[SelectKBest(k=4)], n_components=[1], classifiers="5-nn", n_splits=2, n_jobs=1)
    assert next(line for line in found.lines if line.method == "SelectKBest").k == 4
    X = wine[0].copy()
    X[::7, 3] = np.nan  # filled in before it is asked how many it gives
    found = compare(X, wine[1], methods=[SelectKBest(k=4)], classifiers="5-nn", n_splits=2, n_jobs=1, impute="mean")
    assert next(line for line in found.lines if line.method == "SelectKBest").k == 4


def test_objects_that_are_not_estimators_are_rejected_and_parameters_identify_trials(wine, tmp_path):
    with pytest.raises(TypeError, match="methods must be"):
        compare(*wine, methods=[decomposition.PCA])
    with pytest.raises(ValueError, match="got 'PCA' twice"):
        compare(*wine, methods=[decomposition.PCA(), decomposition.PCA(whiten=True)])
    asked = ([decomposition.PCA(whiten=whiten)] for whiten in (False, True))
    one, other = (planned(labelled_table(*wine), "wine", these, ["5-nn"], [1], n_splits=2) for these in asked)
    shared = {trial["method"] for trial in one.trials} - {"PCA"}
    assert {trial["method"] for trial in one.trials if trial in other.trials} == shared


def test_rows_of_a_group_are_on_one_side_of_every_split(wine):
    X, y = wine
    for n_groups, name in ((6, "leave-one-group-out"), (40, "holdout-80-20")):
        groups = np.random.default_rng(0).integers(0, n_groups, len(y))
        found = compare(X, y, methods="pca", classifiers="5-nn", n_components=[1], groups=groups, n_splits=5, n_jobs=1)
        assert found.grid.protocol.name == name
        assert len(found.grid.splits) == (6 if n_groups == 6 else 5)
        for train, test in found.grid.splits:
            assert not set(groups[train]) & set(groups[test])
            assert set(y[train]) == set(y)
        assert found.verdict.bias_corrected is not None
    assert not set(found.grid.by_key) & set(compare(X, y, methods="pca", n_splits=1, n_jobs=1).grid.by_key)
    with pytest.raises(ValueError, match=r"groups.*3"):
        compare(X, y, groups=np.arange(len(y)) % 2)
    with pytest.raises(ValueError, match="two groups"):
        compare(X, y, groups=y)
    with pytest.raises(ValueError, match="groups must"):
        compare(X, y, groups=y[:-1])


def test_whole_weights_are_repeated_rows_for_fitting_and_for_scoring(wine):
    X, y = wine
    weights = np.where(y == 0, 3.0, 1.0)
    options = {"methods": ["fisher-lda", "pls"], "classifiers": ["naive-bayes", "5-nn"], "n_components": [2]}
    found = compare(X, y, sample_weight=weights, n_splits=3, n_jobs=1, scale="none", **options)
    assert {row.reason for row in found.skips} == {"pls does not accept sample_weight"}
    assert any("5-nn does not accept sample_weight" in note for row in found.rows for note in row.notes)
    row = next(row for row in found.rows if (row.cell.method, row.cell.classifier) == ("fisher-lda", "naive-bayes"))
    train, test = found.grid.splits[row.split]
    train, test = (np.repeat(part, weights[part].astype(int)) for part in (train, test))
    reducer = FisherLDA(2).fit(X[train], y[train])
    model = GaussianNB().fit(reducer.transform(X[train]), y[train])
    assert row.scores["accuracy"] == pytest.approx(model.score(reducer.transform(X[test]), y[test]))


def test_rows_of_weight_0_do_not_change_the_scaling(wine):
    X, y = wine
    weights = np.where(np.arange(len(y)) % 5 == 0, 0.0, 1.0)
    grid = planned(labelled_table(X, y), "wine", "pca", sample_weight=weights, n_splits=1)
    train, test = grid.splits[0]
    data = replace(grid.trial_rows, y=y, weights=weights).split(0, (train, test))
    counted = StandardScaler().fit(X[train][weights[train] > 0])
    np.testing.assert_allclose(data.train, counted.transform(X[train]), atol=1e-12)
    np.testing.assert_allclose(data.test, counted.transform(X[test]), atol=1e-12)


@pytest.mark.parametrize("seed", range(5))
def test_a_sample_of_groups_takes_none_in_part_and_none_that_is_too_large(wine, seed):
    groups = np.concatenate([np.zeros(100), 1 + np.arange(78) % 13])
    drawn = stratified_sample(labelled_table(wine[0], np.arange(178) % 3), 60, seed, groups)
    assert 48 < len(drawn) <= 60
    assert np.isin(groups, groups[drawn]).sum() == len(drawn)


def test_a_sample_of_the_rows_is_stated_and_keeps_the_classes(wine):
    X, y = np.tile(wine[0], (4, 1)), np.tile(wine[1], 4)
    found = compare(X, y, methods="pca", classifiers="5-nn", n_components=[1], most_rows=300, n_splits=2, n_jobs=1)
    assert found.grid.table.n_samples == 300
    shares = [count / 300 for count in found.grid.table.class_counts().values()]
    np.testing.assert_allclose(shares, np.bincount(y) / len(y), atol=0.01)
    assert "Compared on 300 of 712 rows, each class in its proportion." in found.answer


def test_one_class_with_most_rows_makes_balanced_accuracy_decide(wine):
    X, y = wine
    labels = np.where(y == 0, "rare", "usual")
    found = compare(X, labels, methods="pca", classifiers="5-nn", n_components=[1], n_splits=2, n_jobs=1)
    assert found.metric == "balanced_accuracy"
    assert "'usual' has 67 % of the rows; balanced accuracy decides." in found.answer
    assert {"accuracy", "balanced_accuracy"} <= set(found.table().columns)


def test_automatic_counts_have_one_less_than_the_classes_and_more_around_the_best(wine):
    X, y = load_digits(return_X_y=True)
    found = compare(X[:400], y[:400], methods="fisher-lda", classifiers="5-nn", n_splits=3, n_jobs=1)
    line = next(line for line in found.lines if (line.method, line.classifier) == ("fisher-lda", "5-nn"))
    assert {1, 2, 5, 9, 10} <= set(line.curve)
    assert len(line.curve) > 5
    assert found.verdict.best.k in line.curve


def test_progress_is_reported_and_an_interrupted_run_shows_its_results(wine, tmp_path):
    steps, shown = [], []

    def stop(done, total):
        steps.append((done, total))
        if done > total / 2:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        compare(*wine, **SMALL, store=tmp_path / "part", progress=stop, on_stop=shown.append)
    assert steps[0] == (0, steps[-1][1])
    (part,) = shown
    assert 0 < len(part.rows) < steps[-1][1]
    assert "The run was not finished: All lines use 2 of 4 splits." in part.answer


@pytest.mark.parametrize("metric", ["accuracy", "balanced_accuracy"])
def test_print_shows_what_the_command_line_shows(wine, metric, capsys):
    found = compare(*wine, **SMALL | {"methods": ["margin-subspace"], "n_components": [1, 5]}, metric=metric)
    capsys.readouterr()  # a first run says that it compiles
    screen.show_comparison(found)
    shown = capsys.readouterr()
    text = str(found)
    assert text.split() == shown.out.split() + shown.err.split()
    lines = text.splitlines()
    assert max(map(len, lines)) <= 80
    assert " ".join(text.split()).startswith(" ".join(found.answer.split()))
    head = lines.index("data: 178 rows × 13 columns, 3 classes; holdout-80-20, 4 splits")
    assert lines[head + 1].split()[:3] == ["method", "judge", "K"]
    for line, row in zip(found.lines, lines[head + 2 :], strict=False):
        taken = ["→"] if line.cell == found.verdict.recommended else []
        assert row.split()[: 4 + len(taken)] == [
            *taken,
            line.method,
            line.classifier,
            str(line.k),
            f"{100 * line.mean:.1f}",
        ]
    assert text.count("→") == 2  # the recommended line, and what the mark means
    assert "skipped: margin-subspace, 8 trials: margin-subspace has at most 2" in text


def test_ten_lines_are_printed_and_all_on_request(wine):
    found = compare(*wine, n_splits=3, n_components=[1, 2, 5], n_jobs=2)
    assert len(found.lines) > 10
    short, whole = (table_lines(found, everything) for everything in (False, True))
    assert len(short) == 11
    assert all(any(f" {name} " in line for line in short) for name in ("raw", "pca"))
    assert sum(line.startswith("→") for line in short) == 1
    assert len(whole) == 2 * len(found.lines) + 3  # with a table of every kind of score
    assert "MCC" in whole[len(found.lines) + 2]
    assert max(map(len, whole)) <= 80


def test_long_names_are_shortened_in_the_printed_table(found):
    wide = replace(found, rows=[replace(row, trial={**row.trial, "method": "x" * 45}) for row in found.rows])
    assert max(map(len, str(wide).splitlines())) <= 80


def test_print_reports_if_every_trial_failed(found):
    failed = replace(found, rows=[replace(row, status="failed", reason="too bad") for row in found.rows])
    assert str(failed).startswith("No reduction could be judged: every trial failed or was skipped.")
    assert "failed: pca, 16 trials: too bad" in str(failed)


def test_a_notebook_shows_the_answer_and_the_table_with_names_as_text(wine):
    X, y = wine
    found = compare(X, np.array(["<b>", "b", "c"])[y], **SMALL)
    shown = found._repr_html_()
    assert "<table>" in shown
    assert "Use 2 components of regularized-lda" in shown
    table = found.table()
    assert table["low"].between(0, 1).all()
    assert table["high"].between(0, 1).all()


def test_the_errors_are_those_of_the_estimators(wine):
    X, y = wine
    for rows, labels in ((np.where(X > 1000, np.nan, X), y), (X.astype(str)[:, :1] + "x", y), (X, y + 0.5), (X, None)):
        with pytest.raises((ValueError, TypeError)) as ours:
            compare(rows, labels)
        with pytest.raises((ValueError, TypeError)) as theirs:
            FisherLDA().fit(rows, labels)
        assert str(ours.value).replace("compare", "FisherLDA")[:60] == str(theirs.value)[:60]


def test_missing_cells_are_filled_inside_each_split(wine):
    X, y = wine[0].copy(), wine[1]
    X[::7, 3] = np.nan
    found = compare(X, y, impute="median", **SMALL)
    assert not found.failures
    train, test = found.grid.splits[0]
    filled = np.where(np.isnan(X), np.nanmedian(X[train], axis=0), X)
    steps = StandardScaler().fit(filled[train])
    row = next(row for row in found.rows if row.cell.method == "raw" and row.cell.classifier == "5-nn")
    model = KNeighborsClassifier(5).fit(steps.transform(filled[train]), y[train])
    expected = model.score(steps.transform(filled[test]), y[test])
    assert row.split == 0
    assert row.scores["accuracy"] == pytest.approx(expected)


@pytest.mark.parametrize("missing", [None, np.nan, pd.NA, pd.NaT])
def test_missing_groups_are_rejected(wine, missing):
    groups = [f"patient {at % 30}" for at in range(178)]
    groups[3] = missing
    for given in (groups, np.array(groups, dtype=object), pd.Series(groups)):
        with pytest.raises(ValueError, match="groups"):
            compare(*wine, **SMALL, groups=given)


@pytest.mark.parametrize("kind", ["float32", "float64", "datetime64[D]"])
def test_missing_numbers_and_dates_as_groups_are_rejected(wine, kind):
    groups = (np.arange(178) % 30).astype(kind)
    groups[3] = "nat" if kind.startswith("date") else np.nan
    with pytest.raises(ValueError, match="groups"):
        compare(*wine, **SMALL, groups=groups)


def test_labels_that_numpy_would_merge_are_refused():
    X = np.random.default_rng(0).normal(size=(30, 3))
    with pytest.raises(ValueError, match="zero characters"):
        labelled_table(X, np.array(["a", "a\0", "b"] * 10, dtype=object))


def test_a_split_whose_test_rows_have_no_weight_is_skipped_with_a_note():
    random = np.random.default_rng(0)
    X, y, groups = random.normal(size=(60, 3)), np.arange(60) % 2, np.arange(60) // 12
    asked = {"methods": ["pca"], "classifiers": ["naive-bayes"], "n_components": [1], "n_jobs": 1}
    found = compare(X, y, groups=groups, sample_weight=np.where(groups == 2, 0.0, 1.0), **asked)
    assert {row.reason for row in found.skips} == {"no test row of this split has a weight"}
    assert all(np.isfinite(row.scores["accuracy"]) for row in found.rows if row.status == "ok")
    assert np.isfinite(found.verdict.score)


def test_pipelines_without_results_on_every_split_are_named(found):
    rows = [
        replace(row, status="failed", reason="no")
        if row.cell.method == "regularized-lda" and row.cell.k == 2 and row.split == 0
        else row
        for row in found.rows
    ]
    short = Comparison.of(found.grid, rows)
    assert "Not judged, because some splits have no result: regularized-lda with 2 components and " in short.answer
    assert "(3 of 4)" in short.answer
    assert pipeline_name(Cell("raw", 4, "forest")) == "all columns and a random forest"
    assert short.verdict.recommended.k == 1 or short.verdict.recommended.method != "regularized-lda"
    assert "Not judged" not in found.answer
    assert "nothing scored higher" not in short.answer


def test_a_sample_of_groups_is_reported_and_rejected_if_it_loses_a_class():
    X, y = np.random.default_rng(0).normal(size=(200, 3)), np.arange(200) % 2
    groups = np.repeat(np.arange(20), 10)
    asked = {"methods": "pca", "classifiers": "5-nn", "n_components": [1], "n_splits": 2, "n_jobs": 1}
    found = compare(X, y, groups=groups, most_rows=120, **asked)
    assert "Compared on 120 of 200 rows, whole groups drawn at random." in found.answer
    large = np.where(np.arange(200) < 150, 0, groups)
    with pytest.raises(ValueError, match=r"most_rows must .*'rare'"):
        compare(X, np.where(np.arange(200) < 9, "rare", y.astype(str)), groups=large, most_rows=60, **asked)


def test_stopping_the_refinement_keeps_the_comparison_that_was_finished():
    X, y = load_digits(return_X_y=True)
    asked = {"methods": "pca", "classifiers": "5-nn", "n_splits": 2, "n_jobs": 1}
    totals, shown = [], []

    def stop(done, total):
        totals.append(total)
        if total != totals[0] or (done == 0 and len(totals) > 1):
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        compare(X[:200], y[:200], progress=stop, on_stop=shown.append, **asked)
    (kept,) = shown
    assert len(kept.rows) == len(kept.grid.trials)
    assert "not finished" not in kept.answer
