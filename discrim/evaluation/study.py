"""Studies of the papers as files a reader can open: protocol, conventions, and the printed figures cell by cell.

The files are in the folder `studies` beside this one. A table of a study is a data set with cells

    [method, K, classifier, printed, its deviation, reference, its deviation]

in the paper's own names; the study says which of our methods and classifiers these are. K = 0 is all features.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from discrim.data.labelled_table import LabelledTable
from discrim.evaluation.methods import named

_FOLDER = Path(__file__).with_name("studies")


@dataclass(frozen=True)
class PrintedCell:
    """One figure of a paper's table."""

    method: str
    k: int
    classifier: str
    printed: float
    printed_deviation: float
    reference: float
    reference_deviation: float


@dataclass(frozen=True)
class PrintedTable:
    """The cells of a table that share a data set and a measure."""

    name: str
    dataset: str
    measure: str
    splits: int
    prepare: str
    cells: tuple[PrintedCell, ...]
    classes: tuple[str, ...] = ()
    initial: str = ""  # for t: the classifier that the others are compared with
    classifiers: Mapping[str, str] = field(default_factory=dict)  # where they are not those of the study


@dataclass(frozen=True)
class Names:
    """What the paper's names stand for."""

    methods: Mapping[str, str]
    classifiers: Mapping[str, str]


@dataclass(frozen=True)
class Study:
    """A paper's experiments. `honest`: the same, used as they should be; `claims` are compared with `baseline`."""

    name: str
    title: str
    by: str
    protocol: str
    draws: int
    tolerance: float
    names: Names
    honest: Names | None
    baseline: str
    claims: tuple[str, ...]
    tables: tuple[PrintedTable, ...] = field(repr=False)

    def names_in(self, table: PrintedTable) -> Names:
        """What the paper's names stand for in this table."""
        return replace(self.names, classifiers={**self.names.classifiers, **table.classifiers})

    def part(self, table: str | None, dataset: str | None) -> Study:
        """The study with that table or data set only."""
        chosen = tuple(
            one
            for one in self.tables
            if (table is None or one.name.lower() == table.lower()) and (dataset is None or one.dataset == dataset)
        )
        if not chosen:
            there = ", ".join(dict.fromkeys(f"{one.name} ({one.dataset})" for one in self.tables))
            raise ValueError(f"{self.name} has no such table or data set. There are the tables {there}.")
        return replace(self, tables=chosen)


def study_names() -> list[str]:
    return sorted(path.stem.replace("_", "-") for path in _FOLDER.glob("*.toml"))


def study(name: str) -> Study:
    """The study of that name."""
    named(name, dict.fromkeys(study_names()), "study")
    listed = tomllib.loads((_FOLDER / f"{name.replace('-', '_')}.toml").read_text(encoding="utf-8"))
    honest = listed.get("honest")
    return Study(
        name=name,
        title=listed["title"],
        by=listed["by"],
        protocol=listed["protocol"],
        draws=listed.get("draws", 1),
        tolerance=listed.get("tolerance", np.inf),
        names=Names(listed["methods"], listed["classifiers"]),
        honest=None if honest is None else Names(honest["methods"], honest["classifiers"]),
        baseline=listed.get("baseline", ""),
        claims=tuple(listed.get("claims", ())),
        tables=tuple(_table(one, listed) for one in listed["tables"]),
    )


def _table(one: dict[str, Any], listed: dict[str, Any]) -> PrintedTable:
    return PrintedTable(
        name=one["name"],
        dataset=one["dataset"],
        measure=one.get("measure", listed["measure"]),
        splits=one.get("splits", listed["splits"]),
        prepare=one.get("prepare", listed.get("prepare", "")),
        cells=tuple(PrintedCell(*cell) for cell in one["cells"]),
        classes=tuple(one.get("classes", ())),
        initial=one.get("initial", ""),
        classifiers=one.get("classifiers", {}),
    )


# ---------------------------------------------------------------------- what is done to the rows before any split


def prepared(table: LabelledTable, printed: PrintedTable) -> LabelledTable:
    """The table as the paper's experiment has it."""
    if printed.classes:
        kept = np.isin(table.y, printed.classes)
        table = replace(table, X=table.X[kept], y=table.y[kept])
    return table if not printed.prepare else named(printed.prepare, PREPARATIONS, "preparation")(table)


def standardised_to_smaller_class(table: LabelledTable) -> LabelledTable:
    """Mean 0 and variance 1 in the smaller class; columns constant there are left out."""
    counts = table.class_counts()
    smaller = table.X[table.y == min(counts, key=lambda label: counts[label])]
    deviations = smaller.std(axis=0)
    kept = deviations > 1e-10 * np.abs(smaller).max(axis=0)
    X = (table.X[:, kept] - smaller[:, kept].mean(axis=0)) / deviations[kept]
    return replace(table, X=X, feature_names=tuple(np.array(table.feature_names)[kept].tolist()))


def rows_standardised(table: LabelledTable) -> LabelledTable:
    """Mean 0 and variance 1 in each row, which is usual for microarrays; no row learns from another."""
    centred = table.X - table.X.mean(axis=1, keepdims=True)
    return replace(table, X=centred / centred.std(axis=1, keepdims=True))


PREPARATIONS = {
    "standardised-to-smaller-class": standardised_to_smaller_class,
    "rows-standardised": rows_standardised,
}
