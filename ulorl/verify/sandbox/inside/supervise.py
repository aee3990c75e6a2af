"""Watches boxes and ends them: time, memory, output.

Invariants: `Watch.run` returns within the limits, whatever the boxes do; when it has returned, no process of them is
left; what it keeps of their output is bounded. Exit statuses come from the kernel.
"""

from __future__ import annotations

import contextlib
import os
import selectors
import signal
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from .limits import MIB, Limits

TICK = 0.02
"""Seconds between two looks at processes."""
STARVED = 4
"""A test that waits for a processor may take this many times ``wall_s``."""
SHARED_MIB = 16
"""Of a process's memory, what it may have in common with others."""
STDERR_KEPT = 4096
_CHUNK = 1 << 16


class CallerGone(Exception):
    """Nobody waits for the result any more."""


@dataclass
class Stream:
    """What comes out of a pipe; at most ``most`` bytes, of which the last ``kept`` stay."""

    most: int
    kept: int
    total: int = 0
    parts: list[bytes] = field(default_factory=list)
    on_data: Callable[[bytes], None] | None = None

    def add(self, data: bytes) -> bool:
        """Whether it may go on."""
        self.total += len(data)
        if self.on_data is not None:
            self.on_data(data)
        elif self.kept < self.most:
            self.parts = [(b"".join(self.parts) + data)[-self.kept :]]
        else:
            self.parts.append(data)
        return self.total <= self.most

    def data(self) -> bytes:
        return b"".join(self.parts)[: self.most]


@dataclass(frozen=True)
class Ended:
    """``how``: exit, signal, time, cpu, memory or output; ``status`` of the main box: exit status or signal."""

    how: str
    status: int
    cpu_s: float
    wall_s: float


class Watch:
    """Of one group of boxes; the first is the one for whose end it waits."""

    def __init__(
        self,
        boxes: list[int],
        streams: dict[int, Stream],
        limits: Limits,
        processes: int,
        caller: int,
        end: Callable[[list[int]], tuple[int, float]],
    ) -> None:
        """``end`` kills boxes and all that is left of them; the first one's wait status, and their processor time."""
        self._boxes, self._streams, self._limits, self._kill = boxes, streams, limits, end
        self._processes, self._caller = processes, caller
        self._started = self._since = self._looked = time.monotonic()
        self._cpu_before = self._cpu = self._slept = 0.0

    def progressed(self) -> None:
        """A new test has begun: the time for one begins anew."""
        self._since, self._slept = time.monotonic(), 0.0
        self._cpu_before = self._cpu

    def run(self) -> Ended:
        """Waits for the end, or makes it. CallerGone after everything has been ended."""
        how = "killed"
        handle = os.pidfd_open(self._boxes[0])
        selector = selectors.DefaultSelector()
        try:
            selector.register(handle, selectors.EVENT_READ)
            selector.register(self._caller, selectors.EVENT_READ)
            for place in self._streams:
                selector.register(place, selectors.EVENT_READ, self._streams[place])
            how = self._wait(selector, handle)
        finally:
            status, cpu_s = self._kill(self._boxes)
            cpu_s = max(cpu_s, self._cpu)
            selector.close()
            os.close(handle)
            self._drain(ended=how == "exit")
        if how == "caller":
            raise CallerGone
        wall_s = time.monotonic() - self._started
        if how == "exit":
            how, status = ("exit", os.WEXITSTATUS(status)) if os.WIFEXITED(status) else ("signal", os.WTERMSIG(status))
            if how == "exit" and status > 128 and status - 128 in set(signal.Signals):
                how, status = "signal", status - 128
            if any(stream.total > stream.most for stream in self._streams.values()):
                how = "output"
            elif status == signal.SIGKILL and how == "signal" and cpu_s >= self._limits.cpu_s:
                how = "cpu"
        return Ended(how, status, cpu_s, wall_s)

    def _wait(self, selector: selectors.BaseSelector, handle: int) -> str:
        while True:
            for key, _ in selector.select(TICK):
                if key.fd == handle:
                    return "exit"
                if key.fd == self._caller:
                    return "caller"
                data = os.read(key.fd, _CHUNK)
                if not data:
                    selector.unregister(key.fd)
                elif not key.data.add(data):
                    return "output"
            now = time.monotonic()
            if now - self._started > TICK:
                problem = self._look(now)
                if problem:
                    return problem

    def _look(self, now: float) -> str:
        limits = self._limits
        usage = [use for box in self._boxes for use in descendants(self._processes, box)]
        memory = sum(use.memory for use in usage)
        used = sum(use.cpu_s for use in usage)
        if used <= self._cpu and not any(use.runnable for use in usage):
            self._slept += now - max(self._looked, self._since)
        self._looked = now
        self._cpu = max(self._cpu, used)
        cpu = self._cpu - self._cpu_before
        if memory > len(self._boxes) * limits.memory_mib * MIB + len(usage) * SHARED_MIB * MIB:
            return "memory"
        if cpu > limits.cpu_s + TICK * 2:
            return "cpu"
        # Time in which it waited for a processor does not count, up to a point.
        waited, counted = now - self._since, self._slept + cpu
        if counted > limits.wall_s or waited > STARVED * limits.wall_s or now - self._started > limits.total_s:
            return "time"
        return ""

    def _drain(self, ended: bool) -> None:
        """What still lies in the pipes, whose writers have all ended; results that only say that they were made to
        (`ended` is false) do not count."""
        for place, stream in self._streams.items():
            if stream.on_data is not None and not ended:
                continue
            os.set_blocking(place, False)
            with contextlib.suppress(BlockingIOError):
                while (data := os.read(place, _CHUNK)) and stream.add(data):
                    pass


@dataclass(frozen=True)
class Use:
    """Of one process: bytes, seconds, and whether it wants a processor (or a disk) now."""

    memory: int
    cpu_s: float
    runnable: bool


_WANTING = ("R", "D")
_PAGE, _HERTZ = os.sysconf("SC_PAGE_SIZE"), os.sysconf("SC_CLK_TCK")


def descendants(processes: int, pid: int) -> list[Use]:
    """What ``pid`` and everything below it use, by the system's /proc, open at ``processes`` (-1: unknown)."""
    found, waiting = [], [pid]
    while waiting:
        one = waiting.pop()
        use = _use(processes, one)
        if use is not None:
            found.append(use)
            waiting += children(processes, one)
    return found


def children(processes: int, pid: int) -> list[int]:
    """Processes that ``pid`` started."""
    found: list[int] = []
    if processes >= 0:
        with contextlib.suppress(OSError):
            for text in _of_threads(processes, pid, "children"):
                found += map(int, text.split())
    return found


def _use(processes: int, pid: int) -> Use | None:
    if processes < 0:
        return None
    try:
        memory = int(_text(processes, f"{pid}/statm").split()[1]) * _PAGE
        fields = _text(processes, f"{pid}/stat").rpartition(")")[2].split()
        # The process has the state of its first thread, which may be waiting for others.
        states = (text.rpartition(")")[2].split()[0] for text in _of_threads(processes, pid, "stat"))
        wants = fields[0] in _WANTING or any(state in _WANTING for state in states)
        return Use(memory, sum(map(int, fields[11:15])) / _HERTZ, wants)
    except (OSError, ValueError, IndexError):
        return None


def _of_threads(processes: int, pid: int, file: str) -> Iterator[str]:
    """What ``file`` says of each thread of a process; of one that ends meanwhile, nothing."""
    tasks = os.open(f"{pid}/task", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC, dir_fd=processes)
    try:
        for thread in os.listdir(tasks):
            with contextlib.suppress(OSError):
                yield _text(tasks, f"{thread}/{file}")
    finally:
        os.close(tasks)


def _text(directory: int, name: str) -> str:
    place = os.open(name, os.O_RDONLY | os.O_CLOEXEC, dir_fd=directory)
    try:
        return os.read(place, 1 << 16).decode("utf-8", "replace")
    finally:
        os.close(place)
