"""Class statistics that add up: in any order and grouping, with classes absent on either side, at any offset."""

from functools import reduce

import exact
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from samples import labelled

from discrim import ClassMoments
from discrim.tables.rows import LabelledRows


def merged(parts, order):
    """The parts added in the given order, two neighbours at a time."""
    parts = [parts[i] for i in order]
    while len(parts) > 1:
        parts = [reduce(ClassMoments.__add__, parts[i : i + 2]) for i in range(0, len(parts), 2)]
    return parts[0]


@settings(max_examples=40, deadline=None)
@given(
    where=st.lists(st.integers(0, 4), min_size=12, max_size=30),
    seed=st.integers(0, 2**32 - 1),
    offset=st.sampled_from([0.0, 1e4, 1e8]),
    weighted=st.booleans(),
    keep=st.sampled_from(["pooled", "each"]),
)
def test_parts_add_up_to_the_whole_in_any_order_and_grouping(where, seed, offset, weighted, keep):
    rng = np.random.default_rng(seed)
    where, n = np.array(where), len(where)
    X, y = rng.standard_normal((n, 3)) + offset, rng.integers(0, 3, n)  # classes are missing from many parts
    weights = rng.uniform(0.5, 2, n) if weighted else None
    take = [where == part for part in np.unique(where)]
    parts = [ClassMoments.of(X[t], y[t], None if weights is None else weights[t], keep=keep) for t in take]
    found = merged(parts, rng.permutation(len(parts)))
    whole = ClassMoments.of(X, y, weights, keep=keep)
    assert found.classes.tolist() == np.unique(y).tolist()
    np.testing.assert_array_equal(found.counts, np.bincount(y)[np.unique(y)])
    np.testing.assert_allclose(found.weights, whole.weights, rtol=1e-14)
    np.testing.assert_allclose(found.means, whole.means, rtol=1e-15, atol=1e-13)
    np.testing.assert_allclose(found.centred_means(), whole.centred_means(), atol=1e-13)
    total = exact.total(X, weights)
    scale = np.linalg.norm(total)
    assert np.linalg.norm(found.within - exact.within(X, y, weights)) < 1e-13 * scale
    assert np.linalg.norm(found.total - total) < 1e-13 * scale


def test_within_and_between_make_the_total():
    X, y = labelled(60, 4)
    moments = ClassMoments.of(X, y)
    assert exact.error(moments.within, exact.within(X, y)) < 1e-14
    assert exact.error(moments.total, exact.total(X)) < 1e-14
    overall = X.mean(axis=0)
    between = sum((y == c).sum() * np.outer(m - overall, m - overall) for c, m in enumerate(moments.means))
    assert exact.error(moments.between, between) < 1e-13
    np.testing.assert_allclose(moments.between_rows().T @ moments.between_rows(), moments.between, atol=1e-10)
    np.testing.assert_allclose(moments.mean, overall, rtol=1e-13)


def test_weighted_sum_of_class_scatters():
    X, y = labelled(50, 4)
    emphasis = np.array([0.5, 2.0, 3.0])
    each = ClassMoments.of(X, y, keep="each")
    wanted = sum(e * exact.total(X[y == c]) for c, e in enumerate(emphasis))
    assert exact.error(each.scatter(emphasis), wanted) < 1e-13
    pooled = ClassMoments.of(X, y, emphasis=emphasis)
    assert exact.error(pooled.scatter(emphasis), wanted) < 1e-13
    assert exact.error(pooled.scatter(4 * emphasis), 4 * wanted) < 1e-13


def test_pooled_scatters_cannot_be_separated():
    X, y = labelled(50, 4)
    with pytest.raises(ValueError, match="keep"):
        ClassMoments.of(X, y).scatter(np.array([1.0, 2.0, 3.0]))
    with pytest.raises(ValueError, match="keep"):
        _ = ClassMoments.of(X, y, keep="means").within
    unlike = ClassMoments.of(X, y, emphasis=np.array([1.0, 2.0, 3.0]))
    with pytest.raises(ValueError, match="class weights"):
        ClassMoments.of(X, y) + unlike


def test_adding_leaves_both_parts_as_they_were():
    X, y = labelled(40, 3)
    one, other = ClassMoments.of(X[:20], y[:20]), ClassMoments.of(1e200 * X[20:], y[20:])
    before = [array.copy() for m in (one, other) for array in (m.pooled, m.pilots, m.remainders, m.weights, m.counts)]
    _ = one + other
    after = [array for m in (one, other) for array in (m.pooled, m.pilots, m.remainders, m.weights, m.counts)]
    for was, now in zip(before, after, strict=True):
        np.testing.assert_array_equal(was, now)


@pytest.mark.parametrize("factor", [1e-300, 1e-170, 1e160, 1e300])
@pytest.mark.parametrize("size", [1, 2, 7, 30])
@pytest.mark.parametrize("keep", ["pooled", "each"])
def test_any_chunking_of_large_and_small_numbers(factor, size, keep):
    X, y = labelled(30, 3)
    parts = [ClassMoments.of(factor * X[i : i + size], y[i : i + size], keep=keep) for i in range(0, 30, size)]
    found, wanted = sum(parts[1:], start=parts[0]), ClassMoments.of(X, y)
    scale = factor * 2.0 ** -float(found.exponent)
    assert 1e-3 < scale < 1e3
    assert exact.error(found.within / scale**2, wanted.within) < 1e-13
    assert exact.error(found.between / scale**2, wanted.between) < 1e-12


def test_a_scatter_for_each_class_beyond_memory_is_refused(monkeypatch):
    X, y = labelled(30, 4)  # three classes: 384 bytes
    monkeypatch.setattr("discrim.core.moments.accumulate.MAX_SCATTER_BYTES", 383)
    with pytest.raises(ValueError, match="3 classes and 4 columns"):
        ClassMoments.of(X, y, keep="each")
    ClassMoments.of(X, y, keep="pooled")
    monkeypatch.setattr("discrim.core.moments.accumulate.MAX_SCATTER_BYTES", 384)
    assert ClassMoments.of(X, y, keep="each").each.nbytes == 384


def test_tiny_columns_next_to_a_large_constant_one_keep_finite_float32_means():
    rng, y = np.random.default_rng(0), np.arange(40) % 4
    small = rng.standard_normal((40, 20)) + np.eye(20)[y]
    X = np.c_[small * 1e-28, np.full(40, 1e12)].astype(np.float32)
    found = ClassMoments.from_rows(LabelledRows(X, y, np.unique(y)), doubles=False)
    expected = ClassMoments.of(X[:, :20].astype(np.float64) * 1e28, y)
    assert np.isfinite(found.centred_means()).all()
    scale = 2.0**found.exponent * 1e28
    np.testing.assert_allclose(found.within[:20, :20] * scale**2, expected.within, rtol=1e-6, atol=1e-6)
    np.testing.assert_allclose(found.means[:, 20], np.float32(1e12), rtol=1e-7)
