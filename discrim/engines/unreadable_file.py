"""A file of a table in parts that cannot be read: what is wrong with it, in the words of the reader of single files."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from discrim.tables.columnar import arrow
from discrim.tables.delimited import DelimitedFile, Dialect
from discrim.tables.labelled_table import checked_names
from discrim.tables.read import read_features
from discrim.tables.table_error import TableError, quoted_cell

EXPLAINED = 2**28  # bytes of a CSV file that is read once more, into memory, to say on which line it went wrong
OTHERS = (";", "\t", "|", ",")


@contextmanager
def told(file: str, delimiter: str | None = None, features: Sequence[str] = ()) -> Iterator[None]:
    """Errors of pyarrow while it reads a file, as a TableError that names it.

    delimiter : of a CSV file, None of any other; features : its columns of numbers, where known
    """
    path = Path(file)
    try:
        yield
    except (FileNotFoundError, PermissionError, IsADirectoryError):
        raise
    except TableError as error:
        raise _without_options(error) from error
    except (arrow("pyarrow", path).ArrowException, OSError, UnicodeDecodeError) as error:
        if delimiter is None:
            raise TableError(
                f"{file} cannot be read as {path.suffix} with the columns of the first file: damaged, cut short, or "
                f"another table ({error}).",
                "write it anew, or leave it out",
            ) from error
        if path.stat().st_size <= EXPLAINED:
            _explain(path, delimiter, features)
        raise TableError(
            f"{file} cannot be read as CSV in UTF-8 with {delimiter!r} between columns: {error}"
        ) from error


def _explain(path: Path, delimiter: str, features: Sequence[str]) -> None:
    """Read a CSV file as single ones are, which says where it goes wrong; other encodings are read there, not here."""
    try:
        for encoding in (None, "utf-8"):
            whole = DelimitedFile(path, Dialect(delimiter, encoding))
            every = range(len(checked_names(whole.names, path)))
            whole.columns(every, every)
        if features:
            read_features(path, features, delimiter=delimiter, encoding="utf-8", missing_cells="keep")
    except TableError as error:
        raise _without_options(error) from None


def _without_options(error: TableError) -> TableError:
    """Without the advice to pass an option: there is none of them for tables in parts."""
    return TableError(error.fact, *(one for one in error.advice if isinstance(one, str)))


def told_apart(file: str, names: Sequence[str], delimiter: str | None = None) -> tuple[str, ...]:
    """The columns of a file: none has the name of another, and those of a CSV file are separated as they should."""
    others = [mark for mark in OTHERS if mark in names[0]] if delimiter and len(names) == 1 else []
    if others:
        mark = "$'\\t'" if others[0] == "\t" else repr(others[0])  # as a shell takes it
        raise TableError(
            f"{file}, line 1: only one column, {quoted_cell(names[0])}. Columns are separated by {delimiter!r} here.",
            f"write the file so; on the command line, --delimiter {mark} reads it as it is",
        )
    return checked_names(names, Path(file))
