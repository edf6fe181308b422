"""Chart of the posterior map: class names, lines between confused classes, use of the space."""

from types import SimpleNamespace

import numpy as np
import pytest
from pages import made_up, trees
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from discrim import FisherLDA, PosteriorMap
from discrim.report.first_split import CLASSIFIERS_VIEW, looks_of
from discrim.report.projection import PlacedClasses, ProjectionValues


def with_confusions(confusions, labels=("10", "2", "30", "4")):
    places = np.array([[1.0, 0.0], [0.0, 1.0], [-1.0, 0.0], [0.0, -1.0]])
    return SimpleNamespace(places_=places, confusions_=np.asarray(confusions), classes_=np.array(labels))


CONFUSIONS = np.array([[0.8, 0.1, 0.0, 0.1], [0.0, 1.0, 0.0, 0.0], [0.0, 0.0, 0.998, 0.002], [0.2, 0.0, 0.0, 0.8]])


def test_places_and_pairs_are_those_of_the_classes_by_name():
    found = PlacedClasses.from_estimator(with_confusions(CONFUSIONS), ("2", "4", "10", "30"))
    np.testing.assert_array_equal(found.places, [[0, 1], [0, -1], [1, 0], [-1, 0]])
    assert [(a, b) for a, b, _ in found.pairs] == [(1, 2), (0, 2)]
    np.testing.assert_allclose([share for *_, share in found.pairs], [0.15, 0.05])
    assert found.caption.endswith("on held-out rows of the other, most of all: 4 and 10 (15.0 %), 2 and 10 (5.0 %)")
    assert found.caption.startswith("mean probability of the one class")


def test_classes_that_are_never_confused_are_not_mentioned():
    found = PlacedClasses.from_estimator(with_confusions(np.eye(4)), ("2", "4", "10", "30"))
    assert (found.pairs, found.caption, found.lines(np.zeros((4, 2)))) == ((), "", [])


def test_other_maps_and_maps_of_one_dimension_have_none():
    X, y = np.random.default_rng(0).standard_normal((30, 3)), np.arange(30) % 2
    assert PlacedClasses.from_estimator(FisherLDA(1).fit(X, y), ("0", "1")) is None
    assert PlacedClasses.from_estimator(PosteriorMap(2, kernel="linear").fit(X, y), ("0", "1")) is None


def test_the_chart_has_class_names_and_lines_between_confused_classes():
    rng = np.random.default_rng(0)
    y = np.arange(120) % 4
    X = rng.standard_normal((120, 3)) + np.array([[0, 0, 0], [1.5, 0, 0], [0, 6, 0], [6, 6, 0]])[y]
    model = make_pipeline(StandardScaler(), PosteriorMap(2, kernel="linear", sharpness="tempered")).fit(X, y)
    values = ProjectionValues.from_estimator(model, X, y)
    chart = values.chart()
    (names,) = chart.of("names")
    assert list(names.texts) == ["0", "1", "2", "3"]
    shown = np.stack([names.x, names.y], axis=1)
    np.testing.assert_allclose(shown / np.linalg.norm(shown, axis=1, keepdims=True), model[-1].places_, atol=1e-12)
    assert np.linalg.norm(shown, axis=1).min() > 1
    first, *_ = chart.of("confused")
    assert first.name == "0 and 1"
    Z = model[-1].transform_held_out(model[0].transform(X))  # as they are drawn
    ends = [Z[y == 0].mean(axis=0), Z[y == 1].mean(axis=0)]
    np.testing.assert_allclose(np.stack([first.x, first.y], axis=1), ends, atol=1e-12)
    sizes = [line.size for line in chart.of("confused")]
    assert sizes == sorted(sizes, reverse=True)
    assert not list(chart.of("outlines"))  # ellipses of a normal class mean nothing here
    assert chart.caption.startswith(
        "mean probability of the one class on held-out rows of the other, most of all: 0 and 1 ("
    )
    assert chart.key.startswith("held-out positions")
    assert "grey lines" in chart.key  # they are explained where there is no caption
    on_one_component = values.chart((0,))
    assert "grey" not in on_one_component.key
    assert "nearest to the most probable" in chart.caption
    assert chart.x.limits == chart.y.limits
    assert chart.y.limits[1] > np.abs(shown).max()


@pytest.mark.parametrize("compared", [[], [(CLASSIFIERS_VIEW, 2, 0.8)]], ids=["not compared", "compared"])
def test_a_page_shows_the_view_second_and_tempered(compared):
    look = looks_of(made_up(trees(150, 5), "wood", [("fisher-lda", 2, 0.9), ("pca", 2, 0.8), *compared]))
    assert not look.refused
    assert [one.method for one in look.maps][1] == CLASSIFIERS_VIEW
    assert look.maps[0].linear
    radii = np.linalg.norm(look.maps[1].views[0].projection.test.scores, axis=1)
    assert np.median(radii) < 0.9  # sharp, more than half of the rows lie on the places
    assert (radii > 0.97).mean() < 0.2
