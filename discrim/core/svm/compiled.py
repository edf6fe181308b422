"""The loops that numpy has no words for, compiled by numba when first used, and where their code is cached."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any

import numba
import numpy as np
from numba.core import event

log = logging.getLogger("discrim")


class _SayWhatIsCompiled(event.Listener):
    """Compiling takes seconds, once for each installation: whoever shows the logger "discrim" at INFO can tell why."""

    def on_start(self, told: Any) -> None:
        dispatcher = told.data["dispatcher"]
        if dispatcher.py_func.__module__ == __name__:
            log.info("compiling %s, once for each installation", dispatcher.py_func.__name__)

    def on_end(self, told: Any) -> None:
        pass


event.register("numba:compile", _SayWhatIsCompiled())


def compiled(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return compile a function when it is first called.

    The code is kept beside the package, or in the user's cache folder, or (in a container, say) nowhere: where neither
    can be written to, every process compiles for itself. A shared folder such as /tmp is no place for code to be loaded
    from.
    """
    try:
        return numba.njit(cache=True, error_model="numpy")(function)
    except RuntimeError:  # "cannot cache function: no locator available"
        return numba.njit(error_model="numpy")(function)


def part(**options: Any) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Decorate a part of compiled functions that is never called from outside, so that it compiles sooner."""
    only_inside: Any = {"no_cpython_wrapper": True, "no_cfunc_wrapper": True}
    return numba.njit(error_model="numpy", **only_inside, **options)


@compiled
def add_products(indptr, indices, data, first, by_feature, members, values, tile):  # type: ignore[no-untyped-def]
    """tile[i, j] −= 2 x_{first+i}·x_j, rows i in CSR, rows j by feature, in CSC (by_feature, members, values)."""
    for i in range(tile.shape[0]):
        out = tile[i]
        for entry in range(indptr[first + i], indptr[first + i + 1]):
            k = indices[entry]
            factor = -2.0 * data[entry]
            for other in range(by_feature[k], by_feature[k + 1]):
                out[members[other]] += factor * values[other]


# ---------------------------------------------------------------------------------------- the Crammer–Singer dual
#
# One sweep of coordinate descent over rows (crammer_singer_descent.py does the rest with numpy). A table is handed on
# as flat arrays: a dense one as its numbers row by row, with None for `indices` and `indptr`, a sparse one as CSR.
# Numba leaves out the branch that `is None` rules out, so each kind of table compiles its own half only. Weight vectors
# are the rows of a (classes × features) array for a dense table, so that each product runs along memory, and the
# columns of a (features × classes) array for a sparse one, where all classes of a feature are then one fetch.
#
# Arrays are indexed by unsigned numbers and never sliced: a slice costs as much as a short product, and a signed index
# is asked at every access whether it counts from the end, which keeps loops out of vector registers.

# Sums may be taken in any order, which is what lets them run in vector registers. NaN and infinity keep their meaning.
ANY_ORDER = {"reassoc", "contract", "nsz"}
FEW = 3  # fewer than one class in so many: one by one; otherwise all classes at once, along memory


@part(fastmath=ANY_ORDER)
def dense_products(values, i, weights, classes, start, count, out):  # type: ignore[no-untyped-def]
    """Compute out[k] = x_i · weights of classes[start + k] for k < count, two classes for each reading of the row."""
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
    """Return weights of classes[start + k] += steps[k] · x_i for k < count."""
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
    """Return the same for a sparse row. `spare` has room for a number of each class."""
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
    while t + three < high:  # four numbers of the row for each reading and writing of the sums
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
    """Return weights of classes[start + k] += steps[k] · x_i for k < count, four neighbouring classes at a time."""
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
    """Return the depth below the top of which the shares, with what others take of it, add up to the total.

    t·(taken + sharing) = total + Σ_taken depth_y, depth_y = top − B_y, taken those that are no deeper than t: from all
    of them on, those that lie deeper are left out, and the level sinks, until none does (Michelot 1986).
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
def look_at_row(A, k, code, bound, classes, start, count, gradient):  # type: ignore[no-untyped-def]
    """Return the largest gradient, the smallest of classes that can rise, the own one, the gap, classes that matter.

    gap_n = Σ_{y≠y_n} α_n^y (top − G_y) + (C_n − Σα_n)(top − G_{y_n}). Classes without α and below the floor are moved
    behind the others.
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
    """Return put row k at the optimum of its subproblem; its steps are kept, and the dual's gain returned.

    min ½q‖A − A_old‖² + G·(A − A_old) subject to Σ_y A_y = 0, A_y ≤ C_n 1[y = y_n]. With B = G − qA_old it is
    qα_y = max(0, t − depth_y), depth_y = top − B_y of the classes y ≠ y_n, and either qΣα = top − t − B_{y_n}, if that
    is within reach = qC_n, or qΣα = reach. Only differences enter, so that neither a large C_n nor a tiny q costs
    digits.
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
    """Compute weights += Σ_k x_{rows[k]} steps_kᵀ, of sparse rows."""
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
    """Compute order[:count] in random order: Fisher and Yates, by xorshift."""
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
    values, indices, indptr, rows, codes, bounds, squares, along, unit, constant,
    weights, totals, offset, A, classes, counts, order, n_open, seed, room, gaps, goal, most,
):  # fmt: skip
    """Solve each open row in turn, in random order, again and again until the gap met on the way is at most `goal`.

    At most `most` times. With most = 0 they are only looked at, in the order given, each row's gap and loss going to
    `gaps`, and those that are settled are closed. Rows order[:n_open] are
    open; classes[k·C : k·C + counts[k]] take part in row k, which is row rows[k] of the table. Returns rows still open;
    of the last sweep the gap, the dual's gain and the products taken; the number of sweeps.
    """
    n_classes = A.shape[1]
    gradient, pulls, steps, spare = room[0], room[1], room[2], room[3]
    done = 0
    while True:
        if most > 0:
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
            own_constant = constant - unit * along[k]
            for t in range(count):
                y = classes[start + t]
                score = unit * (gradient[t] - offset[y]) + own_constant * totals[y]
                gradient[t] = score if y == code else score + 1.0
            work += count
            top, floor, own, row_gap, count = look_at_row(A, k, code, bound, classes, start, count, gradient)
            gap += row_gap
            if most == 0:
                gaps[0, k] = row_gap
                gaps[1, k] = bound * (top - own)
            counts[k] = count
            # No class but its own is left, or Σα = C_n in one class, with nothing pulling back: settled for now
            if count <= 1 or (count == 2 and A[k, code] == bound and own < floor):
                n_open -= 1
                order[at], order[n_open] = order[n_open], k
                continue
            at += 1
            if top <= floor or most == 0:
                continue
            gain += solve_row(A, k, code, bound, squares[k], classes, start, count, gradient, pulls, steps)
            if indices is None:
                dense_add(values, i, weights, classes, start, count, steps)
            else:
                sparse_add(values, indices, indptr, i, weights, classes, start, count, steps, spare)
            for t in range(count):
                totals[classes[start + t]] += steps[t]
                offset[classes[start + t]] += steps[t] * along[k]
            work += count
        done += 1
        if done >= most or gap <= goal or n_open == 0:
            return n_open, gap, gain, work, done


# ---------------------------------------------------------------------------------------- latent rows of max-margin PCA


@compiled
def settle_rows(scores, shares, gram, enough, most):  # type: ignore[no-untyped-def]
    """Set each row's share of every class, so that only classes of the highest score have one, in place.

    A step takes from the class of least score, among those with a share, and gives to that of most as much as makes
    them equal; moving m from j to i lowers the score of y by m (g_iy − g_jy)/2. `enough` is a duality gap.
    """
    n_rows, n_classes = scores.shape
    for n in range(n_rows):
        for _ in range(most):
            top, low = 0, -1
            for y in range(n_classes):
                if scores[n, y] > scores[n, top]:
                    top = y
                if shares[n, y] > 0.0 and (low < 0 or scores[n, y] < scores[n, low]):
                    low = y
            gap = 0.0
            for y in range(n_classes):
                gap += shares[n, y] * (scores[n, top] - scores[n, y])
            if gap <= enough:
                break
            apart = gram[top, top] + gram[low, low] - 2.0 * gram[top, low]
            moved = shares[n, low]
            if apart > 0.0:
                moved = min(moved, 2.0 * (scores[n, top] - scores[n, low]) / apart)
            shares[n, top] += moved
            shares[n, low] -= moved
            for y in range(n_classes):
                scores[n, y] -= 0.5 * moved * (gram[top, y] - gram[low, y])
