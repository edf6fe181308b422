"""What looks odd about a labelled table but can be meant: said, never mended in silence."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import numpy as np
from scipy.sparse import issparse

from discrim.data.table_error import quoted

_FEWEST_ROWS = 20  # in fewer, whole numbers in a row are common
_A_FEW = 200
_CALLED_ID = re.compile(r"(?i)(.*[\W_])?(id|ids|index|uid|nr|no|row)|.*[a-z](ID|Id)")


def notes_on(X: Any, y: np.ndarray, names: Sequence[str], target: str) -> list[str]:
    """Sentences on columns that look like identifiers or like the target, and on labels that look like misspellings."""
    return [*_notes_on_labels(y, target), *_notes_on_columns(X, y, names, target)]


def _notes_on_labels(y: np.ndarray, target: str) -> list[str]:
    alike: dict[str, list[str]] = {}
    for label in np.unique(y).tolist():
        alike.setdefault(" ".join(label.split()).casefold(), []).append(label)
    return [
        f"The labels {quoted(same)} in {target!r} differ only in case or blanks, and are taken for different classes."
        for same in alike.values()
        if len(same) > 1
    ]


def _notes_on_columns(X: Any, y: np.ndarray, names: Sequence[str], target: str) -> list[str]:
    if issparse(X) or X.shape[0] < _FEWEST_ROWS:
        return []
    notes = []
    numbered = [at for at in _whole_and_distinct(X[:_A_FEW]) if _is_numbering(X[:, at], names[at])]
    if numbered:
        these = [names[at] for at in numbered]
        notes.append(
            f"{quoted(these)} {_looks(these)} like row numbers or identifiers, and {_are(these)} used as features."
        )
    constant = _same_in_class(X[:_A_FEW], y[:_A_FEW])
    if len(constant):
        constant = constant[_same_in_class(X[:, constant], y)]
    if len(constant):
        these = [names[at] for at in constant]
        notes.append(
            f"{quoted(these)} {_looks(these)} like the target {target!r} in other words, and {_are(these)} used."
        )
    return notes


def _whole_and_distinct(rows: np.ndarray) -> np.ndarray:
    with np.errstate(invalid="ignore"):
        whole = np.all(rows == np.floor(rows), axis=0)
    candidates = np.flatnonzero(whole)
    return (
        candidates[[len(np.unique(rows[:, at])) == len(rows) for at in candidates]] if len(candidates) else candidates
    )


def _is_numbering(column: np.ndarray, name: str) -> bool:
    if not np.isfinite(column).all() or (column != np.floor(column)).any() or len(np.unique(column)) != len(column):
        return False
    return bool(column.max() - column.min() == len(column) - 1 or _CALLED_ID.fullmatch(name))


def _same_in_class(X: np.ndarray, y: np.ndarray) -> np.ndarray:
    """The columns that have one value in each class, another in each."""
    _, first, codes = np.unique(y, return_index=True, return_inverse=True)
    constant = np.flatnonzero((X[first[codes]] == X).all(axis=0))
    return constant[[len(np.unique(X[first, at])) == len(first) for at in constant]] if len(constant) else constant


def _looks(names: Sequence[str]) -> str:
    return "looks" if len(names) == 1 else "look"


def _are(names: Sequence[str]) -> str:
    return "is" if len(names) == 1 else "are"
