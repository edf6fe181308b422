"""Output of commands, and how they end: the answer, the ranked table, progress, errors as messages.

Exit codes are 0 for success, 1 if some trial failed, 2 for an error message, 130 for Ctrl-C, 143 for SIGTERM. A command
that would overwrite its input is rejected before it begins.
"""

from __future__ import annotations

import errno
import functools
import inspect
import json
import math
import os
import re
import shlex
import signal
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import fields, is_dataclass
from functools import partial
from pathlib import Path
from types import FrameType
from typing import Any, NoReturn

import numpy as np
import typer
import typer.models
from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, MofNCompleteColumn, Progress, ProgressColumn, TextColumn, TimeRemainingColumn
from rich.table import Table
from rich.text import Text

from discrim.evaluation import run
from discrim.evaluation.comparison import Comparison, record
from discrim.evaluation.run import StoreInUseError
from discrim.evaluation.store import StoreError
from discrim.evaluation.wording import (
    BETTER,
    TAKEN,
    WIDTH,
    WORSE,
    answer_parts,
    doubts,
    explanation,
    heading,
    table_lines,
    wrapped,
)
from discrim.tables.formats import MissingExtraError
from discrim.tables.table_error import TableError

SOME_FAILED, REFUSED, INTERRUPTED, TERMINATED = 1, 2, 130, 143
# Errors with a message for the user; any other is a bug and shows its traceback.
EXPECTED = (TableError, MissingExtraError, StoreError, StoreInUseError, OSError, ValueError)
_CALLED_ELSE = {"n_splits": "splits", "n_components": "components", "n_jobs": "jobs"}  # in Python
_IN_WORDS = {
    errno.ENOENT: "there is no such file or folder",
    errno.ENOSPC: "no space is left on the disk",
    errno.EFBIG: "no space is left for a file of this size",
    errno.EACCES: "permission denied",
    errno.EISDIR: "this is a folder, not a file",
    errno.ELOOP: "this link leads back to itself",
}


class TerminatedError(BaseException):
    """Signal SIGTERM. Not an Exception, like KeyboardInterrupt, so that no trial counts it as its own failure."""


def ending_cleanly(command: Callable[..., None]) -> Callable[..., None]:
    """Return the command with errors as one message on stderr and an exit code."""

    @functools.wraps(command)
    def wrapped(*arguments: Any, **options: Any) -> None:
        ends = [signal.SIGTERM, *([signal.SIGHUP] if hasattr(signal, "SIGHUP") else [])]
        previous = {number: signal.signal(number, _terminate) for number in ends}
        try:
            command(*arguments, **options)
        except KeyboardInterrupt as stop:
            _end(stop, "Stopped.", INTERRUPTED)
        except TerminatedError as stop:
            name = signal.Signals(stop.args[0]).name
            _end(stop, f"Ended by {name}.", 128 + stop.args[0])
        except (BrokenPipeError, SystemExit) as gone:  # the reader of the output is gone; rich raises SystemExit
            _tell_notes(gone)
            raise
        except EXPECTED as error:
            _end(error, f"discrim: {in_words(error, _options_of(command))}", REFUSED)
        finally:
            for number, handler in previous.items():
                signal.signal(number, handler)

    return wrapped


def in_words(error: Exception, options: Mapping[str, str] | None = None) -> str:
    """Return the error as a sentence that names the file, if there is one, and the options of the command."""
    if isinstance(error, TableError):
        return error.on_the_command_line(options or {})
    if not isinstance(error, OSError) or error.errno is None:
        return _in_options(str(error), options or {}) or type(error).__name__
    message = error.strerror or "it cannot be read or written"
    if message == os.strerror(error.errno):
        message = _IN_WORDS.get(error.errno, message)  # plainer than the text of the operating system
    return f"{message}." if error.filename is None else f"{error.filename}: {message}."


def _in_options(message: str, options: Mapping[str, str]) -> str:
    """Replace parameters of Python by options: n_splits=0 → --splits 0, n_splits must → --splits must."""

    def option(found: re.Match[str]) -> str:
        known = options.get(_CALLED_ELSE.get(found[1], found[1]))
        return found[0] if known is None else f"{known} {found[2].strip(chr(39))}"

    def subject(found: re.Match[str]) -> str:
        return options.get(_CALLED_ELSE.get(found[0], found[0]), found[0])

    message = re.sub(r"\b([a-z_]+)=('[^']*'|[^\s.,;]+(?:\.\d+)?)", option, message)
    return re.sub(r"^[a-z_]+(?= must )", subject, message)


def _options_of(command: Callable[..., None]) -> dict[str, str]:
    """Return the options of the command's parameters: {"one_hot": "--one-hot"}."""
    options = {}
    for name, parameter in inspect.signature(command).parameters.items():
        for option in getattr(parameter.annotation, "__metadata__", ()):
            if isinstance(option, typer.models.OptionInfo):
                # within Annotated the first name is in the place of the default
                names = [one for one in (option.default, *(option.param_decls or ())) if isinstance(one, str)]
                long = [one for one in names if one.startswith("--")]
                options[name] = long[0] if long else f"--{name.replace('_', '-')}"
    return options


def _terminate(number: int, frame: FrameType | None) -> NoReturn:
    raise TerminatedError(number)


def _tell_notes(error: BaseException) -> None:
    for note in getattr(error, "__notes__", ()):
        print(_in_options(note, {"store": "--store"}), file=sys.stderr, flush=True)


def _end(error: BaseException, message: str, code: int) -> NoReturn:
    _tell_notes(error)
    print(message, file=sys.stderr, flush=True)
    raise typer.Exit(code)


def require_apart(read: dict[str, Path | str | None], written: dict[str, Path | str | None]) -> None:
    """Raise if a file would overwrite the input or another output, or become a part of a table that is a folder."""
    taken = {os.path.realpath(path): name for name, path in read.items() if path is not None and Path(path).exists()}
    for name, path in written.items():
        if path is None:
            continue
        place = os.path.realpath(path)
        if place in taken:
            raise ValueError(f"{name} {path} would overwrite {taken[place]}. Name another file.")
        for folder in filter(os.path.isdir, taken):
            inside = Path(place).relative_to(folder).parts if Path(folder) in Path(place).parents else ()
            if inside and not any(piece[0] in "._" for piece in inside):  # hidden names are no parts
                raise ValueError(
                    f"{name} {path} would become a part of {taken[folder]}, a folder. Name a file outside of it."
                )
        taken[place] = name


def require_folder(path: Path | None, what: str) -> None:
    """Raise at once if the folder of an output file is missing."""
    if path is not None and not path.absolute().parent.is_dir():
        raise FileNotFoundError(errno.ENOENT, f"The folder for {what} does not exist", str(path))


_plainly = partial(Console, highlight=False, markup=False, emoji=False)  # text is printed as it is
out = _plainly(width=None if sys.stdout.isatty() or "COLUMNS" in os.environ else WIDTH)
side = _plainly(stderr=True)


def say(message: str) -> None:
    """Print a message on stderr, on one line."""
    side.print(message, soft_wrap=True)


@contextmanager
def bar(what: str, total: int | None, clock: ProgressColumn) -> Iterator[Callable[..., None]]:
    """Show a progress bar on stderr if it is a terminal; yield a function with the arguments of `Progress.update`."""
    if not side.is_terminal:  # rich before 15 prints an empty line after a hidden bar
        yield lambda **_: None
        return
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), clock)
    with Progress(*columns, console=side, transient=True) as shown:
        yield partial(shown.update, shown.add_task(escape(what), total=total))


@contextmanager
def progress_bar(what: str) -> Iterator[run.Progress]:
    """Show a bar in trials with the remaining time."""
    with bar(what, None, TimeRemainingColumn()) as update:
        yield lambda done, total: update(completed=done, total=total)


def show_comparison(found: Comparison, next_step: str = "", *, everything: bool = False) -> None:
    """Print the answer, then the table; skipped, dropped and failed methods go to stderr."""
    for at, part in enumerate(answer_parts(found)):
        out.print(wrapped(part), style="bold" if at < len(found.sentences) else "")
    if next_step:
        out.print(next_step, soft_wrap=True)
    if found.lines:
        out.print(f"\n{heading(found)}", style="bold")
        for line in table_lines(found, everything):
            out.print(_coloured(line), soft_wrap=True)
        out.print(wrapped(explanation(found, everything)), style="dim")
    for line in doubts(found):
        say(wrapped(line))


def in_lines(command: str) -> str:
    """Break a long command between its options, so that it can be copied."""
    options: list[str] = []
    for word in map(shlex.quote, shlex.split(command)):  # a break inside quotes would change the word
        if word.startswith("-") or not options:
            options.append(word)
        else:
            options[-1] += f" {word}"
    lines = options[:1]
    for option in options[1:]:
        if len(lines[-1]) + 1 + len(option) > WIDTH - 6:
            lines.append(option)
        else:
            lines[-1] += f" {option}"
    return "  " + " \\\n    ".join(lines)


def plain_table(
    columns: Sequence[str], rows: Iterable[Iterable[Any]], left: Sequence[str], *, wraps: bool = False
) -> Table:
    """Return a table without lines; columns that are not in `left` are aligned to the right."""
    table = Table(box=None, pad_edge=False)
    shown: dict[str, Any] = {"overflow": "fold"} if wraps else {"no_wrap": True}
    for name in columns:
        table.add_column(name, justify="left" if name in left else "right", **shown)
    for row in rows:
        table.add_row(*row)
    return table


def _coloured(line: str) -> Text:
    text = Text(line, style="bold" if line.startswith(TAKEN) else "")
    text.highlight_regex(rf"\S+ {BETTER}", "green")
    text.highlight_regex(rf"\S+ {WORSE}", "red")
    return text


def print_json(found: Comparison) -> None:
    """Print the comparison as one JSON document."""
    assert found.facts is not None  # a comparison that was run has them
    tested, permutations = found.permutations, None
    if tested is not None:
        permutations = tested.cell._asdict() | {"metric": tested.metric, "score": tested.score}
        permutations |= {"p_value": tested.p_value, "exchanged": tested.exchanged}
        permutations |= {"splits": tested.n_splits, "permuted": tested.permuted}
    document = {
        "data": found.label,
        "rows": found.sizes["rows"],
        "features": found.sizes["features"],
        "classes": found.class_counts,
        "protocol": found.setting["protocol"],
        "splits": found.facts.n_splits,
        "scale": found.setting["scale"],
        "seed": found.setting["seed"],
        "metric": found.metric,
        "answer": found.answer,
        "verdict": found.verdict,
        "recommendation": found.recommendation,
        "permutations": permutations,
        "lines": [record(line) | {"curve": line.curve} for line in found.lines],
        "failures": [{**row.trial, "reason": row.reason} for row in found.failures],
        "skips": [{**row.trial, "reason": row.reason} for row in found.skips],
    }
    every_sign = (sys.stdout.encoding or "").lower().replace("-", "") == "utf8"
    print(json.dumps(_plain(document), ensure_ascii=not every_sign, indent=1, allow_nan=False))


def _plain(value: Any) -> Any:
    """Return plain values for JSON: dictionaries for dataclasses, lists for arrays, None for NaN."""
    if is_dataclass(value):
        value = {one.name: getattr(value, one.name) for one in fields(value)}
    elif hasattr(value, "_asdict"):
        value = value._asdict()
    elif isinstance(value, np.ndarray):
        value = value.tolist()
    if isinstance(value, dict):
        return {key: _plain(one) for key, one in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(one) for one in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def print_list(columns: Sequence[str], rows: Iterable[Iterable[str]]) -> None:
    """Print a list with a heading for each column."""
    out.print(plain_table(columns, rows, left=columns, wraps=True))
