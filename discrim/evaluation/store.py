"""Store of results: one SQLite file, one transaction per finished trial.

A result is on disk once `put` returns; it survives the end of the process, also by kill −9. There is no "running" flag
and nothing to clean up after a crash: the state of a run is the set of its rows, and a rerun does the missing trials.
The key of a row is the hash of its trial, so a trial is never stored twice. Each row has a digest of its values: a row
that does not match it, or whose key is not its trial's, is reported as damaged. A second table has the facts that the
trials of a run share. A power failure may lose the rows of the last moments, never the file.
"""

from __future__ import annotations

import errno
import hashlib
import json
import os
import sqlite3
import time
from collections.abc import Collection, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from discrim.evaluation.results import Result, RunFacts, canonical_json, plain_value, sort_key

if TYPE_CHECKING:  # a process that only reads or writes results starts without the methods
    from discrim.evaluation.plan import Grid

_APPLICATION = 0x64736372  # "dscr" in the header of the file
_VERSION = 2
_FIELDS = ("trial", "scores", "seconds", "status", "reason", "notes", "versions")
_JSON = ("trial", "scores", "notes", "versions")
_SCHEMA = (
    """
    CREATE TABLE results (
        key TEXT PRIMARY KEY, trial TEXT NOT NULL, scores TEXT NOT NULL, seconds REAL NOT NULL,
        status TEXT NOT NULL CHECK (status IN ('ok', 'failed', 'skipped')), reason TEXT NOT NULL,
        notes TEXT NOT NULL, versions TEXT NOT NULL, digest TEXT NOT NULL
    ) WITHOUT ROWID
    """,
    "CREATE TABLE runs (key TEXT PRIMARY KEY, about TEXT NOT NULL, digest TEXT NOT NULL) WITHOUT ROWID",
)
# A successful trial is never overwritten; a failed one may succeed the next time.
_PUT = """
    INSERT INTO results VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)
    ON CONFLICT (key) DO UPDATE SET scores = excluded.scores, seconds = excluded.seconds, status = excluded.status,
        reason = excluded.reason, notes = excluded.notes, versions = excluded.versions, digest = excluded.digest
    WHERE results.status <> 'ok'
"""
_RESCUE = (
    " Start a new store; the command .recover of sqlite3 may save rows of the old one. Do not copy or change the "
    "file while a run writes to it."
)


class StoreError(Exception):
    """Error: a file is not a store of this version, is damaged, or stays in use by another process."""


class Store(AbstractContextManager["Store"]):
    """Results in the file `path`, which is created if it does not exist.

    read_only : True for reports
    timeout : seconds to wait while another process writes
    """

    def __init__(self, path: str | os.PathLike[str], *, read_only: bool = False, timeout: float = 30.0) -> None:
        self.path, self.read_only = Path(path), read_only
        _require_sqlite_or_new(self.path, read_only)
        with self._explained():
            self._connection = self._connect(timeout)
            try:
                self._require_own()
                if not read_only:
                    self._prepare(timeout)
                (verdict,) = self._connection.execute("PRAGMA quick_check(1)").fetchone()
                if verdict != "ok":
                    raise StoreError(f"{self.path} is damaged ({verdict}).{_RESCUE}")
            except BaseException:
                self._connection.close()
                raise

    def put(self, result: Result) -> bool:
        """Store a result; return False if the trial was stored before with status ok."""
        values = _as_columns(result)
        with self._explained():
            return self._connection.execute(_PUT, values).rowcount > 0

    def missing(self, grid: Grid, *, retry_failed: bool = False) -> list[dict[str, Any]]:
        """Return the trials without a row in their order; with `retry_failed` also those that failed."""
        unwanted = " WHERE status <> 'failed'" if retry_failed else ""
        with self._explained():
            done = {key for (key,) in self._connection.execute(f"SELECT key FROM results{unwanted}")}
        return [trial for key, trial in grid.by_key.items() if key not in done]

    def rows_of(self, grid: Grid) -> list[Result]:
        """Return the results of the trials of a grid."""
        return self.rows(grid.by_key.keys())

    def rows(self, keys: Collection[str] | None = None) -> list[Result]:
        """Return all results, or those with these keys, sorted by trial."""
        with self._explained():
            found = self._connection.execute(f"SELECT key, {', '.join(_FIELDS)}, digest FROM results ORDER BY key")
            rows = [self._row(*values) for values in found if keys is None or values[0] in keys]
        return sorted(rows, key=lambda row: sort_key(row.trial))

    def put_run(self, key: str, facts: RunFacts) -> None:
        """Store the facts of a run; facts with the same key are replaced."""
        text = canonical_json(facts.written())
        with self._explained():
            self._connection.execute("INSERT OR REPLACE INTO runs VALUES (?, ?, ?)", (key, text, _digest(key, text)))

    def runs(self) -> dict[str, RunFacts]:
        """Return the facts of every run by its key."""
        with self._explained():
            found = self._connection.execute("SELECT key, about, digest FROM runs").fetchall()
        for key, about, digest in found:
            if _digest(key, about) != digest:
                raise StoreError(f"{self.path} is damaged: the facts of the run {key!r} were changed.{_RESCUE}")
        return {key: RunFacts.read(json.loads(about)) for key, about, _ in found}

    def _row(self, key: Any, *values: Any) -> Result:
        *columns, digest = values
        if _digest(key, *columns) != digest or hashlib.sha256(columns[0].encode()).hexdigest() != key:
            trial = str(columns[0])[:200]
            raise StoreError(f"{self.path} is damaged: the row {key!r} was changed. Its trial: {trial}{_RESCUE}")
        row = dict(zip(_FIELDS, columns, strict=True))
        return Result(**row | {name: json.loads(row[name]) for name in _JSON})

    def __len__(self) -> int:
        with self._explained():
            return int(self._connection.execute("SELECT count(*) FROM results").fetchone()[0])

    def close(self) -> None:
        self._connection.close()

    def __exit__(self, *stop: object) -> None:
        self.close()

    def _connect(self, timeout: float) -> sqlite3.Connection:
        # isolation_level=None: each statement is its own transaction, committed when it returns.
        location = self.path.absolute().as_uri()
        if not self.read_only:
            return sqlite3.connect(f"{location}?mode=rwc", uri=True, timeout=timeout, isolation_level=None)
        # A read-only folder cannot hold the helper files of SQLite; without a log none are needed.
        log = self.path.with_name(self.path.name + "-wal")
        still = not os.access(self.path.absolute().parent, os.W_OK) and not log.exists()
        mode = "immutable=1" if still else "mode=ro"
        return sqlite3.connect(f"{location}?{mode}", uri=True, timeout=timeout, isolation_level=None)

    def _require_own(self) -> None:
        # Read in one transaction, because another process could create the table in between.
        self._connection.execute("BEGIN")
        application, version = self._pragma("application_id"), self._pragma("user_version")
        used = self._connection.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]
        self._connection.execute("COMMIT")
        if application == _APPLICATION and version == _VERSION:
            return
        if application == _APPLICATION:
            raise StoreError(
                f"{self.path} must be a store of version {_VERSION}; got version {version}. "
                f"{'Upgrade discrim' if version > _VERSION else 'Start a new store'} to use it."
            )
        if application or used:
            raise StoreError(f"{self.path} must be a store of discrim; got another database. Name another file.")
        if self.read_only:
            raise StoreError(f"{self.path} has no results: it was never written to.")

    def _prepare(self, timeout: float) -> None:
        """Set the write-ahead log and create the tables; safe if two processes do it at once."""
        self._patiently("PRAGMA journal_mode = WAL", timeout)
        # The log is synced when it is merged into the file, not at each commit: 0.2 ms a row instead of 4.
        self._connection.execute("PRAGMA synchronous = NORMAL")
        if self._pragma("application_id") == _APPLICATION:
            return
        self._connection.execute("BEGIN IMMEDIATE")
        try:
            if self._pragma("application_id") != _APPLICATION:
                for statement in _SCHEMA:
                    self._connection.execute(statement)
                self._connection.execute(f"PRAGMA user_version = {_VERSION}")
                self._connection.execute(f"PRAGMA application_id = {_APPLICATION}")
            self._connection.execute("COMMIT")
        except BaseException:
            if self._connection.in_transaction:
                self._connection.execute("ROLLBACK")
            raise

    def _patiently(self, statement: str, timeout: float) -> None:
        """Repeat a change of the journal mode, which SQLite rejects at once while another process writes."""
        deadline = time.monotonic() + timeout
        while True:
            try:
                self._connection.execute(statement)
                return
            except sqlite3.OperationalError as error:
                if error.sqlite_errorcode & 0xFF != sqlite3.SQLITE_BUSY or time.monotonic() > deadline:
                    raise
                time.sleep(0.01)

    def _pragma(self, name: str) -> int:
        return int(self._connection.execute(f"PRAGMA {name}").fetchone()[0])

    @contextmanager
    def _explained(self) -> Iterator[None]:
        """Translate errors of SQLite into errors that name the file: OSError for a full disk, else StoreError."""
        try:
            yield
        except sqlite3.Error as error:
            code = getattr(error, "sqlite_errorcode", 0) & 0xFF
            if code in _OF_SYSTEM:
                number, words = _OF_SYSTEM[code]
                raise OSError(number, words.format(error=error), str(self.path)) from error
            raise StoreError(_OF_STORE.get(code, "{path}: {error}").format(path=self.path, error=error)) from error
        except UnicodeDecodeError as error:  # the message of SQLite quotes damaged bytes
            raise StoreError(f"{self.path} is damaged ({error}).{_RESCUE}") from error


# messages for errors of SQLite: of the system, with its number, and of the store itself
_OF_SYSTEM = {
    sqlite3.SQLITE_FULL: (errno.ENOSPC, "No space left for the results"),
    sqlite3.SQLITE_IOERR: (errno.EIO, "Results could not be read or written ({error}); the disk may be full"),
    sqlite3.SQLITE_READONLY: (errno.EACCES, "Results cannot be written here"),
    sqlite3.SQLITE_CANTOPEN: (errno.ENOENT, "The store cannot be opened or created here"),
}
_IN_USE = "{path} is in use by another process, which did not release it in time."
_OF_STORE = {
    sqlite3.SQLITE_BUSY: _IN_USE,
    sqlite3.SQLITE_LOCKED: _IN_USE,
    sqlite3.SQLITE_NOTADB: "{path} is not a store of discrim.",
    sqlite3.SQLITE_CORRUPT: "{path} is damaged ({error})." + _RESCUE,
}


def _require_sqlite_or_new(path: Path, read_only: bool) -> None:
    """Raise an error for a wrong path before SQLite opens or writes to it."""
    if path.is_dir():
        raise IsADirectoryError(errno.EISDIR, "A store is a file, not a folder", str(path))
    if not path.exists():
        if read_only:
            raise FileNotFoundError(errno.ENOENT, "There is no store of results", str(path))
        if not path.absolute().parent.is_dir():
            raise FileNotFoundError(errno.ENOENT, "The folder for the store does not exist", str(path))
        return
    with open(path, "rb") as handle:
        head = handle.read(16)
    if head and head != b"SQLite format 3\0":
        raise StoreError(f"{path} must be a store of discrim; it begins with {head[:12]!r}. Name another file.")


def _as_columns(result: Result) -> tuple[Any, ...]:
    """Return the values of a result in the order of the columns."""
    trial = canonical_json(result.trial)
    key = hashlib.sha256(trial.encode()).hexdigest()
    # Scores may be NaN or infinite; the description of a trial may not.
    scores = json.dumps(plain_value(result.scores, "scores", finite=False), sort_keys=True, ensure_ascii=False)
    notes = json.dumps(plain_value(result.notes, "notes"), ensure_ascii=False)
    seconds, versions = float(result.seconds), canonical_json(result.versions)
    columns = (key, trial, scores, seconds, result.status, result.reason, notes, versions)
    return *columns, _digest(*columns)


def _digest(*columns: Any) -> str:
    """Return the SHA-256 of the values with their bounds and types, so that different lists differ."""
    return hashlib.sha256(json.dumps(columns, ensure_ascii=True, default=repr).encode()).hexdigest()
