"""Score against the number of components."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Self

import numpy as np

from discrim.report.accuracy_curves import AccuracyCurve, AccuracyCurveValues
from discrim.report.displays.looks import GREY, axes_for, colour, marker, plain
from discrim.report.fitted import Array

RAW = "raw"


class AccuracyCurveDisplay:
    """The mean score on held-out rows over the number of components, for every method, with its 95 % interval.

    Intervals are Student's, corrected for the rows that splits share. Raw features are a level, not a curve.

    Parameters
    ----------
    values : AccuracyCurveValues. `from_comparison` makes them.

    Attributes
    ----------
    values : what is drawn.
    ax_, figure_ : where it was drawn.
    lines_ : dict from method to its line.
    bands_ : dict from method to its interval; none where there is one split only.
    legend_ : the legend.

    Examples
    --------
    >>> from sklearn.datasets import load_wine
    >>> from discrim import AccuracyCurveDisplay, compare
    >>> X, y = load_wine(return_X_y=True)
    >>> found = compare(X, y, methods=["regularized-lda", "pca", "raw"], n_components=[1, 2], n_splits=3, n_jobs=1)
    >>> shown = AccuracyCurveDisplay.from_comparison(found, classifier="svm")
    >>> sorted(shown.lines_)
    ['pca', 'raw', 'regularized-lda']
    """

    def __init__(self, values: AccuracyCurveValues) -> None:
        self.values = values

    @classmethod
    def from_comparison(cls, results: Any, *, metric: str | None = None, ax: Any = None, **kwargs: Any) -> Self:
        """results : what `compare` gave, or rows of results of one data set; the rest as in `plot`."""
        return cls(AccuracyCurveValues.of(results, metric)).plot(ax, **kwargs)

    def plot(
        self,
        ax: Any = None,
        *,
        classifier: str | None = None,
        methods: Iterable[str] | None = None,
        **kwargs: Any,
    ) -> Self:
        """classifier : None for the first there is; methods : None for all; kwargs go to the lines."""
        values = self.values
        classifier = _one_of(classifier, values.classifiers, "classifier")
        wanted = [_one_of(name, values.methods, "method") for name in (methods or values.methods)]
        self.ax_ = axes_for(ax)
        self.figure_ = self.ax_.figure
        self.lines_: dict[str, Any] = {}
        self.bands_: dict[str, Any] = {}
        curves = {curve.method: curve for curve in values.of_classifier(classifier)}
        drawn = [curves[name] for name in wanted if name in curves]
        for at, curve in enumerate(curve for curve in drawn if curve.method != RAW):
            self._draw_curve(curve, at, kwargs)
        for curve in drawn:
            if curve.method == RAW:
                self._draw_level(curve)
        ticks = sorted({int(k) for curve in drawn if curve.method != RAW for k in curve.k})
        self.ax_.set(xlabel="components", ylabel=f"{values.metric_in_words} (%)", title=plain(classifier))
        if 0 < len(ticks) <= 12:
            self.ax_.set_xticks(ticks)
        self.legend_ = self.ax_.legend(fontsize="small")
        return self

    def _draw_curve(self, curve: AccuracyCurve, at: int, style: dict[str, Any]) -> None:
        look = {"color": colour(at), "marker": marker(at), "markersize": 5, "label": plain(curve.method)} | style
        self.lines_[curve.method] = self.ax_.plot(curve.k, 100 * curve.mean, **look)[0]
        if np.isfinite(curve.low).any():
            limits = _percent(curve.low), _percent(curve.high)
            self.bands_[curve.method] = self.ax_.fill_between(curve.k, *limits, color=look["color"], alpha=0.18, lw=0)

    def _draw_level(self, curve: AccuracyCurve) -> None:
        label = f"{plain(curve.method)} ({curve.k[-1]} features)"
        level = 100 * curve.mean[-1]
        self.lines_[curve.method] = self.ax_.axhline(level, color=GREY, linestyle="--", label=label)
        if np.isfinite(curve.low[-1]):
            limits = _percent(curve.low)[-1], _percent(curve.high)[-1]
            self.bands_[curve.method] = self.ax_.axhspan(*limits, color=GREY, alpha=0.1, lw=0)


def _percent(limit: Array) -> Array:
    """Limits of an interval, within what a score can be."""
    return 100 * np.clip(limit, 0.0, 1.0)


def _one_of(name: str | None, there: tuple[str, ...], noun: str) -> str:
    if not there:
        raise ValueError("There are no results to draw: every trial failed or was skipped.")
    if name is None:
        return there[0]
    if name not in there:
        raise ValueError(f"{noun} {name!r} is not among the results. There are {', '.join(there)}.")
    return name
