"""Statistics gathered from parts of a table; they can be added in any order.

    part of a table → Gatherer.add, batch by batch → Statistics ,    Statistics + Statistics ,    fit_statistics(total)

Engines (files, Dask, Spark) only gather. If a choice needs folds, a row's fold is derived from its content hash, and
class moments are kept for every fold. If a method needs rows, a bounded sample of them is kept.
"""

from __future__ import annotations

import functools
import hashlib
import operator
import reprlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray
from sklearn.utils import _safe_indexing

from discrim.core.landmarks import FixedFeatures
from discrim.core.moments.class_moments import ClassMoments
from discrim.core.moments.column_totals import ColumnTotals
from discrim.core.moments.few_rows import FewRows, Fold, add_folds, are_few
from discrim.core.moments.row_sample import RowSample
from discrim.core.row_hash import Hashes, hash_folds, position_hashes, row_hashes
from discrim.plain_format import PlainFormat
from discrim.tables.check_parameters import class_factors
from discrim.tables.rows import LabelledRows
from discrim.tables.table_error import quoted
from discrim.tables.validation import PartError, labelled_rows, names_of, require_finite
from discrim.threads import computed_once, on_one_blas_thread

Array = NDArray[np.float64]
SHOWN_ROWS, SHOWN_EVERY = 256, 4096  # rows that identify a part: the first ones, and every so many after them
BLOCK_CELLS = 2**22  # of an array, processed at a time


@dataclass(frozen=True)
class Gathering:
    """Statistics that an estimator needs from every part.

    keep : which scatters ("pooled", "each", "means")
    n_folds : 0 if no choice needs folds
    seed : determines the folds
    sample_rows : 0 if the method needs no rows
    columns : True if a scaler needs minimum, maximum and deviation of the columns
    class_weight : factors on the weights of a class's rows
    features : features whose moments are computed; None for the columns themselves
    """

    method: str = field(default="This method", compare=False)
    supervised: bool = True
    keep: str = "pooled"
    n_folds: int = 0
    seed: int = 0
    sample_rows: int = 0
    columns: bool = False
    class_weight: Mapping[Any, float] | None = None
    features: FixedFeatures | None = None

    @property
    def needs_hashes(self) -> bool:
        return self.n_folds > 0 or self.sample_rows > 0

    def sufficing_for(self, wanted: Gathering) -> Gathering:
        """Return self if its statistics include all that is wanted; raise otherwise."""
        # without folds, errors come from an analytic estimate if no choice needs folds
        unfolded = 0 in (self.n_folds, wanted.n_folds)
        suffices = {
            "supervised": self.supervised == wanted.supervised,
            "keep": self.keep == wanted.keep,
            "class_weight": self.class_weight == wanted.class_weight,
            "sample_rows": wanted.sample_rows in (0, self.sample_rows),
            "columns": self.columns >= wanted.columns,
            "features": self.features == wanted.features,
            "n_folds": wanted.n_folds in (0, self.n_folds) or (self.n_folds == 0 and wanted.sample_rows == 0),
            "seed": unfolded or self.seed == wanted.seed,
        }
        if lacking := [name for name, enough in suffices.items() if not enough]:
            raise ValueError(
                f"Statistics must be gathered with {wanted._describe(lacking)}; got {self._describe(lacking)}. Use the "
                "same estimator and parameters for all of them; in a stream, do not change the parameters."
            )
        return self

    def _describe(self, names: Iterable[str]) -> str:
        """Return these fields and their values, abbreviated."""
        return ", ".join(f"{name}={reprlib.repr(getattr(self, name))}" for name in names)

    def weighted(self, rows: LabelledRows) -> LabelledRows:
        """Return the rows with class weights applied."""
        if self.class_weight is None:
            return rows
        # other classes may be in other parts
        known = np.array([*self.class_weight, *rows.classes.tolist()], dtype=object)
        factors = class_factors(dict(self.class_weight), rows.classes, rows.class_totals, known)[rows.codes]
        return replace(rows, weights=factors * (1.0 if rows.weights is None else rows.weights))


@dataclass(frozen=True, eq=False)
class Statistics:
    """Additive statistics of some parts of a table, computed by `estimator.statistics(X, y)`.

    Parameters
    ----------
    gathering : Gathering
        The kind of statistics that was gathered.
    names : tuple of str or None
        Column names, if there are any.
    dtype : numpy.dtype
        Data type of the rows.
    folds : tuple of ClassMoments or FewRows
        Class moments of each fold, or its rows if they take less memory; one entry for all rows if there are no folds.
    sample : RowSample or None
        The rows with the smallest content hashes.
    columns : ColumnTotals or None
        Minimum, maximum, mean and scatter of each column, for a scaler.
    parts : ndarray of uint64
        Identifiers of the parts by content; adding a part twice raises an error.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from discrim import RegularizedLDA
    >>> X, y = load_iris(return_X_y=True)
    >>> model = RegularizedLDA(shrinkage=0.1)
    >>> total = model.statistics(X[::2], y[::2]) + model.statistics(X[1::2], y[1::2])
    >>> model.fit_statistics(total).score(X, y)
    0.98
    """

    gathering: Gathering
    names: tuple[str, ...] | None
    dtype: np.dtype[Any]
    folds: tuple[Fold, ...]
    sample: RowSample | None
    columns: ColumnTotals | None
    parts: Hashes

    @computed_once
    def fold_moments(self) -> tuple[ClassMoments, ...]:
        """Class moments of each fold."""
        return tuple(fold.moments() if isinstance(fold, FewRows) else fold for fold in self.folds)

    @computed_once
    def moments(self) -> ClassMoments:
        """Class moments of all rows."""
        return functools.reduce(operator.add, self.fold_moments)

    def __getstate__(self) -> dict[str, Any]:
        """Leave out the sums of moments that were computed, which may be larger than all folds."""
        return {one.name: getattr(self, one.name) for one in fields(self)}

    @property
    def n_rows(self) -> int:
        return sum(fold.n_rows for fold in self.folds)

    @property
    def n_features(self) -> int:
        features = self.gathering.features
        return self.folds[0].n_features if features is None else features.n_columns

    def __radd__(self, other: int) -> Statistics:
        return self if other == 0 else NotImplemented  # the built-in sum starts with 0

    def __add__(self, other: Statistics) -> Statistics:
        require_statistics(other)
        mine, theirs = self.gathering, other.gathering
        if mine != theirs:
            apart = [
                one.name for one in fields(mine) if one.compare and getattr(mine, one.name) != getattr(theirs, one.name)
            ]
            raise ValueError(
                f"Statistics must be gathered with the same estimator and parameters to be added; got "
                f"{mine._describe(apart)} and {theirs._describe(apart)}."
            )
        require_same_columns(self.names, self.n_features, other.names, other.n_features)
        twice = np.intersect1d(self.parts, other.parts)
        if len(twice):
            raise ValueError(
                f"Each part must be added once; got {len(twice)} of the {len(other.parts)} parts twice (the first is "
                f"{int(twice[0]):016x}). If the table does hold the same rows twice, give its parts different names: "
                "statistics(X, y, part='2024-01')."
            )
        return Statistics(
            self.gathering,
            self.names,
            np.result_type(self.dtype, other.dtype),
            tuple(map(add_folds, self.folds, other.folds)),
            _joint(self.sample, other.sample),
            _joint(self.columns, other.columns),
            np.union1d(self.parts, other.parts),
        )

    def standardised(self, shift: Array, scale: Array) -> Statistics:
        """Return the statistics of (x − shift) / scale by column; folds and sample stay those of the original rows."""
        sample = self.sample
        if sample is not None:
            X = sample.X.toarray() if sp.issparse(sample.X) and shift.any() else sample.X
            X = sp.csr_array(X / scale) if sp.issparse(X) else (X - shift) / scale
            sample = replace(sample, X=X.astype(self.dtype))
        folds = tuple(fold.standardised(shift, scale) for fold in self.fold_moments)
        return replace(self, folds=folds, sample=sample, columns=None)

    def to_bytes(self) -> bytes:
        """Return the statistics as bytes: versioned, with a checksum, identical on every machine."""
        return FORMAT.to_bytes(self)

    @classmethod
    def from_bytes(cls, data: bytes) -> Statistics:
        """Return the statistics stored by `to_bytes`; raise if the bytes are damaged."""
        return FORMAT.from_bytes(data, "The bytes")

    def __repr__(self) -> str:
        held = "" if self.sample is None else f", {len(self.sample)} sampled"
        n_classes = len(np.unique(np.concatenate([fold.classes for fold in self.folds])))
        return (
            f"Statistics({self.n_rows} rows × {self.n_features} features in {len(self.parts)} parts, "
            f"{n_classes} classes, {len(self.folds)} folds{held})"
        )


FORMAT = PlainFormat(
    "statistics", 1, (Statistics, Gathering, FixedFeatures, ClassMoments, FewRows, RowSample, ColumnTotals)
)
NO_PARTS = np.empty(0, np.uint64)


def require_statistics(given: Any) -> None:
    """Raise if the argument is not a Statistics object."""
    if not isinstance(given, Statistics):
        raise TypeError(
            f"statistics must be a Statistics object; got {type(given).__name__}. Pass the result of an estimator's "
            "statistics(X, y) for a part of the table, or a sum of such; Statistics.from_bytes restores stored ones."
        )


def statistics_of_rows(
    gathering: Gathering,
    rows: LabelledRows,
    names: tuple[str, ...] | None = None,
    so_far: Statistics | None = None,
    other_sample: RowSample | None = None,
) -> Statistics:
    """Return statistics of validated rows, added to those so far, whose class means serve as pilots.

    other_sample : sample of other rows to which the sample of these will be added
    """
    if so_far is not None:
        require_same_columns(so_far.names, so_far.n_features, names, rows.shape[1])
    columns = ColumnTotals.from_rows(rows) if gathering.columns else None
    rows = gathering.weighted(rows)
    hashes = row_hashes(rows.X) if gathering.needs_hashes else None
    parts = [rows]
    if gathering.n_folds and hashes is not None:
        drawn = hash_folds(hashes, gathering.n_folds, gathering.seed)
        parts = [rows.take(np.flatnonzero(drawn == fold)) for fold in range(gathering.n_folds)]
    before = [None] * len(parts) if so_far is None else so_far.folds
    folds = tuple(_with_rows(gathering, *pair) for pair in zip(before, parts, strict=True))
    sample = None
    if hashes is not None and gathering.sample_rows:
        others = [one for one in (None if so_far is None else so_far.sample, other_sample) if one is not None]
        sample = RowSample.from_rows(rows, hashes, gathering.sample_rows, others)
    if so_far is not None:
        sample, columns = _joint(so_far.sample, sample), _joint(so_far.columns, columns)
    dtype = rows.X.dtype if so_far is None else np.result_type(so_far.dtype, rows.X.dtype)
    names = names if so_far is None or names is not None else so_far.names
    known = gathering if gathering.features is None else replace(gathering, features=gathering.features.bare)
    return Statistics(known, names, dtype, folds, sample, columns, NO_PARTS)


def _with_rows(gathering: Gathering, so_far: Fold | None, rows: LabelledRows) -> Fold:
    """Return what was gathered including more rows, in the requested features."""
    if so_far is None and gathering.features is None and gathering.keep != "means" and are_few(*rows.shape):
        return FewRows.from_rows(rows, gathering.keep)
    for block in [rows] if gathering.features is None else gathering.features.blocks(rows):
        so_far = ClassMoments.from_rows(block, keep=gathering.keep) if so_far is None else so_far.with_rows(block)
    assert so_far is not None
    return so_far


def _joint(one: Any, other: Any) -> Any:
    """Return the sum if both were gathered, else None."""
    return None if one is None or other is None else one + other


class Gatherer:
    """Accumulator for the statistics of one part of a table, batch by batch, in memory independent of its length.

    part : name of the part in errors, which also distinguishes it from another part with the same rows
    names : column names, if the batches are arrays
    others : statistics of other parts to which these will be added; rows that cannot enter the joint sample are skipped
    """

    def __init__(
        self,
        gathering: Gathering,
        part: str = "",
        *,
        names: Sequence[str] | None = None,
        others: Statistics | None = None,
    ) -> None:
        self.gathering, self.part, self._names = gathering, part, None if names is None else tuple(names)
        self._other_sample = None if others is None else others.sample
        self.n_given = 0
        self._so_far: Statistics | None = None
        self._shown = 0

    @on_one_blas_thread
    def add(self, X: Any, y: ArrayLike | None = None, sample_weight: ArrayLike | None = None) -> None:
        """Add rows; a long array (a memory-mapped one, say) is processed block by block.

        A block that raises an error changes nothing.
        """
        n_rows = np.shape(X)[0]
        step = max(1, BLOCK_CELLS * n_rows // max(1, X.size)) if isinstance(X, np.ndarray) else n_rows
        per_row = y, sample_weight
        if n_rows <= step or any(one is not None and np.shape(one)[:1] != (n_rows,) for one in per_row):
            self._add(X, *per_row)  # raises if the lengths differ
            return
        for start in range(0, n_rows, step):
            rows = slice(start, start + step)
            self._add(X[rows], *(None if one is None else _safe_indexing(one, rows) for one in per_row))

    def _add(self, X: Any, y: Any, sample_weight: Any) -> None:
        n_rows = np.shape(X)[0]
        if n_rows and (sample_weight is None or np.any(sample_weight)):
            try:
                asked = self.gathering
                rows = labelled_rows(asked.method, X, y, sample_weight, supervised=asked.supervised)
                self._add_rows(rows, self._names or names_of(X))
            except PartError:
                raise
            except ValueError as error:
                where = f"{self.part}, from row {self.n_given} on" if self.n_given else self.part
                raise PartError(f"{where}: {error}" if where else str(error)) from error
        self.n_given += n_rows

    def _add_rows(self, rows: LabelledRows, names: tuple[str, ...] | None) -> None:
        numbers = (np.arange(rows.shape[0]) if rows.numbers is None else rows.numbers) + self.n_given
        try:
            self._so_far = statistics_of_rows(self.gathering, rows, names, self._so_far, self._other_sample)
        except ValueError:
            require_finite(rows.X, numbers, names, self.part or "the part")
            raise
        shown = np.flatnonzero((numbers < SHOWN_ROWS) | (numbers % SHOWN_EVERY == 0))
        digest = position_hashes(row_hashes(rows.X[shown]), numbers[shown]).sum(dtype=np.uint64)
        self._shown = (self._shown + int(digest)) % 2**64

    @property
    def is_empty(self) -> bool:
        """True if no row was added yet."""
        return self._so_far is None

    def statistics(self) -> Statistics:
        """Return the gathered statistics."""
        if self._so_far is None:
            raise ValueError(f"{self.part or 'The part'} must have rows; got none. Leave it out.")
        return replace(self._so_far, parts=self._identity(self._so_far.folds))

    def _identity(self, folds: tuple[Fold, ...]) -> Hashes:
        """Return an identifier from name, labels, counts and some rows, independent of machine and batches."""
        contents = [self.part, self.n_given, self._shown]
        contents += [label for fold in folds for label in zip(fold.classes.tolist(), fold.counts.tolist(), strict=True)]
        digest = hashlib.blake2b(repr(contents).encode(), digest_size=8).digest()
        return np.frombuffer(digest, "<u8").astype(np.uint64)


def part_statistics(
    gathering: Gathering,
    part: str,
    batches: Iterable[Sequence[Any]],
    *,
    names: Sequence[str] | None = None,
    others: Statistics | None = None,
) -> Statistics | None:
    """Return the statistics of one part from batches of (X, y, weights), or None if it has no rows."""
    gatherer = Gatherer(gathering, part, names=names, others=others)
    for batch in batches:
        gatherer.add(*batch)
    return None if gatherer.is_empty else gatherer.statistics()


def require_same_columns(
    before: tuple[str, ...] | None, n_before: int, now: tuple[str, ...] | None, n_now: int
) -> None:
    """Raise unless two parts of a table have the same columns, with the same names in the same order."""
    if n_before != n_now:
        raise ValueError(
            f"Every part must have {n_before} columns; got {n_now} columns. {_named_apart(before, now)}".rstrip()
        )
    if (before is None) != (now is None):
        when = "now and none before" if before is None else "before and none now"
        raise ValueError(
            f"Parts of a table must all have column names, or none; got {quoted(before or now or ())} {when}. Give "
            "every part its names, or the order of its columns is unknown."
        )
    if before is not None and now is not None and before != now:
        at = next(i for i, (one, other) in enumerate(zip(before, now, strict=True)) if one != other)
        raise ValueError(
            f"Column {at} must be {before[at]!r} in every part; got {now[at]!r}. Give the columns of "
            "every part the same order and names."
        )


def _named_apart(before: tuple[str, ...] | None, now: tuple[str, ...] | None) -> str:
    if before is None or now is None:
        return ""
    lacking, new = [n for n in before if n not in now], [n for n in now if n not in before]
    differences = [f"It lacks {lacking[:5]}."] * bool(lacking) + [f"It adds {new[:5]}."] * bool(new)
    return " ".join(differences)


def gathered_total(found: Iterable[Any]) -> Any:
    """Return the sum of statistics (or arrays), added in a tree of similar summands; None if all parts had no rows."""
    parts = [one for one in found if one is not None]
    while len(parts) > 1:
        paired = [parts[i] + parts[i + 1] for i in range(0, len(parts) - 1, 2)]
        parts = paired + parts[len(paired) * 2 :]
    return parts[0] if parts else None
