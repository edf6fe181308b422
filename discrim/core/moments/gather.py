"""Gathered statistics: what a part of a table has to say to a fit. They add up in any order and any tree.

    part of a table → Gatherer.add, batch by batch → Statistics ,    Statistics + Statistics ,    fit_statistics(total)

Engines (files, Dask, Spark) only gather. Where a choice needs folds, a row's fold follows from its content hash, and
there are class moments for every fold; where rows themselves are looked at, a bounded sample of them is kept.
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
from discrim.core.moments.row_sample import RowSample
from discrim.tables.check_parameters import class_factors
from discrim.tables.plain_format import PlainFormat
from discrim.tables.row_hash import Hashes, hash_folds, position_hashes, row_hashes
from discrim.tables.rows import LabelledRows
from discrim.tables.table_error import quoted
from discrim.tables.validation import PartError, labelled_rows, names_of, require_finite
from discrim.threads import computed_once, on_one_blas_thread

Array = NDArray[np.float64]
SHOWN_ROWS, SHOWN_EVERY = 256, 4096  # of a part: the first rows, and then some, tell which part it is
BLOCK_CELLS = 2**22  # of an array, looked at before the next are


@dataclass(frozen=True)
class Gathering:
    """What an estimator wants to know of every part.

    keep : which scatters ("pooled", "each", "means"); n_folds : 0 where no choice needs folds; seed : which folds;
    sample_rows : 0 where no row is looked at; columns : whether a scaler asks for the columns' extremes and deviations;
    class_weight : factors on the weights of a class's rows; features : of which the moments are, None for the columns
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
        """Return this, where what it gathers is all that is wanted; an error where it is not."""
        # without folds, where none are needed for a choice, errors are what statistics let expect
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
                f"Statistics gathered with {self._said(lacking)} do not suffice for what is wanted now, "
                f"{wanted._said(lacking)}. Gather all with the same estimator and parameters; in a stream, keep the "
                "estimator's parameters."
            )
        return self

    def _said(self, names: Iterable[str]) -> str:
        """Return what these fields are, each as short as a message may have it."""
        return ", ".join(f"{name}={reprlib.repr(getattr(self, name))}" for name in names)

    def weighted(self, rows: LabelledRows) -> LabelledRows:
        """Return the rows with the class weights on them."""
        if self.class_weight is None:
            return rows
        known = np.array([*self.class_weight, *rows.classes.tolist()], dtype=object)  # others may be in other parts
        factors = class_factors(dict(self.class_weight), rows.classes, rows.class_totals, known)[rows.codes]
        return replace(rows, weights=factors * (1.0 if rows.weights is None else rows.weights))


@dataclass(frozen=True, eq=False)
class Statistics:
    """The gathered statistics of some parts of a table: `estimator.statistics(X, y)` makes them, and they add up.

    Parameters
    ----------
    gathering : Gathering
        What was asked for.
    names : tuple of str or None
        The columns' names, where they have any.
    dtype : numpy.dtype
        Of the rows.
    folds : tuple of ClassMoments
        Class moments of each fold; of all rows where no folds were asked for.
    sample : RowSample or None
        The rows of least content hash.
    columns : ColumnTotals or None
        Extremes, mean and scatter of each column, for a scaler.
    parts : ndarray of uint64
        The parts that are in it, by content: a part that is added again is refused.

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
    folds: tuple[ClassMoments, ...]
    sample: RowSample | None
    columns: ColumnTotals | None
    parts: Hashes

    @computed_once
    def moments(self) -> ClassMoments:
        """Class moments of all rows."""
        return functools.reduce(operator.add, self.folds)

    @property
    def n_rows(self) -> int:
        return sum(fold.n_rows for fold in self.folds)

    @property
    def n_features(self) -> int:
        features = self.gathering.features
        return self.folds[0].n_features if features is None else features.n_columns

    def __radd__(self, other: int) -> Statistics:
        return self if other == 0 else NotImplemented  # what the built-in sum begins with

    def __add__(self, other: Statistics) -> Statistics:
        require_statistics(other)
        mine, theirs = self.gathering, other.gathering
        if mine != theirs:
            apart = [
                one.name for one in fields(mine) if one.compare and getattr(mine, one.name) != getattr(theirs, one.name)
            ]
            raise ValueError(
                f"Statistics gathered with {mine._said(apart)} and with {theirs._said(apart)} do not add up. Gather "
                "both with the same estimator and parameters."
            )
        require_same_columns(self.names, self.n_features, other.names, other.n_features)
        twice = np.intersect1d(self.parts, other.parts)
        if len(twice):
            raise ValueError(
                f"A part would be added twice: {len(twice)} of the {len(other.parts)} parts that are added (the first: "
                f"{int(twice[0]):016x}) came before, with the same rows. If the table does hold the same rows twice, "
                "give its parts different names: statistics(X, y, part='2024-01')."
            )
        return Statistics(
            self.gathering,
            self.names,
            np.result_type(self.dtype, other.dtype),
            tuple(one + another for one, another in zip(self.folds, other.folds, strict=True)),
            _joint(self.sample, other.sample),
            _joint(self.columns, other.columns),
            np.union1d(self.parts, other.parts),
        )

    def standardised(self, shift: Array, scale: Array) -> Statistics:
        """Return the statistics of (x − shift) / scale by column; folds and sample are those of the original rows."""
        sample = self.sample
        if sample is not None:
            X = sample.X.toarray() if sp.issparse(sample.X) and shift.any() else sample.X
            X = sp.csr_array(X / scale) if sp.issparse(X) else (X - shift) / scale
            sample = replace(sample, X=X.astype(self.dtype))
        folds = tuple(fold.standardised(shift, scale) for fold in self.folds)
        return replace(self, folds=folds, sample=sample, columns=None)

    def to_bytes(self) -> bytes:
        """Return the statistics as bytes: versioned, with a checksum, the same on every machine."""
        return FORMAT.to_bytes(self)

    @classmethod
    def from_bytes(cls, data: bytes) -> Statistics:
        """Return what `to_bytes` made bytes of; an error where a bit of them is wrong."""
        return FORMAT.from_bytes(data, "What came")

    def __repr__(self) -> str:
        held = "" if self.sample is None else f", {len(self.sample)} sampled"
        return (
            f"Statistics({self.n_rows} rows × {self.n_features} features in {len(self.parts)} parts, "
            f"{len(self.moments.classes)} classes, {len(self.folds)} folds{held})"
        )


FORMAT = PlainFormat("statistics", 1, (Statistics, Gathering, FixedFeatures, ClassMoments, RowSample, ColumnTotals))
NO_PARTS = np.empty(0, np.uint64)


def require_statistics(given: Any) -> None:
    """Raise where something else came."""
    if not isinstance(given, Statistics):
        raise TypeError(
            f"Statistics are needed, {type(given).__name__} came. Pass what an estimator's statistics(X, y) returns "
            "for a part of the table, or a sum of such; of bytes, Statistics.from_bytes makes them again."
        )


def statistics_of_rows(
    gathering: Gathering,
    rows: LabelledRows,
    names: tuple[str, ...] | None = None,
    so_far: Statistics | None = None,
    beside: RowSample | None = None,
) -> Statistics:
    """Return statistics of checked rows, and of those before them, around whose class means these are taken.

    beside : a sample of other rows that will be added to that of these
    """
    if so_far is not None:
        require_same_columns(so_far.names, so_far.n_features, names, rows.shape[1])
    columns = ColumnTotals.of(rows) if gathering.columns else None
    rows = gathering.weighted(rows)
    hashes = row_hashes(rows.X) if gathering.needs_hashes else None
    parts = [rows]
    if gathering.n_folds and hashes is not None:
        drawn = hash_folds(hashes, gathering.n_folds, gathering.seed)
        parts = [rows.picked(np.flatnonzero(drawn == fold)) for fold in range(gathering.n_folds)]
    before = [None] * len(parts) if so_far is None else so_far.folds
    folds = tuple(_with_rows(gathering, *pair) for pair in zip(before, parts, strict=True))
    sample = None
    if hashes is not None and gathering.sample_rows:
        others = [one for one in (None if so_far is None else so_far.sample, beside) if one is not None]
        sample = RowSample.of(rows, hashes, gathering.sample_rows, others)
    if so_far is not None:
        sample, columns = _joint(so_far.sample, sample), _joint(so_far.columns, columns)
    dtype = rows.X.dtype if so_far is None else np.result_type(so_far.dtype, rows.X.dtype)
    names = names if so_far is None or names is not None else so_far.names
    known = gathering if gathering.features is None else replace(gathering, features=gathering.features.bare)
    return Statistics(known, names, dtype, folds, sample, columns, NO_PARTS)


def _with_rows(gathering: Gathering, moments: ClassMoments | None, rows: LabelledRows) -> ClassMoments:
    """Return the moments with those of more rows, in the features that are asked for."""
    for block in [rows] if gathering.features is None else gathering.features.blocks(rows):
        moments = ClassMoments.of_rows(block, keep=gathering.keep) if moments is None else moments.with_rows(block)
    assert moments is not None
    return moments


def _joint(one: Any, other: Any) -> Any:
    """Return the sum, where both were gathered."""
    return None if one is None or other is None else one + other


class Gatherer:
    """Gathers the statistics of one part of a table, batch by batch, in memory that does not grow with the rows.

    part : what the part is called in errors, and what tells it from another part of the same rows
    names : of the columns, where the batches are arrays
    beside : statistics of other parts that these will be added to; rows that cannot come into the sample are left
    """

    def __init__(
        self,
        gathering: Gathering,
        part: str = "",
        *,
        names: Sequence[str] | None = None,
        beside: Statistics | None = None,
    ) -> None:
        self.gathering, self.part, self._names = gathering, part, None if names is None else tuple(names)
        self._beside = None if beside is None else beside.sample
        self.n_given = 0
        self._so_far: Statistics | None = None
        self._shown = 0

    @on_one_blas_thread
    def add(self, X: Any, y: ArrayLike | None = None, sample_weight: ArrayLike | None = None) -> None:
        """Add rows; of an array of any length (a memory-mapped one, say) a block at a time.

        A block that cannot be taken changes nothing.
        """
        n_rows = np.shape(X)[0]
        step = max(1, BLOCK_CELLS * n_rows // max(1, X.size)) if isinstance(X, np.ndarray) else n_rows
        beside = y, sample_weight
        if n_rows <= step or any(one is not None and np.shape(one)[:1] != (n_rows,) for one in beside):
            self._add(X, *beside)  # which refuses what is not of one length
            return
        for start in range(0, n_rows, step):
            rows = slice(start, start + step)
            self._add(X[rows], *(None if one is None else _safe_indexing(one, rows) for one in beside))

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
                where = f"{self.part}, in the rows from {self.n_given} on" if self.n_given else self.part
                raise PartError(f"{where}: {error}" if where else str(error)) from error
        self.n_given += n_rows

    def _add_rows(self, rows: LabelledRows, names: tuple[str, ...] | None) -> None:
        numbers = (np.arange(rows.shape[0]) if rows.numbers is None else rows.numbers) + self.n_given
        try:
            self._so_far = statistics_of_rows(self.gathering, rows, names, self._so_far, self._beside)
        except ValueError:
            require_finite(rows.X, numbers, names, self.part or "the part")
            raise
        shown = np.flatnonzero((numbers < SHOWN_ROWS) | (numbers % SHOWN_EVERY == 0))
        told = position_hashes(row_hashes(rows.X[shown]), numbers[shown]).sum(dtype=np.uint64)
        self._shown = (self._shown + int(told)) % 2**64

    @property
    def is_empty(self) -> bool:
        """Whether no row came yet."""
        return self._so_far is None

    def statistics(self) -> Statistics:
        """Return what was gathered."""
        if self._so_far is None:
            raise ValueError(f"{self.part or 'The part'} has no rows, so there are no statistics of it. Leave it out.")
        return replace(self._so_far, parts=self._identity(self._so_far.folds))

    def _identity(self, folds: tuple[ClassMoments, ...]) -> Hashes:
        """Return an identifier by name, labels, counts and some rows: the same on every machine and for any batches."""
        told = [self.part, self.n_given, self._shown]
        told += [label for fold in folds for label in zip(fold.classes.tolist(), fold.counts.tolist(), strict=True)]
        digest = hashlib.blake2b(repr(told).encode(), digest_size=8).digest()
        return np.frombuffer(digest, "<u8").astype(np.uint64)


def part_statistics(gathering: Gathering, part: str, X: Any, y: Any = None, weights: Any = None) -> Statistics | None:
    """Return the statistics of one part, None where it has no rows."""
    gatherer = Gatherer(gathering, part)
    gatherer.add(X, y, weights)
    return None if gatherer.is_empty else gatherer.statistics()


def require_same_columns(
    before: tuple[str, ...] | None, n_before: int, now: tuple[str, ...] | None, n_now: int
) -> None:
    """Return two parts of a table have the same columns, by the same names in the same order."""
    if n_before != n_now:
        raise ValueError(f"A part with {n_now} columns came after one with {n_before}. {_named_apart(before, now)}")
    if (before is None) != (now is None):
        when = "now and none before" if before is None else "before and none now"
        raise ValueError(
            f"Parts of a table must all have column names, or none; got {quoted(before or now or ())} {when}. Give "
            "every part its names: without them the order of its columns is not known."
        )
    if before is not None and now is not None and before != now:
        at = next(i for i, (one, other) in enumerate(zip(before, now, strict=True)) if one != other)
        raise ValueError(
            f"A part whose column {at} is {now[at]!r} came after one whose column {at} is {before[at]!r}. Bring the "
            "columns of every part into the same order and call them the same."
        )


def _named_apart(before: tuple[str, ...] | None, now: tuple[str, ...] | None) -> str:
    if before is None or now is None:
        return "Every part must have the same columns."
    lacking, new = [n for n in before if n not in now], [n for n in now if n not in before]
    said = [f"It lacks {lacking[:5]}."] * bool(lacking) + [f"It adds {new[:5]}."] * bool(new)
    return " ".join(said)


def gathered_total(parts: list[Any]) -> Any:
    """Return the sum of statistics (or arrays), in a tree: every addition is of about equals."""
    while len(parts) > 1:
        paired = [parts[i] + parts[i + 1] for i in range(0, len(parts) - 1, 2)]
        parts = paired + parts[len(paired) * 2 :]
    return parts[0]
