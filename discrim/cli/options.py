"""Options that several commands share, and their shell completion.

Options for reading a file are the fields of a dataclass.
"""

from __future__ import annotations

import csv
import gzip
import inspect
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, fields, is_dataclass
from importlib import import_module
from pathlib import Path
from typing import Annotated, Any, get_type_hints

import typer

from discrim.evaluation.preprocessing import IMPUTATIONS, SCALES
from discrim.evaluation.summary import METRICS
from discrim.tables import catalogue
from discrim.tables.table_error import MAX_BYTES

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
