"""Very wide tables: 100,000 dense and 1,000,000 sparse columns, exact in memory and hashed in one pass.

`python -m benchmarks.very_wide docs/scale.md` writes the results between the markers of the page. Each side runs in its
own process; CPU seconds and peak memory do not include making the table.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

from benchmarks.timing import Row, write_between

ROWS = ("very wide",)
START, END = "<!-- measured: python -m benchmarks.very_wide docs/scale.md -->\n", "<!-- end of very wide -->\n"
DENSE = """
import numpy as np
n, d, classes = 1_000, 100_000, 5
rng = np.random.default_rng(0)
y = np.arange(n) % classes
X = rng.standard_normal((n, d), dtype=np.float32)
X[:, :200] += rng.standard_normal((classes, 200), dtype=np.float32)[y]
"""
SPARSE = """
import numpy as np, scipy.sparse as sp
n, d, classes = 20_000, 1_000_000, 8
rng = np.random.default_rng(0)
y = np.arange(n) % classes
words = np.empty((n, 60), dtype=np.intp)
for topic in range(classes):
    liking = np.cumsum(np.where(rng.random(d) < 0.01, 5.0, 1.0) / np.arange(50, d + 50))
    words[y == topic] = np.searchsorted(liking, rng.random((n // classes, 60)) * liking[-1])
X = sp.csr_array((np.ones(words.size), (np.repeat(np.arange(n), 60), words.ravel())), shape=(n, d))
"""
HASHED = """
hashed = np.random.default_rng(1).integers(4096, size=d), np.random.default_rng(2).choice([-1.0, 1.0], d)
to_few = sp.csr_array((hashed[1], (np.arange(d), hashed[0])), shape=(d, 4096))
"""
JUDGED = """
import json, resource, time
from discrim import BayesErrorLDA, PCA, fit_parts
train = np.random.default_rng(3).random(n) < 0.8
fitted, tested = X[np.flatnonzero(train)], X[np.flatnonzero(~train)]
peak = lambda: resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
before, start = peak(), time.process_time()
{fit}
seconds = time.process_time() - start
print(json.dumps([seconds, peak() - before, model.score({tested}, y[~train])]))
"""
SIDES = {
    "1,000×100,000 dense (float32), `BayesErrorLDA(4)`": (
        DENSE,
        {"fit": "model = BayesErrorLDA(4).fit(fitted, y[train])", "tested": "tested"},
    ),
    "20,000×1,000,000 sparse, `BayesErrorLDA(5, shrinkage=0.1)`, exact": (
        SPARSE,
        {"fit": "model = BayesErrorLDA(5, shrinkage=0.1).fit(fitted, y[train])", "tested": "tested"},
    ),
    "the same, hashed to 4,096 columns, in ten parts of one pass": (
        SPARSE + HASHED,
        {
            "fit": "parts = np.array_split(np.arange(train.sum()), 10)\n"
            "model = fit_parts(BayesErrorLDA(5, shrinkage=0.1), "
            "(((fitted[rows] @ to_few).toarray(), y[train][rows]) for rows in parts))",
            "tested": "(tested @ to_few).toarray()",
        },
    ),
}


def found() -> Iterator[tuple[str, float, float, float]]:
    """Yield CPU seconds, MiB and accuracy on new rows for each side."""
    for name, (table, words) in SIDES.items():
        done = subprocess.run(
            [sys.executable, "-W", "ignore", "-c", table + JUDGED.format(**words)],
            env={**os.environ, "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"},
            capture_output=True,
            text=True,
            check=True,
        )
        yield name, *json.loads(done.stdout.splitlines()[-1])


def cases(_: set[str]) -> Iterator[Row]:
    for name, seconds, _, _ in found():
        yield {"row": "very wide", "work": f"{name}: CPU s", "goal": None, "ratio": seconds}


def written() -> str:
    """Return the section of the page."""
    lines = ["| table and model | CPU | additional memory | new rows correct |", "| --- | ---: | ---: | ---: |"]
    for name, seconds, peak, right in found():
        lines.append(f"| {name} | {seconds:.0f} s | {peak:,.0f} MiB | {100 * right:.1f} % |")
        print(lines[-1], flush=True)
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    write_between(Path(sys.argv[1]), START, END, written())
