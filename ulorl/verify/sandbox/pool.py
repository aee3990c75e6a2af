"""A pool of workers that run hostile programs.

Invariants: every call returns an `Outcome` within a bounded time, whatever the program does; a program that costs a
worker its life costs no other program anything; no thread, signal or handler of the calling process is used or changed;
a forked child never touches its parent's workers; workers, and all that they started, end with the process that started
them.
"""

from __future__ import annotations

import logging
import os
import random
import tempfile
import threading
import weakref
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from typing import Any

from ulorl.engine.threads import usable_cores
from ulorl.errors import UserError
from ulorl.recipe_sandbox import SandboxRecipe
from ulorl.verify.sandbox.backends import FIRST_IDENTITY, IDENTITIES, MEANING, PROBE, Backend, candidates
from ulorl.verify.sandbox.inside.limits import Limits
from ulorl.verify.sandbox.worker import Worker, WorkerLost

log = logging.getLogger(__name__)
GRACE_SECONDS = 30.0
"""Beyond the time limit, until a worker that says nothing is given up."""
PROBE_SECONDS = 60.0
PROGRAMS_A_WORKER = 2000
"""After which it is replaced, so that nothing grows without bound."""
LOST = "lost"


@dataclass(frozen=True)
class Outcome:
    """How a program ended: ``how`` is exit, signal, time, cpu, memory, output or lost (with its
    worker, or since no box could be made for it).

    ``status`` is the exit status or the signal. ``output`` and ``errors`` (the end of it) are text with surrogates for
    what is not UTF-8. ``results`` are those of tests, as `inside.assertions` reports them.
    """

    how: str
    status: int = 0
    output: str = ""
    errors: str = ""
    results: tuple[dict[str, Any], ...] = ()
    cpu_s: float = 0.0
    wall_s: float = 0.0

    @property
    def finished(self) -> bool:
        """Whether it ended by itself, without an error."""
        return self.how == "exit" and self.status == 0


class Sandbox:
    """Up to ``config.workers`` workers, which start when they are needed. May be called from any number of threads."""

    def __init__(self, config: SandboxRecipe) -> None:
        self.config = config
        self.workers = config.workers or usable_cores()
        self._backend: Backend | None = None
        self._start_afresh()
        _SANDBOXES.add(self)

    def __reduce__(self) -> tuple[type[Sandbox], tuple[SandboxRecipe]]:
        return Sandbox, (self.config,)

    def __enter__(self) -> Sandbox:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def script(self, source: str, given: str, limits: Limits) -> Outcome:
        """Runs ``source`` with ``given`` as its standard input."""
        return self._ask({"kind": "script", "source": source, "input": given}, limits)

    def tests(self, source: str, code: str, entry_point: str, limits: Limits, done: int = 0) -> Outcome:
        """Makes the tests of ``code`` after the first ``done`` on what ``source`` defines, in a process apart."""
        message = {"kind": "tests", "source": source, "code": code, "entry_point": entry_point, "done": done}
        return self._ask(message, limits)

    def limits(self, cpu_s: float | None = None, left_s: float | None = None) -> Limits:
        """Those of the recipe, with another processor time, or less time for everything."""
        config = self.config
        total = config.total_s if left_s is None else min(left_s, config.total_s)
        cpu = min(cpu_s or config.cpu_s, total)
        wall = min(max(config.wall_s, cpu * config.wall_s / config.cpu_s), total)
        return Limits(cpu, wall, total, config.memory_mib, config.disk_mib, config.processes, config.output_kib)

    @property
    def backend(self) -> Backend:
        """The one that works here. UserError, with all reasons, where none does."""
        with self._choosing:
            if self._backend is None:
                self._backend = self._choose()
        return self._backend

    def close(self) -> None:
        """Ends all workers; new ones start when they are needed."""
        with self._changed:
            idle = list(self._idle)
            self._idle.clear()
        for worker, _ in idle:
            self._discard(worker)

    def _ask(self, message: dict[str, Any], limits: Limits) -> Outcome:
        """The outcome; asked once more where a worker is lost, or the program never began: it may not be at fault."""
        for _ in range(2):
            worker, served = self._take()
            kept = False
            try:
                answer = worker.ask(message | {"limits": asdict(limits)}, limits.total_s + GRACE_SECONDS)
                kept = True
            except WorkerLost as error:
                reason = str(error)
                continue
            finally:
                self._give_back(worker, served + 1, kept)
            if "unlocked" in answer:
                reason = str(answer["unlocked"])
                continue
            names = ("how", "status", "output", "errors", "cpu_s", "wall_s")
            found = {name: answer[name] for name in names if name in answer}
            return Outcome(**found, results=tuple(answer.get("results", ())))
        return Outcome(LOST, errors=reason)

    def _take(self) -> tuple[Worker, int]:
        """A worker for the caller alone, and how many programs it has run."""
        backend = self.backend
        with self._changed:
            while True:
                while self._idle:
                    worker, served = self._idle.pop()
                    if worker.alive and served < PROGRAMS_A_WORKER:
                        return worker, served
                    self._discard(worker)
                if self._count < self.workers:
                    self._count += 1
                    break
                self._changed.wait(timeout=1.0)
        try:
            return self._start(backend), 0
        except BaseException as error:
            with self._changed:
                self._count -= 1
                self._changed.notify()
            if isinstance(error, WorkerLost):
                raise UserError(f"verify.sandbox: a worker does not start any more: {error}") from error
            raise

    def _start(self, backend: Backend) -> Worker:
        worker = Worker(backend, FIRST_IDENTITY + _IDENTITY.randrange(IDENTITIES))
        self._alive.add(worker)
        return worker

    def _give_back(self, worker: Worker, served: int, usable: bool) -> None:
        if not usable:
            self._discard(worker)
            return
        with self._changed:
            self._idle.append((worker, served))
            self._changed.notify()

    def _discard(self, worker: Worker) -> None:
        worker.kill()
        with self._changed:
            if worker in self._alive:
                self._alive.discard(worker)
                self._count -= 1
            self._changed.notify()

    def _choose(self) -> Backend:
        problems: list[str] = []
        for backend in candidates(self.config):
            problem = self._try(backend)
            if not problem:
                if backend.mode in ("landlock", "weak"):
                    why = f" ({'; '.join(problems)})" if problems else ""
                    log.warning("programs run with %s%s", MEANING[backend.mode], why)
                return backend
            problems.append(f"{backend.mode}: {problem}")
        raise UserError(
            f"verify.sandbox: programs cannot be locked in here ({'; '.join(problems)}); see docs/code_sandbox.md, or"
            " set verify.sandbox.allow_weak = true for programs that you trust"
        )

    def _try(self, backend: Backend) -> str:
        """Why ``backend`` cannot be used; "" where a program that tried to get out did not."""
        with self._changed:
            self._count += 1
        try:
            worker = self._start(backend)
        except WorkerLost as error:
            with self._changed:
                self._count -= 1
            return str(error)
        usable = False
        try:
            with tempfile.TemporaryDirectory() as place, open(os.path.join(place, "secret"), "w") as secret:
                os.chmod(place, 0o777)
                os.chmod(secret.name, 0o644)
                message = {"kind": "script", "source": PROBE, "input": f"{secret.name}\n{os.getpid()}"}
                limits = replace(self.limits(), cpu_s=PROBE_SECONDS, wall_s=PROBE_SECONDS, total_s=PROBE_SECONDS)
                answer = worker.ask(message | {"limits": asdict(limits)}, PROBE_SECONDS + GRACE_SECONDS)
            reached = answer.get("output", "").strip()
            if (answer.get("how"), answer.get("status")) != ("exit", 0):
                why = answer.get("unlocked") or answer.get("errors", "").strip()[-200:] or answer.get("how")
                return f"a program does not run in it ({why})"
            if reached and backend.mode != "weak":
                return f"a program in it reaches {reached}"
            usable = True
            return ""
        except WorkerLost as error:
            return str(error)
        finally:
            self._give_back(worker, 1, usable)

    def _start_afresh(self) -> None:
        self._alive: set[Worker] = set()
        self._finalizer = weakref.finalize(self, _kill_all, self._alive)
        self._changed = threading.Condition(threading.RLock())
        self._choosing = threading.Lock()
        self._idle: list[tuple[Worker, int]] = []
        self._count = 0

    def after_fork(self) -> None:
        """In a forked child: the workers are the parent's, and a lock may be held by a thread that is not here."""
        self._finalizer.detach()
        for worker in self._alive:
            worker.abandon()
        self._start_afresh()


_SANDBOXES: weakref.WeakSet[Sandbox] = weakref.WeakSet()
_IDENTITY = random.SystemRandom()


def _kill_all(alive: set[Worker]) -> None:
    for worker in list(alive):
        with suppress(OSError):
            worker.kill()
    alive.clear()


def _after_fork() -> None:
    for sandbox in list(_SANDBOXES):
        sandbox.after_fork()


os.register_at_fork(after_in_child=_after_fork)
