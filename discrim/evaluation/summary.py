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
from numpy.typing import NDArray

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


def lines_of(rows: Iterable[Result], metric: str = "accuracy") -> list[Line]:
    """The lines, best first; of equals the one with fewer components."""
    require_metric(metric)
    good = [row for row in rows if row.ok]
    ratio = test_to_train(good)
    scores = scores_by_cell(good, metric)
    seconds = _mean_seconds(good)
    by_curve: dict[tuple[str, str], dict[int, Scores]] = defaultdict(dict)
    for cell, by_split in scores.items():
        by_curve[cell.method, cell.classifier][cell.k] = by_split
    kinds = {kind: scores_by_cell(good, kind) for kind in METRICS}
    lines = [_line(*names, by_k, ratio, seconds[names[0]], kinds) for names, by_k in by_curve.items()]
    over_pca, over_raw = (_differences(lines, scores, ratio, other) for other in ("pca", "raw"))
    lines = [
        replace(line, against_pca=pca, against_raw=raw)
        for line, pca, raw in zip(lines, over_pca, over_raw, strict=True)
    ]
    return sorted(lines, key=lambda line: (-round(line.mean, 12), line.k, line.method, line.classifier))


def require_metric(metric: str, also: tuple[str, ...] = ()) -> None:
    if metric not in (*METRICS, *also):
        raise ValueError(f"No score is named {metric!r}. There are: {', '.join((*METRICS, *also))}.")


def scores_by_cell(good: Iterable[Result], metric: str) -> dict[Cell, Scores]:
    """The score of every split, for each cell."""
    scores: dict[Cell, Scores] = defaultdict(dict)
    for row in good:
        if metric in row.scores:
            scores[row.cell][row.split] = row.scores[metric]
    return dict(scores)


def test_to_train(good: Iterable[Result]) -> float:
    """n_test/n_train over the splits there are."""
    sizes = {row.split: (row.scores["n_test"], row.scores["n_train"]) for row in good}
    n_test, n_train = (sum(column) for column in zip(*sizes.values(), strict=True)) if sizes else (0, 1)
    return n_test / n_train


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


def _line(
    method: str,
    classifier: str,
    by_k: dict[int, Scores],
    ratio: float,
    seconds: float,
    kinds: Mapping[str, Mapping[Cell, Scores]],
) -> Line:
    # A K that some splits could not give (too few rows, a failure) is judged on fewer; so it must not be chosen for it.
    most = max(len(by_split) for by_split in by_k.values())
    values = {k: _array(by_k[k]) for k in sorted(by_k) if len(by_k[k]) == most}
    means = {k: float(of_k.mean()) for k, of_k in values.items()}
    best = max(means, key=lambda k: (round(means[k], 12), -k))
    reach = means[best] - _standard_error(values[best], ratio)
    k = min(k for k, mean in means.items() if mean >= reach - 1e-12)
    interval = corrected_interval(values[k], ratio) if most > 1 else None
    low, high = (max(interval.low, 0.0), min(interval.high, 1.0)) if interval else (np.nan, np.nan)
    cell = Cell(method, k, classifier)
    all_means = {kind: float(_array(found[cell]).mean()) for kind, found in kinds.items() if cell in found}
    curve = {k: float(_array(of_k).mean()) for k, of_k in sorted(by_k.items())}
    return Line(method, classifier, k, means[k], low, high, most, best, means[best], curve, seconds, all_means)


def _standard_error(values: NDArray[np.float64], ratio: float) -> float:
    return corrected_t_test(values, ratio).standard_error if len(values) > 1 else 0.0


def _differences(lines: list[Line], scores: Mapping[Cell, Scores], ratio: float, other: str) -> list[Difference | None]:
    """Each line's difference to the other method with the same classifier and K (raw features have one K only)."""
    raw_counts = {cell.k for cell in scores if cell.method == "raw"}
    found = []
    for line in lines:
        k = next(iter(raw_counts), line.k) if other == "raw" else line.k
        theirs = None if line.method == other else scores.get(Cell(other, k, line.classifier))
        ours = scores[Cell(line.method, line.k, line.classifier)]
        found.append(None if theirs is None else difference(ours, theirs, ratio))
    return adjusted(found)


def _mean_seconds(good: Iterable[Result]) -> dict[str, float]:
    """Seconds of one fit of each method, averaged over the splits; of the slowest K where each has its own fit."""
    longest: dict[str, dict[int, float]] = defaultdict(lambda: defaultdict(float))
    for row in good:
        of_split = longest[row.cell.method]
        of_split[row.split] = max(of_split[row.split], row.scores["fit_seconds"])
    return {method: float(np.mean(list(of_split.values()))) for method, of_split in longest.items()}


def _array(by_split: Scores) -> NDArray[np.float64]:
    return np.array([by_split[split] for split in sorted(by_split)])
