"""PCA of the columns that separate the classes one by one."""

import numpy as np
import pytest
import scipy.sparse as sp
from geometry import most_turned
from samples import labelled
from sklearn.feature_selection import f_classif

from discrim import ClassMoments, ScreenedPCA


def genes(n=60, d=200, informative=6, seed=0):
    """Return many columns, those of large variance first; a few of small variance differ between the classes."""
    rng = np.random.default_rng(seed)
    y = np.arange(n) % 3
    X = rng.standard_normal((n, d)) * np.linspace(3, 1, d)
    X[:, -informative:] += 2.5 * rng.standard_normal((3, informative))[y]
    return X, y


def definition(X, y, m, k):
    """The m columns of largest F, and PCA of them in all columns."""
    scores = f_classif(X, y)[0]
    selected = np.argsort(-scores, kind="stable")[:m]
    H = X[:, selected] - X[:, selected].mean(axis=0)
    directions = np.zeros((k, X.shape[1]))
    directions[:, selected] = np.linalg.svd(H, full_matrices=False)[2][:k]
    return scores, selected, directions


@pytest.mark.parametrize("shape", [(40, 8, 3), (12, 30, 2)], ids=["tall", "wide"])
@pytest.mark.parametrize("m", [3, 7])
@pytest.mark.parametrize("way", ["dense", "sparse", "statistics"])
def test_f_scores_selection_and_directions_are_those_of_the_definition(shape, m, way):
    X, y = labelled(*shape)
    scores, selected, directions = definition(X, y, m, 2)
    model = ScreenedPCA(2, n_selected=m)
    if way == "statistics":
        fitted = model.fit_statistics(ClassMoments.of(X[::2], y[::2]) + ClassMoments.of(X[1::2], y[1::2]))
    else:
        fitted = model.fit(sp.csr_array(X) if way == "sparse" else X, y)
    np.testing.assert_allclose(fitted.f_scores_, scores, rtol=1e-9)
    np.testing.assert_array_equal(fitted.selected_, selected)
    assert most_turned(fitted.components_, directions) < 1e-9
    assert fitted.rank_ == min(m, len(X) - 1)
    np.testing.assert_allclose(fitted.mean_, X.mean(axis=0), atol=1e-12)
    np.testing.assert_allclose(fitted.transform(X), (X - X.mean(axis=0)) @ fitted.components_.T, atol=1e-10)
    assert f"{m} of {X.shape[1]} columns" in fitted.solver_
    assert fitted.tried_counts_.size == fitted.tried_accuracies_.size == 0


def test_the_count_by_folds_finds_the_few_columns_that_matter():
    X, y = genes()
    fitted = ScreenedPCA(2).fit(X, y)
    new, y_new = genes(seed=0)[0] + 1e-9, y
    assert fitted.tried_counts_.tolist() == sorted(fitted.tried_counts_.tolist())
    assert fitted.tried_counts_[0] == 2
    assert fitted.tried_counts_[-1] == 200
    best = fitted.tried_accuracies_.max()
    assert len(fitted.selected_) == fitted.tried_counts_[np.flatnonzero(fitted.tried_accuracies_ == best)[0]]
    assert len(fitted.selected_) <= 25
    assert best > fitted.tried_accuracies_[-1] + 0.1
    assert set(fitted.selected_[:3]) <= set(range(194, 200))
    assert fitted.transform(new).shape == (len(y_new), 2)


def test_columns_are_screened_in_each_fold():
    """On noise, held-out accuracy stays near chance; it would not if test rows helped to select columns."""
    rng = np.random.default_rng(1)
    X, y = rng.standard_normal((60, 800)), np.arange(60) % 2
    assert abs(ScreenedPCA(1).fit(X, y).tried_accuracies_.mean() - 0.5) < 0.15


def test_constant_columns_are_never_selected():
    X, y = labelled(40, 5)
    X = np.c_[np.full(40, 1e6 / 3), X, np.zeros(40)]
    fitted = ScreenedPCA(2, n_selected=7).fit(X, y)
    assert sorted(fitted.selected_.tolist()) == [1, 2, 3, 4, 5]
    np.testing.assert_array_equal(fitted.f_scores_[[0, 6]], 0.0)


@pytest.mark.filterwarnings("error")
def test_a_fold_without_a_class_does_not_warn():
    X, y = labelled(6, 5)
    assert ScreenedPCA(2, cv=2).fit(X, y).n_components_ == 2


def test_a_class_of_one_row_is_left_out_of_the_fold_that_holds_it_out():
    X = np.random.default_rng(0).normal(size=(41, 5))
    y = np.r_[np.zeros(40, int), 1]
    X[-1, 3] += 50
    assert 3 in ScreenedPCA(1).fit(X, y).selected_
    with pytest.raises(ValueError, match="n_selected"):
        ScreenedPCA(1, cv=[(np.arange(40), [40])]).fit(X, y)
