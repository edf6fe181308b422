"""Cross-validation: folds with the statistics of each part, and the scores of a whole path of shrinkages.

Fold statistics add up: where the test rows divide the table, each training set's are the sum of the other folds'
(added, never subtracted), at the cost of one pass. The rules of a training set are computed for all γ at once and
applied to its held-out rows.
"""

from __future__ import annotations

import operator
import warnings
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from itertools import accumulate
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from sklearn.model_selection import StratifiedGroupKFold, StratifiedKFold, check_cv
from sklearn.utils import check_random_state

from discrim.core.calibration import standard_error
from discrim.core.discriminants import discriminants
from discrim.core.moments.class_moments import ClassMoments
from discrim.core.moments.gather import Statistics
from discrim.core.ratio import Ratio, ratio_of
from discrim.core.ridge_rules import RidgeRules, log_priors, without_ridge
from discrim.tables.check_parameters import (
    checked_row_numbers,
    names_rows,
    require_folds,
    require_groups,
    require_splits,
    seed_number,
)
from discrim.tables.row_hash import HashKFold, hash_folds, row_hashes
from discrim.tables.rows import BLOCK_ROWS, LabelledRows, dense_block, projected
from discrim.tables.validation import require_finite
from discrim.threads import WORTH, computed_once, map_tasks

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
        """Return statistics of the rows held out in the coordinates (x − mean in training)ᵀ directions."""
        mean = self.training.mean
        if self.tested is not None:
            return self.tested.along(mean, directions)
        features = projected(self.test.X, mean, directions).astype(np.float64, copy=False)
        return ClassMoments.of_rows(replace(self.test, X=features))


def _of_the_others(parts: list[ClassMoments]) -> list[ClassMoments]:
    """Return the sum of all other parts for each part."""
    before = list(accumulate(parts[:-1], operator.add))  # of all folds up to one, and from one on
    after = list(accumulate(parts[:0:-1], operator.add))[::-1]
    return [after[0], *map(operator.add, before[:-1], after[1:]), before[-1]]


def gathered_folds(statistics: Statistics) -> list[TrainingSet]:
    """Return folds of a table whose rows are gone: their statistics are exact, of the test rows there is a sample."""
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
        """Return the same splits of some of the rows; those that leave no row on a side are none."""
        position = np.full(self.points.shape[0], -1)
        position[sample] = np.arange(len(sample))
        sides = [[position[side][position[side] >= 0] for side in pair] for pair in self.splits.pairs]
        pairs = [(training, test) for training, test in sides if len(training) and len(test)]
        return Folds(self.points.some(sample), Splits.of(pairs, len(sample)))

    @computed_once
    def _sets(self) -> list[TrainingSet]:
        """From one pass, where the test rows divide the table: training sets are sums of the other parts."""
        pairs, repeats = self.splits.pairs, self.splits.repeats
        if self.points.is_sparse:  # the rows of a fold are copied, so that a bad cell would be counted in one fold only
            require_finite(self.points.X, self.points.numbers)
        tests = [self.points.picked(test) for _, test in pairs]
        if not self.splits.divide:
            training = [ClassMoments.of_rows(self.points.picked(rows)) for rows, _ in pairs]
            return [TrainingSet(*fold, repeats=repeats) for fold in zip(training, tests, strict=True)]
        n, d = self.points.shape
        first, by = ClassMoments.of_rows(tests[0]), map_tasks if n * d * d >= WORTH else map
        parts = [first, *by(lambda test: ClassMoments.of_rows(test, near=first), tests[1:])]
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
    """Return a fold for each row, each class divided evenly; copies of a row stay together: weights are repetition."""
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
    """Compute StratifiedKFold's fold of each row, but where classes are too small to be in every fold.

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
    """Return folds by the rows' content; test rows in the order of their hashes, as a sample of them would come."""
    hashes = row_hashes(points.X)
    folds = hash_folds(hashes, cv.get_n_splits(), seed_number(cv.random_state))
    order = np.argsort(hashes, kind="stable")
    splits = [(np.flatnonzero(folds != fold), order[folds[order] == fold]) for fold in range(cv.n_splits)]
    require_splits([split for split in splits if len(split[1])] or splits)
    return [split for split in splits if len(split[1])]


def by_content(cv: Any) -> bool:
    """Return whether parts of a table can agree on the folds: a number, or folds that follow from the rows' content."""
    return cv is None or isinstance(cv, HashKFold) or (isinstance(cv, (int, np.integer)) and not isinstance(cv, bool))


def hash_splitter(cv: Any, random_state: Any) -> HashKFold | None:
    """Return the folds that parts of a table can agree on, None for other ones."""
    if not by_content(cv) or isinstance(cv, HashKFold):
        return cv if isinstance(cv, HashKFold) else None
    return HashKFold(5 if cv is None else int(cv), random_state=random_state)  # 5 as in scikit-learn


SCORES_AT_ONCE = 2**17  # what stays in the cache
JUDGED_ROWS = 1_000  # of a fold: more do not lead to better ridges (examples/judged_rows_study.py)
LARGE_RULE = 2**20  # numbers for a γ: beyond, the path is walked in parts
NO_RULE = np.array([[[-np.inf]], [[np.inf]]])  # nothing predicted rightly, at any cost
# none, then even steps of the odds γ/(1−γ), then all
PATH = np.concatenate([[0.0], 1 / (1 + 10.0 ** -np.linspace(-5, 2, 22)), [1.0]])


@dataclass(frozen=True, eq=False)
class PathScores:
    """Held-out accuracy and log loss for every shrinkage (rows), after every number of discriminants (columns).

    total_weight : of the held-out rows, each counted once
    """

    shrinkages: Array
    accuracies: Array
    losses: Array
    total_weight: float

    def best(self) -> tuple[float, int]:
        """Return a shrinkage and a number of discriminants.

        The number of highest accuracy, among ties the fewest. With so many, of all shrinkages within one standard error
        of that accuracy the one of least log loss: accuracy alone hardly tells them apart, and the classifiers behind
        the components want more than a centroid's.
        """
        if not np.isfinite(self.accuracies).any():  # no class varied in any training set: no ridge is a rule
            return float(self.shrinkages[0]), 1
        highest = float(self.accuracies.max())
        k = int((self.accuracies >= highest - 1e-12).any(axis=0).argmax())
        least = highest - standard_error(highest, self.total_weight) - 1e-12
        candidates = np.flatnonzero(self.accuracies[:, k] >= least)
        losses = self.losses[candidates, k]
        least_lossy = candidates[losses <= losses.min() * (1 + 1e-12)]  # alike but for rounding: the least ridge
        return float(self.shrinkages[least_lossy[0]]), k + 1


def score_path(folds: Iterable[TrainingSet], shrinkages: Array, priors: Any, *, every_count: bool) -> PathScores:
    """Return scores of the nearest-centroid rule; `every_count`: after 1, 2, … discriminants, else after all."""
    found, weight, distinct = [], 0.0, 0.0
    for fold in folds:
        if fold.test.shape[0] == 0:
            continue
        drawn, shape = _drawn(fold.test), fold.training.pilots.shape
        size = shape[0] * shape[1] * (min(shape) if every_count else 1)
        parts = np.array_split(shrinkages, min(len(shrinkages), size // LARGE_RULE + 1))
        kind: Any = _CentroidRules if every_count else RidgeRules
        rules = (kind.of(fold.training, some, priors, fold.ratio) for some in parts)
        judged = np.concatenate([_judged(some, drawn) for some in rules], axis=1)
        found.append(judged if fold.ratio.trace > 0 else np.broadcast_to(NO_RULE, judged.shape))
        weight += drawn.class_totals.sum()
        distinct += drawn.class_totals.sum() / fold.repeats
    accuracies, losses = np.sum(found, axis=0) / weight
    return PathScores(shrinkages, accuracies, losses, distinct)


def _drawn(test: LabelledRows) -> LabelledRows:
    """Return the rows, or some of many: at even steps of the weight, so that a weight is repetition here too."""
    ends = np.arange(1, test.shape[0] + 1) if test.weights is None else np.cumsum(test.weights)
    if not len(ends) or ends[-1] <= JUDGED_ROWS:
        return test
    steps = np.searchsorted(ends, (np.arange(JUDGED_ROWS) + 0.5) * (ends[-1] / JUDGED_ROWS))
    rows, times = np.unique(np.minimum(steps, len(ends) - 1), return_counts=True)
    return replace(test.picked(rows), weights=times.astype(np.float64))


def _judged(rules: RidgeRules | _CentroidRules, test: LabelledRows) -> Array:
    """Return weight of the rows predicted rightly, and their log loss, for every shrinkage and count (2×γ×counts)."""
    found: Any = 0.0
    step = min(BLOCK_ROWS, max(rules.least_rows, SCORES_AT_ONCE // rules.offsets.size))
    for first in range(0, test.shape[0], step):
        part = slice(first, first + step)
        scores, codes = rules.scores(dense_block(test.X, part)), test.codes[part]
        weights = np.ones(len(codes)) if test.weights is None else test.weights[part]
        largest = scores.max(axis=-2)
        own = scores.reshape(*largest.shape[:-1], -1).take(codes * len(codes) + np.arange(len(codes)), axis=-1)
        right = (own >= largest) @ weights
        if (unseen := np.isneginf(own)).any():  # a row of a class that was not in training costs as much as the worst
            own = np.where(unseen, np.where(np.isneginf(scores), np.inf, scores).min(axis=-2), own)
        scores -= largest[..., None, :]
        lost = (np.log(np.exp(scores, out=scores).sum(axis=-2)) + (largest - own)) @ weights
        found = found + np.stack([right, lost]).reshape(2, len(right), -1)
    is_none = np.isnan(rules.offsets).any(axis=-1).reshape(found.shape[1:])
    return np.where(is_none, NO_RULE, found)


@dataclass(frozen=True, eq=False)
class _CentroidRules:
    """The same rules after 1, 2, … discriminants; a γ that has fewer than others adds nothing after its last."""

    moments: ClassMoments
    axes: Array  # γ×q×d
    centres: Array  # γ×q×C
    offsets: Array  # γ×q×C; NaN where there is no rule
    least_rows: ClassVar[int] = 1

    @classmethod
    def of(cls, moments: ClassMoments, shrinkages: Array, priors: Any, ridged: Ratio) -> _CentroidRules:
        found = []
        for gamma in shrinkages:
            directions = np.empty((0, moments.n_features))
            if (ratio := ridged if gamma else without_ridge(ridged)) is not None:
                directions = ratio.embedded(discriminants(ratio.means, ratio.covariance(gamma)).directions)
            found.append(directions)
        # as many for every fold and part of the path, whatever they found
        most = max(1, min(len(moments.weights) - 1, moments.n_features))
        axes = np.zeros((len(found), most, moments.n_features))
        for place, directions in zip(axes, found, strict=True):
            place[: len(directions)] = directions
        centres = axes @ moments.centred_means().T
        offsets = log_priors(moments, priors) - 0.5 * np.cumsum(centres**2, axis=1)
        offsets[[len(directions) == 0 for directions in found]] = np.nan
        return cls(moments, axes, centres, offsets)

    def scores(self, X: Any) -> Array:
        """Return scores of classes and rows, γ×q×C×n."""
        along = self.axes @ self.moments.centred(np.asarray(X, dtype=np.float64)).T
        return np.cumsum(self.centres[..., None] * along[:, :, None], axis=1) + self.offsets[..., None]
