"""Parquet, Feather and Excel files, and any file on its side: tables of named Arrow columns."""

from __future__ import annotations

import importlib
import struct
import zipfile
from collections.abc import Callable, Sequence
from datetime import date, time
from pathlib import Path
from typing import Any, Protocol

from discrim.data.cells import as_text, distinct
from discrim.data.labelled_table import normal_text
from discrim.data.table_error import MAX_BYTES, TableError, require_room


class MissingExtraError(ImportError):
    """A file format that needs an optional dependency which is not installed."""


def arrow(module: str, path: Path) -> Any:
    """A module of pyarrow, or openpyxl, imported only when a file needs it."""
    try:
        return importlib.import_module(module)
    except ImportError as error:
        package = module.partition(".")[0]
        raise MissingExtraError(
            f"{path}: {path.suffix} files need {package}, which is not installed. Install it with "
            f"pip install 'discrim[tables]', or use an .npz file."
        ) from error


class TableFile(Protocol):
    """A file with named columns: what the readers of single formats offer."""

    path: Path
    names: tuple[str, ...]
    first_line: list[str] | None  # what the file has for names, where that may be a row; None: they are names

    def place(self, row: int) -> str: ...

    def cell(self, row: int, at: int) -> str: ...

    def columns(self, positions: Sequence[int], text: Sequence[int]) -> list[Any]: ...


def column_names(cells: Sequence[str], *, named: bool = True) -> tuple[str, ...]:
    """Names without surrounding blanks; those that are empty are called "column 3", all where there are none c3."""
    if not named:
        return tuple(f"c{position}" for position in range(1, len(cells) + 1))
    return tuple(normal_text(cell) or f"column {position}" for position, cell in enumerate(cells, start=1))


class ColumnarFile:
    """Named columns as Arrow has them."""

    first_line: list[str] | None = None

    def __init__(self, path: Path, names: Sequence[str], columns: Sequence[Any], place: Callable[[int], str]) -> None:
        self.path, self.names, self._columns, self.place = path, tuple(names), columns, place
        if not columns or not len(columns[0]):
            raise TableError(f"{path} has no rows." if names else f"{path} is empty: no columns and no rows.")

    def cell(self, row: int, at: int) -> str:
        return as_text(self._columns[at][row].as_py())

    def columns(self, positions: Sequence[int], text: Sequence[int]) -> list[Any]:
        return [self._columns[at] for at in positions]


def row_number(row: int) -> str:
    return f"row {row + 1}"


def columnar_file(path: Path, max_bytes: int = MAX_BYTES) -> ColumnarFile:
    """A Parquet or Feather file."""
    pyarrow = arrow("pyarrow", path)
    try:
        read = _parquet if path.suffix.lower() in (".parquet", ".pq") else _feather
        table = read(path, max_bytes)
    except (pyarrow.ArrowException, OSError, struct.error) as error:
        if isinstance(error, FileNotFoundError | PermissionError | IsADirectoryError):
            raise
        raise TableError(
            f"{path} is not a readable {path.suffix} file: damaged, or another format ({error})."
        ) from error
    return ColumnarFile(path, column_names(table.column_names), table.columns, row_number)


def _parquet(path: Path, max_bytes: int) -> Any:
    """The columns; text by its different values, since a small file can repeat a long one any number of times."""
    parquet = arrow("pyarrow.parquet", path)
    with parquet.ParquetFile(path) as file:
        about = file.metadata
        # Run lengths let a small Parquet file claim any number of rows.
        content = sum(about.row_group(at).total_byte_size for at in range(about.num_row_groups))
        require_room(path, max(content, about.num_rows * about.num_columns * 8), max_bytes)
        schema = file.schema_arrow
    worded = [one.name for one in schema if str(one.type) in ("string", "large_string", "binary", "large_binary")]
    with parquet.ParquetFile(path, read_dictionary=worded) as file:
        return file.read()


def _feather(path: Path, max_bytes: int) -> Any:
    require_room(path, unpacked_size(path), max_bytes)
    return arrow("pyarrow.feather", path).read_table(path)


def unpacked_size(path: Path) -> int:
    """Bytes of a Feather file once unpacked; nothing is unpacked to find out.

    Every packed buffer begins with its unpacked size; where the buffers stand is in the metadata of the messages.
    """
    pyarrow, ipc = arrow("pyarrow", path), arrow("pyarrow.ipc", path)
    total = 0
    with pyarrow.memory_map(str(path)) as source:
        if source.read(6) != b"ARROW1":
            return int(source.size())  # the first version of Feather, which is never packed, or no Feather file
        source.seek(8)
        for message in ipc.MessageReader.open_stream(source):
            if message.type in ("record batch", "dictionary"):
                total += _unpacked_body(memoryview(message.metadata), message.body, message.type == "dictionary")
    return total


def _unpacked_body(about: memoryview, body: Any, dictionary: bool) -> int:
    """Of one message, by its metadata: a flatbuffer, Message → (DictionaryBatch →) RecordBatch → buffers."""

    def number(kind: str, at: int) -> int:
        return int(struct.unpack_from(kind, about, at)[0])

    def entry(table: int, index: int) -> int:
        """Where the table's field of this number stands, 0 where it has none."""
        fields = table - number("<i", table)
        offset = number("<H", fields + 4 + 2 * index) if 4 + 2 * index < number("<H", fields) else 0
        return table + offset if offset else 0

    def follow(at: int) -> int:
        return at + number("<I", at)

    batch = follow(entry(follow(0), 2))
    if dictionary:
        batch = follow(entry(batch, 1))
    length, nodes, buffers = entry(batch, 0), follow(entry(batch, 1)), follow(entry(batch, 2))
    claimed = (number("<q", length) if length else 0) * number("<I", nodes) * 8
    if not entry(batch, 3):
        return max(claimed, int(body.size))
    places = [buffers + 4 + 16 * one for one in range(number("<I", buffers))]
    packed = memoryview(body)
    starts = [number("<q", at) for at in places if number("<q", at + 8)]
    return max(claimed, sum(struct.unpack_from("<q", packed, start)[0] for start in starts))


def excel_file(path: Path, header: bool | None, max_bytes: int = MAX_BYTES) -> ColumnarFile:
    """The first sheet of an .xlsx workbook: a row of column names, then one row per sample."""
    openpyxl, pyarrow = arrow("openpyxl", path), arrow("pyarrow", path)
    try:
        with zipfile.ZipFile(path) as parts:
            require_room(path, sum(part.file_size for part in parts.infolist()), max_bytes)
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
        _excel_column(pyarrow, [cells[at] if at < len(cells) else None for _, cells in body]) for at in range(width)
    ]
    file = ColumnarFile(
        path, column_names(first, named=header is not False), columns, lambda row: f"row {body[row][0]}"
    )
    file.first_line = first
    return file


def _excel_column(pyarrow: Any, cells: Sequence[Any]) -> Any:
    """A column of numbers as numbers, any other as text."""
    if all(cell is None or isinstance(cell, bool | int | float) for cell in cells):
        return pyarrow.chunked_array([pyarrow.array([None if cell is None else float(cell) for cell in cells])])
    return pyarrow.chunked_array([pyarrow.array([_cell_text(cell) for cell in cells], pyarrow.string())])


def _cell_text(cell: Any) -> str:
    return "" if cell is None else cell.isoformat() if isinstance(cell, date | time) else str(cell)


def on_its_side(file: TableFile) -> ColumnarFile:
    """Rows for columns: the first column names the features, every other is a sample, called by its name."""
    chunked = arrow("pyarrow", file.path).chunked_array
    everything = range(len(file.names))
    texts = []
    for column in file.columns(everything, everything):
        cells, codes = distinct(column)
        texts.append([cells[code] for code in codes])
    names = [file.names[0], *column_names(texts[0])]
    samples = file.names[1:] if file.first_line is None else column_names(file.first_line)[1:]
    columns = [list(samples), *map(list, zip(*texts[1:], strict=True))]
    return ColumnarFile(
        file.path, names, [chunked([column]) for column in columns], lambda row: f"column {row + 2} of the file"
    )
