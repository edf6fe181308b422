"""Command line end to end, in separate processes: answers, faulty files, and every way a run can end."""

import contextlib
import csv
import errno
import gc
import gzip
import json
import os
import random
import re
import shlex
import shutil
import signal
import sqlite3
import subprocess
import sys
import time
from functools import partial
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from processes import Command, limit_files
from samples import labelled
from typer.testing import CliRunner

from discrim import FisherLDA
from discrim.cli import application
from discrim.cli.options import columns_of_data, names_and_files
from discrim.cli.screen import in_lines
from discrim.evaluation.methods import METHODS
from discrim.evaluation.plan import hopeless
from discrim.evaluation.run import StoreInUseError, run_lock
from discrim.model_file import load, save

FAST = ["--methods", "fisher-lda", "-k", "1,2", "--classifiers", "5-nn", "--splits", "3", "--jobs", "1"]


def discrim(*arguments, **options):
    """(exit code, stdout, stderr) of the command in a process of its own."""
    process = Command(*arguments, **options)
    out, err = process.communicate(timeout=240)
    assert "Traceback" not in err
    return process.returncode, out, err


def typed(*arguments, **environment):
    """The same in a new interpreter, which takes seconds to import everything."""
    command = [sys.executable, "-m", "discrim", *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True, env={**os.environ, **environment})
    assert "Traceback" not in done.stderr
    return done.returncode, done.stdout, done.stderr


APP = application()


def here(*arguments):
    """The same in this process, where many short calls are needed."""
    result = CliRunner().invoke(APP, [str(one) for one in arguments], catch_exceptions=False, env={"COLUMNS": "120"})
    return result.exit_code, result.stdout, result.stderr


def printed_commands(out):
    """Return the arguments of the two commands below an answer, as a shell takes them apart."""
    fit, _, rest = out.partition("To fit it on all rows:\n")[2].partition("To predict new rows:\n")
    commands = (fit, rest.partition("\n\n")[0])
    return [as_in_a_shell(one) for one in commands]


def as_in_a_shell(command):
    """The arguments of one `discrim …`, as a shell passes them on."""
    script = f"""discrim() {{ printf '%s\\0' "$@"; }}\n{command}"""
    done = subprocess.run(["sh", "-c", script], capture_output=True, text=True, check=True)
    assert done.stderr == ""
    return done.stdout.split("\0")[:-1]


def write(path, X, y, names=None, target="sort"):
    names = names or [f"x{at}" for at in range(X.shape[1])]
    kind = gzip.open if path.suffix == ".gz" else open
    with kind(path, "wt", encoding="utf-8") as handle:
        rows = csv.writer(handle)
        rows.writerow([*names, target])
        rows.writerows([*values, label] for values, label in zip(X.tolist(), y, strict=True))
    return path


@pytest.fixture(scope="module")
def rows():
    X, y = labelled(90, 5)
    return X, np.array(["a", "b", "c"])[y]


@pytest.fixture
def table(tmp_path, rows):
    return write(tmp_path / "rows.csv", *rows)


def figures(text):
    """Return the output of a comparison without its seconds."""
    document = json.loads(text)
    for line in document["lines"]:
        del line["seconds"]
    return document


# --- answers ------------------------------------------------------------------------------------------------------


def test_compare_prints_a_ranked_table_and_the_answer(table):
    code, out, err = typed("compare", table, "--target", "sort", *FAST)
    assert code == 0
    assert out.startswith(("Use ", "Keep your "))
    answer, _, below = out.partition("\nrows: 90 rows × 5 columns, 3 classes; holdout-80-20, 3 splits\n")
    table_lines, _, notes = below.partition("→ recommended.")
    lines = [line.replace("→", " ").split() for line in table_lines.splitlines()[1:]]
    assert "95 % intervals" in notes
    assert {line[0] for line in lines} == {"fisher-lda", "pca", "raw"}
    assert sorted((float(line[3]) for line in lines), reverse=True) == [float(line[3]) for line in lines]
    command = " ".join(answer.replace("\\\n", " ").split())
    assert f"discrim project {table} --target sort --method " in command
    assert max(len(line) for line in out.splitlines() if str(table) not in line) <= 80
    assert "Traceback" not in err


def test_no_figure_of_the_table_is_cut_off_in_a_narrow_terminal(tmp_path, rows):
    X, _ = rows
    y = np.where(np.arange(len(X)) % 4 == 0, "rare", "often")
    path = write(tmp_path / "rows.csv", X, y)
    code, out, _ = typed("compare", path, *FAST[:-4], "--splits", "2", "-j", "1", "--all", COLUMNS="80")
    assert code == 0
    assert "balanced accuracy %" in out
    assert "AUC" in out
    assert "MCC" in out
    assert max(len(line) for line in out.splitlines() if str(path) not in line) <= 80


def test_every_format_gives_the_same_answer(tmp_path, rows, table):
    X, y = rows
    expected = figures(here("compare", table, "-t", "sort", "--json", *FAST)[1])
    assert {line["n_splits"] for line in expected["lines"]} == {3}
    frame = pd.DataFrame(X, columns=[f"x{at}" for at in range(5)]).assign(sort=y)
    frame.to_parquet(tmp_path / "rows.parquet")
    frame.to_feather(tmp_path / "rows.feather")
    frame.to_csv(tmp_path / "rows.tsv", sep="\t", index=False)
    np.savez(tmp_path / "rows.npz", X=X, target=y)
    write(tmp_path / "rows.csv.gz", X, y)
    for ending in ("parquet", "feather", "tsv", "npz", "csv.gz"):
        code, out, _ = here("compare", tmp_path / f"rows.{ending}", "--json", *FAST)
        assert (code, figures(out)) == (0, expected)


def test_quick_json_methods_and_other_scores():
    code, out, _ = here("compare", "iris", "--quick", "--metric", "f1", "--jobs", "1", "--methods", "pca", "--json")
    document = json.loads(out)
    assert code == 0
    assert (document["metric"], document["splits"]) == ("f1", 5)
    judges = {(line["method"], line["classifier"]) for line in document["lines"]}
    partners = {("raw", name) for name in ("logistic", "5-nn", "rbf-svm", "forest")}
    assert judges == {("pca", "rbf-svm"), *partners}  # all columns have strong partners, also in a first look
    assert document["recommendation"]["method"] in ("pca", "raw")
    assert document["lines"][0]["curve"]


def test_skips_are_reported_and_failures_set_the_exit_code(table, monkeypatch):
    code, _, err = here("compare", table, *FAST[2:], "--methods", "lda", "-k", "2,3")
    assert code == 0
    assert "skipped: lda, 3 trials: lda has at most 2 components" in " ".join(err.split())

    def broken(self, *_):
        raise RuntimeError("no luck")

    monkeypatch.setattr(FisherLDA, "fit", broken)
    code, out, err = here("compare", table, *FAST)
    assert code == 1
    assert "failed: fisher-lda, 9 trials: RuntimeError: no luck" in err
    assert " of pca" in " ".join(out.split())  # lines may break anywhere


def test_project_and_apply(tmp_path, rows, table):
    X, y = rows
    out, model, again = tmp_path / "features.csv", tmp_path / "rows.discrim", tmp_path / "new.parquet"
    command = ("project", table, "-t", "sort", "--method", "fisher-lda", "-k", "2", "--out", out, "--model", model)
    code, _, _ = discrim(*command)
    assert code == 0
    features = pd.read_csv(out)
    assert list(features.columns) == ["fisherlda0", "fisherlda1", "sort"]
    scaled = (X - X.mean(axis=0)) / X.std(axis=0)
    expected = FisherLDA(2).fit(scaled, y).transform(scaled)
    np.testing.assert_allclose(features.iloc[:, :2], expected, atol=1e-10)
    new = write(tmp_path / "new.csv", X[:, ::-1], y, names=[f"x{at}" for at in range(4, -1, -1)], target="ignored")
    code, _, err = discrim("apply", model, new, "--out", again)
    assert code == 0
    assert err.splitlines() == [
        f"90 rows × 2 components are in {again}.",
        "Columns that the model does not use are ignored: 'ignored'.",
    ]
    one = tmp_path / "one.csv"
    assert f"90 rows × 1 component, and the labels, are in {one}." in here("project", table, "-k", 1, "--out", one)[2]
    np.testing.assert_allclose(pd.read_parquet(again), expected, atol=1e-10)
    assert type(load(model)[-1]) is FisherLDA


def test_the_default_of_project_is_the_first_method_listed(tmp_path, table):
    first = here("methods")[1].splitlines()[1].split()[0]
    code, _, _ = here("project", table, "--model", tmp_path / "model")
    assert code == 0
    assert type(load(tmp_path / "model")[-1]).__name__.lower() == first.replace("-", "")


def test_ids_missing_cells_loadings_and_every_method_through_project_and_apply(tmp_path, rows):
    X, y = rows
    frame = pd.DataFrame(X, columns=[f"x{at}" for at in range(5)]).assign(sort=y)
    frame.insert(0, "who", [f"row {at}" for at in range(90)])
    frame.loc[[3, 8], "x1"] = np.nan
    path, out, model, weights = (tmp_path / name for name in ("t.csv", "o.csv", "m.discrim", "w.csv"))
    frame.to_csv(path, index=False)
    message = refused("project", path, "--id", "who", "--out", out)
    assert "--impute median" in message
    assert "--drop-missing" in message
    assert "missing_cells=" not in message
    filled = X.copy()
    filled[[3, 8], 1] = np.median(np.delete(X[:, 1], [3, 8]))
    scaled = (filled - filled.mean(axis=0)) / filled.std(axis=0)
    for method in (name for name, one in METHODS.items() if one.build is not None):
        options = ("--id", "who", "--impute", "median", "-m", method, "-k", "1")
        files, linear = ("--out", out, "--model", model), METHODS[method].linear
        if not linear:
            assert "not linear" in refused("project", path, *options, "--loadings", tmp_path / "none.csv")
            assert not (tmp_path / "none.csv").exists()
        code, _, err = here("project", path, *options, *files, *(("--loadings", weights) if linear else ()))
        assert code == 0, err
        features = pd.read_csv(out)
        assert features.columns[[0, -1]].tolist() == ["who", "sort"]
        assert features["who"].tolist() == frame["who"].tolist()
        if linear:
            loadings = pd.read_csv(weights)
            assert loadings["feature"].tolist() == [f"x{at}" for at in range(5)]
            product = scaled @ loadings.iloc[:, 1].to_numpy()
            np.testing.assert_allclose(
                product - product.mean(), features.iloc[:, 1] - features.iloc[:, 1].mean(), atol=1e-8
            )
        code, _, err = here("apply", model, path, "--id", "who", "--out", tmp_path / "new.csv")
        assert code == 0, err
        again = pd.read_csv(tmp_path / "new.csv")
        assert again["who"].tolist() == frame["who"].tolist()
        np.testing.assert_allclose(again.iloc[:, 1], features.iloc[:, 1], atol=1e-12)
    raw, judged = ("project", path, "-m", "raw"), ("--classifier", "5-nn", "--model", model)
    kept = "discrim: --method raw keeps the columns as they are: it has no features or loadings to write."
    fit = "ame a --classifier and a --model"
    assert refused(*raw, "--out", out) == f"{kept} N{fit}, and leave out --out."
    assert refused(*raw, "--model", model) == f"{kept} N{fit}."
    assert refused(*raw, *judged, "--out", out) == f"{kept} Leave out --out."
    assert refused(*raw, *judged, "--out", out, "--loadings", weights) == f"{kept} Leave out --out and --loadings."
    code, _, err = here("project", path, "--drop", "who", "--drop-missing", "--out", out)
    assert (code, len(pd.read_csv(out))) == (0, 88)
    assert "2 rows with missing cells left out." in err


def test_errors_name_options_of_the_command(tmp_path, table):
    here("project", table, "--model", tmp_path / "model")
    (tmp_path / "new.csv").write_text("x0,x1,x2,x3,x4\n1,2,3,4,red\n1,2,3,,5\n")
    message = refused("apply", tmp_path / "model", tmp_path / "new.csv", "--out", tmp_path / "x.csv")
    assert "'red' is not a number" in message
    for word in ("--drop", "one_hot", "one-hot", "="):
        assert word not in message
    (tmp_path / "new.csv").write_text("x0;x1;x2;x3;x4\n1,5;2;3;4;5\n")
    message = refused("apply", tmp_path / "model", tmp_path / "new.csv", "--out", tmp_path / "x.csv")
    assert "--decimal ," in message
    assert "--thousands ," in message
    (tmp_path / "bare.csv").write_text("5.1,3.5,x\n4.9,3.6,y\n4.8,3.1,x\n4.7,3.9,y\n")
    assert "--no-header" in refused("project", tmp_path / "bare.csv", "--out", tmp_path / "x.csv")
    code, _, _ = here("project", tmp_path / "bare.csv", "--no-header", "-k", "1", "--out", tmp_path / "x.csv")
    assert (code, len(pd.read_csv(tmp_path / "x.csv"))) == (0, 4)


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        (("--splits", "0"), "--splits must be at least 1"),
        (("--per-class", "3"), "--per-class must not be set for holdout-80-20; got 3."),
        (("--most-rows", "3"), "--most-rows must be at least 2 for each of 3 classes; got 3."),
        (("--jobs", "0"), "--jobs must be at least 1"),
        (("--protocol", "kfold", "--splits", "90"), "Take fewer folds with --splits 15; or leave out the rows of "
         "small classes with --min-class-size 90; or merge the class"),
        (("--groups", "sorts"), "no column 'sorts' (groups) among its 6. Did you mean 'sort'?"),
    ],
)  # fmt: skip
def test_errors_of_compare_name_its_options(options, expected, table):
    message = refused("compare", table, "--methods", "pca", *options)
    assert expected in message


def test_lists():
    code, out, _ = here("methods")
    assert code == 0
    assert "regularized-lda" in out
    assert "2,000" in out  # rows that NCA is fitted on at most
    code, out, _ = discrim("datasets")
    assert code == 0
    line = next(line for line in out.splitlines() if line.startswith("iris"))
    assert line.split()[:5] == ["iris", "150", "4", "3", "scikit-learn"]
    ready = [line.split()[4] == "scikit-learn" for line in out.splitlines() if re.match(r"\S+ +\d+ +\d+ +\d+ ", line)]
    assert ready == sorted(ready, reverse=True)  # data sets that can be used at once are first
    assert 0 < sum(ready) < len(ready)


@pytest.mark.parametrize("command", ["", "compare", "project", "apply", "methods", "datasets", "reproduce"])
def test_help_has_examples(command):
    code, out, _ = here(*filter(None, [command]), "--help")
    assert code == 0
    assert not command or f"discrim {command}" in out.replace("Usage: discrim", "")


# --- files --------------------------------------------------------------------------------------------------------


def refused(*arguments):
    """The one message of a refusal."""
    code, out, err = here(*arguments)
    assert code == 2
    assert out == ""
    message = [line for line in err.splitlines() if not line.startswith("Labels:")]
    assert message[0].startswith("discrim: ")
    assert not any(line.startswith(("discrim: ", "Traceback")) for line in message[1:])  # one for each complaint
    return "\n".join(message)


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        (b"", "empty"),
        (b"a,b,sort\n", "no rows"),
        (b"a,b,sort\n1,2,x\n1,2\n", "line 3"),
        (b"a,b,sort\n1,2,x\n3,,y\n", "line 3"),
        (b"a,b,sort\n1,2,x\n3,nan,y\n1,1,y\n", "'b'"),
        (b"a,b,sort\n1,2,x\n3,inf,y\n1,1,y\n", "'b'"),
        (b"a,b,sort\n1,2,x\n3,red,y\n1,1,y\n", "red"),
        (b"a,a,sort\n1,2,x\n3,4,y\n1,1,y\n", "columns 1 and 2 are both called 'a'"),
        (b"a,b,sort\n1,2,x\n3,4,x\n", "got only 'x' in 2 rows"),
        (b"a,b,sort\n1,2,x\n", "got only 'x' in 1 row"),
        (b"a,b,sort\n1,2,x\n3,4,y\n", "different labels"),
        (b"a;b;sort\n1,5;2,5;x\n3,5;4,5;y\n1,5;1,5;y\n", "decimal"),
        ("a,größe,sort\n1,2,x\n3,4,y\n1,1,y\n".encode("latin-1"), "encoding"),
        (b"\x00\x01\x02\x03" * 20, "file.csv"),
    ],
)
def test_malformed_files_are_rejected_with_the_position(content, expected, tmp_path):
    path = tmp_path / "file.csv"
    path.write_bytes(content)
    message = refused("compare", path, "--target", "sort")
    assert str(path) in message
    assert expected in message


def test_wrong_names_are_refused_with_the_right_ones(table, tmp_path):
    assert "has no column 'sorte' (target)" in refused("compare", table, "--target", "sorte")
    assert "there is no such file" in refused("compare", tmp_path / "nothing.csv")
    assert "Did you mean 'iris'" in refused("compare", "irs")
    assert "--target sort must not be used with 'iris'" in refused("compare", "iris", "--target", "sort")
    assert "--methods must be known names; got 'pcaa'. Did you mean pca" in refused(
        "compare", table, "--methods", "pcaa"
    )
    for nothing in ("", " ", "pca,"):
        assert "--methods must be known names; got ''. Known names: bayes-error-lda, " in refused(
            "compare", table, "-m", nothing
        )
    assert "--classifiers must be known names; got ''." in refused("compare", table, "-c", "")
    assert "whole numbers separated by commas" in refused("compare", table, "-k", "two")
    assert "must be at most 5" in refused("compare", table, "-k", "6")
    assert "Nothing to write" in refused("project", table)
    assert "-k must be from 1 to 5 for bayes-error-lda" in refused(
        "project", table, "-k", "6", "--out", tmp_path / "x.csv"
    )
    assert "got 0" in refused("project", table, "-k", "0", "--out", tmp_path / "x.csv")
    assert "cannot write '.xlsx'" in refused("project", table, "--out", tmp_path / "x.xlsx")
    assert "The folder for the features does not exist" in refused(
        "project", table, "--out", tmp_path / "missing" / "x.csv"
    )
    kept = tmp_path / "kept.discrim"
    assert "cannot write '.txt'" in refused("project", table, "--model", kept, "--loadings", tmp_path / "x.txt")
    assert not kept.exists()  # refused before anything is written
    assert "got 1 for 'b'" in refused(
        "compare", write(tmp_path / "one.csv", np.eye(5), list("aaaab")), "--target", "sort"
    )


def test_invalid_or_mismatched_models_are_rejected(tmp_path, table, rows):
    assert "is not a model of discrim" in refused("apply", table, table, "--out", tmp_path / "x.csv")
    here("project", table, "--model", tmp_path / "model")
    other = write(tmp_path / "other.csv", rows[0][:, :4], rows[1])
    assert "'x4'" in refused("apply", tmp_path / "model", other, "--out", tmp_path / "x.csv")
    save(FisherLDA(1).fit(*rows), tmp_path / "bare")
    assert "does not say which columns" in refused("apply", tmp_path / "bare", table, "--out", tmp_path / "x.csv")


def test_text_columns_are_named_and_one_hot_takes_them(tmp_path, rows):
    X, y = rows
    frame = pd.DataFrame(X[:, :2], columns=["x0", "x1"])
    frame["colour"] = np.array(["red", "grün", "blue"])[np.arange(90) % 3]
    frame["sort"] = y
    frame.to_csv(tmp_path / "text.csv", index=False)
    message = refused("compare", tmp_path / "text.csv", *FAST)
    assert "'colour'" in message
    assert "one_hot" in message or "one-hot" in message
    code, out, _ = here("compare", tmp_path / "text.csv", "--one-hot", *FAST)
    assert code == 0
    assert "\ntext: 90 rows × 5 columns, 3 classes" in out
    model = tmp_path / "model"
    assert here("project", tmp_path / "text.csv", "--one-hot", "--model", model)[0] == 0
    assert here("apply", model, tmp_path / "text.csv", "--out", tmp_path / "out.csv")[0] == 0
    assert len(pd.read_csv(tmp_path / "out.csv")) == 90


def test_names_and_labels_in_any_script_and_formulas_stay_text(tmp_path, rows):
    X, y = rows
    labels = np.array(["Ωμέγα", "=cmd()", "猫 [bold]"])[np.searchsorted(["a", "b", "c"], y)]
    names = ["größe", "[red]x[/red]", "価格", "a b", "x;y"]
    path = write(tmp_path / "größe [x].csv", X, labels, names=names, target="κλάση")
    code, out, _ = discrim("compare", path, "--target", "κλάση", *FAST)
    assert code == 0
    assert "\ngröße [x]: 90 rows × 5 columns, 3 classes" in out
    code, _, _ = discrim("project", path, "--target", "κλάση", "--out", tmp_path / "out.csv")
    assert code == 0
    assert set(pd.read_csv(tmp_path / "out.csv")["κλάση"]) == {"Ωμέγα", "'=cmd()", "猫 [bold]"}


def test_twenty_thousand_columns(tmp_path):
    X, y = labelled(24, 20_000)
    path = write(tmp_path / "wide.csv.gz", X.round(3), [f"class {label}" for label in y])
    options = ("--target", "sort", "-k", "2", "--splits", "2", "--jobs", "1", "--classifiers", "svm")
    code, out, _ = discrim("compare", path, "--methods", "regularized-lda,margin-pca-mean", *options)
    assert code == 0
    assert "\nwide: 24 rows × 20000 columns" in out
    model = tmp_path / "wide.discrim"
    code, _, _ = discrim("project", path, "--target", "sort", "--model", model, "--out", tmp_path / "out.csv")
    assert code == 0
    assert len(pd.read_csv(tmp_path / "out.csv")) == 24


# --- ends of runs -------------------------------------------------------------------------------------------------

LONG = ["--methods", "fisher-lda,margin-pca-mean", "-k", "1,2,3", "-c", "svm,naive-bayes", "--splits", "40"]
N_TRIALS = (3 * 3 * 2 + 6 + 1) * 40  # at most: hopeless reductions are dropped after five splits


def n_results(store):
    """Return the number of rows that another process has committed."""
    with (
        contextlib.suppress(sqlite3.Error),
        contextlib.closing(sqlite3.connect(f"file:{store}?mode=ro", uri=True)) as db,
    ):
        return db.execute("SELECT count(*) FROM results").fetchone()[0]
    return 0


def trials(store):
    """Return every trial of a store with its outcome, in order; times and versions are a matter of the run."""
    with contextlib.closing(sqlite3.connect(f"file:{store}?mode=ro", uri=True)) as db:
        found = db.execute("SELECT trial, status, reason, scores FROM results ORDER BY trial").fetchall()
    timed = [(*outcome, json.loads(scores)) for *outcome, scores in found]
    return [(*outcome, {name: scores[name] for name in scores if "seconds" not in name}) for *outcome, scores in timed]


def wait_for(process, store, count):
    deadline = time.monotonic() + 120
    while n_results(store) < count and process.returncode is None and time.monotonic() < deadline:
        time.sleep(0.02)
    assert n_results(store) >= count


@pytest.fixture(scope="module")
def whole(tmp_path_factory, rows):
    """Return the figures and the trials of the long run, never stopped."""
    folder = tmp_path_factory.mktemp("whole")
    table, store = write(folder / "rows.csv", *rows), folder / "results.sqlite"
    code, out, _ = here("compare", table, *LONG, "--jobs", "1", "--json", "--store", store)
    assert code == 0
    return figures(out), trials(store)


def test_killed_at_random_moments_and_resumed_the_table_is_the_same(tmp_path, table, whole):
    store, moments, kept = tmp_path / "results.sqlite", random.Random(5), 0
    for jobs in (1, 2):
        process = Command("compare", table, *LONG, "--store", store, "--jobs", jobs, "--json")
        wait_for(process, store, kept + moments.randint(20, 150))
        process.kill()
        process.communicate()
        assert process.returncode == -signal.SIGKILL
        assert n_results(store) >= kept
        kept = n_results(store)
    assert 0 < kept < len(whole[1]) <= N_TRIALS
    code, out, err = here("compare", table, *LONG, "--store", store, "--jobs", 1, "--json")
    assert code == 0
    assert figures(out) == whole[0]
    assert trials(store) == whole[1]  # the same trials, none missing, none more, with the same scores
    assert f"{len(whole[1])} results are kept in {store}." in err


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143), (signal.SIGHUP, 129)])
def test_a_signal_stops_the_run_and_finished_results_are_shown_and_stored(number, code, tmp_path, table, whole):
    store = tmp_path / "results.sqlite"
    process = Command("compare", table, *LONG, "--store", store, "--jobs", 2, before=os.setsid)
    wait_for(process, store, 60)
    os.killpg(process.pid, number) if number == signal.SIGINT else process.send_signal(number)
    out, err = process.communicate(timeout=60)
    assert process.returncode == code
    assert "Traceback" not in err
    assert "judged by" in out or "Keep your" in out
    kept = n_results(store)
    assert re.search(r"^\d+ of 40 splits were finished", err, re.MULTILINE)
    assert f"All finished trials are kept in {store}: the same command continues from there." in err
    assert 60 <= kept < N_TRIALS
    again, out, _ = discrim("compare", table, *LONG, "--store", store, "--jobs", 1, "--json")
    assert (again, figures(out)) == (0, whole[0])
    assert trials(store) == whole[1]


@pytest.fixture
def stops_after_a_trial(monkeypatch):
    @contextlib.contextmanager
    def stopping_bar(what):
        def stop(done, total):
            if done:
                raise KeyboardInterrupt

        yield stop

    monkeypatch.setattr("discrim.cli.comparing.progress_bar", stopping_bar)


@pytest.mark.usefixtures("stops_after_a_trial")
def test_a_stop_in_the_first_split_reports_the_stored_trials(tmp_path, table):
    store, page = tmp_path / "results.sqlite", tmp_path / "page.html"
    code, out, err = here("compare", table, *FAST, "--store", store, "--html", page)
    assert (code, out) == (130, "")
    assert not page.exists()
    assert f"No report was written to {page}" in err
    kept = n_results(store)
    assert kept > 0
    assert "0 of 3 splits were finished" in err
    assert f"All finished trials are kept in {store}: the same command continues from there." in err


@pytest.mark.usefixtures("stops_after_a_trial")
def test_a_stop_without_a_store_is_reported_in_short_lines(table):
    code, _, err = here("compare", table, *FAST)
    assert code == 130
    assert "Nothing was kept: with --store FILE, the same command resumes where it stopped." in err
    assert max(map(len, err.splitlines())) <= 80


def test_workers_do_not_outlive_a_killed_run(tmp_path, table):
    store = tmp_path / "results.sqlite"
    process = Command("compare", table, *LONG, "--store", store, "--jobs", 2, before=os.setsid)
    wait_for(process, store, 20)
    workers = children(process.pid)
    assert len(workers) >= 2
    process.kill()
    process.communicate()
    deadline = time.monotonic() + 120
    while any(alive(worker) for worker in workers) and time.monotonic() < deadline:
        time.sleep(0.1)
    assert not any(alive(worker) for worker in workers)


def children(parent):
    """Processes that the parent started."""
    with open(f"/proc/{parent}/task/{parent}/children") as handle:
        return [int(one) for one in handle.read().split()]


def alive(process):
    try:
        with open(f"/proc/{process}/stat") as handle:
            return handle.read().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def test_a_second_run_is_rejected_or_waits(tmp_path, table, whole):
    store = tmp_path / "results.sqlite"
    first = Command("compare", table, *LONG, "--store", store, "--jobs", 1, "--json")
    wait_for(first, store, 1)
    first.send_signal(signal.SIGSTOP)  # otherwise it could end before the others start
    waiting = Command("compare", table, *LONG, "--store", store, "--jobs", 1, "--json", "--wait", 100)
    code, out, err = discrim("compare", table, *LONG, "--store", store, "--jobs", 1)
    first.send_signal(signal.SIGCONT)
    assert (code, out) == (2, "")
    assert f"{store} must not be in use" in err
    for process in (first, waiting):
        out, _ = process.communicate(timeout=120)
        assert process.returncode == 0
        assert figures(out) == whole[0]


def test_the_lock_is_held_between_the_passes_of_a_comparison(tmp_path, table, monkeypatch):
    store, refusals = tmp_path / "results.sqlite", []

    def hopeless_while_others_try(*given):
        with pytest.raises(StoreInUseError) as refusal, run_lock(store):
            pass
        refusals.append(refusal)
        return hopeless(*given)

    monkeypatch.setattr("discrim.evaluation.compare.hopeless", hopeless_while_others_try)
    assert here("compare", table, *FAST, "--splits", 10, "--store", store)[0] == 0
    assert len(refusals) == 1
    with run_lock(store):  # given back at the end
        assert store.exists()


@pytest.mark.parametrize(
    "command",
    [
        ["discrim", "project", "rows.csv", "--drop", "a -b --c" * 12, "--target", "it's", "--out", "x.csv"],
        ["discrim", "project", "a folder -- of rows/" * 6, "--decimal", ",", "--id", "-", "--target", "$HOME `x`"],
        ["discrim", "apply", "model.discrim", "new.csv"],
    ],
)
def test_a_wrapped_command_is_the_same_for_a_shell(command):
    assert as_in_a_shell(in_lines(shlex.join(command))) == command[1:]


@pytest.mark.parametrize(
    ("command", "expected"),
    [
        (["compare", "{table}", "--html", "{table}"], "--html {table} would overwrite the data"),
        (["compare", "{table}", "--store", "{table}"], "--store {table} would overwrite the data"),
        (["project", "{table}", "--out", "{table}"], "--out {table} would overwrite the data"),
        (["project", "{table}", "--model", "{table}"], "--model {table} would overwrite the data"),
        (["project", "{table}", "--out", "x.csv", "--model", "x.csv"], "--model x.csv would overwrite --out"),
        (["apply", "{table}", "{table}", "--out", "{table}"], "--out {table} would overwrite"),
        (["report", "{table}", "--html", "{table}"], "--html {table} would overwrite the store"),
    ],
    ids=lambda given: " ".join(given).replace("{table}", "") if isinstance(given, list) else "",
)
def test_inputs_are_never_overwritten(command, expected, table):
    before = table.read_bytes()
    assert expected.format(table=table) in refused(*[word.format(table=table) for word in command])
    assert table.read_bytes() == before


def test_the_next_step_reads_the_table_in_the_same_way(tmp_path, rows):
    X, y = rows
    path = tmp_path / "odd.csv"
    lines = ["label;a;b;c;kind"]
    for at, (row, label) in enumerate(zip(X, y, strict=True)):
        cells = [f"{value:.6f}".replace(".", ",") for value in row[:3]]
        lines.append(";".join([str(label), *cells, "xy"[at % 2]]))
    path.write_text("\n".join(lines))
    options = ["--target", "label", "--decimal", ",", "--one-hot", "--drop", "c"]
    code, out, _ = here("compare", path, *options, "--methods", "fisher-lda", "-c", "5-nn", "-k", "1", "--splits", "3")
    assert code == 0
    words, then = printed_commands(out)
    assert words[:2] == ["project", str(path)]
    assert words[words.index("--out") + 1] == "features.csv"
    words[words.index("--out") + 1] = str(tmp_path / "features.csv")
    words[words.index("--model") + 1] = str(tmp_path / "model.discrim")
    assert here(*words)[0] == 0
    assert len((tmp_path / "features.csv").read_text().splitlines()) == len(X) + 1
    assert then[:3] == ["apply", "model.discrim", "new.csv"]
    words = then
    words[1:3] = [str(tmp_path / "model.discrim"), str(path)]
    words[words.index("--out") + 1] = str(tmp_path / "predicted.csv")
    assert here(*words)[0] == 0
    first = (tmp_path / "predicted.csv").read_text().splitlines()[0]
    assert first.split(",")[-3:] == ["predicted", "probability", "unusual"]


@pytest.mark.parametrize(("option", "value"), [("--delimiter", ",,"), ("--encoding", "nonsense")])
def test_an_invalid_reading_option_is_named(option, value, table):
    message = refused("compare", table, option, value)
    assert option[2:] in message
    assert repr(value) in message


def test_one_split_has_no_interval_and_null_in_json(table):
    code, out, _ = here("compare", table, *FAST, "--splits", "1", "--json")
    assert code == 0
    document = json.loads(out, parse_constant=lambda name: pytest.fail(f"{name} is no JSON"))
    assert document["lines"][0]["low"] is None


def test_a_file_that_is_not_a_store_is_rejected_and_unchanged(tmp_path, table):
    path = tmp_path / "notes.txt"
    path.write_text("not a store")
    assert f"{path} must be a store of discrim" in refused("compare", table, *FAST, "--store", path)
    assert path.read_text() == "not a store"
    assert "folder for the store does not exist" in refused("compare", table, *FAST, "--store", tmp_path / "a" / "b")
    with run_lock(tmp_path / "held"):
        assert "must not be in use" in refused("compare", table, *FAST, "--store", tmp_path / "held")


def test_a_full_disk_ends_the_run_with_the_path_and_stored_results_stay(tmp_path, table, whole):
    store = tmp_path / "results.sqlite"
    full = partial(limit_files, 120_000)
    code, out, err = discrim("compare", table, *LONG, "--store", store, "--jobs", 1, before=full)
    assert code == 2
    assert str(store) in err
    assert "disk" in err or "space" in err
    kept = n_results(store)
    assert 0 < kept < N_TRIALS
    code, out, _ = discrim("compare", table, *LONG, "--store", store, "--jobs", 1, "--json")
    assert (code, figures(out)) == (0, whole[0])


def test_a_full_disk_leaves_no_partial_file(tmp_path, table):
    out, model = tmp_path / "out" / "features.csv", tmp_path / "out" / "model.discrim"
    out.parent.mkdir()
    for arguments in (("--out", out), ("--model", model)):
        code, _, err = discrim("project", table, *arguments, before=partial(limit_files, 500))
        assert code == 2
        assert f"{arguments[1]}: no space is left" in err
        assert os.strerror(errno.EFBIG) not in err
    assert list(out.parent.iterdir()) == []


# --- other output ---------------------------------------------------------------------------------------------------


def test_help_and_version_do_not_import_scikit_learn():
    code, out, err = typed("--help", PYTHONPROFILEIMPORTTIME="1")
    assert code == 0
    assert "Recommend a reduction" in out
    assert "sklearn" not in err
    assert here("--version")[1].startswith("discrim ")


def test_imports_of_a_command_leave_the_garbage_collector_on():
    application(["apply"])
    assert gc.isenabled()


def test_rows_of_a_group_stay_together_and_the_column_is_not_a_feature(tmp_path, rows):
    X, y = rows
    patients = np.array([f"p{at % 15}" for at in range(len(y))])
    frame = pd.DataFrame(X, columns=[f"x{at}" for at in range(5)]).assign(
        patient=patients, row=np.arange(len(y)), sort=y
    )
    frame.to_csv(tmp_path / "grouped.csv", index=False)
    for more in (["--drop", "row"], ["--id", "row"]):
        code, out, err = here("compare", tmp_path / "grouped.csv", *FAST, "--groups", "patient", *more)
        assert err.count("Labels: ") == 1  # also if the file is read a second time, for groups and ids
        assert code == 0
        assert "\ngrouped: 90 rows × 5 columns, 3 classes" in out
    assert "has no column 'doctor'" in refused("compare", tmp_path / "grouped.csv", *FAST, "--groups", "doctor")
    beside_ids = refused("compare", tmp_path / "grouped.csv", *FAST, "--groups", "doctor", "--id", "patient")
    assert "has no column 'doctor' (groups)" in beside_ids
    assert "--groups must not be used" in refused("compare", "iris", "--groups", "x")


def test_a_missing_folder_is_reported_before_fitting_and_writing(tmp_path, table):
    model, gone = tmp_path / "m.discrim", tmp_path / "gone"
    for option, what in (("--out", "features"), ("--loadings", "weights"), ("--model", "model")):
        place = gone / ("x.discrim" if option == "--model" else "x.csv")
        given = {"--model": model, option: place}
        words = [word for pair in given.items() for word in pair]
        assert f"{place}: The folder for the {what} does not exist." in refused("project", table, *words)
        assert not model.exists()
    assert here("project", table, "--model", model)[0] == 0
    expected = refused("apply", model, table, "--out", gone / "x.csv")
    assert "The folder for the features does not exist." in expected


def test_the_report_is_written_before_a_terminal_can_fail(tmp_path, table):
    html = tmp_path / "report.html"
    process = Command("compare", table, *FAST, "--html", html)
    process.stdout.close()  # as `| head -0` does
    err = process.stderr.read()
    process.wait(timeout=120)
    assert html.read_text(encoding="utf-8").rstrip().endswith("</html>")
    assert "Traceback" not in err


@pytest.mark.skipif(sys.platform == "win32", reason="a shell's >&-")
def test_the_report_is_written_without_a_terminal(tmp_path, table):
    html = tmp_path / "report.html"
    command = [sys.executable, "-m", "discrim", "compare", str(table), *FAST, "--html", str(html)]
    done = subprocess.run(["sh", "-c", '"$@" <&- >&- 2>&-', "sh", *command], check=False)
    assert done.returncode == 0
    assert html.read_text(encoding="utf-8").rstrip().endswith("</html>")


def test_a_terminal_that_lacks_a_character_shows_another(tmp_path, rows):
    X, y = rows
    path = write(tmp_path / "größe ✓.csv", X, y)
    code, out, _ = discrim("compare", path, *FAST, PYTHONIOENCODING="cp1252")
    assert code == 0
    assert "judged by" in out or "Keep your" in out
    code, out, _ = discrim("compare", path, *FAST, "--json", PYTHONIOENCODING="ascii")
    assert code == 0
    assert json.loads(out)["data"] == "größe ✓"


def test_a_report_never_overwrites_the_store_or_its_lock(tmp_path, table):
    store = tmp_path / "results.sqlite"
    here("compare", table, *FAST, "--store", store)
    lock = tmp_path / "results.sqlite.lock"
    lock.touch()
    expected = "would overwrite the store's lock"
    assert expected in refused("compare", table, *FAST, "--store", store, "--html", lock)
    assert expected in refused("report", store, "--html", lock)


def test_a_report_never_overwrites_a_store_that_is_still_to_be_written(tmp_path, table):
    store = tmp_path / "new.sqlite"
    assert "would overwrite --store" in refused("compare", table, *FAST, "--store", store, "--html", store)
    assert not store.exists()


def test_nothing_is_written_into_a_folder_that_is_the_table(tmp_path, table):
    parts, model = tmp_path / "parts", tmp_path / "model.discrim"
    parts.mkdir()
    part = shutil.copy(table, parts / "a.csv")
    before = part.read_bytes()
    assert here("project", table, "--model", model)[0] == 0
    for place in (part, parts / "new.csv", parts / "deeper" / "new.html"):
        inside = f"{place} would become a part of the data, a folder"
        for option in ("--out", "--model", "--loadings"):
            assert inside in refused("project", parts, option, place)
        assert inside in refused("apply", model, parts, "--out", place)
        for option in ("--html", "--store"):
            assert inside in refused("compare", parts, *FAST, option, place)
    assert [one.name for one in parts.iterdir()] == ["a.csv"]
    assert part.read_bytes() == before


@pytest.mark.parametrize("method", ["max-margin-shift", "kernel-bayes-error-lda", "nca"])
def test_methods_that_need_all_rows_are_refused_for_parts(tmp_path, table, method):
    parts = tmp_path / "parts"
    parts.mkdir()
    shutil.copy(table, parts / "a.csv")
    found = refused("project", parts, "--out", tmp_path / "out", "--method", method)
    assert f"because {parts} is read in parts; got {method}." in found


def test_the_shell_completes_files_data_sets_and_columns(table, monkeypatch):
    monkeypatch.chdir(table.parent)
    assert "rows.csv" in names_and_files("ro")
    assert "iris" in names_and_files("ir")
    assert f"{table.parent}/rows.csv" in names_and_files(f"{table.parent}/r")
    context = SimpleNamespace(params={"data": str(table)})
    assert columns_of_data(context, "s") == ["sort"]
    assert columns_of_data(SimpleNamespace(params={"data": "nothing.csv"}), "") == []
    pd.read_csv(table).to_parquet("rows.parquet")
    assert columns_of_data(SimpleNamespace(params={"data": "rows.parquet"}), "x") == [f"x{at}" for at in range(5)]


def test_recall_and_the_largest_class_are_printed_below_the_answer(table):
    code, out, _ = here("compare", table, *FAST)
    assert code == 0
    text = " ".join(out.split())
    found = re.search(r"Recall on held-out rows: (\w) (\d+) %, (\w) (\d+) %, (\w) (\d+) %\. Predicting", text)
    assert sorted(found.groups()[::2]) == ["a", "b", "c"]
    shares = [int(share) for share in found.groups()[1::2]]
    assert shares == sorted(shares)  # the worst first
    assert shares[-1] <= 100
    assert "Predicting the largest class for every row has accuracy 50.0 %." in text


def test_features_overwrite_only_folders_and_tables(table, tmp_path):
    kept, taken, loop = tmp_path / "kept.discrim", tmp_path / "taken", tmp_path / "loop.csv"
    assert here("project", table, "--model", kept)[0] == 0
    taken.write_text("precious")
    loop.symlink_to("loop.csv")
    parts = tmp_path / "parts"
    parts.mkdir()
    shutil.copy(table, parts / "a.csv")
    for command in (("apply", kept), ("project",)):
        for out in (taken, "/dev/full"):
            assert f"{out}: cannot write a file whose name has no ending" in refused(*command, table, "--out", out)
            assert f"{out}: the features of {parts} become a folder" in refused(*command, parts, "--out", out)
        assert f"{loop}: this link leads back to itself." in refused(*command, table, "--out", loop)
    assert taken.read_text() == "precious"
    assert loop.is_symlink()


def test_a_component_and_a_column_of_one_name_are_refused(tmp_path):
    table = tmp_path / "t.csv"
    pd.DataFrame({"a": [1.0, 2, 4, 3], "b": [0.5, 3, 1, 1], "pca0": list("xyxy")}).to_csv(table, index=False)
    out = tmp_path / "features.csv"
    for place in (out, tmp_path / "folder"):
        code, _, err = here("project", table, "-m", "pca", "-t", "pca0", "--out", place)
        assert code == 2
        assert "Output columns must have different names; got 'pca0' twice" in err
        assert not place.exists()
    model = tmp_path / "m.discrim"
    assert here("project", table, "-m", "pca", "--model", model)[0] == 0
    assert "got 'pca0' twice" in refused("apply", model, table, "--id", "pca0", "--out", out)
