"""A spread with class weights, extra rows and pairs: its matrix, factor, operator and trace are the literal sum."""

import numpy as np
import pytest
import scipy.sparse as sp
from samples import labelled

from discrim.core.margin_vectors import Pairs
from discrim.core.moments.class_moments import ClassMoments
from discrim.core.spread import Spread
from discrim.tables.rows import LabelledRows

PAIRS = Pairs(np.array([0, 3, 3]), np.array([5, 1, 8]), np.array([1.0, 2.0, 0.5]))
PARTS = {
    "classes": ([1.0, 2.0, 0.5], False, None),
    "rows": ([0.0, 0.0, 0.0], True, None),
    "pairs": ([0.0, 0.0, 0.0], False, PAIRS),
    "all three": ([1.0, 0.0, 3.0], True, PAIRS),
}


def literal(X, y, w, class_weights, extra, pairs):
    A = np.zeros((X.shape[1],) * 2)
    for i, x in enumerate(X):
        members = y == y[i]
        mean = w[members] @ X[members] / w[members].sum()
        A += class_weights[y[i]] * w[i] * np.outer(x - mean, x - mean)
    for u in extra:
        A += np.outer(u, u)
    if pairs is not None:
        for i, j, v in zip(pairs.left, pairs.right, pairs.weight, strict=True):
            A += v * np.outer(X[i] - X[j], X[i] - X[j])
    return A


@pytest.mark.parametrize("parts", PARTS.values(), ids=PARTS)
@pytest.mark.parametrize("kind", [np.asarray, sp.csr_array, np.float32], ids=["dense", "sparse", "float32"])
@pytest.mark.parametrize("weighted", [False, True], ids=["unweighted", "weighted"])
@pytest.mark.parametrize("shape", [(12, 4), (9, 15)], ids=["tall", "wide"])
def test_every_shape_of_a_spread(parts, kind, weighted, shape):
    class_weights, has_extra, pairs = parts
    X, y = labelled(*shape)
    X = np.where(X > -0.5, X, 0.0).astype(np.float32).astype(float)
    w = np.linspace(0.5, 2, len(X)) if weighted else np.ones(len(X))
    extra = np.random.default_rng(0).standard_normal((2 if has_extra else 0, X.shape[1]))
    A = literal(X, y, w, class_weights, extra, pairs)
    points = LabelledRows(kind(X), y, np.arange(3), w if weighted else None)
    moments = ClassMoments.of_rows(points, keep="each")
    spread = Spread(np.array(class_weights), extra, pairs)
    close = {"atol": (1e-12 if kind is not np.float32 else 1e-5) * np.abs(A).max()}
    np.testing.assert_allclose(spread.matrix(moments, points), A, **close)
    operator = spread.operator(moments, points)
    np.testing.assert_allclose(operator @ np.eye(len(A)), A, **close)
    np.testing.assert_allclose(operator @ X[0], A @ X[0], atol=10 * close["atol"])
    assert spread.trace(moments, points) == pytest.approx(np.trace(A), rel=1e-5 if kind is np.float32 else 1e-12)
    if kind is not sp.csr_array:
        Z = spread.factor(moments, points)
        np.testing.assert_allclose(Z.T @ Z, A, **close)


@pytest.mark.parametrize("factor", [1e-250, 1e250])
def test_a_spread_is_in_the_units_of_its_moments(factor):
    X, y = labelled(12, 4)
    points = LabelledRows(X * factor, y, np.arange(3))
    moments = ClassMoments.of_rows(points, keep="each")
    unit = factor * 0.5 ** float(moments.exponent)
    spread = Spread(np.array([1.0, 2.0, 0.5]), np.empty((0, 4)), PAIRS)
    A = literal(X * unit, y, np.ones(12), [1.0, 2.0, 0.5], [], PAIRS)
    Z = spread.factor(moments, points)
    close = {"atol": 1e-12 * np.abs(A).max()}
    np.testing.assert_allclose(spread.matrix(moments, points), A, **close)
    np.testing.assert_allclose(Z.T @ Z, A, **close)
    np.testing.assert_allclose(spread.operator(moments, points) @ np.eye(4), A, **close)
    assert spread.trace(moments, points) == pytest.approx(np.trace(A), rel=1e-12)


def test_a_negative_weight_makes_it_indefinite():
    assert Spread(np.array([1.0, 0.0]), np.ones((1, 2))).is_definite
    assert not Spread(np.array([1.0, -0.1]), np.ones((1, 2))).is_definite
    X, y = labelled(12, 4)
    points = LabelledRows(X, y, np.arange(3))
    moments = ClassMoments.of_rows(points)
    spread = Spread(np.full(3, -2.0), moments.between_rows())
    np.testing.assert_allclose(spread.matrix(moments), moments.between - 2 * moments.within, atol=1e-10)
    operator = spread.operator(ClassMoments.of_rows(points, keep="means"), points)
    np.testing.assert_allclose(operator @ np.eye(4), moments.between - 2 * moments.within, atol=1e-10)
