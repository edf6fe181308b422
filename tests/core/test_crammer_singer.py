"""Dual solver compared with its definition, a plain solver and LIBLINEAR; exact constraints; invariances."""

import math

import numpy as np
import pytest
import scipy.sparse as sp
from memory import peak_of
from samples import labelled
from sklearn.datasets import load_digits, load_iris, load_wine
from sklearn.exceptions import ConvergenceWarning

from discrim.core.svm import crammer_singer_descent as descent
from discrim.core.svm.crammer_singer import solve_crammer_singer


def solved(X, codes, n_classes=None, **options):
    options = {"C": 1.0, "fit_intercept": True, "tol": 1e-8, "max_iter": 100_000, "random_state": 0} | options
    return solve_crammer_singer(X, codes, n_classes or int(np.max(codes)) + 1, **options)


def literal_loss(scores, code):
    return max((y != code) + scores[y] - scores[code] for y in range(len(scores)))


def literal_primal(coef, intercept, X, codes, bound):
    value = 0.5 * (coef**2).sum() + 0.5 * (intercept**2).sum()
    for x, code, c in zip(X, codes, bound, strict=True):
        value += c * literal_loss([w @ x + b for w, b in zip(coef, intercept, strict=True)], code)
    return value


def literal_dual(A, X, codes, fit_intercept):
    weights = sum(np.outer(a, np.append(x, 1.0 * fit_intercept)) for a, x in zip(A, X, strict=True))
    return sum(a[code] for a, code in zip(A, codes, strict=True)) - 0.5 * (weights**2).sum()


def slackness(A, scores, codes, bound):
    """Σ_n of the products that vanish at the optimum: α_n^y(top − G_y) for y ≠ y_n, and (C_n − Σα_n)(top − G_{y_n})."""
    products = []
    for a, score, code, c in zip(A, scores, codes, bound, strict=True):
        G = score + (np.arange(len(score)) != code)
        slack = np.where(np.arange(len(score)) == code, c - a[code], -a)
        assert (slack >= 0).all()
        products.append(slack * (G.max() - G))
    return np.array(products)


def noisy(n, d, n_classes, seed=0, noise=1.0):
    rng = np.random.default_rng(seed)
    codes = np.arange(n) % n_classes
    return rng.standard_normal((n_classes, d))[codes] + noise * rng.standard_normal((n, d)), codes


def zoo():
    rng = np.random.default_rng(5)
    X, codes = noisy(60, 4, 3)
    yield "three classes", X, codes, 1.0, None
    yield "two classes", *noisy(40, 3, 2), 1.0, None
    yield "26 classes", *noisy(130, 6, 26), 1.0, None
    yield "wide", *noisy(20, 50, 4), 1.0, None
    yield "one column", *noisy(30, 1, 3), 1.0, None
    yield "weights", X, codes, 1.0, rng.integers(1, 4, len(codes)).astype(float)
    yield "constant columns", np.c_[np.full(60, 3.0), X, np.zeros(60)], codes, 1.0, None
    yield "large constant column", np.c_[X, np.full(60, 30.0)], codes, 1.0, None
    yield "equal rows, other labels", np.r_[X, X, X[:9]], np.r_[codes, (codes + 1) % 3, codes[:9]], 1.0, None
    yield "all rows equal", np.ones((12, 2)), np.arange(12) % 3, 1.0, None
    yield "unscaled", *load_wine(return_X_y=True), 1e-4, None
    yield "separable", *load_iris(return_X_y=True), 1.0, None
    for C in (1e-4, 1e-2, 1e2, 1e4):
        yield f"C={C:g}", X, codes, C, None


ZOO = {name: rest for name, *rest in zoo()}
over_zoo = pytest.mark.parametrize(
    ("X", "codes", "C", "weights"), [pytest.param(*case, id=name) for name, case in ZOO.items()]
)
with_and_without_intercept = pytest.mark.parametrize("fit_intercept", [True, False])


@over_zoo
@with_and_without_intercept
def test_both_objectives_the_gap_and_the_optimality_conditions_recomputed(X, codes, C, weights, fit_intercept):
    svm = solved(X, codes, C=C, sample_weight=weights, fit_intercept=fit_intercept)
    bound = C * (np.ones(len(codes)) if weights is None else weights)
    A = svm.dual_coef
    assert svm.converged
    np.testing.assert_allclose(svm.class_coef, A.T @ X, atol=1e-13 * (np.abs(A).T @ np.abs(X)).max())
    np.testing.assert_allclose(svm.intercept, fit_intercept * A.sum(axis=0), atol=1e-13 * np.abs(A).sum())
    primal = literal_primal(svm.class_coef, svm.intercept, X, codes, bound)
    dual = literal_dual(A, X, codes, fit_intercept)
    assert svm.primal == pytest.approx(primal, rel=1e-11)
    assert svm.dual == pytest.approx(dual, rel=1e-10)
    assert -1e-12 <= (primal - dual) / primal <= 1.0001e-8
    assert svm.gap == pytest.approx((primal - dual) / primal, abs=1e-11)
    products = slackness(A, X @ svm.class_coef.T + svm.intercept, codes, bound)
    assert products.sum() == pytest.approx(primal - dual, abs=1e-11 * primal)


@over_zoo
def test_rows_sum_to_zero_and_stay_in_their_box_exactly(X, codes, C, weights):
    svm = solved(X, codes, C=C, sample_weight=weights, tol=1e-4)
    bound = C * (np.ones(len(codes)) if weights is None else weights)
    rows = np.arange(len(codes))
    own = svm.dual_coef[rows, codes]
    others = svm.dual_coef.copy()
    others[rows, codes] = 0.0
    assert (others <= 0).all()
    assert (own >= 0).all()
    assert (own <= bound).all()
    assert (svm.dual_coef.sum(axis=1) == 0).all()
    assert all(math.fsum(row) == 0 and sum(sorted(row)) == 0 and sum(row[::-1]) == 0 for row in svm.dual_coef.tolist())
    assert not np.signbit(svm.dual_coef[svm.dual_coef == 0]).any()


def test_a_tiny_row_keeps_its_digits():
    X = np.array([[1e-9, 0.0], [0.0, 1e-9], [-1e-9, -1e-9]])
    svm = solved(X, np.arange(3), fit_intercept=False, tol=1e-12)
    np.testing.assert_array_equal(np.diag(svm.dual_coef), 1.0)
    np.testing.assert_allclose(svm.dual_coef[~np.eye(3, dtype=bool)], -0.5)


def test_a_single_support_vector():
    # Row 0 wants (η₀ − η₁)·1 ≥ 1, which leaves row 1 at 5 ≥ 1: α₀ = ½ by hand.
    svm = solved(np.array([[1.0], [-5.0]]), np.array([0, 1]), fit_intercept=False, tol=1e-12)
    np.testing.assert_allclose(svm.dual_coef, [[0.5, -0.5], [0.0, 0.0]], atol=1e-12)
    np.testing.assert_allclose(svm.class_coef, [[0.5], [-0.5]], atol=1e-12)
    assert svm.primal == pytest.approx(0.25)


def test_rows_of_zeros_share_their_bound_evenly():
    X, codes = noisy(30, 3, 3)
    X[:2] = 0.0
    svm = solved(X, codes, fit_intercept=False, C=2.0, tol=1e-10)
    np.testing.assert_array_equal(svm.dual_coef[:2], [[2, -1, -1], [-1, 2, -1]])
    assert svm.primal == pytest.approx(
        literal_primal(svm.class_coef, svm.intercept, X, codes, np.full(30, 2.0)), rel=1e-12
    )
    assert svm.gap <= 1e-10
    nothing = solved(np.zeros((4, 3)), np.array([0, 1, 0, 1]), fit_intercept=False)
    assert nothing.converged
    assert nothing.primal == nothing.dual == 4.0


@pytest.mark.parametrize("seed", [1, 2])
def test_equal_rows_share_their_duals_in_any_order(seed):
    X, y = load_iris(return_X_y=True)  # rows 101 and 142 are twins
    order = np.random.default_rng(seed).permutation(len(y))
    plain, mixed = solved(X, y, tol=1e-5), solved(X[order], y[order], tol=1e-5)
    np.testing.assert_array_equal(plain.dual_coef[101], plain.dual_coef[142])
    np.testing.assert_array_equal(plain.dual_coef[order], mixed.dual_coef)
    np.testing.assert_array_equal(plain.class_coef, mixed.class_coef)
    doubled = solved(np.r_[X, X[order]], np.r_[y, y[order]], C=0.5, tol=1e-5)
    np.testing.assert_array_equal(doubled.dual_coef[:150], plain.dual_coef / 2)
    np.testing.assert_array_equal(doubled.dual_coef[150:], plain.dual_coef[order] / 2)


def test_unequal_weights_share_in_proportion():
    X, codes = noisy(40, 3, 3)
    both = solved(np.r_[X, X], np.r_[codes, codes], sample_weight=np.r_[np.full(40, 0.25), np.full(40, 0.75)])
    np.testing.assert_allclose(3 * both.dual_coef[:40], both.dual_coef[40:], rtol=1e-12, atol=1e-15)
    np.testing.assert_allclose(both.class_coef, solved(X, codes).class_coef, atol=1e-12)


SPARSE_X = np.where(np.random.default_rng(2).random((40, 9)) < 0.4, noisy(40, 9, 3)[0], 0.0)


LAYOUTS = {
    "fortran": np.asfortranarray(SPARSE_X),
    "strided": np.repeat(SPARSE_X, 2, axis=0)[::2],
    "csr": sp.csr_matrix(SPARSE_X),
    "csc": sp.csc_matrix(SPARSE_X),
    "coo": sp.coo_array(SPARSE_X),
    "lil": sp.lil_matrix(SPARSE_X),
    "int64 indices": sp.csr_array(SPARSE_X),
}
LAYOUTS["int64 indices"].indices = LAYOUTS["int64 indices"].indices.astype(np.int64)


@pytest.mark.parametrize("X", LAYOUTS.values(), ids=LAYOUTS)
def test_every_layout_gives_the_same(X):
    codes = np.arange(40) % 3
    plain, other = solved(SPARSE_X, codes), solved(X, codes, 3)
    np.testing.assert_allclose(other.class_coef, plain.class_coef, atol=1e-5)
    assert other.primal == pytest.approx(plain.primal, rel=2e-8)


def test_sparse_rows_with_entries_twice_unsorted_or_zero():
    codes = np.arange(40) % 3
    parts = [sp.random_array((40, 9), density=0.5, random_state=np.random.default_rng(k)).tocoo() for k in range(2)]
    data = np.concatenate([p.data for p in parts] + [[0.0]])
    row = np.concatenate([p.coords[0] for p in parts] + [[7]])[::-1]
    column = np.concatenate([p.coords[1] for p in parts] + [[3]])[::-1]
    order = np.argsort(row, kind="stable")
    messy = sp.csr_matrix((data[::-1][order], column[order], np.r_[0, np.bincount(row, minlength=40).cumsum()]))
    before = messy.data.copy()
    svm = solved(messy, codes)
    np.testing.assert_array_equal(messy.data, before)
    np.testing.assert_allclose(svm.class_coef, solved(messy.toarray(), codes).class_coef, atol=1e-5)


@with_and_without_intercept
@pytest.mark.parametrize("offset", [None, 1.0, 20.0])
def test_centring_and_scaling_on_the_way(offset, fit_intercept):
    X = SPARSE_X
    codes = np.arange(40) % 3
    mean = None if offset is None else offset * X.mean(axis=0)
    moved = (X - (0 if mean is None else mean)) / 2.5
    options = {"fit_intercept": fit_intercept, "C": 3.0, "tol": 1e-9}
    expected = solved(moved, codes, **options)
    for table in (X, sp.csr_matrix(X)):
        svm = solved(table, codes, offset=mean, scale=2.5, **options)
        np.testing.assert_allclose(svm.class_coef, expected.class_coef, atol=3e-5)
        np.testing.assert_allclose(svm.class_coef, svm.dual_coef.T @ moved, atol=1e-9)
        np.testing.assert_allclose(svm.intercept, expected.intercept, atol=3e-5)
        assert svm.primal == pytest.approx(expected.primal, rel=2e-9)
        assert svm.dual == pytest.approx(literal_dual(svm.dual_coef, moved, codes, fit_intercept), rel=1e-9)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("make", [np.asarray, sp.csr_array, lambda X: X.astype(np.float32)], ids=["f8", "csr", "f4"])
def test_the_table_is_never_copied(make):
    rng = np.random.default_rng(0)
    X, codes = make(rng.standard_normal((200, 4000))), np.arange(200) % 3
    solved(X[:100], codes[:100], tol=1e-1, max_iter=1)  # compiles
    peak = peak_of(lambda: solved(X, codes, tol=1e-1, max_iter=2))
    assert peak < 0.5 * 200 * 4000 * X.dtype.itemsize


def test_a_class_without_rows_is_one_more_to_keep_away_from():
    X, codes = noisy(40, 3, 3)
    svm = solved(X, codes, n_classes=4)
    ones = np.ones(40)
    assert svm.class_coef.shape == (4, 3)
    assert (svm.dual_coef[:, 3] <= 0).all()
    primal = literal_primal(svm.class_coef, svm.intercept, X, codes, ones)
    assert svm.primal == pytest.approx(primal, rel=1e-12)
    assert primal - literal_dual(svm.dual_coef, X, codes, True) <= 1.0001e-8 * primal


@pytest.mark.parametrize("make", [np.asarray, sp.csr_array], ids=["dense", "sparse"])
@pytest.mark.parametrize("face", ["factorised", "too large", "indefinite"])
def test_steps_on_the_active_face_need_fewer_passes_and_reach_the_same_result(face, make, monkeypatch):
    X, y = load_digits(return_X_y=True)
    X, y = make(X[:300]), y[:300]
    if face == "too large":
        monkeypatch.setattr(descent, "DIRECT", 0)
    if face == "indefinite":
        monkeypatch.setattr(descent.lapack, "dpotrf", lambda matrix, **options: (matrix, 1))
    with_steps = solved(X, y, tol=1e-6)
    monkeypatch.setattr(descent, "FIRST_WAIT", 10**9)
    without = solved(X, y, tol=1e-6)
    assert with_steps.n_iter < without.n_iter / 2
    np.testing.assert_allclose(with_steps.class_coef, without.class_coef, atol=1e-3 * np.abs(without.class_coef).max())


def test_the_dual_never_falls_and_the_gap_is_never_negative(monkeypatch):
    seen = []
    evaluate = descent.Descent.evaluate

    def watched(self):
        seen.append(evaluate(self))
        return seen[-1]

    monkeypatch.setattr(descent.Descent, "evaluate", watched)
    X, y = labelled(300, 8)
    solved(X, y, C=10.0, tol=1e-9)
    duals = np.array([state.dual for state in seen])
    assert len(seen) > 4
    assert (np.diff(duals) >= -1e-12 * np.abs(duals[:-1])).all()
    assert all(state.gap >= 0 for state in seen)
    assert all(state.gap == pytest.approx(state.primal - state.dual, abs=1e-10 * state.primal) for state in seen)


def test_a_warm_start_ends_where_a_cold_one_does():
    X, codes = noisy(80, 5, 4)
    svm = solved(X, codes, C=1.0, tol=1e-7)
    again = solved(X, codes, C=1.0, tol=1e-7, warm_start=svm.dual_coef)
    assert again.n_iter == 0
    np.testing.assert_array_equal(again.class_coef, svm.class_coef)
    for C in (0.3, 4.0):  # a smaller C clips the given duals, a larger one does not
        cold, warm = solved(X, codes, C=C), solved(X, codes, C=C, warm_start=svm.dual_coef)
        np.testing.assert_allclose(warm.class_coef, cold.class_coef, atol=1e-4)
        assert (np.diag(warm.dual_coef[:, codes]) <= C).all()
    far = solved(X, codes, C=1.0, warm_start=np.full((80, 4), -5.0))
    np.testing.assert_allclose(far.class_coef, svm.class_coef, atol=1e-3)


def test_the_seed_is_the_only_chance():
    X, codes = noisy(80, 5, 4)
    first, second, other = (solved(X, codes, tol=1e-3, random_state=seed) for seed in (1, 1, 2))
    np.testing.assert_array_equal(first.dual_coef, second.dual_coef)
    assert not np.array_equal(first.dual_coef, other.dual_coef)
    generator = np.random.RandomState(1)
    assert solved(X, codes, tol=1e-3, random_state=generator).converged


@pytest.mark.parametrize("max_iter", [1, 7])
def test_too_few_passes_warn_with_the_gap(max_iter):
    X, codes = noisy(80, 5, 4)
    with pytest.warns(ConvergenceWarning, match=rf"{max_iter} passes.*gap") as record:
        svm = solved(X, codes, max_iter=max_iter)
    assert f"{svm.gap:.1e}" in str(record[0].message)
    assert not svm.converged
    assert svm.n_iter == max_iter
    primal = literal_primal(svm.class_coef, svm.intercept, X, codes, np.ones(80))
    assert svm.gap == pytest.approx(1 - literal_dual(svm.dual_coef, X, codes, True) / primal, rel=1e-9)
    assert (svm.dual_coef.sum(axis=1) == 0).all()


def test_an_unsolvable_problem_stops_and_reports_its_gap():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((80, 6)) * np.geomspace(1e-3, 1e4, 6)
    codes = rng.integers(0, 2, 80)
    with pytest.warns(ConvergenceWarning, match="duality gap"):
        svm = solved(X, codes, C=1e4, tol=1e-9, max_iter=2000)
    assert 1e-9 < svm.gap <= 1
    assert svm.n_iter <= 2000
