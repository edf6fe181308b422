"""The posterior map of any classifier, and the forest that competes with the rule of kernels."""

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.datasets import load_digits
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression, RidgeClassifier
from sklearn.metrics import log_loss
from sklearn.model_selection import StratifiedKFold
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.preprocessing import scale
from sklearn.svm import SVC

from discrim import PosteriorMap, load, save
from discrim.core import classifier_rule


def boxes(n, seed=0, noise=12):
    """Classes by the quadrant of two of many columns with heavy tails, which suits trees and no kernel."""
    rng = np.random.default_rng(seed)
    X = rng.standard_t(1.5, (n, 2 + noise))
    return X, 2 * (X[:, 0] > 0.3) + (X[:, 1] > -0.2)


def softmax(a):
    e = np.exp(a - a.max(axis=1, keepdims=True))
    return e / e.sum(axis=1, keepdims=True)


JUDGES = [LogisticRegression(), GaussianNB(), KNeighborsClassifier(7), RidgeClassifier(), SVC(break_ties=True)]


@pytest.mark.parametrize("judge", JUDGES, ids=lambda one: type(one).__name__)
@pytest.mark.parametrize("n_classes", [2, 4])
def test_the_map_of_a_classifier_is_its_held_out_posteriors_at_the_places(judge, n_classes):
    X, y = boxes(160, noise=2)
    y = np.array(["a", "b", "c", "d"])[y % n_classes]
    splits = list(StratifiedKFold(4).split(X, y))
    model = PosteriorMap(2, classifier=judge, cv=splits).fit(X, y)

    def scores(fitted, rows):
        if hasattr(fitted, "predict_proba"):
            return np.log((1 - 1 / 160) * fitted.predict_proba(rows) + 1 / (160 * n_classes))
        values = fitted.decision_function(rows)
        return np.c_[-values / 2, values / 2] if values.ndim == 1 else values

    held_out = np.empty((160, n_classes))
    for training, test in splits:
        n = len(training)
        judge.fit(X[training], y[training])
        held_out[test] = scores(judge, X[test])
        if hasattr(judge, "predict_proba"):
            p = judge.predict_proba(X[test])
            held_out[test] = np.log((1 - 1 / n) * p + 1 / (n * n_classes))
    codes = np.searchsorted(model.classes_, y)
    assert model.held_out_score_ == pytest.approx((held_out.argmax(axis=1) == codes).mean())
    losses = {}
    for T in 2.0 ** np.arange(-12, 8.25, 0.5):
        p = (1 - 1 / 160) * softmax(held_out / T) + 1 / (160 * n_classes)
        losses[T] = log_loss(codes, p, labels=range(n_classes))
    assert model.temperature_ == min(losses, key=losses.get)
    assert model.held_out_log_loss_ == pytest.approx(min(losses.values()))
    final = scores(judge.fit(X, y), X)
    np.testing.assert_array_equal(model.predict(X), judge.predict(X))
    q = softmax(model.sharpness_ * final / model.temperature_)
    np.testing.assert_allclose(model.transform(X), q @ model.places_, atol=1e-10)
    q = softmax(model.sharpness_ * held_out / model.temperature_)
    np.testing.assert_allclose(model.transform_held_out(X), q @ model.places_, atol=1e-10)
    assert model.kernel_.name == type(judge).__name__
    assert type(judge).__name__ in model.solver_


def test_explanations_of_a_classifier_are_differences_over_one_standard_deviation():
    X, y = boxes(120, noise=1)
    model = PosteriorMap(2, classifier=GaussianNB()).fit(X, y)
    found = model.explain(X[:5], between=(0, 3))
    for j, spread in enumerate(X.std(axis=0)):
        step = spread * np.eye(3)[j] / 2
        change = model.decision_function(X[:5] + step) - model.decision_function(X[:5] - step)
        np.testing.assert_allclose(found.log_odds[:, j], change[:, 0] - change[:, 3], atol=1e-9)
    assert not hasattr(model, "feature_importances_")
    forest = PosteriorMap(2, classifier=RandomForestClassifier(10, random_state=0)).fit(X, y)
    assert set(np.argsort(forest.feature_importances_)[-2:]) == {0, 1}


@pytest.mark.parametrize("make", [np.asarray, sp.csr_array])
def test_model_files_hold_the_classifier_or_refuse_it(make, tmp_path):
    X, y = boxes(90, noise=1)
    for judge in (RandomForestClassifier(10, random_state=0), LogisticRegression()):
        model = PosteriorMap(2, classifier=judge).fit(make(X), y)
        save(model, tmp_path / "model")
        np.testing.assert_array_equal(load(tmp_path / "model").transform(make(X)), model.transform(make(X)))
    with pytest.raises(TypeError, match="RidgeClassifier"):
        save(PosteriorMap(2, classifier=RidgeClassifier()).fit(X, y), tmp_path / "model")


# ---------------------------------------------------------------------- the forest


def test_a_forest_is_chosen_where_it_is_better_on_held_out_rows():
    X, y = boxes(400)
    new, truth = boxes(400, seed=1)
    model, rule = PosteriorMap(2).fit(X, y), PosteriorMap(2, classifier="rule").fit(X, y)
    assert model.kernel_.name == "RandomForestClassifier"
    assert "forest" in model.kernel_.why
    assert model.score(new, truth) > rule.score(new, truth) + 0.1
    assert model.held_out_score_ == pytest.approx(model.score(new, truth), abs=0.05)
    assert log_loss(truth, model.predict_proba(new)) < log_loss(truth, rule.predict_proba(new))


def plane_and_box(n, seed=0):
    """Labels by a sum: of many columns, which suits a linear rule, and of an interval of one, which suits trees."""
    rng = np.random.default_rng(seed)
    X = np.c_[rng.standard_normal((n, 15)), rng.standard_t(1.5, n)]
    noise = rng.standard_normal(n) / 2
    return X, (X[:, :15].sum(axis=1) + 4 * (np.abs(X[:, 15]) < 0.8) - 2 + noise > 0).astype(int)


def test_the_mean_of_rule_and_forest_is_chosen_where_it_is_better_than_either(tmp_path):
    X, y = plane_and_box(600)
    new, truth = plane_and_box(600, seed=1)
    model = PosteriorMap(1).fit(X, y)
    assert model.kernel_.name == "rbf + RandomForestClassifier"
    assert "mean of" in model.kernel_.why
    rule = model._rule.rules[0]
    pairs = zip(model._rule.rules, model._rule.temperatures, strict=True)
    p = np.mean([softmax(one.scores(new) / T) for one, T in pairs], axis=0)
    a = np.log((1 - 1 / 600) * p + 1 / 1200)
    expected = (1 - 1 / 600) * softmax(a / model.temperature_) + 1 / 1200
    np.testing.assert_allclose(model.predict_proba(new), expected, atol=1e-12)
    alone = PosteriorMap(1, classifier="rule").fit(X, y)
    np.testing.assert_allclose(rule.scores(new), alone._rule.scores(new), atol=1e-10)
    assert model.score(new, truth) > alone.score(new, truth)
    assert log_loss(truth, model.predict_proba(new)) < log_loss(truth, alone.predict_proba(new))
    assert alone.held_out_score_ < model.held_out_score_ < model.score(new, truth) + 0.03  # by smaller forests
    assert model.feature_importances_.sum() == pytest.approx(1)
    assert model.feature_importances_.argmax() == 15
    save(model, tmp_path / "model")
    np.testing.assert_array_equal(load(tmp_path / "model").transform(new), model.transform(new))


def test_the_order_of_rows_does_not_change_the_forest_and_any_unit_will_do(rng, tmp_path):
    X, y = boxes(200, noise=3)
    one = PosteriorMap(2, random_state=0).fit(X, y)
    assert one.kernel_.name == "RandomForestClassifier"
    order = rng.permutation(200)
    again = PosteriorMap(2, random_state=0).fit(X[order], y[order])
    np.testing.assert_array_equal(again._rule.scores(X), one._rule.scores(X))
    for unit in (1e-200, 1e200):
        assert PosteriorMap(2, random_state=0).fit(unit * X, y).score(unit * X, y) > 0.95
    assert PosteriorMap(2, random_state=0).fit(X + 1e6, y).score(X + 1e6, y) > 0.95
    save(one, tmp_path / "model")
    np.testing.assert_array_equal(load(tmp_path / "model").transform(X), one.transform(X))
    for make in (sp.csr_matrix, sp.csc_array):
        np.testing.assert_allclose(one.predict_proba(make(X)), one.predict_proba(X), atol=1e-12)
        np.testing.assert_allclose(one.explain(make(X[:9])).positions, one.explain(X[:9]).positions, atol=1e-12)


def test_weights_of_a_forest_are_repetition_where_they_move_the_median():
    X, y = boxes(300, seed=2)
    counts = np.where(X[:, 0] > 0, 3, 1)
    weighted = PosteriorMap(2).fit(X, y, counts)
    repeated = PosteriorMap(2).fit(np.repeat(X, counts, axis=0), np.repeat(y, counts))
    assert "Forest" in weighted.kernel_.name
    np.testing.assert_allclose(weighted.predict_proba(X), repeated.predict_proba(X), atol=1e-10)


def test_folds_decide_and_not_only_trees_that_did_not_see_a_row():
    """Digits are ordered by writer, so folds of consecutive rows hold out writers."""
    X, y = load_digits(return_X_y=True)
    model = PosteriorMap(2).fit(scale(X)[:600], y[:600])
    assert model.kernel_.name == "rbf"
    assert any("forest" in one.label for one in model.kernel_.tried)


def test_a_forest_far_behind_is_dropped_after_its_first_trees(monkeypatch):
    rng = np.random.default_rng(0)
    y = np.arange(300) % 3
    angle, radius = rng.uniform(0, 2 * np.pi, 300), 1 + 2 * y + 0.2 * rng.standard_normal(300)
    X = np.c_[radius * np.cos(angle), radius * np.sin(angle)] @ rng.standard_normal((2, 30))
    tried = [one.label for one in PosteriorMap(2).fit(X, y).kernel_.tried if "forest" in one.label]
    assert [label.split(" ", 1)[0] for label in tried] == ["random", "mean"]
    assert all(label.endswith(f"random forest, {classifier_rule.FIRST_TREES} trees") for label in tried)
    monkeypatch.setattr("discrim.core.classifier_rule.FOREST_ROWS", 200)
    assert not [one for one in PosteriorMap(2).fit(X, y).kernel_.tried if "forest" in one.label]


def test_no_forest_is_tried_on_fewer_rows_than_can_tell():
    X, y = boxes(190, noise=3)
    for weights, expected in ((None, False), (np.full(190, 2.0), True)):
        tried = PosteriorMap(2).fit(X, y, weights).kernel_.tried
        assert any("forest" in one.label for one in tried) is expected
