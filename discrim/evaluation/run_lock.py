"""One run at a time on one store: a lock that ends with the process that holds it, however it ends."""

from __future__ import annotations

import errno
import os
import sys
import threading
import time
from pathlib import Path
from types import TracebackType

_held: set[str] = set()  # a process's own locks do not keep it out, so it has to remember them
_guard = threading.Lock()
_BEYOND = 1 << 30  # where the locked byte is: far from the text in the file, which stays readable on Windows


class StoreInUseError(RuntimeError):
    """Another run works on this store."""


class RunLock:
    """The right to run on the store at `store_path`, taken on entering and given back on leaving.

    wait : seconds to wait for another run to end before refusing

    The operating system holds the lock on a file beside the store and drops it with the process, also after
    kill -9; the file stays and means nothing by itself.
    """

    def __init__(self, store_path: str | os.PathLike[str], *, wait: float = 0.0) -> None:
        self.store_path, self.wait = Path(store_path), wait
        self.path = Path(os.path.realpath(store_path) + ".lock")
        self._descriptor: int | None = None

    def __enter__(self) -> RunLock:
        deadline = time.monotonic() + self.wait
        while not self._try():
            if time.monotonic() >= deadline:
                raise StoreInUseError(
                    f"Another run{self._owner()} works on {self.store_path}. Wait for it to end, or name another store."
                )
            time.sleep(min(0.1, max(0.0, deadline - time.monotonic())))
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._descriptor is not None:
            os.close(self._descriptor)  # which drops the lock
            self._descriptor = None
            with _guard:
                _held.discard(str(self.path))

    def _try(self) -> bool:
        with _guard:
            if str(self.path) in _held:
                return False
            # Opened and closed only while nobody here holds it: closing any descriptor of the file drops its lock.
            descriptor = os.open(self.path, os.O_RDWR | os.O_CREAT, 0o666)
            try:
                taken = _lock(descriptor)
                if taken:
                    os.ftruncate(descriptor, 0)
                    os.write(descriptor, f"{os.getpid()}\n".encode())
            except BaseException:
                os.close(descriptor)
                raise
            if not taken:
                os.close(descriptor)
                return False
            self._descriptor = descriptor
            _held.add(str(self.path))
            return True

    def _owner(self) -> str:
        with _guard:
            # Not to be opened here if it is our own: closing it again would drop the lock.
            if str(self.path) in _held:
                return f" (process {os.getpid()}, this one)"
            try:
                number = self.path.read_text().strip()
            except OSError:
                return ""
        return f" (process {number})" if number.isdigit() else ""


if sys.platform == "win32":
    import msvcrt

    def _lock(descriptor: int) -> bool:
        os.lseek(descriptor, _BEYOND, os.SEEK_SET)
        try:
            msvcrt.locking(descriptor, msvcrt.LK_NBLCK, 1)
        except OSError as error:
            if error.errno in (errno.EACCES, errno.EDEADLK):
                return False
            raise
        os.lseek(descriptor, 0, os.SEEK_SET)
        return True
else:
    import fcntl

    def _lock(descriptor: int) -> bool:
        # lockf, not flock: a forked worker that outlives its parent must not hold the lock on.
        try:
            fcntl.lockf(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB, 1, _BEYOND)
        except OSError as error:
            if error.errno in (errno.EACCES, errno.EAGAIN):
                return False
            raise
        return True
