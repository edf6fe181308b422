"""A 64-bit number made of a row's content: folds that every part of a table agrees on, and groups of equal rows.

    h(x) = f( Σ_j g(bits(x_j) · k_j) )   mod 2⁶⁴

f is the mixing of MurmurHash3, g a step of it, and both leave 0 as it is; the k_j are odd and random; bits(x_j) is the
cell as a little-endian float64, −0 as 0. Single-precision cells and whole numbers count as the double they equal, cells
that a sparse row does not store as 0: the same row has the same hash in every file format, precision and engine. The
order of the columns matters; the order of the rows, their labels and weights do not.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray
from sklearn.model_selection import BaseCrossValidator

from discrim.tables.check_parameters import FOLDS, NOTHING, require, whole
from discrim.tables.rows import entries_once

Hashes = NDArray[np.uint64]
CACHED_CELLS = 2**15  # as many doubles stay next to the processor while they are mixed
GOLDEN = np.uint64(0x9E3779B97F4A7C15)
SEED = (whole(0, "a whole number ≥ 0, which every part of a table can be given"), NOTHING)


def _mixed(values: Hashes) -> Hashes:
    """Apply f in place: every bit of the result depends on every bit of the input; 0 stays 0."""
    for shift, factor in ((33, 0xFF51AFD7ED558CCD), (33, 0xC4CEB9FE1A85EC53)):
        values ^= values >> np.uint64(shift)
        values *= np.uint64(factor)
    values ^= values >> np.uint64(33)
    return values


def _factors(columns: NDArray[np.intp]) -> Hashes:
    """Return k_j, an odd number for each column: the mixed multiples of the golden ratio's bits."""
    return _mixed((columns.astype(np.uint64) + np.uint64(1)) * GOLDEN) | np.uint64(1)


def row_hashes(X: Any) -> Hashes:
    """h of each row of a dense or sparse table."""
    if sp.issparse(X):
        return _sparse_hashes(X)
    hashes = np.empty(len(X), np.uint64)
    factors = _factors(np.arange(X.shape[1]))
    step = max(1, CACHED_CELLS // max(1, X.shape[1]))
    for start in range(0, len(X), step):
        cells = _of_cells(X[start : start + step], factors)
        hashes[start : start + step] = cells.sum(axis=1, dtype=np.uint64)
    return _mixed(hashes)


def _sparse_hashes(X: Any) -> Hashes:
    X = entries_once(X)
    hashes, factors = np.empty(X.shape[0], np.uint64), _factors(np.arange(X.shape[1]))
    step = max(1, CACHED_CELLS * X.shape[0] // max(1, X.nnz))
    for start in range(0, X.shape[0], step):
        ends = X.indptr[start : start + step + 1]
        cells = _of_cells(X.data[ends[0] : ends[-1]], factors[X.indices[ends[0] : ends[-1]]])
        sums = np.concatenate([np.zeros(1, np.uint64), np.cumsum(cells, dtype=np.uint64)])[ends - ends[0]]
        hashes[start : start + step] = sums[1:] - sums[:-1]
    return _mixed(hashes)


def _of_cells(values: NDArray[Any], factors: Hashes) -> Hashes:
    """g(bits · k). The bits of small whole numbers are all in the upper half, from which a product alone loses them."""
    cells = (np.asarray(values, dtype="<f8") + 0.0).view("<u8").astype(np.uint64, copy=False)  # −0 + 0 = +0
    cells ^= cells >> np.uint64(32)
    cells *= factors
    cells ^= cells >> np.uint64(29)
    return cells


def position_hashes(hashes: Hashes, positions: NDArray[np.intp]) -> Hashes:
    """Return hashes of rows and their places: equal rows in another order have others."""
    return _mixed(hashes + positions.astype(np.uint64) * GOLDEN)


def hash_folds(hashes: Hashes, n_folds: int, seed: int) -> NDArray[np.intp]:
    """Return the test fold of each row, 0 … n_folds−1; other seeds draw other folds."""
    drawn = _mixed(hashes + np.uint64((seed + 1) * int(GOLDEN) % 2**64))
    return (drawn % np.uint64(n_folds)).astype(np.intp)


def seed_number(random_state: Any) -> int:
    """Return a seed for all parts of a table: a whole number ≥ 0, 0 for None."""
    require("random_state", random_state, SEED)
    return int(random_state or 0)


class HashKFold(BaseCrossValidator):
    """K folds by a hash of each row's content: parts of a table that never meet put every row into the same fold.

    As `cv` of a reducer, the fit is the one that a stream, Dask or Spark would find, whose folds are these. Equal rows
    are in the same fold, and the order of the rows does not matter. Unlike StratifiedKFold's, folds are of about equal
    size only, and a small class may be missing from one.

    Parameters
    ----------
    n_splits : int, default=5
        Number of folds.
    random_state : int or None, default=None
        Which folds are drawn; None is 0.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from discrim import HashKFold
    >>> X, y = load_iris(return_X_y=True)
    >>> [len(test) for _, test in HashKFold(3).split(X)]
    [48, 53, 49]
    """

    def __init__(self, n_splits: int = 5, *, random_state: int | None = None) -> None:
        self.n_splits = n_splits
        self.random_state = random_state

    def get_n_splits(self, X: Any = None, y: Any = None, groups: Any = None) -> int:
        """Return the number of folds."""
        require("n_splits", self.n_splits, FOLDS)
        return int(self.n_splits)

    def fold_of(self, X: ArrayLike) -> NDArray[np.intp]:
        """Return the test fold of each row."""
        table: Any = X if sp.issparse(X) else np.asarray(X)
        return hash_folds(row_hashes(table), self.get_n_splits(), seed_number(self.random_state))

    def _iter_test_indices(self, X: Any = None, y: Any = None, groups: Any = None) -> Iterator[NDArray[np.intp]]:
        folds = self.fold_of(X)
        return (np.flatnonzero(folds == fold) for fold in range(self.n_splits))


# ---------------------------------------------------------------------- equal rows
#
# Equal rows of one class act as one row with a larger weight. A solver that works on the distinct rows in the order of
# their hashes depends on the data only, not on how often or in which order rows are listed.

COMPARED = 2**16  # values compared at once


class Groups(NamedTuple):
    """Groups of equal rows: `first[g]` is the lowest row of group g, `group[i]` the group of row i; sorted by hash."""

    first: NDArray[np.intp]
    group: NDArray[np.intp]


def equal_rows(X: Any, codes: NDArray[np.intp]) -> Groups:
    """Return the groups of rows with equal values and class; −0 equals 0, and a stored zero equals a missing entry."""
    if sp.issparse(X):
        X = entries_once(X)
        if not X.data.all():
            X = X.copy()
            X.eliminate_zeros()
    hashes = row_hashes(X)
    return _grouped(X, codes, hashes, np.lexsort((codes, hashes)))  # stable: the lowest row of a group comes first


def content_order(X: Any, codes: NDArray[np.intp], weights: NDArray[np.float64] | None) -> NDArray[np.intp]:
    """Return an order of the rows that depends on their contents and not on their positions (equal rows aside)."""
    hashes = row_hashes(X)
    return np.lexsort((codes, hashes) if weights is None else (weights, codes, hashes))


def _grouped(X: Any, codes: NDArray[np.intp], hashes: NDArray[np.uint64], order: NDArray[np.intp]) -> Groups:
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
    step = max(1, COMPARED // max(1, X.shape[1])) if not sp.issparse(X) else 2**12
    for start in range(0, len(equal), step):
        part = slice(start, start + step)
        a, b = X[left[part]], X[right[part]]
        equal[part] = np.diff((a != b).indptr) == 0 if sp.issparse(X) else (a == b).all(axis=1)
    return equal
