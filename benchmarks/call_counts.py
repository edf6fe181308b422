"""Count the functions and files of discrim that a fit and a command call, and the depth of the calls.

python -m benchmarks.call_counts            the counts
python -m benchmarks.call_counts dense      every function that one fit calls, in the order of its first call
"""

from __future__ import annotations

import contextlib
import inspect
import io
import sys
import tempfile
import threading
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any

import numpy as np
import scipy.sparse as sp

import discrim
from discrim import BayesErrorLDA

PACKAGE = str(Path(discrim.__file__).parent)


def is_counted(frame: FrameType) -> bool:
    """Return True if a frame is a named function of discrim (no class body, no comprehension)."""
    code = frame.f_code
    is_function = code.co_flags & inspect.CO_OPTIMIZED and not code.co_name.startswith("<")
    return bool(is_function) and code.co_filename.startswith(PACKAGE)


def count_calls(call: Callable[[], Any]) -> tuple[Counter[tuple[str, str]], int]:
    """Return the number of calls of each (file, function), and the largest depth of nested calls."""
    seen: Counter[tuple[str, str]] = Counter()
    deepest = 0

    def entered(frame: FrameType, event: str, _: Any) -> None:
        nonlocal deepest
        if event == "call" and is_counted(frame):
            seen[frame.f_code.co_filename[len(PACKAGE) + 1 :], frame.f_code.co_qualname] += 1
            depth, outer = 0, frame
            while outer is not None:
                depth, outer = depth + is_counted(outer), outer.f_back  # type: ignore[assignment]
            deepest = max(deepest, depth)

    threading.setprofile(entered)
    sys.setprofile(entered)
    try:
        call()
    finally:
        sys.setprofile(None)
        threading.setprofile(None)
    return seen, deepest


def rows(n: int = 600, d: int = 20, classes: int = 4) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    y = rng.integers(0, classes, n)
    return rng.normal(size=(n, d)) + rng.normal(size=(classes, d))[y], y


def dense() -> None:
    BayesErrorLDA().fit(*rows())


def products() -> None:
    X = sp.random(6000, 5600, density=0.002, random_state=0, format="csr")
    BayesErrorLDA(2, shrinkage=0.1).fit(X, np.random.default_rng(0).integers(0, 3, X.shape[0]))


def compare() -> None:
    """Run a comparison in one process, so every call is counted."""
    from discrim.cli import main

    with tempfile.TemporaryDirectory() as folder:
        X, y = rows(200, 8, 3)
        table, page = Path(folder, "t.csv"), Path(folder, "t.html")
        header = ",".join([*(f"f{at}" for at in range(X.shape[1])), "label"])
        np.savetxt(table, np.c_[X, y], delimiter=",", header=header, comments="")
        sys.argv = ["discrim", "compare", str(table), "--html", str(page), "--splits", "2", "-j", "1"]
        no_output, no_errors = contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO())
        with no_output, no_errors, contextlib.suppress(SystemExit):
            main()
        assert page.exists()


CALLS = {"dense": dense, "products": products, "compare": compare}


if __name__ == "__main__":
    names = sys.argv[1:]
    for name in names or CALLS:
        seen, deepest = count_calls(CALLS[name])
        if names:
            print(*(f"{count:6d} {file}: {function}" for (file, function), count in seen.items()), sep="\n")
        files = len({file for file, _ in seen})
        print(f"{name}: {len(seen)} functions in {files} files, {seen.total()} calls, at most {deepest} deep")
