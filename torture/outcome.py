"""What came of a trial."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass
class Outcome:
    """How often something was tried, what should have held, and each time it did not."""

    what: str
    held: str
    times: int = 0
    faults: list[str] = field(default_factory=list)

    def line(self) -> str:
        return f"{self.what}: {self.times:,} times, {len(self.faults):,} faults ({self.held})"
