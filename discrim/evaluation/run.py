"""Do what is missing of a grid, and put every result into the store as it comes; one run at a time on one store."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext, suppress
from functools import partial
from pathlib import Path

from filelock import FileLock, Timeout

from discrim.evaluation.grid import Grid
from discrim.evaluation.protocol import Split
from discrim.evaluation.result import Result
from discrim.evaluation.store import Store
from discrim.evaluation.trial import TrialRows, Work, evaluate
from discrim.evaluation.workers import WorkerLostError, in_parallel, number_of_jobs
from discrim.tables.table_error import are, plural

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
) -> list[Result]:
    """The grid's rows, after doing those that the store does not have.

    jobs : processes; None for one per core
    progress : called with the number of trials done and of all trials
    retry_failed : do trials again that failed before
    wait : seconds to wait for another run on the same store to end
    """
    progress = progress or (lambda done, total: None)
    with run_lock(store.path, wait=wait):
        store.put_run(grid.setting.run_key, grid.facts)
        wanted = store.missing(grid.trials, retry_failed=retry_failed)
        finished, total = len(grid.trials) - len(wanted), len(grid.trials)
        progress(finished, total)
        job = partial(_results_of, grid.trial_rows, grid.splits)
        for work, answer in in_parallel(job, list(grid.work(wanted)), number_of_jobs(jobs)):
            for result in work.failed(answer) if isinstance(answer, WorkerLostError) else answer:
                store.put(result)
            finished += len(work.wanted)
            progress(finished, total)
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
def kept_results(path: str | os.PathLike[str] | None) -> Iterator[Path]:
    """Where results are kept: `path`, or for None a temporary file, which is gone when the block ends well.

    Where the block ends in an error or is stopped, a note of the error says where they are.
    """
    if path is not None:
        try:
            yield Path(path)
        except BaseException as stop:
            if not isinstance(stop, Exception):
                stop.add_note(f"All finished trials are kept in {path}: the same command goes on from there.")
            raise
        return
    number, name = tempfile.mkstemp(prefix="discrim-", suffix=".sqlite")
    os.close(number)
    try:
        yield Path(name)
    except BaseException as error:
        count = 0
        with suppress(Exception), Store(name, read_only=True) as kept:
            count = len(kept)
        if count:
            where = f"with store={name!r} the same command goes on from there"
            error.add_note(f"{plural(count, 'result')} {are(count)} kept in {name}: {where}.")
        else:
            remove_store(name)
        raise
    remove_store(name)


@contextmanager
def opened_store(path: str | os.PathLike[str] | None) -> Iterator[Store]:
    """The store at `path`; for None a temporary one."""
    with kept_results(None) if path is None else nullcontext(path) as place, Store(place) as kept:
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
