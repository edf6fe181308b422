"""All rows of a `TableSource` at once: numbers, what the other cells are and where they stand, labels and ids."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from discrim.tables.cells import (
    ABSENT,
    INFINITE,
    NUMBER,
    TEXT,
    Survey,
    Vocabulary,
    as_text,
    infinite_error,
    missing_error,
    rows_of_columns,
    text_error,
)
from discrim.tables.formats import TablePart
from discrim.tables.labelled_table import normal_text
from discrim.tables.table_error import TableError

if TYPE_CHECKING:
    from discrim.tables.source import TableSource

BATCH_ROWS = 2**16


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
    ids: Vocabulary = field(default_factory=lambda: Vocabulary(_id_of))

    def add(self, found: dict[str, Any], text: Collection[str], *, keep: bool) -> None:
        """Add a batch of columns."""
        source, n_rows = self.source, len(next(iter(found.values())))
        values = []
        for name, level in source.sources:
            if name in text:
                continue
            column, kinds = source.values(found[name], name, level, survey=True)
            values.append(column)
            if kinds is not None:
                self.kinds.setdefault(name, []).append((self.n_rows, kinds))
        for name in text:
            self.texts.setdefault(name, Vocabulary(_id_of)).add(found[name])
        if source.target is not None:
            self.labels.add(found[source.target])
        if source.id_column is not None:
            self.ids.add(found[source.id_column])
        if keep:
            self.blocks.append(rows_of_columns(values, source.dtype) if values else np.empty((n_rows, 0)))
        self.n_rows += n_rows

    def kinds_of(self, name: str) -> NDArray[np.uint8]:
        """Return what each cell of a column is."""
        whole = np.zeros(self.n_rows, np.uint8)
        for start, kinds in self.kinds.get(name, ()):
            whole[start : start + len(kinds)] = kinds
        return whole

    def survey(self, name: str, kinds: NDArray[np.uint8] | None = None) -> Survey:
        """Return what the cells of a column are, with their places."""
        kinds = self.kinds_of(name) if kinds is None else kinds
        return Survey(
            name, kinds, lambda: self.texts_of(name), lambda row: self._cell(row, name), self.place, self.where
        )

    def errors(self, missing_cells: str, worded: Collection[str] = ()) -> list[TableError]:
        """Return an error for each kind of cell that cannot be taken; columns in `worded` hold text."""
        source = self.source
        surveys = [self.survey(name) for name in self.kinds if name not in worded]
        found = []
        if strays := [one for one in surveys if one.count(TEXT)]:
            known = source.is_named or any(
                isinstance(value, str) and self._is_word(value) for value in self.labels.values
            )
            found.append(text_error(strays, named=known, n_features=len(source.sources) - len(worded)))
        lacking = [one for one in surveys if one.count(ABSENT)] if missing_cells == "error" else []
        lacking += [self.survey(name, absent) for name, absent in self.absent_texts(worded) if missing_cells == "error"]
        if source.target is not None and missing_cells != "drop" and (absent := self.unlabelled).any():
            lacking.append(self.survey(source.target, np.where(absent, ABSENT, NUMBER).astype(np.uint8)))
        if lacking:
            found.append(missing_error(lacking, source.target))
        if infinite := [one for one in surveys if one.count(INFINITE)]:
            found.append(infinite_error(infinite))
        return found

    def absent_texts(self, worded: Collection[str]) -> Iterator[tuple[str, NDArray[np.uint8]]]:
        """Yield the columns of text that lack cells, and which they lack."""
        for name in worded:
            values, codes = self.texts_of(name)
            absent = np.array([value in self.source.form.missing for value in values], dtype=bool)[codes]
            if absent.any():
                yield name, np.where(absent, ABSENT, NUMBER).astype(np.uint8)

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
        part, at = self._located(row)
        return part.place(at) if len(self.source.parts) == 1 else f"{self.source.part_name(part)}, {part.place(at)}"

    def where(self, row: int) -> str:
        """Return where a row stands, with the path of its file."""
        part, at = self._located(row)
        return f"{part.path}, {part.place(at)}"

    def _cell(self, row: int, name: str) -> str:
        part, at = self._located(row)
        return part.cell(at, name)

    def _located(self, row: int) -> tuple[TablePart, int]:
        number = int(np.searchsorted(self.starts, row, side="right")) - 1
        return self.source.parts[number], row - self.starts[number]

    def texts_of(self, name: str) -> tuple[list[str], NDArray[np.intp]]:
        """Return the different texts of a column, read again if it was read as numbers."""
        if name not in self.texts:
            words = Vocabulary(_id_of)
            for part in self.source.parts:
                for (column,) in part.batches([name], [name], BATCH_ROWS):
                    words.add(column)
            self.texts[name] = words
        return self.texts[name].values, self.texts[name].codes

    def _is_word(self, value: str) -> bool:
        return self.source.form.reading(value)[0] == TEXT


def _id_of(value: Any) -> str:
    return normal_text(as_text(value))
