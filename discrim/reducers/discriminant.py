"""What the LDA family shares: a ratio to maximise, pads beyond its discriminants, and classification by centroids."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from discrim.data.check_parameters import checked_class_weight, checked_priors
from discrim.data.findings import require_different_means, require_some_spread
from discrim.data.rows import LabelledRows
from discrim.moments.class_moments import ClassMoments
from discrim.objectives.ratio import Ratio, ratio_of
from discrim.reducers.base import Solution
from discrim.reducers.nearest_centroid import NearestCentroid
from discrim.solve.basis import Basis
from discrim.solve.count import discriminant_count
from discrim.solve.discriminants import Discriminants, complement, whitened_span

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Posed:
    """Directions found, in the moments' coordinates: as kept, whitened for distances, and times S_t/n."""

    directions: Array
    whitened: Array
    covariances: Array
    rank: int
    how: str


class DiscriminantReducer(NearestCentroid):
    """Directions of a ratio; `_discriminants` states which."""

    priors: Any
    class_weight: Any
    _uses_every_direction = True

    @abstractmethod
    def _discriminants(self, ratio: Ratio, moments: ClassMoments, basis: Basis) -> Discriminants:
        """All discriminants, in their defining scale and order."""

    @abstractmethod
    def _scaled_pads(self, pads: Array, ratio: Ratio) -> Array:
        """Unit directions beyond the discriminants, in the scale that goes with them."""

    def _wanted(self, request: Any, n_classes: int) -> int | None:
        return request if isinstance(request, int) else n_classes - 1

    def _why_all_directions(self) -> str | None:
        return f"{type(self).__name__} needs the whole within-class scatter (RegularizedLDA(shrinkage=0.1) does not)"

    def _weighted(self, rows: LabelledRows) -> LabelledRows:
        if self.class_weight is None:
            return rows
        factors = checked_class_weight(self.class_weight, rows.classes, rows.class_totals)[rows.codes]
        return replace(rows, weights=factors * (1.0 if rows.weights is None else rows.weights))

    def _why_not_streamed(self) -> str | None:
        if self.class_weight == "balanced":
            return "class_weight='balanced' needs all rows at once. Use fit, or a dict of class weights."
        return None

    def _solve(self, basis: Basis, moments: ClassMoments, request: Any) -> Solution:
        ratio = ratio_of(moments)
        shape = (moments.n_rows, self.n_features_in_)
        require_some_spread(ratio.rank, *shape)
        checked_priors(self.priors, ratio.shares)
        require_different_means(ratio.means_differ)
        found = self._discriminants(ratio, moments, basis)
        k = found.count or discriminant_count(request, found.values, ratio.rank, shape, found.ties_settled)
        directions = found.directions[:k]
        if k > len(directions):
            pads = complement(found.directions, ratio.total, k - len(directions))
            directions = np.concatenate([directions, self._scaled_pads(pads, ratio)])
        metric = ratio.within if found.metric is None else found.metric
        posed = Posed(
            ratio.embedded(directions),
            ratio.embedded(whitened_span(found.directions, metric, ratio.total)),
            ratio.embedded(ratio.total_along(directions)),
            ratio.rank,
            f"{len(found.values)} discriminants of a {ratio.rank}×{ratio.rank} ratio",
        )
        return self._solution(posed, found, moments, basis)

    def _solution(self, posed: Posed, found: Discriminants, moments: ClassMoments, basis: Basis) -> Solution:
        k = len(posed.directions)
        values = np.zeros(k)
        values[: len(found.values)] = found.values[:k]
        unit = 0.5**moments.exponent  # from the moments' units to the rows'
        with np.errstate(over="ignore", under="ignore"):
            eigenvalues = np.ldexp(values, 2 * moments.exponent) if found.has_unit else values
        details = {
            "n_discriminants": min(len(found.values), k),
            "centroids": moments.centred_means() @ posed.whitened.T,
            "log_priors": np.log(checked_priors(self.priors, moments.weights / moments.total_weight)),
            "deviations": np.sqrt(np.maximum(np.einsum("kd,kd->k", posed.covariances, posed.directions), 0.0)),
            "feature_deviations": np.sqrt(basis.feature_variances(moments)),
        }
        lifted = {"discriminants": posed.whitened * unit, "covariances": posed.covariances}
        return Solution(
            posed.directions * unit,
            eigenvalues,
            values / found.values.sum(),
            posed.rank,
            posed.how,
            basis.is_resolved,
            details | found.details,
            lifted,
        )

    @property
    def n_discriminants_(self) -> int:
        """How many of the components are discriminants; the rest are PCA of the orthogonal complement."""
        return self._fitted().details["n_discriminants"]

    @property
    def structure_coefficients_(self) -> Array:
        """Correlation of each feature with each component (k×d): which features a component stands for."""
        projection = self._fitted()
        details = projection.details
        scale = np.outer(details["deviations"], details["feature_deviations"])
        raw = np.divide(details["covariances"], scale, out=np.zeros_like(scale), where=scale > 0)
        # g S_t g > 0, so this tells whether the component is g or −g
        signs = np.sign(np.einsum("kd,kd->k", projection.components, details["covariances"]))
        return np.clip(raw * signs[:, None], -1.0, 1.0)
