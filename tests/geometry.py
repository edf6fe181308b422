"""How far apart two sets of directions (rows) are, in radians."""

import numpy as np
from scipy.linalg import subspace_angles


def largest_angle(A, B):
    """Largest principal angle between the spans."""
    return float(np.max(subspace_angles(np.asarray(A, float).T, np.asarray(B, float).T)))


def most_turned(A, B):
    """Largest angle between matching directions, signs and lengths aside."""
    A, B = (np.asarray(M, float) / np.linalg.norm(np.asarray(M, float), axis=1, keepdims=True) for M in (A, B))
    apart = np.minimum(np.linalg.norm(A - B, axis=1), np.linalg.norm(A + B, axis=1))
    return float(2 * np.arcsin(apart.max() / 2))


def signs_differ(A, B):
    """Whether some direction points the other way."""
    return bool((np.einsum("kd,kd->k", A, B) < 0).any())
