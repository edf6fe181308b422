"""Logistic PCA: factors of the rows from which a logistic regression predicts the labels."""

from __future__ import annotations

from discrim.core.alternating import LogisticLoss
from discrim.estimators.factor_reducer import AlternatingReducer


class LogisticPCA(AlternatingReducer):
    """Logistic PCA (supervised reduction with GLMs, SDR-GLM): factors that give rows and labels back.

        minimise  Σ_i (1/n) [ ‖x_i − z_iW‖² + α·ℓ(y_i, z_iV + v_0) ] + β‖V‖² ,   WWᵀ = I ,   ℓ = −ln softmax(s)_y

    Rows are described by few factors from which a multinomial logistic regression also predicts the labels.
    Features are those of the reconstruction alone, (x − mean)Wᵀ, for training rows and new ones alike. The
    objective is not convex: each step is, it never rises, and the lower of two starts is kept (principal axes;
    class means first). Use it where the features are to give the rows back as well; for accuracy alone
    RegularizedLDA needs no weight to be chosen.

    Parameters
    ----------
    n_components : int, float or None, default=None
        How many factors; a fraction in (0, 1) keeps the fewest that reach that share of the eigenvalues of None, None
        for C − 1 (at most the rank).
    label_weight : float, default=3.0
        α: what the labels' loss counts beside the rows' reconstruction. Rows are centred and divided by one number
        (mean square length 1), so that it means the same on every table.
    penalty : float, default=0.01
        β: on the classifier's weights; without it there is no minimum where classes can be separated.
    tol : float, default=1e-5
        Share of the objective below which a round's gain ends the search.
    max_iter : int, default=200
        Most rounds.

    Attributes
    ----------
    components_ : array of shape (n_components_, n_features)
        W turned to the principal axes of the rows in its span, orthonormal rows.
    eigenvalues_ : array of shape (n_components_,)
        Variance of the rows along each direction.
    explained_variance_ratio_ : array of shape (n_components_,)
        Each direction's share of the total variance.
    class_coef_ : array of shape (n_classes, n_components_)
        The classifier's weights on the features.
    class_intercept_ : array of shape (n_classes,)
        Its constants.
    objective_ : array of shape (n_iter_ + 1,)
        What is minimised, at the start and after every round; it never rises.
    n_iter_ : int
        How many rounds there were.
    {fitted_with_vip}

    References
    ----------
    Rish, Grabarnik, Cecchi, Pereira and Gordon, "Closed-form supervised dimensionality reduction with generalized
    linear models" (2008), for Gaussian rows and multinomial labels; here with orthonormal W, and exact steps.

    Examples
    --------
    >>> from sklearn.datasets import load_wine
    >>> from sklearn.preprocessing import scale
    >>> from discrim import LogisticPCA
    >>> X, y = load_wine(return_X_y=True)
    >>> LogisticPCA(n_components=2).fit(scale(X), y).components_.shape
    (2, 13)
    """

    _loss = LogisticLoss()

    def __init__(
        self,
        n_components: int | float | None = None,
        *,
        label_weight: float = 3.0,
        penalty: float = 0.01,
        tol: float = 1e-5,
        max_iter: int = 200,
    ) -> None:
        super().__init__(n_components, label_weight=label_weight, penalty=penalty, tol=tol, max_iter=max_iter)
