"""Decision table of the coordinates, and the reason that is stored."""

import pytest

from discrim.core.coordinates.choose import choose

TABLE = [
    # n, d, stored, wanted, why all → basis
    (1000, 20, None, 5, None, "features"),
    (20, 20, None, None, None, "features"),
    (20, 1000, None, 5, None, "rows"),
    (400, 8000, None, 10, None, "rows"),
    (10_000, 100, None, 5, None, "features"),
    (19, 20, 60, None, None, "rows"),
    (1500, 1200, 20_000, 5, None, "features"),
    (2000, 50_000, 100_000, 2, None, "rows"),
    (5000, 50_000, 250_000, 2, None, "products"),  # as 5,001 rows are
    (5000, 50_000, 250_000, None, None, "rows"),
    (5000, 50_000, 250_000, 2, "it scores them all", "rows"),
    (5001, 50_000, 250_000, 2, None, "products"),
    (100_000, 900, 45_000_000, 5, None, "features"),  # half of it stored: a pass costs more than the square of it
    (100_000, 900, 900_000, 5, None, "products"),
    (100_000, 1001, 1_000_000, None, None, "features"),
    (100_000, 1001, 1_000_000, 101, None, "features"),
    (100_000, 4000, 1_000_000, 5, "it scores them all", "features"),
    (20_000, 50_000, 1_000_000, 10, None, "products"),
    (100_000, 1000, None, 5, None, "features"),
    (20_000, 50_000, None, 10, None, "products"),
    (50_000, 20_000, None, 10, None, "products"),
    (50_000, 20_000, None, None, None, "features"),
    (20_000, 50_000, None, None, None, "rows"),
    (20_000, 50_000, None, 10, "it scores them all", "rows"),
]


@pytest.mark.parametrize(("n", "d", "stored", "wanted", "why_all", "basis"), TABLE)
def test_the_table(n, d, stored, wanted, why_all, basis):
    plan = choose(n, d, stored=stored, wanted=wanted, why_all=why_all)
    assert plan.basis == basis
    assert str(n) in plan.reason or str(d) in plan.reason
