"""Rows of two classes, and the features in units of one of them."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, NoReturn

import numpy as np
from numpy.typing import NDArray

from discrim.tables.warn_once import warn

Floats = NDArray[np.float64]
Indices = NDArray[np.intp]
Mask = NDArray[np.bool_]

CONSTANT = 1e-10  # a deviation below this share of the largest value is rounding, not spread


@dataclass(frozen=True)
class Pair:
    """The different rows of two classes, each with its weight and how often it came."""

    rows: Floats
    positive: Mask
    weights: Floats
    counts: Indices
    labels: NDArray[Any]  # of the rows that are not positive, and of those that are
    weighted: bool  # whether the weights were given, or are only the counts

    def part(self, chosen: Indices) -> Pair:
        arrays = {name: getattr(self, name)[chosen] for name in ("rows", "positive", "weights", "counts")}
        return replace(self, **arrays)

    def class_totals(self) -> Floats:
        return np.bincount(self.positive, self.weights, minlength=2).astype(np.float64)

    def costs(self, class_weight: Any) -> Floats:
        """The weight of each row times that of its class."""
        if class_weight is None:
            return self.weights
        if class_weight == "balanced":
            factors = self.weights.sum() / (2 * self.class_totals())
        else:
            factors = np.array([float(class_weight.get(label, 1.0)) for label in self.labels.tolist()])
        return self.weights * factors[self.positive.astype(np.intp)]


@dataclass(frozen=True)
class Standard:
    """z = (x − centre)/scale, on the features that are kept."""

    n_features: int
    features: Indices
    centre: Floats
    scale: Floats
    lost: Indices  # features left out although they vary in the class that is not the reference

    @classmethod
    def none(cls, d: int) -> Standard:
        """Features as they are."""
        return cls(d, np.arange(d), np.zeros(d), np.ones(d), np.arange(0))

    @classmethod
    def of(cls, pair: Pair, reference_class: str, constant_features: str) -> Standard:
        """Mean 0 and variance 1 in the smaller ("minority") or the larger ("majority") class."""
        of_class = _reference(pair, reference_class)
        centre, scale = _centre_and_scale(pair.rows[of_class], pair.weights[of_class])
        least = CONSTANT * np.abs(pair.rows).max(axis=0)
        constant = np.flatnonzero(scale <= least)
        overall = _centre_and_scale(pair.rows[:, constant], pair.weights)[1]
        lost = constant[overall > least[constant]]
        if len(constant) == len(centre) and not len(lost):
            _refuse_equal_rows(pair)
        if constant_features == "scale" or _all_constant(constant, pair, of_class):
            scale[constant] = overall
            lost = lost[:0]
        kept = np.flatnonzero(scale > least)
        return cls(len(centre), kept, centre[kept], scale[kept], lost)

    def __call__(self, rows: Floats) -> Floats:
        standardised = rows[:, self.features]
        standardised -= self.centre
        standardised /= self.scale
        return standardised

    def of_pair(self, pair: Pair) -> Pair:
        return replace(pair, rows=self(pair.rows))

    def undone(self, weights: Floats, intercept: float) -> tuple[Floats, float]:
        """A hyperplane in z as the same hyperplane in all features of x."""
        coef = np.zeros(self.n_features)
        coef[self.features] = weights / self.scale
        return coef, float(intercept - coef[self.features] @ self.centre)


def _refuse_equal_rows(pair: Pair) -> NoReturn:
    low, high = pair.labels.tolist()
    raise ValueError(
        f"The {pair.counts.sum()} rows of classes {low!r} and {high!r} are all equal (to {CONSTANT:g} of their size), "
        "so no hyperplane lies between them. Check the columns, take off a common offset, or leave a class out."
    )


def _all_constant(constant: Indices, pair: Pair, of_class: Mask) -> bool:
    """Whether nothing is left to standardise to the class; then both classes give the scale, which is said."""
    if all_of_them := len(constant) == pair.rows.shape[1]:
        warn(
            f"All features are constant in class {pair.labels.tolist()[int(pair.positive[of_class][0])]!r}, to "
            "which they would be standardised, so they are scaled by their deviation over both classes. Pass "
            "more different rows of that class, or reference_class=None.",
        )
    return all_of_them


def _reference(pair: Pair, which: str) -> Mask:
    """Rows of the smaller (or larger) class; of equal ones that of wider spread, whatever the names."""
    negative, positive = pair.class_totals() * (1 if which == "minority" else -1)
    if negative != positive:
        return pair.positive == (positive < negative)
    with np.errstate(divide="ignore"):
        negative, positive = (
            np.log(_centre_and_scale(pair.rows[side], pair.weights[side])[1]).sum()
            for side in (~pair.positive, pair.positive)
        )
    return pair.positive == (positive >= negative)


def _centre_and_scale(rows: Floats, weights: Floats) -> tuple[Floats, Floats]:
    """Mean and population deviation of each column; squares of units, so that no unit overflows."""
    shares = weights / weights.sum()
    centre = shares @ rows
    away = rows - centre
    unit = np.maximum(away.max(axis=0), -away.min(axis=0))
    unit[unit == 0] = 1.0
    away /= unit
    return centre, unit * np.sqrt(shares @ np.square(away, out=away))
