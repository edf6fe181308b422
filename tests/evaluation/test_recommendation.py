"""The recommended pipeline as a value, and the classifiers that it may contain."""

import numpy as np
import pytest
from sklearn.datasets import make_classification

from discrim import compare
from discrim.evaluation.classifiers import CLASSIFIERS, RAW_PARTNERS
from discrim.evaluation.plan import labelled_table, planned


def test_a_comparison_names_the_recommended_pipeline_with_its_settings():
    X, y = make_classification(120, 6, n_informative=3, n_redundant=0, random_state=0)
    X[3, 2] = np.nan
    found = compare(X, y, methods=["regularized-lda"], n_components=[1], n_splits=3, impute="mean", scale="range")
    best = found.recommendation
    assert best.cell == found.verdict.recommended
    assert (best.scale, best.impute, best.class_weight) == ("range", "mean", None)


@pytest.mark.parametrize("name", CLASSIFIERS)
def test_every_classifier_takes_class_weights_or_leaves_them(name):
    X, y = make_classification(60, 5, weights=[0.8], random_state=0)
    for weight in (None, "balanced"):
        first, second = (CLASSIFIERS[name].estimator(weight).fit(X, y).predict(X) for _ in range(2))
        assert first.tolist() == second.tolist()


@pytest.mark.parametrize("name", CLASSIFIERS)
def test_classes_whose_names_are_digits_are_weighted_as_their_numbers(name):
    X, y = make_classification(60, 5, weights=[0.8], random_state=0)
    by_number, by_name = (CLASSIFIERS[name].estimator("balanced").fit(X, labels) for labels in (y, y.astype(str)))
    assert by_number.predict(X).astype(str).tolist() == by_name.predict(X).tolist()
    assert by_name.classes_.tolist() == ["0", "1"]


def test_class_weights_change_what_a_partner_predicts():
    X, y = make_classification(400, 5, weights=[0.9], flip_y=0.2, random_state=0)
    for name in set(RAW_PARTNERS) - {"5-nn", "forest"}:
        rare = [(CLASSIFIERS[name].estimator(weight).fit(X, y).predict(X) == 1).sum() for weight in (None, "balanced")]
        assert rare[1] > rare[0], name


@pytest.mark.parametrize("name", ["rbf-svm", "forest"])
def test_partners_are_fitted_on_a_sample_of_many_rows(name, monkeypatch):
    X, y = make_classification(300, 5, random_state=0)
    monkeypatch.setattr("discrim.evaluation.classifiers.MOST_RBF_ROWS", 40)
    monkeypatch.setattr("discrim.evaluation.classifiers.MOST_FOREST_ROWS", 40)
    few = CLASSIFIERS[name].estimator().fit(X, y, sample_weight=np.ones(300))
    assert few.score(X, y) < 1.0
    if name == "rbf-svm":
        assert few.n_support_.sum() <= 40


def test_keys_of_stored_trials_do_not_change_with_settings_that_are_not_used():
    table = labelled_table(np.arange(40.0).reshape(20, 2), np.arange(20) % 2)
    plain, weighted = (planned(table, "t", "pca", n_splits=2, class_weight=one) for one in (None, "balanced"))
    assert plain.setting.keys() == weighted.setting.keys() - {"class_weight"}
    assert "equal_rows" not in plain.setting
    assert not plain.by_key.keys() & weighted.by_key.keys()
