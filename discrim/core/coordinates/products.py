"""Large tables of which few directions are wanted: products with the rows, which may be sparse or read in parts."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
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
from discrim.core.margin_vectors import Margins
from discrim.core.moments.class_moments import ClassMoments
from discrim.core.ratio import Ratio
from discrim.core.spread import Spread
from discrim.decompositions import eigh
from discrim.tables.row_hash import row_hashes
from discrim.tables.rows import LabelledRows
from discrim.tables.warn_once import warn

Array = NDArray[np.float64]
FEW_COLUMNS = 64  # up to here a trace by products is summed column by column
CHOICE_ROWS, CLASS_ROWS = 1_000, 10  # of all, and at least of each class: rows on which a ridge is chosen
PROBES = 16  # otherwise from so many vectors of random signs


@dataclass(frozen=True, eq=False, kw_only=True)
class Products(Basis):
    """The features, of which only products with the rows are taken."""

    pilot: Array | None

    @classmethod
    def of(cls, points: LabelledRows, margins: Margins, how: str) -> Products:
        """Return rows in their features."""
        near, pilot = points.near_origin()
        how = f"{how} (Lanczos iterations, conjugate gradients)"
        return cls(points=near, margins=margins.moved(pilot), original=near, how=how, pilot=pilot)

    def mean(self, moments: ClassMoments) -> Array:
        if self.pilot is None:
            return moments.mean
        return ClassMoments.of_rows(self.points.unlabelled(), keep="means").mean + self.pilot

    def lift(self, directions: Array) -> Array:
        return directions

    def feature_variances(self, moments: ClassMoments) -> Array:
        return column_variances(self.points, moments.exponent)

    def moments(self, keep: str, emphasis: Callable[[Array], Array | None] | None = None) -> ClassMoments:
        return ClassMoments.of_rows(self.points, keep="means")

    def spectrum(self, spread: Spread, moments: ClassMoments, wanted: int | None) -> Spectrum:
        assert wanted is not None
        total = spread.trace(moments, self.points) if spread.is_definite else None
        return spectrum_of_operator(spread.operator(moments, self.points), wanted, total)

    def ratio(self, moments: ClassMoments) -> Ratio:
        shares = moments.weights / moments.total_weight
        means = np.sqrt(shares)[:, None] * moments.centred_means()
        within = within_spread(moments)
        variances = self.feature_variances(moments)
        # but for collinear rows and columns, which no product shows
        rank = min(len(np.unique(self.points.fingerprints())) - 1, int((variances > 0).sum()))
        product, trace = within.operator(moments, self.points), within.trace(moments, self.points)
        return Ratio(product, means, shares, moments.total_weight, variances, trace, rank)

    def within_along(self, directions: Array, moments: ClassMoments) -> Array:
        return np.asarray(within_spread(moments).operator(moments, self.points) @ directions.T).T

    def cost(self, ratio: Ratio, gamma: float) -> RidgeProducts:
        if not ratio.trace > 0:
            raise ValueError(
                "X must vary within some class if the table is so large that it is solved by products with its rows, "
                "as distances are measured by the within-class covariance. Any classifier separates such classes."
            )
        ridge = gamma * ratio.trace / ratio.rank
        return RidgeProducts(ratio.within, gamma, ridge, (1 - gamma) * ratio.variances + ridge)

    def complement(self, ratio: Ratio, directions: Array, wanted: int) -> Array:
        Q = la.qr(directions.T, mode="economic")[0]

        def projected(v: Array) -> Array:
            product = ratio.total_along((v - Q @ (Q.T @ v))[None])[0]
            return product - Q @ (Q.T @ product)

        size = directions.shape[1]
        rest = LinearOperator((size, size), matvec=lambda v: projected(v.ravel()), dtype=np.float64)
        return spectrum_of_operator(rest, wanted, None).directions

    def to_choose_in(self) -> Basis:
        """Return the span of some rows, of each class its share: folds of all rows would cost a fit for every try."""
        hashes, codes = row_hashes(self.original.X), self.original.codes
        order = np.lexsort((hashes, codes))
        counts = np.bincount(codes, minlength=self.original.n_classes)
        place = np.arange(len(codes)) - np.repeat(np.cumsum(counts) - counts, counts)  # in its class
        shares = np.maximum(np.ceil(counts * (CHOICE_ROWS / len(codes))), CLASS_ROWS)
        few = np.sort(order[place < np.repeat(shares, counts)])
        warn(
            f"The shrinkage was chosen on {len(few):,} rows of {len(codes):,}, of each class its share (those of the "
            "smallest content hash); the directions use all rows. Pass a number as shrinkage to choose it yourself.",
        )
        return GramRows.of(self.original.some(few), Margins(), f"{len(few)} rows of {len(codes)}")

    def trained(self, folds: Iterable[TrainingSet], gamma: float) -> Iterator[tuple[TrainingSet, Ratio]]:
        """Yield the first split only, as each costs a fit."""
        assert isinstance(folds, Folds)
        training, test = (folds.points.some(index) for index in folds.splits.pairs[0])
        inner = Products(points=training, margins=Margins(), original=training, how="training rows", pilot=None)
        fold = TrainingSet(inner.moments("means"), test)
        yield fold, inner.ratio(fold.training)


def within_spread(moments: ClassMoments) -> Spread:
    """Compute S_w/n."""
    return Spread(np.full(len(moments.weights), 1 / moments.total_weight), np.empty((0, moments.n_features)))


@dataclass(frozen=True, eq=False)
class RidgeProducts:
    """Σ_γ = (1−γ) S_w/n + ridge·I as what it does to vectors."""

    within: LinearOperator
    gamma: float
    ridge: float
    diagonal: Array
    is_nonsingular: bool = True
    inverse_condition: float = 1.0  # not known; conjugate gradients say themselves where they do not get there

    def times(self, V: Array) -> Array:
        """Compute Σ_γV."""
        return (1 - self.gamma) * self.within.matmat(V) + self.ridge * V

    def solve(self, B: Array) -> Array:
        """Compute Σ_γ⁻¹B by conjugate gradients."""
        return conjugate_gradients(self.times, B, self.diagonal)

    def whitened(self, rows: Array) -> tuple[Array, Callable[[Array], Array]]:
        """Return rows in coordinates of their own in which Σ_γ is I, and what carries directions found there back.

        With Y = Σ_γ⁻¹Hᵀ and HY = QΛQᵀ they are QΛ^½, and a direction v there is v Λ^−½ Qᵀ Yᵀ.
        """
        Y = self.solve(rows.T)
        values, vectors = eigh(rows @ Y)
        kept = values > RANK * values[-1]
        roots, vectors = np.sqrt(values[kept]), vectors[:, kept]
        return vectors * roots, lambda directions: (directions / roots) @ vectors.T @ Y.T

    def trace_of_quotient(self, scatter: LinearOperator) -> float:
        """Compute tr(Σ_γ⁻¹S): to all digits for few columns, else from random signs, the same at every call."""
        size = len(self.diagonal)
        if size <= FEW_COLUMNS:
            probes = np.eye(size)
        else:
            probes = np.random.default_rng(0).choice([-1.0, 1.0], (size, PROBES)) / np.sqrt(PROBES)
        return float(np.vdot(self.solve(probes), scatter.matmat(probes)))


def conjugate_gradients(
    product: Callable[[Array], Array], B: Array, diagonal: Array, *, tol: float = 1e-10, max_iter: int = 1000
) -> Array:
    """Compute X with A X = B for a positive definite A given by its products and its diagonal (the preconditioner).

    All columns advance together, so that each step is one product with a block: the rows are read once for all of them.
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
        f"Conjugate gradients reached a relative residual of {left:.1e} only, after {max_iter} steps, so that the "
        "discriminants are approximate. A larger shrinkage makes the problem easier.",
        ConvergenceWarning,
    )
    return X


@dataclass(frozen=True, eq=False, kw_only=True)
class PassedRows(Features):
    """The features of rows in parts; what statistics would say is had by going through the parts."""

    summed: Callable[[Callable[[LabelledRows], Any]], Any]  # what a function gives for the rows of each part, summed
    most: int  # products for a spectrum

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
