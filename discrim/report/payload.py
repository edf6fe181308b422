"""Charts as JSON for the script of the page: short numbers, and no character that could end the script element."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from discrim.report.chart import Axis, Chart, Mark
from discrim.report.loadings import LoadingsValues

NAME = 80  # characters of a name that reach a chart
MOST_NUMBERS = 60_000  # of all methods' features by components, for the search
MOST_FEATURES = 20_000
Charts = dict[tuple[int, ...], Chart]  # of one figure, by the numbers chosen in its menus
_ESCAPES = {ord(sign): f"\\u{ord(sign):04x}" for sign in "<>&\u2028\u2029"}


def as_json(value: Any) -> str:
    """Return JSON for a script element: <, >, & and the line separators are escaped."""
    return json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":")).translate(_ESCAPES)


class Words:
    """Table of repeated texts: each is kept once and replaced by its number."""

    def __init__(self) -> None:
        self._numbers: dict[str, int] = {}

    def number(self, text: str) -> int:
        return self._numbers.setdefault(text[:NAME], len(self._numbers))

    @property
    def all(self) -> list[str]:
        return list(self._numbers)


def chart_json(chart: Chart, words: Words) -> dict[str, Any]:
    """Return a chart as plain values, without defaults."""
    return {
        "marks": [_mark(mark, words) for mark in chart.marks],
        "x": _axis(chart.x, words),
        "y": _axis(chart.y, words),
        "height": chart.height,
        **_unusual(equal=chart.equal, turns=chart.turns, key=chart.key, caption=chart.caption),
    }


def _mark(mark: Mark, words: Words) -> dict[str, Any]:
    return {
        "kind": mark.kind,
        **{name: as_drawn(place) for name in "xyz" if (place := getattr(mark, name)) is not None},
        "colour": mark.colour if isinstance(mark.colour, int | str) else list(mark.colour),
        "size": mark.size,
        "opacity": mark.opacity,
        **_unusual(
            base=short_numbers(mark.base) if mark.kind == "bars" and np.any(mark.base) else None,
            dash=mark.dash if mark.dash != "solid" else None,
            tip=mark.tip,
            anchor=mark.anchor if mark.anchor != "middle" else None,
            hidden=not mark.shown,
            name=words.number(mark.name) if mark.name else None,
            legend=words.number(mark.legend) if mark.legend else None,
            texts=[words.number(text) for text in mark.texts],
            hover={label: [words.number(one) for one in values] for label, values in mark.hover.items()},
            symbol=mark.symbol,
        ),
    }


def _axis(axis: Axis, words: Words) -> dict[str, Any]:
    ticks = None
    if axis.ticks is not None:
        ticks = [short_numbers(list(axis.ticks)), [words.number(label) for label in axis.ticks.values()]]
    limits = None if axis.limits is None else short_numbers(axis.limits)
    return {
        "title": words.number(axis.title),
        **_unusual(log=axis.log, whole=axis.whole, hidden=not axis.shown, ticks=ticks, limits=limits),
    }


def _unusual(**values: Any) -> dict[str, Any]:
    """Return values that are not None, False or empty; 0 is kept, because it numbers a word or symbol."""
    return {name: value for name, value in values.items() if value or (value == 0 and value is not False)}


def features_json(loadings: Sequence[LoadingsValues]) -> dict[str, Any]:
    """Return all features of each method for the search, up to a limit; a method beyond it has None."""
    if not loadings:
        return {"names": [], "methods": []}
    names, space = loadings[0].feature_names, MOST_NUMBERS
    largest = np.argsort(-np.abs(loadings[0].structure).max(axis=0), kind="stable")[:MOST_FEATURES]
    kept = sorted(largest.tolist())  # all, if there are not too many
    methods: list[dict[str, Any] | None] = []
    for at, values in enumerate(loadings):
        tables = {kind: values.table(kind)[:, kept] for kind in values.kinds}
        size = sum(table.size for table in tables.values())
        fits = values.feature_names == names and (size <= space or at == 0)
        space -= size if fits else 0
        rows = {kind: [short_numbers(row, 3) for row in table] for kind, table in tables.items()}
        methods.append({"components": values.component_names, **rows} if fits else None)
    return {"names": [names[at][:NAME] for at in kept], "left": len(names) - len(kept), "methods": methods}


def as_drawn(values: Any) -> list[float | int | None]:
    """Return numbers with the precision of a chart: a thousandth of their range or better."""
    array = np.ravel(np.asarray(values, dtype=np.float64))
    there = array[np.isfinite(array)]
    width = float(np.ptp(there)) if len(there) else 0.0
    if not width > 0:
        return short_numbers(array, 6)
    return short_numbers(np.round(array, max(0, math.ceil(math.log10(1_000 / width)))), 15)


def short_numbers(values: Any, digits: int = 4) -> list[float | int | None]:
    """Return numbers with few digits; None for NaN and infinity."""
    return [_short(value, digits) for value in np.ravel(values).tolist()]


def _short(value: float, digits: int) -> float | int | None:
    if not math.isfinite(value):
        return None
    number = float(f"{value:.{digits}g}")
    return int(number) if number.is_integer() else number


def figure_json(charts: Charts, words: Words) -> dict[str, Any]:
    return {",".join(map(str, choice)): chart_json(chart, words) for choice, chart in charts.items()}
