"""What the papers print, from the result rows of one draw of the splits; and when ours is near it."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from discrim.evaluation.methods import named
from discrim.evaluation.result import Result
from discrim.evaluation.statistics import paired_t_test, sign_test
from discrim.evaluation.study import PrintedCell
from discrim.evaluation.summary import LEVEL

Near = Callable[[PrintedCell, float, float], bool]  # of a printed cell, our figure, the study's tolerance


@dataclass(frozen=True)
class Measure:
    """A figure of a paper's kind.

    of : the figures (one, or one per split) of a cell's rows, and of its opponent's where `paired`
    near : whether ours is near print; None where that has no meaning
    within : what near means, in words, for a tolerance
    shown : how a figure is written
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
    """Points of accuracy above the other's, for each split that both have."""
    by_split: dict[int, list[float]] = defaultdict(list)
    for of in (rows, others):
        for row in of:
            by_split[row.split].append(100 * row.scores["accuracy"])
    return np.array([ours - theirs for ours, theirs in (both for both in by_split.values() if len(both) == 2)])


def _tested(figure: Callable[[NDArray[np.float64]], float], least: int) -> Callable[..., Any]:
    """The figure of a test of the differences; none where fewer than `least` splits have both."""

    def of(rows: list[Result], others: list[Result]) -> Any:
        differences = _differences(rows, others)
        return float(figure(differences)) if len(differences) >= least else []

    return of


def _f_measure(rows: list[Result], *, smaller: bool) -> Any:
    """2TP / (2TP + FP + FN) over all test rows of all folds, of the smaller or the larger class."""
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
    """Within one printed deviation, or where none is printed within the study's tolerance."""
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
