"""The sandbox of programs: does anything get out, and how many programs a second.

    python benchmarks/sandbox.py [--modes namespaces ...] [--parts hostile ...] [--interpreter PYTHON] [--json FILE]

The hostile programs are those of the tests. After each, a canary is looked at (a secret file, a secret in the
environment, a process, three listening sockets, the interpreter, mounts), processes and files that are left are looked
for, and a good program has to pass. Throughput is measured in turns with fresh interpreters that nothing locks in, with
two programs at a time.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import time
from collections import defaultdict
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any, get_args

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

from forged_programs import FORGERIES, SQUARES
from hostile_programs import PROGRAMS
from sandbox_canary import Canary

from ulorl.errors import UserError
from ulorl.problem import Problem
from ulorl.recipe import VerifyRecipe
from ulorl.recipe_sandbox import SandboxRecipe
from ulorl.verify.sandbox import backends
from ulorl.verify.sandbox.pool import Sandbox
from ulorl.verify.tasks.base import Attempt
from ulorl.verify.tasks.code import CodeTask

LIMITS: dict[str, Any] = {
    "cpu_s": 1.0,
    "wall_s": 2.0,
    "total_s": 10.0,
    "memory_mib": 256,
    "disk_mib": 8,
    "output_kib": 64,
}
GOOD = """
from collections import Counter
import heapq
n = int(input())
heap = [(n * k) % 97 for k in range(100)]
heapq.heapify(heap)
print(sum(heapq.heappop(heap) for _ in range(10)), Counter(str(n)).most_common(1)[0][1])
"""
PARTS = ("hostile", "forged", "batch", "throughput")
AT_A_TIME, IN_A_ROUND = 2, 40
FRESH = "a fresh interpreter, not locked in"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "--modes", nargs="*", choices=get_args(backends.Mode), default=[], help="default: all that work"
    )
    parser.add_argument("--interpreter", default="", help="Python of the programs (root: one that others can read)")
    parser.add_argument("--parts", nargs="*", choices=PARTS, default=PARTS)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--json", type=Path)
    arguments = parser.parse_args()
    sandboxes = {}
    for mode in arguments.modes or ("namespaces", "bubblewrap", "nsjail", "landlock"):
        sandbox = _open(mode, arguments.interpreter)
        if sandbox is not None:
            sandboxes[mode] = sandbox
    parts: dict[str, Callable[[], Any]] = {
        "hostile": lambda: {mode: _hostile(mode, sandbox) for mode, sandbox in sandboxes.items()},
        "forged": _forged,
        "batch": _batch,
        "throughput": lambda: _throughput(sandboxes, arguments.rounds),
    }
    figures = {name: parts[name]() for name in arguments.parts}
    for sandbox in sandboxes.values():
        sandbox.close()
    if arguments.json:
        arguments.json.write_text(json.dumps(figures, indent=2) + "\n")


def _open(mode: backends.Mode, interpreter: str) -> Sandbox | None:
    backends.ORDER["auto"] = (mode,)
    asked = interpreter if mode != "namespaces" else ""
    sandbox = Sandbox(SandboxRecipe(workers=AT_A_TIME, interpreter=asked, **LIMITS))
    try:
        _ = sandbox.backend
    except UserError as error:
        print(f"{mode}: left out ({str(error)[:150]})")
        return None
    finally:
        backends.ORDER["auto"] = ("namespaces", "bubblewrap", "nsjail", "landlock")
    return sandbox


def _hostile(mode: str, sandbox: Sandbox) -> dict[str, Any]:
    """Each program alone, and what it did; by kind."""
    kinds: dict[str, dict[str, Any]] = defaultdict(lambda: {"programs": 0, "out": 0, "bad after": 0, "slowest_s": 0.0})
    print(f"\nhostile programs, {mode}")
    with Canary() as canary:
        for program in PROGRAMS:
            began = time.monotonic()
            outcome = sandbox.script(program.source, canary.facts(LIMITS["disk_mib"]), sandbox.limits())
            seconds = time.monotonic() - began
            found = canary.violations(outcome, sandbox)
            # With more time: on a machine that is busy with other things, a good program is slow.
            good = sandbox.script("print(int(input()) * 2)", "21", replace(sandbox.limits(), wall_s=60.0, total_s=60.0))
            kind = kinds[program.kind]
            kind["programs"] += 1
            kind["out"] += bool(found)
            kind["bad after"] += good.output != "42\n"
            kind["slowest_s"] = max(kind["slowest_s"], round(seconds, 1))
            if found or good.output != "42\n" or outcome.how == "lost":
                print(f"  {program.name}: {outcome.how} {outcome.status} {found} {good}")
    total = {name: sum(kind[name] for kind in kinds.values()) for name in ("programs", "out", "bad after")}
    total["slowest_s"] = max(kind["slowest_s"] for kind in kinds.values())
    for name, kind in [*kinds.items(), ("all", total)]:
        print(
            f"  {name:10} {kind['programs']:3} programs, {kind['out']} got out or left something, good program after "
            f"fails {kind['bad after']}, slowest {kind['slowest_s']:.1f} s"
        )
    return {**kinds, "all": total}


def _task() -> CodeTask:
    return CodeTask(VerifyRecipe(sandbox=SandboxRecipe(workers=AT_A_TIME, **LIMITS)))


def _forged() -> dict[str, float]:
    """Programs that want assertions to pass without solving them: their rewards."""
    problem = Problem("squares", "", "", task="code", extra={"assertions": [SQUARES]})
    task = _task()
    rewards = task.score([Attempt(problem, program) for program in (*FORGERIES.values(), "def f(x): return x * x")])
    task.close()
    values = {name: reward.value for name, reward in zip([*FORGERIES, "honest"], rewards, strict=True)}
    rewarded = sum(value > 0 for name, value in values.items() if name != "honest")
    print(f"\nforged results: {rewarded} of {len(FORGERIES)} programs rewarded; the honest one {values['honest']:g}")
    return values


def _batch() -> dict[str, Any]:
    """All hostile programs and as many good ones in one call of the task."""
    problem = Problem("double", "", "", task="code", extra={"tests": [{"input": "21", "output": "42"}]})
    attempts = []
    for number, program in enumerate(PROGRAMS):
        attempts += [Attempt(problem, program.source), Attempt(problem, f"print(int(input()) * 2)  # {number}")]
    task = _task()
    began = time.monotonic()
    rewards = task.score(attempts)
    seconds = time.monotonic() - began
    task.close()
    hostile, good = (sum(reward.value for reward in rewards[first::2]) for first in (0, 1))
    print(
        f"\none batch of {len(attempts)}: {seconds:.0f} s, good {good:g} of {len(PROGRAMS)} right, hostile {hostile:g}"
    )
    return {"programs": len(attempts), "seconds": seconds, "good": good, "hostile": hostile}


def _throughput(sandboxes: dict[str, Sandbox], rounds: int) -> dict[str, Any]:
    """Programs a second, in turns."""
    contestants: dict[str, Callable[[int], str]] = {FRESH: _fresh}
    for mode, sandbox in sandboxes.items():
        limits = replace(sandbox.limits(), wall_s=60.0, total_s=60.0)
        contestants[mode] = lambda n, sandbox=sandbox, limits=limits: sandbox.script(GOOD, str(n), limits).output  # type: ignore[misc]
    expected = [_fresh(n) for n in range(IN_A_ROUND)]
    speeds: dict[str, list[float]] = defaultdict(list)
    with ThreadPoolExecutor(AT_A_TIME) as threads:
        for _ in range(rounds):
            for name, run in contestants.items():
                began = time.perf_counter()
                outputs = list(threads.map(run, range(IN_A_ROUND)))
                speeds[name].append(IN_A_ROUND / (time.perf_counter() - began))
                assert outputs == expected, name
    print(
        f"\nprograms a second, {AT_A_TIME} at a time, {rounds} rounds of {IN_A_ROUND} in turns, {os.cpu_count()} cores"
    )
    figures = {}
    for name, own in speeds.items():
        ratios = [one / other for one, other in zip(own, speeds[FRESH], strict=True)]
        figures[name] = {"median": statistics.median(own), "ratios": ratios}
        print(
            f"  {name:36} {statistics.median(own):6.0f} ({min(own):.0f} to {max(own):.0f}), "
            f"{statistics.median(ratios):.2f} times ({min(ratios):.2f} to {max(ratios):.2f})"
        )
    return figures


def _fresh(n: int) -> str:
    command = [sys.executable, "-I", "-S", "-c", GOOD]
    return subprocess.run(command, input=str(n), capture_output=True, text=True, check=True, env={}).stdout


if __name__ == "__main__":
    main()
