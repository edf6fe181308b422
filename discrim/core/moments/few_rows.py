"""Rows of parts that have few of them: smaller than their scatter, and added by joining them."""

from __future__ import annotations

from collections.abc import Sequence
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
    """Rows in blocks, with class numbers, labels and weights (None: 1); `keep` names the scatters of their moments.

    Each block has more rows than the next, so a row is copied a few times however many batches are added.
    """

    blocks: tuple[Any, ...]  # ndarrays or CSR arrays
    codes: NDArray[np.intp]
    classes: NDArray[Any]
    weights: NDArray[np.float64] | None
    keep: str

    @classmethod
    def from_rows(cls, rows: LabelledRows, keep: str) -> FewRows:
        """Copy validated rows; raise if a cell is not finite."""
        none = FewRows((), np.empty(0, np.intp), rows.classes, None if rows.weights is None else np.empty(0), keep)
        return none._extended(rows)

    @property
    def n_rows(self) -> int:
        return len(self.codes)

    @property
    def n_features(self) -> int:
        return int(self.blocks[0].shape[1])

    @property
    def counts(self) -> NDArray[np.int64]:
        """Number of rows of each class."""
        return np.bincount(self.codes, minlength=len(self.classes))

    @property
    def rows(self) -> LabelledRows:
        return LabelledRows(_stacked(self.blocks), self.codes, self.classes, self.weights)

    def moments(self) -> ClassMoments:
        """Return the class moments of the rows."""
        return ClassMoments.from_rows(self.rows, keep=self.keep)

    def with_rows(self, rows: LabelledRows) -> FewRows | ClassMoments:
        """Return these and more rows; the class moments of all if they are no longer few."""
        found = self._extended(rows)
        return found if are_few(found.n_rows, found.n_features) else found.moments()

    def _extended(self, rows: LabelledRows) -> FewRows:
        require_finite(rows.X)
        blocks = [*self.blocks, rows.X.copy() if rows.is_sparse else np.array(rows.X)]
        while len(blocks) > 1 and blocks[-2].shape[0] <= blocks[-1].shape[0]:
            blocks[-2:] = [_stacked(blocks[-2:])]
        return FewRows(tuple(blocks), *_joined_labels(self, rows), self.keep)


Fold = ClassMoments | FewRows


def are_few(n_rows: int, n_features: int) -> bool:
    """Return whether rows take less memory than a scatter of their columns."""
    return n_rows * FEW < n_features


def add_folds(one: Fold, other: Fold) -> Fold:
    """Return the sum of what was gathered of two parts."""
    if isinstance(other, FewRows):
        return one.with_rows(other.rows)
    return other.with_rows(one.rows) if isinstance(one, FewRows) else one + other


def join_rows(one: LabelledRows, other: LabelledRows) -> LabelledRows:
    """Return the rows of two tables, with class numbers that refer to the classes of both."""
    return LabelledRows(_stacked([one.X, other.X]), *_joined_labels(one, other))


def _stacked(blocks: Sequence[Any]) -> Any:
    """Return blocks of rows as one, which is sparse if one of them is."""
    if len(blocks) == 1:
        return blocks[0]
    if any(map(sp.issparse, blocks)):
        return sp.csr_array(sp.vstack(list(map(sp.csr_array, blocks)), format="csr"))
    return np.concatenate(blocks)


def _joined_labels(
    one: LabelledRows | FewRows, other: LabelledRows
) -> tuple[NDArray[np.intp], NDArray[Any], NDArray[np.float64] | None]:
    """Return class numbers, classes and weights of the rows of both."""
    classes, codes = one.classes, [one.codes, other.codes]
    if classes[0] is not None:
        require_labels_of_one_kind(one.classes, other.classes)
        classes = np.unique(np.concatenate([one.classes, other.classes]))
        codes = [np.searchsorted(classes, rows.classes)[rows.codes] for rows in (one, other)]
    weights = None
    if one.weights is not None or other.weights is not None:
        both = [np.ones(len(rows.codes)) if rows.weights is None else rows.weights for rows in (one, other)]
        weights = np.concatenate(both)
    return np.concatenate(codes).astype(np.intp), classes, weights
