"""Statistics of rows with missing cells: each number from the rows that have what it takes.

    μ_cj = mean of column j over the rows of class c that have it
    S_jk = W · Σ_i w_i (x_ij − μ_cj)(x_ik − μ_ck) / Σ_i w_i ,    over the rows i that have both j and k

Without gaps these are the plain statistics. With gaps S need not be a scatter of any rows: where it has negative
eigenvalues its correlations are replaced by those of the same eigenvectors without the negative part.
"""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from discrim.core.moments.class_moments import ClassMoments
from discrim.decompositions import eigh
from discrim.tables.rows import LabelledRows, block_slices
from discrim.tables.validation import require_columns_in_classes, require_no_infinity, require_pairs_of_columns

Array = NDArray[np.float64]
SAFE = 300  # cells up to 2^this are squared as they are
LEAST = 1e-10  # of the largest eigenvalue of the correlations: what is smaller than nothing becomes this


def has_gaps(rows: LabelledRows) -> bool:
    """Return whether a cell of a dense table is NaN."""
    return not rows.is_sparse and any(np.isnan(rows.X[part]).any() for part in block_slices(*rows.shape))


def pairwise_moments(rows: LabelledRows) -> ClassMoments:
    """Return class moments of dense rows, NaN where a cell is missing."""
    rows = rows.moved(np.asarray(rows.X))
    require_no_infinity(rows.X, rows.numbers)
    weights = np.ones(rows.shape[0]) if rows.weights is None else rows.weights
    rows, exponent = _in_safe_units(rows)
    present = np.zeros((rows.n_classes, rows.shape[1]))
    pilots, remainders = np.zeros_like(present), np.zeros_like(present)
    # twice: means of what is left once the first ones are taken off keep their digits at any offset
    for found in (pilots, remainders):
        present[:], sums = 0.0, np.zeros_like(present)
        for part in block_slices(*rows.shape):
            centred, there = _centred(rows, part, pilots, remainders, weights)
            members = _members(rows.codes[part], rows.n_classes)
            sums += members @ (centred * weights[part, None])
            present += members @ there
        require_columns_in_classes(present, rows.classes)
        found += sums / present
    scatter, both = np.zeros((rows.shape[1],) * 2), np.zeros((rows.shape[1],) * 2)
    for part in block_slices(*rows.shape):
        centred, there = _centred(rows, part, pilots, remainders, weights)
        scatter += (centred * weights[part, None]).T @ centred
        both += there.T @ (there > 0)
    require_pairs_of_columns(both)
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


def _in_safe_units(rows: LabelledRows) -> tuple[LabelledRows, int]:
    """Return the rows times 2^−exponent: as they are, unless squares of them would be beyond numbers."""
    exponent = int(np.frexp(np.nanmax(np.abs(rows.X), initial=0.0))[1])
    if abs(exponent) < SAFE:
        return rows, 0
    return rows.moved(np.ldexp(rows.X.astype(np.float64), -exponent)), exponent


def _members(codes: NDArray[np.intp], n_classes: int) -> sp.csr_array:
    """Compute C×n: entry (c, i) is 1 where row i is of class c."""
    return sp.csr_array((np.ones(len(codes)), (codes, np.arange(len(codes)))), shape=(n_classes, len(codes)))


def _centred(rows: LabelledRows, part: slice, pilots: Array, remainders: Array, weights: Array) -> tuple[Array, Array]:
    """Return rows around their classes' means so far, 0 where a cell is missing; and each cell's weight, 0 there."""
    codes = rows.codes[part]
    centred = (rows.X[part] - pilots[codes]) - remainders[codes]
    gaps = np.isnan(centred)
    centred[gaps] = 0.0
    return centred, np.where(gaps, 0.0, weights[part, None])


def without_negative_part(scatter: Array) -> Array:
    """Return the scatter itself where it is one; else with the same variances and correlations that rows could have."""
    deviations = np.sqrt(np.diag(scatter))
    scales = np.divide(1.0, deviations, out=np.zeros_like(deviations), where=deviations > 0)
    values, vectors = eigh(scatter * scales[:, None] * scales)
    if values[0] >= -LEAST * values[-1]:
        return scatter
    kept = (vectors * np.maximum(values, LEAST * values[-1])) @ vectors.T
    again = np.sqrt(np.diag(kept))
    ratio = np.divide(deviations, again, out=np.zeros_like(again), where=again > 0)
    return kept * ratio[:, None] * ratio
