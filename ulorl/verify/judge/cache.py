"""Answers of judges on disk, by the hash of everything they depend on.

Invariants: a value is written whole or not at all and survives ``kill -9`` of any process; any number of threads
and processes may read and write at once (SQLite, write-ahead log); a cache that cannot be used costs time, never a
verdict. Stored are probabilities, not verdicts: thresholds may change without asking again.

Does not: expire anything (remove the file to start afresh), or work on network file systems without locks.
"""

from __future__ import annotations

import hashlib
import os
import sqlite3
import threading
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from ulorl.errors import UserError
from ulorl.files import canonical_json

_BUSY_S = 30.0
_AT_ONCE = 500
"""Keys in one SELECT; SQLite allows 999 variables."""
_TABLE = "CREATE TABLE IF NOT EXISTS scores (key TEXT PRIMARY KEY, p REAL NOT NULL) WITHOUT ROWID"


def default_cache() -> Path:
    """``ulorl/judge.sqlite`` in the user's cache directory."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "ulorl" / "judge.sqlite"


def cache_key(parts: Sequence[object]) -> str:
    """SHA-256 of JSON values, order counting."""
    return hashlib.sha256(canonical_json(list(parts)).encode()).hexdigest()


class ScoreCache:
    """Probabilities by key."""

    def __init__(self, path: Path) -> None:
        """Opens or makes the file. Raises UserError where that is impossible."""
        self.path = path
        self._lock = threading.Lock()
        self._connection: sqlite3.Connection | None = None
        self._owner = 0
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            self._connect()
        except (sqlite3.Error, OSError) as error:
            raise UserError(
                f"{path}: cannot be used as cache of the judge ({error}); set verify.judge.cache"
            ) from error

    def get(self, keys: Iterable[str]) -> dict[str, float]:
        """The probabilities there are; empty where the file cannot be read."""
        wanted = list(dict.fromkeys(keys))
        found: dict[str, float] = {}
        try:
            with self._lock:
                connection = self._connect()
                for start in range(0, len(wanted), _AT_ONCE):
                    some = wanted[start : start + _AT_ONCE]
                    marks = ",".join("?" * len(some))
                    found.update(connection.execute(f"SELECT key, p FROM scores WHERE key IN ({marks})", some))
        except sqlite3.Error:
            return {}
        return found

    def put(self, scores: Mapping[str, float]) -> None:
        """Keeps probabilities; the first one of a key stays. Silent where the file cannot be written."""
        if not scores:
            return
        try:
            with self._lock, self._connect() as connection:
                connection.executemany("INSERT OR IGNORE INTO scores VALUES (?, ?)", list(scores.items()))
        except sqlite3.Error:
            return

    def close(self) -> None:
        """Idempotent."""
        with self._lock:
            if self._connection is not None and self._owner == os.getpid():
                self._connection.close()
            self._connection = None

    def _connect(self) -> sqlite3.Connection:
        """The connection of this process: one made before a fork must not be used after it."""
        if self._connection is None or self._owner != os.getpid():
            connection = sqlite3.connect(self.path, timeout=_BUSY_S, check_same_thread=False)
            connection.execute("PRAGMA journal_mode=WAL")
            connection.execute("PRAGMA synchronous=NORMAL")
            connection.execute(_TABLE)
            self._connection, self._owner = connection, os.getpid()
        return self._connection
