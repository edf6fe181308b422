"""One method on one split: a fit, its components cut to every K, and every classifier on them.

Everything that learns (scale, reduction, classifier) sees the training rows alone. Where the components are nested the
fit at the largest K serves all; it is always the largest K of the grid, not of what is left to do, so that a run that
was stopped and taken up again gives the very same numbers. What goes wrong becomes a row with its reason. A row keeps
the class given to every test row, so that scores of any kind, and of any part of the rows, follow from it later.
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
from discrim.evaluation.methods import Method, Sizes
from discrim.evaluation.protocol import Split
from discrim.evaluation.results import ITSELF, Cell, Result, packed
from discrim.tables.table_error import plural

OWN_PREDICTION = Classifier(ITSELF, "the reduction's own prediction", DummyClassifier)


class Work(NamedTuple):
    """What one worker does at once: all cells of a method on one split. `wanted` are those not done yet."""

    method: Method
    classifiers: Mapping[str, Classifier]
    split: int
    cells: tuple[Cell, ...]
    wanted: tuple[dict[str, Any], ...]

    def failed(self, error: BaseException) -> list[Result]:
        """The fate of all of them, where it was met before any was reached."""
        return [
            Result(trial, status="failed", reason=_in_one_line(error), versions=versions()) for trial in self.wanted
        ]


@dataclass(frozen=True, eq=False)
class TrialRows:
    """What all trials of a run are done on.

    steps : unfitted transformers that come before every reduction
    seed : of random methods, which draw anew in each split
    groups : rows of one group are kept together in what a method chooses by folds of its own, too
    class_weight : of the classifiers that can weight classes
    """

    X: Any
    y: NDArray[Any]
    weights: NDArray[Any] | None
    steps: list[Any]
    seed: int
    groups: NDArray[np.intp] | None = None
    class_weight: str | None = None

    def split(self, number: int, split: Split) -> SplitData:
        """The two parts of a split, after the steps that were fitted on the training part (weighted, if they can)."""
        train, test = split
        parts = self.X[train], self.X[test]
        weight = (lambda part: None) if self.weights is None else self.weights.__getitem__
        for step in self.steps:
            fresh = fitted(clone(step), parts[0], None, weight(train))
            parts = fresh.transform(parts[0]), fresh.transform(parts[1])
        return SplitData(
            parts[0],
            parts[1],
            self.y[train],
            self.y[test],
            seed_of(self.seed, number),
            weight(train),
            weight(test),
            None if self.groups is None else self.groups[train],
            self.class_weight,
        )


@dataclass(frozen=True, eq=False)
class TrialFeatures:
    """Training and test features for one K, or why there are none; `refused`: the method has not so many.

    scores : what the fitted method says of itself that belongs to the results (`trial_scores_`)
    model : the fitted method, for its own predictions
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
    """Scaled rows and labels of one split, and weights where rows have them."""

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


def evaluate(work: Work, rows: TrialRows, split: Split) -> list[Result]:
    """The results of the wanted trials."""
    data = rows.split(work.split, split)
    features = features_by_count(work.method, sorted({cell.k for cell in work.cells}), data)
    return [_result(trial, features[trial["k"]], work.classifiers[trial["classifier"]], data) for trial in work.wanted]


def seed_of(seed: int, split: int) -> int:
    """A seed for each split, so that random methods draw anew in each."""
    return int(np.random.SeedSequence((seed, split)).generate_state(1)[0])


# ---------------------------------------------------------------------- features


def features_by_count(method: Method, counts: list[int], data: SplitData) -> dict[int, TrialFeatures]:
    """Features for every K, by one fit where the components are nested."""
    if method.build is None:
        return dict.fromkeys(counts, TrialFeatures(data.train, data.test))
    why = ""
    if issparse(data.train) and not method.takes_sparse:
        why = f"{method.name} needs dense rows, and the table is sparse and large"
    elif data.train_weight is not None and not takes_weights(method.estimator(1, 0)):
        why = f"{method.name} takes no sample_weight"
    if why:
        return dict.fromkeys(counts, TrialFeatures(status="skipped", reason=why))
    most = method.most_components(data.sizes)
    sizes = f"{plural(data.sizes.n_rows, 'training row')}, {plural(data.sizes.n_features, 'feature')}"
    told = f"{method.name} has at most {plural(most, 'component')} for {sizes} and {data.sizes.n_classes} classes"
    beyond = TrialFeatures(status="skipped", reason=told)
    nested_from = 1 if method.resizes else method.nested_from(data.sizes)
    nested_from = np.inf if method.predicts_by_components else nested_from
    found: dict[int, TrialFeatures] = {}
    while left := [k for k in counts if k <= most and k not in found]:
        served = [k for k in left if k < nested_from][:1] or left
        found |= _fitted_for(method, served, data)
    # more components than the rows have: nothing failed, where fewer can be had
    most_found = max((k for k, one in found.items() if one.status == "ok"), default=np.inf)
    for k, one in found.items():
        if one.refused and k > most_found:
            found[k] = replace(one, status="skipped")
    return {k: found.get(k, beyond) for k in counts}


def _fitted_for(method: Method, counts: list[int], data: SplitData) -> dict[int, TrialFeatures]:
    """Features by one fit at the largest K: for fewer its first columns, or what the fitted method tells of them.

    Where the fit fails, that is said of the largest K alone, since fewer may be had; of all where it served all.
    """
    began, largest = time.perf_counter(), max(counts)
    try:
        with _noted() as notes:
            unfitted = keep_groups(method.estimator(largest, data.seed), data.y_train, data.train_groups)
            model = fitted(unfitted, data.train, data.y_train, data.train_weight)
            train, test = model.transform(data.train), model.transform(data.test)
            if method.ours and train.shape[1] < largest:  # a line for K holds K components
                has = plural(train.shape[1], "component")
                raise ValueError(f"n_components={largest}, but {method.name} has {has} for these rows")
            parts = {k: (train, test) if k == largest else (train[:, :k], test[:, :k]) for k in counts}
            if method.resizes:
                models = {k: model.with_components(k) for k in counts if k < largest}
                parts |= {k: (one.transform(data.train), one.transform(data.test)) for k, one in models.items()}
    except Exception as error:
        why = TrialFeatures(status="failed", reason=_in_one_line(error), refused=isinstance(error, ValueError))
        failed = counts if method.resizes else [largest]
        return dict.fromkeys(failed, replace(why, seconds=time.perf_counter() - began))
    own, seconds = getattr(model, "trial_scores_", {}), time.perf_counter() - began
    return {k: TrialFeatures(*parts[k], seconds, notes=tuple(notes), scores=own, model=model) for k in counts}


def keep_groups(model: Any, y: Any, groups: Any) -> Any:
    """Set the folds by which a method chooses its parameters, so that rows of one group stay together."""
    if groups is None or (n_groups := len(np.unique(groups))) < 2:
        return model
    kept = {}
    for name, folds in numbers_of_folds(model).items():
        splitter = StratifiedGroupKFold(min(folds, n_groups), shuffle=True, random_state=0)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)  # a class with fewer rows than folds
            kept[name] = list(splitter.split(np.zeros(len(y)), y, groups))
    return model.set_params(**kept)


def numbers_of_folds(model: Any, before: str = "") -> dict[str, int]:
    """The parameters of an estimator, or of the steps of a pipeline, that are numbers of folds."""
    if isinstance(model, Pipeline):
        found = [numbers_of_folds(step, f"{before}{name}__") for name, step in model.steps]
        return {name: folds for of_step in found for name, folds in of_step.items()}
    folds = model.get_params(deep=False).get("cv") if hasattr(model, "get_params") else None
    return {f"{before}cv": folds} if isinstance(folds, int) else {}


def fitted(model: Any, X: Any, y: Any, weights: NDArray[Any] | None) -> Any:
    """The model fitted, with weights where rows have them and it takes them."""
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
                    doubts.append(f"{classifier.name} takes no sample_weight: fitted without, scored with weights")
                own = classifier.name == ITSELF and features.model is not None
                model = features.model if own else fitted(model, features.train, data.y_train, data.train_weight)
                seen = data.test if own else features.test
                predicted = model.predict(seen)
                ranking = _ranking(model, seen) if len(data.classes) == 2 else None
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
    """Why the classifier cannot judge the features; empty where it can."""
    if issparse(features.train) and not classifier.takes_sparse:
        return f"{classifier.name} needs dense rows, and the table is sparse and large"
    if len(data.y_train) < classifier.least_rows:
        return f"{classifier.name} needs {classifier.least_rows} training rows or more"
    if data.test_weight is not None and not data.test_weight.any():
        return "no test row of this split has a weight"  # every score would be 0/0
    return ""


def classification_scores(
    actual: NDArray[Any], predicted: NDArray[Any], classes: NDArray[Any], weights: NDArray[Any] | None = None
) -> dict[str, Any]:
    """Accuracy, balanced accuracy, mean F over classes, and the counts (by class) from which any of them follow."""
    # scikit-learn's confusion_matrix gives the same, and takes longer than some of the classifiers
    cells = np.searchsorted(classes, actual) * len(classes) + np.searchsorted(classes, predicted)
    confusion = np.bincount(cells, weights, minlength=len(classes) ** 2).reshape(len(classes), -1)
    hits, of_class, called = np.diag(confusion), confusion.sum(axis=1), confusion.sum(axis=0)
    tested = of_class > 0
    f_measures = 2 * hits / np.where(of_class + called > 0, of_class + called, 1)
    return {
        "accuracy": float(hits.sum() / of_class.sum()),
        "balanced_accuracy": float((hits[tested] / of_class[tested]).mean()),
        "f1": float(f_measures[tested].mean()),
        "mcc": matthews(hits.sum(), of_class, called),
        "hits": hits.tolist(),
        "actual": of_class.tolist(),
        "predicted": called.tolist(),
    }


def matthews(right: float, of_class: NDArray[Any], called: NDArray[Any]) -> float:
    """Matthews correlation of predicted and actual classes; 0 where all rows are of one class, or called so."""
    total = of_class.sum()
    spread = (total**2 - (called**2).sum()) * (total**2 - (of_class**2).sum())
    return float((right * total - of_class @ called) / np.sqrt(spread)) if spread > 0 else 0.0


def area_under_curve(positive: NDArray[np.bool_], ranking: NDArray[Any], weights: NDArray[Any] | None = None) -> float:
    """Chance that a positive row ranks above another one, ties counted half; NaN where either kind is missing."""
    weight = np.ones(len(positive)) if weights is None else weights
    _, level = np.unique(ranking, return_inverse=True)
    ours, others = (np.bincount(level, weight * side, minlength=level.max() + 1) for side in (positive, ~positive))
    pairs = ours.sum() * others.sum()
    return float(ours @ (np.cumsum(others) - others / 2) / pairs) if pairs > 0 else float("nan")


def _ranking(model: Any, X: Any) -> NDArray[Any] | None:
    """A number for each row that rises with the second class; None where the classifier gives none."""
    if hasattr(model, "decision_function"):
        return np.asarray(model.decision_function(X)).ravel()
    return np.asarray(model.predict_proba(X))[:, 1] if hasattr(model, "predict_proba") else None


@contextmanager
def _noted() -> Iterator[list[str]]:
    """Warnings are no results and are kept off the screen; that something did not converge is noted."""
    notes: list[str] = []
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("ignore")
        warnings.simplefilter("always", ConvergenceWarning)
        yield notes
    notes += sorted({f"did not converge: {str(one.message).splitlines()[0]}" for one in caught})


def _in_one_line(error: BaseException) -> str:
    """The error in one line."""
    return f"{type(error).__name__}: {' '.join(str(error).split()) or 'no message'}"


@cache
def versions() -> dict[str, str]:
    """What the numbers depend on beside the trial."""
    return {name: version(name) for name in ("discrim", "numpy", "scipy", "scikit-learn")}
