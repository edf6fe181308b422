"""Sizes of the data that a page is about: rows, columns, classes, missing cells."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from discrim.evaluation.comparison import JudgedRun
from discrim.report.fitted import natural
from discrim.tables.facts import TableFacts

MOST_CLASSES = 20  # that have a bar


@dataclass(frozen=True)
class DataFacts:
    """Facts of a table, as far as they are known.

    counts : rows of each class, in natural order of the names; of many classes the largest
    more : number of classes without a bar
    missing : number of missing cells, None if the table is not at hand; in_columns : number of columns that have any
    equal_rows : number of rows that equal an earlier one; constant : number of constant columns
    """

    rows: int | None
    columns: int | None
    counts: tuple[tuple[str, int], ...]
    more: int
    missing: int | None = None
    in_columns: int = 0
    equal_rows: int = 0
    constant: int = 0

    @classmethod
    def of(cls, results: JudgedRun) -> DataFacts:
        """Collect what the results and the table tell."""
        sizes, facts = results.sizes, results.facts
        table = None if results.data is None else TableFacts.of_table(results.data)
        counts: dict[str, int] = {}
        if table is not None:
            counts = {str(label): int(count) for label, count in table.classes.items()}
        elif facts is not None:
            of_class = np.bincount(facts.codes, minlength=len(facts.classes))
            counts = dict(zip(facts.classes, of_class.tolist(), strict=True))
        largest = sorted(counts, key=lambda label: -counts[label])[:MOST_CLASSES]
        shown = tuple((label, counts[label]) for label in sorted(largest, key=natural))
        more = len(counts) - len(shown)
        if table is None:
            return cls(sizes.get("rows"), sizes.get("features"), shown, more)
        missing = sum(table.missing.values()), len(table.missing)
        return cls(table.n_rows, table.n_features, shown, more, *missing, table.equal_rows, len(table.constant))

    @property
    def largest(self) -> int:
        """Rows of the largest class."""
        return max((count for _, count in self.counts), default=1)
