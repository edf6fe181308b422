"""discrim compare"""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Annotated

import typer

from discrim.cli.exit_codes import SOME_FAILED, require_apart
from discrim.cli.options import (
    Data,
    Jobs,
    Reading,
    RetryFailed,
    Scale,
    Seed,
    StorePath,
    Wait,
    columns_of_data,
)
from discrim.cli.reporting import HtmlPath, require_place, typed_command, write_html
from discrim.cli.screen import in_lines, print_json, progress_bar, say, show_comparison
from discrim.cli.tables_by_name import (
    data_name,
    labelled_in_groups,
    labelled_sample,
)
from discrim.engines.table_files import is_large
from discrim.evaluation.classifiers import CLASSIFIERS
from discrim.evaluation.compare import compare as compared
from discrim.evaluation.comparison import Comparison
from discrim.evaluation.plan import EQUAL_ROWS
from discrim.evaluation.protocol import PROTOCOLS
from discrim.evaluation.run import lock_of, resumable
from discrim.evaluation.summary import METRICS, require_metric
from discrim.report.next_steps import Origin, commands
from discrim.tables.table_error import are, plural

QUICK_SPLITS, QUICK_ROWS, QUICK_JUDGES = 5, 10_000, ["rbf-svm"]


def compare(
    data: Data,
    reading: Reading,
    methods: Annotated[
        str,
        typer.Option("--methods", "-m", help="Names from `discrim methods` with commas between, `default` or `all`."),
    ] = "default",
    classifiers: Annotated[
        str, typer.Option("--classifiers", "-c", help=f"Of {', '.join(CLASSIFIERS)}; `default` or `all`.")
    ] = "default",
    components: Annotated[
        str, typer.Option("-k", "--components", help="Numbers of components to try, such as 2,5,10, or `auto`.")
    ] = "auto",
    protocol: Annotated[str, typer.Option(help=f"How rows are split: {', '.join(PROTOCOLS)}.")] = "holdout-80-20",
    splits: Annotated[
        int | None, typer.Option(help="How many splits, or folds. [default: 20, or 10 folds]", show_default=False)
    ] = None,
    per_class: Annotated[int | None, typer.Option(help="Training rows of each class, for few-shot.")] = None,
    scale: Scale = "standard",
    metric: Annotated[
        str,
        typer.Option(help=f"What counts: {', '.join(METRICS)}; `auto` is accuracy unless one class has most rows."),
    ] = "auto",
    seed: Seed = 0,
    jobs: Jobs = -1,
    store: StorePath = None,
    html: HtmlPath = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON instead of the table.")] = False,
    quick: Annotated[
        bool,
        typer.Option(
            "--quick",
            help=f"{QUICK_SPLITS} splits, one judge and at most {QUICK_ROWS:,} rows, unless set otherwise.",
        ),
    ] = False,
    groups: Annotated[
        str | None,
        typer.Option(
            help="Column of groups (patients, batches): rows of a group are on one side of every split.",
            autocompletion=columns_of_data,
        ),
    ] = None,
    most_rows: Annotated[
        int | None, typer.Option(help="Compare on a sample of so many rows, each class in its proportion.")
    ] = None,
    equal_rows: Annotated[
        str,
        typer.Option(
            help=f"Equal rows: {', '.join(EQUAL_ROWS)}; `auto` keeps them together if columns are continuous."
        ),
    ] = "auto",
    everything: Annotated[
        bool, typer.Option("--all", help="Print every line of the table, and every kind of score.")
    ] = False,
    permutations: Annotated[
        int,
        typer.Option(
            help="Try the recommended pipeline so often with permuted labels, such as 200: is it more than chance?"
        ),
    ] = 0,
    retry_failed: RetryFailed = False,
    wait: Wait = 0.0,
) -> None:
    """Which reduction helps, with how many components, and does it really?

    Every method is fitted on the training rows of each split, a classifier is trained on the reduced rows, and the
    test rows decide. The table says how well each did, and whether it beats PCA and the raw features by a test that
    holds for overlapping splits.

    Examples:

    - `discrim compare breast_cancer`

    - `discrim compare flowers.csv --target species -k 1,2,3 --store flowers.sqlite --html flowers.html`

    - `discrim compare genes.parquet -t tissue --methods regularized-lda,pls --classifiers svm,1-nn --metric f1`

    - `discrim compare parts/ -t kind --most-rows 50000` (of a table beyond 1 GiB, a sample is compared)

    - `discrim compare faces.npz --protocol few-shot --per-class 3 --methods all --json > faces.json`
    """
    require_metric(metric, also=("auto",))
    beside = {"the data": data, "the store": store, "the store's lock": lock_of(store) if store else None}
    require_apart(beside, {"--html": html})
    require_apart({"the data": data}, {"--store": store})
    require_place(html)
    if is_large(Path(data)):
        if groups is not None:
            raise ValueError(f"{data} is so large that a sample of it is compared, without groups. Leave out --groups.")
        most_rows = QUICK_ROWS if most_rows is None else most_rows
        table, grouping = labelled_sample(data, reading, most_rows), None
        most_rows = table.n_samples
    else:
        table, grouping = labelled_in_groups(data, reading, groups)
    words = (*reading.words, *(("--groups", groups) if groups is not None else ()))
    origin = Origin(typed_command(), data, words, reading.new_rows.words)
    with resumable(store), progress_bar(f"comparing on {data_name(data)}") as progress:
        found = compared(
            table,
            methods=listed(methods),
            classifiers=QUICK_JUDGES if quick and classifiers == "default" else listed(classifiers),
            n_components=counts_of(components),
            protocol=protocol,
            n_splits=QUICK_SPLITS if quick and splits is None else splits,
            per_class=per_class,
            most_rows=QUICK_ROWS if quick and most_rows is None else most_rows,
            groups=grouping,
            scale=scale,
            impute=reading.impute,
            metric=metric,
            permutations=permutations,
            seed=seed,
            n_jobs=jobs,
            equal_rows=equal_rows,
            store=store,
            name=data_name(data),
            progress=progress,
            retry_failed=retry_failed,
            wait=wait,
            on_stop=partial(_show_finished, as_json=as_json, html=html),
        )
        # what is to last is written first: the terminal may be gone by now, or lack a character
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


def listed(names: str) -> list[str]:
    """Names between commas."""
    return [name.strip() for name in names.split(",")]


def counts_of(components: str) -> str | list[int]:
    """Numbers between commas, or "auto"."""
    if components == "auto":
        return components
    try:
        return [int(number) for number in listed(components)]
    except ValueError:
        raise ValueError(f"-k {components}: whole numbers with commas between, such as 2,5,10, or auto.") from None


def _show_finished(found: Comparison, *, as_json: bool, html: Path | None) -> None:
    """Show what is there of a run that was stopped."""
    if found.rows and not as_json:
        show_comparison(found)
    splits, asked = len({row.split for row in found.rows}), plural(found.grid.protocol.n_splits, "split")
    say(f"{splits} of {asked} were finished; more components and permutations were not.")
    if html is not None:
        say(f"No report was written to {html}: it is made of the whole comparison.")


def _next_steps(found: Comparison, origin: Origin) -> str:
    """Return the commands that fit the recommended pipeline and predict new rows."""
    if found.recommendation is None:
        return ""
    typed = zip(("To fit it on all rows", "To predict new rows"), commands(found.recommendation, origin), strict=False)
    return "\n".join(f"{what}:\n{in_lines(one)}" for what, one in typed)
