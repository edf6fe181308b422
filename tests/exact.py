"""Sums of float64 numbers in rational arithmetic, without rounding."""

from fractions import Fraction

import numpy as np


def rationals(values):
    return np.array([Fraction(v) for v in np.asarray(values, float).ravel().tolist()], object).reshape(np.shape(values))


def scatter(X, weights=None):
    """Return Σ w (x−μ)(x−μ)ᵀ as fractions."""
    X = rationals(X)
    w = rationals(np.ones(len(X)) if weights is None else weights)
    total = w @ X
    return X.T @ (w[:, None] * X) - np.outer(total, total) / w.sum()


def within(X, y, weights=None):
    """Return Σ_c S_c, each S_c around its own mean, rounded once at the end."""
    weights = np.ones(len(X)) if weights is None else np.asarray(weights)
    return sum(scatter(X[y == c], weights[y == c]) for c in np.unique(y)).astype(float)


def total(X, weights=None):
    return scatter(X, weights).astype(float)


def error(found, wanted):
    """Return ‖found − wanted‖ / ‖wanted‖ in the Frobenius norm."""
    return float(np.linalg.norm(found - wanted) / np.linalg.norm(wanted))
