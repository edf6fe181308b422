"""Displays draw their values, artist by artist."""

import re
import sys
from itertools import combinations

import numpy as np
import pytest
from samples import labelled
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import discrim
from discrim import (
    PCA,
    AccuracyCurveDisplay,
    CriticalDifferenceDisplay,
    FisherLDA,
    LoadingsDisplay,
    MarginDisplay,
    MonitoringDisplay,
    ProjectionDisplay,
    SeparationDisplay,
    SpectrumDisplay,
    VIPDisplay,
    compare,
)
from discrim.evaluation.results import Result
from discrim.registry import PUBLIC
from discrim.report.drawing import COLOURS, NAMED, colour, marker, plain
from discrim.report.features import LoadingsValues
from discrim.report.projection import ProjectionValues
from discrim.report.spectrum import SpectrumValues

matplotlib = pytest.importorskip("matplotlib")
matplotlib.use("Agg")
from matplotlib import pyplot as plt  # noqa: E402
from matplotlib.colors import to_hex  # noqa: E402

LEFT_OUT = {"SA01", "SA04", "ES01", "EX01"}  # of numpydoc's rules: links between pages, long summaries, examples
NAMES = np.array(["ash", "birch", "cedar"])


@pytest.fixture(autouse=True)
def no_figure_stays_open():
    yield
    plt.close("all")


@pytest.fixture(scope="module")
def parts():
    """Rows to fit and rows to look at."""
    X, y = labelled(120, 6)
    return X[:80], NAMES[y][:80], X[80:], NAMES[y][80:]


@pytest.fixture(scope="module")
def comparison():
    X, y = labelled(90, 5)
    return compare(
        X, y, methods=["pca", "fisher-lda", "raw"], classifiers=["5-nn"], n_components=[1, 2], n_splits=4, n_jobs=1
    )


def drawn(display):
    """Draw the figure, which reveals bad text or sizes."""
    display.figure_.canvas.draw()
    return display


# ---------------------------------------------------------------------- projection


def test_points_are_the_rows_on_the_components_pale_where_fitted(parts):
    X, y, X_test, y_test = parts
    model = FisherLDA(2).fit(X, y)
    shown = drawn(ProjectionDisplay.from_estimator(model, X, y, X_test, y_test))
    for at, name in enumerate(NAMES):
        points, fitted = shown.artists_["points"][name], shown.artists_["fitted"][name]
        np.testing.assert_allclose(points.get_offsets(), model.transform(X_test[y_test == name]))
        np.testing.assert_allclose(fitted.get_offsets(), model.transform(X[y == name]))
        assert to_hex(points.get_facecolor()[0]) == COLOURS[at] == to_hex(fitted.get_facecolor()[0])
        assert fitted.get_alpha() < points.get_alpha() / 2
        assert shown.ax_.collections.index(fitted) < shown.ax_.collections.index(points)  # drawn first, so behind
    assert [text.get_text() for text in shown.legend_.get_texts()] == NAMES.tolist()
    share = 100 * model.explained_variance_ratio_[1]
    assert shown.ax_.get_ylabel() == f"component 2, {share:.0f} % of the class separation"
    assert shown.ax_.get_aspect() == 1.0


def test_the_legend_hides_no_point(parts):
    X, y, X_test, y_test = parts
    shown = drawn(ProjectionDisplay.from_estimator(FisherLDA(2).fit(X, y), X, y, X_test, y_test))
    assert not shown.legend_.get_window_extent().overlaps(shown.ax_.get_window_extent())
    _, axes = plt.subplots()  # a figure without a layout engine
    shown.plot(ax=axes)
    drawn(shown)
    assert shown.legend_.get_window_extent().x1 <= shown.figure_.bbox.x1 + 1


def test_a_share_is_of_the_variance_for_pca_and_components_beyond_the_discriminants_are_called_so(parts):
    X, y, *_ = parts
    shown = ProjectionDisplay.from_estimator(PCA(2).fit(X), X, y)
    assert shown.ax_.get_xlabel().endswith("% of the variance")
    two = y != "cedar"
    shown = ProjectionDisplay.from_estimator(FisherLDA(2).fit(X[two], y[two]), X[two], y[two])
    assert shown.ax_.get_xlabel() == "component 1, 100 % of the class separation"
    assert shown.ax_.get_ylabel() == "component 2 (PCA of the rest)"
    worth = SpectrumDisplay.from_estimator(FisherLDA(2).fit(X[two], y[two]), X[two], y[two])
    assert worth.chart_.caption.startswith("Components from 2 on (grey)")
    hues = [to_hex(bar.get_facecolor()) for bar in worth.artists_["shares"][""]]
    assert hues == [COLOURS[5], to_hex(NAMED["line"])]


def test_three_components_are_seen_from_a_side(parts):
    X, y, *_ = parts
    model = PCA(3).fit(X)
    shown = drawn(ProjectionDisplay.from_estimator(model, X, y, components=(0, 1, 2)))
    scores = model.transform(X)
    (sa, se), (ca, ce) = np.sin(np.radians([35, 20])), np.cos(np.radians([35, 20]))
    low, high = scores.min(axis=0), scores.max(axis=0)
    first, second, third = ((scores - (low + high) / 2) / ((high - low).max() / 2)).T[:, y == "ash"]
    seen = np.column_stack([first * ca - second * sa, third * ce + (first * sa + second * ca) * se])
    np.testing.assert_allclose(shown.artists_["points"]["ash"].get_offsets(), seen)
    texts = [text for axis in shown.artists_["axis names"].values() for text in axis]
    assert [text.get_text() for text in texts] == ["component 1", "component 2", "component 3"]
    within = shown.ax_.get_window_extent()
    for text in texts:  # none is clipped
        box = text.get_window_extent()
        assert within.x0 < box.x0 < box.x1 < within.x1
        assert within.y0 < box.y0 < box.y1 < within.y1


def test_the_classes_are_in_the_order_people_count_in():
    X, y = labelled(120, 4, n_classes=11)
    names = np.array([f"class {at}" for at in range(1, 12)])[y]
    shown = ProjectionDisplay.from_estimator(PCA(2).fit(X), X, names)
    assert [text.get_text() for text in shown.legend_.get_texts()] == [f"class {at}" for at in range(1, 12)]
    points = PCA(2).fit(X).transform(X[names == "class 10"])
    np.testing.assert_allclose(shown.artists_["points"]["class 10"].get_offsets(), points)
    ordered = ProjectionDisplay.from_estimator(PCA(2).fit(X), X, y - 5).values.classes
    assert ordered == tuple(str(at - 5) for at in range(11))


def test_an_outline_holds_the_points_at_their_distance(parts):
    X, y, *_ = parts
    model = FisherLDA(2).fit(X, y)
    shown = ProjectionDisplay.from_estimator(model, X, y)
    rows = model.transform(X[y == "birch"])
    away = np.column_stack(shown.artists_["outlines"]["birch"].get_data()) - rows.mean(axis=0)
    squares = np.einsum("ij,jk,ik->i", away, np.linalg.inv(np.cov(rows.T, bias=True)), away)
    np.testing.assert_allclose(squares, -2 * np.log(0.05))
    assert "fitted" not in shown.artists_
    assert "outlines" not in ProjectionDisplay(shown.values).plot(outlines=False).artists_


def test_components_are_chosen_by_number_and_counted_in_the_error(parts):
    X, y, *_ = parts
    model = PCA(3).fit(X)
    values = ProjectionValues.from_estimator(model, X, y)
    shown = ProjectionDisplay(values).plot(components=(2, 0))
    np.testing.assert_allclose(shown.artists_["points"]["ash"].get_offsets(), model.transform(X[y == "ash"])[:, [2, 0]])
    with pytest.raises(ValueError, match=r"Component.*2.*3"):
        ProjectionDisplay(values).plot(components=(0, 3))


def test_one_component_is_drawn_class_above_class(parts):
    X, y, *_ = parts
    model = FisherLDA(1).fit(X, y)
    shown = drawn(ProjectionDisplay.from_estimator(model, X, y))
    across, up = shown.artists_["points"]["cedar"].get_offsets().T
    np.testing.assert_allclose(across, model.transform(X[y == "cedar"])[:, 0])
    assert np.abs(up - 2).max() <= 0.25
    assert [label.get_text() for label in shown.ax_.get_yticklabels()] == NAMES.tolist()


def test_a_sample_of_many_rows_is_stated_in_the_title(parts):
    X, y, *_ = parts
    shown = ProjectionDisplay.from_estimator(PCA(2).fit(X), X, y, most_points=30)
    assert shown.ax_.get_title() == "PCA (30 of 80 rows drawn)"
    assert sum(len(points.get_offsets()) for points in shown.artists_["points"].values()) == 30


def test_many_classes_are_named_at_their_means():
    X, y = labelled(200, 4, n_classes=22)
    shown = drawn(ProjectionDisplay.from_estimator(PCA(2).fit(X), X, y))
    assert shown.legend_ is None
    boxes = [text.get_window_extent().padded(1) for text in shown.artists_["names"][""]]
    assert len(boxes) == 22
    assert not any(one.overlaps(other) for one, other in combinations(boxes, 2))


# ---------------------------------------------------------------------- spectrum


def test_spectrum_is_in_percent_and_marks_what_was_chosen(parts):
    X, y, *_ = parts
    model = PCA().fit(X)
    shown = drawn(SpectrumDisplay.from_estimator(model, X, y, chosen=2))
    bars = shown.artists_["shares"][""]
    np.testing.assert_allclose([bar.get_height() for bar in bars], 100 * model.explained_variance_ratio_)
    scores = model.transform(X)
    means = {name: scores[y == name].mean(axis=0) for name in NAMES}
    expected = np.var([means[name] for name in y], axis=0) / np.var(scores, axis=0)
    np.testing.assert_allclose(shown.artists_["scores"][""].get_offsets()[:, 1], 100 * expected)
    np.testing.assert_allclose(shown.artists_["errors"][""].get_ydata(), 100 * shown.values.predicted_error)
    assert shown.artists_["chosen"][""].get_xdata()[0] == 2.5


class Halving:
    """Transformer with eigenvalues but no shares, or with neither."""

    def __init__(self, eigenvalues=None):
        if eigenvalues is not None:
            self.eigenvalues_ = np.array(eigenvalues)

    def transform(self, X):
        return X[:, :2] / 2


def test_eigenvalues_without_shares_are_drawn_as_shares_and_missing_ones_are_not_drawn(parts):
    X, y, *_ = parts
    bars = SpectrumDisplay.from_estimator(Halving([3.0, 1.0]), X, y).artists_["shares"][""]
    assert [bar.get_height() for bar in bars] == [75.0, 25.0]
    shown = SpectrumDisplay.from_estimator(Halving(), X, y)
    assert not {"shares", "chosen"} & shown.artists_.keys()


def test_an_error_that_was_seen_takes_the_place_of_the_predicted_one(parts):
    X, y, *_ = parts
    values = SpectrumValues.from_estimator(PCA(3).fit(X), X, y)
    (line,) = values.chart({1: 0.5, 3: 0.25}).of("errors")
    assert (list(line.x), list(line.y)) == ([1, 3], [50, 25])
    assert line.legend == "error on new rows, first k"


# ---------------------------------------------------------------------- loadings


def test_bars_are_the_largest_loadings_first(parts):
    X, y, *_ = parts
    model = FisherLDA(2).fit(X, y)
    shown = drawn(LoadingsDisplay.from_estimator(model, X, names=list("abcdef"), component=1, count=3))
    order = np.argsort(-np.abs(model.components_[1]))[:3]
    assert shown.features_ == tuple("abcdef"[at] for at in order)
    bars = shown.artists_["bars"][""]
    lengths = [bar.get_width() for bar in bars]
    np.testing.assert_allclose(lengths, model.components_[1][order])
    assert [to_hex(bar.get_facecolor()) for bar in bars] == [colour(int(length < 0)) for length in lengths]
    assert shown.ax_.get_title() == "FisherLDA, component 2"


def test_structure_and_arrows_are_correlations(parts):
    X, y, *_ = parts
    model = make_pipeline(StandardScaler(), FisherLDA(2)).fit(X, y)
    scores = model.transform(X)
    correlations = np.array([[np.corrcoef(scores[:, i], X[:, j])[0, 1] for j in range(6)] for i in range(2)])
    shown = LoadingsDisplay.from_estimator(model, X, kind="structure")
    order = np.argsort(-np.abs(correlations[0]))
    np.testing.assert_allclose([bar.get_width() for bar in shown.artists_["bars"][""]], correlations[0][order])
    circle = drawn(LoadingsDisplay(shown.values).plot(kind="arrows", count=4))
    arrows = circle.artists_["arrows"][""]
    longest = np.argsort(-np.hypot(*correlations))[:4]
    np.testing.assert_allclose([arrow.xy for arrow in arrows], correlations.T[longest])
    outline = circle.artists_["circle"][""].get_window_extent()
    assert outline.width == pytest.approx(outline.height)  # a circle, not an ellipse


def test_names_of_arrows_do_not_lie_on_each_other():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(50, 1)) + 0.01 * rng.normal(size=(50, 12))  # twelve features that are nearly one
    shown = drawn(LoadingsDisplay.from_estimator(PCA(2).fit(X), X, kind="arrows"))
    boxes = [text.get_window_extent() for side in shown.artists_["names"].values() for text in side]
    assert len(boxes) == 12
    assert not any(one.overlaps(other) for one, other in combinations(boxes, 2))


def test_long_names_of_arrows_stay_within_the_chart(parts):
    X, y, *_ = parts
    names = [f"{'very ' * 3}long name {at}" for at in range(6)]
    shown = drawn(LoadingsDisplay.from_estimator(FisherLDA(2).fit(X, y), X, names=names, kind="arrows"))
    within = shown.ax_.get_window_extent()
    boxes = [text.get_window_extent() for side in shown.artists_["names"].values() for text in side]
    assert len(boxes) == 6
    assert all(within.x0 <= box.x0 and box.x1 <= within.x1 for box in boxes)
    short = LoadingsDisplay.from_estimator(FisherLDA(2).fit(X, y), X, names=list("abcdef"), kind="arrows")
    assert short.ax_.get_xlim() == pytest.approx((-2.1, 2.1))  # a short name fits on a phone, too


def test_missing_values_cannot_be_drawn(parts):
    X, *_ = parts
    values = LoadingsValues.from_estimator(Halving(), X)
    assert LoadingsDisplay(values).plot().ax_.get_xlabel() == "correlation with the component"
    with pytest.raises(ValueError, match=r"Halving.*loadings"):
        LoadingsDisplay(values).plot(kind="loadings")
    with pytest.raises(ValueError, match=r"kind.*'loadings', 'structure', 'arrows'"):
        LoadingsDisplay(values).plot(kind="bars")
    with pytest.raises(ValueError, match=r"Component.*1.*2"):
        LoadingsDisplay(values).plot(component=2)


def test_loadings_of_a_spectrum_are_a_line_over_it():
    X, y = labelled(80, 24)
    wavelengths = [f"{400 + 2.5 * at}" for at in range(24)]
    model = FisherLDA(2).fit(X, y)
    shown = drawn(LoadingsDisplay.from_estimator(model, X, names=wavelengths, component=1))
    x, heights = shown.artists_["line"][""].get_data()
    np.testing.assert_allclose(x, 400 + 2.5 * np.arange(24))
    np.testing.assert_allclose(heights, model.components_[1])
    assert shown.features_ == tuple(wavelengths)
    assert shown.ax_.get_xlabel() == "feature"
    with_unit = LoadingsDisplay.from_estimator(model, X, names=[f"{name} nm" for name in wavelengths])
    np.testing.assert_allclose(with_unit.artists_["line"][""].get_data()[0], x)
    assert with_unit.ax_.get_xlabel() == "nm"
    two_units = [f"{name} {'nm' if at else 'mm'}" for at, name in enumerate(wavelengths)]
    for names in (two_units, wavelengths[1::-1] + wavelengths[2:], ["nan", *wavelengths[1:]], ["a", *wavelengths[1:]]):
        assert "bars" in LoadingsDisplay.from_estimator(model, X, names=names).artists_
    few = LoadingsDisplay.from_estimator(FisherLDA(2).fit(X[:, :19], y), X[:, :19], names=wavelengths[:19])
    assert "bars" in few.artists_


# ---------------------------------------------------------------------- margins


def test_boxes_are_quartiles_of_the_margins_and_shares_those_above_0(parts):
    X, y, X_test, y_test = parts
    shown = drawn(MarginDisplay.from_estimator(FisherLDA(2).fit(X, y), X, y, X_test, y_test))
    for at, name in enumerate(NAMES):
        for margins, side in zip(shown.values.of_class(at), ("all features", "components"), strict=True):
            found = {part: shown.artists_[part][side] for part in ("boxes", "medians", "whiskers")}
            low, first, middle, third, high = np.quantile(margins, [0.05, 0.25, 0.5, 0.75, 0.95])
            box = found["boxes"][at]
            np.testing.assert_allclose([box.get_x(), box.get_x() + box.get_width()], [first, third])
            np.testing.assert_allclose(found["medians"].get_offsets()[at, 0], middle)
            np.testing.assert_allclose(found["whiskers"].get_xdata()[6 * at :][:5], [low, first, np.nan, third, high])
        assert shown.values.shares[name] == tuple(np.mean(one > 0) for one in shown.values.of_class(at))
    assert "rows not fitted" in shown.ax_.get_xlabel()


# ---------------------------------------------------------------------- comparisons


def test_curves_are_mean_scores_with_intervals_and_raw_features_a_level(comparison):
    shown = drawn(AccuracyCurveDisplay.from_comparison(comparison))
    for method in ("pca", "fisher-lda"):
        for k, mean in zip(*shown.artists_["lines"][method].get_data(), strict=True):
            scores = [row.scores["accuracy"] for row in comparison.rows if row.cell == (method, k, "5-nn")]
            assert len(scores) == 4
            assert mean == pytest.approx(100 * np.mean(scores))
    assert set(shown.artists_["bands"]) == {"pca", "fisher-lda", "raw"}
    heights = shown.artists_["bands"]["pca"].get_xy()[:, 1]
    curve = next(one for one in shown.values.curves if one.method == "pca")
    assert heights.max() == pytest.approx(100 * min(curve.high.max(), 1))
    assert heights.min() == pytest.approx(100 * max(curve.low.min(), 0))
    level = next(one for one in shown.values.curves if one.method == "raw")
    heights = shown.artists_["bands"]["raw"].get_xy()[:, 1]
    assert (heights.min(), heights.max()) == pytest.approx((100 * level.low[0], 100 * min(level.high[0], 1)))
    raw = shown.artists_["lines"]["raw"]
    assert len(set(raw.get_ydata())) == 1
    assert raw.get_label() == "raw (5 features)"


def test_numbers_of_components_are_labelled_if_they_fit():
    rows = [
        Result(
            {"method": "pca", "k": k, "classifier": "svm", "split": 0},
            {"accuracy": 0.5, "n_test": 1, "n_train": 1, "fit_seconds": 0.1},
        )
        for k in range(1, 101)
    ]
    names = drawn(AccuracyCurveDisplay.from_comparison(rows)).ax_.get_xticklabels()
    assert names[0].get_text() == "1"
    assert names[-1].get_text() == "100"
    boxes = [name.get_window_extent() for name in names]
    assert len(boxes) > 6
    assert not any(one.overlaps(other) for one, other in combinations(boxes, 2))


def test_curves_are_picked_by_name(comparison):
    shown = AccuracyCurveDisplay.from_comparison(comparison, methods=["pca"])
    assert list(shown.artists_["lines"]) == ["pca"]
    with pytest.raises(ValueError, match=r"method.*'pls'"):
        AccuracyCurveDisplay(shown.values).plot(methods=["pls"])
    with pytest.raises(ValueError, match=r"classifier.*'svm'"):
        AccuracyCurveDisplay(shown.values).plot(classifier="svm")
    with pytest.raises(ValueError, match="no results"):
        AccuracyCurveDisplay.from_comparison([])


def test_methods_stand_at_their_mean_ranks_and_bars_join_those_alike():
    rng = np.random.default_rng(0)
    scores = np.array([0.9, 0.88, 0.6, 0.5]) + 0.05 * rng.normal(size=(20, 4))
    shown = drawn(CriticalDifferenceDisplay.from_scores(scores, ["one", "two", "three", "four"]))
    ranks = (scores[:, :, None] < scores[:, None, :]).sum(axis=2) + 1
    names = [label.get_text() for label in shown.ax_.get_yticklabels()]
    for at, method in enumerate(["one", "two", "three", "four"]):
        rank = ranks[:, at].mean()
        row = names.index(f"{method} {rank:.2f}")
        assert shown.artists_["ranks"][""].get_offsets()[row].tolist() == pytest.approx([rank, row])
    critical = 2.569 * np.sqrt(4 * 5 / (6 * 20))  # Demšar (2006), table 5: four methods at 5 %
    assert np.ptp(shown.artists_["ruler"][""].get_xdata()) == pytest.approx(critical, abs=1e-3)
    best, last = np.sort(ranks.mean(axis=0))[[0, 3]]
    bars = list(shown.artists_["bars"].values())
    for bar, (first, final) in zip(bars, shown.values.groups, strict=True):
        assert np.ptp(shown.values.mean_ranks[[first, final]]) <= critical
        assert list(bar.get_ydata()) == pytest.approx([first - 0.2, final + 0.2])
    assert last - best > critical
    assert bars


def test_the_rank_behind_a_long_name_is_whole():
    shown = CriticalDifferenceDisplay.from_scores([[0.9, 0.8], [0.8, 0.7]], ["a" * 40, "short"])
    names = [label.get_text() for label in shown.ax_.get_yticklabels()]
    assert names == ["a" * 19 + "… 1.00", "short 2.00"]


def test_names_of_rows_beyond_do_not_lie_on_each_other():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 4))
    X[:5] = [0, 0, 0, 40] + 0.1 * rng.normal(size=(5, 4))  # five rows far off, side by side
    shown = drawn(MonitoringDisplay.from_estimator(PCA(2).fit(X[5:]), X[5:], X))
    boxes = [text.get_window_extent() for text in shown.artists_["names"][""]]
    assert len(boxes) >= 5
    assert not any(one.overlaps(other) for one, other in combinations(boxes, 2))


def test_ranks_need_results_of_several_data_sets(comparison):
    by_data = {"first": comparison.rows, "second": comparison.rows}
    shown = CriticalDifferenceDisplay.from_results(by_data, "5-nn")
    assert set(shown.artists_["stems"]) == {"pca", "fisher-lda", "raw"}
    with pytest.raises(ValueError, match="by_data must have"):
        CriticalDifferenceDisplay.from_results({"first": comparison.rows}, "5-nn")


# ---------------------------------------------------------------------- all displays


def every_display(parts, comparison):
    X, y, X_test, y_test = parts
    model = FisherLDA(2).fit(X, y)
    scores = [[3, 2, 1], [3, 1, 2], [2, 3, 1]]
    return {
        ProjectionDisplay: lambda **more: ProjectionDisplay.from_estimator(model, X, y, X_test, y_test, **more),
        SpectrumDisplay: lambda **more: SpectrumDisplay.from_estimator(model, X, y, **more),
        LoadingsDisplay: lambda **more: LoadingsDisplay.from_estimator(model, X, **more),
        VIPDisplay: lambda **more: VIPDisplay.from_estimator(model, X, y, **more),
        SeparationDisplay: lambda **more: SeparationDisplay.from_estimator(model, X, y, np.unique(y)[:2], **more),
        MonitoringDisplay: lambda **more: MonitoringDisplay.from_estimator(model, X, X_test, **more),
        MarginDisplay: lambda **more: MarginDisplay.from_estimator(model, X, y, X_test, y_test, **more),
        AccuracyCurveDisplay: lambda **more: AccuracyCurveDisplay.from_comparison(comparison, **more),
        CriticalDifferenceDisplay: lambda **more: CriticalDifferenceDisplay.from_scores(scores, list("abc"), **more),
    }


DISPLAYS = [name for name in discrim.__all__ if name.endswith("Display")]


@pytest.mark.parametrize("name", DISPLAYS)
def test_a_display_draws_on_the_given_axes_and_again_on_others(name, parts, comparison):
    made = every_display(parts, comparison)[getattr(discrim, name)]
    _, axes = plt.subplots()
    shown = drawn(made(ax=axes, alpha=0.25))
    assert shown.ax_ is axes
    assert shown.figure_ is axes.figure
    assert 0.25 in {artist.get_alpha() for artist in axes.get_children()}
    assert shown.plot() is shown
    assert shown.ax_ is not axes


@pytest.mark.parametrize("name", DISPLAYS)
def test_without_matplotlib_the_extra_is_named(name, parts, comparison, monkeypatch):
    made = every_display(parts, comparison)[getattr(discrim, name)]
    monkeypatch.setitem(sys.modules, "matplotlib.pyplot", None)
    with pytest.raises(ImportError, match=r"pip install 'discrim\[plots\]'"):
        made()


def test_hostile_names_stay_text():
    X, y = labelled(60, 3)
    hostile = np.array(["$\\frac{", "_hidden", "<b>" + "x" * 500])[y]
    model = FisherLDA(2).fit(X, hostile)
    shown = drawn(ProjectionDisplay.from_estimator(model, X, hostile))
    texts = [text.get_text() for text in shown.legend_.get_texts()]
    assert texts == [plain(name) for name in sorted(set(hostile))]
    assert len(texts) == 3
    drawn(MarginDisplay.from_estimator(model, X, hostile))
    drawn(LoadingsDisplay.from_estimator(model, X, names=["$x^{", "_y\n\n", "z" * 300], kind="arrows"))
    drawn(VIPDisplay.from_estimator(model, X, hostile, names=["$x^{", "_y\n\n", "z" * 300]))
    drawn(MonitoringDisplay.from_estimator(model, X, ids=["$x^{", "_y\n\n", "z" * 300] * 20, level=0.5))
    drawn(CriticalDifferenceDisplay.from_scores([[2, 1], [1, 2], [2, 1]], ["$a_{", "_b"]))


@pytest.mark.parametrize("name", [name for name in PUBLIC if name.endswith("Display")])
def test_what_displays_have_in_common_is_in_each_docstring(name):
    validate = pytest.importorskip("numpydoc.validate", reason="numpydoc is not installed").validate
    kind = getattr(discrim, name)
    for method in ["plot", *(one for one in vars(kind) if one.startswith("from_"))]:
        text = getattr(kind, method).__doc__
        assert not re.search(r"^ *\{\w+\}$", text, re.MULTILINE)
        assert "ax : matplotlib.axes.Axes, default=None" in text
        found = validate(f"discrim.{name}.{method}")["errors"]
        assert not [error for error in found if error[0] not in LEFT_OUT]
    assert f"values : {name.removesuffix('Display')}Values\n" in kind.__doc__
    assert "figure_ : matplotlib.figure.Figure" in kind.__doc__


def test_no_two_classes_look_alike_and_neighbours_differ_in_both():
    looks = [(colour(at), marker(at)) for at in range(100)]
    assert len(set(looks)) == 100
    assert len({marker(at) for at in range(10)}) == 10
    assert len({colour(at) for at in range(20)}) == len(COLOURS) == 20


def test_a_classifiers_view_of_a_class_that_was_not_fitted():
    rng = np.random.default_rng(0)
    codes = np.arange(200) % 5
    X, y = rng.standard_normal((200, 5)) + 3 * np.eye(5)[codes], np.array(list("bcdea"))[codes]
    known = y != "a"
    model = discrim.PosteriorMap(2, kernel="linear").fit(X[known], y[known])
    shown = discrim.ProjectionDisplay.from_estimator(model, X[known], y[known], X, y)
    assert shown.values.placed.classes == ("a", "b", "c", "d", "e")
    np.testing.assert_array_equal(np.isnan(shown.values.placed.places).any(axis=1), [True] + 4 * [False])
    np.testing.assert_array_equal(shown.values.placed.places[1:], model.places_)
