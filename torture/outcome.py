"""Outcome of a trial."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field


@dataclass
class Outcome:
    """Number of runs of a case, the expected result, and the runs that differ from it."""

    case: str
    expected: str
    runs: int = 0
    faults: list[str] = field(default_factory=list)

    @contextmanager
    def run(self, *expected: type[Exception], of: str = "") -> Iterator[None]:
        """Count a run; an error that is not expected is a fault."""
        self.runs += 1
        try:
            yield
        except expected:
            pass
        except Exception as error:
            self.faults.append(f"{of}{type(error).__name__}: {error}"[:300])

    def line(self) -> str:
        return f"{self.case}: {self.runs:,} runs, {len(self.faults):,} faults (expected: {self.expected})"
