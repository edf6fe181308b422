"""Fitted linear transformer as plain arrays, for storing methods of other libraries in a model file."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils.extmath import safe_sparse_dot
from sklearn.utils.validation import _check_feature_names, check_array, check_is_fitted

from discrim.threads import on_one_blas_thread_throughout

_BLOCK = 512


@on_one_blas_thread_throughout
class LinearMap(TransformerMixin, BaseEstimator):
    """Fitted linear transformer, stored as directions and offset.

    x ↦ components_ x + offset_

    Parameters
    ----------
    name : str, default="component"
        Prefix of the feature names: name0, name1, …

    Attributes
    ----------
    components_: Change of each feature per unit of each column.
    offset_ : array of shape (n_components,)
        Features of a row of zeros.
    n_features_in_: Number of features seen in fit.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
    >>> from discrim.estimators.linear_map import LinearMap
    >>> X, y = load_iris(return_X_y=True)
    >>> lda = LinearDiscriminantAnalysis().fit(X, y)
    >>> bool(abs(LinearMap.of(lda, 4).transform(X) - lda.transform(X)).max() < 1e-9)
    True
    """

    components_: NDArray[np.float64]
    offset_: NDArray[np.float64]
    n_features_in_: int

    def __init__(self, name: str = "component") -> None:
        self.name = name

    @classmethod
    def of(cls, fitted: Any, n_features: int, name: str = "component") -> LinearMap:
        """Build from a fitted transformer, such as scikit-learn's LDA, by transforming unit vectors."""
        found = cls(name)
        found.n_features_in_ = n_features
        found.offset_ = np.asarray(fitted.transform(np.zeros((1, n_features))), dtype=np.float64)[0]
        blocks = []
        for start in range(0, n_features, _BLOCK):
            units = np.eye(min(_BLOCK, n_features - start), n_features, start)
            blocks.append(np.asarray(fitted.transform(units), dtype=np.float64) - found.offset_)
        found.components_ = np.ascontiguousarray(np.concatenate(blocks).T)
        return found

    def fit(self, X: ArrayLike, y: Any = None) -> LinearMap:
        """Do nothing; the map is already fitted."""
        return self

    def transform(self, X: ArrayLike) -> NDArray[np.float64]:
        """Return the features of rows."""
        check_is_fitted(self)
        _check_feature_names(self, X, reset=False)
        rows = check_array(X, accept_sparse="csr", dtype=np.float64)
        if rows.shape[1] != self.n_features_in_:
            raise ValueError(f"X has {rows.shape[1]} features, but LinearMap expects {self.n_features_in_}.")
        return np.asarray(safe_sparse_dot(rows, self.components_.T) + self.offset_)

    def get_feature_names_out(self, input_features: Any = None) -> NDArray[Any]:
        """Return the feature names name0, name1, …"""
        return np.array([f"{self.name}{at}" for at in range(len(self.components_))], dtype=object)
