"""Table of results: one row for each trial, and the facts that the trials of a run share.

A trial is identified by the setting of its run, its cell (method, K, classifier) and its split. The hash of that as
canonical JSON is the key of its row in a store. The verdict, the curves, the ranks and the page read this table only.
"""

from __future__ import annotations

import base64
import hashlib
import json
import math
import zlib
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from functools import cached_property
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

STATUSES = ("ok", "failed", "skipped")
ITSELF = "itself"  # the classifier of a pipeline that predicts by its own last step
_OF_TRIAL = ("method", "k", "classifier", "split", "estimator")  # the fields of a trial that are not the setting


class Cell(NamedTuple):
    """Combination of a method, a number of components and a classifier, by name."""

    method: str
    k: int
    classifier: str


@dataclass(frozen=True)
class Result:
    """Row of the table: the outcome of one trial.

    trial : everything that the result depends on, as it is stored
    scores : by name, with the sizes of the split, the seconds of the fit and the predicted class of every test row
    seconds : time of the classifier
    reason : why there are no scores, if the status is not "ok"
    notes : warnings about the scores
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
            raise ValueError(f"status must be one of {', '.join(STATUSES)}; got {self.status!r}.")
        if self.status != "ok" and not self.reason:
            raise ValueError(f"reason must not be empty if status={self.status!r}.")
        if not (math.isfinite(self.seconds) and self.seconds >= 0):
            raise ValueError(f"seconds must be a finite number ≥ 0; got {self.seconds}.")

    @property
    def ok(self) -> bool:
        return self.status == "ok"

    @cached_property
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
    """Facts of a run that no single trial has.

    codes : class number of every row
    n_splits, cells : how many were planned
    groups : group of every row; None without groups
    n_rows : number of rows of the data set
    sample : row numbers of the sample that was compared; None for all rows, or if the sample has no numbers
    equal : a number for each row, the same for equal rows, if these stay on one side of every split
    dropped : cells that were tried on the first splits only, because they were far behind the best
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
        """Read the facts from the plain values of a store."""
        known = {one.name for one in fields(cls)}  # a later version may have written others
        there = {name: value for name, value in kept.items() if value is not None and name in known}
        return cls(**there | {name: read(there[name]) for name, read in _READ.items() if name in there})

    def written(self) -> dict[str, Any]:
        """Return the facts as plain values for a store."""
        kept = vars(self) | {name: packed(getattr(self, name)) for name in _PACKED if getattr(self, name) is not None}
        weights = None if self.weights is None else self.weights.tolist()
        return kept | {"classes": list(self.classes), "weights": weights}


class Note(NamedTuple):
    """Reason why trials of one method failed, were skipped or are doubtful."""

    status: str
    method: str
    trials: int
    reason: str


@dataclass(frozen=True, eq=False)
class Results:
    """Table of the results of one run.

    rows : a result for each trial that was done
    setting : the fields that all trials share, by name: data, digest, protocol, scale, seed and others
    facts : facts of the run; None if they are not known
    """

    rows: Sequence[Result]
    setting: Mapping[str, Any] = field(default_factory=dict, repr=False)
    facts: RunFacts | None = field(default=None, repr=False)

    @cached_property
    def _scores(self) -> dict[str, Scores]:
        """Scores by metric, each computed once."""
        return {}

    def scores(self, metric: str) -> Scores:
        """Return one kind of score as a matrix of cells and splits; it is computed once."""
        if metric not in self._scores:
            self._scores[metric] = Scores.from_rows(self.rows, metric)
        return self._scores[metric]

    @property
    def failures(self) -> list[Result]:
        return [row for row in self.rows if row.status == "failed"]

    @property
    def skips(self) -> list[Result]:
        return [row for row in self.rows if row.status == "skipped"]

    @property
    def dropped(self) -> frozenset[Cell]:
        """Return the cells that were tried on the first splits only."""
        return frozenset(() if self.facts is None else self.facts.dropped)

    @cached_property
    def notes(self) -> list[Note]:
        """Return what failed or is doubtful, each reason once, and what was skipped, each method once."""
        counted: Counter[tuple[str, str, str]] = Counter()
        skipped: dict[str, str] = {}
        for row in self.rows:
            method, reasons = row.cell.method, [("doubtful", note) for note in row.notes]
            if row.status == "skipped":  # the reasons differ in the sizes of the splits
                reasons.append((row.status, skipped.setdefault(method, row.reason)))
            elif not row.ok:
                reasons.append((row.status, row.reason))
            counted.update((status, method, reason) for status, reason in reasons)
        return [Note(status, method, count, why) for (status, method, why), count in sorted(counted.items())]

    @cached_property
    def sizes(self) -> dict[str, int]:
        """Return the numbers of rows, training rows, test rows, features, classes and splits, as far as known."""
        good = next((row for row in self.rows if row.ok), None)
        found = {"splits": len({row.split for row in self.rows})}
        if good is not None:
            n_train, n_test = good.scores["n_train"], good.scores["n_test"]
            found |= {"rows": n_train + n_test, "train": n_train, "test": n_test}
            found["classes"] = len(good.scores.get("actual", ()))
        features = {row.cell.k for row in self.rows if row.cell.method == "raw"}
        found |= {"features": max(features)} if features else {}
        if self.facts is not None:
            found |= {"rows": len(self.facts.codes), "classes": len(self.facts.classes)}
            found |= {"features": self.facts.n_features} if self.facts.n_features else {}
        return found

    @property
    def class_counts(self) -> dict[str, int]:
        """Return the number of rows of each class; empty if the facts of the run are not known."""
        if self.facts is None:
            return {}
        counts = np.bincount(self.facts.codes, minlength=len(self.facts.classes))
        return dict(zip(self.facts.classes, counts.tolist(), strict=True))

    @cached_property
    def versions(self) -> list[tuple[str, str]]:
        """Return each library with the versions that computed the results."""
        seen: dict[str, set[str]] = defaultdict(set)
        for row in self.rows:
            for name, version in row.versions.items():
                seen[name].add(version)
        return [(name, ", ".join(sorted(found))) for name, found in sorted(seen.items())]

    @cached_property
    def seconds(self) -> list[tuple[str, float, float]]:
        """Return each method with the mean seconds of one fit and the total seconds of classification."""
        fits, classified = self.fit_seconds, defaultdict[str, float](float)
        for row in self.rows:
            classified[row.cell.method] += row.seconds
        return [(method, fits.get(method, np.nan), classified[method]) for method in sorted(classified)]

    @cached_property
    def fit_seconds(self) -> dict[str, float]:
        """Return the mean seconds of one fit of each method; of the slowest K, if each K has its own fit."""
        longest: dict[str, dict[int, float]] = defaultdict(lambda: defaultdict(float))
        for row in self.rows:
            if row.ok:
                of_split = longest[row.cell.method]
                of_split[row.split] = max(of_split[row.split], row.scores["fit_seconds"])
        return {method: float(np.mean(list(of_split.values()))) for method, of_split in longest.items()}


@dataclass(frozen=True, eq=False)
class Scores:
    """One kind of score as a matrix: a row for each cell, a column for each split, NaN if there is none.

    ratio : n_test / n_train over the splits
    """

    cells: tuple[Cell, ...]
    splits: tuple[int, ...]
    values: NDArray[np.float64]
    ratio: float

    @classmethod
    def from_rows(cls, rows: Iterable[Result], metric: str) -> Self:
        """Collect the scores of the successful trials."""
        found: dict[Cell, dict[int, float]] = defaultdict(dict)
        sizes: dict[int, tuple[int, int]] = {}
        for row in rows:
            if row.ok:
                split = row.split
                sizes[split] = row.scores["n_test"], row.scores["n_train"]
                if metric in row.scores:
                    found[row.cell][split] = row.scores[metric]
        splits = tuple(sorted({split for by_split in found.values() for split in by_split}))
        values = np.array([[by_split.get(split, np.nan) for split in splits] for by_split in found.values()])
        n_test, n_train = (sum(column) for column in zip(*sizes.values(), strict=True)) if sizes else (0, 1)
        return cls(tuple(found), splits, values.reshape(len(found), len(splits)), n_test / n_train)

    @property
    def counts(self) -> NDArray[np.intp]:
        """Return the number of splits of each cell."""
        return np.isfinite(self.values).sum(axis=1)

    @property
    def n_splits(self) -> int:
        return len(self.splits)

    def complete(self) -> Self:
        """Keep the cells with the most splits, and the splits that all of these have."""
        kept = np.flatnonzero(self.counts == self.counts.max(initial=0))
        there = np.atleast_1d(np.isfinite(self.values[kept]).all(axis=0))
        splits = tuple(split for split, whole in zip(self.splits, there, strict=True) if whole)
        return type(self)(tuple(self.cells[at] for at in kept), splits, self.values[kept][:, there], self.ratio)

    def of_cell(self, cell: Cell) -> NDArray[np.float64]:
        """Return the scores of a cell in the order of its splits; empty if it has none."""
        values = self.values[self.cells.index(cell)] if cell in self.cells else np.array([])
        return values[np.isfinite(values)]

    def both(self, ours: Cell, other: Cell) -> NDArray[np.float64]:
        """Return the differences of two cells on the splits that both have."""
        if ours not in self.cells or other not in self.cells:
            return np.array([])
        gaps = self.values[self.cells.index(ours)] - self.values[self.cells.index(other)]
        return gaps[np.isfinite(gaps)]

    @property
    def curves(self) -> dict[tuple[str, str], dict[int, NDArray[np.float64]]]:
        """Return the scores for every K, ascending, by method and classifier."""
        found: dict[tuple[str, str], dict[int, NDArray[np.float64]]] = defaultdict(dict)
        for cell, values in zip(self.cells, self.values, strict=True):
            found[cell.method, cell.classifier][cell.k] = values[np.isfinite(values)]
        return {names: dict(sorted(by_k.items())) for names, by_k in found.items()}


# ---------------------------------------------------------------------- identity of a trial


def setting_of(trial: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields of a trial that it shares with all trials of its run."""
    return {name: value for name, value in trial.items() if name not in _OF_TRIAL}


def trial_key(trial: Mapping[str, Any]) -> str:
    """Return the SHA-256 of the trial as canonical JSON: keys sorted, no blanks, UTF-8."""
    return hashlib.sha256(canonical_json(trial).encode()).hexdigest()


def canonical_json(value: Mapping[str, Any]) -> str:
    return json.dumps(plain_value(value, "trial"), sort_keys=True, separators=(",", ":"), ensure_ascii=False)


def plain_value(value: Any, place: str, *, finite: bool = True) -> Any:
    """Return the value as JSON has it: Python numbers for NumPy's, lists for tuples.

    Raise an error that names the place if JSON has no such value.
    """
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, Mapping):
        if not all(isinstance(name, str) for name in value):
            raise TypeError(f"{place}: names must be text; got {list(value)!r}.")
        return {name: plain_value(inner, f"{place}.{name}", finite=finite) for name, inner in value.items()}
    if isinstance(value, list | tuple):
        return [plain_value(inner, f"{place}[{at}]", finite=finite) for at, inner in enumerate(value)]
    if isinstance(value, float) and finite and not math.isfinite(value):
        raise ValueError(f"{place} must be finite, because it identifies a trial; got {value}.")
    if value is None or isinstance(value, str | bool | int | float):
        return value
    raise TypeError(f"{place} must be text, a number, a list or a dictionary; got {type(value).__name__}.")


def sort_key(value: Any) -> tuple[int, Any]:
    """Return a key that sorts plain values of any kind: 2 before 10, numbers before text."""
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
    """Return small whole numbers as short text."""
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
