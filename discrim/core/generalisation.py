"""Held-out rows in discriminant space: how much training distances overstate the separation, and the error left.

Coordinates are a fit's own discriminants, in which its training classes have unit covariance. Held-out rows spread
more there, and their class means lie closer together. Folds measure by how much; statistics of many rows or columns
predict it. With Q = Σ_γ⁻¹, ν = n − C and a = (1−γ) tr(Q S_w/n) / ν,

    held-out covariance  G Σ Gᵀ ≈ G (S_w/ν) Gᵀ / (1−a)²
    held-out means       m̃ ≈ m − t diag(1/n_c) (m⁺)ᵀ ,    t = tr(QΣ) ≈ n tr(Q S_w/n) / (ν (1−a))

The noise of a class mean, of covariance Σ/n_c, adds t/n_c to its inner product with itself and nothing to that with
others (Zollanvari and Dougherty, "Generalized consistent error estimator of linear discriminant analysis", 2015).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from discrim.core.coordinates.basis import Basis
from discrim.core.cross_validation import TrainingSet
from discrim.core.discriminants import Discriminants, classical, principal, whitened_span
from discrim.core.moments.class_moments import ClassMoments
from discrim.core.pairwise_error import NEAREST, pair_error
from discrim.core.ratio import Ratio
from discrim.decompositions import pinv

Array = NDArray[np.float64]
NOTHING_LEFT = 1e-6  # of 1 − a: with as many directions as rows, training rows say nothing of others


@dataclass(frozen=True, eq=False)
class HeldOut:
    """Class means of training and of held-out rows (C×q; NaN where there are none), the latter's weights and scatter.

    The scatter is around the held-out means, of `freedom` degrees of freedom.
    """

    trained: Array
    means: Array
    weights: Array
    scatter: Array
    freedom: float

    @classmethod
    def of(cls, trained: Array, features: ClassMoments) -> HeldOut:
        """Build from held-out rows in the fit's coordinates."""
        seen = features.weights > 0
        means = np.where(seen[:, None], features.means, np.nan)
        scatter = np.ldexp(features.within, 2 * features.exponent)
        return cls(trained, means, features.weights, scatter, features.total_weight - float(seen.sum()))

    @classmethod
    def expected(
        cls, trained: Array, within: Array, trace: float, shares: Array, n: float, gamma: float
    ) -> HeldOut | None:
        """Return what statistics predict for more rows; None if they hold too few (weights count as rows).

        within : G (S_w/n) Gᵀ; trace : tr(Q S_w/n); shares : n_c/n
        """
        freedom = n - len(shares)
        left = 1 - (1 - gamma) * trace / freedom if freedom > 0 else 0.0
        if not left > NOTHING_LEFT:
            return None
        noise = n * trace / (freedom * left) / (n * shares)
        means = trained - noise[:, None] * pinv(trained).T
        means -= shares @ means
        return cls(trained, means, n * shares, n * within * (n / freedom / left**2), n)

    def among(self, classes: NDArray[np.intp]) -> HeldOut:
        """Return the part of some classes."""
        return HeldOut(self.trained[classes], self.means[classes], self.weights[classes], self.scatter, self.freedom)


def inflation(held_out: Sequence[HeldOut]) -> float:
    """Compute κ² = max(1, mean over held-out rows and dimensions of (z − training class mean)²)."""
    total = weight = 0.0
    for part in held_out:
        gaps = part.means - part.trained
        known = np.isfinite(gaps[:, 0])  # among the training rows and held out
        gaps = gaps[known]
        total += float(np.trace(part.scatter) + part.weights[known] @ np.vecdot(gaps, gaps))
        weight += float(part.weights[known].sum()) * part.scatter.shape[0]
    return max(1.0, total / weight) if weight > 0 else 1.0


def held_out_pair_errors(held_out: Sequence[HeldOut], subspace: Callable[[HeldOut], Array], classes: int) -> Array:
    """Return error between each two classes in a subspace (C×C; NaN where too few rows were held out to tell).

    Along the unit vector u from training mean b to training mean a, in each part's own subspace:

        ½ erfc(D/(2√2)) ,    D = (mean over held-out rows of a of u·z − the same of b) / their deviation along u

    the means taken from the midpoint of the training means, so that a and b may have been held out in different parts.
    """
    sums = _PairSums(classes)
    for part in held_out:
        sums.add(part, subspace(part))
    return sums.errors()


class _PairSums:
    """What is known of every pair of classes (a in rows, b in columns), summed over parts."""

    def __init__(self, classes: int) -> None:
        self.margins, self.shifts, self.squares, self.scatter, self.weights, self.freedom, self.parts = np.zeros(
            (7, classes, classes)
        )

    def add(self, part: HeldOut, B: Array) -> None:
        trained, gaps = part.trained @ B, (part.means - part.trained) @ B
        distances = np.maximum(_distances(trained, np.eye(B.shape[1])), NEAREST)
        shifts = (np.vecdot(gaps, trained)[:, None] - gaps @ trained.T) / distances  # u·(held-out − training mean)
        known = np.isfinite(shifts)  # a was held out, and both were among the training rows
        weights = np.where(known, part.weights[:, None], 0.0)
        shifts = np.where(known, shifts, 0.0)
        self.margins += weights * np.where(known, shifts + distances / 2, 0.0)
        self.shifts += weights * shifts
        self.squares += weights * shifts**2
        self.weights += weights
        self.parts += known
        both = np.isfinite(distances)
        self.scatter += np.where(both, _distances(trained, B.T @ part.scatter @ B) / distances, 0.0) ** 2
        self.freedom += part.freedom * both

    def errors(self) -> Array:
        with np.errstate(invalid="ignore", divide="ignore"):
            between = self.squares - self.shifts**2 / self.weights  # rows of a class around their mean over all parts
            spare = self.parts - 1
            freedom = self.freedom + (spare + spare.T)  # a sum in this order is the same from both sides
            # weights that do not count rows, but add up to one, say, leave no degrees of freedom to speak of
            freedom = np.where(freedom > 0, freedom, self.weights + self.weights.T)
            deviations = np.sqrt((self.scatter + (between + between.T)) / freedom)
            margins = self.margins / self.weights
            errors = pair_error((margins + margins.T) / deviations)
        np.fill_diagonal(errors, 0.0)
        return errors


def _distances(points: Array, metric: Array) -> Array:
    """Compute √((x_a − x_b)ᵀ metric (x_a − x_b)) of all pairs."""
    products = points @ metric @ points.T
    norms = np.diag(products)
    return np.sqrt(np.maximum(norms[:, None] + norms - (products + products.T), 0.0))


@dataclass(frozen=True, eq=False)
class WhitenedClasses:
    """All discriminants as q directions of unit within-class covariance, the widest first, and the class means along.

    Directions in the coordinates of a ratio; means (C×q) NaN for classes without rows.
    """

    directions: Array
    means: Array

    @classmethod
    def of(cls, found: Discriminants, ratio: Ratio) -> WhitenedClasses:
        """Build from the discriminants of a ratio."""
        span = whitened_span(found, ratio)
        axes = principal(ratio.means @ span.T)[1] @ span
        roots = np.sqrt(np.where(ratio.shares > 0, ratio.shares, np.nan))[:, None]
        return cls(axes, (ratio.means @ axes.T) / roots)


def seen_in_folds(basis: Basis, folds: Iterable[TrainingSet], gamma: float) -> Iterator[HeldOut]:
    """Return what each fold's test rows show along the discriminants of its training rows."""
    for fold, ratio in basis.trained(folds, gamma):
        if not ratio.means_differ:
            continue
        classes = WhitenedClasses.of(classical(ratio, basis.cost(ratio, gamma)), ratio)
        seen = fold.along(ratio.embedded(classes.directions) * 0.5**fold.training.exponent)
        if len(classes.directions) and seen.n_rows:
            yield HeldOut.of(classes.means, seen)


def expected_of_statistics(
    found: Discriminants, classes: WhitenedClasses, ratio: Ratio, gamma: float
) -> tuple[HeldOut, ...]:
    """Return what statistics let expect; nothing where Σ_γ is singular (S_w/n itself is the metric then)."""
    if found.cost is None:
        return ()
    within = classes.directions @ (ratio.within @ classes.directions.T)
    trace = found.cost.trace_of_quotient(ratio.within)
    expected = HeldOut.expected(classes.means, within, trace, ratio.shares, ratio.weight, gamma)
    return () if expected is None else (expected,)
