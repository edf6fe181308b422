"""Which classes are taken for which: held-out rows by their class and the class that was predicted."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from discrim.report.fitted import natural

MOST_OF_A_MATRIX = 12  # classes; of more, the pairs most often confused are told


@dataclass(frozen=True, eq=False)
class Confusions:
    """matrix : rows of each class (rows) by the class they are taken for (columns)."""

    classes: tuple[str, ...]
    matrix: NDArray[np.intp]

    @classmethod
    def of(cls, classes: Sequence[str], matrix: ArrayLike) -> Confusions:
        """With the classes in natural order, whatever order they come in."""
        order = sorted(range(len(classes)), key=lambda at: natural(classes[at]))
        return cls(tuple(classes[at] for at in order), np.asarray(matrix, dtype=np.intp)[np.ix_(order, order)])

    @property
    def accuracy(self) -> float:
        return float(np.trace(self.matrix) / max(1, self.matrix.sum()))

    @property
    def rows(self) -> list[tuple[str, list[int], float | None]]:
        """Of every class: its name, its rows by what they are taken for, and the share that is right."""
        shares = [float(row[at] / row.sum()) if row.sum() else None for at, row in enumerate(self.matrix)]
        return list(zip(self.classes, self.matrix.tolist(), shares, strict=True))

    @property
    def weakest(self) -> list[tuple[str, list[int], float | None]]:
        """The classes that are recognised least, those first."""
        judged = [row for row in self.rows if row[2] is not None]
        return sorted(judged, key=lambda row: row[2] or 0.0)[:MOST_OF_A_MATRIX]

    @property
    def pairs(self) -> list[tuple[str, str, int, int]]:
        """Class, the class it is taken for, how many rows, of how many; the most frequent first."""
        wrong = self.matrix * (1 - np.eye(len(self.matrix), dtype=np.intp))
        order = np.argsort(-wrong, axis=None, kind="stable")[:MOST_OF_A_MATRIX]
        sizes = self.matrix.sum(axis=1)
        found = [divmod(int(at), len(wrong)) for at in order if wrong.flat[at]]
        return [(self.classes[a], self.classes[b], int(wrong[a, b]), int(sizes[a])) for a, b in found]

    @property
    def is_small(self) -> bool:
        return len(self.matrix) <= MOST_OF_A_MATRIX
