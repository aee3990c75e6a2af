"""Verdicts of finished samples, computed in background threads while generation goes on.

Invariants: one verdict a submitted sample, the same whether it was ready early or waited for; a task that raises or
does not answer in time gives an undecided verdict whose reason begins with `ERROR`, which is counted and shown,
and never stops the run; a thread that hangs is left behind and a new one takes over. Each task has a thread of its own,
so that a slow one (programs that run) holds up no other.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Hashable, Mapping
from concurrent.futures import Future, TimeoutError
from queue import SimpleQueue
from typing import Protocol

from ulorl.verify import Item, Verdict
from ulorl.verify.verdict import ERROR

log = logging.getLogger(__name__)

MAX_BATCH = 256
Queue = SimpleQueue[tuple[Future[Verdict], Item] | None]


class Judge(Protocol):
    """What is needed of `ulorl.verify.tasks.scorer.Scorer`, or of a `Verifier` where all is mathematics."""

    def verify(self, items: list[Item]) -> list[Verdict]: ...


def is_error(verdict: Verdict) -> bool:
    """Whether the task failed, rather than leaving the answer undecided."""
    return verdict.equivalent is None and verdict.reason.startswith(ERROR)


class Rewards:
    """Submit samples as they finish, then collect; ``timeout_s`` bounds what ``collect`` waits for."""

    def __init__(self, judge: Judge, timeout_s: float) -> None:
        self._judge, self._timeout_s = judge, timeout_s
        self._futures: dict[Hashable, tuple[str, Future[Verdict]]] = {}
        self._queues: dict[str, Queue] = {}

    def submit(self, key: Hashable, item: Item) -> None:
        """Judge ``item`` soon; ``key`` is its name in ``collect``."""
        assert key not in self._futures, f"{key} was submitted twice"
        task = "" if item.row is None else item.row.task
        future = Future[Verdict]()
        self._futures[key] = task, future
        self._queue(task).put((future, item))

    def collect(self) -> Mapping[Hashable, Verdict]:
        """The verdicts of everything submitted since the last call; waits at most ``timeout_s`` seconds."""
        deadline = time.monotonic() + self._timeout_s
        verdicts = {}
        for key, (_, future) in self._futures.items():
            try:
                verdicts[key] = future.result(max(0.0, deadline - time.monotonic()))
            except TimeoutError:
                verdicts[key] = _failed(f"no verdict after {self._timeout_s:g} s")
        for task in {task for task, future in self._futures.values() if not future.done()}:
            log.warning(
                "rewards%s: no answer in %g s; the thread is left behind", task and f" of task {task}", self._timeout_s
            )
            self._queues.pop(task).put(None)
        self._futures = {}
        return verdicts

    def close(self) -> None:
        """End the threads when they are done."""
        for queue in self._queues.values():
            queue.put(None)
        self._queues = {}

    def _queue(self, task: str) -> Queue:
        """Where the thread of a task takes its samples from; it starts with the first of them."""
        if task not in self._queues:
            queue: Queue = SimpleQueue()
            # A daemon, so that a task that hangs does not keep the process from ending.
            threading.Thread(target=self._run, args=(queue,), name=f"ulorl-rewards {task}", daemon=True).start()
            self._queues[task] = queue
        return self._queues[task]

    def _run(self, queue: Queue) -> None:
        while (first := queue.get()) is not None:
            batch = [first]
            while len(batch) < MAX_BATCH and not queue.empty():
                entry = queue.get()
                if entry is None:
                    queue.put(None)
                    break
                batch.append(entry)
            self._judge_batch(batch)

    def _judge_batch(self, batch: list[tuple[Future[Verdict], Item]]) -> None:
        try:
            verdicts = self._judge.verify([item for _, item in batch])
            assert len(verdicts) == len(batch), "the verifier lost items"
        except Exception as error:
            log.warning("rewards: the verifier failed on %d samples: %s", len(batch), error)
            verdicts = [_failed(f"{type(error).__name__}: {error}")] * len(batch)
        for (future, _), verdict in zip(batch, verdicts, strict=True):
            future.set_result(verdict)


def _failed(what: str) -> Verdict:
    return Verdict(None, None, "undecided", f"{ERROR}: {what}")
