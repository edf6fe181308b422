"""Extractors trained on shifted rows, embeddings before them, and the choice of the shift by held-out rows.

Transformers are trained on the shifted rows; for discrim.PCA these are never formed. An embedding makes a linear method
a kernel method. If it is given by name, the width s is the median squared distance between rows:

    rff        random Fourier features √(2/T) cos(ωᵀx + b), whose products approximate exp(−‖x − x'‖²/s)
    nystroem   Nyström features of the same kernel from a sample of the rows
"""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.kernel_approximation import Nystroem, RBFSampler
from sklearn.metrics.pairwise import euclidean_distances
from sklearn.model_selection import StratifiedKFold
from sklearn.svm import LinearSVC
from sklearn.utils import InputTags, check_random_state, get_tags
from sklearn.utils.validation import has_fit_parameter

from discrim.core.row_hash import equal_rows
from discrim.core.svm.shift import Shift, margin_shift
from discrim.estimators.fitting import numpy_as_the_caller_has_it
from discrim.estimators.margin_pca import ShiftedPCA
from discrim.estimators.pca import PCA
from discrim.tables.check_parameters import is_number, named, require, require_transformer
from discrim.tables.rows import LabelledRows
from discrim.tables.validation import require_representable


def trained_extractors(
    extractor: Any, rows: LabelledRows, classes: NDArray[Any], found: Shift, shifts: Sequence[float]
) -> Iterator[Any]:
    """Yield a fitted copy of the extractor for each shift; shift 0 uses the original rows."""
    if type(extractor) is not PCA:
        yield from (_trained(extractor, rows, classes, found, shift) for shift in shifts)
        return
    path = ShiftedPCA(extractor.n_components).fitted_to(rows, found, [shift for shift in shifts if shift > 0])
    for shift in shifts:
        yield next(path) if shift > 0 else clone(extractor).fit(rows.X, sample_weight=rows.weights)


def seeded(extractor: Any, random_state: Any) -> Any:
    """Return a copy that uses random_state wherever it has no seed."""
    copied = clone(extractor)
    if random_state is not None:
        unset = [k for k, v in copied.get_params().items() if v is None and k.split("__")[-1] == "random_state"]
        copied.set_params(**dict.fromkeys(unset, random_state))
    return copied


def input_tags(transformer: Any) -> InputTags:
    """Return the input tags of a transformer; for a Pipeline those of its first step."""
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
                f"X must hold numbers ≥ 0 for the extractor {type(extractor).__name__}; got {float(values.min())}. "
                "Negative values in data passed to it raise an error: scale the columns first, e.g. with MinMaxScaler "
                "(after an embedding: embedding=make_pipeline(RBFSampler(), MinMaxScaler(clip=True)))."
            )
        X = X if shift == 0 else np.maximum(X, 0)
    # labels if every row has one; only the labelled rows for an extractor that requires labels
    known: Any = rows.codes < len(classes)
    taken: Any = slice(None)
    labels = classes[rows.codes] if known.all() else None
    if labels is None and get_tags(extractor).target_tags.required:
        labels, taken = classes[rows.codes[known]], known
    weights = None if rows.weights is None else rows.weights[taken]
    X = X[taken]
    with numpy_as_the_caller_has_it():
        if weights is None:
            return clone(extractor).fit(X, labels)
        if has_fit_parameter(extractor, "sample_weight"):
            return clone(extractor).fit(X, labels, sample_weight=weights)
        return clone(extractor).fit(*_repeated(X, labels, weights, type(extractor).__name__))


def _repeated(X: Any, labels: Any, weights: NDArray[np.float64], extractor: str) -> tuple[Any, Any]:
    """Return rows repeated by their weights, for an extractor that does not accept weights."""
    counts = np.round(weights).astype(np.intp)
    if (counts != weights).any():
        raise ValueError(
            f"sample_weight must hold whole numbers (repetitions of a row) for the extractor {extractor}, which takes "
            f"no weights; got {float(weights[np.argmax(counts != weights)])}. Pass integer weights, or discrim.PCA as "
            "the extractor."
        )
    index = np.repeat(np.arange(len(counts)), counts)
    X = X.tocsr() if sp.issparse(X) else X
    return X[index], None if labels is None else labels[index]


SHIFTS = (0.0, 0.1, 0.3, 0.5, 1.0, 2.0, 4.0, 10.0)
Rows = NDArray[np.intp]


def held_out_accuracies(
    extractor: Any, rows: LabelledRows, classes: NDArray[Any], cv: Any, random_state: Any, **svm: Any
) -> dict[float, float]:
    """Return the accuracy for each of SHIFTS, with one SVM per split (and one scatter for discrim.PCA)."""
    right, total = np.zeros(len(SHIFTS)), 0.0
    unlabelled = np.flatnonzero(rows.codes == len(classes))
    for training, test in _splits(rows, classes, cv, random_state):
        if not len(training) or not len(test):
            raise ValueError(
                f"cv must have labelled training and test rows in every split; got {len(training)} labelled training "
                f"rows and {len(test)} labelled test rows."
            )
        present = np.unique(rows.codes[training])
        if len(present) < 2:
            raise ValueError(
                "cv must have training rows of at least two classes in every split; got a split with class "
                f"{classes[present].tolist()[0]!r} only. Pass other splits."
            )
        part = rows.select(np.concatenate([training, unlabelled]))
        codes = np.searchsorted(present, part.codes)  # renumbered, so that no class is empty
        part = replace(part, codes=codes, classes=np.arange(codes.max() + 1))
        found = margin_shift(part, len(present), **svm)
        fitted = trained_extractors(extractor, part, classes[present], found, SHIFTS)
        right += [_weight_right(one, rows, training, test) for one in fitted]
        total += len(test) if rows.weights is None else rows.weights[test].sum()
    if not total:
        raise ValueError(f"cv must yield at least one pair of training and test rows; got {cv!r}, which has no split.")
    return dict(zip(SHIFTS, (right / total).tolist(), strict=True))


def best_shift(accuracies: dict[float, float]) -> float:
    """Return the shift with the highest accuracy, the smallest of ties; sums of weights are compared up to rounding."""
    highest = max(accuracies.values())
    return min(shift for shift, accuracy in accuracies.items() if accuracy >= highest - 1e-12)


def _splits(rows: LabelledRows, classes: NDArray[Any], cv: Any, random_state: Any) -> Iterator[tuple[Rows, Rows]]:
    """Yield (training, test) numbers of labelled rows; folds are shuffled only if there is a seed."""
    labelled = np.flatnonzero(rows.codes < len(classes))
    codes = rows.codes[labelled]
    if isinstance(cv, str) or not (
        (is_number(cv, (int, np.integer)) and cv >= 2) or hasattr(cv, "split") or isinstance(cv, Iterable)
    ):
        raise ValueError(
            "cv must be a number of folds ≥ 2, a splitter such as StratifiedShuffleSplit(1), or pairs of arrays of row "
            f"numbers (training, test); got {cv!r}."
        )
    if isinstance(cv, (int, np.integer)):
        sizes = np.bincount(codes)
        if sizes.min() < 2:
            raise ValueError(
                "y must have at least two labelled rows of each class for shift='cv'; got one row of class "
                f"{classes.tolist()[sizes.argmin()]!r}. Pass a number as shift, e.g. 1.0, leave the class out, or pass "
                "a splitter as cv."
            )
        shuffle = random_state is not None
        cv = StratifiedKFold(min(int(cv), int(sizes.min())), shuffle=shuffle, random_state=random_state)
    if not hasattr(cv, "split"):  # pairs of row numbers of the original table
        original = labelled if rows.numbers is None else rows.numbers[labelled]
        for pair in cv:
            training, test = (labelled[np.isin(original, np.asarray(numbers))] for numbers in pair)
            yield training, test
        return
    for training, test in cv.split(np.zeros(len(codes)), codes):
        yield labelled[training], labelled[test]


def _weight_right(fitted: Any, rows: LabelledRows, training: Rows, test: Rows) -> float:
    """Return the weight of the test rows that a linear SVM, trained on the features, classifies correctly."""
    features, others = _features(fitted, rows.X[training]), _features(fitted, rows.X[test])
    exponent = np.frexp(np.abs(features).max(initial=0.0))[1]  # keeps sums and squares finite
    features, others = np.ldexp(features, -exponent), np.ldexp(others, -exponent)
    centre = features.mean(axis=0)
    # unit root mean square, so that C = 1 suits any extractor
    scale = np.sqrt(np.mean((features - centre) ** 2)) or 1.0
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


EMBEDDINGS = ("rff", "nystroem")
N_FEATURES = 500
LARGEST, LARGEST_SINGLE = 1e150, 1e18
MAX_ROWS = 1000  # rows between which distances are computed; larger tables are sampled


def fitted_embedding(embedding: Any, X: Any, weights: NDArray[np.float64] | None, random_state: Any) -> Any:
    """Return a fitted copy of the given transformer, or the named one with a width that suits the rows."""
    largest = float(np.abs(X.data if sp.issparse(X) else X).max(initial=0.0))
    limit = LARGEST_SINGLE if X.dtype == np.float32 else LARGEST
    if largest > limit:
        raise ValueError(
            f"X must hold numbers up to {limit:g} for an embedding, which squares them; got {largest:.1e}. Scale the "
            "columns first, e.g. with StandardScaler."
        )
    if not isinstance(embedding, str):
        return clone(embedding).fit(X)
    gamma = 1.0 / median_square_distance(X, weights, random_state)
    if embedding == "rff":
        return RBFSampler(gamma=gamma, n_components=N_FEATURES, random_state=random_state).fit(X)
    # a repeated row adds nothing to the sample
    first = equal_rows(X, np.zeros(X.shape[0], dtype=np.intp)).first
    sample = X[np.sort(first)]
    digits = np.finfo(X.dtype)
    if gamma * float(digits.tiny) > digits.eps:  # squares of distances this small lose digits, and gamma may overflow
        sample = sample.astype(np.float64)
    return Nystroem(gamma=gamma, n_components=min(N_FEATURES, sample.shape[0]), random_state=random_state).fit(sample)


def require_embedding(embedding: Any) -> None:
    """Raise unless the embedding is None, a known name or a transformer."""
    if isinstance(embedding, str):
        require("embedding", embedding, named(*EMBEDDINGS))
    elif embedding is not None:
        require_transformer("embedding", embedding)


def embedded(embedding: Any, X: Any) -> Any:
    """Return the features of the rows by a fitted embedding; equal rows get exactly equal features.

    Matrix products may round a row differently at different positions in the table. Rows that are no longer equal would
    get separate duals, which are not unique.
    """
    features = embedding.transform(X)
    features = features.tocsr() if sp.issparse(features) else np.asarray(features)
    groups = equal_rows(X, np.zeros(X.shape[0], dtype=np.intp))
    return features if len(groups.first) == X.shape[0] else features[groups.first[groups.group]]


def median_square_distance(X: Any, weights: NDArray[np.float64] | None = None, random_state: Any = None) -> float:
    """Compute the median of ‖x − x'‖² over pairs of different rows, weighted by their counts; 1 if none differ."""
    weights = np.ones(X.shape[0]) if weights is None else weights
    if X.shape[0] > MAX_ROWS:
        chosen = check_random_state(random_state).choice(X.shape[0], MAX_ROWS, replace=False)
        X, weights = X[chosen], weights[chosen]
    X = X.astype(np.float64, copy=False)
    rows = X if sp.issparse(X) else X - X.mean(axis=0)  # centred, so that lengths are not larger than the distances
    squares = euclidean_distances(rows, squared=True)
    left, right = np.triu_indices(len(squares), 1)
    distances = squares[left, right]
    differ = distances > 1e-10 * distances.max(initial=0.0)
    if not differ.any():
        return 1.0
    counts = (weights[left] * weights[right])[differ]
    return float(np.quantile(distances[differ], 0.5, method="inverted_cdf", weights=counts))
