"""Input validation: tables, labels and weights. Parameters of estimators are checked in `check_parameters`.

Arrays of other libraries (PyTorch, CuPy, JAX …) stay what they are if `sklearn.set_config(array_api_dispatch=True)`
asks for it; otherwise they become numpy's.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn import get_config
from sklearn.utils._array_api import get_namespace
from sklearn.utils.multiclass import type_of_target
from sklearn.utils.validation import _check_sample_weight, _get_feature_names, check_array, column_or_1d, validate_data

from discrim.tables.check_parameters import WEIGHT_RANGE
from discrim.tables.rows import LabelledRows, PickedRows

FLOATS = float, np.floating


class PartError(ValueError):
    """Rows that cannot be taken, named by the part of the table that they are in."""


def labelled_rows(
    estimator: Any, X: Any, y: Any, sample_weight: Any, *, supervised: bool, reset: bool = True, whole: bool = True
) -> LabelledRows:
    """Return checked rows of positive weight, their class numbers and labels (one class, None, if not supervised).

    estimator : the one that shall know the columns, or a method's name where none is to (of a part of a table, say)
    whole : whether these are all rows of the table
    """
    X = checked_table(estimator, X, reset=reset)
    n_given, labels = X.shape[0], None
    if supervised:
        labels = checked_labels(estimator if isinstance(estimator, str) else type(estimator).__name__, y, n_given)
    X, weights, numbers = _rows_that_count(X, sample_weight)
    if numbers is not None:
        labels = None if labels is None else labels[numbers]
        if getattr(estimator, "missing", None) is not None and not sp.issparse(X):
            require_no_infinity(X, numbers)
        else:
            require_finite(X, numbers, whole=whole)
    classes, codes = (np.array([None]), np.zeros(X.shape[0], np.intp)) if labels is None else numbered(labels)
    return LabelledRows(X, codes, classes, weights, numbers, n_given)


def _rows_that_count(X: Any, sample_weight: Any) -> tuple[Any, NDArray[np.float64] | None, NDArray[np.intp] | None]:
    """Return the rows of positive weight, their weights, and their numbers if there are others."""
    if sample_weight is None:
        return X, None, None
    weights = checked_weights(sample_weight, X)
    numbers = np.flatnonzero(weights > 0)
    return (X, weights, None) if len(numbers) == len(weights) else (X[numbers], weights[numbers], numbers)


def numbered(labels: NDArray[Any]) -> tuple[NDArray[Any], NDArray[np.intp]]:
    """Return the sorted classes and each row's place among them, as np.unique; whole numbers without sorting."""
    if labels.dtype.kind in "iu" and len(labels):
        least, most = int(labels.min()), int(labels.max())
        if most - least < 2 * len(labels) and most < 2**62:
            offsets = labels.astype(np.intp, copy=False) - least
            there = np.bincount(offsets) > 0
            present = (np.flatnonzero(there) + least).astype(labels.dtype)
            return present, offsets if there.all() else (np.cumsum(there) - 1)[offsets]
    classes, codes = np.unique(labels, return_inverse=True)
    return classes, codes.astype(np.intp, copy=False)


def names_of(X: Any) -> tuple[str, ...] | None:
    """Return the columns' names if all are text, as scikit-learn does."""
    names = _get_feature_names(X)
    return None if names is None else tuple(str(name) for name in names)


def checked_table(estimator: Any, X: Any, *, reset: bool = False) -> Any:
    """Return X as float64 or float32, dense or CSR. Infinite numbers show in the first sums over it."""
    if type(X) is np.ndarray and X.ndim == 2 and X.size and X.dtype in (np.float64, np.float32):
        # scikit-learn's own checks let it pass too, and take longer than the fit of a small table
        known = {} if isinstance(estimator, str) else vars(estimator)
        if reset:
            known.pop("feature_names_in_", None)  # such a table has none
            known["n_features_in_"] = X.shape[1]
        if isinstance(estimator, str) or (
            "feature_names_in_" not in known and known.get("n_features_in_") == X.shape[1]
        ):
            return X
    _refuse_what_is_not_in_memory(X)
    X = on_host(X)
    _require_unique_names(_columns(X))
    _refuse_categories_and_dates(X)
    if np.ma.is_masked(X):
        raise ValueError(
            f"X must have no masked cells; got {np.ma.count_masked(X)}, which cannot be left out one by one. "
            "Fill them in first, e.g. X.filled(np.nan) and sklearn.impute.SimpleImputer."
        )
    taken: dict[str, Any] = {"accept_sparse": "csr", "dtype": [np.float64, np.float32], "ensure_all_finite": False}
    try:
        return (
            check_array(X, **taken) if isinstance(estimator, str) else validate_data(estimator, X, reset=reset, **taken)
        )
    except (ValueError, TypeError) as error:
        # text, or dates and times
        texts = (
            "could not convert string to float",
            "promoted",
            "Cannot cast object",
            "not 'datetime.",
            "not 'Timestamp'",
        )
        if any(text in str(error) for text in texts):
            _refuse_text(X, error)
        raise


# what is no table in memory, by its package and kind, and what to do with it
ELSEWHERE = {
    ("polars", "LazyFrame"): "pass X.collect(), or its batches to discrim.fit_parts",
    ("duckdb", "DuckDBPyRelation"): "pass X.df() or X.pl(), or batches of it to discrim.fit_parts",
    ("ibis", "Table"): "pass X.to_pandas(), or batches of it to discrim.fit_parts",
    ("pyspark", "DataFrame"): "use discrim.spark.SparkReducer",
    ("anndata", "AnnData"): "use discrim.tl.reduce(adata, target), or pass adata.X and labels from adata.obs",
    ("h5py", "Dataset"): "pass X[:], or parts of it to discrim.fit_parts",
    ("zarr", "Array"): "pass X[:], or parts of it to discrim.fit_parts",
    ("pyarrow", "FileSystemDataset"): "pass X.to_table(), or its batches to discrim.fit_parts",
    ("xarray", "DataArray"): "pass X.to_numpy()",
}


def _refuse_what_is_not_in_memory(X: Any) -> None:
    kind, package = type(X).__name__, type(X).__module__.split(".")[0].strip("_")
    what = ELSEWHERE.get((package, kind))
    if isinstance(X, str | os.PathLike):
        what = "fit_parts, and the fit of reducers on statistics, take the path of a table; elsewhere read it first"
    if hasattr(X, "__dask_graph__") and package != "xarray":
        package = "dask"
        what = "fit, transform and fit_parts take Dask collections; elsewhere pass X.compute(), or map over its blocks"
    if what is not None:
        raise TypeError(
            f"X must be a table in memory; got {package}.{kind}, which is not loaded automatically: {what}."
        )


def require_table(X: Any) -> None:
    """Raise where an array, wherever it is, has no rows and columns."""
    if X.ndim != 2:
        raise ValueError(f"Expected 2D array, got {X.ndim}D array instead. Reshape your data: one row per sample.")


def _refuse_text(X: Any, error: Exception) -> None:
    """Raise, naming the first cell that is no number."""
    names = _columns(X)
    for (row, column), value in np.ndenumerate(np.asarray(X, dtype=object)):
        try:
            float(value)
        except (TypeError, ValueError):
            where = repr(names[column]) if names else column
            raise ValueError(
                f"could not convert string to float: {value!r} in row {row}, column {where}. Only numbers can be "
                f"reduced: leave the column out, or encode it first: {_encoder([where])}."
            ) from error


def _refuse_categories_and_dates(X: Any) -> None:
    """Raise if columns are categories of text or dates, which would be read as numbers if they look like some."""
    kinds: Any = getattr(X, "dtypes", None)  # of pandas; polars and Arrow have a schema
    if not hasattr(kinds, "items"):
        schema: Any = getattr(X, "schema", {"all": getattr(X, "dtype", None)})
        kinds = schema if hasattr(schema, "items") else dict(zip(schema.names, schema.types, strict=True))
    for what, is_bad in (("categories of text", _is_category_of_text), ("dates or times", _is_date)):
        if bad := [str(name) for name, kind in kinds.items() if is_bad(kind)]:
            raise ValueError(
                f"Columns of X must hold numbers; got {what} in {', '.join(map(repr, bad[:5]))} ({len(bad)} of "
                f"{len(kinds)} columns). Leave them out, or encode them first: {_encoder([repr(one) for one in bad])}."
            )


def _is_category_of_text(kind: Any) -> bool:
    if str(kind) == "category":
        return kind.categories.dtype.kind not in "biuf"
    return str(kind).startswith(("Categorical", "Enum", "dictionary<values=string", "dictionary<values=large_string"))


def _is_date(kind: Any) -> bool:
    return getattr(kind, "kind", "") in ("m", "M") or str(kind).lower().startswith(("date", "duration", "time"))


def _encoder(columns: Sequence[Any]) -> str:
    """Return the code of a transformer that encodes text columns."""
    listed = ", ".join(map(str, columns))
    return f"ColumnTransformer([('text', OneHotEncoder(), [{listed}])], remainder='passthrough'), of sklearn.compose"


def _columns(X: Any) -> list[Any]:
    """Return the names of a frame's columns; what Arrow calls its columns are their contents."""
    return list(getattr(X, "column_names", getattr(X, "columns", ())))


def _require_unique_names(names: Sequence[Any]) -> None:
    values, counts = np.unique([str(name) for name in names], return_counts=True)
    if (counts > 1).any():
        doubled = ", ".join(repr(str(v)) for v in values[counts > 1][:5])
        raise ValueError(
            f"Column names must be unique; got {doubled} more than once. Rename the columns, or pass the "
            "table as an array (X.to_numpy()) if the names do not matter."
        )


def checked_labels(who: str, y: Any, n_rows: int) -> NDArray[Any]:
    """Return y as one label per row."""
    if y is None:
        raise ValueError(
            f"{who} requires y to be passed, but the target y is None. It looks for directions "
            "that keep the classes apart: pass one label per row, or use discrim.PCA, which needs none."
        )
    if type(y) is np.ndarray and y.shape == (n_rows,) and y.dtype.kind in "iubU":  # names of classes, as they are
        return y
    y = on_host(y)
    labels = column_or_1d(unmixed(y), warn=True)
    if len(labels) != n_rows:
        raise ValueError(
            f"Found input variables with inconsistent numbers of samples: X has {n_rows} rows, y has {len(labels)} "
            "labels. Pass one label per row."
        )
    if labels.dtype.kind in "fOmM":
        _require_labels_present(labels)
    if labels.dtype == object:
        labels = _of_one_kind(labels)
    if labels.dtype.kind in "iubU":  # any names of classes
        return labels
    if (kind := type_of_target(labels, input_name="y")) not in ("binary", "multiclass"):
        raise ValueError(
            f"Unknown label type: {kind}. Labels name classes: pass strings, whole numbers or bools, one per row. To "
            "make classes of a measurement, cut it into ranges, e.g. with pandas.cut(…).astype(str)."
        )
    return labels


def unmixed(y: Any) -> Any:
    """Return labels of other libraries as numpy's, or as objects if numpy would change them.

    Whole numbers would lose digits as floats; 1, "a" and NaN in one list would all become text.
    """
    own = getattr(getattr(y, "dtype", None), "numpy_dtype", None)  # a pandas dtype with missing values
    if isinstance(own, np.dtype) and own.kind in "iub" and not y.isna().any():
        return y.to_numpy(dtype=own)
    if isinstance(y, np.ndarray):
        return np.array(y.tolist(), dtype=str) if y.dtype.kind == "T" else y
    if not isinstance(y, (list, tuple)) or any(np.ndim(v) for v in y):
        return y
    # numpy removes NULs at the end of text
    cut = any(isinstance(v, str) and v.endswith("\0") for v in y)
    return np.fromiter(y, dtype=object, count=len(y)) if cut or len({type(v) for v in y}) > 1 else y


def _require_labels_present(labels: NDArray[Any]) -> None:
    if labels.dtype.kind == "f":
        missing = ~np.isfinite(labels)
    elif labels.dtype.kind in "mM":
        missing = np.isnat(labels)
    else:
        missing = np.array([is_absent(v) or (isinstance(v, FLOATS) and np.isinf(v)) for v in labels], dtype=bool)
    if missing.any():
        raise ValueError(
            f"Input y contains NaN: {missing.sum()} labels are missing or infinite (NaN, NaT, None, inf), the first in "
            f"row {int(np.argmax(missing))}. Drop these rows or give them a class of their own."
        )


def _of_one_kind(labels: NDArray[Any]) -> NDArray[Any]:
    """Return labels given as objects: text as it is, numbers and bools as arrays of these."""
    one_of_each = {type(v): v for v in labels}
    kinds = {_kind(np.asarray(v).dtype) for v in one_of_each.values()}
    if len(kinds) > 1:
        types = ", ".join(sorted(kind.__name__ for kind in one_of_each))
        raise ValueError(f"Labels must be of one type; got mixed types ({types}). Convert them, e.g. y.astype(str).")
    return np.array(labels.tolist()) if kinds <= {"numbers", "bools"} else labels


def _kind(dtype: np.dtype[Any]) -> str:
    return {"O": "text", "U": "text", "T": "text", "b": "bools", "i": "numbers", "u": "numbers", "f": "numbers"}.get(
        dtype.kind, str(dtype)
    )


def require_labels_of_one_kind(before: NDArray[Any], now: NDArray[Any]) -> None:
    """Raise if labels of two parts differ in type: joined, 1 and "1" (or 1 and True) would become one class."""
    if _kind(before.dtype) != _kind(now.dtype):
        raise ValueError(
            f"Labels must be of one type; got mixed types: {_kind(before.dtype)} before ({before[:3].tolist()}), "
            f"{_kind(now.dtype)} now ({now[:3].tolist()}). Use one type throughout, e.g. y.astype(str)."
        )


def checked_weights(sample_weight: Any, X: Any) -> NDArray[np.float64]:
    """Return one finite weight ≥ 0 per row, not all zero."""
    weights = _check_sample_weight(on_host(sample_weight), X, dtype=np.float64)
    if (weights < 0).any():
        first = int(np.argmax(weights < 0))
        raise ValueError(
            f"Negative values in data passed to `sample_weight`: {float(weights[first])} for row {first}. A weight "
            "says how much a row counts: pass numbers ≥ 0, and 0 to leave a row out."
        )
    if not weights.any():
        raise ValueError("Every sample_weight is zero, so no row is left. Give at least two rows a positive weight.")
    if not WEIGHT_RANGE[0] <= (largest := float(weights.max())) <= WEIGHT_RANGE[1]:
        raise ValueError(
            f"The largest sample_weight is {largest}; possible are {WEIGHT_RANGE[0]} to {WEIGHT_RANGE[1]}. Divide the "
            "weights by a power of ten."
        )
    return weights


def require_finite(
    X: Any,
    numbers: NDArray[np.intp] | None = None,
    names: Sequence[str] | None = None,
    part: str = "",
    *,
    whole: bool = True,
) -> None:
    """Raise, naming the first bad cell, where X holds NaN or infinity.

    numbers : row numbers in the original table; names : column names; part : name of the part, if the table has parts
    whole : whether X holds all rows of the table
    """
    X = X.table if isinstance(X, PickedRows) else X
    X = on_host(X)
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
    row = row if numbers is None else int(numbers[row])
    what, count = "NaN" if np.isnan(value) else "infinity", int(bad.sum())
    infinite = bool(np.isinf(values).any())
    emptied = "infinite cells as NaN, " if infinite else ""  # imputers take no others
    paired = whole and not (part or infinite or sp.issparse(X))
    pairwise = "; PCA and the LDA family also take missing='pairwise'" if paired else ""
    kind, where = (PartError, f"{part}, ") if part else (ValueError, "")
    raise kind(
        f"Input X contains NaN or infinity: {count} cell{'s' * (count > 1)}, the first ({what}) in {where}row {row}, "
        f"column {column if names is None else repr(names[column])}. Drop these rows or fill them in, {emptied}in a "
        f"Pipeline: make_pipeline(SimpleImputer(), …), of sklearn.impute and sklearn.pipeline{pairwise}."
    )


def require_no_infinity(X: NDArray[Any], numbers: NDArray[np.intp] | None) -> None:
    """Raise where a cell is infinite; NaN, a missing one, is none."""
    if np.isinf(X).any():
        require_finite(np.where(np.isnan(X), X.dtype.type(0), X), numbers)


def require_representable(result: NDArray[Any], X: Any) -> None:
    """Raise an error that names bad cells of X if a value computed from X is not finite; only then is X searched."""
    if np.isfinite(result).all():
        return
    require_finite(X)
    largest = float(np.abs(X.data if sp.issparse(X) else X).max(initial=0.0))
    raise ValueError(
        f"X must be small enough that the result fits {result.dtype}; got values up to {largest:.1e}. Check these "
        "cells, or scale the columns first."
    )


def require_two_classes(estimator: Any, classes: NDArray[Any]) -> None:
    if len(classes) < 2:
        raise ValueError(
            f"{type(estimator).__name__} needs at least two classes; got one class, {classes.tolist()[0]!r}. "
            "Check the label column, or use discrim.PCA, which needs no labels."
        )


def partly_labelled_rows(
    estimator: Any, X: Any, y: Any, sample_weight: Any, *, unlabeled: Any
) -> tuple[LabelledRows, NDArray[Any]]:
    """Return checked rows of positive weight and the sorted labels; rows without one form one more, last class.

    Without a label are the rows whose label is missing (NaN, None) or equals `unlabeled`.
    """
    X = checked_table(estimator, X, reset=True)
    n_given = X.shape[0]
    known, labels = _known_labels(estimator, y, n_given, unlabeled)
    X, weights, numbers = _rows_that_count(X, sample_weight)
    if numbers is not None:
        labels, known = labels[np.isin(np.flatnonzero(known), numbers)], known[numbers]
    classes, codes_of_known = np.unique(labels, return_inverse=True)
    require_two_classes(estimator, classes)
    codes = np.full(len(known), len(classes), dtype=np.intp)
    codes[known] = codes_of_known
    require_finite(X, numbers)
    return LabelledRows(X, codes, np.arange(codes.max() + 1), weights, numbers, n_given), classes


def _known_labels(estimator: Any, y: Any, n_rows: int, unlabeled: Any) -> tuple[NDArray[np.bool_], NDArray[Any]]:
    """Return a mask of the rows that have a label, and these labels."""
    given: Any = None if y is None else column_or_1d(unmixed(y), warn=True)
    if given is None or len(given) != n_rows:
        checked_labels(type(estimator).__name__, given, n_rows)  # says what is wrong
    known = np.array([not (is_absent(v) or (unlabeled is not None and v == unlabeled)) for v in given.tolist()])
    if not known.any():
        named = "" if unlabeled is None else f" or equals unlabeled={unlabeled!r}"
        raise ValueError(
            f"Input y contains NaN only: each of the {n_rows} labels is missing (NaN, None){named}. "
            f"{type(estimator).__name__} takes rows without a label next to labelled rows of at least two classes."
        )
    return known, checked_labels(type(estimator).__name__, given[known], int(known.sum()))


def is_absent(label: Any) -> bool:
    """Return whether a value is missing: None, NaN, or those of numpy's and pandas' dates and texts."""
    if isinstance(label, (*FLOATS, np.datetime64, np.timedelta64)):
        return bool(label != label)
    return label is None or type(label).__name__ in ("NAType", "NaTType")


# ---------------------------------------------------------------------- arrays of other libraries


def is_foreign(X: Any) -> bool:
    """Return whether X is an array of another library, which stays on its device."""
    return bool(get_config()["array_api_dispatch"]) and hasattr(X, "__dlpack__") and not isinstance(X, np.ndarray)


def namespace(X: Any) -> Any:
    """Return the functions for such an array."""
    return get_namespace(X)[0]


def on_host(X: Any) -> Any:
    """Return a foreign array as numpy's, copied if it is on another device; anything else unchanged."""
    if not is_foreign(X):
        return X
    X = X.detach() if hasattr(X, "detach") else X
    if hasattr(X, "cpu"):  # PyTorch
        X = X.cpu()
    elif hasattr(X, "get"):  # CuPy
        X = X.get()
    return np.asarray(X) if isinstance(X, np.ndarray) else np.from_dlpack(X)


def as_given(result: NDArray[Any], X: Any) -> Any:
    """Return numbers in the library and on the device of X if it is foreign; labels that are no numbers stay."""
    if not is_foreign(X) or result.dtype.kind not in "fiub":
        return result
    return namespace(X).asarray(np.require(result, requirements=["C", "W"]), device=X.device)
