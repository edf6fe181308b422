"""How far rows lie on their own side, before and after a reduction."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike

from discrim.report.displays.looks import GREY, axes_for, colour, plain
from discrim.report.fitted import Array
from discrim.report.margin_distribution import MOST_ROWS, MarginValues

QUANTILES = (0.05, 0.25, 0.5, 0.75, 0.95)


class MarginDisplay:
    """The relative margins of each class among the features (grey) and on the components (coloured), as boxes.

        m(x) = min over o ≠ c of  (‖x − μ_o‖² − ‖x − μ_c‖²) / ‖μ_o − μ_c‖²

    1 at the own class's mean, 0 halfway to the nearest other one, below 0 where another is nearer. Boxes hold the
    middle half of the rows, whiskers 90 %; the share of rows above 0 stands at the right.

    Parameters
    ----------
    values : MarginValues. `from_estimator` makes them.

    Attributes
    ----------
    values : what is drawn.
    ax_, figure_ : where it was drawn.
    before_, after_ : dicts of "boxes", "whiskers" and "medians", one of each for every class that has rows.
    legend_ : the legend.
    shares_ : dict from class to the shares of rows above 0, before and after.

    Examples
    --------
    >>> from sklearn.datasets import load_wine
    >>> from discrim import MarginDisplay, RegularizedLDA
    >>> X, y = load_wine(return_X_y=True)
    >>> shown = MarginDisplay.from_estimator(RegularizedLDA(2).fit(X[::2], y[::2]), X[::2], y[::2], X[1::2], y[1::2])
    >>> sorted(shown.shares_)
    ['0', '1', '2']
    """

    def __init__(self, values: MarginValues) -> None:
        self.values = values

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: Any,
        y: ArrayLike,
        X_test: Any = None,
        y_test: ArrayLike | None = None,
        *,
        n_components: int | None = None,
        most_rows: int = MOST_ROWS,
        ax: Any = None,
        **kwargs: Any,
    ) -> Self:
        """X, y : the rows the transformer was fitted on; X_test, y_test : the rows to judge, by default the same.

        n_components : how many of the first components count; None for all. The rest as in `plot`.
        """
        values = MarginValues.of(estimator, X, y, X_test, y_test, n_components=n_components, most_rows=most_rows)
        return cls(values).plot(ax, **kwargs)

    def plot(self, ax: Any = None, **kwargs: Any) -> Self:
        """kwargs go to the boxes."""
        values = self.values
        numbers = np.unique(values.codes)
        self.ax_ = axes_for(ax, (6.4, 1.6 + 0.7 * len(numbers)))
        self.figure_ = self.ax_.figure
        pairs = [values.of_class(number) for number in numbers]
        self.before_ = self._boxes([before for before, _ in pairs], -0.18, GREY, "", kwargs)
        self.after_ = self._boxes([after for _, after in pairs], 0.18, colour(0), "//", kwargs)
        names = [values.classes[number] for number in numbers]
        shares = [tuple(float(np.mean(margins > 0)) for margins in pair) for pair in pairs]
        self.shares_ = dict(zip(names, shares, strict=True))
        for place, (before, after) in enumerate(shares):
            beside = self.ax_.get_yaxis_transform()
            self.ax_.text(1.01, place, f"{before:.0%} → {after:.0%}", transform=beside, va="center", fontsize="small")
        self.ax_.axvline(0, color="black", linewidth=0.8)
        self.ax_.set_yticks(range(len(names)), [plain(name, 24) for name in names])
        self.ax_.set_ylim(len(names) - 0.4, -0.6)
        rows = "rows not fitted" if values.held_out else "fitted rows"
        self.ax_.set_xlabel(f"relative margin of {rows} (right: how many are above 0)")
        self.ax_.set_title(plain(values.method, 24), loc="left")
        handles = [self.before_["boxes"][0], self.after_["boxes"][0]]
        above = {
            "loc": "lower right",
            "bbox_to_anchor": (1, 1),
            "ncols": 2,
            "frameon": False,
            "borderpad": 0.1,
            "columnspacing": 1,
        }
        self.legend_ = self.ax_.legend(handles, ["features", "components"], fontsize="small", **above)
        return self

    def _boxes(
        self, margins: list[Array], shift: float, fill: str, hatch: str, style: dict[str, Any]
    ) -> dict[str, Any]:
        """Horizontal boxes of each class's margins, `shift` off the class's place."""
        low, first, middle, third, high = np.array([np.quantile(one, QUANTILES) for one in margins]).T
        places = np.arange(len(margins)) + shift
        look = {
            "height": 0.3,
            "color": fill,
            "alpha": 0.7,
            "hatch": hatch,
            "edgecolor": "black",
            "linewidth": 0.8,
        } | style
        return {
            "whiskers": self.ax_.hlines(places, low, high, color="black", linewidth=1),
            "boxes": self.ax_.barh(places, third - first, left=first, **look),
            "medians": self.ax_.plot(middle, places, "k|", markersize=11, markeredgewidth=2)[0],
        }
