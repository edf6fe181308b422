"""Partial least squares discriminant analysis."""

from __future__ import annotations

from discrim.core.partial_least_squares import LeastSquaresComponents
from discrim.core.problem import Problem
from discrim.estimators.pls_reducer import PLSReducer


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
    n_components : int, float or None, default=2
        How many components to keep; None for one less than classes, a fraction in (0, 1) for the fewest of those that
        reach that share of the labels' variance they explain together.

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

    def __init__(self, n_components: int | float | None = 2) -> None:
        self.n_components = n_components

    def _components(self, problem: Problem, wanted: int) -> tuple[LeastSquaresComponents, None]:
        found = LeastSquaresComponents.of(problem.ratio)
        while len(found.weights) < wanted and not found.is_exhausted:
            found = found.extended()
        return found, None
