"""The subspace of least pairwise error of given class means, and the nested ones inside it."""

from __future__ import annotations

import numpy as np
import scipy.linalg as la
from numpy.typing import NDArray

from discrim.objectives.pairwise_error import PairwiseError
from discrim.solve.stiefel import least, random_subspaces

Array = NDArray[np.float64]
DRAWN = 1_000  # random subspaces that are weighed to find a few good starts …
PAIRS_WEIGHED = 2**15  # … or as many as make so many pairs of classes
STARTS = 3  # axes from which the direction to be dropped is looked for


def error_subspace(means: Array, shares: Array, k: int, n_random: int, seed: int) -> Array:
    """B (q×k) of least pairwise error; means (C×q) in the coordinates of LDA's directions, the widest first.

    Downhill from LDA's own first k directions, from Loog's (pairs weighted by how near they are), and from the best of
    many random ones.
    """
    objective = PairwiseError(means, shares)
    loog = la.eigh(objective.loog_spread())[1][:, ::-1][:, :k]
    own = np.stack([np.eye(means.shape[1])[:, :k], loog])
    return least(objective, np.concatenate([own, _best_of_random(objective, k, n_random, seed)]))[1]


def _best_of_random(objective: PairwiseError, k: int, wanted: int, seed: int) -> Array:
    """The best of subspaces of which half are drawn evenly, half by the spread of the class means (wanted×q×k)."""
    means, shares = objective.means, objective.shares
    drawn = max(wanted, min(DRAWN, PAIRS_WEIGHED // len(objective.pair_shares))) if wanted else 0
    # signs of LDA's directions are arbitrary: with these, the random starts lie the same way to the class means
    widths = np.where(shares @ means**3 < 0, -1.0, 1.0) * np.sqrt(shares @ means**2)
    rng = np.random.default_rng(seed)
    halves = [
        random_subspaces(drawn - drawn // 2, np.sign(widths), k, rng),
        random_subspaces(drawn // 2, widths, k, rng),
    ]
    candidates = np.concatenate(halves)
    if drawn > wanted:
        candidates = candidates[np.argsort(objective(candidates)[0], kind="stable")[:wanted]]
    return candidates


def nested_axes(means: Array, shares: Array) -> Array:
    """Orthonormal columns (k×k): the first j of them span, among the subspaces of the first j+1, that of least error.

    One direction is dropped at a time, the one whose loss costs least.
    """
    k = means.shape[1]
    kept, dropped = np.eye(k), []
    for size in range(k, 1, -1):
        objective = PairwiseError(means @ kept, shares)
        without_one = np.stack([np.delete(np.eye(size), axis, axis=1) for axis in range(size)])
        cheapest = np.argsort(objective(without_one)[0], kind="stable")[:STARTS]
        B = least(objective, without_one[cheapest])[1]
        rotation = la.qr(B)[0]  # its last column is orthogonal to B's
        dropped.append(kept @ rotation[:, -1])
        kept = kept @ B
    return np.stack([kept[:, 0], *dropped[::-1]], axis=1)


def completed(B: Array, spread: Array) -> Array:
    """B's columns and the rest of the space (q×q), each turned to the principal axes of a q×q spread, widest first."""
    rest = la.qr(B)[0][:, B.shape[1] :]
    return np.concatenate([_principal_axes(part, spread) for part in (B, rest)], axis=1)


def _principal_axes(B: Array, spread: Array) -> Array:
    return B @ la.eigh(B.T @ spread @ B)[1][:, ::-1]
