"""Files → labelled rows: CSV, TSV (also .gz), Parquet, Feather and .npz.

The rules, the same for every format:
- every column but the target is a feature and must hold finite numbers; nothing is dropped or filled in
- labels are text, as written, without surrounding blanks
- text columns are refused, or become one indicator column per level with `one_hot`
- integers beyond 2⁵³ are rounded to the nearest double, as every decimal fraction is
"""

from __future__ import annotations

import os
import re
from collections.abc import Collection, Sequence
from itertools import pairwise
from pathlib import Path

import numpy as np
from scipy.sparse import csr_array

from discrim.data.archive import Archive, read_archive
from discrim.data.cells import MISSING, CellFormat, TableError, plural, quoted
from discrim.data.columnar import ColumnarFile, MissingExtraError
from discrim.data.columns import (
    TableFile,
    feature_source,
    position_of,
    require_known_levels,
    require_present,
    take_columns,
    with_indicators,
)
from discrim.data.delimited import MAX_BYTES, DelimitedFile, Dialect
from discrim.data.labelled_table import LabelledTable, checked_labels, checked_names
from discrim.data.writing import whole_file, write_table

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
_COLUMNAR = (".parquet", ".pq", ".feather", ".arrow")
_UNNAMED = re.compile(r"column \d+|__index_level_\d+__|Unnamed: \d+")


def read_table(
    path: str | os.PathLike[str],
    target: str | None,
    *,
    one_hot: bool | Collection[str] = False,
    drop: Collection[str] = (),
    delimiter: str | None = None,
    decimal: str = ".",
    thousands: str | None = None,
    encoding: str | None = None,
    missing: Collection[str] = MISSING,
    max_bytes: int = MAX_BYTES,
) -> LabelledTable:
    """Rows and labels of a file, or a `TableError` that names the file, the line and the column.

    target : name of the label column (.npz: of the label array); None: the last column
    one_hot : True: columns of mostly text become indicator columns `name=level`; names: only these
    drop : names of columns to leave out
    delimiter, decimal, thousands, encoding : how a delimited file is written, where it is not as usual
    missing : the texts that stand for a missing cell
    max_bytes : how large a compressed file may become
    """
    path = Path(path)
    if path.suffix.lower() == ".npz":
        return _labelled_archive(path, target, drop, max_bytes)
    dialect = Dialect(delimiter, encoding, CellFormat(decimal, thousands, frozenset(missing)))
    file = _open(path, dialect, max_bytes)
    label_at = _target_position(file, target)
    dropped = {position_of(file, name, "drop") for name in drop}
    features = [at for at in range(len(file.names)) if at != label_at and at not in dropped]
    _check_columns(file, features)
    as_text = set() if isinstance(one_hot, bool) else {position_of(file, name, "one_hot") for name in one_hot}
    taken, text = take_columns(file, features, as_text, [label_at], one_hot is True)
    require_present(file, [label_at, *text], [taken.texts[-1], *taken.texts[:-1]], dialect.cells.missing)
    y = checked_labels(taken.texts[-1], file.names[label_at], path)
    X, names = with_indicators(file, features, text, taken)
    return LabelledTable(X, y, checked_names(names, path), file.names[label_at], str(path))


def read_features(
    path: str | os.PathLike[str],
    feature_names: Sequence[str],
    *,
    delimiter: str | None = None,
    decimal: str = ".",
    thousands: str | None = None,
    encoding: str | None = None,
    missing: Collection[str] = MISSING,
    max_bytes: int = MAX_BYTES,
) -> np.ndarray | csr_array:
    """The named features of new rows, in that order, labels or not; other columns are not looked at.

    A name `column=level` that is no column itself is the indicator of a text column, as `read_table` makes
    them; a level that none of the names has is an error.
    """
    path = Path(path)
    if path.suffix.lower() == ".npz":
        return _archive_features(read_archive(path, None, max_bytes), feature_names, path)
    dialect = Dialect(delimiter, encoding, CellFormat(decimal, thousands, frozenset(missing)))
    file = _open(path, dialect, max_bytes)
    checked_names(file.names, path)
    sources = [feature_source(file, name) for name in feature_names]
    numeric = [at for at, level in sources if level is None]
    text = sorted({at for at, level in sources if level is not None})
    taken, _ = take_columns(file, numeric, set(), text, False)
    require_present(file, text, taken.texts, dialect.cells.missing)
    cells = dict(zip(text, taken.texts, strict=True))
    require_known_levels(file, sources, cells)
    numbers = iter(taken.X.T)
    columns = [next(numbers) if level is None else np.equal(cells[at], level) for at, level in sources]
    return np.column_stack(columns).astype(np.float64)


def _open(path: Path, dialect: Dialect, max_bytes: int) -> TableFile:
    ending = Path(path.name.removesuffix(".gz")).suffix.lower()
    if ending in _DELIMITED:
        return DelimitedFile(path, dialect, max_bytes)
    if ending in _COLUMNAR and path.suffix != ".gz":
        return ColumnarFile(path, dialect.cells, max_bytes)
    raise TableError(
        f"{path}: files ending in {path.suffix or 'nothing'!r} are not known. Readable are .csv, .tsv and "
        f".txt (also .gz), .parquet, .feather and .npz."
    )


def _target_position(file: TableFile, target: str | None) -> int:
    if target is not None and not _is_number(target):
        return position_of(file, target, "target")
    # The name does not prove that the first line holds names: a file without them would lose its first row.
    at = len(file.names) - 1 if target is None else position_of(file, target, "target")
    others = [name for position, name in enumerate(file.names) if position != at]
    if others and all(_is_number(name) for name in others):
        values = [float(name) for name in others]
        if any(later <= earlier for earlier, later in pairwise(values)):
            raise TableError(
                f"{file.path}, line 1: numbers ({quoted(others)}) where the names of the columns belong. Add "
                f"a line of column names, or the first row would be taken for it."
            )
    return at


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def _check_columns(file: TableFile, features: Sequence[int]) -> None:
    checked_names(file.names, file.path)
    if not features:
        raise TableError(f"{file.path} has no feature columns beside the target and those dropped.")
    for at in features:
        # A row number sorted by class would tell every label.
        if _UNNAMED.fullmatch(file.names[at]):
            raise TableError(
                f"{file.path}: column {at + 1} has no name of its own ({file.names[at]!r}); it may be a row "
                f"number that some tool added. Name it, or leave it out with drop=[{file.names[at]!r}]."
            )


def _labelled_archive(path: Path, target: str | None, drop: Collection[str], max_bytes: int) -> LabelledTable:
    if drop:
        raise TableError(
            f"{path}: columns of .npz files cannot be dropped by name; save them without {quoted(list(drop))}."
        )
    archive = read_archive(path, target, max_bytes)
    if archive.labels is None or archive.target is None:
        raise TableError(f"{path} holds rows but no labels: add an array called target with one label per row.")
    names = archive.feature_names or tuple(f"f{at}" for at in range(archive.X.shape[1]))
    y = checked_labels(archive.labels, archive.target, path)
    return LabelledTable(archive.X, y, checked_names(names, path), archive.target, str(path))


def _archive_features(archive: Archive, feature_names: Sequence[str], path: Path) -> np.ndarray | csr_array:
    if archive.feature_names is None:
        if archive.X.shape[1] != len(feature_names):
            raise TableError(f"{path} has {plural(archive.X.shape[1], 'column')}, but {len(feature_names)} are needed.")
        return archive.X
    lacking = [name for name in feature_names if name not in archive.feature_names]
    if lacking:
        raise TableError(f"{path} lacks {plural(len(lacking), 'column')}: {quoted(lacking)}.")
    place = {name: at for at, name in enumerate(archive.feature_names)}
    return archive.X[:, [place[name] for name in feature_names]]
