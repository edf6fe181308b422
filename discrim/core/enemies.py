"""Nearest enemies: for each row the nearest rows of another class, and the pairs they make.

    D(i, j) = Σ_k (x_ik − x_jk)²,    N(i, c) = the rows of class c with least D(i, ·)

D is summed in feature order in float64 on the differences, and the answer equals that definition on every row: the fast
search (`enemy_search`) only ever leaves out what is certainly farther.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from discrim.core.enemy_search import Found, search_enemies
from discrim.core.margin_vectors import Pairs
from discrim.core.svm.identical_rows import equal_rows

Ints = NDArray[np.intp]
Floats = NDArray[np.float64]
TIES = ("share", "all", "lowest")


def nearest_enemies(X: Any, codes: Ints, n_classes: int, *, enemies: str = "each") -> Ints:
    """Return the nearest row of each other class, or of any other class; ties go to the lowest row.

    X : dense float64 or float32 array of any layout, never written to, or a scipy CSR matrix, never made dense.
    codes : class number 0..n_classes − 1 of each row.
    enemies : "each" gives (n, n_classes), −1 for a row's own class and for classes without rows;
        "any" gives (n, 1), −1 where there is no other class.
    """
    nearest = np.full((len(codes), n_classes if enemies == "each" else 1), -1)
    for found in search_enemies(X, codes, n_classes, each=enemies == "each"):
        lowest = _lowest(found, codes, n_classes, each=enemies == "each")
        slot = codes[found.enemy[lowest]] if enemies == "each" else 0
        nearest[found.finder[lowest], slot] = found.enemy[lowest]
    return nearest


def enemy_pairs(
    X: Any,
    codes: Ints,
    n_classes: int,
    *,
    weights: Floats | None = None,
    enemies: str = "each",
    ties: str = "share",
    most: int | None = None,
) -> Pairs:
    """Return the pairs {i, j} in which one is a nearest enemy of the other, each once; of equal rows the lowest.

    weights : w, how often each row occurs, above 0; for ties="lowest" whole numbers.
    ties : what a row with t equally near enemies (each as often as it occurs) gives them: "share", 1/t each, and a pair
        found from both sides has the larger share; "all", 1 each; "lowest", 1 to the lowest row alone. So a pair
        weighs w_i w_j max(1/t_i, 1/t_j), w_i w_j, or w_i (w_i + w_j − 1 if found from both sides): what as many
        repeated rows would give.
    most : pairs that may be held; MemoryError if there are more.
    """
    groups = equal_rows(X, codes)
    first = np.sort(groups.first)  # so that the lowest is the lowest
    w = np.bincount(groups.first[groups.group], weights, minlength=len(codes)).astype(np.float64)[first]
    if len(first) < len(codes):
        X, codes = X[first], codes[first]
    parts, total = [], 0
    for found in search_enemies(X, codes, n_classes, each=enemies == "each"):
        parts.append(_pairs(found, w, codes, n_classes, ties, each=enemies == "each"))
        total += len(parts[-1].left)
        if most is not None and total > most:
            raise MemoryError(f"more than {most:,} pairs of nearest enemies")
    left, right, weight = (
        np.concatenate([getattr(part, name) for part in parts] or [np.empty(0, dtype)])
        for name, dtype in (("left", np.intp), ("right", np.intp), ("weight", np.float64))
    )
    return Pairs(first[left], first[right], weight)


def _pairs(found: Found, w: Floats, codes: Ints, n_classes: int, ties: str, *, each: bool) -> Pairs:
    """Return what faces each other, from whichever side it was found, with the weights of `enemy_pairs`."""
    if ties == "lowest":
        lowest = _lowest(found, codes, n_classes, each=each)
        finder, enemy = found.finder[lowest], found.enemy[lowest]
        weight = w[finder]
    else:
        finder, enemy = found.finder, found.enemy
        weight = w[finder] * w[enemy]
        if ties == "share":
            cell = finder * n_classes + codes[enemy] if each else finder
            _, of_cell = np.unique(cell, return_inverse=True)
            weight /= np.bincount(of_cell, w[enemy])[of_cell]
    key = np.minimum(finder, enemy) * len(w) + np.maximum(finder, enemy)
    order = np.argsort(key, kind="stable")
    key, weight = key[order], weight[order]
    # A pair found from both sides stands in two neighbouring entries; fold the second into the first.
    start = np.flatnonzero(np.diff(key, prepend=-1))
    sides = np.diff(start, append=len(key))
    if ties == "lowest":
        weight = np.add.reduceat(weight, start) - (sides - 1) if len(start) else weight
    else:
        weight = np.maximum.reduceat(weight, start) if len(start) else weight
    left, right = np.divmod(key[start], len(w))
    return Pairs(left, right, weight)


def _lowest(found: Found, codes: Ints, n_classes: int, *, each: bool) -> Ints:
    """Return the nearest of each row and class; among equally near ones the lowest row."""
    slot = codes[found.enemy] if each else np.zeros(len(found.enemy), dtype=np.intp)
    order = np.lexsort((found.enemy, found.D, slot, found.finder))
    finder, slot = found.finder[order], slot[order]
    return order[np.flatnonzero((np.diff(finder, prepend=-1) != 0) | (np.diff(slot, prepend=-1) != 0))]
