"""The script behind `make study`: what it writes into the page is what the stores hold."""

import runpy
from pathlib import Path

import pytest

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


def test_a_page_without_the_marks_is_refused(written, tmp_path):
    (tmp_path / "page.md").write_text("nothing")
    with pytest.raises(ValueError, match="must have <!-- lda-refinement: begin -->"):
        written("--as-stored")
