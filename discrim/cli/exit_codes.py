"""Exit codes of commands: 0 success, 1 some trial failed, 2 error message, 130 Ctrl-C, 143 SIGTERM.

A command that would overwrite its input is rejected before it begins.
"""

from __future__ import annotations

import errno
import functools
import inspect
import os
import re
import signal
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from types import FrameType
from typing import Any, NoReturn

import typer
import typer.models

from discrim.evaluation.run import StoreInUseError
from discrim.evaluation.store import StoreError
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
    """Raise if a file would overwrite the input or another output."""
    taken = {os.path.realpath(path): name for name, path in read.items() if path is not None and Path(path).exists()}
    for name, path in written.items():
        if path is None:
            continue
        place = os.path.realpath(path)
        if place in taken:
            raise ValueError(f"{name} {path} would overwrite {taken[place]}. Name another file.")
        taken[place] = name


def require_folder(path: Path | None, what: str) -> None:
    """Raise at once if the folder of an output file is missing."""
    if path is not None and not path.absolute().parent.is_dir():
        raise FileNotFoundError(errno.ENOENT, f"The folder for {what} does not exist", str(path))
