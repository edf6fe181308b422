"""The script behind `make study`: what it writes into the page is what the stores hold."""

import runpy
from pathlib import Path

import pytest

from discrim.evaluation.reproduce import Outcome
from discrim.evaluation.study import study

SCRIPT = Path(__file__).parents[2] / "examples" / "reproduce_study.py"
PAGE = "before\n<!-- lda-refinement: begin -->\nold\n<!-- lda-refinement: end -->\nafter\n"


@pytest.fixture
def written(tmp_path, monkeypatch):
    monkeypatch.delenv("DISCRIM_DATA", raising=False)
    monkeypatch.setattr("discrim.data.catalogue.cache_folder", lambda: tmp_path)
    main = runpy.run_path(str(SCRIPT))["main"]
    page = tmp_path / "page.md"
    page.write_text(PAGE)
    (tmp_path / "images").mkdir()

    def ran(*options):
        main(["--stores", str(tmp_path), "--only", "lda-refinement", "--into", str(page), *options])
        return page.read_text(encoding="utf-8")

    return ran


def test_the_page_says_what_the_stores_hold(written):
    assert "Not run yet." in written("--as-stored")
    page = written("--dataset", "iris")
    assert page.startswith("before\n")
    assert page.endswith("\nafter\n")
    assert "old" not in page
    assert "| Example 1 | iris | 1 | 4 | 2 of 2 | 0.00 | +0.0 (rows, LDA) | – |" in page
    assert "In all: 2 of 2 cells (100%) within 2 points of print" in page
    assert "Not run here: banknote, breast_w, " in page
    assert written("--as-stored") == page


def test_cells_and_figures_that_were_not_run_are_told():
    module = runpy.run_path(str(SCRIPT))
    whole = study("max-margin-data-shifting")
    table = next(one for one in whole.tables if not one.drawn)
    done = [Outcome(table, cell, (50.0,), n_splits=1) for cell in table.cells[:2]]
    lost = Outcome(table, table.cells[2], (), reason="not tried")
    drawn = next(one for one in whole.tables if one.drawn == "shifts")
    partly = [Outcome(drawn, drawn.cells[0], (50.0,)), Outcome(drawn, drawn.cells[1], (), reason="not tried")]
    page = "\n".join(module["lines_of"](whole, [*done, lost, *partly]))
    assert list(module["figures"](partly)) == []
    assert [title for title, _ in module["figures"](partly[:1])] == ["Figure 3, opencv_digits"]
    assert f"| 1 | {table.dataset} | 1 of {table.splits} | 2 of 6 | 0 of 2 |" in page
    assert "Not drawn here: Figure 2, opencv_digits; Figure 3, opencv_digits." in page
    assert "Not public or not here: table 2 has TRECVID2003" in page


def test_a_page_without_the_marks_is_refused(written, tmp_path):
    (tmp_path / "page.md").write_text("nothing")
    with pytest.raises(ValueError, match="must have <!-- lda-refinement: begin -->"):
        written("--as-stored")
