"""The within-class covariance by another's rule: one of scikit-learn's covariance estimators, class by class."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone

from discrim.data.check import require_finite
from discrim.data.check_parameters import require_covariance, require_unweighted
from discrim.data.rows import LabelledRows, dense_block

Array = NDArray[np.float64]


def estimated_covariance(estimator: Any, rows: LabelledRows) -> Array:
    """Σ_c n_c/n · estimator's covariance of class c, in the rows' units."""
    require_unweighted(estimator, rows.weights)
    require_finite(rows.X, rows.numbers)
    total = np.zeros((rows.shape[1], rows.shape[1]))
    for c, share in enumerate(rows.class_totals / rows.shape[0]):
        members = rows.some(np.flatnonzero(rows.codes == c))
        fitted = clone(estimator, safe=False)
        fitted.fit(dense_block(members.X, slice(None)))
        total += share * require_covariance(estimator, fitted, len(total))
    return total
