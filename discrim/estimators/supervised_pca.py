"""Principal components guided by the labels: class means first, or columns selected by their class differences."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass, replace
from types import SimpleNamespace
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from discrim.core.coordinates.basis import Basis, Features, column_variances
from discrim.core.cross_validation import splits_of
from discrim.core.discriminants import principal
from discrim.core.eigen import discriminant_count, independent, require_directions
from discrim.core.moments.class_moments import ClassMoments
from discrim.core.problem import EQUAL_MEANS, Folding, Needs, Problem
from discrim.core.ratio import Ratio
from discrim.core.spread import Spread, total_spread
from discrim.estimators.base import Reducer
from discrim.estimators.fitting import solved
from discrim.estimators.lda import FisherLDA
from discrim.estimators.pca import PCA
from discrim.estimators.solution import Solution, leading_directions
from discrim.tables.check_parameters import COUNT, Constraints, named, plain_count, whole
from discrim.tables.rows import LabelledRows
from discrim.warn_once import collected_warnings

Array = NDArray[np.float64]


class MeansFirstReducer(Reducer):
    """Base class: maximise tr WᵀUᵀUW subject to WᵀW = I, with U from `_mean_rows`.

    Directions beyond the rank of U come from `_rest`.
    """

    n_supervised_: int = solved()

    def _needs(self) -> Needs:
        return Needs(contrasts=True)

    @abstractmethod
    def _mean_rows(self, ratio: Ratio) -> Array:
        """Compute U/√n from the class means √(n_c/n) (μ_c − μ) that the ratio holds."""

    @abstractmethod
    def _rest(self, basis: Basis, ratio: Ratio, moments: ClassMoments, first: Array, wanted: int) -> Array:
        """Return `wanted` orthonormal rows in the moments' coordinates, orthogonal to `first` (in the ratio's)."""

    def _solve(self, problem: Problem) -> Solution:
        basis, moments, request, shape = problem.basis, problem.moments, problem.request, problem.shape
        ratio = problem.ratio
        require_directions(ratio.rank, shape)
        most = len(ratio.shares) - 1  # C centred means span at most C − 1 dimensions
        values, first = (part[:most] for part in principal(self._mean_rows(problem.separated)))
        k, q = discriminant_count(request, values, ratio.rank, shape), len(values)
        directions = ratio.embedded(first[:k])
        if k > q:
            directions = np.concatenate([directions, self._rest(basis, ratio, moments, first, k - q)])
        given = np.zeros(k)
        given[:q] = values[:k]
        return Solution(
            components_=directions,
            eigenvalues_=moments.in_squared_units(given),
            explained_variance_ratio_=given / values.sum(),
            rank_=ratio.rank,
            solver_=f"{min(k, q)} directions of the class means" + (f", {k - q} beyond" if k > q else ""),
            is_resolved=basis.is_resolved or (k <= q and basis.shows(values[:k])),
            found=SimpleNamespace(n_supervised_=min(k, q)),
        )


class OptimalLowRank(MeansFirstReducer):
    """Linear optimal low-rank projection (LOL): directions of the class means, then those of the class-centred rows.

        W = orthonormal [ right singular vectors of √n_c(μ_c − μ) ;  right singular vectors of x_i − μ_{y_i} ]

    with the stack orthonormalised in that order. It needs no inverse, so it suits tables with far more columns than
    rows, and is as fast as PCA. The published form uses differences to the first class as mean directions. Here they
    are replaced by their principal axes, so that the order of the classes does not matter and fewer than C − 1
    components are meaningful. Use it for very wide tables and more components than classes. With up to C − 1 components
    it is PCA of the between-class scatter, and a regularised discriminant is usually better.

    Parameters
    ----------
    n_components: Number of components. A fraction in (0, 1) keeps the fewest components that reach this share of the
        between-class scatter, None all directions of the class means, at most C − 1.

    Attributes
    ----------
    {orthonormal}
    eigenvalues_: Eigenvalues of the between-class scatter divided by the total weight; 0 beyond n_supervised_.
    explained_variance_ratio_: Share of each direction in the sum of the eigenvalues.
    n_supervised_: Number of components from the class means; the others are from the class-centred rows.
    {fitted_with_vip}

    References
    ----------
    Vogelstein et al., "Supervised dimensionality reduction for big data", Nature Communications 12 (2021), where LOL is
    defined as the concatenation of the differences of the means and the top right singular vectors of the class-centred
    rows.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from discrim import OptimalLowRank
    >>> X, y = load_digits(return_X_y=True)
    >>> OptimalLowRank(n_components=12).fit_transform(X, y).shape
    (1797, 12)
    """

    def _mean_rows(self, ratio: Ratio) -> Array:
        return ratio.means

    def _rest(self, basis: Basis, ratio: Ratio, moments: ClassMoments, first: Array, wanted: int) -> Array:
        means = ratio.embedded(first)
        within = Spread(np.ones(len(ratio.shares)), means[:0])
        # as many as all together, because some may lie in the span of the means
        found = basis.spectrum(within, moments, len(first) + wanted)
        return independent(means, found.directions[: found.rank], wanted)[1]


class SupervisedPCA(MeansFirstReducer):
    """Supervised PCA (HSIC): the directions along which the rows depend most on their labels.

        maximise  tr WᵀXᵀHLHXW  subject to  WᵀW = I,    L_ij = 1 if y_i = y_j, else 0,    H = I − 11ᵀ/n

    The objective is the Hilbert–Schmidt independence criterion between projected rows and labels. With this kernel on
    the labels the matrix is Σ_c n_c²(μ_c−μ)(μ_c−μ)ᵀ: it depends on the class means, most on those of large classes, and
    not on the within-class spread. It has at most C − 1 directions; further ones are PCA of the orthogonal complement.
    After `KernelMap` it is kernel supervised PCA. Use it if no matrix should be inverted and the columns have
    comparable scales; if columns vary much within classes, a discriminant method is better.

    Parameters
    ----------
    n_components: Number of components. A fraction in (0, 1) keeps the fewest components that reach this share of the
        dependence, None all that depend on the labels, at most C − 1.

    Attributes
    ----------
    {orthonormal}
    eigenvalues_: Eigenvalues of XᵀHLHX divided by the total weight; 0 beyond n_supervised_.
    explained_variance_ratio_: Share of each direction in the sum of the eigenvalues.
    n_supervised_: Number of components that depend on the labels; the others are PCA of the orthogonal complement.
    {fitted_with_vip}

    References
    ----------
    Barshan, Ghodsi, Azimifar and Zolghadri Jahromi, "Supervised principal component analysis: visualization,
    classification and regression on subspaces and submanifolds" (2011).

    Examples
    --------
    >>> from sklearn.datasets import load_wine
    >>> from discrim import SupervisedPCA
    >>> X, y = load_wine(return_X_y=True)
    >>> SupervisedPCA(n_components=4).fit(X, y).n_supervised_
    2
    """

    def _mean_rows(self, ratio: Ratio) -> Array:
        return np.sqrt(ratio.weight * ratio.shares)[:, None] * ratio.means

    def _rest(self, basis: Basis, ratio: Ratio, moments: ClassMoments, first: Array, wanted: int) -> Array:
        return ratio.embedded(basis.complement(ratio, first, wanted))


Columns = NDArray[np.intp]
CONSTANT = 1e-26  # a column with a variance below this share of its squared mean is constant up to rounding


@dataclass(frozen=True, eq=False)
class Screening:
    """Scores of the columns, the selected ones, and the numbers tried."""

    selected_: Columns
    f_scores_: Array
    tried_counts_: Columns
    tried_accuracies_: Array


class ScreenedPCA(Reducer):
    """Supervised PCA by screening (Bair et al.): PCA of the columns whose class means differ most, tested one by one.

        PCA of the m columns with the largest  F_j = [ Σ_c n_c(μ_cj − μ_j)²/(C−1) ] / [ Σ_i (x_ij − μ_{y_i}j)²/(n−C) ]

    m is chosen by cross-validation over a geometric grid: the accuracy of a linear discriminant on the components. The
    method is meant for thousands of columns of which few matter (genes); `selected_` lists them. It misses columns that
    matter only in combination with others, and equals PCA if all columns matter. Scale the columns so that their
    variances are comparable.

    Parameters
    ----------
    n_components: Number of components. A fraction in (0, 1) keeps the fewest components that explain this share of the
        variance of the selected columns, None all directions up to the numerical rank.
    n_selected : int or "cv", default="cv"
        Number of columns m. "cv" tries all columns that vary, half as many, a quarter …, down to n_components.
    cv: Folds for "cv", as in RegularizedLDA. Columns are screened again in each of them.
    {shuffling}

    Attributes
    ----------
    components_: Directions, one per row, orthonormal; 0 in columns that were not selected.
    eigenvalues_: Variance along each direction (divided by n).
    explained_variance_ratio_: Share of the variance of the selected columns explained by each direction.
    selected_ : array of shape (n_selected,)
        Indices of the selected columns, largest F first.
    f_scores_ : array of shape (n_features,)
        F of every column; 0 for a constant one, above 1e300 for one that does not vary within classes.
    tried_counts_ : array
        With "cv", every m that was tried; otherwise empty.
    tried_accuracies_ : array
        Held-out accuracy of each m in tried_counts_.
    rank_: Numerical rank of the selected columns.
    {fitted_with_vip}

    References
    ----------
    Bair, Hastie, Paul and Tibshirani, "Prediction by supervised principal components" (2006), with F
    replacing the univariate regression coefficient.

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

    selected_: Columns = solved()
    f_scores_: Array = solved()
    tried_counts_: Columns = solved()
    tried_accuracies_: Array = solved()

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

    def _solve_rows(self, rows: LabelledRows, groups: NDArray[Any] | None = None) -> Solution:
        shares, mean = _shares_of_rows(rows)
        tried: tuple[Columns, Array] = np.empty(0, np.intp), np.empty(0)
        if isinstance(self.n_selected, str):
            tried = self._tried(rows, int((shares > 0).sum()), groups)
            count = int(tried[0][np.flatnonzero(tried[1] >= tried[1].max() - 1e-12)[0]])  # the smallest of ties
        else:
            count = int(self.n_selected)
        screening = _screening(shares, count, rows.class_totals, tried)
        solution = super()._solve_rows(replace(rows, X=rows.X[:, screening.selected_]), groups)
        return replace(_in_all_columns(solution, screening), mean_=mean)

    def _tried(self, rows: LabelledRows, most: int, groups: NDArray[Any] | None) -> tuple[Columns, Array]:
        """Return every m of the grid and its accuracy on held-out rows."""
        request = plain_count(self.n_components)
        least = min(request, most) if isinstance(request, int) else 1
        counts = np.unique([least, *(max(least, round(most / 2**halved)) for halved in range(most.bit_length()))])
        # a class with one row is missing in the training rows of its fold, which may leave a single class
        splits = splits_of(rows, self.cv, self.random_state, groups).pairs
        splits = [(training, test) for training, test in splits if len(np.unique(rows.codes[training])) > 1]
        if not splits:
            raise ValueError(
                "cv must leave training rows of at least two classes in some fold for n_selected='cv'; got none. Pass "
                f"more rows of each class, another cv than {self.cv!r}, or a number as n_selected."
            )
        hits, weight = np.zeros(len(counts)), 0.0
        for training, test in splits:
            held_out = rows.select(test)
            weights = np.ones(len(test)) if held_out.weights is None else held_out.weights
            weight += float(weights.sum())
            hits += [float(weights @ right) for right in _right(rows.select(training), held_out, counts, request)]
        return counts.astype(np.intp), hits / weight

    def _solve(self, problem: Problem) -> Solution:
        moments = problem.moments
        if problem.statistics is None:  # a problem from rows is already restricted to the selected columns
            return leading_directions(problem, total_spread(moments))
        screening = _screening(_shares(moments), int(self.n_selected), moments.weights)
        chosen = moments.select_columns(screening.selected_)
        selected = replace(problem, basis=Features.from_moments(chosen), moments=chosen)
        return _in_all_columns(leading_directions(selected, total_spread(chosen)), screening)


def _in_all_columns(found: Solution, screening: Screening) -> Solution:
    """Return the directions with 0 in the columns that were not selected."""
    directions = np.zeros((len(found.components_), len(screening.f_scores_)), found.components_.dtype)
    directions[:, screening.selected_] = found.components_
    deviations = found._column_deviations
    if deviations is not None:
        deviations = np.zeros(directions.shape[1])  # columns that were not selected have no effect
        deviations[screening.selected_] = found._column_deviations
    how = f"{found.solver_}; {len(screening.selected_)} of {directions.shape[1]} columns"
    return replace(found, components_=directions, solver_=how, found=screening, _column_deviations=deviations)


def _shares_of_rows(rows: LabelledRows) -> tuple[Array, Array]:
    """Return η²_j, the share of each column's variance between classes (it increases with F), and the column means."""
    near, pilot = rows.near_origin()
    moments = ClassMoments.from_rows(near, keep="means")
    variances = column_variances(near, moments.exponent, moments.mean)
    mean = moments.mean if pilot is None else moments.mean + pilot
    return _shares(moments, variances), mean


def _shares(moments: ClassMoments, variances: Array | None = None) -> Array:
    """Compute η²_j from the columns' variances, or from statistics that include them."""
    rows = moments.between_rows()
    between = np.einsum("cd,cd->d", rows, rows) / moments.total_weight
    if variances is None:
        variances = np.diag(moments.within) / moments.total_weight + between
    varies = variances > CONSTANT * moments.scaled(moments.mean) ** 2
    require_directions(int(varies.sum()), (moments.n_rows, moments.n_features))
    if not between[varies].any():
        raise ValueError(EQUAL_MEANS)
    return np.minimum(np.divide(between, variances, out=np.zeros_like(variances), where=varies), 1.0)


def _screening(
    shares: Array, count: int, totals: Array, tried: tuple[Columns, Array] = (np.empty(0, np.intp), np.empty(0))
) -> Screening:
    order = np.argsort(-shares, kind="stable")[: min(count, int((shares > 0).sum()))]
    freedom = max(float(totals.sum()) - len(totals), 1.0) / max(len(totals) - 1, 1)
    rest = np.maximum(1 - shares, np.finfo(np.float64).tiny)  # for a column that does not vary within classes
    scores = np.minimum(freedom * shares / rest, np.finfo(np.float64).max)
    return Screening(order, scores, *tried)


def _right(
    training: LabelledRows, test: LabelledRows, counts: Columns, request: int | float | None
) -> Iterator[NDArray[np.bool_]]:
    """Yield, for every m, which test rows a linear discriminant on the components classifies correctly."""
    shares = _shares_of_rows(training)[0]
    order, varying = np.argsort(-shares, kind="stable"), int((shares > 0).sum())
    for count in counts:
        columns = order[: min(int(count), varying)]
        known, new = training.X[:, columns], test.X[:, columns]
        with collected_warnings():  # a fold may lack rows
            reducer = PCA(request if isinstance(request, float) else None).fit(known, sample_weight=training.weights)
            kept = request if isinstance(request, int) else None  # a fold may have fewer components
            features, new_features = (reducer.transform(part)[:, :kept] for part in (known, new))
            rule = FisherLDA().fit(features, training.codes, sample_weight=training.weights)
            right = rule.predict(new_features) == test.codes
        yield right
