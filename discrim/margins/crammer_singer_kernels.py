"""Compiled loops of the Crammer–Singer dual over rows: a sweep, and a look at all of them.

With x̃ = (x − μ)/s and a constant 1 behind it for the intercept, the weights are η = Aᵀx̃, and a row's gradient is

    G_y = η_y·x̃_n + 1[y ≠ y_n],   η_y·x̃_n = (V_y·x_n − m_y − a_y μ·x_n)/s² + a_y (1 + ‖μ‖²/s²)

with V = AᵀX, a = Aᵀ1, m = Vμ, so that a centred sparse table is never formed. Two kinds of shrinking keep sweeps short:
classes whose α is 0 and whose G is below that of every class that takes part are left out of a row, and rows that lie
in a corner of their simplex with nothing pulling them out of it are left out of the sweep. `screen` looks at
everything again.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

from discrim.margins.crammer_singer_rows import (
    add_totals,
    four_rows,
    is_largest,
    is_settled,
    pulls_of,
    row_state,
    shrink_row,
    sort_descending,
    take_level,
    to_gradient,
    water_level,
)
from discrim.margins.row_kernels import dense_add, dense_products, sparse_add, sparse_products


class Problem(NamedTuple):
    """The table (see row_kernels) and what the subproblem of each row needs to know."""

    values: NDArray
    indices: NDArray[np.uint32]
    indptr: NDArray[np.int64]
    codes: NDArray[np.intp]
    bound: NDArray[np.float64]  # C_n
    square: NDArray[np.float64]  # ‖x̃_n‖², with the 1 of the intercept
    along: NDArray[np.float64]  # μ·x_n
    unit: float  # 1/s²
    constant: float  # ‖μ‖²/s², plus 1 where there is an intercept


class Weights(NamedTuple):
    """Σ A x, Σ A and (Σ A x)·μ of each class."""

    table: NDArray[np.float64]
    totals: NDArray[np.float64]
    offset: NDArray[np.float64]


class Room(NamedTuple):
    """Scratch space of one row."""

    gradient: NDArray[np.float64]
    ordered: NDArray[np.float64]
    steps: NDArray[np.float64]
    spare: NDArray[np.float64]
    everyone: NDArray[np.uint32]  # all classes in order


class Active(NamedTuple):
    """`classes[n·C : n·C + counts[n]]` take part in row n; rows order[:k] take part in the sweep."""

    classes: NDArray[np.uint32]
    counts: NDArray[np.intp]
    order: NDArray[np.intp]


# Loops over rows unpack their tuples first, since every look into one counts a reference. Zeros are handed on as
# np.intp(0), since a literal 0 would be another type and every function compiled once more.


@njit(cache=True)
def shuffle(order, count, seed):  # type: ignore[no-untyped-def]
    """Fisher–Yates by xorshift; `seed` keeps the state."""
    state = seed[0]
    for k in range(count - 1, 0, -1):
        state ^= state << np.uint64(13)
        state ^= state >> np.uint64(7)
        state ^= state << np.uint64(17)
        j = np.int64(state % np.uint64(k + 1))
        order[k], order[j] = order[j], order[k]
    seed[0] = state


@njit(cache=True)
def sweep(problem, weights, A, active, n_open, seed, room):  # type: ignore[no-untyped-def]
    """Solve each open row in turn, in random order. Returns rows still open, gap met on the way, gain, products."""
    values, indices, indptr, codes, bounds, squares, along, unit, constant = problem
    table, totals, offset = weights
    classes, counts, order = active
    gradient, ordered, steps, spare, _ = room
    dense = indptr.shape[0] == 0
    n_classes, zero = A.shape[1], np.intp(0)
    shuffle(order, n_open, seed)
    gap = 0.0
    gain = 0.0
    work = 0
    k = 0
    while k < n_open:
        i = order[k]
        code, bound, square, start, count = codes[i], bounds[i], squares[i], i * n_classes, counts[i]
        if dense:
            dense_products(values, i, table, classes, start, count, gradient, zero)
        else:
            sparse_products(values, indices, indptr, i, table, classes, start, count, gradient, zero, spare)
        own_constant = constant - unit * along[i]
        to_gradient(gradient, zero, classes, start, count, code, 1.0, unit, own_constant, totals, offset)
        work += count
        top, floor, own, row_gap = row_state(A, i, code, bound, classes, start, count, gradient)
        gap += row_gap
        count = shrink_row(A, i, code, classes, start, count, gradient, floor)
        counts[i] = count
        if is_settled(count, A[i, code], bound, own, floor):
            n_open -= 1
            order[k], order[n_open] = order[n_open], i
            continue
        k += 1
        if top <= floor:
            continue
        pull = pulls_of(A, i, code, square, classes, start, count, gradient, ordered)
        sort_descending(ordered, count - 1)
        level, full = water_level(ordered, count - 1, pull, square * bound)
        gain += take_level(A, i, code, bound, square, classes, start, count, gradient, ordered[0], level, full, steps)
        if dense:
            dense_add(values, i, table, classes, start, count, steps, zero)
        else:
            sparse_add(values, indices, indptr, i, table, classes, start, count, steps, zero, spare)
        add_totals(totals, offset, classes, start, count, steps, zero, along[i])
        work += count
    return n_open, gap, gain, work


@njit(cache=True)
def screen(problem, weights, A, rows, active, room):  # type: ignore[no-untyped-def]
    """Look at every class of every row. Returns rows to open, Σ C_n ξ_n, Σ_n A[n, y_n], and the gap."""
    values, indices, indptr, codes, bounds, squares, along, unit, constant = problem
    table, totals, offset = weights
    classes, counts, order = active
    gradient, _, _, spare, everyone = room
    n_classes, zero = A.shape[1], np.intp(0)
    hinge = 0.0
    total = 0.0
    gap = 0.0
    n_open = 0
    together = np.empty((4, n_classes))
    last = rows.shape[0] - 1
    for k in range(rows.shape[0]):
        i = rows[k]
        code, bound, start = codes[i], bounds[i], i * n_classes
        if indptr.shape[0] > 0:
            sparse_products(values, indices, indptr, i, table, everyone, zero, n_classes, gradient, zero, spare)
        else:
            if k % 4 == 0:  # the last row stands in for those there are not
                four_rows(
                    values, i, rows[min(k + 1, last)], rows[min(k + 2, last)], rows[min(k + 3, last)], table, together
                )
            for y in range(n_classes):
                gradient[y] = together[k % 4, y]
        own_constant = constant - unit * along[i]
        to_gradient(gradient, zero, everyone, zero, n_classes, code, 1.0, unit, own_constant, totals, offset)
        if A[i, code] == 0.0 and is_largest(gradient, code, n_classes):
            continue  # most rows: far from their margin, without loss and without duals
        top, floor, own, row_gap = row_state(A, i, code, bound, everyone, zero, n_classes, gradient)
        hinge += bound * (top - own)
        total += A[i, code]
        gap += row_gap
        for y in range(n_classes):
            classes[start + y] = y
        counts[i] = shrink_row(A, i, code, classes, start, n_classes, gradient, floor)
        if squares[i] > 0.0 and not is_settled(counts[i], A[i, code], bound, own, floor):
            order[n_open] = i
            n_open += 1
    return n_open, hinge, total, gap


@njit(cache=True)
def collect(problem, weights, A, rows, room):  # type: ignore[no-untyped-def]
    """Weights from the duals, from scratch."""
    values, indices, indptr, codes, _, _, along, _, _ = problem
    table, totals, offset = weights
    _, _, steps, spare, everyone = room
    n_classes, zero = A.shape[1], np.intp(0)
    clear(table, totals, offset)
    for i in rows:
        if A[i, codes[i]] == 0.0:
            continue
        for y in range(n_classes):
            steps[y] = A[i, y]
        if indptr.shape[0] == 0:
            dense_add(values, i, table, everyone, zero, n_classes, steps, zero)
        else:
            sparse_add(values, indices, indptr, i, table, everyone, zero, n_classes, steps, zero, spare)
        add_totals(totals, offset, everyone, zero, n_classes, steps, zero, along[i])


@njit(cache=True)
def clear(table, totals, offset):  # type: ignore[no-untyped-def]
    for j in range(table.shape[0]):
        for k in range(table.shape[1]):
            table[j, k] = 0.0
    for y in range(totals.shape[0]):
        totals[y] = 0.0
        offset[y] = 0.0
