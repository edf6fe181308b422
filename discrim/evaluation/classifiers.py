"""Steps of a pipeline by name: imputation and scaling before a reduction, and the classifiers after it.

Every preprocessing step is a scikit-learn transformer, fitted on training rows alone and kept in the model file with
the reducer. Missing cells are filled, then all columns are scaled:

impute  median, mean, most-frequent   of the column's training cells; a column without any becomes 0
scale   standard   mean 0 and deviation 1
        range      from −1 to 1
        none       as they are

Sparse rows stay sparse: they are divided by their deviation or largest absolute value, and not moved.

Classifiers are the judges of reduced features, and the partners that classify all columns. All have an intercept. A
linear SVM and logistic regression penalise large weights, so their answer depends on the unit of the features, and
methods differ in theirs by factors of thousands: both see the features divided by one number, so that their mean square
is 1. The others do not depend on a common unit.
"""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from scipy.sparse import issparse
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.ensemble import RandomForestClassifier
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import train_test_split
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import MaxAbsScaler, MinMaxScaler, StandardScaler
from sklearn.svm import SVC, LinearSVC
from sklearn.tree import DecisionTreeClassifier

from discrim.estimators.classifiers import KernelNaiveBayes
from discrim.estimators.lda import FisherLDA

SCALES = ("standard", "range", "none")
IMPUTATIONS = ("median", "mean", "most-frequent")


def preprocessing(scale: str, impute: str | None = None, *, sparse: bool = False) -> list[Any]:
    """Return the steps before a reduction, as unfitted transformers; none for scale="none" and impute=None.

    Parameters
    ----------
    scale : {"standard", "range", "none"}
        How columns are scaled.
    impute : {"median", "mean", "most-frequent"}, default=None
        Value that replaces missing cells (NaN); None if there are none.
    sparse : bool, default=False
        Whether the rows are sparse.

    Returns
    -------
    list of transformers
        To be put in front of a reducer, as in ``make_pipeline(*preprocessing("standard", "median"), PCA(2))``.

    Examples
    --------
    >>> from discrim.evaluation.classifiers import preprocessing
    >>> preprocessing("standard", "median")
    [SimpleImputer(keep_empty_features=True, strategy='median'), StandardScaler()]
    """
    if scale not in SCALES:
        raise ValueError(f"No scale is named {scale!r}. There are: {', '.join(SCALES)}.")
    if impute is not None and impute not in IMPUTATIONS:
        raise ValueError(f"Missing cells cannot be filled with {impute!r}. Possible are: {', '.join(IMPUTATIONS)}.")
    steps: list[Any] = []
    if impute is not None:
        # Without empty columns the model's columns would not be the table's.
        steps.append(SimpleImputer(strategy=impute.replace("-", "_"), keep_empty_features=True))
    if scale == "standard":
        steps.append(StandardScaler(with_mean=not sparse))
    elif scale == "range":
        steps.append(MaxAbsScaler() if sparse else MinMaxScaler((-1, 1)))
    return steps


MOST_RBF_ROWS = 4_000
MOST_FOREST_ROWS = 20_000
TREES_TIMES_ROWS, LEAST_TREES, MOST_TREES = 100_000, 30, 100


class UnitMeanSquare(TransformerMixin, BaseEstimator):
    """Transformer x / s with one number s for all features; centred training features have mean square 1."""

    def fit(self, X: Any, y: Any = None) -> UnitMeanSquare:
        if issparse(X):
            centre = np.asarray(X.mean(axis=0)).ravel()
            mean_square = (X.multiply(X).sum() / X.shape[0] - centre @ centre) / X.shape[1]
        else:
            mean_square = np.var(X, axis=0).mean()
        self.unit_ = float(np.sqrt(mean_square)) if mean_square > 0 else 1.0
        return self

    def transform(self, X: Any) -> Any:
        return X / self.unit_


class LinearSVM(LinearSVC):
    """Linear SVM of scikit-learn that solves the dual if there are fewer than three rows per column.

    The solution is the same. `dual="auto"` uses the primal from as many rows as columns on. Classes are then often
    separable, and the primal needs hundreds of steps: 136 s instead of 9 s on 1,248×617.
    """

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> LinearSVM:
        self.dual = X.shape[0] < 3 * X.shape[1]
        super().fit(X, y, sample_weight)
        return self


def _sampled(X: Any, y: Any, weights: Any, most: int) -> tuple[Any, Any, Any]:
    """Draw at most `most` rows, each class in proportion; the draw is deterministic."""
    if len(y) <= most or most < 2 * len(np.unique(y)) or np.unique(y, return_counts=True)[1].min() < 2:
        return X, y, weights
    kept = train_test_split(np.arange(len(y)), train_size=most, stratify=y, random_state=0)[0]
    return X[kept], y[kept], None if weights is None else weights[kept]


class RBFSVM(SVC):
    """SVM of scikit-learn with a Gaussian kernel, fitted on at most 4,000 rows, drawn by class (time grows as n²)."""

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> RBFSVM:
        super().fit(*_sampled(X, np.asarray(y), sample_weight, MOST_RBF_ROWS))
        return self


class Forest(RandomForestClassifier):
    """Random forest of scikit-learn with fewer trees for more rows, fitted on at most 20,000 rows, drawn by class."""

    class_weight: Any

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Forest:
        rows, labels, weights = _sampled(X, np.asarray(y), sample_weight, MOST_FOREST_ROWS)
        self.n_estimators = int(np.clip(TREES_TIMES_ROWS // len(labels), LEAST_TREES, MOST_TREES))
        classes, codes = np.unique(labels, return_inverse=True)
        given = self.class_weight
        if isinstance(given, dict):
            numbers = {label: code for code, label in enumerate(classes.tolist())}
            self.class_weight = {numbers.get(label, label): weight for label, weight in given.items()}
        try:  # numbers as labels: with class weights, scikit-learn rejects text labels such as "0"
            super().fit(rows, codes, weights)
        finally:
            self.class_weight = given
        self.classes_ = classes
        return self


@dataclass(frozen=True)
class Classifier:
    """Classifier with a name.

    note : how many rows are treated, for readers of its scores
    most_rows : number of rows above which the note applies
    """

    name: str
    gloss: str
    build: Callable[[], Any]
    takes_sparse: bool = True
    least_rows: int = 1
    note: str = ""
    most_rows: float = float("inf")

    def estimator(self, class_weight: str | None = None) -> Any:
        """Return an unfitted classifier; class_weight="balanced" is set if it can weight classes."""
        model = self.build()
        last = model[-1] if isinstance(model, Pipeline) else model
        if class_weight is not None and "class_weight" in last.get_params():
            last.set_params(class_weight=class_weight)
        return model


def _in_one_unit(classifier: Callable[[], Any]) -> Any:
    return make_pipeline(UnitMeanSquare(), classifier())


_LISTED = (
    Classifier(
        "svm",
        "linear support vector machine, C = 1",
        partial(_in_one_unit, partial(LinearSVM, max_iter=5_000, random_state=0)),
    ),
    Classifier(
        "logistic", "logistic regression, C = 1", partial(_in_one_unit, partial(LogisticRegression, max_iter=1_000))
    ),
    Classifier("fisher", "nearest class mean in discriminant space", FisherLDA, takes_sparse=False),
    Classifier("naive-bayes", "naive Bayes, Gaussian", GaussianNB, takes_sparse=False),
    Classifier("kernel-naive-bayes", "naive Bayes, kernel densities", KernelNaiveBayes, takes_sparse=False),
    Classifier("1-nn", "the nearest neighbour", partial(KNeighborsClassifier, 1)),
    Classifier("5-nn", "the five nearest neighbours", partial(KNeighborsClassifier, 5), least_rows=5),
    Classifier("tree", "decision tree", partial(DecisionTreeClassifier, random_state=0)),
    Classifier(
        "rbf-svm",
        "support vector machine with a Gaussian kernel, C = 10",
        partial(RBFSVM, C=10.0),
        note=f"fitted on at most {MOST_RBF_ROWS:,} training rows",
        most_rows=MOST_RBF_ROWS,
    ),
    Classifier(
        "forest",
        "random forest",
        partial(Forest, random_state=0, n_jobs=1),
        note=f"fitted on at most {MOST_FOREST_ROWS:,} training rows",
        most_rows=MOST_FOREST_ROWS,
    ),
)

CLASSIFIERS: dict[str, Classifier] = {classifier.name: classifier for classifier in _LISTED}
DEFAULT_CLASSIFIERS = ("logistic", "rbf-svm")  # by examples/judges_study.py
RAW_PARTNERS = ("logistic", "5-nn", "rbf-svm", "forest")  # classify all columns in every comparison


def named_classifiers(names: Iterable[str]) -> tuple[Classifier, ...]:
    """Return the classifiers of these names in this order, each once; "all" means all, "default" two."""
    return entries_named(names, CLASSIFIERS, DEFAULT_CLASSIFIERS, "classifiers")


def entries_named(
    names: Iterable[str], known: Mapping[str, Any], short: Iterable[str], parameter: str
) -> tuple[Any, ...]:
    """Return the entries of these names in this order, each once; "all" means all, "default" the short list."""
    groups = {"all": known, "default": short}
    every = dict.fromkeys(one for name in names for one in groups.get(name, (name,)))
    return tuple(named(name, known, parameter, "known names") for name in every)


def named(name: str, known: Mapping[str, Any], noun: str, constraint: str = "a known name") -> Any:
    """Return the entry of that name, or raise an error that lists the names."""
    if name in known:
        return known[name]
    near = difflib.get_close_matches(name.lower(), known, n=3, cutoff=0.5)
    meant = f" Did you mean {' or '.join(near)}?" if near else ""
    raise ValueError(f"{noun} must be {constraint}; got {name!r}.{meant} Known names: {', '.join(known)}.")
