"""The page as text: ten sections, a content policy that fits its scripts, and names that are escaped."""

import base64
import hashlib
import json
import re
import sys
from dataclasses import replace
from html import unescape
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pytest
from pages import HOSTILE, hostile_results, made_up, stored, trees
from sklearn.neighbors import KNeighborsClassifier

from discrim.evaluation.compare import Comparison, compare
from discrim.evaluation.methods import METHODS
from discrim.evaluation.wording import doubts
from discrim.report import page as page_module
from discrim.report.chart import as_drawn, as_json, short_numbers
from discrim.report.features import LoadingsValues
from discrim.report.first_split import CLASSIFIERS_VIEW, Confusions, MethodMap, looks_of, maps_in_order
from discrim.report.page import (
    MOST_CLASSES,
    MOST_FEATURES,
    Origin,
    content_policy,
    features_json,
    write_report,
)
from discrim.report.page import page as page_of
from discrim.report.rows import MarginValues
from discrim.report.scores import AccuracyCurveValues
from discrim.tables.formats import MissingExtraError

KINDS_OF_CELLS = ("right", "wrong", "none")


class Elements(HTMLParser):
    """All elements with their attributes and texts."""

    def __init__(self, text):
        super().__init__()
        self.elements, self.texts, self._open = [], [], []
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        self.elements.append([tag, dict(attributes), ""])
        self._open.append(self.elements[-1])

    def handle_endtag(self, tag):
        while self._open and self._open.pop()[0] != tag:
            pass

    def handle_data(self, data):
        self.texts.append(data)
        if self._open:
            self._open[-1][2] += data

    def of(self, tag):
        return [element for element in self.elements if element[0] == tag]


@pytest.fixture(scope="module")
def parsed(page):
    return Elements(page.read_text(encoding="utf-8"))


def values_of(elements):
    (found,) = [text for _, attributes, text in elements.of("script") if attributes.get("id") == "values"]
    return json.loads(found)


def marks_of(values, chart, kind):
    """The marks of one kind, with their names as text."""
    names = [values["words"][mark["name"]] if "name" in mark else "" for mark in chart["marks"]]
    return [mark | {"name": name} for mark, name in zip(chart["marks"], names, strict=True) if mark["kind"] == kind]


def test_ten_sections_in_their_order(page):
    text = page.read_text(encoding="utf-8")
    shown = re.findall(r'<h2><span>(\d+)</span>|class="section-number">(\d+)<', text)
    assert ["".join(pair) for pair in shown] == [str(number) for number in range(1, 11)]


def test_the_answer_and_what_to_type_stand_first(found, page):
    text = re.sub(r"\s+", " ", re.sub(r"<[^>]+>", "", page.read_text(encoding="utf-8").split("<section>")[0]))
    chosen = found.verdict.recommended
    (headline,) = re.findall(r"<h1>(.*?)</h1>", page.read_text(encoding="utf-8"), re.S)
    assert headline == found.verdict.headline
    assert headline.startswith(f"No difference between {chosen.k} components and 6 columns can be shown with ")
    assert f"Use {chosen.k} components of {chosen.method}: " in text
    assert f"{100 * found.verdict.bias_corrected.mean:.1f}&nbsp;%" in text
    assert "over PCA (" in text
    assert "over raw features" in text
    over_raw = f"{100 * found.verdict.over_raw:+.1f}".replace("-", "−")
    assert f"{over_raw} points over raw features" in text
    assert f"(difference {over_raw} points" in text  # the card and the sentence agree
    assert f"discrim project trees.csv --target tree --method {chosen.method} -k {chosen.k}" in text
    assert "make_pipeline(StandardScaler(), " in text


def test_the_table_has_every_line_with_its_figures(found, parsed):
    cells = [attributes["data-value"] for tag, attributes, _ in parsed.elements if "data-value" in attributes]
    by_line = np.array(cells).reshape(len(found.lines), 5)
    for line, (k, mean, over_pca, over_raw, seconds) in zip(found.lines, by_line.tolist(), strict=True):
        assert (int(k), float(mean), float(seconds)) == (line.k, line.mean, line.seconds)
        assert over_pca == ("" if line.against_pca is None else str(line.against_pca.mean))
        assert over_raw == ("" if line.against_raw is None else str(line.against_raw.mean))


def test_the_recommended_line_of_the_table_is_marked(found, page):
    marked = re.findall(
        r'<tr class="taken">\s*<th[^>]*><bdi[^>]*>([^<]+)<.*?data-value="(\d+)"', page.read_text("utf-8"), re.S
    )
    recommended = found.verdict.recommended
    assert marked == [(recommended.method, str(recommended.k))]


def test_the_policy_lists_the_pages_scripts_and_blocks_requests(page, parsed):
    (policy,) = [a["content"] for _, a, _ in parsed.of("meta") if a.get("http-equiv") == "Content-Security-Policy"]
    assert policy.startswith("default-src 'none'; script-src 'sha256-")
    allowed = set(re.findall(r"'sha256-([^']+)'", policy))
    scripts = re.findall(r"<script(?! type=\"application/json\")[^>]*>(.*?)</script>", page.read_text("utf-8"), re.S)
    assert {base64.b64encode(hashlib.sha256(one.encode()).digest()).decode() for one in scripts} == allowed
    script_source = policy.partition("script-src")[2].partition(";")[0]
    assert "unsafe" not in script_source
    assert "http" not in policy
    for tag, attributes, _ in parsed.elements:
        assert not {"src", "srcset", "action", "onclick", "onload", "onerror"} & attributes.keys(), tag
        assert attributes.get("href", "#").startswith("#")
        assert tag not in ("link", "iframe", "img", "object", "embed", "base")


def test_the_library_of_the_charts_is_the_one_that_was_tested_and_the_page_is_small(page):
    text = page.read_text(encoding="utf-8")
    assert text.count("* plotly.js (basic - minified) v4.1.1\n") == 1
    assert len(text.encode()) < 2_000_000
    folder = Path(page_module.__file__).parent / "vendor"
    shipped = hashlib.sha256((folder / "plotly-basic.min.js").read_bytes()).hexdigest()
    assert shipped == "99784e3abfb07b142a15e521a439e6d9addceadb3f79553fd24c72774f0649ba"
    assert "MIT License" in (folder / "plotly-basic.LICENSE").read_text(encoding="utf-8")
    assert not re.search(r"</script|<!--", (folder / "plotly-basic.min.js").read_text(encoding="utf-8"))


def test_the_answer_says_the_largest_class_the_recall_and_what_was_not_finished(found):
    results = found
    text = plain(page_of([results], Origin()))
    verdict = results.verdict
    assert f"the largest class alone: {100 * verdict.majority:.1f} %" in text
    assert all(sentence in text for sentence in verdict.sentences)
    for name, share in verdict.recall.items():
        assert re.search(rf"{name} [\d ·]+ {100 * share:.1f} %", text)
    assert "Nothing failed and nothing was skipped." in text
    stopped = [row for row in found.rows if row.split < 2 or row.cell.method == "pca"]
    text = plain(page_of([Comparison.of(found.grid, stopped)], Origin()))
    assert "The run was not finished" in text
    assert "nothing was skipped" not in text


def plain(text):
    """The words of a page."""
    body = re.sub(r"<(script|style).*?</\1>", "", text, flags=re.S)
    return " ".join(unescape(re.sub(r"<[^>]+>", " ", body)).split())


def test_how_it_was_done(found, parsed):
    facts = " ".join("".join(parsed.texts).split())
    for words in ("90 rows, 6 features, 3 classes", "holdout-80-20, 4 splits", "numpy", "Seconds per method"):
        assert words in facts
    assert "seed3" in facts.replace(" ", "")
    assert found.grid.table.digest()[:16] in facts
    assert "discrim compare trees.csv --target tree" in facts


# ---------------------------------------------------------------------- values


def test_values_are_json_that_cannot_end_its_script():
    text = as_json({"</script><!--": ["&amp;", "a\u2028b\u2029"]})
    assert not set("<>&\u2028\u2029") & set(text)
    assert json.loads(text) == {"</script><!--": ["&amp;", "a\u2028b\u2029"]}
    assert short_numbers([1 / 3, np.nan, -np.inf, 123456.0]) == [0.3333, None, None, 123500.0]


@pytest.mark.parametrize(("offset", "width"), [(0, 1), (1e6, 1), (-3, 1e-7), (0, 1e9), (5, 0)])
def test_positions_are_accurate_to_a_thousandth_of_their_range(offset, width):
    places = offset + width * np.linspace(0, 1, 78)
    drawn = as_drawn([*places, np.nan])
    assert drawn[-1] is None
    np.testing.assert_allclose(drawn[:-1], places, atol=width / 1_000, rtol=0)


def test_every_number_of_the_charts_is_that_of_its_values(found, parsed):
    values = values_of(parsed)
    (figures,) = [block["figures"] for block in values["blocks"]]
    classifiers = list(dict.fromkeys(line.classifier for line in found.lines if line.method != "raw"))
    assert len(figures["curves"]) == len(classifiers) == 3  # no chart of raw features alone
    for line in (one for one in found.lines if one.classifier in classifiers):
        chart = figures["curves"][str(classifiers.index(line.classifier))]
        (curve,) = [mark for mark in marks_of(values, chart, "line") if mark["name"] == line.method]
        if line.method == "raw":
            assert curve["y"] == pytest.approx([100 * line.mean] * 2, rel=1e-3)
        else:
            assert dict(zip(curve["x"], curve["y"], strict=True)) == {
                k: pytest.approx(100 * mean, rel=1e-3) for k, mean in line.curve.items()
            }
    best = next(line for line in found.lines if line.method != "raw")
    (chosen,) = marks_of(values, figures["spectrum"]["0"], "upright")
    assert chosen["x"] == [best.k + 0.5]


def test_the_map_has_two_components_and_shows_predicted_classes(found, parsed):
    values, look = values_of(parsed), looks_of(found)
    first = look.maps[0]
    data = found.first_split()
    model = METHODS[first.method].estimator(2, data.seed).fit(data.train, data.y_train)
    train, test = model.transform(data.train), model.transform(data.test)
    judge = KNeighborsClassifier(5).fit(train, data.y_train)
    predicted = judge.predict(test)
    assert first.views[0].confusions.accuracy == (predicted == data.y_test).mean()
    rows = found.grid.splits[0][1]
    chart = values["blocks"][0]["figures"]["map"]["0,0"]
    assert chart["equal"]
    points = [mark for mark in marks_of(values, chart, "points") if "legend" in mark]
    pale = [mark for mark in marks_of(values, chart, "points") if "legend" not in mark]
    assert sum(len(mark["x"]) for mark in pale) == 72
    assert chart["marks"].index(pale[-1] | {"name": values["words"].index(pale[-1]["name"])}) < len(pale)
    for mark in points:
        mine = data.y_test == mark["name"]
        np.testing.assert_allclose(np.column_stack([mark["x"], mark["y"]]), test[mine], atol=2e-3)
        hovered = {label: [values["words"][one] for one in of] for label, of in mark["hover"].items()}
        assert hovered == {"row": [str(row + 1) for row in rows[mine]], "predicted": predicted[mine].tolist()}
    classes = first.views[0].projection.classes
    matrix = [[((data.y_test == a) & (predicted == b)).sum() for b in classes] for a in classes]
    np.testing.assert_array_equal(first.views[0].confusions.matrix, matrix)
    shown = [text.strip() for _, a, text in parsed.of("td") if a.get("class") in KINDS_OF_CELLS]
    cells = [int(text.replace("·", "0")) for text in shown]
    assert cells[:9] == np.ravel(found.verdict.confusion).tolist()  # of the answer, all splits together
    assert cells[9:18] == np.ravel(matrix).tolist()


def test_a_map_mentions_ellipses_and_units_only_if_it_has_them(parsed):
    maps = values_of(parsed)["blocks"][0]["figures"]["map"]
    flat, deep = maps["0,0"]["caption"], maps["0,1"]["caption"]
    assert flat.startswith("One unit is as long in all directions. Each ellipse holds 95 %")
    assert deep.startswith("One unit is as long in all directions. Five neighbours on 3 components are right on")
    two = made_up(trees(classes=("ash", "birch")), "wood", [("lda", 1, 0.9)])
    caption = values_of(Elements(page_of([two], Origin())))["blocks"][0]["figures"]["map"]["0,0"]["caption"]
    expected = (
        "Rows of a class are spread upwards only to be visible: their height has no meaning. Five neighbours on 1 comp"
    )
    assert caption.startswith(expected)


def test_the_recommended_map_comes_first_then_the_best_linear_one_and_the_classifiers_view():
    def one(method, linear, right):
        return MethodMap(method, linear, right, [])

    maps = [one("pca", True, 0.5), one("umap", False, 0.9), one("lda", True, 0.8), one(CLASSIFIERS_VIEW, False, 0.6)]
    assert [each.method for each in maps_in_order(maps, "pca")] == ["pca", "lda", CLASSIFIERS_VIEW, "umap"]
    assert [each.method for each in maps_in_order(maps, "")] == ["lda", CLASSIFIERS_VIEW, "umap", "pca"]


def test_many_classes_have_a_list_of_the_pairs_confused_most():
    matrix = np.diag(np.arange(20, 40))
    matrix[3, 7], matrix[12, 0] = 5, 9
    names = tuple(f"c{at}" for at in range(20))
    found = Confusions.of(names, matrix)
    assert found.pairs == [("c12", "c0", 9, 41), ("c3", "c7", 5, 28)]
    assert [name for name, _, _ in found.weakest][:3] == ["c12", "c3", "c0"]
    assert found.weakest[0][2] == 32 / 41
    assert not found.is_small


def test_confusions_are_in_natural_order():
    found = Confusions.of(["10", "9", "1"], [[10, 1, 2], [3, 9, 4], [5, 6, 0]])
    assert found.classes == ("1", "9", "10")
    assert found.matrix.tolist() == [[0, 6, 5], [4, 9, 3], [2, 1, 10]]
    assert Confusions.of(["a", "b"], [[0, 0], [1, 3]]).rows == [("a", [0, 0], None), ("b", [1, 3], 0.75)]


def test_all_features_can_be_found_up_to_the_limit():
    def values(d, k=2):
        table = np.linspace(-1, 1, d * k).reshape(k, d)
        names = tuple(f"gene {at}" for at in range(d))
        return LoadingsValues("m", ("component 1", "component 2")[:k], names, table, table)

    found = features_json([values(4), values(4)])
    assert found["names"] == ["gene 0", "gene 1", "gene 2", "gene 3"]
    assert found["methods"][1]["loadings"][0] == [-1, -0.714, -0.429, -0.143]
    wide = features_json([values(12_000), values(12_000), values(12_000)])
    assert [one is not None for one in wide["methods"]] == [True, False, False]
    wider = features_json([values(MOST_FEATURES + 10, 1)])
    assert (len(wider["names"]), wider["left"]) == (MOST_FEATURES, 10)
    assert "gene 10005" not in wider["names"]  # in the middle, where correlations are nearly 0


def test_large_data_are_sampled_and_stay_small(large_page):
    text = large_page.read_text(encoding="utf-8")
    assert len(text.encode()) < 2_000_000
    values = values_of(Elements(text))
    (figures,) = [block["figures"] for block in values["blocks"]]
    assert len(figures["margins"]) == 8
    assert "500 of 8000 fitted and 500 of 2000 new rows drawn" in figures["map"]["0,0"]["caption"]
    points = marks_of(values, figures["map"]["0,0"], "points")
    assert sum(len(mark["x"]) for mark in points) == 1_000
    named = [mark["name"] for mark in points if "legend" in mark]
    assert len(named) == MOST_CLASSES + 1
    assert named[-1] == "16 other classes"
    assert len(figures["margins"]["0"]["y"]["ticks"][0]) == MOST_CLASSES
    assert "1000 of 2000 rows" in figures["margins"]["0"]["caption"]


# ---------------------------------------------------------------------- names


def test_hostile_names_stay_text(hostile_page):
    text = hostile_page.read_text(encoding="utf-8")
    elements = Elements(text)
    assert len(elements.of("script")) == 3  # values, plotly, and what draws
    assert not elements.of("img")
    assert not [tag for tag, attributes, _ in elements.elements if any(name.startswith("on") for name in attributes)]
    text_of_page = "".join(elements.texts)
    assert "{{7*7}}" in text_of_page
    assert "49" not in re.findall(r"<h1>.*?</h1>", text, re.S)[0]
    for name in HOSTILE[:4]:
        assert name in text_of_page
    long = [piece for piece in elements.texts if "x" * 50 in piece and len(piece) < 2_000]
    assert long
    assert all(len(piece) < 450 for piece in long)  # cut, not spilt
    words = values_of(elements)["words"]
    assert {name[:80] for name in HOSTILE} <= set(words)
    assert max(map(len, words)) <= 80


def test_names_stand_alone_in_the_direction_of_their_writing(hostile_page):
    text = hostile_page.read_text(encoding="utf-8")
    body = re.sub(r"<script.*?</script>|<option.*?</option>|title=\".*?\"", "", text, flags=re.S)
    assert "\u202e" in body.partition('class="separations"')[2]
    for at in (found.start() for found in re.finditer("\u202e", body)):
        before = body[:at]
        assert before.rfind("<bdi") > before.rfind("</bdi>")


# ---------------------------------------------------------------------- other results


def test_without_the_data_the_page_names_what_is_missing():
    results = made_up(trees(), "wood", [("fisher-lda", 2, 0.9), ("pca", 2, 0.6)])
    text = page_of([stored(results.setting, results.rows, label="wood")], Origin())
    assert text.count("Pass the data with --data FILE --target COLUMN") == 4  # sections 4 to 7
    assert 'data-chart="curves"' in text
    assert 'data-chart="map"' not in text


def test_each_data_set_is_ranked_by_the_score_that_decides_there():
    """If one class has most rows, balanced accuracy decides; it may order methods differently from accuracy."""
    levels = [("fisher-lda", 2, 0.7), ("pca", 2, 0.8)]
    shared, other = (made_up(trees(seed=at), name, levels) for at, name in enumerate(["even", "uneven"]))
    swapped = {"fisher-lda": 0.9, "pca": 0.5}
    rows = [replace(row, scores={**row.scores, "balanced_accuracy": swapped[row.cell.method]}) for row in other.rows]
    other = replace(other, rows=rows, metric="balanced_accuracy")
    for results in ([shared, other], [other, shared]):  # in both orders
        text = page_of(results, Origin())
        (chart,) = json.loads(re.search(r'id="values">(.*?)</script>', text)[1])["ranks"].values()
        (ranks,) = (mark["x"] for mark in chart["marks"] if mark["kind"] == "points")
        assert ranks == [1.5, 1.5]
        assert "the score that decides there ranks them: " in text
        assert 'balanced accuracy on <bdi class="name">uneven</bdi>' in text
    assert "the score that decides there" not in page_of([shared, replace(other, metric="accuracy")], Origin())


def test_data_tried_in_several_ways_count_once_in_the_ranks():
    levels = [("fisher-lda", 2, 0.9), ("pca", 2, 0.8)]
    wood, heath = (made_up(trees(seed=at), name, levels) for at, name in enumerate(["wood", "heath"]))
    again = replace(wood, setting={**wood.setting, "seed": 9}, label="wood (seed 9)")
    text = page_of([wood, again, heath], Origin())
    assert '<p class="overview">2 data sets:' in text
    assert 'Data: <bdi class="name">wood</bdi>, <bdi class="name">heath</bdi>.' in text


def test_several_data_sets_are_ranked(page_of_three):
    text = page_of_three.read_text(encoding="utf-8")
    elements = Elements(text)
    values = values_of(elements)
    (chart,) = values["ranks"].values()
    assert [values["words"][at] for at in chart["y"]["ticks"][1]] == ["fisher-lda  1.00", "raw  2.00", "pca  3.00"]
    assert marks_of(values, chart, "points")[0]["x"] == [1, 2, 3]
    assert "3 / 0 / 0" in text
    assert "fisher-lda</bdi> has the best mean rank (1.00 of 3)" in text
    assert [attributes["value"] for _, attributes, _ in elements.of("option")][:3] == ["0", "1", "2"]


def test_one_data_set_explains_how_to_add_more(page):
    assert "These results are of one data set." in page.read_text(encoding="utf-8")


def test_a_comparison_in_which_nothing_worked_has_a_page_too(found):
    text = page_of([Comparison.of(found.grid, [])], Origin())
    assert "No reduction could be judged" in text
    with pytest.raises(ValueError, match="no results"):
        page_of([], Origin())


def test_without_a_significant_gain_no_method_is_the_headline():
    X, y = np.random.default_rng(0).standard_normal((60, 3)), np.arange(60) % 2
    without_signal = compare(X, y, methods="pca", classifiers="5-nn", n_components=[1], n_splits=3, n_jobs=1)
    assert without_signal.verdict.finding == "no signal"
    text = page_of([without_signal], Origin())
    (headline,) = re.findall(r"<h1>(.*?)</h1>", text, re.S)
    assert headline.startswith("No signal")


def test_dropped_methods_and_lines_with_equal_predictions_are_named():
    made = made_up(trees(), "wood", [("fisher-lda", 2, 0.9), ("max-margin-criterion", 2, 0.3), ("pca", 2, 0.6)])
    best, *others = made.lines
    twin = replace(best, same=("regularized-lda",))
    third = replace(twin, k=3, same=("lda", "two-step"))
    other_twins = [replace(twin, k=1), third]
    lines = [twin, *other_twins, *(replace(one, dropped=one.method != "pca") for one in others)]
    lines.append(replace(next(one for one in others if one.method == "pca"), k=3, dropped=True))
    vars(made)["lines"] = lines  # kept there once they are found
    text = page_of([made], Origin())
    assert "Dropped after 4 splits, far behind the best: max-margin-criterion, pca (5-nn).</bdi>" in text
    for sentence in (
        "fisher-lda and regularized-lda predict the same labels with 2 components (5-nn) and 1 component (5-nn); they "
        "share these lines of the table.",
        "fisher-lda, lda and two-step predict the same labels with 3 components (5-nn); they share one line of the "
        "table.",
    ):
        assert f"{sentence}</bdi>" in text
        assert sentence in doubts(made)
    vars(made)["lines"] = [third, replace(third, classifier="svm")]
    sentence = "fisher-lda, lda and two-step predict the same labels with 3 components (5-nn and svm); they share these"
    assert doubts(made) == [f"{sentence} lines of the table."]


def test_intervals_contain_scores_below_zero():
    rng = np.random.default_rng(10)
    X, y = rng.normal(size=(60, 4)), np.arange(60) % 2
    found = compare(X, y, methods="pca", classifiers="1-nn", n_components=[1, 2], n_splits=4, metric="mcc", n_jobs=1)
    text = page_of([found], Origin())
    shown = [
        [float(end.replace("−", "-")) for end in re.split("–| to ", low_high)]
        for low_high in re.findall(r"<small>([^<]+)</small>", text)
    ]
    assert len(shown) == len(found.lines)
    for (low, high), line in zip(shown, found.lines, strict=True):
        assert low - 0.1 <= 100 * line.mean <= high + 0.1
    assert min(line.mean for line in found.lines) < 0
    for line, (low, high, mean) in zip(found.lines, page_module._tracks(found.lines), strict=True):
        assert 0 <= low <= mean <= high <= 100, line
    marks = AccuracyCurveValues.from_results(found).chart("1-nn", ["pca"]).marks
    band, line = (next(mark for mark in marks if mark.part == part) for part in ("bands", "lines"))
    low, high = band.y[len(line.y) :][::-1], band.y[: len(line.y)]
    assert ((low >= -100) & (low <= line.y) & (line.y <= high)).all()
    assert low.min() < 0
    assert "  MCC %  " in str(found)  # the whole name does not fit
    assert "Matthews correlation (95 % interval −" in str(found).replace("\n", " ")


def test_one_split_has_no_interval(found):
    first = [row for row in found.rows if row.split == 0]
    text = page_of([Comparison.of(found.grid, first)], Origin())
    assert "95&nbsp;% interval" not in text
    assert not re.search(r"\bnan\b", re.sub(r"<script.*?</script>", "", text, flags=re.S))


def test_the_file_is_written_atomically(found, tmp_path, monkeypatch):
    path = tmp_path / "report.html"
    write_report(found, path)
    whole = path.read_bytes()
    assert whole.rstrip().endswith(b"</html>")
    write_report(found, path)
    assert path.read_bytes() == whole  # the same results make the same page
    monkeypatch.setattr(page_module, "framed", lambda *_, **__: (_ for _ in ()).throw(OSError(28, "No space left")))
    with pytest.raises(OSError, match="No space left"):
        write_report(found, path)
    assert path.read_bytes() == whole
    assert [one.name for one in tmp_path.iterdir()] == ["report.html"]


def test_a_missing_library_is_named_with_what_to_install(found, monkeypatch, tmp_path):
    monkeypatch.setitem(sys.modules, "jinja2", None)
    with pytest.raises(MissingExtraError, match=r"jinja2.*pip install 'discrim\[report\]'"):
        write_report([hostile_results()], tmp_path / "report.html")


def test_the_policy_changes_with_the_scripts():
    assert content_policy(["a"]) != content_policy(["b"])
    digest = base64.b64encode(hashlib.sha256(b"a").digest()).decode()
    assert f"script-src 'sha256-{digest}';" in content_policy(["a"])


# ---------------------------------------------------------------------- answer


def test_sections_are_numbered_one_after_the_other_and_open_on_the_recommended_method(found):
    text = page_of([found], Origin())
    numbers = re.findall(r'(?:<h2><span>|<span class="section-number">)(\d+)</span>', text)
    assert numbers == [str(at) for at in range(1, 11)]
    wanted = found.recommendation
    menus = re.findall(r'<select data-control="(\w+)">\n<option value="0">(.*?)</option>', text)
    assert dict(menus)["classifier"] == wanted.classifier
    opened = [shown.partition(":")[0] for name, shown in menus if name == "method"]
    assert set(opened) == ({wanted.method} if wanted.reduces else set(opened))


def test_the_block_of_the_data_has_rows_columns_classes_and_missing_cells():
    X, y = np.random.default_rng(0).standard_normal((60, 3)), np.repeat(["few", "<b>many", "some"], [10, 30, 20])
    X[[3, 7], 1] = np.nan
    answer = compare(X, y, methods="pca", classifiers="5-nn", n_components=[1], n_splits=2, n_jobs=1, impute="median")
    text = page_of([answer], Origin())
    assert "<dt>rows</dt><dd>60</dd>\n<dt>columns</dt><dd>3</dd>\n<dt>classes</dt><dd>3</dd>" in text
    assert re.findall(r'</th><td class="number">(\d+)</td><td class="bar">', text) == ["30", "10", "20"]
    assert "<dd>2 in 1 column, filled by the median of the training rows</dd>" in text
    assert re.findall(r'<td class="bar"><span style="width:([\d.]+)%">', text) == ["100.0", "33.3", "66.7"]
    assert "<b>many" not in text
    many = compare(
        X, np.arange(60) % 30, methods="pca", classifiers="1-nn", n_components=[1], n_splits=2, impute="mean"
    )
    text_of_many = page_of([many], Origin())
    assert "; 10 smaller classes are not listed</caption>" in text_of_many
    assert text_of_many.count('<td class="bar">') == 20
    without = page_of([stored(answer.setting, answer.rows, answer.metric, label="wood", facts=answer.facts)], Origin())
    assert "missing cells" not in without
    assert re.findall(r'</th><td class="number">(\d+)</td><td class="bar">', without) == ["30", "10", "20"]


def test_margins_without_width_are_not_drawn(found):
    values = MarginValues("map", ("a", "b"), np.arange(40) % 2, np.linspace(-1, 1, 40), np.ones(40), 40, True)
    assert values.collapsed
    assert not replace(values, after=values.before).collapsed
    codes = np.arange(40) < 4  # one class of many rows has no width
    unequal = replace(values, codes=codes.astype(int), after=np.where(codes, np.linspace(-1, 10, 40), 1.0))
    assert unequal.collapsed
    assert not replace(unequal, after=np.where(codes, 1.0, np.linspace(-1, 1, 40))).collapsed
