"""Pipelines that predict class labels and probabilities, and detect rows unlike the training rows."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
import scipy.linalg as la
from numpy.typing import ArrayLike, NDArray
from scipy import stats
from scipy.sparse import issparse
from sklearn.base import BaseEstimator, ClassifierMixin, MetaEstimatorMixin, clone
from sklearn.model_selection import StratifiedGroupKFold, StratifiedKFold
from sklearn.pipeline import Pipeline
from sklearn.utils import _safe_indexing
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from discrim.core.cross_validation import best_temperature, calibrated
from discrim.docstrings import public_estimator
from discrim.estimators.pca import PCA
from discrim.tables.rows import block_slices, dense_block
from discrim.warn_once import columns_in_order, warn

Array = NDArray[np.float64]
FOLDS = 5
LEVEL = 0.99  # share of normal rows below each limit
MONITORED = 5  # number of principal components if the pipeline does not reduce the columns
LEAST = 1e-3  # minimum probability: forests and nearest neighbours give 0 to classes not seen nearby
DECISIONS = 16.0  # factor on decision functions, because margins are about 1 and temperatures start at 1/2
_BEFORE = ("SimpleImputer", "StandardScaler", "MinMaxScaler", "MaxAbsScaler")
_UNIT = "UnitMeanSquare"  # step for classifiers that depend on the unit of their features


@public_estimator
class Predictor(MetaEstimatorMixin, ClassifierMixin, BaseEstimator):
    """A pipeline that ends in a classifier, with probabilities and limits for rows unlike the training rows.

    Probabilities are calibrated on held-out rows. The scores s of the classifier (log probabilities, or its decision
    function if it has no probabilities) are divided by one temperature T, which has the smallest log loss on the scores
    of held-out rows (five folds, in which the whole pipeline is fitted again):

        p(x) = (1 − 1/n) softmax(s(x)/T) + 1/(nC)

    A row is unusual if Hotelling's T² of its components, or its squared residual (Q), exceeds the limit below which 99
    % of normally distributed rows lie.

    Parameters
    ----------
    pipeline : Pipeline
        Unfitted imputer, scaler, reducer and classifier. All steps except the classifier are optional; a reducer that
        predicts may be the last step.

    Attributes
    ----------
    pipeline_ : Pipeline
        Fitted pipeline.
    classes_: Class labels.
    temperature_ : float or None
        T; None if there are too few rows (or groups) for folds. Probabilities are then those of the classifier, if it
        has any.
    limits_ : RowLimits or None
        Limits of T² and Q; None if there are too few rows for them.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.pipeline import make_pipeline
    >>> from sklearn.preprocessing import StandardScaler
    >>> from sklearn.svm import SVC
    >>> from discrim import Predictor, RegularizedLDA
    >>> X, y = load_iris(return_X_y=True)
    >>> model = Predictor(make_pipeline(StandardScaler(), RegularizedLDA(2), SVC())).fit(X[::2], y[::2])
    >>> model.predict_proba(X[1:2]).shape
    (1, 3)
    >>> model.unusual(10 * X[1:2]).tolist()
    ['T2 and Q']
    """

    pipeline_: Pipeline
    classes_: NDArray[Any]
    temperature_: float | None
    limits_: RowLimits | None

    def __init__(self, pipeline: Pipeline) -> None:
        self.pipeline = pipeline

    def fit(self, X: ArrayLike, y: ArrayLike) -> Self:
        """Fit the pipeline, the temperature and the limits.

        Parameters
        ----------
        X : array, data frame or sparse matrix of shape (n_samples, n_features)
            Training rows.
        y : array of shape (n_samples,)
            Class labels.
        """
        fitted = clone(self.pipeline).fit(X, y)
        return self.set_fitted(fitted, X, y)

    def set_fitted(self, fitted: Pipeline, X: Any, y: ArrayLike, groups: ArrayLike | None = None) -> Self:
        """Use a fitted pipeline, and estimate the temperature and the limits from its training rows.

        Rows of one group are held out together.
        """
        self.pipeline_, self.classes_, self.n_features_in_ = fitted, fitted.classes_, int(fitted.n_features_in_)
        if hasattr(fitted, "feature_names_in_"):
            self.feature_names_in_ = fitted.feature_names_in_
        self.temperature_ = self._choose_temperature(X, np.asarray(y), groups)
        self.n_calibrated_ = len(np.asarray(y))
        self._monitored, self.limits_ = None, None
        rows = self._rows(X)
        if not split_steps(fitted)[1] and (most := min(MONITORED, rows.shape[1], rows.shape[0] // 10)) > 0:
            self._monitored = PCA(most).fit(rows)
        components = self._components(rows)
        if rows.shape[0] >= components.shape[1] + 2:
            limits = RowLimits.fit(components, rows, LEVEL)
            if np.isfinite(limits.spe_limit):
                self.limits_ = limits
            else:
                warn(
                    "Squares of X overflow, so no limits for unusual rows are estimated and `unusual` is not "
                    "available. Scale the columns first, e.g. with StandardScaler."
                )
        return self

    def predict(self, X: ArrayLike) -> NDArray[Any]:
        """Predict the class label of each row.

        {of_rows}
        """
        check_is_fitted(self, "pipeline_")
        return np.asarray(self.pipeline_.predict(X))

    @available_if(lambda self: self.temperature_ is not None or hasattr(self.pipeline_, "predict_proba"))
    def predict_proba(self, X: ArrayLike) -> Array:
        """Predict the probability of each class, in the order of `classes_`.

        {of_rows}
        """
        if self.temperature_ is None:
            return np.asarray(self.pipeline_.predict_proba(X))
        return calibrated(_class_scores(self.pipeline_, X), self.temperature_, self.n_calibrated_)

    def transform(self, X: ArrayLike) -> Array:
        """Return the components that the classifier uses; the preprocessed columns if no step reduces them.

        {of_rows}
        """
        before, reduction, _ = split_steps(self.pipeline_)
        return _through([*before, *reduction], X, dense=True)

    @available_if(lambda self: self.limits_ is not None)
    def unusual(self, X: ArrayLike) -> NDArray[np.str_]:
        """Return "no", "T2", "Q" or "T2 and Q" for each row: the limits that it exceeds.

        {of_rows}
        """
        assert self.limits_ is not None
        rows = self._rows(X)
        t2, spe = self.limits_.distances(self._components(rows), rows)
        words = np.array(["no", "T2", "Q", "T2 and Q"])
        return words[(t2 > self.limits_.t2_limit) + 2 * (spe > self.limits_.spe_limit)]

    def get_feature_names_out(self, input_features: Any = None) -> NDArray[Any]:
        """Return the names of the components; empty if the classifier uses all columns.

        Parameters
        ----------
        input_features : ignored
            Ignored; present for API consistency.
        """
        reduction = split_steps(self.pipeline_)[1]
        return np.asarray(reduction[-1].get_feature_names_out(), dtype=object) if reduction else np.array([], object)

    def _rows(self, X: Any) -> Any:
        """Return the preprocessed rows."""
        return _through(split_steps(self.pipeline_)[0], X)

    def _components(self, rows: Any) -> Array:
        """Return the components of preprocessed rows; principal components if no step reduces them."""
        reduction = split_steps(self.pipeline_)[1] if self._monitored is None else [self._monitored]
        return _through(reduction, rows, dense=True)

    def _choose_temperature(self, X: Any, y: NDArray[Any], groups: ArrayLike | None) -> float | None:
        """Return the temperature with the smallest log loss on held-out rows; None if there are too few of them."""
        codes = np.searchsorted(self.classes_, y)
        units = np.arange(len(codes)) if groups is None else np.asarray(groups)
        folds = min(FOLDS, *(len(np.unique(units[codes == code])) for code in range(len(self.classes_))))
        if folds < 2:
            return None
        scores = np.empty((len(codes), len(self.classes_)))
        kind = StratifiedKFold if groups is None else StratifiedGroupKFold
        for train, test in kind(folds, shuffle=True, random_state=0).split(codes, codes, groups):
            try:
                fitted = clone(self.pipeline).fit(_safe_indexing(X, train), y[train])
            except ValueError:  # e.g. a fold with too few rows for the number of components
                return None
            if not len(test) or len(fitted.classes_) < len(self.classes_):  # the groups allow no better folds
                return None
            scores[test] = _class_scores(fitted, _safe_indexing(X, test))
        return best_temperature(scores, codes, np.ones(len(codes)))[0]


def split_steps(pipeline: Pipeline) -> tuple[list[Any], list[Any], list[Any]]:
    """Return the steps that preprocess, those that reduce, and those that only classify."""
    steps = list(_flat(pipeline))
    first = next((at for at, step in enumerate(steps) if type(step).__name__ not in _BEFORE), len(steps))
    # a reducer that predicts counts as a classifier if another reducer precedes it; KernelMap alone does not reduce
    reduced = any(type(step).__name__ != "KernelMap" for step in steps[first:-1])
    last = len(steps) if hasattr(steps[-1], "transform") and not reduced else len(steps) - 1
    if first < last < len(steps) and type(steps[last - 1]).__name__ == _UNIT:
        last -= 1
    return steps[:first], steps[first:last], steps[last:]


def _flat(pipeline: Pipeline) -> Iterator[Any]:
    for _, step in pipeline.steps:
        if isinstance(step, Pipeline):
            yield from _flat(step)
        elif step is not None and step != "passthrough":
            yield step


def _through(steps: list[Any], X: Any, *, dense: bool = False) -> Any:
    """Return the rows after these fitted transformers; sparse rows stay sparse, unless dense ones are wanted."""
    with columns_in_order():
        for step in steps:
            X = step.transform(X)
    X = X.toarray() if dense and issparse(X) else X
    return X if issparse(X) else np.asarray(X, dtype=np.float64)


def _class_scores(fitted: Any, X: Any) -> Array:
    """Return a score for each row and class: log probabilities, or the decision function."""
    if hasattr(fitted, "predict_proba"):
        return np.log(np.maximum(fitted.predict_proba(X), LEAST))
    scores = DECISIONS * np.asarray(fitted.decision_function(X), dtype=np.float64)
    return np.column_stack([np.zeros_like(scores), scores]) if scores.ndim == 1 else scores


# ---------------------------------------------------------------------- limits for rows unlike the training rows
#
#     T²_i = (t_i − t̄)ᵀ S_T⁻¹ (t_i − t̄) ,    SPE_i = ‖x_i − x̄ − P(t_i − t̄)‖² ,    P = argmin Σ_i ‖x_i − x̄ − P(t_i − t̄)‖²
#
# t̄, S_T (divided by n − 1), x̄ and P are those of the training rows. For PCA and PLS, P holds the loadings. A row with a
# large T² is extreme within the model; a row with a large SPE does not follow the structure of the training rows.

RESIDUAL_ROUNDING = 1e-20  # share of the rows' mean square below which a residual is rounding


@dataclass(frozen=True, eq=False)
class RowLimits:
    """Centre, spread and loadings of training rows, and limits below which a share `level` of new rows stays.

    triangle : R of the QR decomposition of the centred components
    negligible : squared residual that rounding errors can cause
    """

    centre: Array
    triangle: Array
    mean: Array
    loadings: Array
    n_rows: int
    level: float
    t2_limit: float
    spe_limit: float
    negligible: float

    @classmethod
    def fit(cls, components: Array, rows: Any, level: float = 0.95) -> RowLimits:
        """Estimate the limits from components (n×k) and rows (n×d, dense or sparse) of the training set.

        The limit of SPE is not finite if squares of the rows are beyond the largest number.
        """
        if not 0 < level < 1:
            raise ValueError(f"level must be a share between 0 and 1, such as 0.95; got {level!r}.")
        n, k = components.shape
        if n < k + 2:
            raise ValueError(f"X must have at least {k + 2} rows for {k} components; got {n}. Pass the training rows.")
        centre = components.mean(axis=0)
        Q, R = la.qr(components - centre, mode="economic")
        if np.abs(np.diag(R)).min() <= 1e-12 * np.abs(np.diag(R)).max():
            raise ValueError(
                f"The {k} components must not be collinear on X; got a singular matrix. Pass the training rows, or "
                "fewer components."
            )
        # training rows are nearer than new ones, because P was fitted to them: without a row its residual is r/(1 − h)
        nearer = np.maximum(1 - 1 / n - (Q**2).sum(axis=1), RESIDUAL_ROUNDING)
        with np.errstate(over="ignore", invalid="ignore"):
            mean = np.asarray(rows.mean(axis=0), dtype=np.float64).ravel()
            products = np.asarray(Q.T @ rows) - np.outer(Q.sum(axis=0), mean)
            loadings = la.solve_triangular(R, products, check_finite=False)
            residuals = _residuals(rows, mean, components - centre, loadings)
            mean_square = float((la.norm(components - centre, axis=1) ** 2).mean() * (loadings**2).sum())
            negligible = RESIDUAL_ROUNDING * mean_square
            spe = np.maximum(spe_limit(residuals / nearer**2, level), negligible)
        return cls(centre, R, mean, loadings, n, level, t2_limit(n, k, level, fitted=False), float(spe), negligible)

    def distances(self, components: Array, rows: Any) -> tuple[Array, Array]:
        """Return T² and SPE of rows."""
        centred = components - self.centre
        with np.errstate(over="ignore"):  # infinite for rows that are far beyond any limit
            t2 = (self.n_rows - 1) * (la.solve_triangular(self.triangle, centred.T, trans="T") ** 2).sum(axis=0)
            return t2, _residuals(rows, self.mean, centred, self.loadings)

    def for_training_rows(self, spe: Array) -> tuple[float, float]:
        """Return the limits of T² and SPE for the training rows, whose squared residuals are `spe`."""
        training_t2 = t2_limit(self.n_rows, len(self.centre), self.level, fitted=True)
        return training_t2, max(spe_limit(spe, self.level), self.negligible)


def t2_limit(n: int, k: int, level: float, *, fitted: bool) -> float:
    """Return the limit of T² for n training rows and k components: for these rows (beta), or for new ones (F).

    Tracy, Young and Mason (1992).
    """
    if fitted:
        return float((n - 1) ** 2 / n * stats.beta.ppf(level, k / 2, (n - k - 1) / 2))
    return float(k * (n + 1) * (n - 1) / (n * (n - k)) * stats.f.ppf(level, k, n - k))


def spe_limit(residuals: Array, level: float) -> float:
    """Return g χ²_h with g = v/2m and h = 2m²/v, where m and v are the mean and variance of the residuals.

    Box (1954); Nomikos and MacGregor (1995).
    """
    unit = 2.0 ** (np.frexp(residuals.max(initial=0.0))[1] - 1)  # of numbers whose squares may be beyond the largest
    m, v = float((residuals / unit).mean()), float((residuals / unit).var(ddof=1))
    return float(unit * (m if v <= 0 or m <= 0 else v / (2 * m) * stats.chi2.ppf(level, 2 * m**2 / v)))


def _residuals(X: Any, mean: Array, components: Array, loadings: Array) -> Array:
    found = np.empty(X.shape[0])
    for part in block_slices(*X.shape):
        rest = dense_block(X, part) - mean - components[part] @ loadings
        found[part] = np.einsum("ij,ij->i", rest, rest)
    return found
