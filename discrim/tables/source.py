"""`TableSource`: batches of labelled rows from a file, a folder of files or a data frame, by one set of rules.

- A folder is a table in parts: its visible files, of one format, each file once. Folder names such as kind=a below the
  given folder are columns.
- The first line of a delimited file or sheet holds the names of the columns if the target was named and is among them,
  if it has text above a column of numbers, or if its numbers (three or more) rise from left to right, as pixels and
  wavelengths do, and the labels' name is not one of the labels. If it could be a row, it is refused: `header` decides.
- Names and texts have no surrounding blanks and are in Unicode's composed form.
- Every column but the target and the id is a feature and must hold finite numbers (true and false are 1 and 0); nothing
  is left out or filled in unless asked for. Features are float64, or float32 if every part has nothing else.
- Labels keep their type: integers if every part holds whole numbers or, in a delimited file, every text is one as
  Python writes it; bool if every part does; else text. Parts of numbers and parts of text are refused.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import wraps
from pathlib import Path
from typing import Any, Concatenate, ParamSpec, TypeVar

import numpy as np
from numpy.typing import NDArray

from discrim.tables.cells import (
    ABSENT,
    INFINITE,
    NUMBER,
    TEXT,
    Dialect,
    Vocabulary,
    as_integers,
    distinct_values,
    label_of,
    level_indicators,
    normal_cell,
    numbers,
    rows_of_columns,
)
from discrim.tables.delimited import DelimitedPart
from discrim.tables.formats import (
    KINDS,
    ArrayPart,
    ColumnarPart,
    Opening,
    TablePart,
    ending_of,
    folder_keys,
    frame_part,
    on_its_side,
    open_feather,
    open_sheet,
    require_names,
    require_utf8_name,
    visible_files,
)
from discrim.tables.labelled_table import normal_text
from discrim.tables.scan import BATCH_ROWS, Scan
from discrim.tables.table_error import MAX_BYTES, Advice, TableError, join_errors, meant, require_memory

BATCH_CELLS = 2**23  # at most


_UNNAMED = re.compile(r"column \d+|__index_level_\d+__|Unnamed: \d+")
Source = tuple[str, str | None]  # of a feature: a column, and its level where the feature is an indicator
Arguments = ParamSpec("Arguments")
Result = TypeVar("Result")


class LabelsAreTextError(Exception):
    """A label that is no whole number, met after others that are: the pass begins again with labels as text."""


@dataclass(frozen=True, eq=False)
class TableSource:
    """A table in one or many parts, opened: its columns are known, its rows are read on demand.

    sources : the column of each feature, and its level if the feature is an indicator of a text column
    label_kind : `cells` (delimited files) or `number`: whole numbers as far as is known; `bool`; `text`
    """

    path: Path
    parts: tuple[TablePart, ...]
    sources: tuple[Source, ...]
    target: str | None
    id_column: str | None
    form: Dialect
    dtype: np.dtype[Any]
    label_kind: str = "text"
    notes: tuple[str, ...] = ()
    is_named: bool = True  # it is known which column holds the labels
    keeps_missing: bool = False  # batches have NaN for missing cells instead of an error
    _words: dict[str, bool] = field(default_factory=dict)  # columns written as true and false, and those as numbers

    @classmethod
    def open(
        cls,
        data: Any,
        target: str | None = None,
        *,
        labelled: bool = True,
        features: Sequence[str] | None = None,
        id_column: str | None = None,
        drop: Collection[str] = (),
        transpose: bool = False,
        keeps_missing: bool = False,
        dialect: Dialect | None = None,
        max_bytes: int = MAX_BYTES,
    ) -> TableSource:
        """Open a file, a folder or a data frame.

        labelled : False if no column holds labels unless `target` names it; features : the only columns to be read
        """
        dialect = dialect or Dialect()
        alone = features is not None or not labelled
        path, parts = open_parts(data, dialect, alone=alone, max_bytes=max_bytes)
        if transpose:
            parts = [on_its_side(part) for part in parts]
        names = parts[0].names
        label = None
        if target is not None or (labelled and features is None):
            label = names[-1] if target is None else _labels_of(parts[0], target, transpose)
        ids = column_of(parts[0], id_column, "id") if id_column is not None else names[0] if transpose else None
        dropped = {name for given in drop for name in _columns_of(parts[0], given)}
        if features is None:
            sources: list[Source] = [(name, None) for name in names if name not in {label, ids, *dropped}]
        else:
            sources = [source_of(parts[0], name) for name in features]
        opened = cls(path, tuple(parts), tuple(sources), label, ids, dialect, np.dtype(np.float64))
        notes: tuple[str, ...] = ()
        in_doubt = target is None or dialect.reading(target)[0] == NUMBER
        if dialect.header is None and features is None and in_doubt:
            read = {name for name in (*(name for name, _ in sources), label, ids) if name is not None}
            notes = require_names(parts, read, label, dialect)
        opened._require_equal_columns(is_open=features is not None)
        if features is None:
            opened._require_own_names()
        return replace(
            opened,
            dtype=opened._feature_type(),
            label_kind=opened._kind_of_labels(),
            notes=notes,
            is_named=target is not None or not labelled,
            keeps_missing=keeps_missing,
        )

    @property
    def features(self) -> tuple[str, ...]:
        """Names of the features."""
        return tuple(name if level is None else f"{name}={level}" for name, level in self.sources)

    @property
    def n_rows(self) -> int | None:
        """Number of rows, if all files state it."""
        counts = [part.n_rows for part in self.parts]
        return None if None in counts else sum(count for count in counts if count is not None)

    @property
    def label_type(self) -> str:
        """Arrow's name for the type of the labels: "int64", "bool_" or "string"."""
        return {"bool": "bool_", "text": "string"}.get(self.label_kind, "int64")

    def part_name(self, part: TablePart) -> str:
        """Return where a part is, as seen from the table."""
        return part.path.name if self.path == part.path else part.path.relative_to(self.path).as_posix()

    # ------------------------------------------------------------------ batches

    def _columns(self, part: TablePart, rows: int) -> Iterator[dict[str, Any]]:
        """Yield the columns that are read, as Arrow arrays by name, about `rows` rows at a time."""
        as_they_are = [name for name in (self.target, self.id_column) if name is not None]
        names = list(dict.fromkeys([*(name for name, _ in self.sources), *as_they_are]))
        for columns in part.batches(names, {*self.levels, *as_they_are}, rows):
            yield dict(zip(names, columns, strict=True))

    def batches(self, part: TablePart) -> Iterator[tuple[NDArray[Any], NDArray[Any] | None]]:
        """Yield rows of the features, which the next rows will take the place of, and their labels."""
        yield from ((X, y) for X, y, _ in replace(self, id_column=None).named_batches(part))

    def named_batches(self, part: TablePart) -> Iterator[tuple[NDArray[Any], NDArray[Any] | None, NDArray[Any] | None]]:
        """Yield rows of the features, which the next rows will take the place of, their labels and their ids."""
        most = max(1, min(BATCH_ROWS, BATCH_CELLS // max(1, len(self.sources))))
        bad = (TEXT, INFINITE) if self.keeps_missing else (TEXT, INFINITE, ABSENT)
        place: NDArray[Any] | None = None
        for found in self._columns(part, most):
            values, kinds = self.values(found)
            if any(np.isin(one, bad).any() for one in kinds.values()):
                raise self.complaint()
            place = rows_of_columns(values, self.dtype, place)
            labels = None if self.target is None else self._labels(found[self.target])
            yield place[: len(values[0])], labels, None if self.id_column is None else _ids(found[self.id_column])

    @property
    def levels(self) -> dict[str, set[str]]:
        """The levels of each text column that features are indicators of."""
        known: dict[str, set[str]] = {}
        for name, level in self.sources:
            if level is not None:
                known.setdefault(name, set()).add(level)
        return known

    def labels(self, part: TablePart) -> Iterator[NDArray[Any]]:
        """Yield labels only, which is quick where columns are stored apart."""
        assert self.target is not None
        for (column,) in part.batches([self.target], [self.target], BATCH_ROWS):
            yield self._labels(column)

    def values(self, found: dict[str, Any]) -> tuple[list[NDArray[Any]], dict[str, NDArray[np.uint8]]]:
        """Return the numbers of each feature, NaN where a cell is none, and what the cells are of columns with such."""
        coded = {name: level_indicators(found[name], levels, self.form) for name, levels in self.levels.items()}
        kinds = {name: kind for name, (_, kind) in coded.items() if kind is not None}
        values = []
        for name, level in self.sources:
            if level is not None:
                values.append(coded[name][0][level])
                continue
            column, kind, are_words = numbers(found[name], self.form)
            holds_some = kind is None or bool((kind == NUMBER).any())
            if holds_some and self._words.setdefault(name, are_words) != are_words:
                # true and 1.5 in one column are refused, whether they meet in one batch or in two
                column, kind = np.full(len(column), np.nan), np.full(len(column), TEXT, np.uint8)
            values.append(column)
            if kind is not None:
                kinds[name] = kind
        return values, kinds

    def _labels(self, column: Any) -> NDArray[Any]:
        values, codes = distinct_values(column)
        labels = [self.label(value) for value in values]
        if any(label is None for label in labels):
            raise self.complaint()
        return np.array(self.typed_labels(labels))[codes]

    def label(self, value: Any) -> Any:
        """Return a cell of the target as a label, None if it is missing."""
        return label_of(value, self.form, f"{self.path}, column {self.target!r}")

    def typed_labels(self, labels: Sequence[Any], *, settles: bool = False) -> list[Any]:
        """Return different labels in their type; `settles` if they are all there are."""
        if self.label_kind == "bool":
            return list(labels)
        whole = None if self.label_kind == "text" else as_integers(labels)
        if whole is not None:
            return whole
        if not (settles or self.label_kind == "text"):
            raise LabelsAreTextError
        return [label if isinstance(label, str) else str(float(label)) for label in labels]

    # ------------------------------------------------------------------ what is checked when a source is opened

    def _require_equal_columns(self, *, is_open: bool) -> None:
        """Raise if a part has other columns; `is_open` allows for columns that are not read."""
        known = set(self.parts[0].names)
        wanted = {name for name, _ in self.sources} | {name for name in (self.target, self.id_column) if name}
        for part in self.parts[1:]:
            lacking = sorted(wanted - set(part.names))
            new = [] if is_open else sorted(set(part.names) - known)
            if lacking or new:
                what = f"lacks column {lacking[0]!r}" if lacking else f"has a column {new[0]!r}, which others lack"
                raise TableError(
                    f"{part.path} {what}. All files of a table must have the same columns, and a delimited file their "
                    "names in its first line."
                )

    def _feature_type(self) -> np.dtype[Any]:
        held = {part.kinds[name] for part in self.parts for name, _ in self.sources} - {"null"}
        plain = all(level is None for _, level in self.sources)
        return np.dtype(np.float32 if held == {"float32"} and plain else np.float64)

    def _kind_of_labels(self) -> str:
        """Return the kind of labels that all parts have; raise if parts of two kinds would be joined.

        It is "text" if the first labels already show that not all are whole numbers.
        """
        if self.target is None:
            return "text"
        same = {"integer": "number", "float": "number", "float32": "number"}
        kinds: dict[str, TablePart] = {}
        for part in self.parts:
            held = same.get(part.kinds[self.target], part.kinds[self.target])
            if held != "null" and part.n_rows != 0:
                kinds.setdefault(held, part)
        if len(kinds) > 1:
            one, other = list(kinds)[:2]
            raise TableError(
                f"Labels of one table must be of one type; got {one} in {kinds[one].path} and {other} in "
                f"{kinds[other].path} (column {self.target!r}). Write both as integers or both as text."
            )
        kind = next(iter(kinds), "text")
        if kind in ("bool", "text"):
            return kind
        for part in self.parts:
            if self.target in part.keys or not isinstance(part, DelimitedPart):
                cells: list[Any] = next(
                    (column.unique().to_pylist() for (column,) in part.batches([self.target], [], 1000)), []
                )
            else:
                cells = [row[part.names.index(self.target)] for row in part.head(10)]
            labels = [label for label in map(self.label, cells) if label is not None]
            if labels:
                return kind if as_integers(labels) is not None else "text"
        return kind

    def _require_own_names(self) -> None:
        """Raise if a column has no name of its own, or no column is left; text and infinite cells are named with it."""
        part, names = self.parts[0], [name for name, _ in self.sources]
        if not names:
            raise TableError(f"{part.path} has no feature columns besides the target and those left out.")
        errors = [
            TableError(
                f"{part.path}: column {part.names.index(name) + 1} has no name of its own ({name!r}); it may be a row "
                "number that some tool added.",
                "name it",
                Advice("leave it out with", drop=[name]),
                Advice("keep it as the name of each row with", id_column=name),
            )
            for name in names
            if is_unnamed(name)
        ]
        if errors:
            named = replace(self, sources=tuple(one for one in self.sources if not is_unnamed(one[0])))
            others = named.scan(keep=False).errors("keep") if named.sources else []
            raise join_errors([*errors, *others])

    # ------------------------------------------------------------------ all rows

    def scan(self, *, keep: bool = True, max_bytes: int | None = None) -> Scan:
        """Read all parts: the rows (if `keep`), what their cells are, labels and ids."""
        found = Scan(self, Vocabulary(self.label))
        if max_bytes is not None:
            for part in self.parts:
                part.require_memory(max_bytes)
        taken = 0
        for part in self.parts:
            found.starts.append(found.n_rows)
            for columns in self._columns(part, BATCH_ROWS):
                found.add(columns, keep=keep)
                taken += sum(column.nbytes for column in columns.values())
                if max_bytes is not None:
                    require_memory(part.path, taken, max_bytes, is_known=False)
        if not found.n_rows:
            below = isinstance(self.parts[0], DelimitedPart) and len(self.parts) == 1
            raise TableError(
                f"{self.path} has column names but no rows below them." if below else f"{self.path} has no rows."
            )
        return found

    def complaint(self) -> TableError:
        """Return the error that names every cell that is no number, and every missing label.

        It advises what a pass over the parts can do: rows are neither filled in nor left out.
        """
        taken = {"drop", "header", "target", "delimiter", "decimal", "thousands", "encoding"}
        errors = self.scan(keep=False).errors("keep" if self.keeps_missing else "error", self.levels)
        return join_errors([one.with_arguments(taken) for one in errors])


def repeat_with_text_labels(
    read: Callable[Concatenate[TableSource, Arguments], Result],
) -> Callable[Concatenate[TableSource, Arguments], Result]:
    """Decorate a function of a source's batches: it is called again if a label shows that the labels are text."""

    @wraps(read)
    def repeated(source: TableSource, *args: Arguments.args, **kwargs: Arguments.kwargs) -> Result:
        try:
            return read(source, *args, **kwargs)
        except LabelsAreTextError:
            return read(replace(source, label_kind="text"), *args, **kwargs)

    return repeated


# ---------------------------------------------------------------------- parts and columns


def open_parts(
    data: Any, dialect: Dialect, *, alone: bool = False, max_bytes: int = MAX_BYTES
) -> tuple[Path, list[TablePart]]:
    """Return the path and the parts of a file, a folder or a data frame; `alone` allows for a single column."""
    if not isinstance(data, str | os.PathLike):
        part = frame_part(data)
        return part.path, [part]
    path = Path(data)
    require_utf8_name(path)
    files = visible_files(path) if path.is_dir() else [path]
    endings = {ending_of(file) for file in files}
    if not path.is_dir() and not endings <= set(KINDS):
        if not os.path.lexists(path):
            raise TableError(f"{path}: there is no such file or folder.")
        raise TableError(
            f"{path}: files ending in {path.suffix or 'nothing'!r} are not known. Readable are .csv, .tsv and .txt "
            f"(also .gz), .parquet, .feather, .npy, .xlsx, .npz and .h5ad."
        )
    kinds = {KINDS.get(ending, ending) for ending in endings}
    if len(kinds) != 1 or not kinds <= set(KINDS.values()):
        raise TableError(
            f"{path} holds {', '.join(sorted(endings)) or 'no'} files. A table in parts is one or more files of one "
            f"kind: {', '.join(KINDS)}; delimited ones also .gz."
        )
    parts: list[TablePart] = []
    for file in files:
        keys = folder_keys(file, path) if path.is_dir() else {}
        parts.append(OPENERS[next(iter(kinds))](file, Opening(dialect, keys, alone, max_bytes)))
    return path, parts


OPENERS: dict[str, Callable[[Path, Opening], TablePart]] = {
    "delimited": DelimitedPart,
    "xlsx": open_sheet,
    "npy": ArrayPart,
    "parquet": ColumnarPart,
    "feather": open_feather,
}


def _ids(column: Any) -> NDArray[Any]:
    """Return the names of rows as text."""
    values, codes = distinct_values(column)
    return np.array([normal_cell(value) for value in values])[codes]


def column_of(part: TablePart, name: str, role: str) -> str:
    """Return the column of this name."""
    name = normal_text(name)
    if name not in part.names:
        near = meant(name, part.names, "Its columns are")
        raise TableError(f"{part.path} has no column {name!r} ({role}) among its {len(part.names)}. {near}")
    return name


def _labels_of(part: TablePart, name: str, transpose: bool) -> str:
    """Return the column of the labels; the error states if the name is that of a row."""
    first, text = part.names[0], normal_text(name)
    rows = [] if text in part.names or transpose else part.batches([first], [first], BATCH_ROWS)
    if any(text in _ids(column) for (column,) in rows):
        raise TableError(
            f"{part.path} has no column {name!r} (target), but a row that begins with it.",
            Advice("if rows are features and columns are samples, read it with", transpose=True),
        )
    return column_of(part, name, "target")


def _columns_of(part: TablePart, name: str) -> list[str]:
    """Return one column, or several with commas between."""
    pieces = [name] if normal_text(name) in part.names else name.split(",")
    return [column_of(part, piece, "drop") for piece in pieces]


def source_of(part: TablePart, name: str) -> Source:
    """Return the column that a feature is read from, and its level if the feature is an indicator."""
    if name in part.names:
        return name, None
    for cut in (found.start() for found in re.finditer("=", name)):
        if name[:cut] in part.names:
            return name[:cut], name[cut + 1 :]
    return column_of(part, name, "feature"), None


def is_unnamed(name: str) -> bool:
    """Return whether some tool made up the name of a column; if rows are sorted by class, row numbers reveal labels."""
    return not name or _UNNAMED.fullmatch(name) is not None


def unnamed_columns(data: Any, dialect: Dialect) -> tuple[str, ...]:
    """Return the columns, but the last one, whose names some tool made up."""
    names = open_parts(data, dialect, alone=True)[1][0].names
    return tuple(name for name in names[:-1] if is_unnamed(name))
