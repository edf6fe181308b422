"""Conjugate gradients on the face of the dual's feasible set that the present duals lie in.

Sweeps find out which duals are zero or at their bound soon, but then creep where rows are nearly dependent. With
those held, the dual is a plain quadratic in the free ones (in each row those sum to zero), and conjugate gradients,
divided by ‖x̃_n‖², walk it down in far fewer passes. They stop as soon as their path leaves the feasible set in more
than a few places; the point reached is projected back row by row, and the dual is maximised along the way to it, so
that it never falls.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

from discrim.margins.crammer_singer_kernels import clear
from discrim.margins.crammer_singer_rows import add_totals, sort_descending, to_gradient, water_level
from discrim.margins.row_kernels import dense_add, dense_products, sparse_add, sparse_products

OUTSIDE = 0.1  # share of free duals that may leave the feasible set before the walk stops
REDUCTION = 0.01  # of the squared gradient at which the face counts as solved
SHORTER = 0.25  # factor of each shorter trial where the projection spoils the step
TRIALS = 3


class Face(NamedTuple):
    """Free duals, row by row: those of rows[f] are classes[start[f] : start[f + 1]]."""

    rows: NDArray[np.intp]
    start: NDArray[np.intp]
    classes: NDArray[np.uint32]


@njit(cache=True)
def _is_free(A, i, y, code, bound):  # type: ignore[no-untyped-def]
    return A[i, y] < bound if y == code else A[i, y] < 0.0


@njit(cache=True)
def face_of(problem, A, rows):  # type: ignore[no-untyped-def]
    """Rows with two or more free duals."""
    n_rows = 0
    n_free = 0
    free = np.zeros(rows.shape[0], dtype=np.intp)
    for r in range(rows.shape[0]):
        i = rows[r]
        code = problem.codes[i]
        if A[i, code] > 0.0 and problem.square[i] > 0.0:
            for y in range(A.shape[1]):
                free[r] += _is_free(A, i, y, code, problem.bound[i])
        if free[r] >= 2:
            n_rows += 1
            n_free += free[r]
    face = Face(np.empty(n_rows, np.intp), np.zeros(n_rows + 1, np.intp), np.empty(n_free, np.uint32))
    f = 0
    t = 0
    for r in range(rows.shape[0]):
        if free[r] >= 2:
            i = rows[r]
            for y in range(A.shape[1]):
                if _is_free(A, i, y, problem.codes[i], problem.bound[i]):
                    face.classes[t] = y
                    t += 1
            face.rows[f] = i
            f += 1
            face.start[f] = t
    return face


@njit(cache=True)
def _combine(problem, face, steps, weights, spare):  # type: ignore[no-untyped-def]
    """The weights that steps of the free duals add up to."""
    values, indices, indptr, _, _, _, along, _, _ = problem
    rows, start, classes = face
    table, totals, offset = weights
    clear(table, totals, offset)
    for f in range(rows.shape[0]):
        i, low, count = rows[f], start[f], start[f + 1] - start[f]
        if indptr.shape[0] == 0:
            dense_add(values, i, table, classes, low, count, steps, low)
        else:
            sparse_add(values, indices, indptr, i, table, classes, low, count, steps, low, spare)
        add_totals(totals, offset, classes, low, count, steps, low, along[i])


@njit(cache=True)
def _gradient(problem, face, weights, loss, out, spare):  # type: ignore[no-untyped-def]
    """Gradient by the free duals, its mean taken off in each row."""
    values, indices, indptr, codes, _, _, along, unit, constant = problem
    rows, start, classes = face
    table, totals, offset = weights
    for f in range(rows.shape[0]):
        i, low, count = rows[f], start[f], start[f + 1] - start[f]
        if indptr.shape[0] == 0:
            dense_products(values, i, table, classes, low, count, out, low)
        else:
            sparse_products(values, indices, indptr, i, table, classes, low, count, out, low, spare)
        own_constant = constant - unit * along[i]
        to_gradient(out, low, classes, low, count, codes[i], loss, unit, own_constant, totals, offset)
        mean = 0.0
        for t in range(low, low + count):
            mean += out[t] / count
        for t in range(low, low + count):
            out[t] -= mean


@njit(cache=True)
def _scaled(squares, rows, start, residual, out):  # type: ignore[no-untyped-def]
    """out = residual/‖x̃‖²; returns their product."""
    total = 0.0
    for f in range(rows.shape[0]):
        for t in range(start[f], start[f + 1]):
            out[t] = residual[t] / squares[rows[f]]
            total += out[t] * residual[t]
    return total


@njit(cache=True)
def _n_outside(codes, bounds, A, rows, start, classes, walk):  # type: ignore[no-untyped-def]
    outside = 0
    for f in range(rows.shape[0]):
        i = rows[f]
        for t in range(start[f], start[f + 1]):
            y = classes[t]
            outside += A[i, y] + walk[t] > (bounds[i] if y == codes[i] else 0.0)
    return outside


@njit(cache=True)
def _dot(a, b):  # type: ignore[no-untyped-def]
    total = 0.0
    for k in range(a.shape[0]):
        total += a[k] * b[k]
    return total


@njit(cache=True)
def _combination(target, factor, source, share):  # type: ignore[no-untyped-def]
    """target = factor·target + share·source"""
    for k in range(target.shape[0]):
        target[k] = factor * target[k] + share * source[k]


@njit(cache=True)
def _conjugate_gradients(problem, A, face, gradient, most, image, spare):  # type: ignore[no-untyped-def]
    """Towards the optimum of the face, bounds ignored; the walk and how many steps it took."""
    rows, start, classes = face
    walk, residual = np.zeros_like(gradient), np.zeros_like(gradient)
    direction, curved = np.empty_like(gradient), np.empty_like(gradient)
    _combination(residual, 0.0, gradient, -1.0)
    size = _scaled(problem.square, rows, start, residual, direction)
    goal = REDUCTION * size
    steps = 0
    while steps < most and size > goal:
        steps += 1
        _combine(problem, face, direction, image, spare)
        _gradient(problem, face, image, 0.0, curved, spare)
        curvature = _dot(direction, curved)
        if curvature <= 0.0:
            break
        _combination(walk, 1.0, direction, size / curvature)
        _combination(residual, 1.0, curved, -size / curvature)
        if _n_outside(problem.codes, problem.bound, A, rows, start, classes, walk) > OUTSIDE * walk.shape[0]:
            break
        new_size = _scaled(problem.square, rows, start, residual, curved)
        _combination(direction, new_size / size, curved, 1.0)
        size = new_size
    return walk, steps


@njit(cache=True)
def _project(codes, bounds, A, rows, start, classes, walk, scale, ordered, out):  # type: ignore[no-untyped-def]
    """out = (nearest feasible point to A + scale·walk) − A, row by row."""
    for f in range(rows.shape[0]):
        i, low, high = rows[f], start[f], start[f + 1]
        code, bound = codes[i], bounds[i]
        own = -np.inf
        own_at = -1
        others = np.intp(0)
        for t in range(low, high):
            pull = -(A[i, classes[t]] + scale * walk[t])
            if classes[t] == code:
                own = pull
                own_at = t
            else:
                ordered[others] = pull
                others += 1
        sort_descending(ordered, others)
        level, full = water_level(ordered, others, own, bound)
        total = 0.0
        for t in range(low, high):
            y = classes[t]
            if y != code:
                alpha = max(0.0, level - (ordered[0] + A[i, y] + scale * walk[t]))
                total += alpha
                out[t] = -alpha - A[i, y]
        if own_at >= 0:
            out[own_at] = (bound if full else min(total, bound)) - A[i, code]


@njit(cache=True)
def _advance(codes, bounds, A, rows, start, classes, steps, length):  # type: ignore[no-untyped-def]
    for f in range(rows.shape[0]):
        i = rows[f]
        for t in range(start[f], start[f + 1]):
            y = classes[t]
            A[i, y] = min(A[i, y] + length * steps[t], bounds[i] if y == codes[i] else 0.0)


@njit(cache=True)
def _square_of(problem, face, steps, image, curved, spare):  # type: ignore[no-untyped-def]
    """‖Σ steps x̃‖² as steps·(its gradient): no difference of large numbers, unlike the norm of the weights."""
    _gradient(problem, face, image, 0.0, curved, spare)
    return _dot(steps, curved)


@njit(cache=True)
def face_step(problem, weights, A, live, most, image, room):  # type: ignore[no-untyped-def]
    """One walk on the face. Returns passes taken, gain of the dual, and products."""
    face = face_of(problem, A, live)
    rows, start, classes = face
    n_free = classes.shape[0]
    if n_free == 0:
        return 0, 0.0, 0
    gradient = np.empty(n_free)
    steps = np.empty(n_free)
    curved = np.empty(n_free)
    _gradient(problem, face, weights, 1.0, gradient, room.spare)
    walk, passes = _conjugate_gradients(problem, A, face, gradient, most, image, room.spare)
    scale = 1.0
    slope = 0.0
    square = 0.0
    for _ in range(TRIALS):
        _project(problem.codes, problem.bound, A, rows, start, classes, walk, scale, room.ordered, steps)
        _combine(problem, face, steps, image, room.spare)
        slope = _dot(gradient, steps)
        square = _square_of(problem, face, steps, image, curved, room.spare)
        passes += 1
        if slope < 0.0 and -slope > 0.3 * square:
            break
        scale *= SHORTER
    work = 2 * passes * n_free
    if slope >= 0.0 or square <= 0.0:
        return passes, 0.0, work
    length = min(1.0, -slope / square)
    _advance(problem.codes, problem.bound, A, rows, start, classes, steps, length)
    _combination(weights.table.reshape(-1), 1.0, image.table.reshape(-1), length)
    _combination(weights.totals, 1.0, image.totals, length)
    _combination(weights.offset, 1.0, image.offset, length)
    return passes, -length * slope - 0.5 * length * length * square, work
