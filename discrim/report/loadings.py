"""Which features make a component: loadings, structure coefficients, and the arrows of a biplot."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.sparse import issparse

from discrim.report.fitted import Array, Codes, component_names, feature_names, loadings_of, name_of, rows_seen
from discrim.report.fitted import scores_of as component_scores

MOST_COMPONENTS = 10


@dataclass(frozen=True, eq=False)
class LoadingsValues:
    """Features by components.

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
    def of(
        cls,
        estimator: Any,
        X: Any,
        *,
        names: Any = None,
        method: str | None = None,
        most_components: int = MOST_COMPONENTS,
    ) -> LoadingsValues:
        """X : the rows over which features and components are correlated; names : of its columns."""
        seen = rows_seen(estimator, X)
        scores = component_scores(estimator, X)[:, :most_components]
        k, d = scores.shape[1], seen.shape[1]
        loadings = loadings_of(estimator)
        known = loadings[:k] if loadings is not None and len(loadings) >= k and loadings.shape[1] == d else None
        own_names = names if names is not None or X.shape[1] == d else [f"f{at}" for at in range(d)]
        given = feature_names(X if own_names is None else seen, own_names)
        return cls(method or name_of(estimator), component_names(k), given, known, correlations(scores, seen))

    def top(self, component: int, count: int = 12, *, by: str | None = None) -> Codes:
        """Numbers of the features that matter most to a component, largest absolute value first.

        by : "loadings" or "structure"; None for loadings where there are any
        """
        table = self.loadings if by != "structure" and self.loadings is not None else self.structure
        return np.argsort(-np.abs(table[component]), kind="stable")[:count]

    def arrows(self, first: int = 0, second: int = 1, count: int = 10) -> tuple[Codes, Array]:
        """A biplot's arrows: the features most correlated with the two components, and their two correlations."""
        ends = self.structure[[first, second]].T
        numbers = np.argsort(-np.linalg.norm(ends, axis=1), kind="stable")[:count]
        return numbers, ends[numbers]


def correlations(scores: Array, X: Any) -> Array:
    """corr(t_i, x_j) for every component and feature (k×d); a sparse X stays sparse."""
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
