"""Columns as a file has them → numbers, and a survey of the cells that are none, so that one error tells all of it."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from discrim.tables.labelled_table import normal_text
from discrim.tables.table_error import PYTHON_ONLY, Advice, TableError, plural, quoted, quoted_cell
from discrim.threads import computed_once

MISSING = frozenset({"", "NA", "N/A", "#N/A", "NaN", "nan", "-nan", "NULL", "null", "?"})
_COMMA_NUMBER = re.compile(r"[+-]?\d{1,3}(\.\d{3})*,\d+([eE][+-]?\d+)?|[+-]?\d+,\d+([eE][+-]?\d+)?")
_GROUPED_NUMBER = re.compile(r"[+-]?\d{1,3}([,' \u00a0\u202f_])\d{3}(\1\d{3})*(\.\d*)?")
_DATE = re.compile(r"\d{4}[-/.]\d{1,2}[-/.]\d{1,2}([ T].*)?|\d{1,2}[-/.]\d{1,2}[-/.](\d{4}|\d{2})([ T].*)?")
_WHOLE = re.compile(r"0|-?[1-9]\d*")
BOOLEANS = {"true": 1.0, "false": 0.0}
_NAMED = 5
TURNED = 2**11  # cells of a column that are put into their rows while these are near the processor
NUMBER, ABSENT, TEXT, INFINITE = range(4)  # what a cell can be


@dataclass(frozen=True)
class CellFormat:
    """How cells are written: the decimal mark, what separates groups of three digits, what means missing."""

    decimal: str = "."
    thousands: str | None = None
    missing: frozenset[str] = MISSING

    def __post_init__(self) -> None:
        marks = [self.decimal] if self.thousands is None else [self.decimal, self.thousands]
        if any(len(mark) != 1 or mark.isalnum() for mark in marks) or len(set(marks)) != len(marks):
            raise TableError(
                f"Decimal mark {self.decimal!r}, thousands {self.thousands!r} came; possible are two different single "
                "characters that are no letters or digits.",
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
        """The value of what is written, None where it is text, as Python's digit underscores (1_000) are."""
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
        """What the cell is, and its value."""
        cell = cell.strip()
        value = None if cell in self.missing else self.number(cell)
        if value is None:
            return (ABSENT if cell in self.missing else TEXT), math.nan
        if math.isnan(value) or value in self.codes:
            return ABSENT, math.nan
        return (INFINITE if math.isinf(value) else NUMBER), value


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


def label_of(value: Any, form: CellFormat) -> Any:
    """Return a cell as a label: bool, int, float or text; None if it is missing."""
    if value is None or isinstance(value, bool | int):
        return value
    if isinstance(value, str | bytes):
        text = normal_text(as_text(value))
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


def plain_numbers(column: Any) -> NDArray[Any] | None:
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


def numbers(column: Any, form: CellFormat) -> tuple[NDArray[Any], NDArray[np.uint8] | None, bool]:
    """Return the cells as numbers (NaN where they are none), what each is (None: all are numbers), and whether the
    numbers were written as true and false."""
    values = plain_numbers(column)
    if values is not None:
        return *_kinds(values, form), False
    cells, codes = distinct(column)
    readings = [form.reading(cell) for cell in cells]
    words = {cell.strip().casefold() for cell, (kind, _) in zip(cells, readings, strict=True) if kind == TEXT}
    are_words = bool(words) and words <= BOOLEANS.keys() and all(kind in (TEXT, ABSENT) for kind, _ in readings)
    if are_words:
        readings = [
            (NUMBER, BOOLEANS[cell.strip().casefold()]) if kind == TEXT else (kind, value)
            for cell, (kind, value) in zip(cells, readings, strict=True)
        ]
    kinds = np.array([kind for kind, _ in readings], dtype=np.uint8)[codes]
    return np.array([value for _, value in readings])[codes], kinds if kinds.any() else None, are_words


def _kinds(values: NDArray[Any], form: CellFormat) -> tuple[NDArray[Any], NDArray[np.uint8] | None]:
    usual = np.isfinite(values)
    if form.codes:
        coded = np.isin(values, list(form.codes))
        values = np.where(coded, np.nan, values)
        usual &= ~coded
    if usual.all():
        return values, None
    return values, np.where(usual, NUMBER, np.where(np.isinf(values), INFINITE, ABSENT)).astype(np.uint8)


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


# ---------------------------------------------------------------------- what is wrong with it


@dataclass(frozen=True)
class Survey:
    """Of one column: what its cells are, and the first row and cell of each kind."""

    name: str
    kinds: NDArray[np.uint8]
    texts: Callable[[], tuple[list[str], NDArray[np.intp]]]  # the different cells, and where each row's is among them
    cell: Callable[[int], str]  # as the file has it
    place: Callable[[int], str]  # of a row: "line 7"
    where: Callable[[int], str]  # the same with the file: "flowers.csv, line 7"

    def count(self, kind: int) -> int:
        return int(np.count_nonzero(self.kinds == kind))

    def first(self, kind: int) -> int:
        """The first row with such a cell."""
        return int(np.argmax(self.kinds == kind))

    @property
    def categorical(self) -> bool:
        """More text than numbers. A few stray words in a column of numbers do not make it a category."""
        return self.count(TEXT) > (len(self.kinds) - self.count(ABSENT)) / 2

    @property
    def looks_like_labels(self) -> bool:
        """Words that come again and again, at least two."""
        words = self.texts()[0]
        if not self.categorical or self.dates or _COMMA_NUMBER.fullmatch(self.cell(self.first(TEXT)).strip()):
            return False
        return 1 < len(words) <= len(self.kinds) / 2

    @property
    def dates(self) -> bool:
        cells, codes = self.texts()
        dated = np.array([bool(_DATE.fullmatch(cell.strip())) for cell in cells])[codes]
        return bool(np.count_nonzero(dated) > len(dated) / 2)


WITHOUT_MISSING_CELLS: tuple[str | Advice, ...] = (
    "fill these cells or remove these rows",
    Advice("have them filled in with", {"impute": "median"}, missing_cells="keep"),
    Advice("leave the rows out with", {"drop_missing": True}, missing_cells="drop"),
)


def missing_error(bad: Sequence[Survey], target: str | None) -> TableError:
    first = min(bad, key=lambda survey: survey.first(ABSENT))
    places = "; ".join(
        f"column {one.name!r}: {one.count(ABSENT)}, first on {one.place(one.first(ABSENT))}" for one in bad[:_NAMED]
    )
    more = f"; and {plural(len(bad) - _NAMED, 'more column')}" if len(bad) > _NAMED else ""
    fill, impute, leave_out = WITHOUT_MISSING_CELLS
    features = [one.name for one in bad if one.name != target]
    others = [impute, Advice("leave the columns out with", drop=features)] if features else []
    total = sum(survey.count(ABSENT) for survey in bad)
    return TableError(
        f"{first.where(first.first(ABSENT))}: {plural(total, 'missing cell')} in {plural(len(bad), 'column')} "
        f"({places}{more}). Nothing was filled in or left out.",
        fill,
        *others,
        leave_out,
    )


def infinite_error(bad: Sequence[Survey]) -> TableError:
    first, row = bad[0], bad[0].first(INFINITE)
    return TableError(
        f"{first.where(row)}, column {first.name!r}: {quoted_cell(first.cell(row))} is infinite or too large "
        f"for a double ({plural(sum(one.count(INFINITE) for one in bad), 'such cell')} in "
        f"{plural(len(bad), 'column')}: {quoted([one.name for one in bad])}).",
        "correct these cells",
        Advice("leave the columns out with", drop=[one.name for one in bad]),
    )


def text_error(surveys: Sequence[Survey], *, named: bool, n_features: int) -> TableError:
    """For columns with text where numbers are needed; the first of them is named with its place.

    named : whether it is known which column holds the labels, so that none of these does
    """
    first, others = surveys[0], [survey.name for survey in surveys[1:]]
    row = first.first(TEXT)
    cell = first.cell(row)
    also = f" Text stands in {quoted(others)} too." if others else ""
    labels = [] if named else [survey for survey in surveys if survey.looks_like_labels][:1]
    # a row of words above numbers, in most columns: the labels of samples that have a column each
    a_row = sum(not survey.categorical for survey in surveys) > n_features / 2 and len(surveys) > 2
    turned = Advice("if the file has a row for each feature and a column for each sample, read it with", transpose=True)
    return TableError(
        f"{first.where(row)}, column {first.name!r}: {quoted_cell(cell)} is not a number "
        f"({first.count(TEXT)} of {plural(len(first.kinds), 'cell')} in this column).{also}",
        *([turned] if a_row else []),
        *(Advice(f"if {one.name!r} holds the labels, say so with", target=one.name) for one in labels),
        *_advice(first, cell.strip()),
    )


def _advice(survey: Survey, cell: str) -> list[str | Advice]:
    out = Advice("leave it out with", drop=[survey.name])
    if _COMMA_NUMBER.fullmatch(cell):
        mark = "if the comma is the decimal mark, read with"
        return [
            Advice(mark, decimal=",", thousands=".") if "." in cell else Advice(mark, decimal=","),
            Advice("if it separates thousands, with", thousands=","),
        ]
    if grouped := _GROUPED_NUMBER.fullmatch(cell):
        return [Advice(f"if {grouped[1]!r} separates thousands, read with", thousands=grouped[1])]
    if survey.dates:
        dated = "these look like dates: turn them into numbers, such as days, or leave them out with"
        return [Advice(dated, drop=[survey.name])]
    if not survey.categorical:
        return [
            "most cells are numbers: correct the others",
            out,
            Advice("if it is a category, read it as one with", PYTHON_ONLY, one_hot=[survey.name]),
        ]
    return [
        out,
        Advice("keep it as the name of each row with", id_column=survey.name),
        Advice("turn text columns into indicator columns with", one_hot=True),
    ]
