"""What each component is worth."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike

from discrim.report.displays.looks import GREY, axes_for, colour, plain
from discrim.report.fitted import Array
from discrim.report.spectrum import MOST_COMPONENTS, SpectrumValues


class SpectrumDisplay:
    """Component by component: its share of what the method maximises, how well it separates, the error after the first.

    All in percent: bars for the share of each component, squares for the share of its variance that lies between the
    classes, a line for the predicted error after the first k. That error is apparent (of the rows fitted): it flatters
    and never rises, and no k should be chosen by it.

    Parameters
    ----------
    values : SpectrumValues. `from_estimator` makes them.

    Attributes
    ----------
    values : what is drawn.
    ax_, figure_ : where it was drawn.
    bars_ : of the shares, None where the transformer tells neither shares nor eigenvalues.
    scores_, errors_ : the squares and the line.
    chosen_ : the line at the chosen number of components, None where nobody chose.
    legend_ : the legend.

    Examples
    --------
    >>> from sklearn.datasets import load_wine
    >>> from discrim import PCA, SpectrumDisplay
    >>> X, y = load_wine(return_X_y=True)
    >>> shown = SpectrumDisplay.from_estimator(PCA().fit(X), X, y, chosen=2)
    >>> len(shown.bars_)
    13
    """

    def __init__(self, values: SpectrumValues) -> None:
        self.values = values

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: Any,
        y: ArrayLike,
        *,
        chosen: int | None = None,
        most_components: int = MOST_COMPONENTS,
        ax: Any = None,
        **kwargs: Any,
    ) -> Self:
        """X, y : the rows the transformer was fitted on; chosen : a number of components to mark."""
        values = SpectrumValues.of(estimator, X, y, chosen=chosen, most_components=most_components)
        return cls(values).plot(ax, **kwargs)

    def plot(self, ax: Any = None, **kwargs: Any) -> Self:
        """kwargs go to the bars."""
        values = self.values
        self.ax_ = axes_for(ax)
        self.figure_ = self.ax_.figure
        k = np.arange(1, len(values.scores) + 1)
        shares = _shares(values)
        self.bars_ = None
        if shares is not None:
            style = {"color": colour(5), "alpha": 0.6, "label": "share of the objective"} | kwargs
            self.bars_ = self.ax_.bar(k, 100 * shares, **style)
        between = "variance between classes"
        self.scores_ = self.ax_.plot(k, 100 * values.scores, "s", color=colour(1), markersize=5, label=between)[0]
        errors, told = 100 * values.predicted_error, "predicted error, first k (flatters)"
        self.errors_ = self.ax_.plot(k, errors, "o-", color=colour(0), markersize=3, label=told)[0]
        self.chosen_ = None
        if values.chosen is not None:
            self.chosen_ = self.ax_.axvline(values.chosen + 0.5, color=GREY, linestyle="--")
            self.chosen_.set_label(f"chosen: {values.chosen}")
        self.ax_.set(xlabel="component", ylabel="%", title=plain(values.method))
        self.ax_.set(xlim=(0.4, len(k) + 0.6), ylim=(0, None))
        self.ax_.xaxis.get_major_locator().set_params(integer=True)
        self.legend_ = self.ax_.legend(fontsize="small")
        return self


def _shares(values: SpectrumValues) -> Array | None:
    if values.shares is not None or values.eigenvalues is None:
        return values.shares
    total = np.abs(values.eigenvalues).sum()
    return values.eigenvalues / total if total > 0 else values.eigenvalues
