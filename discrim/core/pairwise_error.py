"""Pairwise Bayes error of classes in a subspace, and the subspace that minimises it.

    F(B) = Σ_{a<b} p_a p_b erfc(D_ab / (2√2)) ,    D_ab = ‖Bᵀ(m_a − m_b)‖ ,    BᵀB = I
    ∇F = −Σ_{a<b} p_a p_b e^{−D²/8}/(√(2π) D) · d dᵀB ,    d = m_a − m_b

m_c are class means in coordinates in which every class has unit covariance. ½ erfc(D/(2√2)) is the error of the best
rule between two such Gaussians at equal priors, so F / (1 − Σp_c²) is its mean over pairs of rows of two classes. log F
is minimised: it has the same minimum, and a slope even where F itself is zero in doubles.

    step   B ← orthonormal(B − t G) ,    G = (I − BBᵀ) ∇f(B) ,    t = Barzilai and Borwein's, halved where f rises

Several starts descend at once, so that each step is one call of f for all of them: B has shape S×q×k.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
import scipy.linalg as la
from numpy.typing import NDArray
from scipy.spatial.distance import pdist, squareform
from scipy.special import erf, erfc, erfcx

from discrim.decompositions import cholesky, eigh

Array = NDArray[np.float64]
UNIT = 2 * np.sqrt(2.0)  # D / UNIT is what erfc takes
NEAREST = 1e-150  # a pair at less than this distance coincides: it has no direction, and pulls nowhere
HELD_DIFFERENCES = 2**16  # up to this many numbers the differences d are held; above, pairs are numbers, never vectors


def pair_error(distances: Array) -> Array:
    """Return error between two Gaussians of unit covariance at a distance, equal priors."""
    return 0.5 * erfc(distances / UNIT)


@dataclass(frozen=True, eq=False)
class PairwiseError:
    """Class means m_c (C×q, in units of the deviation within classes) and shares p_c; called with B, log F and ∇."""

    means: Array
    shares: Array
    pair_shares: Array = field(init=False)  # p_a p_b of every pair a<b, in the order of scipy's pdist
    _differences: Array | None = field(init=False)  # m_a − m_b of every pair; None where that would be large

    def __post_init__(self) -> None:
        a, b = np.triu_indices(len(self.shares), 1)
        held = self.means[a] - self.means[b] if len(a) * self.means.shape[1] <= HELD_DIFFERENCES else None
        vars(self).update(pair_shares=self.shares[a] * self.shares[b], _differences=held)

    def __call__(self, B: Array) -> tuple[Array, Array]:
        """Compute log F of each of S subspaces (B is S×q×k), and its gradients (S×q×k)."""
        if self._differences is None:
            parts = [self._of_many_pairs(one) for one in B]
            return np.array([value for value, _ in parts]), np.stack([gradient for _, gradient in parts])
        count, q, k = B.shape
        apart = (B.transpose(2, 0, 1).reshape(k * count, q) @ self._differences.T).reshape(k, count, -1)
        logs, weights = self._logs_and_weights(np.sqrt(np.einsum("ksp,ksp->sp", apart, apart)))
        apart *= weights
        gradients = (apart.reshape(k * count, -1) @ self._differences).reshape(k, count, q)
        return logs, gradients.transpose(1, 2, 0)

    def _of_many_pairs(self, B: Array) -> tuple[float, Array]:
        """Compute the same for one subspace, from numbers per pair: Σ w d dᵀ = MᵀLM with the Laplacian L of the w."""
        along = self.means @ B
        logs, weights = self._logs_and_weights(pdist(along)[None])
        pulls = squareform(weights[0])
        return float(logs[0]), self.means.T @ (pulls.sum(axis=1)[:, None] * along - pulls @ along)

    def _logs_and_weights(self, distances: Array) -> tuple[Array, Array]:
        """Compute log F from the pairs' distances (S×pairs), and the weights of d dᵀB in its gradient.

        With x = D/(2√2): erfc(x) = erfcx(x) e^{−x²}, where erfcx does not underflow, and e^{−x²} is taken relative to
        the nearest pair's.
        """
        x = distances / UNIT
        squares = x * x
        nearest = squares.min(axis=1)
        weights = self.pair_shares * np.exp(nearest[:, None] - squares)
        totals = np.vecdot(weights, erfcx(x))
        weights /= np.maximum(distances, NEAREST)
        weights /= (-np.sqrt(2 * np.pi) * totals)[:, None]
        return np.log(totals) - nearest, weights

    def value(self, B: Array) -> float:
        """Compute F of one subspace (q×k)."""
        return float(np.exp(self(B[None])[0][0]))

    def loog_spread(self) -> Array:
        """Compute Σ_{a<b} ω_ab d dᵀ, ω = p_a p_b erf(Δ/(2√2))/(2Δ²): far pairs count less than in LDA's spread (q×q).

        Loog, Duin and Haeb-Umbach, "Multiclass linear dimension reduction by weighted pairwise Fisher criteria" (2001).
        """
        distances = np.maximum(pdist(self.means), NEAREST)
        weights = squareform(self.pair_shares * erf(distances / UNIT) / (2 * distances**2))
        return self.means.T @ (weights.sum(axis=1)[:, None] * self.means - weights @ self.means)


DRAWN = 400  # random subspaces that are weighed to find a few good starts …
PAIRS_WEIGHED = 2**14  # … or as many as make so many pairs of classes


def error_subspace(means: Array, shares: Array, k: int, n_random: int, seed: int) -> Array:
    """Compute B (q×k) of least pairwise error; means (C×q) in the coordinates of LDA's directions, the widest first.

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
    """Return the lowest minimum found downhill from the starts: its value and its B (q×k)."""
    state = SubspaceDescent.at(objective, starts)
    for steps, survivors in RACE:
        state = descended(objective, state, steps)
        best = np.argsort(state.values, kind="stable")[:survivors]
        state = SubspaceDescent(state.B[best], state.values[best], state.slopes[best], state.steps[best])
    state = descended(objective, state, max_iter)
    return float(state.values[0]), state.B[0]


def descended(objective: Objective, state: SubspaceDescent, max_iter: int) -> SubspaceDescent:
    """Return downhill for some steps, or until the slopes vanish; where f would rise, half the step the next time."""
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
    """Return the part of the gradients that moves the subspace: rotations inside it change nothing."""
    return gradients - B @ (B.mT @ gradients)


def orthonormal(W: Array) -> Array:
    """Compute Q of W = QR, by the Cholesky factor of WᵀW: a step along a tangent never makes W ill-conditioned."""
    return W @ np.linalg.inv(cholesky(W.mT @ W)).mT


def random_subspaces(count: int, widths: Array, k: int, rng: np.random.Generator) -> Array:
    """Return spans of `count` times k normal vectors with deviations `widths` along the q axes (count×q×k)."""
    return np.linalg.qr(widths[:, None] * rng.standard_normal((count, len(widths), k)))[0]
