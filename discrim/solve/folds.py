"""Rows divided into training and test rows, several times, with the statistics of each part.

Fold statistics add up: where the test rows divide the table, each training set's are the sum of the other folds'
(added, never subtracted), at the cost of one pass.
"""

from __future__ import annotations

import functools
import operator
import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.model_selection import StratifiedKFold, check_cv

from discrim.data.check import checked_row_numbers, require_folds, require_splits
from discrim.data.rows import LabelledRows
from discrim.moments.class_moments import ClassMoments

Indices = NDArray[np.intp]


class Folds:
    """Splits of labelled rows; iterating gives each split's training statistics and test rows."""

    def __init__(self, points: LabelledRows, cv: Any, random_state: Any) -> None:
        self.points = points
        self.splits = _splits(points, cv, random_state)

    def __iter__(self) -> Iterator[tuple[ClassMoments, LabelledRows]]:
        for i, (training, test) in enumerate(self.splits):
            others = self._parts[:i] + self._parts[i + 1 :]
            moments = functools.reduce(operator.add, others) if others else ClassMoments.of_rows(self.rows(training))
            yield moments, self.rows(test)

    @functools.cached_property
    def _parts(self) -> list[ClassMoments]:
        """Statistics of each fold; none where the test rows do not divide the table."""
        n = self.points.shape[0]
        tests = np.sort(np.concatenate([test for _, test in self.splits]))
        everyone = np.arange(n)
        divided = np.array_equal(tests, everyone) and all(
            np.array_equal(np.sort(np.concatenate(split)), everyone) for split in self.splits
        )
        return [ClassMoments.of_rows(self.rows(test)) for _, test in self.splits] if divided else []

    def rows(self, index: Indices) -> LabelledRows:
        """Some of the rows."""
        points = self.points
        weights = None if points.weights is None else points.weights[index]
        return LabelledRows(points.X[index], points.codes[index], points.classes, weights)


def _splits(points: LabelledRows, cv: Any, random_state: Any) -> list[tuple[Indices, Indices]]:
    """(training, test) row numbers. Folds are drawn anew with a seed, else they are scikit-learn's unshuffled ones."""
    n = points.shape[0]
    if isinstance(cv, (int, np.integer)):
        largest = int(np.bincount(points.codes).max())
        require_folds(cv, largest)
        n_splits = min(int(cv), largest)  # no more than the largest class has rows
        cv = StratifiedKFold(n_splits, shuffle=random_state is not None, random_state=random_state)
    given = not hasattr(cv, "split")
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="The least populated class")
        splits = list(check_cv(cv, points.codes, classifier=True).split(np.zeros(n), points.codes))
    position = np.arange(n)
    if given and points.numbers is not None:  # row numbers of the table that came, of which some rows were left out
        assert points.n_given is not None
        position = np.full(points.n_given, -1)
        position[points.numbers] = np.arange(n)
    sides = [tuple(position[checked_row_numbers(part, len(position))] for part in split) for split in splits]
    kept = [(training[training >= 0], test[test >= 0]) for training, test in sides]
    require_splits(kept)
    return kept
