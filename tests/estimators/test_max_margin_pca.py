"""Max-margin PCA compared with its literal objective, and the laws of its descent."""

import literal
import numpy as np
import pytest
import scipy.linalg as la
import scipy.sparse as sp
from geometry import largest_angle, most_turned
from samples import labelled
from sklearn.exceptions import ConvergenceWarning
from sklearn.svm import LinearSVC

from discrim import PCA, MaxMarginPCA, MaxMarginShift
from discrim.core.svm.shift import UnitRows
from discrim.estimators.max_margin import MaxMarginProblem
from discrim.tables.rows import LabelledRows

TABLES = {
    "two classes": (30, 5, 2),
    "three classes": (36, 5, 3),
    "five classes": (40, 4, 5),
    "three classes, wide": (14, 20, 3),
}
over_tables = pytest.mark.parametrize("shape", TABLES.values(), ids=TABLES)


def in_units(X):
    centred = X - X.mean(axis=0)
    return centred / np.sqrt((centred**2).sum(axis=1).mean())


def problem_of(X, y, C, weights=None):
    rows = LabelledRows(X, y, np.unique(y), weights)
    return MaxMarginProblem(UnitRows.from_rows(rows), y, y.max() + 1, C)


def least_at(problem, directions, class_coef):
    """The objective at given directions, from given weights: all turns but that of W."""
    state = problem.state_at(directions, class_coef)
    for _ in range(30):
        state = problem.update_classifier(state)
    return state


@over_tables
@pytest.mark.parametrize("C", [0.05, 1.0])
def test_the_objective_is_the_literal_one_with_every_row_at_its_least(shape, C):
    X, y = labelled(*shape, seed=1)
    model = MaxMarginPCA(2, C=C).fit(X, y)
    rows = in_units(X)
    latent = [
        literal.latent_row(x, own, model.components_, model.class_coef_, C) for x, own in zip(rows, y, strict=True)
    ]
    wanted = literal.max_margin_pca_objective(rows, y, model.components_, latent, model.class_coef_, C)
    assert model.objective_ == pytest.approx(wanted, rel=1e-6)


@over_tables
@pytest.mark.parametrize("C", [0.05, 1.0, 20.0])
def test_no_iteration_raises_the_objective(shape, C):
    X, y = labelled(*shape, seed=2)
    curve = MaxMarginPCA(2, C=C).fit(X, y).objective_curve_
    assert (np.diff(curve) <= 0).all()
    assert curve[-1] < curve[0]


def test_two_classes_share_one_vector():
    X, y = labelled(*TABLES["two classes"], seed=2)
    coef = MaxMarginPCA(2).fit(X, y).class_coef_
    np.testing.assert_allclose(coef[0], -coef[1], atol=1e-4 * np.abs(coef).max())


@pytest.mark.parametrize("table", [name for name in TABLES if name != "five classes"])
def test_the_answer_satisfies_the_papers_equations(table):
    """z = ½(Wx + Σ_y A_y ν_y), ρν = AᵀZ, and W the polar factor of ZᵀX.

    Not so of five classes: a direction of ν ends at 0, where shares are not unique and the objective has a kink.
    """
    X, y = labelled(*TABLES[table], seed=4)
    problem, W = problem_of(X, y, 0.3), PCA(y.max()).fit(X).components_
    state = problem.descent(W, np.zeros((len(W) + 1, len(W))), tol=1e-15, max_iter=400)[-1]
    duals = problem._duals(state.shares)
    assert ((state.shares >= 0) & (state.shares <= 1 + 1e-12)).all()
    latent = 0.5 * (in_units(X) @ state.directions.T + duals @ state.class_coef)
    np.testing.assert_allclose(state.latent, latent, atol=1e-12)
    np.testing.assert_allclose(duals.T @ state.latent, problem.rho * state.class_coef, atol=2e-4)
    np.testing.assert_allclose(la.polar(state.latent.T @ in_units(X))[0], state.directions, atol=2e-4)


def test_two_classes_start_from_the_papers_shift():
    """T[x_n] = x_n + α_n y_n ν with ν = Σ α_n y_n x_n, 0 ≤ α_n ≤ C, of an SVM with one vector."""
    X, y = labelled(*TABLES["two classes"], seed=2)
    rows, signs = in_units(X), 2 * y - 1
    duals = MaxMarginPCA(2, C=0.8)._margins(LabelledRows(X, y, np.unique(y))).duals  # σA of the closed form
    svm = LinearSVC(loss="hinge", C=0.8, fit_intercept=False, tol=1e-10, max_iter=100_000, random_state=0)
    nu = svm.fit(rows, y).coef_[0]
    alpha = np.sqrt(2) * duals[np.arange(len(y)), y]
    assert alpha.max() == pytest.approx(0.8)
    np.testing.assert_allclose((alpha * signs) @ rows, nu, atol=1e-3 * np.abs(nu).max())
    moved = duals @ (duals.T @ rows)
    np.testing.assert_allclose(moved, np.outer(alpha * signs, nu), atol=1e-3 * np.abs(moved).max())


@over_tables
@pytest.mark.parametrize("C", [0.1, 2.0])
def test_the_objective_is_no_higher_than_from_pca_or_the_shift(shape, C):
    X, y = labelled(*shape, seed=6)
    rho = 2.0 if shape[2] == 2 else 1.0
    shift = MaxMarginShift(PCA(2), C=C / rho, sigma2=rho).fit(X, y)
    problem, model = problem_of(X, y, C), MaxMarginPCA(2, C=C).fit(X, y)
    for W in (PCA(2).fit(X).components_, shift.components_):
        start = 2 * problem.rows.project(W).T @ shift.dual_coef_
        assert model.objective_ <= least_at(problem, W, start.T).objective + 1e-9


def test_without_a_cost_it_is_pca():
    X, y = labelled(40, 6, seed=8)
    assert most_turned(MaxMarginPCA(3, C=1e-9).fit(X, y).components_, PCA(3).fit(X).components_) < 1e-5
    # shows that the law above can fail
    assert most_turned(MaxMarginPCA(3, C=1.0).fit(X, y).components_, PCA(3).fit(X).components_) > 1e-2


def test_all_directions_are_those_of_pca():
    X, y = labelled(40, 4, seed=9)
    model, pca = MaxMarginPCA().fit(X, y), PCA().fit(X)
    np.testing.assert_allclose(model.components_, pca.components_, atol=1e-9)
    np.testing.assert_allclose(model.eigenvalues_, pca.eigenvalues_, rtol=1e-10)
    np.testing.assert_allclose(model.explained_variance_ratio_, pca.explained_variance_ratio_, rtol=1e-10)


def test_eigenvalues_are_variances_along_the_directions():
    X, y = labelled(50, 6, seed=10)
    model = MaxMarginPCA(3).fit(1e3 * X, y)
    scores = model.transform(1e3 * X)
    np.testing.assert_allclose(np.cov(scores.T, ddof=0), np.diag(model.eigenvalues_), atol=1e-9 * model.eigenvalues_[0])
    assert (np.diff(model.eigenvalues_) < 0).all()


def test_a_weight_of_two_is_the_row_twice():
    X, y = labelled(40, 5, seed=11)
    twice = np.arange(40) % 3 == 0
    weighted = MaxMarginPCA(2, C=0.3).fit(X, y, sample_weight=1.0 + twice)
    repeated = MaxMarginPCA(2, C=0.3).fit(np.r_[X, X[twice]], np.r_[y, y[twice]])
    assert weighted.objective_ == pytest.approx(repeated.objective_, rel=1e-8)
    assert largest_angle(weighted.components_, repeated.components_) < 1e-3
    assert largest_angle(weighted.components_, MaxMarginPCA(2, C=0.3).fit(X, y).components_) > 1e-2


def test_sparse_rows_and_single_precision_are_the_same_problem():
    X, y = labelled(60, 8, seed=12)
    X = np.where(np.abs(X) > 1.5, X, 0.0)
    dense = MaxMarginPCA(2).fit(X, y)
    for table, enough in ((sp.csr_array(X), 1e-6), (X.astype(np.float32), 1e-3)):
        other = MaxMarginPCA(2).fit(table, y)
        assert other.objective_ == pytest.approx(dense.objective_, rel=1e-6)
        assert largest_angle(other.components_, dense.components_) < enough


def test_too_few_rounds_warn_with_their_number():
    X, y = labelled(60, 8, seed=13)
    with pytest.warns(ConvergenceWarning, match="1 rounds"):
        model = MaxMarginPCA(2, max_iter=1).fit(X, y)
    assert model.n_iter_ == 1
    assert len(model.objective_curve_) == 3


@pytest.mark.parametrize("tol", [1e-3, 1e-6, 1e-9])
def test_rounds_go_on_until_one_lowers_the_objective_by_no_more_than_tol(tol):
    X, y = labelled(60, 8, seed=13)
    of_rounds = MaxMarginPCA(2, C=0.3, tol=tol).fit(X, y).objective_curve_[::2]
    falls = -np.diff(of_rounds) / of_rounds[:-1]
    assert falls[-1] <= tol
    assert (falls[:-1] > tol).all()


def test_the_better_of_two_starts_is_kept():
    X, y = labelled(*TABLES["three classes"], seed=3)
    problem, shift = problem_of(X, y, 1.0), MaxMarginShift(PCA(1), sigma2=1.0).fit(X, y)
    ends = []
    for W in (PCA(1).fit(X).components_, shift.components_):
        start = 2 * shift.dual_coef_.T @ problem.rows.project(W)
        ends.append(problem.descent(W, start, tol=1e-9, max_iter=500)[-1].objective)
    assert ends[1] < 0.9 * ends[0]
    assert MaxMarginPCA(1).fit(X, y).objective_ == pytest.approx(ends[1], rel=1e-6)
