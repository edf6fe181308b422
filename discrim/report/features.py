"""Features as charts: loadings, structure coefficients, the arrows of a biplot, and importances."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike
from scipy.sparse import issparse

from discrim.core.coordinates.basis import Features
from discrim.core.moments.class_moments import ClassMoments
from discrim.estimators.solution import importances, label_spread, labels_explained
from discrim.report.chart import Axis, Chart, Mark, apart, number_of
from discrim.report.drawing import Display
from discrim.report.fitted import (
    Array,
    Codes,
    component_names,
    feature_names,
    loadings_of,
    name_of,
    reducer_of,
    rows_seen,
    scores_of,
)

MOST_COMPONENTS = 10
SPECTRUM_NAME = re.compile(r"\s*([+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?)\s*([^\d\s.,][^,]{0,11}|)")  # 1450 nm
KINDS = ("loadings", "structure", "arrows")
LEAST_OF_A_SPECTRUM = 20  # features, below which ordered numbers for names are no spectrum
NAME_DISTANCE, MIN_SPACE = 1.12, 0.98  # distance of the names of arrows, and space for them
LETTER, LONGEST_NAME = 0.0135, 24  # the width of a letter as a share of the chart's, and how many are shown
NAME_GAP, ALL_GAPS = 0.24, 2.1  # how far from each other, on a narrow screen too; and from the lowest to the highest


@dataclass(frozen=True, eq=False)
class LoadingsValues:
    """Weights and correlations of features by component.

    loadings : k×d, what each feature adds to a component, t = Σ_j loading_j (x_j − mean_j); None where the transformer
        is not linear or does not say
    structure : k×d structure coefficients, the correlation of each feature with each component over the rows; 0 for a
        constant feature. They are what a loading hides where features are correlated, and the usual way to read LDA.
    """

    method: str
    component_names: tuple[str, ...]
    feature_names: tuple[str, ...]
    loadings: Array | None
    structure: Array

    @classmethod
    def from_estimator(
        cls, estimator: Any, X: Any, *, names: Any = None, most_components: int = MOST_COMPONENTS, linear: bool = True
    ) -> LoadingsValues:
        """Compute loadings and correlations over the rows of X; names are those of its columns.

        linear : whether a component is a sum of weighted columns, so that it has loadings
        """
        seen = rows_seen(estimator, X)
        if not linear or (names is not None and len(names) == X.shape[1] != seen.shape[1]):
            seen = X  # the columns, if the method works in coordinates of a kernel, which have no names
        scores = scores_of(estimator, X)[:, :most_components]
        k, d = scores.shape[1], seen.shape[1]
        loadings = loadings_of(estimator)
        fits = linear and loadings is not None and len(loadings) >= k and loadings.shape[1] == d
        known = loadings[:k] if fits and loadings is not None else None
        own_names = names if names is not None or X.shape[1] == d else [f"f{at}" for at in range(d)]
        given = feature_names(X if own_names is None else seen, own_names)
        return cls(name_of(estimator), component_names(estimator, k), given, known, correlations(scores, seen))

    @property
    def spectrum(self) -> Array | None:
        """Return the names of the features as numbers, if they are ascending numbers, as of a spectrum."""
        return spectrum_places(self.feature_names)

    @property
    def kinds(self) -> tuple[str, ...]:
        """Return the kinds of tables that exist."""
        return ("structure",) if self.loadings is None else ("structure", "loadings")

    def table(self, kind: str) -> Array:
        """Return the loadings or the structure coefficients; raise if they do not exist."""
        if kind not in KINDS:
            raise ValueError(f"kind must be one of {', '.join(map(repr, KINDS))}; got {kind!r}.")
        if kind == "loadings" and self.loadings is None:
            raise ValueError(f"{self.method} has no loadings. Pass kind='structure' for correlations.")
        return self.structure if kind != "loadings" or self.loadings is None else self.loadings

    def top(self, component: int, count: int = 12, *, by: str | None = None) -> Codes:
        """Numbers of the features that matter most to a component, largest absolute value first.

        by : "loadings" or "structure"; None for loadings where there are any
        """
        table = self.loadings if by != "structure" and self.loadings is not None else self.structure
        return np.argsort(-np.abs(table[component]), kind="stable")[:count]

    def arrows(self, first: int = 0, second: int = 1, count: int = 10) -> tuple[Codes, Array]:
        """Return the features most correlated with two components, and their correlations."""
        ends = self.structure[[first, second]].T
        numbers = np.argsort(-np.linalg.norm(ends, axis=1), kind="stable")[:count]
        return numbers, ends[numbers]

    def chart(self, kind: str, component: int = 0, count: int = 12) -> Chart:
        """Return the largest features as bars; for a spectrum, all features as a line."""
        table = self.table(kind)
        component = number_of(component, len(self.component_names), "Component")
        title = f"{self.method}, {self.component_names[component]}"
        what = "correlation with the component" if kind == "structure" else "loading"
        limits = (-1.0, 1.0) if kind == "structure" else None
        zero = Mark("upright", "zero", [0.0], [0.0])
        top = self.top(component, count, by=kind)
        return features_chart(self.feature_names, table[component], top, Axis(what, limits=limits), title, zero, 3)

    def arrows_chart(self, first: int = 0, second: int = 1, count: int = 12) -> Chart:
        """Return a circle of correlations with arrows for the features most correlated with two components."""
        names = self.component_names
        first, second = (number_of(at, len(names), "Component") for at in (first, second))
        numbers, ends = self.arrows(first, second, count)
        angle = np.linspace(0, 2 * np.pi, 121)
        marks = [
            Mark("line", "circle", np.cos(angle), np.sin(angle), colour="line", size=1),
            Mark("arrows", "arrows", ends[:, 0], ends[:, 1], colour=0, size=1.5),
        ]
        for side, anchor in ((-1, "end"), (1, "start")):
            mine = np.flatnonzero((ends[:, 0] >= 0) == (side > 0))
            heights = apart(ends[mine, 1], min(NAME_GAP, ALL_GAPS / max(1, len(mine) - 1)), most=1.1)
            across = np.stack(
                [ends[mine, 0], np.full(len(mine), side * NAME_DISTANCE), np.full(len(mine), np.nan)], axis=1
            )
            up = np.stack([ends[mine, 1], heights, heights], axis=1)
            marks.append(Mark("line", "leaders", across.ravel(), up.ravel(), name=anchor, colour="line", size=0.8))
            texts = [f" {self.feature_names[at]} " for at in numbers[mine]]
            marks.append(Mark("text", "names", across[:, 1], heights, name=anchor, texts=texts, anchor=anchor))
        limits = _space_for_names(marks)
        ticks = {at: f"{at:g}".replace("-", "−") for at in (-1.0, -0.5, 0.0, 0.5, 1.0)}
        across_axis = Axis(f"correlation with {names[first]}", limits=limits, ticks=ticks)
        up_axis = Axis(f"correlation with {names[second]}", limits=(-1.2, 1.2), ticks=ticks)
        return Chart(tuple(marks), across_axis, up_axis, self.method, equal=True)


def _space_for_names(marks: list[Mark]) -> tuple[float, float]:
    """Return the limits of the axis, wide enough for the names of the arrows."""
    texts = {mark.name: mark.texts for mark in marks if mark.part == "names"}
    letters = [max((min(len(text), LONGEST_NAME) for text in texts[side]), default=0) for side in ("end", "start")]
    width = 2 * NAME_DISTANCE / (1 - LETTER * sum(letters))
    left, right = (NAME_DISTANCE + max(LETTER * width * some, MIN_SPACE if some else 0.0) for some in letters)
    return -left, right


def spectrum_places(names: tuple[str, ...]) -> Array | None:
    """Return the numbers in the names of features, if there are enough of them, in order and of one unit; else None."""
    parts = [SPECTRUM_NAME.fullmatch(name) for name in names]
    if len(parts) < LEAST_OF_A_SPECTRUM or any(part is None or part[2] != spectrum_unit(names) for part in parts):
        return None
    places = np.array([float(part[1]) for part in parts if part is not None])
    steps = np.diff(places)
    return places if np.isfinite(places).all() and bool((steps > 0).all() or (steps < 0).all()) else None


def spectrum_unit(names: tuple[str, ...]) -> str:
    """Return the unit after the number in the first name, such as "nm"; empty if there is none."""
    part = SPECTRUM_NAME.fullmatch(names[0])
    return "" if part is None else part[2]


def features_chart(
    names: tuple[str, ...], heights: Array, top: Codes, what: Axis, title: str, rule: Mark, digits: int
) -> Chart:
    """Return the features of `top` as bars; for a spectrum, all features as a line.

    rule : upright, at a height to compare with
    """
    places = spectrum_places(names)
    if places is not None:
        line = Mark("line", "line", places, heights, colour=0, size=1.5, tip=f"{{x}}: {{y:.{digits}f}}")
        return Chart(
            (replace(rule, kind="level", colour="soft"), line), Axis(spectrum_unit(names) or "feature"), what, title
        )
    hues = [0 if height >= 0 else 1 for height in heights[top]]
    bars = Mark("bars", "bars", heights[top], np.arange(len(top)), colour=hues, size=0.7, tip=f"{{x:.{digits}f}}")
    up = Axis(ticks={at: names[number] for at, number in enumerate(top)}, limits=(len(top) - 0.4, -0.6))
    return Chart((bars, rule), what, up, title, height=1.4 + 0.28 * max(len(top), 4))


def correlations(scores: Array, X: Any) -> Array:
    """Return corr(t_i, x_j) for every component and feature (k×d); a sparse X stays sparse."""
    n = len(scores)
    centred = scores - scores.mean(axis=0)
    if issparse(X):
        mean = np.asarray(X.mean(axis=0)).ravel()
        products = np.asarray((X.T @ centred).T) / n
        variances = np.asarray(X.multiply(X).mean(axis=0)).ravel() - mean**2
        least = 1e-12 * mean**2
    else:
        rows = X - X.mean(axis=0)
        products, variances = centred.T @ rows / n, (rows**2).mean(axis=0)
        least = (1e-12 * np.abs(X).max(axis=0)) ** 2
    varies = variances > least
    scale = np.sqrt(np.outer((centred**2).mean(axis=0), np.where(varies, variances, 0.0)))
    return np.divide(products, scale, out=np.zeros_like(products), where=scale > 0).clip(-1.0, 1.0)


class LoadingsDisplay(Display):
    """Most important features of a component, as bars; or of two components, as arrows.

    Loadings say what a feature adds to the component; where features are correlated they can mislead, and structure
    coefficients, the correlation of each feature with the component, are the usual way to read LDA. Where the features
    are a spectrum (their names are numbers in order, at least 20), all of them are drawn, as a line over it. If the
    names end in one unit ("1450 nm"), it is the label of the axis.

    {parameters}

    {attributes}
    artists_ : dict of dict
        By what they are ("bars", "line" or "arrows"), what matplotlib made, under the name "".
    features_ : tuple of str
        The names of the features drawn, the most important first; of a spectrum all, in its order.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from discrim import FisherLDA, LoadingsDisplay
    >>> X, y = load_iris(return_X_y=True, as_frame=True)
    >>> shown = LoadingsDisplay.from_estimator(FisherLDA(2).fit(X, y), X, kind="structure")
    >>> shown.features_[0]
    'petal length (cm)'
    """

    @classmethod
    def from_estimator(cls, estimator: Any, X: Any, *, names: Any = None, ax: Any = None, **kwargs: Any) -> Self:
        """Draw which features make the components of a fitted transformer.

        Parameters
        ----------
        estimator : estimator
            A fitted transformer, or a pipeline that ends in one.
        X : array-like of shape (n_samples, n_features)
            Rows over which features and components are correlated.
        names : sequence of str, default=None
            Of the columns; None for a data frame's own, or f0, f1, ….
        {drawn}
        """
        return cls(LoadingsValues.from_estimator(estimator, X, names=names)).plot(ax, **kwargs)

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
        """Draw.

        Parameters
        ----------
        {ax}
        kind : {"loadings", "structure", "arrows"}, default=None
            None for loadings if the transformer has them, else structure coefficients.
        component : int, default=0
            Which component, counted from 0.
        other : int, default=1
            The second component of arrows.
        count : int, default=12
            How many features, those that matter most.
        **kwargs : dict
            For matplotlib's bars, line or arrows.

        {returns}
        """
        values = self.values
        if kind is None:
            kind = "structure" if values.loadings is None else "loadings"
        values.table(kind)
        if kind == "arrows":
            chart, numbers = values.arrows_chart(component, other, count), values.arrows(component, other, count)[0]
        else:
            chart = values.chart(kind, component, count)
            numbers = values.top(component, count, by=kind)
        whole = values.spectrum is not None and kind != "arrows"
        self.features_ = values.feature_names if whole else tuple(values.feature_names[at] for at in numbers)
        part = "arrows" if kind == "arrows" else "line" if whole else "bars"
        return self._draw(chart, ax, part, kwargs)


@dataclass(frozen=True, eq=False)
class FeatureValues:
    """One importance for each feature."""

    method: str
    feature_names: tuple[str, ...]
    importances: Array

    def __post_init__(self) -> None:
        if len(self.importances) != len(self.feature_names):
            raise ValueError(
                f"X must have the {len(self.importances)} columns that {self.method} works on; got "
                f"{len(self.feature_names)}. Pass the last step alone, with its own input rows."
            )

    def top(self, count: int = 12) -> Codes:
        """Return the numbers of the most important features, the most important first."""
        return np.argsort(-self.importances, kind="stable")[:count]


@dataclass(frozen=True, eq=False)
class VIPValues(FeatureValues):
    """Importance of each feature (`vip`); the mean of the squares is 1."""

    @classmethod
    def from_estimator(cls, estimator: Any, X: Any, y: ArrayLike, *, names: Any = None) -> VIPValues:
        """Compute the importance; X, y are the rows that the transformer was fitted on, names those of its columns."""
        called = name_of(estimator)
        vip = getattr(reducer_of(estimator), "vip_", None)
        if vip is None:
            vip = importances(directions_of(estimator, called), explained_by(scores_of(estimator, X), y))
        return cls(called, feature_names(X, names), np.asarray(vip, dtype=np.float64))

    @property
    def vip(self) -> Array:
        return self.importances

    def chart(self, count: int = 12) -> Chart:
        """Return the most important features as bars; for a spectrum, all features as a line."""
        one = Mark("upright", "one", [1.0], [1.0], colour="soft", dash="dash")
        across = Axis("importance (VIP)")
        return features_chart(self.feature_names, self.vip, self.top(count), across, self.method, one, 2)


@dataclass(frozen=True, eq=False)
class SeparationValues(FeatureValues):
    """Importance of features for the separation of two classes.

    importances : mean effect of one standard deviation of each feature on the log odds of the two classes
    """

    between: tuple[str, str]

    @classmethod
    def from_estimator(
        cls, estimator: Any, X: Any, y: ArrayLike, between: Any, *, names: Any = None
    ) -> SeparationValues:
        """Compute the importance; rows of other classes than the two labels of `between` are not used."""
        of_pair = rows_seen(estimator, X)[np.flatnonzero(np.isin(np.asarray(y), list(between)))]
        found = reducer_of(estimator).explain(of_pair, between).importances
        first, second = map(str, between)
        return cls(name_of(estimator), feature_names(X, names), found, (first, second))

    def chart(self, count: int = 12) -> Chart:
        """Return the most important features as bars; for a spectrum, all features as a line."""
        zero = Mark("upright", "zero", [0.0], [0.0])
        across = Axis("effect of one standard deviation on the log odds")
        title = f"{self.method}: {self.between[0]} against {self.between[1]}"
        return features_chart(self.feature_names, self.importances, self.top(count), across, title, zero, 2)


def directions_of(estimator: Any, called: str) -> Array:
    """Return the directions of the components as rows: the weights of PLS, else loadings."""
    weights = getattr(reducer_of(estimator), "x_weights_", None)
    rows = loadings_of(estimator) if weights is None else np.asarray(weights, dtype=np.float64).T
    if rows is None:
        raise ValueError(f"estimator must have loadings; {called} has none. Pass a linear transformer.")
    return rows


def explained_by(components: Array, y: ArrayLike) -> Array:
    """Return SS_h/n: the variance of the one-hot labels that each component explains beyond those before it."""
    moments = ClassMoments.of(components, np.asarray(y))
    return labels_explained(label_spread(np.eye(components.shape[1]), Features.from_moments(moments), moments))


class FeaturesDisplay(Display):
    """Base class of displays with one importance for each feature."""

    features_: tuple[str, ...]

    def plot(self, ax: Any = None, *, count: int = 12, **kwargs: Any) -> Self:
        """Draw.

        Parameters
        ----------
        {ax}
        count : int, default=12
            How many features, the most important ones.
        **kwargs : dict
            For matplotlib's bars or line.

        {returns}
        """
        values, whole = self.values, spectrum_places(self.values.feature_names) is not None
        top = range(len(values.importances)) if whole else values.top(count)
        self.features_ = tuple(values.feature_names[at] for at in top)
        return self._draw(values.chart(count), ax, "line" if whole else "bars", kwargs)


class VIPDisplay(FeaturesDisplay):
    """Importance of features over all components (variable influence on projection, VIP).

    √(d Σ_h SS_h w_jh² / Σ_h SS_h): the squared unit directions of the components, weighted by the variance of the
    labels that each explains beyond those before it. The mean of the squares is 1 (dashed); features above are usually
    looked at. `values.vip` has it of every feature; it is `vip_` where a fit has that. For PLS the directions are its
    weights; for every other linear transformer they are its loadings, so that features should be in one unit (a
    StandardScaler).

    {parameters}

    {attributes}
    features_ : tuple of str
        The names of the features drawn, the most important first; of a spectrum all, in its order.
    artists_ : dict of dict
        By what they are ("bars" or "line", "one"), what matplotlib made, under the name "".

    References
    ----------
    Wold, Sjöström and Eriksson, "PLS-regression: a basic tool of chemometrics" (2001).

    Examples
    --------
    >>> from sklearn.datasets import load_wine
    >>> from sklearn.pipeline import make_pipeline
    >>> from sklearn.preprocessing import StandardScaler
    >>> from discrim import RegularizedLDA, VIPDisplay
    >>> X, y = load_wine(return_X_y=True, as_frame=True)
    >>> model = make_pipeline(StandardScaler(), RegularizedLDA(2, shrinkage=0.1)).fit(X, y)
    >>> VIPDisplay.from_estimator(model, X, y).features_[0]
    'proline'
    """

    @classmethod
    def from_estimator(
        cls, estimator: Any, X: Any, y: ArrayLike, *, names: Any = None, ax: Any = None, **kwargs: Any
    ) -> Self:
        """Draw which features matter to a fitted transformer.

        Parameters
        ----------
        estimator : estimator
            A fitted linear transformer, or a pipeline that ends in one and keeps the columns before it.
        X : array-like of shape (n_samples, n_features)
            The rows it was fitted on.
        y : array-like of shape (n_samples,)
            Their classes.
        names : sequence of str, default=None
            Of the columns; None for a data frame's own, or f0, f1, ….
        {drawn}
        """
        return cls(VIPValues.from_estimator(estimator, X, y, names=names)).plot(ax, **kwargs)


class SeparationDisplay(FeaturesDisplay):
    """Features that separate two classes: the effect of each on the log odds of the one against the other.

    The mean over rows of the two classes of `explain(X, between).importances`, for `PosteriorMap` and for the linear
    reducers that predict. Effects are those of one standard deviation of the feature.

    {parameters}

    {attributes}
    features_ : tuple of str
        The names of the features drawn, the most important first; of a spectrum all, in its order.
    artists_ : dict of dict
        By what they are ("bars" or "line", "zero"), what matplotlib made, under the name "".

    Examples
    --------
    >>> from sklearn.datasets import load_wine
    >>> from sklearn.pipeline import make_pipeline
    >>> from sklearn.preprocessing import StandardScaler
    >>> from discrim import RegularizedLDA, SeparationDisplay
    >>> X, y = load_wine(return_X_y=True, as_frame=True)
    >>> model = make_pipeline(StandardScaler(), RegularizedLDA(2, shrinkage=0.1)).fit(X, y)
    >>> SeparationDisplay.from_estimator(model, X, y, between=(0, 1)).features_[0]
    'proline'
    """

    @classmethod
    def from_estimator(
        cls, estimator: Any, X: Any, y: ArrayLike, between: Any, *, names: Any = None, ax: Any = None, **kwargs: Any
    ) -> Self:
        """Draw which features separate two classes.

        Parameters
        ----------
        estimator : estimator
            A fitted PosteriorMap or linear reducer that predicts, or a pipeline that ends in one.
        X : array-like of shape (n_samples, n_features)
            Rows.
        y : array-like of shape (n_samples,)
            Their classes.
        between : pair of labels
            The two classes.
        names : sequence of str, default=None
            Of the columns; None for a data frame's own, or f0, f1, ….
        {drawn}
        """
        return cls(SeparationValues.from_estimator(estimator, X, y, between, names=names)).plot(ax, **kwargs)
