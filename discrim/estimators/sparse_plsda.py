"""Sparse partial least squares discriminant analysis."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from discrim.core.coordinates.choose import Plan
from discrim.core.kept_features import Fold, KeptFeatures, counts_to_try, kept_features
from discrim.core.partial_least_squares import LeastSquaresComponents
from discrim.core.problem import Folding, Needs, Problem
from discrim.estimators.base import fitted_property
from discrim.estimators.pls_reducer import PLSReducer
from discrim.tables.check_parameters import COUNT, Constraints, checked_keep


class SparsePLSDA(PLSReducer):
    """Sparse PLS discriminant analysis (sPLS-DA): PLS components that use a few of the features each.

        w_h ∝ soft(X_hᵀYv_h, keep_h) ,   v_h ∝ YᵀX_hw_h ,   soft(a, m)_j = sign(a_j) (|a_j| − the (m+1)th largest |a|)₊

    As mixOmics' splsda without its scaling (put a StandardScaler in front): each weight vector keeps `keep` features,
    found anew with the labels' side until neither changes; then rows are deflated as in `PLSDA`. A row belongs to the
    class whose centroid of scores is nearest. Use it where a short list of features is wanted, with n far below d too.

    Parameters
    ----------
    n_components : int, float or None, default=2
        How many components to keep; None for one less than classes, a fraction in (0, 1) for the fewest of those that
        reach that share of the labels' variance they explain together.
    keep : int, list of int or "cv", default="cv"
        How many features each component keeps (at most all; features that tie for the last place go together), or one
        number for each component. "cv" chooses for one component after the other, of 12 counts in geometric steps: the
        fewest within one standard error of the highest held-out accuracy.
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

    _parameter_constraints: ClassVar[Constraints] = {"n_components": COUNT}
    x_weights_: NDArray[np.float64]
    __metadata_request__fit: ClassVar[dict[str, Any]] = {"groups": None}

    def __init__(
        self,
        n_components: int | float | None = 2,
        *,
        keep: int | list[int] | str = "cv",
        cv: Any = 5,
        random_state: Any = None,
    ) -> None:
        self.n_components = n_components
        self.keep = keep
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

    def _components(self, problem: Problem, wanted: int) -> tuple[LeastSquaresComponents, KeptFeatures]:
        basis, ratio = problem.basis, problem.ratio
        rows, varying = basis.points, int((ratio.variances > 0).sum())
        given = checked_keep(self.keep, wanted, varying)
        folds = []
        if given is None or np.bincount(rows.codes).max() > 1:
            splits = problem.splits(Folding(self.cv, self.random_state)).pairs
            folds = [Fold.of(rows, training, test) for training, test in splits]
        return kept_features(LeastSquaresComponents.of(ratio), folds, wanted, given, counts_to_try(varying))

    @fitted_property
    def selected_(self) -> NDArray[np.intp]:
        """Numbers of the features that a component keeps."""
        return np.flatnonzero((self.x_weights_ != 0).any(axis=1))
