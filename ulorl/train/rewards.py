"""Verdicts of finished samples, computed in a background thread while generation goes on.

Invariants: one verdict a submitted sample, the same whether it was ready early or waited for; a verifier that raises or
does not answer in time gives an undecided verdict whose reason begins with `ERROR`, which is counted and shown,
and never stops the run; a thread that hangs is left behind and a new one takes over.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Hashable, Mapping
from concurrent.futures import Future, TimeoutError
from queue import SimpleQueue

from ulorl.verify import Item, Verdict, Verifier

log = logging.getLogger(__name__)

ERROR = "reward error"
MAX_BATCH = 256
Queue = SimpleQueue[tuple[Future[Verdict], Item] | None]


def is_error(verdict: Verdict) -> bool:
    """Whether the verifier failed, rather than leaving the answer undecided."""
    return verdict.equivalent is None and verdict.reason.startswith(ERROR)


class Rewards:
    """Submit samples as they finish, then collect; ``timeout_s`` bounds what ``collect`` waits for."""

    def __init__(self, verifier: Verifier, timeout_s: float) -> None:
        self._verifier, self._timeout_s = verifier, timeout_s
        self._futures: dict[Hashable, Future[Verdict]] = {}
        self._start()

    def submit(self, key: Hashable, item: Item) -> None:
        """Judge ``item`` soon; ``key`` is its name in ``collect``."""
        assert key not in self._futures, f"{key} was submitted twice"
        self._futures[key] = future = Future[Verdict]()
        self._queue.put((future, item))

    def collect(self) -> Mapping[Hashable, Verdict]:
        """The verdicts of everything submitted since the last call; waits at most ``timeout_s`` seconds."""
        deadline = time.monotonic() + self._timeout_s
        verdicts = {}
        for key, future in self._futures.items():
            try:
                verdicts[key] = future.result(max(0.0, deadline - time.monotonic()))
            except TimeoutError:
                verdicts[key] = _failed(f"no verdict after {self._timeout_s:g} s")
        if any(not future.done() for future in self._futures.values()):
            log.warning("rewards: the verifier did not answer in %g s; its thread is left behind", self._timeout_s)
            self._queue.put(None)
            self._start()
        self._futures = {}
        return verdicts

    def close(self) -> None:
        """End the thread when it is done."""
        self._queue.put(None)

    def _start(self) -> None:
        self._queue: Queue = SimpleQueue()
        # A daemon, so that a verifier that hangs does not keep the process from ending.
        threading.Thread(target=self._run, args=(self._queue,), name="ulorl-rewards", daemon=True).start()

    def _run(self, queue: Queue) -> None:
        while (first := queue.get()) is not None:
            batch = [first]
            while len(batch) < MAX_BATCH and not queue.empty():
                entry = queue.get()
                if entry is None:
                    queue.put(None)
                    break
                batch.append(entry)
            self._judge(batch)

    def _judge(self, batch: list[tuple[Future[Verdict], Item]]) -> None:
        try:
            verdicts = self._verifier.verify([item for _, item in batch])
            assert len(verdicts) == len(batch), "the verifier lost items"
        except Exception as error:
            log.warning("rewards: the verifier failed on %d samples: %s", len(batch), error)
            verdicts = [_failed(f"{type(error).__name__}: {error}")] * len(batch)
        for (future, _), verdict in zip(batch, verdicts, strict=True):
            future.set_result(verdict)


def _failed(what: str) -> Verdict:
    return Verdict(None, None, "undecided", f"{ERROR}: {what}")
