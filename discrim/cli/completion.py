"""What the shell may complete: files and data sets, and the columns of the file that was typed."""

from __future__ import annotations

import csv
import gzip
from contextlib import suppress
from importlib import import_module
from pathlib import Path

import typer

from discrim.data import catalogue

ENDINGS = (".csv", ".tsv", ".csv.gz", ".tsv.gz", ".parquet", ".feather", ".npz", ".xlsx")


def names_and_files(incomplete: str) -> list[str]:
    """Data sets of the catalogue, and files and folders, that begin like this."""
    folder = Path(incomplete).parent if "/" in incomplete else Path()
    found = [path for path in sorted(folder.iterdir()) if path.is_dir() or path.name.endswith(ENDINGS)]
    files = [f"{path}/" if path.is_dir() else str(path) for path in found]
    names = [one.name for one in catalogue.entries()]
    return [word for word in (*files, *names) if word.startswith(incomplete)]


def columns_of_data(ctx: typer.Context, incomplete: str) -> list[str]:
    """Columns of the file that was typed before; none where it cannot be read."""
    with suppress(Exception):  # a shell that completes has no place for errors
        return [name for name in _columns(Path(str(ctx.params["data"]))) if name.startswith(incomplete)]
    return []


def _columns(path: Path) -> list[str]:
    if path.suffix in (".parquet", ".feather"):
        return list(import_module("pyarrow.dataset").dataset(path, format=path.suffix[1:]).schema.names)
    with gzip.open(path, "rt", encoding="utf-8") if path.suffix == ".gz" else path.open(encoding="utf-8") as handle:
        first = handle.readline()
    delimiter = max(",;\t", key=first.count)
    return next(csv.reader([first], delimiter=delimiter))
