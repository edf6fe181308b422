"""discrim compare --html and discrim report on the command line."""

import csv

import pytest
from pages import trees
from typer.testing import CliRunner

from discrim.cli import application

FAST = ["--methods", "fisher-lda", "-k", "1,2", "--classifiers", "5-nn", "--splits", "3", "--jobs", "1"]

APP = application()


def discrim(*arguments):
    ran = CliRunner().invoke(APP, [str(one) for one in arguments], catch_exceptions=False, env={"COLUMNS": "120"})
    return ran.exit_code, ran.stdout, ran.stderr


def write(path, table):
    with open(path, "w", encoding="utf-8", newline="") as handle:
        lines = csv.writer(handle)
        lines.writerow([*table.feature_names, table.target])
        lines.writerows([*row, label] for row, label in zip(table.X.tolist(), table.y.tolist(), strict=True))
    return path


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A table, a store of results on it and on iris, and the report of the first."""
    folder = tmp_path_factory.mktemp("reports")
    table = write(folder / "wood.csv", trees(60, 4))
    kept = ["--store", folder / "kept.sqlite"]
    code, _, output = discrim("compare", table, "--target", "tree", *FAST, *kept, "--html", folder / "wood.html")
    assert code == 0
    assert f"The report is in {folder / 'wood.html'}." in output
    assert discrim("compare", "iris", *FAST, *kept)[0] == 0
    return folder


def test_compare_writes_its_report(folder):
    text = (folder / "wood.html").read_text(encoding="utf-8")
    assert 'data-chart="map"' in text
    assert f"project</span> <span>{folder / 'wood.csv'}</span> <span>--target</span> <span>tree</span>" in text


def test_a_store_makes_a_report_of_all_its_data_sets(folder):
    code, _, output = discrim("report", folder / "kept.sqlite", "--html", folder / "all.html")
    assert code == 0
    assert "wood: without pictures of the rows. A store keeps results, not the data." in output
    assert "iris: without" not in output  # which is in the catalogue, and on every machine
    text = (folder / "all.html").read_text(encoding="utf-8")
    assert text.count('data-chart="map"') == 1
    assert 'data-chart="ranks"' in text


def test_the_data_can_be_given_with_the_store(folder):
    given = ["--data", folder / "wood.csv", "--target", "tree"]
    code, _, output = discrim("report", folder / "kept.sqlite", *given, "--html", folder / "all.html", "--metric", "f1")
    assert (code, "without pictures" in output) == (0, False)
    text = (folder / "all.html").read_text(encoding="utf-8")
    assert text.count('data-chart="map"') == 2
    assert "mean F measure" in text


def test_wrong_data_and_wrong_stores_are_named(folder, tmp_path):
    store = folder / "kept.sqlite"
    other = write(tmp_path / "wood.csv", trees(60, 4, seed=5))
    code, _, output = discrim("report", store, "--data", other, "-t", "tree", "--html", tmp_path / "x.html")
    assert code == 0
    assert "differ from the rows that these results were computed on" in output
    unknown = write(tmp_path / "meadow.csv", trees(60, 4))
    code, _, output = discrim("report", store, "--data", unknown, "-t", "tree")
    assert code == 2
    assert "no results on meadow. It has results on: iris, wood." in output
    code, _, output = discrim("report", tmp_path / "none.sqlite")
    assert code == 2
    assert "There is no store of results" in output
    code, _, output = discrim("report", store, "--metric", "auc")
    assert code == 2
    assert "must be used with two classes; got 3" in output
    code, _, output = discrim("report", store, "--metric", "luck", "--html", tmp_path / "luck.html")
    assert code == 2
    assert "luck" in output
    assert not (tmp_path / "luck.html").exists()


@pytest.mark.parametrize(
    ("place", "words"), [("nowhere/x.html", "folder for the report does not exist"), (".", "not a folder")]
)
def test_an_invalid_report_path_is_rejected_before_any_fit(folder, tmp_path, place, words, monkeypatch):
    monkeypatch.setattr("discrim.cli.comparing.compared", None)
    for command in (["report", folder / "kept.sqlite"], ["compare", "iris"]):
        code, _, output = discrim(*command, "--html", tmp_path / place)
        assert code == 2
        assert words in output


def test_help_has_examples():
    for command in ("report", "compare"):
        code, output, _ = discrim(command, "--help")
        assert code == 0
        assert "--html" in output
        assert f"discrim {command} " in output.partition("Examples")[2]
