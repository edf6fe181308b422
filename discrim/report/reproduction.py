"""A reproduction as a page of the report's kind: figures as printed against ours, and the papers' charts."""

from __future__ import annotations

import math
import os
from collections.abc import Mapping, Sequence
from itertools import groupby
from typing import Any, NamedTuple

from discrim.data.writing import whole_file
from discrim.evaluation.reproduce import Outcome, summary
from discrim.evaluation.study import Study
from discrim.report.page import framed
from discrim.report.payload import Words, figure_json
from discrim.report.reproduction_charts import agreement_chart, figure_charts


class PrintedLine(NamedTuple):
    """A cell as the page says it; numbers to sort by stand beside their words."""

    outcome: Outcome
    printed: str
    ours: str
    off: str
    reference: str
    far: bool
    sorted: list[str]  # the four as numbers, empty where there is none


class Part(NamedTuple):
    """A table or a figure of the paper."""

    title: str
    lines: list[PrintedLine]
    said: str
    menu: list[str]  # of a figure, what its charts are called
    drawn: str


def write_reproduction(
    study: Study,
    outcomes: Sequence[Outcome],
    path: str | os.PathLike[str],
    *,
    command: str = "",
    absent: Mapping[str, str] | None = None,
) -> None:
    """Write the page; the file appears whole or not at all. `absent`: data sets that were left out, and why."""
    text = reproduction_page(study, outcomes, command, absent or {})
    with whole_file(path) as handle:
        handle.write(text.encode("utf-8", "replace"))


def reproduction_page(study: Study, outcomes: Sequence[Outcome], command: str, absent: Mapping[str, str]) -> str:
    """The page as text."""
    words = Words()
    parts: list[Part] = []
    charts: dict[str, Any] = {}
    for title, group in groupby(outcomes, key=lambda one: one.table.title):
        some = list(group)
        drawn = list(figure_charts(study, some[0].table, some)) if some[0].table.drawn else []
        charts[f"part-{len(parts)}"] = figure_json((((at,), chart) for at, (_, chart) in enumerate(drawn)), words)
        lines = [_line(one, study.tolerance) for one in some]
        menu = [name for name, _ in drawn]
        parts.append(Part(title, lines, summary(some, study.tolerance), menu, some[0].table.drawn))
    agreement = agreement_chart(outcomes)
    charts["agreement"] = figure_json([((), agreement)] if agreement else [], words)
    return framed(
        "reproduction.html",
        {"blocks": [{"figures": charts}], "ranks": {}, "words": words.all},
        study=study,
        parts=parts,
        said=summary(list(outcomes), study.tolerance),
        agreement=agreement is not None,
        command=command,
        absent={**absent, **study.left_out},
    )


def _line(one: Outcome, tolerance: float) -> PrintedLine:
    shown, cell = one.measure.shown, one.cell
    return PrintedLine(
        one,
        figure(cell.printed, cell.printed_deviation, shown),
        figure(one.ours, one.deviation, shown),
        "–" if math.isnan(one.off) else f"{one.off:+{shown}}",
        figure(cell.reference, cell.reference_deviation, shown),
        one.near_print(tolerance) is False,
        ["" if math.isnan(value) else repr(value) for value in (cell.printed, one.ours, one.off, cell.reference)],
    )


def figure(value: float, deviation: float, shown: str) -> str:
    """A figure with its deviation, as far as there is one."""
    if math.isnan(value):
        return "–"
    return f"{value:{shown}}" if math.isnan(deviation) else f"{value:{shown}} ± {deviation:{shown}}"
