"""The command `discrim reproduce`."""

from __future__ import annotations

from dataclasses import replace
from itertools import groupby
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.table import Table
from rich.text import Text

from discrim.cli.comparing import require_place, typed_command
from discrim.cli.options import Jobs, StorePath
from discrim.cli.screen import SOME_FAILED, out, plain_table, progress_bar, require_apart, say
from discrim.evaluation.run import opened_store
from discrim.papers.page import printed_line, write_reproduction
from discrim.papers.reproduce import Claim, Outcome, judged, reproduced, summary
from discrim.papers.study import Study, read_study, study, study_names
from discrim.tables.table_error import are, plural


def reproduce(
    paper: Annotated[str | None, typer.Argument(metavar="[PAPER]", help=f"One of {', '.join(study_names())}.")] = None,
    table: Annotated[str | None, typer.Option("--table", "-t", help="One table of the paper.")] = None,
    figure: Annotated[
        str | None, typer.Option("--figure", "-f", help="One figure of the paper instead of tables, or all.")
    ] = None,
    dataset: Annotated[str | None, typer.Option("--dataset", "-d", help="One data set.")] = None,
    own: Annotated[
        Path | None, typer.Option("--study", help="A study of your own: a file like those of the papers.")
    ] = None,
    claims: Annotated[bool, typer.Option("--claims", help="Test the paper's claims by the corrected t test.")] = False,
    valid: Annotated[
        bool,
        typer.Option("--valid", help="Test the claims with valid conventions: intercepts, no fit outside the split."),
    ] = False,
    honest: Annotated[bool, typer.Option("--honest", hidden=True)] = False,  # the name of --valid before 0.2
    splits: Annotated[int | None, typer.Option(help="Use fewer splits than the paper.")] = None,
    html: Annotated[Path | None, typer.Option("--html", help="Write the results as an HTML page to this file.")] = None,
    jobs: Jobs = -1,
    store: StorePath = None,
) -> None:
    """Reproduce a paper's tables by its own protocol: the printed figure, ours, and the difference.

    Data sets that are not on this machine are skipped and listed. A cell without a result is listed with the reason,
    and the exit code is not zero.

    Examples:

    - `discrim reproduce maximum-margin-pca --table 4`

    - `discrim reproduce bayes-error-pca --figure 11 --html figure.html`

    - `DISCRIM_DATA=~/data discrim reproduce bayes-error-pca --dataset pima --store study.sqlite`

    - `discrim reproduce maximum-margin-pca --dataset splice --valid`
    """
    if honest:
        say("--honest is deprecated; use --valid.")
    valid = valid or honest
    if html is not None and (claims or valid):
        raise ValueError("--html must be used without --claims and --valid. Leave out one or the other.")
    require_place(html)
    require_apart({"the study": own, "the store": store}, {"--html": html})
    if (paper is None) == (own is None):
        raise ValueError(f"Exactly one of PAPER ({', '.join(study_names())}) and --study must be given.")
    requested = (study(str(paper)) if own is None else read_study(own)).part(table, dataset, figure)
    absent = {one.dataset: why for one in requested.tables if (why := requested.absent(one.dataset))}
    chosen = _available_part(requested, absent)
    with opened_store(store) as kept, progress_bar(f"reproducing {chosen.name}") as progress:
        options: dict[str, Any] = {"splits": splits, "jobs": jobs, "progress": progress}
        if claims or valid:
            _show_claims(tested := judged(chosen, kept, as_printed=not valid, **options))
            missing, failed = 0, sum(one.n_failed for one in tested)
        else:
            outcomes = reproduced(chosen, kept, **options)
            _show_outcomes(outcomes, chosen)
            if html is not None:
                write_reproduction(chosen, outcomes, html, command=typed_command(), absent=absent)
                say(f"The page is in {html}.")
            elif figure is not None:
                say("Pass --html FILE for the charts.")
            missing, failed = sum(one.missing for one in outcomes), sum(one.n_failed for one in outcomes)
    if failed:
        say(f"{plural(failed, 'trial')} failed and {are(failed)} missing from these means.")
    if failed or missing:
        raise typer.Exit(SOME_FAILED)


def _available_part(wanted: Study, absent: dict[str, str]) -> Study:
    """Return the study without the data sets that are not on this machine."""
    for name, why in sorted(absent.items()):
        say(f"skipped: {name}: {why}")
    there = tuple(one for one in wanted.tables if one.dataset not in absent)
    if not there:
        raise ValueError("None of the data sets is on this machine. Set DISCRIM_DATA to the folder that has them.")
    return replace(wanted, tables=there)


# ---------------------------------------------------------------------- printed and reproduced figures


def _show_outcomes(outcomes: list[Outcome], chosen: Study) -> None:
    out.print(f"In total: {summary(outcomes, chosen.tolerance)}.", style="bold")
    for title, group in groupby(outcomes, key=lambda one: one.table.title):
        of_table = list(group)
        measures = list(dict.fromkeys(one.cell.measure for one in of_table))
        out.print(f"\n{title}: {', '.join(measures)}", style="bold")
        out.print(_outcome_table(of_table, chosen.tolerance, with_measure=len(measures) > 1))
        for one in of_table:
            if one.missing:
                out.print(f"{one.words}, {one.cell.measure}: no result: {one.reason}", style="yellow")
        out.print(summary(of_table, chosen.tolerance))
    for what, why in chosen.left_out.items():
        out.print(f"\nNot reproduced: {what} {why}")


def _outcome_table(outcomes: list[Outcome], tolerance: float, *, with_measure: bool) -> Table:
    """Return the figures of a table; the title states a single measure, so that 80 characters are enough."""
    rows = []
    for one in outcomes:
        cell, line = one.cell, printed_line(one, tolerance)
        off = Text(f"{line.off}{' !' if line.far else '  '}", style="yellow" if line.far else "")
        named = (cell.method, str(cell.k or "all"), cell.classifier, *[cell.measure] * with_measure)
        rows.append((*named, line.printed, line.ours, off, line.reference))
    columns = ("method", "K", "classifier", *["measure"] * with_measure, "printed", "ours", "diff", "reference")
    return plain_table(columns, rows, left=("method", "classifier", "measure"))


# ---------------------------------------------------------------------- claims


def _show_claims(claims: list[Claim]) -> None:
    tested = [one.against for one in claims if one.against is not None]
    better, worse = (sum(one.verdict == word for one in tested) for word in ("better", "worse"))
    by_sign = sum(one.sign_p_value < 0.05 for one in tested)
    out.print(
        f"{better} of {len(tested)} comparisons with the baseline are significantly better and {worse} significantly "
        "worse (corrected t test, Holm's correction).",
        style="bold",
    )
    out.print(f"The one-sided sign test, which assumes independent splits, finds {by_sign} better.")
    columns = ("method", "K", "classifier", "accuracy", "gain", "p", "p (Holm)", "p (sign)")  # fits 80 characters
    for title, group in groupby(claims, key=lambda one: one.table.title):
        out.print(f"\n{title}", style="bold")
        out.print(plain_table(columns, map(_claim_cells, group), left=("method", "classifier")))


def _claim_cells(one: Claim) -> list[Text]:
    named = [one.cell.method, str(one.cell.k), one.cell.classifier, f"{100 * one.score:.1f}"]
    if one.against is None:
        return [Text(text) for text in named]
    style = {"better": "green", "worse": "red"}.get(one.against.verdict, "")
    figures = (one.against.p_value, one.against.adjusted, one.against.sign_p_value)
    over = f"{100 * one.against.mean:+.2f}"
    return [Text(text, style=style) for text in (*named, over, *(f"{p:.4g}" for p in figures))]
