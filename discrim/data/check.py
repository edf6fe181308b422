"""What may come in, and what is said of the rest.

Every input error of discrim is raised here, and says three things: what came, what is possible, what to do.
"""

from __future__ import annotations

import warnings
from typing import Any, NoReturn

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import _check_sample_weight, column_or_1d, validate_data

from discrim.data.rows import LabelledRows

STREAMED_SPARSE_COLUMNS = 5_000  # a stream keeps a d×d scatter


def labelled_rows(
    estimator: Any, X: Any, y: Any, sample_weight: Any, *, supervised: bool, reset: bool = True
) -> LabelledRows:
    """Checked rows of positive weight, their class numbers and labels (one class, None, when not supervised)."""
    X = checked_table(estimator, X, reset=reset)
    weights = checked_weights(sample_weight, X)
    labels = checked_labels(estimator, y, X.shape[0]) if supervised else np.zeros(X.shape[0], dtype=np.intp)
    if weights is not None and not (kept := weights > 0).all():
        X, labels, weights = X[kept], labels[kept], weights[kept]
    if supervised:
        classes, codes = np.unique(labels, return_inverse=True)
    else:
        classes, codes = np.array([None]), labels
    return LabelledRows(X, codes.astype(np.intp, copy=False), classes, weights)


def checked_table(estimator: Any, X: Any, *, reset: bool = False) -> Any:
    """X as float64 or float32, dense or CSR. That its numbers are finite shows in the first sums over it."""
    if reset:
        _require_unique_names(X)
    X = validate_data(
        estimator,
        X,
        accept_sparse="csr",
        dtype=[np.float64, np.float32],
        ensure_all_finite=False,
        reset=reset,
    )
    return X


def _require_unique_names(X: Any) -> None:
    names = getattr(X, "columns", None)
    if names is None:
        return
    values, counts = np.unique(np.asarray(names, dtype=str), return_counts=True)
    if (counts > 1).any():
        doubled = ", ".join(repr(str(v)) for v in values[counts > 1][:5])
        raise ValueError(
            f"Column names must be unique, but {doubled} came more than once. Rename the columns, or pass the "
            "table as an array (X.to_numpy()) if the names do not matter."
        )


def checked_labels(estimator: Any, y: Any, n_rows: int) -> NDArray[Any]:
    """y as one label per row."""
    if y is None:
        raise ValueError(
            f"{type(estimator).__name__} requires y to be passed, but the target y is None. It looks for directions "
            "that keep the classes apart: pass one label per row, or use discrim.PCA, which needs none."
        )
    labels = column_or_1d(y, warn=True)
    if len(labels) != n_rows:
        raise ValueError(
            f"Found input variables with inconsistent numbers of samples: X has {n_rows} rows, y has {len(labels)} "
            "labels. Pass one label per row."
        )
    _require_labels_present(labels)
    check_classification_targets(labels)
    return labels


def _require_labels_present(labels: NDArray[Any]) -> None:
    if labels.dtype.kind == "f":
        missing = ~np.isfinite(labels)
    elif labels.dtype == object:
        missing = np.array([v is None or v != v for v in labels], dtype=bool)
        kinds = sorted({type(v).__name__ for v in labels[~missing]})
        if len(kinds) > 1 and not {"str"}.isdisjoint(kinds):
            raise ValueError(
                f"Labels of mixed types came ({', '.join(kinds)}). Use one type throughout, e.g. y.astype(str)."
            )
    else:
        return
    if missing.any():
        raise ValueError(
            f"Input y contains NaN: {missing.sum()} labels are missing or infinite (NaN, None, inf), the first in "
            f"row {int(np.argmax(missing))}. Drop these rows or give them a class of their own."
        )


def checked_weights(sample_weight: Any, X: Any) -> NDArray[np.float64] | None:
    """One finite weight ≥ 0 per row, not all zero; None where none are given."""
    if sample_weight is None:
        return None
    weights = _check_sample_weight(sample_weight, X, dtype=np.float64, ensure_non_negative=True)
    if not weights.any():
        raise ValueError("Every sample_weight is zero, so no row is left. Give at least two rows a positive weight.")
    return weights


def require_finite(X: Any) -> None:
    """Raise, naming the first bad cell, where X holds NaN or infinity."""
    values = X.data if sp.issparse(X) else X
    bad = ~np.isfinite(values)
    if not bad.any():
        return
    if sp.issparse(X):
        cells = X.tocoo()
        first = int(np.argmax(~np.isfinite(cells.data)))
        row, column, value = int(cells.row[first]), int(cells.col[first]), cells.data[first]
    else:
        row, column = (int(i) for i in np.unravel_index(np.argmax(bad), bad.shape))
        value = values[row, column]
    what = "NaN" if np.isnan(value) else "infinity"
    raise ValueError(
        f"Input X contains NaN or infinity: {int(bad.sum())} cells, the first ({what}) in row {row}, column {column}. "
        "Drop these rows or fill them in first, e.g. with sklearn.impute.SimpleImputer."
    )


def require_finite_result(result: NDArray[Any], X: Any) -> None:
    """Bad cells of X show in what was computed from it; only then is X searched for them."""
    if not np.isfinite(result).all():
        require_finite(X)


def require_two_classes(estimator: Any, classes: NDArray[Any]) -> None:
    if len(classes) < 2:
        raise ValueError(
            f"{type(estimator).__name__} needs at least two classes, but only one class came: {classes[0]!r}. "
            "Check the label column, or use discrim.PCA, which needs no labels."
        )


def require_some_spread(rank: int, n_rows: int, n_features: int) -> None:
    if rank == 0:
        raise ValueError(
            f"The n_samples={n_rows} rows in {n_features} feature(s) are all equal as far as this method looks, so there "
            "is no direction to find. Pass at least two rows that differ."
        )


def require_streamable_sparse(X: Any) -> None:
    if sp.issparse(X) and X.shape[1] > STREAMED_SPARSE_COLUMNS:
        raise ValueError(
            f"partial_fit came with a sparse table of {X.shape[1]} columns, but a stream keeps a d×d scatter, which is "
            f"limited to {STREAMED_SPARSE_COLUMNS} columns for sparse input. Use fit on all rows (it never makes X "
            "dense), or reduce the columns first, e.g. with sklearn.feature_selection or a HashingVectorizer."
        )


def requested_count(n_components: Any) -> int | float | None:
    """n_components as an int ≥ 1, a fraction in (0, 1), or None."""
    if n_components is None:
        return None
    if isinstance(n_components, (int, np.integer)) and not isinstance(n_components, bool) and n_components >= 1:
        return int(n_components)
    if isinstance(n_components, (float, np.floating)) and 0 < n_components < 1:
        return float(n_components)
    raise ValueError(
        f"n_components={n_components!r} came; possible are an int ≥ 1, a fraction in (0, 1) of what there is to keep, "
        "or None for all."
    )


def refuse_count(wanted: int, available: int, n_rows: int, n_features: int, what: str = "directions") -> NoReturn:
    raise ValueError(
        f"n_components={wanted}, but {n_rows} samples in {n_features} features span only {available} {what}. "
        f"Pass n_components ≤ {available}, or None for all."
    )


def require_choice(name: str, value: Any, choices: tuple[str, ...]) -> None:
    if not isinstance(value, str) or value not in choices:
        listed = ", ".join(repr(c) for c in choices)
        raise ValueError(f"{name}={value!r} came; possible are {listed}.")


def require_whole_weights(weights: NDArray[np.float64] | None, method: str) -> None:
    if weights is not None and not (weights == np.round(weights)).all():
        first = int(np.argmax(weights != np.round(weights)))
        raise ValueError(
            f"{method} takes whole-number sample weights (how often a row counts), but weight {weights[first]!r} came. "
            "Pass integer weights, or another choice of pairs, which takes any weights."
        )


def require_known_labels(seen: NDArray[Any], classes: NDArray[Any]) -> None:
    unknown = seen[~np.isin(seen, classes)]
    if len(unknown):
        raise ValueError(
            f"partial_fit got labels that are not among classes: {unknown[:5].tolist()}. Name every class that the "
            "stream may bring in classes, or leave classes=None."
        )


def warn_of_stream_after_fit(estimator: Any) -> None:
    warnings.warn(
        f"partial_fit came after fit, which keeps no running statistics: a new stream starts here, and the rows of the "
        f"fit are not part of it. To include them, give them to partial_fit of a new {type(estimator).__name__}().",
        UserWarning,
        stacklevel=3,
    )
