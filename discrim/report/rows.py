"""Rows as charts: their margins before and after a reduction, and how well they fit a linear model.

The relative margin of a row x with label c, towards the class means μ of the rows that were fitted:

    m(x) = min over o ≠ c of  (‖x − μ_o‖² − ‖x − μ_c‖²) / ‖μ_o − μ_c‖²

This is the signed distance to the plane halfway between the two means, divided by half the distance of the means: 1 at
the own mean, 0 halfway to the nearest other, below 0 where another mean is nearer, 1 on average for two classes.
It has no unit and does not see directions in which the means agree, so that margins among 2,000 features and on 2
components can stand side by side: the narrower, the better the classes are kept apart. (Distances to single rows do not
have this: among few components the nearest row is always close.) It is linear in x, so many or sparse rows cost little.

Rows that do not fit a linear model are drawn by Hotelling's T² and the squared residual (`estimators/predictor.py`).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike

from discrim.estimators.predictor import RowLimits
from discrim.report.chart import Axis, Chart, Mark, texts_apart
from discrim.report.drawing import Display
from discrim.report.fitted import Array, Codes, class_codes, name_of, rows_seen, sampled, scores_of

MOST_ROWS = 1_000
NO_WIDTH = 0.02  # of a box, where 1 is the distance from the own mean to the border
QUANTILES = (0.05, 0.25, 0.5, 0.75, 0.95)


@dataclass(frozen=True, eq=False)
class MarginValues:
    """Relative margins of the same rows before and after the reduction.

    codes : class number of each row; before, after : its margin in the features and on the components
    n_rows : how many rows there are to be judged, drawn or not
    held_out : whether they are other rows than those fitted
    """

    method: str
    classes: tuple[str, ...]
    codes: Codes
    before: Array
    after: Array
    n_rows: int
    held_out: bool

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
    ) -> MarginValues:
        """Compute margins of the test rows to the class means of the fitted rows X; without test rows, of X.

        n_components : how many of the first components count; None for all.
        Of more than `most_rows` rows a sample is drawn, the same every time. A row of a class that was not fitted has
        no margin and is left out.
        """
        held_out = X_test is not None and y_test is not None
        classes, codes = class_codes(y, y_test) if held_out else class_codes(y)  # type: ignore[arg-type]
        drawn = sampled(codes[-1], most_rows)
        given, labels = X_test if held_out else X, codes[-1][drawn]
        judged = given.iloc[drawn] if hasattr(given, "iloc") else given[drawn]
        before = relative_margins(rows_seen(estimator, X), codes[0], rows_seen(estimator, judged), labels)
        fitted, seen = (scores_of(estimator, rows)[:, :n_components] for rows in (X, judged))
        after = relative_margins(fitted, codes[0], seen, labels)
        kept = np.isfinite(before) & np.isfinite(after)
        return cls(name_of(estimator), classes, labels[kept], before[kept], after[kept], len(codes[-1]), held_out)

    def of_class(self, number: int) -> tuple[Array, Array]:
        """Return the margins of a class before and after."""
        mine = self.codes == number
        return self.before[mine], self.after[mine]

    @property
    def collapsed(self) -> bool:
        """Return True if most rows are in classes whose box on the components has no width."""
        numbers, counts = np.unique(self.codes, return_counts=True)
        quarters = np.array([np.quantile(self.of_class(number)[1], (0.25, 0.75)) for number in numbers])
        flat = np.ptp(quarters.reshape(-1, 2), axis=1) < NO_WIDTH
        return bool(counts[flat].sum() > counts.sum() / 2)

    @property
    def shares(self) -> dict[str, tuple[float, float]]:
        """Return the shares of rows above 0 before and after, for every class with rows."""
        found = {}
        for number in np.unique(self.codes):
            before, after = (float(np.mean(margins > 0)) for margins in self.of_class(number))
            found[self.classes[number]] = before, after
        return found

    def chart(self, most_classes: int | None = None) -> Chart:
        """Return boxes of the margins by class, for features and components; of the largest classes only."""
        counts = np.bincount(self.codes, minlength=len(self.classes))
        largest = np.argsort(-counts, kind="stable")[:most_classes]
        numbers = [int(number) for number in np.sort(largest) if counts[number]]
        pairs = [self.of_class(number) for number in numbers]
        names = [self.classes[number] for number in numbers]
        marks = [
            *_boxes([before for before, _ in pairs], -0.18, "soft", "all features"),
            *_boxes([after for _, after in pairs], 0.18, 0, "components"),
            Mark("upright", "border", [0.0], colour="ink"),
        ]
        ends = np.concatenate([mark.x for mark in marks if mark.part == "whiskers"])
        low, high = float(np.nanmin(ends, initial=0.0)), float(np.nanmax(ends, initial=1.0))
        width = high - low
        labels = [f"{100 * before:.0f} → {100 * after:.0f} %" for before, after in map(self.shares.__getitem__, names)]
        right, rows = np.full(len(names) + 1, high + 0.38 * width), np.arange(-1, len(names))
        marks.append(Mark("text", "above 0", right, rows, texts=["above 0", *labels], anchor="end", colour="soft"))
        up = Axis(limits=(len(names) - 0.4, -1.4), ticks=dict(enumerate(names)))
        noun = "rows not fitted" if self.held_out else "fitted rows"
        across = Axis(f"margin of {noun}", limits=(low - 0.04 * width, high + 0.4 * width))
        shares = [100 * float((part > 0).mean()) if len(part) else np.nan for part in (self.before, self.after)]
        text = f"Above 0: {shares[0]:.1f} % of the rows in the features, {shares[1]:.1f} % on the components"
        text += f"; {len(self.codes)} of {self.n_rows} rows, drawn at random." if len(self.codes) < self.n_rows else "."
        return Chart(tuple(marks), across, up, self.method, height=1.6 + 0.6 * max(2, len(names)), caption=text)


def relative_margins(X: Any, codes: Codes, X_test: Any, codes_test: Codes) -> Array:
    """Return the margin of each test row to the class means of X; NaN if X does not have its class.

    With everything centred at the mean of X, m = (2 x·(μ_c − μ_o) − ‖μ_c‖² + ‖μ_o‖²) / ‖μ_c − μ_o‖².
    """
    present = np.unique(codes)
    centre = np.asarray(X.mean(axis=0)).ravel()
    means = np.stack([np.asarray(X[np.flatnonzero(codes == number)].mean(axis=0)).ravel() for number in present])
    means = means - centre
    products = np.asarray(X_test @ means.T) - centre @ means.T
    squares = (means**2).sum(axis=1)
    margins = np.full(len(codes_test), np.nan)
    for at, number in enumerate(present):
        mine = np.flatnonzero(codes_test == number)
        others = np.delete(np.arange(len(present)), at)
        apart = ((means[at] - means[others]) ** 2).sum(axis=1)
        others, apart = others[apart > 0], apart[apart > 0]  # equal means have no plane between them
        if len(others):
            nearer = 2 * (products[mine, at][:, None] - products[mine][:, others]) - squares[at] + squares[others]
            margins[mine] = (nearer / apart).min(axis=1)
    return margins


def _boxes(margins: list[Array], shift: float, hue: int | str, name: str) -> list[Mark]:
    """Return a box of the middle half of each class, whiskers of 90 % and the median, `shift` off its place."""
    low, first, middle, third, high = np.array([np.quantile(one, QUANTILES) for one in margins]).reshape(-1, 5).T
    places = np.arange(len(margins)) + shift
    gap = np.full(len(margins), np.nan)
    whiskers = np.stack([low, first, gap, third, high, gap], axis=1).ravel(), np.repeat(places, 6)
    tip = "{x:.2f}"
    return [
        Mark("line", "whiskers", *whiskers, name=name, colour="ink", size=1.2, tip=tip),
        Mark("bars", "boxes", third, places, name=name, legend=name, colour=hue, size=0.3, base=first, tip=tip),
        Mark("points", "medians", middle, places, name=name, colour="ink", symbol="|", size=14, tip=tip),
    ]


class MarginDisplay(Display):
    """Relative margins of each class for the features (grey) and for the components (coloured), as boxes.

        m(x) = min over o ≠ c of  (‖x − μ_o‖² − ‖x − μ_c‖²) / ‖μ_o − μ_c‖²

    1 at the own class's mean, 0 halfway to the nearest other one, below 0 where another is nearer. Boxes hold the
    middle half of the rows, whiskers 90 %; the share of rows above 0 stands at the right
    (`values.shares`, by class, before and after).

    {parameters}

    {attributes}
    artists_ : dict of dict
        By what they are ("boxes", "whiskers", "medians") and where ("features", "components"), what matplotlib made.
        `plot` hands on its arguments to `barh` of the boxes.

    Examples
    --------
    >>> from sklearn.datasets import load_wine
    >>> from discrim import MarginDisplay, RegularizedLDA
    >>> X, y = load_wine(return_X_y=True)
    >>> shown = MarginDisplay.from_estimator(RegularizedLDA(2).fit(X[::2], y[::2]), X[::2], y[::2], X[1::2], y[1::2])
    >>> sorted(shown.values.shares)
    ['0', '1', '2']
    """

    _styled = "boxes"

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
        """Draw the margins of rows before and after a fitted transformer.

        Parameters
        ----------
        {fitted}
        X_test : array-like of shape (n_test, n_features), default=None
            The rows to judge; None for those fitted.
        y_test : array-like of shape (n_test,), default=None
            The classes of the rows to judge.
        n_components : int, default=None
            How many of the first components count; None for all.
        most_rows : int, default=1000
            Of more rows a sample is judged, the same every time.
        {drawn}
        """
        values = MarginValues.from_estimator(
            estimator, X, y, X_test, y_test, n_components=n_components, most_rows=most_rows
        )
        return cls(values).plot(ax, **kwargs)


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
        cls, estimator: Any, X: Any, X_new: Any = None, *, ids: Any = None, level: float = 0.95
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
