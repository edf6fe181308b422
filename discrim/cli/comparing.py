"""Command `discrim compare`."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import typer

from discrim.cli.exit_codes import SOME_FAILED, require_apart
from discrim.cli.options import RUN, Data, Groups, Html, Jobs, Metric, Reading, Scale, StorePath
from discrim.cli.reporting import origin_of, require_place, write_html
from discrim.cli.screen import in_lines, print_json, progress_bar, say, show_comparison
from discrim.cli.tables_by_name import data_name, labelled_in_groups, labelled_sample
from discrim.engines.table_files import is_large
from discrim.evaluation.classifiers import CLASSIFIERS
from discrim.evaluation.compare import compare as compared
from discrim.evaluation.comparison import Comparison
from discrim.evaluation.plan import EQUAL_ROWS
from discrim.evaluation.protocol import PROTOCOLS
from discrim.evaluation.run import lock_of, resumable
from discrim.evaluation.summary import require_metric
from discrim.report.next_steps import Origin, commands
from discrim.tables.table_error import are, plural

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
    inputs = {"the data": data, "the store": store, "the store's lock": lock_of(store) if store else None}
    require_apart(inputs, {"--html": html})
    require_apart({"the data": data}, {"--store": store})
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
            write_html(found, html, origin)
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
