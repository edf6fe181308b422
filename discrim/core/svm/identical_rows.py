"""Groups of equal rows, found by hashing their bits and confirmed value by value.

Equal rows of one class act as one row with a larger weight. A solver that works on the distinct rows in the order of
their hashes depends on the data only, not on how often or in which order rows are listed.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from discrim.core.row_hash import row_hashes
from discrim.tables.rows import entries_once

BLOCK = 2**16  # values compared at once

Ints = NDArray[np.intp]


class Groups(NamedTuple):
    """Groups of equal rows: `first[g]` is the lowest row of group g, `group[i]` the group of row i; sorted by hash."""

    first: Ints
    group: Ints


def equal_rows(X: Any, codes: Ints) -> Groups:
    """Return the groups of rows with equal values and class; −0 equals 0, and a stored zero equals a missing entry."""
    if sp.issparse(X):
        X = without_zeros(X)
    hashes = row_hashes(X)
    return _grouped(X, codes, hashes, np.lexsort((codes, hashes)))  # stable: the lowest row of a group comes first


def content_order(X: Any, codes: Ints, weights: NDArray[np.float64] | None) -> Ints:
    """Return an order of the rows that depends on their contents and not on their positions (equal rows aside)."""
    hashes = row_hashes(X)
    return np.lexsort((codes, hashes) if weights is None else (weights, codes, hashes))


def without_zeros(X: Any) -> Any:
    """Return X as CSR with sorted, unique columns and no stored zeros; X itself if it has that form."""
    X = entries_once(X)
    if not X.data.all():
        X = X.copy()
        X.eliminate_zeros()
    return X


def _grouped(X: Any, codes: Ints, hashes: NDArray[np.uint64], order: Ints) -> Groups:
    """Return the groups, given an order in which rows with the same hash and class are adjacent."""
    new_run = np.ones(len(order), dtype=bool)
    new_run[1:] = (np.diff(hashes[order]) != 0) | (np.diff(codes[order]) != 0)
    run = np.flatnonzero(new_run)[np.cumsum(new_run) - 1]  # start of each position's run
    first = order[run]
    later = np.flatnonzero(~new_run)
    for place in later[~_are_equal(X, order[later], first[later])].tolist():  # hash collisions: almost never
        before = slice(run[place], place)
        firsts = order[before][order[before] == first[before]]
        first[place] = next((row for row in firsts if _are_equal(X, [order[place]], [row])[0]), order[place])
    is_first = first == order
    group = np.empty(len(order), dtype=np.intp)
    number = np.empty(len(order), dtype=np.intp)
    number[order[is_first]] = np.arange(np.count_nonzero(is_first))
    group[order] = number[first]
    return Groups(order[is_first], group)


def _are_equal(X: Any, left: Any, right: Any) -> NDArray[np.bool_]:
    """Return, for each pair of rows, True if they hold the same values."""
    equal = np.empty(len(left), dtype=bool)
    step = max(1, BLOCK // max(1, X.shape[1])) if not sp.issparse(X) else 2**12
    for start in range(0, len(equal), step):
        part = slice(start, start + step)
        a, b = X[left[part]], X[right[part]]
        equal[part] = np.diff((a != b).indptr) == 0 if sp.issparse(X) else (a == b).all(axis=1)
    return equal
