"""The one table of results: a row for each trial, and once for all of them what no single trial says.

A trial is named by the setting that it shares with the others of its run, its cell and its split; the hash of that as
canonical JSON is its key in a store.
"""

from __future__ import annotations

import base64
import hashlib
import json
import math
import zlib
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

STATUSES = ("ok", "failed", "skipped")
ITSELF = "itself"  # the classifier of a pipeline that ends in one


class Cell(NamedTuple):
    """One combination to be tried on every split, by names."""

    method: str
    k: int
    classifier: str

    @property
    def judge(self) -> str:
        """Its classifier, in words."""
        return "its own classifier" if self.classifier == ITSELF else self.classifier


class Setting(NamedTuple):
    """What the trials of one run have in common."""

    data: str
    digest: str
    protocol: str
    protocol_size: int | None = None
    scale: str = "standard"
    impute: str = ""
    seed: int = 0
    discrim: str = ""
    groups: str = ""
    weights: str = ""
    class_weight: str = ""
    equal_rows: str = ""

    @classmethod
    def of(cls, trial: Mapping[str, Any]) -> Setting:
        return cls(*(trial.get(name, cls._field_defaults.get(name, "")) for name in cls._fields))

    @property
    def run_key(self) -> str:
        """The key under which a store keeps what its trials have in common."""
        return trial_key(self.written)

    @property
    def written(self) -> dict[str, Any]:
        """By name, as a trial has it; the later fields only where they are set, so that keys of older stores hold."""
        return {name: value for name, value in self._asdict().items() if value or name not in _LATER}


_LATER = ("class_weight", "equal_rows")


@dataclass(frozen=True)
class Result:
    """What came of one trial.

    trial : all that the result depends on, as it is stored
    scores : by name; the sizes of the split, the seconds of the fit and the class of every test row are among them
    seconds : of the classifier
    reason : why there are no scores, where the status is not "ok"
    notes : what leaves doubts about the scores
    """

    trial: Mapping[str, Any]
    scores: Mapping[str, Any] = field(default_factory=dict)
    seconds: float = 0.0
    status: str = "ok"
    reason: str = ""
    notes: Sequence[str] = ()
    versions: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.status not in STATUSES:
            raise ValueError(f"status={self.status!r}; possible are {', '.join(STATUSES)}.")
        if self.status != "ok" and not self.reason:
            told = self.status.replace("skipped", "was skipped")
            raise ValueError(f"A trial that {told} needs a reason; none came.")
        if not (math.isfinite(self.seconds) and self.seconds >= 0):
            raise ValueError(f"seconds={self.seconds}; a finite time of at least 0 is needed.")

    @property
    def ok(self) -> bool:
        return self.status == "ok"

    @property
    def cell(self) -> Cell:
        return Cell(self.trial["method"], self.trial["k"], self.trial["classifier"])

    @property
    def split(self) -> int:
        return int(self.trial["split"])

    @property
    def key(self) -> str:
        return trial_key(self.trial)


@dataclass(frozen=True, eq=False)
class RunFacts:
    """What no single trial says, for those who read the results.

    codes : the class of every row
    n_splits, cells : how many were asked for
    groups : the group of every row, None where rows have none
    n_rows : how many rows the data have
    sample : the numbers of those that were compared; None for all, or where a sample came without numbers
    equal : a number for each row, the same for equal rows, where these stay on one side of every split
    dropped : cells that were not tried on all splits, as the first ones showed them to be hopeless
    """

    classes: tuple[str, ...]
    codes: NDArray[np.intp]
    n_splits: int
    n_features: int = 0
    cells: int = 0
    n_rows: int = 0
    groups: NDArray[np.intp] | None = None
    sample: NDArray[np.intp] | None = None
    weights: NDArray[np.float64] | None = None
    equal: NDArray[np.intp] | None = None
    dropped: tuple[Cell, ...] = ()

    @classmethod
    def read(cls, kept: Mapping[str, Any]) -> RunFacts:
        """From what a store has."""
        known = {one.name for one in fields(cls)}  # others are of a later version
        there = {name: value for name, value in kept.items() if value is not None and name in known}
        return cls(**there | {name: read(there[name]) for name, read in _READ.items() if name in there})

    def written(self) -> dict[str, Any]:
        """As a store has it."""
        kept = vars(self) | {name: packed(getattr(self, name)) for name in _PACKED if getattr(self, name) is not None}
        weights = None if self.weights is None else self.weights.tolist()
        return kept | {"classes": list(self.classes), "weights": weights}


@dataclass(frozen=True, eq=False)
class Scores:
    """One score of the results: a row for each cell, a column for each split, NaN where there is none.

    ratio : n_test / n_train over the splits
    """

    cells: tuple[Cell, ...]
    splits: tuple[int, ...]
    values: NDArray[np.float64]
    ratio: float

    @classmethod
    def of(cls, rows: Iterable[Result], metric: str) -> Self:
        """Collect the scores of the trials that went well."""
        found: dict[Cell, dict[int, float]] = defaultdict(dict)
        sizes: dict[int, tuple[int, int]] = {}
        for row in rows:
            if row.ok:
                sizes[row.split] = row.scores["n_test"], row.scores["n_train"]
                if metric in row.scores:
                    found[row.cell][row.split] = row.scores[metric]
        splits = tuple(sorted({split for by_split in found.values() for split in by_split}))
        values = np.array([[by_split.get(split, np.nan) for split in splits] for by_split in found.values()])
        n_test, n_train = (sum(column) for column in zip(*sizes.values(), strict=True)) if sizes else (0, 1)
        return cls(tuple(found), splits, values.reshape(len(found), len(splits)), n_test / n_train)

    @property
    def counts(self) -> NDArray[np.intp]:
        """Number of splits of each cell."""
        return np.isfinite(self.values).sum(axis=1)

    @property
    def n_splits(self) -> int:
        return len(self.splits)

    def complete(self) -> Self:
        """Keep the cells that no other has more splits than, and the splits that all of these have."""
        most = self.counts.max(initial=0)
        kept = self.take(np.flatnonzero(self.counts == most))
        there = np.atleast_1d(np.isfinite(kept.values).all(axis=0))
        splits = tuple(split for split, whole in zip(self.splits, there, strict=True) if whole)
        return type(self)(kept.cells, splits, kept.values[:, there], self.ratio)

    def take(self, members: Sequence[int] | NDArray[np.intp]) -> Self:
        """Keep these cells, by number."""
        numbers = [int(at) for at in members]
        return type(self)(tuple(self.cells[at] for at in numbers), self.splits, self.values[numbers], self.ratio)

    def of_cell(self, cell: Cell) -> NDArray[np.float64]:
        """Return the scores of a cell, in the order of its splits; none where it has no results."""
        values = self.values[self.cells.index(cell)] if cell in self.cells else np.array([])
        return values[np.isfinite(values)]

    def by_split(self, cell: Cell) -> dict[int, float]:
        """Return the scores of a cell by the number of the split."""
        values = zip(self.splits, self.values[self.cells.index(cell)].tolist(), strict=True)
        return {split: value for split, value in values if np.isfinite(value)}

    def both(self, ours: Cell, other: Cell) -> NDArray[np.float64]:
        """Return the differences of two cells on the splits that both have."""
        if ours not in self.cells or other not in self.cells:
            return np.array([])
        gaps = self.values[self.cells.index(ours)] - self.values[self.cells.index(other)]
        return gaps[np.isfinite(gaps)]

    @property
    def curves(self) -> dict[tuple[str, str], dict[int, NDArray[np.float64]]]:
        """By method and classifier, the scores (in the order of the splits) for every K, ascending."""
        found: dict[tuple[str, str], dict[int, NDArray[np.float64]]] = defaultdict(dict)
        for cell, values in zip(self.cells, self.values, strict=True):
            found[cell.method, cell.classifier][cell.k] = values[np.isfinite(values)]
        return {names: dict(sorted(by_k.items())) for names, by_k in found.items()}


# ---------------------------------------------------------------------- as it is written


def trial_key(trial: Mapping[str, Any]) -> str:
    """SHA-256 of the trial as canonical JSON: keys sorted, no blanks, UTF-8."""
    return hashlib.sha256(canonical_json(trial).encode()).hexdigest()


def canonical_json(value: Mapping[str, Any]) -> str:
    return json.dumps(plain_value(value, "trial"), sort_keys=True, separators=(",", ":"), ensure_ascii=False)


def plain_value(value: Any, place: str, *, finite: bool = True) -> Any:
    """The value as JSON knows it (NumPy's numbers as Python's, tuples as lists), or an error that names the place."""
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, Mapping):
        if not all(isinstance(name, str) for name in value):
            raise TypeError(f"{place}: names must be text, but {list(value)!r} came.")
        return {name: plain_value(inner, f"{place}.{name}", finite=finite) for name, inner in value.items()}
    if isinstance(value, list | tuple):
        return [plain_value(inner, f"{place}[{at}]", finite=finite) for at, inner in enumerate(value)]
    if isinstance(value, float) and finite and not math.isfinite(value):
        raise ValueError(f"{place} is {value}: what identifies a trial must be finite.")
    if value is None or isinstance(value, str | bool | int | float):
        return value
    raise TypeError(f"{place} is a {type(value).__name__}; text, numbers, lists and dictionaries can be stored.")


def sort_key(value: Any) -> tuple[int, Any]:
    """A key that sorts plain values of any kind: 2 before 10, numbers before text, dictionaries by name and value."""
    if value is None:
        return 0, 0
    if isinstance(value, int | float):
        return 1, value
    if isinstance(value, str):
        return 2, value
    if isinstance(value, Mapping):
        return 4, [(name, sort_key(inner)) for name, inner in sorted(value.items())]
    return 3, [sort_key(inner) for inner in value]


def packed(codes: NDArray[Any]) -> str:
    """Small whole numbers as short text."""
    return base64.b85encode(zlib.compress(np.ascontiguousarray(codes, dtype="<u4").tobytes(), 9)).decode("ascii")


def unpacked(text: str) -> NDArray[np.intp]:
    return np.frombuffer(zlib.decompress(base64.b85decode(text)), dtype="<u4").astype(np.intp)


_PACKED = ("codes", "groups", "sample", "equal")
_READ: dict[str, Callable[[Any], Any]] = {
    "classes": tuple,
    "weights": np.array,
    "dropped": lambda cells: tuple(Cell(*cell) for cell in cells),
    **dict.fromkeys(_PACKED, unpacked),
}
