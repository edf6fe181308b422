"""Which features make a component."""

from __future__ import annotations

from typing import Any, Self

import numpy as np

from discrim.report.displays.looks import GREY, axes_for, colour, number_of, plain
from discrim.report.fitted import Array
from discrim.report.loadings import LoadingsValues

KINDS = ("loadings", "structure", "arrows")
NAME_GAP = 0.12


class LoadingsDisplay:
    """The features that matter most to a component, as bars; or to two components, as a biplot's arrows.

    Loadings say what a feature adds to the component; where features are correlated they can mislead, and structure
    coefficients, the correlation of each feature with the component, are the usual way to read LDA.

    Parameters
    ----------
    values : LoadingsValues. `from_estimator` makes them.

    Attributes
    ----------
    values : what is drawn.
    ax_, figure_ : where it was drawn.
    features_ : names of the features drawn, the most important first.
    bars_ : one for each of them, None for arrows.
    arrows_ : one for each of them, None for bars.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from discrim import FisherLDA, LoadingsDisplay
    >>> X, y = load_iris(return_X_y=True, as_frame=True)
    >>> shown = LoadingsDisplay.from_estimator(FisherLDA(2).fit(X, y), X, kind="structure")
    >>> shown.features_[0]
    'petal length (cm)'
    """

    def __init__(self, values: LoadingsValues) -> None:
        self.values = values

    @classmethod
    def from_estimator(cls, estimator: Any, X: Any, *, names: Any = None, ax: Any = None, **kwargs: Any) -> Self:
        """X : rows to correlate features and components over; names : of its columns; the rest as in `plot`."""
        return cls(LoadingsValues.of(estimator, X, names=names)).plot(ax, **kwargs)

    def plot(
        self,
        ax: Any = None,
        *,
        kind: str | None = None,
        component: int = 0,
        other: int = 1,
        count: int = 12,
        **kwargs: Any,
    ) -> Self:
        """Draw the `count` features that matter most.

        kind : "loadings", "structure" or "arrows"; None for loadings where the transformer tells them, else structure.
        component, other : which, counted from 0; `other` is for arrows only. kwargs go to the bars or arrows.
        """
        if kind is None:
            kind = "structure" if self.values.loadings is None else "loadings"
        self._require(kind)
        k = len(self.values.component_names)
        component = number_of(component, k, "Component")
        self.ax_ = axes_for(ax)
        self.figure_ = self.ax_.figure
        self.bars_: Any = None
        self.arrows_: list[Any] | None = None
        if kind == "arrows":
            self._draw_arrows(component, number_of(other, k, "Component"), count, kwargs)
        else:
            self._draw_bars(kind, component, count, kwargs)
        return self

    def _require(self, kind: str) -> None:
        if kind not in KINDS:
            raise ValueError(f"kind={kind!r} came. Pass one of {', '.join(map(repr, KINDS))}.")
        if kind == "loadings" and self.values.loadings is None:
            raise ValueError(f"{self.values.method} tells no loadings. Pass kind='structure' for correlations.")

    def _draw_bars(self, kind: str, component: int, count: int, style: dict[str, Any]) -> None:
        values = self.values
        top = values.top(component, count, by=kind)
        table = values.structure if kind == "structure" or values.loadings is None else values.loadings
        lengths = table[component][top]
        self.features_ = tuple(values.feature_names[at] for at in top)
        places = np.arange(len(top))
        colours = [colour(0 if length >= 0 else 1) for length in lengths]
        self.bars_ = self.ax_.barh(places, lengths, **{"color": colours, "height": 0.7} | style)
        self.ax_.axvline(0, color="black", linewidth=0.8)
        self.ax_.set_yticks(places, [plain(name, 28) for name in self.features_])
        self.ax_.invert_yaxis()
        told = "correlation with the component" if kind == "structure" else "loading"
        self.ax_.set(xlabel=told, title=f"{plain(values.method)}, {values.component_names[component]}")
        if kind == "structure":
            self.ax_.set(xlim=(-1, 1), xticks=(-1, -0.5, 0, 0.5, 1))

    def _draw_arrows(self, first: int, second: int, count: int, style: dict[str, Any]) -> None:
        values = self.values
        numbers, ends = values.arrows(first, second, count)
        self.features_ = tuple(values.feature_names[at] for at in numbers)
        angle = np.linspace(0, 2 * np.pi, 200)
        self.ax_.plot(np.cos(angle), np.sin(angle), color=GREY, linewidth=0.8)
        look = {"arrowstyle": "->", "color": colour(0)} | style
        self.arrows_ = [self.ax_.annotate("", xy=end, xytext=(0, 0), arrowprops=look) for end in ends]
        places = _beside(ends)
        for name, end, place in zip(self.features_, ends, places, strict=True):
            self.ax_.plot(*np.array([end, place]).T, color=GREY, linewidth=0.5)
            side = "left" if place[0] > 0 else "right"
            self.ax_.text(*place, f" {plain(name, 24)} ", ha=side, va="center", fontsize="small")
        names = values.component_names
        told = "correlation with "
        self.ax_.set(xlabel=told + names[first], ylabel=told + names[second], title=plain(values.method))
        ticks = (-1, -0.5, 0, 0.5, 1)
        sides = [side * (2.4 if (side * places[:, 0] > 0).any() else 1.15) for side in (-1, 1)]  # room for names
        self.ax_.set(xlim=sides, ylim=(-1.2, 1.2), xticks=ticks, yticks=ticks, aspect="equal")


def _beside(ends: Array) -> Array:
    """Places for the names of arrows, left and right of the circle, near their heights and not on top of each other."""
    places = np.column_stack([np.where(ends[:, 0] < 0, -1.12, 1.12), ends[:, 1]])
    for side in (-1.12, 1.12):
        mine = np.flatnonzero(places[:, 0] == side)
        mine = mine[np.argsort(places[mine, 1], kind="stable")]
        steps = NAME_GAP * np.arange(len(mine))
        heights = np.maximum.accumulate(places[mine, 1] - steps) + steps  # upwards, at least a gap apart
        places[mine, 1] = heights - max(0.0, heights[-1] - 1.1) if len(mine) else heights
    return places
