"""All commands in one application."""

from __future__ import annotations

import typer

from discrim.cli.comparing import compare
from discrim.cli.listing import datasets, methods
from discrim.cli.projecting import apply, project
from discrim.cli.reporting import report
from discrim.cli.reproducing import reproduce

app = typer.Typer(
    help="Supervised dimensionality reduction: the few directions that keep the classes apart.",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode="markdown",
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
for command in (compare, report, project, apply, reproduce, methods, datasets):
    app.command()(command)


def main() -> None:
    """The entry point."""
    app(prog_name="discrim")
