"""Scores of every pipeline that was tried, split by split, and which of them to take."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from discrim.evaluation.result import ITSELF, Cell, Result, on_all_splits
from discrim.evaluation.statistics import corrected_t_test
from discrim.evaluation.summary import LEVEL, ScoreTable

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Evidence:
    """Scores of every cell on every split that all of them have, and what is needed to judge them."""

    cells: tuple[Cell, ...]
    scores: Array  # cells × splits
    ratio: float
    nonlinear: frozenset[str] = frozenset()

    @classmethod
    def of(cls, rows: Iterable[Result], metric: str, nonlinear: Iterable[str] = ()) -> Evidence:
        """Cells with fewer splits than others (too few rows, a failure, an interruption) take no part."""
        found = ScoreTable.of(rows, metric)
        whole, splits = on_all_splits(found.scores)
        table = np.array([[by_split[split] for split in splits] for by_split in whole.values()])
        return cls(tuple(whole), table.reshape(len(whole), len(splits)), found.ratio, frozenset(nonlinear))

    @property
    def n_splits(self) -> int:
        return self.scores.shape[1]

    def of_method(self, method: str) -> list[int]:
        return [at for at, cell in enumerate(self.cells) if cell.method == method]

    @property
    def reductions(self) -> list[int]:
        """All but the raw features, and but a caller's classifier that sees no fewer of them."""
        n_features = max((cell.k for cell in self.cells if cell.method == "raw"), default=np.inf)
        return [
            at
            for at, cell in enumerate(self.cells)
            if cell.method != "raw" and not (cell.classifier == ITSELF and cell.k >= n_features)
        ]

    def best_of(self, members: Sequence[int]) -> int:
        """The highest mean among them; of equals the one with fewer components."""
        means = self.scores.mean(axis=1)
        return min(members, key=lambda at: (-round(means[at], 12), self.cells[at].k, self.cells[at]))

    def recommended(self, scores: Array, among: Sequence[int] | None = None) -> int:
        """The cell to take by these scores (cells × splits), which may be of a bootstrap sample; of all reductions."""
        members = np.array(self.reductions if among is None else among)
        means = scores[members].mean(axis=1)
        best = int(means.argmax())
        if scores.shape[1] < 2:
            return int(members[best])
        gaps = (scores[members[best]] - scores[members]).T
        test = corrected_t_test(gaps, self.ratio, alternative="greater")
        allowed = corrected_t_test(scores[members[best]], self.ratio).standard_error
        # The same gap in every split leaves nothing to judge it by: then its size alone decides.
        shown = (np.asarray(test.p_value) < LEVEL) & (np.asarray(test.standard_error) > 0)
        good = ~shown & (means >= means[best] - allowed - 1e-12)
        good[best] = True
        cells = self.cells

        def simplicity(at: int) -> tuple[Any, ...]:
            return cells[at].method in self.nonlinear, cells[at].k, -round(float(scores[at].mean()), 12), cells[at]

        return min(members[good].tolist(), key=simplicity)
