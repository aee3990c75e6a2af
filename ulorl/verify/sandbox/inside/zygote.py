"""The process that boxes are cloned from.

Invariants: nothing of any job ever enters its memory, so that a box, which begins as a copy of it, has nothing of other
programs, their outputs or tests; between two jobs it has no child. What a job is comes to the box through a descriptor,
after it has locked itself in.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import socket
from dataclasses import asdict
from typing import Any, NoReturn

from .box import Maker
from .limits import Limits
from .linux import PR_SET_PDEATHSIG, prctl
from .supervise import children

_PR_SET_CHILD_SUBREAPER = 36
_LONGEST, _MOST_FILES = 4096, 16
"""Of a message."""


class Zygote:
    """That process, from the keeper's side. OSError where it cannot do what it is asked, or is gone."""

    def __init__(self, maker: Maker, processes: int) -> None:
        """``processes``: the system's /proc, open (-1: none)."""
        self._talk, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        keeper = os.getpid()
        self.pid = os.fork()
        if not self.pid:
            try:
                self._talk.close()
                _serve(maker, processes, theirs, keeper)
            finally:
                os._exit(1)
        theirs.close()

    def start(self, bounds: Limits, cpu_s: float, files: list[int]) -> int:
        """A new box; its number. ``files`` become its descriptors 0, 1, 2, ..., as `Maker.start` wants them."""
        return int(self._ask({"limits": asdict(bounds), "cpu_s": cpu_s}, files)["pid"])

    def end(self, boxes: list[int]) -> tuple[int, float]:
        """Kills every box and waits until nothing is left; the first one's wait status, and their processor time."""
        answer = self._ask({"end": boxes}, [])
        return answer["status"], answer["cpu_s"]

    def _ask(self, request: dict[str, Any], files: list[int]) -> dict[str, Any]:
        socket.send_fds(self._talk, [json.dumps(request).encode()], files)
        data = self._talk.recv(_LONGEST)
        answer: dict[str, Any] = json.loads(data) if data else {"failed": "the process that boxes come from is gone"}
        if "failed" in answer:
            raise OSError(answer["failed"])
        return answer


def _serve(maker: Maker, processes: int, talk: socket.socket, keeper: int) -> NoReturn:
    prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != keeper:
        os._exit(0)
    with contextlib.suppress(OSError):
        prctl(_PR_SET_CHILD_SUBREAPER, 1)
    nothing = os.open("/dev/null", os.O_RDWR | os.O_CLOEXEC)
    for place in range(3):
        os.dup2(nothing, place)
    while True:
        data, files, _, _ = socket.recv_fds(talk, _LONGEST, _MOST_FILES)
        if not data:
            os._exit(0)
        request = json.loads(data)
        try:
            if "end" in request:
                status, cpu_s = _end(request["end"], processes)
                answer: dict[str, Any] = {"status": status, "cpu_s": cpu_s}
            else:
                answer = {"pid": maker.start(Limits(**request["limits"]), request["cpu_s"], files)}
        except OSError as error:
            answer = {"failed": str(error)}
        for one in files:
            os.close(one)
        talk.send(json.dumps(answer).encode())


def _end(boxes: list[int], processes: int) -> tuple[int, float]:
    for box in boxes:
        with contextlib.suppress(ProcessLookupError):
            os.kill(box, signal.SIGKILL)
    first, cpu_s = 0, 0.0
    # All children: in some modes what a box started comes to this process when the box ends.
    while True:
        for left in children(processes, os.getpid()):
            with contextlib.suppress(ProcessLookupError):
                os.kill(left, signal.SIGKILL)
        try:
            pid, status, used = os.wait4(-1, 0)
        except ChildProcessError:
            return first, cpu_s
        cpu_s += used.ru_utime + used.ru_stime
        if pid == boxes[0]:
            first = status
