"""Charts: marks on two axes, drawn by matplotlib (`drawing`) or, as JSON, by the script of the page.

Names of classes, features and methods are kept as they are; the code that draws them escapes them. In JSON, numbers are
short, and no character can end the script element.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

GOLDEN = (5**0.5 - 1) / 2


@dataclass(frozen=True, eq=False)
class Mark:
    """Group of things that are drawn alike.

    kind : "points"; a "line" (with `symbol`, also points on it); an "area" within a closed outline; "bars" across from
        `base` to x and "columns" up to y, `size` thick; "arrows" from the origin; "text"; "upright" and "level", lines
        at x and y through the whole chart
    part, name : what it is ("points", "outlines") and whose (a class, a method); marks of one name hide together
    legend : how the legend calls it; empty for no entry
    colour : a number of the palette, one for each thing where they differ, or "ink", "soft" or "line"
    symbol : a number, None for a line without points, or "|"
    size : of points across, of a line its width, of bars their thickness as a share of a row
    z : the third place of each thing, in a chart that can be turned
    texts : of a "text", one for each place
    tip : text shown at the pointer, with {x} and {y} in it
    hover : further texts shown there, by label: one for each thing
    """

    kind: str
    part: str
    x: Any = ()
    y: Any = ()
    name: str = ""
    legend: str = ""
    colour: int | str | Sequence[int | str] = "ink"
    symbol: int | str | None = None
    size: float = 2.0
    opacity: float = 1.0
    dash: str = "solid"
    base: Any = 0.0
    z: Any = None
    texts: Sequence[str] = ()
    anchor: str = "middle"
    tip: str = ""
    hover: Mapping[str, Sequence[str]] = field(default_factory=dict)
    shown: bool = True


class Axis(NamedTuple):
    """Axis of a chart; `ticks` are places with their names, None for automatic ones; `shown` is False for no axis."""

    title: str = ""
    limits: tuple[float, float] | None = None
    ticks: Mapping[float, str] | None = None
    log: bool = False
    whole: bool = False
    shown: bool = True


@dataclass(frozen=True, eq=False)
class Chart:
    """Chart of marks; the first is drawn lowest.

    equal : whether a unit is as long across as upwards
    height : in inches, where the width is 6.4
    key : what the legend says above its entries
    caption : a sentence below the chart
    """

    marks: tuple[Mark, ...]
    x: Axis
    y: Axis
    title: str = ""
    equal: bool = False
    height: float = 4.8
    key: str = ""
    caption: str = ""

    @property
    def turns(self) -> bool:
        return any(mark.z is not None for mark in self.marks)

    def of(self, part: str) -> Iterator[Mark]:
        return (mark for mark in self.marks if mark.part == part)


def seen_from_a_side(chart: Chart) -> Chart:
    """Return the projection of a chart in three dimensions, seen from 35° aside and 20° above."""
    if not chart.turns:
        return chart
    (sa, ca), (se, ce) = ((np.sin(angle), np.cos(angle)) for angle in np.radians([35.0, 20.0]))
    flat = []
    for mark in chart.marks:
        x, y, z = (np.asarray(places, dtype=np.float64) for places in (mark.x, mark.y, mark.z))
        flat.append(replace(mark, x=x * ca - y * sa, y=z * ce + (x * sa + y * ca) * se, z=None))
    return replace(chart, marks=tuple(flat))


def lanes(count: int) -> Array:
    """Return heights between −0.5 and 0.5 that are evenly spread for any number of first ones."""
    return np.asarray(np.arange(count) * GOLDEN % 1 - 0.5, dtype=np.float64)


def apart(places: Array, gap: float, most: float = np.inf) -> Array:
    """Move numbers up as little as needed for a gap between neighbours; then down if one exceeds `most`."""
    order = np.argsort(places, kind="stable")
    steps = gap * np.arange(len(places))
    moved = np.maximum.accumulate(places[order] - steps) + steps
    result = np.empty(len(places))
    result[order] = moved - (max(0.0, moved[-1] - most) if len(moved) else 0.0)
    return result


def texts_apart(x: Array, y: Array, texts: Sequence[str], inch: float) -> Array:
    """Return heights for texts so that none overlaps another; `inch` is the length of an inch in units."""
    height = 0.18 * inch
    halves = [0.045 * inch * (min(len(text), 24) + 1) for text in texts]
    heights = y.astype(np.float64).copy()
    done: list[int] = []
    for at in np.argsort(y, kind="stable").tolist():
        neighbours = [one for one in done if abs(x[one] - x[at]) < halves[one] + halves[at]]
        for one in sorted(neighbours, key=lambda one: heights[one]):
            if abs(heights[one] - heights[at]) < height:
                heights[at] = heights[one] + height
        done.append(at)
    return heights


def shortened(text: str, most: int = 60) -> str:
    return text if len(text) <= most else f"{text[: most - 1]}…"


def number_of(at: int, count: int, noun: str) -> int:
    """Return a position among `count` things; raise an error that gives the range."""
    if not -count <= at < count:
        raise ValueError(f"{noun} must be from 0 to {count - 1}; got {at}.")
    return at % count


def one_of(name: Any, there: Sequence[str], noun: str) -> str:
    """Return the name if it exists, the first for None; raise an error that lists the names."""
    if not there:
        raise ValueError("There are no results to draw: every trial failed or was skipped.")
    if name is None:
        return there[0]
    if name not in there:
        raise ValueError(f"{noun} must be one of {', '.join(there)}; got {name!r}.")
    return str(name)


NAME = 80  # characters of a name that reach a chart
Charts = dict[tuple[int, ...], Chart]  # of one figure, by the numbers chosen in its menus
_ESCAPES = {ord(sign): f"\\u{ord(sign):04x}" for sign in "<>&\u2028\u2029"}


def as_json(value: Any) -> str:
    """Return JSON for a script element: <, >, & and the line separators are escaped."""
    return json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":")).translate(_ESCAPES)


class Words(dict[str, int]):
    """Numbers of repeated texts, each of which is kept once."""

    def number(self, text: str) -> int:
        return self.setdefault(text[:NAME], len(self))


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
