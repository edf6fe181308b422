"""Methods over several data sets: mean ranks, which of them differ, and who won, tied and lost against whom."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from discrim.evaluation.grid import Cell
from discrim.evaluation.statistics import friedman_test, mean_ranks, nemenyi_critical_difference
from discrim.evaluation.summary import LEVEL, Scores, difference, lines_of, scores_by_cell, test_to_train
from discrim.report.fitted import Array

TIE = 1e-12


@dataclass(frozen=True, eq=False)
class CriticalDifferenceValues:
    """Methods by mean rank, best first; arrays are in that order.

    scores : data sets × methods
    mean_ranks : 1 is best
    critical_difference : two mean ranks farther apart than this differ (Nemenyi, at `alpha`)
    groups : (first, last) positions of neighbouring methods of which no two differ; the largest such runs
    wins, ties, losses : of the row's method against the column's, in data sets
    friedman_p : of the test that all methods are alike (F of Iman and Davenport)
    """

    methods: tuple[str, ...]
    datasets: tuple[str, ...]
    scores: Array
    mean_ranks: Array
    critical_difference: float
    groups: tuple[tuple[int, int], ...]
    wins: NDArray[np.intp]
    ties: NDArray[np.intp]
    losses: NDArray[np.intp]
    friedman_p: float
    alpha: float

    @classmethod
    def of(
        cls,
        scores: ArrayLike,
        methods: Sequence[str],
        datasets: Sequence[str] | None = None,
        *,
        outcomes: ArrayLike | None = None,
        alpha: float = LEVEL,
    ) -> CriticalDifferenceValues:
        """scores : data sets × methods, higher is better, none missing.

        outcomes : data sets × methods × methods, 1 where the first won, −1 where it lost, 0 for a tie; by default a
            higher score wins
        """
        table = np.asarray(scores, dtype=np.float64)
        ranks = mean_ranks(table)
        if table.shape[1] != len(methods):
            raise ValueError(f"{len(methods)} methods are named, but scores have {table.shape[1]} columns.")
        gaps = table[:, :, None] - table[:, None, :]
        outcome = np.where(np.abs(gaps) > TIE, np.sign(gaps), 0) if outcomes is None else np.asarray(outcomes)
        order = np.argsort(ranks, kind="stable")
        outcome, ranks = outcome[:, order][:, :, order], ranks[order]
        critical = nemenyi_critical_difference(len(methods), len(table), alpha=alpha)
        named = tuple(datasets) if datasets is not None else tuple(f"data {at + 1}" for at in range(len(table)))
        return cls(
            tuple(methods[at] for at in order),
            named,
            table[:, order],
            ranks,
            critical,
            alike(ranks, critical),
            (outcome == 1).sum(axis=0),
            (outcome == 0).sum(axis=0),
            (outcome == -1).sum(axis=0),
            friedman_test(table).f_p_value,
            alpha,
        )

    @classmethod
    def of_rows(
        cls, by_data: Mapping[str, Sequence[Mapping[str, Any]]], classifier: str, *, metric: str = "accuracy"
    ) -> CriticalDifferenceValues | None:
        """From rows of results, by data set; each method at the K chosen for it on that data set.

        A win is a difference by the corrected t test at 5 %, anything else a tie. Only methods with results on every
        data set take part; None where there are fewer than two methods or two data sets.
        """
        tables = {name: _at_chosen(rows, classifier, metric) for name, rows in by_data.items()}
        tables = {name: chosen for name, chosen in tables.items() if chosen.scores}
        first = next(iter(tables.values()), None)
        shared = [m for m in first.scores if all(m in one.scores for one in tables.values())] if first else []
        if len(shared) < 2 or len(tables) < 2:
            return None
        means = [[np.mean(list(one.scores[method].values())) for method in shared] for one in tables.values()]
        outcomes = [[[one.outcome(a, b) for b in shared] for a in shared] for one in tables.values()]
        return cls.of(means, shared, list(tables), outcomes=outcomes)


def alike(ranks: Array, critical: float) -> tuple[tuple[int, int], ...]:
    """The largest runs of ascending ranks, of at least two, that lie within the critical difference."""
    last = np.searchsorted(ranks, ranks + critical, side="right") - 1
    runs = [(first, int(end)) for first, end in enumerate(last) if end > first]
    return tuple(run for at, run in enumerate(runs) if at == 0 or run[1] > runs[at - 1][1])


@dataclass(frozen=True, eq=False)
class _Chosen:
    """The scores of each method at its chosen K on one data set, by split, and n_test/n_train."""

    scores: dict[str, Scores]
    ratio: float

    def outcome(self, a: str, b: str) -> int:
        """1 where the first is better by the corrected test, −1 where it is worse, else 0."""
        found = None if a == b else difference(self.scores[a], self.scores[b], self.ratio)
        if found is None or not found.p_value < LEVEL:
            return 0
        return 1 if found.mean > 0 else -1


def _at_chosen(rows: Sequence[Mapping[str, Any]], classifier: str, metric: str) -> _Chosen:
    good = [row for row in rows if row["status"] == "ok" and row["trial"]["classifier"] == classifier]
    scores = scores_by_cell(good, metric)
    chosen = {line.method: scores[Cell(line.method, line.k, classifier)] for line in lines_of(good, metric)}
    return _Chosen(chosen, test_to_train(good))
