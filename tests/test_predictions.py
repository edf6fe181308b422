"""From a comparison to the classes of new rows: the commands that are printed, run as they are printed."""

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


def test_what_cannot_be_predicted_is_refused(files):
    common = ("project", "rows.csv", "-t", "kind", "--drop", "who,plant")
    assert here(*common, "-m", "pca", "--model", "pca.discrim")[0] == 0
    assert "--classifier" in refused("apply", "pca.discrim", "new.csv", "--predict", "--out", "out.csv")
    assert here(*common, "-m", "raw", "-c", "5-nn", "--model", "raw.discrim")[0] == 0
    assert "--predict" in refused("apply", "raw.discrim", "new.csv", "--out", "out.csv")
    assert "itself" not in refused(*common, "-m", "pca", "-c", "itself", "--model", "x.discrim")
    assert "classifier" in refused(*common, "-c", "nobody", "--model", "x.discrim")
    assert "--model" in refused(*common, "-c", "5-nn", "--out", "x.csv")
    assert "--class-weight" in refused(*common, "-c", "svm", "--class-weight", "heavy", "--model", "x.discrim")
    for options in (("--out", "x.csv"), ("--loadings", "x.csv"), ()):
        assert "raw" in refused(*common, "-m", "raw", *options, "--model", "x.discrim")


def test_a_column_that_is_left_out_is_announced(files):
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


def test_best_pipeline_is_the_one_that_was_judged():
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
