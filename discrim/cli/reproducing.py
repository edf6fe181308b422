"""discrim reproduce"""

from __future__ import annotations

import math
from functools import partial
from itertools import groupby
from typing import Annotated, Any

import typer
from rich.table import Table
from rich.text import Text

from discrim.cli.endings import SOME_FAILED, ending_cleanly
from discrim.cli.options import Jobs, StorePath
from discrim.cli.screen import out, progress_bar, say
from discrim.data import catalogue
from discrim.evaluation.compare import opened_store
from discrim.evaluation.reproduce import Claim, Outcome, judged, reproduced, summary
from discrim.evaluation.study import Study, study, study_names


@ending_cleanly
def reproduce(
    paper: Annotated[str, typer.Argument(metavar="PAPER", help=f"One of {', '.join(study_names())}.")],
    table: Annotated[str | None, typer.Option("--table", "-t", help="One table of the paper.")] = None,
    dataset: Annotated[str | None, typer.Option("--dataset", "-d", help="One data set.")] = None,
    claims: Annotated[
        bool,
        typer.Option("--claims", help="Not the paper's figures but its claims, tested by the corrected t test."),
    ] = False,
    honest: Annotated[
        bool,
        typer.Option("--honest", help="The claims by conventions that hold, too: intercepts, everything in the split."),
    ] = False,
    splits: Annotated[int | None, typer.Option(help="Fewer splits than the paper has, for a quick look.")] = None,
    jobs: Jobs = -1,
    store: StorePath = None,
) -> None:
    """A paper's tables by its own protocol and conventions: the printed figure, ours, and the difference.

    Data sets that are not on this machine are left out and named.

    Examples:

    - `discrim reproduce maximum-margin-pca --table 4`

    - `DISCRIM_DATA=~/data discrim reproduce bayes-error-pca --dataset pima --store study.sqlite`

    - `discrim reproduce maximum-margin-pca --dataset splice --honest`
    """
    chosen = _at_hand(study(paper).part(table, dataset))
    load = partial(catalogue.load, download=False)
    with opened_store(store) as kept, progress_bar(f"reproducing {paper}") as progress:
        options: dict[str, Any] = {"splits": splits, "jobs": jobs, "progress": progress}
        if claims or honest:
            found = judged(chosen, kept, load, as_printed=not honest, **options)
        else:
            outcomes = reproduced(chosen, kept, load, **options)
    if claims or honest:
        _show_claims(found)
    else:
        _show_outcomes(outcomes, chosen)
    failed = sum(one.n_failed for one in (found if claims or honest else outcomes))
    if failed:
        say(f"{failed} trials failed and are missing from these means.")
        raise typer.Exit(SOME_FAILED)


def _at_hand(wanted: Study) -> Study:
    """The study without the data sets that are not on this machine."""
    absent = {one.dataset for one in wanted.tables if not catalogue.where(one.dataset).here}
    for name in sorted(absent):
        say(f"left out: {name}: {catalogue.where(name).place}")
    if len(absent) == len({one.dataset for one in wanted.tables}):
        raise ValueError("None of the data sets is on this machine.")
    there = [one for one in wanted.tables if one.dataset not in absent]
    return Study(**{**vars(wanted), "tables": tuple(there)})


def _show_outcomes(outcomes: list[Outcome], chosen: Study) -> None:
    for (name, dataset), group in groupby(outcomes, key=lambda one: (one.table.name, one.table.dataset)):
        of_table = list(group)
        out.print(Text(f"\nTable {name}, {dataset}", style="bold"))
        out.print(_outcome_table(of_table, chosen.tolerance))
        out.print(Text(summary(of_table, chosen.tolerance)))
    out.print(Text(f"\nAll in all: {summary(outcomes, chosen.tolerance)}.", style="bold"))


def _outcome_table(outcomes: list[Outcome], tolerance: float) -> Table:
    table = Table(box=None, pad_edge=False)
    for name in ("method", "K", "classifier", "measure"):
        table.add_column(name, justify="right" if name == "K" else "left", no_wrap=True)
    for name in ("printed", "ours", "difference", "reference"):
        table.add_column(name, justify="right", no_wrap=True)
    for one in outcomes:
        cell = one.cell
        points = one.table.measure in ("accuracy", "error")
        near = one.near_print(tolerance) if points else True
        table.add_row(
            *map(Text, (cell.method, str(cell.k or "all"), cell.classifier, one.table.measure)),
            Text(_with_deviation(cell.printed, cell.printed_deviation)),
            Text(_with_deviation(one.ours, one.deviation)),
            Text(f"{one.off:+.2f}{' ' if near else ' !'}", style="" if near else "yellow"),
            Text(_with_deviation(cell.reference, cell.reference_deviation)),
        )
    return table


def _with_deviation(figure: float, deviation: float) -> str:
    shown = "–" if math.isnan(figure) else f"{figure:.2f}"
    return shown if math.isnan(deviation) else f"{shown} ± {deviation:.2f}"


def _show_claims(claims: list[Claim]) -> None:
    for (name, dataset), group in groupby(claims, key=lambda one: (one.table.name, one.table.dataset)):
        table = Table(box=None, pad_edge=False)
        for column in (
            "method",
            "K",
            "classifier",
            "accuracy %",
            "over baseline",
            "p, corrected",
            "after Holm",
            "p, sign test",
        ):
            table.add_column(column, justify="left" if column in ("method", "classifier") else "right", no_wrap=True)
        for one in group:
            table.add_row(*_claim_cells(one))
        out.print(Text(f"\nTable {name}, {dataset}", style="bold"))
        out.print(table)
    tested = [one.against for one in claims if one.against is not None]
    counted = {word: sum(one.verdict == word for one in tested) for word in ("better", "worse", "no difference shown")}
    by_sign = sum(one.sign_p_value < 0.05 for one in tested)
    words = ", ".join(f"{word} {count}" for word, count in counted.items())
    out.print(
        Text(f"\nOf {len(tested)} comparisons with the baseline, corrected t test after Holm: {words}.", style="bold")
    )
    out.print(Text(f"The one-sided sign test, which takes the splits for independent, would call {by_sign} better."))


def _claim_cells(one: Claim) -> list[Text]:
    named = [one.cell.method, str(one.cell.k), one.cell.classifier, f"{100 * one.score:.1f}"]
    if one.against is None:
        return [*map(Text, named), Text("")]
    style = {"better": "green", "worse": "red"}.get(one.against.verdict, "")
    figures = (one.against.p_value, one.against.adjusted, one.against.sign_p_value)
    over = f"{100 * one.against.mean:+.2f}"
    return [
        Text(text, style=style) for text in (*named, over, *(f"{p:.3f}" if p >= 0.001 else "<.001" for p in figures))
    ]
