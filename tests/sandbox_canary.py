"""Things outside the sandbox that a program must not reach, and whether it did."""

from __future__ import annotations

import hashlib
import json
import os
import resource
import secrets
import shutil
import socket
import subprocess
import sys
import sysconfig
import tempfile
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import psutil

from ulorl.verify.sandbox.backends import FIRST_IDENTITY, IDENTITIES
from ulorl.verify.sandbox.pool import Outcome, Sandbox

SECRET_NAME = "ULORL_SANDBOX_CANARY"
COMMON_PLACES = ("/tmp", "/var/tmp", "/dev/shm", "/run")


class Canary:
    """A secret (a file, a variable of the environment), a directory, a process, and listening sockets."""

    def __enter__(self) -> Self:
        self.secret = "secret-" + secrets.token_hex(16)
        self.directory = Path(tempfile.mkdtemp(prefix="canary-"))
        self.directory.chmod(0o777)  # so that only the sandbox keeps anybody out
        self.file = self.directory / "secret"
        self.file.write_text(self.secret)
        self.file.chmod(0o666)
        os.environ[SECRET_NAME] = self.secret
        self.victim = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(3600)"])
        self.abstract = "ulorl-" + secrets.token_hex(8)
        self.sockets = [socket.create_server(("127.0.0.1", 0)), *(socket.socket(socket.AF_UNIX) for _ in range(2))]
        self.sockets[1].bind("\0" + self.abstract)
        self.sockets[2].bind(str(self.directory / "socket"))
        (self.directory / "socket").chmod(0o777)
        for one in self.sockets:
            one.listen()
            one.setblocking(False)
        self._before = self._state()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.victim.kill()
        self.victim.wait()
        for one in self.sockets:
            one.close()
        del os.environ[SECRET_NAME]
        shutil.rmtree(self.directory)

    def facts(self, disk_mib: int) -> str:
        """What the programs are told, one line of JSON: where everything is, but not the secret."""
        return json.dumps(
            {
                "pid": os.getpid(),
                "victim": self.victim.pid,
                "secret_file": str(self.file),
                "data_directory": str(self.directory),
                "secret_name": SECRET_NAME,
                "port": self.sockets[0].getsockname()[1],
                "abstract": self.abstract,
                "unix_path": str(self.directory / "socket"),
                "site_packages": [sysconfig.get_path("purelib"), str(Path(__file__).parents[1])],
                "disk_mib": disk_mib,
            }
        )

    def violations(self, outcome: Outcome, sandbox: Sandbox) -> list[str]:
        """What a program that ended so has done that it must not be able to do."""
        found = [line for line in outcome.output.splitlines() if line.startswith("ESCAPED")]
        if self.secret in outcome.output + outcome.errors:
            found.append("the secret is in its output")
        now = self._state()
        found += [f"{name}: {self._before[name]} became {now[name]}" for name in now if now[name] != self._before[name]]
        for one in self.sockets:
            try:
                one.accept()[0].close()
                found.append(f"a connection to {one.getsockname()!r}")
            except BlockingIOError:
                pass
        return found + left_processes(sandbox) + left_files()

    def _state(self) -> dict[str, Any]:
        victim = psutil.Process(self.victim.pid)
        interpreter = Path(os.__file__)
        return {
            "directory": sorted(path.name for path in self.directory.iterdir()),
            "file": self.file.read_text() == self.secret,
            "victim": (self.victim.poll(), victim.nice(), victim.cpu_affinity(), victim.rlimit(psutil.RLIMIT_CPU)),
            "interpreter": (hashlib.sha256(interpreter.read_bytes()).hexdigest()[:8], interpreter.stat().st_mode),
            "mounts": hashlib.sha256(Path("/proc/self/mounts").read_bytes()).hexdigest()[:8],
            "name of the machine": socket.gethostname(),
            "own limits": resource.getrlimit(resource.RLIMIT_CPU),
        }


def left_processes(sandbox: Sandbox) -> list[str]:
    """Processes of programs: those below a worker, and those of the user that a worker's programs are, if it is one of
    their own."""
    workers = {worker.pid: psutil.Process(worker.pid) for worker in list(sandbox._alive)}
    own = {pid for worker in list(sandbox._alive) for pid in worker.processes}
    left = {child.pid for worker in workers.values() for child in worker.children(recursive=True)} - own
    identities = {worker.uids().real for worker in workers.values()}
    identities = {one for one in identities if FIRST_IDENTITY <= one < FIRST_IDENTITY + IDENTITIES}
    for entry in os.scandir("/proc"):
        try:
            if entry.name.isdecimal() and entry.stat().st_uid in identities and int(entry.name) not in own:
                left.add(int(entry.name))
        except FileNotFoundError:
            continue
    return [f"process {pid} is left" for pid in sorted(left)]


def left_files() -> list[str]:
    """Files of the users that programs are, and files that programs say are theirs, in the usual places."""
    found = []
    for place in (*COMMON_PLACES, os.getcwd()):
        if not os.path.isdir(place):
            continue
        for entry in os.scandir(place):
            try:
                owner = entry.stat(follow_symlinks=False).st_uid - FIRST_IDENTITY
            except FileNotFoundError:
                continue
            if entry.name.startswith("nsjail."):  # empty directories on which nsjail mounts
                continue
            if 0 <= owner < IDENTITIES or entry.name == "written_by_a_program":
                found.append(f"a file is left: {entry.path}")
    return found
