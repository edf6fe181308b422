"""Features in which a linear method is a kernel method.

rff        random Fourier features √(2/T) cos(ωᵀx + b), whose products approach exp(−‖x − x'‖²/s)
nystroem   the same kernel seen from a sample of the rows

Behind a name the width s follows the median rule: the median squared distance between rows.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.kernel_approximation import Nystroem, RBFSampler
from sklearn.metrics.pairwise import euclidean_distances
from sklearn.utils import check_random_state

from discrim.core.svm.identical_rows import equal_rows
from discrim.tables.check_parameters import named, require, require_transformer

EMBEDDINGS = ("rff", "nystroem")
N_FEATURES = 500
LARGEST, LARGEST_SINGLE = 1e150, 1e18
MOST_ROWS = 1000  # among which distances are taken; of more rows a sample


def fitted_embedding(embedding: Any, X: Any, weights: NDArray[np.float64] | None, random_state: Any) -> Any:
    """Return a copy of the given transformer, or the named one with the width that suits the rows, fitted to them."""
    _require_finite_squares(X)
    if not isinstance(embedding, str):
        return clone(embedding).fit(X)
    gamma = 1.0 / median_square_distance(X, weights, random_state)
    if embedding == "rff":
        return RBFSampler(gamma=gamma, n_components=N_FEATURES, random_state=random_state).fit(X)
    different = np.sort(_equal(X).first)  # the same row twice in the sample would say nothing new
    size = min(N_FEATURES, len(different))
    return Nystroem(gamma=gamma, n_components=size, random_state=random_state).fit(X[different])


def require_embedding(embedding: Any) -> None:
    """None, a name or a transformer."""
    if isinstance(embedding, str):
        require("embedding", embedding, named(*EMBEDDINGS))
    elif embedding is not None:
        require_transformer("embedding", embedding)


def _require_finite_squares(X: Any) -> None:
    largest = float(np.abs(X.data if sp.issparse(X) else X).max(initial=0.0))
    most = LARGEST_SINGLE if X.dtype == np.float32 else LARGEST
    if largest > most:
        raise ValueError(
            f"X holds numbers up to {largest:.1e}, but an embedding takes squares, which are finite up to "
            f"{most:g}. Scale the columns first, e.g. with StandardScaler."
        )


def embedded(embedding: Any, X: Any) -> Any:
    """Return features of the rows by a fitted embedding; equal rows get equal features, to the last digit.

    Matrix products may round a row by its place in the table, and rows that are no longer equal would each get duals of
    their own, which are not unique.
    """
    features = embedding.transform(X)
    features = features.tocsr() if sp.issparse(features) else np.asarray(features)
    groups = _equal(X)
    return features if len(groups.first) == X.shape[0] else features[groups.first[groups.group]]


def _equal(X: Any) -> Any:
    """Return groups of equal rows."""
    return equal_rows(X, np.zeros(X.shape[0], dtype=np.intp))


def median_square_distance(X: Any, weights: NDArray[np.float64] | None = None, random_state: Any = None) -> float:
    """Compute the median of ‖x − x'‖² over pairs of different rows, weighted by their counts; 1 if none differ."""
    weights = np.ones(X.shape[0]) if weights is None else weights
    if X.shape[0] > MOST_ROWS:
        chosen = check_random_state(random_state).choice(X.shape[0], MOST_ROWS, replace=False)
        X, weights = X[chosen], weights[chosen]
    X = X.astype(np.float64, copy=False)
    rows = X if sp.issparse(X) else X - X.mean(axis=0)  # where distances are large, lengths must not be larger
    squares = euclidean_distances(rows, squared=True)
    left, right = np.triu_indices(len(squares), 1)
    distances = squares[left, right]
    differ = distances > 1e-10 * distances.max(initial=0.0)
    if not differ.any():
        return 1.0
    counts = (weights[left] * weights[right])[differ]
    return float(np.quantile(distances[differ], 0.5, method="inverted_cdf", weights=counts))
