"""The subspace of least pairwise error of given class means, and the nested ones inside it.

Least is a smooth function of a subspace: over q×k matrices B with BᵀB = I, where f(BR) = f(B) for rotations R.

    step   B ← orthonormal(B − t G) ,    G = (I − BBᵀ) ∇f(B) ,    t = Barzilai and Borwein's, halved where f rises

Several starts go downhill side by side, so that each step is one call of f for all of them. B comes as S×q×k.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import scipy.linalg as la
from numpy.typing import NDArray

from discrim.core.pairwise_error import PairwiseError
from discrim.decompositions import cholesky, eigh

Array = NDArray[np.float64]
DRAWN = 400  # random subspaces that are weighed to find a few good starts …
PAIRS_WEIGHED = 2**14  # … or as many as make so many pairs of classes


def error_subspace(means: Array, shares: Array, k: int, n_random: int, seed: int) -> Array:
    """B (q×k) of least pairwise error; means (C×q) in the coordinates of LDA's directions, the widest first.

    Downhill from LDA's own first k directions, from Loog's (pairs weighted by how near they are), and from the best of
    many random ones.
    """
    objective = PairwiseError(means, shares)
    loog = eigh(objective.loog_spread())[1][:, ::-1][:, :k]
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
    return B @ eigh(B.T @ spread @ B)[1][:, ::-1]


Objective = Callable[[Array], tuple[Array, Array]]
FIRST_ANGLE = 0.3  # radians, of the first step
LARGEST_ANGLE = 1.0
ENOUGH = 1e-4  # of the decrease a slope promises, so that a step counts as one downhill
ROUNDING = 1e-13  # a rise by this share is none: near the minimum f says nothing any more, but the slope does
RACE = ((8, 3), (12, 1))  # after so many steps, go on with so many of the starts
SETTLED = 1e-11  # of the slope


@dataclass
class SubspaceDescent:
    """Where S subspaces have come to: B, values and slopes there, and the next steps' lengths."""

    B: Array
    values: Array
    slopes: Array
    steps: Array

    @classmethod
    def at(cls, objective: Objective, B: Array) -> SubspaceDescent:
        values, gradients = objective(B)
        slopes = tangent(B, gradients)
        return cls(B, values, slopes, FIRST_ANGLE / np.maximum(np.linalg.norm(slopes, axis=(1, 2)), 1e-300))


def least(objective: Objective, starts: Array, *, max_iter: int = 1000) -> tuple[float, Array]:
    """The lowest minimum found downhill from the starts: its value and its B (q×k)."""
    state = SubspaceDescent.at(objective, starts)
    for steps, survivors in RACE:
        state = descended(objective, state, steps)
        best = np.argsort(state.values, kind="stable")[:survivors]
        state = SubspaceDescent(state.B[best], state.values[best], state.slopes[best], state.steps[best])
    state = descended(objective, state, max_iter)
    return float(state.values[0]), state.B[0]


def descended(objective: Objective, state: SubspaceDescent, max_iter: int) -> SubspaceDescent:
    """Downhill for some steps, or until the slopes vanish; where f would rise, half the step the next time."""
    for turn in range(max_iter):
        lengths = np.linalg.norm(state.slopes, axis=(1, 2))
        if (lengths <= SETTLED).all():
            break
        taken = np.minimum(state.steps, LARGEST_ANGLE / np.maximum(lengths, 1e-300))
        B = orthonormal(state.B - taken[:, None, None] * state.slopes)
        values, gradients = objective(B)
        slopes = tangent(B, gradients)
        moved, changed = ((new - old).reshape(len(B), -1) for new, old in ((B, state.B), (slopes, state.slopes)))
        # Barzilai and Borwein's two step lengths, in turn
        both = np.abs(np.vecdot(moved, changed))
        above, below = (np.vecdot(moved, moved), both) if turn % 2 else (both, np.vecdot(changed, changed))
        steps = above / np.maximum(below, 1e-300)
        uphill = ~(values <= state.values - ENOUGH * taken * lengths**2 + ROUNDING * np.abs(state.values))
        if uphill.any():
            B[uphill], values[uphill], slopes[uphill] = state.B[uphill], state.values[uphill], state.slopes[uphill]
            steps[uphill] = taken[uphill] / 2
        state = SubspaceDescent(B, values, slopes, steps)
    return state


def tangent(B: Array, gradients: Array) -> Array:
    """The part of the gradients that moves the subspace: rotations inside it change nothing."""
    return gradients - B @ (B.mT @ gradients)


def orthonormal(W: Array) -> Array:
    """Q of W = QR, by the Cholesky factor of WᵀW: a step along a tangent never makes W ill-conditioned."""
    return W @ np.linalg.inv(cholesky(W.mT @ W)).mT


def random_subspaces(count: int, widths: Array, k: int, rng: np.random.Generator) -> Array:
    """Spans of `count` times k normal vectors with deviations `widths` along the q axes (count×q×k)."""
    return np.linalg.qr(widths[:, None] * rng.standard_normal((count, len(widths), k)))[0]
