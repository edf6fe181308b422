"""discrim project and apply for tables in parts: a folder of files, or a file larger than memory should hold."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from sklearn.pipeline import make_pipeline

from discrim.cli.options import FileFormat, Reading
from discrim.cli.screen import say
from discrim.data.preprocessing import preprocessing
from discrim.engines.table_files import FileTable, gather_files, transform_files
from discrim.reducers import model_file
from discrim.reducers.parts import fitted, gathering_of

LARGE = 2**30  # bytes of a file from which on it is read in parts


def comes_in_parts(data: str, out: Path | None) -> bool:
    """A folder, a large file, or features that are to become a folder."""
    path = Path(data)
    to_folder = out is not None and (out.is_dir() or not out.suffix)
    return path.is_dir() or (path.is_file() and (to_folder or path.stat().st_size >= LARGE))


def project_parts(data: str, reading: Reading, reduction: Any, components: int, scale: str) -> tuple[Any, FileTable]:
    """The model, fitted in one pass over all files, and the table."""
    plain = Reading(target=reading.target, drop=reading.drop, delimiter=reading.delimiter)
    if reading != plain or not reduction.ours:
        raise ValueError(
            f"{data} is read in parts, by a reduction of discrim, with --target, --drop and --delimiter only. Leave "
            "out the other options, or pass a file that fits into memory and a file for --out."
        )
    model = make_pipeline(*preprocessing(scale), reduction.estimator(components, 0))
    table = FileTable.open(Path(data), reading.target, drop=_dropped(reading), delimiter=reading.delimiter or ",")
    with _bar("Gathering", table) as moved:
        total = gather_files(gathering_of(model), table, moved)
    say(f"{total.n_rows} rows × {total.n_features} columns in {len(total.parts)} files were gathered.")
    return fitted(model, total), table


def _dropped(reading: Reading) -> list[str]:
    return [name for given in reading.drop or [] for name in given.split(",")]


def features_in_parts(model: Any, names: list[str], table: FileTable, out: Path) -> None:
    """Write a file of features for each file of the table; those that an earlier run wrote stay."""
    seal = hashlib.sha256(model_file.FORMAT.to_bytes(model)).digest()
    with _bar("Writing", table) as moved:
        n_rows = transform_files(model.transform, names, table, out, seal, moved)
    say(f"{n_rows} rows × {len(names)} components are in {out}, a file for each of {len(table.parts())}.")


def apply_parts(model: Any, names: list[str], data: str, out: Path, written: FileFormat) -> None:
    """Features of new rows, file by file."""
    table = FileTable.open(Path(data), None, features=names, delimiter=written.delimiter or ",")
    features_in_parts(model, [str(name) for name in model.get_feature_names_out()], table, out)


@contextmanager
def _bar(verb: str, table: FileTable) -> Iterator[Any]:
    """A bar in rows, with the bytes so far; nothing where nobody looks."""
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    known = table.dataset.count_rows() if "parquet" in str(table.dataset.format.default_extname) else None
    with Progress(*columns, console=Console(stderr=True), transient=True) as progress:
        task, seen = progress.add_task(verb, total=known), 0

        def moved(part: str, rows: int, n_bytes: int) -> None:
            nonlocal seen
            seen += n_bytes
            progress.update(task, advance=rows, description=f"{verb} {part} ({seen / 2**20:.0f} MiB)")

        yield moved
