"""Options that several commands have."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from discrim.data.scaling import SCALES

FILE, RUN = "The file", "The run"

Data = Annotated[
    str,
    typer.Argument(
        metavar="DATA",
        help="A .csv or .tsv (also .gz), .parquet, .feather or .npz file, or a name from `discrim datasets`.",
    ),
]
Target = Annotated[str | None, typer.Option("--target", "-t", help="Column of the labels. [default: the last one]")]
Scale = Annotated[str, typer.Option(help=f"How columns are scaled first: {', '.join(SCALES)}.")]
OneHot = Annotated[
    bool, typer.Option("--one-hot", help="Turn columns of text into one 0/1 column per value.", rich_help_panel=FILE)
]
Drop = Annotated[
    list[str] | None, typer.Option(help="A column to leave out; may be given more than once.", rich_help_panel=FILE)
]
Delimiter = Annotated[
    str | None, typer.Option(help="What separates columns, where it is not found out.", rich_help_panel=FILE)
]
Decimal = Annotated[str, typer.Option(help="The decimal mark.", rich_help_panel=FILE)]
Encoding = Annotated[
    str | None, typer.Option(help="Encoding of the file, where it is not UTF-8.", rich_help_panel=FILE)
]
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
