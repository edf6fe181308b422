"""Dask and Spark: total CPU of all processes for one PCA, compared with one process and with their own PCA.

Each side runs in its own process, which first fits a thousand rows. This excludes one-time costs (0.3 s of Dask's
imports, the start of Spark's Java machine and Python workers). For Spark the first fit has all rows, because the Java
machine compiles code while it runs it, on both sides.
"""

from __future__ import annotations

import importlib.util
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from benchmarks.tables import table
from benchmarks.timing import Row

ROWS = ("dask", "spark")
PART = 20_000
TIMED = """
import psutil

def used():
    me = psutil.Process()
    return sum(sum(one.cpu_times()[:4]) for one in (me, *me.children(recursive=True)))

def fit(rows):
    {fit}

{prepare}
fit({few})
start = used()
fit(rows)
print("CPU seconds", used() - start)
"""
ONE = """
import numpy as np
from discrim import PCA
rows = np.load({path!r}, mmap_mode="r")
"""
DASK = """
import dask, dask.array as da, numpy as np
from {module} import PCA
dask.config.set(scheduler="threads", num_workers=2)
rows = da.from_array(np.load({path!r}, mmap_mode="r"), chunks=({part}, -1))
"""
SPARK = """
import os, sys
os.environ["PYSPARK_PYTHON"] = sys.executable
from pyspark.sql import SparkSession
from pyspark.ml.feature import PCA, VectorAssembler
import discrim
from discrim.spark import SparkReducer
local = {{"spark.ui.enabled": "false", "spark.driver.host": "127.0.0.1", "spark.driver.bindAddress": "127.0.0.1"}}
session = SparkSession.builder.master("local[2]").config(map=local).getOrCreate()
session.sparkContext.setLogLevel("ERROR")
rows = session.read.parquet({path!r})
"""
OURS = "SparkReducer(model=discrim.PCA(10), inputCols=rows.columns).fit(rows)"
THEIRS = """vectors = VectorAssembler(inputCols=rows.columns, outputCol="features").transform(rows)
    PCA(k=10, inputCol="features", outputCol="pca").fit(vectors)"""
FITTED = """
some = rows.limit(1000)
vectors = VectorAssembler(inputCols=rows.columns, outputCol="features")
ours = SparkReducer(model=discrim.PCA(10), inputCols=rows.columns).fit(some)
theirs = PCA(k=10, inputCol="features", outputCol="pca").fit(vectors.transform(some))
"""
TRANSFORMS = [
    f'{reduced}.write.format("noop").mode("overwrite").save()'
    for reduced in ("ours.transform(rows)", "theirs.transform(vectors.transform(rows))")
]


def seconds(prepare: str, fit: str = "PCA(n_components=10).fit(rows)", few: str = "rows[:1000]") -> float:
    """Return the CPU seconds of a fit in its own process, child processes included."""
    code = TIMED.format(prepare=prepare, fit=fit, few=few)
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False, env=os.environ)
    if run.returncode:
        raise RuntimeError(f"{run.stderr[-3000:]}\nof\n{code}")
    return float(run.stdout.split("CPU seconds")[1])


def dask(n: int = 2_000_000, d: int = 100) -> Iterator[Row]:
    with tempfile.TemporaryDirectory() as folder:
        path = str(Path(folder) / "X.npy")
        rows = np.lib.format.open_memmap(path, mode="w+", dtype=np.float64, shape=(n, d))
        for start in range(0, n, PART):
            rows[start : start + PART] = table(PART, d, seed=start)
        turns = [
            (seconds(ONE.format(path=path)), seconds(DASK.format(module="discrim", path=path, part=PART)))
            for _ in range(3)
        ]
        one, ours = np.median(turns, axis=0)
        theirs = seconds(DASK.format(module="dask_ml.decomposition", path=path, part=PART))
    for name, other, goal, peer in (("in one process", one, 1.15, ""), ("dask-ml's PCA", theirs, 1 / 15, "dask-ml")):
        work = f"PCA(10) {n:,}×{d}, two workers / {name}"
        times = {"ratio": ours / other, "seconds": ours, "theirs": other}
        yield {"row": "dask", "work": work, "goal": goal, "peer": peer, **times}


def spark(n: int = 500_000, d: int = 100) -> Iterator[Row]:
    import pyarrow as pa
    from pyarrow import parquet

    with tempfile.TemporaryDirectory() as folder:
        path, X = str(Path(folder) / "X.parquet"), table(n, d)
        parquet.write_table(pa.table({f"x{i}": X[:, i] for i in range(d)}), path, row_group_size=PART)
        del X
        start = SPARK.format(path=path)
        for what, prepare, sides, goal in (
            ("fit", start, (OURS, THEIRS), 0.4),
            ("transform", start + FITTED, TRANSFORMS, 1.0),
        ):
            turns = [[seconds(prepare, side, "rows") for side in sides] for _ in range(2)]
            ours, theirs = np.median(turns, axis=0)
            work = f"PCA(10) {n:,}×{d}, {what} on local[2] / Spark ML's PCA"
            times = {"ratio": ours / theirs, "seconds": ours, "theirs": theirs}
            yield {"row": "spark", "work": work, "goal": goal, "peer": "pyspark", **times}


def cases(wanted: set[str]) -> Iterator[Row]:
    if (not wanted or "dask" in wanted) and importlib.util.find_spec("dask_ml"):
        yield from dask()
    if (not wanted or "spark" in wanted) and importlib.util.find_spec("pyspark") and shutil.which("java"):
        yield from spark()
