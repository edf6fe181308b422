"""The extractors of the paper on data shifting as it uses them, with and without the shift."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.cluster import KMeans
from sklearn.decomposition import NMF, FactorAnalysis, FastICA, SparsePCA
from sklearn.kernel_approximation import RBFSampler
from sklearn.model_selection import StratifiedShuffleSplit
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler

from discrim.reducers.autoencoder import Autoencoder
from discrim.reducers.embedding import median_square_distance
from discrim.reducers.max_margin_shift import MaxMarginShift
from discrim.reducers.pca import PCA
from discrim.reducers.shift_search import SHIFTS

__all__ = ["EXTRACTORS", "SHIFTS", "ShiftByFolds", "ShiftedExtractor"]

# by name: whether it sees the rows as they are instead of random features of them, and what makes one
EXTRACTORS: dict[str, tuple[bool, Callable[..., Any]]] = {
    "pca": (True, PCA),
    "autoencoder": (True, partial(Autoencoder, max_iter=100)),
    "kernel-pca": (False, PCA),
    "ica": (False, partial(FastICA, max_iter=200, tol=1e-3)),
    "sparse-pca": (False, partial(SparsePCA, max_iter=20, method="cd")),
    "k-means": (False, partial(KMeans, n_init=3)),
    "factor-analysis": (False, partial(FactorAnalysis, max_iter=100)),
    "nmf": (False, partial(NMF, init="nndsvda", max_iter=100)),
}
COSTS = (0.1, 1.0, 10.0)
ENOUGH = 1e-6  # relative duality gap: accuracies do not change below 1e-3


class ShiftedExtractor(TransformerMixin, BaseEstimator):
    """Rows, or random Fourier features of them, shifted by what an SVM says, and an extractor trained on them.

    extractor : a name in EXTRACTORS; shift : 0 for none, a number, or "cv" for the one that serves best held out
    features : how many random features ("500", "1000", or "1000 wide" with a kernel twice as wide), "" for the rows
    """

    def __init__(
        self,
        n_components: int = 5,
        *,
        extractor: str = "pca",
        features: str = "",
        shift: float | str = "cv",
        random_state: int = 0,
    ) -> None:
        self.n_components = n_components
        self.extractor = extractor
        self.features = features
        self.shift = shift
        self.random_state = random_state

    def fit(self, X: ArrayLike, y: ArrayLike) -> ShiftedExtractor:
        rows = np.asarray(X, dtype=np.float64)
        self.embedding_ = self._embedding(rows).fit(rows) if self.features else None
        seen = self._seen(rows)
        one = EXTRACTORS[self.extractor][1](self.n_components)
        # one hold-out set chooses the shift where an extractor has no closed form
        folds = 5 if isinstance(one, PCA) else StratifiedShuffleSplit(1, test_size=0.3, random_state=0)
        model = MaxMarginShift(one, shift=self.shift, cv=folds, tol=ENOUGH, random_state=self.random_state)
        self.fitted_ = model.fit(seen, y)
        self.trial_scores_ = {"reconstruction_error": _reconstruction_error(self.fitted_.extractor_, seen)}
        return self

    def transform(self, X: ArrayLike) -> NDArray[Any]:
        return np.asarray(self.fitted_.transform(self._seen(np.asarray(X, dtype=np.float64))))

    def _seen(self, rows: NDArray[Any]) -> NDArray[Any]:
        return rows if self.embedding_ is None else np.asarray(self.embedding_.transform(rows))

    def _embedding(self, rows: NDArray[Any]) -> Any:
        count, _, wide = self.features.partition(" ")
        width = median_square_distance(rows, random_state=self.random_state) * (2 if wide else 1)
        sampler = RBFSampler(gamma=1 / width, n_components=int(count), random_state=self.random_state)
        positive = self.extractor == "nmf"
        return make_pipeline(sampler, MinMaxScaler((0, 1) if positive else (-1, 1), clip=positive))


class ShiftByFolds(TransformerMixin, BaseEstimator):
    """PCA of shifted rows, the shift and the SVM's cost by as many folds as the smallest class allows, at most five."""

    def __init__(self, n_components: int = 10, *, random_state: int = 0) -> None:
        self.n_components = n_components
        self.random_state = random_state

    def fit(self, X: ArrayLike, y: ArrayLike) -> ShiftByFolds:
        options: dict[str, Any] = {"shift": "cv", "tol": ENOUGH, "random_state": self.random_state}
        tried = [MaxMarginShift(PCA(self.n_components), C=C, **options).fit(X, y) for C in COSTS]
        self.fitted_ = max(tried, key=lambda model: max(model.shift_scores_.values()))
        return self

    def transform(self, X: ArrayLike) -> NDArray[Any]:
        return np.asarray(self.fitted_.transform(X))


def _reconstruction_error(extractor: Any, rows: NDArray[Any]) -> float:
    """Mean square of what the extractor's features do not give back of the rows, by its own way back or, where it has
    none, by least squares."""
    features = extractor.transform(rows)
    if isinstance(extractor, KMeans):
        given_back = extractor.cluster_centers_[features.argmin(axis=1)]
    elif hasattr(extractor, "inverse_transform"):
        given_back = extractor.inverse_transform(features)
    else:
        centred = np.column_stack([np.ones(len(rows)), features])
        given_back = centred @ np.linalg.lstsq(centred, rows, rcond=None)[0]
    return float(np.mean((rows - given_back) ** 2))
