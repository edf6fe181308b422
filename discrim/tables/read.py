"""Files → labelled rows in memory: `read_table` collects the batches of a `TableSource`, by the rules of `source.py`.

Text columns are refused, or become one indicator column per level with `one_hot`. Integers beyond 2⁵³ are rounded to
the nearest double, as every decimal fraction is. An .npz or .h5ad file holds arrays, also sparse ones.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from scipy.sparse import csr_array, issparse

from discrim.tables.archive import Archive, read_annotated, read_archive
from discrim.tables.cells import MISSING, Dialect
from discrim.tables.formats import column_names
from discrim.tables.labelled_table import LabelledTable, checked_names, coded, label_array, notes_on
from discrim.tables.scan import WITHOUT_MISSING_CELLS, Scan
from discrim.tables.source import TableSource, column_of
from discrim.tables.table_error import (
    MAX_BYTES,
    Advice,
    TableError,
    in_memory,
    join_errors,
    meant,
    plural,
    quoted,
    quoted_cell,
)

ARCHIVES: dict[str, Callable[..., Archive]] = {".npz": read_archive, ".h5ad": read_annotated}
MISSING_CELLS = ("error", "keep", "drop")


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
    """Read rows and labels of a file; a `TableError` names the file, the line and the column.

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
    if missing_cells not in MISSING_CELLS:
        raise ValueError(f"missing_cells must be one of {', '.join(MISSING_CELLS)}; got {missing_cells!r}.")
    if isinstance(path, str | os.PathLike) and Path(path).suffix.lower() in ARCHIVES:
        table = collect_archive(Path(path), target, id_column, drop, missing_cells, max_bytes)
    else:
        dialect = Dialect(delimiter, encoding, header, decimal, thousands, frozenset(missing))
        source = TableSource.open(
            path, target, id_column=id_column, drop=drop, transpose=transpose, dialect=dialect, max_bytes=max_bytes
        )
        table = collect(source, one_hot, missing_cells, max_bytes)
    return finished(table, missing_cells, min_class_size)


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
    """Read the named features of new rows, in that order, and their ids; other columns are ignored.

    A name `column=level` that is no column itself is the indicator of a text column, as `read_table` makes them; a
    level that none of the names has is an error. All other arguments are those of `read_table`.
    """
    path = Path(path)
    if path.suffix.lower() in ARCHIVES:
        return archive_features(path, feature_names, id_column, missing_cells, max_bytes)
    dialect = Dialect(delimiter, encoding, header, decimal, thousands, frozenset(missing))
    source = TableSource.open(
        path, features=feature_names, id_column=id_column, transpose=transpose, dialect=dialect, max_bytes=max_bytes
    )
    scan = source.scan(max_bytes=max_bytes)
    if errors := scan.errors(missing_cells, source.levels):
        raise join_errors(errors)
    return np.concatenate(scan.blocks), scan.row_ids


# ---------------------------------------------------------------------- rows of a source


def collect(source: TableSource, one_hot: bool | Collection[str], missing_cells: str, max_bytes: int) -> LabelledTable:
    """Join the batches of a source into a labelled table; all that is wrong with it is one error."""
    assert source.target is not None
    worded = set() if isinstance(one_hot, bool) else {column_of(source.parts[0], name, "one_hot") for name in one_hot}
    numeric = replace(source, sources=tuple(one for one in source.sources if one[0] not in worded))
    scan = numeric.scan(keep=not one_hot, max_bytes=max_bytes)
    if one_hot is True:
        worded = {name for name, survey in scan.surveys.items() if survey.categorical}
    errors = scan.errors(missing_cells, worded)
    levels = {name: sorted(scan.levels(name)) for name in worded}
    errors += [_free_text_error(scan, name, levels[name][0]) for name in worded if scan.has_free_text(name)]
    present = ~scan.unlabelled
    values, codes = scan.typed_labels()
    y = None
    try:
        y = label_array(values, codes, source.target, source.path, max_bytes) if len(codes) else None
    except TableError as error:
        errors.append(error)
    if errors or y is None:
        raise join_errors(errors or [TableError(f"{source.path}: no row has a label in {source.target!r}.")])
    rows, blocks = source, scan.blocks
    if one_hot:  # read again, each text column as an indicator for each of its levels
        rows = replace(
            source,
            sources=tuple((name, level) for name, _ in source.sources for level in levels.get(name, [None])),
            dtype=np.dtype(np.float64) if levels else source.dtype,
        )
        blocks = rows.scan(max_bytes=max_bytes).blocks
    X = blocks[0] if len(blocks) == 1 else np.concatenate(blocks)
    notes = list(source.notes)
    if not present.all():
        X = X[present]
        notes.append(f"{plural(int(np.sum(~present)), 'row')} without a label in {source.target!r} left out.")
    ids = None if scan.row_ids is None else scan.row_ids[present]
    names = checked_names(rows.features, source.path)
    return LabelledTable(X, y, names, source.target, str(source.path), ids, source.id_column, tuple(notes))


def _free_text_error(scan: Scan, name: str, example: str) -> TableError:
    return TableError(
        f"{scan.source.path}, column {name!r}: {len(scan.levels(name))} different texts in {scan.n_rows} rows "
        f"({quoted_cell(example)}, ...). That is an identifier or free text, not a category.",
        Advice("leave it out with", drop=[name]),
        Advice("keep it as the name of each row with", id_column=name),
    )


def finished(table: LabelledTable, missing_cells: str, min_class_size: int) -> LabelledTable:
    """Return the table without the rows that are not wanted, and with notes on what looks odd."""
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
    y = label_array(*coded(table.y[kept].tolist()), table.target, Path(table.source))
    return replace(table.take(kept), y=y, notes=(*table.notes, note))


def _cells(X: Any, holds: Callable[[Any], Any]) -> tuple[np.ndarray, np.ndarray]:
    """Return rows and columns of the cells of which something holds that does not hold of 0."""
    if not issparse(X):
        rows, columns = np.nonzero(holds(X))
        return rows, columns
    stored = X.tocoo()
    return stored.row[holds(stored.data)], stored.col[holds(stored.data)]


# ---------------------------------------------------------------------- archives


def _require_finite(path: Path, X: Any, missing_cells: str) -> None:
    """Raise if an archive has infinite cells, or missing ones that are not allowed."""
    rows, columns = _cells(X, (lambda cells: ~np.isfinite(cells)) if missing_cells == "error" else np.isinf)
    if len(rows):
        raise TableError(
            f"{path}, row {rows[0] + 1}, column {columns[0] + 1}: {plural(len(rows), 'cell')} missing or infinite, in "
            f"{plural(len(np.unique(columns)), 'column')}.",
            *WITHOUT_MISSING_CELLS,
        )


def collect_archive(
    path: Path, target: str | None, id_column: str | None, drop: Collection[str], missing_cells: str, max_bytes: int
) -> LabelledTable:
    """Return the labelled table of an .npz or .h5ad file."""
    archive = ARCHIVES[path.suffix.lower()](path, target, id_column, max_bytes)
    _require_finite(path, archive.X, missing_cells)
    if archive.labels is None or archive.target is None:
        raise TableError(f"{path} holds rows but no labels: {archive.wanted}")
    names = archive.feature_names or _numbered_names(archive.X.shape[1])
    unknown = [name for name in drop if name not in names]
    if unknown:
        raise TableError(f"{path} has no column {unknown[0]!r} (drop). {meant(unknown[0], names, 'Its columns are')}")
    kept = [at for at, name in enumerate(names) if name not in drop]
    X = archive.X[:, kept] if drop else archive.X
    y = label_array(*coded(archive.labels), archive.target, path, max_bytes)
    names = checked_names([names[at] for at in kept], path)
    return LabelledTable(X, y, names, archive.target, str(path), archive.ids, archive.id_name)


def _numbered_names(n_columns: int) -> tuple[str, ...]:
    """Return the names of the columns of an archive without names."""
    return tuple(f"f{at}" for at in range(n_columns))


def archive_features(
    path: Path, feature_names: Sequence[str], id_column: str | None, missing_cells: str, max_bytes: int
) -> tuple[np.ndarray | csr_array, np.ndarray | None]:
    """Return the named features of an .npz or .h5ad file, and the ids of its rows."""
    archive = ARCHIVES[path.suffix.lower()](path, None, id_column, max_bytes)
    if archive.feature_names is None:
        if archive.X.shape[1] != len(feature_names):
            raise TableError(f"{path} has {plural(archive.X.shape[1], 'column')}, but {len(feature_names)} are needed.")
        # columns that never had a name are known by their place; of others none can say which is which here
        if tuple(feature_names) not in (_numbered_names(len(feature_names)), column_names(feature_names, named=False)):
            raise TableError(
                f"{path} does not name its columns, and {quoted(list(feature_names))} are needed. Add an array called "
                "feature_names with one name per column."
            )
        X = archive.X
    else:
        if lacking := [name for name in feature_names if name not in archive.feature_names]:
            raise TableError(f"{path} lacks {plural(len(lacking), 'column')}: {quoted(lacking)}.")
        place = {name: at for at, name in enumerate(archive.feature_names)}
        X = archive.X[:, [place[name] for name in feature_names]]
    _require_finite(path, X, missing_cells)
    return X, archive.ids
