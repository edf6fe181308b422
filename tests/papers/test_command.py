"""`discrim reproduce` as a command."""

import numpy as np
import pytest
from typer.testing import CliRunner

from discrim.cli import application, screen
from discrim.papers.page import figure_charts
from discrim.papers.study import study

APP = application()


def reproduce(*arguments, **environment):
    result = CliRunner().invoke(APP, ["reproduce", *map(str, arguments)], catch_exceptions=False, env=environment)
    return result.exit_code, result.stdout, result.stderr


@pytest.fixture
def nowhere(tmp_path, monkeypatch):
    """No folder of data sets, an empty cache, and a screen of one width, whoever made it."""
    monkeypatch.setattr(screen.out, "_width", 140)
    monkeypatch.delenv("DISCRIM_DATA", raising=False)
    monkeypatch.setattr("discrim.tables.catalogue.cache_folder", lambda: tmp_path)


def test_wrong_names_are_refused_with_the_right_ones(nowhere):
    code, out, err = reproduce("maximum-margin-pcaa")
    assert (code, out) == (2, "")
    assert "study must be a known name; got 'maximum-margin-pcaa'. Did you mean maximum-margin-pca or " in err
    code, _, err = reproduce("maximum-margin-pca", "--table", "14")
    assert code == 2
    assert "--table and --dataset must be one of 4 (ionosphere)" in err
    code, _, err = reproduce("max-margin-data-shifting", "--table", "2")
    assert code == 2
    assert "table 2 has TRECVID2003, whose data are not public." in err
    for names in ((), ("bayes-error-pca", "--study", "own.toml")):
        code, _, err = reproduce(*names)
        assert code == 2
        assert "Exactly one of PAPER (bayes-error-pca, " in err


def test_data_sets_that_are_not_here_are_left_out_and_named(nowhere, tmp_path):
    code, out, err = reproduce("bayes-error-pca", "--splits", "1", "--jobs", "1", "--store", tmp_path / "kept")
    assert code == 0
    assert "skipped: pima: " in err
    assert "Table II, wdbc" in out  # included in scikit-learn
    assert "pima" not in out
    code, _, err = reproduce("bayes-error-pca", "--dataset", "pima")
    assert code == 2
    assert "None of the data sets is on this machine." in err


def test_the_table_has_the_printed_figure_ours_and_the_difference(nowhere, tmp_path):
    store = tmp_path / "kept"
    code, out, _ = reproduce("bayes-error-pca", "-d", "wdbc", "--splits", "2", "--jobs", "1", "--store", store)
    assert code == 0
    cells = study("bayes-error-pca").part("II", "wdbc").tables[0].cells
    lines = [line for line in out.splitlines() if " ± " in line]
    assert len(lines) == len(cells)
    assert "Table II, wdbc: accuracy" in out
    for line, cell in zip(lines, cells, strict=True):
        figures = line.partition(f" {cell.classifier} ")[2].replace("!", "").split()
        printed, ours, _, _, off, *_ = figures
        assert float(printed) == cell.printed
        assert float(off) == pytest.approx(float(ours) - float(printed), abs=0.011)
    assert f"In total: {len(lines)} of {len(lines)} cells (100%) within 2 points of print" in out


def test_claims_are_tested_by_both_conventions(nowhere, tmp_path):
    store = tmp_path / "kept"
    command = ("bayes-error-pca", "-d", "wdbc", "--splits", "3", "-j", "1", "--store", store)
    (_, valid, _), (code, out, _) = reproduce(*command, "--valid"), reproduce(*command, "--claims")
    assert code == 0
    assert valid != out
    _, old_name, err = reproduce(*command, "--honest")
    assert old_name == valid
    assert "--honest is deprecated" in err
    for answer in (out, valid):
        words = " ".join(answer.split())
        assert " of 4 comparisons with the baseline are significantly better and " in words
        assert "The one-sided sign test, which assumes independent splits, finds " in words


def test_failed_trials_set_the_exit_code(nowhere, tmp_path, monkeypatch):
    def broken(self, *_):
        raise RuntimeError("no luck")

    monkeypatch.setattr("discrim.estimators.pca.BayesErrorPCA.fit", broken)
    command = ("bayes-error-pca", "-d", "wdbc", "--splits", "2", "-j", "1", "--store", tmp_path / "kept")
    for options, n_failed in (((), 16), (("--valid",), 8)):
        code, _, err = reproduce(*command, *options)
        assert code == 1
        assert f"{n_failed} trials failed and are missing from these means." in err


OWN = """
title = "Mine"
protocol = "holdout-50-50"
splits = 2
tolerance = 100.0
[methods]
"MMPCA" = "margin-pca-mean"
[classifiers]
"NB" = "naive-bayes"
[[tables]]
name = "A"
dataset = "mine.csv"
cells = [["MMPCA", 1, "NB", 70.0], ["MMPCA", 2, "NB", 70.0]]
"""


def test_a_cell_without_a_result_has_a_reason_and_sets_the_exit_code(nowhere, tmp_path):
    rows = "".join(f"{i},{2 * i},{i % 2}\n" for i in range(20))  # of rank 1
    (tmp_path / "mine.csv").write_text("a,b,class\n" + rows)
    (tmp_path / "own.toml").write_text(OWN)
    code, out, _ = reproduce("--study", tmp_path / "own.toml", "-j", "1")
    assert code == 1
    assert "MMPCA, K = 2, NB, accuracy: no result: ValueError: " in out
    assert "In total: 1 of 2 cells (50%) within 100 points of print" in out
    assert "1 cell without a result." in out
    assert "nan" not in out
    (tmp_path / "own.toml").write_text(OWN.replace(', ["MMPCA", 2, "NB", 70.0]', ""))
    assert reproduce("--study", tmp_path / "own.toml", "-j", "1")[0] == 0


def test_a_page_is_written_and_refused_before_the_run_where_it_cannot_be(nowhere, tmp_path):
    page = tmp_path / "page.html"
    code, _, err = reproduce("lda-refinement", "--table", "Example 1", "-j", "1", "--html", page)
    assert code == 0
    assert f"The page is in {page}." in err
    assert "0.1353" in page.read_text(encoding="utf-8")
    for options, words in (
        (("--claims", "--html", page), "--html must be used without --claims and --valid."),
        (("--html", tmp_path), "A report is a file, not a folder"),
        (("--store", tmp_path / "page.html", "--html", page), "would overwrite the store"),
    ):
        code, _, err = reproduce("bayes-error-pca", "-d", "wdbc", *options)
        assert code == 2
        assert words in err


@pytest.mark.parametrize(
    ("paper", "options", "title", "code"),
    [
        ("maximum-margin-pca", ("-t", "5", "--splits", "1"), "Table 5, sonar", 0),
        ("maximum-margin-pca", ("-f", "4", "--splits", "2"), "Figure 4, ionosphere", 0),
        ("max-margin-data-shifting", ("-t", "1", "-d", "yale", "--splits", "1"), "Table 1, yale", 0),
        ("lda-refinement", ("-t", "3", "-d", "hepatitis", "--splits", "1"), "Table 3, hepatitis", 0),
        # one of its six columns is the sum of two others: six components are all that there are
        ("bayes-error-pca", ("-t", "II", "-d", "vertebral_2c", "--splits", "1"), "Table II, vertebral_2c", 0),
    ],
)
def test_each_study_runs_on_its_smallest_set(paper, options, title, code, data_folder, tmp_path):
    page = tmp_path / "page.html"
    found, out, _ = reproduce(paper, *options, "-j", "1", "--html", page)
    assert found == code
    assert title in out
    assert title in page.read_text(encoding="utf-8")
    assert ("without a result" in out) == bool(code)


def test_the_refinement_example_matches_the_printed_digits(nowhere):
    code, out, _ = reproduce("lda-refinement", "--table", "Example 1", "-j", "1")
    assert code == 0
    figures = [line.split()[-4:-2] for line in out.splitlines() if line.startswith("rows ")]
    assert figures == [["97.00", "97.00"], ["98.00", "98.00"], ["0.1276", "0.1276"], ["0.1353", "0.1353"]]


@pytest.mark.parametrize(
    ("paper", "figure", "n_charts"),
    [("bayes-error-pca", "1", 3), ("bayes-error-pca", "2", 3), ("lda-refinement", "1", 2), ("lda-refinement", "2", 1),
     ("pca-lda-lecture", "projection", 1)],
)  # fmt: skip
def test_figures_of_rows_are_drawn(paper, figure, n_charts, nowhere, tmp_path):
    page = tmp_path / "page.html"
    assert reproduce(paper, "--figure", figure, "-j", "1", "--html", page)[0] == 0
    part = study(paper).part(figure=figure)
    charts = list(figure_charts(part, part.tables[0], []))
    assert len(charts) == n_charts
    for name, chart in charts:
        assert all(np.isfinite(mark.x).all() and np.isfinite(mark.y).all() for mark in chart.marks), name


def test_the_merged_space_of_the_papers_example_is_the_printed_one():
    """u1 = 3.5563 x1 but for the normalisation, and the line u1 + u2 = c."""
    part = study("lda-refinement").part(figure="2")
    ((_, chart),) = figure_charts(part, part.tables[0], [])
    rows = part.rows_of(part.tables[0])
    scale = np.concatenate([mark.x for mark in chart.marks if mark.kind == "points"])
    assert sorted(scale) == pytest.approx(sorted(3.5563 * rows.X[:, 0]), rel=1e-3) or sorted(-scale) == pytest.approx(
        sorted(3.5563 * rows.X[:, 0]), rel=1e-3
    )
    line = next(mark for mark in chart.marks if mark.name == "LDA")
    assert np.abs(line.x + line.y) == pytest.approx([16.6631] * 2, rel=1e-3)


def test_a_figure_is_a_table_without_printed_values(nowhere, tmp_path):
    code, out, _ = reproduce("bayes-error-pca", "--figure", "11", "--splits", "1", "-j", "1", "--store", tmp_path / "s")
    assert code == 0
    assert sum(line.rstrip().endswith("–") for line in out.splitlines()) == 8 * 30  # no reference either
    assert "Figure 11, wdbc" in out
