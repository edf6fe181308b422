"""Loops compiled by numba on first use, for work that numpy cannot express."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any

import numba
import numpy as np
from numba.core import event

log = logging.getLogger("discrim")


class _LogCompilation(event.Listener):
    """Listener that logs each compilation at INFO, because compiling takes seconds once per installation."""

    def on_start(self, compile_event: Any) -> None:
        dispatcher = compile_event.data["dispatcher"]
        if dispatcher.py_func.__module__ == __name__:
            log.info("compiling %s, once for each installation", dispatcher.py_func.__name__)

    def on_end(self, compile_event: Any) -> None:
        pass


event.register("numba:compile", _LogCompilation())


def compiled(function: Callable[..., Any]) -> Callable[..., Any]:
    """Decorate a function so that it is compiled on its first call.

    numba caches the code next to the package or in the user's cache folder. If neither is writable (in a container,
    say), every process compiles the function itself. A shared folder such as /tmp would be unsafe to load code from.
    """
    try:
        return numba.njit(cache=True, error_model="numpy")(function)
    except RuntimeError:  # "cannot cache function: no locator available"
        return numba.njit(error_model="numpy")(function)


def part(**options: Any) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Decorate a helper that only compiled functions call; without Python wrappers it compiles faster."""
    only_inside: Any = {"no_cpython_wrapper": True, "no_cfunc_wrapper": True}
    return numba.njit(error_model="numpy", **only_inside, **options)


@compiled
def add_products(indptr, indices, data, first, by_feature, members, values, tile):  # type: ignore[no-untyped-def]
    """Compute tile[i, j] −= 2 x_{first+i}·x_j, with rows i in CSR and rows j in CSC (by_feature, members, values)."""
    for i in range(tile.shape[0]):
        out = tile[i]
        for entry in range(indptr[first + i], indptr[first + i + 1]):
            k = indices[entry]
            factor = -2.0 * data[entry]
            for other in range(by_feature[k], by_feature[k + 1]):
                out[members[other]] += factor * values[other]


# ---------------------------------------------------------------------------------------- the Crammer–Singer dual
#
# One sweep of coordinate descent over the rows; crammer_singer_descent.py does the rest with numpy. A table is passed
# as flat arrays: a dense one as its values in row-major order, with None for `indices` and `indptr`, a sparse one as
# CSR. Numba drops the branch that `is None` excludes, so each kind of table compiles only its own half. The weight
# vectors of a dense table are the rows of a (classes × features) array, which makes each product contiguous in memory.
# Those of a sparse table are the columns of a (features × classes) array, so one fetch has all classes of a feature.
#
# Arrays are indexed by unsigned integers and never sliced: a slice costs as much as a short product, and the check
# for a negative index at every access prevents vectorisation.

# Sums may be reordered, which allows vectorisation. NaN and infinity keep their meaning.
ANY_ORDER = {"reassoc", "contract", "nsz"}
# if fewer than one class in FEW takes part, compute class by class; otherwise all classes at once, contiguously
FEW = 3


@part(fastmath=ANY_ORDER)
def dense_products(values, i, weights, classes, start, count, out):  # type: ignore[no-untyped-def]
    """Compute out[k] = x_i · weights of classes[start + k] for k < count, reading the row once for two classes."""
    width = np.uint64(weights.shape[1])
    base = np.uint64(i) * width
    for k in range(0, count, 2):
        last = k + 1 if k + 1 < count else k
        y, z = classes[start + k], classes[start + last]
        first = 0.0
        second = 0.0
        for j in range(width):
            first += weights[y, j] * values[base + j]
            second += weights[z, j] * values[base + j]
        out[k] = first
        out[last] = second


@part(fastmath=ANY_ORDER)
def dense_add(values, i, weights, classes, start, count, steps):  # type: ignore[no-untyped-def]
    """Add steps[k] · x_i to the weights of classes[start + k] for k < count."""
    width = np.uint64(weights.shape[1])
    base = np.uint64(i) * width
    for k in range(count):
        step = steps[k]
        if step != 0.0:
            y = classes[start + k]
            for j in range(width):
                weights[y, j] += step * values[base + j]


@part(fastmath=ANY_ORDER)
def sparse_products(values, indices, indptr, i, weights, classes, start, count, out, spare):  # type: ignore[no-untyped-def]
    """Compute the same products for a sparse row; `spare` is a buffer with one number per class."""
    t, high = np.uint64(indptr[i]), np.uint64(indptr[i + 1])
    one, two, three, four = np.uint64(1), np.uint64(2), np.uint64(3), np.uint64(4)
    width = np.uint64(weights.shape[1])
    if FEW * count < weights.shape[1]:
        for k in range(count):
            y = classes[start + k]
            total = 0.0
            for s in range(t, high):
                total += weights[indices[s], y] * values[s]
            out[k] = total
        return
    for y in range(width):
        spare[y] = 0.0
    while t + three < high:  # four values of the row per read and write of the sums
        j0, j1, j2, j3 = indices[t], indices[t + one], indices[t + two], indices[t + three]
        x0, x1, x2, x3 = values[t], values[t + one], values[t + two], values[t + three]
        for y in range(width):
            spare[y] += weights[j0, y] * x0 + weights[j1, y] * x1 + weights[j2, y] * x2 + weights[j3, y] * x3
        t += four
    while t < high:
        for y in range(width):
            spare[y] += weights[indices[t], y] * values[t]
        t += one
    for k in range(count):
        out[k] = spare[classes[start + k]]


@part(fastmath=ANY_ORDER)
def sparse_add(values, indices, indptr, i, weights, classes, start, count, steps, spare):  # type: ignore[no-untyped-def]
    """Add steps[k] · x_i to the weights of classes[start + k] for k < count, four adjacent classes at a time."""
    low, high = np.uint64(indptr[i]), np.uint64(indptr[i + 1])
    one, two, three, four = np.uint64(1), np.uint64(2), np.uint64(3), np.uint64(4)
    for y in range(np.uint64(weights.shape[1])):
        spare[y] = 0.0
    for k in range(count):
        spare[classes[start + k]] = steps[k]
    for y in range(np.uint64(0), np.uint64(weights.shape[1]), four):
        s0, s1, s2, s3 = spare[y], spare[y + one], spare[y + two], spare[y + three]
        if s0 != 0.0 or s1 != 0.0 or s2 != 0.0 or s3 != 0.0:
            for t in range(low, high):
                j, x = indices[t], values[t]
                weights[j, y] += s0 * x
                weights[j, y + one] += s1 * x
                weights[j, y + two] += s2 * x
                weights[j, y + three] += s3 * x


@part()
def shared_level(pulls, count, own_at, top, total, sharing):  # type: ignore[no-untyped-def]
    """Return the level t below the top at which the shares add up to the total.

    t solves t·(taken + sharing) = total + Σ_taken depth_y, where depth_y = top − B_y and the taken classes are those
    with depth_y ≤ t. Start with all classes taken and drop the deeper ones, which lowers t, until none is dropped
    (Michelot 1986).
    """
    level = np.inf
    while True:
        filled, taken = total, sharing
        for t in range(count):
            if t != own_at and top - pulls[t] <= level:
                filled += top - pulls[t]
                taken += 1.0
        sunk = filled / taken
        if not sunk < level:
            return level
        level = sunk


@part()
def inspect_row(A, k, code, bound, classes, start, count, gradient):  # type: ignore[no-untyped-def]
    """Return the largest gradient, the smallest among classes that can rise, the row's own, its gap and active classes.

    gap_n = Σ_{y≠y_n} α_n^y (top − G_y) + (C_n − Σα_n)(top − G_{y_n}). Classes with α = 0 and a gradient below the floor
    are moved behind the active ones.
    """
    top = -np.inf
    floor = np.inf
    own = 0.0
    for t in range(count):
        y = classes[start + t]
        g = gradient[t]
        if g > top:
            top = g
        if y == code:
            own = g
        if g < floor and A[k, y] < (bound if y == code else 0.0):
            floor = g
    gap = (bound - A[k, code]) * (top - own)
    t = 0
    while t < count:
        y = classes[start + t]
        if y != code:
            gap -= A[k, y] * (top - gradient[t])
        if y != code and A[k, y] == 0.0 and gradient[t] < floor:
            count -= 1
            classes[start + t] = classes[start + count]
            classes[start + count] = y
            gradient[t] = gradient[count]
        else:
            t += 1
    return top, floor, own, gap, count


@part()
def solve_row(A, k, code, bound, square, classes, start, count, gradient, pulls, steps):  # type: ignore[no-untyped-def]
    """Move row k to the optimum of its subproblem, store its steps and return the gain of the dual.

    The subproblem is min ½q‖A − A_old‖² + G·(A − A_old) subject to Σ_y A_y = 0, A_y ≤ C_n 1[y = y_n]. With
    B = G − qA_old its solution is qα_y = max(0, t − depth_y), depth_y = top − B_y for the classes y ≠ y_n, and
    qΣα = top − t − B_{y_n} if that is at most reach = qC_n, otherwise qΣα = reach. Only differences are used, so
    neither a large C_n nor a tiny q costs digits.
    """
    top = -np.inf
    own_at = 0
    for t in range(count):
        pulls[t] = gradient[t] - square * A[k, classes[start + t]]
        if classes[start + t] == code:
            own_at = t
        elif pulls[t] > top:
            top = pulls[t]
    lead, reach = top - pulls[own_at], square * bound
    level = shared_level(pulls, count, own_at, top, lead, 1.0) if lead > 0.0 else 0.0
    full = lead - level > reach
    if full:
        level = shared_level(pulls, count, own_at, top, reach, 0.0)
    total = 0.0
    for t in range(count):
        y = classes[start + t]
        if y != code:
            depth = level - (top - pulls[t])
            alpha = depth / square if depth > 0.0 else 0.0
            total += alpha
            steps[t] = -alpha - A[k, y]
            A[k, y] = -alpha
    if full or total > bound:
        total = bound
    steps[own_at] = total - A[k, code]
    A[k, code] = total
    gain = 0.0
    for t in range(count):
        gain -= steps[t] * (gradient[t] + 0.5 * square * steps[t])
    return gain


@compiled
def add_rows(values, indices, indptr, rows, steps, weights):  # type: ignore[no-untyped-def]
    """Add Σ_k x_{rows[k]} steps_kᵀ to the weights, for sparse rows."""
    for k in range(len(rows)):
        moves = False
        for y in range(steps.shape[1]):
            moves |= steps[k, y] != 0.0
        if moves:
            for t in range(np.uint64(indptr[rows[k]]), np.uint64(indptr[rows[k] + 1])):
                for y in range(np.uint64(steps.shape[1])):
                    weights[indices[t], y] += steps[k, y] * values[t]


@part()
def shuffle(order, count, seed):  # type: ignore[no-untyped-def]
    """Shuffle order[:count] in place (Fisher–Yates with xorshift)."""
    state = seed[0]
    for k in range(count - 1, 0, -1):
        state ^= state << np.uint64(13)
        state ^= state >> np.uint64(7)
        state ^= state << np.uint64(17)
        j = np.int64(state % np.uint64(k + 1))
        order[k], order[j] = order[j], order[k]
    seed[0] = state


@compiled
def sweep(  # type: ignore[no-untyped-def]
    values, indices, indptr, rows, codes, bounds, squares, mu_products, unit, constant,
    weights, totals, offset, A, classes, counts, order, n_open, seed, buffers, gaps, goal, max_sweeps,
):  # fmt: skip
    """Solve the open rows one by one in random order, and repeat until the sum of their gaps is at most `goal`.

    There are at most `max_sweeps` sweeps. With max_sweeps = 0 the rows are only inspected, in the given order: each
    row's gap and loss are written to `gaps`, and settled rows are closed. Rows order[:n_open] are open. Classes
    classes[k·C : k·C + counts[k]] are active in row k, which is row rows[k] of the table. Return the number of rows
    still open; the gap, the gain of the dual and the number of products of the last sweep; and the number of sweeps.
    """
    n_classes = A.shape[1]
    gradient, pulls, steps, spare = buffers[0], buffers[1], buffers[2], buffers[3]
    done = 0
    while True:
        if max_sweeps > 0:
            shuffle(order, n_open, seed)
        gap, gain = 0.0, 0.0
        work = 0
        at = 0
        while at < n_open:
            k = order[at]
            i, code, bound, start, count = rows[k], codes[k], bounds[k], k * n_classes, counts[k]
            if indices is None:
                dense_products(values, i, weights, classes, start, count, gradient)
            else:
                sparse_products(values, indices, indptr, i, weights, classes, start, count, gradient, spare)
            own_constant = constant - unit * mu_products[k]
            for t in range(count):
                y = classes[start + t]
                score = unit * (gradient[t] - offset[y]) + own_constant * totals[y]
                gradient[t] = score if y == code else score + 1.0
            work += count
            top, floor, own, row_gap, count = inspect_row(A, k, code, bound, classes, start, count, gradient)
            gap += row_gap
            if max_sweeps == 0:
                gaps[0, k] = row_gap
                gaps[1, k] = bound * (top - own)
            counts[k] = count
            # settled for now: only its own class is left, or Σα = C_n in one class and no gradient pulls back
            if count <= 1 or (count == 2 and A[k, code] == bound and own < floor):
                n_open -= 1
                order[at], order[n_open] = order[n_open], k
                continue
            at += 1
            if top <= floor or max_sweeps == 0:
                continue
            gain += solve_row(A, k, code, bound, squares[k], classes, start, count, gradient, pulls, steps)
            if indices is None:
                dense_add(values, i, weights, classes, start, count, steps)
            else:
                sparse_add(values, indices, indptr, i, weights, classes, start, count, steps, spare)
            for t in range(count):
                totals[classes[start + t]] += steps[t]
                offset[classes[start + t]] += steps[t] * mu_products[k]
            work += count
        done += 1
        if done >= max_sweeps or gap <= goal or n_open == 0:
            return n_open, gap, gain, work, done


# ---------------------------------------------------------------------------------------- latent rows of max-margin PCA


@compiled
def settle_rows(scores, shares, gram, gap_goal, max_steps):  # type: ignore[no-untyped-def]
    """Set each row's class shares in place, so that only classes with the highest score have a share.

    A step moves share from the lowest-scoring class that has one to the highest-scoring class, until their scores are
    equal. Moving m from j to i lowers the score of y by m (g_iy − g_jy)/2. `gap_goal` is the duality gap at which a row
    stops.
    """
    n_rows, n_classes = scores.shape
    for n in range(n_rows):
        for _ in range(max_steps):
            top, low = 0, -1
            for y in range(n_classes):
                if scores[n, y] > scores[n, top]:
                    top = y
                if shares[n, y] > 0.0 and (low < 0 or scores[n, y] < scores[n, low]):
                    low = y
            gap = 0.0
            for y in range(n_classes):
                gap += shares[n, y] * (scores[n, top] - scores[n, y])
            if gap <= gap_goal:
                break
            apart = gram[top, top] + gram[low, low] - 2.0 * gram[top, low]
            moved = shares[n, low]
            if apart > 0.0:
                moved = min(moved, 2.0 * (scores[n, top] - scores[n, low]) / apart)
            shares[n, top] += moved
            shares[n, low] -= moved
            for y in range(n_classes):
                scores[n, y] -= 0.5 * moved * (gram[top, y] - gram[low, y])
