"""Bounded uniform sample of a table's distinct rows: those with the smallest content hashes, which merges exactly.

A row that is among the `most` smallest of the whole is so in every part that holds it. The sample of a union therefore
follows from the samples of its parts, in any order. Equal rows of a class are stored once with their total weight;
otherwise copies of one row could fill the sample.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from discrim.core.moments.few_rows import join_rows
from discrim.core.row_hash import Hashes
from discrim.tables.rows import LabelledRows

SAMPLE_ROWS = 20_000
SAMPLE_BYTES = 64 * 2**20  # for dense rows


@dataclass(frozen=True, eq=False)
class RowSample:
    """Rows with their weights, sorted by hash; `is_whole` is False if rows were left out."""

    X: Any  # ndarray or CSR array
    codes: NDArray[np.intp]
    classes: NDArray[Any]
    weights: NDArray[np.float64]
    hashes: Hashes
    most: int
    is_whole: bool

    @classmethod
    def from_rows(cls, rows: LabelledRows, hashes: Hashes, most: int, others: Sequence[RowSample] = ()) -> RowSample:
        """Build from rows with their hashes; `most` is lowered for long dense rows.

        others : samples to which this one will be added; rows that cannot enter the joint sample are dropped before
        copying
        """
        if not rows.is_sparse:
            most = max(1, min(most, SAMPLE_BYTES // (rows.X.dtype.itemsize * max(1, rows.shape[1]))))
        bound = min([_bound(hashes, most), *(other.hashes[most - 1] for other in others if len(other) >= most)])
        few = np.flatnonzero(hashes <= bound)
        weights = np.ones(len(few)) if rows.weights is None else rows.weights[few]
        sample = cls(rows.X[few], rows.codes[few], rows.classes, weights, hashes[few], most, len(few) == len(hashes))
        return sample._least()

    def _least(self) -> RowSample:
        """Return the sample sorted, with equal rows merged, and with at most `most` rows."""
        order = np.lexsort((self.codes, self.hashes))
        hashes, codes = self.hashes[order], self.codes[order]
        first = np.ones(len(order), dtype=bool)
        first[1:] = (hashes[1:] != hashes[:-1]) | (codes[1:] != codes[:-1])
        weights = np.bincount(np.cumsum(first) - 1, self.weights[order], minlength=int(first.sum()))
        kept = np.flatnonzero(first)[: self.most]
        return replace(
            self,
            X=self.X[order[kept]],
            codes=codes[kept],
            weights=weights[: self.most].astype(np.float64),
            hashes=hashes[kept],
            is_whole=self.is_whole and len(kept) == len(weights),
        )

    def __add__(self, other: RowSample) -> RowSample:
        most = min(self.most, other.most)
        # drop rows that cannot enter the joint sample before copying: in a long stream, nearly all of the next part
        bound = _bound(np.concatenate([self.hashes, other.hashes]), most)
        both = [sample._up_to(bound) for sample in (self, other)]
        rows = join_rows(*(sample.with_classes(sample.classes) for sample in both))
        assert rows.weights is not None
        return RowSample(
            rows.X,
            rows.codes,
            rows.classes,
            rows.weights,
            np.concatenate([sample.hashes for sample in both]),
            most,
            all(sample.is_whole for sample in both),
        )._least()

    def _up_to(self, bound: np.uint64) -> RowSample:
        """Return the sample without the rows whose hash exceeds the bound."""
        end = int(np.searchsorted(self.hashes, bound, side="right"))
        if end == len(self):
            return self
        return replace(
            self,
            X=self.X[:end],
            codes=self.codes[:end],
            weights=self.weights[:end],
            hashes=self.hashes[:end],
            is_whole=False,
        )

    def __len__(self) -> int:
        return len(self.hashes)

    def with_classes(self, classes: NDArray[Any]) -> LabelledRows:
        """Return the rows, with class numbers that refer to all classes of the table."""
        codes = np.searchsorted(classes, self.classes)[self.codes] if classes[0] is not None else self.codes
        return LabelledRows(self.X, codes.astype(np.intp), classes, self.weights)


def _bound(hashes: Hashes, most: int) -> np.uint64:
    """Return the `most`-th smallest distinct hash, or the largest possible one if there are fewer."""
    if len(hashes) <= most:
        return np.uint64(2**64 - 1)
    least = np.partition(hashes, most - 1)[:most]
    different = least if len(np.unique(least)) == most else np.unique(hashes)
    return np.sort(different)[min(most, len(different)) - 1]
