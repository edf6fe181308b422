"""Discriminants of nearly singular tables compared with 60-digit arithmetic."""

from __future__ import annotations

import time
import warnings

import mpmath
import numpy as np
from numpy.typing import NDArray

from discrim import RegularizedLDA
from torture.outcome import Outcome

DIGITS = 60
SLACK = 1e3  # factor on the rounding error that the condition of Σ_γ allows
LEFT_OUT = 2e-6  # error allowed without a warning if a direction without variance was left out behind a ridge


def against_many_digits(rng: np.random.Generator, until: float) -> Outcome:
    outcome = Outcome(
        "discriminants of nearly singular tables compared with 60-digit arithmetic",
        "an error within what the condition allows (2e-6 if a column nearly copies another), or a warning",
    )
    while time.monotonic() < until:
        X, y, family = family_of(rng)
        gamma = float(rng.choice([1e-8, 1e-4, 1e-2, 0.3]))
        with outcome.run(of=f"{family}, γ={gamma:g}: "):
            with warnings.catch_warnings(record=True) as caught:
                warnings.simplefilter("always")
                model = RegularizedLDA(1, shrinkage=gamma).fit(X, y)
            exact, condition = exact_direction(X, y, gamma, model.rank_)
            found = model.components_[0] / np.linalg.norm(model.components_[0])
            angle = np.linalg.norm(found - np.sign(found @ exact) * exact)
            allowed = max(1e-9 if model.rank_ == X.shape[1] else LEFT_OUT, SLACK * condition * 1e-16)
            if angle > allowed and not caught:
                outcome.faults.append(f"{family}, γ={gamma:g}: off by {angle:.1e}, condition {condition:.1e}")
    return outcome


def family_of(rng: np.random.Generator) -> tuple[NDArray, NDArray, str]:
    n, d = 40, 5
    y = np.arange(n) % 2
    X = rng.standard_normal((n, d)) + 1.5 * y[:, None] * (np.arange(d) == 0)
    family = str(rng.choice(["outlier row", "powers", "near duplicate", "sentinels", "heavy tails"]))
    if family == "outlier row":
        X[7] *= 10.0 ** rng.integers(2, 7)
    elif family == "powers":
        X = np.vander(1 + 0.3 * X[:, 0], 6)[:, :-1]
    elif family == "near duplicate":
        X = np.c_[X, X[:, 1] + 10.0 ** -rng.integers(4, 8) * rng.standard_normal(n)]
    elif family == "sentinels":
        X[rng.random(X.shape) < 0.03] = -9999.0
    else:
        X = np.sign(X) * np.expm1(3 * np.abs(X))
    return X, y, family


def exact_direction(X: NDArray, y: NDArray, gamma: float, rank: int) -> tuple[NDArray, float]:
    """Return Σ_γ⁻¹(μ_1 − μ_0) of the stored doubles as a unit vector, and the condition of Σ_γ."""
    with mpmath.workdps(DIGITS):
        n, d = X.shape
        means = [[mpmath.fsum(map(mpmath.mpf, X[y == c, j])) / int((y == c).sum()) for j in range(d)] for c in (0, 1)]
        centred = mpmath.matrix([[mpmath.mpf(X[i, j]) - means[y[i]][j] for j in range(d)] for i in range(n)])
        within = centred.T * centred / n
        ridge = gamma * sum(within[j, j] for j in range(d)) / rank
        sigma = within * (1 - mpmath.mpf(gamma))
        for j in range(d):
            sigma[j, j] += ridge
        solved = mpmath.lu_solve(sigma, mpmath.matrix([means[1][j] - means[0][j] for j in range(d)]))
        direction = np.array([float(value / mpmath.norm(solved)) for value in solved])
        values = mpmath.eigsy(sigma, eigvals_only=True)
        return direction, float(max(values) / min(values))
