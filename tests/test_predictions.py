"""From a comparison to classes of new rows: the printed commands, run as printed."""

import json

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_iris, load_wine
from sklearn.pipeline import Pipeline
from test_cli import here, printed_commands, refused

import discrim
from discrim import compare
from discrim.evaluation.classifiers import CLASSIFIERS


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


def messy_flowers(path, **written):
    """Write iris with a group, an id, text, a column to leave out, missing cells and a class of few rows."""
    X, codes = load_iris(return_X_y=True)
    frame = pd.DataFrame(X, columns=["a", "b", "c", "d"]).round(3)
    frame["who"] = [f"S{at:04}" for at in range(150)]
    frame["town"] = np.array(["here", "there", "far away"])[np.arange(150) % 3]
    frame["batch"] = np.arange(150) // 3  # a number that would pass as a feature
    frame["kind"] = np.array(["red", "green", "blue"])[codes]
    frame.loc[[7, 60, 120], "b"] = np.nan
    frame.loc[[1, 71], "kind"] = "rare"
    frame.to_csv(path, index=False, **written)


FILLED = ("--impute", "mean")
BARE = ("--drop", "town,who,batch")
ROWS_FEATURES_CLASSES = {  # options of compare, and how many rows, features and classes are left
    "nothing": ((*BARE, *FILLED), (150, 4, 4)),
    "drop": (("--drop", "town,who,batch,c", *FILLED), (150, 3, 4)),
    "drop again": (("--drop", "town", "--drop", "who", "--drop", "batch", *FILLED), (150, 4, 4)),
    "groups of a number": (("--drop", "town,who", "--groups", "batch", *FILLED), (150, 4, 4)),
    "groups of text": (("--drop", "who,batch", "--groups", "town", *FILLED), (150, 4, 4)),
    "groups and an id": (("--drop", "town", "--groups", "batch", "--id", "who", *FILLED), (150, 4, 4)),
    "an id that is the groups": (("--drop", "town,who", "--groups", "batch", "--id", "batch", *FILLED), (150, 4, 4)),
    "id": (("--drop", "town,batch", "--id", "who", *FILLED), (150, 4, 4)),
    "one-hot": (("--drop", "who,batch", "--one-hot", *FILLED), (150, 7, 4)),
    "impute": ((*BARE, "--impute", "most-frequent"), (150, 4, 4)),
    "drop-missing": ((*BARE, "--drop-missing"), (147, 4, 4)),
    "min-class-size": ((*BARE, *FILLED, "--min-class-size", "3"), (148, 4, 3)),
    "scale": ((*BARE, *FILLED, "--scale", "range"), (150, 4, 4)),
    "no scale": ((*BARE, *FILLED, "--scale", "none"), (150, 4, 4)),
    "equal rows": ((*BARE, *FILLED, "--equal-rows", "together"), (150, 4, 4)),
    "another target": (("--drop", "who,batch,kind", *FILLED, "-t", "town"), (150, 4, 3)),
    "everything": (
        ("--groups", "batch", "--id", "who", "--one-hot", "--drop", "d", *FILLED, "--min-class-size", "3"),
        (148, 6, 3),
    ),
}


@pytest.mark.parametrize(("options", "left"), ROWS_FEATURES_CLASSES.values(), ids=ROWS_FEATURES_CLASSES)
@pytest.mark.filterwarnings("ignore")
def test_the_printed_command_fits_what_was_compared(tmp_path, monkeypatch, options, left):
    monkeypatch.chdir(tmp_path)
    messy_flowers("rows.csv")
    target = () if "-t" in options else ("-t", "kind")
    common = ("-m", "regularized-lda", "-c", "1-nn", "-k", "1", "--splits", "2", "-j", "1", "--store", "trials.sqlite")
    command = ("compare", "rows.csv", *target, *options, *common)
    code, out, err = here(*command)
    assert code == 0, err
    compared = json.loads(here(*command, "--json")[1])
    fit, _ = printed_commands(out)
    assert here(*fit)[0] == 0
    model, features = discrim.load("model.discrim"), pd.read_csv("features.csv")
    assert (compared["rows"], compared["features"], len(compared["classes"])) == left
    assert (len(features), len(model.feature_names_in_), len(model.classes_)) == left
    assert sorted(map(str, model.classes_.tolist())) == sorted(map(str, compared["classes"]))
    assert (features.columns[0] == "who") == ("--id" in options and "who" in options)
    assert "batch" not in model.feature_names_in_
    scaler = {"range": "MinMaxScaler", "none": None}.get(options[-1], "StandardScaler")
    steps = [type(step).__name__ for step in model.pipeline_]
    assert scaler in steps if scaler else not {"MinMaxScaler", "StandardScaler"} & set(steps)
    assert ("SimpleImputer" in steps) == ("--impute" in options)


@pytest.mark.parametrize(
    ("written", "options"),
    [
        ({"sep": ";", "decimal": ","}, ("--delimiter", ";", "--decimal", ",")),
        ({"sep": "|"}, ("--delimiter", "|")),
        ({"encoding": "latin-1"}, ("--encoding", "latin-1")),
        ({"header": False}, ("--no-header", "-t", "c8", "--drop", "c5,c6,c7")),
        ({"header": True}, ("--header",)),
    ],
)
@pytest.mark.filterwarnings("ignore")
def test_the_printed_command_reads_the_file_as_it_was_read(tmp_path, monkeypatch, written, options):
    monkeypatch.chdir(tmp_path)
    messy_flowers("rows.csv", **written)
    named = () if "-t" in options else ("-t", "kind", *BARE)
    command = ("compare", "rows.csv", *named, *options, *FILLED, "-m", "pca", "-c", "1-nn", "-k", "1", "--splits", "2")
    code, out, err = here(*command, "-j", "1")
    assert code == 0, err
    fit, _ = printed_commands(out)
    assert here(*fit)[0] == 0
    assert len(pd.read_csv("features.csv")) == 150
    assert len(discrim.load("model.discrim").feature_names_in_) == 4


@pytest.mark.filterwarnings("ignore")
def test_the_printed_command_turns_a_file_on_its_side(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    X, codes = load_iris(return_X_y=True)
    pd.DataFrame(np.vstack([X.T, codes]), index=[*"abcd", "kind"]).rename_axis("who").to_csv("rows.csv")
    command = ("compare", "rows.csv", "-t", "kind", "--transpose", "-m", "pca", "-c", "1-nn", "-k", "1")
    code, out, err = here(*command, "--splits", "2", "-j", "1")
    assert code == 0, err
    fit, _ = printed_commands(out)
    assert here(*fit)[0] == 0
    assert pd.read_csv("features.csv").shape == (150, 3)
    assert discrim.load("model.discrim").feature_names_in_.tolist() == list("abcd")


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
    assert f"{count} row" in err


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
    found = compare(X, y, methods=["pca", "raw"], classifiers="svm", n_components=[2], n_splits=3, impute="median")
    pipeline = found.best_pipeline()
    assert isinstance(pipeline, Pipeline)
    assert [name for name, _ in pipeline.steps][:2] == ["simpleimputer", "standardscaler"]
    best = found.verdict.recommended
    assert (len(pipeline) == 4) == (best.method != "raw")
    train, test = found.grid.splits[0]
    score = pipeline.fit(X[train], y[train]).score(X[test], y[test])
    judged = next(row for row in found.rows if row.cell == best and row.split == 0)
    assert score == pytest.approx(judged.scores["accuracy"])
