"""Methods and classifiers by the papers' conventions, if these differ from the package's.

Only `discrim reproduce` uses them, by the names in a study file. Each is named paper/… after the one it differs from.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.cluster import KMeans
from sklearn.cross_decomposition import PLSRegression
from sklearn.decomposition import NMF, FactorAnalysis, FastICA, SparsePCA
from sklearn.kernel_approximation import RBFSampler
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, StratifiedKFold, StratifiedShuffleSplit
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import MinMaxScaler, StandardScaler
from sklearn.svm import SVC, LinearSVC
from sklearn.tree import DecisionTreeClassifier

from discrim.decompositions import pinv
from discrim.estimators.autoencoder import Autoencoder
from discrim.estimators.factor_models import LogisticPCA, SupervisedExponentialPCA
from discrim.estimators.margin_pca import MarginPCA
from discrim.estimators.max_margin_shift import MaxMarginShift
from discrim.estimators.pca import PCA, BayesErrorPCA
from discrim.estimators.refined_hyperplane import RefinedHyperplane
from discrim.estimators.shift_search import SHIFTS, median_square_distance, seeded
from discrim.evaluation.baselines import Wrapped, indicators
from discrim.evaluation.classifiers import CLASSIFIERS, Classifier, UnitMeanSquare, named
from discrim.evaluation.methods import METHODS
from discrim.registry import Method, Sizes, never

# by name: True if it is applied to the rows instead of their random features, and its factory
EXTRACTORS: dict[str, tuple[bool, Callable[..., Any]]] = {
    "pca": (True, PCA),
    "autoencoder": (True, partial(Autoencoder, max_iter=100)),
    "kernel-pca": (False, PCA),
    "ica": (False, partial(FastICA, max_iter=200, tol=1e-3)),
    "sparse-pca": (False, partial(SparsePCA, max_iter=20, method="cd")),
    "k-means": (False, partial(KMeans, n_init=3)),
    "factor-analysis": (False, partial(FactorAnalysis, max_iter=100)),
    "nmf": (False, partial(NMF, init="nndsvda", max_iter=100)),
}
COSTS = (0.1, 1.0, 10.0)
BY_FOLDS = {"logistic-pca": LogisticPCA, "supervised-exponential-pca": SupervisedExponentialPCA}
LABEL_WEIGHTS = (1.0, 10.0, 100.0)
ENOUGH = 1e-6  # relative duality gap: accuracies do not change below 1e-3


class ShiftedExtractor(TransformerMixin, BaseEstimator):
    """Extractor trained on rows, or on their random Fourier features, that an SVM has shifted.

    extractor : a name in EXTRACTORS; shift : 0 for none, a number, or "cv" for the best by cross-validation
    features : number of random features ("500", "1000", or "1000 wide" with a kernel twice as wide), "" for the rows
    """

    def __init__(
        self,
        n_components: int = 5,
        *,
        extractor: str = "pca",
        features: str = "",
        shift: float | str = "cv",
        random_state: int = 0,
    ) -> None:
        self.n_components = n_components
        self.extractor = extractor
        self.features = features
        self.shift = shift
        self.random_state = random_state

    def fit(self, X: ArrayLike, y: ArrayLike) -> ShiftedExtractor:
        rows = np.asarray(X, dtype=np.float64)
        self.embedding_ = self._embedding(rows).fit(rows) if self.features else None
        seen = self.seen(rows)
        one = EXTRACTORS[self.extractor][1](self.n_components)
        # without a closed form, one hold-out set chooses the shift
        folds = 5 if isinstance(one, PCA) else StratifiedShuffleSplit(1, test_size=0.3, random_state=0)
        model = MaxMarginShift(one, shift=self.shift, cv=folds, tol=ENOUGH, random_state=self.random_state)
        if self.shift:
            model.fit(seen, y)
            self.extractor_, shift = model.extractor_, model.shift_
        else:  # without a shift no SVM is needed
            self.extractor_, shift = seeded(one, self.random_state).fit(seen), 0.0
        self.trial_scores_ = {"reconstruction_error": _reconstruction_error(self.extractor_, seen), "shift": shift}
        return self

    def transform(self, X: ArrayLike) -> NDArray[Any]:
        return np.asarray(self.extractor_.transform(self.seen(np.asarray(X, dtype=np.float64))))

    def seen(self, rows: NDArray[Any]) -> NDArray[Any]:
        """Return the input of the extractor for these rows."""
        return rows if self.embedding_ is None else np.asarray(self.embedding_.transform(rows))

    def _embedding(self, rows: NDArray[Any]) -> Any:
        count, _, wide = self.features.partition(" ")
        width = median_square_distance(rows, random_state=self.random_state) * (2 if wide else 1)
        sampler = RBFSampler(gamma=1 / width, n_components=int(count), random_state=self.random_state)
        positive = self.extractor == "nmf"
        return make_pipeline(sampler, MinMaxScaler((0, 1) if positive else (-1, 1), clip=positive))


class ReducerByFolds(Wrapped):
    """Reducer whose label weight is chosen by folds, by the accuracy of a linear SVM on its features.

    reducer : its class
    """

    def __init__(self, n_components: int = 10, *, reducer: Callable[..., Any] = LogisticPCA) -> None:
        self.n_components = n_components
        self.reducer = reducer

    def fit(self, X: ArrayLike, y: ArrayLike) -> ReducerByFolds:
        judged = Pipeline([("reducer", self.reducer(self.n_components)), ("svm", _centred_svm())])
        chosen = GridSearchCV(judged, {"reducer__label_weight": LABEL_WEIGHTS}, cv=FewFolds()).fit(X, y)
        self.fitted_ = chosen.best_estimator_["reducer"]
        return self


class ShiftByFolds(Wrapped):
    """PCA of shifted rows; shift and SVM cost are chosen by at most five folds, fewer if a class is smaller."""

    def __init__(self, n_components: int = 10, *, random_state: int = 0) -> None:
        self.n_components = n_components
        self.random_state = random_state

    def fit(self, X: ArrayLike, y: ArrayLike) -> ShiftByFolds:
        options: dict[str, Any] = {"shift": "cv", "tol": ENOUGH, "random_state": self.random_state}
        tried = [MaxMarginShift(PCA(self.n_components), C=C, **options).fit(X, y) for C in COSTS]
        self.fitted_ = max(tried, key=lambda model: max(model.shift_scores_.values()))
        return self


def _reconstruction_error(extractor: Any, rows: NDArray[Any]) -> float:
    """Return the mean squared reconstruction error, by the extractor's inverse or, if it has none, by least squares."""
    features = extractor.transform(rows)
    if isinstance(extractor, KMeans):
        given_back = extractor.cluster_centers_[features.argmin(axis=1)]
    elif hasattr(extractor, "inverse_transform"):
        given_back = extractor.inverse_transform(features)
    else:
        centred = np.column_stack([np.ones(len(rows)), features])
        given_back = centred @ (pinv(centred) @ rows)
    return float(np.mean((rows - given_back) ** 2))


class Uncentred(TransformerMixin, BaseEstimator):
    """Directions of a reducer applied to rows that are not centred: X P."""

    def __init__(self, reducer: Any = None) -> None:
        self.reducer = reducer

    def fit(self, X: ArrayLike, y: ArrayLike) -> Uncentred:
        self.components_ = self.reducer.fit(X, y).components_
        return self

    def transform(self, X: ArrayLike) -> NDArray[Any]:
        return np.asarray(X) @ self.components_.T


class UpToRank(Wrapped):
    """Reducer with the requested number of components or, if the rows span fewer, with all of them."""

    def __init__(self, n_components: int = 2, *, reducer: Callable[..., Any] = PCA) -> None:
        self.n_components = n_components
        self.reducer = reducer

    def fit(self, X: ArrayLike, y: ArrayLike) -> UpToRank:
        rank = PCA().fit(X).rank_
        self.fitted_ = self.reducer(min(self.n_components, rank)).fit(X, y)
        return self


class LoadingProducts(Uncentred):
    """PLS with X times its loadings as features, instead of the scores.

    The loadings are those of scores of length 1, as in MATLAB's plsregress: √n larger than scikit-learn's, which
    matters to a classifier that penalises large weights.
    """

    def __init__(self, n_components: int = 2) -> None:
        self.n_components = n_components

    def fit(self, X: ArrayLike, y: ArrayLike) -> LoadingProducts:
        model = PLSRegression(self.n_components, scale=False).fit(X, indicators(y))
        self.components_ = (model.x_loadings_ * np.linalg.norm(model.x_scores_, axis=0)).T
        return self


class InitialHyperplane(RefinedHyperplane):
    """Linear classifier before its refinement, fitted as in the refinement."""

    def __init__(self, estimator: Any = None, *, normalize: bool | float = True) -> None:
        super().__init__(estimator, rule="none", reference_class=None, normalize=normalize)

    def fit(self, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None = None) -> InitialHyperplane:
        super().fit(X, y, sample_weight)
        self.coef_, self.intercept_ = self.initial_coef_, self.initial_intercept_
        self.margin_ = self.margin_initial_
        return self


class FewFolds:
    """Stratified folds, as many as the smallest class has rows, at most five."""

    def get_n_splits(self, X: Any = None, y: Any = None, groups: Any = None) -> int:
        return int(min(5, np.unique(y, return_counts=True)[1].min()))

    def split(self, X: Any, y: Any, groups: Any = None) -> Iterator[tuple[NDArray[np.intp], NDArray[np.intp]]]:
        return StratifiedKFold(self.get_n_splits(X, y), shuffle=True, random_state=0).split(X, y)


def _centred_svm() -> Pipeline:
    return make_pipeline(StandardScaler(with_std=False), UnitMeanSquare(), LinearSVC(dual=False))


def _svm_by_folds() -> GridSearchCV:
    return GridSearchCV(_centred_svm(), {"linearsvc__C": [0.01, 0.1, 1.0, 10.0]}, cv=FewFolds())


def _uncentred(reducer: Any, n_components: int, **options: Any) -> Uncentred:
    return Uncentred(reducer(n_components=n_components, **options))


def _refined(rule: str, estimator: Any = None) -> RefinedHyperplane:
    # The rows are standardised before the split, as in the paper.
    return RefinedHyperplane(estimator, rule=rule, reference_class=None)


def _balanced_svm() -> SVC:
    return SVC(kernel="linear", C=1.0, class_weight="balanced", max_iter=1_000_000)


def _max_components_of_half(sizes: Sizes) -> int:
    """Return the number of components that the training half of two folds can span."""
    return min(sizes.n_rows // 2 - 1, sizes.n_features)


_SEARCHED: dict[str, Any] = {"nested_from": never, "most_components": _max_components_of_half, "takes_sparse": False}
_SHIFTED: dict[float | str, str] = {"cv": " shifted", **{shift: f" shifted by {shift:g}" for shift in SHIFTS}, 0.0: ""}
PAPER_METHODS: dict[str, Method] = {
    method.name: method
    for method in (
        Method("paper/pca", "PCA, rows not centred", partial(_uncentred, PCA)),
        *(
            Method(
                f"paper/{name} up to the rank",
                "all components if the rows span fewer",
                UpToRank,
                {"reducer": one},
                ours=False,  # may return fewer than K components, as in the paper
            )
            for name, one in (("pca", PCA), ("bayes-error-pca", BayesErrorPCA))
        ),
        *(
            # at most as many pairs as rows, by the paper's text (its figure 3 takes every tie)
            Method(
                f"paper/margin-pca-{pairs}",
                "rows not centred",
                partial(_uncentred, MarginPCA, pairs=pairs, ties="lowest"),
            )
            for pairs in ("all", "mean", "median", "nearest")
        ),
        Method("paper/pls-loadings", "X times the loadings", LoadingProducts, ours=False, takes_sparse=False),
        Method(
            "paper/pca of rows shifted by folds",
            "shift and C chosen by cross-validation",
            ShiftByFolds,
            seeded=True,
            **_SEARCHED,
        ),
        *(
            Method(
                f"paper/{name} by folds",
                "label weight chosen by cross-validation",
                ReducerByFolds,
                {"reducer": reducer},
                **_SEARCHED,
            )
            for name, reducer in BY_FOLDS.items()
        ),
        *(
            Method(
                f"paper/{extractor} of {features or 'rows'}{_SHIFTED[shift]}",
                "an extractor of shifted or plain rows",
                ShiftedExtractor,
                {"extractor": extractor, "features": features, "shift": shift},
                seeded=True,
                **_SEARCHED,
            )
            for extractor, (plain, _) in EXTRACTORS.items()
            for features in ([""] if plain else ["500", "1000", "1000 wide"])
            for shift in ("cv", *SHIFTS)
        ),
    )
}
OVER_98 = 0.98  # the refinement's example has 100 rows, and MATLAB's `classify` divides the covariance by n − 2
_RULES = ("sign", "min", "max", "discriminant-min", "discriminant-max", "none")
PAPER_CLASSIFIERS: dict[str, Classifier] = {
    classifier.name: classifier
    for classifier in (
        Classifier(
            "paper/svm",
            "LIBLINEAR without intercept",
            partial(LinearSVC, fit_intercept=False, dual="auto", max_iter=5_000, random_state=0),
        ),
        Classifier(
            "paper/logistic",
            "LIBLINEAR without intercept",
            partial(LogisticRegression, solver="liblinear", fit_intercept=False, random_state=0),
        ),
        Classifier(
            "paper/tree", "splits nodes of 10 rows or more", partial(DecisionTreeClassifier, min_samples_split=10)
        ),
        Classifier("paper/lda", "discriminant before refinement", InitialHyperplane, takes_sparse=False),
        Classifier("paper/unscaled-lda", "discriminant in its own unit", partial(InitialHyperplane, normalize=False)),
        Classifier("paper/hard-svm", "no row inside the margin", partial(SVC, kernel="linear", C=1e6)),
        Classifier("paper/balanced-svm", "classes have equal total weight", _balanced_svm, takes_sparse=False),
        Classifier("paper/pooled-lda", "scaled as by MATLAB's classify", partial(InitialHyperplane, normalize=OVER_98)),
        Classifier(
            "paper/pooled-lda refined by 1 | 2 3 4",
            "the first feature, and the other three merged",
            partial(RefinedHyperplane, rule=[[0], [1, 2, 3]], reference_class=None, normalize=OVER_98),
        ),
        Classifier("paper/centred-svm", "one-vs-rest, features centred and scaled to mean square 1", _centred_svm),
        Classifier("paper/centred-svm by folds", "the same, C chosen by cross-validation", _svm_by_folds),
        *(Classifier(f"paper/lda refined by {rule}", "", partial(_refined, rule)) for rule in _RULES),
        *(
            Classifier(f"paper/balanced-svm refined by {rule}", "", partial(_refined, rule, _balanced_svm()))
            for rule in _RULES
        ),
    )
}


ALL_METHODS = METHODS | PAPER_METHODS
ALL_CLASSIFIERS = CLASSIFIERS | PAPER_CLASSIFIERS


def any_method(name: str) -> Method:
    return named(name, ALL_METHODS, "method")


def any_classifier(name: str) -> Classifier:
    return named(name, ALL_CLASSIFIERS, "classifier")
