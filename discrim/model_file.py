"""Fitted models as files: plain numbers and JSON with a checksum (`plain_format.py`).

A model is a reducer of discrim, or a scikit-learn pipeline of an imputer, a scaler, a reducer and a classifier. If it
was fitted by partial_fit, the file includes its statistics, and a further partial_fit continues.
"""

from __future__ import annotations

import os
import warnings
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.pipeline import Pipeline
from sklearn.utils.validation import check_is_fitted

from discrim.classifier_states import CLASSIFIERS, plain_state, restore
from discrim.core.classifier_rule import ClassifierRule, MeanRule
from discrim.core.cross_validation import PathScores
from discrim.core.generalisation import HeldOut
from discrim.core.kernel_choice import Candidate, Choice, ChosenKernel, HeldOutScores, PosteriorRule, TriedKernel
from discrim.core.landmarks import FeatureSpace, FixedFeatures, LandmarkKernel
from discrim.core.moments.class_moments import ClassMoments
from discrim.core.moments.few_rows import FewRows
from discrim.core.moments.gather import Gathering, Statistics
from discrim.core.moments.row_sample import RowSample
from discrim.core.posterior_rule import HeldOutRows, Look
from discrim.estimators.base import Reducer
from discrim.estimators.bayes_error_lda import Pairing
from discrim.estimators.discriminant import CentroidRule
from discrim.estimators.map_statistics import MapOfStatistics
from discrim.estimators.predictor import Predictor, RowLimits
from discrim.plain_format import PlainFormat, PlainFormatError
from discrim.registry import PUBLIC, load_target
from discrim.tables.writing import whole_file

# modules of the estimators of a model file: reducers of the registry, their parts, steps before them, classifiers; and
# of the folds that a reducer may have for `cv`
_ESTIMATORS: dict[str, str] = {
    **{name: entry.target for name, entry in PUBLIC.items() if entry.saved},
    "ShiftedPCA": "discrim.estimators.margin_pca:ShiftedPCA",
    "Predictor": "discrim.estimators.predictor:Predictor",
    "LinearMap": "discrim.estimators.pipeline:LinearMap",
    "HashKFold": "discrim.core.row_hash:HashKFold",
    "SimpleImputer": "sklearn.impute:SimpleImputer",
    **{name: f"sklearn.preprocessing:{name}" for name in ("StandardScaler", "MinMaxScaler", "MaxAbsScaler")},
    **{name: f"{module}:{name}" for name, module in CLASSIFIERS.items()},
    "KernelNaiveBayes": "discrim.estimators.classifiers:KernelNaiveBayes",
    "UnitMeanSquare": "discrim.evaluation.classifiers:UnitMeanSquare",
}


class ModelFileError(PlainFormatError):
    """Error for a file that is not a model of discrim, is damaged, or was written by another version."""


class _EstimatorFormat(PlainFormat):
    """Pipelines and estimators, fitted or not, and plain values."""

    error = ModelFileError
    possible = (
        "the reducers of discrim with numbers, text and HashKFold for parameters, alone or in a pipeline after "
        "SimpleImputer, StandardScaler, MinMaxScaler or MaxAbsScaler, with a classifier after it: "
        f"{', '.join(name for name, module in CLASSIFIERS.items() if module.startswith('sklearn'))}"
    )
    remedy = "Fit and save it again."

    def _described(self, value: Any, arrays: list[np.ndarray], place: str) -> Any:
        if isinstance(value, Pipeline):
            steps = [
                [name, self._described(step, arrays, f"{place}.{name}")] for name, step in _flat_steps(value.steps)
            ]
            return {"pipeline": steps}
        kind = type(value).__name__
        if kind in _ESTIMATORS and load_target(_ESTIMATORS[kind]) is type(value):
            return {"estimator": kind, "state": self._described(_state(value), arrays, kind)}
        return super()._described(value, arrays, place)

    def _restored(self, value: Any, arrays: list[np.ndarray]) -> Any:
        if isinstance(value, dict) and "pipeline" in value:
            return Pipeline([(name, self._restored(step, arrays)) for name, step in _flat_steps(value["pipeline"])])
        if isinstance(value, dict) and "estimator" in value:
            kind, state = load_target(_ESTIMATORS[value["estimator"]]), self._restored(value["state"], arrays)
            if kind.__name__ in CLASSIFIERS:
                return restore(kind, state)
            estimator = kind.__new__(kind)
            vars(estimator).update(_with_rule(state))
            if kind is Predictor:
                estimator.pipeline = estimator.pipeline_
            return estimator
        return super()._restored(value, arrays)


class _ModelFormat(_EstimatorFormat):
    """Fitted models only."""

    def _require_whole(self, value: Any) -> None:
        steps = [one for _, one in value.steps] if isinstance(value, Pipeline) else [value]
        for step in steps:
            if not isinstance(step, BaseEstimator) or isinstance(step, Pipeline):
                raise TypeError(f"a step must be an estimator; got a {type(step).__name__}")
            check_is_fitted(step)
        _require_model(steps)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # the row has no column names
            row = np.zeros((1, value.n_features_in_))  # a forged model can have every attribute and still not work
            for use in ("transform", "predict", "predict_proba", "unusual"):
                if hasattr(value, use):
                    getattr(value, use)(row)


_VALUES = (
    *(Statistics, Gathering, FixedFeatures, ClassMoments, FewRows, RowSample),
    *(CentroidRule, PathScores, HeldOut, Pairing, RowLimits),
    *(ChosenKernel, TriedKernel, PosteriorRule, ClassifierRule, MeanRule, HeldOutRows, LandmarkKernel),
    *(Look, Choice, Candidate, HeldOutScores, FeatureSpace),  # state of a map fitted by partial_fit
)
# state of RefinedHyperplane, given as text, so its module is not imported
_OF_REFINEMENT = (
    "discrim.estimators.pair_refinement.Hyperplane",
    "discrim.estimators.pair_refinement.Refinement",
    "discrim.estimators.pair_refinement.Standard",
)
FORMAT = _ModelFormat("model", 2, _VALUES)
UNFITTED = _EstimatorFormat("estimator", 1, _VALUES)


def save(model: Any, path: str | os.PathLike[str], *, about: Mapping[str, Any] | None = None) -> None:
    """Write a fitted model to a file atomically.

    Parameters
    ----------
    model : estimator
        A fitted reducer of discrim, or a fitted pipeline of scikit-learn's imputer and scalers, a reducer and a
        classifier; either of the last two may be missing. Possible classifiers are logistic regression, nearest
        neighbours, SVC, LinearSVC, random forest, decision tree, Gaussian naive Bayes and LDA.
    path : str or path
        The file.
    about : dict, default=None
        Text, numbers and lists to store with it, such as the names of the columns.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from discrim import PCA, save
    >>> save(PCA(2).fit(load_iris().data), "iris.discrim")  # doctest: +SKIP
    """
    check_is_fitted(model)
    if isinstance(model, Pipeline):
        _require_model([step for _, step in _flat_steps(model.steps)])
    content = FORMAT.to_bytes(model, about)
    with whole_file(path) as handle:
        handle.write(content)


def load(path: str | os.PathLike[str]) -> Any:
    """Read a model from a file; nothing in the file is executed.

    Parameters
    ----------
    path : str or path
        The file.

    Returns
    -------
    estimator
        The fitted model.

    Examples
    --------
    >>> from discrim import load
    >>> model = load("iris.discrim")  # doctest: +SKIP
    """
    return FORMAT.from_bytes(Path(path).read_bytes(), path)


def trusted_types() -> list[str]:
    """Return the types of a fitted estimator of discrim, for readers that load only trusted types.

    Returns
    -------
    list of str
        Qualified names for skops (`skops.io.load(…, trusted=…)`) and MLflow (`skops_trusted_types=…`). Each type only
        holds numbers and text.

    Examples
    --------
    >>> from discrim import trusted_types
    >>> "discrim.estimators.pca.PCA" in trusted_types()
    True
    """
    targets = [*_ESTIMATORS.values(), *(one.target for one in PUBLIC.values() if one.classifies)]
    ours = [target.replace(":", ".") for target in [*targets, *_OF_REFINEMENT] if target.startswith("discrim.")]
    return sorted({*ours, *(f"{one.__module__}.{one.__qualname__}" for one in _VALUES)})


def about(path: str | os.PathLike[str]) -> dict[str, Any]:
    """Return the `about` values stored with the model."""
    return FORMAT.about(Path(path).read_bytes(), path)


def _flat_steps(steps: Any) -> list[tuple[str, Any]]:
    """Return the steps of a pipeline and of those inside it as one list with unique names.

    A pipeline inside a pipeline is an estimator or, in a file, a map with the key "pipeline". scikit-learn queries the
    inner level several times at every level, so the time would grow exponentially with the depth.
    """
    flat: list[tuple[str, Any]] = []
    waiting = list(reversed(list(steps)))
    while waiting:
        name, step = waiting.pop()
        if isinstance(step, Pipeline):
            waiting.extend(reversed(step.steps))
        elif isinstance(step, dict) and "pipeline" in step:
            waiting.extend(reversed(step["pipeline"]))
        else:
            flat.append((name, step))
    counted = Counter(name for name, _ in flat)
    taken = {name for name, count in counted.items() if count == 1}
    return [(name if name in taken else f"{name}-{at}", step) for at, (name, step) in enumerate(flat, start=1)]


def _require_model(steps: list[Any]) -> None:
    """Raise unless one of the steps is a reducer of discrim, or the last is a classifier."""
    ours = any(type(step).__module__.startswith("discrim.estimators") for step in steps)
    if not ours and not (steps and type(steps[-1]).__name__ in CLASSIFIERS):
        kinds = ", ".join(type(step).__name__ for step in steps)
        raise TypeError(f"A model must hold a reducer of discrim or a classifier; got {kinds or 'no steps'}.")


def _with_rule(state: dict[str, Any]) -> dict[str, Any]:
    """Return an estimator's state; older files of this format have the centroid rule as three arrays."""
    if "_centroids" not in state:
        return state
    rule = CentroidRule(*(state.pop(name) for name in ("_discriminants", "_centroids", "_log_priors")))
    return {**state, "_rule": rule}


def _state(estimator: Any) -> dict[str, Any]:
    """Return the attributes of an estimator; after partial_fit, its directions included."""
    if isinstance(estimator, Reducer | MapOfStatistics) and estimator.__sklearn_is_fitted__():
        estimator._require_solution()
    known = plain_state(estimator) if type(estimator).__name__ in CLASSIFIERS else vars(estimator)
    left_out = ["_skl_callbacks", "_held_out", "_choice"]  # values for each training row
    if isinstance(estimator, Predictor):
        left_out.append("pipeline")  # the fitted one has the same parameters
    return {name: known[name] for name in known if name not in left_out}
