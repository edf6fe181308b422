"""Refinement of a linear classifier: merge terms by a rule and fit a linear SVM to the merged terms."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations
from typing import Any, ClassVar

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import check_is_fitted

from discrim.docstrings import public_estimator
from discrim.estimators.fitting import unchanged_if_it_fails
from discrim.estimators.pair_refinement import (
    MAX_FEATURES_TO_SPLIT,
    RULES,
    Floats,
    Indices,
    Pair,
    Rule,
    grouping_of,
    refinement,
)
from discrim.tables.check_parameters import (
    FLAG,
    NOTHING,
    POSITIVE,
    WHOLE,
    Constraints,
    check_parameters,
    class_factors,
    is_number,
    named,
    number,
    require,
    whole,
)
from discrim.tables.validation import (
    checked_table,
    labelled_rows,
    require_finite,
    require_representable,
    require_two_classes,
)
from discrim.warn_once import warn


@public_estimator
class RefinedHyperplane(ClassifierMixin, BaseEstimator):
    """Margin-based refinement of a linear classifier.

        aᵀz = c  →  u_k = Σ_{i∈I_k} a_i z_i  →  Σ_k b_k u_k = c̃ by linear SVM;  ρ = 2/√(Σ_k b_k² Σ_{i∈I_k} a_i²)

    It takes any linear classifier, merges some of its terms a_i z_i, and separates the classes again by a linear SVM in
    the space of the merged terms. Try it if LDA has few rows per feature. Most of the improvement comes from the
    rescaling z_i → a_i z_i, so compare with rule "none". The margin may also shrink.

    Parameters
    ----------
    estimator : classifier, default=None
        Linear classifier to refine, with `coef_` and `intercept_` after fitting; None for LDA.
    rule : str or list of lists of int, default="sign"
        Rule for merging terms: "sign" (terms in favour of the same class), "min" / "max" (the two smallest / largest
        |a_i|), "discriminant-min" / "discriminant-max" (starting with the smallest / largest |a_i|, as long as the sum
        discriminates at least as well as each feature in it), "none" (rescaling only), "exhaustive-pairs" (all pairs,
        d(d−1)/2 SVMs) and "exhaustive-splits" (all splits into two groups, 2^(d−1) − 1 SVMs, d ≤ 16), both of which use
        the largest margin; "best" (by cross-validation among the first six); or the groups as lists of features, such
        as [[0], [1, 2, 3]], where features in none of them stay separate.
    C: Cost of a row on the wrong side of its margin.
    class_weight: "balanced" gives both classes of a pair the same total cost; a dict gives a factor per label.
    fallback : bool, default=False
        If True, keep the initial hyperplane if the margin did not grow.
    reference_class : "minority", "majority" or None, default="minority"
        Class of a pair in which features are standardised to mean 0 and variance 1; None does not standardise.
    constant_features : "drop" or "scale", default="drop"
        Features that are constant in that class are dropped (a warning lists those that vary in the other class), or
        scaled by their deviation over both classes, as is done if all features are constant.
    normalize : bool or float, default=True
        If True, scale a to length 1 first, so that C has a fixed meaning; the initial margin is then 2. False keeps the
        scale of the estimator. A number multiplies it: (n − 2)/n gives LDA the scale of MATLAB's `classify`.
    n_folds : int, default=5
        Folds for rule "best"; fewer if a class has fewer distinct rows.
    tol: Tolerance of the SVM.
    max_iter: Maximum number of steps of the SVM.

    Attributes
    ----------
    coef_ : array of shape (n_pairs, n_features)
        Hyperplanes in the space of X, one row per pair of classes.
    intercept_ : array of shape (n_pairs,)
        Intercepts of the hyperplanes.
    initial_coef_ : array of shape (n_pairs, n_features)
        Hyperplanes before refinement.
    initial_intercept_ : array of shape (n_pairs,)
        Intercepts before refinement.
    groups_ : list of lists of int
        Groups of feature indices, the merged one first.
    dropped_features_ : array of int
        Features that are not used, because they are constant in the reference class.
    margin_initial_ : float
        2/‖a‖ in standardised features.
    margin_ : float
        ρ in standardised features.
    accepted_ : bool
        True if ρ ≥ 2/‖a‖.
    rule_ : str
        Rule that was applied.
    n_iter_: Number of steps of its SVM.
    refinements_ : list
        Details of each pair of classes, in the order (0, 1), (0, 2), …, (1, 2), … With more than two classes, groups,
        margins and similar attributes are lists in this order. The predicted class is the one that wins most of its
        pairs; ties are decided by the sum of its decision values.

    References
    ----------
    Dörksen and Lohweg (2018), Margin-based refinement for linear discriminant analysis, equations 13–17.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> X, y = load_iris(return_X_y=True)
    >>> model = RefinedHyperplane().fit(X[50:], y[50:])
    >>> model.groups_
    [[2, 3], [0], [1]]
    """

    _parameter_constraints: ClassVar[Constraints] = {
        "C": POSITIVE,
        "reference_class": (*named("minority", "majority"), NOTHING),
        "constant_features": named("drop", "scale"),
        "normalize": (*FLAG, number("or a finite number above 0", lambda value: 0 < value < np.inf)),
        "n_folds": (whole(2),),
        "tol": POSITIVE,
        "max_iter": (whole(1),),
    }

    def __init__(
        self,
        estimator: Any = None,
        *,
        rule: Rule = "sign",
        C: float = 1.0,
        class_weight: Any = "balanced",
        fallback: bool = False,
        reference_class: str | None = "minority",
        constant_features: str = "drop",
        normalize: bool | float = True,
        n_folds: int = 5,
        tol: float = 1e-6,
        max_iter: int = 1_000_000,
    ) -> None:
        self.estimator = estimator
        self.rule = rule
        self.C = C
        self.class_weight = class_weight
        self.fallback = fallback
        self.reference_class = reference_class
        self.constant_features = constant_features
        self.normalize = normalize
        self.n_folds = n_folds
        self.tol = tol
        self.max_iter = max_iter

    @unchanged_if_it_fails
    def fit(self, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None = None) -> RefinedHyperplane:
        """Refine the classifier's hyperplane between each pair of classes."""
        _refuse_sparse(X)
        data = labelled_rows(self, X, y, sample_weight, supervised=True)
        require_finite(data.X)
        require_two_classes(self, data.classes)
        self.classes_ = data.classes
        check_parameters(self)
        class_factors(self.class_weight, self.classes_, np.ones(len(self.classes_)))
        if self.estimator is not None and (isinstance(self.estimator, type) or not hasattr(self.estimator, "fit")):
            is_class = isinstance(self.estimator, type)
            given = f"the class {self.estimator.__name__}" if is_class else repr(self.estimator)
            raise TypeError(
                f"estimator must be a linear classifier with coef_ and intercept_ after fitting; got {given}. Pass an "
                "instance such as LinearSVC() or LogisticRegression(), or None for Fisher's discriminant."
            )
        rule = _checked_rule(self.rule, self.n_features_in_)
        rows, codes, weights, counts = _different_rows(data.X, data.codes, data.weights)
        self.refinements_ = []
        for low, high in combinations(range(len(data.classes)), 2):
            chosen = np.flatnonzero((codes == low) | (codes == high))
            labels, weighted = data.classes[[low, high]], data.weights is not None
            pair = Pair(rows, codes == high, weights, counts, labels, weighted).part(chosen)
            self.refinements_.append(refinement(pair, rule, self))
        self._publish()
        return self

    def decision_function(self, X: ArrayLike) -> Floats:
        """Return decision values, positive for `classes_[1]`; for more classes one column each, votes first."""
        rows = self._checked_rows(X)
        with np.errstate(over="ignore", invalid="ignore"):
            values = rows @ self.coef_.T + self.intercept_
            values = values[:, 0] if len(self.classes_) == 2 else _votes(values, len(self.classes_))
        require_representable(values, rows)
        return values

    def predict(self, X: ArrayLike) -> NDArray[Any]:
        """Return the predicted class of each row."""
        values = self.decision_function(X)
        return self.classes_[values.argmax(axis=1) if values.ndim == 2 else (values > 0).astype(np.intp)]

    def merged_features(self, X: ArrayLike) -> Floats:
        """Return the rows in the space of u in which the SVM was fitted, one column per group; for two classes only."""
        rows = self._checked_rows(X)
        if len(self.classes_) != 2:
            raise ValueError(
                f"merged_features needs a fit with two classes; got {len(self.classes_)}, and each pair has its own "
                "merged features. Use refinements_[i].merged_features(X) for pair i."
            )
        with np.errstate(over="ignore", invalid="ignore"):
            features = self.refinements_[0].merged_features(rows)
        require_representable(features, rows)
        return features

    def _checked_rows(self, X: ArrayLike) -> Floats:
        check_is_fitted(self)
        _refuse_sparse(X)
        rows = checked_table(self, X)
        require_finite(rows)
        return rows.astype(np.float64, copy=False)

    def _publish(self) -> None:
        """Set the public attributes from the refinements."""
        pairs, d = self.refinements_, self.n_features_in_
        initial = [p.standard.undone(p.initial) for p in pairs]
        final = [p.standard.undone(p.refined if p.accepted or not self.fallback else p.initial) for p in pairs]
        self.initial_coef_, self.initial_intercept_ = (np.array(column) for column in zip(*initial, strict=True))
        self.coef_, self.intercept_ = (np.array(column) for column in zip(*final, strict=True))
        if not all(np.isfinite(one).all() for one in (self.initial_coef_, self.coef_, self.intercept_)):
            raise ValueError(
                "X must be in larger units; got columns so small that the coefficients exceed the largest float64. "
                "Scale the columns first, e.g. with StandardScaler."
            )

        def of_pairs(values: list[Any]) -> Any:
            return values[0] if len(values) == 1 else values

        self.groups_ = of_pairs([p.groups for p in pairs])
        self.rule_ = of_pairs([p.rule for p in pairs])
        self.n_iter_ = of_pairs([p.n_iter for p in pairs])
        self.margin_initial_ = of_pairs([p.initial.margin for p in pairs])
        self.margin_ = of_pairs([p.refined.margin for p in pairs])
        self.accepted_ = of_pairs([p.accepted for p in pairs])
        self.dropped_features_ = of_pairs([np.setdiff1d(np.arange(d), p.standard.features) for p in pairs])
        lost = sorted({int(feature) for p in pairs for feature in p.standard.lost})
        if lost:
            named = ", ".join(str(feature) for feature in lost[:10]) + (", …" if len(lost) > 10 else "")
            warn(
                f"{len(lost)} feature(s) are dropped because they are constant in the reference class, although they "
                f"vary in the other class and may be the best ones: {named}. Pass constant_features='scale' to keep "
                "them."
            )
        if any(p.n_iter >= self.max_iter for p in pairs):
            warn(
                f"The linear SVM stopped after max_iter={self.max_iter} steps, before it reached tol={self.tol}. "
                "Increase max_iter or tol, or decrease C.",
                ConvergenceWarning,
            )


def _different_rows(X: Floats, codes: Indices, weights: Floats | None) -> tuple[Floats, Indices, Floats, Indices]:
    """Return distinct rows with class codes, weights and counts, sorted by content.

    A weight of 2 is thus equivalent to a repeated row, and the order of the rows has no effect.
    """
    table = np.ascontiguousarray(np.column_stack([codes, X]), dtype=np.float64)
    table += 0.0  # −0.0 becomes 0.0, so equal numbers have equal bytes
    as_bytes = table.view(np.dtype((np.void, table.strides[0]))).ravel()
    _, first, place, counts = np.unique(as_bytes, return_index=True, return_inverse=True, return_counts=True)
    totals = np.bincount(place, weights).astype(np.float64)
    return table[first, 1:], codes[first], totals, counts


def _votes(values: Floats, n_classes: int) -> Floats:
    """Return the number of pairs won by each class, plus its decision values mapped to (−½, ½) to decide ties."""
    votes, confidence = np.zeros((2, len(values), n_classes))
    for column, (low, high) in enumerate(combinations(range(n_classes), 2)):
        for label, value in ((low, -values[:, column]), (high, values[:, column])):
            votes[:, label] += (value > 0) | ((value == 0) & (label == low))
            confidence[:, label] += value
    return votes + confidence / (2 * (np.abs(confidence) + 1))


def _refuse_sparse(X: Any) -> None:
    if sp.issparse(X):
        raise TypeError(
            "X must be dense for RefinedHyperplane, because standardising fills the table; got a sparse table. Pass "
            "X.toarray(), or reduce the columns first, e.g. with discrim.MarginPCA."
        )


def _checked_rule(rule: Any, d: int) -> str | list[list[int]]:
    """Return the name of a rule, or groups of feature numbers as lists."""
    if not isinstance(rule, str):
        groups = _groups(rule)
        grouping_of(groups, d)
        return groups
    require("rule", rule, named(*RULES, "best"))
    if rule == "exhaustive-splits" and d > MAX_FEATURES_TO_SPLIT:
        raise ValueError(
            f"X must have at most {MAX_FEATURES_TO_SPLIT} features for rule='exhaustive-splits', which fits 2^(d−1) − "
            f"1 SVMs; got {d}. Use rule='exhaustive-pairs': d(d−1)/2 SVMs."
        )
    return rule


def _groups(rule: Any) -> list[list[int]]:
    listed = rule.tolist() if isinstance(rule, np.ndarray) else rule
    if isinstance(listed, Sequence) and all(
        isinstance(group, (Sequence, np.ndarray)) and all(is_number(feature, WHOLE) for feature in group)
        for group in listed
    ):
        return [[int(feature) for feature in group] for group in listed]
    names = ", ".join(repr(name) for name in (*RULES, "best"))
    raise ValueError(f"rule must be {names}, or groups of column numbers such as [[0], [1, 2]]; got {rule!r}.")
