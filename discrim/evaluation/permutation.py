"""Is a score more than chance? The same pipeline on the same rows with permuted labels, many times.

    p = (1 + how many permuted scores are as high) / (1 + how many permutations)

Labels are permuted inside groups where rows have groups; where every group has one label (a patient's diagnosis), that
would change nothing, and the groups exchange their labels as wholes. What was chosen before (method, K, classifier) is
not chosen again: the test is exact for a pipeline that was fixed beforehand, and flatters the best of many a little.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from itertools import islice
from typing import Any

import numpy as np
from numpy.typing import NDArray

from discrim.evaluation.grid import Grid
from discrim.evaluation.protocol import Protocol, Split
from discrim.evaluation.results import Cell
from discrim.evaluation.summary import LEVEL
from discrim.evaluation.trial import TrialRows, Work, evaluate
from discrim.evaluation.wording import in_components, in_p, percent
from discrim.evaluation.workers import WorkerLostError, in_parallel, number_of_jobs
from discrim.tables.table_error import plural

Array = NDArray[np.float64]
MOST_SPLITS = 5  # of the protocol's: each permutation costs as many fits
LEAST = math.ceil(1 / LEVEL) - 1  # permutations, of which none as high gives a p value of LEVEL
LEAST_CHANGED = 0.1  # of the labels: with fewer, permuted labels score like the labels as they are


@dataclass(frozen=True, eq=False)
class PermutationTest:
    """A pipeline's score beside its scores with permuted labels.

    permuted : NaN where the pipeline failed with permuted labels, which counts as a score as high
    exchanged : what was permuted: "labels", "labels inside groups", or "labels of whole groups"
    """

    cell: Cell
    metric: str
    score: float
    permuted: Array
    n_splits: int
    exchanged: str = "labels"

    @property
    def as_high(self) -> int:
        """How many permuted scores are as high as the score."""
        return int((~(self.permuted < self.score - 1e-12)).sum())

    @property
    def p_value(self) -> float:
        """(1 + as high) / (1 + permutations)."""
        return (1 + self.as_high) / (1 + len(self.permuted))

    def __str__(self) -> str:
        tested = f"{self.cell.method} with {in_components(self.cell.k)} and {self.cell.judge}"
        if not np.isfinite(self.score):
            return f"Permutation test: {tested} has no score on some of {plural(self.n_splits, 'split')}: no test."
        scores = self.permuted[np.isfinite(self.permuted)]
        typical = f" (on average {percent(float(scores.mean()))})" if len(scores) else ""
        shown = "more than chance" if self.p_value <= LEVEL else "not shown to be more than chance"
        few = f"; fewer than {LEAST} permutations can show nothing" if len(self.permuted) < LEAST else ""
        return (
            f"Permutation test: {tested} has {percent(self.score)} on {plural(self.n_splits, 'split')}; with permuted "
            f"{self.exchanged}{typical} {self.as_high} of {len(self.permuted)} times as much, so it is {shown} "
            f"({in_p(self.p_value)}{few})."
        )


def permutation_test(
    grid: Grid, cell: Cell, metric: str, permutations: int, *, jobs: int | None = 1, progress: Any = None
) -> PermutationTest:
    """The cell's score over the grid's first splits, and the same with labels permuted so many times."""
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
    """Called with the number of a permutation: the pipeline's mean score; with 0, of the labels as they came."""

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
        (result,) = evaluate(self.work._replace(split=at), rows, split)
        return float(result.scores.get(self.metric, np.nan))


def permuted_labels(codes: NDArray[np.intp], groups: NDArray[Any] | None, rng: np.random.Generator) -> NDArray[np.intp]:
    """Labels exchanged among all rows, inside groups, or among groups that have one label each."""
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
    """Raise where groups are so nearly of one label each that permuting inside them changes next to nothing."""
    codes, groups = grid.facts.codes, grid.facts.groups
    if groups is None or _one_label_each(codes, groups):
        return
    counts = np.zeros((groups.max() + 1, codes.max() + 1))
    np.add.at(counts, (groups, codes), 1)
    sizes = counts.sum(axis=1, keepdims=True)
    # a row keeps its label with the share that this label has in its group
    changed = 1 - (counts**2 / np.maximum(sizes, 1)).sum() / len(codes)
    if changed < LEAST_CHANGED:
        raise ValueError(
            f"Nearly every group has one label: permuting labels inside groups would change {100 * changed:.1f} % of "
            "them, too few to test anything by. Leave out permutations, or give each group one label, so that whole "
            "groups exchange theirs."
        )


def _one_label_each(codes: NDArray[np.intp], groups: NDArray[Any]) -> bool:
    _, first, member = np.unique(groups, return_index=True, return_inverse=True)
    return bool((codes == codes[first][member]).all())
