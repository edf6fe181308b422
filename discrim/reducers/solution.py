"""What a fit leads through: rows in coordinates that suit them, and the solution that is found there."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from discrim.data.fit_messages import refuse_directions
from discrim.data.rows import LabelledRows
from discrim.margins.margin_vectors import Margins
from discrim.moments.class_moments import ClassMoments
from discrim.solve.basis import Basis
from discrim.solve.choose import Plan
from discrim.solve.eigen import fixed_signs

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False, kw_only=True)
class Solution:
    """What a method found: each field that ends with (or begins with) "_" becomes a fitted attribute of that name.

    Directions are rows, in the coordinates of a basis until they are lifted. A family adds fields of its own, by a
    subclass; a method adds `found`, a dataclass of what else it found.
    """

    components_: NDArray[Any]
    eigenvalues_: Array
    explained_variance_ratio_: Array
    rank_: int
    solver_: str
    _labels_explained: Array | None = None  # by each component beyond those before it
    is_resolved: bool = True  # whether these coordinates show all that matters of the directions
    found: Any = None

    def lifted(self, basis: Basis, dtype: np.dtype[Any]) -> Self:
        """The same in the features."""
        rows = basis.lift(self.components_)
        signs = fixed_signs(rows)
        with np.errstate(over="ignore"):
            components = np.ascontiguousarray(rows * signs[:, None], dtype=dtype)
        if not np.isfinite(components).all():
            refuse_directions(dtype)
        also = self._also_lifted(basis, signs)
        return replace(self, components_=components, solver_=f"{self.solver_}; {basis.how}", **also)

    def _also_lifted(self, basis: Basis, signs: Array) -> dict[str, Any]:
        """What else is lifted, or turns with the components (each by its sign), by name."""
        return {}


@dataclass(frozen=True, eq=False)
class Coordinates:
    """Rows in the coordinates of a plan with their statistics, and again where small directions matter; each once."""

    plan: Plan
    rows: LabelledRows
    margins: Margins
    keep: str
    emphasis: Callable[[Array], Array | None] | None
    divided: Callable[[Basis], Basis]
    _posed: dict[bool, tuple[Basis, ClassMoments]] = field(default_factory=dict)

    def posed(self, *, resolve: bool) -> tuple[Basis, ClassMoments]:
        """As cheap as can be, or with all directions, the smallest too."""
        if resolve not in self._posed:
            basis = self.divided(self.plan.build(self.rows, self.margins, resolve=resolve))
            self._posed[resolve] = basis, basis.moments(self.keep, self.emphasis)
        return self._posed[resolve]
