"""File formats: each turns a path into a `TablePart`, named columns that are read batch by batch as Arrow arrays.

Parquet and Feather by pyarrow.dataset, .npy by memory mapping, .xlsx by openpyxl, CSV and TSV in `delimited.py`. A data
frame is a part too. Which column is a feature, what a cell means and what is refused is decided in `source.py`, in the
same way for all of them.
"""

from __future__ import annotations

import importlib
import os
import zipfile
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import date, time
from itertools import pairwise
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import numpy as np

from discrim.tables.cells import BOOLEANS, INFINITE, NUMBER, TEXT, Dialect, as_text, distinct
from discrim.tables.labelled_table import checked_names, normal_text
from discrim.tables.table_error import Advice, TableError, quoted, require_memory
from discrim.threads import computed_once

DELIMITED = (".csv", ".tsv", ".tab", ".txt")
PARQUET, FEATHER = (".parquet", ".pq"), (".feather", ".arrow")
KINDS = dict.fromkeys(DELIMITED, "delimited") | dict.fromkeys(PARQUET, "parquet") | dict.fromkeys(FEATHER, "feather")
KINDS |= {".npy": "npy", ".xlsx": "xlsx"}
READ_AHEAD = 2  # batches, of 16 that pyarrow would hold
NO_KEY = "__HIVE_DEFAULT_PARTITION__"
HEAD_ROWS = 1000  # that decide whether the first line is a row; fewer of a table of very many columns


class MissingExtraError(ImportError):
    """A file format that needs an optional dependency which is not installed."""


@dataclass(frozen=True, eq=False)
class Opening:
    """Options for opening a file of a table.

    keys : columns that the names of folders hold; alone : True if a single column is a table
    """

    dialect: Dialect
    keys: dict[str, str | None]
    alone: bool
    max_bytes: int


def arrow(module: str, path: Path) -> Any:
    """Return a module of pyarrow, or openpyxl, imported only when a file needs it."""
    try:
        return importlib.import_module(module)
    except ImportError as error:
        package = module.partition(".")[0]
        raise MissingExtraError(
            f"{path}: {path.suffix} files need {package}, which is not installed. Install it with "
            f"pip install 'discrim[tables]', or use an .npz file."
        ) from error


def column_names(cells: Sequence[str], *, named: bool = True) -> tuple[str, ...]:
    """Return names without surrounding blanks; an empty one is called "column 3", all are c1, c2, … if not `named`."""
    if not named:
        return tuple(f"c{position}" for position in range(1, len(cells) + 1))
    return tuple(normal_text(cell) or f"column {position}" for position, cell in enumerate(cells, start=1))


def kind_of(kind: Any) -> str:
    """Return what an Arrow type holds: "float32", "float", "integer", "bool", "null" or "text"."""
    if hasattr(kind, "value_type") and hasattr(kind, "index_type"):
        kind = kind.value_type
    name = str(kind)
    if name == "float":
        return "float32"
    if name.startswith(("int", "uint")):
        return "integer"
    if name.startswith(("double", "halffloat", "decimal")):
        return "float"
    return name if name in ("bool", "null") else "text"


class TablePart:
    """A file of a table, or a data frame, with named columns.

    kinds : what each column holds (`kind_of`), "cells" for the cells of a delimited file
    first_line : what the file has for names where that may be a row; None if they are names
    keys : columns that are written in the folders above the file, as in kind=a/rows.parquet
    n_rows : number of rows, if the file states it
    """

    first_line: list[str] | None = None
    n_rows: int | None = None

    def __init__(self, path: Path, names: Sequence[str], kinds: Sequence[str], keys: dict[str, str | None]) -> None:
        self.path, self.keys = path, keys
        self.names = checked_names((*names, *keys), path)
        self.kinds = dict(zip(self.names, [*kinds, *("cells" for _ in keys)], strict=True))
        self._own = tuple(names)
        self._position_of = {name: at for at, name in enumerate(self._own)}

    def require_memory(self, max_bytes: int) -> None:
        """Raise if the file states that its content takes more memory."""
        if self.n_rows is not None:
            require_memory(self.path, self.n_rows * len(self.names) * 8, max_bytes)

    def place(self, row: int) -> str:
        """Return where a row stands in the file."""
        return f"row {row + 1}"

    def cell(self, row: int, name: str) -> str:
        """Return a cell as it is written."""
        start = 0
        for columns in self.batches([name], [name], 2**16):
            if row < start + len(columns[0]):
                return as_text(columns[0][row - start].as_py())
            start += len(columns[0])
        return ""

    def head(self, rows: int) -> list[list[str]]:
        """Return the first rows as text."""
        columns = next(self.batches(self.names, self.names, rows), [])
        texts = [[as_text(one) for one in column[:rows].to_pylist()] for column in columns]
        return [list(row) for row in zip(*texts, strict=True)]

    def batches(self, names: Sequence[str], text: Collection[str], rows: int) -> Iterator[list[Any]]:
        """Yield the named columns as Arrow arrays, about `rows` rows at a time; those in `text` as text."""
        own = [name for name in names if name in self._position_of] or list(self._own[:1])
        pyarrow = arrow("pyarrow", self.path)
        for columns in self._read(own, text, rows):
            if not len(columns[0]):
                continue
            found = {name: self._decoded(column) for name, column in zip(own, columns, strict=True)}
            for key, value in self.keys.items():
                found[key] = pyarrow.repeat(pyarrow.scalar(value, pyarrow.string()), len(columns[0]))
            yield [found[name] for name in names]

    def _decoded(self, column: Any) -> Any:
        """Return a column of binary cells as text."""
        if "binary" not in str(column.type):
            return column
        pyarrow = arrow("pyarrow", self.path)
        try:
            return column.cast(getattr(column.type, "value_type", column.type)).cast(pyarrow.string())
        except pyarrow.ArrowInvalid as error:
            raise TableError(
                f"{self.path}: binary cells must be text in UTF-8 ({error}). Decode the column."
            ) from error

    def _read(self, names: Sequence[str], text: Collection[str], rows: int) -> Iterator[list[Any]]:
        raise NotImplementedError


class MemoryPart(TablePart):
    """Columns that are in memory: a data frame, a sheet, a file on its side."""

    def __init__(self, path: Path, names: Sequence[str], columns: Sequence[Any], places: Any = None) -> None:
        super().__init__(path, names, [kind_of(column.type) for column in columns], {})
        self._columns, self._places = dict(zip(names, columns, strict=True)), places
        self.n_rows = len(columns[0]) if columns else 0

    def place(self, row: int) -> str:
        return super().place(row) if self._places is None else str(self._places(row))

    def _read(self, names: Sequence[str], text: Collection[str], rows: int) -> Iterator[list[Any]]:
        yield [self._columns[name] for name in names]


class ColumnarPart(TablePart):
    """A Parquet or Feather file."""

    def __init__(self, path: Path, opening: Opening) -> None:
        self.path = path
        with readable(path):
            files = arrow("pyarrow.fs", path).LocalFileSystem()
            schema = self._format([]).inspect(os.fspath(path), files)
        self._written = schema.names
        # text by its different values: a small file can repeat a long one any number of times
        worded = ("string", "large_string", "binary", "large_binary")
        self._texts = [one.name for one in schema if str(one.type) in worded]
        super().__init__(path, column_names(schema.names), [kind_of(one.type) for one in schema], opening.keys)

    def _format(self, texts: Sequence[str]) -> Any:
        module = arrow("pyarrow.dataset", self.path)
        if self.path.suffix.lower() not in PARQUET:
            return module.IpcFileFormat()
        return module.ParquetFileFormat(read_options=module.ParquetReadOptions(dictionary_columns=list(texts)))

    def _dataset(self, texts: Sequence[str]) -> Any:
        return arrow("pyarrow.dataset", self.path).dataset(os.fspath(self.path), format=self._format(texts))

    @computed_once
    def n_rows(self) -> int:
        with readable(self.path):
            return int(self._dataset([]).count_rows())

    def require_memory(self, max_bytes: int) -> None:
        super().require_memory(max_bytes)
        if self.path.suffix.lower() in PARQUET:  # run lengths let a small file claim any content
            with readable(self.path), arrow("pyarrow.parquet", self.path).ParquetFile(self.path) as file:
                groups = [file.metadata.row_group(at) for at in range(file.metadata.num_row_groups)]
                require_memory(self.path, sum(group.total_byte_size for group in groups), max_bytes)

    def _read(self, names: Sequence[str], text: Collection[str], rows: int) -> Iterator[list[Any]]:
        field = arrow("pyarrow.dataset", self.path).field
        wanted = {f"{at}": field(self._written[self._position_of[name]]) for at, name in enumerate(names)}
        with readable(self.path):
            data = self._dataset(self._texts)
            for batch in data.to_batches(columns=wanted, batch_size=rows, batch_readahead=READ_AHEAD):
                yield batch.columns


class ArrayPart(TablePart):
    """A .npy file of n×d numbers; its columns are called c1, c2, … ."""

    def __init__(self, path: Path, opening: Opening) -> None:
        try:
            self._rows = np.load(path, mmap_mode="r")
        except (ValueError, EOFError) as error:
            raise TableError(
                f"{path} is no .npy file of numbers, or cut short: {error}. Write it again, or leave it out."
            ) from error
        kind = self._rows.dtype
        if self._rows.ndim != 2 or kind.kind not in "fiub":
            raise TableError(
                f"{path} holds an array of shape {self._rows.shape} and kind {kind}. A table is an array of rows and "
                "columns of numbers, with the labels in one of the columns."
            )
        held = kind_of(arrow("pyarrow", path).from_numpy_dtype(kind.newbyteorder("=")))
        names = column_names([""] * self._rows.shape[1], named=False)
        super().__init__(path, names, [held] * len(names), opening.keys)
        self.n_rows = len(self._rows)

    def _read(self, names: Sequence[str], text: Collection[str], rows: int) -> Iterator[list[Any]]:
        pyarrow, at = arrow("pyarrow", self.path), [self._position_of[name] for name in names]
        kind = self._rows.dtype.newbyteorder("=")
        for start in range(0, len(self._rows), rows):
            block = np.asarray(self._rows[start : start + rows, at], dtype=kind)
            yield [pyarrow.array(column) for column in np.asfortranarray(block).T]


def require_utf8_name(path: Path) -> None:
    """Raise if the name of a file cannot be printed or passed to pyarrow."""
    try:
        os.fspath(path).encode()
    except UnicodeEncodeError as error:
        named = f"The name of {os.fsencode(path)!r} must be text in UTF-8. Rename the file or folder."
        raise TableError(named) from error


@contextmanager
def readable(path: Path) -> Iterator[None]:
    """Turn errors of pyarrow on a damaged file into a TableError that names it."""
    require_utf8_name(path)
    try:
        yield
    except (arrow("pyarrow", path).ArrowException, OSError) as error:
        if isinstance(error, PermissionError | IsADirectoryError) or not path.exists():
            raise
        raise TableError(
            f"{path} is not a readable {path.suffix} file: damaged, cut short, or another format ({error}).",
            "write it again, or leave it out",
        ) from error


def open_feather(path: Path, opening: Opening) -> TablePart:
    """Return a Feather file; the first version of the format, which is never packed, is read into memory."""
    with open(path, "rb") as file:
        if file.read(4) != b"FEA1":
            return ColumnarPart(path, opening)
        require_memory(path, file.seek(0, 2), opening.max_bytes)
    with readable(path):
        table = arrow("pyarrow.feather", path).read_table(path)
    return MemoryPart(path, column_names(table.column_names), table.columns)


def open_sheet(path: Path, opening: Opening) -> TablePart:
    """Return the first sheet of an .xlsx workbook: a row of column names, then one row per sample."""
    openpyxl, pyarrow, header = arrow("openpyxl", path), arrow("pyarrow", path), opening.dialect.header
    try:
        with zipfile.ZipFile(path) as parts:
            require_memory(path, sum(part.file_size for part in parts.infolist()), opening.max_bytes)
        book = openpyxl.load_workbook(path, read_only=True, data_only=True)
        rows = list(enumerate(book.worksheets[0].iter_rows(values_only=True), start=1))
        book.close()
    except (zipfile.BadZipFile, KeyError, IndexError, ValueError) as error:
        if isinstance(error, TableError):
            raise
        raise TableError(f"{path} is not a readable .xlsx workbook: damaged, or another format ({error}).") from error
    rows = [(number, cells) for number, cells in rows if any(cell not in (None, "") for cell in cells)]
    width = max((at + 1 for _, cells in rows for at, cell in enumerate(cells) if cell not in (None, "")), default=0)
    first = [_cell_text(cell) for cell in rows[0][1][:width]] if rows else []
    body = rows if header is False else rows[1:]
    columns = [
        _sheet_column(pyarrow, [cells[at] if at < len(cells) else None for _, cells in body]) for at in range(width)
    ]
    part = MemoryPart(path, column_names(first, named=header is not False), columns, lambda row: f"row {body[row][0]}")
    part.first_line = first
    return part


def _sheet_column(pyarrow: Any, cells: Sequence[Any]) -> Any:
    """Return a column of whole numbers, numbers or truth values as such, any other as text."""
    kinds = {type(cell) for cell in cells if cell is not None}
    if kinds == {int} and all(cell is None or abs(cell) < 2**63 for cell in cells):  # a double would cut long ids
        return pyarrow.array(cells, pyarrow.int64())
    for known, arrow_type in (({bool}, pyarrow.bool_()), ({bool, int, float}, pyarrow.float64())):
        if kinds <= known:
            convert = float if float in known else bool
            return pyarrow.array([None if cell is None else convert(cell) for cell in cells], arrow_type)
    return pyarrow.array([_cell_text(cell) for cell in cells], pyarrow.string())


def _cell_text(cell: Any) -> str:
    return "" if cell is None else cell.isoformat() if isinstance(cell, date | time) else str(cell)


def on_its_side(part: TablePart) -> TablePart:
    """Exchange rows and columns: the first column names the features, every other one is a sample by its name."""
    array = arrow("pyarrow", part.path).array
    texts: list[list[str]] = [[] for _ in part.names]
    for columns in part.batches(part.names, part.names, 2**16):
        for held, column in zip(texts, columns, strict=True):
            cells, codes = distinct(column)
            held += [cells[code] for code in codes]
    names = [part.names[0], *column_names(texts[0])]
    samples = part.names[1:] if part.first_line is None else column_names(part.first_line)[1:]
    columns = [list(samples), *map(list, zip(*texts[1:], strict=True))]
    turned = [array(column) for column in columns]
    return MemoryPart(part.path, names, turned, lambda row: f"column {row + 2} of the file")


def frame_part(frame: Any) -> TablePart:
    """Return a pandas or polars data frame as a part."""
    path = Path("the data frame")
    pyarrow = arrow("pyarrow", path)
    if hasattr(frame, "to_arrow"):
        table = frame.to_arrow()
        return MemoryPart(path, column_names(table.column_names), table.columns)
    names = column_names([str(name) for name in frame.columns])
    columns = []
    for at in range(len(names)):
        values = frame.iloc[:, at]
        try:
            columns.append(pyarrow.array(values, from_pandas=True))
        except (pyarrow.ArrowInvalid, pyarrow.ArrowTypeError):  # a column of several types
            columns.append(pyarrow.array([as_text(one) for one in values], pyarrow.string()))
    return MemoryPart(path, names, columns)


def ending_of(path: Path) -> str:
    """Return the ending that states the format, without the .gz of a delimited file."""
    ending = Path(path.name.removesuffix(".gz")).suffix.lower()
    return path.suffix.lower() if path.suffix == ".gz" and ending not in DELIMITED else ending


def visible_files(folder: Path) -> list[Path]:
    """Return the files below a folder in the order of their names: no hidden ones, each file once.

    Names that begin with "." or "_" are those of checkpoints and unfinished writes. A link to another file of the
    folder would count its rows twice.
    """
    found = []
    for place, folders, files in os.walk(folder):
        folders[:] = [name for name in folders if name[0] not in "._"]
        found += [Path(place, name) for name in files if name[0] not in "._"]
    found.sort(key=lambda path: path.relative_to(folder).as_posix())
    once: dict[Path, Path] = {}
    for path in sorted(found, key=lambda path: path.is_symlink()):
        if path.is_file():
            once.setdefault(path.resolve(), path)
    kept = set(once.values())
    return [path for path in found if path in kept]


def folder_keys(file: Path, folder: Path) -> dict[str, str | None]:
    """Return the columns that the folders between `folder` and the file state, as in kind=a/rows.parquet."""
    keys: dict[str, str | None] = {}
    for piece in file.relative_to(folder).parts[:-1]:
        name, sign, value = piece.partition("=")
        if sign and name:
            keys[normal_text(unquote(name))] = None if value == NO_KEY else unquote(value)
    return keys


# ---------------------------------------------------------------------- names or a row?


def require_names(
    parts: Sequence[TablePart], columns: Collection[str], label: str | None, form: Dialect
) -> tuple[str, ...]:
    """Raise if the first line of a delimited file or a sheet looks like a row; return what was decided if in doubt.

    columns : those that are read; label : the column of the labels
    """
    readable = [part for part in parts if part.first_line is not None and part.n_rows != 0]
    found = ((part, part.head(max(20, min(HEAD_ROWS, 10**6 // len(part.names))))) for part in readable)
    part, below = next(((part, rows) for part, rows in found if rows), (None, []))
    if part is None or part.first_line is None:
        return ()
    places = [at for at, name in enumerate(part.names) if name in columns and name not in part.keys]
    tops = {at: normal_text(part.first_line[at]) for at in places}
    numeric = []
    for at in places:
        cells = {normal_text(row[at]) for row in below}
        if all(kind != TEXT for kind, _ in form.readings(cells)[0]):
            if not _could_stand_among(tops[at], cells, form):
                return ()
            numeric.append(at)
    again = [at for at in places if at not in numeric and tops[at] in {normal_text(row[at]) for row in below}]
    readings = [form.reading(tops[at]) for at in numeric]
    numbered = [value for kind, value in readings if kind == NUMBER]
    others = [kind for kind, _ in readings if kind in (TEXT, INFINITE)]
    line = quoted(list(tops.values()))
    if not again and not others and len(numbered) >= 3 and all(one < other for one, other in pairwise(numbered)):
        whole = numbered == [numbered[0] + step for step in range(len(numbered))] and numbered[0] in (0, 1)
        if whole or label is None or part.names.index(label) not in numeric:
            return (f"Line 1 ({line}) is taken for the names of the columns, not for a row.",)
    if not again and not numbered and not others:
        return ()
    raise TableError(
        f"{part.path}, line 1: {line} where the names of the columns belong. This looks like a row, which would be "
        "lost.",
        Advice("if there is no line of column names, read it with", header=False),
        Advice("if these are the names, with", header=True),
    )


def _could_stand_among(top: str, cells: Collection[str], form: Dialect) -> bool:
    """Return whether the first cell of a column of numbers could be one of them."""
    if form.reading(top)[0] != TEXT:
        return True
    return top.casefold() in BOOLEANS and any(cell.casefold() in BOOLEANS for cell in cells)
