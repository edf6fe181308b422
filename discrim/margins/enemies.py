"""Nearest enemies: for each row the nearest row of another class, and the pairs they make.

    nearest(i, c) = argmin { D(i, j) : j in class c },   D(i, j) = Σ_k (x_ik − x_jk)²

D is summed in feature order in float64 on the differences, ties go to the lowest row, and the answer equals that
definition on every row: the fast search (`enemy_search`) only ever leaves out what is certainly farther.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray


def nearest_enemies(X: Any, codes: NDArray[np.intp], n_classes: int, *, enemies: str = "each") -> NDArray[np.intp]:
    """The nearest row of each other class, or of any other class.

    X : dense float64 or float32 array of any layout, never written to, or a scipy CSR matrix, never made dense.
    codes : class number 0..n_classes − 1 of each row.
    enemies : "each" gives (n, n_classes), −1 for a row's own class and for classes without rows;
        "any" gives (n, 1), −1 where there is no other class.
    """
    if enemies not in ("each", "any"):
        raise ValueError(f'enemies={enemies!r}, but it can only be "each" or "any". Pass one of these.')
    codes = np.ascontiguousarray(codes, dtype=np.intp)
    if codes.shape != (X.shape[0],):
        raise ValueError(
            f"codes of shape {codes.shape} for {X.shape[0]} rows. Pass one class number for each row of X."
        )
    if codes.size and not 0 <= codes.min() <= codes.max() < n_classes:
        raise ValueError(
            f"codes from {codes.min()} to {codes.max()}, but n_classes={n_classes} allows 0 to {n_classes - 1}. "
            "Number the classes from 0."
        )
    # Here and not above: the search compiles its loops with numba, which `import discrim` must not load.
    from discrim.margins.enemy_search import search_nearest

    return search_nearest(X, codes, n_classes, each=enemies == "each")


@dataclass(frozen=True)
class EnemyPairs:
    """Unordered pairs of rows, left < right, each once, in lexicographic order, with their weights."""

    left: NDArray[np.intp]
    right: NDArray[np.intp]
    weight: NDArray[np.float64]


def enemy_pairs(nearest: NDArray[np.intp], multiplicity: NDArray | None = None) -> EnemyPairs:
    """The pairs {i, j} in which j is a nearest enemy of i or i one of j, each counted once.

    multiplicity : how often each row occurs (integers w). A pair that only row i found weighs w_i, a pair found from
        both sides w_i + w_j − 1: what as many repeated rows would give, since of equal rows only the first is found.
        Rows of multiplicity 0 must be left out beforehand. Without multiplicities each pair weighs 1.
    """
    finder, slot = np.nonzero(nearest >= 0)
    found = nearest[finder, slot]
    left, right = np.minimum(finder, found), np.maximum(finder, found)
    weight = np.ones(finder.size) if multiplicity is None else np.asarray(multiplicity, dtype=float)[finder]
    order = np.lexsort((right, left))
    left, right, weight = left[order], right[order], weight[order]
    # A pair found from both sides stands in two neighbouring entries; fold the second into the first.
    first = np.ones(left.size, dtype=bool)
    first[1:] = (left[1:] != left[:-1]) | (right[1:] != right[:-1])
    start = np.flatnonzero(first)
    sides = np.diff(np.append(start, left.size))
    total = np.add.reduceat(weight, start) if start.size else weight
    return EnemyPairs(left[start], right[start], total - (sides - 1))
