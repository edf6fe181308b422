"""Partial least squares discriminant analysis, dense and sparse."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from discrim.core.coordinates.choose import Plan
from discrim.core.eigen import kept_count, limit_count, require_directions
from discrim.core.partial_least_squares import (
    HeldOutComponents,
    KeptFeatures,
    LeastSquaresComponents,
    counts_to_try,
    folds_of,
    held_out_components,
    kept_features,
)
from discrim.core.problem import Folding, Needs, Problem
from discrim.estimators.base import Reducer
from discrim.estimators.discriminant import CentroidClassifier, CentroidRule
from discrim.estimators.fitting import fitted_attribute, solved, warn_of_few_rows
from discrim.estimators.solution import Solution, importances
from discrim.tables.check_parameters import COUNT, COUNT_OR_CV, FLAG, WHOLE, Constraints, is_number

Array = NDArray[np.float64]
MAX_TRIED = 10  # components for n_components="cv"


@dataclass(frozen=True, eq=False, kw_only=True)
class PLSSolution(Solution):
    """Solution with weights and loadings (columns, as in scikit-learn), and the centroid rule."""

    x_weights_: Array
    x_loadings_: Array
    y_loadings_: Array
    r2x_: Array
    r2y_: Array
    _rule: CentroidRule

    def _lifted(self) -> tuple[Array, ...]:
        return self.x_weights_.T, self.x_loadings_.T, self._rule.directions

    def _others_in_features(self, lifted: list[Array], signs: Array, deviations: Array) -> dict[str, Any]:
        weights, loadings, directions = lifted
        return {
            "x_weights_": weights.T * signs,
            "x_loadings_": loadings.T * signs,
            "y_loadings_": self.y_loadings_ * signs,
            "_rule": replace(self._rule, directions=directions),
        }


class PLSReducer(CentroidClassifier, Reducer):
    """Base class for partial least squares of one-hot labels; `_components` computes the components."""

    x_weights_: Array = solved()
    x_loadings_: Array = solved()
    y_loadings_: Array = solved()
    r2x_: Array = solved()
    r2y_: Array = solved()

    def _needs(self) -> Needs:
        return Needs(tells_labels=False)  # the eigenvalues are the explained label variances

    @abstractmethod
    def _components(self, problem: Problem, wanted: int) -> tuple[LeastSquaresComponents, Any, int]:
        """Return at most `wanted` components, additional results (with `first(k)`, or None), and the number to keep."""

    def _solve(self, problem: Problem) -> Solution:
        moments, request, shape, ratio = problem.moments, problem.request, problem.shape, problem.ratio
        require_directions(ratio.rank, shape)
        ratio = problem.separated
        wanted = min(request if isinstance(request, int) else len(ratio.shares) - 1, ratio.rank)
        found, extra, k = self._components(problem, wanted)
        values = found.explained
        if isinstance(request, int):
            limit_count(request, k, shape)
        if isinstance(request, float):
            k = kept_count(request, values, float(values.sum()), k, shape)
        unit = float(np.sqrt(found.variances[:k].mean()))
        rotations = ratio.embedded(found.rotations[:k])
        return PLSSolution(
            components_=rotations,
            eigenvalues_=values[:k],
            explained_variance_ratio_=values[:k] / found.label_variance,
            rank_=ratio.rank,
            solver_=f"{k} components by partial least squares",
            is_resolved=problem.basis.is_resolved,
            found=None if extra is None else extra.first(k),
            x_weights_=ratio.embedded(found.weights[:k]).T,
            x_loadings_=ratio.embedded(found.loadings[:k]).T,
            y_loadings_=moments.scaled(found.label_loadings[:k].T),
            r2x_=(found.variances * (found.loadings**2).sum(axis=1))[:k] / float(ratio.variances.sum()),
            r2y_=values[:k] / found.label_variance,
            _rule=CentroidRule(
                moments.scaled(rotations / unit), found.centroids()[:, :k] / unit, np.zeros(len(ratio.shares))
            ),
        )

    @fitted_attribute
    def vip_(self) -> Array:
        """√(d Σ_h SS_h w_jh² / Σ_h SS_h) for every feature, w_h the weights; the squares sum to d."""
        return importances(self.x_weights_.T, self.eigenvalues_)


class PLSDA(PLSReducer):
    """PLS discriminant analysis (PLS-DA): directions with maximal covariance between rows and labels.

        maximise  cov(Xw_h, Yv_h)²  subject to  ‖w_h‖ = ‖v_h‖ = 1 ,  t_h = Xr_h uncorrelated ,   Y one-hot labels

    This is scikit-learn's PLSRegression(scale=False) of one-hot labels, computed from class statistics, as a
    transformer and a classifier: a row is assigned to the class with the nearest centroid of scores. No inverse is
    needed, so correlated columns and n < d are no problem. If columns have different units, put a StandardScaler first,
    as is usual in chemometrics. PLS-DA is a standard method in chemometrics and omics. For accuracy with few components
    RegularizedLDA is better, because it takes the within-class spread into account.

    Parameters
    ----------
    n_components : int, float, "cv" or None, default=2
        Number of components. None uses C − 1; a fraction in (0, 1) keeps the fewest of these that reach this share of
        the label variance they explain together. "cv" chooses from 1 to 10 the fewest within one standard error of the
        highest held-out accuracy.
    scale_labels: If True, divide each one-hot column by its standard deviation, so small classes count as much as large
        ones. After a StandardScaler, this is `plsda` of mixOmics.
    cv: Folds for "cv" and for `q2_`. With None, `q2_` is not computed, unless n_components="cv", which uses 5 folds. An
        int divides the distinct rows of each class evenly.
    {shuffling}

    Attributes
    ----------
    components_: Rotations r_h; scores are (x − mean_)ᵀr_h.
    x_weights_: Unit weights w_h, which apply to the deflated rows.
    vip_: Variable importance in projection (VIP), √(d Σ_h SS_h w_jh² / Σ_h SS_h) with SS_h = ‖t_h‖²‖q_h‖². The mean
        square is 1; features above 1 are usually considered important.
    q2_ : array of shape (n_components_,)
        With folds: Q² of each component, 1 − PRESS_h/RSS_{h−1}, from predicted labels of held-out rows. The Q² of all
        components together is 1 − ∏(1 − q2_). A component with a negative value makes predictions worse.
    count_accuracies_ : array of shape (n_tried,)
        With folds: mean held-out accuracy after 1, 2, … components.
    {least_squares}

    References
    ----------
    Barker and Rayens, "Partial least squares for discrimination" (2003). Dayal and MacGregor, "Improved PLS algorithms"
    (1997). Wold, Sjöström and Eriksson, "PLS-regression: a basic tool of chemometrics" (2001), for VIP.

    Examples
    --------
    >>> from sklearn.datasets import load_wine
    >>> from sklearn.preprocessing import scale
    >>> from discrim import PLSDA
    >>> X, y = load_wine(return_X_y=True, as_frame=True)
    >>> fitted = PLSDA(n_components=2).fit(scale(X), y)
    >>> X.columns[fitted.vip_.argmax()]
    'alcohol'
    """

    _parameter_constraints: ClassVar[Constraints] = {"n_components": COUNT_OR_CV, "scale_labels": FLAG}
    __metadata_request__fit: ClassVar[dict[str, Any]] = {"groups": None}

    def __init__(
        self,
        n_components: int | float | str | None = 2,
        *,
        scale_labels: bool = False,
        cv: Any = None,
        random_state: Any = None,
    ) -> None:
        self.n_components = n_components
        self.scale_labels = scale_labels
        self.cv = cv
        self.random_state = random_state

    def _needs(self) -> Needs:
        if self.cv is None and self.n_components != "cv":
            return super()._needs()
        rows = "cross-validation of the components needs all rows at once. Use fit, or cv=None and a number."
        return Needs(tells_labels=False, rows=rows, folds=Folding(5 if self.cv is None else self.cv, self.random_state))

    def _components(
        self, problem: Problem, wanted: int
    ) -> tuple[LeastSquaresComponents, HeldOutComponents | None, int]:
        if self.n_components == "cv":
            wanted = min(MAX_TRIED, problem.ratio.rank)
        scaled = bool(self.scale_labels)
        found = LeastSquaresComponents.of(problem.ratio, scale_labels=scaled)
        while len(found.weights) < wanted and not found.is_exhausted:
            found = found.extended()
        if problem.needs.folds is None:
            return found, None, len(found.weights)
        folds = folds_of(problem.basis.points, problem.splits(), scale_labels=scaled)
        held_out, chosen = held_out_components(found, folds)
        return found, held_out, chosen if self.n_components == "cv" else len(found.weights)


class SparsePLSDA(PLSReducer):
    """Sparse PLS discriminant analysis (sPLS-DA): PLS components that use only some of the features.

        w_h ∝ soft(X_hᵀYv_h, keep_h) ,   v_h ∝ YᵀX_hw_h ,   soft(a, m)_j = sign(a_j) (|a_j| − the (m+1)th largest |a|)₊

    Each weight vector keeps `keep` features, by alternating with the labels' weights until neither changes; rows are
    then deflated as in `PLSDA`. With `scale_labels=True` after a StandardScaler it is mixOmics' splsda. A row is
    assigned to the class with the nearest centroid of scores. Use it to get a short list of features, also for n far
    below d.

    Parameters
    ----------
    n_components: Number of components. None uses C − 1; a fraction in (0, 1) keeps the fewest of these that reach this
        share of the label variance they explain together.
    keep : int, list of int or "cv", default="cv"
        Number of features of each component (ties for the last position are dropped together), or a list with one
        number per component. "cv" chooses the number component by component from 12 geometrically spaced ones: the
        fewest within one standard error of the highest held-out accuracy.
    scale_labels: If True, divide each one-hot column by its standard deviation, so small classes count as much as large
        ones.
    cv: Folds for "cv" and for `stability_`; RepeatedStratifiedKFold gives more of them. An int divides the distinct
        rows of each class evenly.
    {shuffling}

    Attributes
    ----------
    components_: Rotations r_h; scores are (x − mean_)ᵀr_h. From the second on they also use the features of previous
        components.
    x_weights_: Unit weights w_h, each with at most `keep_` nonzero entries.
    selected_ : array of int
        Indices of the features that any component keeps, in column order.
    keep_ : array of shape (n_components_,)
        Number of features, given or chosen, for each component.
    stability_ : array of shape (n_components_, n_features)
        Share of the folds' training sets in which each component keeps each feature.
    keep_tried_ : array or None
        With "cv", the numbers of features that were tried.
    keep_accuracies_ : array of shape (n_components_, n_tried) or None
        Mean held-out accuracy of each of them.
    vip_: Variable importance in projection, as in `PLSDA`; 0 for features that no component keeps.
    rank_: Upper bound of the numerical rank, from the numbers of distinct rows and of varying columns.
    {least_squares}

    References
    ----------
    Lê Cao, Boitard and Besse, "Sparse PLS discriminant analysis: biologically relevant feature selection and graphical
    displays for multiclass problems" (2011). Rohart et al., "mixOmics" (2017), for the number kept.

    Examples
    --------
    >>> from sklearn.datasets import load_wine
    >>> from sklearn.preprocessing import scale
    >>> from discrim import SparsePLSDA
    >>> X, y = load_wine(return_X_y=True, as_frame=True)
    >>> fitted = SparsePLSDA(n_components=2, keep=[2, 3]).fit(scale(X), y)
    >>> len(fitted.selected_)
    5
    """

    _parameter_constraints: ClassVar[Constraints] = {"n_components": COUNT, "scale_labels": FLAG}
    __metadata_request__fit: ClassVar[dict[str, Any]] = {"groups": None}

    def __init__(
        self,
        n_components: int | float | None = 2,
        *,
        keep: int | list[int] | str = "cv",
        scale_labels: bool = False,
        cv: Any = 5,
        random_state: Any = None,
    ) -> None:
        self.n_components = n_components
        self.keep = keep
        self.scale_labels = scale_labels
        self.cv = cv
        self.random_state = random_state

    def _needs(self) -> Needs:
        return Needs(
            scatter="means",
            rows="the choice of features needs all rows at once. Use fit, or PLSDA.",
            folds=Folding(self.cv, self.random_state),
            tells_labels=False,
            # in the features themselves, because weights refer to single features; never a d×d array
            coordinates=Plan("products", "weights of single features: products with the rows"),
        )

    def _components(self, problem: Problem, wanted: int) -> tuple[LeastSquaresComponents, KeptFeatures, int]:
        basis, ratio, scaled = problem.basis, problem.ratio, bool(self.scale_labels)
        rows, varying = basis.points, int((ratio.variances > 0).sum())
        given = _counts_to_keep(self.keep, wanted, varying)
        folds = []
        if given is None or np.bincount(rows.codes).max() > 1:
            if given is None:
                warn_of_few_rows(self, rows.codes)
            folds = folds_of(rows, problem.splits(), scale_labels=scaled)
        start = LeastSquaresComponents.of(ratio, scale_labels=scaled)
        found, kept = kept_features(start, folds, wanted, given, counts_to_try(varying))
        return found, kept, len(found.weights)

    @fitted_attribute
    def selected_(self) -> NDArray[np.intp]:
        """Indices of the features that any component keeps."""
        return np.flatnonzero((self.x_weights_ != 0).any(axis=1))


def _counts_to_keep(keep: Any, n_components: int, n_features: int) -> list[int] | None:
    """Return how many features each component keeps; None if folds choose."""
    if isinstance(keep, str) and keep == "cv":
        return None
    counts = list(keep) if isinstance(keep, (list, tuple, np.ndarray)) else [keep] * n_components
    if not all(is_number(count, WHOLE) and count >= 1 for count in counts):
        raise ValueError(f"keep must be an int ≥ 1, one for each component, or 'cv'; got {keep!r}.")
    if len(counts) < n_components:
        raise ValueError(f"keep must be one number for all components or one for each of {n_components}; got {keep!r}.")
    return [min(int(count), n_features) for count in counts]
