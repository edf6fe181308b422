"""All rows of a `TableSource` at once: numbers, what the other cells are and where they stand, labels and ids."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from discrim.tables.cells import ABSENT, INFINITE, NUMBER, TEXT, Vocabulary, normal_cell, rows_of_columns
from discrim.tables.formats import TablePart
from discrim.tables.table_error import PYTHON_ONLY, Advice, TableError, plural, quoted, quoted_cell

if TYPE_CHECKING:
    from discrim.tables.source import TableSource

BATCH_ROWS = 2**16
FEW_LEVELS = 20  # of a column of text, which are no identifiers however few rows there are
_COMMA_NUMBER = re.compile(r"[+-]?\d{1,3}(\.\d{3})*,\d+([eE][+-]?\d+)?|[+-]?\d+,\d+([eE][+-]?\d+)?")
_GROUPED_NUMBER = re.compile(r"[+-]?\d{1,3}([,' \u00a0\u202f_])\d{3}(\1\d{3})*(\.\d*)?")
_DATE = re.compile(r"\d{4}[-/.]\d{1,2}[-/.]\d{1,2}([ T].*)?|\d{1,2}[-/.]\d{1,2}[-/.](\d{4}|\d{2})([ T].*)?")
_NAMED = 5


@dataclass
class Scan:
    """All rows of a source: blocks of features, what their cells are, labels and ids."""

    source: TableSource
    labels: Vocabulary
    n_rows: int = 0
    starts: list[int] = field(default_factory=list)  # of each part, the number of its first row
    blocks: list[NDArray[Any]] = field(default_factory=list)
    kinds: dict[str, list[tuple[int, NDArray[np.uint8]]]] = field(default_factory=dict)
    texts: dict[str, Vocabulary] = field(default_factory=dict)
    ids: Vocabulary = field(default_factory=lambda: Vocabulary(normal_cell))

    def add(self, found: dict[str, Any], *, keep: bool) -> None:
        """Add a batch of columns."""
        source, n_rows = self.source, len(next(iter(found.values())))
        values, kinds = source.values(found)
        for name, one in kinds.items():
            self.kinds.setdefault(name, []).append((self.n_rows, one))
        if source.target is not None:
            self.labels.add(found[source.target])
        if source.id_column is not None:
            self.ids.add(found[source.id_column])
        if keep:
            self.blocks.append(rows_of_columns(values, source.dtype) if values else np.empty((n_rows, 0)))
        self.n_rows += n_rows

    @property
    def row_ids(self) -> NDArray[Any] | None:
        """The id of each row, None if the rows have none."""
        return None if self.source.id_column is None else np.array(self.ids.values)[self.ids.codes]

    @property
    def surveys(self) -> dict[str, Survey]:
        """The survey of each column with cells that are no numbers."""
        found = {name: np.zeros(self.n_rows, np.uint8) for name in self.kinds}
        for name, blocks in self.kinds.items():
            for start, kinds in blocks:
                found[name][start : start + len(kinds)] = kinds
        return {name: Survey(name, kinds, self) for name, kinds in found.items()}

    def _survey_absent(self, name: str, absent: NDArray[np.bool_]) -> Survey:
        """Return the survey of a column of text or labels."""
        return Survey(name, np.where(absent, ABSENT, NUMBER).astype(np.uint8), self)

    def errors(self, missing_cells: str, worded: Collection[str] = ()) -> list[TableError]:
        """Return an error for each kind of cell that cannot be taken; columns in `worded` hold text."""
        source = self.source
        surveys = [survey for name, survey in self.surveys.items() if name not in worded]
        found = []
        if strays := [one for one in surveys if one.count(TEXT)]:
            known = source.is_named or any(
                isinstance(value, str) and source.form.reading(value)[0] == TEXT for value in self.labels.values
            )
            found.append(
                _text_error(strays, named=known, n_features=sum(name not in worded for name, _ in source.sources))
            )
        lacking = []
        if missing_cells == "error":
            texts = [self._survey_absent(name, self._holds(name, source.form.missing)) for name in worded]
            lacking = [one for one in (*surveys, *texts) if one.count(ABSENT)]
        if source.target is not None and missing_cells != "drop" and (absent := self.unlabelled).any():
            lacking.append(self._survey_absent(source.target, absent))
        if lacking:
            found.append(_missing_error(lacking, source.target))
        if infinite := [one for one in surveys if one.count(INFINITE)]:
            found.append(_infinite_error(infinite))
        for name, known_levels in source.levels.items():
            if unknown := [level for level in self.levels(name) if level not in known_levels]:
                strange = self._holds(name, unknown)
                found.append(
                    TableError(
                        f"{self.where(int(np.argmax(strange)))}, column {name!r}: {quoted(sorted(known_levels))} are "
                        f"known; got {quoted(unknown)} ({plural(int(strange.sum()), 'cell')}). Correct these cells or "
                        "leave out their rows."
                    )
                )
        return found

    def _holds(self, name: str, texts: Collection[str]) -> NDArray[np.bool_]:
        """Return the rows in which a column holds one of some texts."""
        values, codes = self.texts_of(name)
        return np.array([value in texts for value in values], dtype=bool)[codes]

    def levels(self, name: str) -> list[str]:
        """Return the different texts of a column, except those that mean a missing cell."""
        return [text for text in self.texts_of(name)[0] if text not in self.source.form.missing]

    def has_free_text(self, name: str) -> bool:
        """Return whether the texts of a column hardly repeat: they are identifiers or free text, not categories."""
        return len(self.levels(name)) > max(FEW_LEVELS, self.n_rows // 2)

    @property
    def unlabelled(self) -> NDArray[np.bool_]:
        """The rows without a label."""
        return np.array([value is None for value in self.labels.values], dtype=bool)[self.labels.codes]

    def typed_labels(self) -> tuple[list[Any], NDArray[np.intp]]:
        """Return the different labels in order and each row's place among them, rows without one left out."""
        values, codes = self.labels.values, self.labels.codes
        present = [value for value in values if value is not None]
        typed = self.source.typed_labels(present, settles=True)
        ordered = sorted(set(typed))
        rank = {label: at for at, label in enumerate(ordered)}
        place = {value: rank[label] for value, label in zip(present, typed, strict=True)}
        of_value = np.array([place.get(value, -1) for value in values], dtype=np.intp)
        return ordered, of_value[codes][~self.unlabelled]

    def place(self, row: int) -> str:
        """Return where a row stands, with the file's name if there are several."""
        part, at = self.located(row)
        return part.place(at) if len(self.source.parts) == 1 else f"{self.source.part_name(part)}, {part.place(at)}"

    def where(self, row: int) -> str:
        """Return where a row stands, with the path of its file."""
        part, at = self.located(row)
        return f"{part.path}, {part.place(at)}"

    def located(self, row: int) -> tuple[TablePart, int]:
        number = int(np.searchsorted(self.starts, row, side="right")) - 1
        return self.source.parts[number], row - self.starts[number]

    def texts_of(self, name: str) -> tuple[list[str], NDArray[np.intp]]:
        """Return the different texts of a column, read again if it was read as numbers."""
        if name not in self.texts:
            words = Vocabulary(normal_cell)
            for part in self.source.parts:
                for (column,) in part.batches([name], [name], BATCH_ROWS):
                    words.add(column)
            self.texts[name] = words
        return self.texts[name].values, self.texts[name].codes


# ---------------------------------------------------------------------- cells that are no numbers


@dataclass(frozen=True)
class Survey:
    """Kinds of the cells of one column, and the first row and cell of each kind."""

    name: str
    kinds: NDArray[np.uint8]
    scan: Scan

    def count(self, kind: int) -> int:
        return int(np.count_nonzero(self.kinds == kind))

    def first(self, kind: int) -> int:
        """Return the first row with such a cell."""
        return int(np.argmax(self.kinds == kind))

    def example(self, kind: int) -> tuple[str, str]:
        """Return the place of the first such cell, and the cell as its file has it."""
        row = self.first(kind)
        part, at = self.scan.located(row)
        return f"{self.scan.where(row)}, column {self.name!r}", part.cell(at, self.name)

    @property
    def categorical(self) -> bool:
        """True if most cells are text. A few stray words in a column of numbers do not make it a category."""
        return self.count(TEXT) > (len(self.kinds) - self.count(ABSENT)) / 2

    @property
    def looks_like_labels(self) -> bool:
        """True if there are at least two words, and they repeat."""
        words = self.scan.texts_of(self.name)[0]
        if not self.categorical or self.dates or _COMMA_NUMBER.fullmatch(self.example(TEXT)[1].strip()):
            return False
        return 1 < len(words) <= len(self.kinds) / 2

    @property
    def dates(self) -> bool:
        cells, codes = self.scan.texts_of(self.name)
        dated = np.array([bool(_DATE.fullmatch(cell.strip())) for cell in cells])[codes]
        return bool(np.count_nonzero(dated) > len(dated) / 2)


WITHOUT_MISSING_CELLS: tuple[str | Advice, ...] = (
    "fill these cells or remove these rows",
    Advice("have them filled in with", {"impute": "median"}, missing_cells="keep"),
    Advice("leave the rows out with", {"drop_missing": True}, missing_cells="drop"),
)


def _missing_error(bad: Sequence[Survey], target: str | None) -> TableError:
    first = min(bad, key=lambda survey: survey.first(ABSENT))
    places = "; ".join(
        f"column {one.name!r}: {one.count(ABSENT)}, first on {one.scan.place(one.first(ABSENT))}"
        for one in bad[:_NAMED]
    )
    more = f"; and {plural(len(bad) - _NAMED, 'more column')}" if len(bad) > _NAMED else ""
    fill, impute, leave_out = WITHOUT_MISSING_CELLS
    features = [one.name for one in bad if one.name != target]
    others = [impute, Advice("leave the columns out with", drop=features)] if features else []
    total = sum(survey.count(ABSENT) for survey in bad)
    return TableError(
        f"{first.scan.where(first.first(ABSENT))}: {plural(total, 'missing cell')} in {plural(len(bad), 'column')} "
        f"({places}{more}). Nothing was filled in or left out.",
        fill,
        *others,
        leave_out,
    )


def _infinite_error(bad: Sequence[Survey]) -> TableError:
    place, cell = bad[0].example(INFINITE)
    return TableError(
        f"{place}: {quoted_cell(cell)} is infinite or too large for a double "
        f"({plural(sum(one.count(INFINITE) for one in bad), 'such cell')} in "
        f"{plural(len(bad), 'column')}: {quoted([one.name for one in bad])}).",
        "correct these cells",
        Advice("leave the columns out with", drop=[one.name for one in bad]),
    )


def _text_error(surveys: Sequence[Survey], *, named: bool, n_features: int) -> TableError:
    """Return the error for columns with text instead of numbers; it names the first with its place.

    named : whether it is known which column holds the labels, so that none of these does
    """
    first, others = surveys[0], [survey.name for survey in surveys[1:]]
    place, cell = first.example(TEXT)
    also = f" Text stands in {quoted(others)} too." if others else ""
    labels = [] if named else [survey for survey in surveys if survey.looks_like_labels][:1]
    # a row of words above numbers, in most columns: the labels of samples that have a column each
    a_row = sum(not survey.categorical for survey in surveys) > n_features / 2 and len(surveys) > 2
    turned = Advice("if the file has a row for each feature and a column for each sample, read it with", transpose=True)
    return TableError(
        f"{place}: {quoted_cell(cell)} is not a number "
        f"({first.count(TEXT)} of {plural(len(first.kinds), 'cell')} in this column).{also}",
        *([turned] if a_row else []),
        *(Advice(f"if {one.name!r} holds the labels, name it with", target=one.name) for one in labels),
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
