"""Parcels of work done by several processes at once, results as they come.

Each worker computes with one thread, so that two workers do not fight over two cores and the numbers do not depend on
how many there are. A worker that is killed (out of memory, say) takes with it whatever was under way; that is done
again, one parcel at a time, and only a parcel that kills its worker then too is given up.
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
from contextlib import suppress
from pathlib import Path
from tempfile import gettempdir
from typing import Any, TypeVar

from joblib import Parallel, cpu_count, delayed, parallel_config
from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]

Parcel = TypeVar("Parcel")
_PARENT_LOOKS = 1.0  # seconds between looks whether the main process is still there


class WorkerLostError(RuntimeError):
    """The process that did this parcel ended without an answer, twice."""


def number_of_jobs(jobs: int | None) -> int:
    """None or -1: as many as there are cores."""
    if jobs is None or jobs == -1:
        return int(cpu_count())
    if jobs < 1:
        raise ValueError(f"jobs={jobs}. Pass at least 1, or -1 for one per core.")
    return jobs


def in_parallel(
    job: Callable[[Parcel], Any], parcels: Sequence[Parcel], jobs: int
) -> Iterator[tuple[Parcel, Any | WorkerLostError]]:
    """Pairs of a parcel and job(parcel), in the order they are finished."""
    if jobs == 1 or len(parcels) == 1:
        announce_compiling(os.getpid())
        with threadpool_limits(1):
            yield from ((parcel, job(parcel)) for parcel in parcels)
        _said_by(os.getpid()).unlink(missing_ok=True)
        return
    left = list(range(len(parcels)))
    while left:
        given: list[int] = []
        try:
            for at, result in _in_processes(job, parcels, left, given, jobs):
                left.remove(at)
                yield parcels[at], result
        except BrokenProcessPool:
            suspects = [at for at in given if at in set(left)]
            for at in suspects:
                left.remove(at)
                yield parcels[at], _alone(job, parcels[at])
    _said_by(os.getpid()).unlink(missing_ok=True)


def _in_processes(
    job: Callable[[Parcel], Any], parcels: Sequence[Parcel], left: list[int], given: list[int], jobs: int
) -> Iterator[tuple[int, Any]]:
    """Results by number; `given` gets the numbers of the parcels that workers were given."""

    def calls() -> Iterator[Any]:
        for at in tuple(left):
            given.append(at)
            yield delayed(_in_worker)(os.getpid(), job, at, parcels[at])

    with parallel_config(backend="loky", inner_max_num_threads=1):
        try:
            yield from Parallel(n_jobs=jobs, return_as="generator_unordered")(calls())
        except OSError as error:
            raise _of_shared_folder(error) from error


def _of_shared_folder(error: OSError) -> OSError:
    """A full disk is here the folder through which workers are given the rows, which joblib does not say."""
    if error.errno not in (errno.ENOSPC, errno.EFBIG):
        return error
    folder = os.environ.get("JOBLIB_TEMP_FOLDER") or ("/dev/shm" if os.path.isdir("/dev/shm") else gettempdir())
    told = (
        "no space is left in this folder, through which several processes share the rows. Name another in the "
        "environment variable JOBLIB_TEMP_FOLDER, or do the work in one process (jobs = 1)"
    )
    return OSError(error.errno, told, folder)


def _alone(job: Callable[[Parcel], Any], parcel: Parcel) -> Any | WorkerLostError:
    try:
        # two workers, one of them idle: with one the parcel would be done in this process
        ((_, result),) = _in_processes(job, [parcel], [0], [], 2)
    except BrokenProcessPool:
        return WorkerLostError("the process that computed it was killed, perhaps for want of memory")
    return result


class _SaysOnce(logging.Handler):
    """Says once per run, whichever of its processes comes to it, that code is compiled: it takes seconds, once.

    run : number of the process that the run belongs to
    """

    def __init__(self, run: int) -> None:
        super().__init__(logging.INFO)
        self.run = run

    def emit(self, record: logging.LogRecord) -> None:
        with suppress(OSError):  # the file is there if it was said
            os.close(os.open(_said_by(self.run), os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
            print("compiling once: the next run has this in its cache", file=sys.stderr, flush=True)


def announce_compiling(run: int) -> None:
    """Have this process say what `discrim.core.svm.compiled` logs."""
    log = logging.getLogger("discrim")
    if not any(isinstance(one, _SaysOnce) for one in log.handlers):
        log.addHandler(_SaysOnce(run))
        log.setLevel(min(log.getEffectiveLevel(), logging.INFO))


def _said_by(run: int) -> Path:
    return Path(gettempdir()) / f"discrim-compiling-{run}"


def _in_worker(parent: int, job: Callable[[Parcel], Any], at: int, parcel: Parcel) -> tuple[int, Any]:
    _leave_to_parent(parent)
    announce_compiling(parent)
    return at, job(parcel)


def _leave_to_parent(parent: int) -> None:
    """Ctrl-C is the main process's to answer; and when that is gone, however it went, so is this one."""
    if os.getpid() == parent:  # no worker: joblib starts none inside another pool's process, say
        return
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    if any(thread.name == "discrim-parent" for thread in threading.enumerate()):
        return

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(_PARENT_LOOKS)
        os._exit(1)

    threading.Thread(target=watch, name="discrim-parent", daemon=True).start()
