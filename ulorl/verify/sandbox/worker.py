"""One worker process from the caller's side: starting it, asking it, and ending it.

What comes back is JSON, parsed and never executed. A worker that does not answer in time is killed, and with it, by the
kernel, everything that it started.
"""

from __future__ import annotations

import json
import os
import select
import struct
import subprocess
import time
from typing import Any

from ulorl.verify.sandbox.backends import ENVIRONMENT, Backend

START_SECONDS = 120.0
MAX_ANSWER = 512 << 20


class WorkerLost(Exception):
    """The worker process has ended, or does not answer, or did not start; why."""


class Worker:
    """A keeper and its pipes; for one caller at a time."""

    def __init__(self, backend: Backend, identity: int) -> None:
        try:
            self._process = subprocess.Popen(
                backend.keeper(identity),
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                bufsize=0,
                cwd="/",
                env=ENVIRONMENT,
                start_new_session=True,
            )
        except OSError as error:
            raise WorkerLost(f"{backend.interpreter}: {error}") from error
        assert self._process.stdin is not None and self._process.stdout is not None
        self._stdin, self._stdout = self._process.stdin, self._process.stdout
        os.set_blocking(self._stdin.fileno(), False)
        try:
            ready = self._receive(time.monotonic() + START_SECONDS)
        except WorkerLost:
            self.kill()
            raise
        if "failed" in ready:
            self.kill()
            raise WorkerLost(str(ready["failed"])[:300])
        self.processes = (self._process.pid, int(ready["zygote"]))
        """Its own, of no program: the keeper, and the process that boxes are cloned from."""

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def alive(self) -> bool:
        return self._process.poll() is None

    def ask(self, message: dict[str, Any], seconds: float) -> dict[str, Any]:
        """The answer, within ``seconds``. WorkerLost leaves the worker unusable."""
        deadline = time.monotonic() + seconds
        text = json.dumps(message).encode()
        data = memoryview(struct.pack("=I", len(text)) + text)
        while data:
            _wait(self._stdin.fileno(), select.POLLOUT, deadline)
            try:
                data = data[os.write(self._stdin.fileno(), data) :]
            except BlockingIOError:
                continue
            except OSError as error:
                raise WorkerLost("the worker ended") from error
        return self._receive(deadline)

    def kill(self) -> None:
        """Ends it and what it runs."""
        self._process.kill()
        self.abandon()
        self._process.wait()

    def abandon(self) -> None:
        """Closes this process's ends of the pipes; the worker ends when nobody holds them any more."""
        self._stdin.close()
        self._stdout.close()

    def _receive(self, deadline: float) -> dict[str, Any]:
        (length,) = struct.unpack("=I", self._exactly(4, deadline))
        if length > MAX_ANSWER:
            raise WorkerLost("an answer that is too long")
        try:
            answer = json.loads(self._exactly(length, deadline))
        except (ValueError, RecursionError) as error:
            raise WorkerLost("an answer that cannot be read") from error
        if not isinstance(answer, dict):
            raise WorkerLost("an answer that cannot be read")
        return answer

    def _exactly(self, length: int, deadline: float) -> bytes:
        parts = []
        while length:
            _wait(self._stdout.fileno(), select.POLLIN, deadline)
            part = os.read(self._stdout.fileno(), min(length, 1 << 20))
            if not part:
                raise WorkerLost("the worker ended")
            parts.append(part)
            length -= len(part)
        return b"".join(parts)


def _wait(place: int, event: int, deadline: float) -> None:
    poll = select.poll()
    poll.register(place, event)
    left = deadline - time.monotonic()
    if left <= 0 or not poll.poll(left * 1000):
        raise WorkerLost("the worker does not answer")
