"""Dask and Spark: total CPU of all processes for one PCA, beside one process and beside their own PCA.

Each side runs in a process of its own, whose CPU time is that of all its children and threads (Spark: of the Java
machine too).
"""

from __future__ import annotations

import importlib.util
import os
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from benchmarks.pca_family import table
from benchmarks.timing import Row

ROWS = ("dask", "spark")
ONE = """
import time, numpy as np
from discrim import PCA
X = np.load({path!r}, mmap_mode="r")
start = time.process_time()
PCA(10).fit(X)
print(time.process_time() - start)
"""
DASK = """
import time, dask, dask.array as da, numpy as np
from {module} import PCA
X = da.from_array(np.load({path!r}, mmap_mode="r"), chunks=(20_000, -1))
start = time.process_time()
with dask.config.set(scheduler="threads", num_workers=2):
    PCA(n_components=10).fit(X)
print(time.process_time() - start)
"""
SPARK = """
import os, sys
os.environ["PYSPARK_PYTHON"] = sys.executable
from pyspark.sql import SparkSession
local = {{"spark.ui.enabled": "false", "spark.driver.host": "127.0.0.1", "spark.driver.bindAddress": "127.0.0.1"}}
session = SparkSession.builder.master("local[2]").config(map=local).getOrCreate()
session.sparkContext.setLogLevel("ERROR")
rows = session.read.parquet({path!r})
{fit}
session.stop()
"""
OURS = """
from discrim import PCA
from discrim.spark import SparkReducer
SparkReducer(model=PCA(10), inputCols=rows.columns).fit(rows)
"""
THEIRS = """
from pyspark.ml.feature import PCA, VectorAssembler
vectors = VectorAssembler(inputCols=rows.columns, outputCol="features").transform(rows)
PCA(k=10, inputCol="features", outputCol="pca").fit(vectors)
"""


def printed_seconds(code: str) -> float:
    """What a process of its own prints: CPU seconds of all its threads, median of three."""
    runs = [subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True) for _ in range(3)]
    return statistics.median(float(run.stdout) for run in runs)


def children_seconds(code: str) -> float:
    """CPU seconds of a process that runs this, and of all it starts."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, env=os.environ)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return (after.ru_utime + after.ru_stime) - (before.ru_utime + before.ru_stime)


def dask(n: int = 500_000, d: int = 100) -> Iterator[Row]:
    with tempfile.TemporaryDirectory() as folder:
        path = str(Path(folder) / "X.npy")
        np.save(path, np.tile(table(20_000, d), (n // 20_000, 1)))
        codes = (
            ONE.format(path=path),
            DASK.format(module="discrim", path=path),
            DASK.format(module="dask_ml.decomposition", path=path),
        )
        one, ours, theirs = (printed_seconds(code) for code in codes)
    for name, other, goal, peer in (("in one process", one, 1.3, ""), ("dask-ml's PCA", theirs, 1 / 15, "dask-ml")):
        work = f"PCA(10) {n:,}×{d}, two workers / {name}"
        times = {"ratio": ours / other, "seconds": ours, "theirs": other}
        yield {"row": "dask", "work": work, "goal": goal, "peer": peer, **times}


def spark(n: int = 200_000, d: int = 100) -> Iterator[Row]:
    import pyarrow as pa
    from pyarrow import parquet

    with tempfile.TemporaryDirectory() as folder:
        path = str(Path(folder) / "X.parquet")
        X = table(n, d)
        parquet.write_table(pa.table({f"x{i}": X[:, i] for i in range(d)}), path, row_group_size=20_000)
        empty, ours, theirs = (
            children_seconds(SPARK.format(path=path, fit=fit)) for fit in ("rows.count()", OURS, THEIRS)
        )
    mine, others = max(ours - empty, 1e-3), max(theirs - empty, 1e-3)
    yield {
        "row": "spark",
        "work": f"PCA(10) {n:,}×{d}, local[2], beyond the session / Spark ML's PCA",
        "goal": 0.4,
        "ratio": mine / others,
        "seconds": mine,
        "theirs": others,
        "peer": "pyspark",
    }


def measure(wanted: set[str] | None = None) -> Iterator[Row]:
    if (not wanted or "dask" in wanted) and importlib.util.find_spec("dask_ml"):
        yield from dask()
    if (not wanted or "spark" in wanted) and importlib.util.find_spec("pyspark") and shutil.which("java"):
        yield from spark()
