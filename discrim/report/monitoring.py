"""Rows that do not fit a linear model, drawn by Hotelling's T² and the squared residual (`core/row_limits.py`)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from discrim.estimators.predictor import RowLimits
from discrim.report.chart import Axis, Chart, Mark, texts_apart
from discrim.report.drawing import Display
from discrim.report.fitted import Array, Codes, name_of, rows_seen, scores_of

MOST_NAMED = 20
WIDE, HIGH = 4.6, 4.0  # inches of the chart
NAME_OFFSET, LETTER = 0.06, 0.08  # inches from a row to its name, and of a letter


@dataclass(frozen=True, eq=False)
class MonitoringValues:
    """T² and SPE of rows, with limits that the share `level` of normal rows stays below.

    ids : what each row is called
    fitted : whether these are the fitted rows themselves, whose limits are other than those of new ones
    """

    method: str
    ids: tuple[str, ...]
    t2: Array
    spe: Array
    t2_limit: float
    spe_limit: float
    level: float
    fitted: bool

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: Any,
        X_new: Any = None,
        *,
        ids: Any = None,
        level: float = 0.95,
    ) -> MonitoringValues:
        """Compute T² and SPE; X are the rows that the transformer was fitted on, X_new other rows or None."""
        judged = X if X_new is None else X_new
        model = RowLimits.fit(scores_of(estimator, X), rows_seen(estimator, X), level)
        t2, spe = model.distances(scores_of(estimator, judged), rows_seen(estimator, judged))
        limits = model.for_training_rows(spe) if X_new is None else (model.t2_limit, model.spe_limit)
        return cls(name_of(estimator), row_ids(judged, ids), t2, spe, *limits, level, X_new is None)

    @property
    def beyond(self) -> Codes:
        """Numbers of the rows beyond a limit, the farthest (as a multiple of its limit) first."""
        far = np.maximum(self.t2 / self.t2_limit, self.spe / self.spe_limit if self.spe_limit > 0 else 0.0)
        order = np.argsort(-far, kind="stable")
        return order[far[order] > 1]

    def chart(self) -> Chart:
        """Return the chart of T² and SPE with their limits and the names of the rows farthest beyond."""
        beyond = np.zeros(len(self.ids), dtype=bool)
        beyond[self.beyond] = True
        marks = []
        for part, inside, hue in (("within", ~beyond, 0), ("beyond", beyond, 1)):
            names = [self.ids[at] for at in np.flatnonzero(inside)]
            look: dict[str, Any] = {
                "legend": f"{part} the limits: {len(names)}",
                "colour": hue,
                "symbol": hue,
                "size": 5,
            }
            tips: dict[str, Any] = {"tip": "T² {x:.2f}, SPE {y:.3g}", "hover": {"row": names}}
            marks.append(Mark("points", part, self.t2[inside], self.spe[inside], **look, **tips))
        legend = f"{100 * self.level:g} % limit"
        marks.append(Mark("upright", "T² limit", [self.t2_limit], legend=legend, colour="soft", dash="dash"))
        marks.append(Mark("level", "SPE limit", y=[self.spe_limit], colour="soft", dash="dash"))
        pairs = (self.t2, self.t2_limit), (self.spe, self.spe_limit)
        tops = [1.12 * max(float(given.max()), limit) or 1.0 for given, limit in pairs]
        marks.append(self._names(*tops))
        across = Axis("Hotelling's T²", limits=(0.0, tops[0]))
        up = Axis("squared residual (SPE)", limits=(0.0, tops[1]))
        return Chart(tuple(marks), across, up, f"{self.method}: {'fitted' if self.fitted else 'new'} rows")

    def _names(self, widest: float, highest: float) -> Mark:
        """Return the names of the rows farthest beyond; names that would overlap are moved up."""
        named = self.beyond[:MOST_NAMED]
        texts = [f" {self.ids[at]}" for at in named]
        across, up = WIDE * self.t2[named] / widest + NAME_OFFSET, HIGH * self.spe[named] / highest  # in inches
        middles = across + LETTER * np.array([len(text) for text in texts], dtype=np.float64) / 2
        heights = texts_apart(middles, up, texts, inch=1.0)
        return Mark(*("text", "names", widest / WIDE * across, highest / HIGH * heights), texts=texts, anchor="start")


def row_ids(X: Any, given: Any = None) -> tuple[str, ...]:
    """Return the given ids, the index of a data frame, or row numbers from 0."""
    if given is None:
        index = getattr(X, "index", None)
        given = range(X.shape[0]) if index is None or callable(index) else index
    ids = tuple(str(one) for one in given)
    if len(ids) != X.shape[0]:
        raise ValueError(f"ids must have one entry for each of {X.shape[0]} rows; got {len(ids)}.")
    return ids


class MonitoringDisplay(Display):
    """Rows that do not fit a linear model: Hotelling's T² and the squared residual of each, with their limits.

    T² says how extreme a row is among the components, SPE (Q) how much of it they do not explain. Limits are those that
    a share `level` of normal rows stays below: for T² by the beta distribution (fitted rows) or F (new rows), for SPE
    by Box's scaled chi-squared. So 5 % of good rows are beyond each limit, too. `values` has `t2`, `spe`, `t2_limit`,
    `spe_limit` and `ids`.

    {parameters}

    {attributes}
    beyond_ : tuple of str
        Ids of the rows beyond a limit, the farthest first.
    artists_ : dict of dict
        By what they are ("within", "beyond", "names", "T² limit", "SPE limit"), what matplotlib made, under "". `plot`
        hands on its arguments to `scatter` of the rows beyond.

    References
    ----------
    Tracy, Young and Mason, "Multivariate control charts for individual observations" (1992). Nomikos and MacGregor,
    "Multivariate SPC charts for monitoring batch processes" (1995). Box (1954).

    Examples
    --------
    >>> from sklearn.datasets import load_wine
    >>> from sklearn.pipeline import make_pipeline
    >>> from sklearn.preprocessing import StandardScaler
    >>> from discrim import PLSDA, MonitoringDisplay
    >>> X, y = load_wine(return_X_y=True)
    >>> model = make_pipeline(StandardScaler(), PLSDA(3)).fit(X, y)
    >>> shown = MonitoringDisplay.from_estimator(model, X, level=0.99)
    >>> shown.beyond_[0]
    '121'
    """

    _styled = "beyond"

    @property
    def beyond_(self) -> tuple[str, ...]:
        return tuple(self.values.ids[at] for at in self.values.beyond)

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: Any,
        X_new: Any = None,
        *,
        ids: Any = None,
        level: float = 0.95,
        ax: Any = None,
        **kwargs: Any,
    ) -> Self:
        """Draw how well rows fit a fitted transformer.

        Parameters
        ----------
        estimator : estimator
            A fitted linear transformer, or a pipeline that ends in one.
        X : array-like of shape (n_samples, n_features)
            The rows it was fitted on, which set the limits.
        X_new : array-like of shape (n_new, n_features), default=None
            Rows to be judged; None for the fitted rows.
        ids : sequence, default=None
            What the judged rows are called; None for a data frame's index, or row numbers.
        level : float, default=0.95
            The share of good rows that stays below each limit.
        {drawn}
        """
        return cls(MonitoringValues.from_estimator(estimator, X, X_new, ids=ids, level=level)).plot(ax, **kwargs)
