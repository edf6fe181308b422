"""Equal rows are found: all of them, no others, in an order that depends on the data only."""

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

from discrim.core.row_hash import _grouped, equal_rows


def literal_groups(X, codes):
    """The lowest row equal to each row."""
    return [next(k for k in range(len(X)) if codes[k] == codes[i] and (X[k] == X[i]).all()) for i in range(len(X))]


@settings(max_examples=100, deadline=None)
@given(
    rows=st.lists(st.tuples(*[st.sampled_from([0.0, -0.0, 1.0, -1.0, 2.0, 0.1])] * 3, st.integers(0, 1)), min_size=1),
    sparse=st.booleans(),
)
def test_groups_are_the_literal_ones(rows, sparse):
    X, codes = np.array([row[:3] for row in rows]), np.array([row[3] for row in rows], dtype=np.intp)
    groups = equal_rows(sp.csr_matrix(X) if sparse else X, codes)
    assert groups.first[groups.group].tolist() == literal_groups(X, codes)
    assert sorted(groups.first) == sorted(set(literal_groups(X, codes)))


def test_a_stored_zero_is_a_missing_one():
    data, columns, starts = np.array([0.0, 1.0, -0.0, 1.0]), np.array([0, 1, 0, 1]), np.array([0, 2, 3, 4])
    stored = sp.csr_matrix((data, columns, starts), shape=(3, 2))
    groups = equal_rows(stored, np.zeros(3, dtype=np.intp))
    assert groups.first[groups.group].tolist() == [0, 1, 0]


@pytest.mark.parametrize("sparse", [False, True])
def test_equal_hashes_alone_do_not_make_rows_equal(sparse):
    X = np.array([[1.0, 2.0], [2.0, 1.0], [1.0, 2.0], [0.0, 3.0], [2.0, 1.0]])
    table = sp.csr_matrix(X) if sparse else X
    codes, one_hash = np.zeros(5, dtype=np.intp), np.zeros(5, dtype=np.uint64)
    first, group = _grouped(table, codes, one_hash, np.arange(5))
    assert first[group].tolist() == [0, 1, 0, 3, 1]


def test_whole_numbers_do_not_collide_by_the_thousand():
    X = np.random.default_rng(0).integers(0, 17, (3000, 64)).astype(float)
    groups = equal_rows(X, np.zeros(3000, dtype=np.intp))
    assert len(groups.first) == 3000
