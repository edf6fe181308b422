"""The closed form against PCA of the shifted rows themselves."""

import numpy as np
import pytest
import scipy.sparse as sp
from estimators import with_coordinates
from geometry import largest_angle, most_turned
from samples import labelled

from discrim import PCA
from discrim.core.svm.shift import margin_shift
from discrim.estimators.margin_pca import ShiftedPCA
from discrim.estimators.max_margin_shift import max_margin_shift
from discrim.tables.rows import LabelledRows

TIGHT = 1e-13


def components_of_shifted_rows(X, y, shift, weights=None, k=3):
    T = max_margin_shift(X, y, shift=shift, tol=TIGHT, sample_weight=weights)
    return PCA(k).fit(T, sample_weight=weights)


@pytest.mark.parametrize("shift", [0.3, 1.0, 10.0])
@pytest.mark.parametrize("basis", ["features", "rows", "products"])
@pytest.mark.parametrize("container", [np.asarray, sp.csr_array])
@pytest.mark.parametrize("weighted", [False, True])
def test_is_pca_of_the_shifted_rows(table, shift, basis, container, weighted):
    X, y = table
    weights = np.random.default_rng(3).uniform(0.5, 2, len(y)) if weighted else None
    wanted = components_of_shifted_rows(X, y, shift, weights)
    found = with_coordinates(basis, ShiftedPCA(3, shift=shift, tol=TIGHT)).fit(container(X), y, sample_weight=weights)
    assert most_turned(found.components_, wanted.components_) < 1e-8
    np.testing.assert_allclose(found.eigenvalues_, wanted.eigenvalues_, rtol=1e-9)
    np.testing.assert_allclose(found.explained_variance_ratio_, wanted.explained_variance_ratio_, rtol=1e-9)
    np.testing.assert_allclose(found.mean_, np.average(X, axis=0, weights=weights), atol=1e-12)


def test_all_directions(table):
    X, y = table
    found = ShiftedPCA(tol=TIGHT).fit(X, y)
    T = max_margin_shift(X, y, tol=TIGHT)
    assert found.rank_ == min(X.shape[0] - 1, X.shape[1])
    spread = np.linalg.svd(T - T.mean(axis=0), compute_uv=False)[: found.rank_] ** 2 / len(y)
    np.testing.assert_allclose(found.eigenvalues_, spread, rtol=1e-7)


def test_a_path_is_its_fits_one_by_one(table):
    X, y = table
    rows = LabelledRows(X, y.astype(np.intp), np.arange(3))
    found = margin_shift(rows, 3, C=1.0, tol=TIGHT, max_iter=20_000)
    shifts = [0.1, 1.0, 7.0]
    for shift, one in zip(shifts, ShiftedPCA(3).fitted_to(rows, found, shifts), strict=True):
        wanted = ShiftedPCA(3, shift=shift, tol=TIGHT).fit(X, y)
        assert one.shift == shift
        assert most_turned(one.components_, wanted.components_) < 1e-8
        np.testing.assert_allclose(one.transform(X), wanted.transform(X), atol=1e-7)


def reconstruction_error(model, X):
    return float(((X - model.inverse_transform(model.transform(X))) ** 2).sum())


@pytest.mark.parametrize("seed", range(5))
def test_reconstruction_of_two_classes_gets_worse_with_the_shift(seed):
    X, y = labelled(60, 6, n_classes=2, seed=seed)
    errors = [reconstruction_error(ShiftedPCA(2, shift=s).fit(X, y), X) for s in (0.01, 0.1, 0.3, 1, 3, 10, 100)]
    assert (np.diff(errors) >= -1e-9 * errors[0]).all()
    assert errors[0] >= reconstruction_error(PCA(2).fit(X), X) - 1e-9
    assert errors[-1] > errors[0]


def test_a_large_shift_leaves_the_directions_of_the_shift(table):
    X, y = table
    rows = LabelledRows(X, y.astype(np.intp), np.arange(3))
    found = margin_shift(rows, 3, C=1.0, tol=TIGHT, max_iter=20_000)
    moves = found.duals @ found.class_coef
    limit = np.linalg.svd(moves - moves.mean(axis=0), full_matrices=False)[2]
    assert most_turned(ShiftedPCA(2, shift=1e6).fit(X, y).components_, limit[:2]) < 1e-4
    assert largest_angle(ShiftedPCA(2, shift=1e6).fit(X, y).components_, found.class_coef[:2]) < 1e-4
