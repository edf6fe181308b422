"""Partial least squares of one-hot labels, and the number of features kept by each sparse component.

    maximise  cov(X_h w, Y v)²  subject to  ‖w‖ = ‖v‖ = 1 ,    t_h = X_h w_h ,    X_{h+1} = X_h − t_h p_hᵀ

Neither rows nor scatter are deflated: with r_h = w_h − Σ_j (p_jᵀw_h) r_j the scores are t_h = X r_h of the original
rows, p_h = Sr_h / r_hᵀSr_h, and only the small M = XᵀY is deflated, by tᵀt p_h q_hᵀ (Dayal and MacGregor 1997). A
sparse w is soft-thresholded Mv, alternating with v = Mᵀw until neither changes (Lê Cao et al. 2011). The number of
features is chosen component by component (as in mixOmics' tune.splsda): the smallest number whose held-out
nearest-centroid accuracy is within one standard error of the highest.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import scipy.linalg as la
from numpy.typing import NDArray

from discrim.core.coordinates.products import Products
from discrim.core.cross_validation import Splits
from discrim.core.landmarks import FARTHEST
from discrim.core.moments.class_moments import ClassMoments
from discrim.core.ratio import Ratio
from discrim.core.spread import Margins
from discrim.decompositions import svd
from discrim.tables.rows import LabelledRows, projected

Array = NDArray[np.float64]
EXPLAINED = 1e-10  # share of the covariance with the labels below which nothing is left to explain
TIED = 1e-12  # entries that differ by less than this, relative to the largest, are thresholded together
ROUNDING = 1e-12  # weights below this share of the largest are rounding, and their features are not selected
DEFLATED = 1e-14  # share of the largest covariance before deflation, below which the remainder is rounding
CHANGE, TURNS = 1e-13, 2_000  # a sparse weight is final if it no longer changes, or after this many iterations


@dataclass(frozen=True, eq=False)
class LeastSquaresComponents:
    """Components so far (rows) in the coordinates of a ratio, and the remaining covariance with the labels."""

    ratio: Ratio
    label_units: Array  # divisors of the one-hot columns: 1, or their deviations
    left: Array  # M/n: r×C
    weights: Array  # w_h
    rotations: Array  # r_h
    loadings: Array  # p_h
    label_loadings: Array  # q_h
    variances: Array  # t_hᵀt_h / n

    @classmethod
    def of(cls, ratio: Ratio, *, scale_labels: bool = False) -> LeastSquaresComponents:
        """Build without components; `scale_labels` divides each one-hot column by its deviation."""
        units = np.sqrt(ratio.shares * (1 - ratio.shares)) if scale_labels else np.ones(len(ratio.shares))
        units[units == 0] = 1.0  # a class without rows
        cross = ratio.means.T * (np.sqrt(ratio.shares) / units)
        none = np.empty((0, len(cross)))
        return cls(ratio, units, cross, none, none, none, np.empty((0, cross.shape[1])), np.empty(0))

    @property
    def whole(self) -> Array:
        """M/n before deflation."""
        return self.ratio.means.T * (np.sqrt(self.ratio.shares) / self.label_units)

    @property
    def label_variance(self) -> float:
        """Total variance of the labels over their columns."""
        return float((self.ratio.shares * (1 - self.ratio.shares) / self.label_units**2).sum())

    @property
    def is_exhausted(self) -> bool:
        """True if the labels have no covariance left with the deflated rows."""
        return bool(la.norm(self.left) <= EXPLAINED * la.norm(self.whole)) or len(self.weights) >= self.ratio.rank

    @property
    def explained(self) -> Array:
        """SS_h/n = (t_hᵀt_h/n) ‖q_h‖²: the variance of the labels explained by each component."""
        return self.variances * np.einsum("kc,kc->k", self.label_loadings, self.label_loadings)

    def extended(self, keep: int | None = None) -> LeastSquaresComponents:
        """Return the components with one more, if any is left; it has at most `keep` nonzero weights (None: all)."""
        if self.is_exhausted:
            return self
        weight = leading_weight(self.left, keep, DEFLATED * float(np.abs(self.whole).max()))
        rotation = weight.copy()
        for _ in range(2):  # the second time removes the rounding of the first
            rotation -= (self.loadings @ rotation) @ self.rotations
        along = self.ratio.total_along(rotation[None])[0]
        variance = float(along @ rotation)
        if not variance > 0:  # earlier components contain the selected features: the covariance left is rounding
            return replace(self, left=np.zeros_like(self.left))
        loading, of_labels = along / variance, (weight @ self.left) / variance
        return replace(
            self,
            left=self.left - variance * np.outer(loading, of_labels),
            weights=np.vstack([self.weights, weight]),
            rotations=np.vstack([self.rotations, rotation]),
            loadings=np.vstack([self.loadings, loading]),
            label_loadings=np.vstack([self.label_loadings, of_labels]),
            variances=np.append(self.variances, variance),
        )

    def centroids(self) -> Array:
        """Return the class means of the scores, C×k."""
        return self.ratio.means @ self.rotations.T / np.sqrt(self.ratio.shares)[:, None]


def leading_weight(cross: Array, keep: int | None = None, rounding: float = 0.0) -> Array:
    """Return the unit w with the largest ‖Mᵀw‖; with `keep`, the fixed point of w ∝ soft(Mv), v ∝ Mᵀw from there.

    rounding : size below which an entry of M is rounding
    """
    largest = float(np.abs(cross).max())
    cross = cross / largest
    if keep is not None:  # a feature without covariance with the labels has only rounding there
        least = max(ROUNDING, rounding / largest)
        cross = np.where(np.abs(cross).max(axis=1, keepdims=True) > least, cross, 0.0)
    left, _, right = svd(cross)
    weight, of_labels = left[:, 0], right[0]
    if keep is not None:
        weight = np.where(np.abs(weight) > ROUNDING, weight, 0.0)
    if keep is None or keep >= np.count_nonzero(cross.any(axis=1)):
        return weight
    for _ in range(TURNS):
        before = weight
        weight = soft_thresholded(cross @ of_labels, keep)
        weight /= la.norm(weight)
        of_labels = weight @ cross
        of_labels /= la.norm(of_labels)
        if np.abs(weight - before).max() <= CHANGE:
            break
    return weight


def soft_thresholded(vector: Array, keep: int) -> Array:
    """Return sign(a)(|a| − δ)₊, where δ is the largest size not among the `keep` largest; at most `keep` are nonzero.

    Sizes equal to δ are set to 0. If that would leave nothing, the largest entries are kept unchanged.
    """
    sizes = np.abs(vector)
    if keep >= len(sizes):
        return vector
    least = TIED * sizes.max()
    rest = np.partition(sizes, -keep - 1)[-keep - 1]
    kept = sizes > rest + least
    if not kept.any():
        return np.where(sizes >= sizes.max() - least, vector, 0.0)
    return np.where(kept, np.sign(vector) * (sizes - rest), 0.0)


Indices = NDArray[np.intp]
TRIED = 12  # numbers of kept features, in geometric steps


def counts_to_try(n_features: int) -> Indices:
    """Return the numbers of features to try, from one to all."""
    return np.unique(np.geomspace(1, n_features, TRIED).round().astype(np.intp))


@dataclass(frozen=True, eq=False)
class Fold:
    """Components of the training rows, and the held-out rows."""

    found: LeastSquaresComponents
    present: Indices  # numbers of the classes that occur in the training rows
    moments: ClassMoments  # means of the training rows
    test: LabelledRows

    def extended(self, keep: int | None = None) -> Fold:
        """Return the fold with one more component, if there is one."""
        return replace(self, found=self.found.extended(keep))

    def accuracy(self) -> float:
        """Return the weighted share of held-out rows that the nearest centroid of the scores classifies correctly."""
        return self._accuracy(self._scores(), self.found.centroids())

    def _scores(self) -> Array:
        """Return the scores of the held-out rows in the unit of the fold, cut off where their squares overflow."""
        X = self.test.X.astype(np.float64, copy=False)  # scores in single precision may overflow
        scores = projected(X, self.moments.mean, self.moments.scaled(self.found.rotations))
        return np.clip(np.nan_to_num(scores), -FARTHEST, FARTHEST)

    def _accuracy(self, scores: Array, centroids: Array) -> float:
        nearest = (scores @ centroids.T - 0.5 * (centroids**2).sum(axis=1)).argmax(axis=1)
        return float(np.average(self.present[nearest] == self.test.codes, weights=self.test.weights))

    def judged(self, counts: int, label_units: Array) -> Array:
        """Return accuracy and mean squared error of the one-hot labels (in their units) after 1, 2, … components.

        A fold with fewer components than `counts` repeats the figures of its last one, or of none.
        """
        scores, centroids, found = self._scores(), self.found.centroids(), self.found
        errors = np.zeros((len(scores), len(label_units)))
        errors[np.arange(len(scores)), self.test.codes] = 1.0
        errors[:, self.present] -= found.ratio.shares
        figures = []
        for h in range(len(found.weights) + 1):
            if h:
                errors[:, self.present] -= np.outer(scores[:, h - 1], found.label_loadings[h - 1] * found.label_units)
            squares = ((errors / label_units) ** 2).sum(axis=1)
            accuracy = self._accuracy(scores[:, :h], centroids[:, :h])
            figures.append((accuracy, float(np.average(squares, weights=self.test.weights))))
        return np.array(figures + figures[-1:] * counts)[1 : counts + 1]


def folds_of(rows: LabelledRows, splits: Splits, *, scale_labels: bool) -> list[Fold]:
    """Return the folds of a table, without components."""
    folds = []
    for training, test in splits.pairs:
        part = rows.select(training)
        present, codes = np.unique(part.codes, return_inverse=True)
        part = LabelledRows(part.X, codes, rows.classes[present], part.weights)
        basis = Products(points=part, margins=Margins(), original=part, how="training rows", pilot=None)
        moments = ClassMoments.from_rows(basis.points, keep="means")
        found = LeastSquaresComponents.of(basis.ratio(moments), scale_labels=scale_labels)
        folds.append(Fold(found, present, moments, rows.select(test)))
    return folds


@dataclass(frozen=True, eq=False)
class KeptFeatures:
    """Features kept by each component: number, selection frequency over the training sets, and numbers tried."""

    keep_: Indices
    stability_: Array  # k×d
    keep_accuracies_: Array | None  # k×counts
    keep_tried_: Indices | None

    def first(self, k: int) -> KeptFeatures:
        """Return the features kept by the first k components."""
        accuracies = None if self.keep_accuracies_ is None else self.keep_accuracies_[:k]
        return KeptFeatures(self.keep_[:k], self.stability_[:k], accuracies, self.keep_tried_)


def fewest_within_one_error(accuracies: Array) -> int:
    """Return the first column (folds are rows) whose mean is within one standard error of the highest mean."""
    means = accuracies.mean(axis=0)
    best = int(means.argmax())
    error = accuracies[:, best].std(ddof=1) / np.sqrt(len(accuracies)) if len(accuracies) > 1 else 0.0
    return int(np.argmax(means >= means[best] - error - 1e-12))


def kept_features(
    whole: LeastSquaresComponents, folds: list[Fold], wanted: int, given: list[int] | None, counts: Indices
) -> tuple[LeastSquaresComponents, KeptFeatures]:
    """Return the components of the whole table, with the numbers of features given or chosen by held-out rows."""
    accuracies: list[Array] = []
    keep: list[int] = []
    while len(keep) < wanted and not whole.is_exhausted:
        if given is None:
            tried = np.array([[fold.extended(int(count)).accuracy() for count in counts] for fold in folds])
            count = int(counts[fewest_within_one_error(tried)])
        else:
            count = given[len(whole.weights)]
        whole = whole.extended(count)
        if len(whole.weights) == len(keep):
            break  # no further component
        folds = [fold.extended(count) for fold in folds]
        keep.append(min(count, whole.weights.shape[1]))
        if given is None:
            accuracies.append(tried.mean(axis=0))
    chosen = np.zeros(whole.weights.shape)
    for fold in folds:
        chosen[: len(fold.found.weights)] += fold.found.weights != 0
    stability = chosen / len(folds) if folds else np.full(chosen.shape, np.nan)
    searched = None if given is not None else np.array(accuracies)
    return whole, KeptFeatures(np.array(keep), stability, searched, None if given is not None else counts)


@dataclass(frozen=True, eq=False)
class HeldOutComponents:
    """Figures from held-out rows: Q² of each component, and the accuracy after 1, 2, … components."""

    q2_: Array
    count_accuracies_: Array

    def first(self, k: int) -> HeldOutComponents:
        """Return the figures of the first k components."""
        return HeldOutComponents(self.q2_[:k], self.count_accuracies_)


def held_out_components(whole: LeastSquaresComponents, folds: list[Fold]) -> tuple[HeldOutComponents, int]:
    """Return the figures of every component of the whole table, and the number of components that held-out rows choose.

    Q²_h = 1 − PRESS_h/RSS_{h−1}: the squared error of held-out labels with h components, divided by the residual sum of
    squares of h − 1 components of all rows. The number chosen is the smallest within one standard error of the highest
    accuracy.
    """
    counts = len(whole.weights)
    for _ in range(counts):
        folds = [fold.extended() for fold in folds]
    judged = np.array([fold.judged(counts, whole.label_units) for fold in folds])  # folds × counts × 2
    totals = np.array([fold.test.class_totals.sum() for fold in folds])
    accuracies, errors = np.average(judged, axis=0, weights=totals).T
    left = whole.label_variance - np.concatenate([[0.0], np.cumsum(whole.explained)[:-1]])
    return HeldOutComponents(1 - errors / left, accuracies), fewest_within_one_error(judged[:, :, 0]) + 1
