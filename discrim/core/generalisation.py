"""Discriminants of a fit or of a fold's training rows, and what other rows show along them, seen or expected."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from discrim.core.coordinates.basis import Basis
from discrim.core.discriminants import Discriminants, classical, principal, whitened_span
from discrim.core.folds import TrainingSet
from discrim.core.held_out import HeldOut
from discrim.core.ratio import Ratio

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class WhitenedClasses:
    """All discriminants as q directions of unit within-class covariance, the widest first, and the class means along.

    Directions in the coordinates of a ratio; means (C×q) NaN for classes without rows.
    """

    directions: Array
    means: Array

    @classmethod
    def of(cls, found: Discriminants, ratio: Ratio) -> WhitenedClasses:
        """From the discriminants of a ratio."""
        span = whitened_span(found, ratio)
        axes = principal(ratio.means @ span.T)[1] @ span
        roots = np.sqrt(np.where(ratio.shares > 0, ratio.shares, np.nan))[:, None]
        return cls(axes, (ratio.means @ axes.T) / roots)


def seen_in_folds(basis: Basis, folds: Iterable[TrainingSet], gamma: float) -> Iterator[HeldOut]:
    """What each fold's test rows show along the discriminants of its training rows."""
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
    """What statistics let expect; nothing where Σ_γ is singular (S_w/n itself is the metric then)."""
    if found.cost is None:
        return ()
    within = classes.directions @ (ratio.within @ classes.directions.T)
    trace = found.cost.trace_of_quotient(ratio.within)
    expected = HeldOut.expected(classes.means, within, trace, ratio.shares, ratio.weight, gamma)
    return () if expected is None else (expected,)
