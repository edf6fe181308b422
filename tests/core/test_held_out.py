"""Errors on held-out rows, compared with loops over rows, folds and pairs; analytic estimates, with new rows."""

import numpy as np
import pytest
from samples import labelled
from scipy.stats import norm

from discrim.core.discriminants import discriminants
from discrim.core.generalisation import HeldOut, held_out_pair_errors, inflation
from discrim.core.moments.class_moments import ClassMoments
from discrim.core.ratio import ratio_of


def parts_of(rng, n_parts=3, n_classes=3, q=2, per_class=5):
    """Held-out rows z, labels and training means of each part, and the parts as values."""
    raw, parts = [], []
    for _ in range(n_parts):
        trained = 2 * rng.standard_normal((n_classes, q))
        y = np.repeat(np.arange(n_classes), per_class + np.arange(n_classes))
        z = trained[y] + 0.5 * rng.standard_normal((n_classes, q))[y] + 1.3 * rng.standard_normal((len(y), q))
        raw.append((z, y, trained))
        parts.append(HeldOut.of(trained, ClassMoments.of(z, y)))
    return raw, parts


def test_inflation_is_the_mean_square_around_the_training_means(rng):
    raw, parts = parts_of(rng)
    squares = [value**2 for z, y, trained in raw for row, c in zip(z, y, strict=True) for value in row - trained[c]]
    assert np.mean(squares) > 1.5
    assert inflation(parts) == pytest.approx(np.mean(squares), rel=1e-12)


def literal_errors(raw, subspaces, a, b):
    """Along u from b's to a's training mean, each part in its own subspace: means from the midpoint, one deviation."""
    margins, shifts, scatter, freedom = {a: [], b: []}, {a: [], b: []}, 0.0, 0
    for (z, y, trained), B in zip(raw, subspaces, strict=True):
        features, centres = z @ B, trained @ B
        u = (centres[a] - centres[b]) / np.linalg.norm(centres[a] - centres[b])
        middle = (centres[a] + centres[b]) / 2
        for c, sign in ((a, 1), (b, -1)):
            margins[c] += [sign * u @ (row - middle) for row in features[y == c]]
            shifts[c] += [(np.mean((features[y == c] - centres[c]) @ u), int((y == c).sum()))]
        for c in np.unique(y):
            along = features[y == c] @ u
            scatter += np.sum((along - along.mean()) ** 2)
            freedom += len(along) - 1
    for c in (a, b):
        means, counts = np.array(shifts[c]).T
        scatter += counts @ (means - np.average(means, weights=counts)) ** 2
        freedom += len(means) - 1
    return norm.sf((np.mean(margins[a]) + np.mean(margins[b])) / np.sqrt(scatter / freedom) / 2)


def test_pair_errors_are_the_literal_ones(rng):
    raw, parts = parts_of(rng, n_classes=4, q=3)
    subspaces = [np.linalg.qr(rng.standard_normal((3, 2)))[0] for _ in raw]
    of_part = dict(zip(map(id, parts), subspaces, strict=True))
    errors = held_out_pair_errors(parts, lambda part: of_part[id(part)], 4)
    for a in range(4):
        for b in range(a):
            assert errors[a, b] == pytest.approx(literal_errors(raw, subspaces, a, b), rel=1e-9)
    np.testing.assert_array_equal(errors, errors.T)
    np.testing.assert_array_equal(np.diag(errors), 0.0)


def test_classes_held_out_in_different_parts_are_compared_and_absent_ones_are_not(rng):
    trained = np.array([[0.0, 0.0], [6.0, 0.0], [0.0, 6.0]])
    first = trained[0] + rng.standard_normal((40, 2))
    second = trained[1] + rng.standard_normal((40, 2))
    parts = []
    for c, rows in enumerate((first, second)):  # class 0 in one part, class 1 in the other, class 2 in none
        moments = ClassMoments.of(rows, np.full(40, c))
        weights, means = np.zeros(3), np.full((3, 2), np.nan)
        weights[c], means[c] = 40, moments.means[0]
        parts.append(HeldOut(trained, means, weights, moments.within, 39.0))
    errors = held_out_pair_errors(parts, lambda _: np.eye(2), 3)
    assert errors[0, 1] == pytest.approx(norm.sf(3.0), rel=0.6)
    assert np.isnan(errors[0, 2])
    assert np.isnan(errors[1, 2])


def test_a_class_that_was_not_in_training_is_left_out(rng):
    raw, _ = parts_of(rng, n_parts=2)
    parts = []
    for i, (z, y, trained) in enumerate(raw):
        known = trained.copy()
        known[2] = np.nan if i == 0 else known[2]
        parts.append(HeldOut.of(known, ClassMoments.of(z, y)))
    errors = held_out_pair_errors(parts, lambda _: np.eye(2), 3)
    assert np.isfinite(errors).all()
    assert errors[0, 2] == pytest.approx(literal_errors(raw[1:], [np.eye(2)], 0, 2), rel=1e-9)


# ---------------------------------------------------------------------- analytic estimates


def test_inflation_is_never_below_one(rng):
    raw, _ = parts_of(rng)
    tight = [HeldOut.of(t, ClassMoments.of(t[y] + 0.1 * (z - t[y]), y)) for z, y, t in raw]
    assert inflation(tight) == inflation([]) == 1.0


@pytest.mark.parametrize("shares", [[0.25, 0.25, 0.5], [0.05, 0.15, 0.8]])
def test_expected_means_are_centred_as_training_means(shares, rng):
    trained = rng.standard_normal((3, 2))
    trained -= shares @ trained
    expected = HeldOut.expected(trained, np.eye(2), 5.0, np.array(shares), 60.0, 0.1)
    np.testing.assert_allclose(shares @ expected.means, 0.0, atol=1e-14)
    assert np.abs(expected.means - trained).max() > 0.01


def test_weights_that_add_up_to_one_give_finite_errors(rng):
    raw, parts = parts_of(rng)
    light = [HeldOut.of(t, ClassMoments.of(z, y, np.full(len(y), 1 / len(y)))) for z, y, t in raw]
    errors, plain = (held_out_pair_errors(some, lambda _: np.eye(2), 3) for some in (light, parts))
    assert np.isfinite(errors).all()
    np.testing.assert_allclose(errors, plain, atol=0.1)


def foretold(ratio, gamma, sigma=None):
    """Return the estimates along the discriminants, and the discriminants."""
    sigma = ratio.covariance(gamma) if sigma is None else sigma
    G = discriminants(ratio.means, sigma).directions
    trained = (ratio.means @ G.T) / np.sqrt(ratio.shares)[:, None]
    trace = sigma.trace_of_quotient(ratio.within)
    return HeldOut.expected(trained, G @ ratio.within @ G.T, trace, ratio.shares, ratio.weight, gamma), G


def foretold_and_true(gamma, seed, n=240, d=120, n_classes=4):
    """Expected and true held-out covariance and means along discriminants of a training set."""
    rng = np.random.default_rng(seed)
    centres = rng.standard_normal((n_classes, d)) * 3 / np.sqrt(2 * d)
    deviations = np.geomspace(1.5, 0.6, d)
    y = np.arange(n) % n_classes
    X = centres[y] + rng.standard_normal((n, d)) * deviations
    ratio = ratio_of(ClassMoments.of(X, y))
    expected, G = foretold(ratio, gamma)
    return expected, (G * deviations**2) @ G.T, (centres - X.mean(axis=0)) @ G.T


@pytest.mark.parametrize("gamma", [0.0, 0.1, 0.5, 1.0])
def test_statistics_foretell_spread_and_means_of_fresh_rows(gamma):
    draws = [foretold_and_true(gamma, seed) for seed in range(8)]
    spread = np.mean([np.trace(part.scatter) / part.freedom / 3 for part, _, _ in draws])
    true_spread = np.mean([np.trace(covariance) / 3 for _, covariance, _ in draws])
    apparent = np.mean([np.mean((part.trained**2).sum(axis=1)) for part, _, _ in draws])
    between = np.mean([np.mean((part.trained * part.means).sum(axis=1)) for part, _, _ in draws])
    true_between = np.mean([np.mean((part.trained * means).sum(axis=1)) for part, _, means in draws])
    assert spread == pytest.approx(true_spread, rel=0.08)
    assert between == pytest.approx(true_between, rel=0.12)
    assert apparent > 1.25 * true_between  # what training rows say is far too much


def test_statistics_predict_no_error_from_too_few_rows():
    X, y = labelled(12, 30, 3)
    ratio = ratio_of(ClassMoments.of(X, y))
    assert foretold(ratio, 0.5)[0] is not None
    assert foretold(ratio_of(ClassMoments.of(X, y, np.full(12, 1e-3))), 0.5, ratio.covariance(0.5))[0] is None
    assert foretold(ratio, 1e-9)[0] is None
