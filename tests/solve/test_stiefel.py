"""Descent over subspaces: functions whose least subspace is known, and that no step goes up."""

import numpy as np
import pytest
from scipy.linalg import subspace_angles

from discrim.solve.error_subspace import SubspaceDescent, descended, least, orthonormal, random_subspaces, tangent

A = np.diag([9.0, 7.0, 4.0, 3.0, 2.0, 1.0]) + 0.3 * np.ones((6, 6))


def minus_trace(B):
    """−tr BᵀAB, least on the leading eigenvectors."""
    return -np.trace(B.mT @ A @ B, axis1=1, axis2=2), -2 * A @ B


@pytest.mark.parametrize("k", [1, 2, 5])
def test_leading_eigenvectors_are_found_to_the_last_digits(k, rng):
    value, B = least(minus_trace, random_subspaces(4, np.ones(6), k, rng))
    values, vectors = np.linalg.eigh(A)
    assert value == pytest.approx(-values[::-1][:k].sum(), rel=1e-13)
    assert np.max(subspace_angles(B, vectors[:, ::-1][:, :k])) < 1e-10
    np.testing.assert_allclose(B.T @ B, np.eye(k), atol=1e-13)


def test_no_step_goes_up(rng):
    state = SubspaceDescent.at(minus_trace, random_subspaces(5, np.ones(6), 2, rng))
    for _ in range(25):
        after = descended(minus_trace, state, 1)
        assert (after.values <= state.values + 1e-12 * np.abs(state.values)).all()
        state = after
    assert (state.values < minus_trace(random_subspaces(5, np.ones(6), 2, rng))[0]).all()


def test_too_long_a_step_is_halved_not_taken(rng):
    state = SubspaceDescent.at(minus_trace, random_subspaces(1, np.ones(6), 2, rng))
    before = state.values.copy()

    def with_a_wall(B):
        values, gradients = minus_trace(B)
        return values + 1e3, gradients

    after = descended(with_a_wall, state, 1)
    np.testing.assert_array_equal(after.values, before)
    assert after.steps[0] < state.steps[0] * 0.51 + 1e-300


def two_wells(B):
    """Along one direction of the plane: a shallow well at the first axis, a deep one at the second."""
    x, y = B[:, 0, 0], B[:, 1, 0]
    values = -(x**4) - 1.5 * y**4
    return values, np.stack([-4 * x**3, -6 * y**3], axis=1)[:, :, None]


def test_of_several_starts_the_lowest_minimum_is_kept():
    near_shallow = np.array([[[0.999], [0.045]]])
    near_deep = np.array([[[0.1], [0.995]]])
    near_shallow, near_deep = orthonormal(near_shallow), orthonormal(near_deep)
    assert least(two_wells, near_shallow)[0] == pytest.approx(-1.0)
    assert least(two_wells, np.concatenate([near_shallow, near_deep]))[0] == pytest.approx(-1.5)
    assert least(two_wells, np.concatenate([near_deep, near_shallow]))[0] == pytest.approx(-1.5)


def test_a_start_at_the_minimum_stays():
    vectors = np.linalg.eigh(A)[1][:, ::-1][:, :2]
    value, B = least(minus_trace, vectors[None])
    assert np.max(subspace_angles(B, vectors)) < 1e-12
    assert np.isfinite(value)


def test_tangents_are_orthogonal_to_the_subspace(rng):
    B = random_subspaces(3, np.ones(6), 2, rng)
    slopes = tangent(B, rng.standard_normal((3, 6, 2)))
    np.testing.assert_allclose(B.mT @ slopes, 0.0, atol=1e-14)


def test_random_subspaces_are_orthonormal_and_of_the_seed():
    one, other = (random_subspaces(7, np.ones(5), 2, np.random.default_rng(3)) for _ in range(2))
    np.testing.assert_array_equal(one, other)
    np.testing.assert_allclose(one.mT @ one, np.broadcast_to(np.eye(2), (7, 2, 2)), atol=1e-14)
    assert random_subspaces(0, np.ones(5), 2, np.random.default_rng(3)).shape == (0, 5, 2)
    leaning = random_subspaces(200, np.array([9.0, 1, 1, 1, 1]), 1, np.random.default_rng(3))
    assert np.median(np.abs(leaning[:, 0, 0])) > 0.8
