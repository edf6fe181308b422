"""Names or a row? The one rule for the first line of a delimited file or a sheet."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from itertools import pairwise

from discrim.tables.cells import BOOLEANS, INFINITE, NUMBER, TEXT, Dialect
from discrim.tables.formats import TablePart
from discrim.tables.labelled_table import normal_text
from discrim.tables.table_error import Advice, TableError, quoted

HEAD_ROWS = 1000  # that decide whether the first line is a row; fewer of a table of very many columns


def require_names(
    parts: Sequence[TablePart], columns: Collection[str], label: str | None, form: Dialect
) -> tuple[str, ...]:
    """Raise if the first line looks like a row; return what was decided where it could be doubted.

    columns : those that are read; label : the column of the labels
    """
    readable = [part for part in parts if part.first_line is not None and part.n_rows != 0]
    found = ((part, part.head(max(20, min(HEAD_ROWS, 10**6 // len(part.names))))) for part in readable)
    part, below = next(((part, rows) for part, rows in found if rows), (None, []))
    if part is None or part.first_line is None:
        return ()
    places = [at for at, name in enumerate(part.names) if name in columns and name not in part.keys]
    tops = {at: normal_text(part.first_line[at]) for at in places}
    numeric = []
    for at in places:
        cells = {normal_text(row[at]) for row in below}
        if all(kind != TEXT for kind, _ in form.readings(cells)[0]):
            if not _could_stand_among(tops[at], cells, form):
                return ()
            numeric.append(at)
    again = [at for at in places if at not in numeric and tops[at] in {normal_text(row[at]) for row in below}]
    readings = [form.reading(tops[at]) for at in numeric]
    numbered = [value for kind, value in readings if kind == NUMBER]
    others = [kind for kind, _ in readings if kind in (TEXT, INFINITE)]
    line = quoted(list(tops.values()))
    if not again and not others and len(numbered) >= 3 and all(one < other for one, other in pairwise(numbered)):
        whole = numbered == [numbered[0] + step for step in range(len(numbered))] and numbered[0] in (0, 1)
        if whole or label is None or part.names.index(label) not in numeric:
            return (f"Line 1 ({line}) is taken for the names of the columns, not for a row.",)
    if not again and not numbered and not others:
        return ()
    raise TableError(
        f"{part.path}, line 1: {line} where the names of the columns belong. This looks like a row, which would be "
        "lost.",
        Advice("if there is no line of column names, read it with", header=False),
        Advice("if these are the names, with", header=True),
    )


def _could_stand_among(top: str, cells: Collection[str], form: Dialect) -> bool:
    """Return whether the first cell of a column of numbers could be one of them."""
    if form.reading(top)[0] != TEXT:
        return True
    return top.casefold() in BOOLEANS and any(cell.casefold() in BOOLEANS for cell in cells)
