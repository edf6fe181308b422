"""Tables in files that need not fit into memory: statistics, samples and features of a `TableSource`, batch by batch.

Each file is a part: it is read once for a fit, and becomes one file of features, which is there whole or not at all, so
that a broken run continues where it ended.
"""

from __future__ import annotations

import hashlib
import os
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from discrim.core.moments.gather import Gathering, Statistics, part_statistics
from discrim.engines.table_in_parts import Look, TableInParts, sum_of_some
from discrim.tables.formats import TablePart, arrow, visible_files
from discrim.tables.rows import block_slices
from discrim.tables.source import TableSource, repeat_with_text_labels
from discrim.tables.table_error import MAX_BYTES, TableError, quoted, require_memory
from discrim.tables.validation import PartError
from discrim.tables.writing import whole_file
from discrim.threads import map_tasks, one_blas_thread

LARGE = 2**30  # bytes of a table from which on it is read in parts
LEAST_OF_CLASS = 10  # rows that a sample holds of the rarest class, where there are as many
Progress = Callable[[str, int, int], None]  # of what, rows, and bytes so far


def is_large(path: Path) -> bool:
    """Return whether a file or folder is so large that it is not read into memory."""
    files = visible_files(path) if path.is_dir() else [path] if path.is_file() else []
    return sum(file.stat().st_size for file in files) >= LARGE


@repeat_with_text_labels
def gather_files(table: TableSource, gathering: Gathering, progress: Progress | None = None) -> Statistics:
    """Return the statistics of all files, one for each free core at a time, in memory that does not grow with them."""
    total: Statistics | None = None

    def batches(part: TablePart) -> Iterator[tuple[Any, ...]]:
        for X, y in table.batches(part):
            yield X, y
            if progress is not None:
                progress(table.part_name(part), len(X), X.nbytes)

    def gather(part: TablePart) -> Statistics | None:
        # rows that cannot enter the sample of the files so far are left out early: any file's will do
        return part_statistics(gathering, table.part_name(part), batches(part), names=table.features, others=total)

    with one_blas_thread:
        for found in map_tasks(gather, table.parts):
            if found is not None:
                total = found if total is None else total + found
    if total is None:
        raise TableError(f"{table.path} has no rows.")
    return total


def is_path(X: Any) -> bool:
    return isinstance(X, str | os.PathLike)


def files_for(gathering: Gathering, path: Any, target: Any, sample_weight: Any = None) -> TableSource:
    """Open a file or folder, with labels if they are needed or named; raise if weights are given."""
    if sample_weight is not None:
        raise ValueError(f"sample_weight is not supported for a path; got {path}. Pass (X, y, weights) to fit_parts.")
    if gathering.supervised and target is None:
        raise ValueError(f"{gathering.method} needs labels. Name the column of {path} that holds them.")
    if not isinstance(target, str | None):
        raise TypeError(f"y must be the name of the label column of {path}; got {type(target).__name__}.")
    with _advice_for_fits():
        return TableSource.open(path, target, labelled=gathering.supervised)


@contextmanager
def _advice_for_fits() -> Iterator[None]:
    """Leave out the advice that a fit cannot follow, because it has no options of reading."""
    try:
        yield
    except TableError as error:
        raise error.with_arguments(()) from None


def in_files(table: TableSource) -> TableInParts:
    """Return the table in its files, each read batch by batch."""

    @repeat_with_text_labels
    def sum_batches(source: TableSource, look: Look) -> Any:
        return sum_of_some(look(*batch) for part in source.parts for batch in source.batches(part))

    def summed(look: Look) -> Any:
        with _advice_for_fits():
            return sum_batches(table, look)

    def gather(gathering: Gathering) -> Any:
        with _advice_for_fits():
            return gather_files(table, gathering)

    return TableInParts(len(table.features), gather, summed)


@repeat_with_text_labels
def sampled_rows(
    table: TableSource, most: int, max_bytes: int = MAX_BYTES
) -> tuple[NDArray[np.float64], NDArray[Any], int]:
    """Return about `most` rows and their labels, each class in its proportion and with ten at least, and the row count.

    Every row of a class is as likely as any other, equal ones too, and those drawn stay in their order. The rows of a
    class are drawn by their number among them, so files cut in other places give the same sample. In two readings: one
    for the labels, one for the rows.
    """
    labels: Counter[Any] = Counter()
    for part in table.parts:
        for some in table.labels(part):
            labels.update(dict(zip(*(one.tolist() for one in np.unique(some, return_counts=True)), strict=True)))
    n_rows, random = labels.total(), np.random.default_rng(0)
    if not n_rows:
        raise TableError(f"{table.path} has no rows.")
    drawn: dict[Any, NDArray[np.intp]] = {}  # by class, the numbers of its rows that are taken
    for label, count in sorted(labels.items()):
        wanted = min(count, max(LEAST_OF_CLASS, round(most * count / n_rows)))
        drawn[label] = np.sort(random.choice(count, wanted, replace=False, shuffle=False))
    require_memory(table.path, 8 * len(table.features) * sum(map(len, drawn.values())), max_bytes)
    seen: Counter[Any] = Counter()
    rows: list[NDArray[np.float64]] = []
    found: list[NDArray[Any]] = []
    for part in table.parts:
        for X, y in table.batches(part):
            assert y is not None
            taken = np.zeros(len(y), dtype=bool)
            for label in np.unique(y).tolist():
                at = np.flatnonzero(y == label)
                first, end = np.searchsorted(drawn[label], [seen[label], seen[label] + len(at)])
                taken[at[drawn[label][first:end] - seen[label]]] = True
                seen[label] += len(at)
            rows.append(X[taken].astype(np.float64))
            found.append(y[taken])
    return np.concatenate(rows), np.concatenate(found), n_rows


@repeat_with_text_labels
def reduced_rows(
    table: TableSource, transform: Callable[[Any], NDArray[Any]], max_bytes: int = MAX_BYTES
) -> tuple[NDArray[Any], NDArray[Any]]:
    """Return the components of all rows and their labels, which fit into memory where the rows do not."""
    components: list[NDArray[Any]] = []
    labels: list[Any] = []
    taken = 0
    for part in table.parts:
        for X, y in table.batches(part):
            components.append(np.asarray(transform(X)))
            labels.append(y)
            taken += 2 * components[-1].nbytes  # once more when they are joined
            require_memory(table.path, taken, max_bytes, is_known=False)
    return np.concatenate(components), np.concatenate(labels)


Compute = Callable[[Any], Sequence[NDArray[Any]]]  # of rows: their columns of features and predictions


@repeat_with_text_labels
def transform_files(
    table: TableSource,
    compute: Compute,
    columns: Mapping[str, str],
    folder: Path,
    seal: bytes,
    progress: Progress | None = None,
) -> int:
    """Write what is computed of each file to a Parquet file of its name in `folder`; those already there stay.

    columns : the Arrow type of each column that `compute` returns, by name; ids are written before, labels after them
    seal : what made the features (the model's bytes); a file that something else made is overwritten
    """
    ids, labels = ([] if name is None else [name] for name in (table.id_column, table.target))

    types = dict.fromkeys(ids, "string") | dict(columns) | dict.fromkeys(labels, table.label_type)

    def write(pair: tuple[TablePart, Path]) -> int:
        part, place = pair
        place.parent.mkdir(parents=True, exist_ok=True)
        with open(part.path, "rb") as file:  # a part that changed at the same size and time has other features
            content = hashlib.file_digest(file, "sha256").digest()
        mark = hashlib.sha256(seal + repr(list(types.items())).encode() + content).hexdigest()
        return _rows_of(place, mark) or _write(compute, types, table, part, place, mark, progress)

    with one_blas_thread:
        return sum(map_tasks(write, list(zip(table.parts, feature_files(table, folder), strict=True))))


def feature_files(table: TableSource, folder: Path) -> list[Path]:
    """Return the file for the features of each part; raise if two are one file, or one is read now or in a next run.

    Refused is also a folder that holds other such files, of a part that is gone: whoever reads the folder takes them
    for features of this table.
    """
    names = [table.part_name(part) for part in table.parts]
    places = [folder / Path(name.removesuffix(".gz")).with_suffix(".parquet") for name in names]
    if len(set(places)) < len(places):
        twice = next(at for at, place in enumerate(places) if place in places[:at])
        raise TableError(
            f"{table.path}: the features of {names[places.index(places[twice])]!r} and of {names[twice]!r} would both "
            f"be written to {places[twice].name}. Rename one of them."
        )
    home = table.path.resolve()  # a file that would be written over, or a folder that would be read again with these
    if home in (*(place.resolve() for place in places), folder.resolve(), *folder.resolve().parents):
        raise TableError(f"{folder} is where {table.path} is read from. Name another folder for the features.")
    found = {path: path.relative_to(folder) for path in sorted(folder.rglob("*.parquet")) if path.is_file()}
    shown = {path: name for path, name in found.items() if not any(piece[0] in "._" for piece in name.parts)}
    if others := [name.as_posix() for path, name in shown.items() if path not in places]:
        which, them = ("which is no part", "it") if len(others) == 1 else ("which are no parts", "them")
        raise TableError(
            f"{folder} holds {quoted(others)}, {which} of {table.path}. Remove {them}, or name another folder for the "
            "features."
        )
    return places


def _rows_of(place: Path, mark: str) -> int:
    """Return the number of rows of a file written from the same rows by the same model; 0 if there is no such file."""
    if not place.exists():
        return 0
    about = arrow("pyarrow.parquet", place).read_metadata(place)
    return int(about.num_rows) if (about.metadata or {}).get(b"discrim") == mark.encode() else 0


def _write(
    compute: Compute,
    types: Mapping[str, str],
    table: TableSource,
    part: TablePart,
    place: Path,
    mark: str,
    progress: Progress | None,
) -> int:
    pyarrow, parquet = arrow("pyarrow", place), arrow("pyarrow.parquet", place)
    schema = pyarrow.schema([(name, getattr(pyarrow, kind)()) for name, kind in types.items()], {"discrim": mark})
    repeated = [name for name, kind in types.items() if kind != "float64"]
    n_rows = 0
    with whole_file(place) as handle, parquet.ParquetWriter(handle, schema, use_dictionary=repeated) as writer:
        for X, y, ids in table.named_batches(part):
            try:
                blocks = [compute(X[rows]) for rows in block_slices(*X.shape)]
            except ValueError as error:
                raise PartError(f"{table.part_name(part)}, in the rows from {n_rows} on: {error}") from error
            columns = [one for one in (ids, *map(np.concatenate, zip(*blocks, strict=True)), y) if one is not None]
            arrays = [pyarrow.array(one, field.type) for one, field in zip(columns, schema, strict=True)]
            writer.write_table(pyarrow.table(arrays, schema=schema))
            n_rows += len(X)
            if progress is not None:
                progress(place.name, len(X), X.nbytes)
    return n_rows
