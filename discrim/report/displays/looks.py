"""How the displays look: colours and markers that all readers can tell apart, names that stay text, axes to draw on."""

from __future__ import annotations

import importlib
from typing import Any

from discrim.data.columnar import MissingExtraError

# Okabe and Ito's colours, a little deeper on white, as in the HTML report
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
)
MARKERS = ("o", "s", "D", "^", "P", "X", "*", "v", "p", "h")
GREY = "#8a8a8a"
LONGEST_NAME = 40


def colour(at: int) -> str:
    return COLOURS[at % len(COLOURS)]


def marker(at: int) -> str:
    """Where colours come again, markers differ."""
    return MARKERS[(at + at // len(COLOURS)) % len(MARKERS)]


def plain(name: str, longest: int = LONGEST_NAME) -> str:
    """A name as matplotlib shows it: on one line, not too long, and neither a formula ($…$) nor hidden (_…)."""
    line = " ".join(name.split())
    shown = line if len(line) <= longest else line[: longest - 1] + "…"
    return ("\u200b" if shown.startswith("_") else "") + shown.replace("$", r"\$")


def axes_for(ax: Any, size: tuple[float, float] = (6.4, 4.8)) -> Any:
    """The axes given, or new ones."""
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


def number_of(at: int, count: int, noun: str) -> int:
    """A position among `count` things, or an error that says which there are."""
    if not -count <= at < count:
        raise ValueError(f"{noun} {at} was asked for, but there are {count}. Pass 0 to {count - 1}.")
    return at % count
