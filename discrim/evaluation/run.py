"""Run the missing trials of a grid; with a store, keep every result at once, and allow one run at a time."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from functools import partial
from pathlib import Path
from typing import Any

from filelock import FileLock, Timeout

from discrim.evaluation.plan import Grid
from discrim.evaluation.protocol import Split
from discrim.evaluation.results import Result, trial_key
from discrim.evaluation.store import Store
from discrim.evaluation.trial import TrialRows, Work, evaluate
from discrim.evaluation.workers import WorkerLostError, in_parallel, number_of_jobs

Progress = Callable[[int, int], None]  # trials done, trials in all


class StoreInUseError(RuntimeError):
    """Error: another run works on this store."""


class Memory:
    """Results by trial in memory, if no store is named."""

    def __init__(self) -> None:
        self._rows: dict[frozenset[tuple[str, Any]], Result] = {}

    def put(self, result: Result) -> None:
        self._rows[frozenset(result.trial.items())] = result

    def missing(self, grid: Grid, *, retry_failed: bool = False) -> list[dict[str, Any]]:
        """Return the trials of the grid without a result."""
        return [trial for trial in grid.trials if self._found(trial) is None]

    def rows_of(self, grid: Grid) -> list[Result]:
        """Return the results of the grid in the order of a store."""
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
    models: dict[str, dict[int, Any]] | None = None,
) -> list[Result]:
    """Return the results of the grid after running the trials that the store lacks.

    jobs : number of processes; None for one per core
    progress : called with the number of finished trials and of all trials
    retry_failed : run failed trials again
    wait : seconds to wait for another run on the same store; None if the caller holds the lock
    n_splits : run the first splits only; None for all
    models : gets the models that were fitted on the first split, by method and K
    """
    progress = progress or (lambda done, total: None)
    with nullcontext() if wait is None else right_to_run(store, wait):
        if isinstance(store, Store):
            store.put_run(trial_key(grid.setting), grid.facts)
        missing = store.missing(grid, retry_failed=retry_failed)
        wanted = [trial for trial in missing if n_splits is None or trial["split"] < n_splits]
        finished, total = len(grid.trials) - len(missing), len(grid.trials)
        progress(finished, total)
        job = partial(_results_of, grid.trial_rows, grid.splits)
        for work, answer in in_parallel(job, list(grid.work(wanted)), number_of_jobs(jobs)):
            results, fitted = (work.failed(answer), {}) if isinstance(answer, WorkerLostError) else answer
            for result in results:
                store.put(result)
            if models is not None and fitted:
                models[work.method.name] = fitted
            finished += len(work.wanted)
            progress(finished, total)
    return store.rows_of(grid)


def right_to_run(store: Store | Memory, wait: float) -> AbstractContextManager[None]:
    """Return the lock of the store; results in memory need none."""
    return nullcontext() if isinstance(store, Memory) else run_lock(store.path, wait=wait)


def lock_of(store_path: str | os.PathLike[str]) -> Path:
    """Return the lock file of a store; links to one store share it."""
    return Path(os.path.realpath(store_path) + ".lock")


@contextmanager
def run_lock(store_path: str | os.PathLike[str], *, wait: float = 0.0) -> Iterator[None]:
    """Hold the lock of the store; the operating system releases it with the process, also after kill −9.

    wait : seconds to wait for another run before raising an error
    """
    lock = FileLock(lock_of(store_path), timeout=max(wait, 0.0))
    try:
        lock.acquire()
    except Timeout:
        raise StoreInUseError(
            f"{Path(store_path)} must not be in use; another run works on it. Wait for it, or name another store."
        ) from None
    try:
        yield
    finally:
        lock.release()


@contextmanager
def resumable(path: str | os.PathLike[str] | None) -> Iterator[None]:
    """Add a note on how to continue to the exception of a stopped run."""
    try:
        yield
    except BaseException as stop:
        if path is not None and not isinstance(stop, Exception):
            stop.add_note(f"All finished trials are kept in {path}: the same command continues from there.")
        raise


@contextmanager
def opened_store(path: str | os.PathLike[str] | None) -> Iterator[Store | Memory]:
    """Open the store at `path`; for None keep results in memory."""
    if path is None:
        yield Memory()
        return
    with Store(path) as kept:
        yield kept


def _results_of(rows: TrialRows, splits: list[Split], work: Work) -> tuple[list[Result], dict[int, Any]]:
    try:
        return evaluate(work, rows, splits[work.split])
    except Exception as error:  # before a method was fitted, such as in scaling
        return work.failed(error), {}
