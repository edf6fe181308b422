"""CSV and TSV files, plain or gzipped: a line of column names, then one row per record.

What is read without asking: UTF-8 with or without byte order mark, UTF-16 with one; commas, semicolons, tabs
or bars as delimiters (the one that splits the first line into most fields); quoted fields, also with line
breaks in them; blank lines, which hold no row; an apostrophe in front of what a spreadsheet would take for a
formula, which is no part of the text. Everything else out of the ordinary is an error with its line.

pyarrow reads the file. Where it cannot, or where its reading of quotes is not ours, Python's csv module reads it
record by record, and either knows better or says on which line it went wrong.
"""

from __future__ import annotations

import codecs
import csv
import gzip
import io
import re
import zlib
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np

from discrim.tables.cells import CellFormat
from discrim.tables.columnar import TableFile, arrow, column_names
from discrim.tables.labelled_table import normal_text
from discrim.tables.table_error import MAX_BYTES, Advice, TableError, plural, quoted_cell, require_room

_DELIMITERS = (",", ";", "\t", "|")
_LINE = re.compile(rb"[^\r\n]*(?:\r\n|\n|\r)|[^\r\n]+")
_QUOTED_FIELD = re.compile(rb'(?:\A|(?<=[,;\t|\r\n])) *"[^"]*(?:""[^"]*)*"')
_RECORD = re.compile(rb"(?:%s|[^\r\n])*(?:\r\n|\n|\r|\Z)" % _QUOTED_FIELD.pattern)
_CHUNK = 1 << 20
_NEUTRALISED = re.compile(r"^\s*'('*[=+\-@\t\r])")
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
    header: bool | None = None
    cells: CellFormat = field(default_factory=CellFormat)


class DelimitedFile(TableFile):
    """A CSV or TSV file, unzipped and in UTF-8, whose columns can be taken."""

    def __init__(self, path: Path, dialect: Dialect, max_bytes: int = MAX_BYTES) -> None:
        self.path, self._form = path, dialect.cells
        self._content = _as_utf8(path, _unzipped(path, max_bytes), dialect.encoding)
        if dialect.delimiter is not None and len(dialect.delimiter) != 1:
            raise TableError(f"delimiter {dialect.delimiter!r} came; possible is one character, such as ',' or ';'.")
        self._delimiter = dialect.delimiter or self._delimiter_of_first_line()
        first, self._body = self._first_record()
        self.first_line = [_NEUTRALISED.sub(r"\1", cell) for cell in first]
        self.names = column_names(self.first_line, named=dialect.header is not False)
        if dialect.header is False:
            self._body = 0

    def place(self, row: int) -> str:
        """Where a row stands: the line that it begins on."""
        return f"line {next(islice(self._rows(), row, None))[0]}"

    def cell(self, row: int, at: int) -> str:
        """A cell as it is written."""
        return next(islice(self._rows(), row, None))[1][at]

    def columns(self, positions: Sequence[int], text: Sequence[int]) -> list[Any]:
        """The columns as Arrow arrays: doubles where all cells are numbers, else as text; those of `text` always so."""
        found = None
        if self._plainly_quoted():
            pyarrow = arrow("pyarrow", self.path)
            for numeric in (set(positions) - set(text), set()) if self._form.thousands is None else (set(),):
                with suppress(pyarrow.ArrowInvalid):
                    found = self._by_arrow(positions, numeric)
                    break
        found = self._by_records(positions) if found is None else found
        if not len(found[0]):
            raise TableError(f"{self.path} has column names but no rows below them.")
        if not re.search(rb"'[=+\-@\t\r]", self._content):
            return found
        # text without the apostrophe that keeps spreadsheets from running it
        bare = partial(
            arrow("pyarrow.compute", self.path).replace_substring_regex, pattern=_NEUTRALISED.pattern, replacement=r"\1"
        )
        return [bare(column) if str(column.type) == "string" else column for column in found]

    def _by_arrow(self, positions: Sequence[int], numeric: set[int]) -> list[Any]:
        pyarrow, csv_reader = arrow("pyarrow", self.path), arrow("pyarrow.csv", self.path)
        kinds = {f"{at}": pyarrow.float64() if at in numeric else pyarrow.string() for at in positions}
        # In memory of Arrow's own: a thread of Arrow's that frees a Python object when the process ends aborts it.
        body = pyarrow.BufferOutputStream()
        body.write(memoryview(self._content)[self._body :])
        first = _LINE.match(self._content, self._body)
        longest = 8 * len(first[0]) if first else 0  # a block of pyarrow's must hold a whole row
        table = csv_reader.read_csv(
            pyarrow.BufferReader(body.getvalue()),
            csv_reader.ReadOptions(
                column_names=[f"{at}" for at in range(len(self.names))], block_size=min(max(_CHUNK, longest), 2**30)
            ),
            csv_reader.ParseOptions(delimiter=self._delimiter, newlines_in_values=b'"' in self._content),
            csv_reader.ConvertOptions(
                column_types=kinds,
                include_columns=list(kinds),
                null_values=list(self._form.missing),
                decimal_point=self._form.decimal,
            ),
        )
        return list(table.columns)

    def _by_records(self, positions: Sequence[int]) -> list[Any]:
        pyarrow = arrow("pyarrow", self.path)
        rows = [[cells[at] for at in positions] for _, cells in self._rows()]
        return [
            pyarrow.chunked_array([[cells[at] for cells in rows]], pyarrow.string()) for at in range(len(positions))
        ]

    def _plainly_quoted(self) -> bool:
        """Whether every quote opens or closes a field, or is written twice within one: then all parsers agree."""
        if not self._delimiter.isascii():
            return False
        if b'"' not in self._content:
            return True
        data = np.frombuffer(self._content, dtype=np.uint8)[self._body :]
        quotes = np.flatnonzero(data == ord('"'))
        opening, closing = quotes[::2], quotes[1::2]
        around = [ord(mark) for mark in '"\r\n' + self._delimiter]
        before = np.isin(data[opening - 1], around) | (opening == 0)
        after = np.isin(data[np.minimum(closing + 1, len(data) - 1)], around)
        return len(opening) == len(closing) and bool(before.all()) and bool(after.all())

    def _first_record(self) -> tuple[list[str], int]:
        """The cells of the first record, and where the next begins."""
        for line, end, cells in self._records():
            if any("\0" in cell for cell in cells):
                raise TableError(
                    f"{self.path}, line {line}: zero bytes among the column names. This is a binary file, or text in "
                    "UTF-16 without a byte order mark.",
                    "save text as UTF-8",
                    Advice("read UTF-16 with", encoding="utf-16-le"),
                )
            if len(cells) == 1:
                raise TableError(
                    f"{self.path}, line {line}: only one column, {quoted_cell(normal_text(cells[0]))}. Columns are "
                    f"separated by {quoted_cell(self._delimiter)} here.",
                    Advice("if it is another character, name it with", delimiter=" "),
                )
            return cells, end
        raise TableError(f"{self.path} is empty: it needs a line of column names and one line per row.")

    def _rows(self) -> Iterator[tuple[int, list[str]]]:
        """(line, cells) of each row, each as wide as the first record."""
        width = len(self.names)
        for line, end, cells in self._records():
            if end <= self._body:
                continue
            if len(cells) != width:
                raise TableError(
                    f"{self.path}, line {line}: {plural(len(cells), 'field')}, but the first line has {width} columns.",
                    "a delimiter or decimal comma inside a field? Quote such fields"
                    if len(cells) > width
                    else "a line cut short, or a line break inside a field? Quote such fields",
                )
            yield line, cells

    def _records(self) -> Iterator[tuple[int, int, list[str]]]:
        """(line it starts on, where it ends, cells) of each record; blank lines hold none."""
        csv.field_size_limit(max(csv.field_size_limit(), len(self._content)))  # a field may be as long as the file
        end, line = 0, 1

        def lines() -> Iterator[str]:
            nonlocal end
            for found in _LINE.finditer(self._content):
                end = found.end()
                yield found[0].decode()

        reader = csv.reader(lines(), delimiter=self._delimiter, strict=True, skipinitialspace=True)
        try:
            for cells in reader:
                if cells and (len(cells) > 1 or cells[0].strip()):
                    yield line, end, cells
                line = reader.line_num + 1
        except csv.Error as error:
            raise TableError(
                f"{self.path}, line {line}: the quotes of this record do not match ({error}). A field in quotes ends "
                "with a quote and a delimiter; a quote inside it is written twice."
            ) from error
        except UnicodeDecodeError as error:
            raise _undecodable(self.path, "utf-8", error, line=reader.line_num + 1) from error

    def _delimiter_of_first_line(self) -> str:
        if self.path.name.removesuffix(".gz").lower().endswith((".tsv", ".tab")):
            return "\t"
        # quoted fields may hold marks, and line breaks; only the first record is looked at, which is quick
        bare = (_QUOTED_FIELD.sub(b"", found[0]) for found in _RECORD.finditer(self._content[:_CHUNK]))
        first = next((record for record in bare if record.strip(b" \r\n")), b"")
        return max(_DELIMITERS, key=lambda mark: first.count(mark.encode()))


def _unzipped(path: Path, max_bytes: int) -> bytes:
    """The file's bytes, unzipped if it is gzipped, whatever its name says, as far as the limit allows."""
    with open(path, "rb") as raw:
        zipped = raw.read(2) == b"\x1f\x8b"
        size = raw.seek(0, 2)
        raw.seek(0)
        if not zipped:
            require_room(path, size, max_bytes)
            return raw.read()
        content = io.BytesIO()
        try:
            with gzip.GzipFile(fileobj=raw) as inner:
                while chunk := inner.read(_CHUNK):
                    require_room(path, content.tell() + len(chunk), max_bytes, is_known=False)
                    content.write(chunk)
        except (EOFError, zlib.error, gzip.BadGzipFile) as error:
            raise TableError(f"{path}: the gzip data are damaged or cut short ({error}).") from error
    return content.getvalue()


def _as_utf8(path: Path, content: bytes, encoding: str | None) -> bytes:
    """The text in UTF-8 without byte order mark; its encoding by name, by its mark, or UTF-8."""
    if encoding is None:
        for mark, what in _FOREIGN.items():
            if content.startswith(mark):
                raise TableError(f"{path} is {what}, not delimited text. Export it as CSV, or rename it.")
        utf16 = content.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE))
        encoding = "utf-16" if utf16 else "utf-8"
    try:
        known = codecs.lookup(encoding).name
    except LookupError as error:
        raise TableError(
            f"encoding {encoding!r} is not known.", Advice("give a name such as utf-8 or", encoding="cp1252")
        ) from error
    if known in ("utf-8", "utf-8-sig"):
        return content.removeprefix(codecs.BOM_UTF8)
    try:
        return content.decode(known).removeprefix("\ufeff").encode()
    except UnicodeDecodeError as error:
        raise _undecodable(path, encoding, error) from error


def _undecodable(path: Path, encoding: str, error: UnicodeDecodeError, line: int | None = None) -> TableError:
    place = f", line {line}, byte {error.start + 1} (0x{error.object[error.start]:02x})" if line else ""
    known = "UTF-8" if encoding.startswith("utf-8") else encoding
    return TableError(
        f"{path}{place}: this is not {known} text ({error.reason}).",
        "save the file as UTF-8",
        Advice("read West European text of Windows with", encoding="cp1252"),
        Advice("older text with", encoding="latin-1"),
    )
