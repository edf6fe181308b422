"""The parameters of `RefinedHyperplane`, checked before anything is fitted."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from discrim.classifiers.merging_rules import MOST_FEATURES_TO_SPLIT, RULES, grouping_of
from discrim.classifiers.pair_refinement import Settings
from discrim.data.check_parameters import class_factors, require_choice, require_positive


def checked_settings(model: Any) -> Settings:
    """What bears on one pair of classes, from a model that has seen its classes and columns."""
    require_choice("constant_features", model.constant_features, ("drop", "scale"))
    if model.reference_class is not None:
        require_choice("reference_class", model.reference_class, ("minority", "majority"))
    for name in ("C", "tol"):
        require_positive(name, getattr(model, name))
    _require_whole("max_iter", model.max_iter, 1)
    _require_whole("n_folds", model.n_folds, 2)
    class_factors(model.class_weight, model.classes_, np.ones(len(model.classes_)))
    _require_classifier(model.estimator)
    values = {name: getattr(model, name) for name in Settings.__dataclass_fields__}
    return Settings(**{**values, "rule": _checked_rule(model.rule, model.n_features_in_)})


def _checked_rule(rule: Any, d: int) -> str | list[list[int]]:
    """The name of a rule, or groups of feature numbers as lists."""
    if not isinstance(rule, str):
        groups = _groups(rule)
        grouping_of(groups, d)
        return groups
    require_choice("rule", rule, (*RULES, "best"))
    if rule == "exhaustive-splits" and d > MOST_FEATURES_TO_SPLIT:
        raise ValueError(
            f"rule='exhaustive-splits' fits 2^(d−1) − 1 SVMs, and X has d = {d} "
            f"features. Pass at most {MOST_FEATURES_TO_SPLIT}, or rule='exhaustive-pairs': d(d−1)/2 SVMs."
        )
    return rule


def _groups(rule: Any) -> list[list[int]]:
    listed = rule.tolist() if isinstance(rule, np.ndarray) else rule
    if isinstance(listed, Sequence) and all(
        isinstance(group, (Sequence, np.ndarray)) and all(_is_whole(feature) for feature in group) for group in listed
    ):
        return [[int(feature) for feature in group] for group in listed]
    names = ", ".join(repr(name) for name in (*RULES, "best"))
    raise ValueError(f"rule={rule!r} came; possible are {names}, or groups of column numbers such as [[0], [1, 2]].")


def _is_whole(value: Any) -> bool:
    return isinstance(value, (int, np.integer)) and not isinstance(value, bool)


def _require_whole(name: str, value: Any, least: int) -> None:
    if not _is_whole(value) or value < least:
        raise ValueError(f"{name}={value!r} came; possible is an int ≥ {least}.")


def _require_classifier(estimator: Any) -> None:
    if estimator is not None and (isinstance(estimator, type) or not hasattr(estimator, "fit")):
        came = f"the class {estimator.__name__}" if isinstance(estimator, type) else repr(estimator)
        raise TypeError(
            f"estimator must be a linear classifier with coef_ and intercept_ once fitted, but {came} came. Pass an "
            "instance such as LinearSVC() or LogisticRegression(), or None for Fisher's discriminant."
        )
