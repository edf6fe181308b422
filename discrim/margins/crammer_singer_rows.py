"""Compiled steps of the Crammer–Singer dual in one row: where it stands, which classes matter, its exact optimum.

Row n has C_n, class y_n, and duals A[n, y] = −α_n^y ≤ 0 for y ≠ y_n, A[n, y_n] = Σ α_n ≤ C_n; G_y is the gradient of
−dual by A[n, y] and q = ‖x̃_n‖² its rate of change. With the other rows held, the row's optimum is

    min_A  ½ q ‖A − A_old‖² + G·(A − A_old)   subject to  Σ_y A_y = 0,  A_y ≤ C_n 1[y = y_n]

a projection, found exactly by sorting B_y = G_y − qA_old,y. The row's part of the duality gap is ≥ 0,

    gap_n = Σ_{y≠y_n} α_n^y (top − G_y) + (C_n − Σα_n)(top − G_{y_n}),   top = max_y G_y

These functions take arrays and call nothing: see row_kernels. `classes[start : start + count]` are those of the row.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from discrim.margins.row_kernels import ANY_ORDER

INSERTION = 32  # up to so many classes are sorted by plain insertion


@njit(cache=True)
def to_gradient(products, at, classes, start, count, code, loss, unit, constant, totals, offset):  # type: ignore[no-untyped-def]
    """η_y·x̃ + loss·1[y ≠ code] in place of the products V_y·x of one row."""
    for k in range(count):
        y = classes[start + k]
        score = unit * (products[at + k] - offset[y]) + constant * totals[y]
        products[at + k] = score if y == code else score + loss


@njit(cache=True)
def add_totals(totals, offset, classes, start, count, steps, at, along):  # type: ignore[no-untyped-def]
    for k in range(count):
        y = classes[start + k]
        totals[y] += steps[at + k]
        offset[y] += steps[at + k] * along


@njit(cache=True)
def is_largest(gradient, code, n_classes):  # type: ignore[no-untyped-def]
    """Whether no class is above the row's own, of all classes in order."""
    own = gradient[code]
    above = 0
    for y in range(n_classes):
        above += gradient[y] > own
    return above == 0


@njit(cache=True)
def row_state(A, i, code, bound, classes, start, count, gradient):  # type: ignore[no-untyped-def]
    """Largest gradient, smallest among classes that can rise, that of the row's own class, and the row's gap."""
    top = -np.inf
    floor = np.inf
    own = 0.0
    for k in range(count):
        y = classes[start + k]
        g = gradient[k]
        top = max(top, g)
        if y == code:
            own = g
        if A[i, y] < (bound if y == code else 0.0):
            floor = min(floor, g)
    gap = (bound - A[i, code]) * (top - own)
    for k in range(count):
        y = classes[start + k]
        if y != code:
            gap -= A[i, y] * (top - gradient[k])
    return top, floor, own, gap


@njit(cache=True)
def shrink_row(A, i, code, classes, start, count, gradient, floor):  # type: ignore[no-untyped-def]
    """Move classes that do not matter behind the others; the number of those that do."""
    k = 0
    while k < count:
        y = classes[start + k]
        if y != code and A[i, y] == 0.0 and gradient[k] < floor:
            count -= 1
            classes[start + k] = classes[start + count]
            classes[start + count] = y
            gradient[k] = gradient[count]
        else:
            k += 1
    return count


@njit(cache=True)
def is_settled(count, total, bound, own, floor):  # type: ignore[no-untyped-def]
    """No class but its own is left, or Σα = C_n in one class, with nothing pulling back."""
    return count <= 1 or (count == 2 and total == bound and own < floor)


@njit(cache=True)
def pulls_of(A, i, code, square, classes, start, count, gradient, others):  # type: ignore[no-untyped-def]
    """B_y = G_y − qA[i, y]: that of the row's own class (−∞ if it takes no part); `others` are filled with the rest."""
    own = -np.inf
    n_others = 0
    for k in range(count):
        y = classes[start + k]
        pull = gradient[k] - square * A[i, y]
        if y == code:
            own = pull
        else:
            others[n_others] = pull
            n_others += 1
    return own


@njit(cache=True)
def sort_descending(numbers, count):  # type: ignore[no-untyped-def]
    """In place; Shell's gaps where there are many."""
    gap = 1
    while count > INSERTION and 9 * gap < count:
        gap = 3 * gap + 1
    while gap > 0:
        for k in range(gap, count):
            value = numbers[k]
            j = k
            while j >= gap and numbers[j - gap] < value:
                numbers[j] = numbers[j - gap]
                j -= gap
            numbers[j] = value
        gap //= 3


@njit(cache=True)
def water_level(ordered, count, own, reach):  # type: ignore[no-untyped-def]
    """The depth t ≥ 0 below ordered[0] that solves a row, and whether Σα is at its bound.

    minimise ½q‖A‖² + B·A over one row: qα_y = max(0, t − (ordered[0] − B_y)) for y ≠ own, and with own = B_own either
    qΣα = ordered[0] − t − own, if that is within reach = qC_n, or qΣα = reach. `ordered` holds the B_y, y ≠ own, in
    descending order. Only differences enter, so that neither a large C_n nor a tiny q costs digits.
    """
    top = ordered[0]
    lead = top - own
    if lead <= 0.0:
        return 0.0, False
    if lead < np.inf:
        taken = 1
        total = lead
        while taken < count and (taken + 1) * (top - ordered[taken]) < total:
            total += top - ordered[taken]
            taken += 1
        level = total / (taken + 1)
        if lead - level <= reach:
            return level, False
    taken = 1
    total = reach
    while taken < count and taken * (top - ordered[taken]) < total:
        total += top - ordered[taken]
        taken += 1
    return total / taken, True


@njit(cache=True)
def take_level(A, i, code, bound, square, classes, start, count, gradient, top, level, full, steps):  # type: ignore[no-untyped-def]
    """Put row i at the optimum of its subproblem; its steps are kept, and the dual's gain returned."""
    total = 0.0
    own_at = 0
    for k in range(count):
        y = classes[start + k]
        if y == code:
            own_at = k
            continue
        alpha = max(0.0, level - (top - (gradient[k] - square * A[i, y]))) / square
        total += alpha
        steps[k] = -alpha - A[i, y]
        A[i, y] = -alpha
    total = bound if full else min(total, bound)
    steps[own_at] = total - A[i, code]
    A[i, code] = total
    gain = 0.0
    for k in range(count):
        gain -= steps[k] * (gradient[k] + 0.5 * square * steps[k])
    return gain


@njit(cache=True, fastmath=ANY_ORDER)
def four_rows(values, i, j, k, m, weights, out):  # type: ignore[no-untyped-def]
    """out[r, y] = row r of four · weights of class y: a third fewer readings of memory than row by row.

    Every row goes through the same sums wherever it stands, so that its place in the table decides no digit.
    """
    width, two = np.uint64(weights.shape[1]), np.uint64(2)
    n_classes = np.uint64(weights.shape[0])
    a, b, c, d = np.uint64(i) * width, np.uint64(j) * width, np.uint64(k) * width, np.uint64(m) * width
    for y in range(np.uint64(0), n_classes, two):
        z = min(y + np.uint64(1), n_classes - np.uint64(1))
        ay = by = cy = dy = az = bz = cz = dz = 0.0
        for t in range(width):
            u, v = weights[y, t], weights[z, t]
            ay += u * values[a + t]
            az += v * values[a + t]
            by += u * values[b + t]
            bz += v * values[b + t]
            cy += u * values[c + t]
            cz += v * values[c + t]
            dy += u * values[d + t]
            dz += v * values[d + t]
        out[0, y], out[1, y], out[2, y], out[3, y] = ay, by, cy, dy
        out[0, z], out[1, z], out[2, z], out[3, z] = az, bz, cz, dz
