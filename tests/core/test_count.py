"""How many directions are kept, from an int, a fraction or None."""

import warnings

import numpy as np
import pytest

from discrim.core.eigen import descending, kept_count

VALUES = np.array([5.0, 3.0, 1.5, 0.5])
SHAPE = (12, 7)


def kept(request, values=VALUES, rank=4):
    return kept_count(request, values, float(values.sum()), rank, SHAPE)


@pytest.mark.parametrize(
    ("request_", "wanted"),
    [(None, 4), (1, 1), (4, 4), (1e-9, 1), (0.5, 1), (0.5001, 2), (0.8, 2), (0.95, 3), (0.9501, 4), (0.999999, 4)],
)
def test_counts(request_, wanted):
    assert kept(request_) == wanted


def test_a_fraction_is_reached_in_spite_of_rounding():
    values = np.full(10, 0.1)
    for k in range(1, 10):
        assert kept_count(k / 10, values, 1.0, 10, SHAPE) == k


def test_values_beyond_the_rank_do_not_count():
    assert kept(None, rank=2) == 2
    assert kept_count(0.6, np.array([5.0, 3.0, -1.0, -6.0]), 8.0, 2, SHAPE) == 1
    assert kept_count(0.7, np.array([5.0, 3.0, -1.0, -6.0]), 8.0, 2, SHAPE) == 2
    with pytest.warns(UserWarning, match="n_components=3"):
        assert kept(3, rank=2) == 2


def test_nothing_to_find():
    with pytest.raises(ValueError, match="equal"):
        kept(1, rank=0)


def test_a_tie_at_the_cut_warns_and_only_there():
    values = np.array([4.0, 2.0, 2.0 * (1 - 1e-11), 1.0])
    with pytest.warns(UserWarning, match="tie"):
        kept(2, values)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        kept(1, values)
        kept(3, values)
        kept(4, values)
        kept(2, np.array([4.0, 2.0, 2.0 * (1 - 1e-9), 1.0]))
        kept_count(2, values, 9.0, 4, SHAPE, ties_settled=True)


def test_values_that_differ_by_rounding_stay_in_the_order_they_came_in():
    assert descending(np.array([1.0, 3.0, 2.0])).tolist() == [1, 2, 0]
    assert descending(np.array([1e-33, 5e-32, 1.0, 0.0, 1 + 1e-15])).tolist() == [2, 4, 0, 1, 3]
    assert descending(np.array([1e-33, 5e-32, 0.0])).tolist() == [1, 0, 2]  # that is all there is: an order of its own
    assert descending(np.zeros(3)).tolist() == [0, 1, 2]
    assert descending(np.array([])).tolist() == []
