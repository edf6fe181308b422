"""Angles between two sets of directions (rows), in radians."""

import numpy as np
from scipy.linalg import subspace_angles


def unit_rows(directions):
    """Return the directions scaled to length 1."""
    directions = np.asarray(directions, float)
    directions = directions / np.abs(directions).max(axis=1, keepdims=True)
    return directions / np.linalg.norm(directions, axis=1, keepdims=True)


def largest_angle(A, B):
    """Return the largest principal angle between the spans."""
    return float(np.max(subspace_angles(unit_rows(A).T, unit_rows(B).T)))


def most_turned(A, B):
    """Return the largest angle between matching directions, ignoring signs and lengths."""
    A, B = unit_rows(A), unit_rows(B)
    apart = np.minimum(np.linalg.norm(A - B, axis=1), np.linalg.norm(A + B, axis=1))
    return float(2 * np.arcsin(apart.max() / 2))


def signs_differ(A, B):
    """Return True if some direction has the opposite sign."""
    return bool((np.einsum("kd,kd->k", unit_rows(A), unit_rows(B)) < 0).any())
