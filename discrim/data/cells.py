"""What a text cell can be: a number, missing, or text; and the sentences that say where it went wrong.

A table is read twice only when something is wrong with it: the first reading goes as fast as it can and gives
up at the first cell that is no finite number (`CellsNotNumericError`); the second (`ColumnSurvey`) counts
what is wrong, column by column, so that one error tells all of it.
"""

import math
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

MISSING = frozenset({"", "NA", "N/A", "#N/A", "NaN", "nan", "-nan", "NULL", "null", "?"})
_COMMA_NUMBER = re.compile(r"[+-]?\d{1,3}(\.\d{3})*,\d+([eE][+-]?\d+)?|[+-]?\d+,\d+([eE][+-]?\d+)?")
_GROUPED_NUMBER = re.compile(r"[+-]?\d{1,3}([,' \u00a0\u202f_])\d{3}(\1\d{3})*(\.\d*)?")
_NAMED = 5


class TableError(ValueError):
    """A table that cannot be read as labelled rows; the message names file, line and column if any."""


class CellsNotNumericError(Exception):
    """Some cell is no finite number: survey the columns to learn which."""


@dataclass(frozen=True)
class CellFormat:
    """How cells are written: the decimal mark, what separates groups of three digits, what means missing."""

    decimal: str = "."
    thousands: str | None = None
    missing: frozenset[str] = MISSING

    def __post_init__(self) -> None:
        marks = [self.decimal] if self.thousands is None else [self.decimal, self.thousands]
        if any(len(mark) != 1 or mark.isalnum() for mark in marks) or len(set(marks)) != len(marks):
            raise ValueError(
                f"decimal={self.decimal!r}, thousands={self.thousands!r}: give two different single "
                f"characters that are no letters or digits, for example decimal=',' and thousands='.'."
            )

    @property
    def plain(self) -> bool:
        return self.decimal == "." and self.thousands is None

    @cached_property
    def parse(self) -> Callable[[str], float]:
        """Text → float, ValueError where it is none. Plain numbers go through `float` itself, for speed."""
        return float if self.plain else self._parse_marked

    @cached_property
    def _pattern(self) -> re.Pattern[str]:
        whole = r"\d+"
        if self.thousands is not None:
            # Groups must be of three digits, or 1,5 would quietly become 15.
            whole = rf"\d{{1,3}}(?:{re.escape(self.thousands)}\d{{3}})+|\d+"
        return re.compile(rf"[+-]?(?:{whole})?(?:{re.escape(self.decimal)}\d*)?(?:[eE][+-]?\d+)?")

    def _parse_marked(self, cell: str) -> float:
        cell = cell.strip()
        if not self._pattern.fullmatch(cell):
            raise ValueError(cell)
        if self.thousands is not None:
            cell = cell.replace(self.thousands, "")
        return float(cell.replace(self.decimal, "."))

    @cached_property
    def codes(self) -> frozenset[float]:
        """The numbers that stand for a missing cell, such as -9."""
        return frozenset(_numbers_among(self.missing, self.parse))

    def kind(self, cell: str) -> str:
        """'number', 'missing', 'infinite' or 'text'. Python's digit underscores (1_000) count as text."""
        cell = cell.strip()
        if cell in self.missing:
            return "missing"
        if self.plain and "_" in cell:
            return "text"
        try:
            value = self.parse(cell)
        except ValueError:
            return "text"
        if math.isnan(value) or value in self.codes:
            return "missing"
        return "infinite" if math.isinf(value) else "number"


def _numbers_among(texts: Iterable[str], parse: Callable[[str], float]) -> Iterator[float]:
    for text in texts:
        with suppress(ValueError):
            if math.isfinite(value := parse(text)):
                yield value


@dataclass
class ColumnSurvey:
    """How many cells of one column are no finite numbers, and the first of each kind as (line, cell)."""

    name: str
    n_cells: int = 0
    n_missing: int = 0
    n_text: int = 0
    n_infinite: int = 0
    first_missing: tuple[int, str] | None = None
    first_text: tuple[int, str] | None = None
    first_infinite: tuple[int, str] | None = None

    def add(self, line: int, cell: str, kind: str) -> None:
        self.n_cells += 1
        if kind == "missing":
            self.n_missing += 1
            self.first_missing = self.first_missing or (line, cell)
        elif kind == "text":
            self.n_text += 1
            self.first_text = self.first_text or (line, cell)
        elif kind == "infinite":
            self.n_infinite += 1
            self.first_infinite = self.first_infinite or (line, cell)

    @property
    def categorical(self) -> bool:
        """More text than numbers. A few stray words in a column of numbers do not make it a category."""
        return self.n_text > (self.n_cells - self.n_missing) / 2


def quoted(names: Sequence[str]) -> str:
    """'a', 'b', 'c' and 17 more: the first few names, for a message."""
    shown = ", ".join(repr(name) for name in names[:_NAMED])
    return shown if len(names) <= _NAMED else f"{shown} and {len(names) - _NAMED} more"


def shortened(cell: str) -> str:
    return repr(cell if len(cell) <= 40 else cell[:37] + "...")


def plural(count: int, noun: str) -> str:
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"


def missing_error(path: Path, surveys: Sequence[ColumnSurvey], unit: str) -> TableError:
    bad = [survey for survey in surveys if survey.n_missing]
    total = sum(survey.n_missing for survey in bad)
    first = min(survey.first_missing[0] for survey in bad if survey.first_missing)
    places = "; ".join(
        f"column {survey.name!r}: {survey.n_missing}, first on {unit} {survey.first_missing[0]}"
        for survey in bad[:_NAMED]
        if survey.first_missing
    )
    more = f"; and {plural(len(bad) - _NAMED, 'more column')}" if len(bad) > _NAMED else ""
    return TableError(
        f"{path}, {unit} {first}: {plural(total, 'missing cell')} in {plural(len(bad), 'column')} "
        f"({places}{more}). Nothing was filled in or left out: fill these cells, remove these rows, or leave "
        f"the columns out with drop=[{quoted([survey.name for survey in bad])}]."
    )


def infinite_error(path: Path, surveys: Sequence[ColumnSurvey], unit: str) -> TableError:
    bad = [survey for survey in surveys if survey.first_infinite]
    total = sum(survey.n_infinite for survey in bad)
    assert bad[0].first_infinite is not None
    line, cell = bad[0].first_infinite
    return TableError(
        f"{path}, {unit} {line}, column {bad[0].name!r}: {shortened(cell)} is infinite or too large for a "
        f"double ({plural(total, 'such cell')} in {plural(len(bad), 'column')}: "
        f"{quoted([s.name for s in bad])}). Correct these cells, or leave the columns out with drop=[...]."
    )


def text_error(path: Path, surveys: Sequence[ColumnSurvey], unit: str) -> TableError:
    """For columns with text where numbers are needed; the first of them is named with its place."""
    first, others = surveys[0], [survey.name for survey in surveys[1:]]
    assert first.first_text is not None
    line, cell = first.first_text
    also = f" Text stands in {quoted(others)} too." if others else ""
    return TableError(
        f"{path}, {unit} {line}, column {first.name!r}: {shortened(cell)} is not a number ({first.n_text} of "
        f"{plural(first.n_cells, 'cell')} in this column).{also} {_advice(first, cell)}"
    )


def _advice(survey: ColumnSurvey, cell: str) -> str:
    cell, name = cell.strip(), survey.name
    if _COMMA_NUMBER.fullmatch(cell):
        dotted = ", thousands='.'" if "." in cell else ""
        return (
            f"If the comma is the decimal mark, read with decimal=','{dotted}; if it separates thousands, "
            f"with thousands=','."
        )
    if grouped := _GROUPED_NUMBER.fullmatch(cell):
        return f"If {grouped[1]!r} separates thousands, read with thousands={grouped[1]!r}."
    if not survey.categorical:
        return (
            f"Most cells are numbers: correct the others, leave the column out with drop=[{name!r}], or, if "
            f"it is a category, read it as one with one_hot=[{name!r}]."
        )
    return (
        f"Leave it out with drop=[{name!r}], or turn text columns into indicator columns with one_hot=True "
        f"(--one-hot on the command line)."
    )
