"""Columns of a file, by name: numbers, labels, and text as indicator columns. The same for every format."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

import numpy as np

from discrim.data.cells import (
    CellsNotNumericError,
    ColumnSurvey,
    TableError,
    infinite_error,
    missing_error,
    plural,
    quoted,
    shortened,
    text_error,
)
from discrim.data.labelled_table import normal_text

_FEW_LEVELS = 20


@dataclass(frozen=True)
class Taken:
    """Columns of a file: numbers as one array, text columns as lists, each in the order asked for."""

    X: np.ndarray
    texts: list[list[str]]


class TableFile(Protocol):
    """A file with named columns: what the readers of single formats offer."""

    path: Path
    unit: str
    names: tuple[str, ...]

    def take(self, numeric: Sequence[int], text: Sequence[int]) -> Taken: ...

    def survey(self, columns: Sequence[int]) -> list[ColumnSurvey]: ...


def take_columns(
    file: TableFile, numeric: Sequence[int], as_text: set[int], extra: Sequence[int], one_hot: bool
) -> tuple[Taken, list[int]]:
    """The columns `numeric` as numbers, those of them that are text (and where), then `extra` as text.

    Text are the columns `as_text` and, with `one_hot`, those that turn out to be.
    """
    text = [at for at in numeric if at in as_text]
    numbers = [at for at in numeric if at not in as_text]
    try:
        return file.take(numbers, [*text, *extra]), text
    except CellsNotNumericError:
        surveys = dict(zip(numbers, file.survey(numbers), strict=True))
    worded = {at for at, survey in surveys.items() if survey.n_text}
    strays = [surveys[at] for at in sorted(worded) if not (one_hot and surveys[at].categorical)]
    if strays:
        raise text_error(file.path, strays, file.unit)
    if any(survey.n_missing for survey in surveys.values()):
        raise missing_error(file.path, list(surveys.values()), file.unit)
    if any(survey.n_infinite for survey in surveys.values()):
        raise infinite_error(file.path, list(surveys.values()), file.unit)
    if not worded:
        raise TableError(f"{file.path} changed while it was being read. Read it again once it is complete.")
    return take_columns(file, numeric, as_text | worded, extra, one_hot)


def position_of(file: TableFile, name: str, role: str) -> int:
    name = normal_text(name)
    if name in file.names:
        return file.names.index(name)
    folded = {known.casefold(): known for known in reversed(file.names)}
    near = [folded[match] for match in difflib.get_close_matches(name.casefold(), folded, n=3)]
    meant = f"Did you mean {quoted(near)}?" if near else f"Its columns are {quoted(file.names)}."
    raise TableError(f"{file.path} has no column {name!r} ({role}) among its {len(file.names)}. {meant}")


def require_present(
    file: TableFile, columns: Sequence[int], cells: Iterable[Sequence[str]], missing: frozenset[str]
) -> None:
    """No missing cell in text columns (numbers are checked as they are read)."""
    lacking = [at for at, values in zip(columns, cells, strict=True) if not missing.isdisjoint(values)]
    if lacking:
        raise missing_error(file.path, file.survey(lacking), file.unit)


def with_indicators(
    file: TableFile, features: Sequence[int], text: Sequence[int], taken: Taken
) -> tuple[np.ndarray, list[str]]:
    """Numeric columns and, at the place of each text column, its indicators `name=level`, levels in order."""
    if not text:
        return taken.X, [file.names[at] for at in features]
    cells, numbers = dict(zip(text, taken.texts, strict=False)), iter(taken.X.T)
    columns: list[np.ndarray] = []
    names: list[str] = []
    for at in features:
        if at not in cells:
            columns.append(next(numbers))
            names.append(file.names[at])
            continue
        for level in _levels(file, at, cells[at]):
            columns.append(np.equal(cells[at], level))
            names.append(f"{file.names[at]}={level}")
    return np.column_stack(columns).astype(np.float64), names


def _levels(file: TableFile, at: int, cells: Sequence[str]) -> list[str]:
    levels = sorted(set(cells))
    if len(levels) > max(_FEW_LEVELS, len(cells) // 2):
        raise TableError(
            f"{file.path}, column {file.names[at]!r}: {len(levels)} different texts in {len(cells)} rows "
            f"({shortened(levels[0])}, ...). That is an identifier or free text, not a category: leave it "
            f"out with drop=[{file.names[at]!r}]."
        )
    return levels


def feature_source(file: TableFile, name: str) -> tuple[int, str | None]:
    """The column a feature comes from, and its level if the feature is an indicator."""
    if name in file.names:
        return file.names.index(name), None
    for cut in (found.start() for found in re.finditer("=", name)):
        if name[:cut] in file.names:
            return file.names.index(name[:cut]), name[cut + 1 :]
    return position_of(file, name, "feature"), None


def require_known_levels(
    file: TableFile, sources: Sequence[tuple[int, str | None]], cells: dict[int, list[str]]
) -> None:
    for at, values in cells.items():
        known = {level for place, level in sources if place == at}
        unknown = sorted(set(values) - known)
        if unknown:
            raise TableError(
                f"{file.path}, column {file.names[at]!r}: "
                f"{plural(sum(v in unknown for v in values), 'cell')} with {quoted(unknown)}, first in row "
                f"{values.index(unknown[0]) + 1}. Known are only "
                f"{quoted(sorted(level for level in known if level is not None))}."
            )
