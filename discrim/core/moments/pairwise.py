"""Statistics of rows with missing cells: each number uses all rows that have the cells it needs.

    μ_cj = mean of column j over the rows of class c that have it
    S_jk = W · Σ_i w_i (x_ij − μ_cj)(x_ik − μ_ck) / Σ_i w_i ,    over the rows i that have both j and k

Without missing cells these are the ordinary statistics. With missing cells S may be indefinite. If it is, its
correlations are replaced by those of the same eigenvectors without the negative part.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from discrim.core.moments.class_moments import ClassMoments
from discrim.decompositions import eigh
from discrim.tables.rows import LabelledRows, block_slices
from discrim.tables.validation import require_no_infinity

Array = NDArray[np.float64]
SAFE = 300  # cells up to 2^this are squared without scaling
LEAST = 1e-10  # of the largest eigenvalue of the correlations: negative and smaller ones are raised to this


def has_gaps(rows: LabelledRows) -> bool:
    """Return True if a cell of a dense table is NaN."""
    return not rows.is_sparse and any(np.isnan(rows.X[part]).any() for part in block_slices(*rows.shape))


def pairwise_moments(rows: LabelledRows) -> ClassMoments:
    """Compute class moments of dense rows; NaN marks a missing cell."""
    rows = rows.moved(np.asarray(rows.X))
    require_no_infinity(rows.X, rows.numbers)
    weights = np.ones(rows.shape[0]) if rows.weights is None else rows.weights
    rows, exponent = _in_safe_units(rows)
    present = np.zeros((rows.n_classes, rows.shape[1]))
    pilots, remainders = np.zeros_like(present), np.zeros_like(present)
    # two passes: means of the rows minus the first means keep their digits at any offset
    for found in (pilots, remainders):
        present[:], sums = 0.0, np.zeros_like(present)
        for part in block_slices(*rows.shape):
            centred, there = _centred(rows, part, pilots, remainders, weights)
            members = _members(rows.codes[part], rows.n_classes)
            sums += members @ (centred * weights[part, None])
            present += members @ there
        _require_columns_in_classes(present, rows.classes)
        found += sums / present
    scatter, both = np.zeros((rows.shape[1],) * 2), np.zeros((rows.shape[1],) * 2)
    for part in block_slices(*rows.shape):
        centred, there = _centred(rows, part, pilots, remainders, weights)
        scatter += (centred * weights[part, None]).T @ centred
        both += there.T @ (there > 0)
    _require_pairs_of_columns(both)
    totals = rows.class_totals
    pooled = scatter * (totals.sum() / both)
    return ClassMoments(
        rows.classes,
        totals,
        np.bincount(rows.codes, minlength=rows.n_classes),
        pilots,
        remainders,
        np.ones(rows.n_classes),
        without_negative_part(pooled) if (both != totals.sum()).any() else pooled,
        None,
        exponent,
    )


def _require_columns_in_classes(present: NDArray[np.float64], classes: NDArray[Any]) -> None:
    """Raise where a class has no cell of a column at all, and so no mean there."""
    if not (present > 0).all():
        row, column = (int(i) for i in np.argwhere(present == 0)[0])
        of = "" if classes[row] is None else f" of class {classes.tolist()[row]!r}"
        raise ValueError(
            f"Column {column} is missing in every row{of}, so it has no mean there. Leave it out, or fill it in "
            "with sklearn.impute.SimpleImputer in a Pipeline."
        )


def _require_pairs_of_columns(both: NDArray[np.float64]) -> None:
    """Raise where no row has two columns at once, which have no covariance then."""
    if not (both > 0).all():
        one, other = (int(i) for i in np.argwhere(both == 0)[0])
        raise ValueError(
            f"No row has both column {one} and column {other}, so nothing is known of how they go together. Leave one "
            "of them out, or fill them in with sklearn.impute.SimpleImputer in a Pipeline."
        )


def _in_safe_units(rows: LabelledRows) -> tuple[LabelledRows, int]:
    """Return the rows times 2^−exponent, with exponent 0 unless their squares would overflow or underflow."""
    exponent = int(np.frexp(np.nanmax(np.abs(rows.X), initial=0.0))[1])
    if abs(exponent) < SAFE:
        return rows, 0
    return rows.moved(np.ldexp(rows.X.astype(np.float64), -exponent)), exponent


def _members(codes: NDArray[np.intp], n_classes: int) -> sp.csr_array:
    """Return the C×n indicator matrix: entry (c, i) is 1 if row i belongs to class c."""
    return sp.csr_array((np.ones(len(codes)), (codes, np.arange(len(codes)))), shape=(n_classes, len(codes)))


def _centred(rows: LabelledRows, part: slice, pilots: Array, remainders: Array, weights: Array) -> tuple[Array, Array]:
    """Return rows minus their class means so far and each cell's weight; both are 0 for missing cells."""
    codes = rows.codes[part]
    centred = (rows.X[part] - pilots[codes]) - remainders[codes]
    gaps = np.isnan(centred)
    centred[gaps] = 0.0
    return centred, np.where(gaps, 0.0, weights[part, None])


def without_negative_part(scatter: Array) -> Array:
    """Return a semidefinite scatter with the same variances; the scatter itself if it is semidefinite."""
    deviations = np.sqrt(np.diag(scatter))
    scales = np.divide(1.0, deviations, out=np.zeros_like(deviations), where=deviations > 0)
    values, vectors = eigh(scatter * scales[:, None] * scales)
    if values[0] >= -LEAST * values[-1]:
        return scatter
    kept = (vectors * np.maximum(values, LEAST * values[-1])) @ vectors.T
    again = np.sqrt(np.diag(kept))
    ratio = np.divide(deviations, again, out=np.zeros_like(again), where=again > 0)
    return kept * ratio[:, None] * ratio
