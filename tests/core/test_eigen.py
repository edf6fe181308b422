"""Signs, order and number of directions."""

import literal
import numpy as np
import pytest
from geometry import most_turned
from scipy.sparse.linalg import aslinearoperator

from discrim.core.eigen import descending, kept_count, spectrum_of_matrix, spectrum_of_operator, with_fixed_signs


def test_an_indefinite_matrix_keeps_negative_values_and_drops_what_it_does_not_touch():
    Q = np.linalg.qr(np.random.default_rng(1).standard_normal((6, 6)))[0]
    A = (Q * [3.0, 1.0, 0.0, 0.0, -0.5, -2.0]) @ Q.T
    found = spectrum_of_matrix(A, None, precision=float(np.finfo(float).eps), definite=False)
    np.testing.assert_allclose(found.values, [3.0, 1.0, -0.5, -2.0], atol=1e-12)
    assert most_turned(found.directions, Q.T[[0, 1, 4, 5]]) < 1e-9
    assert (found.rank, found.total) == (4, pytest.approx(4.0))


def test_an_operator_has_the_directions_of_its_matrix():
    Q, values = np.linalg.qr(np.random.default_rng(1).standard_normal((90, 90)))[0], np.geomspace(1, 1e-4, 90)
    found = spectrum_of_operator(aslinearoperator((Q * values) @ Q.T), 4, values.sum())
    assert most_turned(found.directions, Q.T[:4]) < 1e-9
    np.testing.assert_allclose(found.values, values[:4], rtol=1e-10)
    assert (found.rank, found.total) == (4, values.sum())
    assert spectrum_of_operator(aslinearoperator(np.zeros((30, 30))), 3, 0.0).rank == 0


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
