"""Rows of results → what a page says of one data set. The rows suffice; the table, where at hand, adds the pictures."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from discrim.data.labelled_table import LabelledTable
from discrim.evaluation.canonical import trial_key
from discrim.evaluation.comparison import Comparison, remarks_of
from discrim.evaluation.grid import Grid, unpacked
from discrim.evaluation.methods import METHODS, Method
from discrim.evaluation.paper_conventions import PAPER_METHODS
from discrim.evaluation.permutation import PermutationTest
from discrim.evaluation.protocol import protocol_of
from discrim.evaluation.summary import Line, Row, lines_of
from discrim.evaluation.trial import SplitData, seed_of, split_data
from discrim.evaluation.verdict import Verdict, metric_for, verdict_of

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
    protocol_size: int | None = None
    scale: str = "standard"
    impute: str = ""
    seed: int = 0
    discrim: str = ""
    groups: str = ""
    weights: str = ""

    @classmethod
    def of(cls, trial: Row) -> Setting:
        return cls(*(trial.get(name, cls._field_defaults.get(name, "")) for name in cls._fields))

    @property
    def run_key(self) -> str:
        """The key under which a store keeps what its trials have in common."""
        return trial_key(self._asdict())


class Note(NamedTuple):
    """Trials of one method that failed, were skipped or are doubtful for one reason."""

    status: str
    method: str
    trials: int
    reason: str


@dataclass(frozen=True, eq=False)
class Results:
    """The results on one data set by one protocol: all that a page may show of them.

    Attributes
    ----------
    setting : Setting
        What the trials have in common.
    rows : list of dict
        The rows of results.
    metric : str
        The score that decides.
    table : LabelledTable or None
        The very rows that were compared (a sample of the data's, where one was drawn); None where not at hand.
    lacking : str
        Why there is no table.
    label : str
        What the data are called on a page.
    about : dict or None
        What was kept of the run: classes, labels, groups, how many splits were asked for (`Grid.about`).
    methods : mapping of str to Method
        What the names of the methods stand for.
    permutations : PermutationTest or None
        Whether the recommended pipeline's score is more than chance; a store does not keep it.
    verdict : Verdict or None
        The answer: what is recommended, its honest score and how that was found, what had the highest score, the
        comparisons with raw features and PCA, the majority class, recall by class, the confusion matrix of held-out
        rows. None where no reduction has results.
    remarks : tuple of str
        On which rows and by which score it was found, and what of the run was not finished.
    """

    setting: Setting
    rows: list[Row]
    metric: str = "accuracy"
    table: LabelledTable | None = None
    lacking: str = NO_DATA
    label: str = ""
    about: Mapping[str, Any] | None = None
    methods: Mapping[str, Method] = field(default_factory=lambda: METHODS | PAPER_METHODS)
    permutations: PermutationTest | None = None

    @classmethod
    def of(cls, found: Comparison) -> Results:
        grid = found.grid
        setting = Setting.of(grid.trials[0])
        parts = grid.table, "", setting.data, grid.about, grid.methods, found.permutations
        return cls(setting, list(found.rows), found.metric, *parts)

    @cached_property
    def lines(self) -> list[Line]:
        return lines_of(self.rows, self.metric)

    @property
    def best(self) -> Line | None:
        return next((line for line in self.lines if line.method != RAW), None)

    @cached_property
    def verdict(self) -> Verdict | None:
        nonlinear = [name for name, method in self.methods.items() if not method.linear]
        return verdict_of(self.rows, self.metric, self.about, nonlinear)

    @cached_property
    def remarks(self) -> tuple[str, ...]:
        said = remarks_of(self.rows, self.about, self.metric)
        return said if self.permutations is None else (*said, str(self.permutations))

    @property
    def n_methods(self) -> int:
        return len({line.method for line in self.lines} - {RAW})

    @cached_property
    def notes(self) -> list[Note]:
        """What failed, was skipped, or is doubtful; each reason once."""
        counted: Counter[tuple[str, str, str]] = Counter()
        for row in self.rows:
            reasons = [(row["status"], row["reason"])] if row["status"] != "ok" else []
            reasons += [("doubtful", note) for note in row.get("notes", ())]
            counted.update((status, row["trial"]["method"], reason) for status, reason in reasons)
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

    @cached_property
    def grid(self) -> Grid:
        """The table with the first of the splits, as the trials had them."""
        assert self.table is not None
        setting, about = self.setting, self.about
        groups = None if about is None or about["groups"] is None else unpacked(about["groups"])
        weights = None if about is None or about.get("weights") is None else np.array(about["weights"])
        protocol = protocol_of(setting.protocol, setting.protocol_size, 1, groups)
        return Grid(
            setting.data,
            self.table,
            (),
            protocol,
            setting.scale,
            setting.seed,
            impute=setting.impute or None,
            sample_weight=weights,
        )

    def first_split(self) -> SplitData:
        """The rows of the first split, as the trials saw them."""
        grid = self.grid
        seed = seed_of(grid.seed, 0)
        return split_data(grid.rows, grid.table.y, grid.splits[0], grid.steps, seed, grid.sample_weight)


def results_in(
    rows: Iterable[Row],
    metric: str,
    table_of: Callable[[str], LabelledTable | None],
    runs: Mapping[str, Mapping[str, Any]] | None = None,
) -> list[Results]:
    """The runs in a store, one for each data set and protocol.

    table_of : gives a data set's table, or None
    runs : what the store keeps of every run (`Store.runs`)
    """
    of_run: dict[Setting, list[Row]] = defaultdict(list)
    for row in rows:
        of_run[Setting.of(row["trial"])].append(row)
    found = []
    for (setting, its_rows), label in zip(of_run.items(), _labels(list(of_run)), strict=True):
        about = (runs or {}).get(setting.run_key)
        counts = Counter(unpacked(about["codes"]).tolist()) if about is not None else {}
        decides = metric_for(counts, metric) if counts else "accuracy" if metric == "auto" else metric
        one = Results(setting, its_rows, decides, label=label, about=about)
        found.append(_with_table(one, table_of))
    return found


def _with_table(results: Results, table_of: Callable[[str], LabelledTable | None]) -> Results:
    table = table_of(results.setting.data)
    if table is None:
        return results
    about = results.about
    if about is not None and about["sample"] is not None and about["n_rows"] == table.n_samples:
        table = table.take(unpacked(about["sample"]))
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
            for name in (
                "protocol",
                "protocol_size",
                "scale",
                "impute",
                "seed",
                "discrim",
                "groups",
                "weights",
                "digest",
            )
            if len({getattr(twin, name) for twin in twins}) > 1
        ]
        labels.append(f"{setting.data} ({', '.join(told)})" if told else setting.data)
    return labels
