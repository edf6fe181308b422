"""Parquet and Feather files, read with pyarrow (the optional extra `tables`)."""

from __future__ import annotations

import importlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from discrim.data.cells import CellFormat, CellsNotNumericError, ColumnSurvey, TableError
from discrim.data.columns import Taken
from discrim.data.delimited import MAX_BYTES
from discrim.data.labelled_table import normal_text


class MissingExtraError(ImportError):
    """A file format that needs an optional dependency which is not installed."""


def arrow(module: str, path: Path) -> Any:
    """A module of pyarrow, imported only when such a file is met."""
    try:
        return importlib.import_module(module)
    except ImportError as error:
        raise MissingExtraError(
            f"{path}: {path.suffix} files need pyarrow, which is not installed. Install it with "
            f"pip install 'discrim[tables]', or use a CSV or .npz file."
        ) from error


class ColumnarFile:
    """A Parquet or Feather file whose columns can be taken or surveyed, as those of a delimited file."""

    unit = "row"

    def __init__(self, path: Path, form: CellFormat, max_bytes: int = MAX_BYTES) -> None:
        self.path, self._form = path, form
        self._types = arrow("pyarrow.types", path)
        self._table = _read(path, max_bytes)
        self.names = tuple(
            normal_text(name) or f"column {position}" for position, name in enumerate(self._table.column_names, start=1)
        )
        if not self._table.num_rows:
            raise TableError(f"{path} has no rows." if self.names else f"{path} is empty: no columns and no rows.")

    def take(self, numeric: Sequence[int], text: Sequence[int]) -> Taken:
        X = np.empty((self._table.num_rows, len(numeric)))
        for place, position in enumerate(numeric):
            column = self._table.column(position)
            if column.null_count or not self._is_number(column.type):
                raise CellsNotNumericError
            X[:, place] = self._doubles(column)
        codes = list(self._form.codes)
        if not np.isfinite(X).all() or (codes and np.isin(X, codes).any()):
            raise CellsNotNumericError
        return Taken(X, [[normal_text(cell) for cell in self._cells(position)] for position in text])

    def survey(self, columns: Sequence[int]) -> list[ColumnSurvey]:
        surveys = []
        for position in columns:
            survey = ColumnSurvey(self.names[position])
            numeric = self._is_number(self._table.column(position).type)
            for row, cell in enumerate(self._cells(position), start=1):
                survey.add(row, cell, self._kind(cell, numeric))
            surveys.append(survey)
        return surveys

    def _kind(self, cell: str, numeric: bool) -> str:
        if cell.strip() in self._form.missing:
            return "missing"
        if not numeric:
            return "text"
        value = 1.0 if cell == "True" else 0.0 if cell == "False" else float(cell)
        if np.isnan(value) or value in self._form.codes:
            return "missing"
        return "infinite" if np.isinf(value) else "number"

    def _cells(self, position: int) -> list[str]:
        """A column as text, missing values as empty text."""
        return [_as_text(value) for value in self._table.column(position).to_pylist()]

    def _is_number(self, kind: Any) -> bool:
        is_a = self._types
        return bool(is_a.is_integer(kind) or is_a.is_floating(kind) or is_a.is_boolean(kind) or is_a.is_decimal(kind))

    def _doubles(self, column: Any) -> np.ndarray:
        if self._types.is_decimal(column.type):
            column = column.cast("float64")
        return np.asarray(column.to_numpy(), dtype=np.float64)


def _as_text(value: Any) -> str:
    if value is None:
        return ""
    return value.decode(errors="replace") if isinstance(value, bytes) else str(value)


def _read(path: Path, max_bytes: int) -> Any:
    pyarrow = arrow("pyarrow", path)
    try:
        if path.suffix.lower() in (".parquet", ".pq"):
            parquet = arrow("pyarrow.parquet", path)
            shape = parquet.read_metadata(path)
            # Run lengths let a small Parquet file claim any number of rows.
            if shape.num_rows * shape.num_columns * 8 > max_bytes:
                raise TableError(
                    f"{path} holds {shape.num_rows:,} rows × {shape.num_columns:,} columns, more than "
                    f"{max_bytes:,} bytes as numbers. If that is meant, pass a larger max_bytes."
                )
            return parquet.ParquetFile(path).read()
        return arrow("pyarrow.feather", path).read_table(path)
    except (pyarrow.ArrowException, OSError) as error:
        if isinstance(error, FileNotFoundError | PermissionError | IsADirectoryError):
            raise
        raise TableError(
            f"{path} is not a readable {path.suffix} file: damaged, or another format ({error})."
        ) from error
