"""Partial least squares discriminant analysis, dense and sparse."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from discrim.core.coordinates.basis import Basis
from discrim.core.coordinates.choose import Plan
from discrim.core.eigen import kept_count, limit_count, require_directions
from discrim.core.partial_least_squares import (
    Fold,
    HeldOutComponents,
    KeptFeatures,
    LeastSquaresComponents,
    counts_to_try,
    held_out_components,
    kept_features,
)
from discrim.core.problem import Folding, Needs, Problem
from discrim.core.ratio import Ratio
from discrim.estimators.base import Reducer
from discrim.estimators.discriminant import CentroidClassifier, CentroidRule
from discrim.estimators.fitting import fitted_attribute, solved
from discrim.estimators.solution import Solution, importances
from discrim.tables.check_parameters import COUNT, COUNT_OR_CV, FLAG, Constraints, checked_keep

Array = NDArray[np.float64]
MOST_TRIED = 10  # components, of n_components="cv"


@dataclass(frozen=True, eq=False, kw_only=True)
class PLSSolution(Solution):
    """Of partial least squares also: weights and loadings (columns, as in scikit-learn), and the rule of centroids."""

    x_weights_: Array
    x_loadings_: Array
    y_loadings_: Array
    r2x_: Array
    r2y_: Array
    _rule: CentroidRule

    def _others_in_features(self, basis: Basis, signs: Array, deviations: Array) -> dict[str, Any]:
        return {
            "x_weights_": basis.lift(self.x_weights_.T).T * signs,
            "x_loadings_": basis.lift(self.x_loadings_.T).T * signs,
            "y_loadings_": self.y_loadings_ * signs,
            "_rule": replace(self._rule, directions=basis.lift(self._rule.directions)),
        }


class PLSReducer(CentroidClassifier, Reducer):
    """Components by partial least squares of one-hot labels; `_components` states how each is found."""

    x_weights_: Array = solved()
    x_loadings_: Array = solved()
    y_loadings_: Array = solved()
    r2x_: Array = solved()
    r2y_: Array = solved()

    def _needs(self) -> Needs:
        return Needs(tells_labels=False)  # what they explain are the eigenvalues

    @abstractmethod
    def _components(self, problem: Problem, wanted: int) -> tuple[LeastSquaresComponents, Any, int]:
        """Return at most `wanted` components, what else was found (with `first(k)`, or None), and how many to keep."""

    def _most(self, request: int | float | None, ratio: Ratio) -> int:
        """Return the largest number of components to compute."""
        return min(request if isinstance(request, int) else len(ratio.shares) - 1, ratio.rank)

    def _solve(self, problem: Problem) -> Solution:
        moments, request, shape, ratio = problem.moments, problem.request, problem.shape, problem.ratio
        require_directions(ratio.rank, shape)
        ratio = problem.separated
        found, extra, k = self._components(problem, self._most(request, ratio))
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
            y_loadings_=np.ldexp(found.label_loadings[:k].T, -moments.exponent),
            r2x_=(found.variances * (found.loadings**2).sum(axis=1))[:k] / float(ratio.variances.sum()),
            r2y_=values[:k] / found.label_variance,
            _rule=CentroidRule(
                np.ldexp(rotations / unit, -moments.exponent),
                found.centroids()[:, :k] / unit,
                np.zeros(len(ratio.shares)),
            ),
        )

    @fitted_attribute
    def vip_(self) -> Array:
        """√(d Σ_h SS_h w_jh² / Σ_h SS_h) for every feature, w_h the weights; the squares sum to d."""
        return importances(self.x_weights_.T, self.eigenvalues_)


class PLSDA(PLSReducer):
    """PLS discriminant analysis (PLS-DA): directions along which rows covary most with their labels.

        maximise  cov(Xw_h, Yv_h)²  subject to  ‖w_h‖ = ‖v_h‖ = 1 ,  t_h = Xr_h uncorrelated ,   Y one-hot labels

    Scikit-learn's PLSRegression(scale=False) of one-hot labels, from class statistics, as a transformer and as a
    classifier: a row belongs to the class whose centroid of scores is nearest. No inverse is needed, so that correlated
    columns and n < d are fine. Put a StandardScaler in front where columns have different units, as chemometricians do.
    What chemometrics and omics expect; for accuracy with few components RegularizedLDA is ahead, which takes the spread
    within classes into account.

    Parameters
    ----------
    n_components : int, float, "cv" or None, default=2
        Number of components; None for one less than classes, a fraction in (0, 1) for the fewest of those that reach
        that share of the labels' variance they explain together. "cv" chooses among 1 to 10: the fewest within one
        standard error of the highest accuracy on held-out rows.
    scale_labels : bool, default=False
        Divide each one-hot column by its standard deviation, so that small classes count as much as large ones. With a
        StandardScaler in front of it, this is `plsda` of mixOmics.
    cv : int, splitter or list of (training, test) row numbers, default=None
        Folds for "cv" and for `q2_`. None computes no `q2_`, unless n_components="cv", which uses 5 folds. A number of
        folds divides the distinct rows of each class evenly.
    random_state : int, RandomState or None, default=None
        Seed that shuffles the folds; None for unshuffled ones.

    Attributes
    ----------
    components_ : array of shape (n_components_, n_features)
        The rotations r_h: scores are (x − mean_)ᵀr_h.
    x_weights_ : array of shape (n_features, n_components_)
        The unit weights w_h, which act on what earlier components left of the rows.
    x_loadings_ : array of shape (n_features, n_components_)
        p_h: rows are about mean_ + Σ_h t_h p_h.
    y_loadings_ : array of shape (n_classes, n_components_)
        q_h: one-hot labels are about their mean + Σ_h t_h q_h.
    vip_ : array of shape (n_features,)
        Importance of each feature (variable influence on projection), √(d Σ_h SS_h w_jh² / Σ_h SS_h) with
        SS_h = ‖t_h‖²‖q_h‖². The mean of the squares is 1; features above 1 are usually looked at.
    eigenvalues_ : array of shape (n_components_,)
        Variance of the one-hot labels that each component explains, SS_h/n.
    explained_variance_ratio_ : array of shape (n_components_,)
        The same as a share of all their variance (R²Y).
    r2x_ : array of shape (n_components_,)
        Share of the rows' variance that each component explains, ‖t_h‖²‖p_h‖²/‖X‖² (R²X).
    r2y_ : array of shape (n_components_,)
        Share of the labels' variance that each component explains (R²Y), as `explained_variance_ratio_`.
    q2_ : array of shape (n_components_,)
        With folds: Q² of each component, 1 − PRESS_h/RSS_{h−1}, from labels predicted on held-out rows. The Q² of all
        components together is 1 − ∏(1 − q2_). A component with a value below 0 predicts worse than none.
    count_accuracies_ : array of shape (n_tried,)
        With folds: mean held-out accuracy after 1, 2, … components.
    coef_ : array of shape (n_classes, n_features), or (1, n_features) with two classes
        Weights of the linear scores by which rows are classified.
    intercept_ : array of shape (n_classes,), or (1,) with two classes
        Constants of these scores.
    {fitted}

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

    def _most(self, request: int | float | None, ratio: Ratio) -> int:
        return min(MOST_TRIED, ratio.rank) if self.n_components == "cv" else super()._most(request, ratio)

    def _components(
        self, problem: Problem, wanted: int
    ) -> tuple[LeastSquaresComponents, HeldOutComponents | None, int]:
        found = LeastSquaresComponents.of(problem.ratio, scale_labels=bool(self.scale_labels))
        while len(found.weights) < wanted and not found.is_exhausted:
            found = found.extended()
        if problem.needs.folds is None:
            return found, None, len(found.weights)
        rows = problem.basis.points
        folds = [
            Fold.of(rows, training, test, scale_labels=bool(self.scale_labels))
            for training, test in problem.splits().pairs
        ]
        held_out, chosen = held_out_components(found, folds)
        return found, held_out, chosen if self.n_components == "cv" else len(found.weights)


class SparsePLSDA(PLSReducer):
    """Sparse PLS discriminant analysis (sPLS-DA): PLS components that use a few of the features each.

        w_h ∝ soft(X_hᵀYv_h, keep_h) ,   v_h ∝ YᵀX_hw_h ,   soft(a, m)_j = sign(a_j) (|a_j| − the (m+1)th largest |a|)₊

    Each weight vector keeps `keep` features, found in turn with the labels' side until neither changes; then rows are
    deflated as in `PLSDA`. With `scale_labels=True` behind a StandardScaler it is mixOmics' splsda. A row belongs to
    the class whose centroid of scores is nearest. Use it for a short list of features, also with n far below d.

    Parameters
    ----------
    n_components : int, float or None, default=2
        How many components to keep; None for one less than classes, a fraction in (0, 1) for the fewest of those that
        reach that share of the labels' variance they explain together.
    keep : int, list of int or "cv", default="cv"
        How many features each component keeps (at most all; features that tie for the last place go together), or one
        number for each component. "cv" chooses for one component after the other, of 12 counts in geometric steps: the
        fewest within one standard error of the highest held-out accuracy.
    scale_labels : bool, default=False
        Divide each one-hot column by its standard deviation, so that small classes count as much as large ones.
    cv : int, splitter or list of (training, test) row numbers, default=5
        The folds for "cv", and the resamples over which `stability_` counts; RepeatedStratifiedKFold gives more of
        them. A number of folds divides the distinct rows of each class evenly.
    random_state : int, RandomState or None, default=None
        Seed that shuffles the folds; None for unshuffled ones.

    Attributes
    ----------
    components_ : array of shape (n_components_, n_features)
        The rotations r_h: scores are (x − mean_)ᵀr_h. From the second on they use the features of earlier ones, too.
    x_weights_ : array of shape (n_features, n_components_)
        The unit weights w_h, with `keep_` numbers that are not 0 each.
    x_loadings_ : array of shape (n_features, n_components_)
        p_h: rows are about mean_ + Σ_h t_h p_h.
    y_loadings_ : array of shape (n_classes, n_components_)
        q_h: one-hot labels are about their mean + Σ_h t_h q_h.
    selected_ : array of int
        Numbers of the features that a component keeps, in the order of the columns.
    keep_ : array of shape (n_components_,)
        How many features were asked for or chosen.
    stability_ : array of shape (n_components_, n_features)
        In which share of the folds' training sets each component keeps each feature.
    keep_tried_ : array or None
        With "cv", the counts that were tried.
    keep_accuracies_ : array of shape (n_components_, n_tried) or None
        Their mean held-out accuracies.
    vip_ : array of shape (n_features,)
        Importance of each feature, as in `PLSDA`; 0 for those that no component keeps.
    eigenvalues_ : array of shape (n_components_,)
        Variance of the one-hot labels that each component explains.
    explained_variance_ratio_ : array of shape (n_components_,)
        The same as a share of all their variance (R²Y).
    r2x_ : array of shape (n_components_,)
        Share of the rows' variance that each component explains, ‖t_h‖²‖p_h‖²/‖X‖² (R²X).
    r2y_ : array of shape (n_components_,)
        Share of the labels' variance that each component explains (R²Y), as `explained_variance_ratio_`.
    coef_ : array of shape (n_classes, n_features), or (1, n_features) with two classes
        Weights of the linear scores by which rows are classified.
    rank_ : int
        How many directions there are, but for collinear rows and columns.
    intercept_ : array of shape (n_classes,), or (1,) with two classes
        Constants of these scores.
    {fitted}

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
            # the features themselves, as a weight is of a feature; and never a d×d array
            coordinates=Plan("products", "weights of single features: products with the rows"),
        )

    def _components(self, problem: Problem, wanted: int) -> tuple[LeastSquaresComponents, KeptFeatures, int]:
        basis, ratio, scaled = problem.basis, problem.ratio, bool(self.scale_labels)
        rows, varying = basis.points, int((ratio.variances > 0).sum())
        given = checked_keep(self.keep, wanted, varying)
        folds = []
        if given is None or np.bincount(rows.codes).max() > 1:
            splits = problem.splits().pairs
            folds = [Fold.of(rows, training, test, scale_labels=scaled) for training, test in splits]
        start = LeastSquaresComponents.of(ratio, scale_labels=scaled)
        found, kept = kept_features(start, folds, wanted, given, counts_to_try(varying))
        return found, kept, len(found.weights)

    @fitted_attribute
    def selected_(self) -> NDArray[np.intp]:
        """Numbers of the features that a component keeps."""
        return np.flatnonzero((self.x_weights_ != 0).any(axis=1))
