"""The sums behind `ClassMoments`, gathered in one pass.

Rows are squared around a point near their class's mean, so nothing large is ever subtracted:

    rows of class c, minus the class's pilot p_c      (its mean so far, or that of some of its rows, as one double)
    mean b_c of what remains
    Σ w (x−p)(x−p)ᵀ − W b bᵀ                          the scatter around p + b

The sums themselves show whether the pilots were near: where W b bᵀ is not small beside the scatter, the rows are summed
again around p + b. The pilot and the remainder are kept apart: at an offset of 1e8 their sum, as one double, would lose
1e-8. Columns whose means are a few deviations from 0 have pilot 0, and a table of such columns (standardised, say) is
squared where it lies.
"""

from __future__ import annotations

from collections.abc import Iterator
from copy import copy
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from scipy.linalg import blas

from discrim.data.check import require_finite
from discrim.data.fit_messages import require_room_for_scatters
from discrim.data.rows import LabelledRows, block_slices, dense_block

Array = NDArray[np.float64]
FEW_CLASSES = 32  # up to here every row is taken to be of any class; beyond, a block at a time is looked at
SAMPLED = 32  # rows of each class that tell where its pilot is best set
ALL_CELLS = 2**15  # of a table no larger than this, all rows do
LEAST_EXPONENT = -1000  # its inverse, as a factor, is a number still
SAFE_EXPONENT = 240  # what is this many powers of two away from 1 can be squared and summed
SAFE = {
    np.dtype(np.float64): (1e-150, 1e250),
    np.dtype(np.float32): (1e-18, 1e30),
}  # sums of squares that lose nothing
# squares of the means, in variances around them: up to which 0 is a pilot, and up to which any pilot was near
NEAR = {np.dtype(np.float64): (64.0, 100.0), np.dtype(np.float32): (1.0, 4.0)}


@dataclass(frozen=True, eq=False)
class Foreknown:
    """What earlier rows of the same classes tell of those to come: where their pilots are best set."""

    weights: Array
    means: Array
    squares: Array  # of each column: its deviations from the class means, squared and summed


@dataclass(frozen=True, eq=False)
class _Run:
    """Rows that are taken around the same pilots."""

    X: Any
    blocks: list[slice]
    codes: NDArray[np.intp]  # positions among the classes of the run
    weights: Array | None
    seen: Any  # these classes: an index into the accumulator's arrays
    n_classes: int

    @property
    def is_small(self) -> bool:
        """Whether all rows can be looked at beforehand."""
        return len(self.codes) * self.X.shape[1] <= ALL_CELLS

    def positions(self, block: slice) -> NDArray[np.intp]:
        """The classes of a block's rows."""
        first = self.blocks[0].start
        return self.codes[block.start - first : block.stop - first]

    def weights_of(self, block: slice) -> Array | None:
        """The weights of a block's rows."""
        first = self.blocks[0].start
        return None if self.weights is None else self.weights[block.start - first : block.stop - first]


@dataclass(frozen=True, eq=False)
class _Sums:
    """Of the rows of a run: the means of rows − pilots, and the scatter around them (or one of each class, or none)."""

    mass: Array
    pilots: Array
    means: Array
    scatter: Array | None
    of_means: Array  # what of the squares around the pilots, in each column, were the means'
    size: float  # all that was squared


class Accumulator:
    """Weights, means and scatters of classes 0..C−1 of (X · 2^−exponent), growing run by run."""

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
        if keep == "each":
            require_room_for_scatters(n_classes, n_features)
        self.foreknown = foreknown
        self.weights = np.zeros(n_classes)
        self.counts = np.zeros(n_classes, dtype=np.int64)
        self.pilots = np.zeros(shape)
        self.remainders = np.zeros(shape)
        self.emphasis = np.ones(n_classes) if emphasis is None else emphasis
        self.pooled = np.zeros((n_features, n_features)) if keep == "pooled" else None
        self.each = np.zeros((n_classes, n_features, n_features)) if keep == "each" else None
        self.scatters = keep != "means"
        self.exponent = 0
        self._buffer: NDArray[Any] = np.empty((0, n_features))
        self._even = emphasis is None or bool((emphasis == 1).all())

    def add_rows(self, rows: LabelledRows, *, doubles: bool = True) -> None:
        """One pass over the rows; `doubles=False` squares single-precision rows in their own precision."""
        if rows.shape[0] == 0:
            return
        dtype = np.dtype(np.float64 if doubles or rows.X.dtype != np.float32 else np.float32)
        unit = 1.0 if rows.weights is None else 2.0 ** np.frexp(rows.weights.max())[1]  # float32 ends at 1e38
        if unit != 1.0:
            self._count_weights_in(unit)
        for run in self._runs(rows, unit):
            self._add_run(run, dtype)
        if unit != 1.0:
            self._count_weights_in(1 / unit)
        means = self.pilots + self.remainders
        if not (present := self.weights > 0).all():
            means = means[present]
        means = np.ldexp(means, self.exponent) if self.exponent else means
        exponent = safe_exponent(means, log_deviation(self.pooled, self.each) + self.exponent, self.exponent)
        if exponent != self.exponent:
            self.set_exponent(exponent)

    def _count_weights_in(self, unit: float) -> None:
        known = self.foreknown
        for sums in (self.weights, self.pooled, self.each, *(() if known is None else (known.weights, known.squares))):
            if sums is not None:
                sums /= unit

    def _runs(self, rows: LabelledRows, unit: float) -> Iterator[_Run]:
        """All rows at once where there are few classes, else block by block, with the classes that are in it."""
        weights = rows.weights if unit == 1.0 or rows.weights is None else rows.weights / unit
        blocks = list(block_slices(*rows.shape))
        if len(self.weights) <= FEW_CLASSES:
            yield _Run(rows.X, blocks, rows.codes, weights, slice(None), len(self.weights))
            return
        for block in blocks:
            seen, codes = np.unique(rows.codes[block], return_inverse=True)
            yield _Run(rows.X, [block], codes, None if weights is None else weights[block], seen, len(seen))

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

    def _add_run(self, run: _Run, dtype: np.dtype[Any]) -> None:
        with np.errstate(over="ignore", invalid="ignore"):
            found = self._sums(run, self._pilots(run, dtype), dtype)
            if self._leaves_range(found, run, dtype):
                require_finite(run.X)
                self._rescale(run)
                found = self._sums(run, self._pilots(run, dtype), dtype)
            if not self._was_near(found, dtype):
                found = self._sums(run, (found.pilots + found.means).astype(dtype), dtype)
        if found.scatter is not None and self.pooled is not None:
            self.pooled += found.scatter
        elif found.scatter is not None and self.each is not None:
            self.each[run.seen] += found.scatter
        self.merge(run.seen, found.mass, np.bincount(run.codes, minlength=run.n_classes), found.pilots, found.means)

    # ------------------------------------------------------------------ where the pilots are

    def _pilots(self, run: _Run, dtype: np.dtype[Any]) -> NDArray[Any]:
        """The mean so far of each class, or that of some of its rows; 0 where that is as good."""
        behind, pilots = self.weights[run.seen], self.pilots[run.seen] + self.remainders[run.seen]
        squares = None if self.pooled is None else np.diagonal(self.pooled)
        if (known := self.foreknown) is not None:
            pilots = np.where((behind > 0)[:, None], pilots, known.means[run.seen])
            behind = behind + known.weights[run.seen]
            squares = None if squares is None else squares + known.squares
        if (new := behind == 0).any():
            mass, means, spread = self._sampled(run) if self.scatters else self._first_rows(run)
            pilots[new] = means[new]
            if new.all():
                behind, squares = mass, None if squares is None else spread
        if squares is not None and not run.is_small:
            of_means = (self.emphasis[run.seen] * behind) @ pilots**2
            most = NEAR[dtype][0] * squares
            near = of_means <= most
            # rounding of W b bᵀ moves directions by the largest of its columns times all of them, not as one column
            if 4 * of_means[near].sum() * of_means[near].max(initial=0.0) <= most.max(initial=0.0) ** 2:
                pilots[:, near] = 0.0
        return pilots.astype(dtype, copy=False)

    def _first_rows(self, run: _Run) -> tuple[Array, Array, Array]:
        """One row of each class, which is near enough where only means are wanted."""
        first = np.zeros(run.n_classes, dtype=np.intp)
        first[run.codes[::-1]] = np.arange(len(run.codes) - 1, -1, -1)
        rows = dense_block(run.X, first + run.blocks[0].start).astype(np.float64, copy=False)
        return (
            np.ones(run.n_classes),
            np.ldexp(rows, -self.exponent) if self.exponent else rows,
            np.zeros(rows.shape[1]),
        )

    def _sampled(self, run: _Run) -> tuple[Array, Array, Array]:
        """Of some rows all over the run: the weight of each class, the means, and the squares around these."""
        n, wanted = len(run.codes), SAMPLED * run.n_classes
        where = np.arange(n)
        if self.each is None and n > 2 * wanted and not run.is_small:
            # by steps of the golden ratio, with which no order of the rows keeps time
            where = np.sort((np.arange(wanted) * 0.6180339887498949 % 1.0 * n).astype(np.intp))
        local, first = run.codes[where], np.zeros(run.n_classes, dtype=np.intp)
        first[local[::-1]] = np.arange(len(local) - 1, -1, -1)
        some = dense_block(run.X, where + run.blocks[0].start).astype(np.float64, copy=False)
        some = np.ldexp(some, -self.exponent) if self.exponent else some
        base = some[first]  # a row of the class: where all are equal, so is their mean
        some = some - base[local]
        weights = None if run.weights is None else run.weights[where]
        mass = np.bincount(local, weights, minlength=run.n_classes).astype(np.float64, copy=False)
        means = _class_sums(some, local, weights, run.n_classes) / np.where(mass > 0, mass, 1.0)[:, None]
        some -= means[local]
        squares = np.einsum("ij,ij->j", some, some if weights is None else some * weights[:, None])
        return mass, base + means, squares

    def _was_near(self, found: _Sums, dtype: np.dtype[Any]) -> bool:
        """Whether what the pilots were off takes no digits from the scatter that is there now."""
        if found.scatter is None:
            return True
        squares = np.diagonal(found.scatter, axis1=-2, axis2=-1)
        if self.pooled is not None:
            squares = squares + np.diagonal(self.pooled)
            squares = squares if self.foreknown is None else squares + self.foreknown.squares
        return bool((found.of_means <= NEAR[dtype][1] * squares).all())

    # ------------------------------------------------------------------ around them

    def _sums(self, run: _Run, pilots: NDArray[Any], dtype: np.dtype[Any]) -> _Sums:
        """One pass over the rows of a run."""
        d, sums, size = pilots.shape[1], np.zeros(pilots.shape), 0.0
        scatter: Any = None if self.pooled is None else np.zeros((d, d), order="F")
        if self.each is not None:
            scatter = np.zeros((run.n_classes, d, d))
        around = pilots if pilots.any() else None
        for part in run.blocks:
            local, weights = run.positions(part), run.weights_of(part)
            rows = self._minus_pilots(dense_block(run.X, part), around, local, dtype)
            sums += _class_sums(rows, local, weights, run.n_classes)
            if self.pooled is not None:
                scatter = _with_squares(scatter, 1.0, self._weighted(rows, run, local, weights))
            elif self.each is not None:
                _add_each(scatter, rows, local, weights)
            else:
                size += float(np.vdot(rows, rows))
        mass = np.bincount(run.codes, run.weights, minlength=run.n_classes).astype(np.float64, copy=False)
        means = sums / np.where(mass > 0, mass, 1.0)[:, None]
        if scatter is not None:
            size = float(np.trace(scatter, axis1=-2, axis2=-1).sum())
        scatter, of_means = self._around_means(scatter, means, mass, run)
        return _Sums(mass, pilots.astype(np.float64, copy=False), means, scatter, of_means, size)

    def _around_means(self, scatter: Array | None, means: Array, mass: Array, run: _Run) -> tuple[Array | None, Array]:
        """Scatter (of which there was one triangle) less W b bᵀ, and what that was in each column."""
        if self.pooled is None:
            rows = means * np.sqrt(mass)[:, None]
            if scatter is not None:
                scatter -= rows[:, :, None] * rows[:, None, :]
            return scatter, rows**2
        rows = means * np.sqrt(mass if self._even else mass * self.emphasis[run.seen])[:, None]
        triangle = _with_squares(scatter, -1.0, rows)
        scatter = triangle + triangle.T
        scatter.flat[:: len(scatter) + 1] *= 0.5
        return scatter, np.einsum("cd,cd->d", rows, rows)

    def _weighted(self, rows: NDArray[Any], run: _Run, local: NDArray[np.intp], weights: Array | None) -> NDArray[Any]:
        """Rows times the roots of their weights and of their classes' emphasis."""
        if not self._even:
            weights = self.emphasis[run.seen][local] * (1.0 if weights is None else weights)
        if weights is None:
            return rows
        out = self._buffer_of(rows.shape, rows.dtype)
        return np.multiply(rows, np.sqrt(weights)[:, None].astype(rows.dtype, copy=False), out=out)

    def _minus_pilots(
        self, block: NDArray[Any], pilots: NDArray[Any] | None, local: NDArray[np.intp], dtype: np.dtype[Any]
    ) -> NDArray[Any]:
        """block − pilots[local], in a buffer that stays in the cache (not to be written to: it may be the table)."""
        if self.exponent:
            block = np.ldexp(block, -self.exponent)
        if pilots is None and block.dtype == dtype and block.flags.c_contiguous:
            return block
        out = self._buffer_of(block.shape, dtype)
        if pilots is None:
            np.copyto(out, block)
            return out
        np.take(pilots, local, axis=0, out=out, mode="clip")
        return np.subtract(block, out, out=out)

    def _buffer_of(self, shape: tuple[int, ...], dtype: np.dtype[Any]) -> NDArray[Any]:
        if len(self._buffer) < shape[0] or self._buffer.dtype != dtype:
            self._buffer = np.empty(shape, dtype)
        return self._buffer[: shape[0]]

    def merge(self, seen: Any, mass: Array, counts: NDArray[Any], pilots: Array, remainders: Array) -> None:
        """Add class means (pilot + remainder) of given mass; the scatter around them is added by the caller."""
        old, grown = self.weights[seen], (mass > 0)[:, None]
        if old.any():
            both = old + mass
            gap = (pilots - self.pilots[seen]) + (remainders - self.remainders[seen])
            gap[(old == 0) | (mass == 0)] = 0.0
            share = np.divide(mass, both, out=np.zeros_like(both), where=both > 0)
            self._add_class_rows(seen, old * share, gap)
            # the newer pilot is the mean so far: the old mean, as seen from it, is small again
            moved = np.where((old > 0)[:, None], (self.pilots[seen] - pilots) + self.remainders[seen], remainders)
            remainders = np.where(grown, moved + share[:, None] * gap, self.remainders[seen])
            pilots = np.where(grown, pilots, self.pilots[seen])
        else:
            pilots, remainders = np.where(grown, pilots, 0.0), np.where(grown, remainders, 0.0)
        self.pilots[seen], self.remainders[seen] = pilots, remainders
        self.weights[seen] += mass
        self.counts[seen] += counts

    def _add_class_rows(self, seen: Any, masses: Array, rows: Array) -> None:
        """Add mass_c · row_c row_cᵀ to each class's scatter."""
        scaled = rows * np.sqrt(masses)[:, None]
        if self.pooled is not None:
            scaled *= np.sqrt(self.emphasis[seen])[:, None]
            self.pooled += scaled.T @ scaled
        elif self.each is not None:
            self.each[seen] += scaled[:, :, None] * scaled[:, None, :]

    # ------------------------------------------------------------------ numbers too large or too small to be squared

    def _leaves_range(self, found: _Sums, run: _Run, dtype: np.dtype[Any]) -> bool:
        low, high = SAFE[dtype]
        if not found.size < high:
            return True
        before = 0.0 if self.pooled is None else float(np.trace(self.pooled))
        if max(found.size, before) >= low:
            return False
        around = found.pilots.astype(dtype, copy=False)
        return any(
            self._minus_pilots(dense_block(run.X, part), around, run.positions(part), dtype).any()
            for part in run.blocks
        )

    def _rescale(self, run: _Run) -> None:
        """Take the power of two at which the run's largest deviation is about 1 (and no entry overflows)."""
        ends = [(block.min(axis=0), block.max(axis=0)) for block in (dense_block(run.X, part) for part in run.blocks)]
        least, most = np.min([low for low, _ in ends], axis=0), np.max([high for _, high in ends], axis=0)
        deviation = float((most - least).max())
        largest = float(max(np.abs(least).max(), np.abs(most).max()))
        wanted = np.frexp(deviation if 0 < deviation < np.inf else largest)[1]
        self.set_exponent(max(int(wanted), int(np.frexp(largest)[1]) - 1000, LEAST_EXPONENT))

    def set_exponent(self, exponent: int) -> None:
        """Count from now on in units of 2^exponent."""
        change = self.exponent - exponent
        for array, power in ((self.pilots, 1), (self.remainders, 1), (self.pooled, 2), (self.each, 2)):
            if array is not None:
                np.ldexp(array, power * change, out=array)
        self.exponent = exponent
        self.foreknown = None  # in other units: of no use any more


def _class_sums(rows: Any, local: NDArray[np.intp], weights: Array | None, n_classes: int) -> Array:
    """Weighted sum of the (dense or sparse) rows of each class."""
    # a sparse table comes whole, so that many rows are summed: in doubles
    dtype = np.dtype(np.float64) if sp.issparse(rows) else rows.dtype
    # one nonzero per column: faster than a dense product, and than a sum along the columns where there is one class
    members = copy(_one_of_each(n_classes, len(local), dtype))
    members.indices = local
    if weights is not None:
        members.data = weights.astype(dtype, copy=False)
    sums = members @ rows
    return (sums.toarray() if sp.issparse(sums) else sums).astype(np.float64, copy=False)


@lru_cache(maxsize=16)
def _one_of_each(n_classes: int, n_rows: int, dtype: np.dtype[Any]) -> sp.csc_array:
    """A class for each row, all of the first: to be copied, as making one anew takes as long as a product of it."""
    where = np.zeros(n_rows, dtype=np.intp), np.arange(n_rows + 1)
    return sp.csc_array((np.ones(n_rows, dtype), *where), shape=(n_classes, n_rows))


def _with_squares(scatter: Any, factor: float, rows: NDArray[Any]) -> Any:
    """scatter + factor · rowsᵀrows, in its upper triangle (half the work of a product)."""
    if not scatter.size:
        return scatter
    if rows.dtype == np.float64:
        return blas.dsyrk(factor, rows.T, beta=1.0, c=scatter, overwrite_c=1)
    scatter += factor * blas.ssyrk(1.0, rows.T)
    return scatter


def _add_each(scatters: Any, rows: NDArray[Any], local: NDArray[np.intp], weights: Array | None) -> None:
    rows = rows if weights is None else rows * np.sqrt(weights)[:, None].astype(rows.dtype, copy=False)
    for c in np.unique(local):
        of_class = rows[local == c]
        scatters[c] += of_class.T @ of_class


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
