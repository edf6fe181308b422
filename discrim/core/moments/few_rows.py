"""Rows of parts that have few of them: smaller than their scatter, and added by joining them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from discrim.core.moments.class_moments import ClassMoments
from discrim.tables.rows import LabelledRows
from discrim.tables.validation import require_finite, require_labels_of_one_kind

FEW = 4  # times fewer rows than columns: a scatter is larger, and its addition costs about as much as adding the rows


@dataclass(frozen=True, eq=False)
class FewRows:
    """Rows with class numbers, labels and weights (None: 1); `keep` names the scatters of their moments."""

    X: Any  # ndarray or CSR array
    codes: NDArray[np.intp]
    classes: NDArray[Any]
    weights: NDArray[np.float64] | None
    keep: str

    @classmethod
    def from_rows(cls, rows: LabelledRows, keep: str) -> FewRows:
        """Copy validated rows; raise if a cell is not finite."""
        require_finite(rows.X)
        X = rows.X.copy() if rows.is_sparse else np.array(rows.X)
        weights = None if rows.weights is None else rows.weights.copy()
        return cls(X, rows.codes, rows.classes, weights, keep)

    @property
    def n_rows(self) -> int:
        return len(self.codes)

    @property
    def n_features(self) -> int:
        return int(self.X.shape[1])

    @property
    def counts(self) -> NDArray[np.int64]:
        """Number of rows of each class."""
        return np.bincount(self.codes, minlength=len(self.classes))

    @property
    def rows(self) -> LabelledRows:
        return LabelledRows(self.X, self.codes, self.classes, self.weights)

    def moments(self) -> ClassMoments:
        """Return the class moments of the rows."""
        return ClassMoments.from_rows(self.rows, keep=self.keep)

    def with_rows(self, rows: LabelledRows) -> FewRows | ClassMoments:
        """Return these and more rows; the class moments of all if they are no longer few."""
        joined = join_rows(self.rows, rows)
        return (
            FewRows.from_rows(joined, self.keep) if are_few(joined) else ClassMoments.from_rows(joined, keep=self.keep)
        )


Fold = ClassMoments | FewRows


def are_few(rows: LabelledRows) -> bool:
    """Return whether rows take less memory than a scatter of their columns."""
    return rows.shape[0] * FEW < rows.shape[1]


def add_folds(one: Fold, other: Fold) -> Fold:
    """Return the sum of what was gathered of two parts."""
    if isinstance(other, FewRows):
        return one.with_rows(other.rows)
    return other.with_rows(one.rows) if isinstance(one, FewRows) else one + other


def join_rows(one: LabelledRows, other: LabelledRows) -> LabelledRows:
    """Return the rows of two tables, with class numbers that refer to the classes of both."""
    classes, codes = one.classes, [one.codes, other.codes]
    if classes[0] is not None:
        require_labels_of_one_kind(one.classes, other.classes)
        classes = np.unique(np.concatenate([one.classes, other.classes]))
        codes = [np.searchsorted(classes, rows.classes)[rows.codes] for rows in (one, other)]
    weights = None
    if one.weights is not None or other.weights is not None:
        both = [np.ones(rows.shape[0]) if rows.weights is None else rows.weights for rows in (one, other)]
        weights = np.concatenate(both)
    if one.is_sparse or other.is_sparse:
        X = sp.csr_array(sp.vstack([sp.csr_array(rows.X) for rows in (one, other)], format="csr"))
    else:
        X = np.concatenate([one.X, other.X])
    return LabelledRows(X, np.concatenate(codes).astype(np.intp), classes, weights)
