"""Features in which a linear method becomes a kernel method.

    rff        random Fourier features √(2/T) cos(ωᵀx + b), whose products approximate exp(−‖x − x'‖²/s)
    nystroem   Nyström features of the same kernel from a sample of the rows

If the embedding is given by name, the width s follows the median rule: the median squared distance between rows.
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
MAX_ROWS = 1000  # rows between which distances are computed; larger tables are sampled


def fitted_embedding(embedding: Any, X: Any, weights: NDArray[np.float64] | None, random_state: Any) -> Any:
    """Return a fitted copy of the given transformer, or the named one with a width that suits the rows."""
    _require_finite_squares(X)
    if not isinstance(embedding, str):
        return clone(embedding).fit(X)
    gamma = 1.0 / median_square_distance(X, weights, random_state)
    if embedding == "rff":
        return RBFSampler(gamma=gamma, n_components=N_FEATURES, random_state=random_state).fit(X)
    different = np.sort(_equal(X).first)  # a repeated row adds nothing to the sample
    size = min(N_FEATURES, len(different))
    return Nystroem(gamma=gamma, n_components=size, random_state=random_state).fit(X[different])


def require_embedding(embedding: Any) -> None:
    """Raise unless the embedding is None, a known name or a transformer."""
    if isinstance(embedding, str):
        require("embedding", embedding, named(*EMBEDDINGS))
    elif embedding is not None:
        require_transformer("embedding", embedding)


def _require_finite_squares(X: Any) -> None:
    largest = float(np.abs(X.data if sp.issparse(X) else X).max(initial=0.0))
    limit = LARGEST_SINGLE if X.dtype == np.float32 else LARGEST
    if largest > limit:
        raise ValueError(
            f"X must hold numbers up to {limit:g} for an embedding, which squares them; got {largest:.1e}. Scale the "
            "columns first, e.g. with StandardScaler."
        )


def embedded(embedding: Any, X: Any) -> Any:
    """Return the features of the rows by a fitted embedding; equal rows get exactly equal features.

    Matrix products may round a row differently at different positions in the table. Rows that are no longer equal would
    get separate duals, which are not unique.
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
    if X.shape[0] > MAX_ROWS:
        chosen = check_random_state(random_state).choice(X.shape[0], MAX_ROWS, replace=False)
        X, weights = X[chosen], weights[chosen]
    X = X.astype(np.float64, copy=False)
    rows = X if sp.issparse(X) else X - X.mean(axis=0)  # centred, so that lengths are not larger than the distances
    squares = euclidean_distances(rows, squared=True)
    left, right = np.triu_indices(len(squares), 1)
    distances = squares[left, right]
    differ = distances > 1e-10 * distances.max(initial=0.0)
    if not differ.any():
        return 1.0
    counts = (weights[left] * weights[right])[differ]
    return float(np.quantile(distances[differ], 0.5, method="inverted_cdf", weights=counts))
