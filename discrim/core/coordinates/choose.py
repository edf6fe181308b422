"""Choice of the coordinates in which a problem is solved; the fitted estimator stores the choice and its reason."""

from __future__ import annotations

from dataclasses import dataclass, field

from discrim.core.coordinates.basis import Basis, Features
from discrim.core.coordinates.products import Products
from discrim.core.coordinates.row_space import GramRows, SingularRows
from discrim.core.eigen import SPARE
from discrim.core.spread import Margins
from discrim.tables.rows import LabelledRows

EXACT_SIDE = 5_000  # an eigendecomposition of this size takes seconds
SOON = 2.0  # seconds that an exact solution may always take
MIN_PASSES, MAX_PASSES = 4, 12  # after the latter, block Krylov is accurate to all digits for most spectra
WORKING_BLOCKS = 4  # blocks of directions held in addition to those of the passes
BASES = ("features", "rows", "products")


@dataclass(frozen=True)
class Plan:
    """Coordinates for the problem (one of BASES), and the reason."""

    basis: str
    reason: str
    passes: int = field(default=0, kw_only=True)  # maximum number of products, each of which reads all parts

    def build(self, points: LabelledRows, margins: Margins, *, leading: bool = False, resolve: bool = False) -> Basis:
        """Return the rows in these coordinates.

        leading : True if only the largest directions are needed
        resolve : True to include directions below 1e-3 of the largest
        """
        if self.basis == "features":
            return Features.of(points, margins, self.reason)
        if self.basis == "products":
            return Products.of(points, margins, self.reason)
        if resolve:
            return SingularRows.of(points, margins, self.reason)
        return GramRows.of(points, margins, self.reason, leading=leading)


def choose(
    n: int,
    d: int,
    *,
    stored: int | None = None,
    wanted: int | None,
    why_all: str | None = None,
    can_sample: bool = False,
) -> Plan:
    """Return the plan for n×d rows.

    stored : number of values that a sparse table stores; None for a dense one
    wanted : number of directions; None for all of them
    why_all : reason why the method needs all directions; None if it does not
    can_sample : True if the step that needs all directions may use a sample of the rows when nothing else is possible
    """
    side, sparse = min(n, d), stored is not None
    needs_all = why_all is not None and not (can_sample and sparse and side > EXACT_SIDE)
    few = wanted is not None and not needs_all and 10 * wanted <= side
    if few and (side > EXACT_SIDE or _is_cheaper_by_products(n, d, stored, wanted or 0)):
        kind = "sparse" if sparse else "dense"
        return Plan("products", f"{wanted} of {side} directions of a large {kind} problem ({n}×{d}): products only")
    if sparse and side > EXACT_SIDE:
        few_enough = f"pass an int n_components ≤ {side // 10}."
        advice = few_enough if why_all is None else f"reduce the columns, because {why_all}."
        raise ValueError(
            f"X must not be sparse with both sides above {EXACT_SIDE:,} unless few directions are needed; got {n}×{d}. "
            f"To find them without making X dense, {advice}"
        )
    if n >= d:
        return Plan("features", f"n={n} ≥ d={d}: statistics of the features")
    return Plan("rows", f"n={n} < d={d}: coordinates in the span of the rows")


def choose_in_parts(d: int, *, scatters: int, wanted: int | None, max_memory: int, why_not: str | None) -> Plan:
    """Return the plan for parts with d columns and an unknown number of rows.

    scatters : number of d×d matrices in the statistics
    wanted : number of directions
    why_not : reason why the parts cannot be read several times; None if they can
    """
    exact = 2 * 8 * scatters * d**2  # the sum so far, and the statistics of one part
    if exact <= max_memory:
        return Plan("features", f"statistics of {d} columns in {exact / 2**20:,.0f} MiB")
    if why_not is None and wanted is None:
        why_not = "this method needs all directions"
    block = 8 * d * ((wanted or 0) + 1 + SPARE)
    passes = min(MAX_PASSES, max_memory // block - WORKING_BLOCKS)
    if why_not is None and passes < MIN_PASSES:
        min_bytes = (MIN_PASSES + WORKING_BLOCKS) * block
        why_not = f"passes over the parts for {wanted} of their directions would take {min_bytes:,} bytes at least"
    if why_not is not None:
        raise ValueError(
            f"max_memory must be at least {exact:,} bytes for statistics of {d:,} columns; got {max_memory:,}, and "
            f"{why_not}. Pass a larger max_memory (to fit_parts, which takes Dask's collections too; maxMemory of "
            "SparkReducer), reduce the columns first (feature selection, or a hash of them), or use PCA or MarginPCA "
            "with few components, which read the parts several times instead."
        )
    return Plan(
        "products",
        f"{d} columns, whose statistics would take {exact / 2**20:,.0f} MiB of {max_memory / 2**20:,.0f}: at most "
        f"{passes + 2} passes over the parts (block Krylov), until the spread grows by less than 1e-5",
        passes=passes,
    )


def _is_cheaper_by_products(n: int, d: int, stored: int | None, wanted: int) -> bool:
    """Return True if products are far cheaper, by a rough estimate in seconds."""
    side, other = min(n, d), max(n, d)
    gram = side * side * other / 1e10
    if stored is not None and n < d:  # pairs of stored values in one column
        gram = stored * stored / d / 1e8
    passes = 4 * (10 + 2 * wanted)
    by_products = passes * (n * d / 1e9 if stored is None else stored / 2e8)
    exact = gram + 2 * side**3 / 1e10
    return exact > SOON and 5 * by_products < exact
