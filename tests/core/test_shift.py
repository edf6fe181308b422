"""The shift against its definition, row by row, and its scatter against that of the shifted rows."""

import numpy as np
import pytest
import scipy.sparse as sp
from samples import labelled
from sklearn.svm import LinearSVC

from discrim.core.svm.shift import added_rows, class_pulls, margin_shift
from discrim.tables.rows import LabelledRows

SVM = {"C": 1.0, "tol": 1e-12, "max_iter": 20_000}


def rows_of(X, y, weights=None):
    return LabelledRows(X, np.asarray(y, dtype=np.intp), np.arange(max(y) + 1), weights)


def centred(X, weights=None):
    return X - np.average(X, axis=0, weights=weights)


def literal_shift(X, y, alpha, sigma2, weights):
    """x_n + σ² Σ_y α_n^y (η_{y_n} − η_y), η_y = Σ_n A[n, y] x_n, by loops; α of a single one of v equal rows is α/v."""
    H = centred(X, weights)
    C = alpha.shape[1]
    eta = np.zeros((C, X.shape[1]))
    for n in range(len(X)):
        for c in range(C):
            if y[n] < C and c != y[n]:
                eta[y[n]] += alpha[n, c] * H[n]
                eta[c] -= alpha[n, c] * H[n]
    shifted = X.copy()
    for n in range(len(X)):
        for c in range(C):
            if y[n] < C and c != y[n]:
                shifted[n] += sigma2 * alpha[n, c] / weights[n] * (eta[y[n]] - eta[c])
    return shifted


CASES = {
    "dense": (np.asarray, False, False),
    "sparse": (sp.csr_array, False, False),
    "dense, weights": (np.asarray, True, False),
    "sparse, weights": (sp.csr_array, True, False),
    "dense, unlabelled": (np.asarray, False, True),
    "sparse, weights, unlabelled": (sp.csr_array, True, True),
}


@pytest.fixture(params=CASES)
def case(request, table):
    """X as an array, the rows, the number of classes and the weights (ones if there are none)."""
    container, weighted, unlabelled = CASES[request.param]
    X, y = table[0], table[1].copy()
    if unlabelled:
        y[::4] = 3
    weights = np.random.default_rng(1).uniform(0.5, 2, len(y)) if weighted else None
    return X, rows_of(container(X), y, weights), 3, np.ones(len(y)) if weights is None else weights


def test_the_shift_is_its_definition(case):
    X, rows, C, v = case
    found = margin_shift(rows, C, **SVM)
    alpha = np.where(np.arange(C) == rows.codes[:, None], 0.0, -found.duals)
    assert (alpha >= 0).all()
    np.testing.assert_array_equal(found.duals[rows.codes == C], 0.0)
    sigma2 = found.sigma2(0.7)
    wanted = literal_shift(X, rows.codes, alpha, sigma2, v)
    np.testing.assert_allclose(found.shifted(rows.X, 0.7), wanted, atol=1e-10)
    assert np.abs(wanted - X).max() > 0.1


def test_scatter_of_shifted_rows_in_closed_form(case):
    X, rows, C, v = case
    found = margin_shift(rows, C, **SVM)
    for shift in (0.3, 1.0, 10.0):
        T = centred(found.shifted(rows.X, shift), v)
        H = centred(X, v)
        scaled = np.sqrt(found.sigma2(shift)) * found.duals
        more = added_rows(class_pulls(rows, 0, scaled), scaled, rows.weights)
        explicit = (v[:, None] * T).T @ T
        np.testing.assert_allclose(
            (v[:, None] * H).T @ H + more.T @ more, explicit, atol=1e-11 * np.abs(explicit).max()
        )
        assert np.linalg.matrix_rank(more) == C - 1


def test_rows_move_by_the_given_share_of_their_spread(case):
    X, rows, C, v = case
    found = margin_shift(rows, C, **SVM)
    for shift in (0.1, 1.0, 5.0):
        moved = found.shifted(rows.X, shift) - X
        assert v @ (moved**2).sum(axis=1) == pytest.approx(shift**2 * (v @ (centred(X, v) ** 2).sum(axis=1)))


@pytest.mark.parametrize("C", [0.03, 1.0, 30.0])
def test_weights_are_those_of_liblinear_on_centred_rows_of_mean_square_one(table, C):
    X, y = table
    H = centred(X)
    scale = np.sqrt((H**2).sum(axis=1).mean())
    peer = LinearSVC(multi_class="crammer_singer", fit_intercept=False, C=C, tol=1e-9, max_iter=10**6, random_state=0)
    coef = peer.fit(H / scale, y).coef_
    found = margin_shift(rows_of(X, y), 3, C=C, tol=1e-12, max_iter=20_000)
    np.testing.assert_allclose(found.class_coef / scale, coef - coef.mean(axis=0), atol=2e-5 * np.abs(coef).max())
    assert 0 <= found.gap <= 1e-12


@pytest.mark.parametrize("container", [np.asarray, sp.csr_array])
def test_far_from_the_origin(container):
    X, y = labelled(60, 6)
    X = np.round(X * 2**20) / 2**20  # adding 1e8 then loses no digit
    near, far = (margin_shift(rows_of(container(X + offset), y), 3, **SVM) for offset in (0.0, 1e8))
    np.testing.assert_allclose(far.class_coef, near.class_coef, atol=1e-9)
    np.testing.assert_allclose(far.shifted(X + 1e8, 1.0) - 1e8, near.shifted(X, 1.0), atol=1e-7)


@pytest.mark.parametrize("container", [np.asarray, sp.csr_array])
@pytest.mark.parametrize("unit", [1e-300, 1e300])
def test_any_unit(container, unit, table):
    X, y = table
    wanted = margin_shift(rows_of(X, y), 3, **SVM).shifted(X, 1.0)
    found = margin_shift(rows_of(container(unit * X), y), 3, **SVM)
    np.testing.assert_allclose(found.shifted(container(unit * X), 1.0) / unit, wanted, atol=1e-9)


def test_float32_rows_give_float32_rows():
    single, y = labelled(40, 4)[0].astype(np.float32), labelled(40, 4)[1]
    shifted = margin_shift(rows_of(single, y), 3, **SVM).shifted(single, 1.0)
    assert shifted.dtype == np.float32
    np.testing.assert_allclose(
        shifted, margin_shift(rows_of(single.astype(float), y), 3, **SVM).shifted(single, 1.0), atol=1e-4
    )
