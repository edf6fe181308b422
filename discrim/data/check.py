"""What may come in, and what is said of the rest.

Every input error of discrim is raised here, and says three things: what came, what is possible, what to do.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NoReturn

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.multiclass import type_of_target
from sklearn.utils.validation import _check_sample_weight, check_array, column_or_1d, validate_data

from discrim.data.rows import LabelledRows

STREAMED_SPARSE_COLUMNS = 5_000  # a stream keeps a d×d scatter
MOST_ENEMIES = 2**30  # row numbers that are held at once, eight bytes each
MOST_PAIRED_CLASSES = 5_000
WEIGHT_RANGE = 1e-100, 1e100  # the largest weight may lie here: some methods square them


def labelled_rows(
    estimator: Any, X: Any, y: Any, sample_weight: Any, *, supervised: bool, reset: bool = True
) -> LabelledRows:
    """Checked rows of positive weight, their class numbers and labels (one class, None, when not supervised)."""
    X = checked_table(estimator, X, reset=reset)
    labels = checked_labels(type(estimator).__name__, y, X.shape[0]) if supervised else None
    return _kept_rows(X, labels, checked_weights(sample_weight, X))


def plain_labelled_rows(X: Any, y: Any, sample_weight: Any) -> LabelledRows:
    """The same for those who come without an estimator."""
    _require_unique_names(X)
    X = check_array(X, accept_sparse="csr", dtype=[np.float64, np.float32], ensure_all_finite=False)
    return _kept_rows(X, checked_labels("ClassMoments", y, X.shape[0]), checked_weights(sample_weight, X))


def _kept_rows(X: Any, labels: NDArray[Any] | None, weights: NDArray[np.float64] | None) -> LabelledRows:
    """Rows of positive weight; None for labels makes them one class."""
    supervised = labels is not None
    labels = np.zeros(X.shape[0], dtype=np.intp) if labels is None else labels
    numbers, n_given = None, X.shape[0]
    if weights is not None and not (weights > 0).all():
        numbers = np.flatnonzero(weights > 0)
        X, labels, weights = X[numbers], labels[numbers], weights[numbers]
        require_finite(X, numbers)
    if supervised:
        classes, codes = np.unique(labels, return_inverse=True)
    else:
        classes, codes = np.array([None]), labels
    return LabelledRows(X, codes.astype(np.intp, copy=False), classes, weights, numbers, n_given)


def checked_table(estimator: Any, X: Any, *, reset: bool = False) -> Any:
    """X as float64 or float32, dense or CSR. That its numbers are finite shows in the first sums over it."""
    _require_unique_names(X)
    if np.ma.is_masked(X):
        raise ValueError(
            f"A masked array with {np.ma.count_masked(X)} masked cells came, and these cannot be left out one by one. "
            "Fill them in first, e.g. X.filled(np.nan) and sklearn.impute.SimpleImputer."
        )
    kinds = [np.float64, np.float32]
    try:
        return validate_data(estimator, X, accept_sparse="csr", dtype=kinds, ensure_all_finite=False, reset=reset)
    except (ValueError, TypeError) as error:
        if "could not convert string to float" in str(error) or "promoted" in str(error):  # text, or dates and times
            _refuse_text(X, error)
        raise


def _refuse_text(X: Any, error: Exception) -> None:
    """Raise, naming the first cell that is no number."""
    names = list(getattr(X, "columns", ()))
    for (row, column), value in np.ndenumerate(np.asarray(X, dtype=object)):
        try:
            float(value)
        except (TypeError, ValueError):
            where = repr(names[column]) if names else column
            raise ValueError(
                f"could not convert string to float: {value!r} in row {row}, column {where}. Only numbers can be "
                "reduced: leave the column out, or encode it first, e.g. with sklearn.preprocessing.OneHotEncoder."
            ) from error


def _require_unique_names(X: Any) -> None:
    names = getattr(X, "columns", None)
    if names is None:
        return
    values, counts = np.unique([str(name) for name in names], return_counts=True)
    if (counts > 1).any():
        doubled = ", ".join(repr(str(v)) for v in values[counts > 1][:5])
        raise ValueError(
            f"Column names must be unique, but {doubled} came more than once. Rename the columns, or pass the "
            "table as an array (X.to_numpy()) if the names do not matter."
        )


def checked_labels(who: str, y: Any, n_rows: int) -> NDArray[Any]:
    """y as one label per row."""
    if y is None:
        raise ValueError(
            f"{who} requires y to be passed, but the target y is None. It looks for directions "
            "that keep the classes apart: pass one label per row, or use discrim.PCA, which needs none."
        )
    labels = column_or_1d(_unmixed(_of_numpy(y)), warn=True)
    if len(labels) != n_rows:
        raise ValueError(
            f"Found input variables with inconsistent numbers of samples: X has {n_rows} rows, y has {len(labels)} "
            "labels. Pass one label per row."
        )
    require_labels_present(labels)
    if labels.dtype == object:
        labels = _of_one_kind(labels)
    if (kind := type_of_target(labels, input_name="y")) not in ("binary", "multiclass"):
        raise ValueError(
            f"Unknown label type: {kind}. Labels name classes: pass strings, whole numbers or bools, one per row. To "
            "make classes of a measurement, cut it into ranges, e.g. with pandas.cut(…).astype(str)."
        )
    return labels


def _of_numpy(y: Any) -> Any:
    """Whole numbers, bools and text of other kinds as numpy's own: by way of floats, long numbers would lose digits."""
    own = getattr(getattr(y, "dtype", None), "numpy_dtype", None)  # of pandas' dtypes that know missing values
    if isinstance(own, np.dtype) and own.kind in "iub" and not y.isna().any():
        return y.to_numpy(dtype=own)
    return np.array(y.tolist(), dtype=str) if isinstance(y, np.ndarray) and y.dtype.kind == "T" else y


def _unmixed(y: Any) -> Any:
    """A list that holds several types as it is: as an array, 1 and "a" and NaN would all turn into text."""
    if isinstance(y, (list, tuple)) and len({type(v) for v in y}) > 1 and not any(np.ndim(v) for v in y):
        return np.fromiter(y, dtype=object, count=len(y))
    return y


def require_labels_present(labels: NDArray[Any]) -> None:
    if labels.dtype.kind == "f":
        missing = ~np.isfinite(labels)
    elif labels.dtype == object:
        missing = np.array([_is_missing(v) for v in labels], dtype=bool)
    else:
        return
    if missing.any():
        raise ValueError(
            f"Input y contains NaN: {missing.sum()} labels are missing or infinite (NaN, None, inf), the first in "
            f"row {int(np.argmax(missing))}. Drop these rows or give them a class of their own."
        )


def _is_missing(label: Any) -> bool:
    if isinstance(label, (float, np.floating)):
        return not np.isfinite(label)
    return label is None or type(label).__name__ in ("NAType", "NaTType")  # of pandas, which need not be there


def _of_one_kind(labels: NDArray[Any]) -> NDArray[Any]:
    """Labels that came as objects: text as it is, numbers and bools as arrays of these."""
    one_of_each = {type(v): v for v in labels}
    kinds = {_kind(np.asarray(v).dtype) for v in one_of_each.values()}
    if len(kinds) > 1:
        types = ", ".join(sorted(kind.__name__ for kind in one_of_each))
        raise ValueError(f"Labels of mixed types came ({types}). Use one type throughout, e.g. y.astype(str).")
    return np.array(labels.tolist()) if kinds <= {"numbers", "bools"} else labels


def _kind(dtype: np.dtype[Any]) -> str:
    return {"O": "text", "U": "text", "T": "text", "b": "bools", "i": "numbers", "u": "numbers", "f": "numbers"}.get(
        dtype.kind, str(dtype)
    )


def require_labels_of_one_kind(before: NDArray[Any], now: NDArray[Any]) -> None:
    """Labels of two parts of a table: joined, 1 and "1" (or 1 and True) would become one class."""
    if _kind(before.dtype) != _kind(now.dtype):
        raise ValueError(
            f"Labels of mixed types came: {_kind(before.dtype)} before ({before[:3].tolist()}), {_kind(now.dtype)} now "
            f"({now[:3].tolist()}). Use one type throughout, e.g. y.astype(str)."
        )


def checked_weights(sample_weight: Any, X: Any) -> NDArray[np.float64] | None:
    """One finite weight ≥ 0 per row, not all zero; None where none are given."""
    if sample_weight is None:
        return None
    weights = _check_sample_weight(sample_weight, X, dtype=np.float64)
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
            "weights by their mean: only their ratios choose directions."
        )
    return weights


def require_finite(X: Any, numbers: NDArray[np.intp] | None = None) -> None:
    """Raise, naming the first bad cell, where X holds NaN or infinity. `numbers`: its rows' in the table that came."""
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
    raise ValueError(
        f"Input X contains NaN or infinity: {count} cell{'s' * (count > 1)}, the first ({what}) in row {row}, column "
        f"{column}. Drop these rows or fill them in first, e.g. with sklearn.impute.SimpleImputer."
    )


def require_finite_result(result: NDArray[Any], X: Any) -> None:
    """Bad cells of X show in what was computed from it; only then is X searched for them."""
    if not np.isfinite(result).all():
        require_finite(X)


def require_two_classes(estimator: Any, classes: NDArray[Any]) -> None:
    if len(classes) < 2:
        raise ValueError(
            f"{type(estimator).__name__} needs at least two classes, but only one class came: {classes.tolist()[0]!r}. "
            "Check the label column, or use discrim.PCA, which needs no labels."
        )


def require_some_spread(rank: int, n_rows: int, n_features: int) -> None:
    if rank == 0:
        raise ValueError(
            f"The n_samples={n_rows} rows in {n_features} feature(s) are all equal as far as this method looks, so "
            "there is no direction to find. Pass at least two rows that differ."
        )


def require_streamable_sparse(X: Any) -> None:
    if sp.issparse(X) and X.shape[1] > STREAMED_SPARSE_COLUMNS:
        raise ValueError(
            f"partial_fit came with a sparse table of {X.shape[1]} columns, but a stream keeps a d×d scatter, which is "
            f"limited to {STREAMED_SPARSE_COLUMNS} columns for sparse input. Use fit on all rows (it never makes X "
            "dense), or reduce the columns first, e.g. with sklearn.feature_selection or a HashingVectorizer."
        )


def requested_count(n_components: Any, name: str = "n_components", also: str = "") -> int | float | None:
    """A count as an int ≥ 1, a fraction in (0, 1), or None."""
    if n_components is None:
        return None
    if isinstance(n_components, (int, np.integer)) and not isinstance(n_components, bool) and n_components >= 1:
        return int(n_components)
    if isinstance(n_components, (float, np.floating)) and 0 < n_components < 1:
        return float(n_components)
    raise ValueError(
        f"{name}={n_components!r} came; possible are an int ≥ 1, a fraction in (0, 1) of what there is to keep, "
        + f"{also}, " * bool(also)
        + "or None for all."
    )


def refuse_count(wanted: int, available: int, n_rows: int, n_features: int) -> NoReturn:
    raise ValueError(
        f"n_components={wanted}, but {n_rows} samples in {n_features} features span only {available} directions. "
        f"Pass n_components ≤ {available}, or None for all."
    )


def require_choice(name: str, value: Any, choices: tuple[str, ...]) -> None:
    if not isinstance(value, str) or value not in choices:
        listed = ", ".join(repr(c) for c in choices)
        raise ValueError(f"{name}={value!r} came; possible are {listed}.")


def require_emphasis(emphasis: Any, n_classes: int) -> None:
    if emphasis is not None and (np.shape(emphasis) != (n_classes,) or not (np.asarray(emphasis) > 0).all()):
        raise ValueError(
            f"emphasis of shape {np.shape(emphasis)} came for {n_classes} classes. Pass a number above 0 for each."
        )


def require_room_for_enemies(n_rows: int, n_classes: int) -> None:
    if n_rows * n_classes > MOST_ENEMIES:
        raise ValueError(
            f"{n_rows} rows and {n_classes} classes came: with enemies='each' every row has a nearest row in every "
            f"other class, and {n_rows * n_classes:,} of them do not fit into memory. Pass enemies='any', or "
            "pairs='mean'."
        )


def require_room_for_pairs(n_classes: int) -> None:
    if n_classes > MOST_PAIRED_CLASSES:
        raise ValueError(
            f"bayes_error_ is a mean over all pairs of classes, and {n_classes} classes came; possible are "
            f"{MOST_PAIRED_CLASSES}. `scores_` and `selected_` are there for any number of classes."
        )


def require_whole_weights(weights: NDArray[np.float64] | None, method: str) -> None:
    if weights is not None and not (weights == np.round(weights)).all():
        first = int(np.argmax(weights != np.round(weights)))
        raise ValueError(
            f"{method} takes whole-number sample weights (how often a row counts), but {float(weights[first])} came. "
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


def checked_priors(priors: Any, shares: NDArray[np.float64]) -> NDArray[np.float64]:
    """Class probabilities: the classes' own shares (None), "equal", or given ones."""
    if priors is None:
        return shares
    if isinstance(priors, str) and priors == "equal":
        return np.full(len(shares), 1 / len(shares))
    if isinstance(priors, str):
        raise ValueError(f"priors={priors!r} came; possible are None, 'equal' or one probability per class.")
    try:
        given = np.asarray(priors, dtype=np.float64)
    except (TypeError, ValueError):
        given = np.empty(0)
    if given.shape != shares.shape or not (given > 0).all() or abs(given.sum() - 1) > 1e-6:
        raise ValueError(
            f"priors must be {len(shares)} positive numbers (one per class, in the order of classes_) that sum to 1, "
            f"but {priors!r} came."
        )
    return given


def checked_class_weight(class_weight: Any, classes: NDArray[Any], totals: NDArray[np.float64]) -> NDArray[np.float64]:
    """A factor on the weights of each class: "balanced" makes the classes' totals equal, a dict names factors."""
    if isinstance(class_weight, str) and class_weight == "balanced":
        return totals.sum() / (len(totals) * totals)
    if not isinstance(class_weight, dict):
        raise ValueError(f"class_weight={class_weight!r} came; possible are None, 'balanced' or a dict by label.")
    strange = [label for label in class_weight if isinstance(label, str) != (classes.dtype.kind in "UOT")]
    if strange:
        raise ValueError(
            f"class_weight names {strange[:5]}, but the labels are {classes.tolist()[:10]}. Use the labels as in y: "
            "text is not a number."
        )
    given = [class_weight.get(label, 1.0) for label in classes.tolist()]
    if not all(_is_number(factor) and WEIGHT_RANGE[0] <= factor <= WEIGHT_RANGE[1] for factor in given):
        raise ValueError(
            f"class_weight={class_weight!r} came, but the factors must be positive numbers, from "
            f"{WEIGHT_RANGE[0]:g} to {WEIGHT_RANGE[1]:g}."
        )
    return np.array(given, dtype=np.float64)


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float, np.integer, np.floating)) and not isinstance(value, bool)


def require_within_spread(trace: float) -> None:
    if not trace > 0:
        raise ValueError(
            "No class varies within itself, so a table this large, which is solved by products with its rows, has no "
            "within-class covariance to measure distances by. Any classifier tells such classes apart."
        )


def require_different_means(differ: bool) -> None:
    if not differ:
        raise ValueError(
            "The means of all classes coincide, so no direction tells them apart by their means. Check the label "
            "column; MarginPCA(pairs='nearest') and BayesErrorPCA(score='bhattacharyya') look beyond the means."
        )


def require_folds(cv: Any, largest_class: int) -> None:
    if cv < 2:
        raise ValueError(f"cv={cv} came; folds are at least 2. Pass an int ≥ 2, a splitter, or a list of splits.")
    if largest_class < 2:
        raise ValueError(
            "Every class has one row only, so no row can be held out for a search. Pass shrinkage as a number, and "
            "n_components as an int or None."
        )


def checked_row_numbers(numbers: Any, n_rows: int) -> NDArray[np.intp]:
    """Row numbers of one side of a split, from numbers or from a mask."""
    array = np.asarray(numbers)
    if array.dtype == bool:
        if len(array) != n_rows:
            raise ValueError(
                f"cv gives a mask of {len(array)} rows, but {n_rows} rows came. Pass one bool for each row."
            )
        return np.flatnonzero(array)
    array = array.astype(np.intp)
    wrong = array[(array < -n_rows) | (array >= n_rows)]
    if len(wrong):
        raise ValueError(f"cv names row {int(wrong[0])}, but {n_rows} rows came. Rows are numbered from 0.")
    return np.where(array < 0, array + n_rows, array)


def require_splits(splits: list[tuple[NDArray[np.intp], NDArray[np.intp]]]) -> None:
    if not splits:
        raise ValueError(
            "cv gives no split at all. Pass an int ≥ 2, a splitter, or a list of (train, test) row numbers."
        )
    for number, sides in enumerate(splits):
        for side, name in zip(sides, ("train", "test"), strict=True):
            if len(side) == 0:
                raise ValueError(
                    f"Split {number} of cv has no row of positive weight to {name} on. Give both sides of every split "
                    "at least one."
                )


@contextmanager
def columns_as_before(estimator: Any) -> Iterator[None]:
    """What an estimator says of its columns stays as it was where a fit fails: so does the model, which needs them."""
    state = vars(estimator)
    before = {name: state[name] for name in ("n_features_in_", "feature_names_in_") if name in state}
    try:
        yield
    except BaseException:
        for name in ("n_features_in_", "feature_names_in_"):
            state.pop(name, None)
        state.update(before)
        raise


def checked_shrinkage(shrinkage: Any, rules: tuple[str, ...]) -> float | str:
    """A number in [0, 1] or the name of a rule."""
    if isinstance(shrinkage, str) and shrinkage in rules:
        return shrinkage
    if _is_number(shrinkage) and 0 <= shrinkage <= 1:
        return float(shrinkage)
    listed = ", ".join(repr(r) for r in rules)
    raise ValueError(f"shrinkage={shrinkage!r} came; possible are a number in [0, 1], {listed}.")


def warn_of_singular_within(method: str) -> None:
    warnings.warn(
        "The within-class scatter is singular (fewer rows than columns, or columns that do not vary within classes), "
        f"so {method} uses the total scatter instead: directions without any within-class deviation come first, and "
        "the training classes look better apart than new rows will. RegularizedLDA is usually the better choice here.",
        UserWarning,
        stacklevel=2,
    )


def warn_of_filled_null_space(found: int, wanted: int) -> None:
    warnings.warn(
        f"The null space of the within-class scatter gives {found} of {wanted} discriminants (it shrinks as the rows "
        "come to outnumber the columns); the others are OrthogonalLDA's. With n > d use FisherLDA or RegularizedLDA.",
        UserWarning,
        stacklevel=2,
    )


def refuse_pca_components(wanted: int, possible: int, n_rows: int, n_classes: int) -> NoReturn:
    raise ValueError(
        f"pca_components={wanted}, but {n_rows} samples of {n_classes} classes leave at most {possible} dimensions in "
        f"which the within-class scatter is nonsingular. Pass pca_components ≤ {possible}, or None for that many."
    )


def checked_weight_parameter(weight: Any) -> float:
    if _is_number(weight) and 0 <= weight < np.inf:
        return float(weight)
    raise ValueError(f"weight={weight!r} came; possible is a number ≥ 0 (how much the spread within classes counts).")


def warn_of_no_positive_direction(weight: float) -> None:
    warnings.warn(
        f"Along no direction does the between-class spread outweigh {weight} times the spread within classes; only the "
        "best one is kept. Pass an int n_components, or a smaller weight.",
        UserWarning,
        stacklevel=2,
    )


def warn_of_slow_solution(residual: float, max_iter: int) -> None:
    warnings.warn(
        f"The discriminants of this large problem were found to a relative residual of {residual:.1e} only, after "
        f"{max_iter} steps. A larger shrinkage makes the problem easier.",
        ConvergenceWarning,
        stacklevel=2,
    )


# ---------------------------------------------------------------------- rows of which some have no label


def partly_labelled_rows(
    estimator: Any, X: Any, y: Any, sample_weight: Any, *, unlabeled: Any
) -> tuple[LabelledRows, NDArray[Any]]:
    """Checked rows of positive weight and the sorted labels; rows without one are numbered like one more, last class.

    Without a label are the rows whose label is missing (NaN, None) or equals `unlabeled`.
    """
    X = checked_table(estimator, X, reset=True)
    weights = checked_weights(sample_weight, X)
    known, labels = _known_labels(estimator, y, X.shape[0], unlabeled)
    taken = np.ones(len(known), dtype=bool) if weights is None else weights > 0
    classes, codes_of_known = np.unique(labels[taken[known]], return_inverse=True)
    require_two_classes(estimator, classes)
    codes = np.full(len(known), len(classes), dtype=np.intp)
    codes[known & taken] = codes_of_known
    numbers = None
    if not taken.all():
        numbers = np.flatnonzero(taken)
        X, codes, weights = X[numbers], codes[numbers], None if weights is None else weights[numbers]
    require_finite(X, numbers)
    return LabelledRows(X, codes, np.arange(codes.max() + 1), weights, numbers), classes


def _known_labels(estimator: Any, y: Any, n_rows: int, unlabeled: Any) -> tuple[NDArray[np.bool_], NDArray[Any]]:
    """Which rows have a label, and these labels."""
    if y is None:
        checked_labels(type(estimator).__name__, y, n_rows)  # says what is wrong
    given = column_or_1d(_unmixed(y), warn=True)
    if len(given) != n_rows:
        checked_labels(type(estimator).__name__, given, n_rows)
    known = np.array([not (_is_absent(v) or (unlabeled is not None and v == unlabeled)) for v in given.tolist()])
    if not known.any():
        named = "" if unlabeled is None else f" or equals unlabeled={unlabeled!r}"
        raise ValueError(
            f"Input y contains NaN only: each of the {n_rows} labels is missing (NaN, None){named}. "
            f"{type(estimator).__name__} takes rows without a label beside labelled rows of at least two classes."
        )
    return known, checked_labels(type(estimator).__name__, given[known], int(known.sum()))


def _is_absent(label: Any) -> bool:
    if isinstance(label, float):
        return label != label
    return label is None or type(label).__name__ in ("NAType", "NaTType")


# ---------------------------------------------------------------------- parameters of the shift and its kin


def checked_shift(shift: Any) -> float | str:
    """A finite number ≥ 0 or "cv"."""
    if isinstance(shift, str) and shift == "cv":
        return shift
    if _is_number(shift) and 0 <= shift < np.inf:
        return float(shift)
    raise ValueError(
        f"shift={shift!r} came; possible are a number ≥ 0 (how far the rows move relative to their spread; 0 is the "
        "plain extractor, 0.3 to 10 are useful) and 'cv'."
    )


def require_positive(name: str, value: Any) -> None:
    if not _is_number(value) or not 0 < value < np.inf:
        raise ValueError(f"{name}={value!r} came; possible is a finite number above 0.")


def require_transformer(name: str, transformer: Any) -> None:
    if isinstance(transformer, type) or not (hasattr(transformer, "fit") and hasattr(transformer, "transform")):
        what = f"the class {transformer.__name__}" if isinstance(transformer, type) else f"{transformer!r}"
        raise TypeError(
            f"{name} must be a transformer, an object with fit and transform, but {what} came. Pass an instance such "
            "as discrim.PCA(n_components=5), sklearn.decomposition.FastICA(n_components=5) or a Pipeline of them."
        )


def require_nonnegative(X: Any, extractor: str) -> None:
    values = X.data if sp.issparse(X) else X
    if values.size and values.min() < 0:
        raise ValueError(
            f"Negative values in data passed to {extractor}, which takes numbers ≥ 0 only; the smallest is "
            f"{float(values.min())}. Scale the columns first, e.g. with MinMaxScaler (behind an embedding: "
            "embedding=make_pipeline(RBFSampler(), MinMaxScaler(clip=True)))."
        )


def refuse_sparse(extractor: str) -> NoReturn:
    raise TypeError(
        f"Sparse data was passed, but dense data is required: the extractor {extractor} takes no sparse table. Use "
        "X.toarray(), an embedding, or discrim.PCA as the extractor, which keeps X sparse."
    )


def refuse_fractional_weights(weight: float, extractor: str) -> NoReturn:
    raise ValueError(
        f"sample_weight holds {weight}, but the extractor {extractor} takes no weights, so that only whole numbers "
        "(how often a row counts) are possible. Pass integer weights, or discrim.PCA as the extractor."
    )


def refuse_folds(label: Any) -> NoReturn:
    raise ValueError(
        f"shift='cv' holds out rows of each class, but class {label!r} has only one row. Pass a number as shift, e.g. "
        "1.0, leave the class out, or pass a splitter as cv."
    )


def refuse_subspace_count(wanted: int, available: int, n_classes: int) -> NoReturn:
    raise ValueError(
        f"n_components={wanted}, but the SVM's weights for {n_classes} classes span only {available} directions. Pass "
        f"n_components ≤ {available}, or None for all; MaxMarginShift gives more."
    )


def require_layer(n_components: Any, max_iter: Any, alpha: Any) -> None:
    """Parameters of an autoencoder."""
    for name, value in (("n_components", n_components), ("max_iter", max_iter)):
        if isinstance(value, bool) or not isinstance(value, (int, np.integer)) or value < 1:
            raise ValueError(f"{name}={value!r} came; possible is an int ≥ 1.")
    if not _is_number(alpha) or not 0 <= alpha < np.inf:
        raise ValueError(f"alpha={alpha!r} came; possible is a finite number ≥ 0 (how much large weights cost).")


def require_starts(n_init: Any) -> None:
    if not isinstance(n_init, (int, np.integer)) or isinstance(n_init, bool) or n_init < 0:
        raise ValueError(f"n_init={n_init!r} came; possible is a whole number ≥ 0 of random starts.")


def warn_of_drawn_classes(came: int, drawn: int) -> None:
    warnings.warn(
        f"{came} classes came, which is {came * (came - 1) // 2} pairs: the pairs of {drawn} classes, drawn by "
        "random_state, stand for all of them when directions are chosen. RegularizedLDA takes all classes at once.",
        UserWarning,
        stacklevel=2,
    )
