"""The judge's cache: shared by threads and processes, whole after a kill, and never the reason for a verdict."""

from __future__ import annotations

import multiprocessing
import os
import signal
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from ulorl.errors import UserError
from ulorl.verify.judge.cache import ScoreCache, cache_key, default_cache


@pytest.fixture
def cache(tmp_path: Path) -> Path:
    return tmp_path / "judge.sqlite"


def _fill(path: Path, start: int, count: int) -> None:
    cache = ScoreCache(path)
    for number in range(start, start + count):
        cache.put({cache_key([number]): number / 1000})


def test_cache_is_shared_by_threads_and_processes(cache: Path) -> None:
    spawn = multiprocessing.get_context("spawn")
    processes = [spawn.Process(target=_fill, args=(cache, start, 100)) for start in (0, 50, 100)]
    for process in processes:
        process.start()
    mine = ScoreCache(cache)
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(lambda number: mine.put({cache_key([number]): number / 1000}), range(200, 300)))
    for process in processes:
        process.join(60)
        assert process.exitcode == 0
    keys = {number: cache_key([number]) for number in range(300)}
    found = mine.get(keys.values())
    assert found == {keys[number]: number / 1000 for number in range(300)}


def test_cache_survives_a_kill(cache: Path) -> None:
    process = multiprocessing.get_context("spawn").Process(target=_fill, args=(cache, 0, 1_000_000))
    process.start()
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline and not (cache.exists() and ScoreCache(cache).get([cache_key([20])])):
        time.sleep(0.02)
    assert process.pid is not None
    os.kill(process.pid, signal.SIGKILL)
    process.join(60)
    after = ScoreCache(cache)
    assert after.get([cache_key([n]) for n in range(21)]) == {cache_key([n]): n / 1000 for n in range(21)}
    after.put({"new": 0.5})
    assert after.get(["new"]) == {"new": 0.5}


def test_cache_that_cannot_be_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    bad = tmp_path / "bad.sqlite"
    bad.write_bytes(b"this is no database" * 100)
    with pytest.raises(UserError, match=r"verify\.judge\.cache"):
        ScoreCache(bad)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert default_cache() == tmp_path / "ulorl" / "judge.sqlite"


def test_a_cache_that_breaks_costs_time_alone(cache: Path) -> None:
    scores = ScoreCache(cache)
    scores.put({"a": 0.5})
    cache.write_bytes(b"garbage" * 1000)
    assert scores.get(["a"]) in ({}, {"a": 0.5})
    scores.put({"b": 0.5})
    scores.close()
    scores.close()
