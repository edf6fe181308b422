"""Max-margin data shifting: every labelled row moves away from the classes it could be confused with.

    T[x_n] = x_n + σ² Σ_y α_n^y (η_{y_n} − η_y)        T[X] = X + σ² Aη,   η = Aᵀ(X − μ)

α and η are the dual and primal solutions of the Crammer–Singer SVM on the centred rows; A[n, y_n] = Σ_y α_n^y,
A[n, y] = −α_n^y. With row weights v, the dual of a row counts for v copies of it, so one copy moves by A_n/v_n. Rows
without a label do not move. Because the rows are centred, the scatter of the shifted rows is that of the rows plus a
few added rows:

    Σ_n v_n (T[x_n] − mean)(…)ᵀ = S_t + ηᵀ(2σ²I + σ⁴G)η,    G = Aᵀdiag(1/v)A − (Aᵀ1)(1ᵀA)/Σv
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.linalg as la
from numpy.typing import NDArray

from discrim.core.eigen import require_directions
from discrim.core.moments.class_moments import ClassMoments
from discrim.core.row_hash import content_order
from discrim.core.svm.crammer_singer import solve_crammer_singer
from discrim.decompositions import eigh
from discrim.tables.rows import LabelledRows, block_slices, dense_block
from discrim.tables.validation import require_finite

Array = NDArray[np.float64]
SETTLED = 1e-8  # relative change of the shifted rows below which the rounds end


@dataclass(frozen=True, eq=False)
class UnitRows:
    """Rows x̃ = (x·2^−exponent − offset)/scale with mean 0 and mean square length 1; sparse rows stay sparse."""

    X: Any  # times 2^−exponent; dense rows are centred already
    offset: Array | None  # for sparse rows: the mean, still to be subtracted
    scale: float
    exponent: int
    weights: Array | None

    @classmethod
    def from_rows(cls, rows: LabelledRows) -> UnitRows:
        """Build from rows, near the origin if they are sparse."""
        moments, offset = ClassMoments.from_rows(rows, keep="means"), None
        exponent = moments.exponent
        if rows.is_sparse:
            X = rows.X * 0.5**exponent if exponent else rows.X
            offset = np.ldexp(moments.mean, -exponent)
            centre_square = float(offset @ offset)
            squares = np.asarray(X.multiply(X).sum(axis=1, dtype=np.float64)).ravel()
            total = float(np.average(squares, weights=rows.weights))
            mean_square = total - centre_square
            mean_square = mean_square if mean_square > 1e-12 * total else 0.0  # the difference may be rounding
        else:
            X = np.subtract(rows.X, moments.origin, dtype=np.float64)
            X -= moments.mean_offset
            np.ldexp(X, -exponent, out=X)
            mean_square = float(np.average(np.einsum("nd,nd->n", X, X), weights=rows.weights))
        require_directions(int(mean_square > 0), rows.shape)
        return cls(X, offset, float(np.sqrt(mean_square)), exponent, rows.weights)

    @property
    def total_weight(self) -> float:
        """Σv, which equals Σ v‖x̃‖²."""
        return float(self.X.shape[0] if self.weights is None else self.weights.sum())

    def weighted(self, values: Array) -> Array:
        """Return one row of values for each row, multiplied by its weight."""
        return values if self.weights is None else values * self.weights[:, None]

    def project(self, directions: Array) -> Array:
        """Compute x̃ᵀw for every row and direction."""
        products = np.asarray(self.X @ directions.T)
        return (products if self.offset is None else products - directions @ self.offset) / self.scale

    def weighted_sum(self, values: Array) -> Array:
        """Compute Σ_n values_n x̃_nᵀ."""
        sums = np.asarray(self.X.T @ values).T
        return (sums if self.offset is None else sums - np.outer(values.sum(axis=0), self.offset)) / self.scale


@dataclass(frozen=True, eq=False)
class Shift:
    """Shift of the rows by the large-margin classifier fitted to them."""

    duals: Array  # A, n×C, zero for rows without a label
    weights: Array | None  # v
    class_coef: Array  # η, C×d, in the units of the rows
    strength: float  # ‖Aη‖/‖X − μ‖: how far the rows move, relative to their spread, at σ² = 1
    gap: float
    n_iter: int

    def sigma2(self, shift: float) -> float:
        """Compute σ² at which the rows move by `shift` times their spread."""
        return shift / self.strength if self.strength > 0 else 0.0

    def shifted(self, X: Any, shift: float) -> NDArray[Any]:
        """Compute T[X] as a dense array."""
        pulls = self.duals if self.weights is None else self.duals / self.weights[:, None]
        result = np.empty(X.shape, X.dtype)
        for part in block_slices(*X.shape):
            result[part] = dense_block(X, part) + (self.sigma2(shift) * pulls[part]) @ self.class_coef
        return result


def margin_shift(rows: LabelledRows, n_classes: int, *, C: float, tol: float, max_iter: int) -> Shift:
    """Return the shift of the rows; rows with class numbers ≥ n_classes have no label.

    The SVM is fitted to the centred rows divided by one scalar: their mean square length is then 1, which fixes the
    unit of C. If more rows lie on the margin than there are dimensions (common with integer data), the duals are not
    unique, and the last digit of the mean decides among them. The rows are therefore processed in an order derived from
    the data.
    """
    require_finite(rows.X)
    order = content_order(rows.X, rows.codes, rows.weights)
    weights_given = rows.weights
    rows = rows.select(order)
    # near the origin, because a constant column of sparse rows would dominate the others; the SVM centres anyway
    rows, _ = rows.near_origin()
    unit = UnitRows.from_rows(rows)
    labelled = rows.codes < n_classes
    weights = None if rows.weights is None else rows.weights[labelled]
    svm = solve_crammer_singer(
        unit.X if labelled.all() else unit.X[labelled],
        rows.codes[labelled],
        n_classes,
        C=C,
        sample_weight=weights,
        fit_intercept=False,
        tol=tol,
        max_iter=max_iter,
        random_state=0,  # the optimum does not depend on the seed
        offset=unit.offset,
        scale=unit.scale,
    )
    duals = np.zeros((len(labelled), n_classes))
    duals[order[labelled]] = svm.dual_coef
    eta = np.ldexp(unit.scale * svm.class_coef, unit.exponent)
    A = svm.dual_coef if weights is None else svm.dual_coef / np.sqrt(weights)[:, None]
    values, vectors = eigh(A.T @ A)  # avoids forming an n×d array
    moves = np.sqrt(np.maximum(values, 0.0))[:, None] * (vectors.T @ svm.class_coef)
    # ‖Aη‖/‖X − μ‖ in the SVM's units, in which the denominator is the root of the total weight
    strength = float(la.norm(moves) / np.sqrt(unit.total_weight))
    return Shift(duals, weights_given, eta, strength, svm.gap, svm.n_iter)


def iterated_shift(
    rows: LabelledRows, n_classes: int, first: Shift, sigma2: float, n_rounds: int, **svm: Any
) -> tuple[Shift, NDArray[Any]]:
    """Return the shift and the shifted rows after rounds that each refit the SVM to the shifted rows (equation 7)."""
    current = first
    shifted = current.shifted(rows.X, sigma2 * current.strength)
    for _ in range(n_rounds - 1):
        current = margin_shift(rows.moved(shifted), n_classes, **svm)
        before, shifted = shifted, current.shifted(rows.X, sigma2 * current.strength)
        if la.norm(shifted - before) <= SETTLED * la.norm(shifted):
            break
    return current, shifted


def corrupted_rows(
    rows: LabelledRows, n_classes: int, current: Shift, sigma2: float, C: float, copies: int, rng: np.random.RandomState
) -> LabelledRows:
    """Return noisy copies of the labelled rows, weighted by exp(−C·hinge) of the SVM (equations 4 and 5).

    The weights of the copies of a row sum to its own. Rows without a label are unchanged.
    """
    unit, labelled = UnitRows.from_rows(rows.near_origin()[0]), rows.codes < n_classes
    scale = float(np.ldexp(unit.scale, unit.exponent))  # in these units the noise has variance σ²
    points = dense_block(rows.X, slice(None))[labelled].astype(np.float64)
    centre, codes = np.average(dense_block(rows.X, slice(None)), axis=0, weights=rows.weights), rows.codes[labelled]
    noise = rng.standard_normal((copies, *points.shape)) * (np.sqrt(sigma2) * scale)
    copied = points + noise
    scores = (copied - centre) @ (current.class_coef / scale**2).T
    own = np.take_along_axis(scores, codes[None, :, None], axis=2)
    wrong = (np.arange(n_classes) != codes[:, None])[None]
    hinge = (scores - own + wrong).max(axis=2)
    shares = np.exp(-C * (hinge - hinge.min(axis=0)))
    shares /= shares.sum(axis=0)
    weights = np.ones(rows.shape[0]) if rows.weights is None else rows.weights
    copy_weights = (shares * weights[labelled]).ravel()
    X = np.concatenate([copied.reshape(-1, points.shape[1]), dense_block(rows.X, slice(None))[~labelled]])
    return LabelledRows(
        X, np.r_[np.tile(codes, copies), rows.codes[~labelled]], rows.classes, np.r_[copy_weights, weights[~labelled]]
    )


def class_pulls(points: LabelledRows, exponent: int, duals: Array) -> Array:
    """Compute η = Aᵀ(X − μ) in the rows' coordinates, times 2^−exponent; sparse rows, near the origin, stay sparse."""
    v = np.ones(len(duals)) if points.weights is None else points.weights
    # centred duals give the same result: their columns sum to 0, so any point near the rows can be subtracted
    duals = duals - np.outer(v, duals.sum(axis=0) / v.sum())
    if points.is_sparse:
        return np.asarray((points.X.T @ duals).T) * 0.5**exponent
    eta = np.zeros((duals.shape[1], points.shape[1]))
    pilot = np.ldexp(dense_block(points.X, slice(0, 1)).astype(np.float64), -exponent)
    for part in block_slices(*points.shape):
        block = dense_block(points.X, part).astype(np.float64, copy=False)
        eta += duals[part].T @ (np.ldexp(block, -exponent) - pilot)
    return eta


def added_rows(eta: Array, duals: Array, weights: Array | None) -> Array:
    """Return rows with Gram matrix ηᵀ(2I + G)η: √(2 + e) qᵀη for the eigenpairs (e, q) of G. (With σA for A: any σ.)"""
    v = np.ones(len(duals)) if weights is None else weights
    centred = duals / np.sqrt(v)[:, None] - np.outer(np.sqrt(v), duals.sum(axis=0) / v.sum())
    values, vectors = eigh(centred.T @ centred)
    return np.sqrt(2 + np.maximum(values, 0.0))[:, None] * (vectors.T @ eta)
