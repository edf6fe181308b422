"""Comparison: the table of results of one run with its verdict, its lines and remarks for the reader."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from html import escape
from typing import Any

import numpy as np
from scipy.sparse import issparse
from sklearn.pipeline import Pipeline

from discrim.evaluation.methods import METHODS, Recommendation, build_pipeline
from discrim.evaluation.plan import Grid
from discrim.evaluation.protocol import numbered_rows, protocol_of
from discrim.evaluation.resampling import PermutationTest
from discrim.evaluation.results import Cell, Result, Results, RunFacts, setting_of, trial_key
from discrim.evaluation.summary import METRICS, Line, lines_of
from discrim.evaluation.trial import SplitData
from discrim.evaluation.verdict import UNBALANCED, Verdict, metric_for, verdict_of
from discrim.evaluation.wording import judge, percent, pipeline_name, printed
from discrim.registry import Method, load_target
from discrim.tables.labelled_table import LabelledTable
from discrim.tables.table_error import plural

NO_DATA = "A store keeps results, not the data. Pass the data with --data FILE --target COLUMN to draw the rows."
OTHER_DATA = "The data differ from the rows that these results were computed on (in content or order)."


@dataclass(frozen=True, eq=False, repr=False)
class Comparison(Results):
    """Results of one run on one data set: `verdict` and `answer` for the conclusion, `table()` for all lines.

    Attributes
    ----------
    rows : list of Result
        A result for each trial that was done.
    setting : dict
        The fields that all trials share: data, digest, protocol, scale, seed and others.
    facts : RunFacts or None
        Facts that no single trial has: classes, labels, planned splits. None if a store does not have them.
    metric : str
        The score that decides.
    grid : Grid or None
        The planned trials, with the rows that were compared; None if the data are not available.
    methods : mapping of str to Method
        The methods by name.
    permutations : PermutationTest or None
        Test whether the recommended pipeline is better than chance; None if it was not requested.
    models : mapping of str to mapping of int to estimator
        Models fitted on the first split, by method and number of components.
    label : str
        Name of the data on a page.
    lacking : str
        The reason why the data are not available.
    recommendation : Recommendation or None
        The recommended pipeline: method, number of components, classifier, scale, imputation.
    """

    metric: str = "accuracy"
    grid: Grid | None = None
    methods: Mapping[str, Method] = field(default_factory=lambda: METHODS)
    permutations: PermutationTest | None = None
    models: Mapping[str, Mapping[int, Any]] = field(default_factory=dict)
    label: str = ""
    lacking: str = ""

    @classmethod
    def of(cls, grid: Grid, rows: Sequence[Result], metric: str = "accuracy", models: Any = None) -> Comparison:
        """Return the comparison of a grid."""
        return cls(rows, grid.setting, grid.facts, metric, grid, grid.methods, models=models or {}, label=grid.name)

    @property
    def data(self) -> LabelledTable | None:
        """Return the rows that were compared; None if they are not available."""
        return None if self.grid is None else self.grid.table

    @cached_property
    def lines(self) -> list[Line]:
        """Return one line per method and classifier, best first."""
        return lines_of(self, self.metric, None if self.verdict is None else self.verdict.recommended)

    @property
    def best(self) -> Line | None:
        """Return the best line of a reduction; None if every trial failed."""
        return next((line for line in self.lines if line.method != "raw"), None)

    @property
    def nonlinear(self) -> list[str]:
        """Return the names of the methods that are not a linear map of the features."""
        return [name for name, method in self.methods.items() if not method.linear]

    @cached_property
    def verdict(self) -> Verdict | None:
        """Return the recommendation with its evidence; None if no reduction has results."""
        return verdict_of(self, self.metric, self.nonlinear)

    @property
    def recommendation(self) -> Recommendation | None:
        """Return the recommended pipeline by name, as it was judged; None if nothing could be judged."""
        if self.verdict is None:
            return None
        scale, *others = (self.setting.get(name) or None for name in ("scale", "impute", "class_weight"))
        return Recommendation(*self.verdict.recommended, scale or "standard", *others)

    @property
    def sentences(self) -> tuple[str, ...]:
        """Return the verdict in words."""
        if self.verdict is None:
            return (f"No reduction could be judged: {self._why_not_judged()}.",)
        return self.verdict.sentences

    def _why_not_judged(self) -> str:
        done = {row.cell.k for row in self.rows if row.ok and row.cell.method != "raw"}
        if not done:
            return "every trial failed or was skipped"
        if min(done) >= self.sizes.get("features", np.inf):
            return f"as many components as columns ({self.sizes['features']}) are no reduction"
        return "no split has results of all pipelines"

    @cached_property
    def remarks(self) -> tuple[str, ...]:
        """Return which rows and which score were used, and what was not finished."""
        facts, remarks = self.facts, []
        if facts is not None:
            remarks += [] if self.data is None else equal_rows_in_words(self.data, facts)
            counts = np.bincount(facts.codes)
            if facts.n_rows > counts.sum():
                how = "each class in its proportion" if facts.groups is None else "whole groups drawn at random"
                remarks.append(f"Compared on {counts.sum():,} of {facts.n_rows:,} rows, {how}.")
            share = counts.max() / counts.sum()
            if share > UNBALANCED:
                largest = facts.classes[int(counts.argmax())]
                remarks.append(f"{largest!r} has {100 * share:.0f} % of the rows; {METRICS[self.metric]} decides.")
            remarks += [*left_out(self, self.metric), *unfinished(self, facts.n_splits)]
        if self.permutations is not None:
            remarks.append(str(self.permutations))
        return tuple(remarks)

    @property
    def answer(self) -> str:
        """Return the verdict and the remarks in words."""
        return " ".join([*self.sentences, *self.remarks])

    def first_split(self) -> SplitData:
        """Return the rows of the first split as the trials used them."""
        assert self.grid is not None
        return self.grid.trial_rows.split(0, self.grid.splits[0], named=True)

    def best_pipeline(self) -> Pipeline:
        """Return the recommended pipeline, unfitted: imputer, scaler, reducer and classifier, as they were judged.

        Examples
        --------
        >>> from sklearn.datasets import load_wine
        >>> from discrim import compare
        >>> X, y = load_wine(return_X_y=True)
        >>> found = compare(X, y, methods=["pca", "raw"], classifiers="5-nn", n_splits=3)
        >>> found.best_pipeline().fit(X, y).predict(X[:1])
        array([0])
        """
        wanted = self.recommendation
        if wanted is None:
            raise ValueError(f"No pipeline is recommended: {self._why_not_judged()}. See `notes`.")
        sparse = self.data is not None and issparse(self.data.X)
        given = self.methods.get(wanted.method)
        return build_pipeline(wanted, sparse=sparse, seed=self.setting["seed"], method=given)

    def table(self) -> Any:
        """Return the lines as a pandas data frame."""
        import pandas as pd

        return pd.DataFrame([record(line) for line in self.lines])

    def __str__(self) -> str:
        """Return the answer and the ranked table as the command line prints them."""
        return printed(self)

    def __repr__(self) -> str:
        planned = "" if self.grid is None else f" of {len(self.grid.trials)}"
        return f"Comparison({self.label!r}, {len(self.rows)}{planned} trials: {self.answer})"

    def _repr_html_(self) -> str:
        """Return the answer and the table for notebooks."""
        head = "".join(f"<th>{name}</th>" for name in ("method", "classifier", "K", METRICS[self.metric], "interval"))
        body = "".join(
            f"<tr><td>{escape(line.method)}</td><td>{escape(line.classifier)}</td><td>{line.k}</td>"
            f"<td>{percent(line.mean)}</td><td>{percent(line.low)} – {percent(line.high)}</td></tr>"
            for line in self.lines
        )
        return f"<p>{escape(self.answer)}</p><table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


def record(line: Line) -> dict[str, Any]:
    """Return a line as one flat record."""
    facts: dict[str, Any] = {
        name: getattr(line, name)
        for name in ("method", "classifier", "k", "mean", "low", "high", "best_k", "best_mean", "n_splits", "seconds")
    }
    facts |= {name: line.means.get(name) for name in METRICS}
    for name, found in (("pca", line.against_pca), ("raw", line.against_raw)):
        facts[f"over_{name}"] = None if found is None else found.mean
        facts[f"p_{name}"] = None if found is None else found.adjusted
        facts[f"sign_p_{name}"] = None if found is None else found.sign_p_value
        facts[f"verdict_{name}"] = None if found is None else found.verdict
    return facts


def finished_splits(grid: Grid, rows: Sequence[Result], metric: str = "accuracy") -> Comparison:
    """Return the comparison on the splits that every cell was tried on."""
    tried, planned = (Counter(split) for split in ([row.split for row in rows], [one["split"] for one in grid.trials]))
    return Comparison.of(grid, [row for row in rows if tried[row.split] == planned[row.split]], metric)


def equal_rows_in_words(data: LabelledTable, facts: RunFacts) -> list[str]:
    """Return the number of duplicate rows, and whether all copies are in the same set of every split."""
    numbers = facts.equal if facts.equal is not None else numbered_rows(data.X)
    if numbers is None:
        return []
    count = int((np.bincount(numbers)[numbers] > 1).sum())
    where = "copies may be in both the training and the test set"
    if facts.equal is not None:
        where = "all copies are in the training set or all in the test set"
    return [f"{count:,} rows are duplicates of other rows; {where} (see --equal-rows)."]


def left_out(results: Results, metric: str) -> list[str]:
    """Return in words which pipelines are not judged, because they have results on fewer splits than others."""
    table = results.scores(metric)
    most = table.counts.max(initial=0)
    short = [
        f"{pipeline_name(cell)} ({count} of {most})"
        for cell, count in sorted(zip(table.cells, table.counts.tolist(), strict=True))
        if count < most and cell not in results.dropped
    ]
    if not short:
        return []
    more = f", and {len(short) - 5} more" if len(short) > 5 else ""
    return [f"Not judged, because some splits have no result: {', '.join(short[:5])}{more}."]


def unfinished(results: Results, asked: int) -> list[str]:
    """Return in words which lines have fewer splits than planned; empty if the run was finished."""
    tried: dict[Cell, set[int]] = defaultdict(set)
    for row in results.rows:
        if row.cell not in results.dropped:
            tried[row.cell].add(row.split)
    short = {cell: len(splits) for cell, splits in tried.items() if len(splits) < asked}
    if not short:
        return []
    lines = sorted({f"{cell.method} with {judge(cell)}" for cell in short})
    fewest, most = min(short.values()), max(short.values())
    done = f"{fewest}" if fewest == most else f"{fewest} to {most}"
    which = "All lines use"
    if len(short) < len(tried):
        use = "uses" if len(lines) == 1 else "use"
        which = f"{plural(len(lines), 'line')} ({', '.join(lines[:5])}{', …' if len(lines) > 5 else ''}) {use}"
    return [f"The run was not finished: {which} {done} of {plural(asked, 'split')}."]


# ---------------------------------------------------------------------- from a store


def comparisons_in(
    rows: Iterable[Result],
    metric: str,
    table_of: Callable[[str], LabelledTable | None],
    runs: Mapping[str, RunFacts] | None = None,
) -> list[Comparison]:
    """Return the runs in a store, one for each data set and setting.

    table_of : function that returns the table of a data set by name, or None
    runs : facts of every run (`Store.runs`)
    """
    of_run: dict[str, list[Result]] = defaultdict(list)
    settings: dict[str, dict[str, Any]] = {}
    for row in rows:
        setting = setting_of(row.trial)
        key = trial_key(setting)
        settings[key] = setting
        of_run[key].append(row)
    found = []
    for key, label in zip(of_run, _labels(list(settings.values())), strict=True):
        its_rows, facts = _with_distinct_names(of_run[key]), (runs or {}).get(key)
        counts = Results(its_rows, facts=facts).class_counts
        decides = metric_for(counts, metric) if counts else "accuracy" if metric == "auto" else metric
        known: Mapping[str, Method] = METHODS
        if any(row.cell.method.startswith("paper/") for row in its_rows):
            known = METHODS | load_target("discrim.papers.conventions:PAPER_METHODS")
        grid, why = _grid_of(settings[key], facts, table_of)
        found.append(Comparison(its_rows, settings[key], facts, decides, grid, known, label=label, lacking=why))
    return found


def _grid_of(
    setting: Mapping[str, Any], facts: RunFacts | None, table_of: Callable[[str], LabelledTable | None]
) -> tuple[Grid | None, str]:
    """Return the rows with the first of the splits, or the reason why they are not available."""
    table = table_of(setting["data"])
    if table is None:
        return None, NO_DATA
    if facts is not None and facts.sample is not None and facts.n_rows == table.n_samples:
        table = table.take(facts.sample)
    if table.digest() != setting["digest"]:
        return None, OTHER_DATA
    groups, equal, weights = (None,) * 3 if facts is None else (facts.groups, facts.equal, facts.weights)
    protocol = protocol_of(setting["protocol"], setting.get("protocol_size"), 1, groups, equal)
    how: dict[str, Any] = {"impute": setting.get("impute") or None, "sample_weight": weights}
    return Grid(setting["data"], table, (), protocol, setting["scale"], setting["seed"], **how), ""


def _with_distinct_names(rows: list[Result]) -> list[Result]:
    """Return the rows; a caller's estimators of one name but several parameters are named by their full text."""
    written: dict[str, set[str]] = defaultdict(set)
    for row in rows:
        written[row.cell.method].add(row.trial.get("estimator", ""))
    return [
        replace(row, trial={**row.trial, "method": row.trial["estimator"]})
        if len(written[row.cell.method]) > 1 and "estimator" in row.trial
        else row
        for row in rows
    ]


def _labels(settings: list[dict[str, Any]]) -> list[str]:
    """Return the name of each data set, with the fields that differ if it was compared in several ways."""
    labels = []
    for setting in settings:
        twins = [other for other in settings if other["data"] == setting["data"]]
        names = dict.fromkeys(name for twin in twins for name in twin)
        differ = [
            f"{name} {str(setting.get(name, ''))[:20]}"
            for name in names
            if len({str(twin.get(name, "")) for twin in twins}) > 1
        ]
        labels.append(f"{setting['data']} ({', '.join(differ)})" if differ else setting["data"])
    return labels
