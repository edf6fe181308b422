"""What an objective may refer to beside the statistics: points that stand for classes, and pairs of rows."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]


class Pairs(Protocol):
    """Weighted pairs of rows, by their numbers."""

    @property
    def left(self) -> NDArray[np.intp]: ...
    @property
    def right(self) -> NDArray[np.intp]: ...
    @property
    def weight(self) -> Array: ...


@dataclass(frozen=True, eq=False)
class Margins:
    """Landmarks: points of the feature space (one row each). Pairs: rows that face each other across classes.

    Duals: what each row (row of the matrix) pulls at each class (column) in a large-margin classifier.
    """

    landmarks: Array | None = None
    pairs: Pairs | None = None
    duals: Array | None = None

    def moved(self, pilot: Array | None) -> Margins:
        """The same where `pilot` is taken off the rows."""
        if pilot is None or self.landmarks is None:
            return self
        return replace(self, landmarks=self.landmarks - pilot)
