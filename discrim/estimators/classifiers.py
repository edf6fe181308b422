"""Classifiers: the multiclass linear SVM with its primal weights and duals, and naive Bayes with kernel densities."""

from __future__ import annotations

from functools import lru_cache
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import log_softmax
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, validate_data

from discrim.core.svm.crammer_singer import solve_crammer_singer
from discrim.docstrings import public_estimator
from discrim.estimators.fitting import unchanged_if_it_fails
from discrim.tables.check_parameters import PASSES, POSITIVE, Constraints, check_parameters, class_factors
from discrim.tables.rows import LabelledRows
from discrim.tables.validation import (
    checked_table,
    labelled_rows,
    require_finite,
    require_representable,
    require_two_classes,
)
from discrim.threads import on_one_blas_thread_throughout

Floats = NDArray[np.float64]
SVM: Constraints = {"C": POSITIVE, "tol": POSITIVE, "max_iter": PASSES}


@public_estimator
class CrammerSingerSVC(ClassifierMixin, BaseEstimator):
    """Multiclass linear support vector machine of Crammer and Singer, with its duals.

    min ½ Σ_y ‖η_y‖² + C Σ_n max_y (1[y ≠ y_n] + η_y·x_n − η_{y_n}·x_n),   predict argmax_y η_y·x

    It solves one problem for all classes together, whereas one-vs-rest solves one per class. The intercept is one more
    feature of value 1, penalised like the others, so the solution is that of LIBLINEAR
    (LinearSVC(multi_class="crammer_singer")), here with a known distance from the optimum. Scale the features first:
    this makes C meaningful and the fit fast.

    Parameters
    ----------
    C: Cost of a row within the margin; row n has cost C·weight_n.
    tol: Relative duality gap (primal − dual)/primal at which to stop; the objective is then within tol of the minimum.
    max_iter: Maximum number of passes over the active rows. If it is reached, a ConvergenceWarning reports the gap.
    fit_intercept : bool, default=True
        If True, add a constant feature 1.
    class_weight: Factor on the cost of each class; "balanced" gives every class the same total cost.
    warm_start : bool, default=False
        If True, start from the duals of the previous fit, for the same rows and classes (e.g. on a path over C).
    random_state: Seed of the order in which rows are visited. The order of rows in X has no effect.

    Attributes
    ----------
    class_coef_ : array of shape (n_classes, n_features)
        η, one row per class also for two classes.
    class_intercept_ : array of shape (n_classes,)
        Intercepts, one per class also for two classes.
    coef_ : array of shape (n_classes, n_features) or (1, n_features)
        `class_coef_`; for two classes the difference of its rows, positive for `classes_[1]`.
    intercept_ : array of shape (n_classes,) or (1,)
        `class_intercept_`; for two classes the difference of its entries.
    dual_coef_ : array of shape (n_samples, n_classes)
        A, with A[n, y_n] = Σ α_n ≤ C·weight_n and −α_n^y ≤ 0 elsewhere, both exactly. Rows sum to 0 exactly, and
        class_coef_ = AᵀX. Equal rows of one class share duals in proportion to their weights.
    duality_gap_: (primal − dual)/primal of the solution.
    n_iter_: Number of passes.
    classes_: Sorted class labels.
    n_features_in_: Number of features seen in fit.

    References
    ----------
    K. Crammer and Y. Singer, "On the Algorithmic Implementation of Multiclass Kernel-based Vector Machines", 2001.
    S. S. Keerthi, S. Sundararajan, K.-W. Chang, C.-J. Hsieh and C.-J. Lin, "A Sequential Dual Method for Large Scale
    Multi-Class Linear SVMs", 2008.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> X, y = load_iris(return_X_y=True)
    >>> model = CrammerSingerSVC(random_state=0).fit(X, y)
    >>> model.score(X, y)
    0.98
    >>> bool(abs(model.dual_coef_.T @ X - model.class_coef_).max() < 1e-9)
    True
    """

    _parameter_constraints: ClassVar[Constraints] = SVM

    def __init__(
        self,
        C: float = 1.0,
        *,
        tol: float = 1e-4,
        max_iter: int = 10_000,
        fit_intercept: bool = True,
        class_weight: Any = None,
        warm_start: bool = False,
        random_state: Any = None,
    ) -> None:
        self.C = C
        self.tol = tol
        self.max_iter = max_iter
        self.fit_intercept = fit_intercept
        self.class_weight = class_weight
        self.warm_start = warm_start
        self.random_state = random_state

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        # a boundary through the origin does not suit data that lie elsewhere
        tags.classifier_tags.poor_score = not self.fit_intercept
        return tags

    @unchanged_if_it_fails
    def fit(self, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None = None) -> CrammerSingerSVC:
        """Compute the weights and duals."""
        check_parameters(self)
        data = labelled_rows(self, X, y, sample_weight, supervised=True)
        require_finite(data.X)
        require_two_classes(self, data.classes)
        costs = data.weights
        if self.class_weight is not None:
            factors = class_factors(self.class_weight, data.classes, data.class_totals)[data.codes]
            costs = factors if costs is None else factors * costs
        solution = solve_crammer_singer(
            data.X,
            data.codes,
            data.n_classes,
            C=float(self.C),
            sample_weight=costs,
            fit_intercept=self.fit_intercept,
            tol=float(self.tol),
            max_iter=int(self.max_iter),
            random_state=self.random_state,
            warm_start=self._duals_before(data),
        )
        self.classes_ = data.classes
        self.class_coef_, self.class_intercept_ = solution.class_coef, solution.intercept
        self.coef_, self.intercept_ = self.class_coef_, self.class_intercept_
        if data.n_classes == 2:
            self.coef_, self.intercept_ = np.diff(self.coef_, axis=0), np.diff(self.intercept_)
        self.dual_coef_ = data.for_all(solution.dual_coef)  # zero for rows of weight 0
        self.duality_gap_ = solution.gap
        self.n_iter_ = solution.n_iter
        return self

    def decision_function(self, X: ArrayLike) -> Floats:
        """Return the score of each class; for two classes one number, positive for `classes_[1]`."""
        check_is_fitted(self)
        rows = checked_table(self, X)
        with np.errstate(over="ignore", invalid="ignore"):
            scores = np.asarray(rows @ self.coef_.T) + self.intercept_
        require_representable(scores, rows)
        return scores[:, 0] if len(self.classes_) == 2 else scores

    def predict(self, X: ArrayLike) -> NDArray[Any]:
        """Return the predicted class of each row."""
        scores = self.decision_function(X)
        return self.classes_[scores.argmax(axis=1) if scores.ndim == 2 else (scores > 0).astype(np.intp)]

    def _duals_before(self, data: LabelledRows) -> Floats | None:
        if not self.warm_start or not hasattr(self, "dual_coef_"):
            return None
        if not np.array_equal(self.classes_, data.classes) or self.dual_coef_.shape[0] != data.n_given:
            raise ValueError(
                f"X and y must have the rows and classes of the previous fit if warm_start=True; got {data.n_given} "
                f"rows and classes {data.classes.tolist()[:10]} after {self.dual_coef_.shape[0]} rows and classes "
                f"{self.classes_.tolist()[:10]}. Fit the same rows again, or set warm_start=False."
            )
        return self.dual_coef_ if data.numbers is None else self.dual_coef_[data.numbers]


CELLS_AT_ONCE = 2**18  # kernel values held while a feature's density is computed
KNOWN_DENSITIES = 512  # cached densities of features, shared by classifiers of different numbers of the same features


@on_one_blas_thread_throughout
class KernelNaiveBayes(ClassifierMixin, BaseEstimator):
    """Naive Bayes with Gaussian kernel density estimates.

        log p(c | x) = log p_c + Σ_j log (1/n_c) Σ_{i∈c} φ((x_j − x_ij)/h_cj)/h_cj + const ,   φ the normal density
        h_cj = (median_i |x_ij − median_j| / 0.6745) · (4/(3 n_c))^⅕

    If more than half of a class's values are equal, the median deviation is 0, and their range is used instead. For a
    constant feature h = 1.

    Attributes
    ----------
    classes_ , class_prior_ , widths_ (C×d)

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> X, y = load_iris(return_X_y=True)
    >>> round(KernelNaiveBayes().fit(X, y).score(X, y), 2)
    0.97
    """

    @unchanged_if_it_fails
    def fit(self, X: ArrayLike, y: ArrayLike) -> KernelNaiveBayes:
        """Store the rows of each class and compute the kernel widths."""
        rows, labels = validate_data(self, X, y, dtype=np.float64)
        check_classification_targets(labels)
        self.classes_, codes = np.unique(labels, return_inverse=True)
        if len(self.classes_) < 2:
            raise ValueError(f"y must have at least two classes; got one class, {self.classes_[0]!r}.")
        self._rows = [rows[codes == c] for c in range(len(self.classes_))]
        self.class_prior_ = np.bincount(codes) / len(codes)
        self.widths_ = np.stack([kernel_widths(members) for members in self._rows])
        return self

    def predict(self, X: ArrayLike) -> NDArray[Any]:
        """Return the most probable label of each row."""
        most_probable = self.predict_log_proba(X).argmax(axis=1)
        return self.classes_[most_probable]

    def predict_log_proba(self, X: ArrayLike) -> Floats:
        """Return the log probability of every class (n×C)."""
        check_is_fitted(self)
        rows = validate_data(self, X, dtype=np.float64, reset=False)
        total = np.tile(np.log(self.class_prior_), (len(rows), 1))
        for j in range(rows.shape[1]):
            points, place = np.unique(rows[:, j], return_inverse=True)
            for c, members in enumerate(self._rows):
                known = log_density(points.tobytes(), members[:, j].tobytes(), float(self.widths_[c, j]))
                total[:, c] += known[place]
        return log_softmax(total, axis=1)

    def predict_proba(self, X: ArrayLike) -> Floats:
        """Return the probability of every class (n×C)."""
        return np.exp(self.predict_log_proba(X))


def kernel_widths(rows: Floats) -> Floats:
    """Return the kernel width for each feature of one class."""
    deviation = np.median(np.abs(rows - np.median(rows, axis=0)), axis=0) / 0.6745
    spread = np.where(deviation > 0, deviation, np.ptp(rows, axis=0))
    return np.where(spread > 0, spread * (4 / (3 * len(rows))) ** 0.2, 1.0)


@lru_cache(KNOWN_DENSITIES)
def log_density(at: bytes, values: bytes, width: float) -> Floats:
    """Return the log density at the points `at` of the kernel estimate from `values`.

    Both are float64 bytes, so results can be cached: nested numbers of components share the densities of their
    features.
    """
    points = np.frombuffer(at)
    centres, counts = np.unique(np.frombuffer(values), return_counts=True)
    shares = counts / (counts.sum() * width * np.sqrt(2 * np.pi))
    found = np.empty(len(points))
    step = max(1, CELLS_AT_ONCE // len(centres))
    for start in range(0, len(points), step):
        part = slice(start, start + step)
        exponents = (points[part, None] - centres) / width
        exponents *= exponents
        exponents *= -0.5
        nearest = exponents.max(axis=1)  # prevents underflow at points far from all values
        exponents -= nearest[:, None]
        found[part] = nearest + np.log(np.exp(exponents, out=exponents) @ shares)
    return found
