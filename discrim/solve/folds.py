"""Rows divided into training and test rows, several times, with the statistics of each part.

Fold statistics add up: where the test rows divide the table, each training set's are the sum of the other folds'
(added, never subtracted), at the cost of one pass.
"""

from __future__ import annotations

import functools
import operator
import warnings
from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import accumulate
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray
from sklearn.model_selection import PredefinedSplit, StratifiedGroupKFold, StratifiedKFold, check_cv
from sklearn.utils import check_random_state

from discrim.data.check_parameters import (
    checked_row_numbers,
    require_folds,
    require_groups,
    require_splits,
    seed_number,
)
from discrim.data.row_hash import HashKFold, hash_folds, row_hashes
from discrim.data.rows import LabelledRows, projected
from discrim.moments.class_moments import ClassMoments
from discrim.moments.gather import Statistics

Array = NDArray[np.float64]
Indices = NDArray[np.intp]


class Test(Protocol):
    """What was held out of a training set."""

    @property
    def n_rows(self) -> int:
        """How many rows."""

    def along(self, mean: Array, directions: Array) -> ClassMoments:
        """Their statistics in the coordinates (x − mean)ᵀ directions. (`ClassMoments` of rows that are gone know.)"""


@dataclass(frozen=True, eq=False)
class TestRows:
    """Rows that were held out."""

    rows: LabelledRows
    n_rows: int

    def along(self, mean: Array, directions: Array) -> ClassMoments:
        features = projected(self.rows.X, mean, directions).astype(np.float64, copy=False)
        return ClassMoments.of_rows(replace(self.rows, X=features))


def _of_the_others(parts: list[ClassMoments]) -> list[ClassMoments]:
    """For each part the sum of all other parts."""
    before = list(accumulate(parts[:-1], operator.add))  # of all folds up to one, and from one on
    after = list(accumulate(parts[:0:-1], operator.add))[::-1]
    return [after[0], *map(operator.add, before[:-1], after[1:]), before[-1]]


class Splits(ABC):
    """Training and test rows, several times; iterating gives each split's training statistics and test rows."""

    training: list[ClassMoments]  # statistics of each split's training rows

    @abstractmethod
    def __iter__(self) -> Iterator[tuple[ClassMoments, LabelledRows]]: ...

    @property
    @abstractmethod
    def held_out(self) -> Iterator[tuple[ClassMoments, Test]]:
        """The same with what the test rows show along directions."""


class GatheredFolds(Splits):
    """Folds of a table whose rows are gone: their statistics are exact, of the test rows there is a sample."""

    def __init__(self, statistics: Statistics) -> None:
        classes = statistics.moments.classes
        self.parts = [fold.among(classes) for fold in statistics.folds]
        self.training = _of_the_others(self.parts)
        self.statistics = statistics

    def __iter__(self) -> Iterator[tuple[ClassMoments, LabelledRows]]:
        sample, asked = self.statistics.sample, self.statistics.gathering
        assert sample is not None
        rows = sample.among(self.parts[0].classes)
        drawn = hash_folds(sample.hashes, asked.n_folds, asked.seed)
        tests = (rows.some(np.flatnonzero(drawn == fold)) for fold in range(asked.n_folds))
        return ((moments, test) for moments, test in zip(self.training, tests, strict=True) if test.shape[0])

    @property
    def held_out(self) -> Iterator[tuple[ClassMoments, Test]]:
        return zip(self.training, self.parts, strict=True)


class Folds(Splits):
    """Splits of labelled rows."""

    def __init__(
        self,
        points: LabelledRows,
        cv: Any,
        random_state: Any,
        original: LabelledRows | None = None,
        groups: NDArray[Any] | None = None,
    ) -> None:
        self.points, self.rows = points, points.some
        self.splits = _splits(points if original is None else original, cv, random_state, groups)

    def __iter__(self) -> Iterator[tuple[ClassMoments, LabelledRows]]:
        tests = (self.points.picked(test) for _, test in self.splits)
        return zip(self.training, tests, strict=True)

    @property
    def held_out(self) -> Iterator[tuple[ClassMoments, Test]]:
        if self.parts is not None:
            return zip(self.training, self.parts, strict=True)
        return ((moments, TestRows(test, test.shape[0])) for moments, test in self)

    @functools.cached_property
    def parts(self) -> list[ClassMoments] | None:
        """Statistics of each split's test rows, where these divide the table."""
        if not _divide(self.splits, self.points.shape[0]):
            return None
        found: list[ClassMoments] = []
        for _, test in self.splits:
            found.append(ClassMoments.of_rows(self.points.picked(test), near=found[0] if found else None))
        return found

    @functools.cached_property
    def training(self) -> list[ClassMoments]:  # type: ignore[override]
        if self.parts is None:
            return [ClassMoments.of_rows(self.points.picked(training)) for training, _ in self.splits]
        return _of_the_others(self.parts)

    @functools.cached_property
    def moments(self) -> ClassMoments | None:
        """Statistics of all rows, where those of the parts add up to them."""
        return None if self.parts is None else self.training[0] + self.parts[0]


def _divide(splits: list[tuple[Indices, Indices]], n: int) -> bool:
    """Whether each row is tested once, and trained on wherever it is not tested."""
    tested = np.bincount(np.concatenate([test for _, test in splits]), minlength=n)
    if len(splits) < 2 or not (tested == 1).all():
        return False
    return all(
        len(training) + len(test) == n and (np.bincount(np.concatenate([training, test]), minlength=n) == 1).all()
        for training, test in splits
    )


def _folds_of_distinct_rows(points: LabelledRows, n_folds: int, random_state: Any) -> list[tuple[Indices, Indices]]:
    """Each class divided evenly; copies of a row stay together, so that weights are repetition here too."""
    prints = points.fingerprints()
    first = group = np.arange(len(prints))
    if not (np.diff(np.sort(prints)) > 0).all():
        _, first, group = np.unique(prints + 1j * points.codes, return_index=True, return_inverse=True)
        if np.bincount(points.codes[first]).max() < 2:  # no class varies: copies are all there is to divide
            first = group = np.arange(len(prints))
    order = np.argsort(first)  # distinct rows as they came
    fold = _fold_numbers(points.codes[first[order]], n_folds, random_state)[np.argsort(order)][group]
    return [(np.flatnonzero(fold != number), np.flatnonzero(fold == number)) for number in range(fold.max() + 1)]


def _fold_numbers(codes: Indices, n_folds: int, random_state: Any) -> Indices:
    """A fold for each row: StratifiedKFold's, but where classes are too small to be in every fold.

    Rows are dealt class by class there, so that a fold takes one row of a class.
    """
    counts = np.bincount(codes)
    require_folds(n_folds, int(counts.max()))
    fold = np.empty(len(codes), dtype=np.intp)
    if counts.max() < n_folds:
        rng = None if random_state is None else check_random_state(random_state)
        order = np.arange(len(codes)) if rng is None else rng.permutation(len(codes))
        fold[order[np.argsort(codes[order], kind="stable")]] = np.arange(len(codes)) % min(n_folds, len(codes))
        return fold
    if random_state is None:
        return _stratified(codes, counts, n_folds)
    splitter = StratifiedKFold(n_folds, shuffle=True, random_state=random_state)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="The least populated class")
        for number, (_, test) in enumerate(splitter.split(codes, codes)):
            fold[test] = number
    return fold


def _stratified(codes: Indices, counts: Indices, n_folds: int) -> Indices:
    """StratifiedKFold's folds, which take longer to draw there than the statistics of the rows.

    The rows of all classes, one class after the other as they first appear, are dealt to the folds in turn; that says
    how many of a class a fold takes, and it takes them in the order of the rows.
    """
    by_class = np.argsort(codes, kind="stable")
    present = np.flatnonzero(counts)
    starts = (np.cumsum(counts) - counts)[present]
    appearing = np.argsort(by_class[starts])  # of the classes
    ends = np.empty(len(present), dtype=np.intp)
    ends[appearing] = np.cumsum(counts[present][appearing])
    upto = lambda place: -((np.arange(n_folds) - place[:, None]) // n_folds)  # noqa: E731 - of each fold, before a place
    taken = upto(ends) - upto(ends - counts[present])
    fold = np.empty(len(codes), dtype=np.intp)
    fold[by_class] = np.repeat(np.tile(np.arange(n_folds), len(present)), taken.ravel())
    return fold


def hash_splitter(cv: Any, random_state: Any) -> HashKFold | None:
    """The folds that parts of a table can agree on: by the rows' content, for a number of them; None for other ones."""
    cv = 5 if cv is None else cv  # as in scikit-learn
    if isinstance(cv, (int, np.integer)) and not isinstance(cv, bool):
        return HashKFold(int(cv), random_state=random_state)
    return cv if isinstance(cv, HashKFold) else None


def _by_hash(points: LabelledRows, cv: HashKFold) -> list[tuple[Indices, Indices]]:
    """Folds by the rows' content; test rows in the order of their hashes, as a sample of them would come."""
    hashes = row_hashes(points.X)
    folds = hash_folds(hashes, cv.get_n_splits(), seed_number(cv.random_state))
    order = np.argsort(hashes, kind="stable")
    splits = [(np.flatnonzero(folds != fold), order[folds[order] == fold]) for fold in range(cv.n_splits)]
    require_splits([split for split in splits if len(split[1])] or splits)
    return [split for split in splits if len(split[1])]


def _splits(
    points: LabelledRows, cv: Any, random_state: Any, groups: NDArray[Any] | None = None
) -> list[tuple[Indices, Indices]]:
    """(training, test) row numbers. Folds are drawn anew with a seed, else in order; groups stay on one side."""
    n = points.shape[0]
    if groups is not None:
        groups = require_groups(groups, n if points.n_given is None else points.n_given, cv)
        groups = groups if points.numbers is None else groups[points.numbers]
        if isinstance(cv, (int, np.integer)):
            cv = StratifiedGroupKFold(int(cv), shuffle=random_state is not None, random_state=random_state)
    if isinstance(cv, HashKFold):
        return _by_hash(points, cv)
    counts_in_the_table = not hasattr(cv, "split") or isinstance(cv, PredefinedSplit)
    if isinstance(cv, (int, np.integer)):
        return _folds_of_distinct_rows(points, int(cv), random_state)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="The least populated class")
        splits = list(check_cv(cv, points.codes, classifier=True).split(np.zeros(n), points.codes, groups))
    position = np.arange(n)
    if counts_in_the_table and points.numbers is not None:  # of which some rows were left out
        assert points.n_given is not None
        position = np.full(points.n_given, -1)
        position[points.numbers] = np.arange(n)
    sides = [tuple(position[checked_row_numbers(part, len(position))] for part in split) for split in splits]
    kept = [(training[training >= 0], test[test >= 0]) for training, test in sides]
    require_splits(kept)
    return kept
