"""Errors of tables: what is wrong and what to do, as Python arguments or as options of the command line."""

from __future__ import annotations

import difflib
import shlex
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from functools import wraps
from pathlib import Path
from typing import Any, ParamSpec, TypeVar

try:
    import resource
except ImportError:  # on Windows
    resource = None  # type: ignore[assignment]

MAX_BYTES = 4 * 2**30  # of what a file becomes in memory, whatever its format, unless max_bytes says otherwise
PYTHON_ONLY = {"": True}  # the options of what the command line cannot say
_NAMED = 5


class Advice:
    """Something to do about an error: words, and the arguments of `read_table` that do it.

    Parameters
    ----------
    words : str
        What to do, up to the arguments: "leave the column out with".
    options : mapping from str to str, default=None
        The same for the command line, where it is not called as in Python.
    **arguments
        Arguments of `read_table` and their values; none where Python has another way, and the words say all.
    """

    def __init__(self, words: str, options: Mapping[str, Any] | None = None, **arguments: Any) -> None:
        self._words, self._arguments = words, arguments
        self._options = arguments if options is None else options

    @property
    def arguments(self) -> set[str]:
        """Names of the arguments."""
        return set(self._arguments)

    def in_python(self) -> str:
        given = [
            f"{name}=[{quoted(value)}]" if isinstance(value, list) else f"{name}={value!r}"
            for name, value in self._arguments.items()
        ]
        return f"{self._words} {', '.join(given)}" if given else self._words

    def on_the_command_line(self, known: Mapping[str, str]) -> str | None:
        """Return the advice with the command's options (parameter → option), None if it has none."""
        if not self._options.keys() <= known.keys():
            return None
        options = " ".join(_option(known[name], value) for name, value in self._options.items())
        return f"{self._words} {options}" if self._arguments else f"{self._words} with {options}"


class TableError(ValueError):
    """A table that cannot be read as labelled rows; the message names file, line and column if any.

    Parameters
    ----------
    fact : str
        The fault, and where it is.
    *advice : str or Advice
        What can be done about it.
    """

    others: tuple[TableError, ...] = ()  # other things that are wrong with the table

    def __init__(self, fact: str, *advice: str | Advice) -> None:
        super().__init__(fact, *advice)
        self.fact, self.advice = fact, advice

    def with_arguments(self, names: Collection[str]) -> TableError:
        """Return the error with the advice that takes these arguments only."""
        return TableError(
            self.fact, *(one for one in self.advice if isinstance(one, str) or one.arguments <= set(names))
        )

    def __str__(self) -> str:
        return self._worded(Advice.in_python)

    def on_the_command_line(self, known: Mapping[str, str]) -> str:
        """Return the message with the command's options, given as a mapping from parameters."""
        return self._worded(lambda advice: advice.on_the_command_line(known))

    def _worded(self, phrase: Callable[[Advice], str | None]) -> str:
        advice = [one if isinstance(one, str) else phrase(one) for one in self.advice]
        ways = "; or ".join(one for one in advice if one is not None)
        message = f"{self.fact} {ways[:1].upper()}{ways[1:]}." if ways else self.fact
        return "\n".join([message, *(one._worded(phrase) for one in self.others)])


def join_errors(errors: Sequence[TableError]) -> TableError:
    """Return one error with all of them, each on a line of its own."""
    if len(errors) == 1:
        return errors[0]
    joined = TableError(errors[0].fact, *errors[0].advice)
    joined.others = (*errors[0].others, *errors[1:])
    return joined


def require_memory(path: Any, needed: int, max_bytes: int, *, is_known: bool = True) -> None:
    """Raise if a table would need more memory than allowed: the same limit and message for all formats.

    If the memory of the process is limited (`ulimit -v`), a table may take a quarter of the free memory, because it is
    held as text, as columns and as rows while it is read.
    """
    size = f"{needed:,} bytes, more" if is_known else "more"
    if needed > max_bytes:
        raise TableError(
            f"{path} would take {size} than the allowed {max_bytes:,} bytes of memory.",
            Advice("to allow more, pass", max_bytes=needed if is_known else 4 * max_bytes),
        )
    left = memory_left()
    if left is not None and needed > left // 4:
        raise TableError(
            f"{path} would take {size} than a quarter of the {left:,} bytes of memory that this process has free "
            "(ulimit -v). Raise its limit, or read the table in parts."
        )


def memory_left() -> int | None:
    """Return the number of bytes that this process can still allocate; None if its memory is not limited."""
    limit = -1 if resource is None else int(resource.getrlimit(resource.RLIMIT_AS)[0])
    if limit < 0 or limit == resource.RLIM_INFINITY:
        return None
    try:
        pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[0])
    except OSError:  # /proc exists on Linux only
        return limit
    return max(0, limit - pages * resource.getpagesize())


Arguments = ParamSpec("Arguments")
Result = TypeVar("Result")


def in_memory(read: Callable[Arguments, Result]) -> Callable[Arguments, Result]:
    """Decorate a reader of a file (its first argument): if memory runs out, the error names the file."""

    @wraps(read)
    def named(*args: Arguments.args, **kwargs: Arguments.kwargs) -> Result:
        try:
            return read(*args, **kwargs)
        except MemoryError as error:
            path = args[0] if args else kwargs["path"]
            detail = f" ({error})" if str(error) else ""  # Python's own is empty
            raise TableError(
                f"{path} does not fit into the free memory{detail}. Read it in parts, or leave columns out."
            ) from None

    return named


def quoted(names: Sequence[str], most: int = _NAMED) -> str:
    """Return the first few names for a message: 'a', 'b', 'c' and 17 more."""
    shown = ", ".join(repr(name) for name in names[:most])
    return shown if len(names) <= most else f"{shown} and {len(names) - most} more"


def meant(name: str, names: Iterable[str], otherwise: str, most: int = _NAMED) -> str:
    """Return a sentence with the names most similar to a wrong one, or with the first names after `otherwise`."""
    known = list(names)
    folded = {one.casefold(): one for one in reversed(known)}
    near = [folded[match] for match in difflib.get_close_matches(name.casefold(), folded, n=3)]
    return f"Did you mean {quoted(near)}?" if near else f"{otherwise} {quoted(known, most)}."


def quoted_cell(cell: str) -> str:
    return repr(cell if len(cell) <= 40 else cell[:37] + "...")


def plural(count: int, noun: str) -> str:
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"


def are(count: int) -> str:
    return "is" if count == 1 else "are"


def _option(option: str, value: Any) -> str:
    """Return an argument as typed on the command line: --drop a,b or --one-hot or --no-header."""
    if isinstance(value, bool):
        return option.split("/")[0 if value else -1]
    if isinstance(value, list):
        more = f" and {len(value) - _NAMED} more" if len(value) > _NAMED else ""
        return f"{option} {shlex.quote(','.join(value[:_NAMED]))}{more}"
    return f"{option} {shlex.quote(str(value))}"
