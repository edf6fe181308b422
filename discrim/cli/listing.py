"""Commands `discrim check`, `discrim methods` and `discrim datasets`."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from discrim.cli.options import Data, Reading, dialect_of, is_file
from discrim.cli.screen import in_lines, out, print_list, say
from discrim.evaluation.classifiers import CLASSIFIERS, DEFAULT_CLASSIFIERS
from discrim.evaluation.methods import DEFAULT_METHODS, METHODS
from discrim.evaluation.wording import rows_times, wrapped
from discrim.tables import catalogue
from discrim.tables.facts import TableFacts
from discrim.tables.read import ARCHIVES, read_table
from discrim.tables.source import TableSource, unnamed_columns
from discrim.tables.table_error import plural


def check(data: Data, reading: Reading) -> None:
    """List problems of a table, and print the `compare` command that works, or why none does. The file is not changed.

    Lists missing cells by column, text columns, texts that few rows share (patients), identifiers, constant columns,
    equal rows and rare classes, each with the options that solve it.

    Examples:

    - `discrim check flowers.csv --target species`

    - `discrim check parts/ -t kind`
    """
    facts, reading = _with_decimal_commas(data, reading, facts_of(data, reading))
    n_classes = f"{len(facts.classes)} {'class' if len(facts.classes) == 1 else 'classes'}"
    size = f"{rows_times(facts.n_rows, facts.n_features, 'feature')}, {n_classes} in {facts.target!r}"
    out.print(wrapped(f"{data}: {size}: {_listed(facts.classes)}"), soft_wrap=True)
    if reading.drop_missing:
        n_left, left = sum(facts.complete.values()), _listed(facts.complete)
        out.print(wrapped(f"--drop-missing leaves {plural(n_left, 'row')}: {left}"), soft_wrap=True)
    for note in facts.notes:
        say(note)
    lines = facts.lines(drop_missing=reading.drop_missing)
    if lines:
        out.print()
        print_list(("problem", "where", "options"), lines)
    settled_by, obstacle = facts.settle(
        impute=reading.impute, drop_missing=reading.drop_missing, min_class_size=reading.min_class_size
    )
    if obstacle:
        out.print("\n" + wrapped(f"No compare command is possible: {obstacle}."), soft_wrap=True)
        return
    if not lines:
        out.print("No problems: the table can be compared as it is.")
    words = ["discrim", "compare", data, *reading.words]
    target = [] if reading.target is not None or not is_file(data) else ["--target", facts.target]
    out.print(f"\nThis command works:\n{in_lines(shlex.join([*words, *target, *settled_by]))}", soft_wrap=True)


def _listed(classes: Mapping[Any, int]) -> str:
    counts = [f"{label} ({count})" for label, count in classes.items()]
    return f"{', '.join(counts[:12])}{', …' if len(counts) > 12 else '.'}"


def _with_decimal_commas(data: str, reading: Reading, facts: TableFacts) -> tuple[TableFacts, Reading]:
    """Return facts and options of a table with decimal commas, if reading it so turns no other column into text."""
    if not facts.comma_numbers or (reading.decimal, reading.thousands) != (".", None):
        return replace(facts, comma_numbers=()), reading
    in_commas = replace(reading, decimal=",", thousands=facts.thousands)
    again = facts_of(data, in_commas)
    before, after = ({*one.text, *one.stray, *one.identifiers} for one in (facts, again))
    if again.comma_numbers or not after <= before:
        return replace(facts, comma_numbers=()), reading
    return replace(again, comma_numbers=facts.comma_numbers, thousands=facts.thousands), in_commas


def facts_of(data: str, reading: Reading) -> TableFacts:
    """Return the facts about the table, read with the given options; no cell is filled and no row is left out."""
    if not is_file(data):
        return TableFacts.from_table(catalogue.load(data))
    if data.lower().endswith(tuple(ARCHIVES)):
        given: dict[str, Any] = {"id_column": reading.id_column, "drop": reading.drop or ()}
        return TableFacts.from_table(read_table(data, reading.target, missing_cells="keep", **given))
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
    return TableFacts.from_source(source, unnamed, reading.max_bytes)


_PLACES = {"scikit-learn": "scikit-learn", "folder": "DISCRIM_DATA", "cache": "cache", "openml": "download"}


def methods() -> None:
    """List the reductions and the classifiers that judge them. A star marks the defaults.

    Example:

    - `discrim methods`
    """
    print_list(
        ("method", "", "description", "source"),
        (
            (
                method.name,
                "*" if method.name in DEFAULT_METHODS else "",
                f"{method.gloss} ({method.note})" if method.note else method.gloss,
                "discrim" if method.ours else "scikit-learn" if method.build else "",
            )
            for method in METHODS.values()
        ),
    )
    out.print()
    print_list(
        ("classifier", "", "description"),
        (
            (classifier.name, "*" if classifier.name in DEFAULT_CLASSIFIERS else "", classifier.gloss)
            for classifier in CLASSIFIERS.values()
        ),
    )


def datasets() -> None:
    """List the data sets that are known by name, and where each is found.

    Places are scikit-learn, the folder DISCRIM_DATA, the cache, and OpenML (downloaded at first use).

    Examples:

    - `discrim datasets`

    - `DISCRIM_DATA=~/data discrim compare leukemia`
    """
    kinds = [*_PLACES, "absent"]  # those that can be used at once are first
    print_list(
        ("name", "rows", "features", "classes", "where", "description; source"),
        (
            (
                ", ".join((one.name, *one.aliases)),
                *(str(count or "") for count in (one.n_samples, one.n_features, len(one.classes))),
                _PLACES.get(catalogue.where(one.name).kind, "–"),
                f"{one.title}; {one.origin}",
            )
            for one in sorted(catalogue.entries(), key=lambda one: kinds.index(catalogue.where(one.name).kind))
        ),
    )
    out.print(
        "\n– : not on this machine. Save it as NAME.csv.gz, with the labels in the last column, in the folder "
        "that the\nenvironment variable DISCRIM_DATA names.",
        style="dim",
    )
