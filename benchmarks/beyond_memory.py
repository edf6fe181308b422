"""Tables beyond memory: projecting a Parquet folder, fitting generated parts, and the estimated cost on a cluster.

`python -m benchmarks.beyond_memory docs/scale.md` writes the results between the markers of the page. Each side runs in
its own process: CPU seconds are those of all its threads, memory is its peak resident set. The estimate is compared
with runs on a few worker processes.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
import time
import tracemalloc
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.timing import Row, cpu_seconds, write_between

ROWS = ("files", "parts", "cluster")
N_FILES, FILE_ROWS, COLUMNS = 52, 125_000, 100  # 5 GB
PART = 50_000
READ = """
import pyarrow.dataset as ds
for batch in ds.dataset({folder!r}).to_batches(batch_size=2**16):
    pass
"""
PROJECT = """
from discrim.cli import application
application()(["project", {folder!r}, "--target", "y", "--model", {model!r}, "--out", {out!r}], standalone_mode=False)
"""
TIMED = """
import time
{prepare}
start = time.perf_counter()
{work}
print(time.perf_counter() - start)
"""
FIT = (
    """
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from discrim import BayesErrorLDA, fit_parts
import discrim.tables.source""",
    'fit_parts(make_pipeline(StandardScaler(), BayesErrorLDA()), {folder!r}, target="y")',
)
POLARS = (
    """
import glob
import numpy as np
import polars
total = 0.0""",
    """for file in sorted(glob.glob({folder!r} + "/*.parquet")):
    X = polars.read_parquet(file).drop("y").to_numpy()
    total = total + X.T @ X""",
)
PARTS = """
import numpy as np
from discrim import BayesErrorLDA, fit_parts
rng = np.random.default_rng(0)
X, y = rng.standard_normal((50_000, 20)), np.arange(50_000) % 5
X[:, :5] += 2 * np.eye(5)[y]
fit_parts(BayesErrorLDA(), ((X + number, y) for number in range({n_parts})))
"""
START, END = "<!-- measured: python -m benchmarks.beyond_memory docs/scale.md -->\n", "<!-- end -->\n"


def cost(code: str, **environment: str) -> tuple[float, float]:
    """Return the CPU seconds of a process that runs this, and its peak memory in MiB."""
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL, "env": {**os.environ, **environment}}
    started = subprocess.Popen([sys.executable, "-c", code], **quiet)
    _, status, used = os.wait4(started.pid, 0)
    started.returncode = os.waitstatus_to_exitcode(status)
    if started.returncode:
        raise RuntimeError(f"The process exited with {started.returncode}:\n{code}")
    return used.ru_utime + used.ru_stime, used.ru_maxrss / (2**20 if sys.platform == "darwin" else 2**10)


def write_folder(folder: Path, n_files: int) -> float:
    """Write files of random numbers in five classes; return their size in MiB."""
    import pyarrow as pa
    from pyarrow import parquet

    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((FILE_ROWS, COLUMNS)), rng.integers(5, size=FILE_ROWS)
    X[:, :5] += 2 * np.eye(5)[y]
    folder.mkdir()
    for number in range(n_files):
        columns = {f"x{i}": X[:, i] + number for i in range(COLUMNS)} | {"y": np.array(list("abcde"))[y]}
        parquet.write_table(pa.table(columns), folder / f"{number:03}.parquet", use_dictionary=["y"])
    return sum(file.stat().st_size for file in folder.iterdir()) / 2**20


def files() -> list[dict[str, float]]:
    """Return size, seconds of reading, seconds of fitting and writing, and peak MiB for a quarter and for all files."""
    found = []
    for n_files in (N_FILES // 4, N_FILES):
        place = Path(tempfile.mkdtemp(prefix="discrim-"))
        try:
            folder, model, out = (str(place / name) for name in ("table", "m.discrim", "features"))
            size = write_folder(Path(folder), n_files)
            nothing = cost("import pyarrow.dataset")[0], cost("import discrim.cli.projecting")[0]
            reads = [cost(READ.format(folder=folder))[0] for _ in range(3)]  # the kernel's share varies
            project, peak = cost(PROJECT.format(folder=folder, model=model, out=out))
            read = float(np.median([*reads, *(cost(READ.format(folder=folder))[0] for _ in range(2))]))
        finally:
            shutil.rmtree(place)
        found.append({"MiB": size, "read": read - nothing[0], "project": project - nothing[1], "peak": peak})
    return found


def wall(side: tuple[str, str], folder: str) -> float:
    """Return the wall time, in a process of its own with default threads, after imports."""
    code = TIMED.format(prepare=side[0], work=side[1].format(folder=folder))
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return float(run.stdout)


def fit_and_polars(n_files: int = N_FILES // 2) -> tuple[float, float, float]:
    """Return MiB, and seconds of wall time: a fit, and XᵀX of the rows as polars reads them; medians of five turns."""
    place = Path(tempfile.mkdtemp(prefix="discrim-"))
    try:
        folder = place / "table"
        size = write_folder(folder, n_files)
        turns = [(wall(FIT, str(folder)), wall(POLARS, str(folder))) for _ in range(5)]
    finally:
        shutil.rmtree(place)
    ours, theirs = np.median(turns, axis=0)
    return size, float(ours), float(theirs)


def parts() -> list[dict[str, float]]:
    """Return seconds and peak MiB of the default method on 20 to 2,000 generated parts of 50,000×20."""
    empty = cost("from discrim import BayesErrorLDA, fit_parts")[0]
    found = []
    for n_parts in (20, 200, 2000):
        seconds, peak = cost(PARTS.format(n_parts=n_parts))
        found.append({"rows": n_parts * PART, "seconds": seconds - empty, "peak": peak})
    return found


def slope(points: list[dict[str, float]]) -> float:
    """Return the log-log slope of seconds over rows."""
    (a, one), (b, other) = ((point["rows"], point["seconds"]) for point in (points[0], points[-1]))
    return float(np.log(other / one) / np.log(b / a))


def wide_block(rows: int) -> tuple[np.ndarray, np.ndarray]:
    """Return random numbers in 1,000 columns and ten classes."""
    return np.random.default_rng(0).standard_normal((rows, 1_000)), np.arange(rows) % 10


def per_worker() -> dict[str, float]:
    """Return a worker's cost for 1,000 columns: seconds per row, MiB sent, seconds per addition and per fit."""
    from discrim import BayesErrorLDA

    X, y = wide_block(20_000)
    model = BayesErrorLDA()
    one = model.statistics(X, y)
    gathering = cpu_seconds(lambda: model.statistics(X, y))
    sent, other = one.to_bytes(), model.statistics(X + 1, y)  # both have the maximum number of sampled rows
    adding = cpu_seconds(lambda: type(one).from_bytes(sent) + other)
    total = one + other

    def fit() -> None:
        _ = model.fit_statistics(total).components_

    solving = cpu_seconds(fit)
    return {"row": gathering / 20_000, "MiB": len(sent) / 2**20, "add": adding, "fit": solving}


def gathered(number: int, n_rows: int) -> tuple[float, bytes]:
    """Return the CPU seconds that a worker takes to gather its rows, and what it sends."""
    from discrim import BayesErrorLDA
    from discrim.core.moments.gather import Gatherer

    X, y = wide_block(PART // 5)
    X += 1_000 * number
    gatherer, seconds = Gatherer(BayesErrorLDA()._gathering(), f"part {number}"), 0.0
    for _ in range(0, n_rows, len(X)):
        X += 1
        start = time.process_time()
        gatherer.add(X, y)
        seconds += time.process_time() - start
    start = time.process_time()
    sent = gatherer.statistics().to_bytes()
    return seconds + time.process_time() - start, sent


def confirmed(worker: dict[str, float]) -> list[dict[str, float | str]]:
    """Compare the estimate with runs on worker processes: CPU of a worker, MiB sent, CPU and MiB of the driver."""
    from discrim import BayesErrorLDA, Statistics

    found: list[dict[str, float | str]] = []
    for n, workers in ((100_000, 2), (400_000, 4)):
        with ProcessPoolExecutor(workers, mp_context=get_context("spawn")) as pool:
            results = list(pool.map(gathered, range(workers), [n // workers] * workers))
        sent = [content for _, content in results]
        start = time.process_time()
        total = Statistics.from_bytes(sent[0])
        for content in sent[1:]:
            total = total + Statistics.from_bytes(content)
        _ = BayesErrorLDA().fit_statistics(total).components_
        driver = time.process_time() - start
        del total
        tracemalloc.start()
        held = [Statistics.from_bytes(content) for content in sent]
        memory = tracemalloc.get_traced_memory()[0]
        tracemalloc.stop()
        del held
        for what, predicted, measured in (
            ("CPU seconds of a worker", n / workers * worker["row"], float(np.mean([cpu for cpu, _ in results]))),
            ("MiB sent", workers * worker["MiB"], sum(map(len, sent)) / 2**20),
            ("CPU seconds of the driver", (workers - 1) * worker["add"] + worker["fit"], driver),
            ("MiB of all statistics in the driver", workers * worker["MiB"], memory / 2**20),
        ):
            run = f"{n:,} rows on {workers} processes"
            found.append({"run": run, "what": what, "predicted": predicted, "measured": measured})
    return found


def worst(checks: list[dict[str, Any]]) -> float:
    """Return the largest factor between a prediction and its measurement."""
    ratios = [check["predicted"] / check["measured"] for check in checks]
    return max(max(ratio, 1 / ratio) for ratio in ratios)


def cases(wanted: set[str]) -> Iterator[Row]:
    for name, rows in (("files", _files), ("parts", _parts), ("cluster", _cluster)):
        if not wanted or name in wanted:
            yield from rows()


def _files() -> Iterator[Row]:
    for found in files():
        work = f"project a Parquet folder of {found['MiB']:.0f} MiB / pyarrow reading it twice"
        ratio = found["project"] / (2 * found["read"])
        yield {"row": "files", "work": work, "goal": 2.0, "ratio": ratio}
        yield {"row": "files", "work": "its peak MiB", "goal": 1024.0, "ratio": found["peak"]}
    size, ours, theirs = fit_and_polars()
    work = f"wall time, fit of a Parquet folder of {size:.0f} MiB behind a scaler / polars reads it, numpy computes XᵀX"
    times = {"ratio": ours / theirs, "seconds": ours, "theirs": theirs, "peer": "polars"}
    yield {"row": "files", "work": work, "goal": 1.5, **times}


def _parts() -> Iterator[Row]:
    yield {"row": "parts", "work": "slope of seconds over rows, 10⁶ to 10⁸", "goal": 1.05, "ratio": slope(parts())}


def _cluster() -> Iterator[Row]:
    work = "estimated cost of a cluster / measured on 2 and 4 processes, the largest factor"
    yield {"row": "cluster", "work": work, "goal": 1.5, "ratio": worst(confirmed(per_worker()))}


def written() -> str:
    """Return the section of the page."""
    folders, grown, worker = files(), parts(), per_worker()
    size, ours, theirs = fit_and_polars()
    lines = [
        "| Parquet folder | pyarrow reads it | `discrim project` fits and writes | peak memory |",
        "|---|---|---|---|",
    ]
    for f in folders:
        lines += [f"| {f['MiB']:,.0f} MiB | {f['read']:.1f} s | {f['project']:.1f} s | {f['peak']:.0f} MiB |"]
    times = folders[-1]["project"] / (2 * folders[-1]["read"])
    lines += [
        "",
        f"CPU seconds of all threads, without imports; {COLUMNS} columns, five classes, the default method with its "
        "ridge chosen by cross-validation. Every row is read twice, for the fit and for the features: this takes "
        f"{times:.1f} times as long as only reading the rows twice.",
        "",
        f"Wall time with default threads, {size:,.0f} MiB: the fit alone, behind a scaler, takes {ours:.1f} s. Reading "
        f"the files with polars and multiplying XᵀX with numpy takes {theirs:.1f} s (ratio {ours / theirs:.2f}).",
        "",
        "| rows × 20 in generated parts | CPU | peak memory |",
        "|---|---|---|",
        *(f"| {int(p['rows']):,} | {p['seconds']:.1f} s | {p['peak']:.0f} MiB |" for p in grown),
        "",
        f"CPU time grows with the number of rows at a log-log slope of {slope(grown):.2f} from 10⁶ to 10⁸ rows.",
        "",
        *cluster(worker),
        "",
        *comparison(confirmed(worker)),
    ]
    return "\n".join(lines) + "\n"


def cluster(worker: dict[str, float], n: float = 1e9, workers: int = 100) -> list[str]:
    """Return the estimated cost of 10⁹ rows × 1,000 columns, from the measured cost of a worker."""
    gather, sent = n / workers * worker["row"], worker["MiB"]
    rounds = int(np.ceil(np.log(workers) / np.log(8)))
    return [
        f"10⁹ rows × 1,000 columns on {workers} workers with one core each. The estimate is computed from "
        f"{1e6 * worker['row']:.0f} µs per row (20,000×1,000 in memory), statistics of {sent:.0f} MiB (five "
        "folds and the sample of rows), "
        f"{worker['add']:.2f} s to unpack and add one part, and {worker['fit']:.0f} s to fit the total:",
        "",
        "| resource | amount |",
        "|---|---|",
        f"| CPU of a worker | {gather / 3600:.1f} h (n·d² / workers), plus reading 10⁷ rows (80 GB) |",
        f"| network | {workers * sent / 1024:.1f} GiB in total, in {rounds} rounds of eight to one; "
        "of the rows, a sample is sent |",
        f"| adding | {rounds * 8 * worker['add']:.0f} s |",
        f"| driver | up to 8 statistics: {8 * sent / 1024:.1f} GiB, and {worker['fit']:.0f} s for the fit |",
    ]


def comparison(checks: list[dict[str, Any]]) -> list[str]:
    """Return the estimate next to the measurements."""
    return [
        f"The same estimate, compared with runs in several processes (the largest factor is {worst(checks):.2f}):",
        "",
        "| run | quantity | estimated | measured |",
        "|---|---|---:|---:|",
        *(f"| {one['run']} | {one['what']} | {one['predicted']:,.2f} | {one['measured']:,.2f} |" for one in checks),
    ]


if __name__ == "__main__":
    write_between(Path(sys.argv[1]), START, END, written())
