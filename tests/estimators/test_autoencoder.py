"""The autoencoder against its formula, its gradient against differences."""

import numpy as np
import pytest
from samples import labelled
from sklearn.utils.estimator_checks import check_estimator

from discrim.estimators.autoencoder import Autoencoder, loss_and_gradient


def sigmoid(t):
    return 1 / (1 + np.exp(-t))


def literal_loss(W, b, c, X, alpha):
    total = 0.0
    for x in X:
        hidden = sigmoid(W @ x + b)
        total += ((x - sigmoid(W.T @ hidden + c)) ** 2).sum()
    return total / len(X) + alpha * (W**2).sum()


@pytest.fixture
def problem(rng):
    W, b, c = rng.standard_normal((3, 5)), rng.standard_normal(3), rng.standard_normal(5)
    return W, b, c, rng.uniform(0.1, 0.9, (12, 5))


@pytest.mark.parametrize("alpha", [0.0, 0.3])
def test_loss_is_its_formula(problem, alpha):
    W, b, c, X = problem
    loss, _ = loss_and_gradient(np.concatenate([W.ravel(), b, c]), X, 3, alpha)
    assert loss == pytest.approx(literal_loss(W, b, c, X, alpha), rel=1e-13)


@pytest.mark.parametrize("alpha", [0.0, 0.3])
def test_gradient_is_the_slope(problem, alpha):
    W, b, c, X = problem
    flat = np.concatenate([W.ravel(), b, c])
    steps = 1e-5 * np.eye(len(flat))
    ahead, behind = ([loss_and_gradient(flat + sign * step, X, 3, alpha)[0] for step in steps] for sign in (1, -1))
    slope = (np.array(ahead) - behind) / 2e-5
    np.testing.assert_allclose(loss_and_gradient(flat, X, 3, alpha)[1], slope, atol=1e-9)
    assert np.abs(slope).min() > 1e-4  # every entry is put to the test


def test_features_and_reconstruction_are_the_formula_on_scaled_columns():
    X, _ = labelled(50, 4)
    model = Autoencoder(3, random_state=0).fit(X)
    low, high = X.min(axis=0), X.max(axis=0)
    scaled = 0.1 + 0.8 * (X - low) / (high - low)
    hidden = sigmoid(scaled @ model.components_.T + model.intercept_)
    np.testing.assert_allclose(model.transform(X), hidden, atol=1e-12)
    output = sigmoid(hidden @ model.components_ + model.output_intercept_)
    np.testing.assert_allclose(model.inverse_transform(hidden), low + (high - low) * (output - 0.1) / 0.8, atol=1e-10)
    wanted = literal_loss(model.components_, model.intercept_, model.output_intercept_, scaled, 0.0)
    assert model.loss_ == pytest.approx(wanted)


def test_training_stops_where_the_slope_vanishes():
    X, _ = labelled(40, 4)
    model = Autoencoder(2, alpha=1e-3, max_iter=5000, random_state=0).fit(X)
    flat = np.concatenate([model.components_.ravel(), model.intercept_, model.output_intercept_])
    loss, slope = loss_and_gradient(flat, model._scaled(X), 2, 1e-3)
    assert np.abs(slope).max() < 1e-4
    assert loss == pytest.approx(model.loss_)


def test_more_steps_and_more_units_reconstruct_better():
    rng = np.random.default_rng(0)
    X = np.tanh(rng.standard_normal((100, 2)) @ rng.standard_normal((2, 8)))
    plain = ((X - X.mean(axis=0)) ** 2).sum()

    def error(**parameters):
        model = Autoencoder(random_state=0, **parameters).fit(X)
        return ((X - model.inverse_transform(model.transform(X))) ** 2).sum() / plain

    assert error(n_components=4, max_iter=500) < 0.05
    assert error(n_components=4, max_iter=500) < error(n_components=1, max_iter=500) < 0.8
    assert error(n_components=2, max_iter=300) < error(n_components=2, max_iter=3)


def test_alpha_keeps_weights_small():
    X, _ = labelled(40, 4)
    sizes = [np.linalg.norm(Autoencoder(2, alpha=a, random_state=0).fit(X).components_) for a in (0.0, 1e-3, 1e-1)]
    assert sizes[0] > sizes[1] > sizes[2]


def test_constant_columns_stay_what_they_are():
    X, _ = labelled(30, 3)
    X = np.c_[X, np.full(30, 7.3), np.full(30, 0.1) * (1 + 1e-16 * np.arange(30))]
    model = Autoencoder(2, random_state=0).fit(X)
    assert np.isfinite(model.transform(X)).all()
    np.testing.assert_allclose(model.inverse_transform(model.transform(X))[:, 3:], X[:, 3:], rtol=1e-12)
    new = X.copy()
    new[:, 3] = 1e6  # its later values are ignored, too
    np.testing.assert_array_equal(model.transform(new), model.transform(X))


def test_a_seed_decides():
    X, _ = labelled(30, 3)
    one, two = (Autoencoder(2, random_state=5).fit(X).components_ for _ in range(2))
    np.testing.assert_array_equal(one, two)
    assert np.abs(Autoencoder(2, random_state=6).fit(X).components_ - one).max() > 1e-3


def test_contract():
    check_estimator(Autoencoder(max_iter=30), on_skip=None)


def test_ranges_up_to_the_largest_number():
    wide = np.array([[0.0, 8e307], [1.0, -8e307], [0.3, 1e306]])
    assert np.isfinite(Autoencoder(1, random_state=0).fit_transform(wide)).all()
