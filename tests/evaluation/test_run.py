"""Runs: only missing trials are computed; interruptions and the number of workers do not change the result."""

import errno
import multiprocessing
import os
import subprocess
import sys
import textwrap
import time
from functools import partial

import numpy as np
import pytest
from parcels import double, full, kill_at_three, kill_at_three_once, threads_of_worker
from sklearn.datasets import load_iris

from discrim.evaluation.classifiers import named_classifiers
from discrim.evaluation.methods import METHODS, named_methods
from discrim.evaluation.plan import Grid, automatic_counts, labelled_table, product, training_sizes
from discrim.evaluation.protocol import PROTOCOLS, named_protocol
from discrim.evaluation.run import (
    Memory,
    StoreInUseError,
    WorkerLostError,
    in_parallel,
    resumable,
    run,
    run_lock,
)
from discrim.evaluation.store import Store
from discrim.registry import Method, Sizes


def grid(n_splits=3, methods=("pca", "fisher-lda", "raw"), protocol="holdout-80-20", **options):
    table = labelled_table(*load_iris(return_X_y=True))
    cells = product(named_methods(methods), (1, 2), named_classifiers(["svm", "5-nn"]), 4)
    return Grid("iris", table, cells, named_protocol(protocol, n_splits=n_splits), **options)


def scores(rows):
    """Return everything that must not depend on the course of a run: all but the seconds."""
    timed = {"fit_seconds"}
    return [(row.key, {k: v for k, v in row.scores.items() if k not in timed}, row.status) for row in rows]


@pytest.fixture
def store(tmp_path):
    with Store(tmp_path / "results.sqlite") as opened:
        yield opened


def test_a_run_does_every_trial_and_a_rerun_none(store, monkeypatch):
    whole = grid()
    rows = run(whole, store, jobs=1)
    assert len(rows) == len(whole.trials) == 3 * (2 * 2 + 1) * 2
    assert {row.status for row in rows} == {"ok"}
    seen = []
    monkeypatch.setattr("discrim.evaluation.run.evaluate", None)  # nothing is left to be done by it
    assert scores(run(grid(), store, jobs=1, progress=lambda *step: seen.append(step))) == scores(rows)
    assert seen == [(30, 30)]


def test_a_longer_run_extends_a_shorter_one(store):
    first = run(grid(n_splits=2), store, jobs=1)
    steps = []
    second = run(grid(n_splits=3), store, jobs=1, progress=lambda done, total: steps.append((done, total)))
    assert steps[0] == (20, 30)
    assert steps[-1] == (30, 30)
    assert set(dict.fromkeys(row.key for row in first)) < {row.key for row in second}


def test_stopped_anywhere_and_resumed_the_rows_are_the_same(tmp_path):
    with Store(tmp_path / "whole") as store:
        expected = scores(run(grid(), store, jobs=1))
    for stop_after in (1, 4, 7):
        with Store(tmp_path / f"stopped-{stop_after}") as store:

            def stop(done, total, limit=stop_after):
                if done >= 2 * limit:
                    raise KeyboardInterrupt

            with pytest.raises(KeyboardInterrupt):
                run(grid(), store, jobs=1, progress=stop)
            assert 0 < len(store) < 30
            assert scores(run(grid(), store, jobs=1)) == expected


def test_the_number_of_workers_changes_nothing(tmp_path):
    with Store(tmp_path / "one") as one, Store(tmp_path / "two") as two:
        assert scores(run(grid(), one, jobs=1)) == scores(run(grid(), two, jobs=2))


def test_other_data_seed_scale_or_protocol_are_other_trials():
    base = grid()
    assert not base.by_key.keys() & grid(seed=1).by_key.keys()
    assert not base.by_key.keys() & grid(scale="none").by_key.keys()
    assert not base.by_key.keys() & grid(protocol="holdout-50-50").by_key.keys()
    assert not grid(5, protocol="kfold").by_key.keys() & grid(4, protocol="kfold").by_key.keys()
    assert base.by_key.keys() < grid(n_splits=4).by_key.keys()


def test_a_failed_trial_is_kept_and_can_be_tried_again(store, monkeypatch):
    class Broken:
        def __init__(self, n_components):
            pass

        def fit(self, X, y):
            raise RuntimeError("no")

    monkeypatch.setitem(METHODS, "pca", Method("pca", "", Broken))
    rows = run(grid(), store, jobs=1)
    assert [row.cell.method for row in rows if row.status == "failed"] == ["pca"] * 12
    monkeypatch.undo()
    assert scores(run(grid(), store, jobs=1)) == scores(rows)
    assert all(row.status == "ok" for row in run(grid(), store, jobs=1, retry_failed=True))


def test_a_second_run_on_the_store_is_refused(store):
    with run_lock(store.path), pytest.raises(StoreInUseError, match="in use"):
        run(grid(), store, jobs=1)


def test_a_class_too_small_for_the_protocol_is_refused_at_once():
    table = labelled_table(np.arange(10.0)[:, None], ["a"] * 9 + ["b"])
    with pytest.raises(ValueError, match="got 1 for 'b'"):
        Grid("small", table, (), named_protocol("holdout-80-20"))


@pytest.mark.parametrize("name", PROTOCOLS)
def test_every_protocol_runs(name, store):
    rows = run(grid(n_splits=2, protocol=name), store, jobs=1)
    assert {row.status for row in rows} == {"ok"}


def test_automatic_counts():
    assert automatic_counts(Sizes(455, 30, 2)) == (1, 2, 5, 10)
    assert automatic_counts(Sizes(455, 3, 2)) == (1, 2)
    assert automatic_counts(Sizes(5, 2000, 2)) == (1, 2)
    assert automatic_counts(Sizes(5000, 600, 26)) == (1, 2, 5, 10, 25)
    assert automatic_counts(Sizes(5000, 600, 10)) == (1, 2, 5, 9, 10)
    assert automatic_counts(Sizes(40, 1, 2)) == (1,)
    assert training_sizes(grid().table, named_protocol("holdout-80-20")) == (120, 4, 3)


# --- workers ------------------------------------------------------------------------------------------------------


def test_results_are_returned_with_their_tasks():
    assert (
        dict(in_parallel(double, range(5), 1)) == dict(in_parallel(double, range(5), 2)) == {i: 2 * i for i in range(5)}
    )


def test_a_task_that_kills_its_worker_fails_alone():
    found = dict(in_parallel(kill_at_three, range(8), 2))
    assert isinstance(found.pop(3), WorkerLostError)
    assert found == {i: 2 * i for i in range(8) if i != 3}


def test_a_worker_killed_from_outside_is_replaced(tmp_path):
    found = dict(in_parallel(partial(kill_at_three_once, str(tmp_path / "killed")), range(8), 2))
    assert found == {i: 2 * i for i in range(8)}


def test_each_worker_has_one_thread():
    found = dict(in_parallel(threads_of_worker, range(6), 2)).values()
    assert {threads for _, threads in found} == {1}
    assert len({process for process, _ in found} - {os.getpid()}) == 2


def test_numbers_of_jobs():
    assert dict(in_parallel(abs, [-1], -1)) == dict(in_parallel(abs, [-1], None)) == {-1: 1}
    with pytest.raises(ValueError, match="jobs must be"):
        list(in_parallel(abs, [-1, -2], 0))


def test_a_full_folder_of_shared_rows_is_named(monkeypatch, tmp_path):
    monkeypatch.setenv("JOBLIB_TEMP_FOLDER", str(tmp_path))
    with pytest.raises(OSError, match="JOBLIB_TEMP_FOLDER") as caught:
        list(in_parallel(full, range(3), 2))
    assert (caught.value.errno, caught.value.filename) == (errno.ENOSPC, str(tmp_path))


def test_compilation_is_reported_once_and_not_for_cached_code():
    code = """
        import os, sys
        from discrim.evaluation.run import announce_compiling
        announce_compiling(os.getpid())
        announce_compiling(os.getpid())
        assert "numba" not in sys.modules
        import numba, discrim.core.svm.compiled
        own = lambda x: x + 1
        own.__module__ = "discrim.core.svm.compiled"
        once = numba.njit(own)
        once(1)
        once(1)
        once(1.0)
    """
    command = [sys.executable, "-c", textwrap.dedent(code)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stderr.count("Compiling code") == 1


def _in_two_processes(number):
    return sorted(answer for _, answer in in_parallel(abs, [-number, -2, -1], 2))


def test_if_no_worker_can_be_started_the_work_is_done_in_the_process():
    """joblib starts none in a process of another pool: what a worker does when its parent is gone must not happen."""
    with multiprocessing.get_context("fork").Pool(1) as pool:
        assert pool.apply_async(_in_two_processes, (3,)).get(timeout=60) == [1, 2, 3]
        time.sleep(1.5)  # longer than a worker takes to see that its parent is gone
        assert pool.apply_async(_in_two_processes, (4,)).get(timeout=60) == [1, 2, 4]


def test_a_run_without_a_store_is_the_same_and_writes_no_file(store, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    before = set(os.listdir(tmp_path))
    assert scores(run(grid(), Memory(), jobs=1)) == scores(run(grid(), store, jobs=1))
    assert set(os.listdir(tmp_path)) - before <= {"results.sqlite.lock", "results.sqlite-shm", "results.sqlite-wal"}
    two = Memory()
    run(grid(seed=1), two, jobs=1)
    assert len(run(grid(), two, jobs=1)) == len(grid().trials)  # other trials are not taken for these


def test_a_stop_names_the_store_to_continue_only_if_there_is_one():
    for path, notes in (("kept.sqlite", 1), (None, 0)):
        with pytest.raises(KeyboardInterrupt) as caught, resumable(path):
            raise KeyboardInterrupt
        assert len(getattr(caught.value, "__notes__", ())) == notes
