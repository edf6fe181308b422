"""Do what is missing of a grid, and put every result into the store as it comes; one run at a time on one store."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from filelock import FileLock, Timeout
from numpy.typing import NDArray

from discrim.evaluation.grid import Grid, Work
from discrim.evaluation.protocol import Split
from discrim.evaluation.store import Store
from discrim.evaluation.trial import Row, evaluate, versions
from discrim.evaluation.workers import WorkerLostError, number_of_jobs, results

Progress = Callable[[int, int], None]  # trials done, trials in all


class StoreInUseError(RuntimeError):
    """Another run works on this store."""


def run(
    grid: Grid,
    store: Store,
    *,
    jobs: int | None = None,
    progress: Progress | None = None,
    retry_failed: bool = False,
    wait: float = 0.0,
) -> list[Row]:
    """The grid's rows, after doing those that the store does not have.

    jobs : processes; None for one per core
    progress : called with the number of trials done and of all trials
    retry_failed : do trials again that failed before
    wait : seconds to wait for another run on the same store to end
    """
    progress = progress or (lambda done, total: None)
    with run_lock(store.path, wait=wait):
        store.put_run(grid.run_key, grid.about)
        wanted = store.missing(grid.trials, retry_failed=retry_failed)
        finished, total = len(grid.trials) - len(wanted), len(grid.trials)
        progress(finished, total)
        codes = np.unique(grid.table.y, return_inverse=True)[1]  # classifiers compare numbers faster than text
        job = partial(_rows_of, grid.rows, codes, grid.sample_weight, grid.splits, grid.steps, grid.seed)
        for work, answer in results(job, list(grid.work(wanted)), number_of_jobs(jobs)):
            for row in _lost(work, answer) if isinstance(answer, WorkerLostError) else answer:
                store.put(row)
            finished += len(work.wanted)
            progress(finished, total)
    return rows_of(grid, store)


def rows_of(grid: Grid, store: Store) -> list[Row]:
    """What the store has of the grid."""
    return store.rows(grid.keys)


def lock_of(store_path: str | os.PathLike[str]) -> Path:
    """The file beside a store that a run on it holds; links to one store share it."""
    return Path(os.path.realpath(store_path) + ".lock")


@contextmanager
def run_lock(store_path: str | os.PathLike[str], *, wait: float = 0.0) -> Iterator[None]:
    """The right to run on the store; the operating system drops it with the process, also after kill −9.

    wait : seconds to wait for another run to end before refusing
    """
    lock = FileLock(lock_of(store_path), timeout=max(wait, 0.0))
    try:
        lock.acquire()
    except Timeout:
        raise StoreInUseError(
            f"Another run works on {Path(store_path)}. Wait for it to end, or name another store."
        ) from None
    try:
        yield
    finally:
        lock.release()


@contextmanager
def opened_store(path: str | os.PathLike[str] | None) -> Iterator[Store]:
    """The store at `path`; for None one in the folder for temporary files, gone when the block ends well."""
    if path is not None:
        with Store(path) as kept:
            yield kept
        return
    number, name = tempfile.mkstemp(prefix="discrim-", suffix=".sqlite")
    os.close(number)
    try:
        with Store(name) as kept:
            yield kept
    except BaseException as error:
        error.add_note(f"What was done is kept in {name}: go on with it as the store.")
        raise
    remove_store(name)


def remove_store(path: str | os.PathLike[str]) -> None:
    """The store and the files beside it."""
    for ending in ("", "-wal", "-shm", ".lock"):
        with suppress(OSError):
            os.unlink(f"{os.fspath(path)}{ending}")


def _rows_of(
    X: Any, y: NDArray[Any], weights: NDArray[Any] | None, splits: list[Split], steps: list[Any], seed: int, work: Work
) -> list[Row]:
    try:
        return evaluate(work, X, y, weights, splits[work.split], steps, seed)
    except Exception as error:  # before any method was reached, so it is the fate of all of them
        return _lost(work, error)


def _lost(work: Work, error: Exception) -> list[Row]:
    said = f"{type(error).__name__}: {' '.join(str(error).split())}"
    common = {"scores": {}, "seconds": 0.0, "status": "failed", "reason": said, "notes": [], "versions": versions()}
    return [{"trial": trial, **common} for trial in work.wanted]
