"""Input checks by themselves; test_inputs.py tests them through the estimators."""

import warnings

import numpy as np
import pytest
import scipy.sparse as sp

from discrim import PCA, MarginPCA
from discrim.tables import validation as check
from discrim.tables.check_parameters import plain_count

X = np.arange(12.0).reshape(4, 3)


def rows_of(y, weights=None, supervised=True):
    return check.labelled_rows(MarginPCA(), X, y, weights, supervised=supervised)


@pytest.mark.parametrize(
    "labels",
    [
        np.array([3, -2, 3, 5]),
        np.array([0, 1, 1, 2], np.uint8),
        np.array([2**63, 2**63 + 1, 2**63], np.uint64),
        np.array([-(2**62), 2**62, 7]),
        np.array([-128, 127, 0], np.int8),
        np.array([True, False, True]),
        np.array(["b", "a", "b"]),
        np.array([1.0, 3.0, 1.0]),
    ],
    ids=lambda labels: str(labels.dtype),
)
def test_labels_are_numbered_as_numpy_would(labels):
    classes, codes = check.numbered(labels)
    wanted, inverse = np.unique(labels, return_inverse=True)
    assert classes.dtype == wanted.dtype
    np.testing.assert_array_equal(classes, wanted)
    np.testing.assert_array_equal(codes, inverse)


def test_an_array_is_taken_as_it_is_and_leaves_no_names_of_an_earlier_table():
    model = PCA()
    model.feature_names_in_ = np.array(["a", "b", "c"], dtype=object)
    assert check.checked_table(model, X, reset=True) is X
    assert model.n_features_in_ == 3
    assert not hasattr(model, "feature_names_in_")
    assert check.checked_table(model, X) is X
    with pytest.raises(ValueError, match="expecting 3 features"):
        check.checked_table(model, X[:, :2])
    with pytest.raises(ValueError, match=r"0 sample"):
        check.checked_table(model, X[:0], reset=True)


def test_rows_of_weight_zero_are_left_out_with_their_labels():
    rows = rows_of(["b", "c", "b", "a"], [1, 0, 2, 1])
    np.testing.assert_array_equal(rows.X, X[[0, 2, 3]])
    assert rows.classes.tolist() == ["a", "b"]
    assert rows.weights.tolist() == [1, 2, 1]
    assert rows.numbers.tolist() == [0, 2, 3]


def test_a_good_sparse_table_is_not_copied():
    sparse = sp.csr_array(X)
    assert np.shares_memory(check.checked_table(PCA(), sparse, reset=True).data, sparse.data)


def test_bad_cells_may_pass_validation_because_the_sums_reveal_them():
    bad = np.where(X == 5, np.nan, X)
    assert np.isnan(check.checked_table(PCA(), bad, reset=True)).sum() == 1
    check.require_representable(np.ones(3), bad)  # nothing shows in the result, so nothing is searched
    with pytest.raises(ValueError, match=r"1 cell.*NaN.*row 1, column 2"):
        check.require_representable(np.array([1.0, np.nan]), bad)


def test_an_overflow_without_bad_cells_is_reported_as_such():
    infinite = np.array([np.inf])
    with pytest.raises(ValueError, match="fits float64"):
        check.require_representable(infinite, X)
    with pytest.raises(ValueError, match="infinity"):
        check.require_representable(infinite, np.where(X == 5, np.inf, X))


def test_a_bad_cell_of_a_sparse_table_is_found_behind_stored_zeros():
    table = sp.csr_array((np.array([0.0, 2.0, np.inf]), np.array([2, 0, 1]), np.array([0, 1, 1, 3])), shape=(3, 3))
    with pytest.raises(ValueError, match=r"1 cell.*infinity.*row 2, column 1"):
        check.require_finite(table)


@pytest.mark.parametrize(
    ("given", "wanted"), [(None, None), (3, 3), (np.int32(2), 2), (0.5, 0.5), (np.float32(1) / 4, 0.25)]
)
def test_counts(given, wanted):
    found = plain_count(given)
    assert found == wanted
    assert type(found) is type(wanted)


def test_a_stream_after_a_fit_warns_at_the_callers_line():
    fitted = PCA(1).fit(X)
    with warnings.catch_warnings(record=True) as issued:
        warnings.simplefilter("always")
        fitted.partial_fit(X)
    assert "partial_fit was called after fit" in str(issued[0].message)
    assert issued[0].filename == __file__


def test_labels_of_object_arrays_get_their_type():
    labels = check.checked_labels(PCA(), np.array([3, 1, 3, 1], object), 4)
    assert labels.dtype.kind == "i"
    labels = check.checked_labels(PCA(), np.array([True, False, True, True], object), 4)
    assert labels.dtype == bool
