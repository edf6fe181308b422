"""Run the trials of a grid that are missing; keep every result at once where a store is named, one run at a time."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from functools import partial
from pathlib import Path
from typing import Any

from filelock import FileLock, Timeout

from discrim.evaluation.grid import Grid
from discrim.evaluation.protocol import Split
from discrim.evaluation.results import Result
from discrim.evaluation.store import Store
from discrim.evaluation.trial import TrialRows, Work, evaluate
from discrim.evaluation.workers import WorkerLostError, in_parallel, number_of_jobs

Progress = Callable[[int, int], None]  # trials done, trials in all


class StoreInUseError(RuntimeError):
    """Another run works on this store."""


class Memory:
    """Results by trial, where no store is named."""

    def __init__(self) -> None:
        self._rows: dict[frozenset[tuple[str, Any]], Result] = {}

    def put(self, result: Result) -> None:
        self._rows[frozenset(result.trial.items())] = result

    def missing(self, grid: Grid, *, retry_failed: bool = False) -> list[dict[str, Any]]:
        """The trials of the grid without a result."""
        return [trial for trial in grid.trials if self._found(trial) is None]

    def rows_of(self, grid: Grid) -> list[Result]:
        """The results of the grid, in the order that a store has."""
        found = [row for trial in grid.trials if (row := self._found(trial)) is not None]
        return sorted(found, key=lambda row: (row.cell.classifier, row.cell.k, row.cell.method, row.split))

    def _found(self, trial: dict[str, Any]) -> Result | None:
        return self._rows.get(frozenset(trial.items()))


def run(
    grid: Grid,
    store: Store | Memory,
    *,
    jobs: int | None = None,
    progress: Progress | None = None,
    retry_failed: bool = False,
    wait: float | None = 0.0,
    n_splits: int | None = None,
) -> list[Result]:
    """Return the grid's rows, after doing those that the store does not have.

    jobs : processes; None for one per core
    progress : called with the number of trials done and of all trials
    retry_failed : do trials again that failed before
    wait : seconds to wait for another run on the same store to end; None where the caller has the right to run
    n_splits : do the first splits only; None for all
    """
    progress = progress or (lambda done, total: None)
    with nullcontext() if wait is None else right_to_run(store, wait):
        if isinstance(store, Store):
            store.put_run(grid.setting.run_key, grid.facts)
        missing = store.missing(grid, retry_failed=retry_failed)
        wanted = [trial for trial in missing if n_splits is None or trial["split"] < n_splits]
        finished, total = len(grid.trials) - len(missing), len(grid.trials)
        progress(finished, total)
        job = partial(_results_of, grid.trial_rows, grid.splits)
        for work, answer in in_parallel(job, list(grid.work(wanted)), number_of_jobs(jobs)):
            for result in work.failed(answer) if isinstance(answer, WorkerLostError) else answer:
                store.put(result)
            finished += len(work.wanted)
            progress(finished, total)
    return store.rows_of(grid)


def right_to_run(store: Store | Memory, wait: float) -> AbstractContextManager[None]:
    """Return the lock of the store; results in memory need none."""
    return nullcontext() if isinstance(store, Memory) else run_lock(store.path, wait=wait)


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
def resumable(path: str | os.PathLike[str] | None) -> Iterator[None]:
    """Where a run is stopped, say in a note of the error how it goes on."""
    try:
        yield
    except BaseException as stop:
        if path is not None and not isinstance(stop, Exception):
            stop.add_note(f"All finished trials are kept in {path}: the same command goes on from there.")
        raise


@contextmanager
def opened_store(path: str | os.PathLike[str] | None) -> Iterator[Store | Memory]:
    """Open the store at `path`; for None results are kept in memory."""
    if path is None:
        yield Memory()
        return
    with Store(path) as kept:
        yield kept


def remove_store(path: str | os.PathLike[str]) -> None:
    """The store and the files beside it."""
    for ending in ("", "-wal", "-shm", ".lock"):
        with suppress(OSError):
            os.unlink(f"{os.fspath(path)}{ending}")


def _results_of(rows: TrialRows, splits: list[Split], work: Work) -> list[Result]:
    try:
        return evaluate(work, rows, splits[work.split])
    except Exception as error:  # before any method was reached
        return work.failed(error)
