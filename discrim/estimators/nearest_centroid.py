"""Classification by the nearest class centroid in discriminant space.

    score_c(x) = −½ ‖A(x−μ) − A(μ_c−μ)‖² + log p_c ,    A the discriminants, scaled to unit within-class covariance

All discriminants take part, never the pads, whatever n_components is. Up to a term that is the same for all classes the
score is linear in x, so `coef_` and `intercept_` exist too.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import log_softmax
from sklearn.base import ClassifierMixin

from discrim.estimators.base import Reducer, fitted_property
from discrim.tables.foreign_arrays import as_given
from discrim.tables.rows import projected
from discrim.tables.validation import require_representable

SCORES_AT_ONCE = 2**22  # how many rows × classes are held while predicting
REACH = 1e100  # deviations up to which scores are finite
FAR = 1e3  # deviations between centroids from which scores are reckoned anew around the nearest one
FEW_CENTROIDS = 1000  # … where there are no more than these


class NearestCentroid(ClassifierMixin, Reducer):
    """A reducer that predicts, by its discriminants (q×d), the classes' centroids along them (C×q), and priors."""

    _discriminants: NDArray[np.float64]
    _centroids: NDArray[np.float64]
    _log_priors: NDArray[np.float64]
    _centred_means: NDArray[np.float64]
    _covariance: NDArray[np.float64] | None

    def _scores(self, table: Any) -> Iterator[NDArray[np.float64]]:
        """Scores of consecutive rows, in pieces that stay small with many classes."""
        centroids, log_priors = self._centroids, self._log_priors
        offsets = log_priors - 0.5 * np.einsum("cq,cq->c", centroids, centroids)
        features = projected(table, self.mean_, self._discriminants).astype(np.float64, copy=False)
        require_representable(features, table)
        step = max(1, SCORES_AT_ONCE // len(centroids))
        far = len(centroids) <= FEW_CENTROIDS and np.abs(centroids).max(initial=0.0) > FAR
        for first in range(0, len(features), step):
            part = _within_reach(features[first : first + step])
            scores = part @ centroids.T + offsets
            yield _around_nearest(part, scores, centroids, log_priors) if far else scores

    def decision_function(self, X: ArrayLike) -> NDArray[np.float64]:
        """Scores of the classes.

        Parameters
        ----------
        X : array or sparse matrix of shape (n_samples, n_features)
            Rows.

        Returns
        -------
        scores : array of shape (n_samples, n_classes), or (n_samples,) with two classes
            Scores of all classes; with two classes the second's minus the first's.
        """
        table = self._fitted_table(X)
        scores = np.concatenate(list(self._scores(table)))
        scores = scores[:, 1] - scores[:, 0] if scores.shape[1] == 2 else scores
        return as_given(scores.astype(table.dtype, copy=False), X)

    def predict(self, X: ArrayLike) -> NDArray[Any]:
        """The label of the nearest centroid.

        Parameters
        ----------
        X : array or sparse matrix of shape (n_samples, n_features)
            Rows.

        Returns
        -------
        labels : array of shape (n_samples,)
            A label for each row.
        """
        nearest = np.concatenate([part.argmax(axis=1) for part in self._scores(self._fitted_table(X))])
        return as_given(self.classes_[nearest], X)

    @fitted_property
    def coef_(self) -> NDArray[Any]:
        """Weights of the linear scores (C×d; with two classes the second's minus the first's, 1×d)."""
        coef = self._centroids @ self._discriminants
        return (coef[1:] - coef[:1] if len(coef) == 2 else coef).astype(self.components_.dtype, copy=False)

    @fitted_property
    def intercept_(self) -> NDArray[Any]:
        """Constants of the linear scores (C; with two classes 1)."""
        constants = self._log_priors - 0.5 * np.einsum("cq,cq->c", self._centroids, self._centroids)
        constants = constants - self._centroids @ (self._discriminants @ self.mean_)
        return (constants[1:] - constants[:1] if len(constants) == 2 else constants).astype(self.components_.dtype)

    @fitted_property
    def means_(self) -> NDArray[np.float64]:
        """Class means (C×d)."""
        return self.mean_ + self._centred_means

    @fitted_property
    def priors_(self) -> NDArray[np.float64]:
        """Class probabilities that predictions start from."""
        return np.exp(self._log_priors)

    @fitted_property
    def xbar_(self) -> NDArray[np.float64]:
        """Mean of the class means, weighted by their priors: `mean_` where the priors are the classes' shares."""
        return self.mean_ + self.priors_ @ self._centred_means

    @fitted_property
    def scalings_(self) -> NDArray[Any]:
        """The directions as columns (d×k): transform gives (x − mean_) scalings_."""
        return self.components_.T

    @fitted_property
    def covariance_(self) -> NDArray[np.float64]:
        """Within-class covariance (d×d) that distances between classes are measured in, where it was asked for."""
        if self._covariance is None:
            raise AttributeError(
                f"{type(self).__name__} keeps no covariance_, d×d numbers, unless asked to: pass store_covariance=True "
                "and fit again."
            )
        return self._covariance


def _within_reach(features: NDArray[np.float64]) -> NDArray[np.float64]:
    """Rows so far out that products with them would overflow, nearer in the same direction: as certain as before."""
    lengths = np.abs(features).max(axis=1, initial=0.0)
    return features if lengths.max(initial=0.0) <= REACH else features / np.maximum(lengths / REACH, 1.0)[:, None]


def _around_nearest(
    features: NDArray[np.float64],
    scores: NDArray[np.float64],
    centroids: NDArray[np.float64],
    log_priors: NDArray[np.float64],
) -> NDArray[np.float64]:
    """The same scores, up to a number for each row, seen from the centroid that is nearest by what they say.

    f·c − ½‖c‖² is a difference of numbers as large as the squared distances between centroids; (f−n)·(c−n) − ½‖c−n‖²
    for classes near n is not.
    """
    nearest = scores.argmax(axis=1)
    result = np.empty_like(scores)
    for c in np.unique(nearest):
        rows, others = nearest == c, centroids - centroids[c]
        offsets = log_priors - 0.5 * np.einsum("cq,cq->c", others, others)
        result[rows] = (features[rows] - centroids[c]) @ others.T + offsets
    return result


class GaussianCentroid(NearestCentroid):
    """Where the classes are modelled as Gaussians of one covariance, the scores give probabilities."""

    def predict_log_proba(self, X: ArrayLike) -> NDArray[np.float64]:
        """Log probability of every class.

        Parameters
        ----------
        X : array or sparse matrix of shape (n_samples, n_features)
            Rows.

        Returns
        -------
        log_probabilities : array of shape (n_samples, n_classes)
            In the order of classes_.
        """
        return as_given(self._log_probabilities(X), X)

    def _log_probabilities(self, X: ArrayLike) -> NDArray[np.float64]:
        return np.concatenate([log_softmax(part, axis=1) for part in self._scores(self._fitted_table(X))])

    def predict_proba(self, X: ArrayLike) -> NDArray[np.float64]:
        """Probability of every class.

        Parameters
        ----------
        X : array or sparse matrix of shape (n_samples, n_features)
            Rows.

        Returns
        -------
        probabilities : array of shape (n_samples, n_classes)
            In the order of classes_.
        """
        return as_given(np.exp(self._log_probabilities(X)), X)
