"""The answer: which pipeline to take, its honest score, and whether reducing helps, in sentences that hold.

**What is recommended.** Of all reductions, numbers of components and classifiers that were tried, the one with the
fewest components, and of these the simplest (linear before nonlinear, then the higher score), that is not shown to be
worse than the one with the highest score, `best`: not by the corrected t test at 5 %, and not by more than the
standard error of the highest score, lest few rows excuse any loss.

**What is claimed.** The recommended pipeline is compared with the best line of the raw features and the best line of
PCA, over all classifiers. It was chosen among `n_lines` lines of a method and a classifier, and each of the others
among its own, so each direction's p value is multiplied by how many were looked at on the side that won, and the two
comparisons are adjusted together (Holm). A difference that is not shown is called equality only where the interval of
the difference lies within ±2 points; else the sentence says how large a difference could have been shown.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from discrim.evaluation.grid import Cell
from discrim.evaluation.held_out import HeldOut, HonestScore
from discrim.evaluation.statistics import corrected_interval, corrected_t_test, holm
from discrim.evaluation.summary import LEVEL, METRICS, scores_by_cell, test_to_train

MARGIN = 0.02  # differences within it, with their whole interval, are called none
UNBALANCED = 0.6  # share of the largest class above which balanced accuracy decides
Array = NDArray[np.float64]

HELPS, COSTS, AS_WELL, NOT_SHOWN, NO_SIGNAL = "helps", "costs", "as well", "not shown", "no signal"


@dataclass(frozen=True)
class Contrast:
    """The recommended pipeline beside another one.

    Attributes
    ----------
    other : Cell
        The other pipeline: the best of its kind.
    difference : float
        Mean score of the recommended one minus the other's.
    low : float
        Lower end of the 95 % interval of the difference, for overlapping splits.
    high : float
        Upper end of that interval.
    p_value : float
        Of the corrected t test, for all that was looked at.
    detectable : float
        The least difference that could have been shown.
    finding : str
        "helps", "costs", "as well" or "not shown".
    """

    other: Cell
    difference: float
    low: float
    high: float
    p_value: float
    detectable: float
    finding: str


@dataclass(frozen=True, eq=False)
class Verdict:
    """What to do, and why.

    Attributes
    ----------
    recommended : Cell
        Method, number of components and classifier to take.
    score : float
        Its mean score over the splits on which it was also chosen.
    low : float
        Lower end of the 95 % interval of that score.
    high : float
        Upper end of that interval.
    honest : HonestScore or None
        The score of what is recommended on rows that had no part in the choice; None where rows do not tell.
    best : Cell
        The pipeline with the highest mean score.
    best_score : float
        That score.
    majority : float
        Score of naming the class with most training rows; NaN where rows do not tell.
    against_raw : Contrast or None
        Beside the best line of the raw features.
    against_pca : Contrast or None
        Beside the best line of PCA, where the recommended method is another.
    finding : str
        One of "helps", "costs", "as well", "not shown" and "no signal": the first sentence.
    sentences : tuple of str
        The answer in words.
    metric : str
        The score that decided.
    n_lines : int
        Lines of a method and a classifier that were looked at.
    classes : tuple of str
        Names of the classes.
    confusion : array of shape (n_classes, n_classes) or None
        Held-out rows of each class (rows) that the recommended pipeline took for each class (columns), all splits.
    recall : dict of str to float
        Of every class, the share of its held-out rows that were recognised.
    """

    recommended: Cell
    score: float
    low: float
    high: float
    honest: HonestScore | None
    best: Cell
    best_score: float
    majority: float
    against_raw: Contrast | None
    against_pca: Contrast | None
    finding: str
    sentences: tuple[str, ...]
    metric: str
    n_lines: int
    classes: tuple[str, ...]
    confusion: NDArray[np.intp] | None
    recall: dict[str, float]

    def __str__(self) -> str:
        return " ".join(self.sentences)


@dataclass(frozen=True, eq=False)
class Evidence:
    """Scores of every cell on every split that all of them have, and what is needed to judge them."""

    cells: tuple[Cell, ...]
    scores: Array  # cells × splits
    ratio: float
    nonlinear: frozenset[str] = frozenset()

    @classmethod
    def of(cls, rows: Iterable[Mapping[str, Any]], metric: str, nonlinear: Iterable[str] = ()) -> Evidence:
        """Cells with fewer splits than others (too few rows, a failure, an interruption) take no part."""
        good = [row for row in rows if row["status"] == "ok"]
        scores = scores_by_cell(good, metric)
        most = max((len(by_split) for by_split in scores.values()), default=0)
        whole = {cell: by_split for cell, by_split in scores.items() if len(by_split) == most}
        splits = sorted(set.intersection(*map(set, whole.values()))) if whole else []
        table = np.array([[by_split[split] for split in splits] for by_split in whole.values()])
        return cls(tuple(whole), table.reshape(len(whole), len(splits)), test_to_train(good), frozenset(nonlinear))

    def of_method(self, method: str) -> list[int]:
        return [at for at, cell in enumerate(self.cells) if cell.method == method]

    @property
    def reductions(self) -> list[int]:
        return [at for at, cell in enumerate(self.cells) if cell.method != "raw"]

    def best_of(self, members: Sequence[int]) -> int:
        """The highest mean among them; of equals the one with fewer components."""
        means = self.scores.mean(axis=1)
        return min(members, key=lambda at: (-round(means[at], 12), self.cells[at].k, self.cells[at]))

    def recommended(self, scores: Array) -> int:
        """The cell to take by these scores (cells × splits), which may be of a bootstrap sample."""
        members = np.array(self.reductions)
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
        return int(min(members[good], key=lambda at: self._simplicity(int(at), scores)))

    def _simplicity(self, at: int, scores: Array) -> tuple[Any, ...]:
        cell = self.cells[at]
        return cell.k, cell.method in self.nonlinear, -round(float(scores[at].mean()), 12), cell


def metric_for(counts: Mapping[Any, float], metric: str) -> str:
    """The score that decides: as asked for, or with "auto" accuracy unless the largest class has too large a share."""
    if metric != "auto":
        return metric
    return "balanced_accuracy" if max(counts.values()) > UNBALANCED * sum(counts.values()) else "accuracy"


def verdict_of(
    rows: Sequence[Mapping[str, Any]],
    metric: str,
    about: Mapping[str, Any] | None = None,
    nonlinear: Iterable[str] = (),
) -> Verdict | None:
    """The verdict on the rows of one run; None where no reduction has results.

    about : what was kept of the run (`Grid.about`): without it there is no honest score, no confusion, no majority
    nonlinear : names of the methods that are no linear map of the features
    """
    evidence = Evidence.of(rows, metric, nonlinear)
    if not evidence.reductions or evidence.scores.shape[1] == 0:
        return None
    chosen, best = evidence.recommended(evidence.scores), evidence.best_of(evidence.reductions)
    held_out = HeldOut.of(rows, about)
    honest, majority = _honest(evidence, held_out, metric), np.array([])
    if held_out is not None:
        majority = held_out.majority_scores(metric)
    against_raw, against_pca = contrasts(evidence, chosen)
    finding = _finding(evidence, chosen, against_raw, majority)
    cell = evidence.cells[chosen]
    low, high = _interval(evidence.scores[chosen], evidence.ratio)
    confusion = None if held_out is None or cell not in held_out.cells else held_out.confusion(cell)
    classes = () if held_out is None else held_out.classes
    found = Verdict(
        cell,
        float(evidence.scores[chosen].mean()),
        low,
        high,
        honest,
        evidence.cells[best],
        float(evidence.scores[best].mean()),
        float(majority.mean()) if len(majority) else np.nan,
        against_raw,
        against_pca,
        finding,
        (),
        metric,
        _n_lines(evidence, evidence.reductions),
        classes,
        confusion,
        {} if confusion is None else _recall(classes, confusion),
    )
    n_features = next((evidence.cells[at].k for at in evidence.of_method("raw")), 0)
    return Verdict(**{**vars(found), "sentences": sentences(found, n_features)})


def contrasts(evidence: Evidence, chosen: int) -> tuple[Contrast | None, Contrast | None]:
    """The chosen pipeline beside the best line of raw features and the best line of PCA, adjusted together."""
    if evidence.scores.shape[1] < 2:
        return None, None
    families = [evidence.of_method("raw"), evidence.of_method("pca")]
    if evidence.cells[chosen].method == "pca":
        families[1] = []
    found = [_contrast(evidence, chosen, family) if family else None for family in families]
    adjusted = holm([np.nan if one is None else one.p_value for one in found])
    n_tests = sum(one is not None for one in found)
    raw, pca = (
        None if one is None else _judged(evidence, chosen, one, float(p), n_tests)
        for one, p in zip(found, adjusted, strict=True)
    )
    return raw, pca


def _contrast(evidence: Evidence, chosen: int, family: Sequence[int]) -> Contrast:
    other = evidence.best_of(family)
    values = evidence.scores[chosen] - evidence.scores[other]
    low, high = _interval(values, evidence.ratio)
    test = corrected_t_test(values, evidence.ratio)
    ours, theirs = _looked_at(evidence, chosen, family)
    looked_at = ours if test.mean > 0 else theirs
    p_value = min(1.0, test.p_value * looked_at) if test.standard_error > 0 else 1.0
    return Contrast(evidence.cells[other], test.mean, low, high, p_value, np.nan, "")


def _judged(evidence: Evidence, chosen: int, found: Contrast, p_value: float, n_tests: int) -> Contrast:
    values = evidence.scores[chosen] - evidence.scores[evidence.cells.index(found.other)]
    error = corrected_t_test(values, evidence.ratio).standard_error
    looked_at = _n_lines(evidence, evidence.reductions)
    detectable = float(stats.t.isf(LEVEL / 2 / looked_at / n_tests, len(values) - 1) * error)
    if p_value < LEVEL:
        finding = HELPS if found.difference > 0 else COSTS
    else:
        finding = AS_WELL if found.low >= -MARGIN and found.high <= MARGIN else NOT_SHOWN
    return Contrast(found.other, found.difference, found.low, found.high, p_value, detectable, finding)


def _looked_at(evidence: Evidence, chosen: int, family: Sequence[int]) -> tuple[int, int]:
    """Lines that the chosen one was chosen among, and lines that the other was chosen among."""
    rest = [at for at in evidence.reductions if at not in set(family)]
    return _n_lines(evidence, rest), _n_lines(evidence, family)


def _n_lines(evidence: Evidence, members: Iterable[int]) -> int:
    return len({(evidence.cells[at].method, evidence.cells[at].classifier) for at in members})


def _finding(evidence: Evidence, chosen: int, raw: Contrast | None, majority: Array) -> str:
    """What reducing does; where neither the reduction nor raw features beat the largest class there is no signal."""
    if raw is not None and raw.finding in (HELPS, COSTS):
        return raw.finding
    if len(majority) > 1 and len(majority) == evidence.scores.shape[1]:
        test = corrected_t_test(evidence.scores[chosen] - majority, evidence.ratio, alternative="greater")
        p_value = test.p_value * _n_lines(evidence, evidence.reductions) if test.standard_error > 0 else 0.0
        if test.mean <= 0 or p_value >= LEVEL:
            return NO_SIGNAL
    return NOT_SHOWN if raw is None else raw.finding


def _honest(evidence: Evidence, held_out: HeldOut | None, metric: str) -> HonestScore | None:
    if held_out is None or held_out.cells != evidence.cells or evidence.scores.shape[1] < 2:
        return None
    return held_out.honest_score(evidence.recommended, metric)


def _interval(values: Array, ratio: float) -> tuple[float, float]:
    if len(values) < 2:
        return np.nan, np.nan
    found = corrected_interval(values, ratio)
    return max(found.low, -1.0), min(found.high, 1.0)


def _recall(classes: Sequence[str], confusion: NDArray[np.intp]) -> dict[str, float]:
    totals = confusion.sum(axis=1)
    return {
        name: float(hits / total) if total else np.nan
        for name, hits, total in zip(classes, np.diag(confusion), totals, strict=True)
    }


# ---------------------------------------------------------------------- in words


def sentences(found: Verdict, n_features: int) -> tuple[str, ...]:
    """The first says whether reducing helps, the second compares with PCA, the third says what to take."""
    return tuple(
        filter(None, (_first_sentence(found, n_features), _about_pca(found.against_pca), recommendation(found)))
    )


def _first_sentence(found: Verdict, n_features: int) -> str:
    raw = found.against_raw
    if found.finding == NO_SIGNAL:
        return (
            f"No reduction is shown to do better than naming the largest class ({percent(found.majority)}): the "
            "features may say nothing of the classes, or the rows may be too few."
        )
    if raw is None:
        return ""
    ours = f"{in_components(found.recommended.k)} by {found.recommended.method}"
    theirs = f"the {n_features} raw features (with {raw.other.classifier})"
    gap = f"{100 * abs(raw.difference):.1f} points"
    could = f"one of {100 * raw.detectable:.1f} points could have been"
    return {
        HELPS: f"Reducing helps: {ours} classify {gap} better than {theirs} ({in_p(raw.p_value)}).",
        COSTS: f"Reducing costs {gap}: {theirs} classify better than {ours} ({in_p(raw.p_value)}).",
        AS_WELL: f"Raw features do as well: {theirs} and {ours} differ by {gap}; {could} shown.",
        NOT_SHOWN: f"No difference to {theirs} can be shown with this many rows ({could}); {gap} were found.",
    }[raw.finding]


def _about_pca(pca: Contrast | None) -> str:
    if pca is None:
        return ""
    theirs = f"PCA ({in_components(pca.other.k)}, with {pca.other.classifier})"
    gap, could = f"{100 * abs(pca.difference):.1f} points", f"one of {100 * pca.detectable:.1f} points could have been"
    return {
        HELPS: f"It is {gap} better than the best of {theirs}, {in_p(pca.p_value)}.",
        COSTS: f"The best of {theirs} is {gap} better, {in_p(pca.p_value)}.",
        AS_WELL: f"The best of {theirs}, which uses no labels, does as well ({gap} apart).",
        NOT_SHOWN: f"No difference to the best of {theirs} is shown: {gap}, and {could}.",
    }[pca.finding]


def recommendation(found: Verdict) -> str:
    """What to take, its score, and what had the highest."""
    cell = found.recommended
    name = METRICS[found.metric]
    text = f"Recommended: {cell.method} with {in_components(cell.k)}, judged by {cell.classifier}: {name} "
    if found.honest is None:
        text += f"{percent(found.score)} on the splits it was chosen on"
    else:
        text += f"{percent(found.honest.mean)} on rows that had no part in the choice ({found.honest.method})"
    if found.best == cell:
        return f"{text}; nothing scored higher."
    best = found.best
    return (
        f"{text}; the highest score, {percent(found.best_score)}, is {best.method}'s with {in_components(best.k)} "
        f"and {best.classifier}, and this one, {percent(found.score)} there, is not shown to be worse."
    )


def in_components(k: int) -> str:
    return f"{k} component{'' if k == 1 else 's'}"


def percent(score: float) -> str:
    return f"{100 * score:.1f} %"


def in_p(p_value: float) -> str:
    return "p < 0.001" if p_value < 0.001 else f"p = {p_value:.3f}"
