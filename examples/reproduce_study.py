"""The papers' tables and figures, done again: the tables and pictures of docs/reproduce.md.

    DISCRIM_DATA=folder python examples/reproduce_study.py --stores build/reproduce --into docs/reproduce.md

Results are kept in the folder of stores, one file a study, so that a run that was stopped goes on where it was. Without
--into the tables are printed. --as-stored does nothing anew: the page says what the stores hold.
"""

import argparse
import math
import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import groupby
from pathlib import Path

import numpy as np

from discrim.evaluation.reproduce import Outcome, reproduced, summary
from discrim.evaluation.store import Store
from discrim.evaluation.study import Study, study, study_names
from discrim.report.drawing import axes_for, draw
from discrim.report.reproduction import figure_charts

HEAD = ["table", "data", "splits", "cells", "near print", "mean difference", "largest", "near reference"]


def found_in(whole: Study, store: Store, options: argparse.Namespace) -> list[Outcome]:
    """Outcomes of the parts that are at hand, done or as they are stored."""
    there = tuple(
        one
        for one in whole.tables
        if not whole.absent(one.dataset)
        and (options.dataset is None or one.dataset in options.dataset)
        and not (one.drawn and options.no_figures)
    )
    chosen = replace(whole, tables=there)
    return reproduced(chosen, store, splits=options.splits, jobs=options.jobs, as_stored=options.as_stored)


def lines_of(whole: Study, outcomes: Sequence[Outcome]) -> Iterator[str]:
    """The study's table, a row for each data set, and below it what is left out."""
    tables = [one for one in outcomes if not one.table.drawn and tried(one)]
    if not tables:
        yield "Not run yet."
        return
    yield "| " + " | ".join(HEAD) + " |"
    yield "| --- | --- |" + " ---: |" * (len(HEAD) - 2)
    for _, group in groupby(tables, key=lambda one: one.table.title):
        yield "| " + " | ".join(row_of(list(group), whole.tolerance)) + " |"
    yield ""
    yield f"In all: {summary(tables, whole.tolerance)}."
    missing = [one for one in tables if one.missing]
    yield from (f"\n{one.table.title}, {one.words}: no result, {one.reason}" for one in missing)
    absent = dict.fromkeys(one.dataset for one in whole.tables if one.dataset not in {o.table.dataset for o in tables})
    if absent:
        yield f"\nNot run here: {', '.join(absent)}."
    drawn = {title for title, _ in figures(outcomes)}
    undrawn = [one.title for one in whole.tables if one.drawn and one.title not in drawn]
    if undrawn:
        yield f"\nNot drawn here: {'; '.join(undrawn)}."
    yield from (f"\nNot public or not here: {what} {why}" for what, why in whole.left_out.items())


def figures(outcomes: Sequence[Outcome]) -> Iterator[tuple[str, list[Outcome]]]:
    """The figures of which every point was tried."""
    for title, group in groupby((one for one in outcomes if one.table.drawn), key=lambda one: one.table.title):
        points = list(group)
        if all(map(tried, points)):
            yield title, points


def tried(one: Outcome) -> bool:
    return not one.missing or one.reason != "not tried"


def row_of(outcomes: list[Outcome], tolerance: float) -> list[str]:
    table = outcomes[0].table
    judged = [one for one in outcomes if one.near_print(tolerance) is not None]
    points = [one for one in judged if one.measure.unit and not one.missing]
    known = [one for one in points if not math.isnan(one.cell.reference_deviation)]
    far = max(points, key=lambda one: abs(one.off), default=None)
    done = max(one.n_splits for one in outcomes)
    near, agree = sum(bool(one.near_print(tolerance)) for one in judged), sum(one.near_reference for one in known)
    return [
        table.name,
        table.dataset,
        str(table.splits) if done == table.splits else f"{done} of {table.splits}",
        str(len(outcomes)) if len(outcomes) == len(table.cells) else f"{len(outcomes)} of {len(table.cells)}",
        f"{near} of {len(judged)}",
        f"{np.mean([abs(one.off) for one in points]):.2f}" if points else "–",
        f"{far.off:+.1f} ({far.words})" if far is not None else "–",
        f"{agree} of {len(known)}" if known else "–",
    ]


def pictures(whole: Study, outcomes: Sequence[Outcome], folder: Path) -> Iterator[str]:
    """The figures of a study as files, and what shows them."""
    for title, some in figures(outcomes):
        charts = list(figure_charts(whole, some[0].table, some))
        figure = axes_for(None, (max(4.2 * len(charts), 7.0), 3.8)).figure
        figure.clear()
        axes = figure.subplots(1, len(charts), squeeze=False)[0]
        for ax, (_, chart) in zip(axes, charts, strict=True):
            draw(chart, ax, {})
        path = folder / f"reproduce_{whole.name}_{some[0].table.name}.png"
        figure.savefig(path, dpi=80)
        fewest = min(one.n_splits for one in some if not one.missing)
        yield f"\n**{title}**, at least {fewest} splits a point\n\n![{title}](images/{path.name})"


def written(page: str, name: str, lines: Sequence[str]) -> str:
    """The page with what stands between the marks of that name replaced."""
    begin, end = f"<!-- {name}: begin -->", f"<!-- {name}: end -->"
    if page.count(begin) != 1 or page.count(end) != 1:
        raise ValueError(f"The page must have {begin} and {end}, each once.")
    block = "\n".join(["", *lines, ""])
    return re.sub(f"{re.escape(begin)}.*{re.escape(end)}", lambda _: f"{begin}\n{block}\n{end}", page, flags=re.DOTALL)


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--stores", type=Path, default=Path("build/reproduce"), help="folder of the results")
    parser.add_argument("--into", type=Path, help="the page whose tables and pictures to replace")
    parser.add_argument("--only", action="append", choices=study_names(), help="this study; may be given again")
    parser.add_argument("--dataset", action="append", help="this data set; may be given again")
    parser.add_argument(
        "--no-figures", action="store_true", help="the tables only, which need fewer numbers of components"
    )
    parser.add_argument("--splits", type=int, help="fewer splits than the papers have")
    parser.add_argument("--jobs", type=int, default=1, help="processes")
    parser.add_argument("--as-stored", action="store_true", help="do nothing anew")
    options = parser.parse_args(arguments)
    options.stores.mkdir(parents=True, exist_ok=True)
    for name in options.only or study_names():
        whole = study(name)
        with Store(options.stores / f"{name}.sqlite") as store:
            outcomes = found_in(whole, store, options)
        lines = list(lines_of(whole, outcomes))
        if options.into is None:
            print("\n".join([f"\n{name}\n", *lines]))
            continue
        lines += pictures(whole, outcomes, options.into.parent / "images")
        page = options.into.read_text(encoding="utf-8")
        options.into.write_text(written(page, name, lines), encoding="utf-8")


if __name__ == "__main__":
    main()
