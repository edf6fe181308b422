"""DATA on the command line: a file, or the name of a data set in the catalogue."""

from __future__ import annotations

import errno
from collections.abc import Sequence
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import numpy as np

from discrim.cli.options import FileFormat, Reading
from discrim.cli.screen import say
from discrim.engines.table_files import is_read_in_parts, sampled_rows
from discrim.tables import catalogue
from discrim.tables.cells import CellFormat
from discrim.tables.delimited import Dialect
from discrim.tables.labelled_table import LabelledTable
from discrim.tables.read import ARCHIVES, TableError, read_features, read_table
from discrim.tables.source import TableSource, open_parts
from discrim.tables.table_error import quoted


def is_file(data: str) -> bool:
    """A name with an ending or a folder in it, or one that is there, is a file; any other a name of the catalogue."""
    return bool(Path(data).suffix) or Path(data).name != data or Path(data).exists()


def data_name(data: str) -> str:
    """What results call the data: the file's name without its endings."""
    return Path(data).name.split(".")[0] or data if is_file(data) else data


def labelled(data: str, reading: Reading) -> LabelledTable:
    """The labelled table that DATA stands for; what should be known of it is said."""
    if not is_file(data):
        if reading != Reading():
            raise ValueError(
                f"{data!r} is a data set of the catalogue and is read as it is. Leave out {' '.join(reading.words)}."
            )
        return catalogue.load(data)
    table = _read(data, reading)
    for note in table.notes:
        say(note)
    if reading.target is None:
        say(f"Labels: {table.target!r}, the last column. Name another with --target.")
    return table


def _read(data: str, reading: Reading) -> LabelledTable:
    options = vars(reading) | {"drop": reading.drop or (), "missing_cells": reading.missing_cells}
    return read_table(data, **{name: one for name, one in options.items() if name not in ("impute", "drop_missing")})


def comes_in_parts(data: str, out: Path | None = None) -> bool:
    """Whether DATA is read in parts, as it is one of those tables or its features are to become a folder."""
    taken = out is not None and out.exists() and not out.is_dir()
    to_folder = out is not None and not taken and (out.is_dir() or not out.suffix)
    if not is_read_in_parts(Path(data)):
        return to_folder and Path(data).is_file()
    if taken:
        told = f"the features of {data} become a folder of files, and this is a file"
        raise NotADirectoryError(errno.ENOTDIR, told, str(out))
    if out is not None and not to_folder:
        raise ValueError(
            f"{data} is read in parts, and its features become a folder of Parquet files. Name a folder, without an "
            f"ending: --out {out.with_name(out.name.split('.')[0] or 'features')}."
        )
    return True


def dialect_of(written: FileFormat) -> Dialect:
    """Return how the options say that files are written."""
    return Dialect(written.delimiter, written.encoding, written.header, CellFormat(written.decimal, written.thousands))


def require_options_of_parts(data: str, given: FileFormat) -> None:
    """Raise if options are given that a table in parts does not take."""
    taken: dict[str, Any] = {"delimiter": None, "encoding": None, "header": None, "decimal": ".", "thousands": None}
    taken |= {"target": None, "drop": None, "max_bytes": Reading.max_bytes}
    known = {one.name for one in fields(given)}
    if others := replace(given, **{name: one for name, one in taken.items() if name in known}).words:
        words = ", ".join(f"--{name.replace('_', '-')}" for name in taken if name in known)
        raise ValueError(
            f"{data} is read in parts, with {words} only. Leave out {' '.join(others)}, or pass a file that fits into "
            "memory."
        )


def files_by_name(data: str, reading: Reading) -> TableSource:
    """Return the table that is read in parts, and print its notes."""
    require_options_of_parts(data, reading)
    source = TableSource.open(data, reading.target, drop=reading.drop or (), dialect=dialect_of(reading))
    if reading.target is None:
        say(f"Labels: {source.target!r}, the last column. Name another with --target.")
    for note in source.notes:
        say(note)
    return source


def labelled_sample(data: str, reading: Reading, most: int) -> LabelledTable:
    """Some rows of a table that is read in parts, each class in its proportion; how many of how many is said."""
    table = files_by_name(data, reading)
    X, y, n_rows = sampled_rows(table, most, reading.max_bytes)
    some = f"{len(y):,} of them, each class in its proportion" if len(y) < n_rows else "all of them"
    say(f"{n_rows:,} rows in {data}: compared are {some}.")
    return LabelledTable(X, y, table.features, table.target or "", data, drawn_from=n_rows if len(y) < n_rows else None)


def labelled_in_groups(data: str, reading: Reading, groups: str | None) -> tuple[LabelledTable, np.ndarray | None]:
    """The labelled table, and the group of each row where a column of groups is named; it is never a feature."""
    if groups is None:
        return labelled(data, reading), None
    if not is_file(data):
        raise ValueError(f"{data!r} is a data set of the catalogue and has no groups. Leave out --groups.")
    try:
        table = labelled(data, without_groups(reading, groups))
        if reading.id_column in (None, groups):
            return table, table.ids
        dropped = [*(reading.drop or []), reading.id_column]
        return table, _read(data, replace(reading, id_column=groups, drop=dropped)).ids
    except TableError as error:  # read as ids are, or dropped, but that is not what was typed
        fact = error.fact.replace(f"{groups!r} (id)", f"{groups!r} (groups)")
        raise TableError(fact.replace(f"{groups!r} (drop)", f"{groups!r} (groups)"), *error.advice) from None


def without_groups(reading: Reading, groups: str | None) -> Reading:
    """Return how to read the table so that the column of groups is no feature."""
    if groups in (None, reading.id_column):
        return reading
    if reading.id_column is None:
        return replace(reading, id_column=groups)
    return replace(reading, drop=[*(reading.drop or []), groups])


def note_unused(data: str, feature_names: Sequence[str], written: FileFormat) -> None:
    """Print which columns of new rows the model does not use."""
    if not is_file(data) or written.transpose or Path(data).suffix.lower() in ARCHIVES:
        return
    known = {written.id_column, *(name for feature in feature_names for name in (feature, feature.split("=")[0]))}
    if unused := [name for name in open_parts(data, dialect_of(written), alone=True)[1][0].names if name not in known]:
        say(f"Columns that the model does not use are ignored: {quoted(unused)}.")


def features_of(
    data: str, feature_names: list[str], written: FileFormat, *, fills: bool = False
) -> tuple[Any, np.ndarray | None]:
    """The named features of new rows, and their ids; `fills`: the model fills missing cells."""
    if is_file(data):
        return read_features(data, feature_names, **vars(written), missing_cells="keep" if fills else "error")
    table = catalogue.load(data)
    place = {name: at for at, name in enumerate(table.feature_names)}
    lacking = [name for name in feature_names if name not in place]
    if lacking:
        raise ValueError(f"{data} lacks {len(lacking)} of the model's columns, such as {lacking[0]!r}.")
    return table.X[:, [place[name] for name in feature_names]], None
