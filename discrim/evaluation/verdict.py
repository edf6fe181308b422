"""The verdict: which pipeline to take, its corrected score, and whether reducing helps.

**The reduction.** Candidates are all reductions, numbers of components and judges that are not significantly worse
than the one with the highest score (corrected t test at 5 %) and within the standard error of the highest score. The
simplest of them is chosen: linear before nonlinear, because linear maps have loadings; then the fewest components; then
the higher score. As many components as columns are no reduction.

**The partner.** All columns are classified by several common classifiers; the best of these lines is the partner. If it
is significantly better than the reduction, and than the reduction with the highest score, the verdict is to keep the
columns. Otherwise the reduction is recommended: it helps if it is significantly better; it is as good if the interval
of the difference is narrow; else no difference can be shown, and the interval is stated.

**The p values.** Both sides were chosen among several, so the p value is multiplied by the number that the better side
was chosen from, and by two if PCA is compared as well. In simulations, methods that do not differ are called different
in fewer than 5 of 100 runs. The choice, partners included, is repeated in the bias-corrected score.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from discrim.evaluation.methods import METHODS
from discrim.evaluation.resampling import NOT_OF_LABELS, BiasCorrectedScore, Bootstrap, HeldOutLabels
from discrim.evaluation.results import ITSELF, Cell, Results, Scores
from discrim.evaluation.statistics import corrected_t_test
from discrim.evaluation.summary import LEVEL, NO_DIFFERENCE, least_score, limits
from discrim.evaluation.wording import AS_WELL, COSTS, HELPS, NO_SIGNAL, NOT_SHOWN, headline, sentences

Array = NDArray[np.float64]
MARGIN = 0.02  # a difference whose whole interval lies within it counts as none
UNBALANCED = 0.6  # share of the largest class above which balanced accuracy decides


@dataclass(frozen=True)
class Contrast:
    """Comparison of the reduction with another pipeline.

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
        p value of the corrected t test, adjusted for the number of candidates.
    detectable : float
        Smallest difference of this sign that would be significant; NaN if the splits do not differ.
    finding : str
        "helps", "costs", "as well" or "not shown".
    score : float
        Score of the other pipeline, corrected for its choice if predictions of rows are known.
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
        """Return the finding in the words of a `Difference`."""
        return {HELPS: "better", COSTS: "worse"}.get(self.finding, NO_DIFFERENCE)


@dataclass(frozen=True, eq=False)
class Verdict:
    """Recommendation of a comparison, with its evidence.

    Attributes
    ----------
    recommended : Cell
        Method, number of components and classifier to use; method "raw" if all columns should be kept.
    reduction : Cell
        The best choice among reductions: the recommended one, unless all columns should be kept.
    score : float
        Mean score of the recommended pipeline over the splits on which it was also chosen.
    low : float
        Lower end of the 95 % interval of that score.
    high : float
        Upper end of that interval.
    bias_corrected : BiasCorrectedScore or None
        Score of the recommendation on rows that were not used for the choice; None if predictions are not known.
    reduction_score : float
        Score of the reduction, corrected for its choice if predictions of rows are known.
    best : Cell
        The reduction with the highest mean score.
    best_score : float
        That score.
    linear : Cell or None
        Choice among the linear methods, if the reduction is not linear; else None.
    linear_score : float
        Its mean score; NaN if there is none.
    majority : float
        Score of predicting the class with most training rows; NaN if predictions are not known.
    against_raw : Contrast or None
        The reduction compared with the best line of all columns.
    against_pca : Contrast or None
        The reduction compared with the best line of PCA, if it is another method.
    finding : str
        One of "helps", "costs", "as well", "not shown" and "no signal".
    headline : str
        The finding in a few words.
    sentences : tuple of str
        The answer in words: what to do; compared with what, by how much, how sure; what it is good for.
    metric : str
        The score that decided.
    n_methods : int
        Number of reductions that were compared.
    n_features, n_rows : int
        Size of the table; 0 if it is not known.
    n_splits : int
        Number of splits on which all judged pipelines have results.
    classes : tuple of str
        Names of the classes.
    confusion : array of shape (n_classes, n_classes) or None
        Held-out rows by class (rows) and class predicted by the recommended pipeline (columns), all splits.
    recall : dict of str to float
        Recall of each class on held-out rows, over the splits that were used for the choice:
        slightly optimistic, as `score` is.
    """

    recommended: Cell
    reduction: Cell
    score: float
    low: float
    high: float
    bias_corrected: BiasCorrectedScore | None
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
    n_splits: int
    classes: tuple[str, ...]
    confusion: NDArray[np.intp] | None
    recall: dict[str, float]

    @property
    def shown_score(self) -> tuple[float, float, float, str]:
        """Return the score, its interval and how it was computed; the corrected score if there is one."""
        found = self.bias_corrected
        if found is None:
            return self.score, self.low, self.high, "on the splits that were used for the choice"
        return found.mean, found.low, found.high, f"on rows not used for the choice ({found.method})"

    @property
    def over_raw(self) -> float:
        """Return the score of the reduction minus that of the best line of all columns, both as they are printed."""
        return self._over(self.against_raw)

    @property
    def over_pca(self) -> float:
        """Return the score of the reduction minus that of the best line of PCA, both as they are printed."""
        return self._over(self.against_pca)

    def _over(self, other: Contrast | None) -> float:
        ours = self.reduction_score if self.finding == COSTS else self.shown_score[0]
        return np.nan if other is None else round(ours, 3) - round(other.score, 3)

    def __str__(self) -> str:
        return " ".join(self.sentences)


def metric_for(counts: Mapping[Any, float], metric: str) -> str:
    """Return the metric; "auto" means accuracy, or balanced accuracy if the largest class has too large a share."""
    if metric == "auc" and len(counts) != 2:
        raise ValueError(f"metric='auc' must be used with two classes; got {len(counts)}. Use 'mcc' instead.")
    if metric != "auto":
        return metric
    return "balanced_accuracy" if max(counts.values()) > UNBALANCED * sum(counts.values()) else "accuracy"


@dataclass(frozen=True, eq=False)
class PipelineChoice:
    """Choice of a pipeline by its scores: those of all results, or those of a bootstrap sample.

    n_methods : number of reductions that were compared, with those dropped after the first splits
    n_features : number of columns; 0 if it is not known
    """

    table: Scores
    nonlinear: frozenset[str] = frozenset()
    n_methods: int = 0
    n_features: int = 0

    @cached_property
    def reductions(self) -> list[int]:
        """Return the positions of the cells with fewer components than columns."""
        most = self.n_features or np.inf
        return [at for at, cell in enumerate(self.table.cells) if cell.method != "raw" and cell.k < most]

    @cached_property
    def partners(self) -> list[int]:
        """Return the positions of the cells of all columns, and of a caller's classifier that uses all of them."""
        most = self.n_features or np.inf
        return [
            at
            for at, cell in enumerate(self.table.cells)
            if cell.method == "raw" or (cell.classifier == ITSELF and cell.k >= most)
        ]

    @cached_property
    def pca(self) -> list[int]:
        """Return the positions of the cells of PCA."""
        return [at for at in self.reductions if self.table.cells[at].method == "pca"]

    def best_of(self, members: Sequence[int], scores: Array | None = None) -> int:
        """Return the cell with the highest mean; of equal ones that with fewer components."""
        means = (self.table.values if scores is None else scores).mean(axis=1)
        cells = self.table.cells
        return min(members, key=lambda at: (-round(float(means[at]), 12), cells[at].k, cells[at]))

    def reduction(self, scores: Array, among: Sequence[int] | None = None) -> int:
        """Return the simplest reduction that is not significantly worse than the best (scores: cells × splits)."""
        members, cells = np.array(self.reductions if among is None else among), self.table.cells
        means = scores[members].mean(axis=1)
        best = int(means.argmax())
        if scores.shape[1] < 2:
            return int(members[best])
        gaps = (scores[members[best]] - scores[members]).T
        test = corrected_t_test(gaps, self.table.ratio, one_sided=True)
        allowed = corrected_t_test(scores[members[best]], self.table.ratio).standard_error
        # An equal gap in every split has no variance to test: then its size alone decides.
        shown = (np.asarray(test.p_value) < LEVEL) & (np.asarray(test.standard_error) > 0)
        good = ~shown & (means >= means[best] - allowed - 1e-12)
        good[best] = True

        def simplicity(at: int) -> tuple[Any, ...]:
            return cells[at].method in self.nonlinear, cells[at].k, -round(float(scores[at].mean()), 12), cells[at]

        return min(members[good].tolist(), key=simplicity)

    def pair(self, scores: Array) -> tuple[int, int]:
        """Return the recommended pipeline and the reduction; they differ if all columns are significantly better."""
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
        """Return the p value times the number that the better side was chosen from, and times two with PCA."""
        if not test.standard_error > 0:
            return 1.0
        return min(1.0, float(test.p_value) * self.looked_at(family, test.mean > 0) * (1 + bool(self.pca)))

    def looked_at(self, family: Sequence[int], ours: bool) -> int:
        """Return the number of methods that the reduction was chosen from, or of lines in the other family."""
        if not ours:
            return len({(self.table.cells[at].method, self.table.cells[at].classifier) for at in family})
        rest = {self.table.cells[at].method for at in self.reductions if at not in family}
        return max(len(rest), self.n_methods - (not set(family) & set(self.partners)))

    def contrast(self, chosen: int, family: Sequence[int], drawn: Bootstrap | None = None) -> Contrast | None:
        """Compare the reduction with the best of a family; return None if it belongs to the family.

        drawn : if known, the other's score is that on rows that were not used to choose it from its family
        """
        if not family or chosen in family or self.table.n_splits < 2:
            return None
        other = self.best_of(family)
        values = self.table.values[chosen] - self.table.values[other]
        test, (low, high) = corrected_t_test(values, self.table.ratio), limits(values, self.table.ratio, -1.0, 1.0)
        p_value, chances = self.p_value(test, family), self.looked_at(family, test.mean > 0) * (1 + bool(self.pca))
        reach = stats.t.isf(LEVEL / 2 / chances, len(values) - 1) * test.standard_error
        detectable = float(reach) if test.standard_error > 0 else np.nan
        if p_value < LEVEL:
            finding = HELPS if test.mean > 0 else COSTS
        else:
            finding = AS_WELL if low >= -MARGIN and high <= MARGIN else NOT_SHOWN
        score = float(self.table.values[other].mean())
        if drawn is not None:
            score = drawn.score(drawn.choose(lambda scores: self.best_of(family, scores))).mean
        return Contrast(self.table.cells[other], test.mean, low, high, p_value, detectable, finding, score)


def pipeline_choice(results: Results, metric: str, nonlinear: Iterable[str] = ()) -> PipelineChoice | None:
    """Return the choice among the results of one run; None if no reduction has results.

    nonlinear : names of the methods that are not a linear map of the features
    """
    everything = results.scores(metric)
    n_methods = len({cell.method for cell in everything.cells if cell.method != "raw"})
    n_features = results.sizes.get("features", 0)
    choice = PipelineChoice(everything.complete(), frozenset(nonlinear), n_methods, n_features)
    return choice if choice.reductions and choice.table.n_splits else None


def promising(choice: PipelineChoice) -> list[Cell]:
    """Return the best reduction, the chosen one and the best of PCA, around which more K are worth trying."""
    _, chosen = choice.pair(choice.table.values)
    found = [choice.best_of(choice.reductions), chosen]
    if choice.pca and chosen not in choice.pca and choice.table.n_splits > 1:
        found.append(choice.best_of(choice.pca))
    return [choice.table.cells[at] for at in found]


def verdict_of(results: Results, metric: str, nonlinear: Iterable[str] = ()) -> Verdict | None:
    """Judge the results of one run; return None if no reduction has results.

    Without the facts of the run there is no corrected score, no confusion matrix and no score of the majority class.
    """
    choice = pipeline_choice(results, metric, nonlinear)
    if choice is None:
        return None
    n_rows = 0 if results.facts is None else len(results.facts.codes)
    found = _judged(choice, metric, HeldOutLabels.from_results(results), n_rows)
    return replace(found, headline=headline(found), sentences=sentences(found))


def _judged(choice: PipelineChoice, metric: str, held_out: HeldOutLabels | None, n_rows: int) -> Verdict:
    """Return the verdict without its words."""
    table = choice.table
    taken, chosen = choice.pair(table.values)
    best, linear = choice.best_of(choice.reductions), _linear_instead(choice, chosen)
    majority, reduction_score = np.array([]), float(table.values[chosen].mean())
    confusion, drawn, bias_corrected, recall = None, None, None, {}
    if held_out is not None:
        majority = held_out.majority_scores(metric)
        if table.cells[taken] in held_out.cells:
            confusion = held_out.confusion(table.cells[taken])
            totals = confusion.sum(axis=1)
            shares = np.diag(confusion) / np.where(totals > 0, totals, np.nan)
            recall = dict(zip(held_out.classes, shares.tolist(), strict=True))
        if held_out.cells == table.cells and table.n_splits > 1 and metric not in NOT_OF_LABELS:
            drawn = held_out.bootstrap(metric)
            pairs = drawn.choose(choice.pair)
            bias_corrected = drawn.score([one for one, _ in pairs])
            reduction_score = drawn.score([one for _, one in pairs]).mean
    against_raw, against_pca = (choice.contrast(chosen, family, drawn) for family in (choice.partners, choice.pca))
    low, high = limits(table.values[taken], table.ratio, least_score(metric), 1.0)
    return Verdict(
        recommended=table.cells[taken],
        reduction=table.cells[chosen],
        score=float(table.values[taken].mean()),
        low=low,
        high=high,
        bias_corrected=bias_corrected,
        reduction_score=reduction_score,
        best=table.cells[best],
        best_score=float(table.values[best].mean()),
        linear=None if linear is None else table.cells[linear],
        linear_score=np.nan if linear is None else float(table.values[linear].mean()),
        majority=float(majority.mean()) if len(majority) else np.nan,
        against_raw=against_raw,
        against_pca=against_pca,
        finding=_finding(choice, chosen, against_raw, majority, bias_corrected),
        headline="",
        sentences=(),
        metric=metric,
        n_methods=choice.n_methods,
        n_features=choice.n_features,
        n_rows=n_rows,
        n_splits=table.n_splits,
        classes=() if held_out is None else held_out.classes,
        confusion=confusion,
        recall=recall,
    )


def _linear_instead(choice: PipelineChoice, chosen: int) -> int | None:
    """Return the choice among linear methods only, if the chosen method is not linear.

    A caller's own estimator is not known to be linear.
    """
    cells, linear = choice.table.cells, METHODS.keys() - choice.nonlinear
    members = [at for at in choice.reductions if cells[at].method in linear]
    if cells[chosen].method not in choice.nonlinear or not members:
        return None
    return choice.reduction(choice.table.values, members)


def _finding(
    choice: PipelineChoice,
    chosen: int,
    raw: Contrast | None,
    majority: Array,
    bias_corrected: BiasCorrectedScore | None = None,
) -> str:
    """Return what reducing does; "no signal" if neither a reduction nor all columns beat the largest class."""
    if raw is not None and raw.finding in (HELPS, COSTS):
        return raw.finding
    # two splits cannot be significant, however high the scores; rows not used for the choice still can
    beats_majority = bias_corrected is not None and len(majority) > 0 and bias_corrected.low > majority.mean()
    # with more test rows than training rows the corrected test has almost no power
    if not beats_majority and len(majority) > 1 and len(majority) == choice.table.n_splits and choice.table.ratio <= 1:
        for at in (chosen, *(choice.best_of(some) for some in (choice.reductions, choice.partners) if some)):
            gaps = choice.table.values[at] - majority
            test = corrected_t_test(gaps, choice.table.ratio, one_sided=True)
            tried = len(choice.partners) if at in choice.partners else choice.n_methods
            if test.p_value * max(1, tried) < LEVEL:
                break
        else:
            return NO_SIGNAL
    return NOT_SHOWN if raw is None else raw.finding
