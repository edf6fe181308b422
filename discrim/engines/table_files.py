"""Tables in files that need not fit into memory: statistics, samples and features of a `TableSource`, batch by batch.

Each file is a part: it is read once for a fit, and becomes one file of features, which is there whole or not at all, so
that a broken run continues where it ended.
"""

from __future__ import annotations

import hashlib
import os
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from discrim.core.moments.gather import Gatherer, Gathering, Statistics
from discrim.engines.table_in_parts import Look, TableInParts, sum_of_some
from discrim.tables.formats import TablePart, arrow, visible_files
from discrim.tables.rows import block_slices
from discrim.tables.source import TableSource
from discrim.tables.table_error import MAX_BYTES, TableError, quoted, require_room
from discrim.tables.validation import PartError
from discrim.tables.writing import whole_file

LARGE = 2**30  # bytes of a table from which on it is read in parts
LEAST_OF_CLASS = 10  # rows that a sample holds of the rarest class, where there are as many
Progress = Callable[[str, int, int], None]  # of what, rows, and bytes so far


def is_read_in_parts(path: Path) -> bool:
    """Return whether features of a table become a folder: it is a folder, a .npy file, or a large file."""
    return path.is_dir() or path.suffix == ".npy" or is_large(path)


def is_large(path: Path) -> bool:
    """Return whether a file or folder is so large that it is not read into memory."""
    files = visible_files(path) if path.is_dir() else [path] if path.is_file() else []
    return sum(file.stat().st_size for file in files) >= LARGE


def gather_files(gathering: Gathering, table: TableSource, progress: Progress | None = None) -> Statistics:
    """Return the statistics of all files, one after the other, in memory that does not grow with them."""
    return table.run(lambda source: _gathered(gathering, source, progress))


def _gathered(gathering: Gathering, table: TableSource, progress: Progress | None) -> Statistics:
    total: Statistics | None = None
    for part in table.parts:
        gatherer = Gatherer(gathering, table.part_name(part), names=table.features, beside=total)
        for X, y in table.batches(part):
            gatherer.add(X, y)
            if progress is not None:
                progress(gatherer.part, len(X), X.nbytes)
        if not gatherer.is_empty:
            found = gatherer.statistics()
            total = found if total is None else total + found
    if total is None:
        raise TableError(f"{table.path} has no rows.")
    return total


def is_path(X: Any) -> bool:
    return isinstance(X, str | os.PathLike)


def files_for(gathering: Gathering, path: Any, target: Any, sample_weight: Any = None) -> TableSource:
    """A file or a folder by its path, with labels where they are needed or named; weights of its rows are refused."""
    if sample_weight is not None:
        raise ValueError(f"sample_weight came with {path}, which is read in parts. fit_parts takes (X, y, weights).")
    if gathering.supervised and target is None:
        raise ValueError(f"{gathering.method} needs labels. Name the column of {path} that holds them.")
    if not isinstance(target, str | None):
        raise TypeError(f"Labels as {type(target).__name__} came with {path}. Name the column of it that holds them.")
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

    def summed(look: Look) -> Any:
        with _advice_for_fits():
            return table.run(
                lambda source: sum_of_some(look(*batch) for part in source.parts for batch in source.batches(part))
            )

    def gather(gathering: Gathering) -> Any:
        with _advice_for_fits():
            return gather_files(gathering, table)

    return TableInParts(len(table.features), gather, summed)


def sampled_rows(
    table: TableSource, most: int, max_bytes: int = MAX_BYTES
) -> tuple[NDArray[np.float64], NDArray[Any], int]:
    """Return about `most` rows and their labels, each class in its proportion and with ten at least, and the row count.

    Every row of a class is as likely as any other, equal ones too, and those drawn stay in their order. The rows of a
    class are drawn by their number among them, so files cut in other places give the same sample. In two readings: one
    for the labels, one for the rows.
    """
    return table.run(lambda source: _sampled(source, most, max_bytes))


def _sampled(table: TableSource, most: int, max_bytes: int) -> tuple[NDArray[np.float64], NDArray[Any], int]:
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
    require_room(table.path, 8 * len(table.features) * sum(map(len, drawn.values())), max_bytes)
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


def transform_files(
    transform: Callable[[Any], NDArray[Any]],
    names: Sequence[str],
    table: TableSource,
    folder: Path,
    seal: bytes,
    progress: Progress | None = None,
) -> int:
    """Write the features of each file to a Parquet file of its name in `folder`; those already there stay.

    seal : what made the features (the model's bytes); a file that something else made is written anew
    """
    return table.run(lambda source: _written(transform, names, source, folder, seal, progress))


def _written(
    transform: Callable[[Any], NDArray[Any]],
    names: Sequence[str],
    table: TableSource,
    folder: Path,
    seal: bytes,
    progress: Progress | None,
) -> int:
    written = 0
    for part, place in zip(table.parts, feature_files(table, folder), strict=True):
        place.parent.mkdir(parents=True, exist_ok=True)
        mark = hashlib.sha256(seal + table.label_type.encode() + _content(part.path)).hexdigest()
        written += _rows_of(place, mark) or _write(transform, names, table, part, place, mark, progress)
    return written


def feature_files(table: TableSource, folder: Path) -> list[Path]:
    """The file for the features of each part, none of which is another's, or one that is read now or in a next run.

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


def _content(path: Path) -> bytes:
    """Return the SHA-256 of a file: a part that changed at the same size and time has other features."""
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").digest()


def _rows_of(place: Path, mark: str) -> int:
    """How many rows a file has that was written from the same rows by the same model; 0 where there is none such."""
    if not place.exists():
        return 0
    about = arrow("pyarrow.parquet", place).read_metadata(place)
    return int(about.num_rows) if (about.metadata or {}).get(b"discrim") == mark.encode() else 0


def _write(
    transform: Callable[[Any], NDArray[Any]],
    names: Sequence[str],
    table: TableSource,
    part: TablePart,
    place: Path,
    mark: str,
    progress: Progress | None,
) -> int:
    pyarrow, parquet = arrow("pyarrow", place), arrow("pyarrow.parquet", place)
    fields = [(name, pyarrow.float64()) for name in names]
    labels = [] if table.target is None else [table.target]
    fields += [(name, getattr(pyarrow, table.label_type)()) for name in labels]
    schema = pyarrow.schema(fields, metadata={"discrim": mark})
    n_rows = 0
    with whole_file(place) as handle, parquet.ParquetWriter(handle, schema, use_dictionary=labels) as writer:
        for X, y in table.batches(part):
            try:
                scores = np.concatenate([transform(X[rows]) for rows in block_slices(*X.shape)], dtype=np.float64)
            except ValueError as error:
                raise PartError(f"{table.part_name(part)}, in the rows from {n_rows} on: {error}") from error
            columns = [*scores.T, *([] if y is None else [y])]
            writer.write_table(pyarrow.table([pyarrow.array(column) for column in columns], schema=schema))
            n_rows += len(X)
            if progress is not None:
                progress(place.name, len(X), X.nbytes)
    return n_rows
