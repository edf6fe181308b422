"""Leading directions of a matrix, a factor and an operator agree, in descending order and with fixed signs."""

import literal
import numpy as np
import pytest
import scipy.linalg as la
from geometry import most_turned
from scipy.sparse.linalg import aslinearoperator

from discrim.core import eigen
from discrim.core.eigen import (
    descending,
    kept_count,
    spectrum_of_factor,
    spectrum_of_matrix,
    spectrum_of_operator,
    with_fixed_signs,
)

EPS = float(np.finfo(float).eps)


def factor(rows, columns, smallest=1e-2, seed=0):
    """Z with singular values from 1 down to the smallest."""
    rng = np.random.default_rng(seed)
    k = min(rows, columns)
    U, V = (np.linalg.qr(rng.standard_normal((side, k)))[0] for side in (rows, columns))
    return (U * np.geomspace(1, smallest, k)) @ V.T, V.T


@pytest.mark.parametrize("columns", [5, 64, 65, 120], ids=lambda d: f"{d} columns")
@pytest.mark.parametrize("wanted", [1, 4, None])
def test_matrix_and_factor_give_the_same(columns, wanted):
    Z, V = factor(2 * columns, columns)
    kept = columns if wanted is None else wanted
    for found in (
        spectrum_of_matrix(Z.T @ Z, wanted, precision=EPS),
        spectrum_of_factor(Z, wanted, precision=EPS),
    ):
        assert found.directions.shape == (kept, columns)
        assert most_turned(found.directions, V[:kept]) < 1e-9
        np.testing.assert_allclose(found.values, np.geomspace(1, 1e-4, columns)[:kept], rtol=1e-9)
        assert found.total == pytest.approx(np.trace(Z.T @ Z), rel=1e-12)
        assert found.rank == columns
        assert str(columns) in found.how


def test_operator_gives_the_same_first_ones():
    Z, V = factor(200, 90)
    A = Z.T @ Z
    found = spectrum_of_operator(aslinearoperator(A), 4, float(np.trace(A)))
    assert most_turned(found.directions, V[:4]) < 1e-9
    np.testing.assert_allclose(found.values, np.geomspace(1, 1e-4, 90)[:4], rtol=1e-10)
    assert found.total == np.trace(A)
    assert found.rank == 4
    again = spectrum_of_operator(aslinearoperator(A), 4, float(np.trace(A)))
    np.testing.assert_array_equal(found.directions, again.directions)


@pytest.mark.parametrize("rank", [1, 7, 40])
@pytest.mark.parametrize("wanted", [2, None])
def test_numerical_rank(rank, wanted):
    Z, _ = factor(200, 100)
    U, s, V = np.linalg.svd(Z, full_matrices=False)
    low = (U[:, :rank] * s[:rank]) @ V[:rank]
    assert spectrum_of_matrix(low.T @ low, wanted, precision=EPS).rank == rank
    assert spectrum_of_factor(low, wanted, precision=EPS).rank == rank


def test_zeros_have_rank_zero():
    assert spectrum_of_matrix(np.zeros((80, 80)), 2, precision=EPS).rank == 0
    assert spectrum_of_matrix(np.zeros((3, 3)), None, precision=EPS).rank == 0
    assert spectrum_of_factor(np.zeros((4, 3)), None, precision=EPS).rank == 0


@pytest.mark.parametrize("trouble", ["raises", "returns too few", "returns NaN"])
def test_lapacks_partial_solver_is_not_trusted(trouble, monkeypatch):
    Z, V = factor(200, 100)
    partial_solver = la.eigh

    def unwell(A, **options):
        if options.get("driver") != "evr":
            return partial_solver(A, **options)
        if trouble == "raises":
            raise la.LinAlgError("failed to converge")
        values, vectors = partial_solver(A, **options)
        return (values[1:], vectors[:, 1:]) if trouble == "returns too few" else (values, vectors * np.nan)

    monkeypatch.setattr(eigen.la, "eigh", unwell)
    assert most_turned(spectrum_of_matrix(Z.T @ Z, 3, precision=EPS).directions, V[:3]) < 1e-9


def test_an_indefinite_matrix_keeps_negative_values_and_drops_what_it_does_not_touch():
    Q = np.linalg.qr(np.random.default_rng(1).standard_normal((6, 6)))[0]
    A = (Q * [3.0, 1.0, 0.0, 0.0, -0.5, -2.0]) @ Q.T
    found = spectrum_of_matrix(A, None, precision=EPS, definite=False)
    np.testing.assert_allclose(found.values, [3.0, 1.0, -0.5, -2.0], atol=1e-12)
    assert most_turned(found.directions, Q.T[[0, 1, 4, 5]]) < 1e-9
    assert found.rank == 4
    assert found.total == pytest.approx(4.0)


def test_signs():
    rng = np.random.default_rng(2)
    directions = rng.standard_normal((50, 4))
    directions[:10, 2] = -directions[:10, 0] * (1 + 1e-9)  # nearly equal in size: the first of them decides
    fixed = with_fixed_signs(directions)
    np.testing.assert_array_equal(fixed, [literal.fixed_sign(direction) for direction in directions])
    np.testing.assert_array_equal(with_fixed_signs(-directions), fixed)
    np.testing.assert_array_equal(with_fixed_signs(np.zeros((1, 3))), np.zeros((1, 3)))
    assert with_fixed_signs(np.empty((0, 3))).shape == (0, 3)


def test_a_fraction_is_reached_in_spite_of_rounding():
    values = np.full(10, 0.1)
    for k in range(1, 10):
        assert kept_count(k / 10, values, 1.0, 10, (12, 7)) == k


def test_values_that_differ_by_rounding_keep_their_order():
    assert descending(np.array([1.0, 3.0, 2.0])).tolist() == [1, 2, 0]
    assert descending(np.array([1e-33, 5e-32, 1.0, 0.0, 1 + 1e-15])).tolist() == [2, 4, 0, 1, 3]
    assert descending(np.array([1e-33, 5e-32, 0.0])).tolist() == [1, 0, 2]  # ordered by size
    assert descending(np.zeros(3)).tolist() == [0, 1, 2]
    assert descending(np.array([])).tolist() == []
