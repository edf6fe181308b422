"""Measures that the papers print, computed from the results of one draw of the splits, and their tolerances."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from discrim.evaluation.classifiers import named
from discrim.evaluation.results import Result
from discrim.evaluation.statistics import paired_t_test, sign_test
from discrim.evaluation.summary import LEVEL
from discrim.papers.study import PrintedCell

Near = Callable[[PrintedCell, float, float], bool]  # arguments: a printed cell, our figure, the study's tolerance


@dataclass(frozen=True)
class Measure:
    """Measure that a paper prints.

    of : function of a cell's rows (and its opponent's if `paired`) that returns one figure, or one for each split
    near : True if ours is near the printed figure; None if the measure has no tolerance
    within : text that describes `near` for a tolerance
    shown : format of a figure
    """

    of: Callable[..., Any]
    near: Near | None = None
    within: Callable[[float], str] = str
    shown: str = ".2f"
    unit: str = ""
    paired: bool = False


def _accuracies(rows: list[Result]) -> NDArray[np.float64]:
    return np.array([100 * row.scores["accuracy"] for row in rows])


def _differences(rows: list[Result], others: list[Result]) -> NDArray[np.float64]:
    """Return the difference of accuracy in points for each split that both have."""
    by_split: dict[int, list[float]] = defaultdict(list)
    for of in (rows, others):
        for row in of:
            by_split[row.split].append(100 * row.scores["accuracy"])
    return np.array([ours - theirs for ours, theirs in (both for both in by_split.values() if len(both) == 2)])


def _tested(figure: Callable[[NDArray[np.float64]], float], least: int) -> Callable[..., Any]:
    """Return a function that tests the differences; it returns [] if fewer than `least` splits have both."""

    def of(rows: list[Result], others: list[Result]) -> Any:
        differences = _differences(rows, others)
        return float(figure(differences)) if len(differences) >= least else []

    return of


def _f_measure(rows: list[Result], *, smaller: bool) -> Any:
    """Return 2TP / (2TP + FP + FN) of the smaller or larger class over the test rows of all folds."""
    if not rows:
        return []
    hits, actual, predicted = (
        np.sum([row.scores[name] for row in rows], axis=0) for name in ("hits", "actual", "predicted")
    )
    at = actual.argmin() if smaller else actual.argmax()
    return float(2 * hits[at] / (actual[at] + predicted[at]))


def _score(name: str) -> Callable[[list[Result]], NDArray[np.float64]]:
    return lambda rows: np.array([row.scores[name] for row in rows if name in row.scores])


def _in_points(cell: PrintedCell, ours: float, tolerance: float) -> bool:
    """Return whether ours is within one printed deviation or, if none is printed, within the study's tolerance."""
    reach = tolerance if math.isnan(cell.printed_deviation) else cell.printed_deviation
    return abs(ours - cell.printed) <= reach + 1e-9


def _in_shares(cell: PrintedCell, ours: float, tolerance: float) -> bool:
    return abs(ours - cell.printed) <= tolerance / 100 + 1e-9


def _same_verdict(cell: PrintedCell, ours: float, tolerance: float) -> bool:
    return (cell.printed < LEVEL) == (ours < LEVEL)


def _within_points(tolerance: float) -> str:
    return "within one printed deviation" if math.isinf(tolerance) else f"within {tolerance:g} points of print"


def _f(smaller: bool) -> Measure:
    within = lambda tolerance: f"within {tolerance / 100:g} of print"  # noqa: E731
    return Measure(lambda rows: _f_measure(rows, smaller=smaller), _in_shares, within)


MEASURES: dict[str, Measure] = {
    "accuracy": Measure(_accuracies, _in_points, _within_points, unit="points"),
    "error": Measure(lambda rows: 100 - _accuracies(rows), _in_points, _within_points, unit="points"),
    "F smaller": _f(smaller=True),
    "F larger": _f(smaller=False),
    "sign p": Measure(
        _tested(lambda differences: sign_test(differences).p_value, 1),
        _same_verdict,
        lambda tolerance: f"on the printed side of p = {LEVEL:g}",
        ".4g",
        paired=True,
    ),
    "t": Measure(_tested(lambda differences: paired_t_test(differences).statistic, 2), paired=True),
    "margin": Measure(_score("margin"), shown=".4g"),
    "reconstruction error": Measure(_score("reconstruction_error"), shown=".4g"),
    "shift": Measure(_score("shift"), shown="g"),
}


def measure_of(cell: PrintedCell) -> Measure:
    return named(cell.measure, MEASURES, "measure")
