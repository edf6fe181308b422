"""Bits flipped in what was written: refused by name, never another answer in silence."""

from __future__ import annotations

import sqlite3
import subprocess
import sys
import tempfile
import time
import warnings
from pathlib import Path

import numpy as np
from sklearn.datasets import load_wine

import discrim
from discrim.reducers.model_file import ModelFileError
from torture.outcome import Outcome


def flipped_models(rng: np.random.Generator, until: float) -> Outcome:
    outcome = Outcome("model files with a bit flipped, or cut", "refused by name")
    X, y = load_wine(return_X_y=True)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "wine.discrim"
        discrim.save(discrim.RegularizedLDA(2, shrinkage=0.1).fit(X, y), path)
        good = path.read_bytes()
        while time.monotonic() < until:
            path.write_bytes(flipped(good, rng) if rng.random() < 0.8 else good[: rng.integers(len(good))])
            outcome.times += 1
            try:
                discrim.load(path)
                outcome.faults.append("a damaged model was taken")
            except ModelFileError:
                pass
            except Exception as error:
                outcome.faults.append(f"{type(error).__name__}: {error}"[:300])
    return outcome


def flipped_stores(rng: np.random.Generator, until: float) -> Outcome:
    outcome = Outcome("result stores with a bit flipped", "the same report, or the damage named")
    with tempfile.TemporaryDirectory() as folder:
        store = Path(folder) / "wine.sqlite"
        command = ["compare", "wine", "--methods", "fisher-lda,pca", "--splits", "2", "-k", "1", "--store", str(store)]
        run(*command)
        with sqlite3.connect(store) as connection:
            connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
            connection.execute("PRAGMA journal_mode=DELETE")
        good, answer = store.read_bytes(), run("report", str(store)).stdout
        while time.monotonic() < until:
            store.write_bytes(flipped(good, rng))
            outcome.times += 1
            said = run("report", str(store))
            if "Traceback" in said.stderr:
                outcome.faults.append(said.stderr.strip().splitlines()[-1][:300])
            elif said.returncode == 0 and said.stdout != answer:
                outcome.faults.append("another answer came, without a word")
    return outcome


def flipped(content: bytes, rng: np.random.Generator) -> bytes:
    at, bit = int(rng.integers(len(content))), int(rng.integers(8))
    return content[:at] + bytes([content[at] ^ (1 << bit)]) + content[at + 1 :]


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    """discrim with these arguments."""
    warnings.simplefilter("ignore")
    return subprocess.run([sys.executable, "-m", "discrim", *arguments], capture_output=True, text=True, check=False)
