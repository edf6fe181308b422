"""Products with the rows, for few directions of large tables, which may be sparse or read in parts."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
import scipy.linalg as la
from numpy.typing import NDArray
from scipy.sparse.linalg import LinearOperator
from sklearn.exceptions import ConvergenceWarning

from discrim.core.coordinates.basis import Basis, Features, column_variances
from discrim.core.coordinates.row_space import GramRows
from discrim.core.cross_validation import Folds, TrainingSet
from discrim.core.discriminants import RANK
from discrim.core.eigen import Spectrum, spectrum_of_operator, spectrum_of_passes
from discrim.core.moments.class_moments import ClassMoments
from discrim.core.ratio import Ratio
from discrim.core.row_hash import row_hashes
from discrim.core.spread import Margins, Spread
from discrim.decompositions import eigh
from discrim.tables.rows import LabelledRows
from discrim.warn_once import warn

Array = NDArray[np.float64]
FEW_COLUMNS = 64  # up to here a trace by products is summed over columns
CHOICE_ROWS, CLASS_ROWS = 1_000, 10  # rows on which a ridge is chosen: in total, and at least per class
PROBES = 16  # otherwise it is estimated from this many vectors of random signs


@dataclass(frozen=True, eq=False, kw_only=True)
class Products(Basis):
    """The features, accessed only by products with the rows."""

    has_scatters: bool = False

    @classmethod
    def of(cls, points: LabelledRows, margins: Margins, how: str) -> Products:
        """Build from rows."""
        near, pilot = points.near_origin()
        how = f"{how} (Lanczos iterations, conjugate gradients)"
        return cls(points=near, margins=margins.moved(pilot), original=near, how=how, pilot=pilot)

    def feature_variances(self, moments: ClassMoments) -> Array:
        return column_variances(self.points, moments.exponent)

    def spectrum(self, spread: Spread, moments: ClassMoments, wanted: int | None) -> Spectrum:
        assert wanted is not None
        total = spread.trace(moments, self.points) if spread.is_definite else None
        return spectrum_of_operator(spread.operator(moments, self.points), wanted, total)

    def ratio(self, moments: ClassMoments) -> Ratio:
        shares = moments.weights / moments.total_weight
        means = np.sqrt(shares)[:, None] * moments.centred_means()
        within = within_spread(moments)
        variances = self.feature_variances(moments)
        # collinear rows and columns are not subtracted from the rank, because products do not show them
        rank = min(len(np.unique(self.points.fingerprints())) - 1, int((variances > 0).sum()))
        product, trace = within.operator(moments, self.points), within.trace(moments, self.points)
        return ProductRatio(product, means, shares, moments.total_weight, variances, trace, rank)

    def within_along(self, directions: Array, moments: ClassMoments) -> Array:
        return np.asarray(within_spread(moments).operator(moments, self.points) @ directions.T).T

    def complement(self, ratio: Ratio, directions: Array, wanted: int) -> Array:
        Q = la.qr(directions.T, mode="economic")[0]

        def projected(v: Array) -> Array:
            product = ratio.total_along((v - Q @ (Q.T @ v))[None])[0]
            return product - Q @ (Q.T @ product)

        size = directions.shape[1]
        rest = LinearOperator((size, size), matvec=lambda v: projected(v.ravel()), dtype=np.float64)
        return spectrum_of_operator(rest, wanted, None).directions

    def sample(self) -> GramRows:
        """Return the span of a stratified sample of rows, because folds of all rows would cost a fit per candidate."""
        hashes, codes = row_hashes(self.original.X), self.original.codes
        order = np.lexsort((hashes, codes))
        counts = np.bincount(codes, minlength=self.original.n_classes)
        place = np.arange(len(codes)) - np.repeat(np.cumsum(counts) - counts, counts)  # position within the class
        shares = np.maximum(np.ceil(counts * (CHOICE_ROWS / len(codes))), CLASS_ROWS)
        few = np.sort(order[place < np.repeat(shares, counts)])
        warn(
            f"The shrinkage was chosen on a stratified sample of {len(few):,} of {len(codes):,} rows (those with the "
            "smallest content hashes); the directions use all rows. Pass a number as shrinkage to choose it yourself.",
        )
        return GramRows.of(self.original.select(few), Margins(), f"{len(few)} rows of {len(codes)}")

    def first_training_set(self, folds: Folds) -> TrainingSet:
        """Return the first fold only, because each costs a fit, with a ratio that is known by products."""
        training, test = folds.splits.pairs[0]
        rows = self.points.select(training)
        moments = ClassMoments.from_rows(rows, keep="means")
        inner = Products(points=rows, margins=Margins(), original=rows, how="training rows")
        return TrainingSet(moments, self.points.select(test), ridged=inner.ratio(moments))


def within_spread(moments: ClassMoments) -> Spread:
    """Compute S_w/n."""
    return Spread(np.full(len(moments.weights), 1 / moments.total_weight), np.empty((0, moments.n_features)))


class ProductRatio(Ratio):
    """Ratio whose scatter is known by its products with vectors only."""

    def covariance(self, gamma: float) -> RidgeProducts:
        if not self.trace > 0:
            raise ValueError(
                "X must vary within at least one class; got classes of equal rows. Their within-class covariance is 0, "
                "and a table of this size needs products with it. Any classifier separates such classes."
            )
        ridge = self.ridge(gamma)
        return RidgeProducts(self.within, gamma, ridge, (1 - gamma) * self.variances + ridge)


@dataclass(frozen=True, eq=False)
class RidgeProducts:
    """Σ_γ = (1−γ) S_w/n + ridge·I, accessed by products with vectors."""

    within: LinearOperator
    gamma: float
    ridge: float
    diagonal: Array
    is_nonsingular: bool = True
    inverse_condition: float = 1.0  # unknown; conjugate gradients warn if they do not converge

    def times(self, V: Array) -> Array:
        """Compute Σ_γV."""
        return (1 - self.gamma) * self.within.matmat(V) + self.ridge * V

    def solve(self, B: Array) -> Array:
        """Compute Σ_γ⁻¹B by conjugate gradients."""
        return conjugate_gradients(self.times, B, self.diagonal)

    def whitened(self, rows: Array) -> tuple[Array, Callable[[Array], Array]]:
        """Return the rows in coordinates of their span in which Σ_γ is I, and a function that maps directions back.

        With Y = Σ_γ⁻¹Hᵀ and HY = QΛQᵀ the coordinates are QΛ^½, and a direction v there is v Λ^−½ Qᵀ Yᵀ.
        """
        Y = self.solve(rows.T)
        values, vectors = eigh(rows @ Y)
        kept = values > RANK * values[-1]
        roots, vectors = np.sqrt(values[kept]), vectors[:, kept]
        return vectors * roots, lambda directions: (directions / roots) @ vectors.T @ Y.T

    def trace_of_quotient(self, scatter: LinearOperator) -> float:
        """Compute tr(Σ_γ⁻¹S): exactly for few columns, else from random signs with a fixed seed."""
        size = len(self.diagonal)
        if size <= FEW_COLUMNS:
            probes = np.eye(size)
        else:
            probes = np.random.default_rng(0).choice([-1.0, 1.0], (size, PROBES)) / np.sqrt(PROBES)
        return float(np.vdot(self.solve(probes), scatter.matmat(probes)))


def conjugate_gradients(
    product: Callable[[Array], Array], B: Array, diagonal: Array, *, tol: float = 1e-10, max_iter: int = 1000
) -> Array:
    """Solve A X = B for a positive definite A given by its products and its diagonal (the preconditioner).

    All columns advance together, so each step is one product with a block and reads the rows once.
    """
    X, residual = np.zeros_like(B), B.copy()
    scaled = residual / diagonal[:, None]
    direction = scaled.copy()
    strength = np.einsum("dk,dk->k", residual, scaled)
    goal = tol**2 * strength
    for _ in range(max_iter):
        if (strength <= goal).all():
            return X
        image = product(direction)
        curvature = np.einsum("dk,dk->k", direction, image)
        step = np.divide(strength, curvature, out=np.zeros_like(strength), where=curvature > 0)
        X += step * direction
        residual -= step * image
        scaled = residual / diagonal[:, None]
        before, strength = strength, np.einsum("dk,dk->k", residual, scaled)
        direction = scaled + np.divide(strength, before, out=np.zeros_like(strength), where=before > 0) * direction
    left = float(np.sqrt((strength / np.maximum(goal, 1e-300)).max()) * tol)
    warn(
        f"Conjugate gradients reached a relative residual of only {left:.1e} after {max_iter} steps, so the "
        "discriminants are approximate. Increase the shrinkage to make the problem easier to solve.",
        ConvergenceWarning,
    )
    return X


@dataclass(frozen=True, eq=False, kw_only=True)
class PassedRows(Features):
    """The features of rows in parts, with statistics replaced by passes over the parts."""

    summed: Callable[[Callable[[LabelledRows], Any]], Any]  # sums a function of the rows over all parts
    most: int  # maximum number of products for a spectrum

    def spectrum(self, spread: Spread, moments: ClassMoments, wanted: int | None) -> Spectrum:
        assert wanted is not None
        found = spectrum_of_passes(lambda V: self._product(spread, moments, V), moments.n_features, wanted, self.most)
        if not spread.is_definite:
            return found
        of_rows = self.summed(partial(_trace, _without_extra_rows(spread), moments))
        return replace(found, total=float(np.vdot(spread.rows, spread.rows) + of_rows))

    def within_along(self, directions: Array, moments: ClassMoments) -> Array:
        return self._product(within_spread(moments), moments, directions.T).T

    def _product(self, spread: Spread, moments: ClassMoments, V: Array) -> Array:
        of_rows = self.summed(partial(_image, _without_extra_rows(spread), moments, V))
        return spread.rows.T @ (spread.rows @ V) + of_rows


def _without_extra_rows(spread: Spread) -> Spread:
    return replace(spread, rows=spread.rows[:0])


def _image(spread: Spread, moments: ClassMoments, V: Array, rows: LabelledRows) -> Array:
    return np.asarray(spread.operator(moments, rows).matmat(V))


def _trace(spread: Spread, moments: ClassMoments, rows: LabelledRows) -> np.float64:
    weights = np.bincount(rows.codes, rows.weights, minlength=len(moments.weights)).astype(np.float64)
    return np.float64(spread.trace(replace(moments, weights=weights), rows))
