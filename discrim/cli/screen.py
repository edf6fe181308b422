"""What a terminal shows: the ranked table and the answer, lists, and how far a run is."""

from __future__ import annotations

import json
import math
import os
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import fields, is_dataclass
from functools import partial
from typing import Any

import numpy as np
from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, MofNCompleteColumn, Progress, ProgressColumn, TextColumn, TimeRemainingColumn
from rich.table import Table
from rich.text import Text

from discrim.data.table_error import plural
from discrim.evaluation import run
from discrim.evaluation.comparison import Comparison, record
from discrim.evaluation.methods import METHODS
from discrim.evaluation.permutation import PermutationTest
from discrim.evaluation.summary import METRICS, Difference, Line
from discrim.evaluation.verdict import Verdict

out = Console(highlight=False, width=None if sys.stdout.isatty() or "COLUMNS" in os.environ else 100)
side = Console(stderr=True, highlight=False)
MOST_CLASSES = 8  # that are told one by one
_EXPLANATION = (
    "K is the smallest within one standard error of the line's best; intervals are 95 %. Over PCA with the same K and "
    "over raw features, in points: ▲ better, ▼ worse, by the corrected t test at 5 % after Holm"
)


def say(message: str) -> None:
    """A line beside the answer, on stderr; as it is, on one line."""
    side.print(Text(message), soft_wrap=True)


@contextmanager
def bar(what: str, total: int | None, clock: ProgressColumn) -> Iterator[Callable[..., None]]:
    """A bar on stderr; where that is no terminal, nothing. What it gives takes `Progress.update`'s arguments."""
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), clock)
    with Progress(*columns, console=side, transient=True, disable=not side.is_terminal) as shown:
        yield partial(shown.update, shown.add_task(escape(what), total=total))


@contextmanager
def progress_bar(what: str) -> Iterator[run.Progress]:
    """A bar in trials with the time left."""
    with bar(what, None, TimeRemainingColumn()) as update:
        yield lambda done, total: update(completed=done, total=total)


def show_comparison(found: Comparison, next_step: str = "") -> None:
    """The ranked table, what the marks mean, the answer in words, and what was skipped or failed."""
    if found.lines:
        out.print(Text(heading(found), style="bold"))
        table, p_values = comparison_table(found, p_values=True), "; its p value follows."
        if _width(table) > out.width:
            table, p_values = comparison_table(found, p_values=False), "."
        table.width = _width(table)
        out.print(table, crop=False)  # a line may wrap, a figure is never cut off
        out.print(Text(_EXPLANATION + p_values, style="dim"))
    out.print(Text("\n" + found.answer, style="bold"))
    if found.verdict is not None and found.verdict.recall:
        out.print(Text(recall_in_words(found.verdict)))
    if next_step:
        out.print(Text(next_step), soft_wrap=True)
    for line in notes(found):
        say(line)


def recall_in_words(verdict: Verdict) -> str:
    """How much of each class is recognised, the worst first, beside naming the largest class."""
    worst = sorted(verdict.recall.items(), key=lambda one: one[1])
    told = ", ".join(f"{_apart(name)} {100 * share:.0f} %" for name, share in worst[:MOST_CLASSES])
    rest = f" and {len(worst) - MOST_CLASSES} classes more" if len(worst) > MOST_CLASSES else ""
    return (
        f"Of held-out rows it recognises: {told}{rest}. Naming the largest class for every row has "
        f"{METRICS[verdict.metric]} {100 * verdict.majority:.1f} %."
    )


def _apart(label: str) -> str:
    """The label in quotes unless it is a word: a class named 1 beside its figure reads as 158 %."""
    return label if label.isalpha() else repr(label)


def comparison_table(found: Comparison, *, p_values: bool) -> Table:
    table = Table(box=None, pad_edge=False)
    table.add_column("method", no_wrap=True)
    table.add_column("classifier", no_wrap=True)
    beside = ["accuracy"] if found.metric == "balanced_accuracy" else []
    interval = " (interval)" if p_values else ""  # no room for the one, no room for the other
    names = ("K", f"{METRICS[found.metric]} %{interval}", *(f"{METRICS[one]} %" for one in beside))
    for name in (*names, "over PCA", "over raw"):
        table.add_column(name, justify="right", no_wrap=True)
    for line in found.lines:
        table.add_row(*_cells(line, beside, p_values))
    return table


def _width(table: Table) -> int:
    """What it takes to show all of it."""
    return out.measure(table, options=out.options.update(width=1_000)).maximum


def heading(found: Comparison) -> str:
    grid = found.grid
    table = grid.table
    splits = max((line.n_splits for line in found.lines), default=0)
    size, classes = rows_times(table.n_samples, table.n_features, "feature"), len(table.class_counts())
    how = f"{grid.protocol.name}, {plural(splits, 'split')}, scale {grid.scale}"
    return f"{grid.name}: {size}, {classes} classes; {how}"


def rows_times(n_rows: int, count: int, noun: str) -> str:
    """How large a table is."""
    return f"{plural(n_rows, 'row')} × {plural(count, noun)}"


def _cells(line: Line, beside: Iterable[str], p_values: bool) -> list[Text]:
    interval = f" ({100 * line.low:.1f}–{100 * line.high:.1f})" if line.n_splits > 1 else ""
    texts = [line.method, line.classifier, str(line.k), f"{100 * line.mean:.1f}{interval}"]
    texts += [f"{100 * line.means[name]:.1f}" for name in beside]
    return [*map(Text, texts), *(_difference(one, p_values) for one in (line.against_pca, line.against_raw))]


def _difference(found: Difference | None, with_p: bool) -> Text:
    if found is None:
        return Text("")
    mark, style = {"better": ("▲", "green"), "worse": ("▼", "red")}.get(found.verdict, (" ", ""))
    p_value = "" if not with_p else " <.001" if found.adjusted < 0.001 else f" {found.adjusted:.3f}"
    return Text(f"{100 * found.mean:+.1f} {mark}{p_value}", style=style)


def notes(found: Comparison) -> list[str]:
    """Failures, skips and doubts, each reason once with how often it came."""
    lines = [f"{one.status}: {one.method}, {plural(one.trials, 'trial')}: {one.reason}" for one in found.notes]
    tried = {row.cell.method for row in found.rows}
    noted = [method for name, method in METHODS.items() if name in tried and method.note]
    return lines + [f"note: {method.name} is {method.note}" for method in noted]


def print_json(found: Comparison) -> None:
    """The comparison as one JSON document on stdout."""
    grid, table = found.grid, found.grid.table
    document = {
        "data": grid.name,
        "rows": table.n_samples,
        "features": table.n_features,
        "classes": table.class_counts(),
        "protocol": grid.protocol.name,
        "splits": grid.protocol.n_splits,
        "scale": grid.scale,
        "seed": grid.seed,
        "metric": found.metric,
        "answer": found.answer,
        "verdict": found.verdict,
        "permutations": _permutations(found.permutations),
        "lines": [record(line) | {"curve": line.curve} for line in found.lines],
        "failures": [{**row.trial, "reason": row.reason} for row in found.failures],
        "skips": [{**row.trial, "reason": row.reason} for row in found.skips],
    }
    every_sign = (sys.stdout.encoding or "").lower().replace("-", "") == "utf8"
    print(json.dumps(_plain(document), ensure_ascii=not every_sign, indent=1, allow_nan=False))


def _permutations(tested: PermutationTest | None) -> dict[str, Any] | None:
    """The permutation test as JSON knows it."""
    if tested is None:
        return None
    facts = {**tested.cell._asdict(), "metric": tested.metric, "score": tested.score, "p_value": tested.p_value}
    return facts | {"exchanged": tested.exchanged, "splits": tested.n_splits, "permuted": tested.permuted}


def _plain(value: Any) -> Any:
    """As JSON knows it: tuples with names and dataclasses by name, arrays as lists, numbers that are none as null."""
    if is_dataclass(value):
        value = {one.name: getattr(value, one.name) for one in fields(value)}
    elif hasattr(value, "_asdict"):
        value = value._asdict()
    elif isinstance(value, np.ndarray):
        value = value.tolist()
    if isinstance(value, dict):
        return {key: _plain(one) for key, one in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(one) for one in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def print_list(columns: Iterable[str], rows: Iterable[Iterable[str]]) -> None:
    """A plain list with a heading for each column."""
    table = Table(box=None, pad_edge=False)
    for name in columns:
        table.add_column(name, overflow="fold")
    for cells in rows:
        table.add_row(*map(Text, cells))
    out.print(table)
