"""Do what is missing of a grid, and put every result into the store as it comes."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from discrim.evaluation.grid import Grid, Work
from discrim.evaluation.protocol import Split
from discrim.evaluation.run_lock import RunLock
from discrim.evaluation.store import Store
from discrim.evaluation.trial import Row, done, versions
from discrim.evaluation.workers import WorkerLostError, number_of_jobs, results

Progress = Callable[[int, int], None]  # trials done, trials in all


def run(
    grid: Grid,
    store: Store,
    *,
    jobs: int | None = None,
    progress: Progress | None = None,
    retry_failed: bool = False,
    wait: float = 0.0,
) -> list[Row]:
    """The grid's rows, after doing those that the store does not have.

    jobs : processes; None for one per core
    progress : called with the number of trials done and of all trials
    retry_failed : do trials again that failed before
    wait : seconds to wait for another run on the same store to end
    """
    with RunLock(store.path, wait=wait):
        wanted = store.missing(grid.trials, retry_failed=retry_failed)
        finished, total = len(grid.trials) - len(wanted), len(grid.trials)
        if progress is not None:
            progress(finished, total)
        codes = np.unique(grid.table.y, return_inverse=True)[1]  # classifiers compare numbers faster than text
        job = partial(_rows_of, grid.rows, codes, grid.splits, grid.scale, grid.seed)
        for work, answer in results(job, list(grid.work(wanted)), number_of_jobs(jobs)):
            for row in _lost(work, answer) if isinstance(answer, WorkerLostError) else answer:
                store.put(row)
            finished += len(work.wanted)
            if progress is not None:
                progress(finished, total)
    return rows_of(grid, store)


def rows_of(grid: Grid, store: Store) -> list[Row]:
    """What the store has of the grid."""
    return [row for row in store.rows() if row["key"] in grid.keys]


def _rows_of(X: Any, y: NDArray[Any], splits: list[Split], scale: str, seed: int, work: Work) -> list[Row]:
    train, test = splits[work.split]
    try:
        return done(work, X, y, train, test, scale, seed)
    except Exception as error:  # before any method was reached, so it is the fate of all of them
        return _lost(work, error)


def _lost(work: Work, error: Exception) -> list[Row]:
    said = f"{type(error).__name__}: {' '.join(str(error).split())}"
    common = {"scores": {}, "seconds": 0.0, "status": "failed", "reason": said, "versions": versions()}
    return [{"trial": trial, **common} for trial in work.wanted]
