"""Argument DATA of the command line: a file, or the name of a data set in the catalogue."""

from __future__ import annotations

import errno
from collections.abc import Sequence
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import numpy as np

from discrim.cli.options import FileFormat, Reading
from discrim.cli.screen import say
from discrim.engines.table_files import is_large, sampled_rows
from discrim.tables import catalogue
from discrim.tables.cells import Dialect
from discrim.tables.labelled_table import LabelledTable
from discrim.tables.read import ARCHIVES, read_features, read_table
from discrim.tables.source import TableSource, open_parts
from discrim.tables.table_error import TableError, quoted


def is_file(data: str) -> bool:
    """Return True for an existing file or a name with a suffix or folder; any other is a name of the catalogue."""
    return bool(Path(data).suffix) or Path(data).name != data or Path(data).exists()


def data_name(data: str) -> str:
    """Return the name of the data in results: the file name without suffixes."""
    return Path(data).name.split(".")[0] or data if is_file(data) else data


def labelled(data: str, reading: Reading) -> LabelledTable:
    """Return the labelled table of DATA and print its notes."""
    if not is_file(data):
        if reading != Reading():
            raise ValueError(
                f"{' '.join(reading.words)} must not be used with {data!r}, a data set of the catalogue. Leave it out."
            )
        return catalogue.load(data)
    table = _read(data, reading)
    for note in table.notes:
        say(note)
    if reading.target is None:
        say(f"Labels: {table.target!r}, the last column. Name another with --target.")
    return table


def _read(data: str, reading: Reading) -> LabelledTable:
    return read_table(data, **arguments_of(reading))


def arguments_of(reading: Reading) -> dict[str, Any]:
    """Return the arguments of `read_table`."""
    given = vars(reading) | {"drop": reading.drop or (), "missing_cells": reading.missing_cells}
    return {name: one for name, one in given.items() if name not in ("impute", "drop_missing")}


def comes_in_parts(data: str, out: Path | None = None, *, needs_rows: bool = False) -> bool:
    """Return whether DATA is read in parts: if it is large, if its features become a folder, or if it is one.

    needs_rows : True if options are given that need all rows in memory
    """
    path = Path(data)
    is_file = out is not None and not out.is_dir() and (out.exists() or bool(out.suffix))
    several = path.is_dir() or path.suffix == ".npy"
    if out is None or not is_file:
        return is_large(path) or (several and not (out is None and needs_rows)) or (out is not None and path.is_file())
    if out.suffix and is_large(path):
        raise ValueError(
            f"--out must name a folder, because {data} is read in parts; got {out}. Name one without an ending: "
            f"--out {out.with_name(out.name.split('.')[0] or 'features')}."
        )
    if several and not out.suffix:
        message = f"the features of {data} become a folder of files, and this is a file"
        raise NotADirectoryError(errno.ENOTDIR, message, str(out))
    return False


def dialect_of(written: FileFormat) -> Dialect:
    """Return how the options say that files are written."""
    return Dialect(written.delimiter, written.encoding, written.header, written.decimal, written.thousands)


_IN_PARTS: dict[str, Any] = {"delimiter": None, "encoding": None, "header": None, "decimal": ".", "thousands": None}
_IN_PARTS |= {"id_column": None, "target": None, "drop": None, "max_bytes": Reading.max_bytes}


def options_of_rows(given: FileFormat) -> tuple[str, ...]:
    """Return the options that need all rows in memory."""
    known = {one.name for one in fields(given)}
    return replace(given, **{name: one for name, one in _IN_PARTS.items() if name in known}).words


def require_options_of_parts(data: str, given: FileFormat) -> None:
    """Raise if options are given that a table in parts does not take."""
    if others := options_of_rows(given):
        raise ValueError(
            f"{' '.join(others)} must be used with a table that fits into memory; {data} is read in parts. Leave it "
            "out, or name a file for --out, such as features.csv, if the table is smaller than 1 GiB."
        )


def files_by_name(data: str, reading: Reading) -> TableSource:
    """Return the table that is read in parts, and print its notes."""
    require_options_of_parts(data, reading)
    source = TableSource.open(
        data, reading.target, id_column=reading.id_column, drop=reading.drop or (), dialect=dialect_of(reading)
    )
    if reading.target is None:
        say(f"Labels: {source.target!r}, the last column. Name another with --target.")
    for note in source.notes:
        say(note)
    return source


def labelled_sample(data: str, reading: Reading, most: int) -> LabelledTable:
    """Return a sample of a table that is read in parts, each class in proportion, and print its size."""
    table = files_by_name(data, reading)
    X, y, n_rows = sampled_rows(table, most, reading.max_bytes)
    some = f"a sample of {len(y):,}, each class in proportion" if len(y) < n_rows else "all"
    say(f"{n_rows:,} rows in {data}; {some} are compared.")
    return LabelledTable(X, y, table.features, table.target or "", data, drawn_from=n_rows if len(y) < n_rows else None)


def labelled_in_groups(data: str, reading: Reading, groups: str | None) -> tuple[LabelledTable, np.ndarray | None]:
    """Return the labelled table and the group of each row, if a column of groups is named."""
    if groups is None:
        return labelled(data, reading), None
    if not is_file(data):
        raise ValueError(f"--groups must not be used with {data!r}, a data set of the catalogue. Leave it out.")
    rows, others = readings_in_groups(reading, groups)
    try:
        table = labelled(data, rows)
        return table, table.ids if others == rows else _read(data, others).ids
    except TableError as error:  # the column is read as ids or dropped, but the user typed --groups
        fact = error.fact.replace(f"{groups!r} (id)", f"{groups!r} (groups)")
        raise TableError(fact.replace(f"{groups!r} (drop)", f"{groups!r} (groups)"), *error.advice) from None


def readings_in_groups(reading: Reading, groups: str | None) -> tuple[Reading, Reading]:
    """Return the options for reading the table without the column of groups as a feature, and for the groups as ids."""
    ids, dropped = reading.id_column, reading.drop or []
    if groups is None or ids == groups:
        return reading, reading
    if ids is None:
        return (replace(reading, id_column=groups),) * 2
    return replace(reading, drop=[*dropped, groups]), replace(reading, id_column=groups, drop=[*dropped, ids])


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
    """Return the named features of new rows and their ids; `fills`: the model fills missing cells."""
    if is_file(data):
        return read_features(data, feature_names, **vars(written), missing_cells="keep" if fills else "error")
    table = catalogue.load(data)
    place = {name: at for at, name in enumerate(table.feature_names)}
    lacking = [name for name in feature_names if name not in place]
    if lacking:
        raise ValueError(f"{data} lacks {len(lacking)} of the model's columns, such as {lacking[0]!r}.")
    return table.X[:, [place[name] for name in feature_names]], None
