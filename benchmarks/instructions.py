"""Instructions executed by two small fits, counted by valgrind; the load of the machine does not change them.

The count of a fit is that of a process with many fits minus that of a process without any.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from benchmarks.timing import Row

ROWS = ("instructions",)
FITS = 10
START = """
import numpy as np, warnings
warnings.simplefilter("ignore")
X, y = np.random.default_rng(0).normal(size=({n}, {d})), np.arange({n}) % 3
from {module} import {name} as Model
model = Model({given})
model.fit(X, y)
for _ in range({fits}):
    model.fit(X, y)
"""
CASES = {
    "PCA(10) 1,000×50": (
        {"n": 1_000, "d": 50},
        {"module": "discrim", "name": "PCA", "given": "10"},
        {"module": "sklearn.decomposition", "name": "PCA", "given": "10, svd_solver='covariance_eigh'"},
    ),
    "RegularizedLDA(shrinkage=0.1) 500×20": (
        {"n": 500, "d": 20},
        {"module": "discrim", "name": "RegularizedLDA", "given": "shrinkage=0.1"},
        {"module": "sklearn.discriminant_analysis", "name": "LinearDiscriminantAnalysis", "given": "solver='svd'"},
    ),
}


def instructions(code: str) -> int:
    """Return the number of instructions of a process that runs this code."""
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "callgrind.out"
        counted = ["valgrind", "--tool=callgrind", f"--callgrind-out-file={out}", sys.executable, "-c", code]
        run = subprocess.run(counted, capture_output=True, text=True, check=True)
    found = re.search(r"Collected : (\d+)", run.stderr)
    assert found is not None
    return int(found.group(1))


def cases(_: set[str]) -> Iterator[Row]:
    if shutil.which("valgrind") is None:
        return
    for work, (size, ours, theirs) in CASES.items():
        counts = []
        for side in (ours, theirs):
            many, none = (instructions(START.format(**size, **side, fits=fits)) for fits in (FITS, 0))
            counts.append((many - none) / FITS)
        text = f"{work}: {counts[0] / 1e6:.2f} / {counts[1] / 1e6:.2f} million instructions"
        yield {
            "row": "instructions",
            "work": text,
            "goal": None,
            "ratio": counts[0] / counts[1],
            "peer": "scikit-learn",
        }
