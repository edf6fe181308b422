"""Script of `make evidence`: the page matches the stores."""

import re

import numpy as np
import pytest
import reproduce_study

from discrim.evaluation.store import Store
from discrim.papers.reproduce import Outcome, judged
from discrim.papers.study import read_study, study

MINE = """
title = "Mine"
protocol = "holdout-50-50"
splits = 6
baseline = "PCA"
claims = ["LDA", "MMC"]
[methods]
PCA = "pca"
LDA = "regularized-lda"
MMC = "max-margin-criterion"
[classifiers]
NB = "naive-bayes"
[valid.methods]
PCA = "pca"
LDA = "regularized-lda"
MMC = "max-margin-criterion"
[valid.classifiers]
NB = "naive-bayes"
"""
PAGE = "before\n<!-- lda-refinement: begin -->\nold\n<!-- lda-refinement: end -->\nafter\n"


@pytest.fixture
def written(tmp_path, monkeypatch):
    monkeypatch.delenv("DISCRIM_DATA", raising=False)
    monkeypatch.setattr("discrim.tables.catalogue.cache_folder", lambda: tmp_path)
    page = tmp_path / "page.md"
    page.write_text(PAGE)
    (tmp_path / "images").mkdir()

    def ran(*options):
        reproduce_study.main(["--stores", str(tmp_path), "--only", "lda-refinement", "--into", str(page), *options])
        return page.read_text(encoding="utf-8")

    return ran


def test_the_page_shows_the_content_of_the_stores(written):
    assert "Not run yet." in written("--as-stored")
    page = written("--dataset", "iris")
    assert page.startswith("before\n")
    assert page.endswith("\nafter\n")
    assert "old" not in page
    assert "| Example 1 | iris | 1 | 4 | 2 of 2 | 0.00 | +0.0 (rows, LDA) | – |" in page
    assert "In total: 2 of 2 cells (100%) within 2 points of print" in page
    assert "Not run here: banknote, breast_w, " in page
    assert written("--as-stored") == page


def test_cells_and_figures_that_were_not_run_are_listed():
    whole = study("max-margin-data-shifting")
    table = next(one for one in whole.tables if not one.drawn)
    done = [Outcome(table, cell, (50.0,), n_splits=1) for cell in table.cells[:2]]
    lost = Outcome(table, table.cells[2], (), reason="not tried")
    drawn = next(one for one in whole.tables if one.drawn == "shifts")
    partly = [Outcome(drawn, drawn.cells[0], (50.0,)), Outcome(drawn, drawn.cells[1], (), reason="not tried")]
    page = "\n".join(reproduce_study.lines_of(whole, [*done, lost, *partly]))
    assert list(reproduce_study.figures(partly)) == []
    assert [title for title, _ in reproduce_study.figures(partly[:1])] == ["Figure 3, opencv_digits"]
    assert f"| 1 | {table.dataset} | 1 of {table.splits} | 2 of 6 | 0 of 2 |" in page
    assert "Not drawn here: Figure 2, opencv_digits; Figure 3, opencv_digits." in page
    assert "Not available: table 2 has TRECVID2003" in page


def test_a_table_of_one_count_and_classifier_is_shown_cell_by_cell():
    tables = study("max-margin-data-shifting").part("1").tables
    made = [Outcome(table, cell, (cell.printed + 1.0,), n_splits=1) for table in tables for cell in table.cells]
    rows = [line for line in reproduce_study.side_by_side("1", made) if line.startswith("|")]
    assert rows[0] == "| method | yale | yaleb | orl |"
    assert "| SPPCA | 51.6 / 52.6 | 9.8 / 10.8 | 61.7 / 62.7 |" in rows
    assert "| SEPCA | 64.4 / 65.4 | 20.5 / 21.5 | – |" in rows
    several = study("max-margin-data-shifting").part("4", "ocr_letters").tables[0]
    assert not list(reproduce_study.side_by_side("4", [Outcome(several, cell, (1.0,)) for cell in several.cells]))


def test_a_page_without_the_marks_is_refused(written, tmp_path):
    (tmp_path / "page.md").write_text("nothing")
    with pytest.raises(ValueError, match="<!-- lda-refinement: begin -->"):
        written("--as-stored")


def test_the_claims_are_counted_by_data_set_and_in_all(tmp_path):
    """Two tables of a study of our own; the counts are those that the claims themselves give."""
    rng = np.random.default_rng(0)
    labels = np.repeat(["a", "b"], 40)
    for name, gap in (("near.csv", 0.1), ("far.csv", 4.0)):
        X = rng.standard_normal((80, 4)) * [5, 1, 1, 1] + gap * (labels == "b")[:, None] * [0, 1, 1, 0]
        lines = [",".join([*(f"{value:.6f}" for value in row), label]) for row, label in zip(X, labels, strict=True)]
        (tmp_path / name).write_text("\n".join(["w,x,y,z,class", *lines]), encoding="utf-8")
    tables = "".join(
        f"""
        [[tables]]
        name = "{number}"
        dataset = "{name}"
        cells = [["PCA", 1, "NB", 50.0], ["LDA", 1, "NB", 90.0], ["MMC", 1, "NB", 90.0]]
        """
        for number, name in enumerate(("near.csv", "far.csv"), 1)
    )
    (tmp_path / "mine.toml").write_text(MINE + tables, encoding="utf-8")
    own = read_study(tmp_path / "mine.toml")
    with Store(tmp_path / "kept.sqlite") as store:
        claims = judged(own, store, as_printed=True, jobs=1)
        page = "\n".join(reproduce_study.claims_of(own, store, {"splits": None, "jobs": 1}))
        assert "\n".join(reproduce_study.claims_of(own, store, {"splits": None, "as_stored": True})) == page
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in page.splitlines() if line.startswith("|")]
    assert rows[0] == ["table, data", "splits", "LDA", "MMC"]
    assert [row[:2] for row in rows[2:5]] == [["Table 1, near.csv", "6"], ["Table 2, far.csv", "6"], ["all", "6"]]
    for row, names in zip(rows[2:5], (["near.csv"], ["far.csv"], ["near.csv", "far.csv"]), strict=True):
        for method, cell in zip(("LDA", "MMC"), row[2:], strict=True):
            found = [one.against for one in claims if one.cell.method == method and one.table.dataset in names]
            gain, better, worse, signs, count = re.fullmatch(r"(\S+): (\d+) / (\d+) \((\d+)\) of (\d+)", cell).groups()
            assert gain == f"{100 * np.mean([one.mean for one in found]):+.1f}"
            assert int(better) == sum(one.verdict == "better" for one in found)
            assert int(worse) == sum(one.verdict == "worse" for one in found)
            assert int(signs) == sum(one.sign_p_value < 0.05 for one in found)
            assert int(count) == len(found)
    assert rows[3][2].endswith(": 1 / 0 (1) of 1")  # far apart, across the direction of largest variance
    assert page.count("(`--claims`)") == page.count("(`--valid`)") == 1
