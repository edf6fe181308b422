"""Threads: every fit and every use of a model runs on one BLAS thread; large sums over rows use several threads.

numpy and scipy bring a BLAS library each, whose threads wait busily for the next product: a fit, which is many short
products of both, takes several times as long with them as without. The number of threads of a library is a setting of
the whole process in most builds (OpenBLAS on pthreads, BLIS) and of one thread in the others (MKL, OpenMP). So the
first thread that enters a fit sets the former to 1 and the last that leaves restores them; the latter are set and
restored by each thread.

`map_tasks` divides work among threads of its own, each with one BLAS thread. It starts them for one call and ends them
with it, so that a forked process never waits for a thread that it does not have.
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

import scipy.linalg  # noqa: F401 - so that both libraries are loaded before they are looked up
from joblib import cpu_count
from threadpoolctl import ThreadpoolController  # type: ignore[import-untyped]

Method = TypeVar("Method", bound=Callable[..., Any])
Value = TypeVar("Value")
Item = TypeVar("Item")
WORTH = 5e8  # multiplications of a product, counted without symmetry, from which on several threads pay
_AFFIXES = tuple(itertools.product(("", "scipy_"), ("", "64_", "_64")))  # of the names in builds of OpenBLAS


class _Library(NamedTuple):
    """How the number of threads of a BLAS library is read and set."""

    threads: Callable[[], int]
    set_threads: Callable[[int], Any]


_Settings = list[tuple[_Library, int]]


@lru_cache(maxsize=1)
def _libraries() -> tuple[list[_Library], list[_Library]]:
    """The loaded BLAS libraries: those with one setting for the process, and those with one for each thread."""
    of_process: list[_Library] = []
    of_thread: list[_Library] = []
    for found in ThreadpoolController().lib_controllers:
        if found.user_api != "blas":
            continue
        is_local = found.internal_api == "mkl" or getattr(found, "threading_layer", "") == "openmp"
        raw = None if is_local or found.internal_api != "openblas" else _openblas(found.dynlib)
        library = raw or _Library(found.get_num_threads, found.set_num_threads)
        (of_thread if is_local else of_process).append(library)
    return of_process, of_thread


def _openblas(library: Any) -> _Library | None:
    """OpenBLAS's own functions: threadpoolctl ignores all threads but the first that sets a number."""
    for before, after in _AFFIXES:
        if hasattr(library, f"{before}openblas_set_num_threads{after}"):
            names = (f"{before}openblas_{verb}_num_threads{after}" for verb in ("get", "set"))
            return _Library(*(getattr(library, name) for name in names))
    return None


def _set_to_one(libraries: list[_Library]) -> _Settings:
    """Set the libraries to one thread; return them with the numbers they had."""
    settings = [(library, library.threads()) for library in libraries]
    for library, before in settings:
        if before > 1:
            library.set_threads(1)
    return settings


def _restore(settings: _Settings) -> None:
    """Restore the numbers, where they are still the 1 that was set here: another number is the user's since."""
    for library, before in settings:
        if before > 1 and library.threads() == 1:
            library.set_threads(before)


@lru_cache(maxsize=1)
def _cores_of_process(_: int) -> int:
    """Return the cores that this process (by its id) may use: 1 in a worker process, whose siblings use the others."""
    return 1 if multiprocessing.parent_process() is not None else int(cpu_count())


def _cores() -> int:
    """Return the cores that this process may use: the affinity can change, the quota of a container is read once."""
    cores = _cores_of_process(os.getpid())
    return min(cores, len(os.sched_getaffinity(0))) if hasattr(os, "sched_getaffinity") else cores


class _Inside(threading.local):
    """Number of limited calls that this thread is in, and the settings of its own libraries before."""

    depth = 0
    settings: _Settings = []  # noqa: RUF012 - replaced, never changed


class _OneBlasThread:
    """The context manager `one_blas_thread`: nested and in several threads at once, it counts the threads inside."""

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
        """Return how many threads may work for this one: cores that no other limited call uses.

        They are no more than the BLAS threads before the limit, which OMP_NUM_THREADS, threadpoolctl and joblib set.
        """
        settings = self._settings + self._mine.settings
        allowed = min((before for _, before in settings), default=1)
        return min(allowed, _cores()) - self._n_threads + 1 if allowed > 1 else 1

    def _in_child(self) -> None:
        """Forget the other threads that were inside: of a forked process, the thread that forked is the only one."""
        self._n_threads = int(self._mine.depth > 0)
        self._lock.release()
        if not self._n_threads:
            _restore(self._settings)
            self._settings = []


one_blas_thread = _OneBlasThread()


def on_one_blas_thread(method: Method) -> Method:
    """Decorate a function: it runs on one BLAS thread, and the setting before is restored however it ends."""

    @wraps(method)
    def limited(*given: Any, **named: Any) -> Any:
        with one_blas_thread:
            return method(*given, **named)

    return limited  # type: ignore[return-value]


def map_tasks(work: Callable[[Item], Value], items: Sequence[Item]) -> Iterator[Value]:
    """Yield work(item) for every item in their order, computed by as many threads as there are free cores.

    It pays where numpy or another library that releases the interpreter's lock does the work, some milliseconds for
    each item. A caller that sums the values gets the same digits from any number of threads.
    """
    n_threads = min(len(items), one_blas_thread.free_threads())
    if n_threads < 2:
        yield from map(work, items)
        return

    def run(context: Context, item: Item) -> Value:  # the context has numpy's error state
        with one_blas_thread:
            return context.run(work, item)

    with ThreadPoolExecutor(n_threads, "discrim") as pool:
        yield from pool.map(run, [copy_context() for _ in items], items)


def on_one_blas_thread_throughout(cls: type[Any]) -> type[Any]:
    """Decorate a class: every public method that it defines runs on one BLAS thread."""
    for name, method in list(vars(cls).items()):
        if isinstance(method, FunctionType) and not name.startswith("_"):
            setattr(cls, name, on_one_blas_thread(method))
    return cls


class computed_once(functools.cached_property[Value]):  # noqa: N801 - used as a decorator
    """A property that an instance computes when it is first read, without a lock.

    Before Python 3.12, `functools.cached_property` holds one lock for all instances while one of them computes: fits in
    several threads wait for each other, and a process forked meanwhile waits for ever.
    """

    def __get__(self, instance: Any, owner: type | None = None) -> Any:
        if instance is None or self.attrname is None:
            return self
        kept = vars(instance)
        if self.attrname not in kept:
            kept[self.attrname] = self.func(instance)
        return kept[self.attrname]
