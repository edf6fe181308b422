"""Cross-validation: folds with the statistics of each part, scores along a path of shrinkages, and calibration.

Fold statistics are additive: if the test rows partition the table, the statistics of each training set are the sum of
those of the other folds (added, never subtracted), at the cost of one pass. The rules of a training set are computed
for all γ at once and applied to its held-out rows.
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
from scipy.special import softmax
from sklearn.model_selection import PredefinedSplit, StratifiedGroupKFold, StratifiedKFold, check_cv
from sklearn.utils import check_random_state

from discrim.core.discriminants import discriminants
from discrim.core.moments.accumulate import first_rows
from discrim.core.moments.class_moments import ClassMoments
from discrim.core.moments.gather import Statistics
from discrim.core.ratio import Ratio, ratio_of
from discrim.core.ridge_rules import RidgeRules, log_priors, rows_in_reach, without_ridge
from discrim.core.row_hash import HashKFold, hash_folds, row_hashes, seed_number
from discrim.tables.check_parameters import is_number
from discrim.tables.rows import BLOCK_ROWS, LabelledRows, dense_block, projected
from discrim.tables.validation import require_finite
from discrim.threads import WORTH, computed_once, map_tasks

Array = NDArray[np.float64]
Indices = NDArray[np.intp]
SPLITS_BY_ROW = PredefinedSplit, type(check_cv([]))  # splitters that hold the numbers of rows, or one fold for each


@dataclass(eq=False)
class TrainingSet:
    """Statistics of training rows, and the rows held out."""

    training: ClassMoments
    test: LabelledRows  # or a sample of the held-out rows, if `tested` has the statistics of all
    tested: ClassMoments | None = None
    repeats: float = 1.0  # number of splits in which each row is held out
    ridged: Ratio | None = None  # the ratio, if it is known

    @computed_once
    def ratio(self) -> Ratio:
        """Return the ratio that the discriminants of the training rows maximise, for a cost with a ridge."""
        return self.ridged or ratio_of(self.training, has_ridge=True)

    def project(self, directions: Array) -> ClassMoments:
        """Return statistics of the held-out rows in the coordinates (x − training mean)ᵀ directions."""
        mean = self.training.mean
        if self.tested is not None:
            return self.tested.project(mean, directions)
        features = projected(self.test.X, mean, directions).astype(np.float64, copy=False)
        return ClassMoments.from_rows(replace(self.test, X=features))


def _sums_of_others(parts: list[ClassMoments]) -> list[ClassMoments]:
    """Return the sum of all other parts for each part."""
    before = list(accumulate(parts[:-1], operator.add))  # sums of all folds up to each one, and from each one on
    after = list(accumulate(parts[:0:-1], operator.add))[::-1]
    return [after[0], *map(operator.add, before[:-1], after[1:]), before[-1]]


def gathered_folds(statistics: Statistics) -> list[TrainingSet]:
    """Return folds of a table whose rows are not kept: statistics are exact, and test rows are a sample."""
    sample, asked = statistics.sample, statistics.gathering
    parts = [part.with_classes(statistics.moments.classes) for part in statistics.fold_moments]
    tests = [LabelledRows(np.empty((0, part.n_features)), np.empty(0, np.intp), part.classes) for part in parts]
    if sample is not None:
        rows, drawn = sample.with_classes(parts[0].classes), hash_folds(sample.hashes, asked.n_folds, asked.seed)
        tests = [rows.select(np.flatnonzero(drawn == fold)) for fold in range(asked.n_folds)]
    return [TrainingSet(*fold) for fold in zip(_sums_of_others(parts), tests, parts, strict=True)]


@dataclass(eq=False)
class Folds:
    """Labelled rows with splits; iteration yields a `TrainingSet` for each."""

    points: LabelledRows
    splits: Splits

    def __iter__(self) -> Iterator[TrainingSet]:
        return iter(self.training_sets)

    def sample(self, rows: Indices) -> Folds:
        """Return the same splits restricted to some rows, without splits that have no training or no test rows."""
        position = np.full(self.points.shape[0], -1)
        position[rows] = np.arange(len(rows))
        sides = [[position[side][position[side] >= 0] for side in pair] for pair in self.splits.pairs]
        pairs = [(training, test) for training, test in sides if len(training) and len(test)]
        return Folds(self.points.select(rows), Splits.of(pairs, len(rows)))

    @computed_once
    def training_sets(self) -> list[TrainingSet]:
        """Return the training sets, from one pass if the test rows partition the table: sums of the other parts."""
        pairs, repeats = self.splits.pairs, self.splits.repeats
        # rows of a fold are copied, so a bad cell would be reported relative to one fold only
        if self.points.is_sparse:
            require_finite(self.points.X, self.points.numbers)
        tests = [self.points.take(test) for _, test in pairs]
        if not self.splits.divide:
            training = [ClassMoments.from_rows(self.points.take(rows)) for rows, _ in pairs]
            return [TrainingSet(*fold, repeats=repeats) for fold in zip(training, tests, strict=True)]
        n, d = self.points.shape
        first, by = ClassMoments.from_rows(tests[0]), map_tasks if n * d * d >= WORTH else map
        parts = [first, *by(lambda test: ClassMoments.from_rows(test, near=first), tests[1:])]
        return [TrainingSet(*fold) for fold in zip(_sums_of_others(parts), tests, parts, strict=True)]


@dataclass(frozen=True, eq=False)
class Splits:
    """Pairs of training and test row numbers."""

    pairs: list[tuple[Indices, Indices]]
    divide: bool  # True if each row is tested once and is a training row in all other splits
    repeats: float = 1.0  # number of times that a tested row is tested

    @classmethod
    def of(cls, pairs: list[tuple[Indices, Indices]], n: int) -> Splits:
        """Build from given pairs for n rows."""
        tested = np.concatenate([test for _, test in pairs])
        is_all = lambda rows: np.array_equal(np.sort(rows), np.arange(n))  # noqa: E731
        divide = len(pairs) > 1 and is_all(tested) and all(is_all(np.concatenate(pair)) for pair in pairs)
        return cls(pairs, divide, len(tested) / len(np.unique(tested)))


def splits_of(points: LabelledRows, cv: Any, random_state: Any, groups: NDArray[Any] | None = None) -> Splits:
    """Return training and test rows for `cv`: folds are shuffled if there is a seed, and groups are not divided."""
    n = points.shape[0]
    if groups is not None:
        groups = _checked_groups(groups, points, cv)
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
    if names_rows(cv) and points.numbers is not None:  # some rows of the original table were left out
        assert points.n_given is not None
        position = np.full(points.n_given, -1)
        position[points.numbers] = np.arange(n)
    sides = [tuple(position[_row_numbers(part, len(position))] for part in split) for split in given]
    pairs = [(training[training >= 0], test[test >= 0]) for training, test in sides]
    _require_rows_on_both_sides(pairs)
    return Splits.of(pairs, n)


def _checked_groups(groups: Any, points: LabelledRows, cv: Any) -> NDArray[Any]:
    """Return the group of each row; raise if the folds cannot keep groups together."""
    given, n_rows = np.asarray(groups), points.shape[0] if points.n_given is None else points.n_given
    if given.shape != (n_rows,):
        raise ValueError(f"groups must be one group for each of {n_rows} rows; got shape {given.shape}.")
    if isinstance(cv, HashKFold):
        raise ValueError(
            "groups cannot be used with cv=HashKFold, whose folds follow from the content of rows. Pass a number of "
            "folds, or a splitter that takes groups such as sklearn.model_selection.GroupKFold."
        )
    return given if points.numbers is None else given[points.numbers]


def _row_numbers(numbers: Any, n_rows: int) -> NDArray[np.intp]:
    """Return the row numbers of one side of a split, from numbers or from a mask."""
    array = np.asarray(numbers)
    if array.dtype == bool:
        if len(array) != n_rows:
            raise ValueError(f"A mask of cv must have one bool for each of {n_rows} rows; got {len(array)}.")
        return np.flatnonzero(array)
    array = array.astype(np.intp)
    wrong = array[(array < -n_rows) | (array >= n_rows)]
    if len(wrong):
        raise ValueError(f"Rows of cv must be numbers from 0 to {n_rows - 1}; got {int(wrong[0])}.")
    return np.where(array < 0, array + n_rows, array)


def _require_rows_on_both_sides(splits: list[tuple[NDArray[np.intp], NDArray[np.intp]]]) -> None:
    if not splits:
        raise ValueError(
            "cv gives no split at all. Pass an int ≥ 2, a splitter, or a list of (train, test) row numbers."
        )
    for number, sides in enumerate(splits):
        for side, name in zip(sides, ("train", "test"), strict=True):
            if len(side) == 0:
                raise ValueError(
                    f"Split {number} of cv has no row of positive weight to {name} on. Give both sides of every split "
                    "at least one."
                )


def _fold_numbers(points: LabelledRows, n_folds: int, random_state: Any) -> Indices:
    """Return StratifiedKFold's fold of each row; copies of a row stay together, as weights mean repetition.

    If no class has as many rows as there are folds, rows are assigned to the folds in turn, class by class.
    """
    codes, group, prints = points.codes, np.arange(points.shape[0]), points.fingerprints()
    if not (np.diff(np.sort(prints)) > 0).all():
        _, first, number = np.unique(prints + 1j * codes, return_index=True, return_inverse=True)
        if np.bincount(codes[first]).max() > 1:  # otherwise no class has distinct rows: divide the copies
            order = np.argsort(first)  # distinct rows in their original order
            codes, group = codes[first[order]], np.argsort(order)[number]
    n, counts = len(codes), np.bincount(codes)
    if n_folds < 2:
        raise ValueError(f"cv must be an int ≥ 2, a splitter or a list of splits; got {n_folds}.")
    if counts.max() < 2:
        raise ValueError(
            "Some class must have at least two rows, so that one can be held out; got one row in every class. Pass a "
            "number for each parameter that is cross-validated (such as shrinkage, keep or n_components)."
        )
    fold = np.empty(n, dtype=np.intp)
    if counts.max() < n_folds:
        order = np.arange(n) if random_state is None else check_random_state(random_state).permutation(n)
        fold[order[np.argsort(codes[order], kind="stable")]] = np.arange(n) % min(n_folds, n)
    elif random_state is None:
        # the rows of one class after another, in order of appearance, are assigned to the folds in turn; this
        # determines how many rows of a class a fold gets, which it takes in order (scikit-learn's code takes longer
        # than the statistics)
        turns = np.argsort(np.argsort(first_rows(codes, len(counts))))
        turns = turns.astype(np.min_scalar_type(len(counts)))[codes]  # short integers sort faster
        by_class = np.argsort(turns, kind="stable")
        fold[by_class] = np.sort(turns[by_class].astype(np.intp) * n_folds + np.arange(n) % n_folds) % n_folds
    else:
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", message="The least populated class")
            splitter = StratifiedKFold(n_folds, shuffle=True, random_state=random_state)
            for at, (_, test) in enumerate(splitter.split(codes, codes)):
                fold[test] = at
    return fold[group]


def _by_hash(points: LabelledRows, cv: HashKFold) -> list[tuple[Indices, Indices]]:
    """Return folds by the contents of the rows; test rows are sorted by hash, like a sample of them."""
    hashes = row_hashes(points.X)
    folds = hash_folds(hashes, cv.get_n_splits(), seed_number(cv.random_state))
    order = np.argsort(hashes, kind="stable")
    splits = [(np.flatnonzero(folds != fold), order[folds[order] == fold]) for fold in range(cv.n_splits)]
    _require_rows_on_both_sides([split for split in splits if len(split[1])] or splits)
    return [split for split in splits if len(split[1])]


def names_rows(cv: Any) -> bool:
    """Return whether the splits name rows of one table by their numbers."""
    return isinstance(cv, SPLITS_BY_ROW) or not (cv is None or is_number(cv) or hasattr(cv, "split"))


def require_unnumbered(cv: Any) -> None:
    """Raise where splits name rows by numbers, of a table in parts: those of a sample of its rows are other rows."""
    if names_rows(cv):
        raise ValueError(
            "cv names rows by their numbers, which rows of a table in parts do not have. Pass a number of folds, a "
            "HashKFold or a splitter."
        )


def by_content(cv: Any) -> bool:
    """Return True if the folds can be computed in parts: an int, or folds derived from the contents of the rows."""
    return cv is None or isinstance(cv, HashKFold) or (isinstance(cv, (int, np.integer)) and not isinstance(cv, bool))


def hash_splitter(cv: Any, random_state: Any) -> HashKFold | None:
    """Return folds that can be computed in parts, or None for other kinds of cv."""
    if not by_content(cv) or isinstance(cv, HashKFold):
        return cv if isinstance(cv, HashKFold) else None
    return HashKFold(5 if cv is None else int(cv), random_state=random_state)  # 5 as in scikit-learn


SCORES_AT_ONCE = 2**17  # scores that fit into the cache
JUDGED_ROWS = 1_000  # per fold: more do not lead to better ridges (examples/judged_rows_study.py)
LARGE_RULE = 2**20  # numbers per γ above which the path is evaluated in parts
NO_RULE = np.array([[[-np.inf]], [[np.inf]]])  # accuracy −∞ and log loss ∞
# no ridge, even steps of the odds γ/(1−γ), and γ = 1
PATH = np.concatenate([[0.0], 1 / (1 + 10.0 ** -np.linspace(-5, 2, 22)), [1.0]])


@dataclass(frozen=True, eq=False)
class PathScores:
    """Held-out accuracy and log loss for every shrinkage (rows), after every number of discriminants (columns).

    total_weight : total weight of the held-out rows, each counted once
    """

    shrinkages: Array
    accuracies: Array
    losses: Array
    total_weight: float

    def best(self) -> tuple[float, int]:
        """Return the best shrinkage and number of discriminants.

        The number is the smallest with the highest accuracy. With this number, the shrinkage has the smallest log loss
        of all within one standard error of that accuracy, because accuracy alone hardly distinguishes them, and
        classifiers on the components need more than centroids.
        """
        # no class varied in any training set, so there is no rule for any ridge
        if not np.isfinite(self.accuracies).any():
            return float(self.shrinkages[0]), 1
        highest = float(self.accuracies.max())
        k = int((self.accuracies >= highest - 1e-12).any(axis=0).argmax())
        lowest = highest - standard_error(highest, self.total_weight) - 1e-12
        candidates = np.flatnonzero(self.accuracies[:, k] >= lowest)
        losses = self.losses[candidates, k]
        ties = candidates[losses <= losses.min() * (1 + 1e-12)]  # equal up to rounding: take the smallest ridge
        return float(self.shrinkages[ties[0]]), k + 1


def score_path(folds: Iterable[TrainingSet], shrinkages: Array, priors: Any, *, every_count: bool) -> PathScores:
    """Return scores of the nearest-centroid rule after all discriminants; `every_count`: after 1, 2, … of them."""
    found, weight, distinct = [], 0.0, 0.0
    for fold in folds:
        if fold.test.shape[0] == 0:
            continue
        drawn, shape = _drawn(fold.test), fold.training.pilots.shape
        size = shape[0] * shape[1] * (min(shape) if every_count else 1)
        parts = np.array_split(shrinkages, min(len(shrinkages), size // LARGE_RULE + 1))
        kind: Any = _CentroidRules if every_count else RidgeRules
        rules = (kind.of(fold.training, gammas, priors, fold.ratio) for gammas in parts)
        judged = np.concatenate([_evaluate(rule, drawn) for rule in rules], axis=1)
        found.append(judged if fold.ratio.trace > 0 else np.broadcast_to(NO_RULE, judged.shape))
        weight += drawn.class_totals.sum()
        distinct += drawn.class_totals.sum() / fold.repeats
    accuracies, losses = np.sum(found, axis=0) / weight
    return PathScores(shrinkages, accuracies, losses, distinct)


def _drawn(test: LabelledRows) -> LabelledRows:
    """Return the rows, or a sample at even steps of the weight, so weights remain equivalent to repetition."""
    ends = np.arange(1, test.shape[0] + 1) if test.weights is None else np.cumsum(test.weights)
    if not len(ends) or ends[-1] <= JUDGED_ROWS:
        return test
    steps = np.searchsorted(ends, (np.arange(JUDGED_ROWS) + 0.5) * (ends[-1] / JUDGED_ROWS))
    rows, times = np.unique(np.minimum(steps, len(ends) - 1), return_counts=True)
    return replace(test.take(rows), weights=times.astype(np.float64))


def _evaluate(rules: RidgeRules | _CentroidRules, test: LabelledRows) -> Array:
    """Return the weight of correctly predicted rows and the log loss for every shrinkage and count (2×γ×counts)."""
    found: Any = 0.0
    step = min(BLOCK_ROWS, max(rules.min_rows, SCORES_AT_ONCE // rules.offsets.size))
    for first in range(0, test.shape[0], step):
        part = slice(first, first + step)
        scores, codes = rules.scores(dense_block(test.X, part)), test.codes[part]
        weights = np.ones(len(codes)) if test.weights is None else test.weights[part]
        largest = scores.max(axis=-2)
        own = scores.reshape(*largest.shape[:-1], -1).take(codes * len(codes) + np.arange(len(codes)), axis=-1)
        right = (own >= largest) @ weights
        if (unseen := np.isneginf(own)).any():  # a row of a class without training rows has the loss of the worst class
            own = np.where(unseen, np.where(np.isneginf(scores), np.inf, scores).min(axis=-2), own)
        scores -= largest[..., None, :]
        lost = (np.log(np.exp(scores, out=scores).sum(axis=-2)) + (largest - own)) @ weights
        found = found + np.stack([right, lost]).reshape(2, len(right), -1)
    is_none = np.isnan(rules.offsets).any(axis=-1).reshape(found.shape[1:])
    return np.where(is_none, NO_RULE, found)


@dataclass(frozen=True, eq=False)
class _CentroidRules:
    """The same rules after 1, 2, … discriminants; a γ with fewer discriminants than others repeats its last score."""

    moments: ClassMoments
    axes: Array  # γ×q×d
    centres: Array  # γ×q×C
    offsets: Array  # γ×q×C; NaN if there is no rule
    min_rows: ClassVar[int] = 1

    @classmethod
    def of(cls, moments: ClassMoments, shrinkages: Array, priors: Any, ridged: Ratio) -> _CentroidRules:
        found = []
        for gamma in shrinkages:
            directions = np.empty((0, moments.n_features))
            if (ratio := ridged if gamma else without_ridge(ridged, moments.freedom)) is not None:
                directions = ratio.embedded(discriminants(ratio.means, ratio.covariance(gamma)).directions)
            found.append(directions)
        # the same number for every fold and part of the path
        most = max(1, min(len(moments.weights) - 1, moments.n_features))
        axes = np.zeros((len(found), most, moments.n_features))
        for place, directions in zip(axes, found, strict=True):
            place[: len(directions)] = directions
        centres = axes @ moments.centred_means().T
        offsets = log_priors(moments, priors) - 0.5 * np.cumsum(centres**2, axis=1)
        offsets[[len(directions) == 0 for directions in found]] = np.nan
        return cls(moments, axes, centres, offsets)

    def scores(self, X: Any) -> Array:
        """Return the scores, γ×q×C×n."""
        projections = self.axes @ rows_in_reach(X, self.moments).T
        return np.cumsum(self.centres[..., None] * projections[:, :, None], axis=1) + self.offsets[..., None]


# ---------------------------------------------------------------------- scores as probabilities
#
# p(x) = (1 − 1/n) softmax(a(x)/T) + 1/(nC) , with one temperature T, chosen by the log loss of held-out rows. The small
# share 1/n for "any class" bounds the loss of a single row; without it, one outlier would determine T.

TEMPERATURES = 2.0 ** np.arange(-1, 8.25, 0.5)
ANY_TEMPERATURES = 2.0 ** np.arange(-12, 8.25, 0.5)  # for scores in any unit


def calibrated(scores: Array, temperature: float, total_weight: float) -> Array:
    """Compute p for every row and class; n is the total weight of the rows on which the temperature was chosen."""
    share = any_class(total_weight)
    return (1 - share) * softmax(scores / temperature, axis=1) + share / scores.shape[1]


def best_temperature(
    scores: Array, codes: NDArray[np.intp], weights: Array, temperatures: Array = TEMPERATURES
) -> tuple[float, float]:
    """Return the temperature with the smallest log loss, and that loss, for n×C scores, class numbers and weights."""
    below = scores - scores.max(axis=1, keepdims=True)
    own_below = below[np.arange(len(codes)), codes]
    total = float(weights.sum())
    share = any_class(total)
    losses = []
    for temperature in temperatures:
        own = np.exp(own_below / temperature) / np.exp(below / temperature).sum(axis=1)
        losses.append(-(weights @ np.log((1 - share) * own + share / scores.shape[1])) / total)
    best = int(np.argmin(losses))
    return float(temperatures[best]), float(losses[best])


def standard_error(share: float, weight: float) -> float:
    """Return the standard error of a share observed on rows of this total weight."""
    return float(np.sqrt(share * max(1 - share, 0.0) / weight))  # rounding may put the share above 1


def any_class(total_weight: float) -> float:
    """Return the probability 1/n that is shared evenly by all classes."""
    return 1 / max(total_weight, 2.0)
