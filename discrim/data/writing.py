"""Files that appear whole or not at all, and tables of features written so.

Each file is written beside its place under another name, synced to the disk, and then renamed: whoever reads
the path sees the old file or the new one, never half of one, even after a power cut.
"""

from __future__ import annotations

import csv
import gzip
import io
import os
import secrets
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Any

import numpy as np

from discrim.data.columnar import arrow
from discrim.data.labelled_table import checked_names

_FORMULA_STARTS = ("=", "+", "-", "@", "\t", "\r")


@contextmanager
def whole_file(path: str | os.PathLike[str]) -> Iterator[IO[bytes]]:
    """A binary file that takes the place of `path` when the block ends well, and vanishes when it does not.

    Errors of the file system (a full disk, a missing folder) come as OSError with `path` as their filename.
    """
    place = Path(os.path.realpath(path))  # a link keeps pointing where it did
    temporary = place.with_name(f".{place.name}.{os.getpid()}-{secrets.token_hex(4)}.part")
    try:
        with open(temporary, "xb") as handle:
            yield handle
            handle.flush()
            os.fsync(handle.fileno())
        os.replace(temporary, place)
        _sync_folder(place.parent)
    except BaseException as error:
        with suppress(OSError):
            temporary.unlink()
        if isinstance(error, OSError) and error.errno is not None:
            raise OSError(error.errno, error.strerror, os.fspath(path)) from error
        raise


def _sync_folder(folder: Path) -> None:
    """Make the new name itself durable, where folders can be synced (not on Windows)."""
    if os.name == "nt":
        return
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def write_table(path: str | os.PathLike[str], columns: Any) -> None:
    """Write named columns to a .csv, .csv.gz, .tsv, .parquet or .feather file.

    columns : a mapping from name to values, or a pandas or polars frame

    Numbers are written so that they read back exactly. In CSV files a text cell (or column name) that a
    spreadsheet would run as a formula, starting with = + - or @ and no number, gets an apostrophe in front.
    """
    path = Path(path)
    table = _columns(path, columns)
    ending = path.name.removesuffix(".gz").rpartition(".")[2].lower()
    if path.suffix in (".parquet", ".pq", ".feather"):
        with whole_file(path) as handle:
            _write_columnar(handle, path, table)
    elif ending in ("csv", "tsv"):
        with whole_file(path) as handle:
            _write_delimited(handle, table, "\t" if ending == "tsv" else ",", zipped=path.suffix == ".gz")
    else:
        raise ValueError(f"{path}: cannot write {path.suffix!r} files. Use .csv, .csv.gz, .tsv, .parquet or .feather.")


def _columns(path: Path, columns: Any) -> dict[str, np.ndarray]:
    names = list(columns) if isinstance(columns, Mapping) else list(columns.columns)
    checked_names([str(name) for name in names], path)
    table = {str(name): np.asarray(columns[name]) for name in names}
    lengths = {name: values.shape for name, values in table.items()}
    if not table or any(len(shape) != 1 for shape in lengths.values()) or len(set(lengths.values())) != 1:
        raise ValueError(f"{path}: columns of one length are needed, but these came: {lengths}.")
    return table


def _write_columnar(handle: IO[bytes], path: Path, table: dict[str, np.ndarray]) -> None:
    content = arrow("pyarrow", path).table({name: _arrow_ready(values) for name, values in table.items()})
    if path.suffix == ".feather":
        arrow("pyarrow.feather", path).write_feather(content, handle)
    else:
        arrow("pyarrow.parquet", path).write_table(content, handle)


def _arrow_ready(values: np.ndarray) -> Any:
    return values.tolist() if values.dtype.kind in "USO" else values


def _write_delimited(handle: IO[bytes], table: dict[str, np.ndarray], delimiter: str, *, zipped: bool) -> None:
    # No name and no time in the gzip header: the same table makes the same bytes.
    raw: Any = gzip.GzipFile(filename="", mode="wb", fileobj=handle, mtime=0) if zipped else handle
    text = io.TextIOWrapper(raw, encoding="utf-8", newline="", write_through=False)
    writer = csv.writer(text, delimiter=delimiter, lineterminator="\n")
    writer.writerow([_neutral(name) for name in table])
    writer.writerows(zip(*(_cells(values) for values in table.values()), strict=True))
    text.flush()
    text.detach()
    if zipped:
        raw.close()


def _cells(values: np.ndarray) -> Sequence[Any]:
    cells = values.tolist()  # Python's own numbers, whose repr reads back exactly
    if values.dtype.kind in "buif":
        return cells
    return [_neutral(cell) if isinstance(cell, str) else cell for cell in cells]


def _neutral(cell: str) -> str:
    if not cell.startswith(_FORMULA_STARTS):
        return cell
    try:
        float(cell)
    except ValueError:
        return "'" + cell
    return cell
