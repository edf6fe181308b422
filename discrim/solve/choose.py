"""One table decides how a problem is solved; the choice and its reason stay with the fitted estimator."""

from __future__ import annotations

from dataclasses import dataclass

from discrim.data.findings import refuse_large_sparse
from discrim.data.rows import LabelledRows
from discrim.margins.margin_vectors import Margins
from discrim.solve.basis import Basis, Features
from discrim.solve.products import Products
from discrim.solve.row_space import GramRows, SingularRows

EXACT_SIDE = 5_000  # an eigendecomposition of this size still takes seconds
DENSE_COLUMNS = 1_000  # sparse rows this short are cheap to make dense a block at a time
BASES = ("features", "rows", "products")


@dataclass(frozen=True)
class Plan:
    """Which coordinates to pose the problem in (one of BASES), and why."""

    basis: str
    reason: str

    def build(self, points: LabelledRows, margins: Margins, *, resolve: bool = False) -> Basis:
        """The rows in these coordinates; `resolve` asks for directions below 1e-3 of the largest too."""
        if self.basis == "features":
            return Features.of(points, margins, self.reason)
        if self.basis == "products":
            return Products.of(points, margins, self.reason)
        return (SingularRows if resolve else GramRows).of(points, margins, self.reason)


def choose(n: int, d: int, *, sparse: bool, wanted: int | None, why_all: str | None = None) -> Plan:
    """The plan for n×d rows; `wanted` directions, None for all there are (`why_all`: the method needs them all)."""
    side = min(n, d)
    few = wanted is not None and why_all is None and 10 * wanted <= side
    if n >= d and d <= (DENSE_COLUMNS if sparse else EXACT_SIDE):
        return Plan("features", f"n={n} ≥ d={d}: statistics of the features")
    if n < d and n <= EXACT_SIDE:
        return Plan("rows", f"n={n} < d={d}: coordinates in the span of the rows")
    if few:
        kind = "sparse" if sparse else "dense"
        return Plan("products", f"{wanted} of {side} directions of a large {kind} problem ({n}×{d}): products only")
    if sparse and side > EXACT_SIDE:
        refuse_large_sparse(n, d, side // 10, why_all)
    if n >= d:
        return Plan("features", f"many of {d} directions wanted: statistics of the features")
    return Plan("rows", f"many of {n} directions wanted: coordinates in the span of the rows")
