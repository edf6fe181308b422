"""Rows on two components."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike

from discrim.report.displays.looks import axes_for, colour, marker, number_of, plain
from discrim.report.fitted import Array, Codes
from discrim.report.projection import MOST_POINTS, ProjectedRows, ProjectionValues

MOST_IN_LEGEND = 20
MANY_ROWS = 500  # are drawn smaller
GOLDEN = (5**0.5 - 1) / 2


class ProjectionDisplay:
    """Rows on two components of a fitted transformer: rows that were fitted, and beside them rows that were not.

    With both, fitted rows are hollow and the others filled, so that overfitting is seen: the filled ones scatter
    farther. The outline of a class holds 95 % of its rows where they are normal; it is that of the fitted rows.
    With one component, classes lie one above the other.

    Parameters
    ----------
    values : ProjectionValues. `from_estimator` makes them.

    Attributes
    ----------
    values : what is drawn.
    ax_, figure_ : where it was drawn.
    points_ : dict from class to its points, those of the test rows where there are any.
    fitted_points_ : dict from class to the hollow points; empty without test rows.
    outlines_ : dict from class to its outline.
    legend_ : the legend, or None.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from discrim import FisherLDA, ProjectionDisplay
    >>> X, y = load_iris(return_X_y=True)
    >>> shown = ProjectionDisplay.from_estimator(FisherLDA(2).fit(X[::2], y[::2]), X[::2], y[::2], X[1::2], y[1::2])
    >>> shown.ax_.get_xlabel()
    'component 1 (99 %)'
    """

    def __init__(self, values: ProjectionValues) -> None:
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
        most_points: int = MOST_POINTS,
        ax: Any = None,
        **kwargs: Any,
    ) -> Self:
        """X, y : the rows the transformer was fitted on; X_test, y_test : others; the rest as in `plot`."""
        values = ProjectionValues.of(estimator, X, y, X_test, y_test, most_points=most_points)
        return cls(values).plot(ax, **kwargs)

    def plot(
        self, ax: Any = None, *, components: tuple[int, int] = (0, 1), outlines: bool = True, **kwargs: Any
    ) -> Self:
        """components : which two, counted from 0; outlines : whether to draw them; kwargs go to the points."""
        values = self.values
        k = len(values.component_names)
        chosen = (0,) if k == 1 else tuple(number_of(at, k, "Component") for at in components)
        self.ax_ = axes_for(ax)
        self.figure_ = self.ax_.figure
        self.points_, self.fitted_points_, self.outlines_ = {}, {}, {}
        shown = values.train if values.test is None else values.test
        for number, name in enumerate(values.classes):
            self.points_[name] = self._scatter(shown, number, chosen, {"color": colour(number)} | kwargs)
            if values.test is not None:
                hollow = {"facecolors": "none", "edgecolors": colour(number), "linewidths": 0.8, "s": 48} | kwargs
                self.fitted_points_[name] = self._scatter(values.train, number, chosen, hollow | {"label": None})
            if outlines and len(chosen) == 2 and np.isfinite(values.train.means[number]).all():
                outline = values.train.ellipse(number, *chosen)
                self.outlines_[name] = self.ax_.plot(*outline.T, color=colour(number), linewidth=1, alpha=0.6)[0]
        self._name_axes(chosen)
        self.legend_ = self._legend(chosen)
        return self

    def _scatter(self, rows: ProjectedRows, number: int, chosen: tuple[int, ...], style: dict[str, Any]) -> Any:
        mine = rows.scores[rows.codes == number]
        places = mine[:, chosen] if len(chosen) == 2 else _strip(mine[:, 0], number)
        basis = {
            "s": 18 if len(rows.codes) <= MANY_ROWS else 9,
            "marker": marker(number),
            "label": plain(self.values.classes[number]),
        }
        return self.ax_.scatter(*places.T, **basis | style)

    def _name_axes(self, chosen: tuple[int, ...]) -> None:
        names, shares = self.values.component_names, self.values.shares
        labels = [names[at] if shares is None else f"{names[at]} ({100 * shares[at]:.0f} %)" for at in chosen]
        if len(chosen) == 1:
            labels.append("")
            classes = self.values.classes
            self.ax_.set_yticks(range(len(classes)), [plain(name, 24) for name in classes])
        told = [f"{len(part.codes)} of {part.n_rows}" for part in self._parts() if part.is_sampled]
        drawn = f" ({', '.join(told)} rows drawn)" if told else ""
        self.ax_.set(xlabel=labels[0], ylabel=labels[1], title=plain(self.values.method) + drawn)

    def _parts(self) -> list[ProjectedRows]:
        return [part for part in (self.values.train, self.values.test) if part is not None]

    def _legend(self, chosen: tuple[int, ...]) -> Any:
        """The classes by colour and marker; where there are too many for that, their names at their means."""
        title = None if self.values.test is None else "filled: new rows\nhollow: fitted"
        handles = list(self.points_.values()) if len(chosen) == 2 else []
        if len(handles) > MOST_IN_LEGEND:
            for name, mean in zip(self.values.classes, self.values.train.means, strict=True):
                if np.isfinite(mean).all():
                    self.ax_.annotate(plain(name, 16), mean[list(chosen)], ha="center", va="center", weight="bold")
            handles = []
        return self.ax_.legend(handles=handles, title=title, fontsize="small") if handles or title else None


def _strip(scores: Array, number: int) -> Array:
    """One component across, the class upwards; rows with like scores lie at different heights."""
    order: Codes = np.argsort(np.argsort(scores, kind="stable"), kind="stable")
    lane = order * GOLDEN % 1 - 0.5  # as even as heights can be, for the first rows, the next ones and all
    return np.column_stack([scores, number + 0.5 * lane])
