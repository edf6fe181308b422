"""Class medians: numpy's where no weights are given, and a weight of k is a row that stands k times."""

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from samples import labelled

from discrim.core import margin_vectors
from discrim.core.margin_vectors import class_medians
from discrim.tables.rows import LabelledRows


def rows_of(X, y, weights=None):
    return LabelledRows(X, np.asarray(y, np.intp), np.unique(y), weights)


def literal(X, y, counts=None):
    counts = np.ones(len(y), int) if counts is None else counts
    return np.array([np.median(np.repeat(X[y == c], counts[y == c], axis=0), axis=0) for c in np.unique(y)])


@pytest.mark.parametrize("kind", [np.asarray, sp.csr_array, np.asfortranarray], ids=["dense", "sparse", "Fortran"])
def test_medians_of_each_class(kind):
    X, y = labelled(41, 7)
    X = np.where(X > 0, X, 0.0)
    np.testing.assert_array_equal(class_medians(rows_of(kind(X), y)), literal(X, y))


def test_columns_are_taken_a_few_at_a_time(monkeypatch):
    monkeypatch.setattr(margin_vectors, "BLOCK_BYTES", 8 * 41 * 3)
    X, y = labelled(41, 7)
    np.testing.assert_array_equal(class_medians(rows_of(X, y)), literal(X, y))


@settings(max_examples=60, deadline=None)
@given(st.lists(st.tuples(st.integers(-3, 3), st.integers(0, 1), st.integers(1, 4)), min_size=4, max_size=12))
def test_whole_weights_are_repetition(cells):
    values, y, counts = (np.array(part) for part in zip(*cells, strict=True))
    y[:2] = 0, 1
    X = values[:, None].astype(float)
    found = class_medians(rows_of(X, y, counts.astype(float)))
    np.testing.assert_array_equal(found, literal(X, y, counts))


@pytest.mark.parametrize("unit", [0.1, 1 / 3, 1e-30, 1e30])
def test_the_unit_of_the_weights_does_not_matter(unit):
    X, y = labelled(30, 5)
    counts = 1 + np.arange(30) % 4
    np.testing.assert_array_equal(class_medians(rows_of(X, y, counts * unit)), literal(X, y, counts))


def test_float32_is_read_as_it_is():
    X, y = labelled(21, 3)
    X = X.astype(np.float32)
    found = class_medians(rows_of(X, y))
    assert found.dtype == np.float64
    np.testing.assert_array_equal(found, literal(X.astype(np.float64), y))


def test_bad_cells_are_named():
    X, y = labelled(21, 3)
    X[4, 1] = np.nan
    with pytest.raises(ValueError, match="row 4, column 1"):
        class_medians(rows_of(X, y))
