"""Processes for tests: the command line, forked from a process with its imports loaded, and scripts."""

import atexit
import multiprocessing
import os
import signal
import subprocess
import sys
import textwrap
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

import discrim
from discrim.cli import main

resource = pytest.importorskip("resource", reason="needs resource limits and fork")
FORKED = multiprocessing.get_context("forkserver")
FORKED.set_forkserver_preload(["discrim.cli.comparing", "discrim.cli.projecting", "discrim.cli.comparing"])


class Command:
    """The command `discrim …` as a shell would start it; `before` is called in the new process first."""

    def __init__(self, *arguments, before=None, **environment):
        settings = {**os.environ, "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", **environment}
        ours, theirs = zip(*[FORKED.Pipe(duplex=False) for _ in range(2)], strict=True)
        self._process = FORKED.Process(target=_run, args=([str(one) for one in arguments], settings, before, theirs))
        self._process.start()
        for end in theirs:
            end.close()
        self.pid, self.kill = self._process.pid, self._process.kill
        self.stdout, self.stderr = (os.fdopen(os.dup(end.fileno()), errors="replace", encoding="utf-8") for end in ours)

    @property
    def returncode(self):
        """None while it runs."""
        return self._process.exitcode

    def send_signal(self, number):
        os.kill(self.pid, number)

    def wait(self, timeout=None):
        self._process.join(timeout)
        assert self.returncode is not None, f"after {timeout} seconds it still runs"
        return self.returncode

    def communicate(self, timeout=None):
        """Return the whole output, or kill the process after the timeout."""
        with ThreadPoolExecutor() as readers:
            outputs = [readers.submit(end.read) for end in (self.stdout, self.stderr)]
            try:
                self.wait(timeout)
            except AssertionError:
                self.kill()
                raise
            return tuple(one.result() for one in outputs)


def _run(arguments, environment, before, ends):
    os.environ.clear()
    os.environ.update(environment)
    for number, (name, end) in enumerate(zip(("stdout", "stderr"), ends, strict=True), 1):
        os.dup2(end.fileno(), number)
        end.close()
        setattr(sys, name, open(number, "w", encoding=environment.get("PYTHONIOENCODING"), closefd=False))  # noqa: SIM115
    if before is not None:
        before()
    sys.argv = ["discrim", *arguments]
    try:
        main()
    finally:  # as an interpreter ends: a forked process would do the first too late and the second not at all
        threading._shutdown()
        atexit._run_exitfuncs()


def script(code, *arguments):
    """Start a new interpreter that runs `code`, without the imports of the package's __init__, and pipe its output."""
    bare = f"""
        import sys, types
        package = sys.modules["discrim"] = types.ModuleType("discrim")
        package.__path__ = {list(discrim.__path__)!r}
    """
    command = [sys.executable, "-c", textwrap.dedent(bare) + textwrap.dedent(code), *map(str, arguments)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def limit_files(size):
    """Limit files to `size` bytes, which acts like a full disk."""
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, size))
