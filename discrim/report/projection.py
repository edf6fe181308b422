"""Rows on the components: held-out rows, and behind them, in pale colours, the training rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike

from discrim.decompositions import eigh
from discrim.report.chart import Axis, Chart, Mark, lanes, number_of, texts_apart
from discrim.report.drawing import MOST_IN_LEGEND, Display
from discrim.report.fitted import (
    FILLED,
    Array,
    Codes,
    class_codes,
    component_names,
    fitted_array,
    for_plotting,
    maximised_by,
    name_of,
    probable_classes,
    reducer_of,
    sampled,
    scores_of,
    training_scores_of,
)

MOST_POINTS = 2_000
MOST_COMPONENTS = 10
MANY_ROWS = 500  # are drawn smaller
MOST_PAIRS = 5
LEAST_SHARE = 0.005  # of the rows' probability: pairs that are confused less are not spoken of
MEANING = "a row lies between the classes it may belong to, nearest to the most probable; grey lines join confused ones"
BEYOND = 1.13  # distance of the names from the centre
ROUND = (-1.3, 1.3)  # limits of both axes around places at 1, and their names


@dataclass(frozen=True, eq=False)
class PlacedClasses:
    """Places of the classes (C×k) and the most confused pairs: two class numbers and the share, most first."""

    classes: tuple[str, ...]
    places: Array
    pairs: tuple[tuple[int, int, float], ...]

    @classmethod
    def from_estimator(cls, estimator: Any, classes: Sequence[str]) -> PlacedClasses | None:
        """Return the places of a fitted map; None if it has none, or one component only."""
        model = reducer_of(estimator)
        places = getattr(model, "places_", None)
        if places is None or places.shape[1] < 2:
            return None
        known = [str(label) for label in model.classes_.tolist()]
        seen = [number for number, name in enumerate(classes) if name in known]
        order = [known.index(classes[number]) for number in seen]
        confusions = model.confusions_[np.ix_(order, order)]
        shares = np.triu((confusions + confusions.T) / 2, 1)
        most = np.argsort(-shares, axis=None, kind="stable")[:MOST_PAIRS].tolist()
        found = [(*(seen[one] for one in divmod(at, len(shares))), float(shares.flat[at])) for at in most]
        pairs = tuple(pair for pair in found if pair[2] >= LEAST_SHARE)
        placed = np.full((len(classes), places.shape[1]), np.nan)  # of classes that were not fitted
        placed[seen] = places[order]
        return cls(tuple(classes), placed, pairs)

    @property
    def caption(self) -> str:
        """Return the confused pairs by name, with the mean probability of the one class on rows of the other."""
        named = [f"{self.classes[a]} and {self.classes[b]} ({100 * share:.1f} %)" for a, b, share in self.pairs]
        if not named:
            return ""
        return f"mean probability of the one class on held-out rows of the other, most of all: {', '.join(named)}"

    def lines(self, means: Array) -> list[Mark]:
        """Return a line between the class means of each confused pair, wider for more confusion."""
        broad = max((share for *_, share in self.pairs), default=1.0)
        return [
            Mark(
                "line",
                "confused",
                x=means[[a, b], 0],
                y=means[[a, b], 1],
                name=f"{self.classes[a]} and {self.classes[b]}",
                colour="soft",
                size=1 + 4 * share / broad,
                opacity=0.35,
            )
            for a, b, share in self.pairs
        ]

    def names(self, chosen: tuple[int, ...], shown: Sequence[int]) -> Mark:
        """Return the names of the classes next to their places."""
        shown = [number for number in shown if np.isfinite(self.places[number]).all()]
        x, y = BEYOND * self.places[shown][:, chosen].T
        return Mark("text", "names", x, y, texts=[self.classes[number] for number in shown])


@dataclass(frozen=True, eq=False)
class ProjectedRows:
    """Rows on the components. Means and covariances are of all rows, `scores` of those that are drawn.

    scores : drawn rows × components; codes : the class number of each; rows : their numbers among all rows
    n_rows : how many rows there are, drawn or not
    means (C×k), covariances (C×k×k, population) : NaN for a class without rows
    """

    scores: Array
    codes: Codes
    rows: Codes
    n_rows: int
    means: Array
    covariances: Array

    @classmethod
    def of(cls, scores: Array, codes: Codes, n_classes: int, most_points: int = MOST_POINTS) -> ProjectedRows:
        k = scores.shape[1]
        means, covariances = np.full((n_classes, k), np.nan), np.full((n_classes, k, k), np.nan)
        for number in np.unique(codes):
            rows = scores[codes == number]
            means[number] = rows.mean(axis=0)
            centred = rows - means[number]
            covariances[number] = centred.T @ centred / len(rows)
        drawn = sampled(codes, most_points)
        return cls(scores[drawn], codes[drawn], drawn, len(codes), means, covariances)

    def ellipse(self, number: int, first: int, second: int) -> Array:
        """Return the outline {z : (z−m)ᵀ S⁻¹ (z−m) = −2 ln 0.05} of a class on two components, as 37 points.

        A normal class has 95 % of its rows within. Flat or a point where the class has no width.
        """
        axes = [first, second]
        values, vectors = eigh(self.covariances[number][np.ix_(axes, axes)])
        radii = np.sqrt(-2 * np.log(1 - 0.95) * np.maximum(values, 0.0))
        angle = np.linspace(0, 2 * np.pi, 37)
        circle = np.column_stack([np.cos(angle), np.sin(angle)])
        return np.asarray(self.means[number][axes] + (circle * radii) @ vectors.T)


@dataclass(frozen=True, eq=False)
class ProjectionValues:
    """Values of a scatter plot of the components.

    labels : how the axes are called: a component's name, and its share of what the method maximises if known
    test : rows not used in fitting, None where none were given
    placed : where a posterior map places the classes; None for other maps
    probable : of the fitted and the new rows, the two most probable classes; empty texts for other maps
    """

    method: str
    classes: tuple[str, ...]
    component_names: tuple[str, ...]
    labels: tuple[str, ...]
    train: ProjectedRows
    test: ProjectedRows | None = None
    placed: PlacedClasses | None = None
    probable: tuple[Sequence[str], ...] = ()

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
        most_components: int = MOST_COMPONENTS,
    ) -> ProjectionValues:
        """Compute the values; X, y are the rows that the transformer was fitted on, X_test, y_test other rows.

        Of more than `most_points` rows a sample is drawn, the same every time.
        """
        if (X_test is None) != (y_test is None):
            raise ValueError("X_test and y_test must be passed together; got one of them.")
        estimator = for_plotting(estimator)
        classes, codes = class_codes(y) if y_test is None else class_codes(y, y_test)
        scores = [training_scores_of(estimator, X)] + ([] if X_test is None else [scores_of(estimator, X_test)])
        parts = [
            ProjectedRows.of(one[:, :most_components], of_part, len(classes), most_points)
            for one, of_part in zip(scores, codes, strict=True)
        ]
        names = component_names(estimator, parts[0].scores.shape[1])
        placed = PlacedClasses.from_estimator(estimator, classes)
        test = parts[1] if len(parts) > 1 else None
        probable = tuple(
            probable_classes(estimator, rows, held_out=at == 0) for at, rows in enumerate((X, X_test)[: len(parts)])
        )
        return cls(name_of(estimator), classes, names, _labels(estimator, names), parts[0], test, placed, probable)

    @property
    def parts(self) -> tuple[ProjectedRows, ...]:
        return (self.train,) if self.test is None else (self.train, self.test)

    @property
    def caption(self) -> str:
        """Return how many of the rows are drawn, if not all."""
        nouns = ("fitted", "new") if self.test is not None else ("",)
        drawn = [
            f"{len(part.codes)} of {part.n_rows} {noun}".strip() for part, noun in zip(self.parts, nouns, strict=True)
        ]
        sampled_here = any(len(part.codes) < part.n_rows for part in self.parts)
        return f"{' and '.join(drawn)} rows drawn, at random" if sampled_here else ""

    def chart(
        self,
        components: Sequence[int] = (0, 1),
        *,
        outlines: bool = True,
        hover: Sequence[Mapping[str, Sequence[str]]] = ({}, {}),
        most_classes: int | None = None,
    ) -> Chart:
        """Return the chart of rows on one component (class above class), two, or three.

        hover : texts of the training rows and of the new rows, by label
        most_classes : classes beyond the largest so many are drawn alike; None for no limit
        """
        k = len(self.component_names)
        chosen = tuple(number_of(at, k, "Component") for at in components) if k > 1 else (0,)
        counts = np.bincount(self.train.codes, minlength=len(self.classes))
        large = sorted(np.argsort(-counts, kind="stable")[:most_classes].tolist())  # classes that are drawn by name
        rest = sorted(set(range(len(self.classes))) - set(large))
        groups = [[number] for number in large] + ([rest] if rest else [])
        placed = self.placed if len(chosen) == 2 else None
        marks: list[Mark] = [] if placed is None else placed.lines(self.train.means[:, chosen])
        for at, part in enumerate(self.parts):
            pale = at == 0 and self.test is not None
            tips = dict(hover[at])
            if len(self.probable) > at and self.probable[at]:
                tips["most probable"] = self.probable[at]
            marks += [_points(self, part, group, chosen, pale, tips) for group in groups]
            if at == 0 and outlines and len(chosen) == 2 and placed is None:
                marks += [_outline(self, number, chosen) for number in large if np.isfinite(part.means[number]).all()]
        if placed is not None:
            marks.append(placed.names(chosen, large))
        elif len(chosen) == 2 and len(self.classes) > MOST_IN_LEGEND:
            marks.append(_names_at_means(self, chosen, large, marks))
        drawn = self.caption
        title = self.method + (f" ({drawn.removesuffix(', at random')})" if drawn else "")
        held_out = "held-out positions of the training rows"
        key = "" if self.placed is None else held_out
        if self.test is not None:
            key = "pale: fitted rows" if self.placed is None else f"pale: {held_out}"
        if placed is not None and placed.pairs:
            key += ";\ngrey lines join confused classes"
        if len(chosen) == 3:
            axes = Axis(limits=(-2.0, 2.0), shown=False), Axis(limits=(-1.5, 1.5), shown=False)
            return Chart(_in_a_cube(self, marks, chosen), *axes, title=title, equal=True, key=key, caption=drawn)
        across = Axis(self.labels[chosen[0]])
        if len(chosen) == 1:
            up = Axis(ticks=dict(enumerate(self.classes)), limits=(-0.6, len(self.classes) - 0.4))
            return Chart(tuple(marks), across, up, title, key=key, caption=drawn)
        up = Axis(self.labels[chosen[1]])
        if placed is not None:
            across, up = (axis._replace(limits=ROUND) for axis in (across, up))
            drawn = "; ".join(filter(None, [placed.caption, MEANING, drawn]))
        return Chart(tuple(marks), across, up, title, equal=True, key=key, caption=drawn)


def _labels(estimator: Any, names: tuple[str, ...]) -> tuple[str, ...]:
    shares = fitted_array(estimator, "explained_variance_ratio_")
    if shares is None or len(shares) < len(names):
        return names
    texts = [f", {100 * share:.0f} % of the {maximised_by(estimator)}" for share in shares[: len(names)]]
    return tuple(name if FILLED in name else name + share for name, share in zip(names, texts, strict=True))


def _points(
    values: ProjectionValues,
    rows: ProjectedRows,
    group: list[int],
    chosen: tuple[int, ...],
    pale: bool,
    hover: Mapping[str, Sequence[str]],
) -> Mark:
    """Return the rows of a class, or of several that are drawn alike."""
    number = group[0]
    mine = np.flatnonzero(np.isin(rows.codes, group))
    places = list(rows.scores[mine][:, chosen].T)
    if len(chosen) == 1:
        order = np.argsort(np.argsort(places[0], kind="stable"), kind="stable")
        places.append(rows.codes[mine] + 0.5 * lanes(len(mine))[order])
    name = values.classes[number] if len(group) == 1 else f"{len(group)} other classes"
    return Mark(
        "points",
        "fitted" if pale else "points",
        x=places[0],
        y=places[1],
        z=places[2] if len(chosen) == 3 else None,
        name=name,
        legend="" if pale else name,
        colour=number if len(group) == 1 else "line",
        symbol=number,
        size=(6.5 if len(rows.codes) <= MANY_ROWS else 5.0) - pale,
        opacity=0.25 if pale else 0.85,
        hover={label: [texts[row] for row in rows.rows[mine]] for label, texts in hover.items()},
    )


def _outline(values: ProjectionValues, number: int, chosen: tuple[int, ...]) -> Mark:
    x, y = values.train.ellipse(number, chosen[0], chosen[1]).T
    return Mark("line", "outlines", x, y, name=values.classes[number], colour=number, size=1.3, opacity=0.6)


def _names_at_means(values: ProjectionValues, chosen: tuple[int, ...], large: list[int], drawn: list[Mark]) -> Mark:
    """Return names that do not overlap, in a chart with the range of these marks."""
    there = [number for number in large if np.isfinite(values.train.means[number]).all()]
    x, y = values.train.means[there][:, chosen].T
    texts = [values.classes[number] for number in there]
    wide, high = np.ptp(np.concatenate([np.stack([mark.x, mark.y]) for mark in drawn], axis=1), axis=1)
    heights = texts_apart(x, y, texts, inch=max(wide / 4.6, high / 3.6))
    return Mark("text", "names", x, heights, texts=texts)


def _in_a_cube(values: ProjectionValues, marks: list[Mark], chosen: tuple[int, ...]) -> tuple[Mark, ...]:
    """Return the marks in a cube around the origin, with one unit for all axes, and three labelled axis lines."""
    everything = np.concatenate([part.scores[:, chosen] for part in values.parts])
    low, high = everything.min(axis=0), everything.max(axis=0)
    middle, unit = (low + high) / 2, float((high - low).max()) / 2 or 1.0
    moved = []
    for mark in marks:
        x, y, z = (np.stack([mark.x, mark.y, mark.z], axis=1) - middle).T / unit
        moved.append(replace(mark, x=x, y=y, z=z))
    corner = (low - middle) / unit
    for at, component in enumerate(chosen):
        end = corner.copy()
        end[at] = -corner[at]
        line = dict(zip("xyz", np.stack([corner, end], axis=1), strict=True))
        moved.append(Mark("line", "axes", **line, name=f"axis {at}", colour="soft", size=1))
        place = dict(zip("xyz", (end + 0.12 * np.eye(3)[at])[:, None], strict=True))
        moved.append(Mark("text", "axis names", **place, name=f"axis {at}", texts=[values.component_names[component]]))
    return tuple(moved)


class ProjectionDisplay(Display):
    """Rows on the components of a fitted transformer: held-out rows, and behind them, in pale colours, training rows.

    Where the new rows scatter farther than the pale ones, the fit follows its rows too closely. `PosteriorMap` shows
    its training rows at held-out positions, each placed by a rule that was fitted without it. The outline of a class
    holds 95 % of its rows where they are normal; it is that of the fitted rows. With one component, classes lie one
    above the other.

    {parameters}

    {attributes}
    artists_ : dict of dict
        By what they are ("points", "fitted", "outlines", "names") and by class, what matplotlib made.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from discrim import FisherLDA, ProjectionDisplay
    >>> X, y = load_iris(return_X_y=True)
    >>> shown = ProjectionDisplay.from_estimator(FisherLDA(2).fit(X[::2], y[::2]), X[::2], y[::2], X[1::2], y[1::2])
    >>> shown.ax_.get_xlabel()
    'component 1, 99 % of the class separation'
    """

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
        """Draw the rows as a fitted transformer places them.

        Parameters
        ----------
        {fitted}
        X_test : array-like of shape (n_test, n_features), default=None
            Other rows.
        y_test : array-like of shape (n_test,), default=None
            The classes of the other rows.
        most_points : int, default=2000
            Of more rows a sample is drawn, the same every time.
        {drawn}
        """
        values = ProjectionValues.from_estimator(estimator, X, y, X_test, y_test, most_points=most_points)
        return cls(values).plot(ax, **kwargs)

    def plot(self, ax: Any = None, *, components: Sequence[int] = (0, 1), outlines: bool = True, **kwargs: Any) -> Self:
        """Draw.

        Parameters
        ----------
        {ax}
        components : sequence of int, default=(0, 1)
            Which two or three components, counted from 0.
        outlines : bool, default=True
            Whether to draw an outline for each class.
        **kwargs : dict
            For matplotlib's `scatter` of the points.

        {returns}
        """
        return self._draw(self.values.chart(components, outlines=outlines), ax, "points", kwargs)
