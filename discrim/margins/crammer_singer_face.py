"""The face of the dual's feasible set that the present duals lie in: which duals are free, and the dual along them.

A dual is free if it is below its bound. In each row the free ones move while they sum to the same, so a face is the
set of rows with two or more of them, and the dual on it a plain quadratic.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

from discrim.margins.crammer_singer_kernels import clear
from discrim.margins.crammer_singer_rows import add_totals, to_gradient
from discrim.margins.row_kernels import dense_add, dense_products, sparse_add, sparse_products


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
def combine(problem, face, steps, weights, spare):  # type: ignore[no-untyped-def]
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
def face_gradient(problem, face, weights, loss, out, spare):  # type: ignore[no-untyped-def]
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
def inner(a, b):  # type: ignore[no-untyped-def]
    total = 0.0
    for k in range(a.shape[0]):
        total += a[k] * b[k]
    return total


@njit(cache=True)
def square_of(problem, face, steps, image, curved, spare):  # type: ignore[no-untyped-def]
    """‖Σ steps x̃‖² as steps·(its gradient): no difference of large numbers, unlike the norm of the weights."""
    combine(problem, face, steps, image, spare)
    face_gradient(problem, face, image, 0.0, curved, spare)
    return inner(steps, curved)
