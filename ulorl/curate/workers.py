"""A function on the batches of a stream, in this process or in several, with the results in order.

Invariants: results come in the order of the batches, whatever the number of processes; at most two batches a process
are in flight, so that a fast reader does not fill memory; a small stream starts no process; no process outlives this
one, however this one ends.
"""

from __future__ import annotations

import os
import signal
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from itertools import chain, islice
from typing import Any, TypeVar

from ulorl.errors import UserError

Batch = TypeVar("Batch")
Result = TypeVar("Result")

WORTH_A_PROCESS = 5
"""Batches that one process is done with before others have started."""
_in_worker: dict[str, Callable[[Any], Any]] = {}


def usable_cores() -> int:
    """Cores on which this process may run."""
    return len(os.sched_getaffinity(0))


def ordered_map(
    make: Callable[[], Callable[[Batch], Result]], batches: Iterable[Batch], workers: int
) -> Iterator[Result]:
    """``make()`` applied to every batch. ``make`` is called once in each process and must be picklable.

    ``workers`` 0 takes every core. UserError when a process cannot start or dies.
    """
    workers = workers or usable_cores()
    stream = iter(batches)
    first = list(islice(stream, WORTH_A_PROCESS))
    if workers == 1 or len(first) < WORTH_A_PROCESS:
        yield from map(make(), chain(first, stream))
        return
    yield from _in_processes(make, chain(first, stream), workers)


def _in_processes(
    make: Callable[[], Callable[[Batch], Result]], batches: Iterable[Batch], workers: int
) -> Iterator[Result]:
    import multiprocessing

    # Spawned, not forked: the threads of Arrow and BLAS do not survive a fork.
    context = multiprocessing.get_context("spawn")
    pool = ProcessPoolExecutor(workers, mp_context=context, initializer=_start, initargs=(make, os.getpid()))
    waiting: deque[Future[Result]] = deque()
    try:
        for batch in batches:
            with _interrupts_waiting():
                waiting.append(pool.submit(_call, batch))
            if len(waiting) > 2 * workers:
                yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()
    except BrokenProcessPool as error:
        raise UserError(
            "curate: a worker process ended early (out of memory, or a script that calls curate without "
            "`if __name__ == '__main__':`); curate.workers=1 runs everything in one process"
        ) from error
    finally:
        pool.shutdown(wait=True, cancel_futures=True)


@contextmanager
def _interrupts_waiting() -> Iterator[None]:
    """An interrupt comes to this process afterwards, and never to one that is started meanwhile, which would print its
    own traceback; it ends with this one."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _start(make: Callable[[], Callable[[Any], Any]], parent: int) -> None:
    threading.Thread(target=_end_with, args=(parent,), daemon=True).start()
    _in_worker["call"] = make()


def _end_with(parent: int) -> None:
    while os.getppid() == parent:
        time.sleep(0.5)
    os._exit(1)


def _call(batch: Any) -> Any:
    return _in_worker["call"](batch)
