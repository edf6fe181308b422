"""Where the rows lie on the components: the rows that were fitted, and beside them rows that were not."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from discrim.report.fitted import Array, Codes, class_codes, component_names, name_of, sampled, scores_of, shares_of

MOST_POINTS = 2_000
MOST_COMPONENTS = 10


@dataclass(frozen=True, eq=False)
class ProjectedRows:
    """Rows on the components. Means and covariances are of all rows, `scores` of those that are drawn.

    scores : drawn rows × components; codes : the class number of each
    n_rows : how many rows there are, drawn or not
    means (C×k), covariances (C×k×k, population) : NaN for a class without rows
    """

    scores: Array
    codes: Codes
    n_rows: int
    means: Array
    covariances: Array

    @classmethod
    def of(cls, scores: Array, codes: Codes, n_classes: int, most_points: int = MOST_POINTS) -> ProjectedRows:
        k = scores.shape[1]
        means, covariances = np.full((n_classes, k), np.nan), np.full((n_classes, k, k), np.nan)
        for number in np.unique(codes):
            rows = scores[codes == number]
            means[number] = rows.mean(axis=0)
            centred = rows - means[number]
            covariances[number] = centred.T @ centred / len(rows)
        drawn = sampled(codes, most_points)
        return cls(scores[drawn], codes[drawn], len(codes), means, covariances)

    @property
    def is_sampled(self) -> bool:
        return len(self.codes) < self.n_rows

    def ellipse(self, number: int, first: int, second: int, coverage: float = 0.95, n_points: int = 61) -> Array:
        """The closed outline {z : (z−m)ᵀ S⁻¹ (z−m) = −2 ln(1−coverage)} of a class on two components (n_points×2).

        A normal class has the share `coverage` of its rows within. Flat or a point where the class has no width.
        """
        axes = [first, second]
        values, vectors = np.linalg.eigh(self.covariances[number][np.ix_(axes, axes)])
        radii = np.sqrt(-2 * np.log(1 - coverage) * np.maximum(values, 0.0))
        angle = np.linspace(0, 2 * np.pi, n_points)
        circle = np.column_stack([np.cos(angle), np.sin(angle)])
        return np.asarray(self.means[number][axes] + (circle * radii) @ vectors.T)


@dataclass(frozen=True, eq=False)
class ProjectionValues:
    """What a scatter of the components needs.

    shares : of each component in what the method maximises, None where it does not say
    test : rows not used in fitting, None where none were given
    """

    method: str
    classes: tuple[str, ...]
    component_names: tuple[str, ...]
    shares: Array | None
    train: ProjectedRows
    test: ProjectedRows | None = None

    @classmethod
    def of(
        cls,
        estimator: Any,
        X: Any,
        y: ArrayLike,
        X_test: Any = None,
        y_test: ArrayLike | None = None,
        *,
        method: str | None = None,
        most_points: int = MOST_POINTS,
        most_components: int = MOST_COMPONENTS,
    ) -> ProjectionValues:
        """X, y : the rows the transformer was fitted on; X_test, y_test : others.

        Of more than `most_points` rows a sample is drawn, the same every time.
        """
        if (X_test is None) != (y_test is None):
            raise ValueError("X_test and y_test go together: pass both, or neither.")
        classes, codes = class_codes(y) if y_test is None else class_codes(y, y_test)
        parts = [
            ProjectedRows.of(scores_of(estimator, rows)[:, :most_components], of_part, len(classes), most_points)
            for rows, of_part in zip((X, X_test), codes, strict=False)
        ]
        k = parts[0].scores.shape[1]
        shares = shares_of(estimator)
        known = None if shares is None or len(shares) < k else shares[:k]
        return cls(method or name_of(estimator), classes, component_names(k), known, *parts)
