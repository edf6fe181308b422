"""Sums behind the moments: consecutive blocks of any content."""

import tracemalloc

import exact
import numpy as np
import pytest
import scipy.sparse as sp
from samples import labelled

from discrim.core.moments import accumulate
from discrim.core.moments.accumulate import ClassSums
from discrim.core.moments.class_moments import ClassMoments
from discrim.tables.rows import LabelledRows


def rows_of(X, y, n_classes=None, weights=None):
    return LabelledRows(X, np.asarray(y, np.intp), np.arange(n_classes or y.max() + 1), weights)


@pytest.fixture
def small_blocks(monkeypatch):
    monkeypatch.setattr("discrim.tables.rows.BLOCK_ROWS", 64)
    monkeypatch.setattr(accumulate, "ALL_CELLS", 0)  # and pilots of a few rows


def summed(*tables, keep="pooled"):
    sums = ClassMoments.from_rows(tables[0], keep=keep)
    for rows in tables[1:]:
        sums = sums.with_rows(rows)
    return sums


def sorted_by_class(X, y):
    order = np.argsort(y, kind="stable")
    return X[order] + 1e8, y[order]


TABLES = {
    "plain": lambda X, y: (X, y),
    "sorted by class, so that blocks lack most": sorted_by_class,
    "drifting far from the first rows": lambda X, y: (X + 1e6 * np.arange(len(X))[:, None], y),
    "a first row far off": lambda X, y: (np.where(np.arange(len(X))[:, None] == 0, 1e12, X), y),
}


@pytest.mark.parametrize("table", TABLES)
@pytest.mark.parametrize("weighted", [False, True], ids=["plain", "weighted"])
def test_scatters_and_means_of_rows_given_in_two_tables_are_exact(table, weighted, small_blocks):
    X, y = TABLES[table](*labelled(256, 3))
    weights = np.random.default_rng(2).uniform(0.1, 7, 256) if weighted else np.ones(256)
    tables = [
        rows_of(X[half], y[half], 3, weights[half] if weighted else None) for half in (slice(90), slice(90, None))
    ]
    pooled, each = (summed(*tables, keep=keep) for keep in ("pooled", "each"))
    assert exact.error(pooled.pooled, exact.within(X, y, weights)) < 1e-13
    np.testing.assert_allclose(pooled.weights, np.bincount(y, weights), rtol=1e-13)
    np.testing.assert_array_equal(pooled.counts, np.bincount(y))
    for c in range(3):
        assert exact.error(each.each[c], exact.total(X[y == c], weights[y == c])) < 1e-13
        mean = np.average(X[y == c], axis=0, weights=weights[y == c])
        np.testing.assert_allclose(pooled.pilots[c] + pooled.remainders[c], mean, rtol=1e-12)


def test_means_near_zero_in_many_columns_are_not_taken_for_zero_together(small_blocks):
    rng = np.random.default_rng(3)
    X = (rng.standard_normal((64 * 30, 300)) + 0.9).astype(np.float32)
    sums = ClassSums(rows_of(X, np.zeros(len(X), int), 1), doubles=False)
    wanted = np.cov(X.T.astype(np.float64)) * (len(X) - 1)
    assert np.linalg.norm(sums.pooled - wanted, 2) < 1e-6 * np.linalg.norm(wanted, 2)


@pytest.mark.parametrize("weighted", [False, True], ids=["plain", "weighted"])
@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize(
    "offset", [0.0, [0.0, 3.0, 0.0], [0.0, 0.0, 1e8], 1e8], ids=["none", "one", "one-large", "large"]
)
def test_runs_of_many_blocks_around_the_same_pilots(offset, order, weighted, small_blocks):
    X, y = labelled(64 * 20 + 7, 3)
    X = np.asarray(X - X.mean(axis=0) + offset, order=order)
    before, weights = X.copy(), np.random.default_rng(1).uniform(0.5, 2, len(X)) if weighted else None
    sums = ClassSums(rows_of(X, y, 3, weights), emphasis=np.array([1.0, 0.25, 4.0]))
    emphasised = sums.emphasis[y] * (1.0 if weights is None else weights)
    assert exact.error(sums.pooled, exact.within(X, y, emphasised)) < 1e-13
    np.testing.assert_array_equal(X, before)
    for c in range(3):
        mean = np.average(X[y == c] - offset, axis=0, weights=None if weights is None else weights[y == c])
        np.testing.assert_allclose((sums.pilots[c] - offset) + sums.remainders[c], mean, rtol=1e-12, atol=1e-14)


def test_columns_near_zero_are_squared_where_they_lie(small_blocks, monkeypatch):
    X, y = np.random.default_rng(0).normal(size=(64 * 20, 3)), np.arange(64 * 20) % 3
    copied, minus = [], ClassSums._minus_pilots

    def spy(self, *given):
        rows = minus(self, *given)
        copied.append(not np.shares_memory(rows, self.rows.X))
        return rows

    monkeypatch.setattr(ClassSums, "_minus_pilots", spy)
    summed(rows_of(X, y, 3))
    assert len(copied) == 20
    assert sum(copied) <= 4
    summed(rows_of(X + 50, y, 3))
    assert sum(copied[20:]) == 20


def test_pilots_that_were_not_near_are_found_out(small_blocks, monkeypatch):
    X, y = labelled(64 * 20, 3)
    X[:, 1] = 1.0 + 1e-7 * X[:, 1]  # as large as the others, and far from 0 relative to its deviation
    around = []
    one_pass = ClassSums._sum_around
    monkeypatch.setattr(ClassSums, "_sum_around", lambda self, *given: around.append(1) or one_pass(self, *given))
    assert exact.error(summed(rows_of(X, y, 3)).pooled, exact.within(X, y)) < 1e-13
    assert len(around) == 1
    monkeypatch.setattr(ClassSums, "_pilots", lambda self: np.full((3, 3), 1e4))
    sums = summed(rows_of(X, y, 3)).pooled
    unit = np.sqrt(np.outer(np.diag(sums), np.diag(sums)))  # gives the small column equal weight
    assert len(around) == 3
    assert exact.error(sums / unit, exact.within(X, y) / unit) < 1e-13
    assert exact.error(summed(rows_of(X, y, 3), keep="each").each.sum(axis=0), exact.within(X, y)) < 1e-13


def test_an_unseen_class_or_another_size_in_the_middle_of_a_run(small_blocks):
    X, y = labelled(64 * 20, 3)
    X -= X.mean(axis=0)
    y[: 64 * 10] %= 2
    X[y == 2] += 1e9
    assert exact.error(summed(rows_of(X, y, 3)).pooled, exact.within(X, y)) < 1e-13
    X[64 * 13 :] *= 1e160
    sums = summed(rows_of(X, y, 3))
    assert exact.error(sums.pooled, exact.within(X * 2.0 ** -float(sums.exponent), y)) < 1e-13


def test_more_classes_than_are_kept_at_hand(small_blocks):
    rng = np.random.default_rng(0)
    n_classes = 2 * accumulate.FEW_CLASSES + 1
    y = rng.integers(0, n_classes, 500)
    X = rng.standard_normal((500, 3)) + 1e6
    weights = rng.uniform(0.5, 2, 500)
    for keep in ("pooled", "each"):
        sums = ClassSums(rows_of(X, y, n_classes, weights), keep)
        found = sums.pooled if keep == "pooled" else sums.each.sum(axis=0)
        assert exact.error(found, exact.within(X, y, weights)) < 1e-13


def test_no_array_as_long_as_a_sparse_table_outlives_its_sums():
    X = sp.random_array((200_000, 3), density=0.01, random_state=0, format="csr")
    rows = LabelledRows(X, np.arange(200_000) % 2, np.arange(2))
    tracemalloc.start()
    try:
        found = ClassMoments.from_rows(rows, keep="means")
        held = tracemalloc.get_traced_memory()[0]
    finally:
        tracemalloc.stop()
    np.testing.assert_allclose(found.means, [X[::2].mean(axis=0), X[1::2].mean(axis=0)])
    assert held < 1e6  # a number for each row would be 1.6 MB
