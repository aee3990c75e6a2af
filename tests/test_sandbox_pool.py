"""The pool of sandbox workers: order, limits, and who ends with whom."""

from __future__ import annotations

import os
import pickle
import signal
import subprocess
import sys
import textwrap
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import cast

import psutil
import pytest

from ulorl.doctor import check_sandbox
from ulorl.errors import UserError
from ulorl.recipe import Recipe, VerifyRecipe
from ulorl.recipe_sandbox import SandboxRecipe
from ulorl.verify.sandbox import backends, pool
from ulorl.verify.sandbox.pool import Sandbox

RECIPE = SandboxRecipe(workers=2, cpu_s=1.0, wall_s=2.0, total_s=10.0, memory_mib=256, disk_mib=8, output_kib=64)


@pytest.fixture
def sandbox() -> Iterator[Sandbox]:
    with Sandbox(RECIPE) as sandbox:
        yield sandbox


def gone(pids: set[int], seconds: float = 10.0) -> bool:
    """Whether all of ``pids`` have ended, waiting up to ``seconds``."""

    def there(pid: int) -> bool:
        try:
            return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
        except psutil.NoSuchProcess:
            return False

    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        if not any(map(there, pids)):
            return True
        time.sleep(0.05)
    return False


def test_streams_and_exit_status(sandbox: Sandbox) -> None:
    limits = sandbox.limits()
    good = sandbox.script("import sys\nprint(sys.stdin.read()[::-1], file=sys.stderr)\nprint('ä')", "abc", limits)
    assert (good.how, good.status, good.output, good.errors, good.finished) == ("exit", 0, "ä\n", "cba\n", True)
    bad = sandbox.script("1 / 0", "", limits)
    assert (bad.how, bad.status, bad.finished) == ("exit", 1, False)
    assert bad.errors.endswith("ZeroDivisionError: division by zero\n")
    assert "inside" not in bad.errors, "the runner is not shown"
    for source, status in (("raise SystemExit", 0), ("raise SystemExit(7)", 7), ("raise SystemExit('no')", 1)):
        assert sandbox.script(source, "", limits).status == status
    signalled = sandbox.script("import os, signal\nos.kill(os.getpid(), signal.SIGTERM)", "", limits)
    assert (signalled.how, signalled.status) == ("signal", signal.SIGTERM)


def test_a_program_is_a_script_like_any(sandbox: Sandbox) -> None:
    source = """
import sys, atexit, threading, random, collections
from dataclasses import dataclass
@dataclass
class Point:
    x: int
assert __name__ == "__main__" and sys.modules["__main__"].Point is Point and len(sys.argv) == 1
atexit.register(lambda: print("last"))
threading.Thread(target=lambda: print("thread")).start()
with open("file", "w") as file:
    file.write("x")
assert open("file").read() == "x"
sys.stdin = iter(["a"])
print(Point(1))
"""
    outcome = sandbox.script(source, "", sandbox.limits())
    assert outcome.finished, outcome
    assert sorted(outcome.output.split()) == ["Point(x=1)", "last", "thread"]


def test_programs_leave_nothing_to_each_other(sandbox: Sandbox) -> None:
    limits = sandbox.limits()
    for _ in range(4):
        assert sandbox.script(
            "import math, os\nmath.pi = 3\nopen('x', 'w').close()\nos.environ['A'] = 'b'", "", limits
        ).finished
        check = "import math, os\nassert math.pi > 3 and not os.listdir('.') and 'A' not in os.environ"
        outcome = sandbox.script(check, "", limits)
        assert outcome.finished, outcome


def test_large_input_and_output(sandbox: Sandbox) -> None:
    text = "0123456789\n" * 300_000
    limits = sandbox.limits()
    assert sandbox.script("import sys\nprint(len(sys.stdin.read()))", text, limits).output == f"{len(text)}\n"
    assert sandbox.script("print('x' * 65000)", "", limits).output == "x" * 65000 + "\n"
    assert sandbox.script("print('x' * 70000)", "", limits).how == "output"
    odd = "\udc80\udcff\x00\n"
    assert sandbox.script("import sys\nsys.stdout.write(sys.stdin.read())", odd, limits).output == odd


def test_sets_are_in_the_same_order_in_every_worker(sandbox: Sandbox) -> None:
    source = "import time\nprint({str(n) for n in range(50)})\ntime.sleep(0.2)"
    with ThreadPoolExecutor(4) as threads:
        outputs = {one.output for one in threads.map(lambda _: sandbox.script(source, "", sandbox.limits()), range(4))}
    assert len(outputs) == 1
    assert len(sandbox._alive) == 2


def test_many_threads_get_their_own_answers(sandbox: Sandbox) -> None:
    with ThreadPoolExecutor(8) as threads:
        outcomes = threads.map(lambda n: sandbox.script("print(input())", str(n), sandbox.limits()).output, range(60))
        assert list(outcomes) == [f"{n}\n" for n in range(60)]
    assert len(sandbox._alive) <= 2


@pytest.mark.parametrize(
    ("source", "how"),
    [
        ("while True: pass", "cpu"),
        ("import time\ntime.sleep(100)", "time"),
        (
            "import os\nfor _ in range(3): os.fork()\nx = bytearray(b'x') * (200 << 20)\nimport time\ntime.sleep(100)",
            "memory",
        ),
        ("while True: print('x' * 1000)", "output"),
    ],
)
def test_limits(sandbox: Sandbox, source: str, how: str) -> None:
    if how == "memory" and sandbox.backend.mode == "landlock":
        pytest.skip("no processes")
    outcome = sandbox.script(source, "", sandbox.limits(cpu_s=0.5))
    # On a machine that is busy the wall clock may come first.
    assert outcome.how in (how, "time"), outcome


HIDDEN = """
import mmap, os
def held(make):
    try:
        return make()
    except OSError:
        return None
print(held(lambda: mmap.mmap(-1, 1 << 20)))
print(held(lambda: mmap.mmap(os.open("/dev/zero", os.O_RDWR), 1 << 20)))
own = mmap.mmap(-1, 1 << 20, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
own.write(b"x" * (1 << 20))
print(held(lambda: own.madvise(21)))  # MADV_PAGEOUT would move it to where it does not count
own.madvise(mmap.MADV_DONTNEED)
file = open("file", "w+b") if os.access(".", os.W_OK) else None
if file:
    file.truncate(1 << 16)
    mmap.mmap(file.fileno(), 1 << 16)[0] = 7  # within what the disk may hold
"""


def test_no_memory_is_to_be_had_that_counts_as_nobodys(sandbox: Sandbox) -> None:
    outcome = sandbox.script(HIDDEN, "", sandbox.limits())
    assert (outcome.output, outcome.errors, outcome.how) == ("None\n" * 3, "", "exit")


def test_naps_are_no_waiting_for_a_processor(sandbox: Sandbox) -> None:
    naps = """
import time
while True:
    time.sleep(0.15)
    end = time.process_time() + 0.011
    while time.process_time() < end: pass
"""
    outcome = sandbox.script(naps, "", sandbox.limits())
    assert outcome.how == "time"
    assert outcome.wall_s - outcome.cpu_s < 1.5 * RECIPE.wall_s + 1.0


def test_threads_that_wait_for_a_processor_do_not_sleep(sandbox: Sandbox) -> None:
    one = min(os.sched_getaffinity(0))
    beside = [subprocess.Popen([sys.executable, "-c", PINNED, str(one), "while True: pass"]) for _ in range(2)]
    try:
        source = "import threading, time\n" + textwrap.dedent("""
            def work():
                while time.process_time() < 0.8: pass
                print("done")
            thread = threading.Thread(target=work)
            thread.start()
            thread.join()
        """)
        config = RECIPE.model_copy(update={"workers": 1, "total_s": 30.0})
        everywhere = os.sched_getaffinity(0)
        os.sched_setaffinity(0, {one})
        try:
            with Sandbox(config) as alone:
                outcome = alone.script(source, "", alone.limits())
        finally:
            os.sched_setaffinity(0, everywhere)
        assert outcome.output == "done\n", outcome
    finally:
        for process in beside:
            process.kill()
            process.wait()


PINNED = "import os, sys; os.sched_setaffinity(0, {int(sys.argv[1])}); exec(sys.argv[2])"


def test_a_worker_that_is_killed_costs_nothing(sandbox: Sandbox) -> None:
    assert sandbox.script("print(1)", "", sandbox.limits()).finished
    stop = threading.Event()

    def murderer() -> None:
        killed = 0
        while not stop.wait(0.2) and killed < 3:
            for worker in list(sandbox._alive)[:1]:
                os.kill(worker.pid, signal.SIGKILL)
                killed += 1

    thread = threading.Thread(target=murderer)
    thread.start()
    try:
        outcomes = [
            sandbox.script("import time\ntime.sleep(0.05)\nprint(input())", str(n), sandbox.limits()) for n in range(20)
        ]
    finally:
        stop.set()
        thread.join()
    assert all(one.output == f"{n}\n" or one.how == "lost" for n, one in enumerate(outcomes))
    assert sum(one.how == "lost" for one in outcomes) <= 1


def test_a_killed_worker_takes_its_program_along(sandbox: Sandbox) -> None:
    _ = sandbox.backend
    (worker,) = sandbox._alive
    with ThreadPoolExecutor(1) as threads:
        waiting = threads.submit(sandbox.script, "import time\ntime.sleep(1.5)", "", sandbox.limits())
        deadline = time.monotonic() + 10
        while not (below := {one.pid for one in psutil.Process(worker.pid).children(recursive=True)}):
            assert time.monotonic() < deadline
            time.sleep(0.01)
        os.kill(worker.pid, signal.SIGKILL)
        assert gone(below)
        assert waiting.result().finished, "it was run again by another worker"


PARENT = """
import os, sys, threading, time
from ulorl.recipe_sandbox import SandboxRecipe
from ulorl.verify.sandbox.pool import Sandbox
sandbox = Sandbox(SandboxRecipe(workers=1, cpu_s=30, wall_s=60))
sandbox.script("print(1)", "", sandbox.limits())
sleeper = ("import time\\ntime.sleep(50)", "", sandbox.limits())
threading.Thread(target=sandbox.script, args=sleeper, daemon=True).start()
time.sleep(0.5)
print(*[worker.pid for worker in sandbox._alive], flush=True)
if sys.argv[1] == "sleep":
    time.sleep(60)
"""


@pytest.mark.parametrize("end", ["exit", "sleep"])
def test_workers_and_programs_end_with_their_parent_however_it_ends(end: str) -> None:
    environment = os.environ | {"PYTHONPATH": str(Path(__file__).parents[1])}
    parent = subprocess.Popen([sys.executable, "-c", PARENT, end], stdout=subprocess.PIPE, text=True, env=environment)
    assert parent.stdout is not None
    workers = {int(pid) for pid in parent.stdout.readline().split()}
    assert len(workers) == 1
    below = set()
    if end == "sleep":
        below = {child.pid for pid in workers for child in psutil.Process(pid).children(recursive=True)}
        assert below
        parent.kill()
    parent.wait(30)
    parent.stdout.close()
    assert gone(workers | below)


def test_a_forked_child_gets_workers_of_its_own(sandbox: Sandbox) -> None:
    assert sandbox.script("print(1)", "", sandbox.limits()).finished
    child = os.fork()
    if child == 0:
        status = 1
        try:
            finished = sandbox.script("print(1)", "", sandbox.limits()).finished
            sandbox.close()
            status = 0 if finished else 2
        finally:
            os._exit(status)
    assert os.waitpid(child, 0)[1] == 0
    assert sandbox.script("print(1)", "", sandbox.limits()).finished
    assert len(sandbox._alive) == 1


def test_pickled_closed_and_forgotten(sandbox: Sandbox) -> None:
    copy = pickle.loads(pickle.dumps(sandbox))
    assert copy.script("print(1)", "", copy.limits()).finished
    pids = {worker.pid for worker in copy._alive}
    copy.close()
    assert gone(pids)
    assert copy.script("print(1)", "", copy.limits()).finished, "it starts again"
    pids = {worker.pid for worker in copy._alive}
    del copy
    assert gone(pids)


def test_an_interrupted_caller_leaves_no_program(sandbox: Sandbox) -> None:
    def handler(number: int, frame: object) -> None:
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGUSR1, handler)
    _ = sandbox.backend
    threading.Timer(0.3, os.kill, (os.getpid(), signal.SIGUSR1)).start()
    try:
        with pytest.raises(KeyboardInterrupt):
            sandbox.script("import time\ntime.sleep(1.9)\nprint(1)", "", sandbox.limits())
    finally:
        signal.signal(signal.SIGUSR1, before)
    assert not sandbox._alive
    assert sandbox.script("print(2)", "", sandbox.limits()).output == "2\n"


def test_workers_are_replaced_after_so_many_programs(sandbox: Sandbox, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pool, "PROGRAMS_A_WORKER", 3)
    seen = set()
    for _ in range(7):
        assert sandbox.script("print(1)", "", sandbox.limits()).finished
        seen |= {worker.pid for worker in sandbox._alive}
    assert len(seen) == 3


def test_a_box_that_cannot_be_made_is_no_fault_of_the_program(sandbox: Sandbox) -> None:
    impossible = replace(sandbox.limits(), disk_mib=cast(int, "much"))
    for outcome in (
        sandbox.script("print(1)", "", impossible),
        sandbox.tests("def f(): return 1", "assert f() == 1", "f", impossible),
    ):
        assert outcome.how == "lost" and "before the program began" in outcome.errors
    assert sandbox.script("print(1)", "", sandbox.limits()).output == "1\n", "the worker goes on"


def test_what_cannot_be_used_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(UserError, match="no program 'no-such-python'"):
        _ = Sandbox(RECIPE.model_copy(update={"interpreter": "no-such-python"})).backend
    monkeypatch.setenv("PATH", "")
    with pytest.raises(UserError, match="there is no command nsjail"):
        _ = Sandbox(RECIPE.model_copy(update={"backend": "nsjail"})).backend
    monkeypatch.setitem(backends.ORDER, "auto", ())
    with pytest.raises(UserError, match="allow_weak"):
        _ = Sandbox(RECIPE).backend


def test_a_sandbox_that_leaks_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pool, "PROBE", "print('the network')")
    with pytest.raises(UserError, match="reaches the network"):
        _ = Sandbox(RECIPE).backend


def test_limits_follow_the_problem() -> None:
    sandbox = Sandbox(RECIPE)
    assert (sandbox.limits().cpu_s, sandbox.limits().wall_s, sandbox.limits().total_s) == (1.0, 2.0, 10.0)
    longer = sandbox.limits(cpu_s=3.0)
    assert (longer.cpu_s, longer.wall_s) == (3.0, 6.0)
    assert sandbox.limits(cpu_s=100.0).cpu_s == 10.0
    assert sandbox.limits(left_s=0.5).wall_s == 0.5


def test_the_doctor_says_which_way_works(monkeypatch: pytest.MonkeyPatch) -> None:
    found = check_sandbox(Recipe(verify=VerifyRecipe(sandbox=RECIPE)))
    assert found.status == "ok" and found.found.split(":")[0] in backends.MEANING
    monkeypatch.setitem(backends.ORDER, "auto", ())
    found = check_sandbox(Recipe())
    assert found.status == "warn" and "docs/code_sandbox.md" in found.mend
