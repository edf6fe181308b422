"""From a comparison to classes of new rows: the printed commands, run as printed."""

import html
import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_iris, load_wine
from sklearn.pipeline import Pipeline
from test_cli import here, printed_commands, refused

import discrim
from discrim import compare
from discrim.cli import comparing
from discrim.cli.comparing import origin_of
from discrim.cli.options import Reading, with_options
from discrim.cli.screen import _options_of
from discrim.evaluation.classifiers import CLASSIFIERS
from discrim.evaluation.methods import Recommendation
from discrim.report.page import commands, python_code


@pytest.fixture
def files(tmp_path, monkeypatch):
    """Iris as two files: rows to be fitted, and new rows without a class."""
    monkeypatch.chdir(tmp_path)
    X, codes = load_iris(return_X_y=True)
    frame = pd.DataFrame(X, columns=["a b", "b", "c", "d"])
    frame.insert(0, "who", [f"S{at:04}" for at in range(150)])
    frame["kind"] = np.array(["red", "green", "blue"])[codes]
    frame["plant"] = np.arange(150) // 2
    new = frame.iloc[::3].drop(columns=["kind", "plant"])
    frame.drop(index=new.index).to_csv("rows.csv", index=False)
    new[["d", "who", "c", "b", "a b"]].to_csv("new.csv", index=False)
    return frame.iloc[::3]


@pytest.mark.parametrize(
    "options",
    [
        ("--methods", "pca,raw", "-c", "5-nn", "-k", "2", "--drop", "plant"),
        ("--methods", "raw", "-c", "tree", "--drop", "plant"),
        ("--methods", "regularized-lda", "-c", "svm", "-k", "1", "--drop", "plant", "--scale", "range"),
        ("--methods", "pls", "-c", "logistic", "-k", "2", "--groups", "plant"),
        ("--methods", "pca", "-c", "naive-bayes", "-k", "2", "--drop", "plant", "--impute", "median"),
    ],
)
@pytest.mark.filterwarnings("ignore")
def test_the_printed_commands_fit_and_predict(files, options):
    code, out, _ = here("compare", "rows.csv", "-t", "kind", "--id", "who", "--splits", "2", "-j", "1", *options)
    assert code == 0
    fit, predict = printed_commands(out)
    assert here(*fit)[0] == 0
    code, _, err = here(*predict)
    assert code == 0, err
    found = pd.read_csv("predicted.csv")
    assert found["who"].tolist() == files["who"].tolist()
    assert (found["predicted"].to_numpy() == files["kind"].to_numpy()).mean() > 0.85
    assert found["probability"].between(1 / 3 - 1e-9, 1).all()
    assert set(found["unusual"]) <= {"no", "T2", "Q", "T2 and Q"}


def messy_flowers(path, *, complete=False, thousands=None, transposed=False, **written):
    """Write iris with a group, an id, text, a column to leave out, missing cells and a class of few rows."""
    X, codes = load_iris(return_X_y=True)
    frame = pd.DataFrame(X, columns=["a", "b", "c", "d"]).round(3)
    if thousands is not None:
        frame["c"] = [f"{1000 * value:,.0f}".replace(",", thousands) for value in frame["c"]]
    frame["who"] = [f"S{at:04}" for at in range(150)]
    frame["town"] = np.array(["here", "there", "far away"])[np.arange(150) % 3]
    frame["batch"] = np.arange(150) // 3  # a number that would pass as a feature
    frame["kind"] = np.array(["red", "green", "blue"])[codes]
    if not complete:
        frame.loc[[7, 60, 120], "b"] = np.nan
    frame.loc[[1, 71], "kind"] = "rare"
    if transposed:
        frame.drop(columns=["town", "batch"]).set_index("who").T.rename_axis("feature").to_csv(path)
    else:
        frame.to_csv(path, index=False, **written)


FILLED = ("--impute", "mean")
BARE = ("--drop", "town,who,batch")
PLAIN = (*BARE, *FILLED)
CASES = {  # options of compare, how many rows, features and classes are left, and how the file is written
    "nothing": (PLAIN, (150, 4, 4), {}),
    "drop": (("--drop", "town,who,batch,c", *FILLED), (150, 3, 4), {}),
    "drop again": (("--drop", "town", "--drop", "who", "--drop", "batch", *FILLED), (150, 4, 4), {}),
    "groups of a number": (("--drop", "town,who", "--groups", "batch", *FILLED), (150, 4, 4), {}),
    "groups of text": (("--drop", "who,batch", "--groups", "town", *FILLED), (150, 4, 4), {}),
    "groups and an id": (("--drop", "town", "--groups", "batch", "--id", "who", *FILLED), (150, 4, 4), {}),
    "an id that is the groups": (
        ("--drop", "town,who", "--groups", "batch", "--id", "batch", *FILLED),
        (150, 4, 4),
        {},
    ),
    "groups and rows left out": (
        ("--drop", "town", "--groups", "batch", "--id", "who", "--drop-missing", "--min-class-size", "3"),
        (145, 4, 3),
        {},
    ),
    "id": (("--drop", "town,batch", "--id", "who", *FILLED), (150, 4, 4), {}),
    "one-hot": (("--drop", "who,batch", "--one-hot", *FILLED), (150, 7, 4), {}),
    "impute": ((*BARE, "--impute", "most-frequent"), (150, 4, 4), {}),
    "drop-missing": ((*BARE, "--drop-missing"), (147, 4, 4), {}),
    "min-class-size": ((*PLAIN, "--min-class-size", "3"), (148, 4, 3), {}),
    "scale": ((*PLAIN, "--scale", "range"), (150, 4, 4), {}),
    "no scale": ((*PLAIN, "--scale", "none"), (150, 4, 4), {}),
    "equal rows": ((*PLAIN, "--equal-rows", "together"), (150, 4, 4), {}),
    "another target": (("--drop", "who,batch,kind", *FILLED, "--target", "town"), (150, 4, 3), {}),
    "limit of memory": ((*PLAIN, "--max-bytes", "100000000"), (150, 4, 4), {}),
    "decimal comma": ((*PLAIN, "--delimiter", ";", "--decimal", ","), (150, 4, 4), {"sep": ";", "decimal": ","}),
    "thousands": ((*PLAIN, "--delimiter", ";", "--thousands", ","), (150, 4, 4), {"sep": ";", "thousands": ","}),
    "delimiter": ((*PLAIN, "--delimiter", "|"), (150, 4, 4), {"sep": "|"}),
    "encoding": ((*PLAIN, "--encoding", "utf-16"), (150, 4, 4), {"encoding": "utf-16"}),
    "no header": (("--no-header", "--target", "c8", "--drop", "c5,c6,c7", *FILLED), (150, 4, 4), {"header": False}),
    "header": ((*PLAIN, "--header"), (150, 4, 4), {}),
    "on its side": (("--transpose", *FILLED), (150, 4, 4), {"transposed": True}),
    "everything": (
        ("--groups", "batch", "--id", "who", "--one-hot", "--drop", "d", *FILLED, "--min-class-size", "3"),
        (148, 6, 3),
        {},
    ),
}
# options that change neither the rows nor the columns of the fit on all rows
OF_TRIALS = {"methods", "classifiers", "components", "protocol", "splits", "per_class", "metric", "quick", "most_rows"}
OF_TRIALS |= {"permutations", "seed", "jobs", "store", "retry_failed", "wait", "html", "as_json", "everything"}


def test_every_option_that_changes_rows_or_columns_is_a_case():
    options = _options_of(with_options(comparing.compare))
    words = {word for case in CASES.values() for word in case[0]}
    assert {name for name, option in options.items() if not words & set(option.split("/"))} == OF_TRIALS


@pytest.mark.parametrize("case", CASES)
@pytest.mark.filterwarnings("ignore")
def test_what_is_printed_fits_what_was_compared(tmp_path, monkeypatch, case):
    options, left, written = CASES[case]
    monkeypatch.chdir(tmp_path)
    messy_flowers("rows.csv", **written)
    messy_flowers("new.csv", complete=True, **written)
    offered = []
    monkeypatch.setattr(comparing, "commands", lambda *given: offered.append(given) or commands(*given))
    target = () if "--target" in options else ("--target", "kind")
    common = ("-m", "regularized-lda", "-c", "1-nn", "-k", "1", "--splits", "2", "-j", "1", "--store", "trials.sqlite")
    command = ("compare", "rows.csv", *target, *options, *common)
    code, out, err = here(*command)
    assert code == 0, err
    compared = json.loads(here(*command, "--json")[1])
    assert (compared["rows"], compared["features"], len(compared["classes"])) == left

    fit, predict = printed_commands(out)
    assert here(*fit)[0] == 0
    code, _, err = here(*predict)
    assert code == 0, err
    model, features = discrim.load("model.discrim"), pd.read_csv("features.csv")
    assert (len(features), len(model.feature_names_in_), len(model.classes_)) == left
    assert sorted(map(str, model.classes_.tolist())) == sorted(map(str, compared["classes"]))
    *ids, component, _ = features.columns
    assert ids == next(([options[options.index(one) + 1]] for one in ("--id", "--groups") if one in options), ids[:1])
    assert bool(ids) == bool({"--id", "--groups", "--transpose"} & set(options))
    assert not {"batch", "who"} & set(model.feature_names_in_)
    scaler = {"range": "MinMaxScaler", "none": None}.get(options[-1], "StandardScaler")
    steps = [type(step).__name__ for step in model.pipeline_]
    assert scaler in steps if scaler else not {"MinMaxScaler", "StandardScaler"} & set(steps)
    assert ("SimpleImputer" in steps) == ("--impute" in options)

    names = {}
    exec(python_code(*offered[0]), names)  # the same in Python
    assert (*names["X"].shape, len(names["model"].classes_)) == left
    in_python = names["model"][:-1].transform(names["X"]).ravel()
    np.testing.assert_allclose(in_python, features[component], atol=1e-9)
    assert list(map(str, names["labels"])) == pd.read_csv("predicted.csv")["predicted"].astype(str).tolist()


@pytest.mark.parametrize("ids", [None, "who", "batch"])
@pytest.mark.filterwarnings("ignore")
def test_groups_reach_the_folds_of_the_fit_in_python(tmp_path, monkeypatch, ids):
    monkeypatch.chdir(tmp_path)
    messy_flowers("rows.csv", complete=True)
    messy_flowers("new.csv", complete=True)
    dropped = ["town", *({"who"} - {ids})]
    reading = Reading(target="kind", id_column=ids, drop=dropped)
    lines = python_code(Recommendation("regularized-lda", 1, "1-nn"), origin_of("rows.csv", reading, "batch"))
    assert "keep_groups(make_pipeline(" in lines
    exec(lines, names := {})
    fit = ("project", "rows.csv", "-t", "kind", "--drop", ",".join(dropped), "--groups", "batch", "-k", "1")
    options = ("-m", "regularized-lda", "-c", "1-nn", "--model", "m.discrim", *(() if ids is None else ("--id", ids)))
    assert here(*fit, *options)[0] == 0
    model = discrim.load("m.discrim").pipeline_
    assert names["model"][1].path_.losses.tolist() == model[1].path_.losses.tolist()
    np.testing.assert_allclose(names["model"][1].components_, model[1].components_, atol=1e-12)


@pytest.mark.filterwarnings("ignore")
def test_the_lines_of_python_are_on_the_page(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    messy_flowers("rows.csv")
    options = ("--id", "who", "--groups", "batch", "--drop", "town", *FILLED, "-m", "pca", "-c", "1-nn", "-k", "2")
    code, _, err = here("compare", "rows.csv", "-t", "kind", *options, "--splits", "2", "-j", "1", "--html", "r.html")
    assert code == 0, err
    page = html.unescape(Path("r.html").read_text(encoding="utf-8"))
    assert "table = read_table('rows.csv', id_column='who', target='kind', drop=['town', 'batch'], missing" in page
    assert "X_new, ids = read_features('new.csv', table.feature_names, id_column='who', missing_cells='keep')" in page


@pytest.mark.parametrize("classifier", [*CLASSIFIERS, "itself"])
def test_every_classifier_goes_from_project_to_apply(files, classifier):
    fit = ("project", "rows.csv", "-t", "kind", "--id", "who", "--drop", "plant", "-m", "regularized-lda", "-k", "2")
    assert here(*fit, "--classifier", classifier, "--model", "m.discrim")[0] == 0
    assert here("apply", "m.discrim", "new.csv", "--id", "who", "--predict", "--out", "out.csv")[0] == 0
    found = pd.read_csv("out.csv")
    assert list(found) == ["who", "regularizedlda0", "regularizedlda1", "predicted", "probability", "unusual"]
    assert (found["predicted"].to_numpy() == files["kind"].to_numpy()).mean() > 0.9


def test_unusual_rows_are_flagged_and_counted(files):
    here("project", "rows.csv", "-t", "kind", "--drop", "who,plant", "-m", "raw", "-c", "tree", "--model", "m.discrim")
    new = pd.read_csv("new.csv")
    new.loc[3, ["b", "c"]] = 40.0
    new.to_csv("new.csv", index=False)
    code, _, err = here("apply", "m.discrim", "new.csv", "--id", "who", "--predict", "--out", "out.csv")
    assert code == 0
    found = pd.read_csv("out.csv")
    assert found["unusual"][3] != "no"
    count = int((found["unusual"] != "no").sum())
    assert count < 5
    assert f"\n{count} of 50 rows" in err


def test_predictions_that_are_impossible_are_rejected(files):
    common = ("project", "rows.csv", "-t", "kind", "--drop", "who,plant")
    assert here(*common, "-m", "pca", "--model", "pca.discrim")[0] == 0
    assert "--classifier" in refused("apply", "pca.discrim", "new.csv", "--predict", "--out", "out.csv")
    assert here(*common, "-m", "raw", "-c", "5-nn", "--model", "raw.discrim")[0] == 0
    assert "--predict" in refused("apply", "raw.discrim", "new.csv", "--out", "out.csv")
    assert "itself" not in refused(*common, "-m", "pca", "-c", "itself", "--model", "x.discrim")
    assert "classifier" in refused(*common, "-c", "no-such", "--model", "x.discrim")
    assert "--model" in refused(*common, "-c", "5-nn", "--out", "x.csv")
    assert "--class-weight" in refused(*common, "-c", "svm", "--class-weight", "heavy", "--model", "x.discrim")
    for options in (("--out", "x.csv"), ("--loadings", "x.csv"), ()):
        assert "raw" in refused(*common, "-m", "raw", *options, "--model", "x.discrim")


def test_an_ignored_column_is_reported(files):
    common = ("project", "rows.csv", "-t", "kind", "--drop", "who,plant")
    here(*common, "-m", "fisher-lda", "--model", "plain.discrim")
    code, _, err = here("apply", "plain.discrim", "new.csv", "--predict", "--out", "out.csv")
    assert code == 0
    assert "unusual" in err
    assert list(pd.read_csv("out.csv"))[-2:] == ["predicted", "probability"]


def test_weights_of_classes_reach_the_classifier(files):
    common = ("project", "rows.csv", "-t", "kind", "--drop", "who,plant", "-m", "raw", "-c", "logistic")
    here(*common, "--class-weight", "balanced", "--model", "m.discrim")
    assert discrim.load("m.discrim").pipeline_[-1].class_weight == "balanced"


def test_best_pipeline_is_the_one_that_was_scored():
    X, y = load_wine(return_X_y=True)
    X[::9, 3] = np.nan
    found = compare(
        X, y, methods=["pca", "raw"], classifiers="svm", n_components=[2], n_splits=3, n_jobs=1, impute="median"
    )
    pipeline = found.best_pipeline()
    assert isinstance(pipeline, Pipeline)
    assert [name for name, _ in pipeline.steps][:2] == ["simpleimputer", "standardscaler"]
    best = found.verdict.recommended
    assert (len(pipeline) == 4) == (best.method != "raw")
    train, test = found.grid.splits[0]
    score = pipeline.fit(X[train], y[train]).score(X[test], y[test])
    judged = next(row for row in found.rows if row.cell == best and row.split == 0)
    assert score == pytest.approx(judged.scores["accuracy"])
