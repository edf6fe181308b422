"""The whole path of shrinkages, judged by cross-validation at the cost of a few fits.

One eigendecomposition of each training set's within-class covariance, V diag(e) Vᵀ, serves every γ:

    Σ_γ⁻¹ = V diag(f_γ) Vᵀ ,    f_γ = 1/((1−γ)e + γτ)

The f_γ of a whole path are combinations of a few vectors, so each test row is multiplied with a few rules, not with one
for every γ.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from discrim.data.rows import BLOCK_ROWS, LabelledRows, dense_block
from discrim.decompositions import eigh, svd
from discrim.moments.class_moments import ClassMoments, rounding_share
from discrim.objectives.calibration import standard_error
from discrim.solve.discriminants import COLLAPSED, principal
from discrim.solve.folds import Splits

Array = NDArray[np.float64]
SCORES_AT_ONCE = 2**17
JUDGED_ROWS = 4_000  # of a fold: their accuracy is known to half a point
LOSS_ROWS = 500  # the log loss only chooses among ridges of much the same accuracy: some of a fold's rows will do
ROUNDING = 1e-14  # of a mean, beside the largest
SAME_RULE = 1e-12  # of the largest score: what may be left out of a rule
# none, then even steps of the odds γ/(1−γ), then all
PATH = np.concatenate([[0.0], 1 / (1 + 10.0 ** -np.linspace(-5, 2, 22)), [1.0]])


@dataclass(frozen=True, eq=False)
class PathScores:
    """Held-out accuracy and log loss for every shrinkage (rows), after every number of discriminants (columns).

    total_weight : of the held-out rows
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
            return float(self.shrinkages[0]), self.accuracies.shape[1]
        highest = float(self.accuracies.max())
        k = int((self.accuracies >= highest - 1e-12).any(axis=0).argmax())
        least = highest - standard_error(highest, self.total_weight) - 1e-12
        candidates = np.flatnonzero(self.accuracies[:, k] >= least)
        return float(self.shrinkages[candidates[np.argmin(self.losses[candidates, k])]]), k + 1


def score_path(folds: Splits, shrinkages: Array, priors: Any, *, every_count: bool) -> PathScores:
    """Scores of the nearest-centroid rule; `every_count`: after 1, 2, … discriminants, else after all."""
    totals = [_fold_scores(training, test, shrinkages, priors, every_count) for training, test in folds]
    columns = min(hits.shape[1] for hits, _, _ in totals)
    weight = sum(w for _, _, w in totals)
    hits = sum(h[:, :columns] for h, _, _ in totals)
    losses = sum(s[:, :columns] * w for _, s, w in totals)
    return PathScores(shrinkages, np.asarray(hits) / weight, np.asarray(losses) / weight, weight)


def _fold_scores(
    training: ClassMoments, test: LabelledRows, shrinkages: Array, priors: Any, every_count: bool
) -> tuple[Array, Array, float]:
    """Weight of the rows predicted rightly and mean log loss, for every shrinkage and count; the rows' weight."""
    present = training.weights > 0
    shares = training.weights[present] / training.total_weight
    logs = np.log(shares) if priors is None else _log_priors(priors, present)
    values, vectors = eigh(training.within / training.total_weight)
    values = np.maximum(values, 0.0)
    means = training.centred_means()[present] @ vectors
    inverses, possible = _inverse_variances(values, means, shares, shrinkages, training.precision)
    rules = (_EveryCount if every_count else _AllDiscriminants).of(values, vectors, means, inverses, shares, logs)
    test = _drawn(test, JUDGED_ROWS)
    judged = _Judged.of(test, present, (len(shrinkages), rules.n_counts))
    step = min(BLOCK_ROWS, max(64, SCORES_AT_ONCE // (len(shrinkages) * len(means))))  # what stays in the cache
    for first in range(0, test.shape[0], step):
        part = slice(first, first + step)
        rows = training.centred(dense_block(test.X, part).astype(np.float64, copy=False))
        for which, scores in rules.scores(rows):
            judged.add(which, scores, part)
    hits = np.where(possible[:, None], judged.hits, -np.inf)
    return hits, judged.losses / judged.loss_weights.sum(), float(judged.weights.sum())


def _drawn(test: LabelledRows, most: int) -> LabelledRows:
    """The rows, or of many as many as that: even steps of the weight, so that a weight is repetition here too."""
    ends = np.arange(1, test.shape[0] + 1) if test.weights is None else np.cumsum(test.weights)
    if not len(ends) or ends[-1] <= most:
        return test
    steps = np.searchsorted(ends, (np.arange(most) + 0.5) * (ends[-1] / most))
    rows, times = np.unique(np.minimum(steps, len(ends) - 1), return_counts=True)
    return replace(test.picked(rows), weights=times.astype(np.float64))


def _inverse_variances(
    values: Array, means: Array, shares: Array, shrinkages: Array, precision: float
) -> tuple[Array, NDArray[np.bool_]]:
    """f_γ, a row per γ, and whether it is a rule: not where classes differ but do not vary."""
    noise = rounding_share(len(values), precision) * values.max(initial=0.0)
    # the total scatter's rank: the within-class one's, and that of the class means where no class varies
    beyond = svd(np.sqrt(shares)[:, None] * means[:, values <= noise])[1] if (values <= noise).any() else values[:0]
    largest = max(values.max(initial=0.0), beyond.max(initial=0.0) ** 2)
    rank = (values > noise).sum() + (beyond**2 > rounding_share(len(values), precision) * largest).sum()
    variances = np.outer(1 - shrinkages, values) + values.sum() / max(1, rank) * shrinkages[:, None]
    flat = variances <= noise
    differing = flat @ (means**2).sum(axis=0)
    return np.where(flat, 0.0, 1 / np.where(flat, 1.0, variances)), differing <= COLLAPSED * (means**2).sum()


@dataclass(frozen=True, eq=False)
class _AllDiscriminants:
    """Every γ's linear rule w_c·x + w_c0 with all discriminants, w_c = Σ_γ⁻¹ m_c."""

    mixing: Array  # γ×r: the f_γ from the r vectors that span them
    rules: Array  # (r·C)×d
    offsets: Array  # γ×C
    n_counts: int = 1

    @classmethod
    def of(
        cls, values: Array, vectors: Array, means: Array, inverses: Array, shares: Array, logs: Array
    ) -> _AllDiscriminants:
        sizes = values + (means**2).max(axis=0)  # of a row times a mean, which a rule multiplies with f_γ
        # where no class varies and no mean differs but by rounding, a test row may lie far out, and shows nothing
        nothing = sizes <= ROUNDING**2 * sizes.max(initial=0.0)
        means, sizes = np.where(nothing, 0.0, means), np.where(nothing, 1.0, sizes)
        left, singular, right = svd(inverses * sizes)
        kept = singular > SAME_RULE * singular.max(initial=0.0)
        rules = ((right[kept] / sizes)[:, None] * means).reshape(-1, means.shape[1]) @ vectors.T
        return cls(left[:, kept] * singular[kept], rules, logs - 0.5 * inverses @ (means**2).T)

    def scores(self, rows: Array) -> Iterator[tuple[Any, Array]]:
        """Scores of classes and rows, for every γ."""
        n_gammas, n_classes = self.offsets.shape
        along = (self.rules @ rows.T).reshape(self.mixing.shape[1], n_classes * len(rows))
        scores = (self.mixing @ along).reshape(n_gammas, n_classes, len(rows))
        scores += self.offsets[:, :, None]
        yield (slice(None), 0), scores


@dataclass(frozen=True, eq=False)
class _EveryCount:
    """The same after 1, 2, … discriminants; γ that have fewer than others add nothing after their last."""

    discriminants: list[tuple[Array, Array]]  # of each γ: axes (q×d) and the class means along them (q×C)
    logs: Array
    n_counts: int

    @classmethod
    def of(
        cls, values: Array, vectors: Array, means: Array, inverses: Array, shares: Array, logs: Array
    ) -> _EveryCount:
        found = []
        for scale in np.sqrt(inverses):
            directions = principal(np.sqrt(shares)[:, None] * means * scale)[1]
            found.append(((directions * scale) @ vectors.T, directions @ (means * scale).T))
        return cls(found, logs, max(1, *(len(axes) for axes, _ in found)))

    def scores(self, rows: Array) -> Iterator[tuple[Any, Array]]:
        """Scores of classes and rows, of one γ and count at a time."""
        for number, (axes, centres) in enumerate(self.discriminants):
            scores = np.repeat(self.logs[:, None], len(rows), axis=1)
            for count, (along, centre) in enumerate(zip(axes @ rows.T, centres, strict=True)):
                scores += centre[:, None] * along - 0.5 * centre[:, None] ** 2
                last = count == len(axes) - 1
                yield (number, slice(count, None) if last else count), scores


@dataclass(eq=False)
class _Judged:
    """What the test rows are (positions among the classes in training, −1 for none), and what was judged so far."""

    truth: NDArray[np.intp]
    weights: Array
    loss_weights: Array  # of the rows in the log loss: 0 for those that are no part of its sample
    hits: Array  # weight of the rows predicted rightly, by γ and count
    losses: Array  # weighted log loss of the sample

    @classmethod
    def of(cls, test: LabelledRows, present: NDArray[np.bool_], shape: tuple[int, int]) -> _Judged:
        n = test.shape[0]
        truth = np.where(present[test.codes], np.cumsum(present)[test.codes] - 1, -1)
        weights = np.ones(n) if test.weights is None else test.weights
        loss_weights = weights
        if n > LOSS_ROWS:  # even steps of the weight, so that a weight is repetition here too
            ends = np.cumsum(weights)
            sample = np.searchsorted(ends, (np.arange(LOSS_ROWS) + 0.5) * (ends[-1] / LOSS_ROWS))
            loss_weights = np.bincount(np.minimum(sample, n - 1), minlength=n) * (ends[-1] / LOSS_ROWS)
        return cls(truth, weights, loss_weights, np.zeros(shape), np.zeros(shape))

    def add(self, which: Any, scores: Array, part: slice) -> None:
        """Judge a part of the rows by scores (… × classes × rows) of one γ and count, or of some."""
        truth, largest = self.truth[part], scores.max(axis=-2)
        right = (_own(scores, truth) >= largest) & (truth >= 0)
        self.hits[which] += right.astype(np.float64) @ self.weights[part]
        shown = np.flatnonzero(self.loss_weights[part])
        if not len(shown):
            return
        some, truth, largest = scores[..., shown], truth[shown], largest[..., shown]
        known = _own(some, truth)
        if (truth < 0).any():  # a row of a class that was not in training costs as much as the worst known one
            known = np.where(truth >= 0, known, some.min(axis=-2))
        some -= largest[..., None, :]
        losses = np.log(np.exp(some, out=some).sum(axis=-2)) + (largest - known)
        self.losses[which] += losses @ self.loss_weights[part][shown]


def _own(scores: Array, truth: NDArray[np.intp]) -> Array:
    """Of scores (… × classes × rows) those of the rows' own classes (or, for −1, of any)."""
    n_classes, n_rows = scores.shape[-2:]
    flat = scores.reshape(*scores.shape[:-2], n_classes * n_rows)
    return flat.take(np.maximum(truth, 0) * n_rows + np.arange(n_rows), axis=-1)


def _log_priors(priors: Any, present: NDArray[np.bool_]) -> Array:
    given = np.full(len(present), 1.0) if isinstance(priors, str) else np.asarray(priors, dtype=np.float64)
    return np.log(given[present] / given[present].sum())
