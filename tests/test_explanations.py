"""Laws of `explain` and `feature_importances_`, over all reducers."""

import numpy as np
import pytest
import scipy.sparse as sp
from estimators import LISTED, QUIET, over
from samples import labelled

from discrim import PCA, PosteriorMap, RegularizedLDA, fit_parts, load, save

UNEXPLAINED = ("kernel-bayes-error-lda", "max-margin-shift")  # a pipeline behind a kernel, any extractor
EXPLAINED = [case for case in LISTED if case.name not in UNEXPLAINED]


@QUIET
@over(EXPLAINED)
def test_effects_on_the_components_are_finite_differences(case):
    X, y = labelled(80, 5, n_classes=4, seed=3)
    model = case(2).fit(X, y)
    found = model.explain(X[:7])
    for j, spread in enumerate(X.std(axis=0)):
        step = 1e-4 * spread * np.eye(5)[j]
        moved = (model.transform(X[:7] + step) - model.transform(X[:7] - step)) / 2e-4
        np.testing.assert_allclose(found.positions[:, :, j], moved, rtol=1e-5, atol=1e-6)


@QUIET
@over(EXPLAINED)
def test_effects_on_the_log_odds_are_differences_of_the_decision_function(case):
    X, y = labelled(80, 5, n_classes=4, seed=3)
    model = case(2).fit(X, y)
    if not hasattr(model, "decision_function"):
        found = model.explain(X[:7])
        assert (found.first, found.second, found.log_odds) == (None, None, None)
        effects = np.linalg.norm(model.components_ * X.std(axis=0), axis=0)
        np.testing.assert_allclose(found.importances, effects, rtol=1e-6)
        np.testing.assert_allclose(model.feature_importances_, effects, rtol=1e-6)
        with pytest.raises(ValueError, match="between"):
            model.explain(X[:7], between=(0, 1))
        return
    scores = model.decision_function(X[:7])
    best = np.argsort(scores, axis=1)
    for between in (None, (3, 1)):
        found = model.explain(X[:7], between)
        first, second = (best[:, -1], best[:, -2]) if between is None else np.full((2, 7), [[3], [1]])
        np.testing.assert_array_equal(found.first, model.classes_[first])
        np.testing.assert_array_equal(found.second, model.classes_[second])
        for j, spread in enumerate(X.std(axis=0)):
            step = 1e-4 * spread * np.eye(5)[j]
            change = (model.decision_function(X[:7] + step) - model.decision_function(X[:7] - step)) / 2e-4
            wanted = change[np.arange(7), first] - change[np.arange(7), second]
            np.testing.assert_allclose(found.log_odds[:, j], wanted, rtol=1e-4, atol=1e-5)
        np.testing.assert_allclose(found.importances, np.abs(found.log_odds).mean(axis=0))


@QUIET
@over(EXPLAINED)
def test_importances_find_the_columns_that_separate_the_classes(case, rng):
    if not case.laws.supervised:
        pytest.skip("without labels nothing separates")
    y = np.arange(240) % 3
    X = rng.standard_normal((240, 6))
    X[:, 1] += 4 * (y == 1)
    X[:, 4] += 4 * (y == 2)
    model = case(2).fit(X, y)
    assert set(np.argsort(model.feature_importances_)[-2:]) == {1, 4}
    if hasattr(model, "decision_function"):
        assert model.explain(X, between=(0, 1)).importances.argmax() == 1
        assert model.explain(X, between=(2, 0)).importances.argmax() == 4


def test_importances_of_a_linear_rule_are_the_mean_over_pairs_of_classes():
    X, y = labelled(90, 6, n_classes=4, seed=1)
    model = RegularizedLDA(2, shrinkage=0.1).fit(X, y)
    p, coef = model.priors_, model.coef_
    pairs = [(a, b) for a in range(4) for b in range(a)]
    mean = sum(p[a] * p[b] * np.abs(coef[a] - coef[b]) for a, b in pairs) / sum(p[a] * p[b] for a, b in pairs)
    np.testing.assert_allclose(model.feature_importances_, mean * X.std(axis=0))
    two = RegularizedLDA(1, shrinkage=0.1).fit(X, y > 0)
    np.testing.assert_allclose(two.feature_importances_, np.abs(two.coef_[0]) * X.std(axis=0))
    np.testing.assert_allclose(two.explain(X[:3]).importances, two.feature_importances_)


@pytest.mark.parametrize("model", [RegularizedLDA(2, shrinkage=0.1), PCA(2), PosteriorMap(2, kernel="linear")], ids=str)
def test_the_spread_of_columns_is_that_of_all_rows_on_every_path(model, tmp_path, rng):
    X, y = labelled(120, 5, n_classes=3, seed=1)
    X, weights = np.round(X, 2) + 1e3, rng.integers(1, 4, 120)
    model.set_params(**({"cv": 4} if "cv" in model.get_params() else {}))
    twice = model.fit(np.repeat(X, weights, axis=0), np.repeat(y, weights))._column_deviations
    np.testing.assert_allclose(twice, np.repeat(X, weights, axis=0).std(axis=0))
    np.testing.assert_allclose(model.fit(X, y, weights)._column_deviations, twice)
    np.testing.assert_allclose(model.fit(sp.csr_array(X), y, weights)._column_deviations, twice, rtol=1e-6)
    parted = fit_parts(model, [(X[i::3], y[i::3], weights[i::3]) for i in range(3)])
    np.testing.assert_allclose(parted._column_deviations, twice)
    save(parted, tmp_path / "model")
    again = load(tmp_path / "model")
    np.testing.assert_array_equal(again.feature_importances_, parted.feature_importances_)
    np.testing.assert_array_equal(again.explain(X[:3]).positions, parted.explain(X[:3]).positions)


@QUIET
def test_wide_tables_and_scatters_with_class_weights_have_the_same_spread():
    X, y = labelled(30, 60, seed=2)
    for case in EXPLAINED:
        if case.laws.linear:
            model = case(1).fit(X, y)
            there = np.arange(60) if case.name != "screened-pca" else model.selected_
            np.testing.assert_allclose(model._column_deviations[there], X.std(axis=0)[there], err_msg=case.name)


def test_the_spread_of_long_rows_keeps_its_digits_in_columns_that_hardly_vary():
    X, _ = labelled(30, 60, seed=2)
    X[:, 3], X[:, 4] = 7.1, 10 + 1e-4 * X[:, 4]
    found = PCA(1).fit(X)._column_deviations
    np.testing.assert_allclose(found, X.std(axis=0), rtol=1e-9, atol=1e-14)
    assert found[3] == 0


@pytest.mark.parametrize("between", [(0, 9), (1, 1), (1,), (0, 1, 2)])
def test_between_takes_two_known_labels(between):
    X, y = labelled(60, 4)
    with pytest.raises(ValueError, match="between"):
        PosteriorMap(2, kernel="linear").fit(X, y).explain(X[:2], between)


def test_importances_of_the_map_are_the_mean_over_weighted_training_rows(rng):
    X, y = labelled(90, 4, n_classes=3, seed=5)
    weights = rng.integers(1, 4, 90)
    model = PosteriorMap(2).fit(X, y, weights)
    repeated = np.repeat(X, weights, axis=0)
    np.testing.assert_allclose(model.feature_importances_, model.explain(repeated).importances)
    assert not hasattr(PosteriorMap(2, kernel="laplacian").fit(X, y), "feature_importances_")
