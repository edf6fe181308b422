"""Runs: the missing trials of a grid in several processes; a store keeps every result at once, one run at a time.

Each worker uses one thread, so that workers do not compete for cores and numbers do not depend on their count. If a
worker is killed (out of memory, for example), the tasks under way are repeated one at a time; a task that kills its
worker again is given up.
"""

from __future__ import annotations

import errno
import logging
import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures.process import BrokenProcessPool
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from functools import partial
from pathlib import Path
from tempfile import gettempdir
from typing import Any, TypeVar

from filelock import FileLock, Timeout
from joblib import Parallel, cpu_count, delayed, parallel_config
from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]

from discrim.evaluation.plan import Grid
from discrim.evaluation.protocol import Split
from discrim.evaluation.results import Result, trial_key
from discrim.evaluation.store import Store
from discrim.evaluation.trial import TrialRows, Work, evaluate

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
        return [trial for trial in grid.trials if frozenset(trial.items()) not in self._rows]

    def rows_of(self, grid: Grid) -> list[Result]:
        """Return the results of the grid in the order of a store."""
        keys = map(frozenset, map(dict.items, grid.trials))
        found = [self._rows[key] for key in keys if key in self._rows]
        return sorted(found, key=lambda row: (row.cell.classifier, row.cell.k, row.cell.method, row.split))


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
        for work, answer in in_parallel(job, list(grid.work(wanted)), jobs):
            results, fitted = (work.failed(answer), {}) if isinstance(answer, WorkerLostError) else answer
            for result in results:
                store.put(result)
            if models is not None and fitted:
                models[work.method.name] = fitted
            finished += len(work.wanted)
            progress(finished, total)
    return store.rows_of(grid)


def right_to_run(store: Store | Memory, wait: float) -> AbstractContextManager[Any]:
    """Return the lock of the store; results in memory need none."""
    return nullcontext() if isinstance(store, Memory) else run_lock(store.path, wait=wait)


def lock_of(store_path: str | os.PathLike[str]) -> Path:
    """Return the lock file of a store; links to one store share it."""
    return Path(os.path.realpath(store_path) + ".lock")


def run_lock(store_path: str | os.PathLike[str], *, wait: float = 0.0) -> AbstractContextManager[Any]:
    """Hold the lock of the store; the operating system releases it with the process, also after kill −9.

    wait : seconds to wait for another run before raising an error
    """
    try:
        return FileLock(lock_of(store_path), timeout=max(wait, 0.0)).acquire()
    except Timeout:
        raise StoreInUseError(
            f"{Path(store_path)} must not be in use; another run works on it. Wait for it, or name another store."
        ) from None


@contextmanager
def resumable(path: str | os.PathLike[str] | None) -> Iterator[None]:
    """Add a note on how to continue to the exception of a stopped run."""
    try:
        yield
    except BaseException as stop:
        if path is not None and not isinstance(stop, Exception):
            stop.add_note(f"All finished trials are kept in {path}: the same command continues from there.")
        raise


def opened_store(path: str | os.PathLike[str] | None) -> AbstractContextManager[Store | Memory]:
    """Open the store at `path`; for None keep results in memory."""
    return nullcontext(Memory()) if path is None else Store(path)


def _results_of(rows: TrialRows, splits: list[Split], work: Work) -> tuple[list[Result], dict[int, Any]]:
    try:
        return evaluate(work, rows, splits[work.split])
    except Exception as error:  # before a method was fitted, such as in scaling
        return work.failed(error), {}


Task = TypeVar("Task")
_PARENT_CHECKS = 1.0  # seconds between checks that the main process is alive


class WorkerLostError(RuntimeError):
    """Error: the process of this task ended without a result, twice."""


def in_parallel(
    job: Callable[[Task], Any], tasks: Sequence[Task], jobs: int | None
) -> Iterator[tuple[Task, Any | WorkerLostError]]:
    """Return pairs of a task and job(task), in the order in which they are finished.

    jobs : number of processes; None or -1 for one per core
    """
    if jobs is None or jobs == -1:
        jobs = int(cpu_count())
    if jobs < 1:
        raise ValueError(f"jobs must be at least 1, or -1 for one per core; got {jobs}.")
    if jobs == 1 or len(tasks) == 1:
        announce_compiling(os.getpid())
        with threadpool_limits(1):
            yield from ((task, job(task)) for task in tasks)
        _printed_by(os.getpid()).unlink(missing_ok=True)
        return
    left = list(range(len(tasks)))
    while left:
        given: list[int] = []
        try:
            for at, result in _in_processes(job, tasks, left, given, jobs):
                left.remove(at)
                yield tasks[at], result
        except BrokenProcessPool:
            suspects = [at for at in given if at in set(left)]
            for at in suspects:
                left.remove(at)
                yield tasks[at], _alone(job, tasks[at])
    _printed_by(os.getpid()).unlink(missing_ok=True)


def _in_processes(
    job: Callable[[Task], Any], tasks: Sequence[Task], left: list[int], given: list[int], jobs: int
) -> Iterator[tuple[int, Any]]:
    """Return results by number; `given` gets the numbers of the tasks that were passed to workers."""

    def calls() -> Iterator[Any]:
        for at in tuple(left):
            given.append(at)
            yield delayed(_in_worker)(os.getpid(), job, at, tasks[at])

    with parallel_config(backend="loky", inner_max_num_threads=1):
        try:
            yield from Parallel(n_jobs=jobs, return_as="generator_unordered")(calls())
        except OSError as error:
            raise _naming_shared_folder(error) from error


def _naming_shared_folder(error: OSError) -> OSError:
    """Name the folder in which processes share the rows, if its disk is full; joblib does not."""
    if error.errno not in (errno.ENOSPC, errno.EFBIG):
        return error
    folder = os.environ.get("JOBLIB_TEMP_FOLDER") or ("/dev/shm" if os.path.isdir("/dev/shm") else gettempdir())
    message = (
        "no space is left in this folder, in which several processes share the rows. Name another in the environment "
        "variable JOBLIB_TEMP_FOLDER, or use one process (jobs = 1)"
    )
    return OSError(error.errno, message, folder)


def _alone(job: Callable[[Task], Any], task: Task) -> Any | WorkerLostError:
    try:
        # two workers, one of them idle: with one the task would be done in this process
        ((_, result),) = _in_processes(job, [task], [0], [], 2)
    except BrokenProcessPool:
        return WorkerLostError("the process was killed, perhaps because memory was short")
    return result


class _PrintsOnce(logging.Handler):
    """Log handler that prints once per run, from whichever process, that code is being compiled.

    run : process number of the run
    """

    def __init__(self, run: int) -> None:
        super().__init__(logging.INFO)
        self.run = run

    def emit(self, record: logging.LogRecord) -> None:
        with suppress(OSError):  # the file exists if it was printed
            os.close(os.open(_printed_by(self.run), os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
            print("Compiling code; the next run reads it from a cache.", file=sys.stderr, flush=True)


def announce_compiling(run: int) -> None:
    """Print what `discrim.core.svm.compiled` logs in this process."""
    log = logging.getLogger("discrim")
    if not any(isinstance(one, _PrintsOnce) for one in log.handlers):
        log.addHandler(_PrintsOnce(run))
        log.setLevel(min(log.getEffectiveLevel(), logging.INFO))


def _printed_by(run: int) -> Path:
    return Path(gettempdir()) / f"discrim-compiling-{run}"


def _in_worker(parent: int, job: Callable[[Task], Any], at: int, task: Task) -> tuple[int, Any]:
    _follow_parent(parent)
    announce_compiling(parent)
    return at, job(task)


def _follow_parent(parent: int) -> None:
    """Ignore Ctrl-C, which the main process handles, and end this process when the main process has ended."""
    if os.getpid() == parent:  # no worker: joblib starts none inside another pool's process, say
        return
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    if any(thread.name == "discrim-parent" for thread in threading.enumerate()):
        return

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(_PARENT_CHECKS)
        os._exit(1)

    threading.Thread(target=watch, name="discrim-parent", daemon=True).start()
