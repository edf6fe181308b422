"""Heteroscedastic discriminants beyond the laws: folds, limits, use."""

import numpy as np
import pytest
from samples import labelled
from sklearn.neighbors import KNeighborsClassifier

from discrim import HeteroscedasticLDA, RegularizedLDA


def shapes(n=600, seed=0):
    """Two classes of one mean, one of them wide along the third of six columns."""
    rng = np.random.default_rng(seed)
    y = np.arange(n) % 2
    return rng.standard_normal((n, 6)) * np.where(y[:, None], [1, 1, 6, 1, 1, 1], 1), y


def test_one_component_shows_what_class_means_do_not():
    (X, y), (new, labels) = shapes(), shapes(seed=1)
    scores = {}
    for kind in (HeteroscedasticLDA, RegularizedLDA):
        reducer = kind(1).fit(X, y)
        judge = KNeighborsClassifier(15).fit(reducer.transform(X), y)
        scores[kind] = judge.score(reducer.transform(new), labels)
    assert scores[HeteroscedasticLDA] > 0.75
    assert scores[RegularizedLDA] < scores[HeteroscedasticLDA] - 0.1


def test_without_a_ridge_a_singular_scatter_warns_and_lda_is_used():
    X, y = labelled(8, 20, 2)
    with pytest.warns(UserWarning, match="singular"):
        one = HeteroscedasticLDA(1, shrinkage=0.0).fit(X, y)
    with pytest.warns(UserWarning, match="singular"):
        other = RegularizedLDA(1, shrinkage=0.0).fit(X, y)
    np.testing.assert_allclose(one.components_, other.components_, atol=1e-12)
