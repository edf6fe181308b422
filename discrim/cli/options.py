"""Options that several commands have; those that say how a file is read are the fields of a dataclass."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass, fields, is_dataclass
from pathlib import Path
from typing import Annotated, Any, get_type_hints

import typer

from discrim.data.preprocessing import SCALES

FILE, RUN = "The file", "The run"


def _file(*names: str, help: str) -> Any:
    return typer.Option(*names, help=help, rich_help_panel=FILE)


@dataclass(frozen=True)
class FileFormat:
    """How a file is written: what `discrim apply` can be told of it, and every other command too."""

    delimiter: Annotated[str | None, _file(help="What separates columns, where it is not found out.")] = None
    decimal: Annotated[str, _file(help="The decimal mark.")] = "."
    encoding: Annotated[str | None, _file(help="Encoding of the file, where it is not UTF-8.")] = None

    @property
    def words(self) -> tuple[str, ...]:
        """The options that say so on the command line, those that are as usual left out."""
        given = [(f"--{one.name.replace('_', '-')}", getattr(self, one.name), one.default) for one in fields(self)]
        return tuple(word for name, value, usual in given if value != usual for word in _words(name, value))


@dataclass(frozen=True)
class Reading(FileFormat):
    """How a labelled table is read from a file."""

    target: Annotated[
        str | None, typer.Option("--target", "-t", help="Column of the labels. [default: the last one]")
    ] = None
    one_hot: Annotated[bool, _file("--one-hot", help="Turn columns of text into one 0/1 column per value.")] = False
    drop: Annotated[list[str] | None, _file(help="A column to leave out; may be given more than once.")] = None


def _words(name: str, value: Any) -> list[str]:
    if value is True:
        return [name]
    return [word for one in (value if isinstance(value, list) else [value]) for word in (name, str(one))]


def with_options(command: Callable[..., None]) -> Callable[..., None]:
    """The command with an option for each field of its parameters that are dataclasses, such as `reading: Reading`."""
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
        help="A .csv or .tsv (also .gz), .parquet, .feather or .npz file, or a name from `discrim datasets`.",
    ),
]
Scale = Annotated[str, typer.Option(help=f"How columns are scaled first: {', '.join(SCALES)}.")]
Seed = Annotated[int, typer.Option(help="Of the splits and of random methods.", rich_help_panel=RUN)]
Jobs = Annotated[int, typer.Option("--jobs", "-j", help="Processes at once; -1 for one per core.", rich_help_panel=RUN)]
StorePath = Annotated[
    Path | None,
    typer.Option(
        "--store",
        help="File that keeps the results; run again, and only what is missing is done.",
        rich_help_panel=RUN,
    ),
]
RetryFailed = Annotated[
    bool, typer.Option("--retry-failed", help="Do failed trials of the store again.", rich_help_panel=RUN)
]
Wait = Annotated[float, typer.Option(help="Seconds to wait for another run on the same store.", rich_help_panel=RUN)]
