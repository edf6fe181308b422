"""One method on one split: a fit, its components cut to every K, and every classifier on them.

Everything that learns (scale, reduction, classifier) sees the training rows alone. Where the components are nested the
fit at the largest K serves all; it is always the largest K of the grid, not of what is left to do, so that a run that
was stopped and taken up again gives the very same numbers. What goes wrong becomes a row with its reason. A row keeps
the class given to every test row, so that scores of any kind, and of any part of the rows, follow from it later.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import cache
from importlib.metadata import version
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import issparse
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.pipeline import Pipeline
from sklearn.utils.validation import has_fit_parameter

from discrim.evaluation.classifiers import Classifier
from discrim.evaluation.grid import Cell, Work, packed
from discrim.evaluation.methods import Method, Sizes
from discrim.evaluation.protocol import Split

Row = dict[str, Any]


@dataclass(frozen=True, eq=False)
class TrialFeatures:
    """Training and test features for one K, or why there are none; `refused`: the method has not so many.

    scores : what the fitted method says of itself that belongs to the results (`trial_scores_`)
    """

    train: Any = None
    test: Any = None
    seconds: float = 0.0
    status: str = "ok"
    reason: str = ""
    notes: tuple[str, ...] = ()
    refused: bool = False
    scores: Mapping[str, float] = field(default_factory=dict)


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
    classes: NDArray[Any] = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "classes", np.unique(np.concatenate([self.y_train, self.y_test])))

    @property
    def sizes(self) -> Sizes:
        n_rows, n_features = self.train.shape
        return Sizes(n_rows, n_features, len(self.classes))


def evaluate(
    work: Work,
    X: Any,
    y: NDArray[Any],
    weights: NDArray[Any] | None,
    split: Split,
    steps: Sequence[Any],
    seed: int,
) -> list[Row]:
    """The rows of the wanted trials; `steps` are unfitted transformers that come before every reduction."""
    wanted = {Cell(trial["method"], trial["k"], trial["classifier"]): trial for trial in work.wanted}
    data = split_data(X, y, split, steps, seed_of(seed, work.split), weights)
    counts = sorted({cell.k for cell in work.cells})
    features = features_by_count(work.method, counts, data)
    return [_row(trial, features[cell.k], work.classifiers[cell.classifier], data) for cell, trial in wanted.items()]


def split_data(
    X: Any, y: NDArray[Any], split: Split, steps: Sequence[Any], seed: int, weights: NDArray[Any] | None = None
) -> SplitData:
    """The two parts of a split, after the steps that were fitted on the training part (weighted, where they can be)."""
    train, test = split
    parts = X[train], X[test]
    weighted = (None, None) if weights is None else (weights[train], weights[test])
    for step in steps:
        fresh = fitted(clone(step), parts[0], None, weighted[0])
        parts = fresh.transform(parts[0]), fresh.transform(parts[1])
    return SplitData(*parts, y[train], y[test], seed, *weighted)


def seed_of(seed: int, split: int) -> int:
    """A seed for each split, so that random methods draw anew in each."""
    return int(np.random.SeedSequence((seed, split)).generate_state(1)[0])


# ---------------------------------------------------------------------- features


def features_by_count(method: Method, counts: list[int], data: SplitData) -> dict[int, TrialFeatures]:
    """Features for every K, by one fit where the components are nested."""
    if method.build is None:
        return {k: TrialFeatures(data.train, data.test) for k in counts}
    if issparse(data.train) and not method.takes_sparse:
        why = TrialFeatures(
            status="skipped", reason=f"{method.name} needs dense rows, and the table is sparse and large"
        )
        return dict.fromkeys(counts, why)
    if data.train_weight is not None and not takes_weights(method.estimator(1, 0)):
        why = TrialFeatures(status="skipped", reason=f"{method.name} takes no sample_weight")
        return dict.fromkeys(counts, why)
    most = method.most_components(data.sizes)
    beyond = TrialFeatures(status="skipped", reason=_too_many(method, most, data.sizes))
    possible = [k for k in counts if k <= most]
    found = _fitted_for(method, possible, data) if method.resizes and possible else _one_by_one(method, possible, data)
    most_found = max((k for k, one in found.items() if one.status == "ok"), default=np.inf)
    found = {k: _skipped(one) if one.refused and k > most_found else one for k, one in found.items()}
    return {k: found.get(k, beyond) for k in counts}


def _too_many(method: Method, most: int, sizes: Sizes) -> str:
    return (
        f"{method.name} has at most {most} component{'' if most == 1 else 's'} for {sizes.n_rows} training rows, "
        f"{sizes.n_features} features and {sizes.n_classes} classes"
    )


def _one_by_one(method: Method, counts: list[int], data: SplitData) -> dict[int, TrialFeatures]:
    """A fit for each K up to that from which on they are nested, and one for the rest."""
    alone = [k for k in counts if k < method.nested_from(data.sizes)]
    return {k: _fitted(method, k, data) for k in alone} | _nested(method, counts[len(alone) :], data)


def _nested(method: Method, counts: list[int], data: SplitData) -> dict[int, TrialFeatures]:
    """One fit at the largest K that the rows allow; a larger one that was refused is skipped with what was said."""
    found: dict[int, TrialFeatures] = {}
    for at, largest in reversed(list(enumerate(counts))):
        found[largest] = _fitted(method, largest, data)
        if found[largest].status == "ok":
            smaller = {k: _first(found[largest], k) for k in counts[:at]}
            return {**found, **smaller}
    return found


def _first(features: TrialFeatures, k: int) -> TrialFeatures:
    return replace(features, train=features.train[:, :k], test=features.test[:, :k])


def _skipped(features: TrialFeatures) -> TrialFeatures:
    """More components than the rows have: nothing failed, where fewer can be had."""
    return replace(features, status="skipped")


def _fitted(method: Method, k: int, data: SplitData) -> TrialFeatures:
    return _fitted_for(method, [k], data)[k]


def _fitted_for(method: Method, counts: list[int], data: SplitData) -> dict[int, TrialFeatures]:
    """Features by a fit at the largest K; for others by what the fitted method tells of them."""
    began, largest = time.perf_counter(), max(counts)
    try:
        with _noted() as notes:
            model = fitted(method.estimator(largest, data.seed), data.train, data.y_train, data.train_weight)
            models = {k: model if k == largest else model.with_components(k) for k in counts}
            parts = {k: (one.transform(data.train), one.transform(data.test)) for k, one in models.items()}
    except Exception as error:
        why = TrialFeatures(status="failed", reason=_in_one_line(error), refused=isinstance(error, ValueError))
        return dict.fromkeys(counts, replace(why, seconds=time.perf_counter() - began))
    own, seconds = getattr(model, "trial_scores_", {}), time.perf_counter() - began
    return {k: TrialFeatures(*parts[k], seconds, notes=tuple(notes), scores=own) for k in counts}


def fitted(model: Any, X: Any, y: Any, weights: NDArray[Any] | None) -> Any:
    """The model fitted, with weights where rows have them and it takes them."""
    if weights is None or not takes_weights(model):
        return model.fit(X, y)
    name = f"{model.steps[-1][0]}__sample_weight" if isinstance(model, Pipeline) else "sample_weight"
    return model.fit(X, y, **{name: weights})


def takes_weights(model: Any) -> bool:
    return bool(has_fit_parameter(model[-1] if isinstance(model, Pipeline) else model, "sample_weight"))


# ---------------------------------------------------------------------- classification


def _row(trial: Row, features: TrialFeatures, classifier: Classifier, data: SplitData) -> Row:
    """The result row of one trial."""
    began = time.perf_counter()
    status, reason, notes, scores = features.status, features.reason, [*features.notes], {}
    if status == "ok" and issparse(features.train) and not classifier.takes_sparse:
        status, reason = "skipped", f"{classifier.name} needs dense rows, and the table is sparse and large"
    elif status == "ok" and len(data.y_train) < classifier.least_rows:
        status, reason = "skipped", f"{classifier.name} needs {classifier.least_rows} training rows or more"
    elif status == "ok" and data.test_weight is not None and not data.test_weight.any():
        status, reason = "skipped", "no test row of this split has a weight"  # every score would be 0/0
    elif status == "ok":
        try:
            with _noted() as doubts:
                model = classifier.build()
                if data.train_weight is not None and not takes_weights(model):
                    doubts.append(f"{classifier.name} takes no sample_weight: fitted without, scored with weights")
                model = fitted(model, features.train, data.y_train, data.train_weight)
                predicted = model.predict(features.test)
            scores = classification_scores(data.y_test, predicted, data.classes, data.test_weight)
            notes += doubts
        except Exception as error:
            status, reason = "failed", _in_one_line(error)
        else:
            sizes = {"n_train": len(data.y_train), "n_test": len(data.y_test)}
            called = {"labels": packed(np.searchsorted(data.classes, predicted))}
            scores |= {**features.scores, **sizes, "fit_seconds": features.seconds} | called | margin_of(model)
    return {
        "trial": trial,
        "scores": scores,
        "seconds": time.perf_counter() - began,
        "status": status,
        "reason": reason,
        "notes": notes,
        "versions": versions(),
    }


def classification_scores(
    actual: NDArray[Any], predicted: NDArray[Any], classes: NDArray[Any], weights: NDArray[Any] | None = None
) -> Row:
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
        "hits": hits.tolist(),
        "actual": of_class.tolist(),
        "predicted": called.tolist(),
    }


def margin_of(model: Any) -> Row:
    """A refined hyperplane's margin belongs to its scores."""
    return {"margin": float(model.margin_)} if np.isscalar(getattr(model, "margin_", None)) else {}


@contextmanager
def _noted() -> Iterator[list[str]]:
    """Warnings are no results and are kept off the screen; that something did not converge is noted."""
    notes: list[str] = []
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("ignore")
        warnings.simplefilter("always", ConvergenceWarning)
        yield notes
    notes += sorted({f"did not converge: {str(one.message).splitlines()[0]}" for one in caught})


def _in_one_line(error: Exception) -> str:
    """The error in one line."""
    return f"{type(error).__name__}: {' '.join(str(error).split()) or 'no message'}"


@cache
def versions() -> dict[str, str]:
    """What the numbers depend on beside the trial."""
    return {name: version(name) for name in ("discrim", "numpy", "scipy", "scikit-learn")}
