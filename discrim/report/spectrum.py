"""Value of each component: its eigenvalue, its separation of the classes, and the error after the first k."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
import scipy.linalg as la
from numpy.typing import ArrayLike

from discrim.estimators.pca import apparent_errors
from discrim.report.chart import Axis, Chart, Mark
from discrim.report.drawing import Display
from discrim.report.fitted import (
    FILLED,
    Array,
    class_codes,
    component_names,
    fitted_array,
    maximised_by,
    name_of,
    scores_of,
)

MOST_COMPONENTS = 50
SHARE_TIP = "component {x}: {y:.1f} % of what the method maximises"
SCORE_TIP = "component {x}: {y:.1f} % of its variance lies between classes"
INDEPENDENT = 1e-9  # a component adds nothing if its new part is below this share of its length


@dataclass(frozen=True, eq=False)
class SpectrumValues:
    """One number per component, in the estimator's order.

    eigenvalues, shares : of what the method maximises, None if the method has none
    scores : s_i = Σ_c p_c (w̄_ci − w̄_i)² / λ_i, the share of component i's variance that lies between the classes
    predicted_error : after the first k components, Σ_{a<b} p_a p_b Q(r_ab/2) / Σ_{a<b} p_a p_b, r_ab the within-class
        Mahalanobis distance of the means of classes a and b. The error of normal classes with the means and the
        covariance of the fitted rows. It never rises, so it must not be used to choose k.
    chosen : number of components to keep; None if there was no choice
    worth : what the shares are of
    padding : first component (from 0) beyond the discriminants; None if there is none
    """

    method: str
    eigenvalues: Array | None
    shares: Array | None
    scores: Array
    predicted_error: Array
    chosen: int | None = None
    padding: int | None = None
    worth: str = "method's criterion"

    @classmethod
    def from_estimator(
        cls, estimator: Any, X: Any, y: ArrayLike, *, chosen: int | None = None, most_components: int = MOST_COMPONENTS
    ) -> SpectrumValues:
        """Compute the values; X, y are the rows that the transformer was fitted on."""
        components = scores_of(estimator, X)[:, :most_components]
        k = components.shape[1]
        classes, (codes,) = class_codes(y)
        members = np.eye(len(classes))[codes]
        counts = members.sum(axis=0)
        centred = components - components.mean(axis=0)
        means = members.T @ centred / counts[:, None]
        shares, variances = counts / counts.sum(), (centred**2).mean(axis=0)
        between = shares @ means**2
        scores = np.divide(between, variances, out=np.zeros(k), where=variances > 0).clip(0.0, 1.0)
        errors = apparent_errors(members.T @ decorrelated(centred) / counts[:, None], shares)
        eigenvalues = fitted_array(estimator, "eigenvalues_", "explained_variance_")
        ratios = fitted_array(estimator, "explained_variance_ratio_")
        return cls(
            name_of(estimator),
            None if eigenvalues is None else eigenvalues[:k],
            None if ratios is None else ratios[:k],
            scores,
            errors,
            chosen,
            next((at for at, name in enumerate(component_names(estimator, k)) if FILLED in name), None),
            maximised_by(estimator),
        )

    def chart(self, observed: Mapping[int, float] | None = None) -> Chart:
        """Return the chart of shares, separation and errors, in percent.

        observed : the error on held-out rows by number of components; if known, the predicted error, which is computed
            from the fitted rows, is not drawn
        """
        k = np.arange(1, len(self.scores) + 1)
        shares, marks = self.shares, []
        if shares is None and self.eigenvalues is not None:
            shares = self.eigenvalues / (np.abs(self.eigenvalues).sum() or 1.0)
        if shares is not None:
            pads = len(k) if self.padding is None else self.padding
            hues = [5 if at < pads else "line" for at in range(len(k))]
            look: dict[str, Any] = {"colour": hues, "size": 0.7, "opacity": 0.7, "tip": SHARE_TIP}
            marks.append(Mark("columns", "shares", k, 100 * shares, legend=f"share of the {self.worth}", **look))
        look = {"colour": 1, "symbol": 1, "size": 7, "tip": SCORE_TIP}
        marks.append(Mark("points", "scores", k, 100 * self.scores, legend="variance between classes", **look))
        if observed:
            counts, errors, legend = (
                list(observed),
                100 * np.array(list(observed.values())),
                "error on new rows, first k",
            )
        else:
            counts, errors, legend = list(k), 100 * self.predicted_error, "predicted error of normal classes"
        tip = "first {x}: {y:.1f} % wrong"
        marks.append(Mark("line", "errors", counts, errors, legend=legend, colour=0, symbol=0, tip=tip))
        if self.chosen is not None:
            chosen = f"chosen: {self.chosen}"
            marks.append(Mark("upright", "chosen", [self.chosen + 0.5], legend=chosen, colour="soft", dash="dash"))
        caption = ""
        if self.padding is not None:
            first = self.padding + 1
            caption = f"Components from {first} on (grey) do not separate the classes further: they are PCA of the rest"
        across = Axis("component", limits=(0.4, max(len(k), *counts) + 0.6), whole=True)
        top = 1.06 * max(float(np.nanmax(mark.y)) for mark in marks if np.size(mark.y)) or 1.0
        return Chart(tuple(marks), across, Axis("%", limits=(0, top)), self.method, caption=caption)


def decorrelated(centred: Array) -> Array:
    """Return columns of mean square 1 whose first k span the first k given ones; 0 for a dependent column."""
    lengths = np.linalg.norm(centred, axis=0)
    unit = np.divide(centred, lengths, out=np.zeros_like(centred), where=lengths > 0)
    columns, coefficients = la.qr(unit, mode="economic")
    adds = np.zeros(centred.shape[1], dtype=bool)
    adds[: len(coefficients)] = np.abs(np.diag(coefficients)) > INDEPENDENT
    result = np.zeros_like(centred)
    result[:, adds] = columns[:, adds[: columns.shape[1]]] * np.sqrt(len(centred))
    return result


class SpectrumDisplay(Display):
    """Value of each component: its share of the criterion, how well it separates classes, the error after the first k.

    All in percent: columns for the share of each component, squares for the share of its variance that lies between the
    classes, a line for the predicted error after the first k. It is the error of normal classes with the means
    and the covariance of the fitted rows: it never rises, so it must not be used to choose k, and classes of another
    shape may have a lower one. Grey columns are components beyond the discriminants.

    {parameters}

    {attributes}
    artists_ : dict of dict
        By what they are ("shares", "scores", "errors", "chosen"), what matplotlib made, under the name "". No shares
        if the transformer has neither shares nor eigenvalues. `plot` hands on its arguments to `bar` of these.

    Examples
    --------
    >>> from sklearn.datasets import load_wine
    >>> from discrim import PCA, SpectrumDisplay
    >>> X, y = load_wine(return_X_y=True)
    >>> shown = SpectrumDisplay.from_estimator(PCA().fit(X), X, y, chosen=2)
    >>> len(shown.artists_["shares"][""])
    13
    """

    _styled = "shares"

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
        """Draw what the components of a fitted transformer are worth.

        Parameters
        ----------
        {fitted}
        chosen : int, default=None
            A number of components to mark.
        most_components : int, default=50
            Components beyond are not drawn.
        {drawn}
        """
        values = SpectrumValues.from_estimator(estimator, X, y, chosen=chosen, most_components=most_components)
        return cls(values).plot(ax, **kwargs)
