"""Tables beyond memory: a Parquet folder projected, rows in generated parts, and what a cluster would have to do.

`python -m benchmarks.beyond_memory docs/scale.md` writes what was measured into the page, between its marks. Each side
runs in a process of its own: CPU seconds are those of all its threads, memory is its peak resident set.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from benchmarks.timing import Row, cpu_seconds, write_between

ROWS = ("files", "parts")
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
        raise RuntimeError(f"It ended with {started.returncode}:\n{code}")
    return used.ru_utime + used.ru_stime, used.ru_maxrss / (2**20 if sys.platform == "darwin" else 2**10)


def write_folder(folder: Path, n_files: int) -> float:
    """Files of random numbers in five classes; how many MiB they are."""
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
    """A quarter of the files and all: MiB, seconds of reading alone and of fitting and writing, and peak MiB."""
    found = []
    for n_files in (N_FILES // 4, N_FILES):
        place = Path(tempfile.mkdtemp(prefix="discrim-"))
        try:
            folder, model, out = (str(place / name) for name in ("table", "m.discrim", "features"))
            size = write_folder(Path(folder), n_files)
            nothing = cost("import pyarrow.dataset")[0], cost("import discrim.cli.projecting")[0]
            reads = [cost(READ.format(folder=folder))[0] for _ in range(3)]  # what the kernel's share of it is scatters
            project, peak = cost(PROJECT.format(folder=folder, model=model, out=out))
            read = float(np.median([*reads, *(cost(READ.format(folder=folder))[0] for _ in range(2))]))
        finally:
            shutil.rmtree(place)
        found.append({"MiB": size, "read": read - nothing[0], "project": project - nothing[1], "peak": peak})
    return found


def parts() -> list[dict[str, float]]:
    """The default, its ridge by cross-validation, on ever more generated parts of 50,000×20."""
    empty = cost("from discrim import BayesErrorLDA, fit_parts")[0]
    found = []
    for n_parts in (20, 200, 2000):
        seconds, peak = cost(PARTS.format(n_parts=n_parts))
        found.append({"rows": n_parts * PART, "seconds": seconds - empty, "peak": peak})
    return found


def slope(points: list[dict[str, float]]) -> float:
    """Of seconds over rows, on doubly logarithmic axes, beyond what is spent once."""
    (a, one), (b, other) = ((point["rows"], point["seconds"]) for point in (points[0], points[-1]))
    return float(np.log(other / one) / np.log(b / a))


def per_worker() -> dict[str, float]:
    """What a worker of a cluster does for rows of 1,000 columns: seconds a row, bytes it sends, seconds an addition."""
    from discrim import BayesErrorLDA

    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((20_000, 1_000)), np.arange(20_000) % 10
    model = BayesErrorLDA()
    one = model.statistics(X, y)
    gathering = cpu_seconds(lambda: model.statistics(X, y))
    sent, other = one.to_bytes(), model.statistics(X + 1, y)  # both with as many sampled rows as there are ever
    adding = cpu_seconds(lambda: type(one).from_bytes(sent) + other)
    total = one + other

    def fit() -> None:
        _ = model.fit_statistics(total).components_

    solving = cpu_seconds(fit)
    return {"row": gathering / 20_000, "MiB": len(sent) / 2**20, "add": adding, "fit": solving}


def cases(_: set[str]) -> Iterator[Row]:
    for found in files():
        work = f"project a Parquet folder of {found['MiB']:.0f} MiB / pyarrow reading it twice"
        ratio = found["project"] / (2 * found["read"])
        yield {"row": "files", "work": work, "goal": 2.0, "ratio": ratio}
        yield {"row": "files", "work": "its peak MiB", "goal": 1024.0, "ratio": found["peak"]}
    yield {"row": "parts", "work": "slope of seconds over rows, 10⁶ to 10⁸", "goal": 1.05, "ratio": slope(parts())}


def written() -> str:
    """What was measured, as a part of the page."""
    folders, grown, worker = files(), parts(), per_worker()
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
        "| rows × 20 in generated parts | CPU | peak memory |",
        "|---|---|---|",
        *(f"| {int(p['rows']):,} | {p['seconds']:.1f} s | {p['peak']:.0f} MiB |" for p in grown),
        "",
        f"CPU time grows with the number of rows at a log-log slope of {slope(grown):.2f} from 10⁶ to 10⁸ rows.",
        "",
        *cluster(worker),
    ]
    return "\n".join(lines) + "\n"


def cluster(worker: dict[str, float], n: float = 1e9, workers: int = 100) -> list[str]:
    """The cost model of 10⁹ rows × 1,000 columns, from what a worker was measured to take."""
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
        f"| network | {workers * sent / 1024:.1f} GiB in total, in {rounds} rounds of eight to one; no rows are sent |",
        f"| adding | {rounds * 8 * worker['add']:.0f} s |",
        f"| driver | up to 8 statistics: {8 * sent / 1024:.1f} GiB, and {worker['fit']:.0f} s for the fit |",
    ]


if __name__ == "__main__":
    write_between(Path(sys.argv[1]), START, END, written())
