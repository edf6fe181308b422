"""Rows of results → what a page says of one data set. The rows suffice; the table, where at hand, adds the pictures."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple

import numpy as np

from discrim.data.labelled_table import LabelledTable
from discrim.evaluation.compare import Comparison
from discrim.evaluation.grid import Grid
from discrim.evaluation.protocol import Protocol, named_protocol
from discrim.evaluation.summary import Line, Row, lines_of
from discrim.evaluation.trial import SplitData, seed_of, split_data

RAW = "raw"
NO_DATA = (
    "A store keeps results, not the data. Give the data with --data FILE --target COLUMN to see how rows lie on the "
    "components."
)


class Setting(NamedTuple):
    """What the trials of one run have in common."""

    data: str
    digest: str
    protocol: str
    scale: str
    seed: int
    discrim: str

    @classmethod
    def of(cls, trial: Row) -> Setting:
        return cls(*(trial.get(name, "") for name in cls._fields))


class Note(NamedTuple):
    """Trials of one method that failed, were skipped or are doubtful for one reason."""

    status: str
    method: str
    trials: int
    reason: str


@dataclass(frozen=True, eq=False)
class Results:
    """The results on one data set by one protocol.

    table : the very table they were got from; None where it is not at hand, and `lacking` says why
    """

    setting: Setting
    rows: list[Row]
    metric: str = "accuracy"
    table: LabelledTable | None = None
    lacking: str = NO_DATA
    label: str = ""

    @classmethod
    def of(cls, found: Comparison) -> Results:
        setting = Setting.of(found.grid.trials[0])
        return cls(setting, list(found.rows), found.metric, found.grid.table, "", setting.data)

    @cached_property
    def lines(self) -> list[Line]:
        return lines_of(self.rows, self.metric)

    @property
    def best(self) -> Line | None:
        return next((line for line in self.lines if line.method != RAW), None)

    @property
    def n_methods(self) -> int:
        return len({line.method for line in self.lines} - {RAW})

    @cached_property
    def notes(self) -> list[Note]:
        """What failed, was skipped, or is doubtful; each reason once."""
        counted: Counter[tuple[str, str, str]] = Counter()
        for row in self.rows:
            if row["status"] != "ok" or row["reason"]:
                status = "doubtful" if row["status"] == "ok" else row["status"]
                counted[status, row["trial"]["method"], row["reason"]] += 1
        return [Note(status, method, count, why) for (status, method, why), count in sorted(counted.items())]

    @cached_property
    def sizes(self) -> dict[str, int]:
        """Rows, training rows, test rows, features, classes and splits, as far as the rows of results tell."""
        good = next((row for row in self.rows if row["status"] == "ok"), None)
        found = {"splits": len({row["trial"]["split"] for row in self.rows})}
        if good is not None:
            n_train, n_test = good["scores"]["n_train"], good["scores"]["n_test"]
            found |= {"rows": n_train + n_test, "train": n_train, "test": n_test}
            found["classes"] = len(good["scores"].get("actual", ()))
        features = {row["trial"]["k"] for row in self.rows if row["trial"]["method"] == RAW}
        return found | ({"features": max(features)} if features else {})

    @cached_property
    def versions(self) -> list[tuple[str, str]]:
        """Each library with the versions the results were got with."""
        seen: dict[str, set[str]] = defaultdict(set)
        for row in self.rows:
            for name, version in row.get("versions", {}).items():
                seen[name].add(version)
        return [(name, ", ".join(sorted(found))) for name, found in sorted(seen.items())]

    @cached_property
    def seconds(self) -> list[tuple[str, float, float]]:
        """Each method with the seconds of one fit on average, and of classifying in all."""
        fits = {line.method: line.seconds for line in self.lines}
        classified: dict[str, float] = defaultdict(float)
        for row in self.rows:
            classified[row["trial"]["method"]] += row["seconds"]
        return [(method, fits.get(method, np.nan), classified[method]) for method in sorted(classified)]

    def first_split(self) -> SplitData:
        """The rows of the first split, scaled as the trials saw them."""
        assert self.table is not None
        setting = self.setting
        grid = Grid(setting.data, self.table, (), protocol_of(setting.protocol), setting.scale, setting.seed)
        return split_data(grid.rows, self.table.y, *grid.splits[0], setting.scale, seed_of(setting.seed, 0))


def protocol_of(words: str) -> Protocol:
    """The protocol that a trial names, for its first split."""
    name, _, number = words.partition(" ")
    if "kfold" in name:
        return named_protocol(name, n_splits=int(number))
    return named_protocol(name, n_splits=1, per_class=int(number) if number else None)


def results_in(rows: Iterable[Row], metric: str, table_of: Callable[[str], LabelledTable | None]) -> list[Results]:
    """The runs in a store, one for each data set and protocol; `table_of` gives a data set's table, or None."""
    runs: dict[Setting, list[Row]] = defaultdict(list)
    for row in rows:
        runs[Setting.of(row["trial"])].append(row)
    found = [_with_table(Results(setting, of_run, metric), table_of) for setting, of_run in runs.items()]
    return [replace(one, label=label) for one, label in zip(found, _labels(list(runs)), strict=True)]


def _with_table(results: Results, table_of: Callable[[str], LabelledTable | None]) -> Results:
    table = table_of(results.setting.data)
    if table is None:
        return results
    if table.digest() != results.setting.digest:
        why = "The data at hand are not the very rows that these results were got from (another content, or order)."
        return replace(results, lacking=why)
    return replace(results, table=table, lacking="")


def _labels(settings: list[Setting]) -> list[str]:
    """The name of each data set, with what differs where it was tried in several ways."""
    labels = []
    for setting in settings:
        twins = [other for other in settings if other.data == setting.data]
        told = [
            f"{name} {str(getattr(setting, name))[:20]}"
            for name in ("protocol", "scale", "seed", "discrim", "digest")
            if len({getattr(twin, name) for twin in twins}) > 1
        ]
        labels.append(f"{setting.data} ({', '.join(told)})" if told else setting.data)
    return labels
