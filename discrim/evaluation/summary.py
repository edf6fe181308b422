"""Lines of the ranked table: one per method and classifier, with K, score and differences to all columns and to PCA.

For each method and classifier, K is the smallest whose mean score lies within one standard error of the best K's; the
recommended pipeline's line has the recommended K. Lines are compared with the best line of all columns ("raw") and with
the best line of PCA, over all K and classifiers. Errors, intervals and tests are corrected for rows shared by splits.
The p values of a column are adjusted for their number (Holm), and, if a line is worse, also for the number of lines
that the best one was chosen from. Only splits that both sides have are compared.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike, NDArray

from discrim.evaluation.results import Cell, Results, Scores
from discrim.evaluation.statistics import corrected_interval, corrected_t_test, holm, sign_test

METRICS = {
    "accuracy": "accuracy",
    "balanced_accuracy": "balanced accuracy",
    "f1": "mean F measure",
    "auc": "area under the ROC curve",
    "mcc": "Matthews correlation",
}
LEVEL = 0.05
NO_DIFFERENCE = "no difference shown"


@dataclass(frozen=True)
class Difference:
    """Difference of two scores over the splits that both have."""

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
    """Method with a classifier, at the K chosen for it.

    same : other methods with the same predictions on every split, for this K and classifier
    dropped : True if only the first splits were tried, because the line was far behind the best
    """

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
    same: tuple[str, ...] = ()
    dropped: bool = False

    @property
    def cell(self) -> Cell:
        return Cell(self.method, self.k, self.classifier)


def lines_of(results: Results, metric: str = "accuracy", recommended: Cell | None = None) -> list[Line]:
    """Return the lines, best first; of equal lines the one with fewer components. Dropped ones are last."""
    require_metric(metric)
    scores = results.scores(metric)
    lines = [_line(*names, by_k, metric, results, recommended) for names, by_k in scores.curves.items()]
    lines = _without_twins(lines, results, recommended)
    over_pca, over_raw = (_differences(lines, scores, other) for other in ("pca", "raw"))
    lines = [
        replace(line, against_pca=pca, against_raw=raw)
        for line, pca, raw in zip(lines, over_pca, over_raw, strict=True)
    ]
    return sorted(lines, key=lambda line: (line.dropped, -round(line.mean, 12), line.k, line.method, line.classifier))


def require_metric(metric: str, also: tuple[str, ...] = ()) -> None:
    if metric not in (*METRICS, *also):
        raise ValueError(f"metric must be one of {', '.join((*METRICS, *also))}; got {metric!r}.")


def cell_difference(scores: Scores, ours: Cell, other: Cell) -> Difference | None:
    """Compare two cells; return None for fewer than two shared splits. `adjusted` is not set."""
    return difference(scores.both(ours, other), scores.ratio)


def difference(gaps: NDArray[np.float64], ratio: float) -> Difference | None:
    """Test differences by split; return None for fewer than two splits. `adjusted` is not set."""
    if len(gaps) < 2:
        return None
    test = corrected_t_test(gaps, ratio)
    # An equal difference in every split (few test rows) has no variance, so nothing can be tested.
    p_value = test.p_value if test.standard_error > 0 else 1.0
    return Difference(float(gaps.mean()), p_value, p_value, sign_test(gaps).p_value, len(gaps))


def adjusted(differences: Sequence[Difference | None], chosen_from: int = 1) -> list[Difference | None]:
    """Apply Holm's correction to all differences.

    chosen_from : number of lines that the other side was the best of; each was a chance to look better
    """
    raised = [
        np.nan if one is None else min(1.0, one.p_value * (chosen_from if one.mean < 0 else 1)) for one in differences
    ]
    return [
        None if one is None else replace(one, adjusted=float(p))
        for one, p in zip(differences, holm(raised), strict=True)
    ]


def least_score(metric: str) -> float:
    """Return the lowest possible score."""
    return -1.0 if metric == "mcc" else 0.0


def limits(values: ArrayLike, ratio: float, least: float = -np.inf, most: float = np.inf) -> tuple[float, float]:
    """Return the corrected 95 % interval of a mean, cut to the possible range; NaN for one split."""
    if np.size(values) < 2:
        return np.nan, np.nan
    found = corrected_interval(values, ratio)
    return max(found.low, least), min(found.high, most)


def _line(
    method: str,
    classifier: str,
    by_k: dict[int, NDArray[np.float64]],
    metric: str,
    results: Results,
    recommended: Cell | None,
) -> Line:
    curve, ratio = {k: float(values.mean()) for k, values in by_k.items()}, results.scores(metric).ratio
    # A K that some splits lack (too few rows, a failure) has a mean over fewer splits, so it must not be chosen.
    most = max(map(len, by_k.values()))
    means = {k: curve[k] for k, values in by_k.items() if len(values) == most}
    best = max(means, key=lambda k: (round(means[k], 12), -k))
    reach = means[best] - (corrected_t_test(by_k[best], ratio).standard_error if most > 1 else 0.0)
    k = min(k for k, mean in means.items() if mean >= reach - 1e-12)
    if recommended is not None and (recommended.method, recommended.classifier) == (method, classifier):
        k = recommended.k
    cell, seconds = Cell(method, k, classifier), results.fit_seconds[method]
    of_kinds = {kind: results.scores(kind).of_cell(cell) for kind in METRICS}
    all_means = {kind: float(values.mean()) for kind, values in of_kinds.items() if len(values)}
    low, high = limits(by_k[k], ratio, least_score(metric), 1.0)
    line = Line(method, classifier, k, curve[k], low, high, most, best, means[best], curve, seconds, all_means)
    return replace(line, dropped=cell in results.dropped)


def _without_twins(lines: list[Line], results: Results, recommended: Cell | None) -> list[Line]:
    """Join lines of methods with the same predictions on every split, at the same K and with the same classifier.

    The first one stays, or the recommended one; it names the others.
    """
    predicted: dict[Cell, dict[int, str]] = defaultdict(dict)
    for row in results.rows:
        if row.ok:
            predicted[row.cell][row.split] = row.scores.get("labels", "")
    kept: dict[tuple[object, ...], Line] = {}
    for line in lines:
        labels = tuple(sorted(predicted[line.cell].items()))
        known = all(text for _, text in labels) and line.method not in ("pca", "raw")
        key = (line.k, line.classifier, labels) if known else (line.cell,)
        first = kept.get(key)
        if first is None:
            kept[key] = line
        elif line.cell == recommended:
            kept[key] = replace(line, same=(first.method, *first.same))
        else:
            kept[key] = replace(first, same=(*first.same, line.method))
    return list(kept.values())


def _differences(lines: list[Line], scores: Scores, other: str) -> list[Difference | None]:
    """Compare each line with the best line of the other method, over all K and classifiers."""
    members = [line for line in lines if line.method == other and not line.dropped]
    if not members:
        return [None] * len(lines)
    most = max(line.n_splits for line in members)
    best = max((line for line in members if line.n_splits == most), key=lambda line: (line.best_mean, -line.k))
    theirs = Cell(other, best.best_k, best.classifier)
    found = [None if line.method == other else cell_difference(scores, line.cell, theirs) for line in lines]
    return adjusted(found, len(members))
