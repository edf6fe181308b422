"""The classifiers that judge reduced features, by name: one line each.

All have an intercept. A linear SVM and logistic regression penalise large weights, so their answer depends on the unit
of the features, and methods differ in theirs by factors of thousands: both see the features divided by one number, so
that their mean square is 1. The others do not depend on a common unit.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from scipy.sparse import issparse
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.svm import LinearSVC
from sklearn.tree import DecisionTreeClassifier

from discrim.estimators.fisher_lda import FisherLDA
from discrim.estimators.kernel_naive_bayes import KernelNaiveBayes
from discrim.evaluation.methods import entries_named


class UnitMeanSquare(TransformerMixin, BaseEstimator):
    """x / s with one number s for all features, so that the centred training features have mean square 1."""

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
    """scikit-learn's linear SVM, by its dual where there are fewer than three rows for a column.

    The solution is the same. `dual="auto"` takes the primal as soon as there are as many rows as columns, where classes
    can often be told apart without error and the primal needs hundreds of steps: 136 s for the dual's 9 s on 1,248×617.
    """

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> LinearSVM:
        self.dual = X.shape[0] < 3 * X.shape[1]
        super().fit(X, y, sample_weight)
        return self


@dataclass(frozen=True)
class Classifier:
    """A classifier by name."""

    name: str
    gloss: str
    build: Callable[[], Any]
    takes_sparse: bool = True
    least_rows: int = 1


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
)

CLASSIFIERS: dict[str, Classifier] = {classifier.name: classifier for classifier in _LISTED}
DEFAULT_CLASSIFIERS = ("svm", "5-nn")


def named_classifiers(names: Iterable[str]) -> tuple[Classifier, ...]:
    """The classifiers of these names, in this order, each once; "all" stands for all, "default" for two."""
    return entries_named(names, CLASSIFIERS, DEFAULT_CLASSIFIERS, "classifier")
