"""Supervised principal components by screening: PCA of the columns that tell the classes apart one by one."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from discrim.core.coordinates.basis import Basis, Features, column_variances
from discrim.core.folds import splits_of
from discrim.core.moments.class_moments import ClassMoments
from discrim.core.problem import Folding, Needs, Posing, Problem
from discrim.core.spread import Spread, total_spread
from discrim.estimators.base import Solution
from discrim.estimators.fisher_lda import FisherLDA
from discrim.estimators.pca import PCA
from discrim.estimators.spread_reducer import SpreadReducer
from discrim.tables.check_parameters import COUNT, Constraints, named, plain_count, whole
from discrim.tables.fit_messages import refuse_equal_means, refuse_equal_rows
from discrim.tables.rows import LabelledRows
from discrim.tables.warn_once import held_back

Array = NDArray[np.float64]
Columns = NDArray[np.intp]
NOTHING = 1e-26  # a column whose variance is this share of its largest square is constant but for rounding


@dataclass(frozen=True, eq=False)
class Screening:
    """How columns were chosen."""

    selected_: Columns
    f_scores_: Array
    tried_counts_: Columns
    tried_accuracies_: Array


class ScreenedPCA(SpreadReducer):
    """Supervised PCA by screening (Bair's): PCA of the columns along which the classes differ most, one by one.

        PCA of the m columns of largest  F_j = [ Σ_c n_c(μ_cj − μ_j)²/(C−1) ] / [ Σ_i (x_ij − μ_{y_i}j)²/(n−C) ]

    m by cross-validation over a geometric grid: the accuracy of a linear discriminant on the components. Made for
    thousands of columns of which few matter (genes); `selected_` names them. A column that only matters together with
    others is not seen, and with few columns that all matter it is PCA. Use a scale that makes variances comparable.

    Parameters
    ----------
    n_components : int, float or None, default=None
        How many components to keep; a fraction in (0, 1) keeps the fewest that reach that share of the variance of the
        selected columns, None all directions of numerical rank.
    n_selected : int or "cv", default="cv"
        m; "cv" tries all columns that vary, half as many, a quarter …, down to n_components.
    cv : int, splitter or list of (training, test) row numbers, default=5
        The folds for "cv", as in RegularizedLDA. Columns are screened anew in each of them.
    random_state : int, RandomState or None, default=None
        Seed that shuffles the folds; None for unshuffled ones.

    Attributes
    ----------
    components_ : array of shape (n_components_, n_features)
        The directions, one per row, orthonormal; 0 in columns that were not selected.
    eigenvalues_ : array of shape (n_components_,)
        Variance along each direction (divided by n).
    explained_variance_ratio_ : array of shape (n_components_,)
        Each direction's share of the variance of the selected columns.
    selected_ : array of shape (n_selected,)
        Numbers of the selected columns, largest F first.
    f_scores_ : array of shape (n_features,)
        F of every column; 0 for a constant one, beyond 1e300 for one that does not vary within classes.
    tried_counts_ : array
        With "cv", every m that was tried; else empty.
    tried_accuracies_ : array
        Held-out accuracy of each.
    rank_ : int
        Numerical rank of the selected columns: how many directions there are.
    {fitted_with_vip}

    References
    ----------
    Bair, Hastie, Paul and Tibshirani, "Prediction by supervised principal components" (2006), with F in the
    place of the univariate regression coefficient.

    Examples
    --------
    >>> import numpy as np
    >>> from discrim import ScreenedPCA
    >>> rng = np.random.default_rng(0)
    >>> y = np.arange(100) % 2
    >>> X = rng.standard_normal((100, 50))
    >>> X[:, :4] += 2 * y[:, None]
    >>> sorted(ScreenedPCA(1, n_selected=4).fit(X, y).selected_.tolist())
    [0, 1, 2, 3]
    """

    __metadata_request__fit: ClassVar[dict[str, Any]] = {"groups": None}
    _parameter_constraints: ClassVar[Constraints] = {
        "n_components": COUNT,
        "n_selected": (whole(1), *named("cv")),
    }

    def __init__(
        self,
        n_components: int | float | None = None,
        *,
        n_selected: int | str = "cv",
        cv: Any = 5,
        random_state: Any = None,
    ) -> None:
        self.n_components = n_components
        self.n_selected = n_selected
        self.cv = cv
        self.random_state = random_state

    def _needs(self) -> Needs:
        rows = None
        if isinstance(self.n_selected, str):
            rows = "n_selected='cv' needs all rows at once. Statistics suffice for a number."
        return Needs(rows=rows, folds=Folding(self.cv, self.random_state))

    def _solve_rows(
        self, rows: LabelledRows, groups: NDArray[Any] | None = None, posing: Posing | None = None
    ) -> Solution:
        shares, mean = _shares_of_rows(rows)
        tried: tuple[Columns, Array] = np.empty(0, np.intp), np.empty(0)
        if isinstance(self.n_selected, str):
            tried = self._tried(rows, int((shares > 0).sum()), groups)
            count = int(tried[0][np.flatnonzero(tried[1] >= tried[1].max() - 1e-12)[0]])  # of equals the fewest
        else:
            count = int(self.n_selected)
        screening = _screening(shares, count, rows.class_totals, tried)
        solution = super()._solve_rows(replace(rows, X=rows.X[:, screening.selected_]), groups, posing)
        return replace(_in_all_columns(solution, screening), mean_=mean)

    def _tried(self, rows: LabelledRows, most: int, groups: NDArray[Any] | None) -> tuple[Columns, Array]:
        """Every m of the grid, and its accuracy on held-out rows."""
        request = plain_count(self.n_components)
        least = min(request, most) if isinstance(request, int) else 1
        counts = np.unique([least, *(max(least, round(most / 2**halved)) for halved in range(most.bit_length()))])
        splits = splits_of(rows, self.cv, self.random_state, groups).pairs
        hits, weight = np.zeros(len(counts)), 0.0
        for training, test in splits:
            held_out = rows.some(test)
            weights = np.ones(len(test)) if held_out.weights is None else held_out.weights
            weight += float(weights.sum())
            hits += [float(weights @ right) for right in _right(rows.some(training), held_out, counts, request)]
        return counts.astype(np.intp), hits / weight

    def _spread(self, moments: ClassMoments, basis: Basis) -> Spread:
        return total_spread(moments)

    def _solve(self, problem: Problem) -> Solution:
        if problem.statistics is None:  # rows came, and are in the selected columns
            return super()._solve(problem)
        moments = problem.moments
        screening = _screening(_shares(moments), int(self.n_selected), moments.weights)
        some = moments.some_columns(screening.selected_)
        return _in_all_columns(
            super()._solve(replace(problem, basis=Features.of_moments(some), moments=some)), screening
        )


def _in_all_columns(found: Solution, screening: Screening) -> Solution:
    """Directions of the selected columns, 0 in the others."""
    directions = np.zeros((len(found.components_), len(screening.f_scores_)), found.components_.dtype)
    directions[:, screening.selected_] = found.components_
    how = f"{found.solver_}; {len(screening.selected_)} of {directions.shape[1]} columns"
    return replace(found, components_=directions, solver_=how, found=screening)


def _shares_of_rows(rows: LabelledRows) -> tuple[Array, Array]:
    """η²_j, the share of each column's variance between the classes (a rising function of F), and the columns' mean."""
    near, pilot = rows.near_origin()
    moments = ClassMoments.of_rows(near, keep="means")
    variances = column_variances(near, moments.exponent)
    mean = moments.mean if pilot is None else moments.mean + pilot
    return _shares(moments, variances), mean


def _shares(moments: ClassMoments, variances: Array | None = None) -> Array:
    """From the columns' variances, or from statistics that tell them."""
    rows = moments.between_rows()
    between = np.einsum("cd,cd->d", rows, rows) / moments.total_weight
    if variances is None:
        variances = np.diag(moments.within) / moments.total_weight + between
    varies = variances > NOTHING * np.ldexp(moments.mean, -moments.exponent) ** 2
    if not varies.any():
        refuse_equal_rows(moments.n_rows, moments.n_features)
    if not between[varies].any():
        refuse_equal_means()
    return np.minimum(np.divide(between, variances, out=np.zeros_like(variances), where=varies), 1.0)


def _screening(
    shares: Array, count: int, totals: Array, tried: tuple[Columns, Array] = (np.empty(0, np.intp), np.empty(0))
) -> Screening:
    order = np.argsort(-shares, kind="stable")[: min(count, int((shares > 0).sum()))]
    freedom = max(float(totals.sum()) - len(totals), 1.0) / max(len(totals) - 1, 1)
    rest = np.maximum(1 - shares, np.finfo(np.float64).tiny)  # where a column does not vary within classes
    scores = np.minimum(freedom * shares / rest, np.finfo(np.float64).max)
    return Screening(order, scores, *tried)


def _right(
    training: LabelledRows, test: LabelledRows, counts: Columns, request: int | float | None
) -> Iterator[NDArray[np.bool_]]:
    """For every m which test rows are classified rightly by a linear discriminant on the training rows' components."""
    shares = _shares_of_rows(training)[0]
    order, varying = np.argsort(-shares, kind="stable"), int((shares > 0).sum())
    for count in counts:
        columns = order[: min(int(count), varying)]
        some, new = training.X[:, columns], test.X[:, columns]
        with held_back():  # of what a fold's few rows lack
            reducer = PCA(request if isinstance(request, float) else None).fit(some, sample_weight=training.weights)
            kept = request if isinstance(request, int) else None  # a fold may have fewer
            features, new_features = (reducer.transform(part)[:, :kept] for part in (some, new))
            rule = FisherLDA().fit(features, training.codes, sample_weight=training.weights)
            right = rule.predict(new_features) == test.codes
        yield right
