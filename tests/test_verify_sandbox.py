"""The pool of killable worker processes, with workers that behave badly on request."""

from __future__ import annotations

import contextlib
import gc
import json
import os
import pickle
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from ulorl.verify.symbolic.pool import Failure, WorkerPool
from ulorl.verify.symbolic.process import Limits, worker_command

BAD_WORKER = """
import json, os, sys, time, signal
signal.signal(signal.SIGPROF, signal.SIG_DFL)
print(json.dumps({"ready": True}), flush=True)
for line in sys.stdin:
    request = json.loads(line)
    if "nap" in request:
        time.sleep(request["nap"])
    if "spin" in request:
        signal.setitimer(signal.ITIMER_PROF, 0.2)
        while True:
            pass
    if "flood" in request:
        while True:
            sys.stdout.write("x" * 100_000)
    if "garbage" in request:
        print("not json")
    if "kill" in request:
        os.kill(os.getpid(), signal.SIGKILL)
    if "exhausted" in request:
        request = {"failed": "out of memory"}
    print(json.dumps(request | {"pid": os.getpid()}), flush=True)
"""


@pytest.fixture
def script(tmp_path: Path) -> Path:
    path = tmp_path / "bad_worker.py"
    path.write_text(BAD_WORKER)
    return path


@pytest.fixture
def pool(script: Path) -> Iterator[WorkerPool]:
    pool = WorkerPool([sys.executable, "-S", str(script)], Limits(workers=2, seconds=0.5, memory_mib=200))
    yield pool
    pool.close()


def reasons(replies: list[object]) -> list[str | None]:
    return [reply.reason if isinstance(reply, Failure) else None for reply in replies]


def children() -> set[int]:
    return {child.pid for child in psutil.Process().children(recursive=True)}


def gone(pids: set[int], seconds: float = 5.0) -> bool:
    """Whether all of ``pids`` have ended, waiting up to ``seconds``."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        alive = {pid for pid in pids if psutil.pid_exists(pid) and psutil.Process(pid).status() != psutil.STATUS_ZOMBIE}
        if not alive:
            return True
        time.sleep(0.05)
    return False


def test_replies_come_in_the_order_of_the_requests(pool: WorkerPool) -> None:
    replies = pool.run([{"n": n} for n in range(200)])
    assert [reply["n"] for reply in replies if isinstance(reply, dict)] == list(range(200))
    assert len({reply["pid"] for reply in replies if isinstance(reply, dict)}) == 2


def test_whatever_a_worker_does_costs_only_its_own_request(pool: WorkerPool) -> None:
    bad = [{"nap": 60}, {"spin": 1}, {"flood": 1}, {"garbage": 1}, {"kill": 1}, {"exhausted": 1}]
    requests = [request for pair in zip(bad, [{"n": n} for n in range(6)], strict=True) for request in pair]
    start = time.monotonic()
    replies = pool.run(requests)
    assert time.monotonic() - start < 10
    assert reasons(replies)[::2] == [
        "timed out", "timed out", "output flood", "unreadable reply", "worker died", "out of memory",
    ]  # fmt: skip
    assert [reply["n"] for reply in replies[1::2] if isinstance(reply, dict)] == list(range(6))


def test_workers_killed_from_outside_in_the_middle_of_a_batch(pool: WorkerPool) -> None:
    pool.warm_up()
    stop = threading.Event()

    def murderer() -> None:
        while not stop.wait(0.05):
            for worker in list(pool._alive)[:1]:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(worker.process.pid, signal.SIGKILL)

    thread = threading.Thread(target=murderer)
    thread.start()
    try:
        replies = pool.run([{"n": n, "nap": 0.01} for n in range(100)])
    finally:
        stop.set()
        thread.join()
    assert len(replies) == 100
    for n, reply in enumerate(replies):
        assert isinstance(reply, Failure) or reply["n"] == n
    assert 0 < sum(isinstance(reply, Failure) for reply in replies) < 100
    assert {reply.reason for reply in replies if isinstance(reply, Failure)} <= {"worker died"} | {
        reason for reason in reasons(replies) if reason and reason.startswith("no worker process starts")
    }


def test_a_request_that_does_not_fit_is_refused(pool: WorkerPool) -> None:
    assert reasons(pool.run([{"x": "y" * 100_000}, {"n": 1}])) == ["too long", None]


def test_workers_that_do_not_start_are_reported_with_their_last_words() -> None:
    pool = WorkerPool([sys.executable, "-c", "raise SystemExit('no such library')"], Limits(2, 0.5, 200))
    start = time.monotonic()
    replies = pool.run([{"n": n} for n in range(50)])
    assert set(reasons(replies)) == {"no worker process starts (no such library)"}
    again = time.monotonic()
    assert set(reasons(pool.run([{"n": 1}]))) == {"no worker process starts (no such library)"}
    assert time.monotonic() - again < 0.1, "it tries again only after a while"
    assert again - start < 5


def test_a_command_that_does_not_exist_is_reported() -> None:
    pool = WorkerPool(["/no/such/interpreter"], Limits(1, 0.5, 200))
    assert all(isinstance(reply, Failure) for reply in pool.run([{"n": 1}, {"n": 2}]))


def test_workers_are_replaced_after_so_many_requests(script: Path) -> None:
    pool = WorkerPool([sys.executable, "-S", str(script)], Limits(1, 0.5, 200, requests=10))
    replies = pool.run([{"n": n} for n in range(40)])
    assert len({reply["pid"] for reply in replies if isinstance(reply, dict)}) == 4
    pool.close()


def test_many_threads_share_the_workers(pool: WorkerPool) -> None:
    results: dict[int, list[object]] = {}

    def use(number: int) -> None:
        results[number] = list(pool.run([{"n": number * 1000 + n} for n in range(50)]))

    threads = [threading.Thread(target=use, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for number in range(8):
        assert [reply["n"] for reply in results[number]] == [number * 1000 + n for n in range(50)]  # type: ignore[index]
    assert len(pool._alive) <= 2


def test_the_alarm_of_the_caller_is_left_alone(pool: WorkerPool) -> None:
    rung = []

    def handler(number: int, frame: object) -> None:
        rung.append(number)

    before = signal.signal(signal.SIGALRM, handler)
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.3)
        replies = pool.run([{"nap": 0.2, "n": n} for n in range(6)] + [{"nap": 60}])
        assert rung == [signal.SIGALRM]
        assert signal.getsignal(signal.SIGALRM) is handler
        assert reasons(replies) == [None] * 6 + ["timed out"]
        signal.setitimer(signal.ITIMER_REAL, 50)
        pool.run([{"nap": 60}])
        assert 40 < signal.getitimer(signal.ITIMER_REAL)[0] < 50
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def test_a_forked_child_gets_workers_of_its_own(pool: WorkerPool) -> None:
    mine = {reply["pid"] for reply in pool.run([{"n": n, "nap": 0.05} for n in range(4)]) if isinstance(reply, dict)}
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        status = 1
        try:
            theirs = [reply["pid"] for reply in pool.run([{"n": n} for n in range(4)]) if isinstance(reply, dict)]
            os.write(writer, json.dumps(theirs).encode())
            pool.close()
            status = 0
        finally:
            os._exit(status)
    assert os.waitpid(child, 0)[1] == 0
    theirs = set(json.loads(os.read(reader, 1000)))
    os.close(reader)
    os.close(writer)
    assert theirs and not theirs & mine
    again = {reply["pid"] for reply in pool.run([{"n": n, "nap": 0.05} for n in range(4)]) if isinstance(reply, dict)}
    assert again <= mine


def test_a_pool_that_is_locked_at_the_fork_works_in_the_child(pool: WorkerPool) -> None:
    pool.warm_up()
    with pool._changed:
        child = os.fork()
        if child == 0:
            signal.alarm(10)
            os._exit(0 if isinstance(pool.run([{"n": 1}])[0], dict) else 1)
    assert os.waitpid(child, 0)[1] == 0


def test_a_pickled_pool_starts_afresh(pool: WorkerPool) -> None:
    pool.warm_up()
    copy = pickle.loads(pickle.dumps(pool))
    assert isinstance(copy.run([{"n": 1}])[0], dict)
    copy.close()


def test_closing_ends_the_workers_and_later_requests_fail(pool: WorkerPool) -> None:
    pool.warm_up()
    workers = {worker.process.pid for worker in pool._alive}
    assert len(workers) == 2
    pool.close()
    assert gone(workers)
    assert reasons(pool.run([{"n": 1}])) == ["the workers are closed"]


def test_a_pool_that_nobody_refers_to_leaves_no_process(script: Path) -> None:
    before = children()
    pool = WorkerPool([sys.executable, "-S", str(script)], Limits(2, 0.5, 200))
    pool.warm_up()
    workers = children() - before
    assert workers
    del pool
    gc.collect()
    assert gone(workers)


def test_an_interrupted_batch_leaves_no_worker_with_work(pool: WorkerPool) -> None:
    def handler(number: int, frame: object) -> None:
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGUSR1, handler)
    threading.Timer(0.3, os.kill, (os.getpid(), signal.SIGUSR1)).start()
    try:
        with pytest.raises(KeyboardInterrupt):
            pool.run([{"nap": 0.4} for _ in range(20)])
    finally:
        signal.signal(signal.SIGUSR1, before)
    assert [reply["n"] for reply in pool.run([{"n": n} for n in range(4)]) if isinstance(reply, dict)] == [0, 1, 2, 3]


PARENT = """
import os, sys, signal, time
from ulorl.verify.symbolic.pool import WorkerPool
from ulorl.verify.symbolic.process import Limits
pool = WorkerPool([sys.executable, "-S", sys.argv[1]], Limits(2, 30, 200))
pool.warm_up()
print(*[worker.process.pid for worker in pool._alive], flush=True)
if sys.argv[2] == "sleep":
    time.sleep(60)
"""


@pytest.mark.parametrize("end", ["exit", "sleep"])
def test_workers_end_with_their_parent_however_it_ends(script: Path, end: str) -> None:
    parent = subprocess.Popen([sys.executable, "-c", PARENT, str(script), end], stdout=subprocess.PIPE, text=True)
    assert parent.stdout is not None
    workers = {int(pid) for pid in parent.stdout.readline().split()}
    assert len(workers) == 2
    if end == "sleep":
        parent.kill()
    parent.wait(20)
    parent.stdout.close()
    assert gone(workers)


def test_the_real_worker_is_limited_and_refuses_strings() -> None:
    code = """
import sys, os, json
os.dup2(2, 1)
from ulorl.verify.symbolic import service, worker
service.limit(320)
import resource
assert resource.getrlimit(resource.RLIMIT_AS)[0] == 320 << 20
try:
    bytearray(600 << 20)
    raise SystemExit("no memory limit")
except MemoryError:
    pass
worker.disarm()
import sympy
for attempt in (lambda: sympy.sympify("1+1"), lambda: sympy.Number("7"), lambda: sympy.parse_expr("1"),
                lambda: sympy.Integer(1) + "2", lambda: sympy.S("x")):
    try:
        attempt()
    except TypeError:
        continue
    raise SystemExit("a string was parsed")
for attempt in (lambda: os.system("true"), lambda: os.fork(), lambda: open("/tmp/x", "w")):
    try:
        attempt()
    except PermissionError:
        continue
    raise SystemExit("not refused")
"""
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=False)
    assert result.returncode == 0, result.stderr


def test_the_real_worker_ends_one_arithmetic_operation_that_no_signal_handler_could() -> None:
    code = """
import signal, sys
from ulorl.verify.symbolic import service, worker
service.limit(320)
signal.setitimer(signal.ITIMER_PROF, 0.3)
x = (7 ** 3_000_000) ** 3
"""
    start = time.monotonic()
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, timeout=60, check=False)
    assert result.returncode == -signal.SIGPROF
    assert time.monotonic() - start < 10


def test_the_command_imports_nothing_from_the_current_directory(tmp_path: Path) -> None:
    (tmp_path / "sympy.py").write_text("raise SystemExit('imported from the current directory')")
    limits = Limits(1, 0.8, 320)
    code = f"""
from ulorl.verify.symbolic.pool import WorkerPool
from ulorl.verify.symbolic.process import Limits
pool = WorkerPool({worker_command("ulorl.verify.symbolic.worker", limits)!r}, Limits(1, 0.8, 320))
print(pool.run([{{"ping": 1}}]))
"""
    environment = os.environ | {"PYTHONPATH": str(Path(__file__).parents[1])}
    result = subprocess.run(
        [sys.executable, "-P", "-c", code], cwd=tmp_path, env=environment, capture_output=True, text=True, check=False
    )
    assert result.stdout.strip() == "[{'ping': 1}]", result.stderr
