"""Every fit and use of a model runs on one BLAS thread, and the caller's setting is restored."""

import os
import subprocess
import sys
import threading
import warnings
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

import numpy as np
import pytest
from joblib import Parallel, delayed, parallel_config
from sklearn.pipeline import make_pipeline
from threadpoolctl import threadpool_info, threadpool_limits

import discrim
from discrim.registry import PUBLIC
from discrim.threads import _libraries, computed_once, map_tasks, on_one_blas_thread, one_blas_thread

ESTIMATORS = [name for name in PUBLIC if hasattr(getattr(discrim, name), "fit")]
USES = {
    "transform",
    "predict",
    "predict_proba",
    "predict_log_proba",
    "decision_function",
    "score_samples",
    "merged_features",
    "partial_fit",
    "statistics",
}
BINARY = {"RefinedHyperplane"}  # takes two classes
ON_SIGMOID = {"Autoencoder"}  # takes rows between 0 and 1


def blas_threads():
    """The numbers of threads of the loaded BLAS libraries, by threadpoolctl."""
    return [one["num_threads"] for one in threadpool_info() if one["user_api"] == "blas"]


@pytest.fixture(autouse=True)
def two_threads():
    """A caller who uses two BLAS threads."""
    with threadpool_limits(2, user_api="blas"):
        if 2 not in blas_threads():
            pytest.skip("this BLAS has one thread only")
        yield


class Watched:
    """An array that notes the BLAS threads when it is read, which methods do after they have begun."""

    def __init__(self, values, fail=False):
        self.values, self.fail, self.shape, self.seen = values, fail, values.shape, []

    def __len__(self):
        return len(self.values)

    def __getitem__(self, rows):
        return self.values[rows]

    def __array__(self, dtype=None, copy=None):
        self.seen.append(blas_threads())
        if self.fail:
            raise ValueError("these rows cannot be read")
        return np.array(self.values, dtype=dtype)


def table(name):
    rng = np.random.default_rng(0)
    y = np.arange(60) % (2 if name in BINARY else 3)
    X = rng.normal(size=(60, 5)) + 3 * rng.normal(size=(3, 5))[y]
    return (X - X.min()) / np.ptp(X) if name in ON_SIGMOID else X, y


def made(name):
    """An estimator with its defaults; a predictor of the last step alone."""
    return (
        discrim.Predictor(make_pipeline(discrim.RegularizedLDA())) if name == "Predictor" else getattr(discrim, name)()
    )


def ones(watched):
    return bool(watched.seen) and all(set(numbers) == {1} for numbers in watched.seen)


@pytest.mark.parametrize("name", ESTIMATORS)
def test_fit_and_use_run_on_one_thread_and_give_the_callers_setting_back(name):
    before, (X, y) = blas_threads(), table(name)
    rows = Watched(X)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = made(name).fit(rows, y)
        assert ones(rows)
        assert blas_threads() == before
        for use in sorted(use for use in USES if hasattr(model, use)):
            rows = Watched(X)
            getattr(model, use)(*((rows, y) if use in ("partial_fit", "statistics") else (rows,)))
            assert ones(rows), use
            assert blas_threads() == before, use


@pytest.mark.parametrize("name", ESTIMATORS)
def test_a_fit_that_raises_gives_the_callers_setting_back(name):
    before, (X, y) = blas_threads(), table(name)
    rows = Watched(X, fail=True)
    with pytest.raises(ValueError, match="these rows cannot be read"):
        made(name).fit(rows, y)
    assert ones(rows)
    assert blas_threads() == before


def test_moments_and_the_solution_of_a_stream_are_found_on_one_thread(monkeypatch):
    X, y = table("PCA")
    rows = Watched(X)
    discrim.ClassMoments.of(rows, y)
    assert ones(rows)
    model, seen = discrim.PCA(2).partial_fit(X), []
    monkeypatch.setattr(
        model, "_publish", lambda *found: seen.append(blas_threads()) or type(model)._publish(model, *found)
    )
    assert len(model.components_) == 2
    assert set(seen[0]) == {1}
    assert set(blas_threads()) == {2}


def test_nested_calls_are_one():
    with one_blas_thread:
        with one_blas_thread:
            assert set(blas_threads()) == {1}
        assert set(blas_threads()) == {1}
    assert set(blas_threads()) == {2}


@contextmanager
def another_fit():
    """Let another thread hold the limit meanwhile."""
    entered, leave = threading.Event(), threading.Event()

    def hold():
        with one_blas_thread:
            entered.set()
            leave.wait(60)

    other = threading.Thread(target=hold)
    other.start()
    assert entered.wait(60)
    yield
    leave.set()
    other.join(60)


def test_the_last_of_several_threads_restores():
    one_blas_thread.__enter__()
    with another_fit():
        one_blas_thread.__exit__(None, None, None)
        assert set(blas_threads()) == {1}
    assert set(blas_threads()) == {2}


def test_a_number_set_meanwhile_is_the_users():
    with one_blas_thread:
        for library in _libraries()[0]:
            library.set_threads(3)
    assert set(blas_threads()) == {3}


def test_libraries_with_a_setting_for_each_thread_are_set_by_each(monkeypatch):
    own = threading.local()
    libraries = [], [type(_libraries()[0][0])(lambda: getattr(own, "n", 8), lambda n: setattr(own, "n", n))]
    monkeypatch.setattr("discrim.threads._libraries", lambda: libraries)
    seen = []

    @on_one_blas_thread
    def number():
        return own.n

    def look():
        seen.append((number(), own.n))

    with one_blas_thread:
        other = threading.Thread(target=look)
        other.start()
        other.join(60)
        seen.append(own.n)
    assert seen == [(1, 8), 1]
    assert own.n == 8


FORK = """
import os, sys, threading, time
import numpy as np
from threadpoolctl import threadpool_info, threadpool_limits
from discrim import RegularizedLDA

def blas_threads():
    return {one["num_threads"] for one in threadpool_info() if one["user_api"] == "blas"}

threadpool_limits(2, user_api="blas")
n, d = map(int, sys.argv[1:])
y = np.arange(n) % 4
X = np.random.default_rng(0).normal(size=(n, d)) + y[:, None]
stop = False

def fits():
    while not stop:
        RegularizedLDA(shrinkage=0.1).fit(X, y)

other = threading.Thread(target=fits)
other.start()
for _ in range(6 if n < 20_000 else 3):
    time.sleep(0.01)
    child = os.fork()
    if child == 0:
        free = blas_threads() == {2}
        RegularizedLDA(shrinkage=0.1).fit(X, y)
        os._exit(0 if free and blas_threads() == {2} else 1)
    assert os.waitpid(child, 0)[1] == 0
stop = True
other.join()
assert blas_threads() == {2}, blas_threads()
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
@pytest.mark.parametrize("shape", [(1_000, 60), (40_000, 120)], ids=["small", "shared among threads"])
def test_a_process_forked_while_another_thread_fits_can_fit(shape):
    subprocess.run([sys.executable, "-W", "ignore", "-c", FORK, *map(str, shape)], check=True, timeout=300)


def test_a_fork_inside_a_call_stays_inside():
    if not hasattr(os, "fork"):
        pytest.skip("this system has no fork")
    code = """
import os
from discrim.threads import one_blas_thread
with one_blas_thread:
    child = os.fork()
    assert one_blas_thread._n_threads == 1
assert one_blas_thread._n_threads == 0
assert child == 0 or os.waitpid(child, 0)[1] == 0
"""
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)


# ---------------------------------------------------------------------- tasks for several threads


LARGE = {
    "rows": ("PCA", lambda X, y, wide: (X, None, None)),
    "classes": ("RegularizedLDA", lambda X, y, wide: (X, y, None)),
    "weights": ("FisherLDA", lambda X, y, wide: (X, y, 0.5 + np.arange(len(X)) % 7 / 4)),
    "far from 0": ("PCA", lambda X, y, wide: (X + 1e6, None, None)),
    "single precision": ("MarginPCA", lambda X, y, wide: (X.astype(np.float32), y, None)),
    "long rows": ("PCA", lambda X, y, wide: (wide, None, None)),
    "long rows in classes": ("BayesErrorLDA", lambda X, y, wide: (wide, y[:360], None)),
}


@pytest.fixture(scope="module")
def large_tables():
    """Many rows with labels, and long rows: their products are divided among threads."""
    rng = np.random.default_rng(0)
    y = np.arange(60_000) % 3
    return rng.normal(size=(60_000, 100)) + 3 * rng.normal(size=(3, 100))[y], y, rng.normal(size=(360, 6_000))


@pytest.mark.parametrize("case", LARGE)
def test_the_number_of_threads_changes_no_digit(case, large_tables, monkeypatch):
    name, chosen = LARGE[case]
    X, y, weights = chosen(*large_tables)
    found, used = [], []
    for cores in (1, 2, 5):
        monkeypatch.setattr("discrim.threads._cores", lambda cores=cores: cores)
        counted = CountedPool()
        monkeypatch.setattr("discrim.threads.ThreadPoolExecutor", counted)
        with threadpool_limits(cores, user_api="blas"):
            model = getattr(discrim, name)(2).fit(X, y, sample_weight=weights)
        used.append(max(counted.sizes, default=1))
        found.append((model.components_, model.eigenvalues_, model.mean_))
    assert used[:2] == [1, 2]
    assert used[2] > 2
    for other in found[1:]:
        assert all(np.array_equal(*pair) for pair in zip(found[0], other, strict=True))


class CountedPool:
    """Makes pools of threads and notes their sizes."""

    def __init__(self):
        self.sizes = []

    def __call__(self, n_threads, prefix):
        self.sizes.append(n_threads)
        return ThreadPoolExecutor(n_threads, prefix)


@pytest.fixture
def four_cores(monkeypatch):
    monkeypatch.setattr("discrim.threads._cores", lambda: 4)
    with threadpool_limits(4, user_api="blas"):
        yield


def names_of_threads(n=8):
    """The threads that did n tasks, which all had to be begun by different ones before one could end."""
    started = threading.Barrier(min(n, max(1, one_blas_thread.free_threads())), timeout=60)

    def work(_):
        started.wait()
        return threading.current_thread().name

    return set(map_tasks(work, range(n)))


def test_tasks_use_the_free_cores(four_cores):
    with one_blas_thread:
        assert len(names_of_threads()) == 4
    assert threading.active_count() == len(threading.enumerate())
    assert not [one for one in threading.enumerate() if one.name.startswith("discrim_")]


def test_outside_of_a_limited_call_there_are_no_threads(four_cores):
    with one_blas_thread:
        pass
    assert names_of_threads() == {threading.current_thread().name}


@pytest.mark.parametrize("n_threads", [1, 3])
def test_tasks_use_no_more_threads_than_blas_may(four_cores, n_threads):
    with threadpool_limits(n_threads, user_api="blas"), one_blas_thread:
        assert one_blas_thread.free_threads() == n_threads


def test_tasks_leave_cores_to_other_fits(four_cores):
    with one_blas_thread:
        with another_fit():
            assert one_blas_thread.free_threads() == 3
        assert one_blas_thread.free_threads() == 4


def test_a_task_runs_on_one_blas_thread_in_the_context_of_its_caller(four_cores):
    def work(_):
        return blas_threads(), np.geterr()["over"]

    with one_blas_thread, np.errstate(over="raise"):
        for threads, over in map_tasks(work, range(6)):
            assert set(threads) == {1}
            assert over == "raise"
    assert set(blas_threads()) == {4}


def test_threads_of_tasks_use_their_cores(four_cores):
    together = threading.Barrier(4, timeout=60)

    def work(_):
        together.wait()
        free = one_blas_thread.free_threads()
        together.wait()
        return free

    with one_blas_thread:
        assert max(map_tasks(work, range(4))) <= 1


def test_an_error_in_a_task_is_raised_and_the_setting_restored(four_cores):
    def work(number):
        if number == 2:
            raise ValueError("task 2")
        return number

    with pytest.raises(ValueError, match="task 2"), one_blas_thread:
        list(map_tasks(work, range(8)))
    assert set(blas_threads()) == {4}
    assert one_blas_thread._n_threads == 0


def test_tasks_within_tasks_are_in_order(four_cores):
    def work(number):
        return sum(map_tasks(lambda other: number * other, range(5)))

    with one_blas_thread:
        assert list(map_tasks(work, range(6))) == [10 * number for number in range(6)]


def test_worker_processes_use_one_thread():
    def free_threads():  # sent by value, so that a worker does not import this file
        from discrim.threads import one_blas_thread

        with one_blas_thread:
            return one_blas_thread.free_threads()

    with parallel_config(backend="loky", inner_max_num_threads=2):
        assert Parallel(2)(delayed(free_threads)() for _ in range(2)) == [1, 1]


@pytest.mark.skipif(not hasattr(os, "sched_setaffinity"), reason="this system has no affinity")
def test_affinity_and_environment_are_honoured():
    code = """
import os
from discrim.threads import one_blas_thread
with one_blas_thread:
    whole = one_blas_thread.free_threads()
    os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
    print(whole, one_blas_thread.free_threads())
"""
    cores = len(os.sched_getaffinity(0))
    for limit, wanted in ((None, f"{cores} 1"), ("1", "1 1")):
        given = {name: value for name, value in os.environ.items() if not name.endswith("_NUM_THREADS")}
        given |= {} if limit is None else {"OMP_NUM_THREADS": limit}
        done = subprocess.run([sys.executable, "-c", code], check=True, timeout=60, env=given, capture_output=True)
        assert done.stdout.decode().strip() == wanted


class Squares:
    def __init__(self, n, compute=lambda: None):
        self.n, self.compute, self.calls = n, compute, 0

    @computed_once
    def square(self):
        """The square."""
        self.calls += 1
        self.compute()
        return self.n**2


def test_a_property_is_computed_once():
    three = Squares(3)
    assert (three.square, three.square, three.calls) == (9, 9, 1)
    assert Squares.square.__doc__ == "The square."


def test_threads_do_not_wait_for_each_others_properties():
    computing, done = threading.Event(), threading.Event()
    slow = Squares(2, lambda: computing.set() or done.wait(60))
    other = threading.Thread(target=lambda: slow.square)
    other.start()
    assert computing.wait(60)
    third = threading.Thread(target=lambda: Squares(3).square and done.set())
    third.start()
    assert done.wait(60)
    other.join(60)
    assert slow.square == 4
