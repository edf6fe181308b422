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
from sklearn.model_selection import PredefinedSplit, StratifiedKFold, check_cv
from sklearn.utils import check_random_state

from discrim.data.check_parameters import checked_row_numbers, require_folds, require_splits
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


def _dealt(codes: Indices, n_folds: int, random_state: Any) -> PredefinedSplit:
    """Classes too small to be in every fold: rows are dealt class by class, so that a fold takes one row of a class."""
    order = np.arange(len(codes)) if random_state is None else check_random_state(random_state).permutation(len(codes))
    order = order[np.argsort(codes[order], kind="stable")]
    fold = np.empty(len(codes), dtype=np.intp)
    fold[order] = np.arange(len(codes)) % n_folds
    return PredefinedSplit(fold)


def _splits(points: LabelledRows, cv: Any, random_state: Any) -> list[tuple[Indices, Indices]]:
    """(training, test) row numbers. Folds are drawn anew with a seed, else they are scikit-learn's unshuffled ones."""
    n = points.shape[0]
    counts_in_the_table = not hasattr(cv, "split") or isinstance(cv, PredefinedSplit)
    if isinstance(cv, (int, np.integer)):
        counts_in_the_table = False
        largest = int(np.bincount(points.codes).max())
        require_folds(cv, largest)
        if largest < cv:
            cv = _dealt(points.codes, min(int(cv), n), random_state)
        else:
            cv = StratifiedKFold(int(cv), shuffle=random_state is not None, random_state=random_state)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="The least populated class")
        splits = list(check_cv(cv, points.codes, classifier=True).split(np.zeros(n), points.codes))
    position = np.arange(n)
    if counts_in_the_table and points.numbers is not None:  # of which some rows were left out
        assert points.n_given is not None
        position = np.full(points.n_given, -1)
        position[points.numbers] = np.arange(n)
    sides = [tuple(position[checked_row_numbers(part, len(position))] for part in split) for split in splits]
    kept = [(training[training >= 0], test[test >= 0]) for training, test in sides]
    require_splits(kept)
    return kept
