"""How far rows lie on their own side of the borders between the classes, before and after a reduction.

The relative margin of a row x with label c, towards the class means μ of the rows that were fitted:

    m(x) = min over o ≠ c of  (‖x − μ_o‖² − ‖x − μ_c‖²) / ‖μ_o − μ_c‖²

This is the signed distance to the plane halfway between the two means, divided by half the distance of the means: 1 at
the own mean, 0 halfway to the nearest other, below 0 where another mean is nearer, 1 on average for two classes.
It has no unit and does not see directions in which the means agree, so that margins among 2,000 features and on 2
components can stand side by side: the narrower, the better the classes are kept apart. (Distances to single rows do not
have this: among few components the nearest row is always close.) It is linear in x, so many or sparse rows cost little.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from discrim.report.fitted import Array, Codes, class_codes, name_of, rows_seen, sampled, scores_of

MOST_ROWS = 1_000


@dataclass(frozen=True, eq=False)
class MarginValues:
    """Relative margins of the same rows before and after the reduction.

    codes : class number of each row; before, after : its margin in the features and on the components
    n_rows : how many rows there are to be judged, drawn or not
    held_out : whether they are other rows than those fitted
    """

    method: str
    classes: tuple[str, ...]
    codes: Codes
    before: Array
    after: Array
    n_rows: int
    held_out: bool

    @classmethod
    def of(
        cls,
        estimator: Any,
        X: Any,
        y: ArrayLike,
        X_test: Any = None,
        y_test: ArrayLike | None = None,
        *,
        n_components: int | None = None,
        method: str | None = None,
        most_rows: int = MOST_ROWS,
    ) -> MarginValues:
        """Margins of the test rows towards the class means of the fitted rows X; without test rows, of these rows.

        n_components : how many of the first components count; None for all.
        Of more than `most_rows` rows a sample is drawn, the same every time. A row of a class that was not fitted has
        no margin and is left out.
        """
        held_out = X_test is not None and y_test is not None
        classes, codes = class_codes(y, y_test) if held_out else class_codes(y)  # type: ignore[arg-type]
        drawn = sampled(codes[-1], most_rows)
        judged, labels = _taken(X_test if held_out else X, drawn), codes[-1][drawn]
        before = relative_margins(rows_seen(estimator, X), codes[0], rows_seen(estimator, judged), labels)
        fitted, seen = (scores_of(estimator, rows)[:, :n_components] for rows in (X, judged))
        after = relative_margins(fitted, codes[0], seen, labels)
        kept = np.isfinite(before) & np.isfinite(after)
        name = method or name_of(estimator)
        return cls(name, classes, labels[kept], before[kept], after[kept], len(codes[-1]), held_out)

    def of_class(self, number: int) -> tuple[Array, Array]:
        """Margins of a class before and after."""
        mine = self.codes == number
        return self.before[mine], self.after[mine]

    @property
    def is_sampled(self) -> bool:
        return len(self.codes) < self.n_rows


def relative_margins(X: Any, codes: Codes, X_test: Any, codes_test: Codes) -> Array:
    """m of each test row towards the class means of X; NaN for a row whose class X does not have.

    With everything centred at the mean of X, m = (2 x·(μ_c − μ_o) − ‖μ_c‖² + ‖μ_o‖²) / ‖μ_c − μ_o‖².
    """
    present = np.unique(codes)
    centre = np.asarray(X.mean(axis=0)).ravel()
    means = np.stack([np.asarray(X[np.flatnonzero(codes == number)].mean(axis=0)).ravel() for number in present])
    means = means - centre
    products = np.asarray(X_test @ means.T) - centre @ means.T
    squares = (means**2).sum(axis=1)
    margins = np.full(len(codes_test), np.nan)
    for at, number in enumerate(present):
        mine = np.flatnonzero(codes_test == number)
        others = np.delete(np.arange(len(present)), at)
        apart = ((means[at] - means[others]) ** 2).sum(axis=1)
        others, apart = others[apart > 0], apart[apart > 0]  # equal means have no plane between them
        if len(others):
            nearer = 2 * (products[mine, at][:, None] - products[mine][:, others]) - squares[at] + squares[others]
            margins[mine] = (nearer / apart).min(axis=1)
    return margins


def _taken(X: Any, rows: Codes) -> Any:
    return X.iloc[rows] if hasattr(X, "iloc") else X[rows]
