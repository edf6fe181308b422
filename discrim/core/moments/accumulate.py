"""Sums behind `ClassMoments`, accumulated in one pass.

Rows are squared around a point near their class mean, so large numbers never cancel:

    rows of class c, minus the class's pilot p_c      (a known mean, the mean of some of its rows, or one of its rows)
    mean b_c of the differences
    Σ w (x−p)(x−p)ᵀ − W b bᵀ                          the scatter around p + b

If W b bᵀ is not small relative to the scatter, the pilots were too far away, and the rows are summed again around p +
b. Pilot and remainder are stored separately: at an offset of 1e8 their sum, as one double, would lose 1e-8. Columns
whose means are within a few deviations of 0 get pilot 0; a table of such columns only (a standardised one, say) is not
copied.
"""

from __future__ import annotations

from copy import copy
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from discrim.tables.rows import LabelledRows, block_slices, dense_block
from discrim.tables.validation import require_finite
from discrim.threads import WORTH, map_tasks

Array = NDArray[np.float64]
MAX_SCATTER_BYTES = 2**32  # bytes of class scatters
FEW_CLASSES = 32  # up to here pilots are means of some rows, and a block is expected to hold any class
SAMPLED = 32  # rows per class from which its pilot is estimated
ALL_CELLS = 2**15  # tables up to this size use all their rows for that
TASKS = 16  # per sum: enough that no thread waits long for another
MIN_EXPONENT = -1000  # the smallest whose inverse, as a factor, is still finite
# sums of squares that neither overflow nor lose digits
SAFE = {np.dtype(np.float64): (1e-150, 1e250), np.dtype(np.float32): (1e-18, 1e30)}
# squared means relative to the variances: the limit below which 0 is used as pilot, and that for any other pilot
NEAR = {np.dtype(np.float64): (64.0, 100.0), np.dtype(np.float32): (1.0, 4.0)}


@dataclass(frozen=True, eq=False)
class KnownMoments:
    """Statistics of other rows of the same classes, from which pilots are chosen."""

    weights: Array
    means: Array
    squares: Array | None = None  # per column: sum of squared deviations from the class means


class ClassSums:
    """Weights, means (pilots + remainders) and scatters of the classes of labelled rows, times 2^−exponent.

    keep : "pooled", "each" or "means"
    emphasis : factors on the classes' scatters in the pooled one
    doubles : False squares single-precision rows in single precision
    """

    pooled: Array | None = None
    each: Array | None = None

    def __init__(
        self,
        rows: LabelledRows,
        keep: str = "pooled",
        *,
        emphasis: Array | None = None,
        doubles: bool = True,
        known_moments: KnownMoments | None = None,
    ) -> None:
        if keep == "each" and (needed := 8 * rows.n_classes * rows.shape[1] ** 2) > MAX_SCATTER_BYTES:
            raise ValueError(
                "y must have fewer classes, or X fewer columns, if each class has a scatter of its own: "
                f"{rows.n_classes:,} classes and {rows.shape[1]:,} columns take {needed / 2**30:.1f} GiB, more than "
                f"the {MAX_SCATTER_BYTES / 2**30:.0f} GiB allowed. Reduce the columns first (by PCA), or use a method "
                "that pools the scatters: pairs='mean' or score='fisher', or one of the LDA family."
            )
        self.rows, self.keep, self.known, self.exponent = rows, keep, known_moments, 0
        self.dtype = np.dtype(np.float64 if doubles or rows.X.dtype != np.float32 else np.float32)
        self.emphasis = np.ones(rows.n_classes) if emphasis is None else emphasis
        self._even = emphasis is None or bool((emphasis == 1).all())
        self._is_small = rows.shape[0] * rows.shape[1] <= ALL_CELLS  # all rows can be inspected beforehand
        self._blocks = list(block_slices(*rows.shape))
        self._longest = self._blocks[0].stop if self._blocks else 0  # number of rows
        self._buffers: list[NDArray[Any]] = []  # those not in use by a thread, each small enough for the cache
        self._row_weights, unit = rows.weights, 1.0
        if rows.weights is not None and len(rows.weights):
            unit = float(2.0 ** np.frexp(rows.weights.max())[1])  # float32 overflows at 1e38
            self._row_weights = rows.weights / unit
            if known_moments is not None:
                squares = None if known_moments.squares is None else known_moments.squares / unit
                self.known = KnownMoments(known_moments.weights / unit, known_moments.means, squares)
        self.counts = np.bincount(rows.codes, minlength=rows.n_classes)
        self.weights = np.bincount(rows.codes, self._row_weights, minlength=rows.n_classes).astype(np.float64)
        with np.errstate(over="ignore", invalid="ignore"):
            if rows.is_sparse and keep == "means":
                self._sum_sparse()
            else:
                self._sum_around(self._pilots())
                if self._leaves_range():
                    require_finite(rows.X)
                    self._rescale()
                    self._sum_around(self._pilots())
                if not self._pilots_were_near():
                    self._sum_around(self.pilots + self.remainders)
        if unit != 1.0:
            for sums in (self.weights, self.pooled, self.each):
                if sums is not None:
                    sums *= unit

    # ------------------------------------------------------------------ choice of the pilots

    def _pilots(self) -> Array:
        """Return a pilot per class: a known mean, the mean of some rows, or one row; 0 if that is as good."""
        rows, known = self.rows, self.known
        shape = (rows.n_classes, rows.shape[1])
        if rows.shape[0] == 0:
            return np.zeros(shape)
        if self.keep == "each":  # no class may lose digits: use the means of all rows, at the cost of a pass
            whole = ClassSums(rows, "means")
            return np.ldexp(whole.pilots + whole.remainders, whole.exponent - self.exponent)
        is_sampled = self.keep == "pooled" and rows.n_classes <= FEW_CLASSES
        best = known
        if known is None or (known.weights == 0).any():
            best = (
                self._sample_moments()
                if is_sampled
                else KnownMoments(self.weights, self._rows_at(first_rows(rows.codes, rows.n_classes)))
            )
        assert best is not None
        if known is not None and best is not known:
            new = (known.weights == 0)[:, None]
            best = KnownMoments(known.weights, np.where(new, best.means, known.means), known.squares)
        pilots = best.means
        if best.squares is not None and not self._is_small:
            mean_squares = (self.emphasis * best.weights) @ pilots**2
            most = NEAR[self.dtype][0] * best.squares
            near = mean_squares <= most
            # rounding of W b bᵀ moves directions by its largest column times all columns, not by one column alone
            if 4 * mean_squares[near].sum() * mean_squares[near].max(initial=0.0) <= most.max(initial=0.0) ** 2:
                pilots = np.where(near, 0.0, pilots)
        return pilots

    def _sample_moments(self) -> KnownMoments:
        """Return weights, means and squared deviations of the classes in a sample spread over the table."""
        rows, n_classes = self.rows, self.rows.n_classes
        n, wanted = rows.shape[0], SAMPLED * n_classes
        where = np.arange(n)
        if n > 2 * wanted and not self._is_small:
            # steps of the golden ratio, which no periodic order of the rows can match
            where = np.sort((np.arange(wanted) * 0.6180339887498949 % 1.0 * n).astype(np.intp))
        codes, sample = rows.codes[where], self._rows_at(where)
        weights = None if self._row_weights is None else self._row_weights[where]
        base = sample[
            first_rows(codes, n_classes)
        ]  # a row of the class: if all its rows are equal, their mean is exact
        sample = sample - base[codes]
        mass = np.bincount(codes, weights, minlength=n_classes).astype(np.float64, copy=False)
        means = _class_sums(sample, codes, weights, n_classes) / np.where(mass > 0, mass, 1.0)[:, None]
        sample -= means[codes]
        squares = np.einsum("ij,ij->j", sample, sample if weights is None else sample * weights[:, None])
        return KnownMoments(mass, base + means, squares)

    def _rows_at(self, where: NDArray[np.intp]) -> Array:
        rows = dense_block(self.rows.X, where).astype(np.float64, copy=False)
        return np.ldexp(rows, -self.exponent) if self.exponent else rows

    def _pilots_were_near(self) -> bool:
        """Return True if the distance of the pilots from the means costs the scatter no digits."""
        scatter = self.each if self.pooled is None else self.pooled
        if scatter is None:
            return True
        squares = np.diagonal(scatter, axis1=-2, axis2=-1)
        if self.known is not None and self.known.squares is not None:
            squares = squares + self.known.squares
        return bool((self._mean_squares <= NEAR[self.dtype][1] * squares).all())

    # ------------------------------------------------------------------ sums around the pilots

    def _sum_around(self, pilots: Array) -> None:
        """Sum over the rows in one pass."""
        self.pilots = pilots.astype(self.dtype, copy=False)
        around = self.pilots if self.pilots.any() else None
        (n, d), n_tasks = self.rows.shape, 1  # only the shape determines the tasks, so results are reproducible
        if self.keep == "pooled" and n * d * d >= WORTH:
            # the sums of a task must take less than half the memory of its rows
            n_tasks = max(1, min(TASKS, len(self._blocks), n // (2 * (d + self.rows.n_classes))))
        ends = [len(self._blocks) * task // n_tasks for task in range(n_tasks + 1)]
        tasks = [self._blocks[start:end] for start, end in pairwise(ends)]
        parts = (map_tasks if n_tasks > 1 else map)(lambda task: self._sum_blocks(task, around), tasks)
        sums, scatter = next(parts)
        for more_sums, more in parts:
            sums += more_sums
            scatter += more
        self.pilots = self.pilots.astype(np.float64, copy=False)
        sums /= np.where(self.weights > 0, self.weights, 1.0)[:, None]
        self.remainders = sums
        self._size = float(np.trace(scatter, axis1=-2, axis2=-1).sum())  # sum of all squares
        if self.keep == "pooled":  # minus Σ W b bᵀ, whose diagonal is kept
            factors = np.sqrt(self.weights if self._even else self.weights * self.emphasis)[:, None]
            self._mean_squares, self.pooled = np.zeros(len(scatter)), scatter
            for part in block_slices(*sums.shape):
                rows = sums[part] * factors[part]
                scatter -= rows.T @ rows
                self._mean_squares += np.einsum("cd,cd->d", rows, rows)
        elif self.keep == "each":
            rows = sums * np.sqrt(self.weights)[:, None]
            self.each = scatter
            self.each -= rows[:, :, None] * rows[:, None, :]
            self._mean_squares = rows**2

    def _sum_blocks(self, blocks: list[slice], around: NDArray[Any] | None) -> tuple[Array, Any]:
        """Return the class sums and the scatter of some blocks: the kind that is kept, or only its trace."""
        (n_classes, d), codes = self.pilots.shape, self.rows.codes
        sums, sides = np.zeros((n_classes, d)), {"pooled": (d, d), "each": (n_classes, d, d), "means": (1, 1)}
        scatter: Any = np.zeros(sides[self.keep])
        squares = np.empty((d, d), self.dtype) if self.keep == "pooled" else None
        buffer = self._buffers.pop() if self._buffers else np.empty((self._longest, d), self.dtype)
        for part in blocks:
            weights = None if self._row_weights is None else self._row_weights[part]
            block = self._minus_pilots(part, around, buffer)
            # the scatter first: a product reads rows from memory faster than a sum does
            if self.keep == "pooled":
                # rows whose squares carry the weights of rows and classes
                factors = weights if self._even else self.emphasis[codes[part]] * (1.0 if weights is None else weights)
                rows = block
                if factors is not None:
                    rows = block * np.sqrt(factors)[:, None].astype(block.dtype, copy=False)
                scatter += np.matmul(rows.T, rows, out=squares)  # numpy computes one triangle and copies it
            elif self.keep == "each":
                _add_each(scatter, block, codes[part], weights)
            else:
                scatter += np.vdot(block, block)
            if n_classes <= FEW_CLASSES:
                sums += _class_sums(block, codes[part], weights, n_classes)
            else:
                seen, places = np.unique(codes[part], return_inverse=True)
                sums[seen] += _class_sums(block, places, weights, len(seen))
        self._buffers.append(buffer)
        return sums, scatter

    def _minus_pilots(self, part: slice, pilots: NDArray[Any] | None, buffer: NDArray[Any]) -> NDArray[Any]:
        """Return rows − pilots in a buffer that stays in the cache. Do not modify it: it may be the table."""
        block = dense_block(self.rows.X, part)
        if self.exponent:
            block = np.ldexp(block.astype(self.dtype, copy=False), -self.exponent)
        if pilots is None and block.dtype == self.dtype and block.flags.c_contiguous:
            return block
        out = buffer[: len(block)]
        if pilots is None:
            np.copyto(out, block)
            return out
        if len(pilots) == 1:
            return np.subtract(block, pilots, out=out)
        np.take(pilots, self.rows.codes[part], axis=0, out=out, mode="clip")
        return np.subtract(block, out, out=out)

    def _sum_sparse(self) -> None:
        """Sum the class means of sparse rows around the origin; subtracting a pilot would make the rows dense."""
        X, codes, n_classes = self.rows.X, self.rows.codes, self.rows.n_classes
        largest = float(np.abs(X.data).max(initial=0.0))
        if not np.isfinite(largest):
            require_finite(X)
        if largest > 0 and not 1e-75 < largest < 1e75:
            self.exponent = max(int(np.frexp(largest)[1]), MIN_EXPONENT)
            X = X.astype(np.float64) * 0.5**self.exponent
        sums = _class_sums(X, codes, self._row_weights, n_classes)
        self.remainders = sums / np.where(self.weights > 0, self.weights, 1.0)[:, None]
        self.pilots = np.zeros_like(self.remainders)

    # ------------------------------------------------------------------ numbers too large or too small to be squared

    def _leaves_range(self) -> bool:
        low, high = SAFE[self.dtype]
        if self._size >= low or not self._size < high:
            return not self._size < high
        around = self.pilots.astype(self.dtype, copy=False)
        buffer = np.empty((self._longest, self.rows.shape[1]), self.dtype)
        return any(self._minus_pilots(part, around, buffer).any() for part in self._blocks)

    def _rescale(self) -> None:
        """Choose the power of two at which the largest deviation is about 1 (and no entry overflows)."""
        blocks = (dense_block(self.rows.X, part) for part in self._blocks)
        ends = [(block.min(axis=0), block.max(axis=0)) for block in blocks]
        least, most = np.min([low for low, _ in ends], axis=0), np.max([high for _, high in ends], axis=0)
        deviation = float((most - least).max())
        largest = float(max(np.abs(least).max(), np.abs(most).max()))
        wanted = np.frexp(deviation if 0 < deviation < np.inf else largest)[1]
        self.exponent = max(int(wanted), int(np.frexp(largest)[1]) - 1000, MIN_EXPONENT)
        self.known = None  # its units no longer apply
        self.dtype, self._buffers = np.dtype(np.float64), []  # single precision ends at 1e38


def first_rows(codes: NDArray[np.intp], n_classes: int) -> NDArray[np.intp]:
    """Return the position of the first row of each class (0 for a class without rows)."""
    first = np.zeros(n_classes, dtype=np.intp)
    first[codes[::-1]] = np.arange(len(codes) - 1, -1, -1)
    return first


def _class_sums(rows: Any, codes: NDArray[np.intp], weights: Array | None, n_classes: int) -> Array:
    """Return the weighted sum of the (dense or sparse) rows of each class."""
    if n_classes == 1 and weights is None and not sp.issparse(rows):
        return rows.sum(axis=0, dtype=rows.dtype, keepdims=True).astype(np.float64, copy=False)
    # one nonzero per column: faster than a dense product, and the rows stay in the cache, unlike with sums of columns
    if sp.issparse(rows):  # a whole table: many rows, so sum in doubles and do not cache an array of that length
        dtype = np.dtype(np.float64)
        members = _one_of_each.__wrapped__(n_classes, len(codes), dtype)
    else:
        dtype = rows.dtype
        members = copy(_one_of_each(n_classes, len(codes), dtype))
    members.indices = codes
    if weights is not None:
        members.data = weights.astype(dtype, copy=False)
    sums = members @ rows
    return (sums.toarray() if sp.issparse(sums) else sums).astype(np.float64, copy=False)


@lru_cache(maxsize=16)
def _one_of_each(n_classes: int, n_rows: int, dtype: np.dtype[Any]) -> sp.csc_array:
    """Return an indicator matrix with every row in class 0, to be copied; building one takes as long as a product."""
    where = np.zeros(n_rows, dtype=np.intp), np.arange(n_rows + 1)
    return sp.csc_array((np.ones(n_rows, dtype), *where), shape=(n_classes, n_rows))


def _add_each(scatters: Any, rows: NDArray[Any], codes: NDArray[np.intp], weights: Array | None) -> None:
    rows = rows if weights is None else rows * np.sqrt(weights)[:, None].astype(rows.dtype, copy=False)
    for c in np.unique(codes):
        members = rows[codes == c]
        scatters[c] += members.T @ members
