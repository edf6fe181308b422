"""Extractors trained on shifted rows, and how far to shift: judged by a linear classifier's held-out accuracy.

Any transformer is trained on the shifted rows themselves, our PCA without forming them.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.model_selection import StratifiedKFold
from sklearn.svm import LinearSVC
from sklearn.utils import InputTags, get_tags
from sklearn.utils.validation import has_fit_parameter

from discrim.core.svm.shift import Shift, margin_shift
from discrim.estimators.margin_pca import ShiftedPCA
from discrim.estimators.pca import PCA
from discrim.tables.rows import LabelledRows
from discrim.tables.validation import numpy_as_the_caller_has_it, require_representable


def trained_extractors(
    extractor: Any, rows: LabelledRows, classes: NDArray[Any], found: Shift, shifts: Sequence[float]
) -> Iterator[Any]:
    """Return a fitted copy of the extractor for each shift; shift 0 is the extractor on the rows as they are."""
    if not has_closed_form(extractor):
        yield from (_trained(extractor, rows, classes, found, shift) for shift in shifts)
        return
    path = ShiftedPCA(extractor.n_components).fitted_to(rows, found, [shift for shift in shifts if shift > 0])
    for shift in shifts:
        yield next(path) if shift > 0 else clone(extractor).fit(rows.X, sample_weight=rows.weights)


def seeded(extractor: Any, random_state: Any) -> Any:
    """Return a copy that draws from random_state where it has no seed of its own."""
    copied = clone(extractor)
    if random_state is not None:
        unset = [k for k, v in copied.get_params().items() if v is None and k.split("__")[-1] == "random_state"]
        copied.set_params(**dict.fromkeys(unset, random_state))
    return copied


def has_closed_form(extractor: Any) -> bool:
    return type(extractor) is PCA


def input_tags(transformer: Any) -> InputTags:
    """Return what a transformer takes; a Pipeline takes what its first step takes."""
    if hasattr(transformer, "steps") and transformer.steps:
        first = input_tags(transformer.steps[0][1])
        first.sparse = first.sparse and get_tags(transformer).input_tags.sparse
        return first
    return get_tags(transformer).input_tags if hasattr(transformer, "__sklearn_tags__") else InputTags()


def _trained(extractor: Any, rows: LabelledRows, classes: NDArray[Any], found: Shift, shift: float) -> Any:
    X = rows.X if shift == 0 else found.shifted(rows.X, shift)
    if input_tags(extractor).positive_only:
        values = rows.X.data if rows.is_sparse else rows.X
        if values.size and values.min() < 0:
            raise ValueError(
                f"Negative values in data passed to {type(extractor).__name__}, which takes numbers ≥ 0 only; the "
                f"smallest is {float(values.min())}. Scale the columns first, e.g. with MinMaxScaler (behind an "
                "embedding: embedding=make_pipeline(RBFSampler(), MinMaxScaler(clip=True)))."
            )
        X = X if shift == 0 else np.maximum(X, 0)
    labels, taken = _labels(extractor, rows, classes)
    weights = None if rows.weights is None else rows.weights[taken]
    X = X[taken]
    with numpy_as_the_caller_has_it():
        if weights is None:
            return clone(extractor).fit(X, labels)
        if has_fit_parameter(extractor, "sample_weight"):
            return clone(extractor).fit(X, labels, sample_weight=weights)
        return clone(extractor).fit(*_repeated(X, labels, weights, type(extractor).__name__))


def _labels(extractor: Any, rows: LabelledRows, classes: NDArray[Any]) -> tuple[NDArray[Any] | None, Any]:
    """Return labels if every row has one, and which rows to take: labelled ones for an extractor that needs labels."""
    known = rows.codes < len(classes)
    if known.all():
        return classes[rows.codes], slice(None)
    if get_tags(extractor).target_tags.required:
        return classes[rows.codes[known]], known
    return None, slice(None)


def _repeated(X: Any, labels: Any, weights: NDArray[np.float64], extractor: str) -> tuple[Any, Any]:
    """Return rows as often as they count, for an extractor that takes no weights."""
    counts = np.round(weights).astype(np.intp)
    if (counts != weights).any():
        raise ValueError(
            f"sample_weight must hold whole numbers (how often a row counts) for the extractor {extractor}, which "
            f"takes no weights; got {float(weights[np.argmax(counts != weights)])}. Pass integer weights, or "
            "discrim.PCA as the extractor."
        )
    index = np.repeat(np.arange(len(counts)), counts)
    X = X.tocsr() if sp.issparse(X) else X
    return X[index], None if labels is None else labels[index]


SHIFTS = (0.0, 0.1, 0.3, 0.5, 1.0, 2.0, 4.0, 10.0)
Rows = NDArray[np.intp]


def held_out_accuracies(
    extractor: Any, rows: LabelledRows, classes: NDArray[Any], cv: Any, random_state: Any, **svm: Any
) -> dict[float, float]:
    """Return accuracy for each of SHIFTS: one SVM per split, with our PCA one scatter per split too."""
    right, total = np.zeros(len(SHIFTS)), 0.0
    unlabelled = np.flatnonzero(rows.codes == len(classes))
    for training, test in _splits(rows, classes, cv, random_state):
        _require_rows_on_both_sides(training, test)
        present = np.unique(rows.codes[training])
        if len(present) < 2:
            raise ValueError(
                f"A split of cv has training rows of class {classes[present].tolist()[0]!r} only, and a margin lies "
                "between classes. Pass splits with at least two on that side."
            )
        part = _part(rows, np.concatenate([training, unlabelled]), present)
        found = margin_shift(part, len(present), **svm)
        fitted = trained_extractors(extractor, part, classes[present], found, SHIFTS)
        right += [_weight_right(one, rows, training, test) for one in fitted]
        total += len(test) if rows.weights is None else rows.weights[test].sum()
    if not total:
        raise ValueError(f"cv={cv!r} came, which has no split. Pass at least one pair of training and test rows.")
    return dict(zip(SHIFTS, (right / total).tolist(), strict=True))


def best_shift(accuracies: dict[float, float]) -> float:
    """Return the shift of highest accuracy, the smallest among equals; sums of weights are equal but for rounding."""
    highest = max(accuracies.values())
    return min(shift for shift, accuracy in accuracies.items() if accuracy >= highest - 1e-12)


def _splits(rows: LabelledRows, classes: NDArray[Any], cv: Any, random_state: Any) -> Iterator[tuple[Rows, Rows]]:
    """Compute (training, test) numbers of labelled rows; folds are shuffled only if there is a seed for it."""
    labelled = np.flatnonzero(rows.codes < len(classes))
    codes = rows.codes[labelled]
    _require_splitter(cv)
    if isinstance(cv, (int, np.integer)):
        sizes = np.bincount(codes)
        if sizes.min() < 2:
            raise ValueError(
                "shift='cv' holds out rows of each class, so that each must have at least two; got one row of class "
                f"{classes.tolist()[sizes.argmin()]!r}. Pass a number as shift, e.g. 1.0, leave the class out, or pass "
                "a splitter as cv."
            )
        shuffle = random_state is not None
        cv = StratifiedKFold(min(int(cv), int(sizes.min())), shuffle=shuffle, random_state=random_state)
    if not hasattr(cv, "split"):  # pairs of row numbers of the table that came
        yield from ((_labelled_rows(rows, a, labelled), _labelled_rows(rows, b, labelled)) for a, b in cv)
        return
    for training, test in cv.split(np.zeros(len(codes)), codes):
        yield labelled[training], labelled[test]


def _require_splitter(cv: Any) -> None:
    is_count = isinstance(cv, (int, np.integer)) and not isinstance(cv, bool) and cv >= 2
    if not (is_count or hasattr(cv, "split") or isinstance(cv, Iterable)) or isinstance(cv, str):
        raise ValueError(
            f"cv={cv!r} came; possible are a number of folds ≥ 2, a splitter such as StratifiedShuffleSplit(1), or "
            "pairs of arrays of row numbers (training, test)."
        )


def _require_rows_on_both_sides(training: Rows, test: Rows) -> None:
    if not len(training) or not len(test):
        raise ValueError(
            f"A split of cv has {len(training)} labelled training rows and {len(test)} labelled test rows. Pass splits "
            "with some of both."
        )


def _labelled_rows(rows: LabelledRows, numbers: Any, labelled: Rows) -> Rows:
    """Return the positions of the labelled rows among numbered rows of the original table."""
    came = labelled if rows.numbers is None else rows.numbers[labelled]
    return labelled[np.isin(came, np.asarray(numbers))]


def _part(rows: LabelledRows, index: Rows, present: Rows) -> LabelledRows:
    """Return some of the rows; their classes renumbered, so that none is empty."""
    codes = np.searchsorted(present, rows.codes[index])
    weights = None if rows.weights is None else rows.weights[index]
    return LabelledRows(rows.X[index], codes, np.arange(codes.max() + 1), weights)


def _weight_right(fitted: Any, rows: LabelledRows, training: Rows, test: Rows) -> float:
    """Return weight of the test rows that a linear SVM, trained on the features of the training rows, gets right."""
    features, others = _features(fitted, rows.X[training]), _features(fitted, rows.X[test])
    exponent = np.frexp(np.abs(features).max(initial=0.0))[1]  # so that sums and squares of the largest are finite
    features, others = np.ldexp(features, -exponent), np.ldexp(others, -exponent)
    centre = features.mean(axis=0)
    scale = np.sqrt(np.mean((features - centre) ** 2)) or 1.0  # rms 1, so that C = 1 fits any extractor
    weights = None if rows.weights is None else rows.weights[training]
    classifier = LinearSVC(dual=False)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Liblinear failed to converge")
        classifier.fit((features - centre) / scale, rows.codes[training], sample_weight=weights)
    hits = classifier.predict((others - centre) / scale) == rows.codes[test]
    return float(hits.sum() if rows.weights is None else rows.weights[test] @ hits)


def _features(fitted: Any, X: Any) -> NDArray[np.float64]:
    with numpy_as_the_caller_has_it():
        features = fitted.transform(X)
    table = np.asarray(features.toarray() if sp.issparse(features) else features, dtype=np.float64)
    require_representable(table, X)
    return table
