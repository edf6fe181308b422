"""From rows of results to the page: runs distinguished, models refitted as in the run, the answer in words."""

import re
from dataclasses import replace
from html import unescape
from itertools import pairwise

import numpy as np
import pytest
from pages import compared, made_up, result_rows, setting_of, stored, trees
from scipy.sparse import csr_array, issparse
from sklearn import decomposition

from discrim import FisherLDA
from discrim.evaluation.compare import compare
from discrim.evaluation.comparison import Comparison, comparisons_in
from discrim.evaluation.methods import METHODS, Recommendation
from discrim.evaluation.protocol import protocol_of
from discrim.evaluation.results import trial_key
from discrim.evaluation.store import Store
from discrim.evaluation.trial import features_by_count
from discrim.report.first_split import CLASSIFIERS_VIEW, Looks, Models, lines_shown, looks_of, page_budget
from discrim.report.page import Origin, commands, page, python_code
from discrim.tables.labelled_table import LabelledTable


def test_a_comparison_and_its_store_give_the_same_results(tmp_path):
    found = compared(tmp_path, trees(60, 4), classifiers=("5-nn",))
    with Store(tmp_path / "results.sqlite", read_only=True) as store:
        (kept,) = comparisons_in(store.rows(), "accuracy", lambda name: {"trees": found.grid.table}.get(name))
        (bare,) = comparisons_in(store.rows(), "accuracy", lambda name: None)
        (other,) = comparisons_in(store.rows(), "accuracy", lambda name: trees(60, 4, seed=9))
    assert kept.lines == found.lines
    assert (kept.label, kept.setting, kept.lacking) == ("trees", found.setting, "")
    assert kept.data is found.data is found.grid.table
    assert bare.data is None
    assert "--data FILE" in bare.lacking
    assert other.data is None
    assert "data differ from the rows" in other.lacking
    assert kept.sizes == {"splits": 4, "rows": 60, "train": 48, "test": 12, "classes": 3, "features": 4}


def test_the_first_split_is_the_one_that_was_tried(found):
    runs = {trial_key(found.setting): found.facts}
    (results,) = comparisons_in(found.rows, "accuracy", lambda name: found.data, runs)  # the grid is made again
    assert results.grid is not found.grid
    data = results.first_split()
    train, test = found.grid.splits[0]
    X = found.grid.table.X
    mean, deviation = X[train].mean(axis=0), X[train].std(axis=0)
    np.testing.assert_allclose(data.test, (X[test] - mean) / deviation)
    assert data.y_test.tolist() == found.grid.table.y[test].tolist()
    features = features_by_count(METHODS["fisher-lda"], [2], data)[2]
    look = looks_of(results)
    assert not look.refused
    view = next(one for one in look.maps if one.method == "fisher-lda").views[0].projection
    np.testing.assert_allclose(view.test.scores, features.test)  # rows that no fit has seen
    np.testing.assert_allclose(view.train.scores, features.train)


@pytest.mark.parametrize("protocol", ["kfold", "few-shot", "holdout-50-50", "inverted-kfold"])
def test_every_protocol_is_found_again_by_its_fields(protocol, tmp_path):
    table = trees(60, 4)
    more = {"per_class": 3} if protocol == "few-shot" else {}
    found = compare(
        table.X,
        table.y,
        methods="pca",
        classifiers="1-nn",
        n_components=[1],
        protocol=protocol,
        n_splits=4,
        n_jobs=1,
        **more,
    )
    setting = found.setting
    again = protocol_of(setting["protocol"], setting["protocol_size"])
    first, same = next(iter(again.splits(table.y, 0))), found.grid.splits[0]
    assert all((a == b).all() for a, b in zip(first, same, strict=True))


def test_runs_of_one_data_set_are_distinguished():
    settings = [setting_of("wood", seed=seed) for seed in (0, 1)]
    settings.append(setting_of("field", "def"))
    rows = [row for setting in settings for row in result_rows("pca", 1, [0.5, 0.6], setting)]
    assert [one.label for one in comparisons_in(rows, "accuracy", lambda name: None)] == [
        "wood (seed 0)",
        "wood (seed 1)",
        "field",
    ]


def test_a_callers_estimators_of_one_name_are_distinguished_by_parameters(tmp_path):
    X, y = np.random.default_rng(0).normal(size=(60, 3)), np.arange(60) % 2
    settings = {
        "n_components": [1],
        "n_splits": 2,
        "classifiers": ["1-nn"],
        "n_jobs": 1,
        "store": tmp_path / "s.sqlite",
    }
    for whiten in (False, True):
        compare(X, y, methods=[decomposition.PCA(whiten=whiten)], **settings)
    with Store(tmp_path / "s.sqlite", read_only=True) as kept:
        (found,) = comparisons_in(kept.rows(), "accuracy", lambda name: None, kept.runs())
    names = sorted({name for line in found.lines for name in (line.method, *line.same)})  # of equal predictions
    assert [name.split("(")[0] for name in names] == ["PCA", "PCA", "pca", "raw"]
    assert "whiten=False" in names[0]
    assert "whiten=True" in names[1]


def test_notes_count_each_failure_once_and_the_skips_of_a_method_together():
    results = made_up(trees(), "wood", [("pca", 1, 0.9)])
    more = result_rows("lda", 2, [0.0, 0.0], results.setting, status="skipped", reason="at most 1 component")
    more += result_rows("lda", 3, [0.0], results.setting, status="skipped", reason="at most 1 component of 9 rows")
    more += result_rows("lda", 1, [0.0], results.setting, status="failed", reason="ValueError: no")
    more += result_rows("ica", 1, [0.5], results.setting, notes=["did not converge"])
    notes = stored(results.setting, [*results.rows, *more]).notes
    assert [tuple(note) for note in notes] == [
        ("doubtful", "ica", 1, "did not converge"),
        ("failed", "lda", 1, "ValueError: no"),
        ("skipped", "lda", 3, "at most 1 component"),
    ]


# ---------------------------------------------------------------------- the answer


@pytest.mark.parametrize(
    ("raw", "words"),
    [
        (0.5, "Reducing helps: on all 6 columns, 5-NN has "),
        (0.99, "The best reduction, 2 components of fisher-lda, has "),
        (0.905, "No difference from all 6 columns can be shown with these rows: 5-NN has "),
    ],
)
def test_the_answer_states_if_reducing_helps(raw, words):
    results = made_up(trees(), "wood", [("fisher-lda", 2, 0.9), ("pca", 2, 0.5), ("raw", 6, raw)])
    results = stored(results.setting, [*results.rows[:-1], *_shaken(results.rows[-1:])])
    assert results.verdict.reduction.method == "fisher-lda"
    assert results.verdict.recommended.method == ("raw" if raw == 0.99 else "fisher-lda")
    assert words in results.sentences[1]
    text = page([results], Origin())
    score, beside_pca, beside_raw = re.findall(r'<div class="card[^"]*">(.*?)</div>', text)
    assert f"<b>{'99.5' if raw == 0.99 else '90.5'}&nbsp;%</b>" in score
    assert "accuracy on the splits that were used for the choice, with" in score
    assert '<b>+40.0 <i class="mark">▲</i></b>' in beside_pca
    assert "points over PCA (2 components, 5-nn):<br>" in beside_pca
    assert "<br>better by the corrected test (p\u00a0&lt;\u00a00.001)" in beside_pca
    assert "points over raw features (5-nn):<br>" in beside_raw
    verdict = {0.5: "better", 0.99: "worse", 0.905: "no difference shown"}[raw]
    assert f"<br>{verdict} by the corrected test" in beside_raw


def _shaken(rows):
    """Change the last split a little, so differences are not all equal."""
    return [replace(row, scores={**row.scores, "accuracy": row.scores["accuracy"] + 0.001}) for row in rows]


def test_the_answer_without_results():
    setting = setting_of()
    rows = result_rows("pca", 1, [0.0], setting, status="failed", reason="no")
    results = stored(setting, rows)
    assert results.verdict is None
    assert "every trial failed" in results.sentences[0]
    assert f"<h1>{results.sentences[0]}</h1>" in page([results], Origin())


@pytest.mark.filterwarnings("ignore:The null space")
@pytest.mark.parametrize("scale", ["standard", "range", "none"])
@pytest.mark.parametrize("method", METHODS)
def test_the_code_that_is_offered_runs(method, scale):
    table = trees(60, 4)
    names = {"X": table.X, "y": table.y, "X_new": table.X[:7]}
    exec(python_code(Recommendation(method, 2, "svm", scale)), names)
    assert names["labels"].shape == (7,)


def test_the_code_that_is_offered_fills_in_what_was_filled_in():
    table = trees(60, 4)
    X = table.X.copy()
    X[::9, 1] = np.nan
    names = {"X": X, "y": table.y, "X_new": X}
    exec(python_code(Recommendation("pca", 2, "5-nn", impute="median")), names)
    assert len(names["labels"]) == 60


def test_the_command_that_is_offered_names_all_that_matters():
    origin = Origin("", "my trees.csv", ("--target", "tree", "--id", "who"), ("--id", "who"))
    assert commands(Recommendation("margin-pca-mean", 2, "5-nn", "range"), origin) == [
        "discrim project 'my trees.csv' --target tree --id who --method margin-pca-mean -k 2 --classifier 5-nn "
        "--scale range --out features.csv --model model.discrim",
        "discrim apply model.discrim new.csv --id who --predict --out predicted.csv",
    ]
    weighted = Recommendation("raw", 4, "forest", class_weight="balanced")
    assert commands(weighted, Origin(data="wood"))[0] == (
        "discrim project wood --method raw --classifier forest --class-weight balanced --model model.discrim"
    )
    own = Recommendation("SelectKBest", 2, "svm")  # an estimator that the caller passed
    assert commands(own, origin) == []
    assert python_code(own) == ""
    assert commands(weighted, Origin()) == []


# ---------------------------------------------------------------------- refits


def test_pca_is_always_shown_and_raw_never():
    levels = [(name, 2, 0.9 - 0.01 * at) for at, name in enumerate(list(METHODS)[:15])]
    results = made_up(trees(), "wood", [*levels, ("pca", 2, 0.1), ("raw", 6, 0.99)])
    methods = [line.method for line in lines_shown(results)]
    assert len(methods) == 8
    assert methods[0] == levels[0][0]
    assert methods[-1] == "pca"
    assert "raw" not in methods


def test_a_method_that_cannot_be_fitted_again_is_named_with_its_reason():
    results = made_up(trees(), "wood", [("pca", 2, 0.9), ("gone", 2, 0.8)])
    look = looks_of(results)
    assert [one.line.method for one in look.methods] == ["pca"]
    assert {one.method for one in look.maps} - {CLASSIFIERS_VIEW} == {"pca"}
    assert re.search(r"gone: ValueError: method must be .*'gone'", look.refused[0])


def test_the_recommended_map_opens_though_another_is_more_accurate_and_sizes_are_those_of_the_table(monkeypatch):
    results = made_up(trees(), "wood", [("pca", 2, 0.9), ("fisher-lda", 2, 0.5)])
    monkeypatch.setattr("discrim.report.first_split.MOST_ROWS_OF_A_VIEW", 10)
    look = looks_of(results)
    assert [one.method for one in look.maps] == ["pca", "fisher-lda"]  # too many rows for a map that was not compared
    assert look.maps[1].accuracy > look.maps[0].accuracy
    assert "<dt>rows</dt><dd>90</dd>\n<dt>columns</dt><dd>6</dd>" in page([results], Origin())


def test_nested_methods_are_fitted_once_and_others_for_each_count(found):
    data = found.first_split()
    nested, alone = Models(METHODS["fisher-lda"], data, 3, {}), Models(METHODS["ica"], data, 3, {})
    assert nested.model(1) is nested.model(3)
    assert alone.model(1) is not alone.model(3)
    assert isinstance(nested.model(1), FisherLDA)
    too_many = Models(METHODS["margin-subspace"], data, 10, {})
    assert too_many.model(10).n_components_ == 2  # three classes have two
    none = Models(replace(METHODS["ica"], most_components=lambda sizes: 0), data, 3, {})
    with pytest.raises(ValueError, match="ica has no components for these rows"):
        none.model(2)


def test_sparse_rows_are_looked_at_like_dense_ones(monkeypatch):
    table = trees(60, 5)
    sparse = LabelledTable(csr_array(table.X), table.y, table.feature_names, "tree", "a wood")
    dense, same = (made_up(one, "wood", [("fisher-lda", 2, 0.9), ("pca", 2, 0.8)]) for one in (table, sparse))
    dense, same = (replace(one, grid=replace(one.grid, scale="none")) for one in (dense, same))
    of_dense = looks_of(dense)
    monkeypatch.setattr("discrim.evaluation.plan.DENSE_CELLS", 0)
    assert issparse(same.first_split().train)
    of_sparse = looks_of(same)
    assert not of_sparse.refused
    for one, other in zip(of_dense.maps, of_sparse.maps, strict=True):
        np.testing.assert_allclose(
            one.views[0].projection.test.scores, other.views[0].projection.test.scores, atol=1e-8
        )
        np.testing.assert_array_equal(one.views[0].confusions.matrix, other.views[0].confusions.matrix)
    for a, b in zip(of_dense.methods, of_sparse.methods, strict=True):
        np.testing.assert_allclose(a.margins.before, b.margins.before, atol=1e-8)
        np.testing.assert_allclose(a.loadings.structure, b.loadings.structure, atol=1e-8)


def test_many_data_sets_share_what_a_page_can_hold(monkeypatch):
    counts = []
    monkeypatch.setattr("discrim.report.page.looks_of", lambda one, n_datasets: counts.append(n_datasets) or Looks())
    page([made_up(trees(), name, [("pca", 2, 0.9)]) for name in ("oak", "elm")], Origin())
    assert counts == [2, 2]
    shares = [page_budget(count) for count in range(1, 200)]
    assert shares[0] == (8, 500)
    assert all(later <= sooner for sooner, later in pairwise(shares))
    assert all(count * methods * points <= 4_000 for count, (methods, points) in enumerate(shares[:25], start=1))


def test_the_answer_if_pca_is_best():
    results = made_up(trees(), "wood", [("pca", 2, 0.9), ("raw", 6, 0.5)])
    assert results.verdict.against_pca is None
    assert results.sentences[0].startswith("Use 2 components of pca: ")
    assert results.sentences[1].startswith("Reducing helps: ")


def test_a_page_of_a_comparison_that_was_stopped_before_its_end(found):
    part = Comparison.of(found.grid, found.rows[:1])
    results = part
    assert "95&nbsp;% interval" not in page([results], Origin())
    assert results.best is None or results.best.n_splits == 1


def test_a_store_that_was_interrupted_is_reported_as_such(tmp_path):
    found = compared(tmp_path, trees(60, 4), classifiers=("5-nn",))
    with Store(tmp_path / "results.sqlite", read_only=True) as store:
        rows, runs = store.rows(), store.runs()
    (whole,) = comparisons_in(rows, "auto", lambda name: None, runs)
    assert whole.remarks == ()
    assert whole.verdict.sentences == found.verdict.sentences  # without the table, the store says it all
    assert whole.verdict.bias_corrected == found.verdict.bias_corrected
    part = [row for row in rows if row.cell.method != "pca" or row.split < 2]
    (stopped,) = comparisons_in(part, "auto", lambda name: None, runs)
    not_judged, not_finished = stopped.remarks
    assert not_judged.startswith(
        "Not judged, because some splits have no result: pca with 1 component and 5-NN (2 of 4)"
    )
    assert not_finished == "The run was not finished: 1 line (pca with 5-NN) uses 2 of 4 splits."
    text = unescape(page([stopped], Origin()))
    assert all(f'<p class="note"><bdi>{remark}</bdi></p>' in text for remark in stopped.remarks)
