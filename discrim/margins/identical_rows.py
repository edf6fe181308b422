"""Rows that are equal, found by a hash of their bits and confirmed number by number.

Equal rows of one class are one row that counts more often. A solver that works on the different rows alone, in the
order of their hashes, depends on the data and not on how often or in which order rows are listed.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

from discrim.margins.row_kernels import Table


class Groups(NamedTuple):
    """`first[g]` is the lowest row of group g, groups in the order of their rows' hashes; `group[i]` that of row i."""

    first: NDArray[np.intp]
    group: NDArray[np.intp]


def equal_rows(table: Table, codes: NDArray[np.intp]) -> Groups:
    """The groups of rows with equal numbers and equal class. −0 equals 0, and a stored zero a missing one."""
    multipliers = np.random.default_rng(0).integers(2**63, size=table.n_features, dtype=np.uint64) * 2 + 1
    hashes = _row_hashes(_bits(table.values), table.indices, table.indptr, multipliers, len(codes))
    order = np.lexsort((codes, hashes))  # stable: within a group the lowest row comes first
    return Groups(*_grouped(table.values, table.indices, table.indptr, codes, hashes, order))


def _bits(values: NDArray[Any]) -> NDArray[Any]:
    return values.view(np.uint64 if values.dtype == np.float64 else np.uint32)


@njit(cache=True)
def _row_hashes(bits, indices, indptr, multipliers, n_rows):  # type: ignore[no-untyped-def]
    """Σ_j multiplier_j · mixed bits of x_ij (mod 2⁶⁴); zeros of either sign add nothing."""
    hashes = np.zeros(n_rows, dtype=np.uint64)
    sign = np.uint64(1) << np.uint64(8 * bits.itemsize - 1)
    dense = indptr.shape[0] == 0
    width = multipliers.shape[0]
    for i in range(n_rows):
        low, high = (i * width, (i + 1) * width) if dense else (indptr[i], indptr[i + 1])
        total = np.uint64(0)
        for t in range(low, high):
            b = np.uint64(bits[t])
            if b != sign:
                column = t - low if dense else np.int64(indices[t])
                # Round numbers end in zero bits, which a product alone would never stir.
                total += (b ^ (b >> np.uint64(29))) * multipliers[column]
        hashes[i] = total
    return hashes


@njit(cache=True)
def _grouped(values, indices, indptr, codes, hashes, order):  # type: ignore[no-untyped-def]
    """First row of each group, group of each row. Within a run of one hash and class, rows meet each group's first."""
    n_rows = order.shape[0]
    group = np.empty(n_rows, dtype=np.intp)
    first = np.empty(n_rows, dtype=np.intp)
    n_groups = 0
    run = 0  # the first group of the present run
    for k in range(n_rows):
        i = order[k]
        if k > 0 and (hashes[i] != hashes[order[k - 1]] or codes[i] != codes[order[k - 1]]):
            run = n_groups
        found = -1
        for g in range(run, n_groups):
            if _equal(values, indices, indptr, i, first[g], n_rows):
                found = g
                break
        if found < 0:
            found = n_groups
            first[n_groups] = i
            n_groups += 1
        group[i] = found
    return first[:n_groups].copy(), group


@njit(cache=True)
def _equal(values, indices, indptr, i, k, n_rows):  # type: ignore[no-untyped-def]
    if indptr.shape[0] == 0:
        width = values.shape[0] // n_rows
        j = 0
        while j < width and values[i * width + j] == values[k * width + j]:
            j += 1
        return j == width
    s, t = indptr[i], indptr[k]
    s_end, t_end = indptr[i + 1], indptr[k + 1]
    while True:
        while s < s_end and values[s] == 0:
            s += 1
        while t < t_end and values[t] == 0:
            t += 1
        if s == s_end or t == t_end:
            return s == s_end and t == t_end
        if indices[s] != indices[t] or values[s] != values[t]:
            return False
        s += 1
        t += 1
