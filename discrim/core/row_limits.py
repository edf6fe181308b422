"""Limits for rows unlike the training rows: Hotelling's T² of the components, and the squared residual (SPE, Q).

    T²_i = (t_i − t̄)ᵀ S_T⁻¹ (t_i − t̄) ,    SPE_i = ‖x_i − x̄ − P(t_i − t̄)‖² ,    P = argmin Σ_i ‖x_i − x̄ − P(t_i − t̄)‖²

t̄, S_T (divided by n − 1), x̄ and P are those of the training rows. For PCA and PLS, P holds the loadings. A row with a
large T² is extreme within the model; a row with a large SPE does not follow the structure of the training rows.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.linalg as la
from numpy.typing import NDArray
from scipy import stats

from discrim.tables.rows import block_slices, dense_block

Array = NDArray[np.float64]
ROUNDING = 1e-20  # share of the rows' mean square below which a residual is rounding


@dataclass(frozen=True, eq=False)
class RowLimits:
    """Centre, spread and loadings of training rows, and limits below which a share `level` of new rows stays.

    triangle : R of the QR decomposition of the centred components
    negligible : squared residual that rounding errors can cause
    """

    centre: Array
    triangle: Array
    mean: Array
    loadings: Array
    n_rows: int
    level: float
    t2_limit: float
    spe_limit: float
    negligible: float

    @classmethod
    def fit(cls, components: Array, rows: Any, level: float = 0.95) -> RowLimits:
        """Estimate the limits from components (n×k) and rows (n×d, dense or sparse) of the training set.

        The limit of SPE is not finite if squares of the rows are beyond the largest number.
        """
        if not 0 < level < 1:
            raise ValueError(f"level must be a share between 0 and 1, such as 0.95; got {level!r}.")
        n, k = components.shape
        if n < k + 2:
            raise ValueError(f"X must have at least {k + 2} rows for {k} components; got {n}. Pass the training rows.")
        centre = components.mean(axis=0)
        Q, R = la.qr(components - centre, mode="economic")
        if np.abs(np.diag(R)).min() <= 1e-12 * np.abs(np.diag(R)).max():
            raise ValueError(
                f"The {k} components must not be collinear on X; got a singular matrix. Pass the training rows, or "
                "fewer components."
            )
        # training rows are nearer than new ones, because P was fitted to them: without a row its residual is r/(1 − h)
        nearer = np.maximum(1 - 1 / n - (Q**2).sum(axis=1), ROUNDING)
        with np.errstate(over="ignore", invalid="ignore"):
            mean = np.asarray(rows.mean(axis=0), dtype=np.float64).ravel()
            products = np.asarray(Q.T @ rows) - np.outer(Q.sum(axis=0), mean)
            loadings = la.solve_triangular(R, products, check_finite=False)
            residuals = _residuals(rows, mean, components - centre, loadings)
            negligible = ROUNDING * float((la.norm(components - centre, axis=1) ** 2).mean() * (loadings**2).sum())
            spe = np.maximum(spe_limit(residuals / nearer**2, level), negligible)
        return cls(centre, R, mean, loadings, n, level, t2_limit(n, k, level, fitted=False), float(spe), negligible)

    def distances(self, components: Array, rows: Any) -> tuple[Array, Array]:
        """Return T² and SPE of rows."""
        centred = components - self.centre
        with np.errstate(over="ignore"):  # infinite for rows that are far beyond any limit
            t2 = (self.n_rows - 1) * (la.solve_triangular(self.triangle, centred.T, trans="T") ** 2).sum(axis=0)
            return t2, _residuals(rows, self.mean, centred, self.loadings)

    def for_training_rows(self, spe: Array) -> tuple[float, float]:
        """Return the limits of T² and SPE for the training rows, whose squared residuals are `spe`."""
        training_t2 = t2_limit(self.n_rows, len(self.centre), self.level, fitted=True)
        return training_t2, max(spe_limit(spe, self.level), self.negligible)


def t2_limit(n: int, k: int, level: float, *, fitted: bool) -> float:
    """Return the limit of T² for n training rows and k components: for these rows (beta), or for new ones (F).

    Tracy, Young and Mason (1992).
    """
    if fitted:
        return float((n - 1) ** 2 / n * stats.beta.ppf(level, k / 2, (n - k - 1) / 2))
    return float(k * (n + 1) * (n - 1) / (n * (n - k)) * stats.f.ppf(level, k, n - k))


def spe_limit(residuals: Array, level: float) -> float:
    """Return g χ²_h with g = v/2m and h = 2m²/v, where m and v are the mean and variance of the residuals.

    Box (1954); Nomikos and MacGregor (1995).
    """
    unit = 2.0 ** (np.frexp(residuals.max(initial=0.0))[1] - 1)  # of numbers whose squares may be beyond the largest
    m, v = float((residuals / unit).mean()), float((residuals / unit).var(ddof=1))
    return float(unit * (m if v <= 0 or m <= 0 else v / (2 * m) * stats.chi2.ppf(level, 2 * m**2 / v)))


def _residuals(X: Any, mean: Array, components: Array, loadings: Array) -> Array:
    found = np.empty(X.shape[0])
    for part in block_slices(*X.shape):
        rest = dense_block(X, part) - mean - components[part] @ loadings
        found[part] = np.einsum("ij,ij->i", rest, rest)
    return found
