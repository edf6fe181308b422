"""How far apart two sets of directions (rows) are, in radians."""

import numpy as np
from scipy.linalg import subspace_angles


def unit_rows(directions):
    """The directions at length 1, however long or short they are."""
    directions = np.asarray(directions, float)
    directions = directions / np.abs(directions).max(axis=1, keepdims=True)
    return directions / np.linalg.norm(directions, axis=1, keepdims=True)


def largest_angle(A, B):
    """Largest principal angle between the spans."""
    return float(np.max(subspace_angles(unit_rows(A).T, unit_rows(B).T)))


def most_turned(A, B):
    """Largest angle between matching directions, signs and lengths aside."""
    A, B = unit_rows(A), unit_rows(B)
    apart = np.minimum(np.linalg.norm(A - B, axis=1), np.linalg.norm(A + B, axis=1))
    return float(2 * np.arcsin(apart.max() / 2))


def signs_differ(A, B):
    """Whether some direction points the other way."""
    return bool((np.einsum("kd,kd->k", unit_rows(A), unit_rows(B)) < 0).any())
