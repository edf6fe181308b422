"""What is kept of a run: the result of every trial, and once for all of them what no single trial says.

A trial is named by the setting that it shares with the others of its run, its cell and its split; the hash of that as
canonical JSON is its key in a store.
"""

from __future__ import annotations

import base64
import hashlib
import json
import math
import zlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import Any, NamedTuple, TypeVar

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


Of = TypeVar("Of")


def on_all_splits(found: Mapping[Cell, Mapping[int, Of]]) -> tuple[dict[Cell, Mapping[int, Of]], list[int]]:
    """What was found by cell and split, of the cells that no other has more splits than; and the splits all share."""
    most = max(map(len, found.values()), default=0)
    whole = {cell: by_split for cell, by_split in found.items() if len(by_split) == most}
    return whole, sorted(set.intersection(*map(set, whole.values()))) if whole else []


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


_PACKED = ("codes", "groups", "sample")
_READ: dict[str, Callable[[Any], Any]] = {"classes": tuple, "weights": np.array, **dict.fromkeys(_PACKED, unpacked)}
