"""Score against the number of components, for every method and classifier, with the interval of each mean."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from discrim.evaluation.statistics import corrected_interval
from discrim.evaluation.summary import METRICS, Scores, require_metric, scores_by_cell, test_to_train
from discrim.report.fitted import Array, Codes


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
    """The curves of a comparison, in the order methods came.

    Raw features have one k, the number of features, and are a level to compare with rather than a curve.
    """

    metric: str
    curves: tuple[AccuracyCurve, ...]

    @classmethod
    def of(cls, results: Any, metric: str | None = None) -> AccuracyCurveValues:
        """results : a Comparison, or rows of results such as a store's, of one data set."""
        rows = getattr(results, "rows", results)
        wanted = str(metric or getattr(results, "metric", "accuracy"))
        require_metric(wanted)
        good = [row for row in (rows() if callable(rows) else rows) if row["status"] == "ok"]
        ratio = test_to_train(good)
        by_curve: dict[tuple[str, str], dict[int, Scores]] = defaultdict(dict)
        for cell, by_split in scores_by_cell(good, wanted).items():
            by_curve[cell.method, cell.classifier][cell.k] = by_split
        return cls(wanted, tuple(_curve(*names, by_k, ratio) for names, by_k in by_curve.items()))

    @property
    def classifiers(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(curve.classifier for curve in self.curves))

    @property
    def methods(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(curve.method for curve in self.curves))

    @property
    def metric_in_words(self) -> str:
        return METRICS[self.metric]

    def of_classifier(self, classifier: str) -> Iterable[AccuracyCurve]:
        return (curve for curve in self.curves if curve.classifier == classifier)


def _curve(method: str, classifier: str, by_k: dict[int, Scores], ratio: float) -> AccuracyCurve:
    counts = sorted(by_k)
    values = [np.array([by_k[k][split] for split in sorted(by_k[k])]) for k in counts]
    limits = [corrected_interval(one, ratio) if len(one) > 1 else None for one in values]
    low, high = (
        np.array([np.nan if limit is None else getattr(limit, side) for limit in limits]) for side in ("low", "high")
    )
    means = np.array([one.mean() for one in values])
    sizes = np.array([len(one) for one in values])
    return AccuracyCurve(method, classifier, np.array(counts), means, low, high, sizes)
