"""Charts drawn by matplotlib, and the base class of displays."""

from __future__ import annotations

import importlib
import inspect
from collections.abc import Callable
from typing import Any, ClassVar, Self

import numpy as np

from discrim.docstrings import fill
from discrim.report.chart import Axis, Chart, Mark, seen_from_a_side
from discrim.tables.formats import MissingExtraError

# The first are Okabe and Ito's colours, a little deeper on white; the same as in the HTML report
COLOURS = (
    "#0072b2",
    "#d55e00",
    "#008f68",
    "#b8589a",
    "#c98a00",
    "#3b9fd8",
    "#5b5b5b",
    "#7a3b00",
    "#6a4fb3",
    "#7d8f00",
    "#c2185b",
    "#004d73",
    "#00a3a3",
    "#8c6d31",
    "#e377c2",
    "#2e5e1e",
    "#9c27b0",
    "#b71c1c",
    "#4e79f0",
    "#a0a8b0",
)
NAMED = {"ink": "black", "soft": "#8a8a8a", "line": "#b8bec5"}
MARKERS = ("o", "s", "D", "^", "P", "X", "*", "v", "p", "h")
DASHES = {"solid": "-", "dash": "--", "dot": ":", "dashdot": "-."}
ANCHORS = {"middle": "center", "start": "left", "end": "right"}
LONGEST_NAME = 40
MOST_IN_LEGEND = 20


# What the docstrings of all displays have in common, in place of a line {with this name}
IN_COMMON = {
    "parameters": """\
        Parameters
        ----------
        values : {values}
            What is to be drawn; the methods `from_…` make it.""",
    "attributes": """\
        Attributes
        ----------
        values : {values}
            What is drawn.
        chart_ : Chart
            The description of what was drawn.
        ax_ : matplotlib.axes.Axes
            Where it was drawn.
        figure_ : matplotlib.figure.Figure
            The figure of `ax_`.
        legend_ : matplotlib.legend.Legend or None
            The legend, where there is one.""",
    "fitted": """\
        estimator : estimator
            A fitted transformer, or a pipeline that ends in one.
        X : array-like of shape (n_samples, n_features)
            The rows it was fitted on.
        y : array-like of shape (n_samples,)
            Their classes.""",
    "ax": """\
        ax : matplotlib.axes.Axes, default=None
            Where to draw; None for a new figure.""",
    "returns": """\
        Returns
        -------
        {display}
            The display, drawn.""",
    "drawn": """\
        {ax}
        **kwargs : dict
            As in `plot`.

        {returns}""",
}


class Display:
    """Base class of displays: values and the axes they were drawn on.

    A display states how its values come about (`from_…`), and which part of their chart `plot` can style; where the
    chart has options, `plot` says which.

    Parameters
    ----------
    values : object
        What is to be drawn; has a `chart`.
    """

    _styled: ClassVar[str]

    def __init_subclass__(cls) -> None:
        functions = [getattr(one, "__func__", one) for one in vars(cls).values()]
        for one in (cls, *filter(inspect.isfunction, functions)):
            text = fill(one.__doc__, {**IN_COMMON, "display": cls.__name__})
            one.__doc__ = text and text.replace("{values}", f"{cls.__name__.removesuffix('Display')}Values")

    def __init__(self, values: Any) -> None:
        self.values = values

    def plot(self, ax: Any = None, **kwargs: Any) -> Self:
        """Draw.

        Parameters
        ----------
        ax : matplotlib.axes.Axes, default=None
            Where to draw; None for a new figure.
        **kwargs : dict
            For the artists of matplotlib that the display's description names.

        Returns
        -------
        Display
            The display, drawn.
        """
        return self._draw(self.values.chart(), ax, self._styled, kwargs)

    def _draw(self, chart: Chart, ax: Any, part: str, style: dict[str, Any]) -> Self:
        """Draw the chart; `style` goes to the marks of that part."""
        self.chart_ = chart
        self.ax_ = axes_for(ax, (6.4, chart.height))
        self.figure_ = self.ax_.figure
        self.artists_ = draw(chart, self.ax_, {part: style})
        self.legend_ = self.ax_.get_legend()
        return self


def draw(chart: Chart, ax: Any, styles: dict[str, dict[str, Any]]) -> dict[str, dict[str, Any]]:
    """Draw a chart and return the artists by part and name; `styles` are for the marks of a part."""
    chart = seen_from_a_side(chart)
    artists: dict[str, dict[str, Any]] = {}
    for mark in chart.marks:
        style = styles.get(mark.part, {})
        artists.setdefault(mark.part, {})[mark.name] = _DRAW[mark.kind](ax, mark, style)
    for axis, name in ((chart.x, "x"), (chart.y, "y")):
        _axis(ax, axis, name)
    if chart.title:
        ax.set_title(plain(chart.title, 60))
    if chart.equal:
        ax.set_aspect("equal", adjustable="box" if chart.x.limits else "datalim")
    if not (chart.x.shown or chart.y.shown):
        ax.set_axis_off()
    _legend(ax, chart)
    return artists


def colour(at: int | str) -> str:
    return COLOURS[at % len(COLOURS)] if isinstance(at, int) else NAMED[at]


def marker(at: int | str) -> str:
    """Return the marker of a group; groups with the same colour have different markers."""
    return at if isinstance(at, str) else MARKERS[(at + at // len(COLOURS)) % len(MARKERS)]


def plain(name: str, longest: int = LONGEST_NAME) -> str:
    """Return a name for matplotlib: on one line, not too long, neither a formula ($…$) nor hidden (_…)."""
    line = " ".join(name.split())
    shown = line if len(line) <= longest else line[: longest - 1] + "…"
    return ("\u200b" if shown.startswith("_") else "") + shown.replace("$", r"\$")


def axes_for(ax: Any, size: tuple[float, float] = (6.4, 4.8)) -> Any:
    """Return the given axes, or new ones."""
    if ax is not None:
        return ax
    try:
        pyplot = importlib.import_module("matplotlib.pyplot")
    except ImportError as error:
        raise MissingExtraError(
            "Drawing needs matplotlib, which is not installed. Install it with pip install 'discrim[plots]'. The "
            "values are there without it."
        ) from error
    return pyplot.subplots(figsize=size, layout="constrained")[1]


# ---------------------------------------------------------------------- marks


def _points(ax: Any, mark: Mark, style: dict[str, Any]) -> Any:
    upright = {"linewidths": 2} if mark.symbol == "|" else {"linewidths": 0}
    look = {"s": (0.72 * mark.size) ** 2, "marker": marker(mark.symbol or 0), **_look(mark), **upright}
    return ax.scatter(mark.x, mark.y, **look | style)


def _line(ax: Any, mark: Mark, style: dict[str, Any]) -> Any:
    look = {"linewidth": 0.75 * mark.size, "linestyle": DASHES[mark.dash], "solid_capstyle": "butt", **_look(mark)}
    if mark.symbol is not None:
        look |= {"marker": marker(mark.symbol), "markersize": 5}
    return ax.plot(mark.x, mark.y, **look | style)[0]


def _area(ax: Any, mark: Mark, style: dict[str, Any]) -> Any:
    return ax.fill(mark.x, mark.y, **{"linewidth": 0, **_look(mark)} | style)[0]


def _bars(ax: Any, mark: Mark, style: dict[str, Any]) -> Any:
    base = np.broadcast_to(np.asarray(mark.base, dtype=np.float64), np.shape(mark.x))
    return ax.barh(mark.y, np.asarray(mark.x) - base, left=base, **{"height": mark.size, **_look(mark)} | style)


def _columns(ax: Any, mark: Mark, style: dict[str, Any]) -> Any:
    return ax.bar(mark.x, mark.y, **{"width": mark.size, **_look(mark)} | style)


def _arrows(ax: Any, mark: Mark, style: dict[str, Any]) -> Any:
    look = {"arrowstyle": "->", "color": _hue(mark), "linewidth": 0.75 * mark.size} | style
    return [ax.annotate("", xy=end, xytext=(0, 0), arrowprops=look) for end in zip(*_places(mark), strict=True)]


def _text(ax: Any, mark: Mark, style: dict[str, Any]) -> Any:
    look = {"ha": ANCHORS[mark.anchor], "va": "center", "fontsize": "small", "color": _hue(mark)} | style
    return [ax.text(x, y, plain(text, 24), **look) for x, y, text in zip(*_places(mark), mark.texts, strict=True)]


def _rule(ax: Any, mark: Mark, style: dict[str, Any]) -> Any:
    draw_rule, places = (ax.axvline, mark.x) if mark.kind == "upright" else (ax.axhline, mark.y)
    return draw_rule(float(np.ravel(places)[0]), linestyle=DASHES[mark.dash], linewidth=1, **_look(mark), **style)


_DRAW: dict[str, Callable[[Any, Mark, dict[str, Any]], Any]] = {
    "points": _points,
    "line": _line,
    "area": _area,
    "bars": _bars,
    "columns": _columns,
    "arrows": _arrows,
    "text": _text,
    "upright": _rule,
    "level": _rule,
}


def _hue(mark: Mark) -> Any:
    return colour(mark.colour) if isinstance(mark.colour, int | str) else [colour(one) for one in mark.colour]


def _look(mark: Mark) -> dict[str, Any]:
    return {"color": _hue(mark), "alpha": mark.opacity, "label": plain(mark.legend) if mark.legend else None}


def _places(mark: Mark) -> tuple[list[float], list[float]]:
    return np.ravel(mark.x).tolist(), np.ravel(mark.y).tolist()


# ---------------------------------------------------------------------- around them


def _axis(ax: Any, axis: Axis, name: str) -> None:
    if axis.log:
        ax.set(**{f"{name}scale": "log"})
        getattr(ax, f"{name}axis").minorticks_off()
    if axis.ticks is not None:
        labels = [plain(label, 28) for label in axis.ticks.values()]
        ax.set(**{f"{name}ticks": list(axis.ticks), f"{name}ticklabels": labels})
    elif axis.whole:
        getattr(ax, f"{name}axis").get_major_locator().set_params(integer=True)
    if axis.limits is not None:
        ax.set(**{f"{name}lim": axis.limits})
    ax.set(**{f"{name}label": axis.title})


def _legend(ax: Any, chart: Chart) -> None:
    """Add a legend next to the axes, or inside them if the figure has a fixed layout."""
    named = [mark for mark in chart.marks if mark.legend]
    if not 0 < len(named) <= MOST_IN_LEGEND:
        return
    outside = {"loc": "upper left", "bbox_to_anchor": (1.0, 1.0), "frameon": False}
    place = outside if ax.figure.get_layout_engine() is not None else {"loc": "best"}
    ax.legend(title=chart.key or None, fontsize="small", title_fontsize="small", alignment="left", **place)
