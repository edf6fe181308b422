"""Outcome of a trial."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass
class Outcome:
    """Number of runs of a case, the expected result, and the runs that differ from it."""

    case: str
    expected: str
    runs: int = 0
    faults: list[str] = field(default_factory=list)

    def line(self) -> str:
        return f"{self.case}: {self.runs:,} runs, {len(self.faults):,} faults (expected: {self.expected})"
