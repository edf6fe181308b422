"""Scores as charts: over the number of components with their intervals, and as ranks of methods over data sets."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from discrim.evaluation.results import Cell, Result, Results, Scores
from discrim.evaluation.statistics import friedman_test, nemenyi_critical_difference
from discrim.evaluation.summary import LEVEL, METRICS, cell_difference, least_score, limits, lines_of, require_metric
from discrim.report.chart import Axis, Chart, Mark, one_of, shortened
from discrim.report.drawing import Display
from discrim.report.fitted import Array, Codes
from discrim.tables.table_error import plural

RAW = "raw"
DASHES = ("solid", "solid", "solid", "solid", "dash", "dot", "dashdot", "dash")  # of curves that may coincide
TICK_GAP = 0.07  # between names on an axis, of its length


@dataclass(frozen=True, eq=False)
class AccuracyCurve:
    """Mean score of one method and classifier at every k, and Student's 95 % interval, corrected for shared rows.

    low, high : NaN where there is one split only
    """

    method: str
    classifier: str
    k: Codes
    mean: Array
    low: Array
    high: Array
    n_splits: Codes


@dataclass(frozen=True, eq=False)
class AccuracyCurveValues:
    """Curves of a comparison in the order of its methods.

    Raw features have one k, the number of features, and are a level to compare with rather than a curve.
    """

    metric: str
    curves: tuple[AccuracyCurve, ...]

    @classmethod
    def from_results(cls, results: Any, metric: str | None = None) -> AccuracyCurveValues:
        """Compute the curves of a Comparison, or of the rows of results of one data set."""
        rows = getattr(results, "rows", results)
        wanted = str(metric or getattr(results, "metric", "accuracy"))
        require_metric(wanted)
        known = list(rows() if callable(rows) else rows)
        table = results.scores(wanted) if isinstance(results, Results) else Scores.from_rows(known, wanted)
        if any(row.ok for row in known) and not table.cells:
            raise ValueError(f"No result has the score {wanted!r} ({METRICS[wanted]}). Pass another metric.")
        return cls(wanted, tuple(_curve(*names, by_k, table.ratio) for names, by_k in table.curves.items()))

    @property
    def classifiers(self) -> tuple[str, ...]:
        """Return the classifiers, those that judge a reduction first; others have only the level of raw features."""
        judges = {curve.classifier for curve in self.curves if curve.method != RAW}
        found = dict.fromkeys(curve.classifier for curve in self.curves)
        return tuple(sorted(found, key=lambda name: name not in judges))

    @property
    def methods(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(curve.method for curve in self.curves))

    def chart(
        self, classifier: str | None = None, methods: Iterable[str] | None = None, most_shown: int | None = None
    ) -> Chart:
        """Return the chart of one classifier; methods beyond `most_shown` are hidden until they are chosen."""
        classifier = one_of(classifier, self.classifiers, "classifier")
        wanted = [one_of(name, self.methods, "method") for name in (methods or self.methods)]
        curves = {curve.method: curve for curve in self.curves if curve.classifier == classifier}
        drawn = [curves[name] for name in wanted if name in curves]
        reductions = [curve for curve in drawn if curve.method != RAW]
        counts = sorted({int(k) for curve in reductions for k in curve.k}) or [1]
        ends, least = (counts[0], max(counts[-1], counts[0] + 1)), least_score(self.metric)
        marks = [mark for curve in drawn if curve.method == RAW for mark in _level(curve, ends, least)]
        for at, curve in enumerate(reductions):
            look = {"colour": at, "shown": most_shown is None or at < most_shown}
            line = {"legend": curve.method, "symbol": at, "dash": DASHES[at % len(DASHES)], "tip": "K = {x}: {y:.1f} %"}
            marks += _line_and_band(curve, curve.k, least, look | {"opacity": 0.12}, look | line)
        marks = sorted(marks, key=lambda mark: mark.part != "bands")  # bands lie below all lines
        ticks = {float(k): str(k) for k in _with_room(counts)}
        across = Axis("components", ticks=ticks, log=True)
        return Chart(tuple(marks), across, Axis(f"{METRICS[self.metric]} (%)"), classifier)


def _curve(method: str, classifier: str, by_k: dict[int, Array], ratio: float) -> AccuracyCurve:
    low, high = np.array([limits(values, ratio) for values in by_k.values()]).T
    means = np.array([values.mean() for values in by_k.values()])
    sizes = np.array([len(values) for values in by_k.values()])
    return AccuracyCurve(method, classifier, np.array(list(by_k)), means, low, high, sizes)


def _with_room(counts: list[int]) -> list[int]:
    """Return the ticks of a logarithmic axis: the ends, and those between that are far enough apart."""
    gap = math.log(counts[-1] / counts[0]) * TICK_GAP
    kept = counts[:1]
    for k in counts[1:-1]:
        if math.log(k / kept[-1]) >= gap and math.log(counts[-1] / k) >= gap:
            kept.append(k)
    return kept + counts[-1:] if len(counts) > 1 else kept


def _level(curve: AccuracyCurve, ends: tuple[int, int], least: float) -> list[Mark]:
    """Return the level of raw features, which does not depend on the number of components."""
    level = replace(curve, mean=curve.mean[[-1, -1]], low=curve.low[[-1, -1]], high=curve.high[[-1, -1]])
    legend = f"{curve.method} ({plural(int(curve.k[-1]), 'feature')})"
    line = {"legend": legend, "colour": "soft", "dash": "dash", "tip": "{y:.1f} %"}
    return _line_and_band(level, ends, least, {"colour": "soft", "opacity": 0.1}, line)


def _line_and_band(
    curve: AccuracyCurve, across: ArrayLike, least: float, band: Mapping[str, Any], line: Mapping[str, Any]
) -> list[Mark]:
    """Return the means, and their intervals cut to the possible range; no intervals for one split."""
    x, there = np.asarray(across, dtype=np.float64), np.isfinite(curve.low)
    marks = [Mark("line", "lines", x, 100 * curve.mean, name=curve.method, **line)]
    if there.any():
        low, high = (100 * np.clip(limit[there], least, 1.0) for limit in (curve.low, curve.high))
        outline = np.concatenate([x[there], x[there][::-1]]), np.concatenate([high, low[::-1]])
        marks.append(Mark("area", "bands", *outline, name=curve.method, **band))
    return marks


class AccuracyCurveDisplay(Display):
    """Mean score on held-out rows over the number of components, for every method, with its 95 % interval.

    Intervals are Student's, corrected for the rows that splits share. Raw features are a level, not a curve.

    {parameters}

    {attributes}
    artists_ : dict of dict
        Artists of matplotlib by part ("lines", "bands") and method; no bands for one split.

    Examples
    --------
    >>> from sklearn.datasets import load_wine
    >>> from discrim import AccuracyCurveDisplay, compare
    >>> X, y = load_wine(return_X_y=True)
    >>> found = compare(X, y, methods=["regularized-lda", "pca", "raw"], n_components=[1, 2], n_splits=3, n_jobs=1)
    >>> shown = AccuracyCurveDisplay.from_comparison(found, classifier="logistic")
    >>> sorted(shown.artists_["lines"])
    ['pca', 'raw', 'regularized-lda']
    """

    @classmethod
    def from_comparison(cls, results: Any, *, metric: str | None = None, ax: Any = None, **kwargs: Any) -> Self:
        """Draw the curves of a comparison.

        Parameters
        ----------
        results : Comparison or iterable of rows
            What `compare` gave, or rows of results of one data set.
        metric : str, default=None
            Which score; None for the comparison's own.
        {drawn}
        """
        return cls(AccuracyCurveValues.from_results(results, metric)).plot(ax, **kwargs)

    def plot(
        self, ax: Any = None, *, classifier: str | None = None, methods: Iterable[str] | None = None, **kwargs: Any
    ) -> Self:
        """Draw.

        Parameters
        ----------
        {ax}
        classifier : str, default=None
            Whose scores; None for the first that judges a reduction.
        methods : iterable of str, default=None
            Which curves; None for all.
        **kwargs : dict
            For matplotlib's `plot` of the lines.

        {returns}
        """
        return self._draw(self.values.chart(classifier, methods), ax, "lines", kwargs)


TIE = 1e-12
NAME = 20  # characters of a method's name, followed by its rank


@dataclass(frozen=True, eq=False)
class CriticalDifferenceValues:
    """Mean ranks of methods, best first; arrays are in that order.

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
    def from_scores(
        cls,
        scores: ArrayLike,
        methods: Sequence[str],
        datasets: Sequence[str] | None = None,
        *,
        outcomes: ArrayLike | None = None,
        alpha: float = LEVEL,
    ) -> CriticalDifferenceValues:
        """Compute the ranks from scores (data sets × methods; higher is better, none missing).

        outcomes : data sets × methods × methods, 1 where the first won, −1 where it lost, 0 for a tie; by default a
            higher score wins
        """
        table = np.asarray(scores, dtype=np.float64)
        friedman = friedman_test(table)
        ranks = friedman.mean_ranks
        if table.shape[1] != len(methods):
            raise ValueError(f"methods must name the {table.shape[1]} columns of scores; got {len(methods)} names.")
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
            friedman.f_p_value,
            alpha,
        )

    @classmethod
    def from_rows(
        cls, by_data: Mapping[str, Sequence[Result]], classifier: str, *, metric: str | Mapping[str, str] = "accuracy"
    ) -> CriticalDifferenceValues | None:
        """Compute the ranks from rows of results by data set; each method with the K chosen for it on that data set.

        metric : the score, or by data set the score that decides there: ranks of different scores can be averaged
        A win is a difference by the corrected t test at 5 %, anything else a tie. Only methods with results on every
        data set take part; None where there are fewer than two methods or two data sets.
        """
        decides = dict.fromkeys(by_data, metric) if isinstance(metric, str) else metric
        chosen = {name: _chosen_cells(rows, classifier, decides[name]) for name, rows in by_data.items()}
        chosen = {name: (scores, cells) for name, (scores, cells) in chosen.items() if cells}
        first = next((cells for _, cells in chosen.values()), {})
        shared = [method for method in first if all(method in cells for _, cells in chosen.values())]
        if len(shared) < 2 or len(chosen) < 2:
            return None
        means = [[float(scores.of_cell(cells[m]).mean()) for m in shared] for scores, cells in chosen.values()]
        outcomes = [
            [[_outcome(scores, cells[a], cells[b]) for b in shared] for a in shared]
            for scores, cells in chosen.values()
        ]
        return cls.from_scores(means, shared, list(chosen), outcomes=outcomes)

    def chart(self) -> Chart:
        """Return the chart of mean ranks, best on top; bars at the right join methods that do not differ."""
        rows = np.arange(len(self.methods))
        ranks, critical = self.mean_ranks, self.critical_difference
        edge = float(ranks.max()) + 0.3
        label = [f"critical difference {critical:.2f}"]
        marks = [
            Mark("line", "ruler", [1, 1 + critical], [-0.75, -0.75], colour=1, size=3),
            Mark("text", "ruler name", [1.0], [-1.15], texts=label, anchor="start", colour=1),
        ]
        for row, (method, rank) in enumerate(zip(self.methods, ranks.tolist(), strict=True)):
            marks.append(Mark("line", "stems", [1, rank], [row, row], name=method, colour="line", size=1))
        marks.append(Mark("points", "ranks", ranks, rows, colour=0, symbol=0, size=10, tip="mean rank {x:.2f}"))
        for at, (first, last) in enumerate(self.groups):
            across, name = [edge + 0.2 * at] * 2, f"{self.methods[first]} to {self.methods[last]}"
            marks.append(Mark("line", "bars", across, [first - 0.2, last + 0.2], name=name, colour="ink", size=5))
        names: dict[float, str] = {
            row: f"{shortened(method, NAME)}  {rank:.2f}"
            for row, method, rank in zip(rows.tolist(), self.methods, ranks, strict=True)
        }
        high = max(edge + 0.2 * len(self.groups), 1 + critical) + 0.1
        up = Axis(limits=(len(rows) - 0.4, -1.6), ticks=names)
        height = 1.5 + 0.36 * len(rows)
        return Chart(tuple(marks), Axis("mean rank", limits=(0.85, high), whole=True), up, height=height)


def alike(ranks: Array, critical: float) -> tuple[tuple[int, int], ...]:
    """Return the largest runs of at least two ascending ranks within the critical difference."""
    last = np.searchsorted(ranks, ranks + critical, side="right") - 1
    runs = [(first, int(end)) for first, end in enumerate(last) if end > first]
    return tuple(run for at, run in enumerate(runs) if at == 0 or run[1] > runs[at - 1][1])


def _chosen_cells(rows: Sequence[Result], classifier: str, metric: str) -> tuple[Scores, dict[str, Cell]]:
    """Return the scores on one data set, and the cell that was chosen for each method."""
    judged = Results([row for row in rows if row.cell.classifier == classifier])
    # methods with the same predictions share a line, but each has its rank
    names = [(name, line.k) for line in lines_of(judged, metric) for name in (line.method, *line.same)]
    return judged.scores(metric), {name: Cell(name, k, classifier) for name, k in names}


def _outcome(scores: Scores, a: Cell, b: Cell) -> int:
    """Return 1 if the first is better by the corrected test, −1 if it is worse, else 0."""
    found = None if a == b else cell_difference(scores, a, b)
    return 0 if found is None or not found.p_value < LEVEL else 1 if found.mean > 0 else -1


class CriticalDifferenceDisplay(Display):
    """Mean ranks of methods over data sets, best on top; a bar joins methods that do not differ (Nemenyi's test).

    Two mean ranks differ where they lie farther apart than the critical difference, drawn as a ruler above them.

    {parameters}

    {attributes}
    artists_ : dict of dict
        Artists of matplotlib by part: the "stems" by method, the "ranks" and the "ruler" with the name "", and the
        "bars", one for each group of methods that do not differ, by its first and last.
        `plot` passes its arguments to `scatter` of the ranks.

    Examples
    --------
    >>> from discrim import CriticalDifferenceDisplay
    >>> scores = [[0.9, 0.8, 0.7], [0.8, 0.7, 0.5], [0.9, 0.6, 0.7], [0.7, 0.6, 0.5]]
    >>> CriticalDifferenceDisplay.from_scores(scores, ["a", "b", "c"]).values.mean_ranks
    array([1.  , 2.25, 2.75])
    """

    _styled = "ranks"

    @classmethod
    def from_scores(
        cls,
        scores: ArrayLike,
        methods: Sequence[str],
        datasets: Sequence[str] | None = None,
        *,
        level: float = 0.05,
        ax: Any = None,
        **kwargs: Any,
    ) -> Self:
        """Draw from a table of scores.

        Parameters
        ----------
        scores : array-like of shape (n_datasets, n_methods)
            Higher is better, none missing.
        methods : sequence of str
            The names of the columns.
        datasets : sequence of str, default=None
            The names of the rows; None for numbers.
        level : float, default=0.05
            Of Nemenyi's test.
        {drawn}
        """
        return cls(CriticalDifferenceValues.from_scores(scores, methods, datasets, alpha=level)).plot(ax, **kwargs)

    @classmethod
    def from_results(
        cls,
        by_data: Mapping[str, Sequence[Result]],
        classifier: str,
        *,
        metric: str | Mapping[str, str] = "accuracy",
        ax: Any = None,
        **kwargs: Any,
    ) -> Self:
        """Draw from rows of results, each method at the K chosen for it on each data set.

        Parameters
        ----------
        by_data : dict of str to list of rows
            Rows of results (a comparison's `rows`) by data set.
        classifier : str
            Whose scores.
        metric : str or dict of str to str, default="accuracy"
            Which score, or the score of each data set.
        {drawn}
        """
        values = CriticalDifferenceValues.from_rows(by_data, classifier, metric=metric)
        if values is None:
            raise ValueError(
                f"by_data must have results of at least two methods with {classifier!r} on at least two data sets; got "
                f"{len(by_data)} data sets. Add data sets, or choose another classifier."
            )
        return cls(values).plot(ax, **kwargs)
