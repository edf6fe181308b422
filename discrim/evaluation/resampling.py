"""Scores of resampled rows and labels, from the table of results: the corrected score and the permutation test.

The score of a pipeline that was chosen for its score is optimistic, because the same rows were used for the choice.
`Bootstrap` repeats the choice on bootstrap samples of the rows and scores the chosen pipeline on the rows left out
(bootstrap bias-corrected cross-validation, Tsamardinos, Greasidou and Borboudakis 2018). Groups are drawn as a whole.

The permutation test fits the same pipeline to the same rows with permuted labels:

    p = (1 + number of permuted scores that are as high) / (1 + number of permutations)

With groups, labels are permuted inside groups. If every group has one label (a patient's diagnosis), the groups
exchange their labels instead. The choice of the pipeline is not repeated: the test is exact for a pipeline that was
fixed beforehand, and slightly optimistic for the best of many.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from discrim.evaluation.plan import Grid
from discrim.evaluation.protocol import LEAVE_ONE_OUT, PROTOCOLS, Grouped, Protocol, protocol_of
from discrim.evaluation.results import Cell, Results, unpacked
from discrim.evaluation.run import WorkerLostError, in_parallel
from discrim.evaluation.summary import LEVEL
from discrim.evaluation.trial import TrialRows, Work, evaluate
from discrim.evaluation.wording import in_p, percent, pipeline_name
from discrim.tables.table_error import plural

BOOTSTRAPS = 200
OF_CALLED = ("f1", "mcc")  # scores that also depend on how many rows are predicted to be of a class
NOT_OF_LABELS = ("auc",)  # scores that cannot be computed from the predicted labels
Array = NDArray[np.float64]
Chosen = TypeVar("Chosen")


@dataclass(frozen=True)
class BiasCorrectedScore:
    """Score of the chosen pipeline on rows that were not used for the choice; the interval has 95 % of the bootstraps.

    Attributes
    ----------
    mean : float
        The score.
    low : float
        Lower end of the interval.
    high : float
        Upper end of the interval.
    method : str
        Name of the procedure.
    """

    mean: float
    low: float
    high: float
    method: str = "bootstrap bias-corrected cross-validation"


@dataclass(frozen=True, eq=False)
class Bootstrap:
    """Scores of every cell in every bootstrap sample.

    inside : scores on the drawn rows (draws × splits × cells)
    outside : parts of the scores on the rows left out; a score is the mean of its parts (draws × parts × cells)
    """

    inside: Array
    outside: Array

    def choose(self, choice: Callable[[Array], Chosen]) -> list[Chosen]:
        """Return the choice for the scores (cells × splits) of every sample."""
        # a split without a drawn test row (a group left out) has no scores
        return [choice(scores[np.isfinite(scores).all(axis=1)].T) for scores in self.inside]

    def score(self, chosen: Sequence[int]) -> BiasCorrectedScore:
        """Score the cell that was chosen in every sample on the rows left out."""
        found = _mean_over_parts(self.outside[np.arange(len(self.outside)), :, list(chosen)])
        low, high = np.quantile(found, [0.025, 0.975])
        return BiasCorrectedScore(float(found.mean()), float(low), float(high))


@dataclass(frozen=True, eq=False)
class HeldOutLabels:
    """Predicted class of every test row by every cell, split by split.

    cells : cells with results on every split
    codes : class number of each row
    tests, trains : row numbers of each split
    labels : for each split, predicted class numbers (test rows × cells)
    groups : rows of one group are drawn together
    """

    cells: tuple[Cell, ...]
    classes: tuple[str, ...]
    codes: NDArray[np.intp]
    tests: list[NDArray[np.intp]]
    trains: list[NDArray[np.intp]]
    labels: list[NDArray[np.intp]]
    groups: NDArray[np.intp]
    weights: Array

    @classmethod
    def from_results(cls, results: Results) -> HeldOutLabels | None:
        """Collect the predictions of one run; return None if its results do not have them."""
        scored, facts = [row for row in results.rows if row.ok and "labels" in row.scores], results.facts
        trial = scored[-1].trial if scored else {}
        if facts is None or trial.get("protocol") not in (*PROTOCOLS, LEAVE_ONE_OUT):
            return None
        found: dict[Cell, dict[int, str]] = defaultdict(dict)
        for row in scored:
            found[row.cell][row.split] = row.scores["labels"]
        most = max(map(len, found.values()))
        whole = {cell: by_split for cell, by_split in found.items() if len(by_split) == most}
        numbers = sorted(set.intersection(*map(set, whole.values())))
        n_splits, n_rows = max(numbers, default=0) + 1, len(facts.codes)
        protocol = protocol_of(trial["protocol"], trial["protocol_size"], n_splits, facts.groups, facts.equal)
        if isinstance(protocol, Grouped) and trial.get("groups", protocol.digest) != protocol.digest:
            return None  # an earlier version drew these groups differently
        splits = list(islice(protocol.splits(facts.codes, trial["seed"]), n_splits))
        labels = {number: [unpacked(by_split[number]) for by_split in whole.values()] for number in numbers}
        if any(len(one) != len(splits[number][1]) for number in numbers for one in labels[number]):
            return None  # an earlier version drew these splits differently
        units = facts.groups if facts.groups is not None else facts.equal
        return cls(
            tuple(whole),
            facts.classes,
            facts.codes,
            [splits[number][1] for number in numbers],
            [splits[number][0] for number in numbers],
            [np.column_stack(labels[number]) for number in numbers],
            np.arange(n_rows) if units is None else units,
            np.ones(n_rows) if facts.weights is None else facts.weights,
        )

    def confusion(self, cell: Cell) -> NDArray[np.intp]:
        """Return the number of held-out rows by class (rows) and predicted class (columns), over all splits."""
        n_classes, at = len(self.classes), self.cells.index(cell)
        counts = np.zeros((n_classes, n_classes), dtype=np.intp)
        for test, labels in zip(self.tests, self.labels, strict=True):
            np.add.at(counts, (self.codes[test], labels[:, at]), 1)
        return counts

    def majority_scores(self, metric: str) -> Array:
        """Return the score of predicting the class with most training rows, for every split."""
        if metric == "auc":
            return np.full(len(self.tests), 0.5)
        found = []
        for train, test in zip(self.trains, self.tests, strict=True):
            largest = np.bincount(self.codes[train], self.weights[train]).argmax()
            named = np.full((len(test), 1), largest)
            found.append(_scores(metric, *self._counts(self.weights[None, test], test, named, metric))[0, 0])
        return np.array(found)

    def bootstrap(self, metric: str) -> Bootstrap:
        """Score every cell on the rows of each bootstrap sample and on the rows left out."""
        draws, weights = self._draws(np.random.default_rng(0)), self.weights / self._chance_left_out()
        inside: list[Array] = []
        pooled: tuple[Array, ...] | None = None
        for test, labels in zip(self.tests, self.labels, strict=True):
            inside.append(_scores(metric, *self._counts(draws[:, test] * self.weights[test], test, labels, metric)))
            left_out = np.where(draws[:, test] == 0, weights[test], 0.0)
            outside = self._counts(left_out, test, labels, metric)
            pooled = outside if pooled is None else tuple(a + b for a, b in zip(pooled, outside, strict=True))
        assert pooled is not None
        scores: Array = np.stack(inside, axis=1)
        # a sample without a test row of any split (few groups, few splits) cannot choose
        usable = np.any(np.isfinite(scores).all(axis=2), axis=1)
        return Bootstrap(scores[usable], _parts(metric, *pooled)[usable])

    @property
    def _alone(self) -> bool:
        """Return True if every row is its own group."""
        return len(np.unique(self.groups)) == len(self.groups)

    def _chance_left_out(self) -> Array:
        """Return the probability that a row is not drawn: 1/4 for 2 rows of a class, 1/e for many.

        Left-out rows are weighted by its inverse; otherwise small classes would count less than in all rows.
        """
        if not self._alone:
            return np.ones(len(self.codes))  # whole groups are drawn, each as likely as the others
        sizes = np.bincount(self.codes, minlength=len(self.classes))[self.codes]
        return np.maximum((1 - 1 / sizes) ** sizes, np.finfo(float).tiny)

    def _draws(self, random: np.random.Generator) -> Array:
        """Return how often each row is drawn in each sample: whole groups, or rows class by class."""
        drawn = np.zeros((BOOTSTRAPS, len(self.codes)))
        by_class = [np.flatnonzero(self.codes == code) for code in range(len(self.classes))]
        for members in by_class if self._alone else [None]:
            units = np.unique(self.groups) if members is None else members
            counts = random.multinomial(len(units), np.full(len(units), 1 / len(units)), size=BOOTSTRAPS)
            if members is None:
                drawn = counts[:, np.searchsorted(units, self.groups)].astype(np.float64)
            else:
                drawn[:, members] = counts
        return drawn

    def _counts(
        self, weights: Array, test: NDArray[np.intp], labels: NDArray[np.intp], metric: str
    ) -> tuple[Array, ...]:
        """Return hits (draws × classes × cells), rows of each class (draws × classes), and rows predicted as it."""
        n_classes, actual = len(self.classes), self.codes[test]
        hits = np.zeros((len(weights), n_classes, labels.shape[1]))
        rows = np.zeros((len(weights), n_classes))
        called = np.zeros_like(hits) if metric in OF_CALLED else np.zeros((1, 1, 1))
        for code in np.unique(actual):
            of_class = actual == code
            hits[:, code] = weights[:, of_class] @ (labels[of_class] == code)
            rows[:, code] = weights[:, of_class].sum(axis=1)
        if metric in OF_CALLED:
            for code in range(n_classes):
                called[:, code] = weights @ (labels == code)
        return hits, rows, called


def _scores(metric: str, hits: Array, rows: Array, called: Array) -> Array:
    """Return scores (draws × cells) from counts by class; classes without rows are left out; NaN without rows."""
    parts = _parts(metric, hits, rows, called)
    counted = np.isfinite(parts).sum(axis=1)
    return np.where(np.isfinite(parts), parts, 0.0).sum(axis=1) / np.where(counted > 0, counted, np.nan)


def _parts(metric: str, hits: Array, rows: Array, called: Array) -> Array:
    """Return the parts of a score (draws × parts × cells): one for accuracy and Matthews, else one for each class.

    A part without rows is NaN. A Matthews correlation is 0 if one class only is predicted.
    """
    if metric == "mcc":
        total = rows.sum(axis=1, keepdims=True)
        covariance = hits.sum(axis=1) * total - np.einsum("dc,dck->dk", rows, called)
        spread = (total**2 - (called**2).sum(axis=1)) * (total**2 - (rows**2).sum(axis=1, keepdims=True))
        found = np.where(spread > 0, covariance / np.sqrt(np.where(spread > 0, spread, 1.0)), 0.0)
        return np.where(total > 0, found, np.nan)[:, None, :]
    if metric == "accuracy":
        hits, rows = hits.sum(axis=1, keepdims=True), rows.sum(axis=1, keepdims=True)
    of_class = np.where(rows > 0, rows, np.nan)[:, :, None]
    return 2 * hits / (of_class + called) if metric == "f1" else hits / of_class


def _mean_over_parts(parts: Array) -> Array:
    """Return the score of every draw (draws × parts → draws).

    A class without left-out rows in a draw gets its mean over the other draws. A mean over the remaining classes would
    be too high if the small classes, which are missing most often, are difficult.
    """
    drawn = np.isfinite(parts).sum(axis=0)
    usual = np.where(np.isfinite(parts), parts, 0.0).sum(axis=0) / np.where(drawn > 0, drawn, np.nan)
    filled = np.where(np.isfinite(parts), parts, usual)[:, drawn > 0]
    return np.minimum(filled.mean(axis=1), 1.0)  # rounding can exceed 1


MOST_SPLITS = 5  # each permutation costs as many fits
LEAST = math.ceil(1 / LEVEL) - 1  # fewer permutations cannot reach the level
LEAST_CHANGED = 0.1  # share of labels; with fewer, permuted labels score like the original ones


@dataclass(frozen=True, eq=False)
class PermutationTest:
    """Score of a pipeline and its scores with permuted labels.

    permuted : NaN if the pipeline failed with permuted labels; counts as a score as high
    exchanged : "labels", "labels inside groups" or "labels of whole groups"
    """

    cell: Cell
    metric: str
    score: float
    permuted: Array
    n_splits: int
    exchanged: str = "labels"

    @property
    def as_high(self) -> int:
        """Return the number of permuted scores that are as high as the score."""
        return int((~(self.permuted < self.score - 1e-12)).sum())

    @property
    def p_value(self) -> float:
        """Return (1 + as_high) / (1 + number of permutations)."""
        return (1 + self.as_high) / (1 + len(self.permuted))

    def __str__(self) -> str:
        tested = pipeline_name(self.cell)
        if not np.isfinite(self.score):
            return f"Permutation test: not possible, because {tested} has no score on some splits."
        scores = self.permuted[np.isfinite(self.permuted)]
        mean = f" (mean {percent(float(scores.mean()))})" if len(scores) else ""
        count = f"{self.as_high or 'None'} of {len(self.permuted)} permutations of the {self.exchanged}{mean}"
        few = f"; at least {LEAST} permutations are needed" if len(self.permuted) < LEAST else ""
        shown = "better than chance" if self.p_value <= LEVEL else "not significantly better than chance"
        return (
            f"Permutation test: {tested} is {shown} ({in_p(self.p_value)}{few}). {count} scored as high as "
            f"{percent(self.score)} on {plural(self.n_splits, 'split')}."
        )


def permutation_test(
    grid: Grid, cell: Cell, metric: str, permutations: int, *, jobs: int | None = 1, progress: Any = None
) -> PermutationTest:
    """Return the score of the cell on the first splits, and its scores with permuted labels."""
    codes, groups = grid.facts.codes, grid.facts.groups
    n_splits = min(MOST_SPLITS, len(grid.splits))
    work = next(grid.work([{**cell._asdict(), "split": 0}]))._replace(cells=(cell,))
    score = PermutedScore(grid.protocol, grid.trial_rows, groups, work, metric, n_splits)
    found = np.full(permutations + 1, np.nan)  # the first with the labels as they are
    for done, (number, answer) in enumerate(in_parallel(score, range(permutations + 1), jobs)):
        found[number] = np.nan if isinstance(answer, WorkerLostError) else answer
        if progress is not None:
            progress(done, permutations)
    exchanged = "labels" if groups is None else "labels inside groups"
    if groups is not None and _one_label_each(codes, groups):
        exchanged = "labels of whole groups"
    return PermutationTest(cell, metric, float(found[0]), found[1:], n_splits, exchanged)


@dataclass(frozen=True, eq=False)
class PermutedScore:
    """Function of the number of a permutation: the mean score of the pipeline; 0 means the original labels."""

    protocol: Protocol
    rows: TrialRows
    groups: NDArray[np.intp] | None
    work: Work
    metric: str
    n_splits: int

    def __call__(self, number: int) -> float:
        y, seed = self.rows.y, self.rows.seed
        if number:
            y = permuted_labels(y, self.groups, np.random.default_rng(np.random.SeedSequence((seed, number))))
        try:
            splits = list(islice(self.protocol.splits(y, seed), self.n_splits))
        except ValueError:  # groups that exchanged their labels may leave a class in one of them
            return np.nan
        rows = replace(self.rows, y=y)
        found = [evaluate(self.work._replace(split=at), rows, split)[0][0] for at, split in enumerate(splits)]
        return float(np.mean([float(result.scores.get(self.metric, np.nan)) for result in found]))


def permuted_labels(codes: NDArray[np.intp], groups: NDArray[Any] | None, rng: np.random.Generator) -> NDArray[np.intp]:
    """Return labels exchanged among all rows, inside groups, or among groups that have one label each."""
    if groups is None:
        return rng.permutation(codes)
    _, first, member = np.unique(groups, return_index=True, return_inverse=True)
    if _one_label_each(codes, groups):
        return rng.permutation(codes[first])[member]
    result = codes.copy()
    for number in range(len(first)):
        inside = np.flatnonzero(member == number)
        result[inside] = rng.permutation(codes[inside])
    return result


def require_exchange(grid: Grid) -> None:
    """Raise if nearly every group has one label, so that permuting inside groups changes almost nothing."""
    codes, groups = grid.facts.codes, grid.facts.groups
    if groups is None or _one_label_each(codes, groups):
        return
    counts = np.zeros((groups.max() + 1, codes.max() + 1))
    np.add.at(counts, (groups, codes), 1)
    sizes = counts.sum(axis=1, keepdims=True)
    # the probability that a row keeps its label is the share of this label in its group
    changed = 1 - (counts**2 / np.maximum(sizes, 1)).sum() / len(codes)
    if changed < LEAST_CHANGED:
        raise ValueError(
            f"groups must have more than one label each, or exactly one, for permutations; permuting inside groups "
            f"would change {100 * changed:.1f} % of the labels. Leave out permutations, or give each group one label."
        )


def _one_label_each(codes: NDArray[np.intp], groups: NDArray[Any]) -> bool:
    _, first, member = np.unique(groups, return_index=True, return_inverse=True)
    return bool((codes == codes[first][member]).all())
