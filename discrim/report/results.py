"""Rows of results → what a page says of one data set. The rows suffice; the table, where at hand, adds the pictures."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

from discrim.evaluation.comparison import JudgedRun
from discrim.evaluation.grid import Grid
from discrim.evaluation.methods import METHODS, Method
from discrim.evaluation.permutation import PermutationTest
from discrim.evaluation.protocol import protocol_of
from discrim.evaluation.results import Result, RunFacts, Setting
from discrim.evaluation.verdict import metric_for
from discrim.registry import found as loaded
from discrim.tables.labelled_table import LabelledTable

NO_DATA = (
    "A store keeps results, not the data. Give the data with --data FILE --target COLUMN to see how rows lie on the "
    "components."
)


@dataclass(frozen=True, eq=False)
class Results(JudgedRun):
    """The results on one data set by one protocol: all that a page may show of them.

    data : the very rows that were compared (a sample of the data's, where one was drawn); None where not at hand
    lacking : why there is no table
    label : what the data are called on a page
    facts : what was kept of the run; None where nothing was
    methods : what the names of the methods stand for
    permutations : whether the recommended pipeline's score is more than chance; a store does not keep it
    """

    setting: Setting
    rows: list[Result]
    metric: str = "accuracy"
    data: LabelledTable | None = None
    lacking: str = NO_DATA
    label: str = ""
    facts: RunFacts | None = None
    methods: Mapping[str, Method] = field(default_factory=lambda: METHODS)
    permutations: PermutationTest | None = None

    @cached_property
    def grid(self) -> Grid:  # type: ignore[override]
        """The table with the first of the splits, as the trials had them."""
        assert self.data is not None
        setting = self.setting
        facts = self.facts
        groups, equal, weights = (None,) * 3 if facts is None else (facts.groups, facts.equal, facts.weights)
        protocol = protocol_of(setting.protocol, setting.protocol_size, 1, groups, equal)
        how: dict[str, Any] = {"impute": setting.impute or None, "sample_weight": weights}
        return Grid(setting.data, self.data, (), protocol, setting.scale, setting.seed, **how)


def results_in(
    rows: Iterable[Result],
    metric: str,
    table_of: Callable[[str], LabelledTable | None],
    runs: Mapping[str, RunFacts] | None = None,
) -> list[Results]:
    """The runs in a store, one for each data set and protocol.

    table_of : gives a data set's table, or None
    runs : what the store keeps of every run (`Store.runs`)
    """
    of_run: dict[Setting, list[Result]] = defaultdict(list)
    for row in rows:
        of_run[Setting.of(row.trial)].append(row)
    found = []
    for (setting, its_rows), label in zip(of_run.items(), _labels(list(of_run)), strict=True):
        its_rows = _told_apart(its_rows)
        facts = (runs or {}).get(setting.run_key)
        counts = Counter(facts.codes.tolist()) if facts is not None else {}
        decides = metric_for(counts, metric) if counts else "accuracy" if metric == "auto" else metric
        known = _methods_named(row.cell.method for row in its_rows)
        one = Results(setting, its_rows, decides, label=label, facts=facts, methods=known)
        found.append(_with_table(one, table_of))
    return found


def _told_apart(rows: list[Result]) -> list[Result]:
    """Where a caller's estimators of one name had several parameters, the rows with all that is written of each."""
    written: dict[str, set[str]] = defaultdict(set)
    for row in rows:
        written[row.cell.method].add(row.trial.get("estimator", ""))
    return [
        replace(row, trial={**row.trial, "method": row.trial["estimator"]})
        if len(written[row.cell.method]) > 1 and "estimator" in row.trial
        else row
        for row in rows
    ]


def _methods_named(names: Iterable[str]) -> Mapping[str, Method]:
    """What they stand for; those of a paper's own conventions are looked up where a paper was reproduced."""
    if not any(name.startswith("paper/") for name in names):
        return METHODS
    return METHODS | loaded("discrim.papers.conventions:PAPER_METHODS")


def _with_table(results: Results, table_of: Callable[[str], LabelledTable | None]) -> Results:
    table = table_of(results.setting.data)
    if table is None:
        return results
    facts = results.facts
    if facts is not None and facts.sample is not None and facts.n_rows == table.n_samples:
        table = table.take(facts.sample)
    if table.digest() != results.setting.digest:
        why = "The data at hand are not the very rows that these results were got from (another content, or order)."
        return replace(results, lacking=why)
    return replace(results, data=table, lacking="")


def _labels(settings: list[Setting]) -> list[str]:
    """The name of each data set, with what differs where it was tried in several ways."""
    labels = []
    for setting in settings:
        twins = [other for other in settings if other.data == setting.data]
        told = [
            f"{name} {str(getattr(setting, name))[:20]}"
            for name in (*Setting._fields[2:], "digest")
            if len({getattr(twin, name) for twin in twins}) > 1
        ]
        labels.append(f"{setting.data} ({', '.join(told)})" if told else setting.data)
    return labels
