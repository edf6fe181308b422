"""Nearest enemies: for each row the nearest rows of another class, and the pairs they form.

    D(i, j) = Σ_k (x_ik − x_jk)²,    N(i, c) = the rows of class c with the smallest D(i, ·)

D is summed in feature order in float64 from the differences. The result equals this definition for every row, because
the fast search (`enemy_search`) excludes only rows that are certainly farther.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from discrim.core.enemy_search import EnemyMatches, search_enemies
from discrim.core.spread import Pairs
from discrim.core.svm.identical_rows import equal_rows

Ints = NDArray[np.intp]
Floats = NDArray[np.float64]
TIES = ("share", "all", "lowest")


def nearest_enemies(X: Any, codes: Ints, n_classes: int, *, enemies: str = "each") -> Ints:
    """Return the nearest row of each other class, or of any other class; ties go to the lowest row.

    X : dense float64 or float32 array of any layout, or a scipy CSR matrix, which stays sparse; never modified.
    codes : class number 0..n_classes − 1 of each row.
    enemies : "each" returns (n, n_classes), −1 for a row's own class and for classes without rows;
        "any" returns (n, 1), −1 if there is no other class.
    """
    nearest = np.full((len(codes), n_classes if enemies == "each" else 1), -1)
    for matches in search_enemies(X, codes, n_classes, each=enemies == "each"):
        lowest = _lowest(matches, codes, n_classes, each=enemies == "each")
        slot = codes[matches.enemy[lowest]] if enemies == "each" else 0
        nearest[matches.finder[lowest], slot] = matches.enemy[lowest]
    return nearest


def enemy_pairs(
    X: Any,
    codes: Ints,
    n_classes: int,
    *,
    weights: Floats | None = None,
    enemies: str = "each",
    ties: str = "share",
    max_pairs: int | None = None,
) -> Pairs:
    """Return the pairs {i, j} in which one row is a nearest enemy of the other, each once; equal rows count as one.

    weights : w, the number of times each row occurs, above 0; integers for ties="lowest".
    ties : how a row divides its weight between t equally near enemies (counted with their weights). "share": 1/t each,
    and
        a pair found from both sides gets the larger share; "all": 1 each; "lowest": 1 to the lowest row only. A pair
        thus weighs w_i w_j max(1/t_i, 1/t_j), w_i w_j, or w_i (w_i + w_j − 1 if found from both sides), as if rows were
        repeated.
    max_pairs : number of pairs above which a MemoryError is raised.
    """
    groups = equal_rows(X, codes)
    first = np.sort(groups.first)  # keeps ties in favour of the lowest row
    w = np.bincount(groups.first[groups.group], weights, minlength=len(codes)).astype(np.float64)[first]
    if len(first) < len(codes):
        X, codes = X[first], codes[first]
    parts, total = [], 0
    for matches in search_enemies(X, codes, n_classes, each=enemies == "each"):
        parts.append(_pairs(matches, w, codes, n_classes, ties, each=enemies == "each"))
        total += len(parts[-1].left)
        if max_pairs is not None and total > max_pairs:
            raise MemoryError(f"more than {max_pairs:,} pairs of nearest enemies")
    left, right, weight = (
        np.concatenate([getattr(part, name) for part in parts] or [np.empty(0, dtype)])
        for name, dtype in (("left", np.intp), ("right", np.intp), ("weight", np.float64))
    )
    return Pairs(first[left], first[right], weight)


def _pairs(matches: EnemyMatches, w: Floats, codes: Ints, n_classes: int, ties: str, *, each: bool) -> Pairs:
    """Return the pairs with the weights of `enemy_pairs`, each once even if found from both sides."""
    if ties == "lowest":
        lowest = _lowest(matches, codes, n_classes, each=each)
        finder, enemy = matches.finder[lowest], matches.enemy[lowest]
        weight = w[finder]
    else:
        finder, enemy = matches.finder, matches.enemy
        weight = w[finder] * w[enemy]
        if ties == "share":
            cell = finder * n_classes + codes[enemy] if each else finder
            _, cell_number = np.unique(cell, return_inverse=True)
            weight /= np.bincount(cell_number, w[enemy])[cell_number]
    key = np.minimum(finder, enemy) * len(w) + np.maximum(finder, enemy)
    order = np.argsort(key, kind="stable")
    key, weight = key[order], weight[order]
    # A pair found from both sides has two adjacent entries; merge the second into the first.
    start = np.flatnonzero(np.diff(key, prepend=-1))
    sides = np.diff(start, append=len(key))
    if ties == "lowest":
        weight = np.add.reduceat(weight, start) - (sides - 1) if len(start) else weight
    else:
        weight = np.maximum.reduceat(weight, start) if len(start) else weight
    left, right = np.divmod(key[start], len(w))
    return Pairs(left, right, weight)


def _lowest(matches: EnemyMatches, codes: Ints, n_classes: int, *, each: bool) -> Ints:
    """Return the positions of each row's nearest enemy per class; ties go to the lowest row."""
    slot = codes[matches.enemy] if each else np.zeros(len(matches.enemy), dtype=np.intp)
    order = np.lexsort((matches.enemy, matches.D, slot, matches.finder))
    finder, slot = matches.finder[order], slot[order]
    return order[np.flatnonzero((np.diff(finder, prepend=-1) != 0) | (np.diff(slot, prepend=-1) != 0))]
