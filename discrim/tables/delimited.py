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
import re
import zlib
from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import suppress
from functools import partial
from itertools import chain, islice
from pathlib import Path
from typing import Any

import numpy as np

from discrim.tables.formats import Opening, TablePart, arrow, column_names
from discrim.tables.labelled_table import normal_text
from discrim.tables.table_error import Advice, TableError, plural, quoted_cell, require_memory

_DELIMITERS = (",", ";", "\t", "|")
_LINE = re.compile(rb"[^\r\n]*(?:\r\n|\n|\r)|[^\r\n]+")
_QUOTED_FIELD = re.compile(rb'(?:\A|(?<=[,;\t|\r\n])) *"[^"]*(?:""[^"]*)*"')
_RECORD = re.compile(rb"(?:%s|[^\r\n])*(?:\r\n|\n|\r|\Z)" % _QUOTED_FIELD.pattern)
_CHUNK = 1 << 20
_BLOCK = 1 << 24
_NEUTRALISED = re.compile(r"^\s*'('*[=+\-@\t\r])")
_FOREIGN = {
    b"PK\x03\x04": "a zip archive (an Excel workbook, or an .npz file under another name)",
    b"PAR1": "a Parquet file",
    b"ARROW1": "a Feather file",
    b"\xd0\xcf\x11\xe0": "an old Excel workbook",
}


class DelimitedPart(TablePart):
    """A CSV or TSV file, read in blocks of whole records; a small file is one block."""

    def __init__(self, path: Path, opening: Opening) -> None:
        self.path, self._dialect, self._max_bytes, self.keys = path, opening.dialect, opening.max_bytes, opening.keys
        dialect = opening.dialect
        if dialect.delimiter is not None and len(dialect.delimiter) != 1:
            raise TableError(f"delimiter must be one character, such as ',' or ';'; got {dialect.delimiter!r}.")
        head = next(self._blocks(_CHUNK), b"")
        self._delimiter = dialect.delimiter or self._delimiter_of_first_line(head)
        first, self._body = self._first_record(head, alone=opening.alone)
        self.first_line = [_NEUTRALISED.sub(r"\1", cell) for cell in first]
        names = column_names(self.first_line, named=dialect.header is not False)
        if dialect.header is False:
            self._body = 0
        super().__init__(path, names, ["cells"] * len(names), opening.keys)

    def require_memory(self, max_bytes: int) -> None:
        require_memory(self.path, self.path.stat().st_size, max_bytes)

    def place(self, row: int) -> str:
        """Return the line that a row begins on."""
        return f"line {next(islice(self._rows(), row, None))[0]}"

    def cell(self, row: int, name: str) -> str:
        if name in self.keys:
            return self.keys[name] or ""
        return next(islice(self._rows(), row, None))[1][self._position_of[name]]

    def head(self, rows: int) -> list[list[str]]:
        """Return the first rows as they are written."""
        return [[_NEUTRALISED.sub(r"\1", cell) for cell in cells] for _, cells in islice(self._rows(), rows)]

    def _read(self, names: Sequence[str], text: Collection[str], rows: int) -> Iterator[list[Any]]:
        """Yield doubles where all cells of a block are numbers, else text; the columns in `text` always so."""
        positions = [self._position_of[name] for name in names]
        worded = {at for at, name in zip(positions, names, strict=True) if name in text}
        start, guess = self._body, set(positions) - worded if self._dialect.thousands is None else set()
        for block in self._blocks():
            found = None
            for numeric in (guess, set()) if self._is_plainly_quoted(block, start) else ():
                with suppress(arrow("pyarrow", self.path).ArrowInvalid):
                    found = self._by_arrow(block, start, positions, numeric)
                    break
            found = self._by_records(block[start:], positions) if found is None else found
            yield self._without_apostrophes(block, found)
            start = 0

    def _without_apostrophes(self, block: bytes, columns: list[Any]) -> list[Any]:
        """Return text without the apostrophe that keeps spreadsheets from running it."""
        if b"'" not in block or not re.search(rb"'[=+\-@\t\r]", block):
            return columns
        bare = partial(
            arrow("pyarrow.compute", self.path).replace_substring_regex, pattern=_NEUTRALISED.pattern, replacement=r"\1"
        )
        return [bare(column) if str(column.type) == "string" else column for column in columns]

    def _by_arrow(self, block: bytes, start: int, positions: Sequence[int], numeric: set[int]) -> list[Any]:
        pyarrow, csv_reader = arrow("pyarrow", self.path), arrow("pyarrow.csv", self.path)
        kinds = {f"{at}": pyarrow.float64() if at in numeric else pyarrow.string() for at in positions}
        # In memory of Arrow's own: a thread of Arrow's that frees a Python object when the process ends aborts it.
        copy = pyarrow.BufferOutputStream()
        copy.write(memoryview(block)[start:])
        first = _LINE.match(block, start)
        longest = 8 * len(first[0]) if first else 0  # a block of pyarrow's must hold a whole row
        table = csv_reader.read_csv(
            pyarrow.BufferReader(copy.getvalue()),
            csv_reader.ReadOptions(
                column_names=[f"{at}" for at in range(len(self._own))], block_size=min(max(_CHUNK, longest), 2**30)
            ),
            csv_reader.ParseOptions(delimiter=self._delimiter, newlines_in_values=block.find(b'"', start) >= 0),
            csv_reader.ConvertOptions(
                column_types=kinds,
                include_columns=list(kinds),
                null_values=list(self._dialect.missing),
                decimal_point=self._dialect.decimal,
            ),
        )
        return list(table.columns)

    def _by_records(self, body: bytes, positions: Sequence[int]) -> list[Any]:
        pyarrow = arrow("pyarrow", self.path)
        try:
            rows = [[cells[at] for at in positions] for _, cells in self._records([body], len(self._own))]
        except TableError:
            for _ in self._rows():  # the same error, with its line in the whole file
                pass
            raise
        return [pyarrow.array([cells[at] for cells in rows], pyarrow.string()) for at in range(len(positions))]

    def _is_plainly_quoted(self, block: bytes, start: int) -> bool:
        """Return whether every quote opens or closes a field, or is doubled within one: then all parsers agree."""
        if not self._delimiter.isascii():
            return False
        if block.find(b'"', start) < 0:
            return True
        data = np.frombuffer(block, dtype=np.uint8, offset=start)
        quotes = np.flatnonzero(data == ord('"'))
        opening, closing = quotes[::2], quotes[1::2]
        around = [ord(mark) for mark in '"\r\n' + self._delimiter]
        before = np.isin(data[opening - 1], around) | (opening == 0)
        after = np.isin(data[np.minimum(closing + 1, len(data) - 1)], around)
        return len(opening) == len(closing) and bool(before.all()) and bool(after.all())

    def _first_record(self, head: bytes, *, alone: bool) -> tuple[list[str], int]:
        """Return the cells of the first record, and where the next begins."""
        for line, end, cells in self._parsed([head]):
            if any("\0" in cell for cell in cells):
                raise TableError(
                    f"{self.path}, line {line}: zero bytes among the column names. This is a binary file, or text in "
                    "UTF-16 without a byte order mark.",
                    "save text as UTF-8",
                    Advice("read UTF-16 with", encoding="utf-16-le"),
                )
            if len(cells) == 1 and not (alone and not any(mark in cells[0] for mark in _DELIMITERS)):
                raise TableError(
                    f"{self.path}, line {line}: only one column, {quoted_cell(normal_text(cells[0]))}. Columns are "
                    f"separated by {quoted_cell(self._delimiter)} here.",
                    Advice("if it is another character, name it with", delimiter=" "),
                )
            return cells, end
        raise TableError(f"{self.path} is empty: it needs a line of column names and one line per row.")

    def _rows(self) -> Iterator[tuple[int, list[str]]]:
        """Yield (line, cells) of each row of the whole file."""
        records = self._records(self._blocks(_CHUNK), len(self._own))
        return records if self._dialect.header is False else islice(records, 1, None)

    def _records(self, blocks: Iterable[bytes], width: int) -> Iterator[tuple[int, list[str]]]:
        """Yield (line, cells) of each record, each as wide as the first one of the file."""
        for line, _, cells in self._parsed(blocks):
            if len(cells) != width:
                raise TableError(
                    f"{self.path}, line {line}: {plural(len(cells), 'field')}, but the first line has {width} columns.",
                    "a delimiter or decimal comma inside a field? Quote such fields"
                    if len(cells) > width
                    else "a line cut short, or a line break inside a field? Quote such fields",
                )
            yield line, cells

    def _parsed(self, blocks: Iterable[bytes]) -> Iterator[tuple[int, int, list[str]]]:
        """Yield (line it starts on, where it ends in its block, cells) of each record; blank lines hold none."""
        csv.field_size_limit(max(csv.field_size_limit(), 2**31 - 1))  # a field may be as long as the file
        end, line = 0, 1

        def lines() -> Iterator[str]:
            nonlocal end
            for found in chain.from_iterable(map(_LINE.finditer, blocks)):
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

    def _delimiter_of_first_line(self, head: bytes) -> str:
        if self.path.name.removesuffix(".gz").lower().endswith((".tsv", ".tab")):
            return "\t"
        # quoted fields may hold marks, and line breaks; only the first record is looked at, which is quick
        bare = (_QUOTED_FIELD.sub(b"", found[0]) for found in _RECORD.finditer(head[:_CHUNK]))
        first = next((record for record in bare if record.strip(b" \r\n")), b"")
        return max(_DELIMITERS, key=lambda mark: first.count(mark.encode()))

    def _blocks(self, size: int = _BLOCK) -> Iterator[bytes]:
        """Yield the file as UTF-8 without byte order mark, in blocks of whole records, each of about `size` bytes."""
        held: list[bytes] = []
        length, wanted = 0, size
        for chunk in _decoded(self.path, self._dialect.encoding, size):
            held.append(chunk)
            length += len(chunk)
            require_memory(self.path, length, self._max_bytes, is_known=False)
            if length >= wanted:
                block = b"".join(held)
                if cut := _last_record_end(block):
                    yield block[:cut]
                held = [block[cut:]]
                length -= cut
                wanted = max(size, 2 * length)
        if length:
            yield b"".join(held)  # the same bytes, not a copy, if they were read at once


def _last_record_end(held: bytes) -> int:
    """Return where the last whole record ends: at a line break with an even number of quotes before it; 0 if none."""
    mark = b"\n" if b"\n" in held else b"\r"
    cut = held.rfind(mark, 0, len(held) if mark == b"\n" else len(held) - 1)
    for _ in range(4):
        if cut < 0 or held.count(b'"', 0, cut) % 2 == 0:
            return cut + 1
        cut = held.rfind(mark, 0, max(0, held.rfind(b'"', 0, cut)))  # before the field that this line break is in
    return 0


def _decoded(path: Path, encoding: str | None, size: int) -> Iterator[bytes]:
    """Yield the file's text in UTF-8; its encoding by name, by its byte order mark, or UTF-8."""
    chunks = _unzipped(path, size)
    first = next(chunks, b"")
    if encoding is None:
        for mark, what in _FOREIGN.items():
            if first.startswith(mark):
                raise TableError(f"{path} is {what}, not delimited text. Export it as CSV, or rename it.")
        encoding = "utf-16" if first.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)) else "utf-8"
    try:
        known = codecs.lookup(encoding).name
    except LookupError as error:
        raise TableError(
            f"encoding {encoding!r} is not known.", Advice("give a name such as utf-8 or", encoding="cp1252")
        ) from error
    if known in ("utf-8", "utf-8-sig"):
        yield first.removeprefix(codecs.BOM_UTF8)
        yield from chunks
        return
    try:
        for at, text in enumerate(codecs.iterdecode(chain([first], chunks), known)):
            yield (text if at else text.removeprefix("\ufeff")).encode()
    except UnicodeDecodeError as error:
        raise _undecodable(path, encoding, error) from error


def _unzipped(path: Path, size: int) -> Iterator[bytes]:
    """Yield the file's bytes, `size` at a time, unzipped if it is gzipped, whatever its name says."""
    with open(path, "rb") as raw:
        zipped = raw.read(2) == b"\x1f\x8b"
        raw.seek(0)
        stream: Any = gzip.GzipFile(fileobj=raw) if zipped else raw
        try:
            while chunk := stream.read(size):
                yield chunk
        except (EOFError, zlib.error, gzip.BadGzipFile) as error:
            raise TableError(f"{path}: the gzip data are damaged or cut short ({error}).") from error


def _undecodable(path: Path, encoding: str, error: UnicodeDecodeError, line: int | None = None) -> TableError:
    place = f", line {line}, byte {error.start + 1} (0x{error.object[error.start]:02x})" if line else ""
    known = "UTF-8" if encoding.startswith("utf-8") else encoding
    return TableError(
        f"{path}{place}: this is not {known} text ({error.reason}).",
        "save the file as UTF-8",
        Advice("read West European text of Windows with", encoding="cp1252"),
        Advice("older text with", encoding="latin-1"),
    )
