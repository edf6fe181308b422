"""Facts about a table: missing cells, text, identifiers, constant columns, equal rows, rare classes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field, replace
from operator import itemgetter
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import issparse

from discrim.tables.cells import ABSENT, INFINITE, TEXT, Dialect
from discrim.tables.labelled_table import LabelledTable, is_numbering, label_array, notes_on_labels
from discrim.tables.source import TableSource
from discrim.tables.table_error import MAX_BYTES, TableError

FEW_ROWS = 10  # of a class, below which its scores say little
FEW_GROUPS = 10  # texts of a column, which are ordinary categories however few rows there are
FEWEST_ROWS = 2  # of a class that can be split into training and test rows


@dataclass(frozen=True)
class TableFacts:
    """Facts about a table, whether it can be used as it is or not.

    classes : number of rows of each class; missing, infinite : number of such cells by column
    text : number of different texts by column; stray : number of text cells in columns of numbers
    grouping : columns of text with few rows for each text, as of patients; splits can keep these rows together
    comma_numbers : columns with numbers that have a decimal comma, and so are read as text
    thousands : the character between groups of three digits in these numbers, None if there is none
    identifiers, constant, unnamed : names of columns; equal_rows : number of rows that equal an earlier one
    unlabelled : number of rows without a label; notes : what was decided in reading
    complete : number of rows of each class without missing cells, in columns that can be used
    label_fault : why the labels cannot be classes; an empty text if they can
    """

    source: str
    target: str
    n_rows: int
    n_features: int
    classes: dict[Any, int]
    missing: dict[str, int] = field(default_factory=dict)
    infinite: dict[str, int] = field(default_factory=dict)
    text: dict[str, int] = field(default_factory=dict)
    stray: dict[str, int] = field(default_factory=dict)
    grouping: tuple[str, ...] = ()
    identifiers: tuple[str, ...] = ()
    constant: tuple[str, ...] = ()
    unnamed: tuple[str, ...] = ()
    equal_rows: int = 0
    unlabelled: int = 0
    notes: tuple[str, ...] = ()
    comma_numbers: tuple[str, ...] = ()
    thousands: str | None = None
    complete: dict[Any, int] = field(default_factory=dict)
    label_fault: str = ""

    @classmethod
    def from_source(cls, source: TableSource, unnamed: tuple[str, ...] = (), max_bytes: int = MAX_BYTES) -> TableFacts:
        """Read all rows of a source and state the facts about it; nothing is refused but what is no table."""
        assert source.target is not None
        scan = source.scan(max_bytes=max_bytes)
        surveys = scan.surveys
        worded = [name for name, one in surveys.items() if one.categorical]
        free = [name for name in worded if scan.has_free_text(name)]
        X = np.concatenate(scan.blocks)
        for at, name in enumerate(source.features):
            if name in surveys and surveys[name].categorical:
                X[:, at] = scan.texts_of(name)[1]
        values, codes = scan.typed_labels()
        counts = np.bincount(codes, minlength=len(values))
        label_fault = ""
        try:
            label_array(values, codes, source.target, source.path, max_bytes)
        except TableError as error:
            label_fault = error.fact
        in_commas = [name for name, one in surveys.items() if one.count(TEXT) and _have_commas(scan.levels(name))]
        grouped = any("." in text for name in in_commas for text in scan.levels(name))
        found = cls(
            str(source.path),
            source.target,
            scan.n_rows,
            len(source.features),
            dict(zip(values, counts.tolist(), strict=True)),
            {name: count for name, one in surveys.items() if (count := one.count(ABSENT))},
            {name: count for name, one in surveys.items() if (count := one.count(INFINITE))},
            {name: len(scan.levels(name)) for name in worded if name not in free},
            {name: one.count(TEXT) for name, one in surveys.items() if one.count(TEXT) and name not in worded},
            unnamed=unnamed,
            unlabelled=int(scan.unlabelled.sum()),
            notes=(*source.notes, *notes_on_labels(values, source.target)),
            comma_numbers=tuple(in_commas),
            thousands="." if grouped else None,
            label_fault=label_fault,
            **_facts_of_columns(X, source.features, worded, free),
        )
        lacking = np.zeros(scan.n_rows, dtype=bool)
        for name, one in surveys.items():
            if name not in found.unusable:
                lacking |= one.kinds == ABSENT
        whole = ~lacking[~scan.unlabelled]
        complete = np.bincount(codes[whole], minlength=len(values))
        n_texts = {name: len(scan.levels(name)) for name in worded if name not in found.missing}
        grouping = [
            name
            for name, count in sorted(n_texts.items(), key=itemgetter(1))
            if FEW_GROUPS < count < scan.n_rows < FEW_ROWS * count
            and _divides(groups := scan.texts_of(name)[1][~scan.unlabelled], codes)
            and _divides(groups[whole], codes[whole])
        ]
        return replace(found, complete=dict(zip(values, complete.tolist(), strict=True)), grouping=tuple(grouping))

    @classmethod
    def from_table(cls, table: LabelledTable) -> TableFacts:
        """State the facts about a table that is in memory."""
        X = table.X
        shape = (str(table.source), table.target, table.n_samples, table.n_features, table.class_counts())
        if issparse(X):
            return cls(*shape, notes=table.notes)
        lacking = np.isnan(X).sum(axis=0)
        missing = {name: int(count) for name, count in zip(table.feature_names, lacking, strict=True) if count}
        found = cls(*shape, missing=missing, notes=table.notes, **_facts_of_columns(X, table.feature_names))
        used = [at for at, name in enumerate(table.feature_names) if name not in found.unusable]
        complete = Counter(table.y[~np.isnan(X[:, used]).any(axis=1)].tolist())
        return replace(found, complete={label: complete[label] for label in found.classes})

    @property
    def unusable(self) -> tuple[str, ...]:
        """Feature columns that are to be left out, each once."""
        return tuple(dict.fromkeys((*self.identifiers, *self.stray, *self.infinite, *self.constant)))

    @property
    def settled_by(self) -> tuple[str, ...]:
        """Options of the command line with which the table can be compared."""
        return self.settle()[0]

    def settle(
        self, *, impute: str | None = None, drop_missing: bool = False, min_class_size: int = 1
    ) -> tuple[tuple[str, ...], str]:
        """Return the options to add to the given ones so that the table can be compared, and why none are enough.

        The reason is an empty text if a comparison is possible.
        """
        least = max(FEWEST_ROWS, min_class_size)

        def has_enough(counts: dict[Any, int]) -> bool:
            return sum(count >= least for count in counts.values()) > 1

        drops = drop_missing or self.unlabelled > 0
        lost = drops and not has_enough(self.complete)  # the rows without missing cells are too few: drop the columns
        unwanted = (*self.unnamed, *self.unusable, *(self.missing if lost else ()), *self.grouping[1:])
        dropped = dict.fromkeys(name for name in unwanted if name not in self.grouping[:1])
        words = [word for name in dropped for word in ("--drop", name)]
        words += [word for name in self.grouping[:1] for word in ("--groups", name)]
        if any(name not in (*dropped, *self.grouping) for name in self.text):
            words.append("--one-hot")
        if drops and not drop_missing:
            words.append("--drop-missing")
        elif impute is None and not drops and any(name not in dropped for name in self.missing):
            words += ["--impute", "median"]
        counts = self.classes if lost or not drops else self.complete
        if min_class_size < FEWEST_ROWS and any(count < FEWEST_ROWS for count in counts.values()):
            words += ["--min-class-size", str(FEWEST_ROWS)]
        if not has_enough(self.classes):
            return (), f"{self.target!r} must have at least two classes with {least} rows each"
        if self.label_fault:
            return (), self.label_fault.rstrip(".")
        if drops and impute is not None:
            return (), "rows without a label must be left out with --drop-missing; leave out --impute"
        without = tuple(dict.fromkeys((*dropped, *self.grouping)))
        if len(without) - len(self.unnamed) >= self.n_features:
            return (), f"no feature column is left without {_named(without)}"
        return tuple(words), ""

    def lines(self, *, drop_missing: bool = False) -> list[tuple[str, str, str]]:
        """Return what is noteworthy, where it is, and the options that settle it."""
        classes = self.complete if drop_missing else self.classes
        rare = {str(label): count for label, count in classes.items() if count < FEW_ROWS}
        found = [
            ("columns without a name", _named(self.unnamed), "--drop, or --id"),
            ("missing cells", _counted(self.missing), "--impute median, or --drop-missing"),
            ("rows without a label", str(self.unlabelled or ""), "--drop-missing"),
            ("infinite cells", _counted(self.infinite), "correct them, or --drop the columns"),
            ("decimal commas", _named(self.comma_numbers), _IN_COMMAS[self.thousands]),
            ("text columns", _counted(self.text, " different"), "--one-hot, or --drop"),
            ("few rows with each text", _named(self.grouping), "--groups, if these rows belong together"),
            ("text among numbers", _counted(self.stray), "correct the cells, or --drop the columns"),
            ("identifiers", _named(self.identifiers), "--drop, or --id"),
            ("constant columns", _named(self.constant), "--drop"),
            ("equal rows", f"{self.equal_rows} equal an earlier row" if self.equal_rows else "", "a note of compare"),
            ("rare classes", _counted(rare), "--min-class-size"),
        ]
        return [line for line in found if line[1]]


_IN_COMMAS = {None: "--decimal , or --thousands ,", ".": "--decimal , --thousands ."}  # by `thousands`


def _divides(groups: NDArray[np.intp], codes: NDArray[np.intp]) -> bool:
    """Return whether every class that can be split has rows of two groups."""
    pairs = np.unique(np.column_stack([codes, groups]), axis=0)
    n_groups, n_rows = np.bincount(pairs[:, 0]), np.bincount(codes)
    return bool((n_groups[n_rows >= FEWEST_ROWS] >= FEWEST_ROWS).all())


def _have_commas(texts: Sequence[str]) -> bool:
    """Return whether all texts are numbers if the comma is the decimal mark, and some have one."""
    form = Dialect(decimal=",", thousands=".")
    return any("," in text for text in texts) and all(form.number(text) is not None for text in texts)


def _facts_of_columns(
    X: NDArray[Any], names: Sequence[str], worded: Collection[str] = (), free: Collection[str] = ()
) -> dict[str, Any]:
    """Return the facts that follow from the rows alone; `worded` columns hold codes of texts, `free` ones any text."""
    numbering = [name for at, name in enumerate(names) if name not in worded and is_numbering(X[:, at], name)]
    constant = tuple(name for at, name in enumerate(names) if _is_constant(X[:, at]))
    return {"identifiers": (*sorted(free), *numbering), "constant": constant, "equal_rows": _equal_rows(X)}


def _is_constant(column: NDArray[Any]) -> bool:
    present = column[~np.isnan(column)]
    return len(present) > 1 and bool((present == present[0]).all())


def _equal_rows(X: NDArray[Any]) -> int:
    """Return how many rows equal an earlier one."""
    if not X.size:
        return 0
    whole = np.ascontiguousarray(X + 0.0)  # −0 equals 0
    rows = whole.view(np.dtype((np.void, whole.dtype.itemsize * whole.shape[1])))
    return len(X) - len(np.unique(rows))


def _named(names: tuple[str, ...]) -> str:
    return ", ".join(names[:8]) + (f" and {len(names) - 8} more" if len(names) > 8 else "")


def _counted(counts: dict[str, int], what: str = "") -> str:
    return _named(tuple(f"{name} ({count}{what})" for name, count in counts.items()))
