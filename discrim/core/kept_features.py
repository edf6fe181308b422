"""How many features each component of sparse partial least squares keeps, by held-out rows; and which it keeps often.

Component by component (as mixOmics' tune.splsda): of all counts whose held-out accuracy by the nearest centroid of
scores is within one standard error of the highest, the fewest. The folds' training sets tell how stable a choice is.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from discrim.core.coordinates.products import Products
from discrim.core.margin_vectors import Margins
from discrim.core.partial_least_squares import LeastSquaresComponents
from discrim.tables.rows import LabelledRows, projected

Array = NDArray[np.float64]
Indices = NDArray[np.intp]
TRIED = 12  # counts of kept features, in geometric steps


def counts_to_try(n_features: int) -> Indices:
    """From one feature to all."""
    return np.unique(np.geomspace(1, n_features, TRIED).round().astype(np.intp))


@dataclass(frozen=True, eq=False)
class Fold:
    """Components of the training rows, and the rows held out."""

    found: LeastSquaresComponents
    present: Indices  # numbers of the classes among the training rows
    mean: Array
    exponent: int  # of the unit in which the components are found
    test: LabelledRows

    @classmethod
    def of(cls, rows: LabelledRows, training: Indices, test: Indices) -> Fold:
        part = rows.some(training)
        present, codes = np.unique(part.codes, return_inverse=True)
        part = LabelledRows(part.X, codes, rows.classes[present], part.weights)
        basis = Products(points=part, margins=Margins(), original=part, how="training rows", pilot=None)
        moments = basis.moments("means")
        found = LeastSquaresComponents.of(basis.ratio(moments))
        return cls(found, present, moments.mean, moments.exponent, rows.some(test))

    def extended(self, keep: int) -> Fold:
        """One component more, where there is one."""
        if self.found.is_exhausted:
            return self
        return Fold(self.found.extended(keep), self.present, self.mean, self.exponent, self.test)

    def accuracy(self) -> float:
        """Share of the held-out weight that the nearest centroid of scores has right."""
        centroids = self.found.centroids()
        scores = projected(self.test.X, self.mean, np.ldexp(self.found.rotations, -self.exponent))
        scores = scores.astype(np.float64, copy=False)
        nearest = (scores @ centroids.T - 0.5 * (centroids**2).sum(axis=1)).argmax(axis=1)
        return float(np.average(self.present[nearest] == self.test.codes, weights=self.test.weights))


@dataclass(frozen=True, eq=False)
class KeptFeatures:
    """What each component keeps: how many, which in what share of the training sets, and what was tried for it."""

    keep_: Indices
    stability_: Array  # k×d
    keep_accuracies_: Array | None  # k×counts
    keep_tried_: Indices | None

    def first(self, k: int) -> KeptFeatures:
        """Those of the first k components."""
        accuracies = None if self.keep_accuracies_ is None else self.keep_accuracies_[:k]
        return KeptFeatures(self.keep_[:k], self.stability_[:k], accuracies, self.keep_tried_)


def fewest_within_one_error(accuracies: Array) -> int:
    """Number of the first column (folds are rows) whose mean is within one standard error of the highest mean."""
    means = accuracies.mean(axis=0)
    best = int(means.argmax())
    error = accuracies[:, best].std(ddof=1) / np.sqrt(len(accuracies)) if len(accuracies) > 1 else 0.0
    return int(np.argmax(means >= means[best] - error - 1e-12))


def kept_features(
    whole: LeastSquaresComponents, folds: list[Fold], wanted: int, given: list[int] | None, counts: Indices
) -> tuple[LeastSquaresComponents, KeptFeatures]:
    """The components of the whole table with as many features as were given for each, or as held-out rows choose."""
    accuracies, keep = [], []
    while len(whole.weights) < wanted and not whole.is_exhausted:
        if given is None:
            tried = np.array([[fold.extended(int(count)).accuracy() for count in counts] for fold in folds])
            accuracies.append(tried.mean(axis=0))
            count = int(counts[fewest_within_one_error(tried)])
        else:
            count = given[len(whole.weights)]
        whole, folds = whole.extended(count), [fold.extended(count) for fold in folds]
        keep.append(min(count, whole.weights.shape[1]))
    chosen = np.zeros(whole.weights.shape)
    for fold in folds:
        chosen[: len(fold.found.weights)] += fold.found.weights != 0
    stability = chosen / len(folds) if folds else np.full(chosen.shape, np.nan)
    searched = None if given is not None else np.array(accuracies)
    return whole, KeptFeatures(np.array(keep), stability, searched, None if given is not None else counts)
