"""Evaluation of one method on one split: one fit, its components for every K, and every classifier on them.

Scale, reduction and classifier are fitted on the training rows only. If the components are nested, the fit at the
largest K of the grid serves every K; it is the largest of the grid, not of the missing trials, so that a resumed run
gives the same numbers. An error becomes a row with its reason. A row keeps the predicted class of every test row, so
that any score of any part of the rows can be computed later. The models of the first split are kept for the report.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import cache, cached_property
from importlib.metadata import version
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import issparse
from sklearn.base import clone
from sklearn.dummy import DummyClassifier
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import StratifiedGroupKFold
from sklearn.pipeline import Pipeline
from sklearn.utils.validation import has_fit_parameter

from discrim.evaluation.classifiers import Classifier
from discrim.evaluation.protocol import Split
from discrim.evaluation.results import ITSELF, Cell, Result, packed
from discrim.registry import Method, Sizes
from discrim.tables.table_error import plural

OWN_PREDICTION = Classifier(ITSELF, "the reduction's own prediction", DummyClassifier)


class Work(NamedTuple):
    """Task of a worker: all cells of a method on one split; `wanted` are the trials that are missing."""

    method: Method
    classifiers: Mapping[str, Classifier]
    split: int
    cells: tuple[Cell, ...]
    wanted: tuple[dict[str, Any], ...]

    def failed(self, error: BaseException) -> list[Result]:
        """Return a failed result for every wanted trial."""
        return [
            Result(trial, status="failed", reason=_in_one_line(error), versions=versions()) for trial in self.wanted
        ]


@dataclass(frozen=True, eq=False)
class TrialRows:
    """Rows of all trials of a run.

    y : class number of every row; classifiers compare numbers faster than text
    steps : unfitted transformers before every reduction
    seed : seed of random methods, which draw other numbers in each split
    groups : rows of one group stay together in the folds of a method's own cross-validation
    class_weight : weighting of the classifiers that can weight classes
    classes : names of the classes by number; None if y has names
    """

    X: Any
    y: NDArray[Any]
    weights: NDArray[Any] | None
    steps: list[Any]
    seed: int
    groups: NDArray[np.intp] | None = None
    class_weight: str | None = None
    classes: NDArray[Any] | None = None

    def split(self, number: int, split: Split, *, named: bool = False) -> SplitData:
        """Return the two parts of a split after the steps, which are fitted on the training part.

        named : labels are names of classes instead of numbers, as models that are kept for the report need
        """
        train, test = split
        labels = self.classes[self.y] if named and self.classes is not None else self.y
        parts = self.X[train], self.X[test]
        weight = (lambda part: None) if self.weights is None else self.weights.__getitem__
        for step in self.steps:
            fresh = fitted(clone(step), parts[0], None, weight(train))
            parts = fresh.transform(parts[0]), fresh.transform(parts[1])
        return SplitData(
            parts[0],
            parts[1],
            labels[train],
            labels[test],
            seed_of(self.seed, number),
            weight(train),
            weight(test),
            None if self.groups is None else self.groups[train],
            self.class_weight,
        )


@dataclass(frozen=True, eq=False)
class TrialFeatures:
    """Training and test features for one K, or the reason why there are none.

    refused : True if the method has fewer components
    scores : scores that the fitted method has itself (`trial_scores_`)
    model : fitted method; with fewer components than K only if its components are nested
    """

    train: Any = None
    test: Any = None
    seconds: float = 0.0
    status: str = "ok"
    reason: str = ""
    notes: tuple[str, ...] = ()
    refused: bool = False
    scores: Mapping[str, float] = field(default_factory=dict)
    model: Any = None


@dataclass(frozen=True, eq=False)
class SplitData:
    """Scaled rows and labels of one split, and weights if there are any."""

    train: Any
    test: Any
    y_train: NDArray[Any]
    y_test: NDArray[Any]
    seed: int
    train_weight: NDArray[Any] | None = None
    test_weight: NDArray[Any] | None = None
    train_groups: NDArray[Any] | None = None
    class_weight: str | None = None

    @cached_property
    def classes(self) -> NDArray[Any]:
        return np.unique(np.concatenate([self.y_train, self.y_test]))

    @cached_property
    def sizes(self) -> Sizes:
        n_rows, n_features = self.train.shape
        return Sizes(n_rows, n_features, len(self.classes))

    def fit(self, method: Method, k: int) -> Any:
        """Return the method with k components, fitted on the training rows."""
        model = keep_groups(method.estimator(k, self.seed), self.y_train, self.train_groups)
        return fitted(model, self.train, self.y_train, self.train_weight)


def evaluate(work: Work, rows: TrialRows, split: Split) -> tuple[list[Result], dict[int, Any]]:
    """Return the results of the wanted trials and, for the first split, the fitted model for every K.

    A caller's own estimators are not kept: nothing is known about their size, or whether a process can pass them on.
    Their labels are numbers in every split, because some estimators accept no text.
    """
    kept = work.split == 0 and not work.method.written
    data = rows.split(work.split, split, named=kept)
    features = features_by_count(work.method, sorted({cell.k for cell in work.cells}), data)
    found = [_result(trial, features[trial["k"]], work.classifiers[trial["classifier"]], data) for trial in work.wanted]
    return found, {k: one.model for k, one in features.items() if kept and one.model is not None}


def seed_of(seed: int, split: int) -> int:
    """Return a seed for each split, so that random methods draw other numbers in each."""
    return int(np.random.SeedSequence((seed, split)).generate_state(1)[0])


# ---------------------------------------------------------------------- features


def features_by_count(method: Method, counts: list[int], data: SplitData) -> dict[int, TrialFeatures]:
    """Return features for every K, from one fit if the components are nested."""
    if method.build is None:
        return dict.fromkeys(counts, TrialFeatures(data.train, data.test))
    why = ""
    if issparse(data.train) and not method.takes_sparse:
        why = f"{method.name} needs dense rows; the table is sparse and large"
    elif data.train_weight is not None and not takes_weights(method.estimator(1, 0)):
        why = f"{method.name} does not accept sample_weight"
    if why:
        return dict.fromkeys(counts, TrialFeatures(status="skipped", reason=why))
    most = method.most_components(data.sizes)
    sizes = f"{plural(data.sizes.n_rows, 'training row')}, {plural(data.sizes.n_features, 'feature')}"
    why = f"{method.name} has at most {plural(most, 'component')} for {sizes} and {data.sizes.n_classes} classes"
    beyond = TrialFeatures(status="skipped", reason=why)
    nested_from = 1 if method.resizes else method.nested_from(data.sizes)
    nested_from = np.inf if method.predicts_by_components else nested_from
    found: dict[int, TrialFeatures] = {}
    while left := [k for k in counts if k <= most and k not in found]:
        served = [k for k in left if k < nested_from][:1] or left
        found |= _fitted_for(method, served, data)
    # a K that the rows do not have is skipped, not failed, if a smaller K was found
    most_found = max((k for k, one in found.items() if one.status == "ok"), default=np.inf)
    for k, one in found.items():
        if one.refused and k > most_found:
            found[k] = replace(one, status="skipped")
    return {k: found.get(k, beyond) for k in counts}


def _fitted_for(method: Method, counts: list[int], data: SplitData) -> dict[int, TrialFeatures]:
    """Return features from one fit at the largest K; for a smaller K its first columns, or the resized model's.

    If the fit fails, only the largest K fails, because a smaller one may succeed; all fail if the method resizes.
    """
    began, largest = time.perf_counter(), max(counts)
    try:
        with _noted() as notes:
            model = data.fit(method, largest)
            train, test = model.transform(data.train), model.transform(data.test)
            if method.ours and train.shape[1] < largest:  # a line for K must have K components
                has = plural(train.shape[1], "component")
                raise ValueError(f"n_components={largest}, but {method.name} has {has} for these rows")
            parts = {k: (train, test) if k == largest else (train[:, :k], test[:, :k]) for k in counts}
            models = dict.fromkeys(counts, model)
            if method.resizes:
                models = {k: model if k == largest else model.with_components(k) for k in counts}
                parts = {k: (one.transform(data.train), one.transform(data.test)) for k, one in models.items()}
    except Exception as error:
        why = TrialFeatures(status="failed", reason=_in_one_line(error), refused=isinstance(error, ValueError))
        failed = counts if method.resizes else [largest]
        return dict.fromkeys(failed, replace(why, seconds=time.perf_counter() - began))
    own, seconds = getattr(model, "trial_scores_", {}), time.perf_counter() - began
    common: dict[str, Any] = {"seconds": seconds, "notes": tuple(notes), "scores": own}
    return {k: TrialFeatures(*parts[k], model=models[k], **common) for k in counts}


def keep_groups(model: Any, y: Any, groups: Any) -> Any:
    """Set the folds of a method's own cross-validation so that rows of one group stay together."""
    if groups is None:
        return model
    # scikit-learn refuses more folds than the largest class has rows
    most, kept = min(len(np.unique(groups)), np.unique(y, return_counts=True)[1].max()), {}
    if most < 2:
        return model
    for name, folds in numbers_of_folds(model).items():
        splitter = StratifiedGroupKFold(min(folds, most), shuffle=True, random_state=0)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)  # a class with fewer rows than folds
            # few groups of very different sizes may leave a fold empty
            kept[name] = [pair for pair in splitter.split(np.zeros(len(y)), y, groups) if len(pair[1])]
    return model.set_params(**kept)


def numbers_of_folds(model: Any, before: str = "") -> dict[str, int]:
    """Return the parameters of an estimator, or of the steps of a pipeline, that are numbers of folds."""
    if isinstance(model, Pipeline):
        found = [numbers_of_folds(step, f"{before}{name}__") for name, step in model.steps]
        return {name: folds for of_step in found for name, folds in of_step.items()}
    folds = model.get_params(deep=False).get("cv") if hasattr(model, "get_params") else None
    return {f"{before}cv": folds} if isinstance(folds, int) else {}


def fitted(model: Any, X: Any, y: Any, weights: NDArray[Any] | None) -> Any:
    """Return the fitted model, with weights if there are any and it accepts them."""
    if weights is None or not takes_weights(model):
        return model.fit(X, y)
    name = f"{model.steps[-1][0]}__sample_weight" if isinstance(model, Pipeline) else "sample_weight"
    return model.fit(X, y, **{name: weights})


def takes_weights(model: Any) -> bool:
    return bool(has_fit_parameter(model[-1] if isinstance(model, Pipeline) else model, "sample_weight"))


# ---------------------------------------------------------------------- classification


def _result(trial: Mapping[str, Any], features: TrialFeatures, classifier: Classifier, data: SplitData) -> Result:
    began = time.perf_counter()
    status, reason, notes, scores = features.status, features.reason, [*features.notes], {}
    if status == "ok" and (why := _not_judged(features, classifier, data)):
        status, reason = "skipped", why
    elif status == "ok":
        try:
            with _noted() as doubts:
                model = classifier.estimator(data.class_weight)
                if data.train_weight is not None and not takes_weights(model):
                    doubts.append(f"{classifier.name} does not accept sample_weight: fitted without it")
                own = classifier.name == ITSELF and features.model is not None
                model = features.model if own else fitted(model, features.train, data.y_train, data.train_weight)
                seen = data.test if own else features.test
                predicted = model.predict(seen)
                ranking = None
                if len(data.classes) == 2 and hasattr(model, "decision_function"):
                    ranking = np.asarray(model.decision_function(seen)).ravel()
                elif len(data.classes) == 2 and hasattr(model, "predict_proba"):
                    ranking = np.asarray(model.predict_proba(seen))[:, 1]
            scores = classification_scores(data.y_test, predicted, data.classes, data.test_weight)
            if ranking is not None:
                scores["auc"] = area_under_curve(data.y_test == data.classes[1], ranking, data.test_weight)
            notes += doubts
        except Exception as error:
            status, reason = "failed", _in_one_line(error)
        else:
            sizes = {"n_train": len(data.y_train), "n_test": len(data.y_test)}
            called = {"labels": packed(np.searchsorted(data.classes, predicted))}
            scores |= {**features.scores, **sizes, "fit_seconds": features.seconds, **called}
            if np.isscalar(getattr(model, "margin_", None)):  # of a refined hyperplane
                scores["margin"] = float(model.margin_)
    return Result(trial, scores, time.perf_counter() - began, status, reason, notes, versions())


def _not_judged(features: TrialFeatures, classifier: Classifier, data: SplitData) -> str:
    """Return the reason why the classifier cannot judge the features; empty if it can."""
    if issparse(features.train) and not classifier.takes_sparse:
        return f"{classifier.name} needs dense rows; the table is sparse and large"
    if len(data.y_train) < classifier.least_rows:
        return f"{classifier.name} needs {classifier.least_rows} training rows or more"
    if data.test_weight is not None and not data.test_weight.any():
        return "no test row of this split has a weight"  # every score would be 0/0
    return ""


def classification_scores(
    actual: NDArray[Any], predicted: NDArray[Any], classes: NDArray[Any], weights: NDArray[Any] | None = None
) -> dict[str, Any]:
    """Return accuracy, balanced accuracy, mean F measure, Matthews correlation and the counts by class."""
    # scikit-learn's confusion_matrix gives the same and takes longer than some of the classifiers
    cells = np.searchsorted(classes, actual) * len(classes) + np.searchsorted(classes, predicted)
    confusion = np.bincount(cells, weights, minlength=len(classes) ** 2).reshape(len(classes), -1)
    hits, of_class, called = np.diag(confusion), confusion.sum(axis=1), confusion.sum(axis=0)
    tested = of_class > 0
    f_measures = 2 * hits / np.where(of_class + called > 0, of_class + called, 1)
    total = of_class.sum()
    spread = (total**2 - (called**2).sum()) * (total**2 - (of_class**2).sum())  # 0 if either has one class only
    matthews = (hits.sum() * total - of_class @ called) / np.sqrt(spread) if spread > 0 else 0.0
    return {
        "accuracy": float(hits.sum() / total),
        "balanced_accuracy": float((hits[tested] / of_class[tested]).mean()),
        "f1": float(f_measures[tested].mean()),
        "mcc": float(matthews),
        "hits": hits.tolist(),
        "actual": of_class.tolist(),
        "predicted": called.tolist(),
    }


def area_under_curve(positive: NDArray[np.bool_], ranking: NDArray[Any], weights: NDArray[Any] | None = None) -> float:
    """Return the area under the ROC curve; ties count half; NaN if one of the two kinds is missing."""
    weight = np.ones(len(positive)) if weights is None else weights
    _, level = np.unique(ranking, return_inverse=True)
    ours, others = (np.bincount(level, weight * side, minlength=level.max() + 1) for side in (positive, ~positive))
    pairs = ours.sum() * others.sum()
    return float(ours @ (np.cumsum(others) - others / 2) / pairs) if pairs > 0 else float("nan")


@contextmanager
def _noted() -> Iterator[list[str]]:
    """Silence warnings; collect those about convergence as notes."""
    notes: list[str] = []
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("ignore")
        warnings.simplefilter("always", ConvergenceWarning)
        yield notes
    notes += sorted({f"did not converge: {str(one.message).splitlines()[0]}" for one in caught})


def _in_one_line(error: BaseException) -> str:
    """Return the error in one line."""
    return f"{type(error).__name__}: {' '.join(str(error).split()) or 'no message'}"


@cache
def versions() -> dict[str, str]:
    """Return the versions of the libraries that compute the results."""
    return {name: version(name) for name in ("discrim", "numpy", "scipy", "scikit-learn")}
