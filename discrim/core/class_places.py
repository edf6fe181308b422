"""Places of classes in k dimensions: confused classes near each other, all others far apart.

    k ≥ C−1        the vertices of a regular simplex
    2 ≤ k < C−1    unit vectors that minimise   Σ_{a<b} [ 1/‖v_a−v_b‖² + 2C·S_ab‖v_a−v_b‖ ]
    k = 1          evenly spaced on [−1, 1], in the order that minimises   Σ S_ab |rank_a − rank_b|

S is the similarity of the classes, derived from how often they are confused.
"""

from __future__ import annotations

import numpy as np
import scipy.linalg as la
from numpy.typing import NDArray
from scipy.optimize import minimize

from discrim.decompositions import eigh, largest_eigenpairs

Array = NDArray[np.float64]
FLOOR = 1e-6  # similarity of classes that are never confused
RANDOM_STARTS = 5
MANY_CLASSES = 100  # above this number of classes, only the spectral start is used
TIED = 1e-9  # variances closer than this share of the largest do not determine their axes


def similarity(confusions: Array) -> Array:
    """Compute S: symmetrised confusions with zero diagonal, divided by the largest row sum, plus a floor."""
    S = (confusions + confusions.T) / 2
    np.fill_diagonal(S, 0.0)
    largest = S.sum(axis=1).max()
    S = S / largest if largest > 0 else S
    return S + FLOOR * (1 - np.eye(len(S)))


def class_places(confusions: Array, k: int, seed: int) -> Array:
    """Return the C×k places; at most C−1 columns."""
    n_classes = len(confusions)
    if k >= n_classes - 1:
        return simplex(n_classes)
    S = similarity(confusions)
    return line(S) if k == 1 else sphere(S, k, seed)


def on_principal_axes(places: Array, covariance: Array) -> Array:
    """Rotate the places to the principal axes of Σ_c q_c v_c, largest variance first; `covariance` is that of q (C×C).

    Classifiers that treat axes separately, such as naive Bayes, fail on axes along which a class hardly varies. Axes of
    equal variance are oriented by `_oriented`, so rounding does not decide between them.
    """
    if places.shape[1] == 1:
        return places
    variances, axes = eigh(places.T @ covariance @ places)
    variances, rotated = variances[::-1], places @ axes[:, ::-1]
    starts = np.flatnonzero(np.diff(variances, prepend=np.inf) < -TIED * max(variances[0], 0.0))
    groups = [rotated[:, first:last] for first, last in zip(starts, [*starts[1:], len(variances)], strict=True)]
    return np.concatenate([_oriented(group) for group in groups], axis=1)


def simplex(n_classes: int) -> Array:
    """Return C unit vectors in C−1 dimensions, all equally far apart."""
    corners = np.zeros((n_classes, n_classes - 1))
    for j in range(1, n_classes):
        corners[:j, j - 1] = -1.0
        corners[j, j - 1] = j
        corners[:, j - 1] /= np.sqrt(j * (j + 1))
    return corners * np.sqrt(n_classes / (n_classes - 1))


# ---------------------------------------------------------------------- on a sphere


def energy(V: Array, S: Array) -> tuple[float, Array]:
    """Return the objective and its gradient Σ_{b≠a} (−2/‖·‖⁴ + 2C·S_ab/‖·‖)(v_a−v_b) at each v_a."""
    gaps = V[:, None] - V[None]
    squares = np.einsum("abk,abk->ab", gaps, gaps)
    np.fill_diagonal(squares, 1.0)
    distances = np.sqrt(squares)
    pull = 2 * len(V) * S
    apart = 1 / squares
    np.fill_diagonal(apart, 0.0)
    value = 0.5 * float((apart + pull * distances).sum() - np.trace(pull))
    factors = pull / distances - 2 * apart**2
    np.fill_diagonal(factors, 0.0)
    return value, np.einsum("ab,abk->ak", factors, gaps)


def sphere(S: Array, k: int, seed: int) -> Array:
    """Return unit vectors of minimal energy, the best from the spectral start and from random starts.

    They are rotated so that the first class lies on the first axis, the second in the plane of the first two, and so
    on.
    """
    rng = np.random.default_rng(seed)
    V = laplacian_vectors(S, k)
    units = V / np.maximum(la.norm(V, axis=1, keepdims=True), 1e-12)
    starts = [units + 1e-2 * rng.standard_normal(V.shape)]  # the repulsion of classes that coincide would be infinite
    if len(S) <= MANY_CLASSES:
        starts += [rng.standard_normal((len(S), k)) for _ in range(RANDOM_STARTS)]
    near = min((_descended(start, S, 300, 1e-3) for start in starts), key=lambda V: energy(V, S)[0])
    return _oriented(_descended(near, S, 2_000, 1e-9))


def laplacian_vectors(S: Array, k: int) -> Array:
    """Return eigenvectors 2 … k+1 of the normalised Laplacian I − D^−½SD^−½."""
    roots = 1 / np.sqrt(S.sum(axis=1))
    return largest_eigenpairs(roots[:, None] * S * roots, k + 1)[1][:, -2::-1]


def _descended(start: Array, S: Array, most_steps: int, slope_left: float) -> Array:
    """Minimise from a start by L-BFGS over u with v = u/‖u‖, whose gradient is the one projected onto the sphere."""

    def on_sphere(flat: Array) -> tuple[float, Array]:
        U = flat.reshape(start.shape)
        lengths = la.norm(U, axis=1, keepdims=True)
        V = U / lengths
        value, slope = energy(V, S)
        slope = (slope - np.vecdot(slope, V)[:, None] * V) / lengths
        return value, slope.ravel()

    options = {"maxiter": most_steps, "maxfun": 5 * most_steps, "ftol": 1e-15, "gtol": slope_left}
    found = minimize(on_sphere, start.ravel(), method="L-BFGS-B", jac=True, options=options)
    U = found.x.reshape(start.shape)
    return U / la.norm(U, axis=1, keepdims=True)


def _oriented(V: Array) -> Array:
    """Rotate the places to L of V = L Qᵀ, with positive sign where a class first leaves the previous axes."""
    turned = la.qr(V.T, mode="economic")[1].T
    for axis in turned.T:
        leaving = axis[np.abs(axis) > 1e-6]
        axis *= np.sign(leaving[0]) if len(leaving) else 1.0
    return turned


# ---------------------------------------------------------------------- on a line


def line(S: Array) -> Array:
    """Return C evenly spaced numbers in [−1, 1] as a column, in the order of the Fiedler vector improved by moves.

    Of an order and its reverse, the one with the first class (else the second, …) in the lower half is chosen.
    """
    order = _moved(np.argsort(laplacian_vectors(S, 1)[:, 0], kind="stable"), S)
    ranks = np.argsort(order)
    mirrored = len(order) - 1 - ranks
    ranks = min(ranks, mirrored, key=lambda one: one.tolist())
    return np.linspace(-1, 1, len(order))[ranks][:, None]


def _moved(order: NDArray[np.intp], S: Array) -> NDArray[np.intp]:
    """Move one class at a time to another position, the best move first, until none improves."""
    while True:
        ordered = S[np.ix_(order, order)]
        gains = _gains_upwards(ordered) + _gains_upwards(ordered[::-1, ::-1])[::-1, ::-1]
        one, place = np.unravel_index(gains.argmax(), gains.shape)
        if gains[one, place] <= 1e-12:
            return order
        order = np.insert(np.delete(order, one), place, order[one])


def _gains_upwards(S: Array) -> Array:
    """Return by how much moving a class from position i to j > i lowers the cost, as it passes each neighbour in turn.

    S is in the order of positions.
    """
    upto = np.pad(np.cumsum(S, axis=1), ((0, 0), (1, 0)))  # upto[i, p]: similarity of i to all at positions below p
    balance = upto[:, :-1] + upto[:, 1:] - upto[:, -1:]  # similarity to positions below p minus that to positions above
    # when i passes p, i moves away from classes below p and towards those above; p moves the other way
    change = balance + S - np.diag(balance)
    return -np.cumsum(np.triu(change, 1), axis=1) * np.triu(np.ones_like(S), 1)
