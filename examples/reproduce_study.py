"""Reproduction of the papers' tables, figures and claims: the content of docs/reproduce.md.

    DISCRIM_DATA=folder python examples/reproduce_study.py --stores build/reproduce --into docs/reproduce.md

Results are stored in a folder, one file per study, so an interrupted run continues where it stopped.
Without --into the tables are printed. With --as-stored nothing is computed: the page shows the stored results.
"""

import argparse
import math
from collections.abc import Container, Iterator, Sequence
from dataclasses import replace
from itertools import groupby
from pathlib import Path

import numpy as np
from study_parts import arguments, figure, markdown, show

from discrim.evaluation.store import Store
from discrim.evaluation.summary import LEVEL
from discrim.papers.page import figure_charts
from discrim.papers.reproduce import Claim, Outcome, judged, reproduced, summary
from discrim.papers.study import Study, study, study_names
from discrim.report.drawing import axes_for, draw

HEAD = ["table", "data", "splits", "cells", "near print", "mean difference", "largest", "near reference"]
PARTS = ("tables", "figures", "claims")


def available_part(whole: Study, options: argparse.Namespace, kinds: Container[str]) -> Study:
    """Return the requested tables and figures whose data are available."""
    there = [
        one
        for one in whole.tables
        if ("figures" if one.drawn else "tables") in kinds
        and not whole.absent(one.dataset)
        and (options.dataset is None or one.dataset in options.dataset)
    ]
    return replace(whole, tables=tuple(there))


def lines_of(whole: Study, outcomes: Sequence[Outcome]) -> Iterator[str]:
    """Yield the study's table, a row for each data set, and the list of what is left out."""
    tables = [one for one in outcomes if not one.table.drawn and tried(one)]
    if all(one.drawn for one in whole.tables):
        return
    if not tables:
        yield "Not run yet."
        return
    by_table = groupby(tables, key=lambda one: one.table.title)
    yield from markdown(HEAD, [row_of(list(group), whole.tolerance) for _, group in by_table], names=2)
    yield f"In total: {summary(tables, whole.tolerance)}."
    for name, group in groupby(tables, key=lambda one: one.table.name):
        yield from side_by_side(name, list(group))
    missing = [one for one in tables if one.missing]
    yield from (f"\n{one.table.title}, {one.words}: no result, {one.reason}" for one in missing)
    shown = {one.table.dataset for one in outcomes if tried(one)}
    absent = dict.fromkeys(one.dataset for one in whole.tables if one.dataset not in shown)
    if absent:
        yield f"\nNot run here: {', '.join(absent)}."
    drawn = {title for title, _ in figures(outcomes)}
    undrawn = [one.title for one in whole.tables if one.drawn and one.title not in drawn]
    if undrawn:
        yield f"\nNot drawn here: {'; '.join(undrawn)}."
    yield from (f"\nNot available: {what} {why}" for what, why in whole.left_out.items())


def side_by_side(name: str, outcomes: list[Outcome]) -> Iterator[str]:
    """Yield a table of one K and classifier cell by cell: methods in rows, data sets in columns."""
    if len({one.cell[1:3] + one.cell[-1:] for one in outcomes}) > 1 or len(outcomes) < 3:
        return
    found = {(one.cell.method, one.table.dataset): one for one in outcomes}
    methods, data = (dict.fromkeys(key[at] for key in found) for at in (0, 1))
    yield f"\nTable {name}, printed / ours:\n"
    rows = [[method, *(both(found.get((method, of))) for of in data)] for method in methods]
    yield from markdown(["method", *data], rows)


def both(one: Outcome | None) -> str:
    return "–" if one is None else f"{one.cell.printed:.1f} / {figure(one.ours)}"


def figures(outcomes: Sequence[Outcome]) -> Iterator[tuple[str, list[Outcome]]]:
    """Yield the figures of which every point was tried."""
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
    """Write the figures of a study to files; yield the lines that include them."""
    for title, some in figures(outcomes):
        charts = list(figure_charts(whole, some[0].table, some))
        across, down = min(len(charts), 4), math.ceil(len(charts) / 4)
        page = axes_for(None, (max(4.4 * across, 7.0), 3.8 * down)).figure
        page.clear()
        for ax, (_, chart) in zip(page.subplots(down, across, squeeze=False).flat, charts, strict=False):
            draw(chart, ax, {})
        path = folder / f"reproduce_{whole.name}_{some[0].table.name}.png"
        page.savefig(path, dpi=80)
        fewest = min(one.n_splits for one in some if not one.missing)
        splits = f"at least {fewest} split{'' if fewest == 1 else 's'} per point"
        yield f"\n**{title}**, {splits}\n\n![{title}](images/{path.name})"


def claimed(claims: Sequence[Claim], conventions: str) -> Iterator[str]:
    """Yield a row for each data set and one for all, with a column for each method claimed to be better."""
    tested = [one for one in claims if one.against is not None]
    if not tested:
        return
    methods = list(dict.fromkeys(one.cell.method for one in tested))
    rows = []
    for title in [*dict.fromkeys(one.table.title for one in tested), "all"]:
        of_table = [one for one in tested if title in ("all", one.table.title)]
        fewest = min(one.against.n_splits for one in of_table)
        by_method = [[one.against for one in of_table if one.cell.method == method] for method in methods]
        rows.append([title, str(fewest), *map(counted, by_method)])
    yield f"{conventions}:\n"
    yield from markdown(["table, data", "splits", *methods], rows)


def counted(found) -> str:
    if not found:
        return ""
    words = [one.verdict for one in found]
    by_sign = sum(one.sign_p_value < LEVEL for one in found)
    better, worse = words.count("better"), words.count("worse")
    gain = 100 * np.mean([one.mean for one in found])
    return f"{gain:+.1f}: {better} / {worse} ({by_sign}) of {len(found)}"


SETTINGS = {
    True: "By the paper's conventions (`--claims`)",
    False: "With valid conventions: everything fitted inside the split, columns standardised, intercepts (`--valid`)",
}


def claims_of(whole: Study, store: Store, run: dict) -> Iterator[str]:
    yield f"Gain in points over {whole.baseline} with the same K and classifier; then the number of comparisons"
    yield "that are better / worse by the corrected t test at 5 % after Holm's correction over the table, and in"
    yield "brackets the number that are better by the one-sided sign test.\n"
    for as_printed, conventions in SETTINGS.items():
        yield from claimed(judged(whole, store, as_printed=as_printed, **run), conventions)


def main(given: Sequence[str] | None = None) -> None:
    parser = arguments(__doc__)
    parser.add_argument("--stores", type=Path, default=Path("build/reproduce"), help="folder of the results")
    parser.add_argument("--only", action="append", choices=study_names(), help="this study; may be given again")
    parser.add_argument("--part", action="append", choices=PARTS, help="these alone; may be given again")
    parser.add_argument("--dataset", action="append", help="this data set; may be given again")
    parser.add_argument("--splits", type=int, help="fewer splits than the papers have")
    parser.add_argument("--as-stored", action="store_true", help="show the stored results; compute nothing")
    options = parser.parse_args(given)
    options.stores.mkdir(parents=True, exist_ok=True)
    run = {"splits": options.splits, "jobs": options.jobs, "as_stored": options.as_stored}
    parts = options.part or PARTS
    for name in options.only or study_names():
        whole = study(name)
        with Store(options.stores / f"{name}.sqlite") as store:
            if set(parts) - {"claims"}:
                outcomes = reproduced(available_part(whole, options, parts), store, **run)
                lines = [*lines_of(whole, outcomes)]
                if options.into is not None:
                    lines += pictures(whole, outcomes, options.into.parent / "images")
                show(lines, options.into, name)
            if "claims" in parts and whole.valid is not None:
                show(claims_of(available_part(whole, options, ["tables"]), store, run), options.into, f"{name} claims")


if __name__ == "__main__":
    main()
