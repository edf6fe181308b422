"""A comparison as it is printed: the ranked table, what its marks mean, the answer in words, and what went wrong."""

from __future__ import annotations

import textwrap
from typing import TYPE_CHECKING

from discrim.evaluation.methods import METHODS
from discrim.evaluation.sentences import recall_in_words
from discrim.evaluation.summary import METRICS, Difference, Line
from discrim.tables.table_error import plural

if TYPE_CHECKING:
    from discrim.evaluation.comparison import Comparison

WIDTH = 100  # of what is printed where nobody says how wide it may be
BETTER, WORSE = "▲", "▼"
N_NAMES = 2  # the first columns, which hold names; the others hold figures
_GAP = "  "


def printed(found: Comparison) -> str:
    """All of it as plain text."""
    parts = []
    if found.lines:
        table, p_values = _plain_table(found, p_values=True), True
        if len(table[0]) > WIDTH:
            table, p_values = _plain_table(found, p_values=False), False
        parts += [heading(found), *(line.rstrip() for line in table), _wrapped(explanation(p_values)), ""]
    parts.append(_wrapped(found.answer))
    if found.verdict is not None and found.verdict.recall:
        parts.append(_wrapped(recall_in_words(found.verdict)))
    return "\n".join([*parts, *map(_wrapped, doubts(found))])


def heading(found: Comparison) -> str:
    """Of which data, and how they were split."""
    grid, table = found.grid, found.grid.table
    splits = max((line.n_splits for line in found.lines), default=0)
    size, classes = rows_times(table.n_samples, table.n_features, "feature"), len(table.class_counts())
    how = f"{grid.protocol.name}, {plural(splits, 'split')}, scale {grid.scale}"
    return f"{grid.name}: {size}, {classes} classes; {how}"


def rows_times(n_rows: int, count: int, noun: str) -> str:
    """How large a table is."""
    return f"{plural(n_rows, 'row')} × {plural(count, noun)}"


def ranked_columns(found: Comparison, *, p_values: bool) -> list[str]:
    """Of the ranked table; without p values it has no intervals either, for want of room."""
    interval = " (interval)" if p_values else ""
    scores = [f"{METRICS[found.metric]} %{interval}", *(f"{METRICS[name]} %" for name in _beside(found.metric))]
    return ["method", "classifier", "K", *scores, "over PCA", "over raw"]


def ranked_cells(line: Line, metric: str, *, p_values: bool) -> list[str]:
    """The line in these columns."""
    interval = f" ({100 * line.low:.1f}–{100 * line.high:.1f})" if line.n_splits > 1 else ""
    scores = [f"{100 * line.mean:.1f}{interval}", *(f"{100 * line.means[name]:.1f}" for name in _beside(metric))]
    against = [_difference(one, p_values) for one in (line.against_pca, line.against_raw)]
    return [line.method, line.classifier, str(line.k), *scores, *against]


def explanation(p_values: bool) -> str:
    """How the table is to be read."""
    return (
        "K is the smallest within one standard error of the line's best; intervals are 95 %. Over PCA with the same K "
        f"and over raw features, in points: {BETTER} better, {WORSE} worse, by the corrected t test at 5 % after Holm"
        + ("; its p value follows." if p_values else ".")
    )


def doubts(found: Comparison) -> list[str]:
    """Failures, skips and doubts, each reason once with how often it came."""
    lines = [f"{one.status}: {one.method}, {plural(one.trials, 'trial')}: {one.reason}" for one in found.notes]
    tried = {row.cell.method for row in found.rows}
    noted = [method for name, method in METHODS.items() if name in tried and method.note]
    return lines + [f"note: {method.name} is {method.note}" for method in noted]


def _beside(metric: str) -> list[str]:
    """Scores that stand beside the one that decides."""
    return ["accuracy"] if metric == "balanced_accuracy" else []


def _difference(found: Difference | None, with_p: bool) -> str:
    if found is None:
        return ""
    mark = {"better": BETTER, "worse": WORSE}.get(found.verdict, " ")
    p_value = "" if not with_p else " <.001" if found.adjusted < 0.001 else f" {found.adjusted:.3f}"
    return f"{100 * found.mean:+.1f} {mark}{p_value}"


def _plain_table(found: Comparison, *, p_values: bool) -> list[str]:
    rows = [ranked_columns(found, p_values=p_values)]
    rows += [ranked_cells(line, found.metric, p_values=p_values) for line in found.lines]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return [
        _GAP.join(
            cell.ljust(width) if at < N_NAMES else cell.rjust(width)
            for at, (cell, width) in enumerate(zip(row, widths, strict=True))
        )
        for row in rows
    ]


def _wrapped(text: str) -> str:
    return textwrap.fill(text, WIDTH, break_long_words=False, break_on_hyphens=False)
