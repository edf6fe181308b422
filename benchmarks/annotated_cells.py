"""Reductions of sparse counts (cells by genes) in an AnnData object: cost beyond that of reading the object.

`python -m benchmarks.annotated_cells docs/coming_from.md` writes the results between the markers of the page.
100,000 cells of ten types × 20,000 genes, 5 % non-zero; each reduction runs in its own process.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from benchmarks.beyond_memory import cost
from benchmarks.timing import Row, write_between

ROWS = ("cells",)
START, END = "<!-- measured: python -m benchmarks.annotated_cells docs/coming_from.md -->\n", "<!-- end -->\n"
WRITE = """
import anndata, numpy as np, pandas as pd, scipy.sparse as sp
cells, genes, filled = 100_000, 20_000, 1_000
rng = np.random.default_rng(0)
types = np.arange(cells) % 10
chance = [np.where(rng.random(genes) < 0.02, 4.0, 1.0) / np.arange(200, genes + 200) ** 0.5 for _ in range(10)]
steps = [np.cumsum(one / one.sum()) for one in chance]
indices = np.empty((cells, filled), dtype=np.int32)
for cell in range(cells):  # a gene may be drawn twice: its counts add up
    indices[cell] = np.minimum(np.searchsorted(steps[types[cell]], rng.random(filled)), genes - 1)
starts = np.arange(0, cells * filled + 1, filled)
X = sp.csr_matrix((np.ones(cells * filled, dtype=np.float32), indices.ravel(), starts), shape=(cells, genes))
X.sum_duplicates()
np.log1p(X.data, out=X.data)
obs = pd.DataFrame({{"cell_type": np.array(list("abcdefghij"))[types]}}, index=np.arange(cells).astype(str))
variance = np.asarray(X.multiply(X).mean(axis=0) - np.square(X.mean(axis=0))).ravel()
var = pd.DataFrame({{"highly_variable": variance >= np.sort(variance)[-2000]}}, index=np.arange(genes).astype(str))
anndata.AnnData(X, obs, var).write_h5ad({path!r})
"""
READ = "import anndata, discrim.tl; from discrim import *; adata = anndata.read_h5ad({path!r})\n"
REDUCE = READ + "discrim.tl.reduce(adata, 'cell_type', {arguments})\nprint(adata.X.nnz)"
REDUCTIONS = {
    "`PCA(10)`": "method=PCA(10)",
    "`RegularizedLDA(5, shrinkage=0.1)`": "method=RegularizedLDA(5, shrinkage=0.1)",
    "`BayesErrorLDA(5, shrinkage=0.1)`": "method=BayesErrorLDA(5, shrinkage=0.1)",
    "`BayesErrorLDA(2)` with its defaults": "method=BayesErrorLDA(2)",
    '`BayesErrorLDA(2)`, `mask_var="highly_variable"` (2,000 genes)': "mask_var='highly_variable'",
}


def found() -> Iterator[tuple[str, float, float]]:
    """Yield CPU seconds and MiB of each reduction, beyond those of reading the object."""
    with tempfile.TemporaryDirectory(prefix="discrim-") as folder:
        path = str(Path(folder) / "cells.h5ad")
        subprocess.run([sys.executable, "-c", WRITE.format(path=path)], check=True)
        seconds, peak = cost(READ.format(path=path))
        yield "the object itself", seconds, peak
        for name, arguments in REDUCTIONS.items():
            more, higher = cost(REDUCE.format(path=path, arguments=arguments))
            yield name, more - seconds, higher - peak


def cases(_: set[str]) -> Iterator[Row]:
    for name, seconds, _ in found():
        yield {"row": "cells", "work": f"100,000 cells × 20,000 genes, {name}: CPU s", "goal": None, "ratio": seconds}


def written() -> str:
    """Return the section of the page."""
    lines = ["| 100,000 cells × 20,000 genes, 5 % non-zero | CPU | memory |", "| --- | ---: | ---: |"]
    for name, seconds, peak in found():
        lines.append(f"| {name} | {seconds:.0f} s | {peak:,.0f} MiB |")
        print(lines[-1], flush=True)
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    write_between(Path(sys.argv[1]), START, END, written())
