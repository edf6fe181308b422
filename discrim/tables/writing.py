"""Files that appear whole or not at all, and tables of features written so.

Each file is written to its folder under another name, synced to the disk, and then renamed: a reader
of the path sees the old file or the new one, never half of one, even after a power cut. A device or a pipe is written
to and stays what it is.

Whatever is written reads back equal. In delimited files a text that a spreadsheet would run as a formula gets an
apostrophe in front, which is taken off when it is read again.
"""

from __future__ import annotations

import gzip
import io
import os
import re
import secrets
import stat
from collections.abc import Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import IO, Any

import numpy as np

try:
    import fcntl
except ImportError:  # Windows has no such locks
    fcntl = None  # type: ignore[assignment]

from discrim.tables.formats import arrow
from discrim.tables.labelled_table import checked_names

FORMULA = re.compile(r"'*[=+\-@\t\r]")
# Besides what must be quoted, every mark that might be taken for the delimiter, and what could be taken for a byte
# order mark or for blanks around a field.
_QUOTED = re.compile(r'[,;\t|"\r\n]|^[\s\ufeff]|\s$|^$')


@contextmanager
def whole_file(path: str | os.PathLike[str]) -> Iterator[IO[bytes]]:
    """Open a binary file that replaces `path` if the block succeeds, and is removed if it fails.

    Errors of the file system (a full disk, a missing folder) are raised as OSError with `path` as their filename.
    """
    try:
        mode = None
        with suppress(FileNotFoundError):
            mode = os.stat(path).st_mode  # raises if a link leads back to itself
        written = _new_file(path, mode) if mode is None or stat.S_ISREG(mode) or stat.S_ISDIR(mode) else _device(path)
        with written as handle:
            yield handle
    except OSError as error:
        if error.errno is None:
            raise
        raise OSError(error.errno, error.strerror, os.fspath(path)) from error


@contextmanager
def _device(path: str | os.PathLike[str]) -> Iterator[IO[bytes]]:
    """Collect what is written, and write it at once if the block succeeds."""
    with io.BytesIO() as content:
        yield content
        with open(path, "wb") as device:
            device.write(content.getbuffer())


@contextmanager
def _new_file(path: str | os.PathLike[str], mode: int | None) -> Iterator[IO[bytes]]:
    """Open a file in the folder of `path`, renamed to it if the block succeeds."""
    place = Path(os.path.realpath(path))  # a link keeps pointing where it did
    temporary, opened = _beside(place)
    with opened as handle:  # and locked, until it has its name: no other process takes it for one that was left
        try:
            yield handle
            handle.flush()
            if mode is not None:
                os.chmod(temporary, stat.S_IMODE(mode))
            os.fsync(handle.fileno())
            if fcntl is None:  # Windows renames no file that is open
                handle.close()
            os.replace(temporary, place)
        except BaseException:
            with suppress(OSError):
                if fcntl is None:
                    handle.close()
                temporary.unlink()
            raise
    _sync_folder(place.parent)


def _beside(place: Path) -> tuple[Path, IO[bytes]]:
    """Return a name for a temporary file: one that a killed process left, never one that is being written now."""
    temporary = place.with_name(f".{place.name}.part")
    if fcntl is not None:
        with suppress(OSError), ExitStack() as unless_ours:
            left = os.fdopen(os.open(temporary, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o666), "wb")
            unless_ours.callback(left.close)
            try:
                fcntl.flock(left, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError as error:
                if not isinstance(error, BlockingIOError):  # a drive that knows no locks: no process writes to this
                    temporary.unlink()
                raise
            found = os.fstat(left.fileno())
            is_there = os.path.samestat(found, os.stat(temporary))  # else it was renamed in between
            if is_there and found.st_uid == os.geteuid() and found.st_nlink == 1:  # and no other user may read it
                left.truncate(0)
                unless_ours.pop_all()
                return temporary, left
    temporary = place.with_name(f".{place.name}.{os.getpid()}-{secrets.token_hex(4)}.part")
    return temporary, open(temporary, "xb")


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
    Text without surrounding blanks and in Unicode's composed form reads back as it was.
    """
    path = Path(path)
    ending = written_ending(path)
    table = _columns(path, columns)
    with whole_file(path) as handle:
        if ending in ("csv", "tsv"):
            _write_delimited(handle, table, "\t" if ending == "tsv" else ",", zipped=path.suffix == ".gz")
        else:
            _write_columnar(handle, path, table)


def written_ending(path: Path) -> str:
    """Return the format by the ending of a file's name, without the .gz of a delimited file; raise if it is unknown."""
    ending = path.name.removesuffix(".gz").rpartition(".")[2].lower()
    if ending in ("csv", "tsv") or path.suffix in (".parquet", ".pq", ".feather"):
        return ending
    kind = f"{path.suffix!r} files" if path.suffix else "a file whose name has no ending"
    raise ValueError(f"{path}: cannot write {kind}. Use .csv, .csv.gz, .tsv, .parquet or .feather.")


def _columns(path: Path, columns: Any) -> dict[str, np.ndarray]:
    names = list(columns) if isinstance(columns, Mapping) else list(columns.columns)
    checked_names([str(name) for name in names], path)
    table = {str(name): np.asarray(columns[name]) for name in names}
    lengths = {name: values.shape for name, values in table.items()}
    if not table or any(len(shape) != 1 for shape in lengths.values()) or len(set(lengths.values())) != 1:
        raise ValueError(f"{path}: columns must have one length; got {lengths}.")
    return table


def _write_columnar(handle: IO[bytes], path: Path, table: dict[str, np.ndarray]) -> None:
    plain = {name: values.tolist() if values.dtype.kind in "USO" else values for name, values in table.items()}
    content = arrow("pyarrow", path).table(plain)
    if path.suffix == ".feather":
        arrow("pyarrow.feather", path).write_feather(content, handle)
    else:
        arrow("pyarrow.parquet", path).write_table(content, handle)


def _write_delimited(handle: IO[bytes], table: dict[str, np.ndarray], delimiter: str, *, zipped: bool) -> None:
    # No name and no time in the gzip header: the same table makes the same bytes.
    raw: Any = gzip.GzipFile(filename="", mode="wb", fileobj=handle, mtime=0) if zipped else handle
    text = io.TextIOWrapper(raw, encoding="utf-8", newline="", write_through=False)
    text.write(delimiter.join(_neutral(name) for name in table) + "\n")
    columns = [_cells(values) for values in table.values()]
    text.writelines(delimiter.join(row) + "\n" for row in zip(*columns, strict=True))
    text.flush()
    text.detach()
    if zipped:
        raw.close()


def _cells(values: np.ndarray) -> Iterable[str]:
    cells = values.tolist()  # Python's own numbers, whose repr reads back exactly
    if values.dtype.kind in "buif":
        return map(repr, cells)
    return (_neutral("" if cell is None else str(cell)) for cell in cells)


def _neutral(cell: str) -> str:
    if FORMULA.match(cell):
        try:
            float(cell)
        except ValueError:
            cell = "'" + cell
    return '"' + cell.replace('"', '""') + '"' if _QUOTED.search(cell) else cell
