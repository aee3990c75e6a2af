"""Work in batches in one background thread, so that whoever produces the items never waits for it.

Invariants: every item added is in exactly one batch, in order; an item waits at most ``max_seconds``; leaving
the block finishes everything; an error of the work stops the producer at its next ``add``.
"""

from __future__ import annotations

import queue
import threading
import time
from collections.abc import Callable
from typing import Generic, TypeVar

T = TypeVar("T")


class Background(Generic[T]):
    """Calls ``work(batch)`` with up to ``max_items`` items; use as a context manager."""

    def __init__(self, work: Callable[[list[T]], None], *, max_items: int, max_seconds: float) -> None:
        self._work = work
        self._max_items = max_items
        self._max_seconds = max_seconds
        self._queue: queue.SimpleQueue[tuple[T] | None] = queue.SimpleQueue()
        self._error: BaseException | None = None
        self._thread = threading.Thread(target=self._run, name="ulorl-background", daemon=True)

    def add(self, item: T) -> None:
        """Queue one item. Raises the error of ``work``, if there was one."""
        if self._error is not None:
            raise self._error
        self._queue.put((item,))

    def __enter__(self) -> Background[T]:
        self._thread.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: object) -> None:
        self._queue.put(None)
        self._thread.join()
        if self._error is not None and error is None:
            raise self._error

    def _run(self) -> None:
        try:
            more = True
            while more:
                batch, more = self._collect()
                if batch:
                    self._work(batch)
        except BaseException as error:  # handed to the producer's thread
            self._error = error

    def _collect(self) -> tuple[list[T], bool]:
        """The next batch, and whether more may come."""
        batch: list[T] = []
        deadline = time.monotonic() + self._max_seconds
        while len(batch) < self._max_items:
            try:
                entry = self._queue.get(timeout=max(0.0, deadline - time.monotonic()))
            except queue.Empty:
                return batch, True
            if entry is None:
                return batch, False
            batch.append(entry[0])
        return batch, True
