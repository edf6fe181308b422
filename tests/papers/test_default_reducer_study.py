"""Study of the default reducer: its tables match its trials, and are written between the markers of the page."""

import sys

import default_reducer_study
import numpy as np
import pytest
import study_parts

from discrim.evaluation.results import Cell
from discrim.evaluation.store import Store
from discrim.tables import catalogue

BEGIN, END = "<!-- figures: begin -->", "<!-- figures: end -->"


@pytest.fixture(scope="module")
def script():
    """The script with fewer methods."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(default_reducer_study, "OTHERS", ("regularized-lda", "margin-subspace", "pca", "pls"))
        patch.setattr(default_reducer_study, "SLOW", ("pls",))
        patch.setattr(default_reducer_study, "COUNTS", (1, 3))
        yield default_reducer_study


@pytest.fixture(scope="module")
def results(script, tmp_path_factory):
    with Store(tmp_path_factory.mktemp("study") / "kept.sqlite") as store:
        return [script.result(name, store, 400, 4, 1) for name in ("wine", "digits")]


def lines(part):
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in part if line.startswith("|")][2:]


def test_rows_are_drawn_by_class_in_proportion():
    digits = catalogue.load("digits", download=False)
    few = study_parts.drawn(digits, 400)
    assert few.n_samples == 400
    shares = np.array(list(few.class_counts().values())) / np.array(list(digits.class_counts().values()))
    assert np.ptp(shares) < 0.01
    assert study_parts.drawn(few, 400) is few


def test_the_slow_method_has_half_of_the_splits(results):
    for one in results:
        splits = {cell.method: len(by_split) for cell, by_split in one.scores.items()}
        assert splits == {"bayes-error-lda": 4, "regularized-lda": 4, "margin-subspace": 4, "pca": 4, "pls": 2}


def test_accuracies_are_means_over_all_cells_and_missing_ones_show(script, results):
    by_method = {row[0]: row[1:] for row in lines(script.accuracies(results))}
    literal = [
        np.mean([list(one.scores[Cell("pca", k, c)].values()) for one in results for c in script.CLASSIFIERS])
        for k in (1, 3)
    ]
    assert by_method["pca"][:2] == [f"{100 * value:.1f}" for value in literal]
    assert by_method["margin-subspace"][1] == "–"  # wine has two discriminants


def test_differences_count_cells_and_list_losses(script, results):
    rows = lines(script.differences(results))
    assert {row[0]: row[1] for row in rows[:4]} == {
        "regularized-lda": "12",
        "margin-subspace": "9",
        "pca": "12",
        "pls": "12",
    }
    wine, digits = (one.mean("bayes-error-lda") - one.mean("pca") for one in results)
    assert rows[2][2] == f"{(wine + digits) / 2:+.1f}"
    better, worse = map(int, rows[2][5].split(" / "))
    assert better > worse


def test_ranks_are_of_methods_that_have_every_count(script, results):
    rows = lines(script.mean_ranks(results))
    assert {row[0] for row in rows} == {"bayes-error-lda", "regularized-lda", "pca", "pls"}
    assert sum(float(row[3]) for row in rows) == pytest.approx(10, abs=0.02)
    assert [float(row[3]) for row in rows] == sorted(float(row[3]) for row in rows)


def test_every_cell_has_both_means(script, results):
    (wine, digits) = lines(script.compared_with_lda(results))
    first, _, second = wine[2].partition(" → ")
    assert first == second.split()[0] == f"{results[0].mean('regularized-lda', (3,)):.1f}"  # K ≥ C − 1: the same method
    assert digits[0] == "digits (10 classes)"


def test_a_page_gets_the_tables_between_its_markers(script, results, tmp_path, monkeypatch):
    page = tmp_path / "page.md"
    page.write_text(f"before\n{BEGIN}\nold\n{END}\nafter\n", encoding="utf-8")
    monkeypatch.setattr(script, "result", lambda name, *_: results[0] if name == "wine" else results[1])
    monkeypatch.setattr(sys, "argv", ["study", "--datasets", "wine,digits", "--into", str(page)])
    script.main()
    text = page.read_text(encoding="utf-8")
    assert text.startswith(f"before\n{BEGIN}\n")
    assert text.endswith(f"{END}\nafter\n")
    assert "old" not in text.split(BEGIN)[1].split("\n")
    assert "**Mean ranks**" in text


def test_a_page_without_the_marks_or_with_two_of_them_is_refused():
    for page in ("nothing", f"{BEGIN}\n{END}\n{BEGIN}\n{END}\n", f"{BEGIN}\n"):
        with pytest.raises(ValueError, match=rf"{BEGIN}.*{END}"):
            study_parts.written(page, "figures", ["new"])


def test_a_study_that_fails_leaves_the_page_as_it_was(tmp_path):
    def fails():
        yield "new"
        raise RuntimeError("no more")

    page = tmp_path / "page.md"
    page.write_text(f"{BEGIN}\nold\n{END}\n", encoding="utf-8")
    with pytest.raises(RuntimeError, match="no more"):
        study_parts.show(fails(), page)
    assert "old" in page.read_text(encoding="utf-8")


def test_lines_are_printed_where_no_page_is_named(capsys):
    study_parts.show(study_parts.markdown(["a", "b"], [["x", "1"]]), None)
    assert capsys.readouterr().out == "| a | b |\n| --- | ---: |\n| x | 1 |\n\n"
