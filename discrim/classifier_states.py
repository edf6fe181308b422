"""Fitted scikit-learn classifiers as plain values, and back, for model files.

Most classifiers hold numbers, text and arrays only. A decision tree and a search tree of neighbours are compiled
objects: a file has the columns of the first one's node table, and the second is rebuilt from the rows. Compiled code
reads the arrays of a tree and of a support vector machine without bounds checks, so they are checked here.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from scipy.sparse import csr_matrix, issparse
from sklearn.ensemble import RandomForestClassifier
from sklearn.neighbors import KNeighborsClassifier
from sklearn.svm import SVC
from sklearn.tree import DecisionTreeClassifier
from sklearn.tree._tree import NODE_DTYPE, Tree

# classifiers of a model file and their modules; those of discrim are scikit-learn's with time limits
CLASSIFIERS = {
    "LinearSVM": "discrim.evaluation.classifiers",
    "RBFSVM": "discrim.evaluation.classifiers",
    "Forest": "discrim.evaluation.classifiers",
    "LogisticRegression": "sklearn.linear_model",
    "KNeighborsClassifier": "sklearn.neighbors",
    "SVC": "sklearn.svm",
    "LinearSVC": "sklearn.svm",
    "RandomForestClassifier": "sklearn.ensemble",
    "DecisionTreeClassifier": "sklearn.tree",
    "GaussianNB": "sklearn.naive_bayes",
    "LinearDiscriminantAnalysis": "sklearn.discriminant_analysis",
}
_SEARCH_TREES = ("_tree", "_fit_method")
_SPARSE_SVC = ("support_vectors_", "dual_coef_", "_dual_coef_")
_KERNELS = ("linear", "poly", "rbf", "sigmoid")
_LEAF = -1


def plain_state(estimator: Any) -> dict[str, Any]:
    """Return the attributes of a fitted classifier as plain values."""
    state = dict(vars(estimator))
    if isinstance(tree := state.get("tree_"), Tree):
        kept = tree.__getstate__()
        state["tree_"] = {
            "n_features": int(tree.n_features),
            "max_depth": int(kept["max_depth"]),
            "nodes": {name: np.ascontiguousarray(kept["nodes"][name]) for name in kept["nodes"].dtype.names},
            "values": np.ascontiguousarray(kept["values"]),
        }
    if isinstance(estimator, KNeighborsClassifier):
        state = {name: value for name, value in state.items() if name not in _SEARCH_TREES}
    return state


def restore(kind: Any, state: dict[str, Any]) -> Any:
    """Build a classifier from its plain values.

    Raises
    ------
    ValueError, TypeError, LookupError
        If the values do not fit together.
    """
    estimator = kind.__new__(kind)
    parameters = kind().get_params(deep=False)
    vars(estimator).update(parameters | state)
    # neither changes a prediction, and a file must not set the number of threads
    vars(estimator).update({name: parameters[name] for name in ("n_jobs", "verbose") if name in parameters})
    for general, (fitted_by, complete) in _COMPLETED.items():
        if isinstance(estimator, general) and hasattr(estimator, fitted_by):
            complete(estimator)
    return estimator


def _restore_tree(estimator: Any) -> None:
    """Replace the columns of a node table by the compiled tree."""
    kept, n_features, n_classes = estimator.tree_, int(estimator.n_features_in_), len(estimator.classes_)
    values = np.ascontiguousarray(kept["values"], dtype=np.float64)
    n_nodes = len(values)
    _require(values.shape == (n_nodes, 1, n_classes) and n_nodes > 0, "the values of a tree")
    _require(int(kept["n_features"]) == n_features and int(estimator.n_classes_) == n_classes, "the size of a tree")
    _require(int(estimator.n_outputs_) == 1 and int(kept["max_depth"]) >= 0, "the size of a tree")
    nodes = np.zeros(n_nodes, dtype=NODE_DTYPE)
    for name in NODE_DTYPE.names:
        if name in kept["nodes"]:
            _require(np.shape(kept["nodes"][name]) == (n_nodes,), "the nodes of a tree")
            nodes[name] = kept["nodes"][name]
    left, right, at = nodes["left_child"], nodes["right_child"], np.arange(n_nodes)
    leaf = left == _LEAF
    # children follow their parent, so every path ends
    inner = (at < left) & (left < n_nodes) & (at < right) & (right < n_nodes)
    inner &= (nodes["feature"] >= 0) & (nodes["feature"] < n_features)
    _require(bool(np.all(np.where(leaf, right == _LEAF, inner))), "the nodes of a tree")
    _require(bool(np.isfinite(values).all()), "the values of a tree")
    tree = Tree(n_features, np.array([n_classes], dtype=np.intp), 1)
    tree.__setstate__({"max_depth": int(kept["max_depth"]), "node_count": n_nodes, "nodes": nodes, "values": values})
    estimator.tree_ = tree


def _check_forest(estimator: Any) -> None:
    """Raise unless every tree has the forest's features and classes."""
    n_classes, n_features = len(estimator.classes_), int(estimator.n_features_in_)
    _require(len(estimator.estimators_) > 0 and int(estimator.n_classes_) == n_classes, "the trees of a forest")
    _require(int(estimator.n_outputs_) == 1, "the trees of a forest")
    for one in estimator.estimators_:
        of_tree = isinstance(getattr(one, "tree_", None), Tree)
        fits = of_tree and one.n_features_in_ == n_features and len(one.classes_) == n_classes
        _require(fits, "the trees of a forest")


def _build_search(estimator: Any) -> None:
    """Rebuild the search structure of nearest neighbours from the rows."""
    rows, codes, classes = estimator._fit_X, np.asarray(estimator._y), estimator.classes_
    _require(codes.shape == (rows.shape[0],) and estimator.n_features_in_ == rows.shape[1], "the rows of neighbours")
    _require(codes.dtype.kind in "iu" and codes.min() >= 0 and codes.max() < len(classes), "the labels of neighbours")
    _require(isinstance(estimator.metric, str) and 1 <= estimator.leaf_size <= 10_000, "the metric of neighbours")
    _require(1 <= estimator.n_neighbors <= rows.shape[0], "the number of neighbours")
    names = getattr(estimator, "feature_names_in_", None)
    estimator.fit(csr_matrix(rows) if issparse(rows) else rows, classes[codes])
    _require(len(estimator.classes_) == len(classes), "the labels of neighbours")
    if names is not None:
        estimator.feature_names_in_ = names


def _check_svc(estimator: Any) -> None:
    """Raise unless the shapes of a support vector machine agree."""
    n_classes, n_pairs = len(estimator.classes_), len(estimator.classes_) * (len(estimator.classes_) - 1) // 2
    n_support = np.asarray(estimator._n_support)
    vectors = estimator.support_vectors_
    n_vectors, n_features = vectors.shape
    _require(estimator.kernel in _KERNELS and n_classes >= 2, "the kernel of a support vector machine")
    _require(n_support.shape == (n_classes,) and n_support.dtype == np.int32, "the support vectors")
    _require(n_support.min() >= 0 and int(n_support.sum(dtype=np.int64)) == n_vectors, "the support vectors")
    _require(bool(estimator._sparse) == issparse(vectors), "the support vectors")
    _require(estimator.n_features_in_ == n_features == estimator.shape_fit_[1], "the support vectors")
    _require(np.shape(estimator.support_) == (n_vectors,), "the support vectors")
    for name in ("dual_coef_", "_dual_coef_"):
        _require(getattr(estimator, name).shape == (n_classes - 1, n_vectors), "the weights of the support vectors")
    for name in ("intercept_", "_intercept_"):
        _require(getattr(estimator, name).shape == (n_pairs,), "the intercepts of a support vector machine")
    for name in ("_probA", "_probB"):
        _require(len(getattr(estimator, name)) in (0, n_pairs), "the probabilities of a support vector machine")
    _require(len(estimator._probA) == len(estimator._probB), "the probabilities of a support vector machine")
    if estimator._sparse:
        vars(estimator).update({name: csr_matrix(getattr(estimator, name)) for name in _SPARSE_SVC})
        full = np.array_equal(estimator._dual_coef_.indptr, n_vectors * np.arange(n_classes))
        _require(full, "the weights of the support vectors")


def _require(condition: bool, what: str) -> None:
    if not condition:
        raise ValueError(f"{what} do not fit together")


# by class: an attribute of a fitted classifier, and the function that checks and completes it
_COMPLETED: dict[type, tuple[str, Callable[[Any], None]]] = {
    DecisionTreeClassifier: ("tree_", _restore_tree),
    RandomForestClassifier: ("estimators_", _check_forest),
    KNeighborsClassifier: ("_fit_X", _build_search),
    SVC: ("support_vectors_", _check_svc),
}
