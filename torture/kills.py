"""Comparisons killed at random times: no stored result is lost, and a rerun gives the same table."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

from torture.damage import run
from torture.outcome import Outcome

METHODS = "fisher-lda,regularized-lda,pca"
COMPARE = ["compare", "wine", "--methods", METHODS, "--splits", "6", "-k", "1,2", "--jobs", "2"]


def killed_runs(rng: np.random.Generator, until: float) -> Outcome:
    outcome = Outcome("comparisons killed (−9) at random times, then rerun", "the same table, no result lost")
    with tempfile.TemporaryDirectory() as folder:
        whole = Path(folder) / "whole.sqlite"
        began = time.monotonic()
        expected = table_of(run(*COMPARE, "--store", str(whole)).stdout)
        duration = time.monotonic() - began
        until += duration
        while time.monotonic() < until or not outcome.runs:
            store = Path(folder) / f"{outcome.runs}.sqlite"
            outcome.runs += 1
            for _ in range(rng.integers(1, 4)):
                process = subprocess.Popen(
                    [sys.executable, "-m", "discrim", *COMPARE, "--store", str(store)],
                    stdout=subprocess.DEVNULL,
                    stderr=subprocess.DEVNULL,
                    start_new_session=True,
                )
                time.sleep(float(rng.uniform(0.1, duration)))
                os.kill(process.pid, signal.SIGKILL)
                process.wait()
            again = run(*COMPARE, "--store", str(store))
            if again.returncode != 0 or table_of(again.stdout) != expected:
                outcome.faults.append(f"exit {again.returncode}: {again.stdout[:150]} {again.stderr[-150:]}")
    return outcome


def table_of(output: str) -> list[str]:
    """Return the lines of the ranking."""
    return [line for line in output.splitlines() if line.startswith(("fisher-lda", "regularized-lda", "pca", "raw"))]
