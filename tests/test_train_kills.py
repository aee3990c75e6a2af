"""kill -9 at random moments of a whole run: of start-up, rollout, update, checkpoint and finish. Nothing is lost twice.

Every moment is drawn from a fixed seed; where it falls in the work depends on the machine, which is the point.
"""

import json
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from subprocess import DEVNULL, PIPE

import psutil
import pyarrow.parquet as pq
import pytest
from safetensors import safe_open
from test_pipeline import metrics, settings, ulorl, weights

from ulorl.report.metrics import read_metrics

STEPS, KILLS = 48, 20
CHANGES = {"train.steps": str(STEPS), "train.checkpoint_every": "1", "train.keep_checkpoints": "2"}
SERVER = Path(__file__).with_name("warm_starts.py")
POLL_S, PATIENCE_S = 0.002, 1800.0


@dataclass(frozen=True)
class Run:
    """The directory of a run while it is made, as it is on disk at this moment."""

    path: Path

    def lines(self) -> int:
        file = self.path / "metrics.jsonl"
        return len(file.read_bytes().splitlines()) if file.exists() else 0

    def checkpoint(self) -> int:
        """Step of the latest checkpoint that carries its name; 0 without one."""
        return max((int(one.name[5:]) for one in (self.path / "checkpoints").glob("step_*")), default=0)

    def half_checkpoint(self) -> int:
        """Step of a checkpoint that is being written."""
        return max((int(one.name[6:12]) for one in (self.path / "checkpoints").glob(".step_*.tmp")), default=0)

    def rollouts(self) -> int:
        return max((int(one.stem[5:]) for one in (self.path / "rollouts").glob("step_*.parquet")), default=0)


Moment = tuple[str, Callable[[Run], Callable[[], bool]], float]
"""What is waited for, given how things are at the start, and the longest time after it: seconds, or for "at any time"
so many times what a start takes."""

AT_ANY_TIME: Moment = ("at any time", lambda run: lambda: True, 1.2)
AFTER_A_LINE: Moment = ("after a step's metrics", lambda run: _grows(run.lines), 0.5)
IN_A_CHECKPOINT: Moment = ("in a checkpoint", lambda run: _grows(run.half_checkpoint), 0.15)
AFTER_A_CHECKPOINT: Moment = ("after a checkpoint", lambda run: _grows(run.checkpoint), 0.3)
AFTER_ROLLOUTS: Moment = ("after rollouts", lambda run: _grows(run.rollouts), 0.05)
AT_THE_END: Moment = ("at the end", lambda run: lambda: run.lines() == STEPS, 0.4)
MOMENTS = [AT_ANY_TIME] * 5 + [AFTER_A_LINE] * 4 + [IN_A_CHECKPOINT] * 5 + [AFTER_A_CHECKPOINT] * 3
MOMENTS += [AFTER_ROLLOUTS] * 2


def _grows(count: Callable[[], int]) -> Callable[[], bool]:
    """Whether a count that falls at a restart has grown since it was last looked at."""
    last = [count()]

    def grew() -> bool:
        now = count()
        before, last[0] = last[0], now
        return now > before

    return grew


@pytest.mark.slow
@pytest.mark.engine
@pytest.mark.timeout(7200)
def test_twenty_kills_at_random_moments_change_nothing(tmp_path, request):
    curated = tmp_path / "curate"
    assert ulorl("curate", "quickstart:60", "-o", str(curated)).returncode == 0
    whole, killed = tmp_path / "whole", tmp_path / "killed"
    options = settings(tmp_path, **CHANGES)
    starts = WarmStarts(tmp_path / "errors.txt")
    request.addfinalizer(starts.close)
    started = time.time()
    took = starts.kill(["train", "--problems", str(curated), "-o", str(whole), *options], lambda: False, 0)
    start_s = (whole / "rollouts" / "step_000001.parquet").stat().st_mtime - started
    print(f"\nuninterrupted: {STEPS} steps in {took:.1f} s, the first rollout after {start_s:.1f} s", flush=True)
    expected = metrics(whole)
    assert [line["step"] for line in expected] == list(range(1, STEPS + 1))

    command = ["train", "--problems", str(curated), "-o", str(killed), *options]
    chance = random.Random(20)
    moments = [*chance.sample(MOMENTS, len(MOMENTS)), AT_THE_END]
    assert len(moments) == KILLS
    run = Run(tmp_path / "killed.partial")
    for number, (what, condition, longest) in enumerate(moments, 1):
        before, delay = run.checkpoint(), chance.uniform(0, longest * start_s if what == AT_ANY_TIME[0] else longest)
        seconds = starts.kill(command, condition(run), delay)
        if killed.exists():
            assert what == AT_THE_END[0], f"kill {number}: the run ended before it; it needs more steps"
            break
        after = run.checkpoint()
        print(
            f"kill {number:2d}: {what} + {delay:.3f} s, {seconds:.1f} s old; checkpoint {before} -> {after}", flush=True
        )
        assert after >= before, "progress was lost"
        if what == AFTER_A_CHECKPOINT[0]:
            assert after > before, "a checkpoint that was there is not"
        check_what_is_there(run.path, expected)

    command = [sys.executable, "-m", "ulorl", *command]
    done = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE_S, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
    assert metrics(killed) == expected
    assert weights(killed) == weights(whole)
    for step in range(1, STEPS + 1):
        name = f"rollouts/step_{step:06d}.parquet"
        assert pq.read_table(killed / name).equals(pq.read_table(whole / name)), name
    assert names(killed) == names(whole), "something partial is left"


def names(path: Path) -> list[str]:
    """Every file of a run, but TensorBoard's: each attempt has one of its own."""
    return sorted(str(one.relative_to(path)) for one in path.rglob("*") if "tfevents" not in one.name)


class WarmStarts:
    """Starts runs one after another, without the seconds of importing (``warm_starts.py``)."""

    def __init__(self, errors: Path) -> None:
        self._errors = errors
        self._server = subprocess.Popen([sys.executable, SERVER], stdin=PIPE, stdout=PIPE, stderr=DEVNULL, text=True)
        assert self._server.stdin is not None and self._server.stdout is not None
        assert self._server.stdout.readline() == "ready\n"

    def kill(self, arguments: list[str], condition: Callable[[], bool], delay: float) -> float:
        """Start a run, wait for the condition and the delay, and kill it; seconds that it lived."""
        print(json.dumps([arguments, str(self._errors)]), file=self._server.stdin, flush=True)
        process, started = int(self._server.stdout.readline()), time.monotonic()
        while is_alive(process) and not condition():
            assert time.monotonic() - started < PATIENCE_S, "the moment did not come"
            time.sleep(POLL_S)
        end = time.monotonic() + delay
        while is_alive(process) and time.monotonic() < end:
            time.sleep(POLL_S)
        if is_alive(process):
            os.kill(process, signal.SIGKILL)
        lived, code = time.monotonic() - started, int(self._server.stdout.readline())
        assert code in (0, -signal.SIGKILL), self._errors.read_text()[-3000:]
        return lived

    def close(self) -> None:
        for child in psutil.Process(self._server.pid).children(recursive=True):
            child.kill()
        self._server.kill()
        self._server.communicate()


def is_alive(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    return True


def check_what_is_there(path: Path, expected: list[dict]) -> None:
    """Whatever carries its final name is whole, and what it should be."""
    for folder in (path / "checkpoints").glob("step_*"):
        state = json.loads((folder / "trainer.json").read_text())
        assert folder.name == f"step_{state['step']:06d}"
        with safe_open(folder / "model" / "model.safetensors", framework="pt") as tensors:
            assert all(tensors.get_tensor(name).isfinite().all() for name in tensors.keys())  # noqa: SIM118
        assert (folder / "model" / "config.json").is_file()
        pq.read_table(folder / "pool.parquet")
        assert any((folder / "state").rglob("*.pt"))
    for file in (path / "rollouts").glob("step_*.parquet"):
        pq.read_table(file)
    if (path / "metrics.jsonl").exists():
        steps = [int(row["step"]) for row in read_metrics(path / "metrics.jsonl")]
        assert steps == list(range(1, len(steps) + 1))
        assert metrics_of(path, len(steps)) == expected[: len(steps)]


def metrics_of(path: Path, whole_lines: int) -> list[dict]:
    """The lines of a run that was killed, perhaps in the middle of one."""
    lines = (path / "metrics.jsonl").read_text().splitlines()[:whole_lines]
    kept = [json.loads(line) for line in lines]
    return [{key: value for key, value in line.items() if not key.startswith(("time/", "memory/"))} for line in kept]
