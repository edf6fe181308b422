"""Temperatures: known ones are found, and one row does not change them."""

import numpy as np
import pytest

from discrim.core.cross_validation import best_temperature, calibrated


def simulated(temperature, n=20_000, n_classes=4, seed=0):
    """Scores that are `temperature` times too large, and labels drawn from the true posteriors."""
    rng = np.random.default_rng(seed)
    logits = 2 * rng.standard_normal((n, n_classes))
    posteriors = np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True)
    codes = (rng.random(n)[:, None] > np.cumsum(posteriors, axis=1)).sum(axis=1)
    return temperature * logits, codes, np.ones(n)


@pytest.mark.parametrize("temperature", [0.5, 2.0, 2**4.5, 256.0])
def test_the_temperature_of_simulated_posteriors_is_found(temperature):
    scores, codes, weights = simulated(temperature)
    found, loss = best_temperature(scores, codes, weights)
    assert found == pytest.approx(temperature)
    p = calibrated(scores, found, weights.sum())
    np.testing.assert_allclose(p.sum(axis=1), 1.0)
    assert loss == pytest.approx(-np.log(p[np.arange(len(codes)), codes]).mean(), rel=1e-12)
    # calibrated: 70 % of the rows with a predicted probability near 0.7 are of the class
    near = (p > 0.65) & (p < 0.75)
    assert (codes[:, None] == np.arange(4))[near].mean() == pytest.approx(0.7, abs=0.02)


def test_one_row_of_absurd_scores_moves_the_temperature_by_one_step_at_most():
    scores, codes, weights = simulated(4.0, n=300)
    before = best_temperature(scores, codes, weights)[0]
    scores[7, (codes[7] + 1) % 4] = 1e6
    after, loss = best_temperature(scores, codes, weights)
    assert abs(np.log2(after / before)) <= 0.5
    assert loss < 1.0


def test_a_class_that_was_not_in_training_costs_the_log_of_its_share_of_any_class():
    scores = np.array([[0.0, -np.inf], [0.0, -np.inf]])
    _, loss = best_temperature(scores, np.array([0, 1]), np.array([1.0, 3.0]))
    assert loss == pytest.approx(-(np.log(1 - 1 / 4 + 1 / 8) + 3 * np.log(1 / 8)) / 4)


def test_weights_that_do_not_count_rows_leave_probabilities():
    scores, codes, weights = simulated(3.0, n=50)
    temperature, loss = best_temperature(scores, codes, weights / 100)  # they add up to a half
    assert np.isfinite(loss)
    p = calibrated(scores, temperature, 0.5)
    assert (p > 0).all()
    np.testing.assert_allclose(p.sum(axis=1), 1.0)
