"""Argument DATA of the command line, the options that several commands share, and their shell completion.

Options for reading a file are the fields of a dataclass.
"""

from __future__ import annotations

import csv
import errno
import gzip
import inspect
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, fields, is_dataclass, replace
from importlib import import_module
from pathlib import Path
from typing import Annotated, Any, get_type_hints

import numpy as np
import typer

from discrim.cli.screen import say
from discrim.engines.table_files import is_large, sampled_rows
from discrim.evaluation.classifiers import IMPUTATIONS, SCALES
from discrim.evaluation.summary import METRICS
from discrim.tables import catalogue
from discrim.tables.cells import Dialect
from discrim.tables.labelled_table import LabelledTable
from discrim.tables.read import ARCHIVES, read_features, read_table
from discrim.tables.source import TableSource, open_parts
from discrim.tables.table_error import MAX_BYTES, TableError, quoted

ENDINGS = (".csv", ".tsv", ".csv.gz", ".tsv.gz", ".parquet", ".feather", ".npz", ".npy", ".h5ad", ".xlsx")


def names_and_files(incomplete: str) -> list[str]:
    """Return the data sets of the catalogue, the files and the folders whose names begin with `incomplete`."""
    folder = Path(incomplete).parent if "/" in incomplete else Path()
    found = [path for path in sorted(folder.iterdir()) if path.is_dir() or path.name.endswith(ENDINGS)]
    files = [f"{path}/" if path.is_dir() else str(path) for path in found]
    names = [one.name for one in catalogue.entries()]
    return [word for word in (*files, *names) if word.startswith(incomplete)]


def columns_of_data(ctx: typer.Context, incomplete: str) -> list[str]:
    """Return the columns of the file named before; none if it cannot be read."""
    with suppress(Exception):  # the shell cannot show an error while it completes
        return [name for name in _columns(Path(str(ctx.params["data"]))) if name.startswith(incomplete)]
    return []


def _columns(path: Path) -> list[str]:
    if path.suffix in (".parquet", ".feather"):
        return list(import_module("pyarrow.dataset").dataset(path, format=path.suffix[1:]).schema.names)
    with gzip.open(path, "rt", encoding="utf-8") if path.suffix == ".gz" else path.open(encoding="utf-8") as handle:
        first = handle.readline()
    delimiter = max(",;\t", key=first.count)
    return next(csv.reader([first], delimiter=delimiter))


FILE, RUN = "The file", "The run"


def _file(*names: str, help: str) -> Any:
    return typer.Option(*names, help=help, rich_help_panel=FILE)


@dataclass(frozen=True)
class FileFormat:
    """Format of a file: the options that every command accepts, `discrim apply` included."""

    id_column: Annotated[
        str | None, _file("--id", help="Column that identifies rows: copied to the output, never a feature.")
    ] = None
    transpose: Annotated[
        bool, _file("--transpose", help="Read a file with features in rows and samples in columns.")
    ] = False
    header: Annotated[
        bool | None,
        _file("--header/--no-header", help="Line 1 holds column names, or is a row of data. [default: detected]"),
    ] = None
    delimiter: Annotated[str | None, _file(help="Character between columns. [default: detected]")] = None
    decimal: Annotated[str, _file(help="Decimal mark.")] = "."
    thousands: Annotated[str | None, _file(help="Character between groups of three digits.")] = None
    encoding: Annotated[str | None, _file(help="Encoding of the file. [default: UTF-8]")] = None
    max_bytes: Annotated[int, _file(help="Memory limit for the table or its statistics.")] = MAX_BYTES

    @property
    def words(self) -> tuple[str, ...]:
        """Return the command-line options that differ from their defaults."""
        words: list[str] = []
        for one in fields(self):
            value = getattr(self, one.name)
            if value != one.default:
                words += _words("--id" if one.name == "id_column" else f"--{one.name.replace('_', '-')}", value)
        return tuple(words)


@dataclass(frozen=True)
class Reading(FileFormat):
    """Options for reading a labelled table from a file."""

    target: Annotated[
        str | None,
        typer.Option(
            "--target",
            "-t",
            help="Column of the class labels. [default: the last column]",
            autocompletion=columns_of_data,
        ),
    ] = None
    one_hot: Annotated[bool, _file("--one-hot", help="Encode each text column as one 0/1 column per value.")] = False
    drop: Annotated[list[str] | None, _file(help="Columns to leave out, separated by commas; may be repeated.")] = None
    impute: Annotated[
        str | None, _file(help=f"Fill missing cells from the training rows: {', '.join(IMPUTATIONS)}.")
    ] = None
    drop_missing: Annotated[bool, _file("--drop-missing", help="Leave out rows with missing cells.")] = False
    min_class_size: Annotated[int, _file(help="Leave out classes with fewer rows than this.")] = 1

    @property
    def new_rows(self) -> FileFormat:
        """Return the format of a file of new rows that is written like this one."""
        return FileFormat(**{one.name: getattr(self, one.name) for one in fields(FileFormat)})

    @property
    def missing_cells(self) -> str:
        """Return how missing cells are handled when the file is read."""
        if self.impute is not None and self.drop_missing:
            raise ValueError("--impute and --drop-missing must not be used together. Choose one of them.")
        return "keep" if self.impute is not None else "drop" if self.drop_missing else "error"


def _words(name: str, value: Any) -> list[str]:
    if isinstance(value, bool):
        return [name if value else name.replace("--", "--no-", 1)]
    return [word for one in (value if isinstance(value, list) else [value]) for word in (name, str(one))]


def with_options(command: Callable[..., None]) -> Callable[..., None]:
    """Return the command with an option for each field of its dataclass parameters, such as `reading: Reading`."""
    hints = get_type_hints(command, include_extras=True)
    groups: dict[str, Any] = {name: kind for name, kind in hints.items() if is_dataclass(kind)}
    parameters = []
    for name, parameter in inspect.signature(command).parameters.items():
        options = fields(groups[name]) if name in groups else [parameter]
        kinds = get_type_hints(groups[name], include_extras=True) if name in groups else hints
        parameters += [
            inspect.Parameter(one.name, inspect.Parameter.KEYWORD_ONLY, default=one.default, annotation=kinds[one.name])
            for one in options
        ]

    def expanded(**given: Any) -> None:
        for name, kind in groups.items():
            given[name] = kind(**{one.name: given.pop(one.name) for one in fields(kind)})
        command(**given)

    expanded.__name__, expanded.__doc__, expanded.__module__ = command.__name__, command.__doc__, command.__module__
    expanded.__annotations__ = {one.name: one.annotation for one in parameters}
    vars(expanded)["__signature__"] = inspect.Signature(parameters)
    return expanded


Data = Annotated[
    str,
    typer.Argument(
        metavar="DATA",
        autocompletion=names_and_files,
        help="A .csv, .tsv (also .gz), .parquet, .feather, .xlsx, .npz, .npy or .h5ad file, a folder of files, or a "
        "name from `discrim datasets`.",
    ),
]
Scale = Annotated[str, typer.Option(help=f"Scaling of the columns before the reduction: {', '.join(SCALES)}.")]
Groups = Annotated[
    str | None,
    typer.Option(
        help="Column of groups (patients, batches): not a feature, and never divided by splits or cross-validation.",
        autocompletion=columns_of_data,
    ),
]
Metric = Annotated[
    str,
    typer.Option(
        help=f"Score: {', '.join(METRICS)}; `auto` is accuracy, or balanced accuracy if one class has over 60 % of the "
        "rows."
    ),
]
Html = Annotated[Path | None, typer.Option("--html", help="File for the HTML report.")]
Jobs = Annotated[int, typer.Option("--jobs", "-j", help="Number of processes; -1: one per core.", rich_help_panel=RUN)]
StorePath = Annotated[
    Path | None,
    typer.Option(
        "--store",
        help="File for the results of finished trials. The same command again computes only the missing ones.",
        rich_help_panel=RUN,
    ),
]


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
    table = read_table(data, **arguments_of(reading))
    for note in table.notes:
        say(note)
    if reading.target is None:
        say(f"Labels: {table.target!r}, the last column. Name another with --target.")
    return table


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
        return table, table.ids if others == rows else read_table(data, **arguments_of(others)).ids
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
