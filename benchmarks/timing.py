"""Interleaved timing of two sides: CPU of one thread, and wall time with default threads, idle and with a busy core."""

from __future__ import annotations

import contextlib
import gc
import subprocess
import sys
import time
import tracemalloc
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from threadpoolctl import ThreadpoolController

Row = dict[str, Any]
Work = Callable[[], Any]
SECONDS, LEAST, MOST = 1.2, 3, 15  # time per setting, minimum and maximum number of turns
PATIENCE = 8.0  # seconds after which fewer turns are enough
QUIET = 0.04  # seconds between two sides, in which idle BLAS threads of the first end their busy waiting
BUSY = "while True: pass"


@dataclass(frozen=True)
class Case:
    """Work to be timed in turns with other work, and the goal of their ratio.

    row : name that selects it on the command line
    goal, wall_goal : goals of the CPU time of one thread and of the wall time
    peer : package of the other side; threads : False if the work does not use our threads
    """

    row: str
    work: str
    ours: Work
    theirs: Work
    goal: float | None = None
    peer: str = ""
    wall_goal: float | None = None
    threads: bool = True


def measure(case: Case) -> Row:
    """Return the ratios of a case in every setting."""
    ours, theirs = case.ours, case.theirs
    (_, ours_cpu), (_, theirs_cpu) = in_turns((ours, 1), (theirs, 1))
    row = {"row": case.row, "work": case.work, "goal": case.goal, "peer": case.peer, "wall_goal": case.wall_goal}
    row |= {"ratio": ours_cpu / theirs_cpu, "seconds": ours_cpu, "theirs": theirs_cpu}
    if not case.threads:
        return row
    for setting, machine in (("idle", contextlib.nullcontext()), ("busy", busy_core())):
        with machine:
            mine, other, limited = in_turns((ours, None), (theirs, None), (ours, 1))
        row[setting] = {"ratio": mine[0] / other[0], "seconds": mine[0], "theirs": other[0]}
        row[setting] |= {"wall of one thread": mine[0] / limited[0], "CPU of one thread": mine[1] / limited[1]}
    return row


def in_turns(*sides: tuple[Work, int | None]) -> list[tuple[float, float]]:
    """Time the sides in turns, each with its thread limit (None: default); return median wall and CPU seconds."""
    controller = ThreadpoolController()
    quiet = 0.0 if all(limit == 1 for _, limit in sides) else QUIET
    taken: list[list[tuple[float, float]]] = [[] for _ in sides]
    start, n_turns, spent = None, 0, 0.0
    while not n_turns or spent < (PATIENCE if n_turns < LEAST else SECONDS if n_turns < MOST else 0.0):
        for (side, limit), of_side in zip(sides, taken, strict=True):
            with controller.limit(limits=limit):
                gc.collect()
                time.sleep(quiet)
                wall, cpu = time.perf_counter(), time.process_time()
                side()
                of_side.append((time.perf_counter() - wall, time.process_time() - cpu))
        if start is None:  # the first turn warms up
            start, taken = time.perf_counter(), [[] for _ in sides]
        n_turns, spent = len(taken[0]), time.perf_counter() - start
    return [tuple(np.median(of_side, axis=0).tolist()) for of_side in taken]


@contextlib.contextmanager
def busy_core() -> Iterator[None]:
    """Keep one core busy with another process."""
    other = subprocess.Popen([sys.executable, "-c", BUSY])
    try:
        yield
    finally:
        other.kill()
        other.wait()


def cpu_seconds(work: Work) -> float:
    """Return the CPU time of one call."""
    gc.collect()
    start = time.process_time()
    work()
    return time.process_time() - start


def peak_memory(work: Work) -> int:
    """Return the peak of bytes allocated during one call."""
    tracemalloc.start()
    work()
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return peak


def write_between(page: Path, start: str, end: str, text: str) -> None:
    """Write text between two markers of a page."""
    before, _, rest = page.read_text(encoding="utf-8").partition(start)
    page.write_text(before + start + text + end + rest.partition(end)[2], encoding="utf-8")
