"""The verdict: which pipeline to take, its corrected score, and whether reducing helps.

**The reduction.** Of all reductions, numbers of components and judges that are not shown to be worse than the one with
the highest score (by the corrected t test at 5 %, nor by more than the standard error of the highest score), the
simplest: linear before nonlinear, since linear maps have loadings, then the fewest components, then the higher score.
Components as many as columns are no reduction.

**The partner.** All columns are classified by several common classifiers, and the best of these lines is the partner.
Where it is shown to be better than the reduction, and than the reduction with the highest score, the verdict is to keep
the columns. Otherwise the reduction is recommended: it helps where it is shown to be better, else it is as good.

**The p values.** Either side was chosen among several, so the p value is multiplied by how many the better side was
chosen from, and by two where PCA is compared as well. Simulated, methods that do not differ are called different in
fewer than 5 of 100 runs. The choice, partners included, is repeated in the bias-corrected score.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from discrim.evaluation.held_out import NOT_OF_LABELS, HeldOutLabels, HonestScore
from discrim.evaluation.methods import METHODS
from discrim.evaluation.results import ITSELF, Cell, Result, RunFacts, Scores
from discrim.evaluation.statistics import corrected_t_test
from discrim.evaluation.summary import LEVEL, NO_DIFFERENCE, limits
from discrim.evaluation.wording import AS_WELL, COSTS, HELPS, NO_SIGNAL, NOT_SHOWN, headline, sentences

Array = NDArray[np.float64]
MARGIN = 0.02  # differences within it, with their whole interval, are called none
UNBALANCED = 0.6  # share of the largest class above which balanced accuracy decides


@dataclass(frozen=True)
class Contrast:
    """The reduction compared with another pipeline.

    Attributes
    ----------
    other : Cell
        The other pipeline: the best of its kind.
    difference : float
        Mean score of the reduction minus the other's.
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
    score : float
        The other's score, corrected for its choice where the rows tell.
    """

    other: Cell
    difference: float
    low: float
    high: float
    p_value: float
    detectable: float
    finding: str
    score: float = np.nan

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
        Method, number of components and classifier to take; method "raw" where all columns should be kept.
    reduction : Cell
        The reduction to take: the recommended one, unless all columns should be kept.
    score : float
        Mean score of the recommended pipeline over the splits on which it was also chosen.
    low : float
        Lower end of the 95 % interval of that score.
    high : float
        Upper end of that interval.
    honest : HonestScore or None
        The score of what is recommended on rows that had no part in the choice; None where rows do not tell.
    reduction_score : float
        Score of the reduction, corrected for its choice where the rows tell.
    best : Cell
        The reduction with the highest mean score.
    best_score : float
        That score.
    linear : Cell or None
        What would be recommended of the linear methods, where the reduction is not linear; else None.
    linear_score : float
        Its mean score; NaN where there is none.
    majority : float
        Score of naming the class with most training rows; NaN where rows do not tell.
    against_raw : Contrast or None
        The reduction compared with the best line of all columns.
    against_pca : Contrast or None
        The reduction compared with the best line of PCA, where it is another method.
    finding : str
        One of "helps", "costs", "as well", "not shown" and "no signal".
    headline : str
        The finding in a few words.
    sentences : tuple of str
        The answer in words: what to do; against what, by how much, how sure; what it is good for.
    metric : str
        The score that decided.
    n_methods : int
        Reductions that were looked at.
    n_features, n_rows : int
        Size of the table; 0 where rows do not tell.
    classes : tuple of str
        Names of the classes.
    confusion : array of shape (n_classes, n_classes) or None
        Held-out rows of each class (rows) that the recommended pipeline took for each class (columns), all splits.
    recall : dict of str to float
        Of every class, the share of its held-out rows that were recognised, over the splits on which the pipeline was
        also chosen: slightly optimistic, as `score` is.
    """

    recommended: Cell
    reduction: Cell
    score: float
    low: float
    high: float
    honest: HonestScore | None
    reduction_score: float
    best: Cell
    best_score: float
    linear: Cell | None
    linear_score: float
    majority: float
    against_raw: Contrast | None
    against_pca: Contrast | None
    finding: str
    headline: str
    sentences: tuple[str, ...]
    metric: str
    n_methods: int
    n_features: int
    n_rows: int
    classes: tuple[str, ...]
    confusion: NDArray[np.intp] | None
    recall: dict[str, float]

    @property
    def told(self) -> tuple[float, float, float, str]:
        """The score to go by with its interval, and how it was found: the corrected one where there is one."""
        honest = self.honest
        if honest is None:
            return self.score, self.low, self.high, "on the splits it was chosen on"
        return honest.mean, honest.low, honest.high, f"on rows that had no part in the choice ({honest.method})"

    @property
    def over_raw(self) -> float:
        """Score of the reduction minus that of the best line of all columns, both corrected where the rows tell."""
        if self.against_raw is None:
            return np.nan
        return (self.reduction_score if self.finding == COSTS else self.told[0]) - self.against_raw.score

    def __str__(self) -> str:
        return " ".join(self.sentences)


def metric_for(counts: Mapping[Any, float], metric: str) -> str:
    """The score that decides: as asked for, or with "auto" accuracy unless the largest class has too large a share."""
    if metric == "auc" and len(counts) != 2:
        raise ValueError(f"metric='auc' must be used with two classes; got {len(counts)}. Use 'mcc' instead.")
    if metric != "auto":
        return metric
    return "balanced_accuracy" if max(counts.values()) > UNBALANCED * sum(counts.values()) else "accuracy"


@dataclass(frozen=True, eq=False)
class PipelineChoice:
    """How a pipeline is chosen by its scores: those of all results, or those of a bootstrap sample.

    n_methods : reductions that were looked at, also those that were dropped after the first splits
    """

    table: Scores
    nonlinear: frozenset[str] = frozenset()
    n_methods: int = 0

    @property
    def n_features(self) -> int:
        return max((cell.k for cell in self.table.cells if cell.method == "raw"), default=0)

    @property
    def reductions(self) -> list[int]:
        """All that have fewer components than there are columns."""
        most = self.n_features or np.inf
        return [at for at, cell in enumerate(self.table.cells) if cell.method != "raw" and cell.k < most]

    @property
    def partners(self) -> list[int]:
        """The lines of all columns, and those of a caller's classifier that sees no fewer."""
        most = self.n_features or np.inf
        return [
            at
            for at, cell in enumerate(self.table.cells)
            if cell.method == "raw" or (cell.classifier == ITSELF and cell.k >= most)
        ]

    def of_method(self, method: str) -> list[int]:
        return [at for at in self.reductions if self.table.cells[at].method == method]

    def best_of(self, members: Sequence[int], scores: Array | None = None) -> int:
        """The highest mean among them; of equals the one with fewer components."""
        means = (self.table.values if scores is None else scores).mean(axis=1)
        cells = self.table.cells
        return min(members, key=lambda at: (-round(float(means[at]), 12), cells[at].k, cells[at]))

    def reduction(self, scores: Array, among: Sequence[int] | None = None) -> int:
        """The simplest reduction that is not shown to be worse than the best, by these scores (cells × splits)."""
        members, cells = np.array(self.reductions if among is None else among), self.table.cells
        means = scores[members].mean(axis=1)
        best = int(means.argmax())
        if scores.shape[1] < 2:
            return int(members[best])
        gaps = (scores[members[best]] - scores[members]).T
        test = corrected_t_test(gaps, self.table.ratio, alternative="greater")
        allowed = corrected_t_test(scores[members[best]], self.table.ratio).standard_error
        # The same gap in every split leaves nothing to judge it by: then its size alone decides.
        shown = (np.asarray(test.p_value) < LEVEL) & (np.asarray(test.standard_error) > 0)
        good = ~shown & (means >= means[best] - allowed - 1e-12)
        good[best] = True

        def simplicity(at: int) -> tuple[Any, ...]:
            return cells[at].method in self.nonlinear, cells[at].k, -round(float(scores[at].mean()), 12), cells[at]

        return min(members[good].tolist(), key=simplicity)

    def pair(self, scores: Array) -> tuple[int, int]:
        """The pipeline to take, and the reduction: one and the same, unless all columns are shown to be better."""
        chosen = self.reduction(scores)
        if not self.partners or scores.shape[1] < 2:
            return chosen, chosen
        partner = self.best_of(self.partners, scores)
        for at in dict.fromkeys([chosen, self.best_of(self.reductions, scores)]):
            test = corrected_t_test(scores[at] - scores[partner], self.table.ratio)
            if not (test.mean < 0 and self.p_value(test, self.partners) < LEVEL):
                return at, at
            chosen = at
        return partner, chosen

    def p_value(self, test: Any, family: Sequence[int]) -> float:
        """The p value times how many the better side was chosen from, and times two where PCA is compared as well."""
        if not test.standard_error > 0:
            return 1.0
        return min(1.0, float(test.p_value) * self.looked_at(family, test.mean > 0) * self.n_tests)

    def looked_at(self, family: Sequence[int], ours: bool) -> int:
        """How many methods the reduction was chosen from, or lines the best of the family."""
        if not ours:
            return len({(self.table.cells[at].method, self.table.cells[at].classifier) for at in family})
        rest = {self.table.cells[at].method for at in self.reductions if at not in family}
        return max(len(rest), self.n_methods - (not set(family) & set(self.partners)))

    @property
    def n_tests(self) -> int:
        return 1 + bool(self.of_method("pca"))

    def contrast(self, chosen: int, family: Sequence[int]) -> Contrast | None:
        """Compare the reduction with the best of a family; None where it is of the family itself."""
        if not family or chosen in family or self.table.n_splits < 2:
            return None
        other = self.best_of(family)
        values = self.table.values[chosen] - self.table.values[other]
        test, (low, high) = corrected_t_test(values, self.table.ratio), limits(values, self.table.ratio, -1.0, 1.0)
        p_value, looked_at = self.p_value(test, family), self.looked_at(family, True)
        reach = stats.t.isf(LEVEL / 2 / looked_at / self.n_tests, len(values) - 1) * test.standard_error
        detectable = float(reach) if test.standard_error > 0 else np.nan
        if p_value < LEVEL:
            finding = HELPS if test.mean > 0 else COSTS
        else:
            finding = AS_WELL if low >= -MARGIN and high <= MARGIN else NOT_SHOWN
        score = float(self.table.values[other].mean())
        return Contrast(self.table.cells[other], test.mean, low, high, p_value, detectable, finding, score)


def verdict_of(
    rows: Sequence[Result], metric: str, facts: RunFacts | None = None, nonlinear: Iterable[str] = ()
) -> Verdict | None:
    """Judge the results of one run; None where no reduction has results.

    facts : what was kept of the run: without it there is no corrected score, no confusion, no majority
    nonlinear : names of the methods that are no linear map of the features
    """
    everything = Scores.of(rows, metric)
    n_methods = len({cell.method for cell in everything.cells if cell.method != "raw"})
    choice = PipelineChoice(everything.complete(), frozenset(nonlinear), n_methods)
    if not choice.reductions or choice.table.n_splits == 0:
        return None
    held_out = HeldOutLabels.of(rows, facts)
    found = _judged(choice, metric, held_out)
    n_rows = 0 if facts is None else len(facts.codes)
    classes = () if held_out is None else held_out.classes
    cell = found.recommended
    confusion = None if held_out is None or cell not in held_out.cells else held_out.confusion(cell)
    recall = {} if confusion is None else _recall(classes, confusion)
    found = replace(found, n_rows=n_rows, classes=classes, confusion=confusion, recall=recall)
    return replace(found, headline=headline(found), sentences=sentences(found))


def _judged(choice: PipelineChoice, metric: str, held_out: HeldOutLabels | None) -> Verdict:
    """The verdict without its words."""
    table = choice.table
    taken, chosen = choice.pair(table.values)
    best, linear = choice.best_of(choice.reductions), _linear_instead(choice, chosen)
    against_raw, against_pca = (
        choice.contrast(chosen, choice.partners),
        choice.contrast(chosen, choice.of_method("pca")),
    )
    honest, majority, reduction_score = None, np.array([]), float(table.values[chosen].mean())
    if held_out is not None:
        majority = held_out.majority_scores(metric)
        if held_out.cells == table.cells and table.n_splits > 1 and metric not in NOT_OF_LABELS:
            drawn = held_out.bootstrap(metric)
            honest = drawn.score(lambda scores: choice.pair(scores)[0])
            reduction_score = drawn.score(lambda scores: choice.pair(scores)[1]).mean
            if against_raw is not None:
                partner = drawn.score(lambda scores: choice.best_of(choice.partners, scores))
                against_raw = replace(against_raw, score=partner.mean)
    low, high = limits(table.values[taken], table.ratio, -1.0, 1.0)
    return Verdict(
        recommended=table.cells[taken],
        reduction=table.cells[chosen],
        score=float(table.values[taken].mean()),
        low=low,
        high=high,
        honest=honest,
        reduction_score=reduction_score,
        best=table.cells[best],
        best_score=float(table.values[best].mean()),
        linear=None if linear is None else table.cells[linear],
        linear_score=np.nan if linear is None else float(table.values[linear].mean()),
        majority=float(majority.mean()) if len(majority) else np.nan,
        against_raw=against_raw,
        against_pca=against_pca,
        finding=_finding(choice, chosen, against_raw, majority, honest),
        headline="",
        sentences=(),
        metric=metric,
        n_methods=choice.n_methods,
        n_features=choice.n_features,
        n_rows=0,
        classes=(),
        confusion=None,
        recall={},
    )


def _linear_instead(choice: PipelineChoice, chosen: int) -> int | None:
    """What would be recommended if there were linear methods only, where that is another.

    Of a caller's own estimator it is not known whether it is linear.
    """
    cells, linear = choice.table.cells, METHODS.keys() - choice.nonlinear
    members = [at for at in choice.reductions if cells[at].method in linear]
    if cells[chosen].method not in choice.nonlinear or not members:
        return None
    return choice.reduction(choice.table.values, members)


def _finding(
    choice: PipelineChoice, chosen: int, raw: Contrast | None, majority: Array, honest: HonestScore | None = None
) -> str:
    """What reducing does; where neither a reduction nor all columns beat the largest class there is no signal."""
    if raw is not None and raw.finding in (HELPS, COSTS):
        return raw.finding
    # two splits show nothing, however high the scores: rows that had no part in the choice tell all the same
    told = honest is not None and len(majority) > 0 and honest.low > majority.mean()
    # with more test rows than training rows the corrected test shows next to nothing, so its silence says nothing
    if not told and len(majority) > 1 and len(majority) == choice.table.n_splits and choice.table.ratio <= 1:
        best = [choice.best_of(some) for some in (choice.reductions, choice.partners) if some]
        if not any(_beats(choice, at, majority) for at in (chosen, *best)):
            return NO_SIGNAL
    return NOT_SHOWN if raw is None else raw.finding


def _beats(choice: PipelineChoice, at: int, majority: Array) -> bool:
    """Whether a pipeline is shown to do better than naming the largest class, for as many as it was chosen from."""
    test = corrected_t_test(choice.table.values[at] - majority, choice.table.ratio, alternative="greater")
    if test.standard_error == 0:
        return bool(test.mean > 0)
    tried = len(choice.partners) if at in choice.partners else choice.n_methods
    return bool(test.p_value * max(1, tried) < LEVEL)


def _recall(classes: Sequence[str], confusion: NDArray[np.intp]) -> dict[str, float]:
    totals = confusion.sum(axis=1)
    shares = np.diag(confusion) / np.where(totals > 0, totals, np.nan)
    return dict(zip(classes, shares.tolist(), strict=True))
