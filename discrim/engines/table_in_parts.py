"""The interface of an engine: the width of its table, the statistics of all parts, and another pass over them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from discrim.core.moments.gather import Gathering, Statistics, gathered_total, part_statistics

NO_ROWS = (
    "The parts must have rows; got no rows: there are no parts, or all are empty. Pass at least one part with rows."
)
Look = Callable[..., Any]  # of a part's (X, y, sample_weight): something that adds up, None where there are no rows
Find = Callable[[str, Iterable[Sequence[Any]]], Any]  # the same of a part's name and batches of (X, y, sample_weight)


@dataclass(frozen=True)
class TableInParts:
    """A table in parts, wherever they are.

    n_columns : 0 where no part shows any; gather : gives the statistics of all parts
    summed : gives the sum of what a function makes of each part; None if the parts can be read only once
    """

    n_columns: int
    gather: Callable[[Gathering], Statistics]
    summed: Callable[[Look], Any] | None

    @classmethod
    def from_engine(
        cls, n_columns: int, total: Callable[[Find], Any], *, names: Sequence[str] | None = None, once: bool = False
    ) -> TableInParts:
        """Return a table from the engine's function that adds up what is found in the parts (None: in none).

        names : column names, if the batches are arrays; once : True if the parts can be read only once
        """

        def gather(gathering: Gathering) -> Statistics:
            return sum_of_some([total(partial(part_statistics, gathering, names=names))])

        def summed(look: Look) -> Any:
            return sum_of_some([total(partial(_look_at, look))])

        return cls(n_columns, gather, None if once else summed)


def _look_at(look: Look, part: str, batches: Iterable[Sequence[Any]]) -> Any:
    return gathered_total(look(*batch) for batch in batches)


def sum_of_some(found: Iterable[Any]) -> Any:
    """Return the sum of the results of parts that have rows; one is held in addition to the sum at a time."""
    total = None
    for one in found:
        if one is not None:
            total = one if total is None else total + one
    if total is None:
        raise ValueError(NO_ROWS)
    return total
