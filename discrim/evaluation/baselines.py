"""Reducers of scikit-learn as baselines, with class labels as input and features as output.

The methods of discrim are compared with them, so they are used as they are. These classes only convert labels to the
numbers that regression methods need, and draw a sample of rows if a method is too slow for all of them.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.cross_decomposition import CCA, PLSRegression
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import lasso_path
from sklearn.model_selection import train_test_split
from sklearn.neighbors import NeighborhoodComponentsAnalysis
from sklearn.preprocessing import LabelBinarizer

MOST_NCA_ROWS = 2_000


class Wrapped(TransformerMixin, BaseEstimator):
    """Transformer whose features are those of the fitted transformer in `fitted_`."""

    fitted_: Any

    def transform(self, X: ArrayLike) -> NDArray[Any]:
        return np.asarray(self.fitted_.transform(X))


class _OnIndicators(Wrapped):
    """Regression of the class indicators on X; the features are its transform of X."""

    _regression: type

    def __init__(self, n_components: int = 1) -> None:
        self.n_components = n_components

    def fit(self, X: ArrayLike, y: ArrayLike) -> Self:
        self.fitted_ = self._regression(self.n_components, scale=False).fit(X, indicators(y))
        return self


class PartialLeastSquares(_OnIndicators):
    """PLS regression of the class indicators on X; the features are its X-scores."""

    _regression = PLSRegression


class CanonicalCorrelations(_OnIndicators):
    """Canonical correlation analysis of X and the class indicators; the features are X's canonical variables."""

    _regression = CCA


class NeighborhoodComponents(Wrapped):
    """Neighbourhood components analysis, fitted on at most 2,000 rows, drawn by class (time grows as n²)."""

    def __init__(self, n_components: int = 2, random_state: int = 0) -> None:
        self.n_components = n_components
        self.random_state = random_state

    def fit(self, X: Any, y: Any) -> NeighborhoodComponents:
        if len(y) > MOST_NCA_ROWS:
            X, _, y, _ = train_test_split(X, y, train_size=MOST_NCA_ROWS, stratify=y, random_state=self.random_state)
        self.fitted_ = NeighborhoodComponentsAnalysis(self.n_components, random_state=self.random_state).fit(X, y)
        return self


class LassoSelection(TransformerMixin, BaseEstimator):
    """Selection of the columns of the last model on the lasso path with at most `n_components` columns.

    The path uses standardised columns and penalties from the one that keeps no column to a thousandth of it. More than
    two classes share their columns (multi-task lasso).

    Attributes
    ----------
    selected_ : numbers of the columns.
    """

    def __init__(self, n_components: int = 2) -> None:
        self.n_components = n_components

    def fit(self, X: ArrayLike, y: ArrayLike) -> LassoSelection:
        rows, responses = np.asarray(X, dtype=np.float64), indicators(y)
        scale = rows.std(axis=0)
        columns = np.asfortranarray((rows - rows.mean(axis=0)) / np.where(scale > 0, scale, 1.0))
        responses -= responses.mean(axis=0)
        pull = np.linalg.norm(columns.T @ responses, axis=1)
        self.selected_ = np.array([pull.argmax()])  # the first to enter
        for held in _models_along_path(columns, responses, pull.max() / len(rows)):
            if 0 < len(held) <= self.n_components:
                self.selected_ = held
            elif len(held) > 2 * self.n_components + 10:
                break  # a column can leave the path again, but hardly so many
        return self

    def transform(self, X: ArrayLike) -> NDArray[Any]:
        return np.asarray(X)[:, self.selected_]


def _models_along_path(
    columns: NDArray[np.float64], responses: NDArray[np.float64], strongest: float
) -> Iterator[NDArray[np.intp]]:
    """Return the columns of each model of the path, from few to many; ten penalties are computed at a time."""
    target = responses[:, 0] if responses.shape[1] == 1 else np.asfortranarray(responses)
    start = None
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # which columns enter is settled long before
        for penalties in np.split(strongest * np.logspace(0, -3, 100), 10):
            _, weights, _ = lasso_path(columns, target, alphas=penalties, coef_init=start)
            start = np.ascontiguousarray(weights[..., -1])
            used = (weights != 0).reshape(-1, *weights.shape[-2:]).any(axis=0)  # tasks × columns × penalties
            yield from (np.flatnonzero(model) for model in used.T)


def indicators(y: ArrayLike) -> NDArray[np.float64]:
    """Return one 0/1 column per class; one column for two classes."""
    return LabelBinarizer().fit_transform(np.asarray(y)).astype(np.float64)
