"""Max-margin data shifting for any feature extractor."""

from __future__ import annotations

from typing import Any, ClassVar, Self

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils import Tags, check_random_state
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted, has_fit_parameter

from discrim.core.svm.shift import corrupted_rows, iterated_shift, margin_shift
from discrim.docstrings import public_estimator
from discrim.estimators.classifiers import SVM
from discrim.estimators.fitting import numpy_as_the_caller_has_it, unchanged_if_it_fails
from discrim.estimators.pca import PCA
from discrim.estimators.shift_search import (
    best_shift,
    embedded,
    fitted_embedding,
    held_out_accuracies,
    input_tags,
    require_embedding,
    seeded,
    trained_extractors,
)
from discrim.tables.check_parameters import (
    NOTHING,
    Constraints,
    check_parameters,
    named,
    number,
    require_transformer,
    whole,
)
from discrim.tables.rows import LabelledRows
from discrim.tables.validation import checked_table, partly_labelled_rows, require_finite
from discrim.threads import on_one_blas_thread

Array = NDArray[np.float64]

FAR = "a number ≥ 0 (how far the rows move relative to their spread; 0 is the plain extractor, 0.3 to 10 are useful)"


def _extractor_attribute(name: str, doc: str) -> Any:
    """Return a property that reads an attribute of the fitted extractor."""
    return property(lambda self: getattr(self._fitted_extractor(), name), doc=doc)


def _has_inverse(model: MaxMarginShift) -> bool:
    extractor = getattr(model, "extractor_", None) or model._extractor()
    return model.embedding is None and hasattr(extractor, "inverse_transform")


@public_estimator
class MaxMarginShift(ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):
    """Max-margin data shifting (MMDS): train an extractor on rows moved away from the classes they are confused with.

        T[x_n] = x_n + σ² Σ_y α_n^y (η_{y_n} − η_y)        extractor.fit(T[X]), then applied to the original X

    α and η are the dual and primal solutions of the Crammer–Singer SVM on the centred rows. It makes any transformer
    supervised: PCA, FastICA, SparsePCA, KMeans, FactorAnalysis, NMF, an Autoencoder, a Pipeline. Use it if you need
    more than C − 1 components, or an extractor that does not use labels. Compare with `MarginSubspace`.

    Parameters
    ----------
    extractor : transformer or None, default=None
        None means discrim.PCA(), for which the shifted rows are never formed (the scatter of T[X] has a closed form,
        also for sparse X). Any other transformer is trained on the dense shifted rows; it receives labels if every row
        has one. For an extractor that requires numbers ≥ 0 (NMF), shifted values below 0 are set to 0.
    shift : float or "cv", default=1.0
        Distance by which the rows move relative to their spread, σ²‖Aη‖/‖X − μ‖. Useful values are 0.3 to 10; 0 gives
        the plain extractor. "cv" chooses from 0, 0.1, 0.3, 0.5, 1, 2, 4, 10 the value whose features give a linear
        classifier the highest held-out accuracy.
    sigma2 : float or None, default=None
        σ² as in the paper: T[X] = X + sigma2 · dual_coef_ @ class_coef_. If given, `shift` is ignored.
    C: Weight of the hinge losses; the SVM is fitted to centred rows divided by one scalar (mean square length 1).
    n_rounds : int, default=1
        Number of rounds of problem (7) of the paper; each fits the SVM to the rows as shifted in the previous round. 1
        is the closed form. With more rounds the shifted rows are formed, also for PCA.
    copies : int or None, default=None
        Number of noisy copies of each row, to use explicit corruption instead of the shift. The noise is Gaussian with
        variance sigma2_ (in units of the rows' mean square length), and a copy has weight exp(−C·hinge). The extractor
        must accept sample_weight.
    embedding : {"rff", "nystroem"}, transformer or None, default=None
        Embedding applied first: 500 random Fourier features, or Nyström features of 500 rows, both with the kernel
        width from the median rule; or a transformer such as RBFSampler(gamma=0.1). RFF, shift and PCA together are a
        supervised kernel PCA.
    unlabeled : object, default=None
        Label that marks rows without a label, e.g. -1. Missing labels (NaN, None) always do. Such rows do not move, but
        are used to train the extractor.
    cv : int, splitter or iterable, default=5
        For "cv": number of folds (at most the size of the smallest class), a splitter for the labelled rows, or pairs
        of arrays of row numbers (training, test).
    tol: Relative duality gap at which the SVM stops.
    max_iter: Maximum number of passes over the rows.
    random_state: Seed of a named embedding, of an extractor without a seed, and of the shuffling of the folds.

    Attributes
    ----------
    extractor_ : transformer
        Extractor trained on the shifted rows.
    embedding_ : transformer or None
        Fitted embedding.
    shift_ : float
        Relative shift that was applied.
    sigma2_ : float
        The corresponding σ².
    shift_scores_ : dict
        Held-out accuracy of each shift that was tried; empty without "cv".
    classes_: Sorted class labels.
    class_coef_ : array of shape (n_classes, n_features)
        η, the weights of the SVM.
    dual_coef_ : array of shape (n_samples, n_classes)
        A, with T[X] = X + sigma2_ · dual_coef_ @ class_coef_.
    {fitted_svm}
    components_: Directions of the extractor; like the attributes below, available if the extractor has them.
    mean_: Point that the extractor subtracts (discrim.PCA: the mean of the rows before the shift).
    eigenvalues_: Spread of the shifted rows along each direction, divided by the total weight.
    explained_variance_ratio_: Share of that spread explained by each direction.
    rank_: Number of directions.
    solver_: The solver that was used.
    n_features_in_: Number of features seen in fit.

    References
    ----------
    J. Wangni and N. Chen, "Nonlinear Feature Extraction with Max-Margin Data Shifting", equations 3 and 9; 4 and 5
    for `copies`, 7 for `n_rounds`.

    Examples
    --------
    >>> from sklearn.datasets import load_wine
    >>> from discrim import PCA, MaxMarginShift
    >>> X, y = load_wine(return_X_y=True)
    >>> MaxMarginShift(PCA(n_components=2), shift=3.0).fit(X, y).transform(X).shape
    (178, 2)
    """

    _parameter_constraints: ClassVar[Constraints] = {
        "shift": (number(FAR, lambda value: 0 <= value < np.inf), *named("cv")),
        "sigma2": (number("a finite number ≥ 0", lambda value: 0 <= value < np.inf), NOTHING),
        "n_rounds": (whole(1),),
        "copies": (whole(1), NOTHING),
        **SVM,
    }

    def __init__(
        self,
        extractor: Any = None,
        *,
        shift: float | str = 1.0,
        sigma2: float | None = None,
        C: float = 1.0,
        n_rounds: int = 1,
        copies: int | None = None,
        embedding: Any = None,
        unlabeled: Any = None,
        cv: Any = 5,
        tol: float = 1e-10,
        max_iter: int = 10_000,
        random_state: Any = None,
    ) -> None:
        self.extractor = extractor
        self.shift = shift
        self.sigma2 = sigma2
        self.C = C
        self.n_rounds = n_rounds
        self.copies = copies
        self.embedding = embedding
        self.unlabeled = unlabeled
        self.cv = cv
        self.tol = tol
        self.max_iter = max_iter
        self.random_state = random_state

    @unchanged_if_it_fails
    def fit(self, X: ArrayLike, y: ArrayLike | None = None, sample_weight: ArrayLike | None = None) -> Self:
        """Fit the SVM, shift the rows and train the extractor on them."""
        wanted, svm = self.shift, self._svm_parameters()
        require_transformer("extractor", self._extractor())
        require_embedding(self.embedding)
        extractor = seeded(self._extractor(), self.random_state)
        rows, classes = partly_labelled_rows(self, X, y, sample_weight, unlabeled=self.unlabeled)
        rows = self._embedded(rows)
        self.shift_scores_: dict[float, float] = {}
        if wanted == "cv" and self.sigma2 is None:
            self.shift_scores_ = held_out_accuracies(extractor, rows, classes, self.cv, self.random_state, **svm)
            wanted = best_shift(self.shift_scores_)
        found = margin_shift(rows, len(classes), **svm)
        shift = float(wanted) if self.sigma2 is None else self.sigma2 * found.strength
        sigma2 = found.sigma2(shift)
        training = rows  # which are shifted in rounds, or copied with noise, if they must be formed
        if self.n_rounds > 1:
            found, shifted = iterated_shift(rows, len(classes), found, sigma2, int(self.n_rounds), **svm)
            training = rows.moved(shifted)
        if self.copies is not None:
            if not has_fit_parameter(extractor, "sample_weight"):
                raise ValueError(
                    f"extractor must accept sample_weight in fit if copies is given; got {type(extractor).__name__}. "
                    "Pass discrim.PCA, KMeans or copies=None."
                )
            rng = check_random_state(0 if self.random_state is None else self.random_state)
            training = corrupted_rows(rows, len(classes), found, sigma2, float(self.C), int(self.copies), rng)
        formed = training is not rows
        self.extractor_ = next(trained_extractors(extractor, training, classes, found, [0.0 if formed else shift]))
        self._n_features_out = _features(self.extractor_, rows.X[:1]).shape[1]
        self.classes_ = classes
        self.shift_, self.sigma2_ = shift, sigma2
        self.class_coef_, self.duality_gap_, self.n_iter_ = found.class_coef, found.gap, found.n_iter
        self.dual_coef_ = rows.for_all(found.duals)
        return self

    def _extractor(self) -> Any:
        return PCA() if self.extractor is None else self.extractor

    def _svm_parameters(self) -> dict[str, Any]:
        check_parameters(self)
        return {name: getattr(self, name) for name in ("C", "tol", "max_iter")}

    def _embedded(self, rows: LabelledRows) -> LabelledRows:
        """Return the rows in the features that are shifted."""
        self.embedding_ = None
        if self.embedding is None:
            if rows.is_sparse and not self._takes_sparse():
                raise TypeError(
                    f"X must be dense for the extractor {type(self.extractor).__name__}; got a sparse table. Use "
                    "X.toarray(), an embedding, or discrim.PCA as the extractor, which keeps X sparse."
                )
            return rows
        with numpy_as_the_caller_has_it():
            self.embedding_ = fitted_embedding(self.embedding, rows.X, rows.weights, self.random_state)
            return rows.moved(embedded(self.embedding_, rows.X))

    def _takes_sparse(self) -> bool:
        first = self._extractor() if self.embedding is None else self.embedding
        return isinstance(first, str) or input_tags(first).sparse

    def transform(self, X: ArrayLike) -> Any:
        """Return the extractor's features of the original rows."""
        extractor = self._fitted_extractor()
        table = checked_table(self, X)
        require_finite(table)
        if self.embedding_ is not None:
            table = _table(self.embedding_.transform(table))
        return _features(extractor, table)

    @available_if(_has_inverse)
    def inverse_transform(self, X: ArrayLike) -> Any:
        """Return the extractor's inverse transform."""
        return _table(self._fitted_extractor().inverse_transform(X))

    def _fitted_extractor(self) -> Any:
        check_is_fitted(self, "extractor_")
        return self.extractor_

    components_ = _extractor_attribute("components_", "Directions of the extractor.")
    mean_ = _extractor_attribute("mean_", "Point that the extractor subtracts.")
    eigenvalues_ = _extractor_attribute(
        "eigenvalues_", "Spread of the shifted rows along each direction, divided by the total weight."
    )
    explained_variance_ratio_ = _extractor_attribute(
        "explained_variance_ratio_", "Share of that spread explained by each direction."
    )
    rank_ = _extractor_attribute("rank_", "Number of directions.")
    solver_ = _extractor_attribute("solver_", "The solver that was used.")

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        plain = self.embedding is None
        tags.input_tags.sparse = self._takes_sparse()
        tags.input_tags.positive_only = plain and input_tags(self._extractor()).positive_only
        tags.target_tags.required = True
        if plain and type(self._extractor()) is PCA:
            tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags


@on_one_blas_thread
def max_margin_shift(
    X: ArrayLike,
    y: ArrayLike,
    *,
    shift: float = 1.0,
    C: float = 1.0,
    unlabeled: Any = None,
    sample_weight: ArrayLike | None = None,
    tol: float = 1e-10,
    max_iter: int = 10_000,
) -> NDArray[Any]:
    """Return the shifted rows T[X] = X + σ²Aη (dense), on which `MaxMarginShift` trains its extractor.

    Rows without a label and rows of weight 0 are unchanged.

    Parameters
    ----------
    X : array or sparse matrix of shape (n_samples, n_features)
        Samples.
    y : array of shape (n_samples,)
        Class labels.
    shift : float, default=1.0
        Distance by which the rows move relative to their spread, σ²‖Aη‖/‖X − μ‖.
    C : float, default=1.0
        Weight of the hinge losses.
    unlabeled : label, default=None
        Label that marks rows without a label; missing labels always do.
    sample_weight : array of shape (n_samples,), default=None
        Sample weights.
    tol : float, default=1e-10
        Relative duality gap at which the SVM stops.
    max_iter : int, default=10000
        Maximum number of passes over the rows.

    Returns
    -------
    array of shape (n_samples, n_features)
        Shifted rows.

    Examples
    --------
    >>> from sklearn.datasets import load_wine
    >>> X, y = load_wine(return_X_y=True)
    >>> max_margin_shift(X, y, shift=0.5).shape
    (178, 13)
    """
    model = MaxMarginShift(shift=shift, C=C, unlabeled=unlabeled, tol=tol, max_iter=max_iter)
    svm = model._svm_parameters()
    if isinstance(shift, str):
        raise ValueError(f"shift must be a number; got {shift!r}. MaxMarginShift(shift='cv').fit(X, y).shift_ is one.")
    rows, classes = partly_labelled_rows(model, X, y, sample_weight, unlabeled=unlabeled)
    shifted = margin_shift(rows, len(classes), **svm).shifted(rows.X, float(shift))
    if rows.numbers is None:
        return shifted
    table = checked_table(model, X)
    whole = table.toarray() if sp.issparse(table) else table.copy()
    whole[rows.numbers] = shifted
    return whole


def shifted_pca(n_components: int) -> MaxMarginShift:
    """Return PCA of the shifted rows, as comparisons use it."""
    return MaxMarginShift(PCA(n_components))


def _features(extractor: Any, X: Any) -> Any:
    features = _table(extractor.transform(X))
    return features.reshape(X.shape[0], -1) if features.ndim == 1 else features  # SparsePCA flattens a single row


def _table(X: Any) -> Any:
    """Return a transformer's output without the names of a data frame."""
    return X.tocsr() if sp.issparse(X) else np.asarray(X)
