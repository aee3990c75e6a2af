"""The loop of a worker process: one JSON request a line in, one JSON reply a line out.

Invariants: a request that takes longer than the given seconds of processor time ends the process (the kernel's timers
do it, also inside one long arithmetic operation); so does a parent that has gone; memory is limited before the first
request is read; nothing that runs in here writes to the pipe but the reply.
"""

from __future__ import annotations

import gc
import json
import os
import resource
import select
import signal
from collections.abc import Callable, Iterator
from typing import Any

from ulorl.verify.grammar.tokens import words

WALL_FACTOR = 60
"""Wall-clock seconds for one of processor time: the parent's own clock ends a worker long before."""

Answer = Callable[[dict[str, Any]], dict[str, Any]]
"""From a request to its reply; may raise MemoryError alone."""


def serve(seconds: float, memory_mib: int, prepare: Callable[[], Answer]) -> None:
    """Serves requests until the parent closes the pipe. ``prepare`` imports, disarms and returns what answers."""
    replies = _take_over_streams()
    limit(memory_mib)
    answer = prepare()
    gc.freeze()
    os.dup2(1, 2)  # errors were for a start that fails; hostile input writes nowhere
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))
    _write(replies, {"ready": True})
    for request in _requests():
        if "ping" in request:
            _write(replies, request)
            continue
        signal.setitimer(signal.ITIMER_PROF, seconds)
        signal.setitimer(signal.ITIMER_REAL, seconds * WALL_FACTOR)
        try:
            reply = answer(request)
        except MemoryError:
            reply = {"failed": "out of memory"}
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.setitimer(signal.ITIMER_REAL, 0)
        _write(replies, reply)


def refuse_deeds(event: str, arguments: tuple[Any, ...]) -> None:
    """An audit hook: judging answers starts no process, opens no connection and writes no file."""
    if event in _DEEDS or (event == "open" and arguments[2] & (os.O_WRONLY | os.O_RDWR)):
        raise PermissionError(f"{event} in a worker")


_DEEDS = words(
    """os.system os.exec os.fork os.forkpty os.posix_spawn os.spawn subprocess.Popen pty.spawn socket.connect
    socket.bind os.remove os.rename os.mkdir os.rmdir os.chmod os.link os.symlink shutil.rmtree ctypes.dlopen"""
)


def _take_over_streams() -> int:
    """A private descriptor for replies: whatever a library prints goes nowhere."""
    replies = os.dup(1)
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 1)
    return replies


def limit(memory_mib: int) -> None:
    """Limits memory, and lets the timers of `serve` end the process."""
    for number in (signal.SIGPROF, signal.SIGALRM, signal.SIGXCPU):
        signal.signal(number, signal.SIG_DFL)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # an interrupted parent closes the pipe
    signal.pthread_sigmask(signal.SIG_UNBLOCK, (signal.SIGPROF, signal.SIGALRM, signal.SIGXCPU))
    for kind in (resource.RLIMIT_AS, resource.RLIMIT_DATA):
        resource.setrlimit(kind, (memory_mib << 20, memory_mib << 20))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def _requests() -> Iterator[dict[str, Any]]:
    """Requests until the parent closes the pipe or dies."""
    parent, received = os.getppid(), b""
    while os.getppid() == parent:
        if not select.select([0], [], [], 2.0)[0]:
            continue
        data = os.read(0, 65_536)
        if not data:
            return
        *lines, received = (received + data).split(b"\n")
        yield from map(json.loads, lines)


def _write(replies: int, reply: dict[str, Any]) -> None:
    os.write(replies, json.dumps(reply).encode() + b"\n")
