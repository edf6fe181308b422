"""Sizes of the data that a page is about: rows, columns, classes, missing cells."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.sparse import issparse

from discrim.evaluation.comparison import JudgedRun
from discrim.report.fitted import natural

MOST_CLASSES = 20  # that have a bar


@dataclass(frozen=True)
class DataFacts:
    """Facts of a table, as far as they are known.

    counts : rows of each class, in natural order of the names; of many classes the largest
    more : number of classes without a bar
    missing : number of missing cells, None if the table is not at hand; in_columns : number of columns that have any
    """

    rows: int | None
    columns: int | None
    counts: tuple[tuple[str, int], ...]
    more: int
    missing: int | None
    in_columns: int = 0

    @classmethod
    def of(cls, results: JudgedRun) -> DataFacts:
        """Collect what the results and the table tell."""
        sizes, data, facts = results.sizes, results.data, results.facts
        counts: dict[str, int] = {}
        if data is not None:
            counts = {str(label): int(count) for label, count in data.class_counts().items()}
        elif facts is not None:
            of_class = np.bincount(facts.codes, minlength=len(facts.classes))
            counts = dict(zip(facts.classes, of_class.tolist(), strict=True))
        largest = sorted(counts, key=lambda label: -counts[label])[:MOST_CLASSES]
        shown = tuple((label, counts[label]) for label in sorted(largest, key=natural))
        rows, columns = sizes.get("rows"), sizes.get("features")
        if data is None:
            return cls(rows, columns, shown, len(counts) - len(shown), None)
        values = data.X.tocsc() if issparse(data.X) else data.X
        empty = np.isnan(values.data if issparse(values) else values)
        by_column = np.bincount(values.tocoo().col[empty]) if issparse(values) else empty.sum(axis=0)
        missing = int(empty.sum()), int((by_column > 0).sum())
        return cls(data.n_samples, data.n_features, shown, len(counts) - len(shown), *missing)

    @property
    def largest(self) -> int:
        """Rows of the largest class."""
        return max((count for _, count in self.counts), default=1)
