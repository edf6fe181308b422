"""The answer: which pipeline to take, its honest score, and whether reducing helps, in sentences that hold.

**What is recommended.** Of all reductions, numbers of components and classifiers that were tried and are not shown
worse than the one with the highest score, `best` (not by the corrected t test at 5 %, and not by more than the standard
error of the highest score, lest few rows excuse any loss), the simplest: linear before nonlinear, since people want
loadings, then the fewest components, then the higher score.

**What is claimed.** The recommended pipeline is compared with the best line of the raw features and the best line of
PCA, over all classifiers. It was chosen among several methods, so the p value of its being better is multiplied by how
many were looked at, and the two comparisons are adjusted together (Holm); simulated, methods that do not differ are
called different in one run of a hundred. A difference that is not shown is called equality only where its interval lies
within ±2 points; else the sentence says how large a difference could have been shown.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from discrim.evaluation.evidence import Array, Evidence
from discrim.evaluation.held_out import HeldOutLabels, HonestScore
from discrim.evaluation.methods import METHODS
from discrim.evaluation.result import Cell, Result, RunFacts
from discrim.evaluation.sentences import AS_WELL, COSTS, HELPS, NO_SIGNAL, NOT_SHOWN, sentences
from discrim.evaluation.statistics import corrected_t_test, holm
from discrim.evaluation.summary import LEVEL, NO_DIFFERENCE, limits

MARGIN = 0.02  # differences within it, with their whole interval, are called none
UNBALANCED = 0.6  # share of the largest class above which balanced accuracy decides


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
        The least difference that could have been shown; NaN where splits do not differ, and nothing can be tested.
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

    @property
    def verdict(self) -> str:
        """The finding in the words of a `Difference`."""
        return {HELPS: "better", COSTS: "worse"}.get(self.finding, NO_DIFFERENCE)


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
    linear : Cell or None
        What would be recommended of the linear methods, where the recommended one is not; else None.
    linear_score : float
        Its mean score; NaN where there is none.
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
    n_methods : int
        Reductions that were looked at.
    classes : tuple of str
        Names of the classes.
    confusion : array of shape (n_classes, n_classes) or None
        Held-out rows of each class (rows) that the recommended pipeline took for each class (columns), all splits.
    recall : dict of str to float
        Of every class, the share of its held-out rows that were recognised, over the splits on which the pipeline was
        also chosen: it flatters as `score` does.
    """

    recommended: Cell
    score: float
    low: float
    high: float
    honest: HonestScore | None
    best: Cell
    best_score: float
    linear: Cell | None
    linear_score: float
    majority: float
    against_raw: Contrast | None
    against_pca: Contrast | None
    finding: str
    sentences: tuple[str, ...]
    metric: str
    n_methods: int
    classes: tuple[str, ...]
    confusion: NDArray[np.intp] | None
    recall: dict[str, float]

    @property
    def told(self) -> tuple[float, float, float, str]:
        """The score to go by with its interval, and how it was found: the honest one where there is one."""
        honest = self.honest
        if honest is None:
            return self.score, self.low, self.high, "on the splits it was chosen on"
        return honest.mean, honest.low, honest.high, f"on rows that had no part in the choice ({honest.method})"

    def __str__(self) -> str:
        return " ".join(self.sentences)


def metric_for(counts: Mapping[Any, float], metric: str) -> str:
    """The score that decides: as asked for, or with "auto" accuracy unless the largest class has too large a share."""
    if metric != "auto":
        return metric
    return "balanced_accuracy" if max(counts.values()) > UNBALANCED * sum(counts.values()) else "accuracy"


def verdict_of(
    rows: Sequence[Result], metric: str, facts: RunFacts | None = None, nonlinear: Iterable[str] = ()
) -> Verdict | None:
    """The verdict on the results of one run; None where no reduction has results.

    facts : what was kept of the run: without it there is no honest score, no confusion, no majority
    nonlinear : names of the methods that are no linear map of the features
    """
    evidence = Evidence.of(rows, metric, nonlinear)
    if not evidence.reductions or evidence.n_splits == 0:
        return None
    chosen, best = evidence.recommended(evidence.scores), evidence.best_of(evidence.reductions)
    held_out = HeldOutLabels.of(rows, facts)
    honest, majority = None, np.array([])
    if held_out is not None:
        majority = held_out.majority_scores(metric)
        if held_out.cells == evidence.cells and evidence.n_splits > 1:
            honest = held_out.honest_score(evidence.recommended, metric)
    against_raw, against_pca = contrasts(evidence, chosen)
    cell, linear = evidence.cells[chosen], _linear_instead(evidence, chosen)
    low, high = limits(evidence.scores[chosen], evidence.ratio, -1.0, 1.0)
    classes = () if held_out is None else held_out.classes
    confusion = None if held_out is None or cell not in held_out.cells else held_out.confusion(cell)
    found = Verdict(
        recommended=cell,
        score=float(evidence.scores[chosen].mean()),
        low=low,
        high=high,
        honest=honest,
        best=evidence.cells[best],
        best_score=float(evidence.scores[best].mean()),
        linear=None if linear is None else evidence.cells[linear],
        linear_score=np.nan if linear is None else float(evidence.scores[linear].mean()),
        majority=float(majority.mean()) if len(majority) else np.nan,
        against_raw=against_raw,
        against_pca=against_pca,
        finding=_finding(evidence, chosen, against_raw, majority, honest),
        sentences=(),
        metric=metric,
        n_methods=_n_methods(evidence, evidence.reductions),
        classes=classes,
        confusion=confusion,
        recall={} if confusion is None else _recall(classes, confusion),
    )
    n_features = next((evidence.cells[at].k for at in evidence.of_method("raw")), 0)
    return replace(found, sentences=sentences(found, n_features))


def _linear_instead(evidence: Evidence, chosen: int) -> int | None:
    """What would be recommended if there were linear methods only, where that is another.

    Of a caller's own estimator it is not known whether it is linear.
    """
    linear = METHODS.keys() - evidence.nonlinear
    members = [at for at in evidence.reductions if evidence.cells[at].method in linear]
    if evidence.cells[chosen].method not in evidence.nonlinear or not members:
        return None
    return evidence.recommended(evidence.scores, members)


def contrasts(evidence: Evidence, chosen: int) -> tuple[Contrast | None, Contrast | None]:
    """The chosen pipeline beside the best line of raw features and the best line of PCA, adjusted together."""
    beside = [evidence.of_method("raw"), evidence.of_method("pca")]
    families = [members for members in beside if members and chosen not in members] if evidence.n_splits > 1 else []
    others = [evidence.best_of(members) for members in families]
    p_values = holm([_p_value(evidence, chosen, *pair) for pair in zip(others, families, strict=True)])
    found = [
        _contrast(evidence, chosen, other, float(p), len(others)) for other, p in zip(others, p_values, strict=True)
    ]
    raw, pca = (next((one for one in found if one.other.method == name), None) for name in ("raw", "pca"))
    return raw, pca


def _p_value(evidence: Evidence, chosen: int, other: int, family: Sequence[int]) -> float:
    """Of the corrected t test, times how many methods the better side was chosen from."""
    test = corrected_t_test(evidence.scores[chosen] - evidence.scores[other], evidence.ratio)
    rest = [at for at in evidence.reductions if at not in family]
    looked_at = _n_methods(evidence, rest if test.mean > 0 else family)
    return min(1.0, test.p_value * looked_at) if test.standard_error > 0 else 1.0


def _contrast(evidence: Evidence, chosen: int, other: int, p_value: float, n_tests: int) -> Contrast:
    values = evidence.scores[chosen] - evidence.scores[other]
    test, (low, high) = corrected_t_test(values, evidence.ratio), limits(values, evidence.ratio, -1.0, 1.0)
    looked_at = _n_methods(evidence, evidence.reductions)
    reach = stats.t.isf(LEVEL / 2 / looked_at / n_tests, len(values) - 1) * test.standard_error
    detectable = float(reach) if test.standard_error > 0 else np.nan
    if p_value < LEVEL:
        finding = HELPS if test.mean > 0 else COSTS
    else:
        finding = AS_WELL if low >= -MARGIN and high <= MARGIN else NOT_SHOWN
    return Contrast(evidence.cells[other], test.mean, low, high, p_value, detectable, finding)


def _n_methods(evidence: Evidence, members: Iterable[int]) -> int:
    return len({evidence.cells[at].method for at in members})


def _finding(
    evidence: Evidence, chosen: int, raw: Contrast | None, majority: Array, honest: HonestScore | None = None
) -> str:
    """What reducing does; where neither a reduction nor raw features beat the largest class there is no signal."""
    if raw is not None and raw.finding in (HELPS, COSTS):
        return raw.finding
    # two splits show nothing, however high the scores: rows that had no part in the choice tell all the same
    told = honest is not None and len(majority) > 0 and honest.low > majority.mean()
    # with more test rows than training rows the corrected test shows next to nothing, so its silence says nothing
    if not told and len(majority) > 1 and len(majority) == evidence.n_splits and evidence.ratio <= 1:
        best = [evidence.best_of(some) for some in (evidence.reductions, evidence.of_method("raw")) if some]
        if not any(_beats(evidence, at, majority) for at in (chosen, *best)):
            return NO_SIGNAL
    return NOT_SHOWN if raw is None else raw.finding


def _beats(evidence: Evidence, at: int, majority: Array) -> bool:
    """Whether a pipeline is shown to do better than naming the largest class, for as many methods as were tried."""
    test = corrected_t_test(evidence.scores[at] - majority, evidence.ratio, alternative="greater")
    if test.standard_error == 0:
        return bool(test.mean > 0)
    return bool(test.p_value * _n_methods(evidence, evidence.reductions) < LEVEL)


def _recall(classes: Sequence[str], confusion: NDArray[np.intp]) -> dict[str, float]:
    totals = confusion.sum(axis=1)
    shares = np.diag(confusion) / np.where(totals > 0, totals, np.nan)
    return dict(zip(classes, shares.tolist(), strict=True))
