"""What each component is worth: its eigenvalue, how well it separates the classes, and the error after the first k."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.linalg as la
from numpy.typing import ArrayLike

from discrim.reducers.bayes_error_pca import apparent_errors
from discrim.report.fitted import Array, class_codes, eigenvalues_of, name_of, scores_of, shares_of

MOST_COMPONENTS = 50
INDEPENDENT = 1e-9  # a component whose part that is new lies below this share of its length adds nothing


@dataclass(frozen=True, eq=False)
class SpectrumValues:
    """One number per component, in the estimator's order.

    eigenvalues, shares : of what the method maximises, None where it does not say
    scores : s_i = Σ_c p_c (w̄_ci − w̄_i)² / λ_i, the share of component i's variance that lies between the classes
    predicted_error : after the first k components, Σ_{a<b} p_a p_b Q(r_ab/2) / Σ_{a<b} p_a p_b, r_ab the within-class
        Mahalanobis distance of the means of classes a and b. Apparent: from the rows fitted, so it flatters and never
        rises; no k should be chosen by it.
    chosen : how many components are to be kept, None where nobody chose
    """

    method: str
    eigenvalues: Array | None
    shares: Array | None
    scores: Array
    predicted_error: Array
    chosen: int | None = None

    @classmethod
    def of(
        cls,
        estimator: Any,
        X: Any,
        y: ArrayLike,
        *,
        chosen: int | None = None,
        method: str | None = None,
        most_components: int = MOST_COMPONENTS,
    ) -> SpectrumValues:
        """X, y : the rows the transformer was fitted on."""
        components = scores_of(estimator, X)[:, :most_components]
        k = components.shape[1]
        classes, (codes,) = class_codes(y)
        members = np.eye(len(classes))[codes]
        counts = members.sum(axis=0)
        centred = components - components.mean(axis=0)
        means = members.T @ centred / counts[:, None]
        shares, variances = counts / counts.sum(), (centred**2).mean(axis=0)
        between = shares @ means**2
        scores = np.divide(between, variances, out=np.zeros(k), where=variances > 0).clip(0.0, 1.0)
        errors = apparent_errors(members.T @ uncorrelated(centred) / counts[:, None], shares)
        eigenvalues, ratios = eigenvalues_of(estimator), shares_of(estimator)
        return cls(
            method or name_of(estimator),
            None if eigenvalues is None else eigenvalues[:k],
            None if ratios is None else ratios[:k],
            scores,
            errors,
            chosen,
        )


def uncorrelated(centred: Array) -> Array:
    """Columns of mean square 1, the first k of which span what the first k came with; 0 for one that adds nothing."""
    lengths = np.linalg.norm(centred, axis=0)
    unit = np.divide(centred, lengths, out=np.zeros_like(centred), where=lengths > 0)
    columns, coefficients = la.qr(unit, mode="economic")
    adds = np.zeros(centred.shape[1], dtype=bool)
    adds[: len(coefficients)] = np.abs(np.diag(coefficients)) > INDEPENDENT
    result = np.zeros_like(centred)
    result[:, adds] = columns[:, adds[: columns.shape[1]]] * np.sqrt(len(centred))
    return result
