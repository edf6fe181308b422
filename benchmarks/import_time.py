"""Row 13: what `import discrim` costs."""

from __future__ import annotations

import statistics
import subprocess
import sys

from benchmarks.timing import Row

ROWS = ("13",)
CODE = "import time; t = time.process_time(); import {}; print(time.process_time() - t)"


def import_seconds(module: str) -> float:
    run = subprocess.run([sys.executable, "-c", CODE.format(module)], capture_output=True, text=True, check=True)
    return float(run.stdout)


def measure() -> list[Row]:
    pairs = [(import_seconds("discrim"), import_seconds("sklearn.decomposition")) for _ in range(9)]
    ours, theirs = (statistics.median(side) for side in zip(*pairs, strict=True))
    work = "import discrim / import sklearn.decomposition"
    return [{"row": "13", "work": work, "goal": 1.2, "ratio": ours / theirs, "seconds": ours}]
