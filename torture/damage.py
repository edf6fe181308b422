"""Damaged and forged files: the error names the file; a result never changes silently."""

from __future__ import annotations

import copy
import hashlib
import json
import sqlite3
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.datasets import load_wine
from sklearn.preprocessing import scale

import discrim
from discrim.evaluation.store import Store, StoreError
from discrim.model_file import ModelFileError
from torture.outcome import Outcome

Rng = np.random.Generator
# values that replace valid ones
STRANGE: list[Any] = [None, 5, -1, 1e308, "x", "", [], {}, [1, 2], True, 10**30, {"map": []}, {"array": 0},
                      {"array": -1}, {"dtype": "O"}, {"list": [], "tuple": True},
                      {"sparse": [{"array": 0}] * 3, "shape": [2, 2]}]  # fmt: skip


def fitted_models() -> list[Any]:
    X, y = load_wine(return_X_y=True)
    X = scale(X)
    return [
        discrim.RegularizedLDA(2, shrinkage=0.1).fit(X, y),
        discrim.BayesErrorLDA(2, shrinkage=0.1, cv=None).fit(X, y),
        discrim.PosteriorMap(kernel="rbf").fit(sp.csr_array(X), y),
        discrim.KernelMap().fit(X),
        discrim.PCA(2).partial_fit(X),
        discrim.MaxMarginShift(discrim.PCA(2)).fit(X, y),
    ]


def flipped_models(rng: Rng, until: float) -> Outcome:
    outcome = Outcome("model files with a flipped bit, or truncated", "an error that names the file")
    for path, good in model_files(rng, until):
        path.write_bytes(flipped(good, rng) if rng.random() < 0.8 else good[: rng.integers(len(good))])
        with outcome.run(ModelFileError):
            discrim.load(path)
            outcome.faults.append("a damaged model was loaded")
    return outcome


def forged_models(rng: Rng, until: float) -> Outcome:
    """Replace a value in the description of a model and correct the checksum."""
    outcome = Outcome("model files with a replaced value and a valid checksum", "an error, or a usable model")
    row = np.zeros((1, load_wine().data.shape[1]))
    for path, good in model_files(rng, until):
        path.write_bytes(forged(good, rng))
        with outcome.run(ValueError), warnings.catch_warnings():  # ModelFileError is a ValueError
            warnings.simplefilter("ignore")
            discrim.load(path).transform(row)
    return outcome


def model_files(rng: Rng, until: float) -> Iterator[tuple[Path, bytes]]:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "wine.discrim"
        good = []
        for model in fitted_models():
            discrim.save(model, path)
            good.append(path.read_bytes())
        while time.monotonic() < until:
            yield path, good[rng.integers(len(good))]


def forged(good: bytes, rng: Rng) -> bytes:
    first, _, content = good.split(b"\n", 2)
    line, _, arrays = content.partition(b"\n")
    described = json.loads(line)
    places = [place for place in places_in(described) if place]
    *path, last = places[rng.integers(len(places))]
    inner = described
    for step in path:
        inner = inner[step]
    inner[last] = copy.deepcopy(STRANGE[rng.integers(len(STRANGE))])
    content = json.dumps(described).encode() + b"\n" + arrays
    return first + b"\n" + hashlib.sha256(content).hexdigest().encode() + b"\n" + content


def places_in(value: Any, before: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    yield before
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, one in inner:
        yield from places_in(one, (*before, key))


def flipped_stores(rng: Rng, until: float) -> Outcome:
    outcome = Outcome("result stores with a flipped bit", "the same results, or an error")
    began = time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        store = Path(folder) / "wine.sqlite"
        run("compare", "wine", "--methods", "fisher-lda,pca", "--splits", "2", "-k", "1", "--store", str(store))
        with sqlite3.connect(store) as connection:
            connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
            connection.execute("PRAGMA journal_mode=DELETE")
        connection.close()
        good, answer = store.read_bytes(), content_of(store)
        until += time.monotonic() - began  # setting up does not count
        while time.monotonic() < until or not outcome.runs:
            store.write_bytes(flipped(good, rng))
            with outcome.run(StoreError):
                if content_of(store) != answer:
                    outcome.faults.append("results changed without an error")
    return outcome


def content_of(store: Path) -> tuple[Any, Any]:
    """Return everything that a report uses."""
    with Store(store, read_only=True) as kept:
        runs = {
            key: {name: np.asarray(fact).tolist() for name, fact in vars(run).items()}
            for key, run in kept.runs().items()
        }
        return kept.rows(), runs


def flipped(content: bytes, rng: Rng) -> bytes:
    at, bit = int(rng.integers(len(content))), int(rng.integers(8))
    return content[:at] + bytes([content[at] ^ (1 << bit)]) + content[at + 1 :]


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    """Run the command discrim with these arguments."""
    return subprocess.run([sys.executable, "-m", "discrim", *arguments], capture_output=True, text=True, check=False)
