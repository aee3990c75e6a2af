"""Ways of locking programs in, and which of them this machine can use.

`process` is our own code, in one of two strengths; bubblewrap and nsjail are commands that are looked for when they are
needed. A way that has started is believed only after a program has tried to get out (`PROBE`).
"""

from __future__ import annotations

import os
import shutil
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from ulorl.errors import UserError
from ulorl.recipe_sandbox import SandboxRecipe

Mode = Literal["namespaces", "bubblewrap", "nsjail", "landlock", "weak"]
ORDER: dict[str, tuple[Mode, ...]] = {
    "auto": ("namespaces", "bubblewrap", "nsjail", "landlock"),
    "process": ("namespaces", "landlock"),
    "bubblewrap": ("bubblewrap",),
    "nsjail": ("nsjail",),
}
COMMANDS: dict[Mode, str] = {"bubblewrap": "bwrap", "nsjail": "nsjail"}
MEANING: dict[Mode, str] = {
    "namespaces": "namespaces of its own and seccomp, a warm interpreter",
    "bubblewrap": "bubblewrap and seccomp, a new interpreter a program",
    "nsjail": "nsjail and seccomp, a new interpreter a program",
    "landlock": "Landlock and seccomp, no processes and no files of a program's own",
    "weak": "seccomp at most: programs can read and write this user's files",
}
ENVIRONMENT = {"PYTHONHASHSEED": "0", "MALLOC_ARENA_MAX": "1", "LANG": "C.UTF-8"}
"""All that a program finds in its environment. The seed makes the order of sets the same in every run."""
INSIDE = Path(__file__).parent / "inside"
INSIDE_A_BOX = "/inside"
"""Where that is for an interpreter in a box of bubblewrap or nsjail."""
MAX_FILES = 8
"""Descriptors of a box, with those of its job and of its word that it is locked in."""
FIRST_IDENTITY, IDENTITIES = 1_879_048_192, 1 << 27
"""Users that root becomes: none that a system gives to anybody."""

PROBE = """
import os, socket, sys
secret, parent = sys.stdin.read().split("\\n")
reached = []
try:
    reached.append("the network" if socket.socket() else "")
except OSError:
    pass
places = {"this user's files": secret, "the system's files": "/etc/passwd", "processes": "/proc/1/status"}
for what, path in places.items():
    try:
        open(path).close()
        reached.append(what)
    except OSError:
        pass
try:
    open(os.path.join(os.path.dirname(secret), "written"), "w").close()
    reached.append("this user's directories")
except OSError:
    pass
try:
    os.kill(int(parent), 0)
    reached.append("signals to other processes")
except OSError:
    pass
if os.environ.get("ULORL_SANDBOX_SECRET"):
    reached.append("the environment")
print(*reached, sep=", ")
"""


@dataclass(frozen=True)
class Backend:
    """``command`` builds a box, in the modes that need one."""

    mode: Mode
    interpreter: str
    command: tuple[str, ...] = ()

    def keeper(self, identity: int) -> list[str]:
        """The command line of a worker process; ``identity`` is who it becomes if it is root."""
        start = [*_python(self.interpreter, str(INSIDE)), "keep", self.mode, str(identity)]
        return [*start, *self.command]


def candidates(config: SandboxRecipe) -> list[Backend]:
    """What to try, best first. UserError for an interpreter or a command that is asked for and not there."""
    interpreter = _interpreter(config.interpreter)
    if interpreter.startswith("/tmp/"):
        raise UserError(f"verify.sandbox.interpreter: {interpreter} is under /tmp, which is empty for programs")
    found = []
    modes = (*ORDER[config.backend], *(("weak",) if config.allow_weak else ()))
    for mode in modes:
        name = COMMANDS.get(mode)
        if name is None:
            found.append(Backend(mode, interpreter))
        elif path := shutil.which(name):
            found.append(Backend(mode, interpreter, _box_command(mode, path, interpreter)))
        elif config.backend != "auto":
            raise UserError(f'verify.sandbox.backend = "{mode}": there is no command {name}; install {mode}')
    return found


def _interpreter(asked: str) -> str:
    if not asked:
        # Not the one of a virtual environment: that is another interpreter's, under another name.
        return os.path.realpath(getattr(sys, "_base_executable", sys.executable))
    path = shutil.which(asked)
    if path is None:
        raise UserError(f"verify.sandbox.interpreter: no program {asked!r}")
    return os.path.realpath(path)


def _python(interpreter: str, inside: str) -> list[str]:
    # No site-packages (-s, -S), nothing imported from the current directory (-P), nothing written (-B).
    return [interpreter, "-s", "-S", "-P", "-B", f"{inside}/__main__.py"]


def _box_command(mode: Mode, path: str, interpreter: str) -> tuple[str, ...]:
    from ulorl.verify.sandbox.inside.keeper import readable_places
    from ulorl.verify.sandbox.inside.namespaces import READABLE_DEVICES

    places = readable_places({str(Path(interpreter).parent.parent)}, interpreter)
    links = {place: os.readlink(place) for place in places if os.path.islink(place)}
    real = [place for place in places if place not in links]
    python = [*_python(interpreter, INSIDE_A_BOX), "box"]
    if mode == "bubblewrap":
        return (
            path, "--unshare-all", "--unshare-user", "--uid", "1000", "--gid", "1000", "--hostname", "box",
            "--die-with-parent", "--new-session", "--cap-drop", "ALL", "--clearenv",
            *(part for name, value in ENVIRONMENT.items() for part in ("--setenv", name, value)),
            "--ro-bind", str(INSIDE), INSIDE_A_BOX,
            *(part for place in real for part in ("--ro-bind", place, place)),
            *(part for place, target in links.items() for part in ("--symlink", target, place)),
            *(part for device in READABLE_DEVICES for part in ("--dev-bind", device, device)),
            "--size", "DISK_BYTES", "--perms", "0700", "--tmpfs", "/tmp", "--chdir", "/tmp", "--remount-ro", "/", "--",
            *python,
        )  # fmt: skip
    unlimited = ("as", "core", "cpu", "fsize", "nofile", "nproc", "stack")
    return (
        path, "-Mo", "--really_quiet", "--disable_proc", "--iface_no_lo", "--user", "1000", "--group", "1000",
        "--hostname", "box", "--time_limit", "0", "--nice_level", "0", "--cwd", "/tmp",
        *(part for name in unlimited for part in (f"--rlimit_{name}", "hard")),
        *(part for number in range(3, MAX_FILES) for part in ("--pass_fd", str(number))),
        *(part for name, value in ENVIRONMENT.items() for part in ("--env", f"{name}={value}")),
        "--bindmount_ro", f"{INSIDE}:{INSIDE_A_BOX}",
        *(part for place in real for part in ("--bindmount_ro", place)),
        *(part for place, target in links.items() for part in ("--symlink", f"{target}:{place}")),
        *(part for device in READABLE_DEVICES for part in ("--bindmount", device)),
        "--mount", "none:/tmp:tmpfs:size=DISK_BYTES,nr_inodes=1024,mode=700", "--", *python,
    )  # fmt: skip
