"""The whole path of shrinkages, judged by cross-validation at the cost of a few fits.

The rules of each training set are found for all γ at once, and called on rows that took no part.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from discrim.core.calibration import standard_error
from discrim.core.discriminants import discriminants
from discrim.core.folds import TrainingSet
from discrim.core.moments.class_moments import ClassMoments
from discrim.core.ratio import Ratio
from discrim.core.ridge_rules import RidgeRules, log_priors, without_ridge
from discrim.tables.rows import BLOCK_ROWS, LabelledRows, dense_block

Array = NDArray[np.float64]
SCORES_AT_ONCE = 2**17  # what stays in the cache
JUDGED_ROWS = 1_000  # of a fold: more do not lead to better ridges (examples/judged_rows_study.py)
LARGE_RULE = 2**20  # numbers for a γ: beyond, the path is walked in parts
NO_RULE = np.array([[[-np.inf]], [[np.inf]]])  # nothing predicted rightly, at any cost
# none, then even steps of the odds γ/(1−γ), then all
PATH = np.concatenate([[0.0], 1 / (1 + 10.0 ** -np.linspace(-5, 2, 22)), [1.0]])


@dataclass(frozen=True, eq=False)
class PathScores:
    """Held-out accuracy and log loss for every shrinkage (rows), after every number of discriminants (columns).

    total_weight : of the held-out rows, each counted once
    """

    shrinkages: Array
    accuracies: Array
    losses: Array
    total_weight: float

    def best(self) -> tuple[float, int]:
        """A shrinkage and a number of discriminants.

        The number of highest accuracy, among ties the fewest. With so many, of all shrinkages within one standard error
        of that accuracy the one of least log loss: accuracy alone hardly tells them apart, and the classifiers behind
        the components want more than a centroid's.
        """
        if not np.isfinite(self.accuracies).any():  # no class varied in any training set: no ridge is a rule
            return float(self.shrinkages[0]), 1
        highest = float(self.accuracies.max())
        k = int((self.accuracies >= highest - 1e-12).any(axis=0).argmax())
        least = highest - standard_error(highest, self.total_weight) - 1e-12
        candidates = np.flatnonzero(self.accuracies[:, k] >= least)
        losses = self.losses[candidates, k]
        least_lossy = candidates[losses <= losses.min() * (1 + 1e-12)]  # alike but for rounding: the least ridge
        return float(self.shrinkages[least_lossy[0]]), k + 1


def score_path(folds: Iterable[TrainingSet], shrinkages: Array, priors: Any, *, every_count: bool) -> PathScores:
    """Scores of the nearest-centroid rule; `every_count`: after 1, 2, … discriminants, else after all."""
    found, weight, distinct = [], 0.0, 0.0
    for fold in folds:
        if fold.test.shape[0] == 0:
            continue
        drawn, shape = _drawn(fold.test), fold.training.pilots.shape
        size = shape[0] * shape[1] * (min(shape) if every_count else 1)
        parts = np.array_split(shrinkages, min(len(shrinkages), size // LARGE_RULE + 1))
        kind: Any = _CentroidRules if every_count else RidgeRules
        rules = (kind.of(fold.training, some, priors, fold.ratio) for some in parts)
        judged = np.concatenate([_judged(some, drawn) for some in rules], axis=1)
        found.append(judged if fold.ratio.trace > 0 else np.broadcast_to(NO_RULE, judged.shape))
        weight += drawn.class_totals.sum()
        distinct += drawn.class_totals.sum() / fold.repeats
    accuracies, losses = np.sum(found, axis=0) / weight
    return PathScores(shrinkages, accuracies, losses, distinct)


def _drawn(test: LabelledRows) -> LabelledRows:
    """The rows, or some of many: at even steps of the weight, so that a weight is repetition here too."""
    ends = np.arange(1, test.shape[0] + 1) if test.weights is None else np.cumsum(test.weights)
    if not len(ends) or ends[-1] <= JUDGED_ROWS:
        return test
    steps = np.searchsorted(ends, (np.arange(JUDGED_ROWS) + 0.5) * (ends[-1] / JUDGED_ROWS))
    rows, times = np.unique(np.minimum(steps, len(ends) - 1), return_counts=True)
    return replace(test.picked(rows), weights=times.astype(np.float64))


def _judged(rules: RidgeRules | _CentroidRules, test: LabelledRows) -> Array:
    """Weight of the rows predicted rightly, and their log loss, for every shrinkage and count (2×γ×counts)."""
    found: Any = 0.0
    step = min(BLOCK_ROWS, max(rules.least_rows, SCORES_AT_ONCE // rules.offsets.size))
    for first in range(0, test.shape[0], step):
        part = slice(first, first + step)
        scores, codes = rules.scores(dense_block(test.X, part)), test.codes[part]
        weights = np.ones(len(codes)) if test.weights is None else test.weights[part]
        largest = scores.max(axis=-2)
        own = scores.reshape(*largest.shape[:-1], -1).take(codes * len(codes) + np.arange(len(codes)), axis=-1)
        right = (own >= largest) @ weights
        if (unseen := np.isneginf(own)).any():  # a row of a class that was not in training costs as much as the worst
            own = np.where(unseen, np.where(np.isneginf(scores), np.inf, scores).min(axis=-2), own)
        scores -= largest[..., None, :]
        lost = (np.log(np.exp(scores, out=scores).sum(axis=-2)) + (largest - own)) @ weights
        found = found + np.stack([right, lost]).reshape(2, len(right), -1)
    is_none = np.isnan(rules.offsets).any(axis=-1).reshape(found.shape[1:])
    return np.where(is_none, NO_RULE, found)


@dataclass(frozen=True, eq=False)
class _CentroidRules:
    """The same rules after 1, 2, … discriminants; a γ that has fewer than others adds nothing after its last."""

    moments: ClassMoments
    axes: Array  # γ×q×d
    centres: Array  # γ×q×C
    offsets: Array  # γ×q×C; NaN where there is no rule
    least_rows: ClassVar[int] = 1

    @classmethod
    def of(cls, moments: ClassMoments, shrinkages: Array, priors: Any, ridged: Ratio) -> _CentroidRules:
        found = []
        for gamma in shrinkages:
            directions = np.empty((0, moments.n_features))
            if (ratio := ridged if gamma else without_ridge(ridged)) is not None:
                directions = ratio.embedded(discriminants(ratio.means, ratio.covariance(gamma)).directions)
            found.append(directions)
        # as many for every fold and part of the path, whatever they found
        most = max(1, min(len(moments.weights) - 1, moments.n_features))
        axes = np.zeros((len(found), most, moments.n_features))
        for place, directions in zip(axes, found, strict=True):
            place[: len(directions)] = directions
        centres = axes @ moments.centred_means().T
        offsets = log_priors(moments, priors) - 0.5 * np.cumsum(centres**2, axis=1)
        offsets[[len(directions) == 0 for directions in found]] = np.nan
        return cls(moments, axes, centres, offsets)

    def scores(self, X: Any) -> Array:
        """Scores of classes and rows, γ×q×C×n."""
        along = self.axes @ self.moments.centred(np.asarray(X, dtype=np.float64)).T
        return np.cumsum(self.centres[..., None] * along[:, :, None], axis=1) + self.offsets[..., None]
