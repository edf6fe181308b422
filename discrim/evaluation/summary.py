"""Rows of results → one line per method and classifier: which K, how well, and whether it beats PCA and raw features.

For each method and classifier, K is the smallest whose mean score lies within one standard error of the best K's. It
is chosen on the scores that are shown, so these flatter a little; the comparisons do not: they are with PCA at the same
K, and with the features as they are. Splits share rows, so errors, intervals and tests are the corrected ones, and the
p values of a column are adjusted for their number (Holm). Only splits that both sides have are compared.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike, NDArray

from discrim.evaluation.result import Cell, Result
from discrim.evaluation.statistics import corrected_interval, corrected_t_test, holm, sign_test

METRICS = {"accuracy": "accuracy", "balanced_accuracy": "balanced accuracy", "f1": "mean F measure"}
LEVEL = 0.05
NO_DIFFERENCE = "no difference shown"
Scores = dict[int, float]  # by split


@dataclass(frozen=True)
class Difference:
    """A score minus the other's, over the splits both have."""

    mean: float
    p_value: float  # corrected t test
    adjusted: float  # the same after Holm
    sign_p_value: float
    n_splits: int

    @property
    def verdict(self) -> str:
        if not self.adjusted < LEVEL:
            return NO_DIFFERENCE
        return "better" if self.mean > 0 else "worse"


@dataclass(frozen=True)
class Line:
    """One method with one classifier, at the K chosen for it."""

    method: str
    classifier: str
    k: int
    mean: float
    low: float
    high: float
    n_splits: int
    best_k: int
    best_mean: float
    curve: dict[int, float]  # mean score for every K
    seconds: float  # of one fit of the reduction, on average
    means: dict[str, float]  # mean of every kind of score at K
    against_pca: Difference | None = None
    against_raw: Difference | None = None


@dataclass(frozen=True, eq=False)
class ScoreTable:
    """The scores of every cell, split by split, and n_test/n_train over the splits there are."""

    scores: dict[Cell, Scores]
    ratio: float

    @classmethod
    def of(cls, rows: Iterable[Result], metric: str) -> ScoreTable:
        """Of the trials that went well."""
        require_metric(metric)
        scores: dict[Cell, Scores] = defaultdict(dict)
        sizes: dict[int, tuple[int, int]] = {}
        for row in rows:
            if row.ok:
                sizes[row.split] = row.scores["n_test"], row.scores["n_train"]
            if row.ok and metric in row.scores:
                scores[row.cell][row.split] = row.scores[metric]
        n_test, n_train = (sum(column) for column in zip(*sizes.values(), strict=True)) if sizes else (0, 1)
        return cls(dict(scores), n_test / n_train)

    @property
    def most_splits(self) -> int:
        return max(map(len, self.scores.values()), default=0)

    @property
    def curves(self) -> dict[tuple[str, str], dict[int, NDArray[np.float64]]]:
        """By method and classifier, the scores (in the order of the splits) for every K, ascending."""
        found: dict[tuple[str, str], dict[int, NDArray[np.float64]]] = defaultdict(dict)
        for cell in self.scores:
            found[cell.method, cell.classifier][cell.k] = self.of_cell(cell)
        return {names: dict(sorted(by_k.items())) for names, by_k in found.items()}

    def of_cell(self, cell: Cell) -> NDArray[np.float64]:
        by_split = self.scores[cell]
        return np.array([by_split[split] for split in sorted(by_split)])

    def difference(self, ours: Cell, other: Cell) -> Difference | None:
        return difference(self.scores.get(ours, {}), self.scores.get(other, {}), self.ratio)


def lines_of(rows: Iterable[Result], metric: str = "accuracy") -> list[Line]:
    """The lines, best first; of equals the one with fewer components."""
    good = [row for row in rows if row.ok]
    table, seconds = ScoreTable.of(good, metric), _mean_seconds(good)
    kinds = {kind: ScoreTable.of(good, kind) for kind in METRICS}
    lines = [_line(*names, by_k, table.ratio, seconds[names[0]], kinds) for names, by_k in table.curves.items()]
    over_pca, over_raw = (_differences(lines, table, other) for other in ("pca", "raw"))
    lines = [
        replace(line, against_pca=pca, against_raw=raw)
        for line, pca, raw in zip(lines, over_pca, over_raw, strict=True)
    ]
    return sorted(lines, key=lambda line: (-round(line.mean, 12), line.k, line.method, line.classifier))


def require_metric(metric: str, also: tuple[str, ...] = ()) -> None:
    if metric not in (*METRICS, *also):
        raise ValueError(f"No score is named {metric!r}. There are: {', '.join((*METRICS, *also))}.")


def difference(ours: Scores, others: Scores, ratio: float) -> Difference | None:
    """None where fewer than two splits can be compared. `adjusted` is for the caller to fill in."""
    shared = sorted(ours.keys() & others.keys())
    if len(shared) < 2:
        return None
    values = np.array([ours[split] - others[split] for split in shared])
    test = corrected_t_test(values, ratio)
    # The same difference in every split (a few test rows) shows no variance to judge it by: that proves nothing.
    p_value = test.p_value if test.standard_error > 0 else 1.0
    return Difference(float(values.mean()), p_value, p_value, sign_test(values).p_value, len(shared))


def adjusted(differences: list[Difference | None]) -> list[Difference | None]:
    """Holm's correction over all of them."""
    p_values = holm([np.nan if one is None else one.p_value for one in differences])
    return [
        None if one is None else replace(one, adjusted=float(p)) for one, p in zip(differences, p_values, strict=True)
    ]


def limits(values: ArrayLike, ratio: float, least: float = -np.inf, most: float = np.inf) -> tuple[float, float]:
    """The corrected 95 % interval of a mean, within what it can be; NaN where there is one split only."""
    if np.size(values) < 2:
        return np.nan, np.nan
    found = corrected_interval(values, ratio)
    return max(found.low, least), min(found.high, most)


def _line(
    method: str,
    classifier: str,
    by_k: dict[int, NDArray[np.float64]],
    ratio: float,
    seconds: float,
    kinds: Mapping[str, ScoreTable],
) -> Line:
    curve = {k: float(values.mean()) for k, values in by_k.items()}
    # A K that some splits could not give (too few rows, a failure) is judged on fewer; so it must not be chosen for it.
    most = max(map(len, by_k.values()))
    means = {k: curve[k] for k, values in by_k.items() if len(values) == most}
    best = max(means, key=lambda k: (round(means[k], 12), -k))
    reach = means[best] - (corrected_t_test(by_k[best], ratio).standard_error if most > 1 else 0.0)
    k = min(k for k, mean in means.items() if mean >= reach - 1e-12)
    low, high = limits(by_k[k], ratio, 0.0, 1.0)
    cell = Cell(method, k, classifier)
    all_means = {kind: float(table.of_cell(cell).mean()) for kind, table in kinds.items() if cell in table.scores}
    return Line(method, classifier, k, means[k], low, high, most, best, means[best], curve, seconds, all_means)


def _differences(lines: list[Line], table: ScoreTable, other: str) -> list[Difference | None]:
    """Each line's difference to the other method with the same classifier and K (raw features have one K only)."""
    raw_count = next((cell.k for cell in table.scores if cell.method == "raw"), None)
    found = []
    for line in lines:
        theirs = Cell(other, line.k if other != "raw" or raw_count is None else raw_count, line.classifier)
        mine = Cell(line.method, line.k, line.classifier)
        found.append(None if line.method == other else table.difference(mine, theirs))
    return adjusted(found)


def _mean_seconds(good: Iterable[Result]) -> dict[str, float]:
    """Seconds of one fit of each method, averaged over the splits; of the slowest K where each has its own fit."""
    longest: dict[str, dict[int, float]] = defaultdict(lambda: defaultdict(float))
    for row in good:
        of_split = longest[row.cell.method]
        of_split[row.split] = max(of_split[row.split], row.scores["fit_seconds"])
    return {method: float(np.mean(list(of_split.values()))) for method, of_split in longest.items()}
