"""Rows divided into training and test rows, several times, with the statistics of each part.

Fold statistics add up: where the test rows divide the table, each training set's are the sum of the other folds'
(added, never subtracted), at the cost of one pass.
"""

from __future__ import annotations

import operator
import warnings
from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import accumulate
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.model_selection import StratifiedGroupKFold, StratifiedKFold, check_cv
from sklearn.utils import check_random_state

from discrim.core.moments.class_moments import ClassMoments
from discrim.core.moments.gather import Statistics
from discrim.core.ratio import Ratio, ratio_of
from discrim.tables.check_parameters import (
    checked_row_numbers,
    names_rows,
    require_folds,
    require_groups,
    require_splits,
    seed_number,
)
from discrim.tables.row_hash import HashKFold, hash_folds, row_hashes
from discrim.tables.rows import LabelledRows, projected
from discrim.threads import computed_once

Array = NDArray[np.float64]
Indices = NDArray[np.intp]


@dataclass(eq=False)
class TrainingSet:
    """Statistics of training rows, and rows that were held out of them."""

    training: ClassMoments
    test: LabelledRows  # or a sample of those held out, where `tested` has the statistics of all
    tested: ClassMoments | None = None
    repeats: float = 1.0  # how often each row is held out, in all splits

    @computed_once
    def ratio(self) -> Ratio:
        """What the discriminants of the training rows maximise, for a cost with a ridge."""
        return ratio_of(self.training, has_ridge=True)

    def along(self, directions: Array) -> ClassMoments:
        """Statistics of the rows held out in the coordinates (x − mean in training)ᵀ directions."""
        mean = self.training.mean
        if self.tested is not None:
            return self.tested.along(mean, directions)
        features = projected(self.test.X, mean, directions).astype(np.float64, copy=False)
        return ClassMoments.of_rows(replace(self.test, X=features))


def _of_the_others(parts: list[ClassMoments]) -> list[ClassMoments]:
    """For each part the sum of all other parts."""
    before = list(accumulate(parts[:-1], operator.add))  # of all folds up to one, and from one on
    after = list(accumulate(parts[:0:-1], operator.add))[::-1]
    return [after[0], *map(operator.add, before[:-1], after[1:]), before[-1]]


def gathered_folds(statistics: Statistics) -> list[TrainingSet]:
    """Folds of a table whose rows are gone: their statistics are exact, of the test rows there is a sample."""
    sample, asked = statistics.sample, statistics.gathering
    parts = [part.among(statistics.moments.classes) for part in statistics.folds]
    tests = [LabelledRows(np.empty((0, part.n_features)), np.empty(0, np.intp), part.classes) for part in parts]
    if sample is not None:
        rows, drawn = sample.among(parts[0].classes), hash_folds(sample.hashes, asked.n_folds, asked.seed)
        tests = [rows.some(np.flatnonzero(drawn == fold)) for fold in range(asked.n_folds)]
    return [TrainingSet(*fold) for fold in zip(_of_the_others(parts), tests, parts, strict=True)]


class Folds:
    """Labelled rows, divided by splits; iterating gives a `TrainingSet` of each."""

    def __init__(self, points: LabelledRows, splits: Splits) -> None:
        self.points, self.splits = points, splits

    def __iter__(self) -> Iterator[TrainingSet]:
        return iter(self._sets)

    def some(self, sample: Indices) -> Folds:
        """The same splits of some of the rows; those that leave no row on a side are none."""
        position = np.full(self.points.shape[0], -1)
        position[sample] = np.arange(len(sample))
        sides = [[position[side][position[side] >= 0] for side in pair] for pair in self.splits.pairs]
        pairs = [(training, test) for training, test in sides if len(training) and len(test)]
        return Folds(self.points.some(sample), Splits.of(pairs, len(sample)))

    @computed_once
    def _sets(self) -> list[TrainingSet]:
        """From one pass, where the test rows divide the table: training sets are sums of the other parts."""
        pairs, repeats = self.splits.pairs, self.splits.repeats
        tests = [self.points.picked(test) for _, test in pairs]
        if not self.splits.divide:
            training = [ClassMoments.of_rows(self.points.picked(rows)) for rows, _ in pairs]
            return [TrainingSet(*fold, repeats=repeats) for fold in zip(training, tests, strict=True)]
        parts: list[ClassMoments] = []
        for test in tests:
            parts.append(ClassMoments.of_rows(test, near=parts[0] if parts else None))
        return [TrainingSet(*fold) for fold in zip(_of_the_others(parts), tests, parts, strict=True)]

    @computed_once
    def moments(self) -> ClassMoments | None:
        """Statistics of all rows, where those of the parts add up to them."""
        if not self.splits.divide:
            return None
        first = self._sets[0]
        assert first.tested is not None
        return first.training + first.tested


@dataclass(frozen=True, eq=False)
class Splits:
    """Numbers of training and of test rows, several times."""

    pairs: list[tuple[Indices, Indices]]
    divide: bool  # whether each row is tested once, and trained on wherever it is not
    repeats: float = 1.0  # how often a row that is tested is

    @classmethod
    def of(cls, pairs: list[tuple[Indices, Indices]], n: int) -> Splits:
        """Given ones of n rows."""
        tested = np.concatenate([test for _, test in pairs])
        is_all = lambda rows: np.array_equal(np.sort(rows), np.arange(n))  # noqa: E731
        divide = len(pairs) > 1 and is_all(tested) and all(is_all(np.concatenate(pair)) for pair in pairs)
        return cls(pairs, divide, len(tested) / len(np.unique(tested)))


def splits_of(points: LabelledRows, cv: Any, random_state: Any, groups: NDArray[Any] | None = None) -> Splits:
    """Training and test rows as `cv` says. Folds are drawn anew with a seed, else in order; groups stay on one side."""
    n = points.shape[0]
    if groups is not None:
        groups = require_groups(groups, n if points.n_given is None else points.n_given, cv)
        groups = groups if points.numbers is None else groups[points.numbers]
        if isinstance(cv, (int, np.integer)):
            cv = StratifiedGroupKFold(int(cv), shuffle=random_state is not None, random_state=random_state)
    if isinstance(cv, HashKFold):
        return Splits(_by_hash(points, cv), True)
    if isinstance(cv, (int, np.integer)):
        fold = _fold_numbers(points, int(cv), random_state)
        tests = [fold == number for number in range(fold.max() + 1)]
        return Splits([(np.flatnonzero(~test), np.flatnonzero(test)) for test in tests], True)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="The least populated class")
        given = list(check_cv(cv, points.codes, classifier=True).split(np.zeros(n), points.codes, groups))
    position = np.arange(n)
    if names_rows(cv) and points.numbers is not None:  # of which some rows were left out
        assert points.n_given is not None
        position = np.full(points.n_given, -1)
        position[points.numbers] = np.arange(n)
    sides = [tuple(position[checked_row_numbers(part, len(position))] for part in split) for split in given]
    pairs = [(training[training >= 0], test[test >= 0]) for training, test in sides]
    require_splits(pairs)
    return Splits.of(pairs, n)


def _fold_numbers(points: LabelledRows, n_folds: int, random_state: Any) -> Indices:
    """A fold for each row: each class divided evenly; copies of a row stay together, so that weights are repetition."""
    prints = points.fingerprints()
    if (np.diff(np.sort(prints)) > 0).all():
        return _dealt(points.codes, n_folds, random_state)
    _, first, group = np.unique(prints + 1j * points.codes, return_index=True, return_inverse=True)
    if np.bincount(points.codes[first]).max() < 2:  # no class varies: copies are all there is to divide
        return _dealt(points.codes, n_folds, random_state)
    order = np.argsort(first)  # distinct rows as they came
    fold = np.empty(len(order), dtype=np.intp)
    fold[order] = _dealt(points.codes[first[order]], n_folds, random_state)
    return fold[group]


def _dealt(codes: Indices, n_folds: int, random_state: Any) -> Indices:
    """StratifiedKFold's fold of each row, but where classes are too small to be in every fold.

    Rows are dealt class by class there, so that a fold takes one row of a class.
    """
    n, counts = len(codes), np.bincount(codes)
    require_folds(n_folds, int(counts.max()))
    fold = np.empty(n, dtype=np.intp)
    if counts.max() < n_folds:
        order = np.arange(n) if random_state is None else check_random_state(random_state).permutation(n)
        fold[order[np.argsort(codes[order], kind="stable")]] = np.arange(n) % min(n_folds, n)
    elif random_state is None:
        # the rows of one class after the other, as they first appear, are dealt to the folds in turn; that says how
        # many of a class a fold takes, and it takes them in order (in scikit-learn it takes longer than statistics do)
        first = np.zeros(len(counts), dtype=np.intp)
        first[codes[::-1]] = np.arange(n)[::-1]
        turns = np.argsort(np.argsort(first)).astype(np.min_scalar_type(len(counts)))[codes]  # sorted fast if short
        by_class = np.argsort(turns, kind="stable")
        fold[by_class] = np.sort(turns[by_class].astype(np.intp) * n_folds + np.arange(n) % n_folds) % n_folds
    else:
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", message="The least populated class")
            splitter = StratifiedKFold(n_folds, shuffle=True, random_state=random_state)
            for number, (_, test) in enumerate(splitter.split(codes, codes)):
                fold[test] = number
    return fold


def _by_hash(points: LabelledRows, cv: HashKFold) -> list[tuple[Indices, Indices]]:
    """Folds by the rows' content; test rows in the order of their hashes, as a sample of them would come."""
    hashes = row_hashes(points.X)
    folds = hash_folds(hashes, cv.get_n_splits(), seed_number(cv.random_state))
    order = np.argsort(hashes, kind="stable")
    splits = [(np.flatnonzero(folds != fold), order[folds[order] == fold]) for fold in range(cv.n_splits)]
    require_splits([split for split in splits if len(split[1])] or splits)
    return [split for split in splits if len(split[1])]


def by_content(cv: Any) -> bool:
    """Whether parts of a table can agree on the folds: a number of them, or such as follow from the rows' content."""
    return cv is None or isinstance(cv, HashKFold) or (isinstance(cv, (int, np.integer)) and not isinstance(cv, bool))


def hash_splitter(cv: Any, random_state: Any) -> HashKFold | None:
    """The folds that parts of a table can agree on, None for other ones."""
    if not by_content(cv) or isinstance(cv, HashKFold):
        return cv if isinstance(cv, HashKFold) else None
    return HashKFold(5 if cv is None else int(cv), random_state=random_state)  # 5 as in scikit-learn
