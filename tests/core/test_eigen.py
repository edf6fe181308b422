"""Order and number of directions."""

import numpy as np

from discrim.core.eigen import descending, kept_count


def test_a_fraction_is_reached_in_spite_of_rounding():
    values = np.full(10, 0.1)
    for k in range(1, 10):
        assert kept_count(k / 10, values, 1.0, 10, (12, 7)) == k


def test_values_that_differ_by_rounding_keep_their_order():
    assert descending(np.array([1.0, 3.0, 2.0])).tolist() == [1, 2, 0]
    assert descending(np.array([1e-33, 5e-32, 1.0, 0.0, 1 + 1e-15])).tolist() == [2, 4, 0, 1, 3]
    assert descending(np.array([1e-33, 5e-32, 0.0])).tolist() == [1, 0, 2]  # ordered by size
    assert descending(np.zeros(3)).tolist() == [0, 1, 2]
    assert descending(np.array([])).tolist() == []
