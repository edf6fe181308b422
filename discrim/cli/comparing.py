"""discrim compare"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from discrim.cli.endings import SOME_FAILED, TerminatedError, ending_cleanly
from discrim.cli.options import (
    Data,
    Jobs,
    Reading,
    RetryFailed,
    Scale,
    Seed,
    StorePath,
    Wait,
    with_options,
)
from discrim.cli.places import require_apart
from discrim.cli.reporting import HtmlPath, require_place, typed_command, write_html
from discrim.cli.screen import print_json, progress_bar, say, show_comparison
from discrim.cli.tables_by_name import labelled, name_of, say_where_labels_are
from discrim.evaluation.classifiers import CLASSIFIERS
from discrim.evaluation.compare import Comparison, grid_of, opened_store, so_far
from discrim.evaluation.grid import Grid
from discrim.evaluation.protocol import PROTOCOLS
from discrim.evaluation.run import run
from discrim.evaluation.summary import METRICS, require_metric
from discrim.report.answer import project_command
from discrim.report.page import Origin

QUICK_SPLITS = 5


@dataclass(frozen=True)
class Running:
    """How a grid is to be done and shown."""

    metric: str
    jobs: int
    store: Path | None
    retry_failed: bool
    wait: float
    as_json: bool


@ending_cleanly
@with_options
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
    metric: Annotated[str, typer.Option(help=f"What counts: {', '.join(METRICS)}.")] = "accuracy",
    seed: Seed = 0,
    jobs: Jobs = -1,
    store: StorePath = None,
    html: HtmlPath = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON instead of the table.")] = False,
    quick: Annotated[
        bool, typer.Option("--quick", help=f"{QUICK_SPLITS} splits and one classifier, where not said otherwise.")
    ] = False,
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

    - `discrim compare faces.npz --protocol few-shot --per-class 3 --methods all --json > faces.json`
    """
    require_metric(metric)
    require_apart({"the data": data, "the store": store}, {"--html": html})
    require_apart({"the data": data}, {"--store": store})
    require_place(html)
    table = labelled(data, reading)
    say_where_labels_are(table, reading, data)
    grid = grid_of(
        table,
        name_of(data),
        methods=listed(methods),
        classifiers=["svm"] if quick and classifiers == "default" else listed(classifiers),
        counts=counts_of(components),
        protocol=protocol,
        n_splits=QUICK_SPLITS if quick and splits is None else splits,
        per_class=per_class,
        scale=scale,
        seed=seed,
    )
    found = _done(grid, Running(metric, jobs, store, retry_failed, wait, as_json))
    if as_json:
        print_json(found)
    else:
        show_comparison(found, _next_step(found, data, reading))
    if html is not None:
        write_html(found, html, Origin(typed_command(), data, reading.words))
    if store is not None:
        say(f"{len(found.rows)} results are kept in {store}.")
    if found.failures:
        raise typer.Exit(SOME_FAILED)


def listed(names: str) -> list[str]:
    """Names between commas."""
    return [name.strip() for name in names.split(",") if name.strip()]


def counts_of(components: str) -> str | list[int]:
    """Numbers between commas, or "auto"."""
    if components == "auto":
        return components
    try:
        return [int(number) for number in listed(components)]
    except ValueError:
        raise ValueError(f"-k {components}: whole numbers with commas between, such as 2,5,10, or auto.") from None


def _done(grid: Grid, running: Running) -> Comparison:
    """The grid, done; when it is stopped, what is done so far is shown."""
    with opened_store(running.store) as store, progress_bar(f"comparing on {grid.name}") as progress:
        try:
            rows = run(
                grid,
                store,
                jobs=running.jobs,
                progress=progress,
                retry_failed=running.retry_failed,
                wait=running.wait,
            )
        except (KeyboardInterrupt, TerminatedError):
            _show_so_far(so_far(grid, store, running.metric), running)
            raise
    return Comparison(grid, rows, running.metric)


def _show_so_far(found: Comparison, running: Running) -> None:
    total = found.grid.protocol.n_splits
    splits = len({row["trial"]["split"] for row in found.rows})
    if found.rows and not running.as_json:
        show_comparison(found)
    kept = (
        f"All finished trials are kept in {running.store}: the same command goes on from there."
        if running.store
        else "Nothing is kept; with --store FILE the next run would go on from here."
    )
    say(f"{splits} of {total} splits were finished. {kept}")


def _next_step(found: Comparison, data: str, reading: Reading) -> str:
    """What to type to get the features."""
    command = project_command(found.best, data, reading.words, found.grid.scale) if found.best else ""
    return f"To get these features: {command}" if command else ""
