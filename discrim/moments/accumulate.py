"""The sums behind `ClassMoments`, gathered in one pass.

Each block of rows is centred before it is squared, so nothing large is ever subtracted:

    rows of class c, minus the class's pilot p_c       (its mean so far, as one double)
    block mean b_c of what remains
    Σ w (x−p)(x−p)ᵀ − W_b b bᵀ + W W_b/(W+W_b) (b−r)(b−r)ᵀ     added to the scatter around p + r

The pilot and the remainder r are kept apart: at an offset of 1e8 their sum, as one double, would lose 1e-8.
A class that grows by more than it had gets its rows centred on the block's own mean first; otherwise the pilot is
already close, and the second term is at most a part of the first. Once the classes are known, many blocks are taken
around the same pilots, and b is the mean of all of them; columns whose means are a few deviations from 0 have pilot 0
then, and a table of such columns (standardised, say) is squared where it lies.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from discrim.data.check import require_finite
from discrim.data.rows import BLOCK_ROWS, LabelledRows, block_slices, dense_block

Array = NDArray[np.float64]
NEAR = 8.0  # deviations between 0 and a column's means up to which it is squared where it lies: 64 roundings at most
FEW_CLASSES = 32  # up to here every block is taken to touch every class
LONGEST_RUN = 16  # blocks around the same pilots
LEAST_EXPONENT = -1000  # its inverse, as a factor, is a number still
SAFE_EXPONENT = 240  # what is this many powers of two away from 1 can be squared and summed
SAFE = {
    np.dtype(np.float64): (1e-150, 1e250),
    np.dtype(np.float32): (1e-18, 1e30),
}  # sums of squares that lose nothing


@dataclass(frozen=True, eq=False)
class Foreknown:
    """What earlier rows of the same classes tell of those to come: where their pilots are best set."""

    weights: Array
    means: Array
    squares: Array  # of each column: its deviations from the class means, squared and summed


@dataclass(eq=False)
class _Run:
    """Consecutive blocks around the same pilots, and the sums of what was added of them."""

    seen: Any  # the classes it may touch: an index into the accumulator's arrays
    pilots: NDArray[Any]
    may_recentre: bool  # one block alone is also centred on its own class means, where these say more than the pilots
    recentred: NDArray[np.bool_]  # which classes were
    mass: Any = 0.0  # of each class, as the two below: arrays once a block is there
    counts: Any = 0
    sums: Any = 0.0  # of weighted rows − pilots


class Accumulator:
    """Weights, means and scatters of classes 0..C−1 of (X · 2^−exponent), growing block by block."""

    def __init__(
        self,
        n_classes: int,
        n_features: int,
        *,
        keep: str = "pooled",
        emphasis: Array | None = None,
        foreknown: Foreknown | None = None,
    ) -> None:
        shape = (n_classes, n_features)
        nothing = Foreknown(np.zeros(n_classes), np.zeros(shape), np.zeros(n_features))
        self.foreknown = nothing if foreknown is None else foreknown
        self.weights = np.zeros(n_classes)
        self.counts = np.zeros(n_classes, dtype=np.int64)
        self.pilots = np.zeros(shape)
        self.remainders = np.zeros(shape)
        self.emphasis = np.ones(n_classes) if emphasis is None else emphasis
        self.pooled = np.zeros((n_features, n_features)) if keep == "pooled" else None
        self.each = np.zeros((n_classes, n_features, n_features)) if keep == "each" else None
        self.exponent = 0
        self._largest = 0.0  # the largest sum of squares of a block so far
        self._pending: dict[int, list[Array]] = {1: [], -1: []}  # class rows yet to be squared into `pooled`
        self._buffers: dict[str, NDArray[Any]] = {}

    def add_rows(self, rows: LabelledRows, *, doubles: bool = True) -> None:
        """One pass over the rows; `doubles=False` squares single-precision rows in their own precision."""
        if rows.shape[0] == 0:
            return
        dtype = np.dtype(np.float64 if doubles or rows.X.dtype != np.float32 else np.float32)
        unit = 1.0 if rows.weights is None else 2.0 ** np.frexp(rows.weights.max())[1]  # float32 ends at 1e38
        if unit != 1.0:
            self._count_weights_in(unit)
        blocks, done = list(block_slices(*rows.shape)), 0
        while done < len(blocks):
            longest = LONGEST_RUN if self.foreknown.weights.any() else min(2 * done, LONGEST_RUN)
            run = blocks[done : done + max(1, longest)]
            if len(run) > 1 and not self._knows_its_classes(rows, run, unit):
                run = run[:1]
            added = self._add_run(rows, run, unit, dtype)
            if added == 0:
                require_finite(rows.X)
                self._rescale(dense_block(rows.X, run[0]))
                added = self._add_run(rows, run[:1], unit, dtype, force=True)
            done += added
        self.square_pending()
        if unit != 1.0:
            self._count_weights_in(1 / unit)
        means = np.ldexp((self.pilots + self.remainders)[self.weights > 0], self.exponent)
        exponent = safe_exponent(means, log_deviation(self.pooled, self.each) + self.exponent, self.exponent)
        if exponent != self.exponent:
            self.set_exponent(exponent)

    def _count_weights_in(self, unit: float) -> None:
        for sums in (self.weights, self.pooled, self.each, self.foreknown.weights, self.foreknown.squares):
            if sums is not None:
                sums /= unit

    def _knows_its_classes(self, rows: LabelledRows, run: list[slice], unit: float) -> bool:
        """Whether each class has at least a quarter as much behind it as is in the run, so that its pilot is near.

        What is squared around it is at most five times what the classes' scatter will be: under three bits.
        """
        if len(self.weights) > FEW_CLASSES:
            return False
        part = slice(run[0].start, run[-1].stop)
        weights = None if rows.weights is None else rows.weights[part] / unit
        behind = self.weights + self.foreknown.weights
        return bool((np.bincount(rows.codes[part], weights, minlength=len(behind)) <= 4 * behind).all())

    def add_sparse_means(self, rows: LabelledRows) -> None:
        """Class means of sparse rows, which stay sparse: seen from the origin, as no pilot can be taken off."""
        mass = rows.class_totals
        largest = float(np.abs(rows.X.data).max(initial=0.0))
        if not np.isfinite(largest):
            require_finite(rows.X)
        if largest > 0 and not 1e-75 < largest < 1e75:
            self.set_exponent(max(int(np.frexp(largest)[1]), LEAST_EXPONENT))
        scaled = rows.X.astype(np.float64) * 0.5**self.exponent if self.exponent else rows.X
        weights = None if rows.weights is None else rows.weights / rows.weights.max()  # float32 ends at 1e38
        sums = _class_sums(scaled, rows.codes, weights, len(mass))
        counted = np.bincount(rows.codes, weights, minlength=len(mass))
        means = sums / np.where(counted > 0, counted, 1.0)[:, None]
        self.merge(slice(None), mass, np.bincount(rows.codes, minlength=len(mass)), np.zeros_like(means), means)

    def _add_run(
        self, rows: LabelledRows, blocks: list[slice], unit: float, dtype: np.dtype[Any], force: bool = False
    ) -> int:
        """Add blocks around the same pilots, up to one whose squares would leave the range of the numbers; how many."""
        codes = rows.codes[blocks[0].start : blocks[-1].stop]
        many = len(self.weights) > FEW_CLASSES
        seen, positions = np.unique(codes, return_inverse=True) if many else (slice(None), codes)
        run: _Run | None = None
        added = 0
        for part in blocks:
            block = dense_block(rows.X, part)
            if self.exponent:
                block = np.ldexp(block, -self.exponent)
            local = positions[part.start - blocks[0].start : part.stop - blocks[0].start]
            weights = None if rows.weights is None else rows.weights[part] / unit
            if run is None:
                run = self._new_run(seen, block, local, dtype, alone=len(blocks) == 1)
            if not self._add_block(run, block, local, weights, force):
                break
            added += 1
        if added:
            assert run is not None
            means = run.sums / np.where(run.mass > 0, run.mass, 1.0)[:, None]
            left = np.where(run.recentred[:, None], 0.0, means)  # what of the means is still in the scatter
            self._add_class_rows(seen, -1, run.mass, left)
            self.merge(seen, run.mass, run.counts, run.pilots.astype(np.float64), means)
        return added

    def _add_block(
        self, run: _Run, block: NDArray[Any], local: NDArray[np.intp], weights: Array | None, force: bool
    ) -> bool:
        """Add a block to its run; False, with nothing changed, where its squares would leave the range."""
        dtype = run.pilots.dtype
        with np.errstate(over="ignore", invalid="ignore"):
            rows = self._minus_pilots(block, run.pilots, local, dtype)
            mass = np.bincount(local, weights, minlength=len(run.pilots))
            sums = _class_sums(rows, local, weights, len(run.pilots))
            if run.may_recentre and (self.pooled is not None or self.each is not None):
                rows = self._recentred(run, rows, local, mass, sums)
            product = self._pooled_product(run, rows, local, weights)
            size = float(np.vdot(rows, rows) if product is None else np.trace(product))
        low, high = SAFE[dtype]
        lost = not size < high or (max(size, self._largest) < low and rows.any())
        if lost and not force:
            return False
        self._largest = max(self._largest, size)
        if product is not None:
            self.pooled += product
        elif self.each is not None:
            self._add_each(run, rows, local, weights)
        run.mass += mass
        run.counts += np.bincount(local, minlength=len(run.pilots))
        run.sums += sums
        return True

    def _recentred(
        self, run: _Run, rows: NDArray[Any], local: NDArray[np.intp], mass: NDArray[Any], sums: Array
    ) -> NDArray[Any]:
        """Rows of classes that grow by more than they had, around their own mean."""
        run.recentred = (self.weights + self.foreknown.weights)[run.seen] < mass
        if not run.recentred.any():
            return rows
        shift = np.zeros(run.pilots.shape, rows.dtype)
        shift[run.recentred] = sums[run.recentred] / mass[run.recentred, None]
        out = self._buffer("centred", rows.shape, rows.dtype)
        return np.subtract(rows, shift[local] if len(shift) > 1 else shift, out=out)

    def merge(self, seen: Any, mass: Array, counts: NDArray[Any], pilots: Array, remainders: Array) -> None:
        """Add class means (pilot + remainder) of given mass; the scatter around them is added by the caller."""
        old = self.weights[seen]
        both = old + mass
        gap = (pilots - self.pilots[seen]) + (remainders - self.remainders[seen])
        gap[(old == 0) | (mass == 0)] = 0.0
        share = np.divide(mass, both, out=np.zeros_like(both), where=both > 0)
        self._add_class_rows(seen, 1, old * share, gap)
        # the newer pilot is the mean so far: the old mean, as seen from it, is small again
        moved = np.where((old > 0)[:, None], (self.pilots[seen] - pilots) + self.remainders[seen], remainders)
        grown = (mass > 0)[:, None]
        self.remainders[seen] = np.where(grown, moved + share[:, None] * gap, self.remainders[seen])
        self.pilots[seen] = np.where(grown, pilots, self.pilots[seen])
        self.weights[seen] = both
        self.counts[seen] += counts

    def _new_run(
        self, seen: Any, block: NDArray[Any], local: NDArray[np.intp], dtype: np.dtype[Any], alone: bool
    ) -> _Run:
        """Around the mean so far of each class, or its first row; around 0 where that is as good."""
        behind = (self.weights + self.foreknown.weights)[seen]
        known = np.where(
            (self.weights[seen] > 0)[:, None], self.pilots[seen] + self.remainders[seen], self.foreknown.means[seen]
        )
        pilots, new = known.astype(dtype), behind == 0
        if new.any():
            first = np.full(len(pilots), -1, dtype=np.intp)
            first[local[::-1]] = np.arange(len(local) - 1, -1, -1)
            new &= first >= 0
            pilots[new] = block[first[new]]
        if not alone and self.pooled is not None:
            self.square_pending()
            with np.errstate(over="ignore"):
                of_means = (self.emphasis[seen] * behind) @ np.square(pilots, dtype=np.float64)
            spread = NEAR**2 * (np.diag(self.pooled) + self.foreknown.squares)
            near = of_means <= spread
            if of_means[near].sum() <= spread.max(initial=0.0):  # W b bᵀ is as large as its trace, not as one column
                pilots[:, near] = 0.0
        return _Run(seen, pilots, may_recentre=alone, recentred=np.zeros(len(pilots), dtype=bool))

    def _minus_pilots(
        self, block: NDArray[Any], pilots: NDArray[Any], local: NDArray[np.intp], dtype: np.dtype[Any]
    ) -> NDArray[Any]:
        """block − pilots[local], in a buffer that stays in the cache (not to be written to: it may be the table)."""
        if block.dtype == dtype and not pilots.any():
            return block
        out = self._buffer("centred", block.shape, dtype)
        if len(pilots) == 1:
            return np.subtract(block, pilots[0], out=out)
        np.take(pilots, local, axis=0, out=out, mode="clip")
        return np.subtract(block, out, out=out)

    def _pooled_product(
        self, run: _Run, rows: NDArray[Any], local: NDArray[np.intp], weights: Array | None
    ) -> NDArray[Any] | None:
        if self.pooled is None:
            return None
        emphasis = self.emphasis[run.seen]
        if not (emphasis == 1).all():
            weights = emphasis[local] * (1.0 if weights is None else weights)
        if weights is not None:
            out = self._buffer("centred", rows.shape, rows.dtype)
            rows = np.multiply(rows, np.sqrt(weights)[:, None].astype(rows.dtype), out=out)
        return np.matmul(rows.T, rows, out=self._buffer("product", self.pooled.shape, rows.dtype))

    def _add_each(self, run: _Run, rows: NDArray[Any], local: NDArray[np.intp], weights: Array | None) -> None:
        assert self.each is not None
        rows = rows if weights is None else rows * np.sqrt(weights)[:, None].astype(rows.dtype)
        numbers = np.arange(len(self.weights))[run.seen]
        for c in np.unique(local):
            of_class = rows[local == c]
            self.each[numbers[c]] += of_class.T @ of_class

    def _add_class_rows(self, seen: Any, sign: int, masses: Array, rows: Array) -> None:
        """Add ± mass_c · row_c row_cᵀ to each class's scatter."""
        scaled = rows * np.sqrt(masses)[:, None]
        if self.pooled is not None:
            scaled *= np.sqrt(self.emphasis[seen])[:, None]
            self._pending[sign].append(scaled)
            if sum(map(len, self._pending[sign])) > BLOCK_ROWS:
                self.square_pending()
        elif self.each is not None:
            for c, row in zip(np.arange(len(self.weights))[seen], scaled, strict=True):
                self.each[c] += sign * np.outer(row, row)

    def square_pending(self) -> None:
        """Square the class rows that were put off (one product for many blocks)."""
        for sign, pending in self._pending.items():
            if pending and self.pooled is not None:
                rows = np.concatenate(pending)
                self.pooled += sign * (rows.T @ rows)
            pending.clear()

    def _buffer(self, name: str, shape: tuple[int, ...], dtype: np.dtype[Any]) -> NDArray[Any]:
        held = self._buffers.get(name)
        if held is None or len(held) < shape[0] or held.dtype != dtype:
            held = self._buffers[name] = np.empty(shape, dtype)
        return held[: shape[0]]

    def _rescale(self, block: NDArray[Any]) -> None:
        """Take the power of two at which the block's largest deviation is about 1 (and no entry overflows)."""
        with np.errstate(over="ignore"):
            deviation = float(np.ptp(block, axis=0).max())
        largest = float(np.abs(block).max())
        wanted = np.frexp(deviation if 0 < deviation < np.inf else largest)[1]
        self.set_exponent(max(int(wanted), int(np.frexp(largest)[1]) - 1000, LEAST_EXPONENT))

    def set_exponent(self, exponent: int) -> None:
        """Count from now on in units of 2^exponent."""
        self.square_pending()
        change = self.exponent - exponent
        for array, power in ((self.pilots, 1), (self.remainders, 1), (self.pooled, 2), (self.each, 2)):
            if array is not None:
                np.ldexp(array, power * change, out=array)
        self._largest = float(np.ldexp(self._largest, 2 * change))
        self.exponent = exponent
        for known in (self.foreknown.weights, self.foreknown.means, self.foreknown.squares):
            known[:] = 0.0  # in other units: of no use any more


def log_deviation(pooled: Array | None, each: Array | None) -> float:
    """log₂ of the largest deviation within classes."""
    trace = np.trace(pooled) if pooled is not None else 0.0 if each is None else np.einsum("cdd->", each)
    return float(np.log2(trace) / 2) if trace > 0 else -np.inf


def safe_exponent(means: Array, log_deviation: float, exponent: int) -> int:
    """The exponent, or another one where what is squared would leave the range of the numbers in its unit.

    Squared are deviations within classes and, when classes are merged or compared, differences of their means.
    """
    half = float((means.max(axis=0) / 2 - means.min(axis=0) / 2).max(initial=0.0))
    spread = max(log_deviation, float(np.frexp(half)[1] + 1) if half > 0 else -np.inf)
    if not np.isfinite(spread) or abs(spread - exponent) <= SAFE_EXPONENT:
        return exponent
    least = int(np.frexp(np.abs(means).max())[1]) - 1000  # so that no mean overflows
    return max(int(spread), least, LEAST_EXPONENT)


def _class_sums(rows: Any, local: NDArray[np.intp], weights: Array | None, n_classes: int) -> NDArray[np.float64]:
    """Weighted sum of the (dense or sparse) rows of each class."""
    # a sparse table comes whole, so that many rows are summed: in doubles
    dtype = np.dtype(np.float64) if sp.issparse(rows) else rows.dtype
    values = np.ones(len(local), dtype) if weights is None else weights.astype(dtype)
    if n_classes == 1 and not sp.issparse(rows):
        return (values @ rows).astype(np.float64)[None]
    # one nonzero per column: faster than a dense product from two classes on
    members = sp.csc_array((values, local, np.arange(len(local) + 1)), shape=(n_classes, len(local)))
    sums = members @ rows
    return (sums.toarray() if sp.issparse(sums) else sums).astype(np.float64)
