"""Importance of features: VIP of PLS, and the same of every linear reduction."""

import literal
import numpy as np
import pytest
from samples import labelled
from sklearn.cross_decomposition import PLSRegression
from sklearn.kernel_approximation import RBFSampler
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from discrim import PCA, PLSDA, BayesErrorLDA, MarginPCA, PosteriorMap, RegularizedLDA, SparsePLSDA, VIPDisplay
from discrim.report.features import SeparationValues, VIPValues, explained_by, importances
from discrim.report.projection import ProjectionValues

pytest.importorskip("matplotlib").use("Agg")
X, Y = labelled(40, 6, 3, seed=2)
LINEAR = [PCA(3), MarginPCA(2), RegularizedLDA(2, shrinkage=0.1), BayesErrorLDA(2, shrinkage=0.1, cv=None), PLSDA(3)]


@pytest.mark.parametrize("model", LINEAR, ids=lambda model: type(model).__name__)
def test_it_is_the_formula_with_what_each_component_adds_to_a_regression_of_the_labels(model):
    model.fit(X, Y)
    labels, T = np.eye(3)[Y] - np.bincount(Y) / len(Y), model.transform(X) - model.transform(X).mean(axis=0)

    def explained(k):
        fit = T[:, :k] @ np.linalg.lstsq(T[:, :k], labels, rcond=None)[0] if k else 0 * labels
        return np.sum(fit**2)

    added = np.diff([explained(k) for k in range(T.shape[1] + 1)])
    directions = getattr(model, "x_weights_", model.components_.T)
    found = VIPValues.from_estimator(model, X, Y).vip
    for j in range(X.shape[1]):
        shares = [directions[j, h] ** 2 / sum(directions[:, h] ** 2) for h in range(len(added))]
        assert found[j] == pytest.approx(np.sqrt(6 * (added @ shares) / added.sum()), rel=1e-8)
    assert (found**2).sum() == pytest.approx(6)


def test_of_pls_it_is_the_usual_one_whoever_fitted_it():
    weights, scores, _, of_labels = literal.partial_least_squares(X, Y, [6, 6])
    usual = literal.importances(weights, scores, of_labels)
    theirs = PLSRegression(2, scale=False, tol=1e-28, max_iter=100_000).fit(X, np.eye(3)[Y])
    np.testing.assert_allclose(VIPValues.from_estimator(theirs, X, Y).vip, usual, rtol=1e-7)
    ours = PLSDA(2).fit(X, Y)
    np.testing.assert_allclose(ours.vip_, usual, rtol=1e-7)
    np.testing.assert_allclose(importances(ours.x_weights_.T, explained_by(ours.transform(X), Y)), usual, rtol=1e-7)


def test_features_that_no_component_uses_have_none_and_the_most_important_are_drawn_first():
    model = make_pipeline(StandardScaler(), SparsePLSDA(2, keep=2)).fit(X, Y)
    shown = VIPDisplay.from_estimator(model, X, Y, names=list("abcdef"), count=3)
    vip = dict(zip("abcdef", shown.values.vip, strict=True))
    assert list(shown.features_) == sorted(vip, key=vip.get, reverse=True)[:3]
    assert {name for name, value in vip.items() if value > 0} == {"abcdef"[at] for at in model[-1].selected_}
    assert len(shown.artists_["bars"][""]) == 3
    assert [mark.x for mark in shown.chart_.of("one")] == [[1.0]]  # the mean of the squares


def test_a_spectrum_is_a_line_over_all_of_it():
    Z, y = labelled(40, 25, 3)
    shown = VIPDisplay.from_estimator(PLSDA(2).fit(Z, y), Z, y, names=[str(400 + at) for at in range(25)])
    assert shown.features_ == tuple(str(400 + at) for at in range(25))
    assert shown.chart_.marks[1].kind == "line"


def test_what_has_no_loadings_or_other_columns_is_refused():
    with pytest.raises(ValueError, match="loadings"):
        VIPValues.from_estimator(RBFSampler().fit(X), X, Y)
    with pytest.raises(ValueError, match=r"X .*9 columns"):
        VIPValues.from_estimator(make_pipeline(RBFSampler(n_components=9, random_state=0), PCA(2)).fit(X), X, Y)


def test_features_that_separate_two_classes_are_those_of_explain(rng):
    y = np.array(["a", "b", "c"])[np.arange(150) % 3]
    X = rng.standard_normal((150, 5))
    X[:, 1] += 4 * (y == "b")
    X[:, 4] += 4 * (y == "c")
    for model in (RegularizedLDA(2, shrinkage=0.1).fit(X, y), PosteriorMap(2, classifier="rule").fit(X, y)):
        values = SeparationValues.from_estimator(model, X, y, ("a", "c"))
        rows = X[(y == "a") | (y == "c")]
        np.testing.assert_allclose(values.importances, model.explain(rows, ("a", "c")).importances)
        assert values.feature_names[values.top(1)[0]] == "f4"
        assert values.chart().title.endswith("a against c")
    with pytest.raises(ValueError, match="between"):
        SeparationValues.from_estimator(model, X, y, ("a", "d"))


def test_pictures_of_a_map_are_tempered_and_name_two_probabilities(rng):
    y = np.arange(150) % 3
    X = rng.standard_normal((150, 4)) + 1.2 * np.eye(3, 4)[y]
    model = PosteriorMap(2, classifier="rule").fit(X[:100], y[:100])
    values = ProjectionValues.from_estimator(model, X[:100], y[:100], X[100:], y[100:])
    tempered = model.for_plotting()
    assert tempered.sharpness_ != model.sharpness_ == 2.0
    np.testing.assert_allclose(values.test.scores, tempered.transform(X[100:])[values.test.rows])
    np.testing.assert_allclose(values.train.scores, tempered.transform_held_out(X[:100])[values.train.rows])
    p = model.predict_proba_held_out(X[:100])
    first = int(p[0].argmax())
    assert values.probable[0][0].startswith(f"{first} {100 * p[0, first]:.0f} %, ")
    shown = values.chart()
    assert all("most probable" in mark.hover for mark in shown.marks if mark.kind == "points")
    assert "between the classes" in shown.caption
