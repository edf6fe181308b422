"""Permutation test: the same pipeline on the same rows with permuted labels.

    p = (1 + number of permuted scores that are as high) / (1 + number of permutations)

With groups, labels are permuted inside groups. If every group has one label (a patient's diagnosis), the groups
exchange their labels instead. The choice of the pipeline is not repeated: the test is exact for a pipeline that was
fixed beforehand, and slightly optimistic for the best of many.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from itertools import islice
from typing import Any

import numpy as np
from numpy.typing import NDArray

from discrim.evaluation.plan import Grid
from discrim.evaluation.protocol import Protocol, Split
from discrim.evaluation.results import Cell
from discrim.evaluation.summary import LEVEL
from discrim.evaluation.trial import TrialRows, Work, evaluate
from discrim.evaluation.wording import in_p, percent, pipeline_name
from discrim.evaluation.workers import WorkerLostError, in_parallel, number_of_jobs
from discrim.tables.table_error import plural

Array = NDArray[np.float64]
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
    for done, (number, answer) in enumerate(in_parallel(score, range(permutations + 1), number_of_jobs(jobs))):
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
        return float(np.mean([self._on(replace(self.rows, y=y), at, split) for at, split in enumerate(splits)]))

    def _on(self, rows: TrialRows, at: int, split: Split) -> float:
        (result,), _ = evaluate(self.work._replace(split=at), rows, split)
        return float(result.scores.get(self.metric, np.nan))


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
