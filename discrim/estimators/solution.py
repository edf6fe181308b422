"""What a fit finds: the solution of a problem, in its coordinates until it is lifted to the features."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from discrim.core.coordinates.basis import Basis
from discrim.core.eigen import fixed_signs
from discrim.core.problem import Problem
from discrim.tables.fit_messages import refuse_directions

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
    mean_: Array | None = None  # of the rows, where it is lifted
    n_samples_seen_: int = 0
    _total_weight: float = 0.0
    _labels_explained: Array | None = None  # by each component beyond those before it
    is_resolved: bool = True  # whether these coordinates show all that matters of the directions
    found: Any = None
    warnings: tuple[tuple[str, type[Warning]], ...] = ()  # what the fit warns about, for the driver to issue

    def lifted(self, problem: Problem) -> Self:
        """Return the same in the features."""
        basis, dtype = problem.basis, problem.dtype
        rows = basis.lift(self.components_)
        signs = fixed_signs(rows)
        with np.errstate(over="ignore"):
            components = np.ascontiguousarray(rows * signs[:, None], dtype=dtype)
        if not np.isfinite(components).all():
            refuse_directions(dtype)
        return replace(
            self,
            components_=components,
            solver_=f"{self.solver_}; {basis.how}",
            mean_=basis.mean(problem.moments),
            n_samples_seen_=problem.moments.n_rows,
            _total_weight=problem.moments.total_weight,
            **self._also_lifted(basis, signs),
        )

    def _also_lifted(self, basis: Basis, signs: Array) -> dict[str, Any]:
        """What else is lifted, or turns with the components (each by its sign), by name."""
        return {}

    def attributes(self) -> dict[str, Any]:
        """Return the fitted attributes by name."""
        parts = [self] if self.found is None else [self, self.found]
        named = {field.name: getattr(part, field.name) for part in parts for field in fields(part)}
        kept = {name: value for name, value in named.items() if name.startswith("_") or name.endswith("_")}
        return {**kept, "n_components_": len(self.components_)}
