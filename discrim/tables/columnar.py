"""Parquet, Feather and Excel files, and any file on its side: tables of named Arrow columns."""

from __future__ import annotations

import importlib
import zipfile
from collections.abc import Callable, Sequence
from datetime import date, time
from pathlib import Path
from typing import Any

from discrim.tables.cells import as_text, distinct
from discrim.tables.labelled_table import normal_text
from discrim.tables.table_error import MAX_BYTES, TableError, require_room


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


def column_names(cells: Sequence[str], *, named: bool = True) -> tuple[str, ...]:
    """Names without surrounding blanks; those that are empty are called "column 3", all where there are none c3."""
    if not named:
        return tuple(f"c{position}" for position in range(1, len(cells) + 1))
    return tuple(normal_text(cell) or f"column {position}" for position, cell in enumerate(cells, start=1))


class TableFile:
    """A file with named columns, as Arrow has them."""

    first_line: list[str] | None = None  # what the file has for names, where that may be a row; None: they are names

    def __init__(self, path: Path, names: Sequence[str], columns: Sequence[Any], place: Callable[[int], str]) -> None:
        self.path, self.names, self._columns, self.place = path, tuple(names), columns, place
        if not columns or not len(columns[0]):
            raise TableError(f"{path} has no rows." if names else f"{path} is empty: no columns and no rows.")

    def cell(self, row: int, at: int) -> str:
        """A cell as it is written."""
        return as_text(self._columns[at][row].as_py())

    def columns(self, positions: Sequence[int], text: Sequence[int]) -> list[Any]:
        """The columns as Arrow arrays; those of `text` are wanted as it."""
        return [self._columns[at] for at in positions]


def columnar_file(path: Path, max_bytes: int = MAX_BYTES) -> TableFile:
    """A Parquet or Feather file."""
    pyarrow = arrow("pyarrow", path)
    read = _parquet if path.suffix.lower() in (".parquet", ".pq") else _feather
    try:
        table = read(path, max_bytes)
    except (pyarrow.ArrowException, OSError) as error:
        if isinstance(error, FileNotFoundError | PermissionError | IsADirectoryError):
            raise
        raise TableError(
            f"{path} is not a readable {path.suffix} file: damaged, or another format ({error})."
        ) from error
    return TableFile(path, column_names(table.column_names), table.columns, lambda row: f"row {row + 1}")


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
    """Refused by the rows it claims before it is unpacked, and by what its texts come to batch by batch."""
    pyarrow, ipc = arrow("pyarrow", path), arrow("pyarrow.ipc", path)
    with open(path, "rb") as file:
        if file.read(4) == b"FEA1":  # the first version of Feather, which is never packed
            require_room(path, file.seek(0, 2), max_bytes)
            return arrow("pyarrow.feather", path).read_table(path)
    n_rows = arrow("pyarrow.dataset", path).dataset(path, format="feather").count_rows()
    before, batches = pyarrow.total_allocated_bytes(), []
    with pyarrow.OSFile(str(path)) as source, ipc.open_file(source) as file:
        require_room(path, n_rows * len(file.schema) * 8, max_bytes)
        for at in range(file.num_record_batches):
            batches.append(file.get_batch(at))
            require_room(path, pyarrow.total_allocated_bytes() - before, max_bytes, is_known=False)
        return pyarrow.Table.from_batches(batches, file.schema)


def excel_file(path: Path, header: bool | None, max_bytes: int = MAX_BYTES) -> TableFile:
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
    names = column_names(first, named=header is not False)
    file = TableFile(path, names, columns, lambda row: f"row {body[row][0]}")
    file.first_line = first
    return file


def _excel_column(pyarrow: Any, cells: Sequence[Any]) -> Any:
    """A column of numbers as numbers, any other as text."""
    if all(cell is None or isinstance(cell, bool | int | float) for cell in cells):
        return pyarrow.chunked_array([pyarrow.array([None if cell is None else float(cell) for cell in cells])])
    return pyarrow.chunked_array([pyarrow.array([_cell_text(cell) for cell in cells], pyarrow.string())])


def _cell_text(cell: Any) -> str:
    return "" if cell is None else cell.isoformat() if isinstance(cell, date | time) else str(cell)


def on_its_side(file: TableFile) -> TableFile:
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
    return TableFile(
        file.path, names, [chunked([column]) for column in columns], lambda row: f"column {row + 2} of the file"
    )
