"""Max-margin data shifting in front of any extractor."""

from __future__ import annotations

from typing import Any, ClassVar, Self

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils import Tags, check_random_state
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted, has_fit_parameter

from discrim.core.svm.shift import Shift, corrupted_rows, iterated_shift, margin_shift
from discrim.doc_links import public_estimator
from discrim.estimators.embedding import embedded, fitted_embedding, require_embedding
from discrim.estimators.pca import PCA
from discrim.estimators.shift_search import (
    best_shift,
    has_closed_form,
    held_out_accuracies,
    input_tags,
    seeded,
    trained_extractors,
)
from discrim.tables.check_parameters import (
    NOTHING,
    PASSES,
    POSITIVE,
    SHIFT,
    Constraints,
    check_parameters,
    number,
    require_transformer,
    whole,
)
from discrim.tables.rows import LabelledRows
from discrim.tables.validation import (
    checked_table,
    numpy_as_the_caller_has_it,
    partly_labelled_rows,
    require_finite,
    unchanged_if_it_fails,
)
from discrim.threads import on_one_blas_thread

Array = NDArray[np.float64]


def _of_extractor(name: str, doc: str) -> Any:
    """Return a fitted attribute that is the extractor's."""
    return property(lambda self: getattr(self._fitted_extractor(), name), doc=doc)


def _can_go_back(model: MaxMarginShift) -> bool:
    extractor = getattr(model, "extractor_", None) or model._extractor()
    return model.embedding is None and hasattr(extractor, "inverse_transform")


@public_estimator
class MaxMarginShift(ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):
    """Max-margin data shifting (MMDS): an extractor trained on rows moved away from the classes they are confused with.

        T[x_n] = x_n + σ² Σ_y α_n^y (η_{y_n} − η_y)        extractor.fit(T[X]), then applied to X as it is

    α and η are the dual and the primal side of the Crammer–Singer SVM on the centred rows. Makes any transformer
    supervised: PCA, FastICA, SparsePCA, KMeans, FactorAnalysis, NMF, an Autoencoder, a Pipeline. Use it when more than
    C − 1 components are wanted, or an extractor that knows no labels; compare with `MarginSubspace`.

    Parameters
    ----------
    extractor : transformer or None, default=None
        None for discrim.PCA(), with which the shifted rows are never formed (the scatter of T[X] has a closed form, for
        sparse X too). Any other is trained on the shifted rows, made dense; labels are passed to it where every row has
        one. An extractor for numbers ≥ 0 only (NMF) gets shifted values below 0 as 0.
    shift : float or "cv", default=1.0
        How far the rows move relative to their spread, σ²‖Aη‖/‖X − μ‖; useful are 0.3 to 10, and 0 is the plain
        extractor. "cv": of 0, 0.1, 0.3, 0.5, 1, 2, 4, 10 the one whose features serve a linear classifier best.
    sigma2 : float or None, default=None
        σ² itself, for those who follow the paper: T[X] = X + sigma2 · dual_coef_ @ class_coef_, whatever `shift` is.
    C : float, default=1.0
        Weight of the hinge losses; the SVM sees centred rows divided by one number (mean square length 1).
    n_rounds : int, default=1
        Rounds of the paper's problem (7): each fits the SVM to the rows as the round before has shifted them. 1 is the
        closed form. The shifted rows are formed, also for PCA.
    copies : int or None, default=None
        Explicit corruption instead of the shift: so many copies of each row with Gaussian noise of variance sigma2_ (in
        units of the rows' mean square length), each weighted by exp(−C·hinge). The extractor must take sample_weight.
    embedding : {"rff", "nystroem"}, transformer or None, default=None
        The rows are embedded first: 500 random Fourier features, or the kernel seen from 500 of the rows, both with the
        width by the median rule; or a transformer such as RBFSampler(gamma=0.1). RFF, shift, PCA is a supervised kernel
        PCA.
    unlabeled : object, default=None
        Label of the rows without one, e.g. -1. Missing labels (NaN, None) always mean that. Such rows do not move, and
        take part in the extractor's training.
    cv : int, splitter or iterable, default=5
        For "cv": number of folds (at most the rows of the smallest class), a splitter of the labelled rows, or pairs of
        arrays of row numbers (training, test).
    tol : float, default=1e-10
        Relative duality gap at which the SVM stops.
    max_iter : int, default=10_000
        Its most passes over the rows.
    random_state : int, RandomState or None, default=None
        Of a named embedding, of an extractor that has none of its own, and to shuffle the folds.

    Attributes
    ----------
    extractor_ : transformer
        The extractor, trained on the shifted rows.
    embedding_ : transformer or None
        The fitted embedding.
    shift_ : float
        The relative shift that was applied.
    sigma2_ : float
        The σ² that it stands for.
    shift_scores_ : dict
        Held-out accuracy of each shift tried; empty if none was.
    classes_ : ndarray of shape (n_classes,)
        The labels, sorted.
    class_coef_ : ndarray of shape (n_classes, n_features)
        η, the SVM's weights.
    dual_coef_ : ndarray of shape (n_samples, n_classes)
        A, so that T[X] = X + sigma2_ · dual_coef_ @ class_coef_.
    duality_gap_ : float
        Relative duality gap that the SVM reached.
    n_iter_ : int
        Its passes over the rows.
    components_ : ndarray of shape (n_components, n_features)
        The extractor's directions, as all that follows where it has them.
    mean_ : ndarray of shape (n_features,)
        What the extractor subtracts (discrim.PCA: the mean of the rows before the shift).
    eigenvalues_ : ndarray of shape (n_components,)
        Spread of the shifted rows along each direction, per unit of weight.
    explained_variance_ratio_ : ndarray of shape (n_components,)
        Each direction's share of that spread.
    rank_ : int
        How many directions there are.
    solver_ : str
        How the directions were found.
    n_features_in_ : int
        Number of features seen in fit.

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
        "shift": SHIFT,
        "sigma2": (number("a finite number ≥ 0", lambda value: 0 <= value < np.inf), NOTHING),
        "C": POSITIVE,
        "n_rounds": (whole(1),),
        "copies": (whole(1), NOTHING),
        "tol": POSITIVE,
        "max_iter": PASSES,
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
        """Find the shift, and train the extractor on the shifted rows."""
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
        found, training = self._training_rows(rows, len(classes), found, sigma2, extractor)
        formed = training is not rows
        self.extractor_ = next(trained_extractors(extractor, training, classes, found, [0.0 if formed else shift]))
        self._n_features_out = _features(self.extractor_, rows.X[:1]).shape[1]
        self.classes_ = classes
        self.shift_, self.sigma2_ = shift, sigma2
        self.class_coef_, self.duality_gap_, self.n_iter_ = found.class_coef, found.gap, found.n_iter
        self.dual_coef_ = rows.for_all(found.duals)
        return self

    def _training_rows(
        self, rows: LabelledRows, n_classes: int, found: Shift, sigma2: float, extractor: Any
    ) -> tuple[Shift, LabelledRows]:
        """Return the rows to train on, if they must be formed: shifted in rounds, or copies with noise; else `rows`."""
        training = rows
        if self.n_rounds > 1:
            svm = self._svm_parameters()
            found, shifted = iterated_shift(rows, n_classes, found, sigma2, int(self.n_rounds), **svm)
            training = rows.moved(shifted)
        if self.copies is not None:
            if not has_fit_parameter(extractor, "sample_weight"):
                raise ValueError(
                    f"extractor must take sample_weight in fit if copies is given; got {type(extractor).__name__}. "
                    "Pass discrim.PCA, KMeans or copies=None."
                )
            rng = check_random_state(0 if self.random_state is None else self.random_state)
            training = corrupted_rows(rows, n_classes, found, sigma2, float(self.C), int(self.copies), rng)
        return found, training

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
                    "Sparse data was passed, but dense data is required: the extractor "
                    f"{type(self.extractor).__name__} takes no sparse table. Use X.toarray(), an embedding, or "
                    "discrim.PCA as the extractor, which keeps X sparse."
                )
            return rows
        with numpy_as_the_caller_has_it():
            self.embedding_ = fitted_embedding(self.embedding, rows.X, rows.weights, self.random_state)
            return rows.moved(embedded(self.embedding_, rows.X))

    def _takes_sparse(self) -> bool:
        first = self._extractor() if self.embedding is None else self.embedding
        return isinstance(first, str) or input_tags(first).sparse

    def transform(self, X: ArrayLike) -> Any:
        """Return the extractor's features of the rows as they are."""
        extractor = self._fitted_extractor()
        table = checked_table(self, X)
        require_finite(table)
        if self.embedding_ is not None:
            table = _table(self.embedding_.transform(table))
        return _features(extractor, table)

    @available_if(_can_go_back)
    def inverse_transform(self, X: ArrayLike) -> Any:
        """Return what the extractor makes of its features."""
        return _table(self._fitted_extractor().inverse_transform(X))

    def _fitted_extractor(self) -> Any:
        check_is_fitted(self, "extractor_")
        return self.extractor_

    components_ = _of_extractor("components_", "The extractor's directions.")
    mean_ = _of_extractor("mean_", "What the extractor subtracts.")
    eigenvalues_ = _of_extractor("eigenvalues_", "Spread of the shifted rows along each direction, per unit of weight.")
    explained_variance_ratio_ = _of_extractor("explained_variance_ratio_", "Each direction's share of that spread.")
    rank_ = _of_extractor("rank_", "How many directions there are.")
    solver_ = _of_extractor("solver_", "How the directions were found.")

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        plain = self.embedding is None
        tags.input_tags.sparse = self._takes_sparse()
        tags.input_tags.positive_only = plain and input_tags(self._extractor()).positive_only
        tags.target_tags.required = True
        if plain and has_closed_form(self._extractor()):
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
    """Return the shifted rows T[X] = X + σ²Aη themselves (dense), as `MaxMarginShift` trains its extractor on them.

    Rows without a label, and rows of weight 0, stay where they are.

    Parameters
    ----------
    X : array or sparse matrix of shape (n_samples, n_features)
        The rows.
    y : array of shape (n_samples,)
        Their labels.
    shift : float, default=1.0
        How far the rows move relative to their spread, σ²‖Aη‖/‖X − μ‖.
    C : float, default=1.0
        Weight of the hinge losses.
    unlabeled : label, default=None
        Label of the rows without one; missing labels always mean that.
    sample_weight : array of shape (n_samples,), default=None
        How much each row counts.
    tol : float, default=1e-10
        Relative duality gap at which the SVM stops.
    max_iter : int, default=10000
        Its most passes over the rows.

    Returns
    -------
    array of shape (n_samples, n_features)
        The shifted rows.

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
        raise ValueError("max_margin_shift takes a number as shift, e.g. MaxMarginShift(shift='cv').fit(X, y).shift_.")
    rows, classes = partly_labelled_rows(model, X, y, sample_weight, unlabeled=unlabeled)
    shifted = margin_shift(rows, len(classes), **svm).shifted(rows.X, float(shift))
    if rows.numbers is None:
        return shifted
    table = checked_table(model, X)
    whole = table.toarray() if sp.issparse(table) else table.copy()
    whole[rows.numbers] = shifted
    return whole


def shifted_pca(n_components: int) -> MaxMarginShift:
    """Compute PCA of the shifted rows, as comparisons build it."""
    return MaxMarginShift(PCA(n_components))


def _features(extractor: Any, X: Any) -> Any:
    features = _table(extractor.transform(X))
    return features.reshape(X.shape[0], -1) if features.ndim == 1 else features  # SparsePCA flattens a single row


def _table(X: Any) -> Any:
    """Return what a transformer gave, without the names of a frame."""
    return X.tocsr() if sp.issparse(X) else np.asarray(X)
