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
_BOOLEANS = {"true": 1.0, "false": 0.0}
_NAMED = 5
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
    """The different texts of an Arrow column (missing ones empty), and where each row's is among them."""
    if not hasattr(column.type, "index_type"):
        column = column.dictionary_encode()
    whole = column.unify_dictionaries().combine_chunks()
    whole = whole.chunk(0) if hasattr(whole, "chunk") else whole
    values = [as_text(value) for value in whole.dictionary.to_pylist()]
    codes = whole.indices.fill_null(len(values)).to_numpy(zero_copy_only=False)
    return ([*values, ""] if whole.null_count else values), codes.astype(np.intp)


def as_text(value: Any) -> str:
    if value is None:
        return ""
    return value.decode(errors="replace") if isinstance(value, bytes) else str(value)


def texts(column: Any) -> tuple[list[str], NDArray[np.intp]]:
    """As `distinct`, with texts that look the same taken for the same, in order."""
    raw, codes = distinct(column)
    normal = [normal_text(text) for text in raw]
    values = sorted({normal[code] for code in np.unique(codes)})
    place = {value: at for at, value in enumerate(values)}
    return values, np.array([place.get(text, 0) for text in normal], dtype=np.intp)[codes]


def numbers(column: Any, form: CellFormat) -> tuple[NDArray[np.float64], NDArray[np.uint8] | None]:
    """The cells of an Arrow column as doubles, NaN where they are none, and what each is; None: all are numbers."""
    if str(column.type).startswith(("int", "uint", "float", "double", "halffloat", "bool", "decimal")):
        values = _doubles(column)
        return values, _kinds(values, form)
    cells, codes = distinct(column)
    readings = [form.reading(cell) for cell in cells]
    words = {cell.strip().casefold() for cell, (kind, _) in zip(cells, readings, strict=True) if kind == TEXT}
    if words and words <= _BOOLEANS.keys() and all(kind in (TEXT, ABSENT) for kind, _ in readings):
        readings = [
            (NUMBER, _BOOLEANS[cell.strip().casefold()]) if kind == TEXT else (kind, value)
            for cell, (kind, value) in zip(cells, readings, strict=True)
        ]
    kinds = np.array([kind for kind, _ in readings], dtype=np.uint8)[codes]
    values = np.array([value for _, value in readings])[codes]
    return values, kinds if kinds.any() else None


def _doubles(column: Any) -> NDArray[np.float64]:
    if str(column.type).startswith("decimal"):
        column = column.cast("float64")
    if column.null_count and not str(column.type).startswith(("float", "double", "halffloat")):
        # Whole numbers beyond 2⁵³ are rounded, not refused.
        column = column.cast("float64", safe=False)
    return np.asarray(column.to_numpy(zero_copy_only=False), dtype=np.float64)


def _kinds(values: NDArray[np.float64], form: CellFormat) -> NDArray[np.uint8] | None:
    usual = np.isfinite(values)
    if form.codes:
        coded = np.isin(values, list(form.codes))
        values[coded] = np.nan
        usual &= ~coded
    if usual.all():
        return None
    return np.where(usual, NUMBER, np.where(np.isinf(values), INFINITE, ABSENT)).astype(np.uint8)


# ---------------------------------------------------------------------- what is wrong with it


@dataclass(frozen=True)
class Survey:
    """Of one column: what its cells are, and the first row and cell of each kind."""

    name: str
    kinds: NDArray[np.uint8]
    column: Any
    cell: Callable[[int], str]  # as the file has it
    place: Callable[[int], str]  # of a row in its file: "line 7"

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
        words = distinct(self.column)[0]
        if not self.categorical or self.dates or _COMMA_NUMBER.fullmatch(self.cell(self.first(TEXT)).strip()):
            return False
        return 1 < len(words) <= len(self.kinds) / 2

    @property
    def dates(self) -> bool:
        cells, codes = distinct(self.column)
        dated = np.array([bool(_DATE.fullmatch(cell.strip())) for cell in cells])[codes]
        return bool(np.count_nonzero(dated) > len(dated) / 2)


WITHOUT_MISSING_CELLS: tuple[str | Advice, ...] = (
    "fill these cells or remove these rows",
    Advice("have them filled in with", {"impute": "median"}, missing_cells="keep"),
    Advice("leave the rows out with", {"drop_missing": True}, missing_cells="drop"),
)


def missing_error(path: Any, bad: Sequence[Survey], target: str | None) -> TableError:
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
        f"{path}, {first.place(first.first(ABSENT))}: {plural(total, 'missing cell')} in {plural(len(bad), 'column')} "
        f"({places}{more}). Nothing was filled in or left out.",
        fill,
        *others,
        leave_out,
    )


def infinite_error(path: Any, bad: Sequence[Survey]) -> TableError:
    first, row = bad[0], bad[0].first(INFINITE)
    return TableError(
        f"{path}, {first.place(row)}, column {first.name!r}: {quoted_cell(first.cell(row))} is infinite or too large "
        f"for a double ({plural(sum(one.count(INFINITE) for one in bad), 'such cell')} in "
        f"{plural(len(bad), 'column')}: {quoted([one.name for one in bad])}).",
        "correct these cells",
        Advice("leave the columns out with", drop=[one.name for one in bad]),
    )


def text_error(path: Any, surveys: Sequence[Survey], *, named: bool, n_features: int) -> TableError:
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
        f"{path}, {first.place(row)}, column {first.name!r}: {quoted_cell(cell)} is not a number "
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
