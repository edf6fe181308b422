"""Score against the number of components, for every method and classifier, with the interval of each mean."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike

from discrim.evaluation.results import Results, Scores
from discrim.evaluation.summary import METRICS, least_score, limits, require_metric
from discrim.report.chart import Axis, Chart, Mark, one_of
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
        counts = sorted({int(k) for curve in drawn if curve.method != RAW for k in curve.k}) or [1]
        ends = np.array([counts[0], max(counts[-1], counts[0] + 1)], dtype=np.float64)
        least = least_score(self.metric)
        marks = [mark for curve in drawn if curve.method == RAW for mark in _level(curve, ends, least)]
        for at, curve in enumerate(curve for curve in drawn if curve.method != RAW):
            marks += _curve_marks(curve, at, least, most_shown is None or at < most_shown)
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


def _curve_marks(curve: AccuracyCurve, at: int, least: float, shown: bool) -> list[Mark]:
    name, tip, dash = curve.method, "K = {x}: {y:.1f} %", DASHES[at % len(DASHES)]
    line = Mark("line", "lines", curve.k, 100 * curve.mean, name, name, at, at, dash=dash, tip=tip, shown=shown)
    return [*_band(curve, curve.k, least, at, 0.12, shown), line]


def _level(curve: AccuracyCurve, ends: Array, least: float) -> list[Mark]:
    """Return the level of raw features, which does not depend on the number of components."""
    legend, score = f"{curve.method} ({plural(int(curve.k[-1]), 'feature')})", np.full(2, 100 * curve.mean[-1])
    tip = "{y:.1f} %"
    line = Mark("line", "lines", ends, score, name=curve.method, legend=legend, colour="soft", dash="dash", tip=tip)
    return [*_band(curve, ends, least, "soft", 0.1), line]


def _band(
    curve: AccuracyCurve, across: ArrayLike, least: float, hue: int | str, opacity: float, shown: bool = True
) -> list[Mark]:
    """Return the interval at every k, cut to the possible range; empty for one split."""
    there = np.isfinite(curve.low)
    if not there.any():
        return []
    low, high = (100 * np.clip(limit[there], least, 1.0) for limit in (curve.low, curve.high))
    x = np.asarray(across, dtype=np.float64)
    x, low, high = (x, low[[-1, -1]], high[[-1, -1]]) if curve.method == RAW else (x[there], low, high)
    outline = np.concatenate([x, x[::-1]]), np.concatenate([high, low[::-1]])
    return [Mark("area", "bands", *outline, name=curve.method, colour=hue, opacity=opacity, shown=shown)]


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
