"""Pairwise Bayes error of classes in a subspace, and the subspace that minimises it.

    F(B) = Σ_{a<b} p_a p_b erfc(D_ab / (2√2)) ,    D_ab = ‖Bᵀ(m_a − m_b)‖ ,    BᵀB = I
    ∇F = −Σ_{a<b} p_a p_b e^{−D²/8}/(√(2π) D) · d dᵀB ,    d = m_a − m_b

m_c are class means in coordinates in which every class has unit covariance. ½ erfc(D/(2√2)) is the Bayes error between
two such Gaussians with equal priors, so F / (1 − Σp_c²) is its mean over pairs of rows of two classes. log F is
minimised: it has the same minimum, and a nonzero slope even if F underflows.

    step   B ← orthonormal(B − t G) ,    G = (I − BBᵀ) ∇f(B) ,    t = Barzilai and Borwein's, halved if f rises

Several starts are optimised together, so each step is one call of f for all of them: B has shape S×q×k.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
import scipy.linalg as la
from numpy.typing import NDArray
from scipy.spatial.distance import pdist, squareform
from scipy.special import erf, erfc, erfcx

from discrim.decompositions import cholesky, eigh
from discrim.tables.rows import block_slices

Array = NDArray[np.float64]
UNIT = 2 * np.sqrt(2.0)  # D / UNIT is the argument of erfc
NEAREST = 1e-150  # pairs at a smaller distance coincide and contribute no gradient
CLOSE = 1e-4  # of the largest coordinate: sums over all pairs would lose as many digits of closer pairs
HELD_DIFFERENCES = 2**16  # up to this many numbers the differences d are stored; above, only scalars per pair are


def pair_error(distances: Array) -> Array:
    """Return the error between two Gaussians of unit covariance at a distance, with equal priors."""
    return 0.5 * erfc(distances / UNIT)


@dataclass(frozen=True, eq=False)
class PairwiseError:
    """Objective from class means m_c (C×q, in within-class deviations) and shares p_c; a call returns log F and ∇."""

    means: Array
    shares: Array
    pair_shares: Array = field(init=False)  # p_a p_b for every pair a<b, in the order of scipy's pdist
    _differences: Array | None = field(init=False)  # m_a − m_b for every pair; None if that would be large

    def __post_init__(self) -> None:
        a, b = np.triu_indices(len(self.shares), 1)
        held = self.means[a] - self.means[b] if len(a) * self.means.shape[1] <= HELD_DIFFERENCES else None
        vars(self).update(pair_shares=self.shares[a] * self.shares[b], _differences=held)

    def __call__(self, B: Array) -> tuple[Array, Array]:
        """Compute log F for each of S subspaces (B is S×q×k), and its gradients (S×q×k)."""
        if self._differences is None:
            parts = [self._evaluate_many_pairs(one) for one in B]
            return np.array([value for value, _ in parts]), np.stack([gradient for _, gradient in parts])
        count, q, k = B.shape
        apart = (B.transpose(2, 0, 1).reshape(k * count, q) @ self._differences.T).reshape(k, count, -1)
        logs, weights = self._logs_and_weights(np.sqrt(np.einsum("ksp,ksp->sp", apart, apart)))
        apart *= weights
        gradients = (apart.reshape(k * count, -1) @ self._differences).reshape(k, count, q)
        return logs, gradients.transpose(1, 2, 0)

    def _evaluate_many_pairs(self, B: Array) -> tuple[float, Array]:
        """Compute the same for one subspace with scalars per pair: Σ w d dᵀ = MᵀLM, L the Laplacian of the w.

        The w of a pair that nearly coincides is so large that the sums would cancel: its d is used instead.
        """
        along = self.means @ B
        distances = pdist(along)
        logs, (weights,) = self._logs_and_weights(distances[None])
        is_close = distances < CLOSE * np.abs(along).max()
        pulls = squareform(np.where(is_close, 0.0, weights))
        gradient = self.means.T @ (pulls.sum(axis=1)[:, None] * along - pulls @ along)
        if is_close.any():
            a, b, large = (side[is_close] for side in (*np.triu_indices(len(along), 1), weights))
            for part in block_slices(len(a), self.means.shape[1]):
                pulled = large[part, None] * (along[a[part]] - along[b[part]])
                gradient += (self.means[a[part]] - self.means[b[part]]).T @ pulled
        return float(logs[0]), gradient

    def _logs_and_weights(self, distances: Array) -> tuple[Array, Array]:
        """Compute log F from the distances of pairs (S×pairs), and the weights of d dᵀB in its gradient.

        With x = D/(2√2): erfc(x) = erfcx(x) e^{−x²}, where erfcx does not underflow, and e^{−x²} is relative to that of
        the nearest pair.
        """
        x = distances / UNIT
        squares = x * x
        nearest = squares.min(axis=1)
        weights = self.pair_shares * np.exp(nearest[:, None] - squares)
        totals = np.vecdot(weights, erfcx(x))
        weights /= np.maximum(distances, NEAREST)
        weights /= (-np.sqrt(2 * np.pi) * totals)[:, None]
        return np.log(totals) - nearest, weights


DRAWN = 400  # random subspaces evaluated to find a few good starts …
PAIRS_WEIGHED = 2**14  # … or as many as give this number of pairs of classes


def error_subspace(means: Array, shares: Array, k: int, n_random: int, seed: int) -> Array:
    """Return B (q×k) of minimal pairwise error; means (C×q) are in the coordinates of LDA's directions, widest first.

    The starts are LDA's first k directions, Loog's directions (near pairs weigh more), and the best of many random
    ones. If there are no more than k dimensions, B is I.

    Loog's directions maximise Σ_{a<b} ω_ab d dᵀ, ω = p_a p_b erf(Δ/(2√2))/(2Δ²), of Loog, Duin and Haeb-Umbach,
    "Multiclass linear dimension reduction by weighted pairwise Fisher criteria" (2001).
    """
    if k >= means.shape[1]:
        return np.eye(means.shape[1])
    objective, distances = PairwiseError(means, shares), np.maximum(pdist(means), NEAREST)
    weights = squareform(objective.pair_shares * erf(distances / UNIT) / (2 * distances**2))
    spread = means.T @ (weights.sum(axis=1)[:, None] * means - weights @ means)
    own = np.stack([np.eye(means.shape[1])[:, :k], eigh(spread)[1][:, ::-1][:, :k]])
    random = _random_candidates(objective, k, n_random, seed)
    return minimise(objective, np.concatenate([own, _best(objective, random, n_random)]))[1]


def nested_axes(means: Array, shares: Array, n_random: int, seed: int) -> Array:
    """Return orthonormal columns (k×k): the first j span the subspace of least error within the first j+1.

    One direction is dropped at a time, the one whose loss raises the error least.
    """
    k, spread = means.shape[1], (means.T * shares) @ means
    kept, dropped = _principal_axes(np.eye(k), spread), []
    for size in range(k, 1, -1):
        objective = PairwiseError(means @ kept, shares)
        without_one = np.stack([np.delete(np.eye(size), axis, axis=1) for axis in range(size)])
        candidates = np.concatenate([without_one, _random_candidates(objective, size - 1, n_random, seed)])
        B = minimise(objective, _best(objective, candidates, n_random + 2))[1]
        dropped.append(kept @ la.qr(B)[0][:, -1])  # orthogonal to B
        kept = _principal_axes(kept @ B, spread)
    return np.stack([kept[:, 0], *dropped[::-1]], axis=1)


def _random_candidates(objective: PairwiseError, k: int, wanted: int, seed: int) -> Array:
    """Return at least `wanted` random subspaces (S×q×k), half of them uniform, half by the class means' spread."""
    means, shares = objective.means, objective.shares
    drawn = max(wanted, min(DRAWN, PAIRS_WEIGHED // len(objective.pair_shares))) if wanted else 0
    # the signs of LDA's directions are arbitrary: these make the random starts independent of them
    widths = np.where(shares @ means**3 < 0, -1.0, 1.0) * np.sqrt(shares @ means**2)
    rng = np.random.default_rng(seed)
    halves = (drawn - drawn // 2, np.sign(widths)), (drawn // 2, widths)
    normal = [along[:, None] * rng.standard_normal((count, len(along), k)) for count, along in halves]
    return np.linalg.qr(np.concatenate(normal))[0]


def _best(objective: PairwiseError, candidates: Array, wanted: int) -> Array:
    if len(candidates) <= wanted:
        return candidates
    return candidates[np.argsort(objective(candidates)[0], kind="stable")[:wanted]]


def completed_basis(B: Array, spread: Array) -> Array:
    """Return B's columns and the rest of the space (q×q), each rotated to the principal axes of a q×q spread."""
    rest = la.qr(B)[0][:, B.shape[1] :]
    return np.concatenate([_principal_axes(part, spread) for part in (B, rest)], axis=1)


def _principal_axes(B: Array, spread: Array) -> Array:
    return B @ eigh(B.T @ spread @ B)[1][:, ::-1]


Objective = Callable[[Array], tuple[Array, Array]]
FIRST_ANGLE = 0.3  # radians
LARGEST_ANGLE = 1.0
ENOUGH = 1e-4  # of the decrease predicted by the slope, for a step to be accepted
ROUNDING = 1e-13  # relative rise of f that is tolerated: near the minimum f is flat, but the slope is still accurate
# steps, and how many of the starts continue after them; the last one continues until its slope vanishes
RACE = ((8, 3), (12, 1), (1000, 1))
SETTLED = 1e-11  # length of the slope


class SubspaceDescent(NamedTuple):
    """State of S subspaces: B, values and slopes, and the lengths of the next steps."""

    B: Array
    values: Array
    slopes: Array
    steps: Array


def minimise(objective: Objective, starts: Array) -> tuple[float, Array]:
    """Return the lowest minimum reached from the starts: its value and its B (q×k)."""
    values, slopes = _values_and_slopes(objective, starts)
    steps = FIRST_ANGLE / np.maximum(np.linalg.norm(slopes, axis=(1, 2)), 1e-300)
    state = SubspaceDescent(starts, values, slopes, steps)
    for turns, survivors in RACE:
        state = descend(objective, state, turns)
        best = np.argsort(state.values, kind="stable")[:survivors]
        state = SubspaceDescent(*(part[best] for part in state))
    return float(state.values[0]), state.B[0]


def descend(objective: Objective, state: SubspaceDescent, max_iter: int) -> SubspaceDescent:
    """Take up to `max_iter` steps, or until the slopes vanish; a step that would raise f is halved and retried."""
    for turn in range(max_iter):
        lengths = np.linalg.norm(state.slopes, axis=(1, 2))
        if (lengths <= SETTLED).all():
            break
        taken = np.minimum(state.steps, LARGEST_ANGLE / np.maximum(lengths, 1e-300))
        B = orthonormal(state.B - taken[:, None, None] * state.slopes)
        values, slopes = _values_and_slopes(objective, B)
        moved, changed = ((new - old).reshape(len(B), -1) for new, old in ((B, state.B), (slopes, state.slopes)))
        # Barzilai and Borwein's two step lengths, alternating
        both = np.abs(np.vecdot(moved, changed))
        above, below = (np.vecdot(moved, moved), both) if turn % 2 else (both, np.vecdot(changed, changed))
        steps = above / np.maximum(below, 1e-300)
        uphill = ~(values <= state.values - ENOUGH * taken * lengths**2 + ROUNDING * np.abs(state.values))
        if uphill.any():
            B[uphill], values[uphill], slopes[uphill] = state.B[uphill], state.values[uphill], state.slopes[uphill]
            steps[uphill] = taken[uphill] / 2
        state = SubspaceDescent(B, values, slopes, steps)
    return state


def _values_and_slopes(objective: Objective, B: Array) -> tuple[Array, Array]:
    """Return values, and the part of the gradients that changes the subspace; rotations within it have no effect."""
    values, gradients = objective(B)
    return values, gradients - B @ (B.mT @ gradients)


def orthonormal(W: Array) -> Array:
    """Compute Q of W = QR from the Cholesky factor of WᵀW; W is well-conditioned after a tangent step."""
    return W @ np.linalg.inv(cholesky(W.mT @ W)).mT
