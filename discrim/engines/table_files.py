"""Tables in files that need not fit into memory, read batch by batch by pyarrow.dataset.

Parquet, Feather, CSV (also .gz) and .npy, one file or a folder of them (Hive partitions too). Each file is a part: it
is read once for a fit, and becomes one file of features, which is there whole or not at all, so that a broken run goes
on where it ended.
"""

from __future__ import annotations

import hashlib
import os
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from discrim.core.moments.gather import Gatherer, Gathering, Statistics
from discrim.engines.array_files import ArrayFiles
from discrim.engines.table_in_parts import Look, TableInParts, sum_of_some
from discrim.engines.unreadable_file import told, told_apart
from discrim.tables.cells import MISSING, NUMBER, CellFormat
from discrim.tables.columnar import arrow
from discrim.tables.labelled_table import normal_text
from discrim.tables.read import is_unnamed
from discrim.tables.rows import block_slices
from discrim.tables.table_error import MAX_BYTES, TableError, quoted, quoted_cell, require_room
from discrim.tables.validation import PartError, require_finite
from discrim.tables.writing import whole_file

BATCH_ROWS, BATCH_CELLS = 2**16, 2**23  # at most
READ_AHEAD = 2  # batches, of 16 that pyarrow would hold
TURNED = 2**11  # cells of a column that are put into their rows while these are near the processor
LARGE = 2**30  # bytes of a file from which on it is read in parts
LEAST_OF_CLASS = 10  # rows that a sample holds of the rarest class, where there are as many
_FORMATS = {".parquet": "parquet", ".pq": "parquet", ".feather": "feather", ".arrow": "feather"}
_FORMATS |= {".csv": "csv", ".npy": "npy"}
Progress = Callable[[str, int, int], None]  # of what, rows, and bytes so far


def is_read_in_parts(path: Path) -> bool:
    """A folder, a file that is looked at where it is (.npy), or a large one: its features become a folder."""
    return path.is_dir() or (path.is_file() and (path.suffix == ".npy" or path.stat().st_size >= LARGE))


@dataclass(frozen=True)
class FileTable:
    """A table in one or many files: its parts, its numeric columns, and the column of labels."""

    path: Path
    dataset: Any
    features: tuple[str, ...]
    target: str | None
    kind: str  # one of the formats
    delimiter: str | None = None  # of CSV files
    notes: tuple[str, ...] = ()  # what was decided without being asked

    @classmethod
    def open(
        cls,
        path: Path,
        target: str | None,
        *,
        drop: Sequence[str] = (),
        features: Sequence[str] | None = None,
        labelled: bool = True,
        delimiter: str = ",",
    ) -> FileTable:
        """A file or a folder, with labels (in its last column, where none is named), or with named `features` only.

        labelled : False where no label is looked at, and the last column is one of the features
        """
        kind, dataset = _dataset(path, delimiter)
        if target is None and not labelled:
            features = [name for name in dataset.schema.names if name not in drop]
            _require_numeric(path, dataset.schema, features)
        names, in_doubt = dataset.schema.names, features is None and (target is None or _is_number(target))
        notes: tuple[str, ...] = ()
        if target is None and features is None:
            target = names[-1]
            notes = (f"Labels: {target!r}, the last column. Name another with --target.",)
        for name in [*drop, *(features or ()), *([] if target is None else [target])]:
            if name not in names:
                raise TableError(f"{path} has no column {name!r}. There are: {', '.join(names[:20])}.")
        if features is None:
            features = [name for name in names if name != target and name not in drop]
            _require_numeric(path, dataset.schema, features)
        if kind == "csv":
            if in_doubt and target is not None:
                with told(dataset.files[0], delimiter, features):
                    notes += _require_names(path, dataset, features, target)
            dataset = _as_doubles_and_text(path, dataset, delimiter, features, target)
        table = cls(path, dataset, tuple(features), target, kind, delimiter if kind == "csv" else None, notes)
        table._require_equal_columns()
        return table

    def parts(self) -> list[Any]:
        """The files (pyarrow's fragments), in the order of their names."""
        return sorted(self.dataset.get_fragments(), key=lambda fragment: fragment.path)

    def _require_equal_columns(self) -> None:
        """Refuse a file that has other columns: pyarrow would fill in what is missing and pass over what is new."""
        known = set(self.dataset.schema.names)
        for fragment in self.parts():
            with told(fragment.path, self.delimiter, self.features):
                own = set(told_apart(fragment.path, fragment.physical_schema.names, self.delimiter))
            in_path = {piece.partition("=")[0] for piece in Path(fragment.path).parts}  # of Hive's partitions
            wanted = {*self.features, *([] if self.target is None else [self.target])}
            lacking, new = sorted(wanted - own - in_path), sorted(own - known)
            if lacking or (new and self.target is not None):
                what = f"lacks column {lacking[0]!r}" if lacking else f"has a column {new[0]!r}, which others lack"
                raise TableError(
                    f"{fragment.path} {what}. All files of a table have the same columns, and a CSV file their names "
                    "in its first line."
                )

    def part_name(self, fragment: Any) -> str:
        """Where a part is, as seen from the table."""
        path = Path(fragment.path)
        return path.name if self.path.is_file() else path.relative_to(self.path.resolve()).as_posix()

    def n_rows_if_known(self) -> int | None:
        """How many rows there are, where the files tell without being read."""
        return self.dataset.count_rows() if self.kind in ("parquet", "npy") else None

    def batches(self, fragment: Any) -> Iterator[tuple[NDArray[Any], NDArray[Any] | None]]:
        """Rows of the features, which the next ones will take the place of, and labels as text."""
        target, place = [] if self.target is None else [self.target], None
        for first, batch in self._read(fragment, [*self.features, *target]):
            place = rows_of_columns(batch, self.features, place)
            yield place[: batch.num_rows], self._labels(batch, fragment, first)

    def labels(self, fragment: Any) -> Iterator[NDArray[Any]]:
        """Labels only, which is quick where columns are stored apart."""
        for first, batch in self._read(fragment, [self.target]):
            if (found := self._labels(batch, fragment, first)) is not None:
                yield found

    def _read(self, fragment: Any, columns: Sequence[str | None]) -> Iterator[tuple[int, Any]]:
        """Batches that have rows, each with the number of its first."""
        first, most = 0, max(1, min(BATCH_ROWS, BATCH_CELLS // len(columns)))
        ahead: dict[str, Any] = {} if self.kind == "npy" else {"batch_readahead": READ_AHEAD}
        with told(fragment.path, self.delimiter, self.features):
            for batch in fragment.to_batches(schema=self.dataset.schema, columns=columns, batch_size=most, **ahead):
                if batch.num_rows:
                    yield first, batch
                    first += batch.num_rows

    def _labels(self, batch: Any, fragment: Any, first: int) -> NDArray[Any] | None:
        if self.target is None:
            return None
        pyarrow = arrow("pyarrow", self.path)
        column = batch.column(self.target)
        if not pyarrow.types.is_dictionary(column.type):
            column = column.dictionary_encode()
        levels = [str(value) for value in column.dictionary.to_pylist()]
        if self.delimiter is not None and (broken := [level for level in levels if "\n" in level]):
            raise TableError(
                f"{fragment.path}: the label {quoted_cell(broken[0])} in column {self.target!r} goes over several "
                "lines. Is there a quote without another? Rows would be lost in it."
            )
        texts = [normal_text(level) for level in levels]
        if column.null_count or column.dictionary.null_count or "" in texts:
            lacking = [value is None or not normal_text(str(value)) for value in column.to_pylist()]
            raise PartError(
                f"{self.part_name(fragment)}, row {first + lacking.index(True)}: a label is missing in column "
                f"{self.target!r}. Drop such rows first."
            )
        return np.array(texts)[column.indices.to_numpy(zero_copy_only=False)]


def _dataset(path: Path, delimiter: str) -> tuple[str, Any]:
    """The format of the files, and what pyarrow makes of them."""
    if not path.exists():
        raise TableError(f"There is no file or folder {path}.")
    files = [path] if path.is_file() else sorted(p for p in path.rglob("*") if p.is_file() and p.name[0] not in "._")
    endings = {Path(p.name.removesuffix(".gz")).suffix.lower() for p in files}
    if not files or len(endings) > 1 or not endings <= set(_FORMATS):
        raise TableError(
            f"{path} holds {', '.join(sorted(endings)) or 'no'} files. A table in parts is one or more files of one "
            f"kind: {', '.join(_FORMATS)}, also .csv.gz."
        )
    kind, names = _FORMATS[endings.pop()], [str(p.resolve()) for p in files]
    if kind == "npy":
        return kind, ArrayFiles(names)
    module, disk = arrow("pyarrow.dataset", path), arrow("pyarrow.fs", path).LocalFileSystem()
    if kind == "csv":
        csv = arrow("pyarrow.csv", path)
        written = module.CsvFileFormat(parse_options=csv.ParseOptions(delimiter=delimiter))
    else:
        written = module.ParquetFileFormat() if kind == "parquet" else module.IpcFileFormat()
    mark = delimiter if kind == "csv" else None
    with told(names[0], mark):
        told_apart(names[0], written.inspect(names[0], disk).names, mark)
    return kind, module.dataset(names, format=written, partitioning=_partitioning(path))


def _partitioning(path: Path) -> Any:
    return None if path.is_file() else arrow("pyarrow.dataset", path).partitioning(flavor="hive")


def _as_doubles_and_text(path: Path, dataset: Any, delimiter: str, features: Sequence[str], target: str | None) -> Any:
    """CSV files again, whatever the first rows look like: a column of 1, 2 may go on with 2.5, and a label with 'x'."""
    pyarrow, module, csv = (arrow(name, path) for name in ("pyarrow", "pyarrow.dataset", "pyarrow.csv"))
    kinds = dict.fromkeys(features, pyarrow.float64()) | ({} if target is None else {target: pyarrow.string()})
    written = module.CsvFileFormat(
        parse_options=csv.ParseOptions(delimiter=delimiter),
        convert_options=csv.ConvertOptions(column_types=kinds, null_values=sorted(MISSING), strings_can_be_null=True),
    )
    schema = pyarrow.schema([(one.name, kinds.get(one.name, one.type)) for one in dataset.schema])
    return module.dataset(dataset.files, schema, format=written, partitioning=_partitioning(path))


def _is_number(name: str) -> bool:
    return CellFormat().reading(name)[0] == NUMBER


def _require_names(path: Path, dataset: Any, features: Sequence[str], target: str) -> tuple[str, ...]:
    """Refuse a first line that looks like a row, which would be lost; the rule is that of `tables/read.py`.

    What was decided, where it could be doubted.
    """
    numbers = [float(name) for name in features if _is_number(name)]
    labels = {str(value) for value in dataset.head(1000, columns=[target]).column(target).to_pylist()}
    rises = len(numbers) >= 3 and all(one < other for one, other in pairwise(numbers))
    line = quoted(dataset.schema.names)
    if target in labels or (len(numbers) == len(features) and not rises):
        raise TableError(
            f"{path}, line 1: {line} where the names of the columns belong. This looks like a row, which would be "
            "lost. Put a line of names first; if these are the names, say which one is the labels' with --target "
            "(target=…)."
        )
    return (f"Line 1 of each file ({line}) is taken for the names of the columns, not for a row.",) if rises else ()


def _require_numeric(path: Path, schema: Any, names: Sequence[str]) -> None:
    types = arrow("pyarrow.types", path)
    # null: a first file without rows, or without a cell of this column
    number = (types.is_integer, types.is_floating, types.is_boolean, types.is_decimal, types.is_null)
    if unnamed := [name for name in names if is_unnamed(name)]:
        raise TableError(
            f"{path}: column {schema.get_field_index(unnamed[0]) + 1} has no name of its own ({unnamed[0]!r}); it may "
            f"be a row number that some tool added. Name it, or leave it out: --drop {unnamed[0]!r} on the command "
            "line, or write the table without it."
        )
    text = [name for name in names if not any(holds(schema.field(name).type) for holds in number)]
    if text:
        raise TableError(
            f"{path}: {len(text)} columns hold no numbers: {', '.join(map(repr, text[:5]))}. Leave them out with "
            f"--drop {text[0]}; fit and fit_parts take all columns but that of the labels: name it, or write the table "
            "without the others."
        )
    if not names:
        raise TableError(f"{path} has no feature columns beside the target and those dropped.")


def rows_of_columns(batch: Any, names: Sequence[str], place: NDArray[Any] | None = None) -> NDArray[Any]:
    """Columns of an Arrow batch as rows of numbers, in their place where it is large enough."""
    columns = [_numbers(batch.column(name)) for name in names]
    if place is None or len(place) < batch.num_rows:
        place = np.empty((batch.num_rows, len(columns)), np.result_type(*columns))
    rows = place[: batch.num_rows]
    for start in range(0, len(rows), TURNED):
        block = rows[start : start + TURNED]
        for at, column in enumerate(columns):
            block[:, at] = column[start : start + TURNED]
    return place


def _numbers(column: Any) -> NDArray[Any]:
    values = column.cast("float64") if str(column.type).startswith("decimal") else column
    array = values.to_numpy(zero_copy_only=False)
    return array if array.dtype in (np.float32, np.float64) else array.astype(np.float64)


def gather_files(gathering: Gathering, table: FileTable, progress: Progress | None = None) -> Statistics:
    """Statistics of all files, one after the other, in memory that does not grow with them."""
    total: Statistics | None = None
    for fragment in table.parts():
        gatherer = Gatherer(gathering, table.part_name(fragment), names=table.features, beside=total)
        for X, y in table.batches(fragment):
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


def files_for(gathering: Gathering, path: Any, target: Any, sample_weight: Any = None) -> FileTable:
    """A file or a folder by its path, with labels where they are needed or named; weights of its rows are refused."""
    if sample_weight is not None:
        raise ValueError(f"sample_weight came with {path}, which is read in parts. fit_parts takes (X, y, weights).")
    if gathering.supervised and target is None:
        raise ValueError(f"{gathering.method} needs labels. Name the column of {path} that holds them.")
    if not isinstance(target, str | None):
        raise TypeError(f"Labels as {type(target).__name__} came with {path}. Name the column of it that holds them.")
    return FileTable.open(Path(path), target, labelled=gathering.supervised)


def in_files(table: FileTable) -> TableInParts:
    """The table in its files, each read batch by batch."""

    def summed(look: Look) -> Any:
        return sum_of_some(look(*batch) for fragment in table.parts() for batch in table.batches(fragment))

    return TableInParts(len(table.features), lambda gathering: gather_files(gathering, table), summed)


def sampled_rows(
    table: FileTable, most: int, max_bytes: int = MAX_BYTES
) -> tuple[NDArray[np.float64], NDArray[Any], int]:
    """About `most` rows and their labels, each class in its proportion and with ten at least, and how many there are.

    Every row of a class is as likely as any other, equal ones too, and those drawn stay in their order. The rows of a
    class are drawn by their number among them, so files cut in other places give the same sample. In two readings: one
    for the labels, one for the rows.
    """
    labels: Counter[Any] = Counter()
    for fragment in table.parts():
        for some in table.labels(fragment):
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
    for fragment in table.parts():
        for X, y in table.batches(fragment):
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
    table: FileTable,
    folder: Path,
    seal: bytes,
    progress: Progress | None = None,
) -> int:
    """Write the features of each file to a Parquet file of its name in `folder`; those already there stay.

    seal : what made the features (the model's bytes); a file that something else made is written anew
    """
    written = 0
    for fragment, place in zip(table.parts(), feature_files(table, folder), strict=True):
        place.parent.mkdir(parents=True, exist_ok=True)
        mark = hashlib.sha256(seal + _stamp(fragment.path)).hexdigest()
        written += _rows_of(place, mark) or _write(transform, names, table, fragment, place, mark, progress)
    return written


def feature_files(table: FileTable, folder: Path) -> list[Path]:
    """The file for the features of each part, none of which is another's, or one that is read now or in a next run.

    Refused is also a folder that holds other such files, of a part that is gone: whoever reads the folder takes them
    for features of this table.
    """
    names = [table.part_name(fragment) for fragment in table.parts()]
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


def _stamp(path: str) -> bytes:
    about = Path(path).stat()
    return f"{about.st_size} {about.st_mtime_ns}".encode()


def _rows_of(place: Path, mark: str) -> int:
    """How many rows a file has that was written from the same rows by the same model; 0 where there is none such."""
    if not place.exists():
        return 0
    about = arrow("pyarrow.parquet", place).read_metadata(place)
    return int(about.num_rows) if (about.metadata or {}).get(b"discrim") == mark.encode() else 0


def _write(
    transform: Callable[[Any], NDArray[Any]],
    names: Sequence[str],
    table: FileTable,
    fragment: Any,
    place: Path,
    mark: str,
    progress: Progress | None,
) -> int:
    pyarrow, parquet = arrow("pyarrow", place), arrow("pyarrow.parquet", place)
    labels = [] if table.target is None else [table.target]
    fields = [(name, pyarrow.float64()) for name in names] + [(name, pyarrow.string()) for name in labels]
    schema = pyarrow.schema(fields, metadata={"discrim": mark})
    n_rows = 0
    with whole_file(place) as handle, parquet.ParquetWriter(handle, schema, use_dictionary=labels) as writer:
        for X, y in table.batches(fragment):
            try:
                scores = np.concatenate([transform(X[rows]) for rows in block_slices(*X.shape)], dtype=np.float64)
            except ValueError as error:
                part = table.part_name(fragment)
                require_finite(X, np.arange(n_rows, n_rows + len(X)), table.features, part)
                raise PartError(f"{part}, in the rows from {n_rows} on: {error}") from error
            columns = [*scores.T, *([] if y is None else [y])]
            writer.write_table(pyarrow.table([pyarrow.array(column) for column in columns], schema=schema))
            n_rows += len(X)
            if progress is not None:
                progress(place.name, len(X), X.nbytes)
    return n_rows
