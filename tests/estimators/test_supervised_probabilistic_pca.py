"""Factors that rows and labels share: the fixed point of EM, computed directly."""

import literal
import numpy as np
import pytest
from geometry import largest_angle
from samples import labelled

from discrim import SupervisedProbabilisticPCA
from discrim.core import factors


def em(X, U, k, steps, seed=0):
    """Parameters after each step of EM from a random start."""
    rng = np.random.default_rng(seed)
    state = rng.standard_normal((X.shape[1], k)), rng.standard_normal((U.shape[1], k)), 1.0, 1.0
    for _ in range(steps):
        state = literal.em_step(X, U, *state)
        yield state


@pytest.mark.parametrize(("n_classes", "k"), [(2, 1), (3, 1), (3, 2), (3, 3)])
def test_em_never_falls_and_ends_where_the_fit_is(n_classes, k):
    X, y = labelled(40, 5, n_classes, seed=1)
    centred, U = X - X.mean(axis=0), literal.label_contrasts(y)
    states = list(em(centred, U, k, 600))
    likelihoods = [
        literal.joint_log_likelihood(centred, U, *state) for state in [*states[:20], *states[20::20], states[-1]]
    ]
    assert (np.diff(likelihoods) > -1e-10).all()
    fitted = SupervisedProbabilisticPCA(k).fit(X, y)
    assert fitted.log_likelihood_ >= likelihoods[-1] - 1e-9
    assert fitted.log_likelihood_ == pytest.approx(likelihoods[-1], abs=1e-5)
    Wx, _, noise_x, noise_y = states[-1]
    assert fitted.noise_variance_ == pytest.approx(noise_x, rel=1e-2)
    assert fitted.label_noise_variance_ == pytest.approx(noise_y, rel=5e-2, abs=1e-4)
    assert largest_angle(fitted.components_, Wx.T) < 0.02


def test_the_fit_is_a_fixed_point_of_em_and_its_features_are_the_posterior_means():
    X, y = labelled(50, 6, 3, seed=2)
    centred, U = X - X.mean(axis=0), literal.label_contrasts(y)
    fitted = SupervisedProbabilisticPCA(2).fit(X, y)
    noise = fitted.noise_variance_
    covariance = np.cov(np.c_[centred, U * np.sqrt(noise / fitted.label_noise_variance_)].T, bias=True)
    values, vectors = literal.leading(covariance)
    np.testing.assert_allclose(fitted.eigenvalues_, values[:2], rtol=1e-9)
    W = vectors[:2].T * np.sqrt(values[:2] - noise)
    Wx, Wy = W[:6], W[6:] * np.sqrt(fitted.label_noise_variance_ / noise)
    state = Wx, Wy, noise, fitted.label_noise_variance_
    for before, after in zip(state, literal.em_step(centred, U, *state), strict=True):
        np.testing.assert_allclose(after, before, rtol=1e-7, atol=1e-9)
    posterior = centred @ Wx @ np.linalg.inv(Wx.T @ Wx / noise + np.eye(2)) / noise
    np.testing.assert_allclose(np.abs(fitted.transform(X)), np.abs(posterior), atol=1e-9)
    assert fitted.log_likelihood_ == pytest.approx(literal.joint_log_likelihood(centred, U, *state), rel=1e-10)


def test_units_move_the_likelihood_by_their_density():
    X, y = labelled(50, 4)
    one, far = (SupervisedProbabilisticPCA(2).fit(unit * X, y) for unit in (1.0, 1e100))
    assert far.log_likelihood_ == pytest.approx(one.log_likelihood_ - 4 * np.log(1e100), rel=1e-12)
    assert far.noise_variance_ == pytest.approx(one.noise_variance_ * 1e200, rel=1e-9)


def test_labels_that_follow_from_the_rows_meet_the_floor():
    y = np.arange(30) % 3
    X = np.random.default_rng(0).standard_normal((3, 4))[y] + 1e-9 * np.random.default_rng(1).standard_normal((30, 4))
    fitted = SupervisedProbabilisticPCA(2).fit(X, y)
    assert np.isfinite(fitted.log_likelihood_)
    mean_square = np.mean(literal.label_contrasts(y) ** 2)
    assert fitted.label_noise_variance_ >= factors.MIN_NOISE * mean_square * (1 - 1e-12)


def test_many_columns_by_products(monkeypatch):
    X, y = labelled(200, 40, 3)
    wanted = SupervisedProbabilisticPCA(2).fit(X, y)
    monkeypatch.setattr(factors, "MANY", 20)
    found = SupervisedProbabilisticPCA(2).fit(X, y)
    np.testing.assert_allclose(found.components_, wanted.components_, atol=1e-8)


@pytest.mark.parametrize("log_s", [-2.0, 0.5, 6.0, 9.0])
@pytest.mark.parametrize("k", [1, 3])
def test_the_slope_is_that_of_the_deviance_on_either_side_of_the_floors(log_s, k):
    rng = np.random.default_rng(3)
    joint = rng.standard_normal((6, 4)) * [2, 1, 1e-2, 1e-4]
    full = joint @ joint.T  # of four rows and two labels, the least variances next to none
    values, vectors = np.linalg.eigh(full[:4, :4])
    covariance = factors.JointCovariance(values, vectors.T @ full[:4, 4:], full[4:, 4:])
    low, at, high = (factors.JointFactors.at(covariance, log_s + step, k) for step in (-1e-5, 0, 1e-5))
    assert (high.deviance - low.deviance) / 2e-5 == pytest.approx(at.slope, rel=1e-3, abs=1e-5)
    if (log_s, k) == (9.0, 3):  # the floor of the labels is active
        floor = factors.MIN_NOISE * np.trace(full[4:, 4:]) / 2
        assert at.noise / at.s**2 == pytest.approx(floor)
