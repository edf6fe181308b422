"""Runs killed at random moments: nothing acknowledged is lost, and a rerun ends in the same table."""

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
    outcome = Outcome("comparisons killed (−9) at random moments, then run again", "the same table, nothing lost")
    with tempfile.TemporaryDirectory() as folder:
        whole = Path(folder) / "whole.sqlite"
        began = time.monotonic()
        expected = table_of(run(*COMPARE, "--store", str(whole)).stdout)
        lasts = time.monotonic() - began
        until += lasts
        while time.monotonic() < until or not outcome.times:
            store = Path(folder) / f"{outcome.times}.sqlite"
            outcome.times += 1
            for _ in range(rng.integers(1, 4)):
                process = subprocess.Popen(
                    [sys.executable, "-m", "discrim", *COMPARE, "--store", str(store)],
                    stdout=subprocess.DEVNULL,
                    stderr=subprocess.DEVNULL,
                    start_new_session=True,
                )
                time.sleep(float(rng.uniform(0.1, lasts)))
                os.kill(process.pid, signal.SIGKILL)
                process.wait()
            again = run(*COMPARE, "--store", str(store))
            if again.returncode != 0 or table_of(again.stdout) != expected:
                outcome.faults.append(f"exit {again.returncode}: {again.stdout[:150]} {again.stderr[-150:]}")
    return outcome


def table_of(said: str) -> list[str]:
    """The lines of the ranking."""
    return [line for line in said.splitlines() if line.startswith(("fisher-lda", "regularized-lda", "pca", "raw"))]
