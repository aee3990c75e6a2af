"""Task ``code``: Python programs against tests, in the sandbox of `ulorl.verify.sandbox`.

Invariants: no program, and no test of a row, is executed or parsed in this process; what a program has to print never
enters a process in which programs run, and what a function has to return stays in a process that the program cannot
reach.
"""

from __future__ import annotations

import re
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

from ulorl.problem import Problem
from ulorl.recipe import VerifyRecipe
from ulorl.verify.tasks.base import NO_ANSWER, Attempt, Reward, Task
from ulorl.verify.tasks.code_output import difference
from ulorl.verify.tasks.code_tests import BadTests, Tests, read_tests
from ulorl.verify.tasks.programs import program_of

if TYPE_CHECKING:
    from ulorl.verify.sandbox.pool import Outcome, Sandbox

MAX_PROGRAM = 1 << 20
"""Characters; a longer program is wrong."""
_ENDS = {
    "time": "no end after {wall:g} s",
    "cpu": "no end after {cpu:g} s of processor time",
    "memory": "more than {memory} MiB of memory",
    "output": "more than {output} KiB of output",
}


class CodeTask(Task):
    """See the module. The sandbox starts with the first row."""

    extracts = False

    def __init__(self, config: VerifyRecipe) -> None:
        super().__init__(config)
        self._sandbox: Sandbox | None = None
        self._starting = threading.Lock()

    def check(self, problem: Problem) -> str | None:
        """A row is broken whose tests cannot be read, or whose own ``answer``, where it has one, does not pass them.

        UserError where programs cannot be locked in on this machine.
        """
        _ = self.sandbox.backend
        try:
            tests = read_tests(problem.extra)
        except BadTests as error:
            return str(error)
        program = program_of(problem.answer)
        if program is None:
            return self._broken(tests) if tests.code else None
        reward = self._judge(program, problem)
        return None if reward.value == 1 else f"its own answer does not pass its tests: {reward.reason}"

    def score(self, attempts: Sequence[Attempt]) -> list[Reward]:
        programs = [program_of(attempt.response) for attempt in attempts]
        # A policy that has learnt something gives the same program several times. Ids do not tell problems apart: they
        # follow from the text alone.
        wanted = [
            None if program is None else (id(attempt.problem), program)
            for attempt, program in zip(attempts, programs, strict=True)
        ]
        work = {key: attempt.problem for attempt, key in zip(attempts, wanted, strict=True) if key is not None}
        with ThreadPoolExecutor(max_workers=self.sandbox.workers, thread_name_prefix="ulorl-code") as threads:
            done = dict(zip(work, threads.map(self._judge, [key[1] for key in work], work.values()), strict=True))
        return [Reward(0.0, NO_ANSWER) if key is None else done[key] for key in wanted]

    def close(self) -> None:
        if self._sandbox is not None:
            self._sandbox.close()

    @property
    def sandbox(self) -> Sandbox:
        with self._starting:
            if self._sandbox is None:
                from ulorl.verify.sandbox.pool import Sandbox

                self._sandbox = Sandbox(self.config.sandbox)
            return self._sandbox

    def _broken(self, tests: Tests) -> str | None:
        """What is wrong with assertions that no program is there to pass."""
        outcome = self.sandbox.tests("", tests.code, tests.entry_point, self.sandbox.limits())
        if outcome.how == "lost":
            return f"the sandbox failed: {outcome.errors}"
        return next((f"it has {result['broken']}" for result in outcome.results if "broken" in result), None)

    def _judge(self, program: str, problem: Problem) -> Reward:
        tests = read_tests(problem.extra)
        if len(program) > MAX_PROGRAM:
            return Reward(0.0, f"a program of {len(program)} characters", program[:MAX_PROGRAM])
        run = _Run(self.sandbox, tests, program, self.config)
        return run.of_cases() if tests.cases else run.of_assertions()


class _Run:
    """One program against its tests, one after another, within the time for all of them."""

    def __init__(self, sandbox: Sandbox, tests: Tests, program: str, config: VerifyRecipe) -> None:
        self._sandbox, self._tests, self._program = sandbox, tests, program
        self._all = config.tasks.code.reward == "all"
        self._tolerance = config.tasks.code.relative_tolerance
        self._end = time.monotonic() + config.sandbox.total_s

    def of_cases(self) -> Reward:
        passed, why = 0, ""
        for number, case in enumerate(self._tests.cases, 1):
            outcome = self._limited(lambda limits, given=case.given: self._sandbox.script(self._program, given, limits))
            if outcome is None:
                why = why or f"test {number}: no time left for it"
                break
            if outcome.how == "lost":
                return self._lost(outcome)
            fault = self._fault(outcome) or difference(outcome.output, case.expected, self._tolerance)
            passed += not fault
            if fault:
                why = why or f"test {number}: {fault}"
                if self._all:
                    break
        return self._reward(passed, len(self._tests.cases), why)

    def of_assertions(self) -> Reward:
        code, entry_point = self._tests.code, self._tests.entry_point
        if self._tests.calls:
            code = calls_as_assertions(self._tests, self._program)
        passed, total, done, why = 0, 0, 0, ""
        while True:
            outcome = self._limited(
                lambda limits, done=done: self._sandbox.tests(self._program, code, entry_point, limits, done)
            )
            if outcome is None:
                why = why or f"test {done + 1}: no time left for it"
                break
            if outcome.how == "lost":
                return self._lost(outcome)
            told: dict[str, Any] = {key: value for result in outcome.results for key, value in result.items()}
            if "broken" in told:
                return Reward(0.0, f"the row has {told['broken']}", self._program, error=True)
            total = told.get("items", total)
            fault = self._fault(outcome, of_tests=True)
            items = [result for result in outcome.results if "item" in result]
            for result in items:
                done += 1
                passed += not result["why"]
                if result["why"]:
                    why = why or f"test {done}: {self._told(result['why'], done - 1, outcome)}"
            if "finished" in told:
                break
            if "loaded" not in told or "stopped" in told:
                why = why or told.get("stopped") or fault or self._ended("the program ended", outcome)
                break
            if not items or not items[-1]["why"].startswith("the program ended"):
                done += 1  # the test during which it was ended
                why = why or f"test {done}: {fault or 'the tests ended'}"
            if done >= total or (self._all and why):
                break
        return self._reward(passed, total, why)

    def _limited(self, run: Callable[..., Outcome]) -> Outcome | None:
        """The outcome of one run; None where no time is left for any."""
        left = self._end - time.monotonic()
        return run(self._sandbox.limits(self._tests.timeout_s, left)) if left > 0 else None

    def _fault(self, outcome: Outcome, of_tests: bool = False) -> str:
        """Why a run was no success; "" where it was."""
        if outcome.finished or (of_tests and outcome.how in ("exit", "signal")):
            return ""
        if outcome.how in _ENDS:
            limits = self._sandbox.limits(self._tests.timeout_s)
            return _ENDS[outcome.how].format(
                wall=limits.wall_s, cpu=limits.cpu_s, memory=limits.memory_mib, output=limits.output_kib
            )
        last = outcome.errors.strip().rpartition("\n")[2]
        ended = f"signal {outcome.status}" if outcome.how == "signal" else f"exit status {outcome.status}"
        return f"{ended} ({last[:120]})" if last else ended

    def _told(self, why: str, index: int, outcome: Outcome) -> str:
        """What the tests say of one of them, in the words of the row."""
        if self._tests.calls and why.startswith("not so"):
            call = self._tests.calls[index]
            return f"{self._tests.entry_point}(*{call.arguments[:80]}) is not {call.expected[:80]}"
        return self._ended(why, outcome)

    def _ended(self, why: str, outcome: Outcome) -> str:
        last = outcome.errors.strip().rpartition("\n")[2]
        return f"{why} ({last[:120]})" if why == "the program ended" and last else why

    def _lost(self, outcome: Outcome) -> Reward:
        return Reward(0.0, f"the sandbox failed: {outcome.errors}", self._program, error=True)

    def _reward(self, passed: int, total: int, why: str) -> Reward:
        share = passed / total if total else 0.0
        value = float(share == 1) if self._all else share
        if not why:
            return Reward(value, f"passed {total} of {total} tests", self._program)
        return Reward(value, why if self._all else f"passed {passed} of {total} tests; {why}", self._program)


def calls_as_assertions(tests: Tests, program: str) -> str:
    """Assertions that call the entry point, a method where the program has a class ``Solution`` instead.

    A result may also be the only element of what is expected, as in APPS.
    """
    name = tests.entry_point
    if not re.search(rf"^(?:async )?def {name}\b", program, re.MULTILINE) and re.search(
        r"^class Solution\b", program, re.MULTILINE
    ):
        name = f"Solution().{name}"
    return "\n".join(
        f"assert __matches__({name}(*__json__({call.arguments!r})), __json__({call.expected!r}))"
        for call in tests.calls
    )
