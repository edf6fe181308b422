"""Discriminants of a fit or of a fold's training rows, and what other rows show along them, seen or foretold."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from discrim.data.rows import LabelledRows
from discrim.margins.margin_vectors import Margins
from discrim.moments.class_moments import ClassMoments
from discrim.objectives.held_out import HeldOut, trace_of_quotient
from discrim.objectives.ratio import Ratio, ratio_of
from discrim.reducers.base import projected
from discrim.reducers.regularized_lda import RidgeSystem, ridge_discriminants
from discrim.reducers.shrunk_discriminant import shrunk_discriminants
from discrim.solve.basis import Basis
from discrim.solve.discriminants import Discriminants, principal, whitened_span
from discrim.solve.folds import Folds

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class WhitenedClasses:
    """All discriminants as q directions of unit within-class covariance, the widest first, and the class means along.

    Directions in the coordinates of a ratio or of moments; means (C×q) NaN for classes without rows.
    """

    directions: Array
    means: Array

    @property
    def size(self) -> int:
        """q."""
        return len(self.directions)

    @classmethod
    def of(cls, found: Discriminants, ratio: Ratio) -> WhitenedClasses:
        """From the discriminants of a ratio."""
        metric = ratio.within if found.metric is None else found.metric
        span = whitened_span(found.directions, metric, ratio.total)
        axes = principal(ratio.means @ span.T)[1] @ span
        roots = np.sqrt(np.where(ratio.shares > 0, ratio.shares, np.nan))[:, None]
        return cls(axes, (ratio.means @ axes.T) / roots)


def held_out_rows(folds: Folds, gamma: float) -> Iterator[HeldOut]:
    """What each fold's test rows show along the discriminants of its training rows."""
    for training, test in folds:
        ratio = ratio_of(training)
        if ratio.rank == 0 or (training.weights > 0).sum() < 2 or test.shape[0] == 0:
            continue
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)  # the fit itself has said that S_w is singular
            found = shrunk_discriminants(ratio, gamma, training.precision, "")
        if len(found.values):
            classes = WhitenedClasses.of(found, ratio)
            directions = ratio.embedded(classes.directions) * 0.5**training.exponent
            yield _seen(test, training.mean, directions, classes.means)


def held_out_by_products(folds: Folds, gamma: float) -> Iterator[HeldOut]:
    """The same where only products with the rows are to be had: of the first fold, as each costs a fit."""
    training, test = (folds.rows(index) for index in folds.splits[0])
    present, codes = np.unique(training.codes, return_inverse=True)
    if len(present) < 2 or test.shape[0] == 0:
        return
    rows = LabelledRows(training.X, codes, training.classes[present], training.weights)
    moments = ClassMoments.of_rows(rows, keep="means")
    basis = Basis(rows, Margins(), "training rows", as_operator=True)
    _, found = ridge_discriminants(RidgeSystem.of(moments, basis, gamma), moments, None, rows.shape[1])
    means = np.full((training.n_classes, len(found.directions)), np.nan)
    means[present] = moments.centred_means() @ found.directions.T
    yield _seen(test, moments.mean, found.directions * 0.5**moments.exponent, means)


def _seen(test: LabelledRows, mean: Array, directions: Array, trained: Array) -> HeldOut:
    features = projected(test.X, mean, directions).astype(np.float64, copy=False)
    return HeldOut.of(trained, ClassMoments.of_rows(test.moved(features)))


def foretold_by_statistics(
    found: Discriminants, classes: WhitenedClasses, ratio: Ratio, gamma: float
) -> tuple[HeldOut, ...]:
    """What statistics foretell; nothing where Σ_γ is singular (S_w/n itself is the metric then)."""
    if found.metric is None or found.metric is ratio.within:
        return ()
    within = classes.directions @ ratio.within @ classes.directions.T
    trace = trace_of_quotient(ratio.within, found.metric)
    expected = HeldOut.expected(classes.means, within, trace, ratio.shares, ratio.weight, gamma)
    return () if expected is None else (expected,)


def foretold_by_products(
    system: RidgeSystem, directions: Array, means: Array, moments: ClassMoments
) -> tuple[HeldOut, ...]:
    """The same from products with the rows."""
    shares = moments.weights / moments.total_weight
    within = directions @ system.within.matmat(directions.T)
    trace = system.trace_of_quotient()
    expected = HeldOut.expected(means, within, trace, shares, moments.total_weight, system.gamma)
    return () if expected is None else (expected,)
