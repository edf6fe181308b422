"""Conversion of the cells and columns of a file to numbers and labels."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from discrim.tables.labelled_table import normal_text
from discrim.tables.table_error import Advice, TableError
from discrim.threads import computed_once

MISSING = frozenset({"", "NA", "N/A", "#N/A", "NaN", "nan", "-nan", "NULL", "null", "?"})
_WHOLE = re.compile(r"0|-?[1-9]\d*")
BOOLEANS = {"true": 1.0, "false": 0.0}
TURNED = 2**11  # cells of a column that are put into their rows while these are near the processor
NUMBER, ABSENT, TEXT, INFINITE = range(4)  # what a cell can be


@dataclass(frozen=True)
class Dialect:
    """Format of a delimited file and its cells: the decimal mark, the separator of thousands, texts that mean missing.

    delimiter, encoding, header : detected from the first line and the first bytes if None
    """

    delimiter: str | None = None
    encoding: str | None = None
    header: bool | None = None
    decimal: str = "."
    thousands: str | None = None
    missing: frozenset[str] = MISSING

    def __post_init__(self) -> None:
        marks = [self.decimal] if self.thousands is None else [self.decimal, self.thousands]
        if any(len(mark) != 1 or mark.isalnum() for mark in marks) or len(set(marks)) != len(marks):
            raise TableError(
                "decimal and thousands must be two different single characters that are no letters or digits; got "
                f"{self.decimal!r} and {self.thousands!r}.",
                Advice("read a number like 1.234,5 with", decimal=",", thousands="."),
            )

    @computed_once
    def _pattern(self) -> re.Pattern[str]:
        whole = r"\d+"
        if self.thousands is not None:
            # Groups must be of three digits, or 1,5 would quietly become 15.
            whole = rf"\d{{1,3}}(?:{re.escape(self.thousands)}\d{{3}})+|\d+"
        return re.compile(rf"[+-]?(?:{whole})?(?:{re.escape(self.decimal)}\d*)?(?:[eE][+-]?\d+)?")

    def number(self, cell: str) -> float | None:
        """Return the value of a cell, None if it is text; digits with underscores (1_000) are text."""
        try:
            if self.decimal == "." and self.thousands is None:
                return None if "_" in cell else float(cell)
            if not self._pattern.fullmatch(cell):
                return None
            return float(cell.replace(self.thousands or "", "").replace(self.decimal, "."))
        except ValueError:
            return None

    @computed_once
    def codes(self) -> frozenset[float]:
        """The numbers that stand for a missing cell, such as -9."""
        values = (self.number(text.strip()) for text in self.missing)
        return frozenset(value for value in values if value is not None and math.isfinite(value))

    def reading(self, cell: str) -> tuple[int, float]:
        """Return what a cell is, and its value."""
        cell = cell.strip()
        value = None if cell in self.missing else self.number(cell)
        if value is None:
            return (ABSENT if cell in self.missing else TEXT), math.nan
        if math.isnan(value) or value in self.codes:
            return ABSENT, math.nan
        return (INFINITE if math.isinf(value) else NUMBER), value

    def readings(self, cells: Collection[str]) -> tuple[list[tuple[int, float]], bool]:
        """Return what each cell of a column is, and whether its numbers are written as true and false."""
        readings = [self.reading(cell) for cell in cells]
        words = {cell.strip().casefold() for cell, (kind, _) in zip(cells, readings, strict=True) if kind == TEXT}
        if not words or not words <= BOOLEANS.keys() or any(kind not in (TEXT, ABSENT) for kind, _ in readings):
            return readings, False
        truths = ((NUMBER, BOOLEANS.get(cell.strip().casefold(), math.nan)) for cell in cells)
        return [one if one[0] == ABSENT else truth for one, truth in zip(readings, truths, strict=True)], True


# ---------------------------------------------------------------------- a column


def distinct(column: Any) -> tuple[list[str], NDArray[np.intp]]:
    """Return the different texts of an Arrow column (missing ones empty), and where each row's is among them."""
    values, codes = distinct_values(column)
    return [as_text(value) for value in values], codes


def distinct_values(column: Any) -> tuple[list[Any], NDArray[np.intp]]:
    """Return the different values of an Arrow column (None for missing ones), and where each row's is among them."""
    if not hasattr(column.type, "index_type"):
        if str(column.type).startswith(("list", "struct", "map", "large_list", "fixed_size_list")):
            return [str(value) for value in column.to_pylist()], np.arange(len(column))
        column = column.dictionary_encode()
    if hasattr(column, "unify_dictionaries"):
        column = column.unify_dictionaries().combine_chunks()
        column = column.chunk(0) if hasattr(column, "chunk") else column
    values = column.dictionary.to_pylist()
    codes = column.indices.fill_null(len(values)).to_numpy(zero_copy_only=False)
    return ([*values, None] if column.indices.null_count else values), codes.astype(np.intp)


def as_text(value: Any) -> str:
    """Return a cell as text; a missing one is empty."""
    if value is None:
        return ""
    return value.decode() if isinstance(value, bytes) else str(value)


def normal_cell(value: Any) -> str:
    """Return a cell as text without surrounding blanks, in the composed form: the name of a row or a level."""
    return normal_text(as_text(value))


def label_of(value: Any, form: Dialect, place: str) -> Any:
    """Return a cell as a label: bool, int, float or text; None if it is missing. `place` names its column in errors."""
    if value is None or isinstance(value, bool | int):
        return value
    if isinstance(value, str | bytes):
        text = normal_text(as_text(value))
        if text.endswith("\0"):
            raise TableError(
                f"{place}: the label {text!r} ends in a zero character, which text in an array cannot keep. Rename it."
            )
        return None if text in form.missing else text
    try:
        number = float(value)
    except (TypeError, ValueError):  # a date or a time
        return None if value != value else str(value)
    return number if np.isfinite(number) else None


def as_integers(labels: Sequence[Any]) -> list[int] | None:
    """Return labels as integers if all are whole numbers, texts as Python writes them; None otherwise."""
    for label in labels:
        is_whole = _WHOLE.fullmatch(label) if isinstance(label, str) else float(label).is_integer()
        if not is_whole or abs(int(label)) >= 2**63:
            return None
    return [int(label) for label in labels]


class Vocabulary:
    """The values of a column, gathered batch by batch: each different one once, and a number for each row."""

    def __init__(self, convert: Callable[[Any], Any]) -> None:
        self._convert = convert
        self._place: dict[Any, int] = {}
        self._codes: list[NDArray[np.intp]] = []

    def add(self, column: Any) -> None:
        """Add the cells of an Arrow column."""
        values, codes = distinct_values(column)
        places = [self._place.setdefault(self._convert(value), len(self._place)) for value in values]
        self._codes.append(np.array(places, dtype=np.intp)[codes] if len(codes) else codes)

    @property
    def values(self) -> list[Any]:
        """The different values, in the order in which they were met."""
        return list(self._place)

    @property
    def codes(self) -> NDArray[np.intp]:
        """The place of each row's value in `values`."""
        return np.concatenate(self._codes) if self._codes else np.empty(0, np.intp)


def _plain_numbers(column: Any) -> NDArray[Any] | None:
    """Return an Arrow column of numbers as float32 or float64, NaN where a cell is null; None for any other column."""
    kind = str(column.type)
    if kind.startswith("decimal"):
        column = column.cast("float64")
    elif not kind.startswith(("int", "uint", "float", "double", "halffloat", "bool")):
        return None
    elif column.null_count and not kind.startswith(("float", "double", "halffloat")):
        column = column.cast("float64", safe=False)  # whole numbers beyond 2⁵³ are rounded, not refused
    values = column.to_numpy(zero_copy_only=False) if not hasattr(column, "chunks") else column.to_numpy()
    return values if values.dtype in (np.float32, np.float64) else values.astype(np.float64)


def numbers(column: Any, form: Dialect) -> tuple[NDArray[Any], NDArray[np.uint8] | None, bool]:
    """Return the cells as numbers (NaN where they are none), what each is (None: all are numbers), and whether the
    numbers were written as true and false."""
    values = _plain_numbers(column)
    if values is None:
        cells, codes = distinct(column)
        readings, are_words = form.readings(cells)
        kinds = np.array([kind for kind, _ in readings], dtype=np.uint8)[codes]
        return np.array([value for _, value in readings])[codes], kinds if kinds.any() else None, are_words
    if form.codes:
        values = np.where(np.isin(values, list(form.codes)), np.nan, values)
    usual = np.isfinite(values)
    if usual.all():
        return values, None, False
    return values, np.where(usual, NUMBER, np.where(np.isinf(values), INFINITE, ABSENT)).astype(np.uint8), False


def level_indicators(
    column: Any, levels: Collection[str], form: Dialect
) -> tuple[dict[str, NDArray[np.float64]], NDArray[np.uint8] | None]:
    """Return where a column of text holds each level (NaN where a cell is missing), and what each cell is.

    Any other text is a TEXT; the second result is None if there is none, and no cell is missing.
    """
    values, codes = distinct_values(column)
    texts = [normal_cell(value) for value in values]
    of_text = [ABSENT if text in form.missing else NUMBER if text in levels else TEXT for text in texts]
    kinds = np.array(of_text, np.uint8)
    found = {level: np.where(kinds == ABSENT, np.nan, [text == level for text in texts])[codes] for level in levels}
    return found, kinds[codes] if kinds.any() else None


def rows_of_columns(columns: Sequence[NDArray[Any]], dtype: Any, place: NDArray[Any] | None = None) -> NDArray[Any]:
    """Put columns of numbers into rows, in their place where it is large enough."""
    n_rows = len(columns[0])
    if place is None or len(place) < n_rows:
        place = np.empty((n_rows, len(columns)), dtype)
    rows = place[:n_rows]
    for start in range(0, n_rows, TURNED):
        block = rows[start : start + TURNED]
        for at, column in enumerate(columns):
            block[:, at] = column[start : start + TURNED]
    return place
