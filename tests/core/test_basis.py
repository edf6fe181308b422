"""Coordinates: they preserve inner products of rows, landmarks and pairs, and lift to directions of the features."""

import numpy as np
import pytest
import scipy.sparse as sp
from samples import labelled

from discrim.core.coordinates.basis import column_variances
from discrim.core.coordinates.choose import Plan
from discrim.core.moments.class_moments import ClassMoments
from discrim.core.spread import Margins
from discrim.tables.rows import LabelledRows

ROWS = Plan("rows", "wide")


def rows_of(X, y, weights=None):
    return LabelledRows(X, y, np.unique(y), weights)


def wide(offset=0.0, factor=1.0):
    X, y = labelled(9, 30)
    return (X + offset) * factor, y


@pytest.mark.parametrize("offset", [0.0, 1.0, 1e3, 1e8])
def test_where_the_largest_directions_suffice_the_mean_is_taken_off_the_gram_matrix_if_it_is_near(offset):
    X, y = labelled(9, 30)
    X = np.round(X * 2**20) / 2**20 + offset  # the offset then loses no digit
    basis = ROWS.build(rows_of(X, y), Margins(), leading=True)
    assert (basis.rows is X) == (offset <= 1)
    centred = (X - offset) - (X - offset).mean(axis=0)
    Y, scale = basis.points.X, np.abs(centred @ centred.T).max()
    np.testing.assert_allclose(Y @ Y.T, centred @ centred.T, atol=1e-13 * scale)
    np.testing.assert_allclose(Y @ basis.lift(np.eye(Y.shape[1])), centred, atol=1e-12 * np.sqrt(scale))
    np.testing.assert_allclose(basis.mean(ClassMoments.from_rows(basis.points)), X.mean(axis=0), rtol=1e-14)


def test_a_sparse_column_without_zeros_is_moved_near_the_origin_and_the_mean_is_not():
    X, y = wide()
    X = np.where(X > 0, X, 0.0)
    X[:, 3] = 1e9 + np.arange(9)
    sparse = sp.csr_array(X)
    for name in ("features", "products", "rows"):
        basis = Plan(name, "why").build(rows_of(sparse, y), Margins())
        np.testing.assert_allclose(basis.mean(ClassMoments.from_rows(basis.points)), X.mean(axis=0), rtol=1e-14)
        np.testing.assert_array_equal(sparse.toarray(), X)
    moved = Plan("products", "why").build(rows_of(sparse, y), Margins()).points.X
    assert moved.nnz == sparse.nnz
    np.testing.assert_array_equal(moved.toarray()[:, 3], np.arange(9))


def test_variances_of_columns_whose_first_row_is_an_outlier_that_hardly_counts(rng):
    X, weights = rng.standard_normal((50, 3)), np.ones(50)
    X[0], weights[0] = 1e6, 1e-13
    mean = np.average(X, axis=0, weights=weights)
    wanted = np.average((X - mean) ** 2, axis=0, weights=weights)
    found = column_variances(LabelledRows(X, np.zeros(50, int), np.array([0]), weights), 0)
    np.testing.assert_allclose(found, wanted, rtol=1e-9)


def test_lifted_directions_of_rows_of_very_different_lengths_are_orthonormal(rng):
    X = rng.standard_normal((20, 60)) * np.geomspace(1, 1e-5, 20)[:, None]
    basis = ROWS.build(rows_of(X, np.arange(20) % 2), Margins(), resolve=False)
    directions = np.linalg.qr(rng.standard_normal((basis.points.shape[1], 5)))[0].T
    lifted = basis.lift(directions)
    np.testing.assert_allclose(lifted @ lifted.T, np.eye(5), atol=1e-13)
    once, twice = basis.lift_each(directions, 2 * directions)
    np.testing.assert_allclose(once, lifted, atol=1e-13)
    np.testing.assert_allclose(twice, 2 * lifted, atol=1e-6)
