"""Weights and groups reach a fit through pipelines and searches by scikit-learn's metadata routing."""

import numpy as np
import pytest
from samples import labelled
from sklearn import config_context
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import accuracy_score, make_scorer
from sklearn.model_selection import GridSearchCV, GroupKFold, StratifiedGroupKFold, cross_validate
from sklearn.pipeline import make_pipeline

from discrim import PCA, BayesErrorLDA, RegularizedLDA, ScreenedPCA, SparsePLSDA

X, Y = labelled(60, 5)
X = X + 2 * np.random.default_rng(1).normal(size=X.shape)
GROUPS = np.arange(60) // 4
WEIGHTS = 1.0 + np.arange(60) % 3


@pytest.mark.parametrize("kind", [RegularizedLDA, BayesErrorLDA])
def test_groups_are_kept_on_one_side_of_every_fold(kind):
    by_number = kind(cv=3).fit(X, Y, groups=GROUPS)
    splits = list(StratifiedGroupKFold(3).split(X, Y, GROUPS))
    np.testing.assert_array_equal(by_number.path_.accuracies, kind(cv=splits).fit(X, Y).path_.accuracies)
    by_splitter = kind(cv=GroupKFold(3)).fit(X, Y, groups=GROUPS)
    splits = list(GroupKFold(3).split(X, Y, GROUPS))
    np.testing.assert_array_equal(by_splitter.path_.accuracies, kind(cv=splits).fit(X, Y).path_.accuracies)


@pytest.mark.parametrize("make", [lambda cv: ScreenedPCA(2, cv=cv), lambda cv: SparsePLSDA(1, keep="cv", cv=cv)])
def test_what_chooses_columns_by_folds_keeps_groups_too(make):
    grouped = make(GroupKFold(3)).fit(X, Y, groups=GROUPS)
    given = make(list(GroupKFold(3).split(X, Y, GROUPS))).fit(X, Y)
    np.testing.assert_array_equal(grouped.components_, given.components_)
    np.testing.assert_array_equal(grouped.selected_, given.selected_)


def test_groups_of_rows_without_weight_are_ignored():
    weights = (np.arange(60) % 5 > 0).astype(float)
    kept = weights > 0
    weighted = RegularizedLDA(cv=3).fit(X, Y, sample_weight=weights, groups=GROUPS)
    plain = RegularizedLDA(cv=3).fit(X[kept], Y[kept], groups=GROUPS[kept])
    np.testing.assert_allclose(weighted.path_.accuracies, plain.path_.accuracies)


def test_groups_are_requested_only_with_cross_validation():
    with config_context(enable_metadata_routing=True):
        assert set(PCA().get_metadata_routing().fit.requests) == {"sample_weight"}
        assert set(RegularizedLDA().get_metadata_routing().fit.requests) == {"sample_weight", "groups"}
        cross_validate(make_pipeline(PCA(2), LogisticRegression()), X, Y, params={"groups": GROUPS}, cv=GroupKFold(3))


def test_weights_and_groups_are_routed_through_a_search_over_a_pipeline():
    with config_context(enable_metadata_routing=True):
        lda = (
            RegularizedLDA(cv=3).set_fit_request(sample_weight=True, groups=True).set_score_request(sample_weight=True)
        )
        judge = LogisticRegression().set_fit_request(sample_weight=False)
        search = GridSearchCV(
            make_pipeline(lda, judge),
            {"regularizedlda__n_components": [1, 2]},
            cv=GroupKFold(3),
            scoring=make_scorer(accuracy_score).set_score_request(sample_weight=True),
        )
        search.fit(X, Y, sample_weight=WEIGHTS, groups=GROUPS)
        found = search.best_estimator_[0]
        here = RegularizedLDA(found.n_components, cv=3).fit(X, Y, sample_weight=WEIGHTS, groups=GROUPS)
        np.testing.assert_allclose(found.components_, here.components_)
        weighted = make_pipeline(PCA(2).set_fit_request(sample_weight=True), judge)
        scores = cross_validate(weighted, X, Y, params={"sample_weight": WEIGHTS}, cv=3, scoring=search.scoring)[
            "test_score"
        ]
        assert np.isfinite(scores).all()
