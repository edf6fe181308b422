"""The command `discrim compare`, and the report that it shares with `discrim report`."""

from __future__ import annotations

import errno
import shlex
import sys
from collections.abc import Callable
from dataclasses import dataclass, fields, replace
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import typer

from discrim.cli.options import (
    RUN,
    Data,
    FileFormat,
    Groups,
    Html,
    Jobs,
    Metric,
    Reading,
    Scale,
    StorePath,
    arguments_of,
    data_name,
    is_file,
    labelled,
    labelled_in_groups,
    labelled_sample,
    readings_in_groups,
)
from discrim.cli.screen import (
    SOME_FAILED,
    in_lines,
    print_json,
    progress_bar,
    require_apart,
    require_folder,
    say,
    show_comparison,
)
from discrim.engines.table_files import is_large
from discrim.evaluation.classifiers import CLASSIFIERS
from discrim.evaluation.compare import compare as compared
from discrim.evaluation.comparison import Comparison, comparisons_in
from discrim.evaluation.plan import EQUAL_ROWS
from discrim.evaluation.protocol import PROTOCOLS
from discrim.evaluation.run import lock_of, resumable
from discrim.evaluation.store import Store
from discrim.evaluation.summary import require_metric
from discrim.report.page import Origin, commands, template_engine, write_report
from discrim.tables import catalogue
from discrim.tables.labelled_table import LabelledTable
from discrim.tables.table_error import are, plural


def report(
    store: Annotated[Path, typer.Argument(metavar="STORE", help="A file that `discrim compare --store` wrote.")],
    reading: Reading,
    html: Annotated[Path, typer.Option("--html", help="File for the report.")] = Path("report.html"),
    data: Annotated[
        list[str] | None,
        typer.Option(
            "--data",
            "-d",
            metavar="DATA",
            help="The data, for pictures of the rows: a file or a name; may be repeated. Data sets that are known by "
            "name are found without it.",
        ),
    ] = None,
    metric: Metric = "auto",
) -> None:
    """Write stored results as one HTML page: the answer first, then the evidence.

    All data sets of the store are in one report, which also ranks the methods over them.

    Examples:

    - `discrim report results.sqlite --html report.html`

    - `discrim report flowers.sqlite --data flowers.csv --target species --html flowers.html`
    """
    require_metric(metric, also=("auto",))
    require_place(html)
    require_apart(
        {"the store": store, "the store's lock": lock_of(store)} | {f"the data {one}": one for one in data or ()},
        {"--html": html},
    )
    given = {data_name(one): one for one in data or ()}
    with Store(store, read_only=True) as kept:
        found = comparisons_in(kept.rows(), metric, _table_of(given, reading), kept.runs())
    if not found:
        raise ValueError(f"{store} has no results. Run discrim compare with --store {store} first.")
    unknown = given.keys() - {one.setting["data"] for one in found}
    if unknown:
        known = ", ".join(sorted({one.setting["data"] for one in found}))
        raise ValueError(f"{store} has no results on {', '.join(sorted(unknown))}. It has results on: {known}.")
    for one in found:
        if one.data is None:
            say(f"{one.label}: without pictures of the rows. {one.lacking}")
    only = given.get(found[0].setting["data"], "") if len(found) == 1 else ""
    write_report(found, html, origin_of(only, reading) if only else Origin(typed_command()))
    say(f"The report is in {html}.")


def require_place(html: Path | None) -> None:
    """Raise at once if the report could not be written."""
    if html is None:
        return
    if html.is_dir():
        raise IsADirectoryError(errno.EISDIR, "A report is a file, not a folder", str(html))
    require_folder(html, "the report")
    template_engine()


def typed_command() -> str:
    """Return the command line as it was typed."""
    return shlex.join(["discrim", *sys.argv[1:]])


def origin_of(data: str, reading: Reading, groups: str | None = None) -> Origin:
    """Return how DATA is read, as options of the command line and as arguments in Python."""
    words = (*reading.words, *(("--groups", groups) if groups is not None else ()))
    origin = Origin(typed_command(), data, words, reading.new_rows.words)
    if not is_file(data) or is_large(Path(data)):
        return origin
    usual, usual_rows = arguments_of(Reading()), vars(FileFormat())
    table, of_groups = (
        {name: one for name, one in arguments_of(some).items() if name == "target" or one != usual[name]}
        for some in readings_in_groups(reading, groups)
    )
    new_rows = {name: one for name, one in vars(reading.new_rows).items() if one != usual_rows[name]}
    new_rows |= {"missing_cells": "keep"} if reading.impute is not None else {}
    return replace(origin, table=table, groups=None if groups is None else of_groups, features=new_rows)


def _table_of(given: dict[str, str], reading: Reading) -> Callable[[str], LabelledTable | None]:
    """Return a function that finds the table of a data set: as passed, or in the catalogue if it is available."""

    def table_of(name: str) -> LabelledTable | None:
        if name in given:
            return labelled(given[name], reading).for_evaluation()
        try:
            return catalogue.load(name, download=False).for_evaluation()
        except ValueError:
            return None

    return table_of


QUICK_SPLITS, QUICK_ROWS, QUICK_JUDGES = 5, 10_000, ["rbf-svm"]


@dataclass(frozen=True)
class Trials:
    """Options of a comparison: reductions, classifiers, splits and the score."""

    methods: Annotated[
        str,
        typer.Option(
            "--methods", "-m", help="Reductions, separated by commas (see `discrim methods`), or `default`, or `all`."
        ),
    ] = "default"
    classifiers: Annotated[
        str,
        typer.Option(
            "--classifiers", "-c", help=f"Classifiers on the components: {', '.join(CLASSIFIERS)}; `default`, or `all`."
        ),
    ] = "default"
    components: Annotated[
        str, typer.Option("-k", "--components", help="Numbers of components to try, such as 2,5,10, or `auto`.")
    ] = "auto"
    protocol: Annotated[str, typer.Option(help=f"Split into training and test rows: {', '.join(PROTOCOLS)}.")] = (
        "holdout-80-20"
    )
    splits: Annotated[
        int | None, typer.Option(help="Number of splits. [default: 20, or 10 folds]", show_default=False)
    ] = None
    per_class: Annotated[int | None, typer.Option(help="Training rows per class, for few-shot.")] = None
    scale: Scale = "standard"
    metric: Metric = "auto"
    quick: Annotated[
        bool,
        typer.Option(
            "--quick", help=f"First look: {QUICK_SPLITS} splits, one classifier and at most {QUICK_ROWS:,} rows."
        ),
    ] = False
    most_rows: Annotated[int | None, typer.Option(help="Compare on a stratified sample with this number of rows.")] = (
        None
    )
    equal_rows: Annotated[
        str,
        typer.Option(
            help=f"Splitting of equal rows: {', '.join(EQUAL_ROWS)}; `auto` is together if most columns are continuous."
        ),
    ] = "auto"
    permutations: Annotated[
        int,
        typer.Option(help="Number of label permutations for a permutation test of the recommended pipeline, e.g. 200."),
    ] = 0
    seed: Annotated[int, typer.Option(help="Seed of the splits and of random methods.", rich_help_panel=RUN)] = 0
    jobs: Jobs = -1
    store: StorePath = None
    retry_failed: Annotated[
        bool, typer.Option("--retry-failed", help="Repeat the failed trials of the store.", rich_help_panel=RUN)
    ] = False
    wait: Annotated[float, typer.Option(help="Seconds to wait if another run uses the store.", rich_help_panel=RUN)] = (
        0.0
    )

    @property
    def arguments(self) -> dict[str, Any]:
        """Return the arguments of `discrim.compare`."""
        given = {one.name: getattr(self, one.name) for one in fields(self) if one.name not in _CALLED_ELSE}
        quick, splits, most_rows = self.quick, self.splits, self.most_rows
        return given | {
            "methods": _listed(self.methods),
            "classifiers": QUICK_JUDGES if quick and self.classifiers == "default" else _listed(self.classifiers),
            "n_components": _counts(self.components),
            "n_splits": QUICK_SPLITS if quick and splits is None else splits,
            "most_rows": QUICK_ROWS if quick and most_rows is None else most_rows,
            "n_jobs": self.jobs,
        }


_CALLED_ELSE = ("components", "splits", "jobs", "quick")  # in Python, or not known there


def compare(
    data: Data,
    reading: Reading,
    trials: Trials,
    groups: Groups = None,
    html: Html = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON instead of text.")] = False,
    everything: Annotated[bool, typer.Option("--all", help="Print all lines of the table, with every score.")] = False,
) -> None:
    """Recommend a reduction and a number of components, and test whether it helps.

    Every reduction is fitted on the training rows of each split, classifiers are trained on its components, and the
    test rows give the score. The answer compares the best pipeline with PCA and with strong classifiers of all columns,
    by a test that is valid for overlapping splits.

    Examples:

    - `discrim compare breast_cancer`

    - `discrim compare flowers.csv --target species -k 1,2,3 --store flowers.sqlite --html flowers.html`

    - `discrim compare genes.parquet -t tissue --methods regularized-lda,pls --classifiers svm,1-nn --metric f1`

    - `discrim compare parts/ -t kind --most-rows 50000` (tables above 1 GiB are compared on a sample)

    - `discrim compare faces.npz --protocol few-shot --per-class 3 --methods all --json > faces.json`
    """
    store = trials.store
    require_metric(trials.metric, also=("auto",))
    # the store is read if it exists, and written
    require_apart(
        {"the data": data, "the store": store, "the store's lock": lock_of(store) if store else None}, {"--html": html}
    )
    require_apart({"the data": data}, {"--store": store, "--html": html})
    require_place(html)
    if is_large(Path(data)):
        if groups is not None:
            raise ValueError(
                f"--groups must not be used with {data}: a table of this size is sampled. Leave out --groups."
            )
        most_rows = QUICK_ROWS if trials.most_rows is None else trials.most_rows
        table, grouping = labelled_sample(data, reading, most_rows), None
        trials = replace(trials, most_rows=table.n_samples)
    else:
        table, grouping = labelled_in_groups(data, reading, groups)
    origin = origin_of(data, reading, groups)
    with resumable(store), progress_bar(f"comparing on {data_name(data)}") as progress:
        found = compared(
            table,
            **trials.arguments,
            groups=grouping,
            impute=reading.impute,
            name=data_name(data),
            progress=progress,
            on_stop=partial(_show_finished, as_json=as_json, store=store, html=html),
        )
        # files are written first: the terminal may be closed by now, or lack a character
        if html is not None:
            write_report(found, html, origin)
            say(f"The report is in {html}.")
        if store is not None:
            say(f"{plural(len(found.rows), 'result')} {are(len(found.rows))} kept in {store}.")
        if as_json:
            print_json(found)
        else:
            show_comparison(found, _next_steps(found, origin), everything=everything)
    if found.failures:
        raise typer.Exit(SOME_FAILED)


def _listed(names: str) -> list[str]:
    """Return names separated by commas."""
    return [name.strip() for name in names.split(",")]


def _counts(components: str) -> str | list[int]:
    """Return numbers separated by commas, or "auto"."""
    if components == "auto":
        return components
    try:
        return [int(number) for number in _listed(components)]
    except ValueError:
        raise ValueError(
            f"-k must be whole numbers separated by commas, such as 2,5,10, or auto; got {components}."
        ) from None


def _show_finished(found: Comparison, *, as_json: bool, store: Path | None, html: Path | None) -> None:
    """Show the finished splits of a run that was stopped."""
    if found.rows and not as_json:
        show_comparison(found)
    planned = 0 if found.facts is None else found.facts.n_splits
    finished = f"{len({row.split for row in found.rows})} of {plural(planned, 'split')} were finished"
    say(f"{finished}; more components and permutations were not tried.")
    if store is None:
        say("Nothing was kept: with --store FILE, the same command resumes where it stopped.")
    if html is not None:
        say(f"No report was written to {html}, because the comparison was not finished.")


def _next_steps(found: Comparison, origin: Origin) -> str:
    """Return the commands that fit the recommended pipeline and predict new rows."""
    if found.recommendation is None:
        return ""
    typed = zip(("To fit it on all rows", "To predict new rows"), commands(found.recommendation, origin), strict=False)
    return "\n".join(f"{what}:\n{in_lines(one)}" for what, one in typed)
