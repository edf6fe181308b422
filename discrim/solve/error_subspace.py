"""The subspace of least pairwise error of given class means, and the nested ones inside it."""

from __future__ import annotations

import numpy as np
import scipy.linalg as la
from numpy.typing import NDArray

from discrim.objectives.pairwise_error import PairwiseError
from discrim.solve.stiefel import least, random_subspaces

Array = NDArray[np.float64]
DRAWN = 400  # random subspaces that are weighed to find a few good starts …
PAIRS_WEIGHED = 2**14  # … or as many as make so many pairs of classes


def error_subspace(means: Array, shares: Array, k: int, n_random: int, seed: int) -> Array:
    """B (q×k) of least pairwise error; means (C×q) in the coordinates of LDA's directions, the widest first.

    Downhill from LDA's own first k directions, from Loog's (pairs weighted by how near they are), and from the best of
    many random ones.
    """
    objective = PairwiseError(means, shares)
    loog = la.eigh(objective.loog_spread())[1][:, ::-1][:, :k]
    own = np.stack([np.eye(means.shape[1])[:, :k], loog])
    random = _random_candidates(objective, k, n_random, seed)
    return least(objective, np.concatenate([own, _best(objective, random, n_random)]))[1]


def nested_axes(means: Array, shares: Array, n_random: int, seed: int) -> Array:
    """Orthonormal columns (k×k): the first j of them span, among the subspaces of the first j+1, that of least error.

    One direction is dropped at a time, the one whose loss costs least.
    """
    k, spread = means.shape[1], (means.T * shares) @ means
    kept, dropped = _principal_axes(np.eye(k), spread), []
    for size in range(k, 1, -1):
        objective = PairwiseError(means @ kept, shares)
        without_one = np.stack([np.delete(np.eye(size), axis, axis=1) for axis in range(size)])
        candidates = np.concatenate([without_one, _random_candidates(objective, size - 1, n_random, seed)])
        B = least(objective, _best(objective, candidates, n_random + 2))[1]
        dropped.append(kept @ la.qr(B)[0][:, -1])  # which is orthogonal to B
        kept = _principal_axes(kept @ B, spread)
    return np.stack([kept[:, 0], *dropped[::-1]], axis=1)


def _random_candidates(objective: PairwiseError, k: int, wanted: int, seed: int) -> Array:
    """Subspaces of which half are drawn evenly, half by the spread of the class means (at least `wanted`, S×q×k)."""
    means, shares = objective.means, objective.shares
    drawn = max(wanted, min(DRAWN, PAIRS_WEIGHED // len(objective.pair_shares))) if wanted else 0
    # signs of LDA's directions are arbitrary: with these, the random starts lie the same way to the class means
    widths = np.where(shares @ means**3 < 0, -1.0, 1.0) * np.sqrt(shares @ means**2)
    rng = np.random.default_rng(seed)
    halves = (drawn - drawn // 2, np.sign(widths)), (drawn // 2, widths)
    return np.concatenate([random_subspaces(count, along, k, rng) for count, along in halves])


def _best(objective: PairwiseError, candidates: Array, wanted: int) -> Array:
    if len(candidates) <= wanted:
        return candidates
    return candidates[np.argsort(objective(candidates)[0], kind="stable")[:wanted]]


def completed(B: Array, spread: Array) -> Array:
    """B's columns and the rest of the space (q×q), each turned to the principal axes of a q×q spread, widest first."""
    rest = la.qr(B)[0][:, B.shape[1] :]
    return np.concatenate([_principal_axes(part, spread) for part in (B, rest)], axis=1)


def _principal_axes(B: Array, spread: Array) -> Array:
    return B @ la.eigh(B.T @ spread @ B)[1][:, ::-1]
