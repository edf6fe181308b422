"""The ridge rule equals its formula with an explicit inverse, in every shape of table."""

import numpy as np
import pytest

from discrim.core.moments.class_moments import ClassMoments
from discrim.core.ridge_rules import RidgeRules
from discrim.tables.rows import LabelledRows

RIDGES = np.array([1e-4, 0.1, 0.9])


def literal_scores(X, y, weights, gamma, new):
    n, classes = weights.sum(), np.unique(y)
    mean = weights @ X / n
    means = np.array([weights[y == c] @ X[y == c] / weights[y == c].sum() for c in classes])
    gaps = X - means[np.searchsorted(classes, y)]
    within = sum(w * np.outer(gap, gap) for gap, w in zip(gaps, weights, strict=True))
    rank = np.linalg.matrix_rank(X - mean)
    target = np.trace(within / n) / rank
    inverse = np.linalg.inv((1 - gamma) * within / n + gamma * target * np.eye(X.shape[1]))
    return np.array(
        [
            [
                (m - mean) @ inverse @ (x - mean)
                - 0.5 * (m - mean) @ inverse @ (m - mean)
                + np.log(weights[y == c].sum() / n)
                for m, c in zip(means, classes, strict=True)
            ]
            for x in new
        ]
    )


@pytest.mark.parametrize("shape", [(20, 1), (20, 2), (30, 7), (12, 30)])
@pytest.mark.parametrize("offset", [0.0, 1e5])
def test_scores_are_the_formula(shape, offset, rng):
    X, y = rng.standard_normal(shape) + offset, np.arange(shape[0]) % 3
    weights = rng.uniform(0.5, 2, shape[0])
    rules = RidgeRules.of(ClassMoments.of(X, y, weights), RIDGES)
    new = rng.standard_normal((4, shape[1])) + offset
    for gamma, scores in zip(RIDGES, rules.scores(new).mT, strict=True):
        wanted = literal_scores(X - offset, y, weights, gamma, new - offset)
        np.testing.assert_allclose(scores, wanted, rtol=1e-6 if offset else 1e-9, atol=1e-6 if offset else 1e-9)


def test_a_class_without_rows_is_never_chosen(rng):
    X, y = rng.standard_normal((10, 3)), np.array([0, 2] * 5)
    moments = ClassMoments.from_rows(LabelledRows(X, y, np.arange(3)))
    scores = RidgeRules.of(moments, RIDGES).scores(X).mT
    assert (scores[:, :, 1] == -np.inf).all()
    np.testing.assert_allclose(
        scores[:, :, [0, 2]], RidgeRules.of(ClassMoments.of(X, y), RIDGES).scores(X).mT, rtol=1e-12
    )


def test_rows_that_are_all_equal_leave_the_priors():
    X, y = np.full((8, 3), 7.3), np.array([0, 0, 0, 0, 0, 0, 1, 1])
    scores = RidgeRules.of(ClassMoments.of(X, y), RIDGES).scores(X).mT
    np.testing.assert_allclose(scores, np.broadcast_to(np.log([0.75, 0.25]), scores.shape))


def test_constant_classes_are_separated():
    X = np.repeat([[0.0, 0.0], [1.0, 0.0], [0.0, 2.0]], 4, axis=0)
    y = np.repeat([0, 1, 2], 4)
    scores = RidgeRules.of(ClassMoments.of(X, y), RIDGES).scores(X).mT
    assert np.isfinite(scores).all()
    assert (scores.argmax(axis=2) == y).all()


@pytest.mark.parametrize(("n", "d", "columns"), [(10, 7, 7), (9, 7, 7), (10, 7, 9)])
def test_a_rule_without_a_ridge_exists_as_long_as_rows_are_enough(n, d, columns, rng):
    """Of n rows in three classes the within-class scatter has rank n − 3 at most; two columns may repeat others."""
    X, y = rng.standard_normal((n, d)), np.arange(n) % 3
    repeated = np.column_stack([X, X[:, : columns - d]])
    rules = RidgeRules.of(ClassMoments.of(repeated, y), np.array([0.0, 0.5]))
    assert np.isfinite(rules.offsets[1]).all()
    if n - 3 < d:
        assert np.isnan(rules.offsets[0]).all()
    else:
        wanted = literal_scores(X, y, np.ones(n), 0.0, X)
        np.testing.assert_allclose(rules.scores(repeated)[0].T, wanted, rtol=1e-7, atol=1e-7)
