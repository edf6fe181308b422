"""Importance of features over all components (VIP), and for the separation of two classes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike

from discrim.core.coordinates.basis import Features
from discrim.core.moments.class_moments import ClassMoments
from discrim.estimators.solution import importances, label_spread, labels_explained
from discrim.report.chart import Axis, Chart, Mark
from discrim.report.drawing import Display
from discrim.report.fitted import Array, Codes, feature_names, loadings_of, name_of, reducer_of, rows_seen, scores_of
from discrim.report.loadings import features_chart, spectrum_places


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
