"""A Predictor predicts as its pipeline does, with probabilities of held-out rows and limits for unusual ones."""

import numpy as np
import pytest
from sklearn.calibration import CalibratedClassifierCV
from sklearn.datasets import load_breast_cancer, load_digits, load_wine
from sklearn.ensemble import RandomForestClassifier
from sklearn.impute import SimpleImputer
from sklearn.metrics import log_loss
from sklearn.model_selection import train_test_split
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC, LinearSVC

from discrim import PCA, FisherLDA, KernelMap, Predictor, RegularizedLDA, UncorrelatedLDA
from discrim.core.cross_validation import calibrated
from discrim.evaluation.classifiers import CLASSIFIERS

LOADED = {"two classes": load_breast_cancer, "three classes": load_wine, "ten classes": load_digits}


@pytest.fixture(params=LOADED)
def split(request):
    X, y = (array[:400] for array in LOADED[request.param](return_X_y=True))
    return train_test_split(X, np.array([f"class {code}" for code in range(10)])[y], stratify=y, random_state=0)


@pytest.mark.parametrize("classifier", [SVC(), CLASSIFIERS["svm"].build(), RandomForestClassifier(20, random_state=0)])
@pytest.mark.parametrize("reduces", [True, False])
def test_labels_are_those_of_the_pipeline_and_probabilities_are_good(classifier, reduces, split):
    X, X_new, y, y_new = split
    pipeline = make_pipeline(StandardScaler(), *([PCA(5)] if reduces else []), classifier)
    model = Predictor(pipeline).fit(X, y)
    expected = pipeline.fit(X, y).predict(X_new)
    assert model.predict(X_new).tolist() == expected.tolist()
    probabilities = model.predict_proba(X_new)
    np.testing.assert_allclose(probabilities.sum(axis=1), 1)
    other = CalibratedClassifierCV(pipeline, cv=5, ensemble=False).fit(X, y)
    assert log_loss(y_new, probabilities) < 1.3 * log_loss(y_new, other.predict_proba(X_new)) + 0.02


def test_the_temperature_is_of_rows_that_the_whole_pipeline_was_not_fitted_on():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(60, 200)), np.arange(60) % 2  # no signal, and classes that training rows separate
    pipeline = make_pipeline(StandardScaler(), FisherLDA(1), LinearSVC())
    with pytest.warns(UserWarning, match="singular"):
        model = Predictor(pipeline).fit(X, y)
    seen = pipeline.fit(X, y).decision_function(X)
    overconfident = calibrated(np.column_stack([0 * seen, seen]), 1.0, 60)
    assert overconfident.max(axis=1).mean() > model.predict_proba(X).max(axis=1).mean()
    new = rng.normal(size=(500, 200))
    assert model.predict_proba(new).max(axis=1).mean() < 0.75


def test_good_rows_are_rarely_unusual_and_other_rows_are(split):
    X, X_new, y, _ = split
    for reduction in ([RegularizedLDA(1)], [PCA(3)], []):
        model = Predictor(make_pipeline(StandardScaler(), *reduction, KNeighborsClassifier())).fit(X, y)
        assert (model.unusual(X_new) != "no").mean() < 0.1
        assert (model.unusual(X_new + 20 * X.std(axis=0)) != "no").all()


def test_t2_is_of_the_directions_in_the_model_and_q_of_the_others():
    rng = np.random.default_rng(0)
    y = np.arange(200) % 2
    X = rng.normal(size=(200, 1)) * [10.0, 10.0, 0.0, 0.0] + rng.normal(size=(200, 4)) * 0.1 + y[:, None] * [5, 5, 0, 0]
    model = Predictor(make_pipeline(PCA(1), KNeighborsClassifier())).fit(X, y)
    centre = X.mean(axis=0)
    rows = centre + np.array([[0, 0, 0, 0], [90, 90, 0, 0], [0, 0, 5, 0], [90, 90, 0, 9]])
    assert model.unusual(rows).tolist()[:3] == ["no", "T2", "Q"]
    assert model.unusual(rows)[3] == "T2 and Q"


def test_missing_cells_and_kernels_go_through():
    X, y = load_wine(return_X_y=True)
    X[::7, 2] = np.nan
    reduction = make_pipeline(KernelMap(n_landmarks=30, random_state=0), FisherLDA(2))
    model = Predictor(make_pipeline(SimpleImputer(), StandardScaler(), reduction, SVC())).fit(X, y)
    assert model.transform(X).shape == (len(X), 2)
    assert model.get_feature_names_out().tolist() == ["fisherlda0", "fisherlda1"]
    assert (model.unusual(X) != "no").mean() < 0.05


def test_a_reducer_that_predicts_may_be_the_last_step(split):
    X, X_new, y, _ = split
    for last in (RegularizedLDA(1), UncorrelatedLDA(1)):
        model = Predictor(make_pipeline(StandardScaler(), last)).fit(X, y)
        assert model.transform(X_new).shape == (len(X_new), 1)
        assert model.predict_proba(X_new).shape == (len(X_new), len(model.classes_))
        assert set(model.unusual(X_new)) <= {"no", "T2", "Q", "T2 and Q"}


def test_attributes_that_cannot_be_estimated_are_missing():
    X, y = np.random.default_rng(0).normal(size=(9, 4)), np.array([0, 0, 0, 0, 1, 1, 1, 1, 2])
    model = Predictor(make_pipeline(StandardScaler(), LinearSVC())).fit(X, y)
    assert not hasattr(model, "predict_proba")  # one class has one row
    assert not hasattr(Predictor(make_pipeline(PCA(3), KNeighborsClassifier(1))).fit(X[:4], y[2:6]), "unusual")
    assert model.predict(X).shape == (9,)


def test_limits_of_rows_whose_squares_are_beyond_the_largest_number(rng):
    X, y = rng.normal(size=(40, 4)), np.arange(40) % 2
    X[y == 1, 0] += 2
    plain = Predictor(make_pipeline(RegularizedLDA(1, shrinkage=0.1))).fit(X, y)
    scaled = Predictor(make_pipeline(RegularizedLDA(1, shrinkage=0.1))).fit(np.ldexp(X, 400), y)
    assert scaled.limits_.spe_limit == pytest.approx(np.ldexp(plain.limits_.spe_limit, 800), rel=1e-9)
    np.testing.assert_array_equal(scaled.unusual(np.ldexp(X, 400)), plain.unusual(X))
    assert plain.unusual(1e200 * X[:1]) == ["T2 and Q"]
    with pytest.warns(UserWarning, match="unusual"):
        beyond = Predictor(make_pipeline(RegularizedLDA(1, shrinkage=0.1))).fit(np.ldexp(X, 600), y)
    assert beyond.limits_ is None
    assert not hasattr(beyond, "unusual")
    np.testing.assert_array_equal(beyond.predict(np.ldexp(X, 600)), plain.predict(X))


def test_rows_of_a_group_are_held_out_together_for_the_probabilities(rng):
    def drawn(n_groups):
        kinds = np.arange(n_groups) % 2
        centres = rng.normal(scale=1.5, size=(n_groups, 5)) + np.outer(kinds, np.eye(5)[0])
        groups = np.repeat(np.arange(n_groups), 6)
        return centres[groups] + rng.normal(scale=0.05, size=(len(groups), 5)), kinds[groups], groups

    (X, y, groups), (X_new, y_new, _) = drawn(60), drawn(200)
    pipeline = make_pipeline(PCA(3), KNeighborsClassifier())
    apart = Predictor(pipeline).fit(X, y)
    together = Predictor(pipeline).set_fitted(apart.pipeline_, X, y, groups)
    assert log_loss(y_new, apart.predict_proba(X_new)) > 2
    assert log_loss(y_new, together.predict_proba(X_new)) < 0.75
    assert Predictor(pipeline).set_fitted(apart.pipeline_, X, y, groups % 2).temperature_ is None
