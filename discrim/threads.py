"""Threads: every fit and every use of a model runs on one BLAS thread; large sums over rows use several threads.

numpy and scipy each load a BLAS library, whose threads wait busily for the next product. A fit alternates between many
short products of both, so it takes several times as long with these threads as without. In most builds (OpenBLAS on
pthreads, BLIS) the number of BLAS threads is a setting of the process: the first thread that enters a fit sets it to 1,
and the last that leaves restores it. In the others (MKL, OpenMP) each thread sets and restores its own number.

`map_tasks` divides work among its own threads, each with one BLAS thread. They start and end with the call, so a forked
process never waits for a thread that it does not have.
"""

from __future__ import annotations

import functools
import itertools
import multiprocessing
import os
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextvars import Context, copy_context
from functools import lru_cache, wraps
from types import FunctionType, TracebackType
from typing import Any, NamedTuple, TypeVar

import scipy.linalg  # noqa: F401 - loads the second library before both are looked up
from joblib import cpu_count
from threadpoolctl import ThreadpoolController  # type: ignore[import-untyped]

Method = TypeVar("Method", bound=Callable[..., Any])
Value = TypeVar("Value")
Item = TypeVar("Item")
WORTH = 5e8  # number of multiplications, counted without symmetry, above which several threads pay off
_AFFIXES = tuple(itertools.product(("", "scipy_"), ("", "64_", "_64")))  # of the function names in builds of OpenBLAS


class _Library(NamedTuple):
    """Functions that read and set the number of threads of a BLAS library."""

    threads: Callable[[], int]
    set_threads: Callable[[int], Any]


_Settings = list[tuple[_Library, int]]


@lru_cache(maxsize=1)
def _libraries() -> tuple[list[_Library], list[_Library]]:
    """Return the loaded BLAS libraries: those with one setting per process, and those with one per thread."""
    of_process: list[_Library] = []
    of_thread: list[_Library] = []
    for found in ThreadpoolController().lib_controllers:
        if found.user_api != "blas":
            continue
        is_local = found.internal_api == "mkl" or getattr(found, "threading_layer", "") == "openmp"
        library = _Library(found.get_num_threads, found.set_num_threads)
        for before, after in _AFFIXES if found.internal_api == "openblas" and not is_local else ():
            if hasattr(found.dynlib, f"{before}openblas_set_num_threads{after}"):
                # OpenBLAS's own functions, because threadpoolctl ignores all threads but the first that sets a number
                names = (f"{before}openblas_{verb}_num_threads{after}" for verb in ("get", "set"))
                library = _Library(*(getattr(found.dynlib, name) for name in names))
                break
        (of_thread if is_local else of_process).append(library)
    return of_process, of_thread


def _set_to_one(libraries: list[_Library]) -> _Settings:
    """Set the libraries to one thread; return them with the numbers they had."""
    settings = [(library, library.threads()) for library in libraries]
    for library, before in settings:
        if before > 1:
            library.set_threads(1)
    return settings


def _restore(settings: _Settings) -> None:
    """Restore the numbers that are still 1; the user has set any other number in the meantime."""
    for library, before in settings:
        if before > 1 and library.threads() == 1:
            library.set_threads(before)


@lru_cache(maxsize=1)
def _cores_of_process(_: int) -> int:
    """Return the number of cores for this process (by its id): 1 in a worker, whose siblings use the others."""
    return 1 if multiprocessing.parent_process() is not None else int(cpu_count())


def _cores() -> int:
    """Return the number of cores for this process; the affinity can change, a container's quota is read once."""
    cores = _cores_of_process(os.getpid())
    return min(cores, len(os.sched_getaffinity(0))) if hasattr(os, "sched_getaffinity") else cores


class _Inside(threading.local):
    """Depth of limited calls of this thread, and the previous settings of its own libraries."""

    depth = 0
    settings: _Settings = []  # noqa: RUF012 - replaced, never changed


class _OneBlasThread:
    """Context manager `one_blas_thread`; it can be nested and used in several threads, which it counts."""

    def __init__(self) -> None:
        self._lock, self._mine = threading.RLock(), _Inside()
        self._n_threads, self._settings = 0, list[Any]()
        if hasattr(os, "register_at_fork"):
            os.register_at_fork(
                before=self._lock.acquire, after_in_parent=self._lock.release, after_in_child=self._in_child
            )

    def __enter__(self) -> None:
        mine = self._mine
        mine.depth += 1
        if mine.depth > 1:
            return
        of_process, of_thread = _libraries()
        with self._lock:
            self._n_threads += 1
            if self._n_threads == 1:
                self._settings = _set_to_one(of_process)
        mine.settings = _set_to_one(of_thread)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        mine = self._mine
        mine.depth -= 1
        if mine.depth:
            return
        _restore(mine.settings)
        mine.settings = []
        with self._lock:
            self._n_threads -= 1
            if not self._n_threads:
                _restore(self._settings)
                self._settings = []

    def free_threads(self) -> int:
        """Return the number of threads that may work for this one: the cores that no other limited call uses.

        The maximum is the number of BLAS threads before the limit, set by OMP_NUM_THREADS, threadpoolctl or joblib.
        """
        settings = self._settings + self._mine.settings
        allowed = min((before for _, before in settings), default=1)
        return min(allowed, _cores()) - self._n_threads + 1 if allowed > 1 else 1

    def _in_child(self) -> None:
        """Forget the other threads inside, because a forked process has only the thread that forked."""
        self._n_threads = int(self._mine.depth > 0)
        self._lock.release()
        if not self._n_threads:
            _restore(self._settings)
            self._settings = []


one_blas_thread = _OneBlasThread()


def on_one_blas_thread(method: Method) -> Method:
    """Decorate a function to run on one BLAS thread; the previous setting is restored, also after an error."""

    @wraps(method)
    def limited(*given: Any, **named: Any) -> Any:
        with one_blas_thread:
            return method(*given, **named)

    return limited  # type: ignore[return-value]


def map_tasks(work: Callable[[Item], Value], items: Sequence[Item]) -> Iterator[Value]:
    """Yield work(item) for every item in order, computed by as many threads as there are free cores.

    Use it for work that releases the interpreter's lock, such as numpy's, and takes some milliseconds per item. The sum
    of the values has the same digits for any number of threads.
    """
    n_threads = min(len(items), one_blas_thread.free_threads())
    if n_threads < 2:
        yield from map(work, items)
        return

    def run(context: Context, item: Item) -> Value:  # the context includes numpy's error state
        with one_blas_thread:
            return context.run(work, item)

    with ThreadPoolExecutor(n_threads, "discrim") as pool:
        yield from pool.map(run, [copy_context() for _ in items], items)


def on_one_blas_thread_throughout(cls: type[Any]) -> type[Any]:
    """Decorate a class to run every public method that it defines on one BLAS thread."""
    for name, method in list(vars(cls).items()):
        if isinstance(method, FunctionType) and not name.startswith("_"):
            setattr(cls, name, on_one_blas_thread(method))
    return cls


class computed_once(functools.cached_property[Value]):  # noqa: N801 - used as a decorator
    """Property that an instance computes on first access, without a lock.

    Before Python 3.12, `functools.cached_property` holds one lock for all instances while one of them computes. Fits in
    several threads would wait for each other, and a process forked in the meantime would wait forever.
    """

    def __get__(self, instance: Any, owner: type | None = None) -> Any:
        if instance is None or self.attrname is None:
            return self
        kept = vars(instance)
        if self.attrname not in kept:
            kept[self.attrname] = self.func(instance)
        return kept[self.attrname]
