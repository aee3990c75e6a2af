"""A box: a process that locks itself in and becomes a program or the tests of one.

How depends on the keeper's mode. ``namespaces``: the first process of the box stays ours; it waits for the program,
and its end ends everything in the box. ``landlock`` and ``weak``: the program is the box, and cannot start processes.
``bubblewrap`` and ``nsjail``: that command builds the box and starts a new interpreter in it.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import signal
import sys
from dataclasses import asdict
from typing import Any, NoReturn

from . import assertions, landlock, limits, linux, namespaces, program, seccomp, served

COULD_NOT_START = 125
LOCKED = b"."
"""What a box says when it is locked in."""
SPARE_SECONDS = 60
"""After which a box ends by itself, if nobody else ends it."""
_HIGH = 200
Job = dict[str, Any]


class Maker:
    """Starts boxes in one way."""

    def __init__(self, mode: str, readable: list[str], command: list[str]) -> None:
        self.mode, self.readable, self.command = mode, readable, command
        if linux.COLUMN >= 0:
            seccomp.assembled(alone=False, pid=0)  # once, not once a box

    def start(self, bounds: limits.Limits, cpu_s: float, files: list[int]) -> int:
        """A new process with ``files`` as its descriptors 0, 1, 2, ...; returns its number.

        To the last but one it writes when it has locked itself in; then it reads its job (`job_file`) from the last.
        """
        pid = namespaces.clone_box() if self.mode == "namespaces" else os.fork()
        if pid:
            return pid
        try:
            self._become(bounds, cpu_s, files)
        except BaseException as error:
            with contextlib.suppress(BaseException):
                os.write(2, f"the sandbox could not be locked: {error}\n".encode())
        finally:
            os._exit(COULD_NOT_START)

    def _become(self, bounds: limits.Limits, cpu_s: float, files: list[int]) -> NoReturn:
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGPIPE):
            signal.signal(number, signal.SIG_DFL)
        _place(files)
        job = len(files) - 1
        if self.command:
            with contextlib.suppress(OSError):
                linux.prctl(linux.PR_SET_PDEATHSIG, signal.SIGKILL)
            inside = json.dumps({"job": job, "limits": asdict(bounds), "cpu_s": cpu_s})
            command = [one.replace("DISK_BYTES", str(bounds.disk_mib << 20)) for one in self.command]
            os.execve(command[0], [*command, inside], {})
        os.setsid()
        if self.mode == "namespaces":
            linux.prctl(linux.PR_SET_PDEATHSIG, signal.SIGKILL)
            namespaces.mount_scratch(bounds.disk_mib, limits.FILES_WRITTEN)
            limits.apply(bounds, cpu_s)
            namespaces.drop_privileges()
            seccomp.install(alone=False, pid=0)
            _say_locked(job - 1)
            _first_process(job, bounds)
        with contextlib.suppress(OSError):
            linux.prctl(linux.PR_SET_PDEATHSIG, signal.SIGKILL)
        limits.apply(bounds, cpu_s, alone=True)
        if self.mode == "landlock":
            landlock.restrict(self.readable)
            seccomp.install(alone=True, pid=os.getpid())
        else:
            with contextlib.suppress(OSError):
                seccomp.install(alone=True, pid=os.getpid())
        _say_locked(job - 1)
        do(job)


def inside_another(message: str) -> NoReturn:
    """What the interpreter in a box of bubblewrap or nsjail does: locks itself further, and does its job."""
    given = json.loads(message)
    os.closerange(given["job"] + 1, os.sysconf("SC_OPEN_MAX"))  # what that command left open
    limits.apply(limits.Limits(**given["limits"]), given["cpu_s"])
    seccomp.install(alone=False, pid=0)
    _say_locked(given["job"] - 1)
    do(given["job"])


def do(descriptor: int) -> NoReturn:
    """Becomes what the job says that can be read there; never returns."""
    with open(descriptor, "rb") as file:
        job = json.load(file)
    # Python's own modules are all that is left to import.
    ours = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    sys.path[:] = [place for place in sys.path if place != ours]
    kind = job["kind"]
    if kind == "script":
        program.run(job["source"])
    elif kind == "served":
        served.run(job["source"])
    else:
        assertions.run(job["code"], job["entry_point"], job["done"])
    os._exit(COULD_NOT_START)


def _say_locked(descriptor: int) -> None:
    """To the keeper; the program does not have the descriptor any more."""
    os.write(descriptor, LOCKED)
    os.close(descriptor)


def _place(files: list[int]) -> None:
    """Makes ``files`` this process's descriptors 0, 1, 2, ... and closes all others."""
    high = [fcntl.fcntl(one, fcntl.F_DUPFD, _HIGH) for one in files]
    for target, one in enumerate(high):
        os.dup2(one, target)
    os.closerange(len(files), os.sysconf("SC_OPEN_MAX"))


def job_file(job: Job) -> int:
    """A descriptor from which a box can read its job."""
    return sealed(json.dumps(job).encode())


def sealed(data: bytes) -> int:
    """A descriptor from which ``data`` can be read, and that nobody can change."""
    place = os.memfd_create("data", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
    view = memoryview(data)
    while view:
        view = view[os.write(place, view) :]
    os.lseek(place, 0, os.SEEK_SET)
    fcntl.fcntl(place, fcntl.F_ADD_SEALS, fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_GROW | fcntl.F_SEAL_WRITE)
    return place


def _first_process(job: int, bounds: limits.Limits) -> NoReturn:
    """Waits for the program and whatever it leaves; ends as it did (128 + the signal, where it was one)."""
    child = os.fork()
    if not child:
        do(job)
    os.close(job)
    signal.signal(signal.SIGALRM, lambda number, frame: os._exit(COULD_NOT_START))
    signal.setitimer(signal.ITIMER_REAL, bounds.total_s + SPARE_SECONDS)
    while True:
        pid, status = os.wait()
        if pid == child:
            os._exit(os.WEXITSTATUS(status) if os.WIFEXITED(status) else 128 + os.WTERMSIG(status))
