"""Shared factors of rows and labels as a convex problem."""

import literal
import numpy as np
import pytest
from geometry import largest_angle
from samples import labelled
from sklearn.exceptions import ConvergenceWarning

from discrim import PCA, SupervisedExponentialPCA
from discrim.core.factors import SharedFactors, minimise_factors, nearest_feasible
from discrim.estimators import factor_models as supervised_exponential_pca


def made_problem(n=12, d=4, alpha=1.7, beta=0.3, seed=0):
    X, y = labelled(n, d, seed=seed)
    H = X - X.mean(axis=0)
    H /= np.sqrt((H**2).sum() / n)
    roots = np.full(n, 1 / np.sqrt(n))
    return H, y, SharedFactors(H @ H.T / n, roots, y, 3, alpha, beta)


def random_feasible(n, k, rng):
    """Eigenpairs of a random M with 0 ⪯ M ⪯ I and tr M = k."""
    vectors = np.linalg.qr(rng.standard_normal((n, n)))[0]
    values = rng.uniform(size=n) * (rng.uniform(size=n) < 0.6)
    return nearest_feasible((vectors * values) @ vectors.T, k)


def test_the_objective_is_that_of_the_definition():
    H, y, problem = made_problem(n=6)
    values, vectors = random_feasible(6, 2, np.random.default_rng(1))
    M = (vectors * values) @ vectors.T
    found = problem.value_and_slope(values, vectors, None)[0]
    assert found == pytest.approx(literal.shared_factor_objective(H, y, M, 1.7, 0.3), rel=1e-6)


def test_its_slope_is_that_of_small_changes():
    _, _, problem = made_problem(n=8)
    values, vectors = random_feasible(8, 3, np.random.default_rng(2))
    values = 0.5 * values + 3 / 16  # an interior point, so both directions are feasible
    slope = problem.value_and_slope(values, vectors, None)[1]
    M = (vectors * values) @ vectors.T
    change = np.random.default_rng(3).standard_normal((8, 8))
    change = 1e-5 * (change + change.T)
    ends = [problem.value_and_slope(*np.linalg.eigh(M + sign * change), None)[0] for sign in (1, -1)]
    assert ends[0] - ends[1] == pytest.approx(2 * np.vdot(slope, change), rel=1e-4)


@pytest.mark.parametrize("k", [1, 2, 3])
def test_no_feasible_matrix_is_lower(k):
    """By convexity F(M') ≥ F(M) + ⟨slope, M' − M⟩, whose least value over all M' is a sum of eigenvalues."""
    _, _, problem = made_problem()
    found = minimise_factors(problem, k, tol=1e-11, max_iter=2000)
    assert found.is_settled
    assert (np.diff(found.objective) <= 0).all()
    assert ((found.values >= 0) & (found.values <= 1)).all()
    assert found.values.sum() == pytest.approx(k)
    at, slope, _ = problem.value_and_slope(found.values, found.vectors, None)
    M = (found.vectors * found.values) @ found.vectors.T
    gap = np.vdot(slope, M) - np.linalg.eigvalsh(slope)[:k].sum()
    assert 0 <= gap + 1e-12 < 1e-4
    rng = np.random.default_rng(0)
    for _ in range(20):
        assert problem.value_and_slope(*random_feasible(12, k, rng), None)[0] >= at - 1e-10


def test_the_nearest_feasible_matrix():
    rng = np.random.default_rng(4)
    A = rng.standard_normal((7, 7))
    A = A + A.T
    values, vectors = nearest_feasible(A, 3)
    nearest = (vectors * values) @ vectors.T
    assert values.sum() == pytest.approx(3)
    for _ in range(50):
        w, V = random_feasible(7, 3, rng)
        assert np.linalg.norm((V * w) @ V.T - A) >= np.linalg.norm(nearest - A) - 1e-12


def test_directions_span_what_the_leading_factors_give_back_of_the_rows():
    X, y = labelled(30, 6)
    fitted = SupervisedExponentialPCA(2, tol=1e-9).fit(X, y)
    np.testing.assert_allclose(fitted.components_ @ fitted.components_.T, np.eye(2), atol=1e-12)
    np.testing.assert_allclose(np.cov(fitted.transform(X).T, bias=True), np.diag(fitted.eigenvalues_), atol=1e-9)
    assert len(fitted.objective_) == fitted.n_iter_ + 1
    assert fitted.factor_weights_.sum() == pytest.approx(2)


def test_a_label_weight_near_zero_is_pca_and_a_large_one_separates():
    X, y = labelled(40, 5)
    principal = PCA(2).fit(X).components_
    assert (
        largest_angle(SupervisedExponentialPCA(2, label_weight=1e-6, penalty=10.0).fit(X, y).components_, principal)
        < 1e-3
    )
    assert largest_angle(SupervisedExponentialPCA(2, label_weight=10.0).fit(X, y).components_, principal) > 0.1


def test_many_rows_are_refused_but_not_many_copies(monkeypatch):
    monkeypatch.setattr(supervised_exponential_pca, "MAX_ROWS", 30)
    X, y = labelled(30, 4)
    SupervisedExponentialPCA(2).fit(np.r_[X, X], np.r_[y, y])
    with pytest.raises(ValueError, match="rows"):
        SupervisedExponentialPCA(2).fit(*labelled(40, 4))


def test_too_few_steps_warn():
    with pytest.warns(ConvergenceWarning, match="1 rounds"):
        SupervisedExponentialPCA(2, max_iter=1, tol=1e-12).fit(*labelled(30, 4))
