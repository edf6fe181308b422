"""Command `discrim report`, and the report of `discrim compare`."""

from __future__ import annotations

import errno
import shlex
import sys
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer

from discrim.cli.exit_codes import require_apart, require_folder
from discrim.cli.options import FileFormat, Metric, Reading
from discrim.cli.screen import say
from discrim.cli.tables_by_name import arguments_of, data_name, is_file, labelled, readings_in_groups
from discrim.engines.table_files import is_large
from discrim.evaluation.comparison import Comparison, comparisons_in
from discrim.evaluation.run import lock_of
from discrim.evaluation.store import Store
from discrim.evaluation.summary import require_metric
from discrim.report.page import Origin, template_engine, write_report
from discrim.tables import catalogue
from discrim.tables.labelled_table import LabelledTable


def report(
    store: Annotated[Path, typer.Argument(metavar="STORE", help="A file that `discrim compare --store` wrote.")],
    reading: Reading,
    html: Annotated[Path, typer.Option("--html", help="File for the report.")] = Path("report.html"),
    data: Annotated[
        list[str] | None,
        typer.Option(
            "--data",
            "-d",
            metavar="DATA",
            help="The data, for pictures of the rows: a file or a name; may be repeated. Data sets that are known by "
            "name are found without it.",
        ),
    ] = None,
    metric: Metric = "auto",
) -> None:
    """Write stored results as one HTML page: the answer first, then the evidence.

    All data sets of the store are in one report, which also ranks the methods over them.

    Examples:

    - `discrim report results.sqlite --html report.html`

    - `discrim report flowers.sqlite --data flowers.csv --target species --html flowers.html`
    """
    require_metric(metric, also=("auto",))
    require_place(html)
    require_apart(
        {"the store": store, "the store's lock": lock_of(store)} | {f"the data {one}": one for one in data or ()},
        {"--html": html},
    )
    given = {data_name(one): one for one in data or ()}
    with Store(store, read_only=True) as kept:
        found = comparisons_in(kept.rows(), metric, _table_of(given, reading), kept.runs())
    if not found:
        raise ValueError(f"{store} has no results. Run discrim compare with --store {store} first.")
    unknown = given.keys() - {one.setting["data"] for one in found}
    if unknown:
        known = ", ".join(sorted({one.setting["data"] for one in found}))
        raise ValueError(f"{store} has no results on {', '.join(sorted(unknown))}. It has results on: {known}.")
    for one in found:
        if one.data is None:
            say(f"{one.label}: without pictures of the rows. {one.lacking}")
    only = given.get(found[0].setting["data"], "") if len(found) == 1 else ""
    write_html(found, html, origin_of(only, reading) if only else Origin(typed_command()))


def require_place(html: Path | None) -> None:
    """Raise at once if the report could not be written."""
    if html is None:
        return
    if html.is_dir():
        raise IsADirectoryError(errno.EISDIR, "A report is a file, not a folder", str(html))
    require_folder(html, "the report")
    template_engine()


def write_html(found: Comparison | Sequence[Comparison], path: Path, origin: Origin) -> None:
    """Write the report and print its path."""
    write_report(found, path, origin)
    say(f"The report is in {path}.")


def typed_command() -> str:
    """Return the command line as it was typed."""
    return shlex.join(["discrim", *sys.argv[1:]])


def origin_of(data: str, reading: Reading, groups: str | None = None) -> Origin:
    """Return how DATA is read, as options of the command line and as arguments in Python."""
    words = (*reading.words, *(("--groups", groups) if groups is not None else ()))
    origin = Origin(typed_command(), data, words, reading.new_rows.words)
    if not is_file(data) or is_large(Path(data)):
        return origin
    usual, usual_rows = arguments_of(Reading()), vars(FileFormat())
    table, of_groups = (
        {name: one for name, one in arguments_of(some).items() if name == "target" or one != usual[name]}
        for some in readings_in_groups(reading, groups)
    )
    new_rows = {name: one for name, one in vars(reading.new_rows).items() if one != usual_rows[name]}
    new_rows |= {"missing_cells": "keep"} if reading.impute is not None else {}
    return replace(origin, table=table, groups=None if groups is None else of_groups, features=new_rows)


def _table_of(given: dict[str, str], reading: Reading) -> Callable[[str], LabelledTable | None]:
    """Return a function that finds the table of a data set: as passed, or in the catalogue if it is available."""

    def table_of(name: str) -> LabelledTable | None:
        if name in given:
            return labelled(given[name], reading).for_evaluation()
        try:
            return catalogue.load(name, download=False).for_evaluation()
        except ValueError:
            return None

    return table_of
