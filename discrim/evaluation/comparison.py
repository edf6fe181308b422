"""What a comparison found: the verdict, the lines, and what a reader must know beside them."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from html import escape
from typing import Any, NamedTuple

import numpy as np
from scipy.sparse import issparse
from sklearn.pipeline import Pipeline

from discrim.evaluation.grid import Grid
from discrim.evaluation.methods import RAW, Method
from discrim.evaluation.permutation import PermutationTest
from discrim.evaluation.pipelines import build_pipeline
from discrim.evaluation.protocol import numbered_rows
from discrim.evaluation.recommendation import Recommendation
from discrim.evaluation.results import Cell, Result, RunFacts, Scores, Setting
from discrim.evaluation.summary import METRICS, Line, lines_of
from discrim.evaluation.trial import SplitData
from discrim.evaluation.verdict import UNBALANCED, Verdict, verdict_of
from discrim.evaluation.wording import in_components, percent, printed
from discrim.tables.labelled_table import LabelledTable
from discrim.tables.table_error import plural


class Note(NamedTuple):
    """Trials of one method that failed, were skipped or are doubtful for one reason."""

    status: str
    method: str
    trials: int
    reason: str


class JudgedRun:
    """What follows from the results of one run: lines, verdict, remarks and notes, and what else a page says of it.

    data : the very rows that were compared; None where not at hand, and `lacking` says why
    label : what the data are called on a page
    """

    rows: Sequence[Result]
    metric: str
    permutations: PermutationTest | None
    facts: RunFacts | None
    methods: Mapping[str, Method]
    setting: Setting
    data: LabelledTable | None
    label: str
    lacking: str
    grid: Grid

    @cached_property
    def lines(self) -> list[Line]:
        """One line per method and classifier, best first."""
        recommended = None if self.verdict is None else self.verdict.recommended
        dropped = () if self.facts is None else self.facts.dropped
        return lines_of(self.rows, self.metric, recommended, dropped)

    @property
    def best(self) -> Line | None:
        """The best line of a reduction (raw features are none); None where every trial failed."""
        return next((line for line in self.lines if line.method != "raw"), None)

    @cached_property
    def verdict(self) -> Verdict | None:
        """What to take, how well it does, and whether reducing helps; None where no reduction has results."""
        nonlinear = [name for name, method in self.methods.items() if not method.linear]
        return verdict_of(self.rows, self.metric, self.facts, nonlinear)

    @property
    def recommendation(self) -> Recommendation | None:
        """The recommended pipeline, by name and as it was judged; None where nothing could be judged."""
        if self.verdict is None:
            return None
        setting = self.setting
        return Recommendation(
            *self.verdict.recommended, setting.scale, setting.impute or None, setting.class_weight or None
        )

    @property
    def sentences(self) -> tuple[str, ...]:
        """The verdict in words."""
        said = "No reduction could be judged: every trial failed or was skipped."
        return (said,) if self.verdict is None else self.verdict.sentences

    @cached_property
    def remarks(self) -> tuple[str, ...]:
        """On which rows and by which score the comparison was made, and what of it was not finished."""
        said = () if self.facts is None else remarks_of(self.rows, self.facts, self.metric)
        if self.facts is not None and self.data is not None:
            said = (*equal_rows_in_words(self.data, self.facts), *said)
        return said if self.permutations is None else (*said, str(self.permutations))

    @cached_property
    def notes(self) -> list[Note]:
        """What failed, was skipped, or is doubtful; each reason once."""
        counted: Counter[tuple[str, str, str]] = Counter()
        for row in self.rows:
            reasons = [("doubtful", note) for note in row.notes] + ([] if row.ok else [(row.status, row.reason)])
            counted.update((status, row.cell.method, reason) for status, reason in reasons)
        return [Note(status, method, count, why) for (status, method, why), count in sorted(counted.items())]

    @cached_property
    def sizes(self) -> dict[str, int]:
        """Rows, training rows, test rows, features, classes and splits, as far as the rows of results tell."""
        good = next((row for row in self.rows if row.ok), None)
        found = {"splits": len({row.split for row in self.rows})}
        if good is not None:
            n_train, n_test = good.scores["n_train"], good.scores["n_test"]
            found |= {"rows": n_train + n_test, "train": n_train, "test": n_test}
            found["classes"] = len(good.scores.get("actual", ()))
        features = {row.cell.k for row in self.rows if row.cell.method == RAW.name}
        return found | ({"features": max(features)} if features else {})

    @cached_property
    def versions(self) -> list[tuple[str, str]]:
        """Each library with the versions the results were got with."""
        seen: dict[str, set[str]] = defaultdict(set)
        for row in self.rows:
            for name, version in row.versions.items():
                seen[name].add(version)
        return [(name, ", ".join(sorted(found))) for name, found in sorted(seen.items())]

    @cached_property
    def seconds(self) -> list[tuple[str, float, float]]:
        """Each method with the seconds of one fit on average, and of classifying in all."""
        fits = {line.method: line.seconds for line in self.lines}
        classified: dict[str, float] = defaultdict(float)
        for row in self.rows:
            classified[row.cell.method] += row.seconds
        return [(method, fits.get(method, np.nan), classified[method]) for method in sorted(classified)]

    def first_split(self) -> SplitData:
        """The rows of the first split, as the trials saw them."""
        return replace(self.grid.trial_rows, y=self.grid.table.y).split(0, self.grid.splits[0])


@dataclass(frozen=True, eq=False)
class Comparison(JudgedRun):
    """What came out: `verdict` for the answer, `table()` for all of it.

    Attributes
    ----------
    grid : Grid
        What was tried.
    rows : list of Result
        A result for each trial that was done.
    metric : str
        The score that decides.
    permutations : PermutationTest or None
        Whether the recommended pipeline's score is more than chance; None where that was not asked for.
    facts : RunFacts
        What no single trial says: classes, labels, how many splits were asked for.
    methods : mapping of str to Method
        What the names of the methods stand for.
    recommendation : Recommendation or None
        The recommended pipeline: method, number of components, classifier, scale, imputation.
    """

    grid: Grid
    rows: list[Result]
    metric: str = "accuracy"
    permutations: PermutationTest | None = None
    facts: RunFacts = field(init=False, repr=False)
    methods: Mapping[str, Method] = field(init=False, repr=False)
    setting: Setting = field(init=False, repr=False)
    data: LabelledTable = field(init=False, repr=False)
    label: str = field(init=False, repr=False)
    lacking: str = field(default="", init=False, repr=False)

    def __post_init__(self) -> None:
        grid = self.grid
        known = {"facts": grid.facts, "methods": grid.methods, "setting": grid.setting}
        for name, value in {**known, "data": grid.table, "label": grid.name}.items():
            object.__setattr__(self, name, value)

    @property
    def answer(self) -> str:
        """The verdict in words, with what a reader must know of how it came about."""
        return " ".join([*self.sentences, *self.remarks])

    @property
    def failures(self) -> list[Result]:
        return [row for row in self.rows if row.status == "failed"]

    @property
    def skips(self) -> list[Result]:
        return [row for row in self.rows if row.status == "skipped"]

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
            raise ValueError("No pipeline is recommended: every trial failed or was skipped. See `notes`.")
        given = self.methods.get(wanted.method)
        return build_pipeline(wanted, sparse=issparse(self.data.X), seed=self.setting.seed, method=given)

    def table(self) -> Any:
        """The lines as a pandas data frame."""
        import pandas as pd

        return pd.DataFrame([record(line) for line in self.lines])

    def __str__(self) -> str:
        """The ranked table and the answer in words, as the command line has them."""
        return printed(self)

    def __repr__(self) -> str:
        return f"Comparison({self.grid.name!r}, {len(self.rows)} of {len(self.grid.trials)} trials: {self.answer})"

    def _repr_html_(self) -> str:
        """The answer and the table, for notebooks."""
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
    """Return what was done of the grid, for the splits that every cell was tried on."""
    tried = Counter(row.split for row in rows)
    return Comparison(grid, [row for row in rows if tried[row.split] == len(grid.cells)], metric)


def remarks_of(rows: Sequence[Result], facts: RunFacts, metric: str) -> tuple[str, ...]:
    """What a reader must know beside the verdict: the sample, the score that decided, what was not finished."""
    said, counts = [], np.bincount(facts.codes)
    if facts.n_rows > counts.sum():
        how = "each class in its proportion" if facts.groups is None else "whole groups drawn at random"
        said.append(f"Compared on {counts.sum():,} of {facts.n_rows:,} rows, {how}.")
    share = counts.max() / counts.sum()
    if share > UNBALANCED:
        largest = facts.classes[int(counts.argmax())]
        said.append(f"{largest!r} has {100 * share:.0f} % of the rows; {METRICS[metric]} decides.")
    whole = [row for row in rows if row.cell not in set(facts.dropped)]
    return (*said, *left_out(whole, metric), *unfinished(whole, facts.n_splits))


def equal_rows_in_words(data: LabelledTable, facts: RunFacts) -> tuple[str, ...]:
    """Say how many rows equal another one, and on which side of the splits they are."""
    numbers = facts.equal if facts.equal is not None else numbered_rows(data.X)
    if numbers is None:
        return ()
    count = int((np.bincount(numbers)[numbers] > 1).sum())
    if facts.equal is not None:
        return (f"{count:,} rows equal another row; equal rows stay on one side of every split (--equal-rows apart).",)
    return (f"{count:,} rows equal another row and are split like all others (--equal-rows together).",)


def left_out(rows: Sequence[Result], metric: str) -> tuple[str, ...]:
    """Which pipelines have results on fewer splits than others, in words: the verdict is not about these."""
    table = Scores.of(rows, metric)
    most = table.counts.max(initial=0)
    short = [
        f"{cell.method} with {in_components(cell.k)} and {cell.judge} ({count} of {most})"
        for cell, count in sorted(zip(table.cells, table.counts.tolist(), strict=True))
        if count < most
    ]
    if not short:
        return ()
    more = f", and {len(short) - 5} more" if len(short) > 5 else ""
    return (f"Not judged, for want of results on some splits: {', '.join(short[:5])}{more}.",)


def unfinished(rows: Sequence[Result], asked: int) -> tuple[str, ...]:
    """Which lines rest on fewer splits than were asked for, in words; empty where the run came to its end."""
    tried: dict[Cell, set[int]] = defaultdict(set)
    for row in rows:
        tried[row.cell].add(row.split)
    short = {cell: len(splits) for cell, splits in tried.items() if len(splits) < asked}
    if not short:
        return ()
    lines = sorted({f"{cell.method} with {cell.judge}" for cell in short})
    fewest, most = min(short.values()), max(short.values())
    told = f"{fewest}" if fewest == most else f"{fewest} to {most}"
    which = "All lines rest"
    if len(short) < len(tried):
        rest = "rests" if len(lines) == 1 else "rest"
        which = f"{plural(len(lines), 'line')} ({', '.join(lines[:5])}{', …' if len(lines) > 5 else ''}) {rest}"
    return (f"The run was not finished: {which} on {told} of {plural(asked, 'split')}.",)
