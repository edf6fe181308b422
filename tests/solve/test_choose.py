"""The decision table: which coordinates, and the reason that is kept."""

import pytest

from discrim.solve.choose import choose

TABLE = [
    # n, d, sparse, wanted, why all → basis
    (1000, 20, False, 5, None, "features"),
    (20, 20, False, None, None, "features"),
    (20, 1000, False, 5, None, "rows"),
    (19, 20, True, None, None, "rows"),
    (5000, 90_000, True, None, None, "rows"),
    (100_000, 900, True, 5, None, "features"),
    (100_000, 1001, True, 5, None, "products"),
    (100_000, 1001, True, None, None, "features"),
    (100_000, 1001, True, 101, None, "features"),
    (100_000, 4000, True, 5, "it scores them all", "features"),
    (20_000, 50_000, True, 10, None, "products"),
    (20_000, 50_000, False, 10, None, "products"),
    (50_000, 20_000, False, 10, None, "products"),
    (50_000, 20_000, False, None, None, "features"),
    (20_000, 50_000, False, None, None, "rows"),
    (20_000, 50_000, False, 10, "it scores them all", "rows"),
]


@pytest.mark.parametrize(("n", "d", "sparse", "wanted", "why_all", "basis"), TABLE)
def test_the_table(n, d, sparse, wanted, why_all, basis):
    plan = choose(n, d, sparse=sparse, wanted=wanted, why_all=why_all)
    assert plan.basis == basis
    assert str(n) in plan.reason or str(d) in plan.reason


@pytest.mark.parametrize("n", [1, 10, 4999, 5000, 5001, 40_000])
@pytest.mark.parametrize(("sparse", "wanted"), [(False, 1), (False, None), (True, 1)])
def test_no_square_array_of_columns_is_chosen_for_fewer_rows(n, sparse, wanted):
    assert choose(n, n + 1, sparse=sparse, wanted=wanted).basis in ("rows", "products")


def test_a_large_sparse_table_is_refused_with_what_is_possible():
    with pytest.raises(ValueError, match=r"sparse table of 20000×50000 came.* pass an int n_components ≤ 2000\."):
        choose(20_000, 50_000, sparse=True, wanted=None)
    with pytest.raises(ValueError, match="reduce the columns first, as it needs them all"):
        choose(20_000, 50_000, sparse=True, wanted=3, why_all="it needs them all")
