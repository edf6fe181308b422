"""What a table turns out not to allow, or to allow with a word: said while a method works on it."""

from __future__ import annotations

from typing import Any, NoReturn

import scipy.sparse as sp
from sklearn.exceptions import ConvergenceWarning

from discrim.tables.warn_once import warn

STREAMED_SPARSE_COLUMNS = 5_000  # a stream keeps a d×d scatter
MOST_SCATTERS = 2**32  # bytes of class scatters
MOST_ENEMIES = 2**26  # pairs of nearest enemies: about 60 bytes each where they are put together, 4 GB
MOST_PAIRED_CLASSES = 5_000


def refuse_equal_rows(n_rows: int, n_features: int) -> NoReturn:
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


def refuse_wide_parts(n_features: int, needed: int, max_memory: int, why: str) -> NoReturn:
    raise ValueError(
        f"Parts of {n_features:,} columns came, whose statistics would take {needed:,} bytes, more than the "
        f"{max_memory:,} of max_memory, and {why}. Pass a larger max_memory (to fit_parts, which takes "
        "Dask's collections too; maxMemory of SparkReducer), reduce the columns first (feature selection, or a "
        "hash of them), or take PCA or MarginPCA with few components, which go through the parts several times instead."
    )


def refuse_count(wanted: int, available: int, n_rows: int, n_features: int) -> NoReturn:
    raise ValueError(
        f"n_components={wanted}, but {n_rows} samples in {n_features} features span only {available} directions. "
        f"Pass n_components ≤ {available}, or None for all."
    )


def refuse_gaps(method: str, why: str | None) -> NoReturn:
    why = why or "its choice by cross-validation needs whole rows. Pass a number or 'oas' as shrinkage."
    raise ValueError(
        f"{method}(missing='pairwise') came with missing cells, of which there are statistics only, and {why} Or fill "
        "the cells in: make_pipeline(SimpleImputer(), …)."
    )


def refuse_mle(n_rows: int, n_features: int) -> NoReturn:
    raise ValueError(
        f"n_components='mle' is only supported if n_samples >= n_features, but {n_rows} samples in {n_features} "
        "features came. Pass a number of components, or a fraction of the variance to keep."
    )


def refuse_explained(wanted: int, available: int) -> NoReturn:
    raise ValueError(
        f"n_components={wanted}, but after {available} component(s) nothing of the labels is left to explain. Pass "
        f"n_components ≤ {available}."
    )


def require_room_for_enemies(n_rows: int, n_classes: int) -> None:
    if n_rows * n_classes > MOST_ENEMIES:
        raise ValueError(
            f"{n_rows} rows and {n_classes} classes came: with enemies='each' every row has a nearest row in every "
            f"other class, and of {n_rows * n_classes:,} such pairs only {MOST_ENEMIES:,} fit into memory. Pass "
            "enemies='any', or pairs='mean'."
        )


def require_room_for_scatters(n_classes: int, n_features: int) -> None:
    if (needed := 8 * n_classes * n_features**2) > MOST_SCATTERS:
        raise ValueError(
            f"{n_classes:,} classes and {n_features:,} columns came: a scatter for each class would take "
            f"{needed / 2**30:.1f} GiB, of {MOST_SCATTERS / 2**30:.0f} GiB at most. Reduce the columns first (by PCA), "
            "or take a method that pools the scatters: pairs='mean' or score='fisher', or one of the LDA family."
        )


def refuse_ties(n_rows: int, ties: str) -> NoReturn:
    raise ValueError(
        f"Among {n_rows} rows more than {MOST_ENEMIES:,} pairs are nearest enemies, since so many are equally near "
        f"(ties={ties!r} takes all of them), and more do not fit into memory. Pass ties='lowest', which takes one for "
        "each row and class, or pairs='mean'."
    )


def require_room_for_pairs(n_classes: int) -> None:
    if n_classes > MOST_PAIRED_CLASSES:
        raise ValueError(
            f"bayes_error_ is a mean over all pairs of classes, and {n_classes} classes came; possible are "
            f"{MOST_PAIRED_CLASSES}. `scores_` and `selected_` are there for any number of classes."
        )


def warn_of_sample(method: str, held: int, n_rows: int) -> None:
    warn(
        f"{method} looks at the rows themselves, and was fitted on {held:,} different rows of the {n_rows:,} that were "
        "gathered, drawn uniformly (those of least content hash).",
    )


def warn_of_choice_on_sample(held: int, n_rows: int) -> None:
    warn(
        f"The shrinkage was chosen on {held:,} rows of {n_rows:,}, of each class its share (those of least content "
        "hash); the directions are those of all rows. Pass a number for shrinkage to choose it yourself.",
    )


def warn_of_stream_after_fit(estimator: Any) -> None:
    warn(
        f"partial_fit came after fit, which keeps no running statistics: a new stream starts here, and the rows of the "
        f"fit are not part of it. To include them, give them to partial_fit of a new {type(estimator).__name__}().",
    )


def require_within_spread(trace: float) -> None:
    if not trace > 0:
        raise ValueError(
            "No class varies within itself, so a table this large, which is solved by products with its rows, has no "
            "within-class covariance to measure distances by. Any classifier tells such classes apart."
        )


def refuse_equal_means() -> NoReturn:
    raise ValueError(
        "The means of all classes coincide, so no direction tells them apart by their means. Check the label "
        "column; MarginPCA(pairs='nearest') and BayesErrorPCA(score='bhattacharyya') look beyond the means."
    )


def refuse_no_gain() -> NoReturn:
    raise ValueError(
        "The classes differ along no direction, neither in their means nor in anything else this method looks at. "
        "Check the label column."
    )


def warn_of_singular_within(method: str) -> None:
    warn(
        "The within-class scatter is singular (fewer rows than columns, or columns that do not vary within classes), "
        f"so {method} uses the total scatter instead: directions without any within-class deviation come first, and "
        "the training classes look better apart than new rows will. RegularizedLDA is usually the better choice here.",
    )


def warn_of_lost_digits() -> None:
    warn(
        "Some columns are so nearly combinations of others that what tells them apart is known to few digits, or is "
        "left out: the discriminants may be right to less than half the digits. Look for columns given twice, a row in "
        "other units and stand-ins such as -9999, or use RegularizedLDA with a shrinkage.",
    )


def warn_of_filled_null_space(found: int, wanted: int) -> None:
    warn(
        f"The null space of the within-class scatter gives {found} of {wanted} discriminants (it shrinks as the rows "
        "come to outnumber the columns); the others are OrthogonalLDA's. With n > d use FisherLDA or RegularizedLDA.",
    )


def refuse_pca_components(wanted: int, possible: int, n_rows: int, n_classes: int) -> NoReturn:
    raise ValueError(
        f"pca_components={wanted}, but {n_rows} samples of {n_classes} classes leave at most {possible} dimensions in "
        f"which the within-class scatter is nonsingular. Pass pca_components ≤ {possible}, or None for that many."
    )


def warn_of_no_positive_direction(weight: float) -> None:
    warn(
        f"Along no direction does the between-class spread outweigh {weight} times the spread within classes; only the "
        "best one is kept. Pass an int n_components, or a smaller weight.",
    )


def warn_of_slow_solution(residual: float, max_iter: int) -> None:
    warn(
        f"The discriminants of this large problem were found to a relative residual of {residual:.1e} only, after "
        f"{max_iter} steps. A larger shrinkage makes the problem easier.",
        ConvergenceWarning,
    )


def require_few_rows(method: str, n_rows: int, most: int) -> None:
    if n_rows > most:
        raise ValueError(
            f"{n_rows:,} different rows came, but {method} looks for a matrix of so many rows and columns; possible "
            f"are {most:,}. Fit it on a sample of the rows, or use LogisticPCA."
        )


def warn_of_unsettled_factors(method: str, max_iter: int) -> None:
    warn(
        f"{method} was still getting better after {max_iter} rounds. Pass a larger max_iter, or a larger tol.",
        ConvergenceWarning,
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


def warn_of_drawn_classes(came: int, drawn: int) -> None:
    warn(
        f"{came} classes came, which is {came * (came - 1) // 2} pairs: the pairs of {drawn} classes, drawn by "
        "random_state, stand for all of them when directions are chosen. RegularizedLDA takes all classes at once.",
    )


def warn_of_unknown_error() -> None:
    warn(
        "bayes_error_ is NaN: no two classes have rows enough to hold some out (or, without folds, there are no more "
        "rows than classes). Pass more rows of each class, or judge by a test set.",
    )


def refuse_directions(kind: Any) -> NoReturn:
    raise ValueError(
        f"The columns are in units so small that the directions lie beyond the largest {kind}. Scale the columns "
        "first, e.g. with StandardScaler, or pass float64."
    )


def refuse_kernel(name: str, largest: float) -> NoReturn:
    raise ValueError(
        f"X holds numbers of up to {largest:.1e}, whose kernel {name!r} lies beyond the largest float64. Scale the "
        "columns first, e.g. with StandardScaler, or pass kernel='rbf', which no number is too large for."
    )


def refuse_large_sparse(n_rows: int, n_features: int, most: int, why_all: str | None) -> NoReturn:
    advice = f"pass an int n_components ≤ {most}." if why_all is None else f"reduce the columns first, as {why_all}."
    raise ValueError(
        f"A sparse table of {n_rows}×{n_features} came. At this size only a few directions can be found without making "
        f"it dense: {advice}"
    )


def warn_of_tie(k: int, kept: float, left: float) -> None:
    others = f"{k - 1} or {k + 1}" if k > 1 else "2"
    warn(
        f"Directions {k} and {k + 1} tie (values {kept:.6g} and {left:.6g}): which of them is kept is arbitrary. Keep "
        f"{others} components to avoid the choice.",
    )
