"""The whole path of shrinkages, judged by cross-validation at the cost of a few fits.

One eigendecomposition of each training set's within-class covariance, V diag(e) Vᵀ, serves every γ:

    Σ_γ⁻¹ = V diag(1/((1−γ)e + γτ)) Vᵀ
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.linalg as la
from numpy.typing import NDArray

from discrim.data.rows import LabelledRows
from discrim.moments.class_moments import ClassMoments
from discrim.solve.discriminants import COLLAPSED, principal
from discrim.solve.folds import Folds

Array = NDArray[np.float64]
LOSS_ROWS = 500  # the log loss only settles ties, for which some of a fold's rows will do
SCORES_AT_ONCE = 2**22
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
    rows, vectors = _held_out_rows(training, test, vectors, len(shrinkages) * len(means))
    judged = _Judged.of(test, present)
    inverses, possible = _inverse_variances(values, means, shrinkages)
    judge = _after_each if every_count else _after_all
    lists = list(judge(rows, vectors, means, inverses, shares, logs, judged))
    longest = max(map(len, lists))  # without a ridge there may be fewer discriminants
    found = np.array([judgements + judgements[-1:] * (longest - len(judgements)) for judgements in lists])
    hits = np.where(possible[:, None], found[..., 0], -np.inf)
    return hits, found[..., 1], float(judged.weights.sum())


def _held_out_rows(
    training: ClassMoments, test: LabelledRows, vectors: Array, n_rules: int
) -> tuple[Array, Array | None]:
    """Test rows around the training mean, in the eigenbasis where that is less work than taking the rules out of it."""
    X = test.X.toarray() if test.is_sparse else test.X
    rows = training.centred(X.astype(np.float64, copy=False))
    return (rows, vectors) if n_rules < len(rows) else (rows @ vectors, None)


def _inverse_variances(values: Array, means: Array, shrinkages: Array) -> tuple[Array, NDArray[np.bool_]]:
    """1/((1−γ)e + γτ), a row per γ, and whether it is a rule: not where classes differ but do not vary."""
    ridge = values.sum() / _rank(values, len(means))
    variances = np.outer(1 - shrinkages, values) + ridge * shrinkages[:, None]
    flat = variances <= _noise(values)
    differing = flat @ (means**2).sum(axis=0)
    return np.where(flat, 0.0, 1 / np.where(flat, 1.0, variances)), differing <= COLLAPSED * (means**2).sum()


@dataclass(frozen=True, eq=False)
class _Judged:
    """What the test rows are (positions among the classes in training, −1 for none), and which show the loss."""

    truth: NDArray[np.intp]
    weights: Array
    sample: NDArray[np.intp]

    @classmethod
    def of(cls, test: LabelledRows, present: NDArray[np.bool_]) -> _Judged:
        n = test.shape[0]
        truth = np.where(present[test.codes], np.cumsum(present)[test.codes] - 1, -1)
        weights = np.ones(n) if test.weights is None else test.weights
        return cls(truth, weights, np.unique(np.linspace(0, n - 1, min(n, LOSS_ROWS)).astype(np.intp)))

    def hits_and_loss(self, scores: Array) -> tuple[float, float]:
        """From scores of every class (C×n): weight of the rows predicted rightly, mean log loss of the sample."""
        right = scores[self.truth, np.arange(len(self.truth))] >= scores.max(axis=0)
        hits = float(self.weights @ (right & (self.truth >= 0)))
        some, truth = scores[:, self.sample], self.truth[self.sample]
        # a row of a class that was not in training costs as much as the worst known one
        known = np.where(truth >= 0, some[truth, np.arange(len(truth))], some.min(axis=0))
        largest, weights = some.max(axis=0), self.weights[self.sample]
        losses = np.log(np.exp(some - largest).sum(axis=0)) + (largest - known)
        return hits, float(weights @ losses / weights.sum())


def _after_all(
    rows: Array, vectors: Array | None, means: Array, inverses: Array, shares: Array, logs: Array, judged: _Judged
) -> Iterator[list[tuple[float, float]]]:
    """Hits and loss of every γ's linear rule with all discriminants; a few γ at a time make one product."""
    n_classes = len(means)
    step = max(1, SCORES_AT_ONCE // (n_classes * len(rows)))
    for first in range(0, len(inverses), step):
        rules = inverses[first : first + step, None] * means
        offsets = logs - 0.5 * np.einsum("gcd,cd->gc", rules, means)
        flat = rules.reshape(-1, means.shape[1])
        scores = (flat if vectors is None else flat @ vectors.T) @ rows.T + offsets.reshape(-1, 1)
        for of_gamma in scores.reshape(-1, n_classes, len(rows)):
            yield [judged.hits_and_loss(of_gamma)]


def _after_each(
    rows: Array, vectors: Array | None, means: Array, inverses: Array, shares: Array, logs: Array, judged: _Judged
) -> Iterator[list[tuple[float, float]]]:
    """The same after 1, 2, … discriminants."""
    for scale in np.sqrt(inverses):
        directions = principal(np.sqrt(shares)[:, None] * means * scale)[1]
        centres = (means * scale) @ directions.T
        axes = directions * scale if vectors is None else (directions * scale) @ vectors.T
        scores = np.repeat(logs[:, None], len(rows), axis=1)
        found = []
        for along, centre in zip(axes @ rows.T, centres.T, strict=True):
            scores += centre[:, None] * along - 0.5 * centre[:, None] ** 2
            found.append(judged.hits_and_loss(scores))
        yield found


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
