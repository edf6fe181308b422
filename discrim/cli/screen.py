"""Terminal output: the answer, the ranked table, lists and progress."""

from __future__ import annotations

import json
import math
import os
import shlex
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
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

from discrim.evaluation import run
from discrim.evaluation.comparison import Comparison, record
from discrim.evaluation.permutation import PermutationTest
from discrim.evaluation.wording import (
    BETTER,
    TAKEN,
    WIDTH,
    WORSE,
    answer_parts,
    doubts,
    explanation,
    heading,
    table_lines,
    wrapped,
)

_plainly = partial(Console, highlight=False, markup=False, emoji=False)  # text is printed as it is
out = _plainly(width=None if sys.stdout.isatty() or "COLUMNS" in os.environ else WIDTH)
side = _plainly(stderr=True)


def say(message: str) -> None:
    """Print a message on stderr, on one line."""
    side.print(message, soft_wrap=True)


@contextmanager
def bar(what: str, total: int | None, clock: ProgressColumn) -> Iterator[Callable[..., None]]:
    """Show a progress bar on stderr if it is a terminal; yield a function with the arguments of `Progress.update`."""
    if not side.is_terminal:  # rich before 15 prints an empty line after a hidden bar
        yield lambda **_: None
        return
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), clock)
    with Progress(*columns, console=side, transient=True) as shown:
        yield partial(shown.update, shown.add_task(escape(what), total=total))


@contextmanager
def progress_bar(what: str) -> Iterator[run.Progress]:
    """Show a bar in trials with the remaining time."""
    with bar(what, None, TimeRemainingColumn()) as update:
        yield lambda done, total: update(completed=done, total=total)


def show_comparison(found: Comparison, next_step: str = "", *, everything: bool = False) -> None:
    """Print the answer, then the table; skipped, dropped and failed methods go to stderr."""
    for at, part in enumerate(answer_parts(found)):
        out.print(wrapped(part), style="bold" if at < len(found.sentences) else "")
    if next_step:
        out.print(next_step, soft_wrap=True)
    if found.lines:
        out.print(f"\n{heading(found)}", style="bold")
        for line in table_lines(found, everything):
            out.print(_coloured(line), soft_wrap=True)
        out.print(wrapped(explanation(found, everything)), style="dim")
    for line in doubts(found):
        say(wrapped(line))


def in_lines(command: str) -> str:
    """Break a long command between its options, so that it can be copied."""
    options: list[str] = []
    for word in map(shlex.quote, shlex.split(command)):  # a break inside quotes would change the word
        if word.startswith("-") or not options:
            options.append(word)
        else:
            options[-1] += f" {word}"
    lines = options[:1]
    for option in options[1:]:
        if len(lines[-1]) + 1 + len(option) > WIDTH - 6:
            lines.append(option)
        else:
            lines[-1] += f" {option}"
    return "  " + " \\\n    ".join(lines)


def plain_table(
    columns: Sequence[str], rows: Iterable[Iterable[Any]], left: Sequence[str], *, wraps: bool = False
) -> Table:
    """Return a table without lines; columns that are not in `left` are aligned to the right."""
    table = Table(box=None, pad_edge=False)
    shown: dict[str, Any] = {"overflow": "fold"} if wraps else {"no_wrap": True}
    for name in columns:
        table.add_column(name, justify="left" if name in left else "right", **shown)
    for row in rows:
        table.add_row(*row)
    return table


def _coloured(line: str) -> Text:
    text = Text(line, style="bold" if line.startswith(TAKEN) else "")
    text.highlight_regex(rf"\S+ {BETTER}", "green")
    text.highlight_regex(rf"\S+ {WORSE}", "red")
    return text


def print_json(found: Comparison) -> None:
    """Print the comparison as one JSON document."""
    assert found.facts is not None  # a comparison that was run has them
    document = {
        "data": found.label,
        "rows": found.sizes["rows"],
        "features": found.sizes["features"],
        "classes": found.class_counts,
        "protocol": found.setting["protocol"],
        "splits": found.facts.n_splits,
        "scale": found.setting["scale"],
        "seed": found.setting["seed"],
        "metric": found.metric,
        "answer": found.answer,
        "verdict": found.verdict,
        "recommendation": found.recommendation,
        "permutations": _permutations(found.permutations),
        "lines": [record(line) | {"curve": line.curve} for line in found.lines],
        "failures": [{**row.trial, "reason": row.reason} for row in found.failures],
        "skips": [{**row.trial, "reason": row.reason} for row in found.skips],
    }
    every_sign = (sys.stdout.encoding or "").lower().replace("-", "") == "utf8"
    print(json.dumps(_plain(document), ensure_ascii=not every_sign, indent=1, allow_nan=False))


def _permutations(tested: PermutationTest | None) -> dict[str, Any] | None:
    """Return the permutation test as plain values."""
    if tested is None:
        return None
    facts = {**tested.cell._asdict(), "metric": tested.metric, "score": tested.score, "p_value": tested.p_value}
    return facts | {"exchanged": tested.exchanged, "splits": tested.n_splits, "permuted": tested.permuted}


def _plain(value: Any) -> Any:
    """Return plain values for JSON: dictionaries for dataclasses, lists for arrays, None for NaN."""
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


def print_list(columns: Sequence[str], rows: Iterable[Iterable[str]]) -> None:
    """Print a list with a heading for each column."""
    out.print(plain_table(columns, rows, left=columns, wraps=True))
