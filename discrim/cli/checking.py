"""discrim check"""

from __future__ import annotations

import shlex
from typing import Any

from discrim.cli.options import Data, Reading
from discrim.cli.screen import out, print_list, say
from discrim.cli.tables_by_name import dialect_of, is_file
from discrim.evaluation.wording import rows_times
from discrim.tables import catalogue
from discrim.tables.facts import TableFacts
from discrim.tables.read import ARCHIVES, read_table
from discrim.tables.source import TableSource, unnamed_columns


def check(data: Data, reading: Reading) -> None:
    """Print what is noteworthy about a table, and the `compare` command that goes through. The file is not changed.

    Missing cells by column, text, identifier-like and constant columns, equal rows and rare classes, each with the
    options that settle it.

    Examples:

    - `discrim check flowers.csv --target species`

    - `discrim check parts/ -t kind`
    """
    facts = facts_of(data, reading)
    out.print(
        f"{data}: {rows_times(facts.n_rows, facts.n_features, 'feature')}, {len(facts.classes)} classes in "
        f"{facts.target!r}: {', '.join(f'{label} ({count})' for label, count in list(facts.classes.items())[:12])}"
        f"{', …' if len(facts.classes) > 12 else '.'}",
        soft_wrap=True,
    )
    for note in facts.notes:
        say(note)
    lines = facts.lines()
    if lines:
        out.print()
        print_list(("what", "where", "what settles it"), lines)
    else:
        out.print("Nothing stands out: the table can be compared as it is.")
    words = ["discrim", "compare", data, *reading.words]
    target = [] if reading.target is not None or not is_file(data) else ["--target", facts.target]
    out.print(f"\nThis command goes through:\n{shlex.join([*words, *target, *facts.settled_by])}", soft_wrap=True)


def facts_of(data: str, reading: Reading) -> TableFacts:
    """Return the facts about DATA as the options say that it is read; nothing is filled in or left out."""
    if not is_file(data):
        return TableFacts.of_table(catalogue.load(data))
    if data.lower().endswith(tuple(ARCHIVES)):
        given: dict[str, Any] = {"id_column": reading.id_column, "drop": reading.drop or ()}
        return TableFacts.of_table(read_table(data, reading.target, missing_cells="keep", **given))
    dialect, dropped = dialect_of(reading), list(reading.drop or ())
    kept = {reading.target, reading.id_column}
    found = () if reading.transpose else unnamed_columns(data, dialect)
    unnamed = tuple(name for name in found if name not in kept and name not in dropped)
    source = TableSource.open(
        data,
        reading.target,
        id_column=reading.id_column,
        drop=[*dropped, *unnamed],
        transpose=reading.transpose,
        dialect=dialect,
        max_bytes=reading.max_bytes,
    )
    return TableFacts.of_source(source, unnamed, reading.max_bytes)
