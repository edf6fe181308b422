"""The whole path of shrinkages, judged by cross-validation at the cost of a few fits.

One eigendecomposition of each training set's within-class covariance, V diag(e) Vᵀ, serves every γ:

    Σ_γ⁻¹ = V diag(f_γ) Vᵀ ,    f_γ = 1/((1−γ)e + γτ)

The f_γ of a whole path are combinations of a few vectors, so each test row is multiplied with a few rules, not with one
for every γ.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.linalg as la
from numpy.typing import NDArray

from discrim.data.rows import LabelledRows, block_slices, dense_block
from discrim.moments.class_moments import ClassMoments
from discrim.solve.discriminants import COLLAPSED, principal
from discrim.solve.folds import Folds

Array = NDArray[np.float64]
LOSS_ROWS = 500  # the log loss only settles ties, for which some of a fold's rows will do
SAME_RULE = 1e-12  # of the largest: what of the f_γ's span may be left out
# none, then even steps of the odds γ/(1−γ), then all
PATH = np.concatenate([[0.0], 1 / (1 + 10.0 ** -np.linspace(-5, 2, 22)), [1.0]])


@dataclass(frozen=True, eq=False)
class PathScores:
    """Held-out accuracy and log loss for every shrinkage (rows), after every number of discriminants (columns)."""

    shrinkages: Array
    accuracies: Array
    losses: Array

    def best(self) -> tuple[float, int]:
        """The shrinkage and number of discriminants of highest accuracy; among ties the fewest, then the least loss."""
        at_best = self.accuracies >= self.accuracies.max() - 1e-12
        k = int(np.flatnonzero(at_best.any(axis=0))[0])
        candidates = np.flatnonzero(at_best[:, k])
        return float(self.shrinkages[candidates[np.argmin(self.losses[candidates, k])]]), k + 1


def score_path(folds: Folds, shrinkages: Array, priors: Any, *, every_count: bool) -> PathScores:
    """Scores of the nearest-centroid rule; `every_count`: after 1, 2, … discriminants, else after all."""
    totals = [_fold_scores(training, test, shrinkages, priors, every_count) for training, test in folds]
    columns = min(hits.shape[1] for hits, _, _ in totals)
    weight = sum(w for _, _, w in totals)
    hits = sum(h[:, :columns] for h, _, _ in totals)
    losses = sum(s[:, :columns] * w for _, s, w in totals)
    return PathScores(shrinkages, np.asarray(hits) / weight, np.asarray(losses) / weight)


def _fold_scores(
    training: ClassMoments, test: LabelledRows, shrinkages: Array, priors: Any, every_count: bool
) -> tuple[Array, Array, float]:
    """Weight of the rows predicted rightly and mean log loss, for every shrinkage and count; the rows' weight."""
    present = training.weights > 0
    shares = training.weights[present] / training.total_weight
    logs = np.log(shares) if priors is None else _log_priors(priors, present)
    values, vectors = la.eigh(training.within / training.total_weight, driver="evd", check_finite=False)
    values = np.maximum(values, 0.0)
    means = training.centred_means()[present] @ vectors
    inverses, possible = _inverse_variances(values, means, shrinkages)
    rules = (_EveryCount if every_count else _AllDiscriminants).of(means, inverses, shares, logs, vectors)
    judged = _Judged.of(test, present)
    for part in block_slices(test.shape[0], max(test.shape[1], rules.n_scores)):
        rows = training.centred(dense_block(test.X, part).astype(np.float64, copy=False))
        judged.add(rules.scores(rows), part)
    hits = np.where(possible[:, None], judged.hits, -np.inf)
    return hits, judged.losses / judged.sampled_weight, float(judged.weights.sum())


def _inverse_variances(values: Array, means: Array, shrinkages: Array) -> tuple[Array, NDArray[np.bool_]]:
    """1/((1−γ)e + γτ), a row per γ, and whether it is a rule: not where classes differ but do not vary."""
    ridge = values.sum() / _rank(values, len(means))
    variances = np.outer(1 - shrinkages, values) + ridge * shrinkages[:, None]
    flat = variances <= _noise(values)
    differing = flat @ (means**2).sum(axis=0)
    return np.where(flat, 0.0, 1 / np.where(flat, 1.0, variances)), differing <= COLLAPSED * (means**2).sum()


@dataclass(frozen=True, eq=False)
class _AllDiscriminants:
    """Every γ's linear rule w_c·x + w_c0 with all discriminants, w_c = Σ_γ⁻¹ m_c."""

    mixing: Array  # γ×r: the f_γ from the r vectors that span them
    rules: Array  # (r·C)×d
    offsets: Array  # γ×C

    @classmethod
    def of(cls, means: Array, inverses: Array, shares: Array, logs: Array, vectors: Array) -> _AllDiscriminants:
        left, singular, right = la.svd(inverses, full_matrices=False, check_finite=False)
        kept = singular > SAME_RULE * singular.max(initial=0.0)
        rules = (right[kept, None] * means).reshape(-1, means.shape[1]) @ vectors.T
        return cls(left[:, kept] * singular[kept], rules, logs - 0.5 * inverses @ (means**2).T)

    @property
    def n_scores(self) -> int:
        """Numbers for each row."""
        return self.offsets.size

    def scores(self, rows: Array) -> Array:
        """Of every γ (and the one count), class and row."""
        n_gammas, n_classes = self.offsets.shape
        along = (self.rules @ rows.T).reshape(self.mixing.shape[1], n_classes * len(rows))
        scores = (self.mixing @ along).reshape(n_gammas, 1, n_classes, len(rows))
        scores += self.offsets[:, None, :, None]
        return scores


@dataclass(frozen=True, eq=False)
class _EveryCount:
    """The same after 1, 2, … discriminants."""

    axes: Array  # γ×q×d
    centres: Array  # γ×q×C: the class means along them
    logs: Array

    @classmethod
    def of(cls, means: Array, inverses: Array, shares: Array, logs: Array, vectors: Array) -> _EveryCount:
        found = [_discriminants(means, scale, shares, vectors) for scale in np.sqrt(inverses)]
        longest = max(len(axes) for axes, _ in found)  # without a ridge there may be fewer; the others add nothing
        pad = lambda part: np.pad(part, ((0, longest - len(part)), (0, 0)))  # noqa: E731
        return cls(np.stack([pad(axes) for axes, _ in found]), np.stack([pad(centres) for _, centres in found]), logs)

    @property
    def n_scores(self) -> int:
        """Numbers for each row."""
        return self.centres.size

    def scores(self, rows: Array) -> Array:
        """Of every γ, count, class and row."""
        along = self.axes @ rows.T
        steps = self.centres[..., None] * (along[:, :, None] - 0.5 * self.centres[..., None])
        steps[:, 0] += self.logs[:, None]
        return np.cumsum(steps, axis=1, out=steps)


def _discriminants(means: Array, scale: Array, shares: Array, vectors: Array) -> tuple[Array, Array]:
    """Discriminants of one γ, and the class means along them."""
    directions = principal(np.sqrt(shares)[:, None] * means * scale)[1]
    return (directions * scale) @ vectors.T, directions @ (means * scale).T


@dataclass(eq=False)
class _Judged:
    """What the test rows are (positions among the classes in training, −1 for none), and what was judged so far."""

    truth: NDArray[np.intp]
    weights: Array
    shows_loss: NDArray[np.bool_]
    hits: Any = 0.0  # weight of the rows predicted rightly, by γ and count
    losses: Any = 0.0  # weighted log loss of the sample

    @classmethod
    def of(cls, test: LabelledRows, present: NDArray[np.bool_]) -> _Judged:
        n = test.shape[0]
        truth = np.where(present[test.codes], np.cumsum(present)[test.codes] - 1, -1)
        weights = np.ones(n) if test.weights is None else test.weights
        shows_loss = np.zeros(n, dtype=bool)
        shows_loss[np.linspace(0, n - 1, min(n, LOSS_ROWS)).astype(np.intp)] = True
        return cls(truth, weights, shows_loss)

    @property
    def sampled_weight(self) -> float:
        return float(self.weights[self.shows_loss].sum())

    def add(self, scores: Array, part: slice) -> None:
        """Judge a part of the rows by scores of every γ, count, class and row."""
        truth, weights = self.truth[part], self.weights[part]
        right = scores[..., truth, np.arange(len(truth))] >= scores.max(axis=-2)
        self.hits = self.hits + (right & (truth >= 0)) @ weights
        shown = self.shows_loss[part]
        some, truth = scores[..., shown], truth[shown]
        # a row of a class that was not in training costs as much as the worst known one
        known = np.where(truth >= 0, some[..., truth, np.arange(len(truth))], some.min(axis=-2))
        largest = some.max(axis=-2)
        losses = np.log(np.exp(some - largest[..., None, :]).sum(axis=-2)) + (largest - known)
        self.losses = self.losses + losses @ weights[shown]


def _rank(values: Array, n_classes: int) -> int:
    """Rank of the total scatter: the within-class one's, and up to C−1 more."""
    within = int((values > _noise(values)).sum())
    return max(1, min(len(values), within + n_classes - 1))


def _noise(values: Array) -> float:
    """Eigenvalues up to this are rounding."""
    return float(4 * np.sqrt(len(values)) * np.finfo(float).eps * values.max(initial=0.0))


def _log_priors(priors: Any, present: NDArray[np.bool_]) -> Array:
    given = np.full(len(present), 1.0) if isinstance(priors, str) else np.asarray(priors, dtype=np.float64)
    return np.log(given[present] / given[present].sum())
