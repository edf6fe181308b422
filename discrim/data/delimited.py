"""CSV and TSV files, plain or gzipped: a line of column names, then one row per record.

What is read without asking: UTF-8 with or without byte order mark, UTF-16 with one; commas, semicolons, tabs
or bars as delimiters (the one that splits the first line into most fields); quoted fields, also with line
breaks in them; blank lines, which hold no row. Everything else out of the ordinary is an error with its line.
"""

from __future__ import annotations

import codecs
import csv
import gzip
import io
import zlib
from array import array
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from operator import itemgetter
from pathlib import Path
from typing import IO, Any

import numpy as np

from discrim.data.cells import (
    CellFormat,
    CellsNotNumericError,
    ColumnSurvey,
    TableError,
    plural,
    shortened,
)
from discrim.data.columns import Taken
from discrim.data.labelled_table import normal_text

MAX_BYTES = 8 * 2**30
_DELIMITERS = (",", ";", "\t", "|")
_FOREIGN = {
    b"PK\x03\x04": "a zip archive (an Excel workbook, or an .npz file under another name)",
    b"PAR1": "a Parquet file",
    b"ARROW1": "a Feather file",
    b"\xd0\xcf\x11\xe0": "an old Excel workbook",
}


@dataclass(frozen=True)
class Dialect:
    """How a delimited file is written; None: found out from its first line and first bytes."""

    delimiter: str | None = None
    encoding: str | None = None
    cells: CellFormat = field(default_factory=CellFormat)


class DelimitedFile:
    """A CSV or TSV file whose columns can be taken or surveyed. It is streamed, never held as text."""

    unit = "line"

    def __init__(self, path: Path, dialect: Dialect, max_bytes: int = MAX_BYTES) -> None:
        self.path, self.dialect, self._max_bytes = path, dialect, max_bytes
        self._encoding = _known_encoding(dialect.encoding) or self._encoding_by_mark()
        self._delimiter = _one_character(dialect.delimiter) or self._delimiter_of_first_line()
        self.names = self._header()

    def take(self, numeric: Sequence[int], text: Sequence[int]) -> Taken:
        """The columns `numeric` as float64 and `text` as lists; CellsNotNumericError if that fails."""
        numbers, texts = array("d"), [[] for _ in text]  # type: tuple[array[float], list[list[str]]]
        form, parse, picked = self.dialect.cells, self.dialect.cells.parse, _picker(numeric)
        for _, cells in self._rows():
            wanted = picked(cells)
            # float() takes 1_000 for a number; no spreadsheet does.
            if form.plain and "_" in "".join(wanted):
                raise CellsNotNumericError
            try:
                numbers.extend(map(parse, wanted))
            except ValueError:
                raise CellsNotNumericError from None
            for column, position in zip(texts, text, strict=True):
                column.append(normal_text(cells[position]))
        X = np.frombuffer(numbers, dtype=np.float64) if len(numbers) else np.empty(0)
        if not np.isfinite(X).all() or (form.codes and np.isin(X, list(form.codes)).any()):
            raise CellsNotNumericError
        return Taken(X.reshape(-1, len(numeric)) if numeric else np.empty((0, 0)), texts)

    def survey(self, columns: Sequence[int]) -> list[ColumnSurvey]:
        """What is wrong with each of the columns, counted over the whole file."""
        surveys = [ColumnSurvey(self.names[position]) for position in columns]
        kind = self.dialect.cells.kind
        for line, cells in self._rows():
            for survey, position in zip(surveys, columns, strict=True):
                cell = cells[position]
                survey.add(line, cell, kind(cell))
        return surveys

    def _header(self) -> tuple[str, ...]:
        for line, cells in self._records():
            names = [normal_text(cell) for cell in cells]
            if any("\0" in name for name in names):
                raise TableError(
                    f"{self.path}, line {line}: zero bytes among the column names. This is a binary file, or "
                    f"text in UTF-16 without a byte order mark (then pass encoding='utf-16-le')."
                )
            if len(names) == 1:
                raise TableError(
                    f"{self.path}, line {line}: only one column, {shortened(names[0])}. Columns are "
                    f"separated by {shortened(self._delimiter)} here; pass delimiter=... if it is another "
                    f"character."
                )
            return tuple(name or f"column {position}" for position, name in enumerate(names, start=1))
        raise TableError(f"{self.path} is empty: it needs a line of column names and one line per row.")

    def _rows(self) -> Iterator[tuple[int, list[str]]]:
        """(line, cells) of each row after the column names, each as wide as they are."""
        records = self._records()
        next(records)
        width, line = len(self.names), None
        for line, cells in records:
            if len(cells) != width:
                raise TableError(self._ragged(line, len(cells)))
            yield line, cells
        if line is None:
            raise TableError(f"{self.path} has column names but no rows below them.")

    def _ragged(self, line: int, found: int) -> str:
        cause = (
            "A delimiter or decimal comma inside a field? Quote such fields."
            if found > len(self.names)
            else "A line cut short, or a line break inside a field? Quote such fields."
        )
        return (
            f"{self.path}, line {line}: {plural(found, 'field')}, but the first line names "
            f"{len(self.names)} columns. {cause}"
        )

    def _records(self) -> Iterator[tuple[int, list[str]]]:
        """(line it starts on, cells) of each record; blank lines hold none."""
        with self._text() as lines:
            reader = csv.reader(lines, delimiter=self._delimiter, strict=True, skipinitialspace=True)
            line = 1
            try:
                for cells in reader:
                    if cells and (len(cells) > 1 or cells[0].strip()):
                        yield line, cells
                    line = reader.line_num + 1
            except csv.Error as error:
                raise TableError(
                    f"{self.path}, line {line}: the quotes of this record do not match ({error}). A field in "
                    f"quotes ends with a quote and a delimiter; a quote inside it is written twice."
                ) from error
            except UnicodeDecodeError as error:
                raise self._undecodable(error) from error
            except (EOFError, zlib.error, gzip.BadGzipFile) as error:
                raise TableError(
                    f"{self.path}, near line {line}: the gzip data are damaged or cut short ({error})."
                ) from error

    def _text(self) -> IO[str]:
        return io.TextIOWrapper(self._bytes(), encoding=self._encoding, newline="")

    def _bytes(self) -> IO[bytes]:
        """The file's bytes, unzipped if it is gzipped, whatever its name says."""
        raw = open(self.path, "rb")  # noqa: SIM115 (closed by the reader around it)
        zipped = raw.read(2) == b"\x1f\x8b"
        raw.seek(0)
        if not zipped:
            return raw
        return io.BufferedReader(_Unzipped(raw, self.path, self._max_bytes), buffer_size=1 << 18)

    def _first_bytes(self) -> bytes:
        try:
            with self._bytes() as handle:
                return handle.read(8)
        except (EOFError, zlib.error, gzip.BadGzipFile) as error:
            raise TableError(f"{self.path}: the gzip data are damaged or cut short ({error}).") from error

    def _encoding_by_mark(self) -> str:
        first = self._first_bytes()
        for mark, what in _FOREIGN.items():
            if first.startswith(mark):
                raise TableError(f"{self.path} is {what}, not delimited text. Export it as CSV, or rename it.")
        if first.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
            return "utf-16"
        return "utf-8-sig"

    def _delimiter_of_first_line(self) -> str:
        if self.path.name.removesuffix(".gz").endswith((".tsv", ".tab")):
            return "\t"
        self._delimiter = ","
        try:
            with self._text() as lines:
                first = next((line for line in lines if line.strip()), "")
        except UnicodeDecodeError as error:
            raise self._undecodable(error) from error
        except (EOFError, zlib.error, gzip.BadGzipFile) as error:
            raise TableError(f"{self.path}: the gzip data are damaged or cut short ({error}).") from error
        return max(_DELIMITERS, key=lambda mark: len(next(csv.reader([first], delimiter=mark), [])))

    def _undecodable(self, error: UnicodeDecodeError) -> TableError:
        """Which line is not text in the encoding: looked for only once reading has failed."""
        place = ""
        if self._encoding.startswith("utf-8"):
            with self._bytes() as handle:
                for number, line in enumerate(handle, start=1):
                    try:
                        line.decode()
                    except UnicodeDecodeError as here:
                        place = f", line {number}, byte {here.start + 1} (0x{line[here.start]:02x})"
                        break
        known = "UTF-8" if self._encoding.startswith("utf-8") else self._encoding
        return TableError(
            f"{self.path}{place}: this is not {known} text ({error.reason}). Save the file as UTF-8, or name "
            f"its encoding, for example encoding='latin-1' or encoding='cp1252'."
        )


def _picker(positions: Sequence[int]) -> Callable[[list[str]], Sequence[str]]:
    """A function that takes the cells at these positions, fast: rows may have 20,000."""
    if not positions:
        return lambda cells: ()
    first, last = positions[0], positions[-1]
    if list(positions) == list(range(first, last + 1)):
        return itemgetter(slice(first, last + 1))
    return itemgetter(*positions)


class _Unzipped(io.RawIOBase):
    """Unzipped bytes up to a limit: a few kilobytes of gzip can hold gigabytes."""

    def __init__(self, raw: IO[bytes], path: Path, limit: int) -> None:
        self._raw, self._inner = raw, gzip.GzipFile(fileobj=raw)
        self._path, self._limit, self._seen = path, limit, 0

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        data = self._inner.read1(len(buffer))
        self._seen += len(data)
        if self._seen > self._limit:
            raise TableError(
                f"{self._path} unzips to more than {self._limit:,} bytes. If that is meant, pass a larger max_bytes."
            )
        buffer[: len(data)] = data
        return len(data)

    def close(self) -> None:
        self._raw.close()
        super().close()


def _known_encoding(name: str | None) -> str | None:
    """An encoding as it was named, if Python knows it."""
    try:
        return None if name is None else codecs.lookup(name) and name
    except LookupError as error:
        raise TableError(f"encoding {name!r} is not known. Pass a name such as utf-8, latin-1 or cp1252.") from error


def _one_character(delimiter: str | None) -> str | None:
    if delimiter is not None and len(delimiter) != 1:
        raise TableError(f"delimiter {delimiter!r} came; possible is one character, such as ',' or ';'.")
    return delimiter
