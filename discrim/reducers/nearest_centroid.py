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

from discrim.data.check import checked_table
from discrim.reducers.base import Reducer, projected

SCORES_AT_ONCE = 2**22  # how many rows × classes are held while predicting
FAR = 1e3  # deviations between centroids from which scores are reckoned anew around the nearest one
FEW_CENTROIDS = 1000  # … where there are no more than these


class NearestCentroid(ClassifierMixin, Reducer):
    """A reducer that predicts: details hold `discriminants` (q×d), `centroids` (C×q) and `log_priors` (C)."""

    def _scores(self, X: Any) -> Iterator[NDArray[np.float64]]:
        """Scores of consecutive rows, in pieces that stay small with many classes."""
        projection = self._fitted()
        centroids = projection.details["centroids"]
        offsets = projection.details["log_priors"] - 0.5 * np.einsum("cq,cq->c", centroids, centroids)
        features = projected(X, projection.mean, projection.details["discriminants"]).astype(np.float64, copy=False)
        step = max(1, SCORES_AT_ONCE // len(centroids))
        far = len(centroids) <= FEW_CENTROIDS and np.abs(centroids).max(initial=0.0) > FAR
        for first in range(0, len(features), step):
            part = features[first : first + step]
            scores = part @ centroids.T + offsets
            yield _around_nearest(part, scores, centroids, projection.details["log_priors"]) if far else scores

    def _checked(self, X: ArrayLike) -> Any:
        self._fitted()
        return checked_table(self, X)

    def decision_function(self, X: ArrayLike) -> NDArray[np.float64]:
        """Scores of all classes (n×C); with two classes the second's minus the first's (n)."""
        scores = np.concatenate(list(self._scores(self._checked(X))))
        return scores[:, 1] - scores[:, 0] if scores.shape[1] == 2 else scores

    def predict(self, X: ArrayLike) -> NDArray[Any]:
        """The label of the nearest centroid."""
        return self.classes_[np.concatenate([part.argmax(axis=1) for part in self._scores(self._checked(X))])]

    @property
    def coef_(self) -> NDArray[np.float64]:
        """Weights of the linear scores (C×d; with two classes the second's minus the first's, 1×d)."""
        details = self._fitted().details
        coef = details["centroids"] @ details["discriminants"]
        return coef[1:] - coef[:1] if len(coef) == 2 else coef

    @property
    def intercept_(self) -> NDArray[np.float64]:
        """Constants of the linear scores (C; with two classes 1)."""
        projection = self._fitted()
        centroids = projection.details["centroids"]
        constants = projection.details["log_priors"] - 0.5 * np.einsum("cq,cq->c", centroids, centroids)
        constants = constants - centroids @ (projection.details["discriminants"] @ projection.mean)
        return constants[1:] - constants[:1] if len(constants) == 2 else constants


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
        """Log probability of every class (n×C)."""
        return np.concatenate([log_softmax(part, axis=1) for part in self._scores(self._checked(X))])

    def predict_proba(self, X: ArrayLike) -> NDArray[np.float64]:
        """Probability of every class (n×C)."""
        return np.exp(self.predict_log_proba(X))
