"""Heteroscedastic discriminants beyond the laws: folds, limits, use."""

import numpy as np
import pytest
import scipy.sparse as sp
from samples import labelled
from sklearn.neighbors import KNeighborsClassifier

from discrim import HashKFold, HeteroscedasticLDA, RegularizedLDA


def shapes(n=600, seed=0):
    """Two classes of one mean, one of them wide along the third of six columns."""
    rng = np.random.default_rng(seed)
    y = np.arange(n) % 2
    return rng.standard_normal((n, 6)) * np.where(y[:, None], [1, 1, 6, 1, 1, 1], 1), y


@pytest.mark.parametrize("weighted", [False, True])
def test_a_stream_chooses_the_ridge_that_all_rows_choose(weighted):
    X, y = labelled(120, 5)
    weights = np.random.default_rng(0).integers(1, 4, len(X)).astype(float) if weighted else None
    whole = HeteroscedasticLDA(2, cv=HashKFold(5)).fit(X, y, sample_weight=weights)
    parts = HeteroscedasticLDA(2)
    for some in np.array_split(np.arange(len(X)), 4):
        parts.partial_fit(X[some], y[some], sample_weight=None if weights is None else weights[some])
    assert parts.shrinkage_ == whole.shrinkage_
    np.testing.assert_allclose(parts.components_, whole.components_, atol=1e-9)
    np.testing.assert_array_equal(parts.predict(X), whole.predict(X))


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


@pytest.mark.parametrize("shrinkage", ["cv", 0.1])
def test_a_large_sparse_table_is_refused_as_every_scatter_is_needed(shrinkage, monkeypatch):
    monkeypatch.setattr("discrim.core.coordinates.choose.EXACT_SIDE", 30)
    X, y = labelled(80, 40)
    with pytest.raises(ValueError, match="HeteroscedasticLDA"):
        HeteroscedasticLDA(2, shrinkage=shrinkage).fit(sp.csr_array(np.where(X > 0.5, X, 0.0)), y)
