"""The command line: parse, call one function, print.

A command's module, with all of scikit-learn behind it, is imported when the command is typed and not before, so that
`discrim --help` is there at once.
"""

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

# name → where it is, and what it does
COMMANDS = {
    "compare": ("discrim.cli.comparing", "Which reduction helps, with how many components, and does it really?"),
    "check": ("discrim.cli.checking", "Missing cells, text, identifiers, equal rows: what settles each."),
    "report": ("discrim.cli.reporting", "The results of a store as one HTML page."),
    "project": ("discrim.cli.projecting", "Fit one reduction and write its features, its model, or both."),
    "apply": ("discrim.cli.projecting", "Features of new rows by a saved model."),
    "reproduce": ("discrim.papers.command", "Reproduce the papers' tables and figures."),
    "methods": ("discrim.cli.listing", "What can be compared."),
    "datasets": ("discrim.cli.listing", "What can be called by name, and where it is."),
}


def application(wanted: Iterable[str] = tuple(COMMANDS)) -> typer.Typer:
    """The application with the wanted commands; of the others only their names and what they do."""
    wanted = set(wanted)
    app = typer.Typer(
        help="Supervised dimensionality reduction: the few directions that keep the classes apart.",
        no_args_is_help=True,
        rich_markup_mode="markdown",
        pretty_exceptions_enable=False,
        context_settings={"help_option_names": ["-h", "--help"]},
    )
    app.callback()(_version_or_command)
    for name, (module, gloss) in COMMANDS.items():
        app.command(name)(_command(module, name) if name in wanted else _named_only(gloss))
    return app


def _command(module: str, name: str) -> Callable[..., None]:
    """The command with its options spelled out, and its errors as one message and an exit code."""
    expanded = import_module("discrim.cli.options").with_options(getattr(import_module(module), name))
    return import_module("discrim.cli.exit_codes").ending_cleanly(expanded)


def main() -> None:
    """The entry point."""
    for name in ("stdin", "stdout", "stderr"):
        stream = getattr(sys, name)
        if stream is None:  # closed (`>&-`): its number would go to the next file opened, and what is said into that
            setattr(sys, name, open(os.devnull, "r" if name == "stdin" else "w", encoding="utf-8"))  # noqa: SIM115
        elif hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="replace")  # an answer is not lost for a character that the terminal lacks
    typed = sys.argv[1:] + os.environ.get("COMP_WORDS", "").split() + os.environ.get("_TYPER_COMPLETE_ARGS", "").split()
    try:
        application(word for word in typed if word in COMMANDS)(prog_name="discrim")
    except (ImportError, MemoryError) as error:
        if isinstance(error, ImportError) and "failed to map segment" not in str(error):
            raise
        sys.exit("discrim: the memory that is left to this process (ulimit -v) is too small to begin. Raise its limit.")


def _named_only(gloss: str) -> Callable[[], None]:
    def command() -> None: ...

    command.__doc__ = gloss
    return command


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
