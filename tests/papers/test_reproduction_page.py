"""Page and charts of a reproduction: printed figures, ours, missing ones with the reason, and the papers' figures."""

import json
import re
from dataclasses import replace

import numpy as np
import pytest

from discrim.evaluation.statistics import corrected_interval
from discrim.papers.page import agreement_chart, figure_charts, write_reproduction
from discrim.papers.reproduce import Outcome
from discrim.papers.study import Names, PrintedCell, PrintedTable, Study

NAMES = Names({"PCA": "pca", "PM": "bayes-error-pca"}, {"LD": "fisher", "NB": "naive-bayes"})


def table_of(*cells, drawn="", name="II"):
    return PrintedTable(name, "artificial", cells, NAMES, "holdout-50-50", 4, drawn=drawn)


def study_of(*tables):
    return Study("made", "A <title>", "An Author", 2.0, None, "", (), tables, {"table 9": "is not public."})


TABLE = table_of(
    PrintedCell("PM", 1, "LD", 95.3, 3.4, 96.7, 1.9),
    PrintedCell("PCA", 2, "<b>", 61.0),
    PrintedCell("PCA", 6, "NB", 80.0),
)
OUTCOMES = [
    Outcome(TABLE, TABLE.cells[0], (94.0, 96.0)),
    Outcome(TABLE, TABLE.cells[1], (50.0,)),
    Outcome(TABLE, TABLE.cells[2], (), reason="only 5 <directions>"),
]


def curves(drawn, methods, counts, classifiers=("LD", "NB"), measures=("accuracy",)):
    cells = [PrintedCell(m, k, c, measure=v) for v in measures for c in classifiers for m in methods for k in counts]
    table = table_of(*cells, drawn=drawn, name="3")
    rng = np.random.default_rng(0)
    return table, [Outcome(table, cell, tuple(rng.uniform(50, 90, 4))) for cell in cells]


@pytest.fixture
def page(tmp_path):
    figure, points = curves("curves", ("PM", "PCA"), (1, 2, 3))
    path = tmp_path / "page.html"
    write_reproduction(
        study_of(TABLE, figure), [*OUTCOMES, *points], path, command="discrim reproduce", absent={"x": "y"}
    )
    return path.read_text(encoding="utf-8")


def test_the_page_has_every_cell_with_print_ours_and_difference(page):
    text = re.sub(r"<[^>]+>", " ", page)
    for words in ("95.30 ± 3.40", "95.00 ± 1.41", "-0.30", "96.70 ± 1.90", "61.00", "50.00", "-11.00 !"):
        assert words in text
    assert "no result: <bdi>only 5 &lt;directions&gt;</bdi>" in page
    assert "1 cell without a result" in text
    assert "table 9" in text
    assert "is not public." in text
    assert "<b>" not in page.replace("<b>${", "")
    assert "A &lt;title&gt;" in page
    assert "nan" not in text.partition("Not reproduced")[0].lower().partition("an author")[2].partition("noscript")[0]


def test_the_page_holds_its_charts(page):
    values = json.loads(re.search(r'id="values">(.*?)</script>', page, re.S).group(1))
    charts = values["blocks"][0]["figures"]
    assert set(charts) == {"agreement", "part-0", "part-1"}
    assert charts["part-0"] == {}
    assert list(charts["part-1"]) == ["0", "1"]  # one for each classifier
    points = next(mark for mark in charts["agreement"][""]["marks"] if mark["kind"] == "points")
    assert (points["x"], points["y"]) == ([95.3, 61], [95, 50])


def test_whiskers_are_as_long_as_the_printed_deviation():
    chart = agreement_chart(OUTCOMES)
    (whiskers,) = chart.of("deviations")
    np.testing.assert_allclose(whiskers.x[:2], [95.3 - 3.4, 95.3 + 3.4])
    np.testing.assert_allclose(whiskers.y[:2], [95.0, 95.0])
    assert agreement_chart(OUTCOMES[2:]) is None


def test_curves_have_the_papers_intervals():
    table, outcomes = curves("curves", ("PM", "PCA"), (1, 2, 3))
    charts = dict(figure_charts(study_of(table), table, outcomes))
    assert list(charts) == ["LD", "NB"]
    (line, _), (band, _) = charts["LD"].of("lines"), charts["LD"].of("bands")
    np.testing.assert_allclose(line.y, [one.ours for one in outcomes[:3]])
    first = outcomes[0]
    half = corrected_interval(first.figures, 0.0).high - first.ours
    assert half == pytest.approx(3.182446 * first.deviation / 2, rel=1e-5)  # t of 3 degrees of freedom, √4 splits
    assert band.y[0] == pytest.approx(first.ours + half)
    assert band.y[-1] == pytest.approx(first.ours - half)


def test_a_curve_with_a_point_of_one_split_has_no_intervals():
    table, outcomes = curves("curves", ("PM", "PCA"), (1, 2, 3))
    outcomes[1] = replace(outcomes[1], figures=(70.0,))
    charts = dict(figure_charts(study_of(table), table, outcomes))
    assert len(list(charts["LD"].of("lines"))) == 2
    assert len(list(charts["LD"].of("bands"))) == 1
    assert len(list(charts["NB"].of("bands"))) == 2


def test_splits_are_drawn_one_by_one():
    table, outcomes = curves("splits", ("PCA", "PM"), (1,), ("LD",))
    ((_, chart),) = figure_charts(study_of(table), table, outcomes)
    assert [tuple(mark.y) for mark in chart.of("lines")] == [one.figures for one in outcomes]


def test_shifts_run_from_least_to_most():
    methods, measures = ("PCA", "PCA 0.3", "PCA 2", "AE", "AE 0.3", "AE 2"), ("accuracy", "reconstruction error")
    table, outcomes = curves("shifts", methods, (5,), ("LD",), measures)
    charts = dict(figure_charts(study_of(table), table, outcomes))
    assert list(charts) == ["PCA", "AE"]
    assert list(charts["AE"].x.ticks.values()) == ["0", "0.3", "2"]
    for mark in charts["AE"].of("lines"):
        assert (min(mark.y), max(mark.y), len(mark.y)) == (0.0, 1.0, 3)


def test_shifts_are_compared_on_the_splits_that_all_have():
    table, outcomes = curves("shifts", ("PCA", "PCA 0.3", "PCA 2"), (5,), ("LD",))
    figures = ((60.0, 90.0), (70.0,), (64.0,))
    outcomes = [replace(one, figures=some) for one, some in zip(outcomes, figures, strict=True)]
    ((_, chart),) = figure_charts(study_of(table), table, outcomes)
    (line,) = chart.of("lines")
    np.testing.assert_allclose(line.y, [0.0, 1.0, 0.4])


def test_an_embedding_shows_rows_that_were_held_out():
    table = table_of(PrintedCell("PCA", 2, "LD"), PrintedCell("PM", 2, "LD"), drawn="embedding", name="2")
    charts = dict(figure_charts(study_of(table), table, []))
    assert list(charts) == ["PCA", "PM"]
    assert [len(mark.x) for mark in charts["PCA"].of("points")] == [25, 25]  # half of fifty of each class
