"""Held-out rows in discriminant space: how much training distances overstate the separation, and the resulting error.

Coordinates are a fit's discriminants, in which its training classes have unit covariance. Held-out rows spread more
there, and their class means are closer together. Folds measure by how much; an analytic estimate predicts it for many
rows or columns. With Q = Σ_γ⁻¹, ν = n − C and a = (1−γ) tr(Q S_w/n) / ν,

    held-out covariance  G Σ Gᵀ ≈ G (S_w/ν) Gᵀ / (1−a)²
    held-out means       m̃ ≈ m − t diag(1/n_c) (m⁺)ᵀ ,    t = tr(QΣ) ≈ n tr(Q S_w/n) / (ν (1−a))

The noise of a class mean has covariance Σ/n_c. It adds t/n_c to the mean's inner product with itself and nothing to the
other inner products (Zollanvari and Dougherty, "Generalized consistent error estimator of linear discriminant
analysis", 2015).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from discrim.core.cross_validation import TrainingSet
from discrim.core.discriminants import Discriminants, WhitenedClasses, classical
from discrim.core.moments.class_moments import ClassMoments
from discrim.core.pairwise_error import NEAREST, pair_error
from discrim.core.ratio import Ratio, ratio_of
from discrim.decompositions import pinv

Array = NDArray[np.float64]
MIN_REMAINDER = 1e-6  # of 1 − a: with as many directions as rows, training rows say nothing about new rows


@dataclass(frozen=True, eq=False)
class HeldOut:
    """Class means of training and held-out rows (C×q; NaN for absent classes), weights and scatter of the latter.

    The scatter is around the held-out means, with `freedom` degrees of freedom.
    """

    trained: Array
    means: Array
    weights: Array
    scatter: Array
    freedom: float

    @classmethod
    def of(cls, trained: Array, features: ClassMoments) -> HeldOut:
        """Build from held-out rows in the fit's coordinates."""
        held_out_features = features.weights > 0
        means = np.where(held_out_features[:, None], features.means, np.nan)
        scatter = features.in_squared_units(features.within)
        return cls(trained, means, features.weights, scatter, features.total_weight - float(held_out_features.sum()))

    @classmethod
    def expected(
        cls, trained: Array, within: Array, trace: float, shares: Array, n: float, gamma: float
    ) -> HeldOut | None:
        """Return the analytic estimate for new rows; None if there are too few rows (weights count as rows).

        within : G (S_w/n) Gᵀ
        trace : tr(Q S_w/n)
        shares : n_c/n
        """
        freedom = n - len(shares)
        left = 1 - (1 - gamma) * trace / freedom if freedom > 0 else 0.0
        if not left > MIN_REMAINDER:
            return None
        noise = n * trace / (freedom * left) / (n * shares)
        means = trained - noise[:, None] * pinv(trained).T
        means -= shares @ means
        return cls(trained, means, n * shares, n * within * (n / freedom / left**2), n)

    def select_classes(self, classes: NDArray[np.intp]) -> HeldOut:
        """Return the part that concerns these classes."""
        return HeldOut(self.trained[classes], self.means[classes], self.weights[classes], self.scatter, self.freedom)


def inflation(held_out: Sequence[HeldOut]) -> float:
    """Compute κ² = max(1, mean over held-out rows and dimensions of (z − training class mean)²)."""
    total = weight = 0.0
    for part in held_out:
        gaps = part.means - part.trained
        known = np.isfinite(gaps[:, 0])  # classes that occur in the training rows and among the held-out rows
        gaps = gaps[known]
        total += float(np.trace(part.scatter) + part.weights[known] @ np.vecdot(gaps, gaps))
        weight += float(part.weights[known].sum()) * part.scatter.shape[0]
    return max(1.0, total / weight) if weight > 0 else 1.0


def held_out_pair_errors(held_out: Sequence[HeldOut], subspace: Callable[[HeldOut], Array], classes: int) -> Array:
    """Return the error between each two classes in a subspace (C×C; NaN if too few rows were held out).

    Let u be the unit vector from training mean b to training mean a in each part's own subspace:

        ½ erfc(D/(2√2)) ,    D = (mean of u·z over held-out rows of a − the same of b) / their deviation along u

    The means are measured from the midpoint of the training means, so a and b may be held out in different parts.
    """
    # sums over parts for every pair of classes (a in rows, b in columns)
    margins, moved, squares, scatter, weight, freedom, parts = np.zeros((7, classes, classes))
    for part in held_out:
        B = subspace(part)
        trained, gaps = part.trained @ B, (part.means - part.trained) @ B
        distances = np.maximum(_distances(trained, np.eye(B.shape[1])), NEAREST)
        shifts = (np.vecdot(gaps, trained)[:, None] - gaps @ trained.T) / distances  # u·(held-out − training mean)
        known = np.isfinite(shifts)  # a was held out, and both occur in the training rows
        weights = np.where(known, part.weights[:, None], 0.0)
        shifts = np.where(known, shifts, 0.0)
        margins += weights * np.where(known, shifts + distances / 2, 0.0)
        moved += weights * shifts
        squares += weights * shifts**2
        weight += weights
        parts += known
        both, spread = np.isfinite(distances), B.T @ part.scatter @ B
        scatter += np.where(both, _distances(trained, spread) / distances, 0.0) ** 2
        # no direction leads from a class to one with the same mean: any has the mean deviation
        scatter += np.where(distances == NEAREST, np.trace(spread) / len(spread), 0.0)
        freedom += part.freedom * both
    with np.errstate(invalid="ignore", divide="ignore"):
        between = squares - moved**2 / weight  # deviations of a class's rows from their mean over all parts
        spare = parts - 1
        freedom = freedom + (spare + spare.T)  # this order makes the sum symmetric
        # weights that do not count rows (that sum to 1, say) leave no degrees of freedom
        freedom = np.where(freedom > 0, freedom, weight + weight.T)
        deviations = np.sqrt((scatter + (between + between.T)) / freedom)
        margins = margins / weight
        errors = pair_error((margins + margins.T) / deviations)
    np.fill_diagonal(errors, 0.0)
    return errors


def _distances(points: Array, metric: Array) -> Array:
    """Compute √((x_a − x_b)ᵀ metric (x_a − x_b)) for all pairs."""
    products = points @ metric @ points.T
    norms = np.diag(products)
    return np.sqrt(np.maximum(norms[:, None] + norms - (products + products.T), 0.0))


def held_out_in_folds(folds: Iterable[TrainingSet], gamma: float) -> Iterator[HeldOut]:
    """Yield the projections of each fold's test rows onto the discriminants of its training rows."""
    for fold in folds:
        ratio = fold.ratio if gamma else ratio_of(fold.training)
        if not ratio.means_differ:
            continue
        classes = WhitenedClasses.of(classical(ratio, ratio.covariance(gamma)), ratio)
        held_out_features = fold.project(fold.training.scaled(ratio.embedded(classes.directions)))
        if len(classes.directions) and held_out_features.n_rows:
            yield HeldOut.of(classes.means, held_out_features)


def analytic_estimate(
    found: Discriminants, classes: WhitenedClasses, ratio: Ratio, gamma: float
) -> tuple[HeldOut, ...]:
    """Return the analytic estimate; nothing if Σ_γ is singular (the metric is then S_w/n itself)."""
    if found.cost is None:
        return ()
    within = classes.directions @ (ratio.within @ classes.directions.T)
    trace = found.cost.trace_of_quotient(ratio.within)
    expected = HeldOut.expected(classes.means, within, trace, ratio.shares, ratio.weight, gamma)
    return () if expected is None else (expected,)
