"""What is to be tried: cells (method, K, classifier) on the splits of one table, each a trial with a key of its own.

A trial says all that its result depends on: the content of the table, the split, the scale, the method, K, the
classifier, and the version of discrim. So equal trials are done once, whichever run asks for them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from importlib.metadata import version
from typing import Any, NamedTuple

import numpy as np
from scipy.sparse import issparse

from discrim.data.labelled_table import LabelledTable
from discrim.data.preprocessing import preprocessing
from discrim.evaluation.canonical import trial_key
from discrim.evaluation.classifiers import Classifier
from discrim.evaluation.methods import Method, Sizes, directions_of_rows
from discrim.evaluation.protocol import FewShot, Folds, Protocol, Split, class_codes

DENSE_CELLS = 20_000_000  # sparse tables up to this size are made dense (160 MB), so that every method can take part
AUTOMATIC = (1, 2, 5, 10)


class Cell(NamedTuple):
    """One combination to be tried on every split, by names."""

    method: str
    k: int
    classifier: str


class Work(NamedTuple):
    """What one worker does at once: all cells of a method on one split. `wanted` are those not done yet."""

    method: str
    split: int
    cells: tuple[Cell, ...]
    wanted: tuple[dict[str, Any], ...]


@dataclass(frozen=True, eq=False)
class Grid:
    """Cells × splits of a table."""

    name: str
    table: LabelledTable
    cells: tuple[Cell, ...]
    protocol: Protocol
    scale: str = "standard"
    seed: int = 0

    def __post_init__(self) -> None:
        preprocessing(self.scale)
        self.protocol.splits(self.table.y, self.seed)  # refuses a class too small for it, before anything is done

    @cached_property
    def rows(self) -> Any:
        """The table's rows, dense unless they are sparse and many."""
        X = self.table.X
        return X.toarray() if issparse(X) and X.shape[0] * X.shape[1] <= DENSE_CELLS else X

    @cached_property
    def splits(self) -> list[Split]:
        return list(self.protocol.splits(self.table.y, self.seed))

    @cached_property
    def trials(self) -> list[dict[str, Any]]:
        """All trials, split by split, so that what is done first can be compared first."""
        return [self._trial(cell, split) for split in range(self.protocol.n_splits) for cell in self.cells]

    @cached_property
    def keys(self) -> frozenset[str]:
        return frozenset(trial_key(trial) for trial in self.trials)

    def work(self, wanted: Iterable[dict[str, Any]]) -> Iterator[Work]:
        """The wanted trials in parcels of one split and method."""
        parcels: dict[tuple[int, str], list[dict[str, Any]]] = {}
        for trial in wanted:
            parcels.setdefault((trial["split"], trial["method"]), []).append(trial)
        for (split, method), trials in parcels.items():
            cells = tuple(cell for cell in self.cells if cell.method == method)
            yield Work(method, split, cells, tuple(trials))

    def _trial(self, cell: Cell, split: int) -> dict[str, Any]:
        return {**self._common, **cell._asdict(), "split": split}

    @cached_property
    def _common(self) -> dict[str, Any]:
        return {
            "data": self.name,
            "digest": self.table.digest(),
            "protocol": protocol_in_words(self.protocol),
            "scale": self.scale,
            "seed": self.seed,
            "discrim": version("discrim"),
        }


def product(
    methods: Iterable[Method], counts: Iterable[int], classifiers: Iterable[Classifier], n_features: int
) -> tuple[Cell, ...]:
    """Every method with every K and classifier; features as they are have one K only."""
    counts, classifiers = tuple(counts), tuple(classifiers)
    return tuple(
        Cell(method.name, k, classifier.name)
        for method in methods
        for k in ((n_features,) if method.build is None else counts)
        for classifier in classifiers
    )


def protocol_in_words(protocol: Protocol) -> str:
    """A protocol's name with what its splits depend on; the number of random splits does not change them."""
    if isinstance(protocol, Folds):
        return f"{protocol.name} {protocol.n_splits}"
    if isinstance(protocol, FewShot):
        return f"{protocol.name} {protocol.per_class}"
    return protocol.name


def training_sizes(table: LabelledTable, protocol: Protocol, seed: int = 0) -> Sizes:
    """Sizes of the first split's training part."""
    train, _ = next(iter(protocol.splits(table.y, seed)))
    return Sizes(len(train), table.n_features, len(class_codes(table.y)[1]))


def automatic_counts(sizes: Sizes) -> tuple[int, ...]:
    """Four K or fewer: 1, 2, 5, 10, or with many classes 2, 5, 10 and one less than there are classes."""
    discriminants = sizes.n_classes - 1
    chosen = AUTOMATIC if discriminants <= AUTOMATIC[-1] else (*AUTOMATIC[1:], discriminants)
    most = directions_of_rows(sizes)
    return tuple(k for k in chosen if k <= most) or (1,)


def checked_counts(counts: Iterable[int], table: LabelledTable) -> tuple[int, ...]:
    """K ascending, each once, none below 1 or above the number of features."""
    asked = list(counts)
    if not all(float(k).is_integer() for k in asked):
        raise ValueError(f"Numbers of components {asked} came. Pass whole numbers of at least 1.")
    numbers = sorted({int(k) for k in asked})
    if not numbers or numbers[0] < 1:
        raise ValueError(f"Numbers of components {numbers} came. Pass whole numbers of at least 1.")
    if numbers[0] > table.n_features:
        raise ValueError(
            f"Numbers of components {numbers} came, but there are only {table.n_features} features to be reduced."
        )
    return tuple(np.unique(numbers).tolist())
