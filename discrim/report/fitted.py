"""Attributes of a fitted transformer of discrim or scikit-learn, or of a pipeline that ends in one."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.sparse import issparse
from sklearn.pipeline import Pipeline

Array = NDArray[np.float64]
Codes = NDArray[np.intp]
FILLED = " (PCA of the rest)"  # after the name of a component that does not separate the classes further


def reducer_of(estimator: Any) -> Any:
    """Return the step that reduces: the last of a pipeline; for a wrapper, the fitted object in it."""
    last = estimator[-1] if isinstance(estimator, Pipeline) else estimator
    return getattr(last, "fitted_", last)


def name_of(estimator: Any) -> str:
    return type(reducer_of(estimator)).__name__


def _before_last(estimator: Any, X: Any) -> Any:
    """Return the rows as the last step of a pipeline receives them."""
    return estimator[:-1].transform(X) if isinstance(estimator, Pipeline) and len(estimator) > 1 else X


def rows_seen(estimator: Any, X: Any) -> Any:
    """Return the rows before the step that reduces, as float64; sparse rows stay sparse."""
    before = _before_last(estimator, X)
    return before if issparse(before) else np.asarray(before, dtype=np.float64)


def scores_of(estimator: Any, X: Any) -> Array:
    """Return the components of each row (n×k)."""
    scores = estimator.transform(X)
    table = np.asarray(scores.toarray() if issparse(scores) else scores, dtype=np.float64)
    return table.reshape(len(table), -1)


def for_plotting(estimator: Any) -> Any:
    """Return the estimator as pictures show it: a map of class probabilities not too sharp to show doubtful rows."""
    reducer = reducer_of(estimator)
    if not hasattr(reducer, "for_plotting"):
        return estimator
    if not isinstance(estimator, Pipeline):
        return reducer.for_plotting()
    return Pipeline([*estimator.steps[:-1], (estimator.steps[-1][0], reducer.for_plotting())])


def probable_classes(estimator: Any, X: Any, *, held_out: bool) -> list[str]:
    """Return the two most probable classes of each row with their probabilities, as text; empty without such a map."""
    reducer = reducer_of(estimator)
    if not hasattr(reducer, "predict_proba_held_out"):
        return []
    before = _before_last(estimator, X)
    p = reducer.predict_proba_held_out(before) if held_out else reducer.predict_proba(before)
    names = [str(label) for label in reducer.classes_.tolist()]
    order = np.argsort(-p, axis=1, kind="stable")[:, :2].tolist()
    return [
        ", ".join(f"{names[at]} {100 * row[at]:.0f} %" for at in two)
        for row, two in zip(p.tolist(), order, strict=True)
    ]


def training_scores_of(estimator: Any, X: Any) -> Array:
    """Return the components of training rows, as held-out rows where the reducer knows them so."""
    reducer = reducer_of(estimator)
    if not hasattr(reducer, "transform_held_out"):
        return scores_of(estimator, X)
    before = _before_last(estimator, X)
    return np.asarray(reducer.transform_held_out(before), dtype=np.float64)


def fitted_array(estimator: Any, *names: str) -> Array | None:
    """Return the first of these attributes that the step that reduces has; None if it has none."""
    reducer = reducer_of(estimator)
    found = next((value for name in names if (value := getattr(reducer, name, None)) is not None), None)
    return None if found is None else np.atleast_1d(np.asarray(found, dtype=np.float64))


def loadings_of(estimator: Any) -> Array | None:
    """Return the weight of each feature in each component (k×d); None if the transformer has no weights."""
    rows = fitted_array(estimator, "components_")
    columns = fitted_array(estimator, "scalings_", "x_rotations_") if rows is None else None
    return rows if columns is None else columns.T


def maximised_by(estimator: Any) -> str:
    """Return what the shares are of, in a word or two."""
    if name_of(estimator) in {"PCA", "IncrementalPCA", "TruncatedSVD"}:
        return "variance"
    return "class separation" if hasattr(reducer_of(estimator), "n_discriminants_") else "method's criterion"


def component_names(estimator: Any, count: int) -> tuple[str, ...]:
    """Return numbered names; those beyond the discriminants are principal components of what is left."""
    discriminants = getattr(reducer_of(estimator), "n_discriminants_", count)
    return tuple(f"component {number}{FILLED * (number > discriminants)}" for number in range(1, count + 1))


def feature_names(X: Any, given: Any = None) -> tuple[str, ...]:
    """Return the given names, those of a data frame, or f0, f1, …"""
    if given is None:
        given = getattr(X, "columns", [f"f{at}" for at in range(X.shape[1])])
    names = tuple(str(name) for name in given)
    if len(names) != X.shape[1]:
        raise ValueError(f"names must have one entry for each of {X.shape[1]} features; got {len(names)}.")
    return names


def natural(text: str) -> tuple[tuple[int, float, str], ...]:
    """Return a key for natural order: 2 before 10, class 9 before class 10."""
    pieces = re.findall(r"(\d+(?:\.\d+)?)|(\D+)", text)
    return tuple((0, float(number), "") if number else (1, 0.0, rest.casefold()) for number, rest in pieces)


def class_codes(*labels: ArrayLike) -> tuple[tuple[str, ...], tuple[Codes, ...]]:
    """Return the classes of all these labels as text in natural order, and the class number of each label."""
    parts = [np.asarray(part) for part in labels]
    classes, codes = np.unique(np.concatenate(parts), return_inverse=True)
    names = [str(label) for label in classes.tolist()]
    numbers = classes.dtype.kind not in "OUS"  # which are in order already, those below 0 too
    order = sorted(range(len(names)), key=lambda at: () if numbers else natural(names[at]))
    ends = np.cumsum([len(part) for part in parts])[:-1]
    return tuple(names[at] for at in order), tuple(np.split(np.argsort(order)[codes.ravel()], ends))


def sampled(codes: Codes, most: int) -> Codes:
    """Return at most `most` ascending row numbers, each class in proportion; the draw is deterministic."""
    if len(codes) <= most:
        return np.arange(len(codes))
    shuffled = np.random.default_rng(0).permutation(len(codes))
    by_class = shuffled[np.argsort(codes[shuffled], kind="stable")]
    return np.sort(by_class[np.linspace(0, len(codes) - 1, most).astype(np.intp)])
