"""Factors of the rows that also predict the labels, by alternating convex minimisation.

    F = Σ_i (w_i/n) [ ‖x_i − z_iW‖² + α·loss(y_i, z_iV + v_0) ] + β‖V‖² ,    WWᵀ = I

Given V and W, each z_i is a small convex problem. Given Z, V is a linear classifier with a ridge, and W rotates the
factors onto the rows (Procrustes). F never rises: a step that would raise it, after too few inner iterations, is
skipped.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize
from scipy.special import log_softmax, softmax

from discrim.core.coordinates.basis import Basis
from discrim.core.moments.class_moments import ClassMoments
from discrim.core.svm.identical_rows import equal_rows
from discrim.decompositions import solve, svd

Array = NDArray[np.float64]
Codes = NDArray[np.intp]
ROW_STEPS, HALVINGS = 4, 8  # Newton steps for each row's factors per round, and halvings of each step
SETTLED = 1e-12  # steps below this count as zero
CLASSIFIER_STEPS = 50  # per round, starting from the previous result


@dataclass(frozen=True, eq=False)
class CentredRows:
    """Rows minus their mean, divided by one scalar (mean square length 1), accessed by products only."""

    X: Any  # dense and centred, or sparse and uncentred
    offset: Array | None  # mean, implicitly subtracted from sparse rows
    weights: Array  # w_i/n
    codes: Codes
    n_classes: int
    factor: float  # from the original rows to these

    @classmethod
    def of(cls, basis: Basis, moments: ClassMoments, unit: float) -> CentredRows:
        """Build from the distinct rows with their weights, sorted by content to make the result independent of order.

        unit : root mean square distance of the rows from their mean, in the units of the moments.
        """
        groups = equal_rows(basis.original.X, basis.original.codes)
        weights = np.bincount(groups.group, basis.original.weights).astype(np.float64)
        points, offset = basis.points.select(groups.first), None
        with np.errstate(over="ignore"):
            factor = float(0.5**moments.exponent / np.float64(unit))
        if points.is_sparse:
            X, offset = points.X.astype(np.float64) * factor, moments.mean * factor
        else:
            X = moments.centred(points.X.astype(np.float64, copy=False)) / unit
        return cls(X, offset, weights / weights.sum(), points.codes, points.n_classes, factor)

    def dense(self) -> Array:
        """Return X as a dense array."""
        return np.asarray(self.X) if self.offset is None else self.X.toarray() - self.offset

    def project(self, W: Array) -> Array:
        """Compute XWᵀ."""
        found = np.asarray(self.X @ W.T)
        return found if self.offset is None else found - self.offset @ W.T

    def weighted_sum(self, Z: Array) -> Array:
        """Compute ZᵀX."""
        found = np.asarray((self.X.T @ Z).T)
        return found if self.offset is None else found - np.outer(Z.sum(axis=0), self.offset)


class Loss(Protocol):
    """Convex, smooth loss of wrong labels as a function of the scores, n×C."""

    def values(self, scores: Array, codes: Codes) -> Array:
        """Return the loss of each row."""

    def slopes(self, scores: Array, codes: Codes) -> Array:
        """Return the gradient of each row's loss, n×C."""

    def curvatures(self, scores: Array, codes: Codes) -> tuple[Array, Array]:
        """Return D and O (n×C) of the second derivatives diag(D_i) − O_iO_iᵀ."""


def label_scores(Z: Array, V: Array) -> Array:
    """Compute ZV + v_0."""
    return Z @ V[:-1] + V[-1]


@dataclass(frozen=True, eq=False)
class Factors:
    """Result of the minimisation: W (k×p), Z (n×k), V ((k+1)×C), and F after every round."""

    W: Array
    Z: Array
    V: Array
    values: Array
    is_settled: bool


def alternate(
    rows: CentredRows, W: Array, loss: Loss, alpha: float, beta: float, *, tol: float, max_iter: int
) -> Factors:
    """Minimise from given directions until a round decreases F by less than `tol`, relatively."""
    P = rows.project(W)
    Z, V = P, np.zeros((len(W) + 1, rows.n_classes))
    ridge = np.append(np.full(len(W), beta), 0.0)  # the intercept v_0 is not penalised

    def rows_values(P: Array, Z: Array, V: Array) -> Array:
        apart = P - Z
        return np.einsum("ik,ik->i", apart, apart) + alpha * loss.values(label_scores(Z, V), rows.codes)

    def value(P: Array, Z: Array, V: Array) -> float:
        beyond = 1.0 - float(rows.weights @ np.einsum("ik,ik->i", P, P))
        return beyond + float(rows.weights @ rows_values(P, Z, V)) + float(ridge @ (V**2).sum(axis=1))

    values = [value(P, Z, V)]
    for _ in range(max_iter):
        tried = minimise_loss(np.c_[Z, np.ones(len(Z))], V, rows.weights, rows.codes, alpha, ridge, loss)[0]
        V = tried if value(P, Z, tried) <= values[-1] else V
        near = _newton_steps(P, Z, V, rows.codes, alpha, loss)
        lower = rows_values(P, near, V) <= rows_values(P, Z, V)
        Z = np.where(lower[:, None], near, Z)
        turned = _procrustes(rows, Z)
        projected = rows.project(turned)
        if value(projected, Z, V) <= value(P, Z, V):
            W, P = turned, projected
        values.append(value(P, Z, V))
        if values[-2] - values[-1] <= tol * values[-1]:
            return Factors(W, Z, V, np.array(values), True)
    return Factors(W, Z, V, np.array(values), False)


def _procrustes(rows: CentredRows, Z: Array) -> Array:
    """Return the orthonormal W that maps Z closest to the rows (Procrustes)."""
    left, _, right = svd(rows.weighted_sum(rows.weights[:, None] * Z))
    return np.asarray(left @ right)


def _newton_steps(P: Array, Z: Array, V: Array, codes: Codes, alpha: float, loss: Loss) -> Array:
    """Return a z for each row with lower ‖p − z‖² + α·loss(y, zV + v_0), by Newton steps for all rows at once."""
    W, axes = V[:-1], np.arange(len(V) - 1)
    for _ in range(ROW_STEPS):
        scores = label_scores(Z, V)
        slope = 2 * (Z - P) + alpha * loss.slopes(scores, codes) @ W.T
        diagonal, outer = loss.curvatures(scores, codes)
        means = outer @ W.T
        curvature = np.einsum("kc,ic,lc->ikl", W, diagonal, W, optimize=True) - means[:, :, None] * means[:, None, :]
        curvature *= alpha
        curvature[:, axes, axes] += 2
        step = solve(curvature, slope[:, :, None])[:, :, 0]
        Z = _backtrack(P, Z, V, codes, alpha, loss, step)
        if float(np.abs(step).max(initial=0.0)) < SETTLED:
            break
    return Z


def _backtrack(P: Array, Z: Array, V: Array, codes: Codes, alpha: float, loss: Loss, step: Array) -> Array:
    """Return each row's step, halved until its value does not rise; 0 if it still would."""

    def value(Z: Array) -> Array:
        return ((P - Z) ** 2).sum(axis=1) + alpha * loss.values(label_scores(Z, V), codes)

    before, length = value(Z), np.ones(len(Z))
    for _ in range(HALVINGS):
        uphill = value(Z - length[:, None] * step) > before
        if not uphill.any():
            break
        length[uphill] /= 2
    else:
        length[uphill] = 0.0
    return Z - length[:, None] * step


def minimise_loss(
    design: Array, V: Array, weights: Array, codes: Codes, alpha: float, ridge: Array, loss: Loss, **options: float
) -> tuple[Array, float]:
    """Minimise α Σ_i w_i loss(y_i, x_iV) + Σ_j β_j‖V_j‖² over V from a start; return V and the minimum.

    design : x_i as rows
    ridge : β_j, one for each column of the design
    """

    def value(flat: Array) -> tuple[float, Array]:
        given = flat.reshape(V.shape)
        scores = design @ given
        total = alpha * float(weights @ loss.values(scores, codes)) + float(ridge @ (given**2).sum(axis=1))
        errors = weights[:, None] * loss.slopes(scores, codes)
        return total, (alpha * design.T @ errors + 2 * ridge[:, None] * given).ravel()

    options = {"maxiter": CLASSIFIER_STEPS, "ftol": 1e-15, "gtol": 1e-10} | options
    found = minimize(value, V.ravel(), jac=True, method="L-BFGS-B", options=options)
    return np.asarray(found.x.reshape(V.shape)), float(found.fun)


@dataclass(frozen=True)
class LogisticLoss:
    """−ln p_y, p = softmax(scores): multinomial logistic regression."""

    def values(self, scores: Array, codes: Codes) -> Array:
        return np.asarray(-log_softmax(scores, axis=1)[np.arange(len(codes)), codes])

    def slopes(self, scores: Array, codes: Codes) -> Array:
        p = softmax(scores, axis=1)
        p[np.arange(len(codes)), codes] -= 1
        return np.asarray(p)

    def curvatures(self, scores: Array, codes: Codes) -> tuple[Array, Array]:
        p = softmax(scores, axis=1)
        return p, p


@dataclass(frozen=True)
class HingeLoss:
    """Smoothed hinge Σ_c h(1 − t_c·score_c), where t_c = 1 for the row's own class and −1 for the others.

    h(g) is 0 for g ≤ 0, g − δ/2 for g ≥ δ and g²/2δ in between. At the kink of the plain hinge, alternating steps could
    stop far from the minimum.
    """

    width: float = 0.25  # δ

    def values(self, scores: Array, codes: Codes) -> Array:
        gaps = self._gaps(scores, codes)
        inside = np.clip(gaps, 0.0, self.width)
        return np.asarray((inside**2 / (2 * self.width) + np.maximum(gaps - self.width, 0.0)).sum(axis=1))

    def slopes(self, scores: Array, codes: Codes) -> Array:
        return -_signs(codes, scores.shape[1]) * np.clip(self._gaps(scores, codes), 0.0, self.width) / self.width

    def curvatures(self, scores: Array, codes: Codes) -> tuple[Array, Array]:
        gaps = self._gaps(scores, codes)
        curved = ((gaps > 0) & (gaps < self.width)) / self.width
        return curved, np.zeros_like(curved)

    def _gaps(self, scores: Array, codes: Codes) -> Array:
        return 1 - _signs(codes, scores.shape[1]) * scores


def _signs(codes: Codes, n_classes: int) -> Array:
    return np.asarray(2.0 * np.eye(n_classes)[codes] - 1.0)
