"""The whole path of shrinkages, judged by cross-validation at the cost of a few fits.

One eigendecomposition of each training set's within-class covariance, V diag(e) Vᵀ, serves every γ:

    Σ_γ⁻¹ = V diag(1/((1−γ)e + γτ)) Vᵀ
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.linalg as la
from numpy.typing import NDArray
from scipy.special import logsumexp

from discrim.data.rows import LabelledRows
from discrim.moments.class_moments import ClassMoments
from discrim.solve.discriminants import COLLAPSED, principal
from discrim.solve.folds import Folds

Array = NDArray[np.float64]
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
    losses = sum(s[:, :columns] for _, s, _ in totals)
    return PathScores(shrinkages, np.asarray(hits) / weight, np.asarray(losses) / weight)


def _fold_scores(
    training: ClassMoments, test: LabelledRows, shrinkages: Array, priors: Any, every_count: bool
) -> tuple[Array, Array, float]:
    """Weight of the rows predicted rightly and summed log loss, for every shrinkage and count; the rows' weight."""
    present = training.weights > 0
    shares = training.weights / training.total_weight
    values, vectors = la.eigh(training.within / training.total_weight, driver="evd", check_finite=False)
    values = np.maximum(values, 0.0)
    means = training.centred_means()[present] @ vectors
    logs = np.log(shares[present]) if priors is None else _log_priors(priors, present)
    ridge = values.sum() / _rank(values, int(present.sum()))
    weights = np.ones(test.shape[0]) if test.weights is None else test.weights
    position = np.cumsum(present) - 1
    truth = np.where(present[test.codes], position[test.codes], -1)
    X = test.X.toarray() if test.is_sparse else test.X
    rows = training.centred(X.astype(np.float64, copy=False)) @ vectors
    hits, losses = [], []
    for gamma in shrinkages:
        variances = (1 - gamma) * values + gamma * ridge
        flat = variances <= _noise(values)
        scale = np.where(flat, 0.0, 1 / np.sqrt(np.where(flat, 1.0, variances)))
        scores = _scores(rows * scale, means * scale, shares[present], logs, every_count)
        # without a ridge, no rule where the classes differ but do not vary
        possible = (means[:, flat] ** 2).sum() <= COLLAPSED * (means**2).sum()
        hits.append([weights @ (s.argmax(axis=1) == truth) if possible else -np.inf for s in scores])
        losses.append([weights @ _loss(s, truth) for s in scores])
    return np.array(hits), np.array(losses), float(weights.sum())


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


def _scores(rows: Array, means: Array, shares: Array, logs: Array, every_count: bool) -> list[Array]:
    """Nearest-centroid scores in whitened space, with all discriminants or after each."""
    if not every_count:
        return [rows @ means.T - 0.5 * np.einsum("cd,cd->c", means, means) + logs]
    directions = principal(np.sqrt(shares)[:, None] * means)[1]
    along, centres = rows @ directions.T, means @ directions.T
    steps = along[:, None, :] * centres - 0.5 * centres**2
    return list(np.moveaxis(np.cumsum(steps, axis=2) + logs[:, None], 2, 0))


def _loss(scores: Array, truth: NDArray[np.intp]) -> Array:
    """Log loss; a row of a class that was not in training costs as much as the worst known one."""
    known = np.where(truth >= 0, scores[np.arange(len(scores)), truth], scores.min(axis=1))
    return logsumexp(scores, axis=1) - known
