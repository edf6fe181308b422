"""Command line: parse, call one function, print.

A command's module, with all of scikit-learn behind it, is imported only when that command runs, so `discrim --help`
is fast.
"""

import gc
import os
import sys
from collections.abc import Callable, Iterable
from importlib import import_module
from importlib.metadata import version
from typing import Annotated

try:
    import rich  # noqa: F401
    import typer
except ModuleNotFoundError as missing:
    sys.exit(f"The command line needs {missing.name}. Install it with: pip install 'discrim[cli]'")

# name → module and description
COMMANDS = {
    "compare": ("discrim.cli.comparing", "Recommend a reduction, and test whether it helps."),
    "check": ("discrim.cli.listing", "List problems of a table, and the options that solve them."),
    "report": ("discrim.cli.comparing", "Write stored results as one HTML page."),
    "project": ("discrim.cli.projecting", "Fit a model on all rows, and save it or its features."),
    "apply": ("discrim.cli.projecting", "Compute features and predictions of new rows."),
    "reproduce": ("discrim.papers.command", "Reproduce the papers' tables and figures."),
    "methods": ("discrim.cli.listing", "List reductions and classifiers."),
    "datasets": ("discrim.cli.listing", "List data sets that are known by name."),
}


def application(wanted: Iterable[str] = tuple(COMMANDS)) -> typer.Typer:
    """Return the application with the wanted commands; the others have a name and a description only."""
    wanted = set(wanted)
    app = typer.Typer(
        help="Supervised dimensionality reduction: find the few components that separate classes.",
        no_args_is_help=True,
        rich_markup_mode="markdown",
        pretty_exceptions_enable=False,
        context_settings={"help_option_names": ["-h", "--help"]},
    )
    app.callback()(_version_or_command)
    for name, (module, gloss) in COMMANDS.items():
        if name in wanted:
            app.command(name)(_command(module, name))
        else:
            app.command(name, help=gloss)(lambda: None)
    return app


def _command(module: str, name: str) -> Callable[..., None]:
    """Return the command with one option per field, and with errors as one message and an exit code."""
    gc.disable()  # imports leave nothing to collect, and the search for it takes 6 % of their time
    try:
        expanded = import_module("discrim.cli.options").with_options(getattr(import_module(module), name))
        return import_module("discrim.cli.screen").ending_cleanly(expanded)
    finally:
        gc.enable()


def main() -> None:
    """Run the command line."""
    for name in ("stdin", "stdout", "stderr"):
        stream = getattr(sys, name)
        if stream is None:  # closed (`>&-`): the next opened file would get its number, and the output
            setattr(sys, name, open(os.devnull, "r" if name == "stdin" else "w", encoding="utf-8"))  # noqa: SIM115
        elif hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="replace")  # replace characters that the terminal lacks
    typed = sys.argv[1:] + os.environ.get("COMP_WORDS", "").split() + os.environ.get("_TYPER_COMPLETE_ARGS", "").split()
    try:
        application(word for word in typed if word in COMMANDS)(prog_name="discrim")
    except (ImportError, MemoryError) as error:
        if isinstance(error, ImportError) and "failed to map segment" not in str(error):
            raise
        sys.exit("discrim: the memory limit of this process (ulimit -v) is too small to start. Raise it.")


def _print_version(asked: bool) -> None:
    if asked:
        print(f"discrim {version('discrim')}")
        raise typer.Exit


def _version_or_command(
    shown: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None: ...


__all__ = ["application", "main"]
