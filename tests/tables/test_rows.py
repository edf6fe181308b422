"""Labelled rows: a table with class codes and weights, read in blocks."""

import numpy as np
import pytest
import scipy.sparse as sp

from discrim.tables import rows as rows_module
from discrim.tables.rows import LabelledRows, block_slices, dense_block


@pytest.mark.parametrize(("n", "d"), [(0, 3), (1, 1), (63, 2), (64, 2), (65, 2), (10_000, 3), (300, 10**6)])
def test_blocks_cover_every_row_once_in_order(n, d):
    parts = list(block_slices(n, d))
    assert [i for part in parts for i in range(part.start, part.stop)] == list(range(n))
    assert all(part.stop - part.start <= rows_module.BLOCK_ROWS for part in parts)


def test_blocks_of_long_rows_are_small():
    widest = max(part.stop - part.start for part in block_slices(5000, 10_000))
    assert widest * 10_000 * 8 <= rows_module.BLOCK_BYTES
    assert max(part.stop - part.start for part in block_slices(5000, 10**7)) == 64  # but never tiny


def test_a_dense_block_is_a_view_and_a_sparse_one_a_small_copy():
    X = np.arange(12.0).reshape(6, 2)
    assert np.shares_memory(dense_block(X, slice(2, 4)), X)
    block = dense_block(sp.csr_array(X), slice(2, 4))
    assert isinstance(block, np.ndarray)
    np.testing.assert_array_equal(block, X[2:4])


@pytest.mark.parametrize("kind", [np.asarray, sp.csr_array], ids=["dense", "sparse"])
def test_picked_rows_are_some_of_the_rows_and_can_be_picked_from_again(kind):
    X = np.arange(40.0).reshape(10, 4)
    rows = LabelledRows(kind(X), np.arange(10) % 3, np.arange(3), np.linspace(1, 2, 10))
    index = np.array([7, 2, 2, 9, 0])
    for picked, wanted in ((rows.take(index), index), (rows.take(index).take(np.array([3, 1])), index[[3, 1]])):
        assert picked.shape == (len(wanted), 4)
        np.testing.assert_array_equal(dense_block(picked.X, slice(None)), X[wanted])
        np.testing.assert_array_equal(dense_block(picked.X, slice(1, 2)), X[wanted[1:2]])
        np.testing.assert_array_equal(picked.codes, wanted % 3)
        np.testing.assert_array_equal(picked.weights, np.linspace(1, 2, 10)[wanted])


def test_a_large_constant_column_does_not_make_rows_equal():
    X = np.c_[np.arange(6.0) // 2, np.full(6, 1e40)]
    rows = LabelledRows(X, np.zeros(6, dtype=np.intp), np.array(["a"]))
    np.testing.assert_array_equal(np.unique(rows.fingerprints(), return_inverse=True)[1], [0, 0, 1, 1, 2, 2])
    picked = rows.take(np.array([5, 0, 4]))
    assert picked.fingerprints()[0] == picked.fingerprints()[2] != picked.fingerprints()[1]
