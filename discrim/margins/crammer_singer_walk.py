"""Conjugate gradients on a face of the dual's feasible set, and the search along the way they find.

Sweeps find out which duals are zero or at their bound soon, but then creep where rows are nearly dependent. With those
held, the dual is a plain quadratic in the free ones, and conjugate gradients, scaled by 1/‖x̃_n‖², walk it up in far
fewer passes. They stop as soon as their path leaves the feasible set in more than a few places. Then every row follows
the walk until it meets a bound, and all of them until the dual is largest. More free duals than there are dimensions
leave directions in which the dual is linear: along these the same search runs into bounds, one row after the other,
until the free duals are few enough.
"""

from __future__ import annotations

import numpy as np
from numba import njit
from numpy.typing import NDArray

from discrim.margins.crammer_singer_face import Face, combine, face_gradient, face_of, inner, square_of
from discrim.margins.crammer_singer_kernels import Problem, Room, Weights
from discrim.margins.crammer_singer_rows import add_totals, to_gradient
from discrim.margins.row_kernels import dense_add, dense_products, sparse_add, sparse_products

OUTSIDE = 0.1  # share of free duals that may leave the feasible set before the walk stops
REDUCTION = 0.01  # of the squared gradient at which the face counts as solved
Floats = NDArray[np.float64]
SEARCH_PASSES = 2  # what the search along the walk costs


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
def _combination(target, factor, source, share):  # type: ignore[no-untyped-def]
    """target = factor·target + share·source"""
    for k in range(target.shape[0]):
        target[k] = factor * target[k] + share * source[k]


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
def _conjugate_gradients(problem, A, face, residual, walk, direction, curved, most, image, spare):  # type: ignore[no-untyped-def]
    """Towards the optimum of the face, bounds ignored, from minus the gradient; how many steps it took."""
    rows, start, classes = face
    size = _scaled(problem.square, rows, start, residual, direction)
    goal = REDUCTION * size
    steps = 0
    while steps < most and size > goal:
        steps += 1
        combine(problem, face, direction, image, spare)
        face_gradient(problem, face, image, 0.0, curved, spare)
        curvature = inner(direction, curved)
        if curvature <= 0.0:
            break
        _combination(walk, 1.0, direction, size / curvature)
        _combination(residual, 1.0, curved, -size / curvature)
        if _n_outside(problem.codes, problem.bound, A, rows, start, classes, walk) > OUTSIDE * walk.shape[0]:
            break
        new_size = _scaled(problem.square, rows, start, residual, curved)
        _combination(direction, new_size / size, curved, 1.0)
        size = new_size
    return steps


@njit(cache=True)
def _limits(codes, bounds, A, rows, start, classes, walk, out):  # type: ignore[no-untyped-def]
    """The share of the walk after which each row meets a bound."""
    for f in range(rows.shape[0]):
        i = rows[f]
        out[f] = np.inf
        for t in range(start[f], start[f + 1]):
            y = classes[t]
            if walk[t] > 0.0:
                out[f] = min(out[f], ((bounds[i] if y == codes[i] else 0.0) - A[i, y]) / walk[t])


@njit(cache=True)
def _scores_of(problem, weights, i, classes, low, count, out, spare):  # type: ignore[no-untyped-def]
    """out[k] = η_y·x̃_i for y = classes[low + k]."""
    zero = np.intp(0)
    if problem.indptr.shape[0] == 0:
        dense_products(problem.values, i, weights.table, classes, low, count, out, zero)
    else:
        indices, indptr = problem.indices, problem.indptr
        sparse_products(problem.values, indices, indptr, i, weights.table, classes, low, count, out, zero, spare)
    own_constant = problem.constant - problem.unit * problem.along[i]
    code, unit = problem.codes[i], problem.unit
    to_gradient(out, zero, classes, low, count, code, 0.0, unit, own_constant, weights.totals, weights.offset)


@njit(cache=True)
def _add_steps(problem, weights, i, classes, low, count, steps, spare):  # type: ignore[no-untyped-def]
    zero = np.intp(0)
    if problem.indptr.shape[0] == 0:
        dense_add(problem.values, i, weights.table, classes, low, count, steps, zero)
    else:
        indices, indptr = problem.indices, problem.indptr
        sparse_add(problem.values, indices, indptr, i, weights.table, classes, low, count, steps, zero, spare)
    add_totals(weights.totals, weights.offset, classes, low, count, steps, zero, problem.along[i])


@njit(cache=True)
def _stop_row(problem, face, f, gradient, walk, t, moving, stopped, room):  # type: ignore[no-untyped-def]
    """Take row f of the face from the moving rows to the stopped ones; what slope and curvature lose by it."""
    rows, start, classes = face
    by_moving, by_stopped, steps, spare, _ = room
    i, low, count = rows[f], start[f], start[f + 1] - start[f]
    _scores_of(problem, moving, i, classes, low, count, by_moving, spare)
    _scores_of(problem, stopped, i, classes, low, count, by_stopped, spare)
    slope = 0.0
    curvature = 0.0
    for k in range(count):
        step = walk[low + k]
        slope += step * (gradient[low + k] + t * by_moving[k] + by_stopped[k])
        curvature += step * (2 * by_moving[k] - problem.square[i] * step)
        steps[k] = -step
    _add_steps(problem, moving, i, classes, low, count, steps, spare)
    for k in range(count):
        steps[k] *= -t
    _add_steps(problem, stopped, i, classes, low, count, steps, spare)
    return slope, curvature


@njit(cache=True)
def _bent_search(problem, face, gradient, walk, limits, order, slope, curvature, moving, stopped, room, shares):  # type: ignore[no-untyped-def]
    """How far each row goes along the walk if it stops where it meets a bound, and all stop where the dual is largest.

    Between two such stops the dual is a quadratic in the share t of the walk. `moving` holds the weights of the rows
    that still move, `stopped` those that the others have brought, so that the present weights are those at the start
    + t·moving + stopped.
    """
    t = 0.0
    for f in order:
        if slope >= 0.0 or limits[f] >= 1.0 or slope + (limits[f] - t) * curvature >= 0.0:
            break
        slope += (limits[f] - t) * curvature
        t = limits[f]
        less_slope, less_curvature = _stop_row(problem, face, f, gradient, walk, t, moving, stopped, room)
        slope -= less_slope
        curvature -= less_curvature
    if slope < 0.0:
        t = min(1.0, t - slope / curvature) if curvature > 0.0 else 1.0
    for f in order:
        shares[f] = min(t, limits[f])


@njit(cache=True)
def _steps_of(codes, bounds, A, rows, start, classes, walk, shares, out):  # type: ignore[no-untyped-def]
    """The steps to there, exactly to the bounds that are met."""
    for f in range(rows.shape[0]):
        i = rows[f]
        for t in range(start[f], start[f + 1]):
            y = classes[t]
            room = (bounds[i] if y == codes[i] else 0.0) - A[i, y]
            out[t] = shares[f] * walk[t]
            if out[t] >= room * (1 - 1e-12):
                out[t] = room


@njit(cache=True)
def _advance(codes, bounds, A, rows, start, classes, steps, length):  # type: ignore[no-untyped-def]
    for f in range(rows.shape[0]):
        i = rows[f]
        for t in range(start[f], start[f + 1]):
            y = classes[t]
            A[i, y] = min(A[i, y] + length * steps[t], bounds[i] if y == codes[i] else 0.0)


def walk_face(
    problem: Problem, weights: Weights, A: Floats, live: NDArray[np.intp], most: int, image: Weights, room: Room
) -> tuple[int, float, int]:
    """One walk on the face. Returns passes taken, gain of the dual, and products.

    `image` is room for weights on the way. (Not compiled as a whole: the parts are, and take nearly all the time.)
    """
    face = face_of(problem, A, live)
    n_free = len(face.classes)
    if n_free == 0:
        return 0, 0.0, 0
    gradient, steps, curved = (np.empty(n_free) for _ in range(3))
    face_gradient(problem, face, weights, 1.0, gradient, room.spare)
    walk = np.zeros(n_free)
    passes = _conjugate_gradients(problem, A, face, -gradient, walk, steps, curved, most, image, room.spare)
    passes += SEARCH_PASSES
    _search(problem, A, face, gradient, walk, image, curved, room, steps)
    slope, square = float(gradient @ steps), square_of(problem, face, steps, image, curved, room.spare)
    if slope >= 0.0:
        return passes, 0.0, 2 * passes * n_free
    length = 1.0 if -slope >= square * (1 - 1e-6) else -slope / square
    rows, start, classes = face
    _advance(problem.codes, problem.bound, A, rows, start, classes, steps, length)
    for target, source in zip(weights, image, strict=True):
        _combination(target.reshape(-1), 1.0, source.reshape(-1), length)
    return passes, -length * slope - 0.5 * length**2 * square, 2 * passes * n_free


def _search(
    problem: Problem,
    A: Floats,
    face: Face,
    gradient: Floats,
    walk: Floats,
    moving: Weights,
    curved: Floats,
    room: Room,
    steps: Floats,
) -> None:
    """The steps along the walk from bound to bound."""
    rows, start, classes = face
    limits, shares = np.empty(len(rows)), np.empty(len(rows))
    _limits(problem.codes, problem.bound, A, rows, start, classes, walk, limits)
    curvature = square_of(problem, face, walk, moving, curved, room.spare)
    stopped = Weights(*(np.zeros_like(part) for part in moving))
    order, slope = np.argsort(limits, kind="stable"), float(gradient @ walk)
    _bent_search(problem, face, gradient, walk, limits, order, slope, curvature, moving, stopped, room, shares)
    _steps_of(problem.codes, problem.bound, A, rows, start, classes, walk, shares, steps)
