"""Extractors trained on shifted rows: any transformer on the shifted rows themselves, our PCA without forming them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.utils import InputTags, get_tags
from sklearn.utils.validation import has_fit_parameter

from discrim.data.fit_messages import refuse_fractional_weights, require_nonnegative
from discrim.data.rows import LabelledRows
from discrim.margins.shift import Shift
from discrim.reducers.pca import PCA
from discrim.reducers.shifted_pca import ShiftedPCA


def trained_extractors(
    extractor: Any, rows: LabelledRows, classes: NDArray[Any], found: Shift, shifts: Sequence[float]
) -> Iterator[Any]:
    """A fitted copy of the extractor for each shift; shift 0 is the extractor on the rows as they are."""
    if not has_closed_form(extractor):
        yield from (_trained(extractor, rows, classes, found, shift) for shift in shifts)
        return
    path = ShiftedPCA(extractor.n_components).fitted_to(rows, found, [shift for shift in shifts if shift > 0])
    for shift in shifts:
        yield next(path) if shift > 0 else clone(extractor).fit(rows.X, sample_weight=rows.weights)


def seeded(extractor: Any, random_state: Any) -> Any:
    """A copy that draws from random_state where it has no seed of its own."""
    copied = clone(extractor)
    if random_state is not None:
        unset = [k for k, v in copied.get_params().items() if v is None and k.split("__")[-1] == "random_state"]
        copied.set_params(**dict.fromkeys(unset, random_state))
    return copied


def has_closed_form(extractor: Any) -> bool:
    return type(extractor) is PCA


def input_tags(transformer: Any) -> InputTags:
    """What a transformer takes; a Pipeline takes what its first step takes."""
    if hasattr(transformer, "steps") and transformer.steps:
        first = input_tags(transformer.steps[0][1])
        first.sparse = first.sparse and get_tags(transformer).input_tags.sparse
        return first
    return get_tags(transformer).input_tags if hasattr(transformer, "__sklearn_tags__") else InputTags()


def _trained(extractor: Any, rows: LabelledRows, classes: NDArray[Any], found: Shift, shift: float) -> Any:
    X = rows.X if shift == 0 else found.shifted(rows.X, shift)
    if input_tags(extractor).positive_only:
        require_nonnegative(rows.X, type(extractor).__name__)
        X = X if shift == 0 else np.maximum(X, 0)
    labels, taken = _labels(extractor, rows, classes)
    weights = None if rows.weights is None else rows.weights[taken]
    X = X[taken]
    if weights is None:
        return clone(extractor).fit(X, labels)
    if has_fit_parameter(extractor, "sample_weight"):
        return clone(extractor).fit(X, labels, sample_weight=weights)
    return clone(extractor).fit(*_repeated(X, labels, weights, type(extractor).__name__))


def _labels(extractor: Any, rows: LabelledRows, classes: NDArray[Any]) -> tuple[NDArray[Any] | None, Any]:
    """Labels where every row has one, and which rows to take: only those of them for an extractor that needs labels."""
    known = rows.codes < len(classes)
    if known.all():
        return classes[rows.codes], slice(None)
    if get_tags(extractor).target_tags.required:
        return classes[rows.codes[known]], known
    return None, slice(None)


def _repeated(X: Any, labels: Any, weights: NDArray[np.float64], extractor: str) -> tuple[Any, Any]:
    """Rows as often as they count, for an extractor that takes no weights."""
    counts = np.round(weights).astype(np.intp)
    if (counts != weights).any():
        refuse_fractional_weights(float(weights[np.argmax(counts != weights)]), extractor)
    index = np.repeat(np.arange(len(counts)), counts)
    X = X.tocsr() if sp.issparse(X) else X
    return X[index], None if labels is None else labels[index]
