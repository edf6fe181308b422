"""How far rows keep from the rows of other classes, before and after a reduction.

The relative margin of a row x with label c, towards the rows that were fitted:

    m(x) = (D₋ − D₊) / (D₋ + D₊)    D₋ distance to the nearest row of another class, D₊ to the nearest other row of c

It lies in [−1, 1], is above 0 exactly where the nearest neighbour is of the right class, and has no unit, so that
margins among 2,000 features and among 2 components can stand side by side. (The plain distance to the nearest enemy,
which margin PCA spreads out, shrinks whenever features are left out.)
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.neighbors import NearestNeighbors

from discrim.report.fitted import Array, Codes, class_codes, name_of, rows_seen, sampled, scores_of

MOST_FITTED, MOST_JUDGED = 4_000, 1_000


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
        before: Array | None = None,
        most_fitted: int = MOST_FITTED,
        most_judged: int = MOST_JUDGED,
    ) -> MarginValues:
        """Margins of the test rows towards the fitted rows X; without test rows, of each fitted row to the others.

        n_components : how many of the first components count; None for all.
        before : the margins in the features, where they are known from the same rows (`before` of other values).
        Of more than `most_fitted` and `most_judged` rows samples are drawn, the same every time. A row that is the
        only one of its class among the fitted has no margin and is left out.
        """
        held_out = X_test is not None and y_test is not None
        classes, codes = class_codes(y, y_test) if held_out else class_codes(y)  # type: ignore[arg-type]
        fitted = sampled(codes[0], most_fitted)
        judged = sampled(codes[1], most_judged) if held_out else fitted
        labels = codes[-1][judged]
        near, far = _taken(X, fitted), _taken(X_test, judged) if held_out else None
        after = _margins(partial(_first_scores, n_components), estimator, near, codes[0][fitted], far, labels)
        kept = np.isfinite(after)  # it is the labels that decide, so before as after
        if before is None:
            before = _margins(rows_seen, estimator, near, codes[0][fitted], far, labels)[kept]
        name = method or name_of(estimator)
        return cls(name, classes, labels[kept], before, after[kept], len(codes[-1]), held_out)

    def of_class(self, number: int) -> tuple[Array, Array]:
        """Margins of a class before and after."""
        mine = self.codes == number
        return self.before[mine], self.after[mine]

    @property
    def is_sampled(self) -> bool:
        return len(self.codes) < self.n_rows


def relative_margins(X: Any, codes: Codes, X_test: Any = None, codes_test: Codes | None = None) -> Array:
    """m of each test row towards X, or of each row of X towards the others; NaN without a row of the own class."""
    judged = codes if codes_test is None else codes_test
    friend, enemy = np.full(len(judged), np.inf), np.full(len(judged), np.inf)
    for number in np.unique(codes):
        members = np.flatnonzero(codes == number)
        search = NearestNeighbors(n_neighbors=1, algorithm="brute").fit(X[members])
        mine = judged == number
        if (~mine).any():
            rows = np.flatnonzero(~mine)
            distances = search.kneighbors((X if X_test is None else X_test)[rows])[0][:, 0]
            enemy[rows] = np.minimum(enemy[rows], distances)
        if X_test is not None and mine.any():
            friend[mine] = search.kneighbors(X_test[np.flatnonzero(mine)])[0][:, 0]
        elif X_test is None and len(members) > 1:
            friend[members] = search.kneighbors()[0][:, 0]  # without rows given, each row's neighbour is another row
    with np.errstate(invalid="ignore"):
        margins = (enemy - friend) / (enemy + friend)
    return np.where(np.isfinite(friend) & (enemy + friend == 0), 0.0, margins)


def _margins(view: Any, estimator: Any, near: Any, near_codes: Codes, far: Any, far_codes: Codes) -> Array:
    """Relative margins of the rows as `view` shows them."""
    if far is None:
        return relative_margins(view(estimator, near), near_codes)
    return relative_margins(view(estimator, near), near_codes, view(estimator, far), far_codes)


def _first_scores(count: int | None, estimator: Any, X: Any) -> Array:
    return scores_of(estimator, X)[:, :count]


def _taken(X: Any, rows: Codes) -> Any:
    return X.iloc[rows] if hasattr(X, "iloc") else X[rows]
