"""What is to be tried: cells (method, K, classifier) on the splits of one table, each a trial with a key of its own.

A trial says all that its result depends on: the content of the table, the split, the scale, the method, K, the
classifier, and the version of discrim. So equal trials are done once, whichever run asks for them. What a reader of
results needs beside the trials (classes, labels, how many splits were asked for) is kept once per run: `Grid.facts`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from importlib.metadata import version
from itertools import islice
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import issparse

from discrim.evaluation.classifiers import CLASSIFIERS, Classifier
from discrim.evaluation.methods import METHODS, Method, Sizes, directions_of_rows, named
from discrim.evaluation.protocol import EqualTogether, Grouped, Protocol, Split, codes_in_order, digest_of
from discrim.evaluation.results import ITSELF, Cell, RunFacts, Setting, trial_key
from discrim.evaluation.trial import OWN_PREDICTION, TrialRows, Work
from discrim.tables.labelled_table import LabelledTable
from discrim.tables.preprocessing import preprocessing

DENSE_CELLS = 20_000_000  # sparse tables up to this size are made dense (160 MB), so that every method can take part
AUTOMATIC = (1, 2, 5, 10)
FIRST_SPLITS = 5  # on which every cell is tried before hopeless ones are dropped


@dataclass(frozen=True, eq=False)
class Grid:
    """Cells × splits of a table.

    methods, classifiers : what the names in the cells stand for
    n_splits : how many of the protocol's splits are done, None for all
    impute : what missing cells are filled with, None where there are none
    sample_weight : a weight for each row, None for equal ones
    sample : how many rows the data have, and the numbers of those that the table has; None where it has all
    class_weight : of the classifiers that can weight classes
    dropped : cells that are tried on the first splits only
    """

    name: str
    table: LabelledTable
    cells: tuple[Cell, ...]
    protocol: Protocol
    scale: str = "standard"
    seed: int = 0
    methods: Mapping[str, Method] = field(default_factory=lambda: METHODS)
    classifiers: Mapping[str, Classifier] = field(default_factory=lambda: CLASSIFIERS)
    n_splits: int | None = None
    impute: str | None = None
    sample_weight: NDArray[np.float64] | None = None
    sample: tuple[int, NDArray[np.intp]] | None = None
    class_weight: str | None = None
    dropped: frozenset[Cell] = frozenset()

    def __post_init__(self) -> None:
        preprocessing(self.scale, self.impute)
        self.protocol.splits(self.table.y, self.seed)  # refuses a class too small for it, before anything is done

    @cached_property
    def rows(self) -> Any:
        """The table's rows, dense unless they are sparse and many."""
        X = self.table.X
        return X.toarray() if issparse(X) and X.shape[0] * X.shape[1] <= DENSE_CELLS else X

    @cached_property
    def trial_rows(self) -> TrialRows:
        """The rows as trials have them, classes by number: classifiers compare numbers faster than text."""
        steps = preprocessing(self.scale, self.impute, sparse=issparse(self.rows))
        facts = self.facts
        groups = facts.groups if facts.groups is not None else facts.equal
        return TrialRows(self.rows, facts.codes, self.sample_weight, steps, self.seed, groups, self.class_weight)

    @cached_property
    def splits(self) -> list[Split]:
        return list(islice(self.protocol.splits(self.table.y, self.seed), self.n_splits or self.protocol.n_splits))

    @cached_property
    def trials(self) -> list[dict[str, Any]]:
        """All trials, split by split, so that what is done first can be compared first."""
        count, common = self.n_splits or self.protocol.n_splits, self.setting.written
        own = {name: {"estimator": method.written} for name, method in self.methods.items() if method.written}
        return [
            {**common, **cell._asdict(), "split": split, **own.get(cell.method, {})}
            for split in range(count)
            for cell in self.cells
            if split < FIRST_SPLITS or cell not in self.dropped
        ]

    @cached_property
    def by_key(self) -> dict[str, dict[str, Any]]:
        """The trials by their key in a store; hashed once, and only where a store is named."""
        return {trial_key(trial): trial for trial in self.trials}

    def work(self, wanted: Iterable[dict[str, Any]]) -> Iterator[Work]:
        """The wanted trials in parcels of one split and method."""
        parcels: dict[tuple[int, str], list[dict[str, Any]]] = {}
        for trial in wanted:
            parcels.setdefault((trial["split"], trial["method"]), []).append(trial)
        for (split, method), trials in parcels.items():
            gone = self.dropped if split >= FIRST_SPLITS else ()
            cells = tuple(cell for cell in self.cells if cell.method == method and cell not in gone)
            known = named(method, self.methods, "method")
            own = {ITSELF: OWN_PREDICTION}
            judges = {
                name: known.own_classifier or own.get(name) or named(name, self.classifiers, "classifier")
                for name in {cell.classifier for cell in cells}
            }
            yield Work(known, judges, split, cells, tuple(trials))

    @cached_property
    def facts(self) -> RunFacts:
        """What no single trial says, for those who read the results."""
        classes, codes = np.unique(self.table.y, return_inverse=True)
        n_rows, sample = (self.table.drawn_from or self.table.n_samples, None) if self.sample is None else self.sample
        return RunFacts(
            tuple(classes.tolist()),
            codes,
            len(self.splits),
            self.table.n_features,
            len(self.cells),
            n_rows,
            np.array(self.protocol.groups) if isinstance(self.protocol, Grouped) else None,
            sample,
            self.sample_weight,
            np.array(self.protocol.equal) if isinstance(self.protocol, EqualTogether) else None,
            tuple(sorted(self.dropped)),
        )

    @cached_property
    def setting(self) -> Setting:
        """What the trials have in common."""
        return Setting(
            data=self.name,
            digest=self.table.digest(),
            protocol=self.protocol.name,
            protocol_size=self.protocol.size,
            scale=self.scale,
            impute=self.impute or "",
            seed=self.seed,
            discrim=version("discrim"),
            groups=self.protocol.digest if isinstance(self.protocol, Grouped) else "",
            weights="" if self.sample_weight is None else digest_of(self.sample_weight.tolist()),
            class_weight=self.class_weight or "",
            equal_rows="together" if isinstance(self.protocol, EqualTogether) else "",
        )


def product(
    methods: Iterable[Method], counts: Iterable[int], classifiers: Iterable[Classifier], n_features: int
) -> tuple[Cell, ...]:
    """Every method with every K and classifier; features as they are have one K only."""
    counts, classifiers = tuple(counts), tuple(classifiers)
    return tuple(
        Cell(method.name, k, classifier)
        for method in methods
        for k in method.counts(counts, n_features)
        for classifier in method.judges([one.name for one in classifiers])
    )


def training_sizes(table: LabelledTable, protocol: Protocol, seed: int = 0) -> Sizes:
    """Sizes of the first split's training part."""
    train, _ = next(iter(protocol.splits(table.y, seed)))
    return Sizes(len(train), table.n_features, len(codes_in_order(table.y)[1]))


def automatic_counts(sizes: Sizes) -> tuple[int, ...]:
    """1, 2, 5, 10, and one less than there are classes: as many as linear discriminants have."""
    most = min(directions_of_rows(sizes), sizes.n_features - 1)  # as many as there are columns reduce nothing
    return tuple(sorted({k for k in (*AUTOMATIC, sizes.n_classes - 1) if 1 <= k <= most})) or (1,)


def refined_counts(tried: Sequence[int], k: int, most: int) -> tuple[int, ...]:
    """Up to five more K between k and its neighbours among those tried; beyond the largest up to twice as many."""
    below = max((one for one in tried if one < k), default=0)
    above = min((one for one in tried if one > k), default=min(2 * k, most) + 1)
    between = [*np.linspace(below, k, 5)[1:-1], *np.linspace(k, above, 4)[1:-1]]
    return tuple(sorted({k for k in map(round, between) if 1 <= k <= most} - set(tried)))


def checked_counts(counts: Iterable[int], table: LabelledTable) -> tuple[int, ...]:
    """K ascending, each once, none below 1 or above the number of features."""
    asked = list(counts)
    numbers = sorted({int(k) for k in asked if float(k).is_integer()})
    if not numbers or numbers[0] < 1 or not all(float(k).is_integer() for k in asked):
        raise ValueError(f"Numbers of components {asked} came. Pass whole numbers of at least 1.")
    if numbers[0] > table.n_features:
        raise ValueError(
            f"Numbers of components {numbers} came, but there are only {table.n_features} features to be reduced."
        )
    return tuple(numbers)
