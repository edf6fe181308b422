"""Methods over several data sets by mean rank."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike

from discrim.report.critical_difference import CriticalDifferenceValues
from discrim.report.displays.looks import axes_for, colour, plain


class CriticalDifferenceDisplay:
    """Mean ranks of methods over data sets, best at the left; a bar joins methods that do not differ (Nemenyi's test).

    Two mean ranks differ where they lie farther apart than the critical difference, drawn as a ruler above the axis.

    Parameters
    ----------
    values : CriticalDifferenceValues. `from_scores` makes them.

    Attributes
    ----------
    values : what is drawn.
    ax_, figure_ : where it was drawn.
    stems_ : dict from method to the line from its rank to its name.
    names_ : dict from method to its name, as text with its mean rank.
    bars_ : one for each group of methods that do not differ.
    ruler_ : as long as the critical difference.

    Examples
    --------
    >>> from discrim import CriticalDifferenceDisplay
    >>> scores = [[0.9, 0.8, 0.7], [0.8, 0.7, 0.5], [0.9, 0.6, 0.7], [0.7, 0.6, 0.5]]
    >>> CriticalDifferenceDisplay.from_scores(scores, ["a", "b", "c"]).values.mean_ranks
    array([1.  , 2.25, 2.75])
    """

    def __init__(self, values: CriticalDifferenceValues) -> None:
        self.values = values

    @classmethod
    def from_scores(
        cls,
        scores: ArrayLike,
        methods: Sequence[str],
        datasets: Sequence[str] | None = None,
        *,
        level: float = 0.05,
        ax: Any = None,
        **kwargs: Any,
    ) -> Self:
        """scores : data sets × methods, higher is better; level : of the test; kwargs as in `plot`."""
        return cls(CriticalDifferenceValues.of(scores, methods, datasets, alpha=level)).plot(ax, **kwargs)

    @classmethod
    def from_results(
        cls,
        by_data: Mapping[str, Sequence[Mapping[str, Any]]],
        classifier: str,
        *,
        metric: str = "accuracy",
        ax: Any = None,
        **kwargs: Any,
    ) -> Self:
        """by_data : rows of results (a comparison's `rows`) by data set; each method at the K chosen for it there."""
        values = CriticalDifferenceValues.of_rows(by_data, classifier, metric=metric)
        if values is None:
            raise ValueError(
                f"A critical difference takes at least two methods with results on each of at least two data sets, for "
                f"the classifier {classifier!r}; {len(by_data)} data sets came. Add data sets, or another classifier."
            )
        return cls(values).plot(ax, **kwargs)

    def plot(self, ax: Any = None, **kwargs: Any) -> Self:
        """kwargs go to the stems."""
        values = self.values
        m = len(values.methods)
        half = (m + 1) // 2
        self.ax_ = axes_for(ax, (8, 1.5 + 0.32 * half + 0.14 * len(values.groups)))
        self.figure_ = self.ax_.figure
        below = 0.5 + 0.45 * len(values.groups)  # of the axis: the bars, and under them the names
        self.stems_: dict[str, Any] = {}
        self.names_: dict[str, Any] = {}
        for at, (method, rank) in enumerate(zip(values.methods, values.mean_ranks, strict=True)):
            left = at < half
            depth = below + (at if left else m - 1 - at)
            self._name(method, float(rank), -depth, left, kwargs)
        self.bars_ = [self._bar(first, last, -0.5 - 0.45 * at) for at, (first, last) in enumerate(values.groups)]
        self._ruler()
        self._axis(below + half - 0.3)
        return self

    def _name(self, method: str, rank: float, height: float, left: bool, style: dict[str, Any]) -> None:
        m = len(self.values.methods)
        edge = 1 - 0.05 * m if left else m + 0.05 * m
        look = {"color": "black", "linewidth": 0.9} | style
        self.stems_[method] = self.ax_.plot([rank, rank, edge], [0, height, height], **look)[0]
        text = f"{plain(method, 28)}  {rank:.2f}" if left else f"{rank:.2f}  {plain(method, 28)}"
        self.names_[method] = self.ax_.annotate(
            text,
            (edge, height),
            (-4 if left else 4, 0),
            textcoords="offset points",
            ha="right" if left else "left",
            va="center",
            annotation_clip=False,
        )

    def _bar(self, first: int, last: int, height: float) -> Any:
        ends = self.values.mean_ranks[[first, last]] + np.array([-0.05, 0.05])
        return self.ax_.plot(ends, [height, height], color=colour(0), linewidth=4, solid_capstyle="butt")[0]

    def _ruler(self) -> None:
        critical = self.values.critical_difference
        self.ruler_ = self.ax_.plot([1, 1 + critical], [1.2, 1.2], "|-", color=colour(1), linewidth=2)[0]
        told = f"critical difference {critical:.2f}"
        self.ax_.annotate(
            told, (1 + critical / 2, 1.2), (0, 4), textcoords="offset points", ha="center", color=colour(1)
        )

    def _axis(self, depth: float) -> None:
        """Ranks along the line at height 0, ticks above it; nothing else of the frame."""
        m = len(self.values.methods)
        self.ax_.plot([1, m], [0, 0], color="black", linewidth=1)
        for rank in range(1, m + 1):
            self.ax_.plot([rank, rank], [0, 0.18], color="black", linewidth=1)
            self.ax_.annotate(str(rank), (rank, 0.22), ha="center", va="bottom", fontsize="small")
        self.ax_.set(xlim=(1 - 0.05 * m, max(m * 1.05, 1.05 + self.values.critical_difference)), ylim=(-depth, 2.1))
        self.ax_.set_axis_off()
