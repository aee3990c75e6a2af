"""A pool of worker processes that can be killed at any moment.

Invariants: every request gets one reply or `Failure`, in order; a worker that is killed loses only its own
request; no signal, alarm or handler of the calling process is used or changed; a forked child never touches
its parent's workers; workers end with the process that started them, however it ends.

Time is limited twice: a worker is killed by its own timers after the processor time it may use, and by the
parent after the same wall-clock time, which is prolonged only while the worker works or is starved by other
processes.
"""

from __future__ import annotations

import json
import os
import selectors
import signal
import threading
import time
import weakref
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from ulorl.verify.symbolic.process import Flood, Limits, Worker

MAX_REQUEST = 60_000
"""Bytes of a request: it fits into a pipe, so that writing never waits."""
MAX_START_FAILURES = 3
"""Failed starts in a row after which no worker is started for BACK_OFF_SECONDS."""
BACK_OFF_SECONDS = 60.0
_TIMERS = frozenset({signal.SIGPROF, signal.SIGALRM, signal.SIGXCPU})


@dataclass(frozen=True)
class Failure:
    """Why a request has no reply: timed out, out of memory, worker died, output flood, ..."""

    reason: str


Reply = dict[str, Any] | Failure


class WorkerPool:
    """Runs requests on up to ``limits.workers`` processes, which start when they are first needed."""

    def __init__(self, command: Sequence[str], limits: Limits) -> None:
        self._command = tuple(command)
        self._limits = limits
        self._start_afresh()
        _POOLS.add(self)

    def __reduce__(self) -> tuple[type[WorkerPool], tuple[tuple[str, ...], Limits]]:
        return WorkerPool, (self._command, self._limits)

    def run(self, requests: Sequence[dict[str, Any]]) -> list[Reply]:
        """One reply a request, in order. May be called from any number of threads at once."""
        return _Batch(self, requests).run()

    def warm_up(self) -> None:
        """Starts all workers and waits until they are ready, so that the first batch does not."""
        self.run([{"ping": index} for index in range(self._limits.workers)])

    def close(self) -> None:
        """Ends the workers; requests from now on fail."""
        with self._changed:
            self._closed = True
            idle = list(self._idle)
            self._idle.clear()
            self._changed.notify_all()
        for worker in idle:
            self.discard(worker)

    def acquire(self, *, wait: bool) -> Worker | None:
        """An idle or new worker for the caller alone; None where there is none and ``wait`` is off."""
        with self._changed:
            while True:
                if self._closed:
                    raise NoWorkers("the workers are closed")
                while self._idle:
                    worker = self._idle.pop()
                    if worker.process.poll() is None:
                        return worker
                    self._remove(worker)
                if self._count < self._limits.workers:
                    if time.monotonic() < self._start_again:
                        raise NoWorkers(self._problem)
                    self._count += 1
                    break
                if not wait:
                    return None
                self._changed.wait(timeout=1.0)
        try:
            worker = Worker(self._command)
        except OSError as error:
            with self._changed:
                self._count -= 1
            self.failed_to_start(str(error))
            return None
        self._alive.add(worker)
        return worker

    def release(self, worker: Worker) -> None:
        """Gives a worker without work back."""
        if worker.served >= self._limits.requests or self._closed:
            self.discard(worker)
            return
        with self._changed:
            self._idle.append(worker)
            self._changed.notify()

    def discard(self, worker: Worker) -> int:
        """Kills a worker and returns its exit status."""
        status = worker.kill()
        with self._changed:
            self._remove(worker)
            self._changed.notify()
        return status

    def started(self) -> None:
        self._start_failures = 0

    def failed_to_start(self, problem: str) -> None:
        """Counts a failed start; after several in a row the pool gives up for a while."""
        self._start_failures += 1
        self._problem = f"no worker process starts ({problem})"
        if self._start_failures >= MAX_START_FAILURES:
            self._start_failures = 0
            self._start_again = time.monotonic() + BACK_OFF_SECONDS

    @property
    def limits(self) -> Limits:
        return self._limits

    def _remove(self, worker: Worker) -> None:
        if worker in self._alive:
            self._alive.discard(worker)
            self._count -= 1

    def _start_afresh(self) -> None:
        """As after construction."""
        self._alive: set[Worker] = set()
        self._finalizer = weakref.finalize(self, _kill_all, self._alive)
        self._changed = threading.Condition()
        self._idle: list[Worker] = []
        self._count = 0
        self._closed = False
        self._start_failures = 0
        self._start_again = 0.0
        self._problem = ""

    def after_fork(self) -> None:
        """In a forked child: the workers are the parent's, and a lock may be held by a thread that is not here."""
        self._finalizer.detach()
        for worker in self._alive:
            worker.abandon()
        self._start_afresh()


class NoWorkers(Exception):
    """No worker can be had now."""


class _Batch:
    """One call of `WorkerPool.run`: which requests wait, and which worker has which."""

    def __init__(self, pool: WorkerPool, requests: Sequence[dict[str, Any]]) -> None:
        self._pool = pool
        self._seconds = pool.limits.seconds
        self._texts = [json.dumps(request).encode() + b"\n" for request in requests]
        self._replies: list[Reply | None] = [None] * len(requests)
        self._waiting = deque(range(len(requests)))
        self._held: dict[Worker, int] = {}

    def run(self) -> list[Reply]:
        with selectors.DefaultSelector() as self._selector:
            try:
                while self._waiting or self._held:
                    self._hand_out()
                    self._listen()
            finally:
                for worker in list(self._held):  # only where the caller was interrupted
                    self._end(worker)
        return [Failure("no reply") if reply is None else reply for reply in self._replies]

    def _hand_out(self) -> None:
        while self._waiting:
            index = self._waiting[0]
            if len(self._texts[index]) > MAX_REQUEST:
                self._replies[self._waiting.popleft()] = Failure("too long")
                continue
            try:
                worker = self._pool.acquire(wait=not self._held)
            except NoWorkers as problem:
                while self._waiting:
                    self._replies[self._waiting.popleft()] = Failure(str(problem))
                return
            if worker is None:
                return
            try:
                worker.ask(self._texts[index], self._seconds)
            except OSError:  # it died while idle: not the request's fault
                self._pool.discard(worker)
                continue
            self._waiting.popleft()
            self._held[worker] = index
            self._selector.register(worker.fileno(), selectors.EVENT_READ, worker)

    def _listen(self) -> None:
        if not self._held:
            return
        wait = min(worker.deadline for worker in self._held) - time.monotonic()
        for key, _ in self._selector.select(max(0.0, wait)):
            self._read(key.data)
        now = time.monotonic()
        for worker in [worker for worker in self._held if worker.deadline <= now]:
            if worker.ready and worker.is_starved(self._seconds):
                worker.deadline = now + self._seconds / 4
            else:
                self._fail(worker, "timed out")

    def _read(self, worker: Worker) -> None:
        try:
            lines = worker.read()
            if lines is None:
                self._fail(worker, "worker died")
                return
            messages = [json.loads(line) for line in lines]
            if not all(isinstance(message, dict) for message in messages):
                raise ValueError
        except Flood:
            self._fail(worker, "output flood")
            return
        except (ValueError, OSError):
            self._fail(worker, "unreadable reply")
            return
        for message in messages:
            if not worker.ready:
                worker.ready = True
                worker.asked = time.monotonic()
                worker.deadline = worker.asked + self._seconds
                self._pool.started()
            elif worker in self._held:
                self._answer(worker, message)

    def _answer(self, worker: Worker, message: dict[str, Any]) -> None:
        index = self._held[worker]
        if "failed" in message:  # its memory is not to be trusted any more
            self._replies[index] = Failure(str(message["failed"])[:200])
            self._end(worker)
            return
        self._replies[index] = message
        self._selector.unregister(worker.fileno())
        del self._held[worker]
        self._pool.release(worker)

    def _fail(self, worker: Worker, reason: str) -> None:
        """The worker is of no use any more; its request fails, unless the worker never came to it."""
        index, was_ready = self._held[worker], worker.ready
        if not was_ready:
            self._pool.failed_to_start(worker.last_words())
            self._waiting.appendleft(index)
            self._end(worker)
            return
        status = self._end(worker)
        self._replies[index] = Failure("timed out" if -status in _TIMERS else reason)

    def _end(self, worker: Worker) -> int:
        self._selector.unregister(worker.fileno())
        del self._held[worker]
        return self._pool.discard(worker)


_POOLS: weakref.WeakSet[WorkerPool] = weakref.WeakSet()


def _kill_all(alive: set[Worker]) -> None:
    for worker in list(alive):
        worker.kill()
    alive.clear()


def _after_fork() -> None:
    for pool in list(_POOLS):
        pool.after_fork()


os.register_at_fork(after_in_child=_after_fork)
