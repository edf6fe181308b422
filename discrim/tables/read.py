"""Files → labelled rows: CSV, TSV (also .gz), Parquet, Feather, Excel, .npz and .h5ad.

The rules, the same for every format:
- every column but the target and the id is a feature and must hold finite numbers (true and false are 1 and 0); nothing
  is dropped or filled in unless asked for
- labels are text, as written, without surrounding blanks
- text columns are refused, or become one indicator column per level with `one_hot`
- integers beyond 2⁵³ are rounded to the nearest double, as every decimal fraction is

The first line of a delimited file or sheet holds the names of the columns if the target was named and is among them, if
it has text above a column of numbers, or if its numbers (three or more) rise from left to right, as pixels and
wavelengths do, and the labels' name is not one of the labels. Where it has numbers above all columns of numbers, or
texts that come again below, it looks like a row and is refused, so that no row is lost: `header` says which it is.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
from scipy.sparse import csr_array, issparse

from discrim.tables.annotated import read_annotated
from discrim.tables.archive import Archive, read_archive
from discrim.tables.cells import (
    ABSENT,
    INFINITE,
    MISSING,
    NUMBER,
    TEXT,
    WITHOUT_MISSING_CELLS,
    CellFormat,
    Survey,
    infinite_error,
    missing_error,
    numbers,
    text_error,
    texts,
)
from discrim.tables.columnar import MissingExtraError, TableFile, column_names, columnar_file, excel_file, on_its_side
from discrim.tables.delimited import DelimitedFile, Dialect
from discrim.tables.labelled_table import LabelledTable, checked_names, coded, label_texts, normal_text, notes_on
from discrim.tables.table_error import MAX_BYTES, Advice, TableError, in_memory, meant, plural, quoted, quoted_cell
from discrim.tables.writing import whole_file, write_table

__all__ = [
    "LabelledTable",
    "MissingExtraError",
    "TableError",
    "read_features",
    "read_table",
    "whole_file",
    "write_table",
]

_DELIMITED = (".csv", ".tsv", ".tab", ".txt")
_ARCHIVES: dict[str, Callable[..., Archive]] = {".npz": read_archive, ".h5ad": read_annotated}
_COLUMNAR = (".parquet", ".pq", ".feather", ".arrow")
_UNNAMED = re.compile(r"column \d+|__index_level_\d+__|Unnamed: \d+")
_FEW_LEVELS = 20
MISSING_CELLS = ("error", "keep", "drop")
Source = tuple[int, str | None]  # of a feature: a column, and its level where the feature is an indicator


@in_memory
def read_table(
    path: str | os.PathLike[str],
    target: str | None,
    *,
    id_column: str | None = None,
    one_hot: bool | Collection[str] = False,
    drop: Collection[str] = (),
    missing_cells: str = "error",
    min_class_size: int = 1,
    transpose: bool = False,
    header: bool | None = None,
    delimiter: str | None = None,
    decimal: str = ".",
    thousands: str | None = None,
    encoding: str | None = None,
    missing: Collection[str] = MISSING,
    max_bytes: int = MAX_BYTES,
) -> LabelledTable:
    """Rows and labels of a file, or a `TableError` that names the file, the line and the column.

    Parameters
    ----------
    path : str or path
        A .csv, .tsv or .txt (also .gz), .parquet, .feather, .xlsx, .npz or .h5ad file.
    target : str or None
        Name of the label column (.npz: of the label array, .h5ad: of a column of obs); None: the last column.
    id_column : str, default=None
        Name of a column that says what each row is; kept as `ids`, never a feature.
    one_hot : bool or collection of str, default=False
        True: columns of mostly text become indicator columns `name=level`; names: only these.
    drop : collection of str, default=()
        Names of columns to leave out; a name that is none may be several with commas between.
    missing_cells : {"error", "keep", "drop"}, default="error"
        What is done about missing cells: refused, kept as NaN (for an imputer), or their rows left out.
    min_class_size : int, default=1
        Classes of fewer rows are left out.
    transpose : bool, default=False
        Whether the file has a column per sample and a row per feature, with the labels in the row `target`.
    header : bool, default=None
        Whether the first line holds the names of the columns; None: by the rule above. False: they are c1, c2, …
    delimiter, decimal, thousands, encoding : str, default=None
        How a delimited file is written, where it is not as usual.
    missing : collection of str, default=MISSING
        The texts that stand for a missing cell.
    max_bytes : int, default=4 GiB
        How much memory the file may come to; checked before it is unpacked.

    Returns
    -------
    LabelledTable
        Rows, labels, names, ids, and notes on what was left out and what looks odd.
    """
    path = Path(path)
    if missing_cells not in MISSING_CELLS:
        raise ValueError(f"missing_cells={missing_cells!r} came; possible are {', '.join(MISSING_CELLS)}.")
    if path.suffix.lower() in _ARCHIVES:
        archive = _ARCHIVES[path.suffix.lower()](path, target, id_column, max_bytes)
        _require_finite(path, archive.X, missing_cells)
        return _finished(_labelled_archive(archive, path, drop, max_bytes), missing_cells, min_class_size)
    form = CellFormat(decimal, thousands, frozenset(missing))
    file = _open(path, Dialect(delimiter, encoding, header, form), transpose, max_bytes)
    label_at = len(file.names) - 1 if target is None else position_of(file, target, "target")
    id_at = _id_position(file, id_column, transpose)
    dropped = {at for name in drop for at in _positions(file, name)}
    features = [at for at in range(len(file.names)) if at not in {label_at, id_at, *dropped}]
    always_text = set() if isinstance(one_hot, bool) else {position_of(file, name, "one_hot") for name in one_hot}
    taken = _Taken.of(file, form, features, [at for at in (label_at, id_at) if at is not None], always_text)
    notes = _require_names(taken, target, label_at) if header is None else []
    _check_columns(file, features)
    values, codes = texts(taken.columns[label_at])
    known = target is not None or any(form.reading(value)[0] == TEXT for value in values)
    sources = _sources(taken, features, one_hot, missing_cells, file.names[label_at], named=known)
    names = [file.names[at] if level is None else f"{file.names[at]}={level}" for at, level in sources]
    X = taken.rows(sources)
    present = ~taken.lacking(label_at, "error" if missing_cells == "keep" else missing_cells, file.names[label_at])
    ids = taken.texts(id_at)
    if not present.all():
        notes.append(f"{plural(int(np.sum(~present)), 'row')} without a label in {file.names[label_at]!r} left out.")
        X, codes, ids = X[present], codes[present], None if ids is None else ids[present]
    table = LabelledTable(
        X,
        label_texts(values, codes, file.names[label_at], path, max_bytes),
        checked_names(names, path),
        file.names[label_at],
        str(path),
        ids,
        None if id_at is None else file.names[id_at],
        tuple(notes),
    )
    return _finished(table, missing_cells, min_class_size)


@in_memory
def read_features(
    path: str | os.PathLike[str],
    feature_names: Sequence[str],
    *,
    id_column: str | None = None,
    missing_cells: str = "error",
    transpose: bool = False,
    header: bool | None = None,
    delimiter: str | None = None,
    decimal: str = ".",
    thousands: str | None = None,
    encoding: str | None = None,
    missing: Collection[str] = MISSING,
    max_bytes: int = MAX_BYTES,
) -> tuple[np.ndarray | csr_array, np.ndarray | None]:
    """The named features of new rows, in that order, labels or not, and their ids; other columns are not looked at.

    A name `column=level` that is no column itself is the indicator of a text column, as `read_table` makes them; a
    level that none of the names has is an error. All other arguments are those of `read_table`.
    """
    path = Path(path)
    if path.suffix.lower() in _ARCHIVES:
        archive = _ARCHIVES[path.suffix.lower()](path, None, id_column, max_bytes)
        X = _archive_features(archive, feature_names, path)
        _require_finite(path, X, missing_cells)
        return X, archive.ids
    form = CellFormat(decimal, thousands, frozenset(missing))
    file = _open(path, Dialect(delimiter, encoding, header, form), transpose, max_bytes)
    checked_names(file.names, path)
    sources = [_source(file, name) for name in feature_names]
    id_at = _id_position(file, id_column, transpose)
    worded = {at for at, level in sources if level is not None}
    taken = _Taken.of(file, form, [at for at, _ in sources], [] if id_at is None else [id_at], worded)
    _require_numbers(taken, list(dict.fromkeys(at for at, level in sources if level is None)), missing_cells, None)
    for at in worded:
        _require_levels(taken, at, {level for place, level in sources if place == at and level is not None})
        taken.lacking(at, missing_cells)
    return taken.rows(sources), taken.texts(id_at)


# ---------------------------------------------------------------------- files and columns


def _open(path: Path, dialect: Dialect, transpose: bool, max_bytes: int) -> TableFile:
    ending = Path(path.name.removesuffix(".gz")).suffix.lower()
    if ending in _DELIMITED:
        file: TableFile = DelimitedFile(path, dialect, max_bytes)
    elif ending in _COLUMNAR and path.suffix != ".gz":
        file = columnar_file(path, max_bytes)
    elif ending == ".xlsx":
        file = excel_file(path, dialect.header, max_bytes)
    else:
        raise TableError(
            f"{path}: files ending in {path.suffix or 'nothing'!r} are not known. Readable are .csv, .tsv and .txt "
            f"(also .gz), .parquet, .feather, .xlsx, .npz and .h5ad."
        )
    return on_its_side(file) if transpose else file


def position_of(file: TableFile, name: str, role: str) -> int:
    name = normal_text(name)
    if name in file.names:
        return file.names.index(name)
    told = meant(name, file.names, "Its columns are")
    raise TableError(f"{file.path} has no column {name!r} ({role}) among its {len(file.names)}. {told}")


def _id_position(file: TableFile, id_column: str | None, transpose: bool) -> int | None:
    """Of the column of ids: the one that is named, or the samples' names in a file on its side."""
    if id_column is None:
        return 0 if transpose else None
    return position_of(file, id_column, "id")


def _positions(file: TableFile, name: str) -> list[int]:
    """Of one column, or of several with commas between."""
    parts = [name] if normal_text(name) in file.names else name.split(",")
    return [position_of(file, part, "drop") for part in parts]


def _source(file: TableFile, name: str) -> Source:
    """The column a feature comes from, and its level if the feature is an indicator."""
    if name in file.names:
        return file.names.index(name), None
    for cut in (found.start() for found in re.finditer("=", name)):
        if name[:cut] in file.names:
            return file.names.index(name[:cut]), name[cut + 1 :]
    return position_of(file, name, "feature"), None


@dataclass(frozen=True)
class _Taken:
    """Columns of a file by their position: as Arrow has them, and those wanted as numbers also as doubles."""

    file: TableFile
    form: CellFormat
    columns: dict[int, Any]
    values: dict[int, np.ndarray]
    kinds: dict[int, np.ndarray]  # of those columns that hold something else than numbers

    @classmethod
    def of(
        cls,
        file: TableFile,
        form: CellFormat,
        numeric: Sequence[int],
        text: Sequence[int],
        always_text: Collection[int],
    ) -> _Taken:
        positions = sorted({*numeric, *text})
        columns = dict(zip(positions, file.columns(positions, [*text, *always_text]), strict=True))
        found = {at: numbers(columns[at], form) for at in sorted({*numeric} - {*always_text})}
        kinds = {at: kinds for at, (_, kinds) in found.items() if kinds is not None}
        return cls(file, form, columns, {at: values for at, (values, _) in found.items()}, kinds)

    def survey(self, at: int, absent: np.ndarray | None = None) -> Survey:
        kinds = self.kinds[at] if absent is None else np.where(absent, ABSENT, NUMBER).astype(np.uint8)
        return Survey(
            self.file.names[at], kinds, self.columns[at], lambda row: self.file.cell(row, at), self.file.place
        )

    def surveys(self, positions: Sequence[int], kind: int) -> list[Survey]:
        """Of those columns that have cells of this kind."""
        return [self.survey(at) for at in positions if at in self.kinds and (self.kinds[at] == kind).any()]

    def lacking(self, at: int, missing_cells: str, target: str | None = None) -> np.ndarray:
        """Which cells of a column of text are missing; an error where none may."""
        values, codes = texts(self.columns[at])
        absent = np.array([value in self.form.missing for value in values])[codes]
        if absent.any() and missing_cells == "error":
            raise missing_error(self.file.path, [self.survey(at, absent)], target)
        return absent

    def texts(self, at: int | None) -> np.ndarray | None:
        """A column of text, where one is asked for."""
        if at is None:
            return None
        values, codes = texts(self.columns[at])
        return np.array(values, dtype=np.str_)[codes]

    def rows(self, sources: Sequence[Source]) -> np.ndarray:
        """A column for each source."""
        X = np.empty((len(next(iter(self.columns.values()))), len(sources)))
        for place, (at, level) in enumerate(sources):
            X[:, place] = self.values[at] if level is None else self._indicator(at, level)
        return X

    def _indicator(self, at: int, level: str) -> np.ndarray:
        """1 where the cell is the level, NaN where it is missing."""
        values, codes = texts(self.columns[at])
        known = [np.nan if value in self.form.missing else float(value == level) for value in values]
        return np.array(known)[codes]


def _sources(
    taken: _Taken,
    features: Sequence[int],
    one_hot: bool | Collection[str],
    missing_cells: str,
    target: str,
    *,
    named: bool,
) -> list[Source]:
    """Numeric columns and, at the place of each text column, its levels in order."""
    worded = {at for at in features if at not in taken.values}
    if one_hot is True:
        worded |= {at for at in taken.kinds if taken.survey(at).count(TEXT) and taken.survey(at).categorical}
    _require_numbers(taken, [at for at in features if at not in worded], missing_cells, target, named=named)
    return [
        (at, level)
        for at in features
        for level in (_levels(taken, at, missing_cells, target) if at in worded else (None,))
    ]


def _require_numbers(
    taken: _Taken, positions: Sequence[int], missing_cells: str, target: str | None, *, named: bool = True
) -> None:
    path = taken.file.path
    if strays := taken.surveys(positions, TEXT):
        raise text_error(path, strays, named=named, n_features=len(positions))
    if missing_cells == "error" and (lacking := taken.surveys(positions, ABSENT)):
        raise missing_error(path, lacking, target)
    if infinite := taken.surveys(positions, INFINITE):
        raise infinite_error(path, infinite)


def _levels(taken: _Taken, at: int, missing_cells: str, target: str) -> Sequence[str]:
    n_rows = len(taken.lacking(at, missing_cells, target))
    levels = [value for value in texts(taken.columns[at])[0] if value not in taken.form.missing]
    if len(levels) > max(_FEW_LEVELS, n_rows // 2):
        name = taken.file.names[at]
        raise TableError(
            f"{taken.file.path}, column {name!r}: {len(levels)} different texts in {n_rows} rows "
            f"({quoted_cell(levels[0])}, ...). That is an identifier or free text, not a category.",
            Advice("leave it out with", drop=[name]),
            Advice("keep it as the name of each row with", id_column=name),
        )
    return levels


def _require_levels(taken: _Taken, at: int, known: Collection[str]) -> None:
    values, codes = texts(taken.columns[at])
    unknown = [value for value in values if value not in known and value not in taken.form.missing]
    if unknown:
        strange = np.isin(codes, [values.index(value) for value in unknown])
        raise TableError(
            f"{taken.file.path}, column {taken.file.names[at]!r}: {plural(int(strange.sum()), 'cell')} with "
            f"{quoted(unknown)}, first in row {int(np.argmax(strange)) + 1}. Known are only {quoted(sorted(known))}."
        )


# ---------------------------------------------------------------------- names or a row?


def _require_names(taken: _Taken, target: str | None, label_at: int) -> list[str]:
    """Refuse a first line that looks like a row; what was decided, where it could be doubted."""
    file, form = taken.file, taken.form
    if file.first_line is None or (target is not None and form.reading(target)[0] != NUMBER):
        return []
    tops = {at: normal_text(file.first_line[at]) for at in taken.columns}
    numeric = [at for at in taken.values if at not in taken.kinds or not taken.surveys([at], TEXT)]
    if all(form.reading(value)[0] in (NUMBER, ABSENT) for value in texts(taken.columns[label_at])[0]):
        numeric.append(label_at)
    if any(form.reading(tops[at])[0] not in (NUMBER, ABSENT) for at in numeric):
        return []
    again = [at for at in tops if at not in numeric and tops[at] in texts(taken.columns[at])[0]]
    numbered = [form.reading(tops[at])[1] for at in numeric if form.reading(tops[at])[0] == NUMBER]
    if not again and len(numbered) >= 3 and all(one < other for one, other in pairwise(numbered)):
        whole = numbered == [numbered[0] + step for step in range(len(numbered))] and numbered[0] in (0, 1)
        if label_at not in numeric or whole:
            return [f"Line 1 ({quoted(list(tops.values()))}) is taken for the names of the columns, not for a row."]
    if not again and not numbered:
        return []
    raise TableError(
        f"{file.path}, line 1: {quoted(list(tops.values()))} where the names of the columns belong. This looks like a "
        "row, which would be lost.",
        Advice("if there is no line of column names, say so with", header=False),
        Advice("if these are the names, with", header=True),
    )


def is_unnamed(name: str) -> bool:
    """Whether some tool made up the name of a column: a row number sorted by class would tell every label."""
    return not name or _UNNAMED.fullmatch(name) is not None


def _check_columns(file: TableFile, features: Sequence[int]) -> None:
    checked_names(file.names, file.path)
    if not features:
        raise TableError(f"{file.path} has no feature columns beside the target and those dropped.")
    for at in features:
        if is_unnamed(file.names[at]):
            raise TableError(
                f"{file.path}: column {at + 1} has no name of its own ({file.names[at]!r}); it may be a row number "
                "that some tool added.",
                "name it",
                Advice("leave it out with", drop=[file.names[at]]),
                Advice("keep it as the name of each row with", id_column=file.names[at]),
            )


# ---------------------------------------------------------------------- rows


def _finished(table: LabelledTable, missing_cells: str, min_class_size: int) -> LabelledTable:
    """Without the rows that are not wanted, and with notes on what looks odd."""
    if missing_cells == "drop":
        lacking = np.isin(np.arange(table.n_samples), _cells(table.X, np.isnan)[0])
        if lacking.any():
            table = _rows(table, ~lacking, f"{plural(int(lacking.sum()), 'row')} with missing cells left out.")
    counts = table.class_counts() if min_class_size > 1 else {}
    rare = [label for label, count in counts.items() if count < min_class_size]
    if rare:
        named = ", ".join(f"{label!r} ({counts[label]})" for label in rare)
        table = _rows(table, ~np.isin(table.y, rare), f"Left out, with fewer than {min_class_size} rows: {named}.")
    odd = notes_on(table.X, table.y, table.feature_names, table.target)
    return replace(table, notes=(*table.notes, *odd))


def _rows(table: LabelledTable, kept: np.ndarray, note: str) -> LabelledTable:
    if not kept.any():
        raise TableError(f"{table.source}: no row is left. {note}")
    y = label_texts(*coded(table.y[kept].tolist()), table.target, Path(table.source))
    ids = None if table.ids is None else table.ids[kept]
    return replace(table, X=table.X[kept], y=y, ids=ids, notes=(*table.notes, note))


def _cells(X: Any, holds: Callable[[Any], Any]) -> tuple[np.ndarray, np.ndarray]:
    """Rows and columns of the cells of which something holds that does not hold of 0."""
    if not issparse(X):
        rows, columns = np.nonzero(holds(X))
        return rows, columns
    stored = X.tocoo()
    return stored.row[holds(stored.data)], stored.col[holds(stored.data)]


# ---------------------------------------------------------------------- archives


def _require_finite(path: Path, X: Any, missing_cells: str) -> None:
    """Refuse infinite cells of an archive, and missing ones unless they are wanted."""
    rows, columns = _cells(X, (lambda cells: ~np.isfinite(cells)) if missing_cells == "error" else np.isinf)
    if len(rows):
        raise TableError(
            f"{path}, row {rows[0] + 1}, column {columns[0] + 1}: {plural(len(rows), 'cell')} missing or infinite, in "
            f"{plural(len(np.unique(columns)), 'column')}.",
            *WITHOUT_MISSING_CELLS,
        )


def _labelled_archive(archive: Archive, path: Path, drop: Collection[str], max_bytes: int) -> LabelledTable:
    if archive.labels is None or archive.target is None:
        raise TableError(f"{path} holds rows but no labels: {archive.wanted}")
    names = archive.feature_names or _numbered_names(archive.X.shape[1])
    unknown = [name for name in drop if name not in names]
    if unknown:
        raise TableError(f"{path} has no column {unknown[0]!r} (drop). {meant(unknown[0], names, 'Its columns are')}")
    kept = [at for at, name in enumerate(names) if name not in drop]
    X = archive.X[:, kept] if drop else archive.X
    y = label_texts(*coded(archive.labels), archive.target, path, max_bytes)
    names = checked_names([names[at] for at in kept], path)
    return LabelledTable(X, y, names, archive.target, str(path), archive.ids, archive.id_name)


def _numbered_names(n_columns: int) -> tuple[str, ...]:
    """What the columns of an archive without names are called."""
    return tuple(f"f{at}" for at in range(n_columns))


def _archive_features(archive: Archive, feature_names: Sequence[str], path: Path) -> np.ndarray | csr_array:
    if archive.feature_names is None:
        if archive.X.shape[1] != len(feature_names):
            raise TableError(f"{path} has {plural(archive.X.shape[1], 'column')}, but {len(feature_names)} are needed.")
        # columns that never had a name are known by their place; of others none can say which is which here
        if tuple(feature_names) not in (_numbered_names(len(feature_names)), column_names(feature_names, named=False)):
            raise TableError(
                f"{path} does not name its columns, and {quoted(list(feature_names))} are needed. Add an array called "
                "feature_names with one name per column."
            )
        return archive.X
    lacking = [name for name in feature_names if name not in archive.feature_names]
    if lacking:
        raise TableError(f"{path} lacks {plural(len(lacking), 'column')}: {quoted(lacking)}.")
    place = {name: at for at, name in enumerate(archive.feature_names)}
    return archive.X[:, [place[name] for name in feature_names]]
