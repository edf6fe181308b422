"""Store of results: acknowledged rows are durable, and other files are rejected."""

import contextlib
import errno
import json
import math
import os
import random
import signal
import sqlite3
import sys
import threading
import time
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from processes import script

from discrim.evaluation import store as store_module
from discrim.evaluation.results import Result, RunFacts, trial_key
from discrim.evaluation.run import StoreInUseError, run_lock
from discrim.evaluation.store import Store, StoreError

VERSIONS = {"discrim": "0.1.0", "numpy": "2.4"}


def row(trial, status="ok", **changed):
    reason = "" if status == "ok" else "it did not work"
    base = {"scores": {"accuracy": 0.5}, "seconds": 0.25, "status": status, "reason": reason}
    return Result(trial, **{**base, "notes": [], "versions": VERSIONS, **changed})


@pytest.fixture
def path(tmp_path):
    return tmp_path / "results.sqlite"


# --- rows -----------------------------------------------------------------------------------------------------


def test_rows_are_read_as_written(path):
    trial = {"data": "größe ✓", "k": 5, "options": {"b": [1, 2.5, None, True], "a": "x"}}
    scores = {"accuracy": 0.1 + 0.2, "tiny": 5e-324}
    with Store(path) as store:
        assert store.put(row(trial, scores=scores, seconds=1.5))
        (found,) = store.rows()
    assert found == row(trial, scores=scores, seconds=1.5)
    assert found.key == trial_key(trial)
    with Store(path, read_only=True) as again:
        assert again.rows() == [found]
        assert len(again) == 1


def test_scores_that_are_not_finite_are_kept(path):
    scores = {"nan": math.nan, "up": math.inf, "down": -math.inf, "none": None, "np": np.float32(0.5), "n": np.int64(3)}
    with Store(path) as store:
        store.put(row({"k": 1}, scores=scores))
    with Store(path, read_only=True) as store:
        found = dict(store.rows()[0].scores)
    assert math.isnan(found.pop("nan"))
    assert found == {"up": math.inf, "down": -math.inf, "none": None, "np": 0.5, "n": 3}


def test_a_stored_row_can_be_put_into_another_store(path, tmp_path):
    with Store(path) as store, Store(tmp_path / "other.sqlite") as other:
        store.put(row({"k": 1}))
        assert other.put(store.rows()[0])
        assert other.rows() == store.rows()


def test_rows_are_ordered_independently_of_completion(tmp_path):
    trials = [
        {"data": d, "k": k}
        for d in ("b", "a", "ä")
        for k in (2.5, 10, 1, "auto", "1", None, [10, 1], [2], [10], {"a": 1})
    ]
    tables = []
    for seed in range(5):
        shuffled = random.Random(seed).sample(trials, len(trials))
        with Store(tmp_path / f"{seed}.sqlite") as store:
            for trial in shuffled:
                store.put(row(trial))
            tables.append(store.rows())
    assert all(table == tables[0] for table in tables)
    assert [(found.trial["data"], found.trial["k"]) for found in tables[0]] == [
        (data, k) for data in ("a", "b", "ä") for k in (None, 1, 2.5, 10, "1", "auto", [2], [10], [10, 1], {"a": 1})
    ]


def test_key_is_the_hash_of_canonical_json():
    import hashlib

    trial = {"z": 1, "a": {"y": [1.5, "ü"], "b": None}}
    text = '{"a":{"b":null,"y":[1.5,"ü"]},"z":1}'
    assert trial_key(trial) == hashlib.sha256(text.encode()).hexdigest()


def test_key_depends_on_content_not_on_types():
    trial = {"a": 1, "b": [1, 2.5]}
    assert trial_key({"b": (1, 2.5), "a": 1}) == trial_key(trial)
    assert trial_key({"b": [np.int64(1), np.float64(2.5)], "a": np.int32(1)}) == trial_key(trial)
    for other in ({"a": 1}, {"a": 1, "b": [2.5, 1]}, {"a": "1", "b": [1, 2.5]}, {"a": 1.0, "b": [1, 2.5]}):
        assert trial_key(other) != trial_key(trial)


@pytest.mark.parametrize(
    ("trial", "words"),
    [
        ({"a": math.nan}, "trial.a must be finite.*nan"),
        ({"a": {"b": [0, math.inf]}}, r"trial.a.b\[1\] must be finite.*inf"),
        ({"a": {1, 2}}, "trial.a must be .*set"),
        ({"a": np.zeros(2)}, "trial.a must be .*ndarray"),
        ({1: "a"}, "names must be text"),
    ],
)
def test_trials_that_have_no_canonical_form(path, trial, words):
    with pytest.raises((TypeError, ValueError), match=words):
        trial_key(trial)
    with Store(path) as store:
        with pytest.raises((TypeError, ValueError), match=words):
            store.put(row(trial))
        assert len(store) == 0


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        ({"status": "running"}, "status must be .*'running'"),
        ({"status": "failed", "reason": ""}, "reason must"),
        ({"status": "skipped", "reason": None}, "reason must"),
        ({"seconds": math.nan}, "seconds must be .*nan"),
        ({"seconds": -1}, "seconds must be .*-1"),
        ({"extra": 1}, "extra"),
    ],
)
def test_invalid_results_are_rejected(changed, words):
    with pytest.raises((ValueError, TypeError), match=words):
        row({"k": 1}, **changed)


def keyed(trials):
    return SimpleNamespace(by_key={trial_key(trial): trial for trial in trials})


# --- missing trials -------------------------------------------------------------------------------------------


def test_missing_are_the_trials_without_a_row(path):
    trials = [{"k": k} for k in range(6)]
    with Store(path) as store:
        store.put(row(trials[1]))
        store.put(row(trials[2], "failed"))
        store.put(row(trials[4], "skipped"))
        assert store.missing(keyed(trials)) == [trials[0], trials[3], trials[5]]
        assert store.missing(keyed(trials), retry_failed=True) == [trials[0], trials[2], trials[3], trials[5]]
        assert store.missing(keyed([trials[5], trials[0], trials[5]])) == [trials[5], trials[0]]


def test_a_good_result_is_never_overwritten_a_failure_may_be(path):
    with Store(path) as store:
        assert store.put(row({"k": 1}, "failed"))
        assert store.put(row({"k": 1}, scores={"accuracy": 0.9}))
        assert not store.put(row({"k": 1}, scores={"accuracy": 0.1}))
        assert not store.put(row({"k": 1}, "failed"))
        (found,) = store.rows()
    assert found.status == "ok"
    assert found.reason == ""
    assert found.scores == {"accuracy": 0.9}


# --- durability -----------------------------------------------------------------------------------------------

WRITER = """
    import sys
    from discrim.evaluation.results import Result
    from discrim.evaluation.store import Store
    path, name, count = sys.argv[1], sys.argv[2], int(sys.argv[3])
    with Store(path) as store:
        for i in range(count):
            trial = {"writer": name, "i": i}
            store.put(Result(trial, {"x": i, "pad": "p" * (i % 700)}))
            print(i, flush=True)
"""


def test_kill_9_at_random_times_loses_no_stored_result(path):
    acknowledged = 0
    moments = random.Random(7)
    for turn in range(8):
        process = script(WRITER, path, turn, 10**9)
        seen = [process.stdout.readline()]
        killer = threading.Timer(moments.uniform(0.0, 0.25), os.kill, (process.pid, signal.SIGKILL))
        killer.start()
        seen += process.stdout.readlines()
        process.wait()
        process.stderr.close()
        process.stdout.close()
        done = {int(line) for line in seen if line.endswith("\n") and line.strip()}
        with Store(path, read_only=True) as store:
            stored = {found.trial["i"] for found in store.rows() if found.trial["writer"] == str(turn)}
        assert done <= stored
        assert stored == set(range(len(stored)))
        assert len(stored) - len(done) <= 1
        acknowledged += len(done)
    assert acknowledged > 100
    with Store(path) as store:
        assert len(store) >= acknowledged
        assert store.put(row({"after": "all"}))


@pytest.mark.parametrize(("names", "count"), [("ab", 150), ("abcd", 3)])
def test_concurrent_writers_may_make_the_same_store_at_once_and_lose_no_result(path, names, count):
    writers = [script(WRITER, path, name, count) for name in names]
    for writer in writers:
        _, complaint = writer.communicate(timeout=60)
        assert writer.returncode == 0, complaint
    with Store(path) as store:
        found = {(r.trial["writer"], r.trial["i"]) for r in store.rows()}
    assert found == {(name, i) for name in names for i in range(count)}


def test_a_writer_waits_and_reports_a_timeout(path):
    with Store(path) as store, Store(path, timeout=0.2) as other:
        store._connection.execute("BEGIN IMMEDIATE")
        start = time.monotonic()
        with pytest.raises(StoreError, match=r"results\.sqlite.*in use"):
            other.put(row({"k": 1}))
        assert time.monotonic() - start >= 0.15
        store._connection.execute("COMMIT")
        assert other.put(row({"k": 1}))


def test_reading_goes_on_while_another_writes(path):
    with Store(path) as store:
        store.put(row({"k": 1}))
        with Store(path, read_only=True, timeout=0.2) as reader:
            store._connection.execute("BEGIN IMMEDIATE")
            assert len(reader) == 1
            store._connection.execute("ROLLBACK")
            store.put(row({"k": 2}))
            assert len(reader) == 2


def test_each_statement_is_a_durable_transaction(path):
    with Store(path) as store:
        assert store._connection.execute("PRAGMA journal_mode").fetchone() == ("wal",)
        assert store._connection.execute("PRAGMA synchronous").fetchone() == (1,)
        assert not store._connection.in_transaction


def test_a_full_disk_is_an_oserror_that_names_the_path_and_keeps_what_was_there(path):
    with Store(path) as store:
        store.put(row({"k": 0}))
        pages = store._connection.execute("PRAGMA page_count").fetchone()[0]
        store._connection.execute(f"PRAGMA max_page_count = {pages}")
        with pytest.raises(OSError, match="No space left") as caught:
            store.put(row({"k": 1}, scores={"pad": "x" * 100_000}))
        assert caught.value.errno == errno.ENOSPC
        assert caught.value.filename == str(path)
        assert store.missing(keyed([{"k": 1}]))
    with Store(path) as store:
        assert len(store) == 1


@pytest.mark.skipif(sys.platform == "win32", reason="needs RLIMIT_FSIZE")
def test_a_file_that_may_not_grow_is_an_oserror_that_names_the_path(path):
    process = script(
        """
        import resource, sys
        from discrim.evaluation.results import Result
        from discrim.evaluation.store import Store
        with Store(sys.argv[1]) as store:
            resource.setrlimit(resource.RLIMIT_FSIZE, (60_000, 60_000))
            for i in range(100):
                try:
                    store.put(Result({"i": i}, {"pad": "x" * 4000}))
                except OSError as error:
                    assert error.filename == sys.argv[1], repr(error)
                    break
                print(i)
            else:
                sys.exit("never full")
        """,
        path,
    )
    out, complaint = process.communicate(timeout=60)
    assert process.returncode == 0, complaint
    with Store(path) as store:
        assert {found.trial["i"] for found in store.rows()} == {int(line) for line in out.split()}
        assert len(store) > 0


# --- files that are not stores --------------------------------------------------------------------------------


def test_a_store_is_not_made_by_reading(path):
    with pytest.raises(FileNotFoundError) as caught:
        Store(path, read_only=True)
    assert caught.value.filename == str(path)
    assert not path.exists()
    path.touch()
    with pytest.raises(StoreError, match="never written"):
        Store(path, read_only=True)
    with Store(path) as store:
        assert len(store) == 0


def test_folders_and_missing_folders(tmp_path):
    with pytest.raises(IsADirectoryError, match="folder"):
        Store(tmp_path)
    with pytest.raises(FileNotFoundError, match="folder") as caught:
        Store(tmp_path / "no" / "results.sqlite")
    assert caught.value.filename == str(tmp_path / "no" / "results.sqlite")


def test_foreign_files_are_refused_and_not_touched(path):
    path.write_text("a,b\n1,2\n")
    with pytest.raises(StoreError, match=r"results\.sqlite.*store"):
        Store(path)
    assert path.read_text() == "a,b\n1,2\n"
    path.unlink()
    with sqlite3.connect(path) as foreign:
        foreign.execute("CREATE TABLE mine (x)")
    foreign.close()
    before = path.read_bytes()
    for read_only in (False, True):
        with pytest.raises(StoreError, match="store of discrim"):
            Store(path, read_only=read_only)
    assert path.read_bytes() == before
    assert os.listdir(path.parent) == [path.name]


@pytest.mark.parametrize(("version", "words"), [(3, "Upgrade discrim"), (1, "Start a new store")])
def test_other_versions_are_refused(path, version, words):
    Store(path).close()
    connection = sqlite3.connect(path)
    connection.execute(f"PRAGMA user_version = {version}")
    connection.commit()
    connection.close()
    for read_only in (False, True):
        with pytest.raises(StoreError, match=f"version {version}.*{words}"):
            Store(path, read_only=read_only)


def test_damaged_files_are_refused_or_still_whole(path):
    with Store(path) as store:
        for k in range(300):
            store.put(row({"k": k}, scores={"pad": "x" * 100}))
        known = store.rows()
    whole = path.read_bytes()
    path.write_bytes(whole[: len(whole) // 2])
    for read_only in (False, True):
        with pytest.raises(StoreError, match=r"results\.sqlite is damaged.*\.recover"):
            Store(path, read_only=read_only)
    spoils, refused = random.Random(0), 0
    for _ in range(25):
        spoiled = bytearray(whole)
        start = spoils.randrange(100, len(whole) - 600)
        spoiled[start : start + 600] = spoils.randbytes(600)
        path.write_bytes(bytes(spoiled))
        try:
            store = Store(path, read_only=True)
        except StoreError:
            refused += 1
        else:  # bytes that belong to no page in use, or the inside of a text
            store.close()
    assert refused > 12
    path.write_bytes(whole)
    with Store(path) as store:
        assert store.rows() == known


@pytest.mark.parametrize(
    "change",
    [
        "scores = '{broken'",
        "scores = '{\"accuracy\": 0.6}'",
        "seconds = 0.26",
        "status = 'failed'",
        "reason = 'because'",
        "notes = '[\"x\"]'",
        "versions = '{}'",
        "trial = '{\"k\":2}'",
        "key = 'other'",
        "scores = x'00ff'",
    ],
)
def test_a_row_that_was_changed_is_named_and_never_a_result(path, change):
    with Store(path) as store:
        store.put(row({"k": 1}))
        store.put(row({"k": 7}))
        store._connection.execute(f"UPDATE results SET {change} WHERE key = ?", (trial_key({"k": 1}),))
        with pytest.raises(StoreError, match=r"results\.sqlite.*damaged.*row"):
            store.rows()


def test_a_key_that_is_not_its_trials_is_damage_even_with_a_digest_of_its_own(path):
    with Store(path) as store:
        store.put(row({"k": 1}))
        columns = list(store._connection.execute("SELECT * FROM results").fetchone())
        columns[0] = trial_key({"k": 2})
        columns[-1] = store_module._digest(*columns[:-1])
        store._connection.execute("DELETE FROM results")
        store._connection.execute(f"INSERT INTO results VALUES ({', '.join('?' * len(columns))})", columns)
        with pytest.raises(StoreError, match="was changed"):
            store.rows()


def test_every_flipped_bit_in_the_text_of_a_row_is_detected(path):
    with Store(path) as store:
        for k in range(40):
            store.put(row({"k": k, "method": "pca"}, scores={"accuracy": k / 40, "pad": "x" * 50}))
        store._connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        known = store.rows()
    whole, spoils, seen = path.read_bytes(), random.Random(1), 0
    for _ in range(300):
        spoiled = bytearray(whole)
        at = spoils.randrange(200, len(whole))
        spoiled[at] ^= 1 << spoils.randrange(8)
        path.write_bytes(bytes(spoiled))
        try:
            with Store(path, read_only=True) as store:
                found = store.rows()
        except StoreError:
            seen += 1
        else:
            assert found == known  # a byte that belongs to no row
    assert seen > 100


def test_damage_that_sqlite_cannot_describe_is_reported(path):
    with Store(path) as store:
        store.put(row({"k": 1}))
        store._connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    whole = path.read_bytes()
    start = whole.index(b"CREATE TABLE")
    for at in range(start, start + 60):
        path.write_bytes(whole[:at] + b"\xd5" + whole[at + 1 :])
        with contextlib.suppress(StoreError), Store(path, read_only=True) as store:
            assert len(store.rows()) == 1  # a byte that does not matter


def test_facts_of_a_run_are_replaced_and_checked(path):
    with Store(path) as store:
        facts = RunFacts(("a", "b"), np.array([0, 1, 1]), 3)
        store.put_run("one", facts)
        store.put_run("one", replace(facts, n_splits=5))
        assert [found.n_splits for found in store.runs().values()] == [5]
        store._connection.execute("UPDATE runs SET about = replace(about, '5', '6')")
        with pytest.raises(StoreError, match=r"damaged.*'one'"):
            store.runs()


def test_reading_from_a_read_only_folder(path):
    with Store(path) as store:
        store.put(row({"k": 1}))
    path.parent.chmod(0o555)
    path.chmod(0o444)
    try:
        with Store(path, read_only=True) as store:
            assert len(store) == 1
            with pytest.raises(PermissionError):
                store.put(row({"k": 2}))
    finally:
        path.parent.chmod(0o755)


def test_reading_leaves_no_helper_files_in_a_folder_that_takes_none(path, monkeypatch):
    with Store(path) as store:
        store.put(row({"k": 1}))
    monkeypatch.setattr(os, "access", lambda *_: False)
    with Store(path, read_only=True) as store:
        assert len(store) == 1
        assert os.listdir(path.parent) == [path.name]


def test_names_with_special_characters_of_urls(tmp_path):
    path = tmp_path / "a?mode=memory#100% ü.sqlite"
    with Store(path) as store:
        store.put(row({"k": 1}))
    with Store(path, read_only=True) as store:
        assert len(store) == 1
    assert path.exists()


# --- one run at a time ----------------------------------------------------------------------------------------

HOLDER = """
    import sys, time
    from discrim.evaluation.run import run_lock
    with run_lock(sys.argv[1]):
        print("held", flush=True)
        time.sleep(float(sys.argv[2]))
"""


def test_a_second_run_is_refused_and_the_lock_dies_with_its_process_by_kill_9(path):
    holder = script(HOLDER, path, 60)
    try:
        assert holder.stdout.readline() == "held\n"
        start = time.monotonic()
        with pytest.raises(StoreInUseError, match=r"results\.sqlite"), run_lock(path, wait=0.3):
            pass
        assert 0.3 <= time.monotonic() - start < 30
    finally:
        os.kill(holder.pid, signal.SIGKILL)
        holder.communicate()
    with run_lock(path):
        pass


def test_waiting_ends_when_the_other_run_does(path):
    holder = script(HOLDER, path, 0.5)
    assert holder.stdout.readline() == "held\n"
    with run_lock(path, wait=120):
        pass
    assert holder.wait(timeout=120) == 0
    holder.communicate()


def test_one_process_cannot_lock_twice_and_trying_keeps_the_lock(path):
    with run_lock(path):
        with pytest.raises(StoreInUseError), run_lock(path):
            pass
        other = script(HOLDER, path, 0)
        assert other.communicate(timeout=120)[0] == ""
        assert other.returncode != 0
    with run_lock(path):
        pass


def test_links_to_one_store_share_its_lock(path, tmp_path):
    path.touch()
    (tmp_path / "link").symlink_to(path)
    with run_lock(path), pytest.raises(StoreInUseError), run_lock(tmp_path / "link"):
        pass


def test_a_lock_that_is_a_link_to_something_else_is_not_followed(path, tmp_path):
    precious = tmp_path / "precious"
    precious.write_text("mine")
    path.with_name(path.name + ".lock").symlink_to(precious)
    with pytest.raises(OSError, match="lock"), run_lock(path):
        pass
    assert precious.read_text() == "mine"


def test_rows_are_plain_json_for_others_to_read(path):
    with Store(path) as store:
        store.put(row({"k": 1, "name": "ü"}))
    connection = sqlite3.connect(path)
    (trial,) = connection.execute("SELECT trial FROM results").fetchone()
    connection.close()
    assert json.loads(trial) == {"k": 1, "name": "ü"}


def test_facts_of_a_run_are_read_as_written(path):
    codes, some = np.array([0, 1, 1, 0]), {"groups": np.array([2, 0, 1, 1]), "sample": np.array([5, 7, 8, 9])}
    plain = RunFacts(("a", "b"), codes, 3, n_features=2, cells=5, n_rows=4)
    more = replace(plain, **some, weights=np.array([0.5, 1, 0, 2]))
    with Store(path) as store:
        store.put_run("plain", plain)
        store.put_run("more", more)
        kept = store.runs()
    for name, facts in (("plain", plain), ("more", more)):
        for back in (kept[name], RunFacts.read(facts.written() | {"of a later version": 1})):
            for field, value in vars(facts).items():
                assert type(getattr(back, field)) is type(value), field
                np.testing.assert_array_equal(getattr(back, field), value)
