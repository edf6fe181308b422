"""A labelled table: the value that every file, catalogue name and download ends in.

What looks odd but can be intended is noted (`notes_on`), never changed.
"""

from __future__ import annotations

import hashlib
import re
import unicodedata
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal, InvalidOperation
from pathlib import Path
from typing import Any

import numpy as np
from scipy.sparse import issparse

from discrim.tables.table_error import MAX_BYTES, Advice, TableError, are, plural, quoted, quoted_cell, require_memory

_CHUNK_BYTES = 1 << 24


@dataclass(frozen=True, eq=False)
class LabelledTable:
    """Rows with a label each.

    X : float64 array or CSR array (float32 if the source holds nothing else), one row per sample
    y : labels as integers, truth values or text, as the source holds them
    feature_names : the names of X's columns
    target : the name of the label column
    source : where it was read from
    ids : what each row is called, as text, or None
    id_column : the name of the column of the ids
    notes : what whoever uses the table should know: what was left out, and what looks odd
    drawn_from : how many rows the source has, of which these are a sample; None where they are all
    """

    X: Any
    y: np.ndarray
    feature_names: tuple[str, ...]
    target: str
    source: str
    ids: np.ndarray | None = None
    id_column: str | None = None
    notes: tuple[str, ...] = ()
    drawn_from: int | None = None

    @property
    def n_samples(self) -> int:
        return int(self.X.shape[0])

    @property
    def n_features(self) -> int:
        return int(self.X.shape[1])

    def take(self, rows: np.ndarray) -> LabelledTable:
        """Return the table of these rows, by their numbers."""
        return replace(self, X=self.X[rows], y=self.y[rows], ids=None if self.ids is None else self.ids[rows])

    def for_evaluation(self) -> LabelledTable:
        """Return the table as results name it: labels as text, features in double precision."""
        if self.y.dtype.kind == "U" and self.X.dtype == np.float64:
            return self
        return replace(self, X=self.X.astype(np.float64, copy=False), y=self.y.astype(str))

    def class_counts(self) -> dict[Any, int]:
        return dict(sorted(Counter(self.y.tolist()).items()))

    def digest(self) -> str:
        """SHA-256 of the rows and labels in their order: equal only for the very same table."""
        whole = hashlib.sha256(f"discrim rows\n{self.n_samples} {self.n_features}\n".encode())
        for rows in _dense_chunks(self.X):
            whole.update(rows.tobytes())
        for label in self.y.tolist():
            text = str(label).encode("utf-8", "surrogatepass")
            whole.update(len(text).to_bytes(8, "little") + text)  # a label may hold any sign, so its end is its length
        return whole.hexdigest()

    def fingerprint(self) -> str:
        """SHA-256 of the content, whatever the order of the rows and the names of the classes.

        row   = SHA-256 of the row as little-endian float64, −0 written as 0
        class = SHA-256 of the digests of its rows, sorted and joined
        table = SHA-256 of "discrim content\\n<rows> <columns>\\n" and the classes' digests, sorted and joined

        The order of the columns matters. Sources that name the classes differently (0/1 here, 1/2 there) or
        shuffle the rows agree; one changed value, or one row in another class, does not.
        """
        of_class: dict[Any, list[bytes]] = {label: [] for label in self.class_counts()}
        labels = iter(self.y.tolist())
        for rows in _dense_chunks(self.X):
            for row in rows:
                of_class[next(labels)].append(hashlib.sha256(row.tobytes()).digest())
        classes = sorted(hashlib.sha256(b"".join(sorted(rows))).digest() for rows in of_class.values())
        head = f"discrim content\n{self.n_samples} {self.n_features}\n".encode()
        return hashlib.sha256(head + b"".join(classes)).hexdigest()

    def __repr__(self) -> str:
        kind = "sparse" if issparse(self.X) else "dense"
        return (
            f"LabelledTable({self.n_samples} rows × {self.n_features} features, {kind}; "
            f"{len(self.class_counts())} classes in {self.target!r}; "
            f"from {self.source})"
        )


def _dense_chunks(X: Any) -> Iterator[np.ndarray]:
    """Yield rows as C-ordered little-endian float64 without negative zeros, a few megabytes at a time."""
    step = max(1, _CHUNK_BYTES // (8 * max(1, X.shape[1])))
    for start in range(0, X.shape[0], step):
        block = X[start : start + step]
        dense = block.toarray() if issparse(block) else block
        yield np.ascontiguousarray(dense, dtype="<f8") + 0.0  # −0 + 0 = +0


def normal_text(text: str) -> str:
    """Return text without surrounding blanks, in Unicode's composed form: names that look the same are the same."""
    return unicodedata.normalize("NFC", text.strip())


def coded(labels: Sequence[str]) -> tuple[list[str], np.ndarray]:
    """Return the different labels in order, and the place of each row's label among them."""
    values = sorted(set(labels))
    place = {value: at for at, value in enumerate(values)}
    return values, np.array([place[label] for label in labels], dtype=np.intp)


def label_array(
    values: Sequence[Any], codes: np.ndarray, target: str, path: Path, max_bytes: int = MAX_BYTES
) -> np.ndarray:
    """Return labels as an array; raise if they cannot be classes: all the same, no two the same, measurements."""
    counts, n_rows = np.bincount(codes, minlength=len(values)), len(codes)
    n_classes, column = int(np.count_nonzero(counts)), f"{path}, column {target!r}"
    if n_classes == 1:
        raise TableError(
            f"{column}: the target must be a column with at least two classes; got only "
            f"{quoted_cell(str(values[codes[0]]))} in {plural(n_rows, 'row')}. Is this the right column?"
        )
    if n_classes == n_rows or (n_classes > max(20, n_rows / 5) and _measured(values)):
        first, second = (quoted_cell(str(values[code])) for code in codes[:2])
        raise TableError(
            f"{column}: {n_rows} rows have {n_classes} different labels (the first: {first}, "
            f"{second}). This looks like an identifier or a measurement, not a class: name "
            "another target column, or make classes of a measurement by cutting it into ranges, e.g. with "
            "pandas.cut(…).astype(str)."
        )
    texts = [value for value in values if isinstance(value, str)]
    require_memory(path, 4 * max(map(len, texts), default=2) * n_rows, max_bytes)
    return np.array(values)[codes]


def _measured(values: Sequence[Any]) -> bool:
    """Return whether all are numbers, and some of them fractions."""
    try:
        return any(not float(value).is_integer() for value in values)
    except (ValueError, OverflowError):
        return False


def checked_names(names: Sequence[str], path: Path) -> tuple[str, ...]:
    """Return the column names; raise if one occurs twice."""
    first: dict[str, int] = {}
    for position, name in enumerate(names, start=1):
        if name in first:
            raise TableError(
                f"{path}: columns {first[name]} and {position} are both called {name!r}.",
                "rename one of them",
                Advice("if the file has no line of column names, read it with", header=False),
            )
        first[name] = position
    return tuple(names)


_FEWEST_ROWS = 20  # in fewer, whole numbers in a row are common
_A_FEW = 200
_CALLED_ID = re.compile(r"(?i)(.*[\W_])?(id|ids|index|uid|nr|no|row)|.*[a-z](ID|Id)")


def notes_on(X: Any, y: np.ndarray, names: Sequence[str], target: str) -> list[str]:
    """Return notes on columns that look like identifiers or the target, and labels that look like misspellings."""
    notes = notes_on_labels(np.unique(y).tolist() if y.dtype.kind == "U" else (), target)
    if issparse(X) or X.shape[0] < _FEWEST_ROWS:
        return notes
    with np.errstate(invalid="ignore"):
        whole = np.flatnonzero((X[:_A_FEW] == np.floor(X[:_A_FEW])).all(axis=0))
    numbered = [names[at] for at in whole.tolist() if is_numbering(X[:, at], names[at])]
    for these, what, use in (
        (numbered, "row numbers or identifiers", "used as features"),
        (_tell_the_class(X, y, names), f"the target {target!r} in other words", "used"),
    ):
        if these:
            notes.append(f"{quoted(these)} look{'s' * (len(these) == 1)} like {what}, and {are(len(these))} {use}.")
    return notes


def notes_on_labels(labels: Iterable[Any], target: str) -> list[str]:
    """Return notes on different labels that look the same or are equal as numbers."""
    alike: dict[str, list[str]] = {}
    equal: dict[Decimal, list[str]] = {}
    for label in labels:
        if isinstance(label, str):
            alike.setdefault(" ".join(label.split()).casefold(), []).append(label)
            if (number := _exact_number(label)) is not None:
                equal.setdefault(number, []).append(label)
    kinds = (("differ only in case or blanks", alike), ("are equal as numbers", equal))
    return [
        f"The labels {quoted(same)} in {target!r} {what}, and are taken for different classes."
        for what, groups in kinds
        for same in groups.values()
        if len(same) > 1
    ]


def _exact_number(label: str) -> Decimal | None:
    """Return the number that a label is, None if it is none; a float would make long identifiers equal."""
    try:
        number = Decimal(label)
    except InvalidOperation:
        return None
    return number if number.is_finite() and "_" not in label else None


def is_numbering(column: np.ndarray, name: str) -> bool:
    """Return whether a column holds whole numbers, each once, in a row or under the name of an identifier."""
    # the first rows identify most columns that do not
    if any(len(np.unique(part)) < len(part) for part in (column[:_A_FEW], column)):
        return False
    if not np.isfinite(column).all() or (column != np.floor(column)).any():
        return False
    return bool(column.max() - column.min() == len(column) - 1 or _CALLED_ID.fullmatch(name))


def _tell_the_class(X: np.ndarray, y: np.ndarray, names: Sequence[str]) -> list[str]:
    """Return the columns with one value in each class, different between classes; indicators as their text column."""
    constant = _same_in_class(X[:_A_FEW], y[:_A_FEW])
    if len(constant):
        constant = constant[_same_in_class(X[:, constant], y)]
    columns: dict[str, list[int]] = {}
    for at in constant:
        column, sign, _ = names[at].partition("=")
        columns.setdefault(column if sign else names[at], []).append(int(at))
    of_class = X[np.unique(y, return_index=True)[1]]
    return [name for name, at in columns.items() if len(np.unique(of_class[:, at], axis=0)) == len(of_class)]


def _same_in_class(X: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Return the columns that have one value in each class."""
    _, first, codes = np.unique(y, return_index=True, return_inverse=True)
    return np.flatnonzero((X[first[codes]] == X).all(axis=0))
