"""One worker process: its pipes, its clock, and how it ends.

Trust: the parent writes JSON that it made, the worker answers with JSON that the parent parses and never
executes, because the worker is the one that handles hostile text. Nothing is pickled in either direction.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

MAX_REPLY = 65_536
"""Bytes of a reply, beyond which the worker is killed."""
START_SECONDS = 300.0
MAX_STARVATION = 50
"""The wall clock may pass the time limit by this factor while a worker waits for a processor."""
_PACKAGE_ROOT = str(Path(__file__).resolve().parents[3])


@dataclass(frozen=True)
class Limits:
    """What a pool may use: processes, seconds and requests of one, MiB of one."""

    workers: int
    seconds: float
    memory_mib: int
    requests: int = 500
    """A worker is replaced after this many, so that no cache or leak grows without bound."""


def worker_command(module: str, limits: Limits) -> list[str]:
    """Starts ``module`` in a fresh interpreter that imports neither ``__main__`` nor from the current directory."""
    return [sys.executable, "-P", "-m", module, str(limits.seconds), str(limits.memory_mib)]


class Worker:
    """One process, its pipes, and what it was asked."""

    def __init__(self, command: Sequence[str]) -> None:
        path = os.pathsep.join([_PACKAGE_ROOT, *filter(None, [os.environ.get("PYTHONPATH")])])
        self.errors: BinaryIO = tempfile.TemporaryFile()  # noqa: SIM115 - last words of a failed start
        self.process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self.errors,
            bufsize=0,
            env=os.environ | {"PYTHONPATH": path, "OMP_NUM_THREADS": "1", "MALLOC_ARENA_MAX": "1"},
        )
        assert self.process.stdin is not None and self.process.stdout is not None
        self._stdin, self._stdout = self.process.stdin, self.process.stdout
        self._received = b""
        self.ready = False
        self.served = 0
        self.asked = 0.0
        self.deadline = 0.0
        self._processor_time = 0.0

    def fileno(self) -> int:
        return self._stdout.fileno()

    def ask(self, request: bytes, seconds: float) -> None:
        """Sends a request; one that is still starting reads it when it is ready."""
        self._stdin.write(request)
        self.asked = time.monotonic()
        self.deadline = self.asked + (seconds if self.ready else START_SECONDS)
        self.served += 1

    def read(self) -> list[bytes] | None:
        """Complete lines that have arrived; None when the process has ended."""
        data = os.read(self.fileno(), MAX_REPLY)
        if not data:
            return None
        *lines, self._received = (self._received + data).split(b"\n")
        if any(len(line) > MAX_REPLY for line in (*lines, self._received)):
            raise Flood
        return lines

    def is_starved(self, seconds: float) -> bool:
        """Whether it works, or waits for a processor or the disk, and its own timers have not ended it yet.

        One that sleeps is not starved: since the last look it has used no processor time and wants none.
        """
        import psutil

        if time.monotonic() - self.asked > seconds * MAX_STARVATION:
            return False
        try:
            process = psutil.Process(self.process.pid)
            status, times = process.status(), process.cpu_times()
        except psutil.Error:
            return False
        before, self._processor_time = self._processor_time, times.user + times.system
        return status in (psutil.STATUS_RUNNING, psutil.STATUS_DISK_SLEEP) or self._processor_time > before

    def kill(self) -> int:
        """Exit status of the process, killed where it still runs."""
        self.process.kill()
        self._stdin.close()
        self._stdout.close()
        status = self.process.wait()
        self.errors.close()
        return status

    def last_words(self) -> str:
        self.errors.seek(0)
        lines = self.errors.read()[-2000:].decode("utf-8", "replace").split("\n")
        return next((line.strip()[:200] for line in reversed(lines) if line.strip()), "no message")

    def abandon(self) -> None:
        """Closes this process's copies of the pipes of a worker that belongs to the parent process."""
        self._stdin.close()
        self._stdout.close()
        self.errors.close()
        self.process.returncode = 0  # not ours to wait for


class Flood(Exception):
    """A worker writes without end."""
